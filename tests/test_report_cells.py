"""The report of `bench cells`: whatever varies is drawn, in words that a person can read; and how it was measured."""

from __future__ import annotations

import pytest
import report_runs as runs
from wherry import dimensions, runfile, sentences, significance, tables
from wherry.experiments import alignment
from wherry.formats import places, shown
from wherry.report import page, picture, pictures, regions, still, words

DELTAS = [{}, *({"delta": n} for n in range(0, 4096, 512))]
# What varies, and the pictures that show it: kind, axis, panels.
CASES = {
    "delta, and any": (
        [own | {"size": 4096, "cpu": cpu} for own in DELTAS for cpu in (0, 1)],
        [("curves", "delta", 2), ("bars", "", 1)],
    ),
    "overlap, and apart": (
        [
            {"op": "move", "size": 4096} | own
            for own in ({}, *({"overlap": n} for n in (-64, 1, 512)))
        ],
        [("curves", "overlap", 1), ("bars", "", 1)],
    ),
    "table of a mix": (
        [{"mix": m, "table": 4**n} for m in ("uniform:0-64", "log:1-4096") for n in range(3, 9)],
        [("curves", "table", 2)],
    ),
    "threads": ([{"size": 4096, "threads": n} for n in (1, 2, 4)], [("curves", "threads", 1)]),
    "huge pages": (
        [
            {"size": 64 << n, "huge": h} | ({"huge_obtained": n > 1} if h else {})
            for n in range(4)
            for h in (False, True)
        ],
        [("curves", "size", 2)],
    ),
    "mode": (
        [{"size": 64 << n, "mode": m} for n in range(4) for m in ("throughput", "latency")],
        [("curves", "size", 1), ("curves", "size", 1)],
    ),
    "code": (
        [{"size": 64 << n, "code": c} for n in range(4) for c in ("warm", "cold")],
        [("curves", "size", 2)],
    ),
    "both offsets, by the same": (
        [{"size": 64 << n, "src_off": o, "dst_off": o} for o in (0, 1, 4, 20) for n in range(4)],
        [("curves", "size", 1)] * 4,
    ),
    "both offsets, a few": (
        [
            {"size": 64 << n, "src_off": o, "dst_off": to}
            for o, to in ((0, 1), (1, 0), (4, 20), (20, 4))
            for n in range(2)
        ],
        [("heat", "", 1)] * 4,
    ),
    "ops": (
        [{"op": op, "size": 64, "threads": n} for op in ("copy", "move", "set") for n in (1, 2)],
        [("bars", "", 1)] * 3,
    ),
}


def made(rows: list[dict], names=("libc", "wherry")) -> dict:
    run = runs.empty()
    runs.add(run, "cells", rows, names)
    return run


@pytest.mark.parametrize("case", CASES)
def test_whatever_varies_is_drawn(case):
    rows, wanted = CASES[case]
    run = made(rows)
    found = pictures.of(run, "cells")
    assert [
        (p.key.split()[0], p.key.split()[1] if p.key[0] == "c" else "", p.layout.panels)
        for p in found
    ] == wanted
    # Every cell is a point of some picture, once.
    assert sum(p.points for p in found) == len(run["cells"])
    for own in found:
        for words_ in (own.title, *own.columns.get("panel", ()), *own.columns.get("row", ())):
            assert "huge_obtained" not in words_ and "1 threads" not in words_ and "?" not in words_


def test_calls_that_wait_for_each_other_have_no_rate():
    throughput, latency = pictures.of(made(CASES["mode"][0]), "cells")
    assert [v.name for v in throughput.views] == [picture.TIME, picture.RATE, picture.RATIO]
    assert [v.name for v in latency.views] == [picture.TIME, picture.RATIO]
    (bars,) = pictures.of(made([{"size": n, "mode": "latency"} for n in (64, 65)]), "cells")
    assert [v.name for v in bars.views] == [picture.TIME, picture.RATIO]


