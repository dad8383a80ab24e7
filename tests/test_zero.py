"""The experiment `zero`: its tables, what it measures for which request, and run files from before it had pages."""

import json

import pytest
from wherry import experiments, results, runfile, sentences, tables
from wherry.experiments import Request
from wherry.experiments.zero import BANDWIDTHS, CONTENTS, EXPERIMENT, LOOKS_FIRST, PAGE, SIZES

FAST = ("--processes", "1", "--rounds", "3")
HEADS = ["dirty", "dirty", "mixed", "mixed", "zero", "zero", "zero/dirty"]
CATALOGUE = [
    {"name": name, "op": "zero", "quantum": 1, "unavailable": None, "idea": "an idea"}
    for name in ("rep_stosb", "i686_pagezero", "unroll64", "sse2_zero", "sse2_zero_nt")
] + [{"name": "avx2_zero", "op": "zero", "quantum": 1, "unavailable": "needs AVX2", "idea": ""}]


pytestmark = pytest.mark.usefixtures("own_directory")


def pages(**request):
    rows = EXPERIMENT.rows(Request(catalogue=CATALOGUE, **request))
    return [(r.dst_state, r.content) for r in rows if r.op == "zero" and r.content != "any"]


def test_pages_are_measured_where_they_can_be():
    both = [(state, content) for state in ("L2", "DRAM") for content in CONTENTS]
    assert pages() == both and pages(sizes=(PAGE, 64)) == both
    assert pages(quick=True) == both[:3]
    assert pages(sizes=(1448,)) == [] and pages(states=(("L1", "L1"),)) == []
    assert pages(states=(("L1", "L1"), ("L2", "L3"), ("L3", "L3"))) == [
        ("L3", content) for content in CONTENTS
    ]


def test_routines_of_the_pages():
    row = EXPERIMENT.rows(Request(catalogue=CATALOGUE))[-1]
    assert row.size == PAGE and row.routines == (
        "libc",
        "rep_stosb",
        "i686_pagezero",
        "unroll64",
        "sse2_zero",
        "sse2_zero_nt",
        "wherry",
        *LOOKS_FIRST,
        *BANDWIDTHS,
    )
    looks = [r for r in EXPERIMENT.rows(Request(catalogue=CATALOGUE)) if r.op == "iszero"]
    assert {r.dst_state for r in looks} == {"L2", "DRAM"}
    assert all(r.routines == ("wherry", "read_bandwidth") for r in looks)
    asked = EXPERIMENT.rows(Request(catalogue=CATALOGUE, routines=("unroll64",), peers=("p",)))
    assert {row.routines for row in asked} == {("libc", "unroll64", "p", *BANDWIDTHS)}


def test_a_byte_ends_within_the_time_that_a_round_has(wherry):
    """10^8 bytes would be 10^8 calls of each routine: minutes without sign of life, and then nothing saved."""
    sizes = (1, 64, 100, *SIZES)
    calls = [EXPERIMENT.rows(Request(catalogue=CATALOGUE, sizes=(s,)))[0].calls for s in sizes]
    assert calls == [10**6, 10**6, 10**6, 24414, 12]
    result = wherry("bench", "zero", "--size", "1", *FAST)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    head = "zero: 1 byte (1 B), the same buffer each time; us for 1,000,000 calls"
    assert head in result.stdout.splitlines()


def test_a_row_says_its_content_only_when_it_has_one():
    first, *_, last = EXPERIMENT.rows(Request(catalogue=CATALOGUE))
    assert "content" not in first.line(0) and "content" not in first.dimensions()
    assert "content=zero" in last.line(0).split() and last.dimensions()["content"] == "zero"


def test_the_tables(wherry, tmp_path):
    result = wherry("bench", "zero", "--save", "run.json", *FAST)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 96
    for state in ("L2", "DRAM"):
        at = lines.index(f"page-zero: pages of 4,096 bytes in {state}, dirty and already zero")
        assert lines[at + 1].split() == ["routine", *HEADS]
        body = [line.split() for line in lines[at + 3 : at + 3 + 20]]
        names = [words[0] for words in body if len(words) == 8]
        assert {"libc", "rep_stosb", "rep_stosl", "i686_pagezero", "unroll64"} <= set(names)
        assert {"sse2_zero", "wherry", *BANDWIDTHS} <= set(names)
        assert any(name.endswith("_zero_nt") for name in names)
    for name in BANDWIDTHS:
        found = [line for line in lines if line.strip().startswith(f"{name}") and "us)" in line]
        assert len(found) == 2 and all(" B/s" in line for line in found)
    said = " ".join(lines)
    assert said.count("i686_pagezero, which scans first") == 2
    assert said.count("of the bandwidth of loads") == 2 and "Evans: less than half" in said
    run = runfile.read(tmp_path / "run.json")
    assert {row.get("content", "any") for row in run["rows"]} == {"any", *CONTENTS}
    for row in run["rows"]:
        assert not results.YARDSTICKS.keys() & {row["fastest"], *row["tied"]}
    for cell in run["cells"]:
        if cell["routine"] in results.YARDSTICKS:
            assert cell["ratio"] is None
    assert wherry("bench", "--show", "run.json", "zero").returncode == 0


