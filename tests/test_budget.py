"""A total time: shared by weight, kept, and told in the run file when it was short. The runner is a fake one."""

import json
import os
import re
import sys
import time
from dataclasses import replace

import pytest
from conftest import FAKE, processor_seconds, run, workbench
from wherry import budget
from wherry.budget import Budget, Share, cost, fit, parse, thin
from wherry.campaign import Row
from wherry.errors import WherryError
from wherry.experiments import Experiment, Request, names


class Made(Experiment):
    def rows(self, request):
        count = 10 if request.quick else 100
        return [Row(self.name, "copy", ("libc", "wherry"), 64 + i, rounds=20) for i in range(count)]

    def blocks(self, run, width):
        return []


def made(name, weight=1.0, processes=8):
    kind = type("Made", (Made,), {"weight": weight})
    return kind(name, "", "", "copy", ("copy",), (), processes, 20)


def share(processes=8):
    experiment = made("x", processes=processes)
    return budget.whole(experiment, Request())


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10m", 600),
        ("90s", 90),
        ("1h30m", 5400),
        ("600", 600),
        ("1.5 m", 90),
        ("2H", 7200),
        ("10min", 600),
    ],
)
def test_a_time(text, seconds):
    assert parse(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "x", "10x", "m", "-5m", "1m30", "9s", "8d", "200h", "1e3", "nan", "1" * 60 + "x"]
)
def test_no_time(text):
    with pytest.raises(WherryError, match="--budget"):
        parse(text)


def test_what_fits_stays_whole():
    full = share()
    assert replace(fit(full, 1000), expected=0) == full


def test_less_time_is_fewer_rounds_then_fewer_processes():
    full = share()
    whole = cost(full.rows, full.processes)
    last = full
    for part in (0.9, 0.7, 0.5, 0.3, 0.2):
        found = fit(full, whole * part)
        if found is None:
            break
        assert len(found.rows) == len(full.rows) and found.only is None
        assert cost(found.rows, found.processes) <= whole * part
        assert found.processes <= last.processes
        assert all(row.rounds >= budget.LEAST_ROUNDS for row in found.rows)
        last = found
    assert last.processes < full.processes or last.rows[0].rounds < full.rows[0].rounds
    assert fit(full, whole / 1000) is None


def test_each_number_of_processes_is_tried_down_to_the_least():
    """And of each the rounds that the time is enough for."""
    full = share(processes=5)
    for processes in range(5, budget.LEAST_PROCESSES - 1, -1):
        rows = thin(full, 1e6, 1).rows
        least = cost(rows, processes)
        found = fit(full, least + 1e-9)
        assert found.processes == processes and found.rows == rows
        assert found.expected == pytest.approx(least)
        found = fit(full, least + 0.3 * (cost(full.rows, processes) - least))
        assert cost(rows, processes) < found.expected <= cost(full.rows, processes)
    assert fit(full, 0.99 * least) is None
    # Who has one process keeps it, and rows with few rounds keep those.
    few = replace(full, processes=1, rows=tuple(replace(row, rounds=3) for row in full.rows))
    assert fit(few, cost(few.rows, 1)) == replace(few, expected=cost(few.rows, 1))
    assert fit(few, 0.99 * cost(few.rows, 1)) is None
    assert {row.rounds for row in thin(few, 1, 1).rows} == {3}


def test_a_floor_that_does_not_fit_thins_the_rows():
    full = share()
    least = cost(thin(full, 1e6, 1).rows, budget.LEAST_PROCESSES)
    found = thin(full, least / 4, 1)
    assert found.processes == budget.LEAST_PROCESSES
    assert len(found.rows) == len(full.rows), "a row keeps its number"
    assert 10 <= len(found.only) <= 25 and len(set(found.only)) == len(found.only)
    # From the whole of it, not from its beginning.
    assert min(found.only) < 20 and max(found.only) > 80
    assert thin(full, least / 4, 1) == found, "the same for the same seed"
    assert len(thin(full, 0, 1).only) == 1