@pytest.mark.parametrize(
    ("op", "said"),
    [("copy", "L1 → L2"), ("zero", "L2"), ("iszero", "L2"), ("pagezero", "L2"), ("csum", "L1")],
)
def test_a_side_that_an_op_does_not_have_is_not_told(op, said):
    row = {"op": op, "size": 4096, "src_state": "L1", "dst_state": "L2"}
    assert dimensions.states(row) == said
    assert said.replace("→", "to") in places.place(row)


def test_labels_say_what_a_row_lacks():
    rows = made(CASES["overlap, and apart"][0])["rows"]
    differ = dimensions.varying(rows)
    assert [dimensions.label(row, differ) for row in rows][:2] == ["apart", "destination -64 bytes"]
    rows = made(CASES["huge pages"][0])["rows"]
    assert dimensions.label(rows[1], dimensions.varying(rows)) == "64 B, huge pages"


def test_a_few_rows_in_one_order_are_listed_and_others_counted():
    line = made([{"size": 64 << n} for n in range(5)])
    for row in line["rows"]:
        row |= {"fastest": "wherry", "tied": []}
    assert words.summary(line, "cells")[0].startswith("wherry was fastest from 64 B to 1 KiB")
    plane = made([{"size": 64 << n, "huge": h} for n in range(5) for h in (False, True)])
    for row in plane["rows"][1:]:
        row |= {"fastest": "wherry", "tied": []}
    said = words.summary(plane, "cells")[0]
    assert "wherry was fastest in 9 of 10 rows, at most 10 % faster than the next, at" in said
    assert "libc was fastest at 64 B, no huge pages (10 % faster than the next)" in said


def test_the_page_says_how_it_was_measured():
    run = made([{"size": 64, "cpu": 0}, {"size": 64, "cpu": 1}])
    own = run["experiments"][0]
    own |= {
        "cpus": [0, 1],
        "correction": {"comparisons": 8, "method": "Benjamini-Hochberg", "level": 0.05},
        "voided": {"contended": 3, "steal": 2},
        "tried": 40,
        "pace": {"core": {"worst": 1.25, "above": 1.03, "share_above": 0.5}},
        "counters": {"set": "hardware", "events": [], "reason": "cycles: not offered"},
    }
    said = words.method(run, "cells")
    for part in (
        "verdicts corrected for 8 comparisons (Benjamini-Hochberg)",
        "5 of 40 rounds thrown away: 3 beside a slow clock or a neighbour, 2 robbed by the hypervisor",
        "fixed work took up to 1.25 times its best, and more than 1.03 times beside 50 % of the rounds",
        "no hardware counters here: cycles: not offered",
    ):
        assert part in said, part
    text = page.page([page.Run(run, "a.json")])
    assert text.count("robbed by the hypervisor") == 2  # at the experiment, and under Method, uncut
    assert text.count("not offered") == 2
    assert "CPUs 0, 1, each row to one of them" in text
    own |= {"voided": {"steal": 1}, "tried": None}
    assert "1 round thrown away: 1 robbed by the hypervisor" in words.method(run, "cells")
    run["cells"][0]["disturbed"] = True
    said = words.method(run, "cells")
    assert "1 round disturbed: 1 robbed by the hypervisor; thrown away where" in said
    assert "for want of them used in 1 cell" in said


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({}, ""),
        (
            {"thinned": {"planned": 19, "measured": 10, "quick": False}},
            "10 of 19 rows, for the time",
        ),
        ({"thinned": {"planned": 9, "measured": 9, "quick": True}}, "there was, the short form"),
        ({"cut_short": True}, "the time was up before all processes had ended"),
    ],
)
def test_what_a_budget_left_out_is_told_on_the_page_too(told, said):
    run = made([{"size": 64}])
    own = words.entry(run, run["experiments"][0]["name"])
    own |= told
    assert said in words.method(run, own["name"])
    assert bool(told) == ("the time" in words.method(run, own["name"]))


