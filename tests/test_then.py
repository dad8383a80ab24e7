"""Then and now, as a user sees it: `wherry bench --then`, `wherry list history`, and the page in docs/."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, workbench
from wherry import history, runfile, then
from wherry.report.words import then_and_now
from wherry.then.page import page
from wherry.then.sheet import figures

PAGE = ROOT / "docs/then-and-now.md"
RUN = ROOT / "docs/then-and-now.run.json.gz"


pytestmark = pytest.mark.usefixtures("own_directory")


def call(*args: str | Path) -> subprocess.CompletedProcess[str]:
    """The command line without a native build: it measures nothing here."""
    return workbench(*args)


@pytest.fixture(scope="module")
def kept() -> dict:
    return runfile.read(RUN)


# ---- the page -------------------------------------------------------------------------------------------------------


def test_the_page_is_that_of_its_run():
    result = call("bench", "--show", RUN, "--then", "--markdown")
    assert result.returncode == 0, result.stderr
    assert result.stdout == PAGE.read_text(), (
        "write it again: wherry bench --show docs/then-and-now.run.json.gz --then --markdown "
        "> docs/then-and-now.md"
    )


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["bench", "zero", "--save", "my run.json", "--pin", "1"], "zero --pin 1 --save RUN"),
        (["bench", "zero", "--save=r.json", "--then"], "zero --then --save RUN"),
        (["bench", "--resume", "r.json"], "zero --then --save RUN"),
        (None, "zero --then --save RUN"),
    ],
)
def test_a_page_tells_the_command_of_its_own_run(kept, command, told):
    method = {"command": ["wherry", *command]} if command else {}
    experiments = [e for e in kept["experiments"] if e["name"] == "zero"]
    rows = [row for row in kept["rows"] if row["experiment"] == "zero"]
    run = {**kept, "method": method, "experiments": experiments, "rows": rows}
    lines = page(run).splitlines()
    assert lines[7] == f"wherry bench {told}     # measures"
    assert lines[8].startswith("wherry bench --show RUN")


def test_the_page_names_what_it_was_measured_on(kept):
    text = PAGE.read_text()
    own = kept["machine"]
    for word in (own["cpu"]["model"], own["kernel"], own["libc"], own["compiler"]):
        assert word in text
    assert (
        kept["started"][:10] in text and "| Noise floor | sizes" in text and "GHz, measured" in text
    )
    for name in history.experiments():
        assert f"{name}" in text


def test_words_do_not_call_a_difference_what_the_table_calls_noise(kept):
    (_, own) = then.sheets(kept, "stripes")
    (now,) = [text for text in own.said if text.startswith("Now")]
    told = now.split("the rate of ")[1].rstrip(".").split("; ")
    rows = [row for row in own.rows if row[0].startswith("now")]
    assert len(told) == len(rows) > 1
    for text, (title, x87, _, most) in zip(told, rows, strict=True):
        assert text.startswith(title.removeprefix("now: "))
        x87_told, most_told = text.split(", no copy at all ")
        for figure, words in ((x87, x87_told), (most, most_told)):
            assert figure.rstrip(" =") in words
            assert figure.endswith("=") == words.endswith("(within the noise)"), (figure, words)


def test_every_table_of_the_page_is_whole():
    """As many cells in each line as in its head, and no name left broken over lines."""
    lines = PAGE.read_text().splitlines()
    heads = [i for i, line in enumerate(lines) if re.fullmatch(r"\|[-:|]+\|", line)]
    assert len(heads) > 15
    for i in heads:
        count = lines[i].count("|")
        j = i - 1
        while j < len(lines) and lines[j].startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", lines[j])) == count, lines[j]
            j += 1
    assert not re.search(r"\|[^|\n]*_ \w[^|\n]*\|", "\n".join(lines[i - 1] for i in heads))


def test_the_page_has_every_figure_of_the_experiments_that_are_beside():
    """Rounded, but none is left out."""
    text = PAGE.read_text()
    for record in history.tables("zero")[0].records() + history.tables("zero")[1].records():
        assert f"| {record['rate']} | {record['time']} |" in text
    for table in history.tables("sizes"):
        for record in table.records():
            for name in ("libc", "ours"):
                assert f"| {figures(record[name])} |" in text
    for record in history.tables("alignment")[0].records():
        assert f"| {record['time']} |" in text
    for table in history.tables("switch"):
        for record in table.records():
            for name in ("user", "system", "user+system", "elapsed"):
                assert re.search(rf"\| {record[name]}0* \|", text), record


# ---- the command line -----------------------------------------------------------------------------------------------


def test_then_under_what_was_measured(wherry, tmp_path):
    """Measured, saved and shown again: the same words; the old stock routine is measured without being named."""
    result = wherry(
        *("bench", "small", "--then", "--size", "32,63,64", "--state", "L1", "--save", "r.json"),
        *("--processes", "1", "--rounds", "3"),
    )
    assert result.returncode == 0, result.stderr
    words = " ".join(result.stdout.split())
    for text in ("small, then and now", "Luigi Rizzo", "33.4", "Then, in L1, the fast copy"):
        assert text in words
    assert "rep_movsq" in result.stdout and "measured by a chain of additions" in words
    saved = runfile.read(tmp_path / "r.json")
    assert {"rep_movsq", "int4x8"} <= {cell["routine"] for cell in saved["cells"]}
    assert 0.2 < saved["runner"]["ghz"] < 20
    again = wherry("bench", "--show", "r.json", "--then")
    assert (
        again.stdout.split("small: noise")[1]
        == result.stdout.split("small: noise")[1].split("\nSaved as")[0]
    )


def test_without_then_nothing_is_added():
    shown = call("bench", "--show", RUN, "small")
    assert shown.returncode == 0 and "then and now" not in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("bench", "mixes", "--then"), "the mails have no figures of what mixes measures"),
        (("bench", "sizes", "--then", "--json"), "leave out --json"),
        (("bench", "--show", str(RUN), "--then", "--json"), "leave out --json"),
        (("bench", "--show", str(RUN), "mixes", "--then"), "no experiment 'mixes'"),
        (("bench", "--show", "gone.json", "--then"), "No such file"),
        (("bench", "--show", str(RUN), "--markdown"), "give --show FILE --then"),
        (("bench", "sizes", "--then", "--markdown"), "give --show FILE --then"),
        (("list", "history", "--experiment", "netwrok"), "did you mean network?"),
        (("list", "history", "--mix", "a.csv"), "--mix goes with wherry list mixes"),
        (("list", "routines", "--experiment", "sizes"), "goes with wherry list history"),
        (("list", "histroy"), "did you mean history?"),
    ],
)
def test_bad_input_is_one_line(arguments, said):
    result = call(*arguments)
    assert result.returncode == 2 and result.stdout == ""
    assert said in result.stderr and result.stderr.count("\n") == 1


def test_list_history_prints_every_figure():
    text = call("list", "history").stdout
    for seed in history.seeds():
        for table in seed.tables:
            assert table.title in text
            for record in table.records():
                for own in table.of_role("figure"):
                    value = record[own.name]
                    assert value is None or f"{value:g}" in text or str(value) in text, own
        for own in seed.statements:
            assert " ".join(own.what.split()[:3]) in text


def test_list_history_of_one_experiment():
    result = call("list", "history", "--experiment", "network")
    assert "841" not in result.stdout and "842.00" in result.stdout and "zero0" not in result.stdout
    (own,) = json.loads(call("list", "history", "--experiment", "network", "--json").stdout)
    assert own["seed"] == "anand-2002" and [t["id"] for t in own["tables"]] == ["netperf"]
    assert len(json.loads(call("list", "history", "--json").stdout)) == 5


# ---- what is made of the kept run ----------------------------------------------------------------------------------


def test_an_experiment_without_a_counterpart_shows_the_seed_alone(kept):
    bare = kept | {
        k: [x for x in kept[k] if x["experiment"] != "network"] for k in ("rows", "cells")
    }
    found = then.sheets(bare, "network")
    assert found[0].rows[0] == ["512", "741.84", "842.00", "13.5", "-1.6", "0.0"]
    assert "nothing that could stand beside" in found[0].notes[0]
    assert then.sheets(kept, "mixes") == []


def test_a_path_that_was_not_measured_has_no_noise_floor(kept):
    without = {r["row"] for r in kept["rows"] if r.get("via") == "stack"}
    assert without
    bare = kept | {
        k: [x for x in kept[k] if x["experiment"] != "network" or x["row"] not in without]
        for k in ("rows", "cells")
    }
    (*_, whole), (*_, own) = then.sheets(kept, "network"), then.sheets(bare, "network")
    assert "Noise floors: stack 7.0 %, kernel 2.7 %." in whole.notes[0]
    assert own.notes[0].endswith("Noise floor: kernel 2.7 %.")


def test_points_for_a_picture(kept):
    from wherry.then.points import NOW, points

    found = points(kept, "sizes")
    then_points = {(p.series, p.place): p.speed for p in found if p.series != NOW}
    assert len(then_points) == 18 + 17
    assert then_points["Pentium 90 MHz, 1996", "4M"] == 23.491825 / 17.219484
    assert len([p for p in found if p.series == NOW]) == 18
    zero = [p for p in points(kept, "zero") if p.place == "generic_bzero"]
    assert [p.speed for p in zero] == [1.0] * 4
    assert {p.place for p in points(kept, "small")} == {"32", "64", "256", "512", "1K", "4K"}
    (slow,) = [
        p
        for p in points(kept, "alignment")
        if p.place == "rep_movsl, misaligned" and p.series != NOW
    ]
    assert slow.speed == 3000 / 7000
    network = {(p.series, p.place): p.speed for p in points(kept, "network")}
    assert network["Pentium III 996 MHz, 2002", "512"] == 842 / 741.84
    assert {place for series, place in network if series == f"{NOW}, copies and sums"} == {
        *("512", "1K", "2K", "4K", "8K", "16K", "32K", "64K"),
    }
    stripes = {(p.series, p.place): p.speed for p in points(kept, "stripes")}
    assert stripes["CPU not told, 1996", "9 disks"] == 24 / 21
    assert stripes[NOW, "files, cached, mapped once"] < 1 and len(stripes) >= 4
    assert points(kept, "mixes") == []


def test_a_run_without_the_counterpart_gets_no_picture(kept):
    from wherry.then.points import points

    bare = kept | {"cells": [c for c in kept["cells"] if c["routine"] == "libc"]}
    assert all(points(bare, name) == [] for name in then.paired())


def test_the_page_of_a_run_shows_then_beside_what_has_it(kept):
    for name in (*then.paired(), "mixes", "unheard"):
        shown = [block.title for block in then_and_now(kept, name)]
        assert bool(shown) == then.has(name)
        assert shown == [sheet.block(100_000).title for sheet in then.sheets(kept, name)]


@pytest.mark.parametrize("names", [("libc",), ("rep_movsl", "x87_fild64"), ("int4x8",), ()])
def test_a_run_of_a_few_routines_is_shown_as_far_as_it_goes(kept, names):
    few = kept | {"cells": [c for c in kept["cells"] if c["routine"] in names]}
    there = {cell["row"] for cell in few["cells"]}
    few["rows"] = [row for row in kept["rows"] if row["row"] in there]
    for experiment in then.paired():
        for sheet in then.sheets(few, experiment):
            assert sheet.markdown() and sheet.block(96)
