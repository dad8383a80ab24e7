"""Then and now of runs made by hand: what each table and sentence says is worked out here once more."""

import re

import pytest
from wherry import experiments, history, reading, tables, then
from wherry.campaign import Row
from wherry.clock import clock_of
from wherry.experiments import alignment
from wherry.then import ranks
from wherry.then.sheet import Sheet, figures, span


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
    assert "beats libc at no size beyond the noise;" in sheets_of(run, "sizes")[1]
    run = made("sizes", [({"size": 64, "walk": "stream"}, {"libc": 10.0, "x87_fild64": 20.0})])
    assert "beats libc at no size;" in sheets_of(run, "sizes")[1]


@pytest.mark.parametrize(
    ("took", "verdict", "said"),
    [
        (9.92, None, "beats libc at no size beyond the noise; it comes closest at 64, taking 0.99"),
        (5.0, "tie", "beats libc at no size beyond the noise; it comes closest at 64, taking 0.50"),
        (20.0, "slower", "beats libc at no size; it comes closest at 64, taking 2.00"),
        (5.0, "faster", "still beats libc at 64."),
    ],
)
def test_sizes_own_table_has_no_other_victories_than_the_mails(took, verdict, said):
    row = ({"size": 64, "walk": "stream"}, {"libc": 10.0, "x87_fild64": took})
    run = made("sizes", [row]) | {"noise": {"floor": 0.01}}
    run["rows"][0] |= {"fastest": None, "tied": [], "lead": None}
    run["cells"][1]["verdict"] = verdict
    (block,) = experiments.load("sizes").blocks(run, 96)
    assert said in block.sentences[-1]
    beaten = "still beats libc at 64" in block.sentences[-1]
    assert ("still beats libc at 64" in sheets_of(run, "sizes")[1]) == beaten


def test_small_tails_are_of_the_pairs_that_were_measured():
    def said(*sizes: int) -> str:
        places = [{"size": n, "src_state": "L1", "dst_state": "L1"} for n in sizes]
        return sheets_of(
            made("small", [(own, {"libc": 2.0 + own["size"]}) for own in places]), "small"
        )[1]

    assert "libc -1.0 ns (63 against 64 bytes, in L1)" in said(62, 63, 64)
    both = said(3, 4, 63, 64)
    assert "libc +0.0 ns (the mean of 4 against 3 and of 63 against 64 bytes, in L1)" in both
    assert "Now they cost" not in said(4, 64)


def test_small_ties_are_no_victory():
    row = {"size": 32, "src_state": "L1", "dst_state": "L1"}
    run = made("small", [(row, {"libc": 2.0, "int4x8": 1.99, "rep_movsq": 4.0})])
    assert "faster at no size beyond the noise; against" in sheets_of(run, "small")[1]


def test_sizes_not_walked_as_he_did_stand_beside_nothing():
    run = made("sizes", [({"size": 64}, {"libc": 10.0, "x87_fild64": 9.95})])
    found, _ = sheets_of(run, "sizes")
    assert any("nothing that could stand beside" in note for note in found[0].notes)
    assert len(found) == len(then.alone("sizes"))


def test_sizes_tells_that_a_cache_holds_today_what_was_in_memory():
    row = {"size": 64, "walk": "stream"}
    run = made("sizes", [(row, {"libc": 10.0, "x87_fild64": 40.0})])
    assert "were in memory" not in sheets_of(run, "sizes")[1]
    run["machine"]["reported"] = {"believed": {"l3": {"size": 32 << 20}}}
    said = sheets_of(run, "sizes")[1]
    assert "His buffers, 8 MiB together, were in memory; now a cache of 32 MiB holds them" in said
    # What that sentence says to ask for stands beside his figures.
    row = {"size": 64, "src_state": "DRAM", "dst_state": "DRAM"}
    run["rows"], run["cells"] = (
        made("sizes", [(row, {"libc": 90.0})])[k] for k in ("rows", "cells")
    )
    (absolute, *_), said = sheets_of(run, "sizes")
    assert "copy through memory" in absolute.title and "lie in memory, as his did" in said
    at = [line[0] for line in absolute.rows].index("64")
    assert absolute.rows[at][-1] == "678"  # 64 bytes in 90 ns, in 2^20 bytes a second


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


@pytest.mark.parametrize(("states", "taken"), [(("DRAM",), "DRAM"), (("DRAM", "L2", "L1"), "L2")])
def test_small_outside_l1_is_where_the_run_has_it(states: tuple[str, ...], taken: str):
    """He does not say which level that was; of a run of --state DRAM nothing stood beside his figures."""
    places = [{"size": 64, "src_state": state, "dst_state": state} for state in states]
    times = {"L1": 1.0, "L2": 3.0, "DRAM": 90.0}
    run = made("small", [(own, {"libc": times[own["src_state"]]}) for own in places])
    (absolute, _), _ = sheets_of(run, "small")
    at = {(row[0], row[1]): i for i, row in enumerate(absolute.rows)}
    assert float(cell(absolute, at["not in L1", "64"], "now libc")) == times[taken]
    assert absolute.notes[-1].endswith(f"Wherry takes L3, both sides. In this run it is {taken}.")
    usual = [*places, {"size": 64, "src_state": "L3", "dst_state": "L3"}]
    run = made("small", [(own, {"libc": 7.0}) for own in usual])
    assert sheets_of(run, "small")[0][0].notes[-1].endswith("Wherry takes L3, both sides.")