def test_a_page_of_another_tools_figures_claims_nothing_of_how_they_were_made():
    source = {"tool": "google-benchmark", "file": "a.json", "unit": "ns", "told": {}, "notes": []}
    ours, theirs = made([{"size": 64}]), made([{"size": 64}]) | {"source": source}
    claims = ("Every routine was verified", "nothing was skipped, wrong or crashed")
    text = page.page([page.Run(theirs, "a.json")])
    assert not any(claim in text for claim in claims) and "whether the bytes were right" in text
    text = page.page([page.Run(ours, "b.json"), page.Run(theirs, "a.json")])
    assert all(claim in text for claim in claims) and "whether the bytes were right" in text


def test_rows_without_a_verdict_say_why_and_claim_nothing():
    run = made([{"size": 64}, {"size": 1024}])
    for row in run["rows"]:
        row |= {"fastest": None, "tied": [], "lead": None, "undecided": "one sample"}
    for cell in run["cells"]:
        if cell["ratio"]:
            cell["ratio"] |= {"low": None, "high": None}
    assert runfile.fault(run) is None
    assert words.summary(run, "cells") == []
    said = words.method(run, "cells")
    assert (
        "no verdicts: one sample of a routine tells nothing of chance; give more --rounds" in said
    )
    run["rows"][0]["undecided"] = "noise"
    assert "no verdicts in 1 of 2 rows: the rounds are too far apart" in words.method(run, "cells")
    assert "no verdicts in 1 of 2 rows" in page.page([page.Run(run, "a.json")])


def test_words_leave_out_rows_without_a_verdict():
    """No stretch of sizes goes on across one, and counts say what they count."""
    won = {"fastest": "libc", "tied": [], "lead": {"median": 1.5}}
    untold = {"fastest": None, "tied": [], "lead": None, "undecided": "noise"}
    tie = {"fastest": None, "tied": ["libc", "wherry"], "lead": None}

    def said(*rows: dict) -> list[str]:
        numbered = [{"row": n} | row for n, row in enumerate(rows)]
        ns = {"libc": {"ns": {"median": 2.0}}, "wherry": {"ns": {"median": 3.0}}}
        cells, label = dict.fromkeys(range(len(rows)), ns), lambda row: str(1 << row["row"])
        return [
            sentences.leaders(numbered, label),
            sentences.leaders_or_counts(numbered, label, {"size", "op"}),
            sentences.libc_loss(numbered, cells, label, 0.0),
        ]

    across, counted, loss = said(won, won, untold, won, tie)
    assert across.startswith("libc was fastest from 1 to 2 and at 8 (")
    assert across.endswith("; one row was a tie.")
    assert counted.startswith("libc was fastest in 3 of 4 rows with a verdict, at most")
    assert loss == "libc was fastest or tied with the fastest in all 4 rows with a verdict."
    across, counted, loss = said(won, won, won, tie)
    assert across.startswith("libc was fastest from 1 to 4 (")
    assert counted.startswith("libc was fastest in 3 of 4 rows, at most")
    assert loss == "libc was fastest or tied with the fastest in all 4 rows."
    across, _, loss = said(tie, untold)
    assert "in the one row with a verdict several tied" in across
    assert loss == "libc was fastest or tied with the fastest in the one row with a verdict."
    assert "2 of 3 rows with a verdict were ties" in said(won, tie, tie, untold)[0]


def test_verdicts_of_one_process_say_what_they_do_not_know():
    own = {"comparisons": 1, "method": "Benjamini-Hochberg", "level": 0.05}
    assert sentences.corrected(own | {"test": significance.TEST}) == ""
    said = sentences.corrected(own | {"test": significance.TEST_OF_ONE})
    assert said == "one process: what processes differ by is in no verdict"
    many = own | {"test": significance.TEST_OF_ONE, "comparisons": 8}
    assert sentences.corrected(many).endswith(f"(Benjamini-Hochberg); {said}")
    # ab: each run is a process of its own.
    assert sentences.corrected(own | {"test": significance.TEST_OF_ROUNDS}) == ""


