"""Then and now, as a user sees it: `wherry bench --then`, `wherry list history`, and the page in docs/."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, workbench
from wherry import experiments, history, runfile, tables, then
from wherry.campaign import Row
from wherry.experiments import alignment
from wherry.then import ranks, reading
from wherry.then.clock import clock_of
from wherry.then.sheet import Sheet, figures, span

PAGE = ROOT / "docs/then-and-now.md"
RUN = ROOT / "docs/then-and-now.run.json.gz"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


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


# ---- what is worked out ---------------------------------------------------------------------------------------------


def made(
    experiment: str, rows: list[tuple[dict, dict[str, float]]], ghz: float | None = 2.0
) -> dict:
    """A run with these rows and nanoseconds, and paired ratios that are exact."""
    run = {"rows": [], "cells": [], "machine": {"cpu": {"mhz": 1000.0}}, "runner": {}}
    if ghz:
        run["runner"]["ghz"] = ghz
    run["experiments"] = [{"name": experiment, "noise_floor": 0.01}]
    for number, (own, times) in enumerate(rows):
        row = Row(experiment, own.pop("op", "copy"), tuple(times), **own)
        where = {"experiment": experiment, "row": number} | row.dimensions()
        run["rows"].append(where)
        for name, ns in times.items():
            ratio = None
            if name != "libc" and "libc" in times:
                middle = ns / times["libc"]
                ratio = {"to": "libc", "median": middle, "low": middle, "high": middle}
            own_cell = {"routine": name, "aa": False, "bytes": row.size, "ns": {"median": ns}}
            run["cells"].append(where | own_cell | {"ratio": ratio})
    return run


def sheets_of(run: dict, name: str) -> tuple[list[Sheet], str]:
    found = then.sheets(run, name)
    return found, " ".join(text for sheet in found for text in sheet.said)


def cell(sheet: Sheet, row: int, head: str, unit: str | None = None) -> str:
    heads = [re.sub(r"\s+", " ", c.head.replace("_\n", "_")) for c in sheet.columns]
    at = [i for i, own in enumerate(heads) if own == head and unit in (None, sheet.columns[i].unit)]
    assert len(at) == 1, (head, heads)
    return sheet.rows[row][at[0]]


def test_sizes_worked_out():
    stream = {"walk": "stream"}
    run = made(
        "sizes",
        [
            ({"size": 64, **stream}, {"libc": 10.0, "rep_movsl": 20.0, "x87_fild64": 5.0}),
            ({"size": 4096, **stream}, {"libc": 100.0, "rep_movsl": 50.0, "x87_fild64": 400.0}),
        ],
    )
    (absolute, speeds, cycles), words = sheets_of(run, "sizes")
    first = next(i for i, row in enumerate(absolute.rows) if row[0] == "64")
    assert cell(absolute, first, "Pentium 90 libc") == "20.3"
    assert cell(absolute, first, "now libc") == f"{64 / 10e-9 / (1 << 20):.0f}"
    assert cell(speeds, first, "now x87_fild64 /libc") == "2.00"
    assert cell(speeds, first, "now x87/ rep_movsl") == "4.00"
    assert cell(speeds, first, "Pentium 133 x87/libc") == "0.500"
    # 64 bytes in 10 ns of 2 GHz are 20 cycles; 20.345052 MB/s at 90 MHz.
    assert cell(cycles, first, "now libc") == "3.20"
    assert cell(cycles, first, "Pentium 90 libc") == figures(20.345052 * (1 << 20) / 90e6)
    assert "Pentium 90, the x87 copy was ahead from 256 bytes on: by 17 % to 64 %" in words
    assert "Pentium 133, the x87 copy was ahead from 512 bytes on: by 20 % to 42 %" in words
    assert "level at 128 and 256" in words
    assert "still beats libc at 64;" in words and "runs at 0.25 to 2.0 times libc's" in words


def test_sizes_ties_are_no_victory():
    run = made("sizes", [({"size": 64, "walk": "stream"}, {"libc": 10.0, "x87_fild64": 9.95})])
    assert "beats libc at no size" in sheets_of(run, "sizes")[1]


def test_sizes_not_walked_as_he_did_stand_beside_nothing():
    run = made("sizes", [({"size": 64}, {"libc": 10.0, "x87_fild64": 9.95})])
    found, _ = sheets_of(run, "sizes")
    assert any("nothing that could stand beside" in note for note in found[0].notes)
    assert len(found) == len(then.alone("sizes"))


def test_small_worked_out():
    run = made(
        "small",
        [
            ({"size": 3}, {"libc": 2.0, "rep_movsq": 5.0}),
            ({"size": 4}, {"libc": 2.5, "rep_movsq": 9.0}),
            ({"size": 32}, {"libc": 2.0, "rep_movsq": 8.0, "int4x8": 1.0}),
            ({"size": 512}, {"libc": 10.0, "rep_movsq": 10.0, "int4x8": 40.0}),
            ({"size": 256, "src_state": "L3", "dst_state": "L3"}, {"libc": 8.0, "int4x8": 4.0}),
        ],
    )
    (absolute, comparable), words = sheets_of(run, "small")
    at = {(row[0], row[1]): i for i, row in enumerate(absolute.rows)}
    assert cell(absolute, at["L1", "32"], "then bcopy") == "12.9"
    assert cell(absolute, at["L1", "32"], "now int4x8") == "1.00"
    assert cell(comparable, at["L1", "32"], "then fast_bcopy /bcopy") == figures(12.9 / 1.8)
    assert cell(comparable, at["not in L1", "256"], "now int4x8 /libc") == "2.00"
    assert cell(comparable, at["L1", "32"], "then bcopy", "B/cycle") == figures(32 / 12.9 / 3.4)
    assert cell(comparable, at["L1", "32"], "now int4x8", "B/cycle") == "16.0"
    assert "faster at 32 only; against rep_movsq, the code of his bcopy, at 0.25 to 8.0" in words
    assert "libc +0.5 ns and rep_movsq +4.0 ns" in words


def test_alignment_worked_out():
    rows = []
    for state, factor in (("L1", 1.0), ("DRAM", 3.0)):
        # A destination alone that is no multiple of 8 is misaligned as well.
        for source, destination, slow in ((0, 0, 1.0), (8, 8, 1.0), (1, 0, 1.5), (8, 4, 1.5)):
            times = {"libc": 10.0, "rep_movsl": 20.0 * slow, "int_prefetch64_from": 45.0}
            times = {name: ns * factor for name, ns in times.items()}
            own = {"size": 1448, "src_off": source, "dst_off": destination}
            own |= {"src_state": state, "dst_state": state}
            rows.append((own, times))
    (cycles, costs), words = sheets_of(made("alignment", rows), "alignment")
    assert cycles.rows[0] == ["movsl (rep_movsl)", "yes", "3000", "0.483", "20.0", "40", "36.2"]
    assert cycles.rows[1] == ["movsl (rep_movsl)", "no", "7000", "0.207", "30.0", "60", "24.1"]
    assert cell(costs, 0, "rep_ movsl".replace(" ", "")) == "2.33"
    assert [row[0] for row in costs.rows[1:]] == ["now, both cached", "now, both cold"]
    assert cell(costs, 2, "rep_movsl") == "1.50"
    assert "43 % less than movsl" in words and "rep_movsl 1.50" in words
    assert "would do harm now: cached and misaligned it takes 1.50 times as long as movsl" in words


@pytest.mark.parametrize("ghz", [4.0, None])
def test_alignment_counts_the_same_cycles_in_its_own_table_as_beside_the_mail(ghz):
    """By the clock that was measured; what the kernel says (1 GHz here) only where nothing else is known."""
    own = {"size": 1448, "src_state": "L1", "dst_state": "L1"}
    run = made("alignment", [(own, {"libc": 10.0, "rep_movsl": 20.0})], ghz)
    grids = alignment._grids(run, "alignment", 1448)
    block = experiments.load("alignment")._cycles(run, grids, 1448, 100)
    text = tables.plain(block.lines).strip()
    cycles = 20 * (ghz or 1)
    assert f"{cycles:.0f}" in text.splitlines()[-1].split()
    assert f"{ghz or 1:.2f} GHz" in " ".join(block.notes)
    (sheet, _) = then.sheets(run, "alignment")
    assert cell(sheet, 0, "now", "cycles") == f"{cycles:.0f}"


def test_alignment_keeps_the_names_of_states():
    own = {"size": 64, "src_state": "L2", "dst_state": "DRAM"}
    run = made("alignment", [(own, {"libc": 10.0, "wherry": 20.0})]) | {"noise": {"floor": 0.01}}
    (said,) = experiments.load("alignment")._said(run, alignment._grids(run, "alignment", 64))
    assert said.startswith("L2 to DRAM: libc had the best median")


def test_usercopy_worked_out():
    rows = []
    for offset, slow in ((0, 1.0), (1, 1.25)):
        for size in (1, 64, 512, 1448, 4096, 16384):
            one = 200.0 * slow * size / 1448 * (10 if size > 8192 else 1)
            # A pipe copies twice; what /dev/zero writes cannot be told from its way through the kernel.
            times = {"pipe": 500.0 + 2 * one, "page_read": 300.0 + one}
            times["dev_zero"] = 900.0 + (size == 512) * 9 - (size == 1448) * 9
            rows.append(({"size": size, "src_off": offset, "dst_off": offset}, times))
            rows.append(
                ({"size": size, "src_off": offset, "dst_off": offset}, {"libc": 5 + one / 10})
            )
    (own, sentences), words = sheets_of(made("usercopy", rows), "usercopy")
    assert own.rows[0] == ["then, movsl", "-", "3000", "0.483", "-", "7000", "0.207", "2.33"]
    assert own.rows[1] == ["then, integer", "-", "-", "-", "-", "4000", "0.362", "-"]
    assert own.rows[2] == [
        *("now, pipe", "200.0 ±0.00", "400", "3.62", "250.0 ±0.00", "500", "2.90", "1.25")
    ]
    assert own.rows[3][0] == "now, page_read" and own.rows[3][1:] == own.rows[2][1:]
    assert own.rows[4] == ["now, dev_zero", "noise", "-", "-", "noise", "-", "-", "-"]
    assert own.rows[5][:3] == ["now, libc", "20.0 ±0.00", "40"]
    assert "2.33 times as long misaligned, and integer registers 1.33 times" in words
    assert "take 1.25 times as long misaligned" in words
    assert "takes 7.5 times fewer cycles than her 3,000" in words
    assert "In dev_zero the way through the kernel hides the copy" in words
    assert "stand in sentences" in sentences.title
    # One path alone is not called the most of several.
    of_pipe = [(own, times) for own, times in rows if "pipe" in times]
    for _, times in of_pipe:
        del times["page_read"], times["dev_zero"]
    _, words = sheets_of(made("usercopy", of_pipe), "usercopy")
    assert "only the copy of pipe is known well enough to tell: it takes 1.25 times" in words
    assert "most" not in words
    lacking = made("usercopy", [({"size": 512, "src_off": 0, "dst_off": 0}, {"pipe": 500.0})])
    assert "nothing that could stand beside" in then.sheets(lacking, "usercopy")[0].notes[0]


def zero_run(order: list[str], size: int) -> dict:
    times = {name: 100.0 * (i + 1) for i, name in enumerate(order)}
    times |= {"libc": 50.0, "read_bandwidth": 10.0, "write_bandwidth": 20.0}
    own = {"op": "zero", "size": size, "walk": "stream", "buffer": size}
    return made("zero", [(own, times)])


def test_zero_the_same_order_and_the_reverse():
    records = history.tables("zero")[0].records()
    order = [r["routine"] for r in sorted(records, key=lambda r: -r["rate"])]
    (absolute, comparable), words = sheets_of(zero_run(order, 4096), "zero")
    assert "14 routines are in much the same order as then: rank correlation 1.00" in words
    first = next(i for i, row in enumerate(absolute.rows) if row[0] == "zero0")
    assert absolute.rows[first][2:6] == ["2169427140", "46095", "rep_stosl", "40960000000"]
    assert cell(comparable, first, "then place") == cell(comparable, first, "now place") == "1"
    assert cell(comparable, first, "now /generic_bzero") == "2.00"
    assert cell(comparable, first, "now /libc") == "0.500"
    words = sheets_of(zero_run(order[::-1], 4096), "zero")[1]
    assert "the reverse of the order of then, roughly: rank correlation -1.00" in words


def test_zero_large_is_hardly_an_order():
    order = [r["routine"] for r in history.tables("zero")[1].records() if r["routine"] != "libc"]
    (_, comparable), words = sheets_of(zero_run(order, 8192000), "zero")
    assert "all but i686_pagezero lay within 1.0 % then, which is hardly an order" in words
    assert "writes 409,600,000 MB/s, 50 %." in words
    libc = next(row for row in comparable.rows if row[0] == "libc")
    assert libc[4:6] == ["-", "-"], "libc's own routine is another today and has no place"


def test_without_a_measured_clock_it_says_so():
    run = made("sizes", [({"size": 64, "walk": "stream"}, {"libc": 10.0, "x87_fild64": 9})], None)
    clock = clock_of(run)
    assert clock.ghz == 1.0 and not clock.measured and "not measured" in clock.in_words()
    run["machine"] = {"cpu": {"mhz": None}}
    (*_, cycles), _ = sheets_of(run, "sizes")
    assert "not known" in cycles.notes[0]
    assert not any(c.head.startswith("now") for c in cycles.columns)


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


def test_ranks():
    assert list(ranks.ranks([3, 1, 2, 2])) == [4, 1, 2.5, 2.5]
    rho, chance = ranks.correlation([1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 5, 6, 8, 7])
    assert rho == pytest.approx(1 - 6 * 2 / (8 * 63)) and chance < 0.01
    rho, chance = ranks.correlation([1, 2, 3, 4], [2, 1, 4, 3])
    assert rho == pytest.approx(0.6) and chance > 0.3
    assert ranks.correlation([1, 2], [1, 2]) is None
    assert ranks.correlation([1, 1, 1], [1, 2, 3]) is None


def test_beats_needs_more_than_the_noise():
    def own(median: float, high: float) -> dict:
        return {"ratio": {"to": "libc", "median": median, "low": median, "high": high}}

    assert reading.beats(own(0.9, 0.95), 0.05) is True
    assert reading.beats(own(0.97, 0.98), 0.05) is False
    assert reading.beats(own(0.9, 1.01), 0.05) is False
    assert (
        reading.beats(own(0.9, 0.95) | {"verdict": "tie"}, 0.05) is False
    )  # corrected for many comparisons
    assert reading.beats(own(0.97, 0.98) | {"verdict": "faster"}, 0.05) is True
    assert reading.beats({"ratio": None}, 0.05) is None and reading.beats(None, 0.05) is None


def test_figures():
    assert [figures(v) for v in (0.01234, 1.234, 12.34, 1234.5, None, 0.0)] == [
        "0.012",
        "1.23",
        "12.3",
        "1234",
        "-",
        "0",
    ]
    assert span([1.0, 2.0]) == "1.0 to 2.0" and span([1.0, 1.01]) == "1.0"


def test_a_sheet_in_markdown():
    columns = [tables.Column("how", left=True), tables.Column("now\nrep_\nmovsl\n/libc", "speed")]
    text = Sheet("t", columns, [["a|b", "1"]], said=["So."], notes=["But."]).markdown()
    assert text.splitlines()[2:5] == [
        "| how | now rep_movsl/libc, speed |",
        "|---|--:|",
        "| a\\|b | 1 |",
    ]
    assert "*But.*" in text and text.strip().endswith("So.")


# ---- for pictures ---------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("names", [("libc",), ("rep_movsl", "x87_fild64"), ("int4x8",), ()])
def test_a_run_of_a_few_routines_is_shown_as_far_as_it_goes(kept, names):
    few = kept | {"cells": [c for c in kept["cells"] if c["routine"] in names]}
    there = {cell["row"] for cell in few["cells"]}
    few["rows"] = [row for row in kept["rows"] if row["row"] in there]
    for experiment in then.paired():
        for sheet in then.sheets(few, experiment):
            assert sheet.markdown() and sheet.block(96)