def test_a_run_file_without_contents_is_shown(wherry, tmp_path):
    assert wherry("bench", "zero", "--size", "64", "--save", "run.json", *FAST).returncode == 0
    run = json.loads((tmp_path / "run.json").read_text())
    run["cells"] = [cell for cell in run["cells"] if cell["routine"] not in results.YARDSTICKS]
    assert all("content" not in row for row in run["rows"])
    (tmp_path / "old.json").write_text(json.dumps(run))
    shown = wherry("bench", "--show", "old.json")
    assert shown.returncode == 0 and "zero: 64 bytes" in shown.stdout
    assert "page-zero" not in shown.stdout and "bandwidth" not in shown.stdout
    run["rows"][0]["content"] = "grey"
    (tmp_path / "bad.json").write_text(json.dumps(run))
    refused = wherry("bench", "--show", "bad.json")
    assert refused.returncode == 2 and "grey" in refused.stderr


def cell(ns):
    return {"ns": {"median": ns}, "bytes": PAGE}


@pytest.mark.parametrize(
    ("clean", "dirty", "words"),
    [
        (50, 400, "saves 88 % of its time when there is nothing to write; it took 50 % less than"),
        (500, 400, "saves none of its time when there is nothing to write; it took 5.0 times as"),
    ],
)
def test_what_is_said_of_scanning(clean, dirty, words):
    own = {
        content: {"libc": cell(100), "i686_pagezero": cell(ns), "read_bandwidth": cell(1)}
        for content, ns in (("zero", clean), ("dirty", dirty))
    }
    said = EXPERIMENT._scanning(own)
    assert words in said and "4.0 times as long as libc on dirty ones" in said
    del own["dirty"]["i686_pagezero"]
    assert EXPERIMENT._scanning(own) == ""


def test_a_run_cut_short_after_the_dirty_pages_is_shown():
    where = {"experiment": "zero", "row": 0, "op": "zero", "size": PAGE, "walk": "pool"}
    where |= {"dst_state": "DRAM", "content": "dirty"}
    run = {
        "rows": [where | {"fastest": None, "tied": [], "lead": None}],
        "cells": [where | {"routine": "libc", "aa": False} | cell(100)],
        "noise": {"floor": None},
    }
    (block,) = experiments.load("zero").blocks(run, 80)
    assert block.sentences == [] and "100.0" in tables.plain(block.lines)


def test_many_that_tie_are_counted():
    cells = {f"r{i}": cell(5) for i in range(9)} | {"slow": cell(50)}
    row = {"fastest": None, "tied": [f"r{i}" for i in range(9)], "lead": None}
    said = experiments.load("zero")._said(row, cells, 0.01)
    assert said[0] == "9 of 10 routines, all but slow, tied for the first place."
    row["tied"] = ["r0", "r1"]
    said = experiments.load("zero")._said(row, cells, 0.01)
    assert said[0] == "r0 and r1 tied for the first place."


def test_what_takes_half_as_long_again_is_no_tie_where_chance_may_have_done_it():
    """Two processes tell little: by them alone libc neither loses nor loses nothing."""
    cells = {"wherry": cell(50), "libc": cell(75), "slow": cell(500)}
    row = {"row": 0, "fastest": None, "tied": ["wherry", "libc"], "lead": None}
    row = tables.parted(row, cells, 0.05)
    assert [tables.figure("", name, row).mark for name in cells] == ["?", "?", tables.BLANK]
    said = experiments.load("zero")._said(row, cells, 0.05)
    assert said[0] == "Which of wherry and libc is the fastest is undecided."
    assert said[1] == "libc took 50 % longer than wherry, but perhaps by chance."
    cells["near"] = cell(51)
    row = tables.parted(row | {"tied": ["wherry", "libc", "near"], "unsure": []}, cells, 0.05)
    assert [tables.figure("", name, row).mark for name in ("wherry", "near", "libc")] == list("==?")
    said = experiments.load("zero")._said(row, cells, 0.05)
    assert said[:2] == [
        "wherry and near tied for the first place.",
        "Whether libc is as fast is undecided.",
    ]


def test_yardsticks_lose_no_race():
    rows = [{"row": 0, "size": 64, "fastest": None, "tied": ["libc"]}]
    cells = {0: {"libc": cell(5), "rep_stosb": cell(6), "read_bandwidth": cell(1)}}
    assert "libc was fastest or tied" in sentences.libc_loss(rows, cells, str, 0.01)