def test_heads_of_tables_are_words_again():
    for head, text in (
        ("Pentium 90\nlibc", "Pentium 90 libc"),
        ("rep_\nmovsb", "rep_movsb"),
        ("now\nrep_\nmovsl", "now rep_movsl"),
        ("x87/\nlibc", "x87/libc"),
        ("x" * tables.LONGEST_PART + "\nyz", "x" * tables.LONGEST_PART + "yz"),
        (tables.stacked("avx512_ladder@glibc-2.43"), "avx512_ladder@glibc-2.43"),
        ("time", "time"),
    ):
        assert tables.unstacked(head) == text


@pytest.mark.parametrize(
    ("low", "high"), [(8.5, 9.4), (100, 101), (0.999, 1.0012), (3, 3), (1e-5, 1.2e-5)]
)
def test_an_axis_on_which_little_differs_has_marks(low, high):
    from wherry.report.curves import decades

    marks = decades(low, high)
    assert 4 <= sum(low * 0.9 <= m <= high * 1.1 for m in marks) <= 25
    assert marks == sorted(set(marks))


def test_panels_of_maps_end_between_pixels_of_the_screen():
    run = runs.empty()
    runs.add(run, "alignment", runs.maps(12), ("libc", "wherry"))
    drawn = pictures.of(run, "alignment")
    assert drawn
    for own in drawn:
        for width in (360, 700, 1180):
            spec = picture.sized(own.views[0].spec, own.layout, width)
            assert (
                spec["spec"]["width"] % 12 == 0 and spec["spec"]["height"] == spec["spec"]["width"]
            )


def test_a_mix_that_takes_long_does_not_hide_the_others(tmp_path):
    run = made([{"mix": mix} for mix in ("uniform:0-16", "@zstd.copy")])
    for cell in run["cells"]:
        if cell["row"] == 1:
            cell["ns"] = {key: value * 1000 for key, value in cell["ns"].items()}
    (found,) = pictures.of(run, "cells")
    view = next(view for view in found.views if view.name == picture.TIME)
    interval, point = view.spec["layer"]
    scale = point["encoding"]["x"]["scale"]
    low, high = scale["domain"]
    assert scale["type"] == "log"
    # The length of a bar would say nothing there.
    assert (interval["mark"]["type"], point["mark"]["type"]) == ("rule", "point")
    medians = [cell["ns"]["median"] for cell in run["cells"]]
    assert low < min(medians) and max(medians) < high
    assert "logarithmic" in found.how
    assert "role-legend-symbol" in still.draw(run, "cells", tmp_path / "a.svg").decode()
    run = made([{"mix": mix} for mix in ("uniform:0-16", "uniform:0-64")])
    (found,) = pictures.of(run, "cells")
    view = next(view for view in found.views if view.name == picture.TIME)
    assert view.spec["layer"][0]["encoding"]["x"]["scale"] == {"zero": True}


def test_a_page_of_ab_tells_its_verdict_and_its_method():
    run = runs.empty()
    run["experiments"] = [
        {
            "name": "ab",
            "processes": 8,
            "rounds": 2,
            "seconds": 1.0,
            "noise_floor": 0.07,
            "complete": True,
            "ab": {"verdict": "No difference that can be told: CPU time +0.1 %; keep libc."},
        }
    ]
    assert words.summary(run, "ab") == [run["experiments"][0]["ab"]["verdict"]]
    assert words.method(run, "ab").startswith(
        "Noise floor 7.0 % (a side against itself); medians of 8 runs in 2 rounds"
    )
    assert words.of_programs(run) and not words.of_programs(made([{"size": 64}]))
    assert dimensions.label({"op": "other", "name": "CPU time"}, {"name"}) == "CPU time"


def test_one_row_is_told_as_one():
    row = {"row": 0, "fastest": None, "tied": ["libc", "wherry"]}
    cells = {0: {n: {"ns": {"median": ns}} for n, ns in (("libc", 2.0), ("wherry", 1.0))}}
    assert sentences.leaders([row], str).endswith("here several tied for the first place.")
    assert "in each row several tied" in sentences.leaders([row, row], str)
    assert sentences.libc_loss([row], cells, str, 0.01).endswith("in the one row there is.")
    row |= {"tied": [], "unsure": ["libc", "wherry"]}
    assert sentences.leaders([row], str).endswith("noise floor: who leads is undecided.")
    assert "is undecided" in sentences.libc_loss([row], cells, str, 0.01)
    row |= {"fastest": "wherry", "unsure": []}
    said = sentences.libc_loss([row], cells, lambda row: "64 B", 0.01)
    assert said == "libc lost at 64 B: it took 2.0 times as long as wherry."


