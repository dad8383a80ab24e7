"""What a whole mix takes, added up from its parts, and what is said of parts that cannot be measured."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from made_replays import MIX
from wherry import cli
from wherry.cli import replaying
from wherry.replay import totals

PARTS = [SimpleNamespace(calls=10), SimpleNamespace(calls=1)]
SHARES = [{0: 1.0}, {1: 0.5, 2: 0.5}]


def added(*cells: dict[int, list[float]], **more) -> dict[int, list[float]]:
    found = {
        (row, totals.LIBC, False): SimpleNamespace(ns={p: np.array(ns) for p, ns in cell.items()})
        for row, cell in enumerate(cells)
    }
    campaign = SimpleNamespace(cells=found)
    table = totals._table(campaign, PARTS, SHARES, more.get("routine", totals.LIBC), False)
    return {process: list(map(float, own)) for process, own in table.items()}


def test_parts_are_added_round_by_round_in_each_process():
    found = added({0: [1, 2, 3], 1: [4]}, {0: [10, 10], 1: [30]}, {0: [0, 20], 1: [10]})
    assert found == {0: [15.0, 35.0], 1: [60.0]}


def test_a_process_that_lacks_a_part_is_left_out():
    assert added({0: [1], 1: [2]}, {0: [2]}, {0: [4], 1: [6]}) == {0: [13.0]}


def test_where_every_process_lacks_some_part_another_one_stands_in():
    """Long calls on a busy machine: a round free of disturbance is rare."""
    found = added({0: [1, 3], 1: [2]}, {0: [2, 2]}, {1: [6]})
    assert found == {0: [14.0], 1: [24.0]}


def test_what_nobody_has_measured_is_nothing():
    assert added({0: [1]}, {}, {0: [1]}) == {}
    assert added({0: [1]}, {0: [1]}, {0: [1]}, routine="wherry") == {}


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_what_this_machine_has_no_memory_for_is_told(tmp_path, monkeypatch, capsys, form):
    """As in a container that may have a little."""
    known = replaying.PlanCampaign
    why = "needs 192 MiB for its buffers, and may take 70 MiB"

    def poor(rows, *arguments, **options):
        campaign = known(rows, *arguments, **options)
        for number, row in enumerate(rows):
            if row.src_state == "DRAM":
                campaign._problem("skip", "", f"{why}; choose a smaller size", number)
        return campaign

    monkeypatch.setattr(replaying, "PlanCampaign", poor)
    (tmp_path / "hand.mix.json").write_text(json.dumps(MIX))
    words = ("--quick", "--no-found-peers", "--rounds", "3", *form)
    with pytest.raises(SystemExit) as ended:
        cli.main(["replay", str(tmp_path / "hand.mix.json"), *words])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    if form:
        assert {p["kind"] for p in json.loads(said)["problems"]} == {"skip"} and why in said
    else:
        told = " ".join(said.split())
        assert re.search(
            rf"cold: (\d+) of \1 parts cannot be measured here: {re.escape(why)}", told
        )
        assert "choose a smaller" not in told and not re.search(r"hot: \d", told)