def test_alignment_worked_out():
    rows = []
    for state, factor in (("L1", 1.0), ("DRAM", 3.0)):
        # A destination alone that is no multiple of 8 is misaligned as well.
        for source, destination, slow in ((0, 0, 1.0), (8, 8, 1.0), (1, 0, 1.5), (8, 4, 1.5)):
            times = {"libc": 10.0, "rep_movsl": 20.0 * slow, "int_prefetch64_from": 45.0}
            times["mmx_movq"] = 60.0
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
    assert "now take 2.00 times as long as movsl there, and 1.33 times as long as integer" in words
    assert "mmx_movq" in then.widened(experiments.load("alignment")).routines


@pytest.mark.parametrize(
    ("ns", "floor", "said"),
    [
        (25.0, 0.01, "would still help: cached and misaligned it takes 0.833 times"),
        (30.2, 0.01, "would make no difference now that can be told: cached"),
        (29.8, 0.01, "would make no difference now that can be told: cached"),
        (30.2, None, "would do harm now"),
        (30.1, None, "would make no difference now"),
    ],
)
def test_alignment_claims_nothing_within_the_noise(ns, floor, said):
    own = {"size": 1448, "src_off": 1, "dst_off": 0, "src_state": "L1", "dst_state": "L1"}
    run = made("alignment", [(own, {"rep_movsl": 30.0, "int_prefetch64_from": ns})])
    for experiment in run["experiments"]:
        experiment["noise_floor"] = floor
    _, words = sheets_of(run, "alignment")
    assert said in words


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
    assert "by the line through the sizes to 8 KiB" in own.notes[-1]
    # Of two sizes there is no line; where copies in user space are noise, too, the kernel is not blamed.
    of_two = [(at, times) for at, times in rows if at["size"] in (1, 1448)]
    (own, _), words = sheets_of(made("usercopy", of_two), "usercopy")
    assert "more than one" in own.notes[-1] and "the line through" not in own.notes[-1]
    assert "± 3 times the noise floor" in own.notes[-1]
    for _, times in of_two:
        times.update(dict.fromkeys(times, 500.0))
    _, words = sheets_of(made("usercopy", of_two), "usercopy")
    assert "In pipe noise hides the copy." in words and "the way through" not in words
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


def test_zero_by_mmx_registers_has_a_sentence_and_no_place():
    """He gives no figure, so it stands in no column of his."""
    own = {"op": "zero", "size": 4096, "walk": "stream", "buffer": 4096}
    times = {"generic_bzero": 100.0, "mmx_zero": 150.0, "sse2_zero": 75.0}
    sheets, words = sheets_of(made("zero", [(own, times)]), "zero")
    assert "mmx_zero now takes 1.50 times as long as generic_bzero, and 2.00 times" in words
    assert not any("mmx_zero" in row for sheet in sheets for row in sheet.rows)


def test_zero_large_is_hardly_an_order():
    order = [r["routine"] for r in history.tables("zero")[1].records() if r["routine"] != "libc"]
    (_, comparable), words = sheets_of(zero_run(order, 8192000), "zero")
    assert "all but i686_pagezero lay within 1.0 % then, which is hardly an order" in words
    assert "writes 409,600,000 MB/s, 50 %." in words
    libc = next(row for row in comparable.rows if row[0] == "libc")
    assert libc[4:6] == ["-", "-"], "libc's own routine is another today and has no place"


def test_zero_beyond_todays_caches_stands_beside_his_large_buffer():
    """His 8,192,000 bytes were in no cache. The sentence that says so of a larger one led to a run that had nothing
    beside his figures."""
    order = [r["routine"] for r in history.tables("zero")[1].records() if r["routine"] != "libc"]
    run = zero_run(order, 64 << 20)
    run["machine"]["reported"] = {"believed": {"l3": {"size": 32 << 20}}}
    (absolute, comparable), words = sheets_of(run, "zero")
    for sheet in (absolute, comparable):
        assert sheet.notes[-1].startswith("Now: a buffer of 64 MiB, which no cache")
    first = next(i for i, row in enumerate(absolute.rows) if row[4] == order[0])
    # 64 MiB in 100 ns, and what 98,304,000 bytes take at that rate.
    assert absolute.rows[first][5:] == ["671088640000000", "0"]
    assert "At 7.81 MiB then and 64 MiB now all but" in words and "Now, over 64 MiB: reads" in words
    assert "asked for by --size" not in words
    for size, cache in ((16 << 20, 32 << 20), (64 << 20, 0)):
        run = zero_run(order, size)
        run["machine"]["reported"] = {"believed": {"l3": {"size": cache}}}
        assert "nothing that could stand beside" in sheets_of(run, "zero")[0][0].notes[0]


def test_without_a_measured_clock_it_says_so():
    run = made("sizes", [({"size": 64, "walk": "stream"}, {"libc": 10.0, "x87_fild64": 9})], None)
    clock = clock_of(run)
    assert clock.ghz == 1.0 and not clock.measured and "not measured" in clock.in_words()
    # Nor is one that no processor has, by which figures would be beyond numbers.
    for mhz in (None, 0, -3000, 1e-308, 1e300):
        run["machine"] = {"cpu": {"mhz": mhz}}
        (*_, cycles), _ = sheets_of(run, "sizes")
        assert "not known" in cycles.notes[0]
        assert not any(c.head.startswith("now") for c in cycles.columns)


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