def test_undecided_rows_are_counted_apart_from_ties():
    tie = {"row": 0, "fastest": None, "tied": ["libc", "a"], "lead": None}
    unsure = tie | {"row": 1, "tied": [], "unsure": ["libc", "a"]}
    led = tie | {"row": 2, "fastest": "a", "tied": [], "lead": {"median": 1.5}}
    times = {"libc": {"ns": {"median": 2.0}}, "a": {"ns": {"median": 1.0}}}
    rows, cells = [tie, unsure, led], dict.fromkeys(range(3), times)
    said = sentences.leaders(rows, lambda row: f"{row['row']}")
    assert said.endswith("; one row was a tie; one row was undecided.")
    assert said.startswith("a was fastest at 2")
    said = sentences.leaders_or_counts(rows * 20, lambda row: f"{row['row']}", {"size"})
    assert said.endswith("; 20 of 60 rows were ties; 20 of 60 rows were undecided.")
    said = sentences.libc_loss(rows, cells, str, 0.01)
    assert said.endswith("fastest or tied in 1 of 3 rows, and 1 is undecided.")
    said = sentences.libc_loss(rows[:2], cells, str, 0.01)
    assert said.endswith("in 1 of 2 rows, and surely lost in none; 1 is undecided.")
    # With the least time of a row that is undecided libc is no more its fastest than anybody else.
    for cell, ns in zip(times.values(), (1.0, 2.0), strict=True):
        cell["ns"]["median"] = ns
    assert sentences.libc_loss(rows[:2], cells, str, 0.01) == said


def test_who_ran_alone_has_no_lead():
    alone = {"fastest": "wherry", "tied": [], "lead": None}
    assert sentences.leaders([alone], lambda _: "64 B") == "wherry was fastest at 64 B."


@pytest.mark.parametrize("width", [80, 96, 160])
def test_the_key_of_a_heat_map_keeps_to_the_width(width):
    scale = [tables.Span("  time over the best of the state: ")]
    for i in range(9):
        scale += [tables.Span("##", f"heat{i}"), tables.Span(f" <={1 + i / 10:g} ")]
    lines = ["".join(span.text for span in line) for line in alignment._wrapped(scale, width)]
    assert max(map(len, lines)) <= width
    assert "".join(lines).count("##") == 9 and all("<=" in line for line in lines)


def test_a_run_of_no_experiment_of_ours_is_shown_cell_by_cell():
    run = made([{"op": "other", "name": "CPU time"}])
    for part in (*run["rows"], *run["cells"]):
        part["experiment"] = "ab"
    (block,) = shown.blocks(run, "ab", 80)
    assert block.title == "ab, ns per run, medians"
    assert "CPU time" in tables.plain(block.lines)


def test_new_pages_and_any_are_two_panels_whatever_the_size():
    rows = [
        {"op": "copy", "size": size, "dst_state": "DRAM"} | ({"content": "new"} if new else {})
        for new in (True, False)
        for size in (1 << 18, 1 << 20)
    ]
    differ = dimensions.varying(rows) - {"size"}
    found = ["new pages", "new pages", "any pages", "any pages"]
    assert [dimensions.label(row, differ) for row in rows] == found


def test_what_does_nothing_has_no_bar():
    rows = [{"op": "switch", "size": 1448, "via": via} for via in ("alone", "pipe")]
    run = made(rows, ("libc", "no_copy"))
    alone, switched = pictures.of(run, "cells")
    assert alone.series == ["libc"] and "no_copy, which does nothing," in alone.how
    assert switched.series == ["libc", "no_copy"] and "does nothing" not in switched.how