def test_what_takes_twice_as_long_as_expected_gets_half_as_much():
    full = share()
    whole = cost(full.rows, full.processes)
    assert fit(full, 2 * whole, 2.0) == fit(full, whole) == replace(full, expected=whole)
    assert fit(full, whole, 2.0) == fit(full, whole / 2)
    seconds = 0.9 * cost(thin(full, 1e6, 1).rows, budget.LEAST_PROCESSES)
    usual, slow = thin(full, seconds, 1), thin(full, seconds, 1, 2.0)
    assert 2 * slow.expected <= seconds and len(slow.only) >= len(usual.only) / 3
    # For tables and the file some is kept.
    own = Budget(100, [made("a"), made("b")], Request(), 1)
    assert own.remaining() <= 100 * (1 - budget.RESERVE) - 2 * budget.RESERVE_EACH


def test_shares_go_by_weight_and_what_is_left_over_goes_on():
    small, large, heavy = made("a", processes=1), made("b", 1.0, 400), made("c", 3.0, 400)
    whole = Budget(100, [small, large, heavy], Request(), 1)
    wants = cost(whole.full["a"].rows, 1)
    assert whole._seconds("a") == pytest.approx(wants)
    left = whole.remaining() - wants
    assert whole._seconds("b") == pytest.approx(left / 4, rel=0.01)
    assert whole._seconds("c") == pytest.approx(left * 3 / 4, rel=0.01)
    whole.share(small)
    assert whole.left == ["b", "c"]
    assert whole._seconds("b") == pytest.approx(whole.remaining() / 4, rel=0.01)


def test_what_took_longer_makes_the_others_smaller():
    experiments = [made("a", processes=20), made("b", processes=20)]
    whole = Budget(60, experiments, Request(), 1)
    first = whole.share(experiments[0])
    whole.spent(first, 4 * first.expected)
    assert whole.pace() > 1.5
    assert cost(whole.share(experiments[1]).rows, 1) <= cost(first.rows, 1)


def test_a_pilot_says_how_long_it_takes():
    experiment = made("a", processes=50)

    def run(seconds_a_row):
        tried = []

        def pilot(rows, until):
            tried.append(len(rows))
            time.sleep(seconds_a_row * len(rows))
            return range(len(rows))

        whole = Budget(20, [experiment], Request(), 1)
        whole.full["a"] = replace(whole.full["a"], processes=400)
        found = whole.share(experiment, pilot)
        return found, tried, whole.paces["a"]

    fast, tried, pace = run(0.0001)
    slow, _, slow_pace = run(0.02)
    assert tried and tried[0] <= budget.PILOT_ROWS and slow_pace > pace
    assert isinstance(slow, Share)
    assert (
        len(slow.only or slow.rows) * slow.processes < len(fast.only or fast.rows) * fast.processes
    )


class Uneven(Made):
    """One row of ten takes a hundred times as long, as those of `zero` do."""

    def rows(self, request):
        return [
            replace(row, batch_us=20_000 if row.size % 10 == 0 else 200)
            for row in super().rows(request)
        ]


def test_what_thinning_draws_fits_also_where_rows_differ():
    full = budget.whole(Uneven("x", "", "", "copy", ("copy",), (), 2, 20), Request())
    least = cost(thin(full, 1e6, 1).rows, 2)
    for part in (0.02, 0.1, 0.3, 0.6):
        for seed in range(20):
            found = thin(full, least * part, seed)
            rows = [found.rows[i] for i in found.only]
            assert found.expected == cost(rows, 2)
            assert found.expected <= least * part or len(rows) == 1
            assert len(rows) > 1 or rows[0].batch_us == 200


def test_a_pilot_has_its_time_too():
    experiment = made("a", processes=400)

    def run(pilot):
        whole = Budget(20, [experiment], Request(), 1)
        entitled = whole._seconds("a")
        found = whole.share(experiment, pilot)
        return whole, entitled, found

    def slow(rows, until):
        ends.append(until - time.monotonic())
        time.sleep(0.3)
        return []

    ends: list[float] = []
    whole, entitled, found = run(slow)
    assert ends and ends[0] <= budget.PILOT_MOST * entitled
    assert whole.paces["a"] > 1.2, "it was not enough for one row"
    assert found.deadline < found.latest <= whole.began + whole.seconds + 1e-6

    whole = Budget(20, [experiment], Request(), 1, began=time.monotonic() - 100)
    ends.clear()
    assert len(whole.share(experiment, slow).only) == 1 and not ends, "no time, no pilot"


def test_the_short_form_comes_before_thinning():
    experiment = made("a", processes=3)
    whole = Budget(10, [experiment], Request(), 1)
    whole.began -= 8.5
    found = whole.share(experiment)
    assert (
        found.quick and found.request.quick and len(found.rows) == 10 and found.planned_rows == 100
    )


# ---- the command ----------------------------------------------------------------------------------------------------


def bench(directory, *args, **more):
    environment = {**os.environ, "WHERRY_RUN": str(FAKE), **more}
    return workbench("bench", *args, cwd=directory, env=environment)


def test_all_runs_whatever_there_is(tmp_path):
    began = processor_seconds()
    words = ("bench", "--all", "--no-found-peers", "--budget", "10s", "--save", "run.json")
    env = {**os.environ, "WHERRY_RUN": str(FAKE)}
    done = run(sys.executable, "-m", "wherry", *words, cwd=tmp_path, env=env)
    found = json.loads((tmp_path / "run.json").read_text())
    assert (
        sorted([e["name"] for e in found["experiments"]] + list(found["method"]["left_out"]))
        == names()
    )
    assert not found["interrupted"]
    # Beyond the 10 s that were asked for is room. In time of processors: on the clock others would count.
    assert processor_seconds() - began < 40
    (alignment,) = [e for e in found["experiments"] if e["name"] == "alignment"]
    assert alignment["thinned"]["measured"] < alignment["thinned"]["planned"] == 16384
    assert "for the time there was" in " ".join(done.stdout.split())
    for entry in found["experiments"]:
        rows = [row for row in found["rows"] if row["experiment"] == entry["name"]]
        assert rows and ("thinned" not in entry or entry["thinned"]["measured"] == len(rows))


def test_a_budget_is_kept_by_a_runner_that_is_slow(tmp_path):
    (tmp_path / "peer.so").write_bytes(b"peer")
    done = bench(
        tmp_path,
        "sizes",
        "small",
        "--budget",
        "10s",
        "--peer",
        "slow=peer.so",
        "--save",
        "run.json",
        WHERRY_FAKE_ROWS=str(tmp_path / "rows"),
    )
    assert done.returncode == 0, done.stderr
    # How long the runner slept, whoever else had the processors: 50 s without a budget.
    rows = (tmp_path / "rows").read_text()
    tried = sum(len(names.split(",")) for names in re.findall(r"routines=(\S+)", rows))
    assert 0 < tried * 0.15 < 30
    run = json.loads((tmp_path / "run.json").read_text())
    assert [e["name"] for e in run["experiments"]] == ["sizes", "small"]
    assert all(any(row["experiment"] == name for row in run["rows"]) for name in ("sizes", "small"))
    assert any("thinned" in e or e["cut_short"] for e in run["experiments"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--all", "sizes"), "leave out sizes"),
        (("--all", "--rounds", "3"), "--rounds"),
        (("--budget", "1m", "--processes", "3"), "--processes"),
        (("--budget", "soon"), "10m"),
        (("--budget", "1s"), "at least 10 s"),
    ],
)
def test_what_does_not_go_together(tmp_path, arguments, said):
    done = bench(tmp_path, *arguments)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1