@pytest.mark.parametrize(
    ("via", "unit", "kind", "rate"),
    [("loopback", "10^6 bit/s", "bitrate", 8000 * 4096), ("rings", "Mpps", "packetrate", 1000)],
)
def test_rates_of_a_network_have_the_units_of_its_tables(via, unit, kind, rate):
    for sizes in ((1024, 2048, 4096), (4096,)):  # curves, and bars
        rows = [{"op": "network", "size": size, "via": via} for size in sizes]
        run = made(rows, ("aligned",))
        (found,) = pictures.of(run, "cells")
        view = next(view for view in found.views if view.name == unit)
        assert unit in str(view.spec) and picture.RATE not in str(found.views)
        assert kind in {form for _, _, form in found.tips}
        ns = run["cells"][-1]["ns"]["median"]
        assert found.columns["rate"][-1] == pytest.approx(rate / ns)


def test_libc_loses_only_where_it_is_told_to_take_longer():
    score = runs.score()
    run = {"experiments": [{"name": "scoreboard", "score": score}]}
    said = words.summary(run, "scoreboard")
    assert said[0].startswith("memcpy: over 5 regions") and "loses most in region-0" in said[1]
    (own,) = score["ops"]
    own["regions"], own["total"]["regions"] = own["regions"][:1], 1
    for told in ((1.02, 0.92, 1.14), (0.98, 0.92, 1.14), (0.99, 0.98, 0.995), (0.5, None, None)):
        own["regions"][0]["to_libc"] = dict(zip(("median", "low", "high"), told, strict=True))
        said = words.summary(run, "scoreboard")
        assert len(said) == 1 and said[0].startswith("memcpy: over 1 region Wherry")


def test_samples_that_tell_of_no_region_are_not_counted_as_none_ahead():
    """Also where a region has no peer to be ahead of."""
    score = runs.score()
    for region in score["ops"][0]["regions"]:
        region["verdict"] = None
    score["ops"][0]["regions"][0]["to_best"] = None
    said = words.summary({"experiments": [{"name": "scoreboard", "score": score}]}, "scoreboard")
    assert said[0].endswith("time. The samples do not tell in which it is ahead.")


def test_what_is_undecided_is_not_told_as_the_furthest_behind():
    score = runs.score()
    (own,) = score["ops"]
    own["regions"][3]["verdict"], own["regions"][4]["verdict"] = "undecided", "behind"
    said = words.summary({"experiments": [{"name": "scoreboard", "score": score}]}, "scoreboard")
    assert said[0].endswith(
        "It is ahead in 2, ties in 1 and is behind in 1; 1 is undecided; furthest behind in region-4, 1.10 (1.00-1.20) "
        "of a_peer's time."
    )


def test_a_tier_that_was_held_to_is_told_with_its_figures():
    for isa, whose in ((None, "Wherry takes"), ("avx512_ladder", "Wherry, held to its avx512_lad")):
        score = {**runs.score(), "isa": isa}
        run = {"experiments": [{"name": "scoreboard", "score": score}]}
        assert words.summary(run, "scoreboard")[0].startswith(f"memcpy: over 5 regions {whose}")
        title = regions.pictures(score)[0].title
        assert title.startswith("memcpy: Wherry's time") and ("avx512_ladder" in title) == bool(isa)


@pytest.mark.parametrize(
    ("best", "verdict", "p", "loses"),
    [
        ("libc", "tie", 0.001, False),
        ("libc", "ahead", 0.9, True),
        ("a_peer", "tie", 0.2, False),
        ("a_peer", "behind", 0.001, True),
    ],
)
def test_libc_loses_in_no_region_that_the_table_calls_a_tie(best, verdict, p, loses):
    score = runs.score(("wherry", "libc", "a_peer"))
    (own,) = score["ops"]
    own["regions"], own["total"]["regions"] = own["regions"][:1], 1
    own["regions"][0] |= {"best": best, "verdict": verdict}
    own["regions"][0]["to_libc"] = {"median": 0.58, "low": 0.41, "high": 0.99, "p_corrected": p}
    said = words.summary({"experiments": [{"name": "scoreboard", "score": score}]}, "scoreboard")
    assert any("loses most" in text for text in said) is loses
