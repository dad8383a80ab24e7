"""Calls that are timed one by one: what the runner tells of them, and `wherry bench percentiles`."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

import pytest
from conftest import run
from measured import measure, of
from wherry import runfile, tables
from wherry.estimate import expected_seconds
from wherry.experiments import Request
from wherry.experiments.percentiles import EXPERIMENT, FLOOR, QUICK, SIZES, TOLD
from wherry.mixes import from_range
from wherry.report import pictures
from wherry.row import PERCENTILES, RATELESS

FAST = ("--processes", "1", "--rounds", "2")
ROW = "id=1 op=copy size=64 rounds=3"

# A copy that waits at each so many-th call.
PEER = """
#include <stddef.h>
#include <x86intrin.h>
void *memcpy(void *d, const void *s, size_t n)
{
    static unsigned long calls;
    unsigned char *to = d;
    const unsigned char *from = s;
    for (size_t i = 0; i < n; i++)
        to[i] = from[i];
    if (++calls % EACH == 0)
        for (unsigned long long begin = __rdtsc(); __rdtsc() - begin < 1000000;)
            ;
    return d;
}
"""


def peer(directory: Path, each: int) -> str:
    (directory / "peer.c").write_text(PEER)
    made = directory / f"each{each}.so"
    flags = (f"-DEACH={each}", "-O1", "-fno-builtin", "-shared", "-fPIC")
    assert run("cc", *flags, "-o", made, directory / "peer.c").returncode == 0
    return f"each{each}={made}"


def figures(events: list[dict]) -> dict[tuple[int, str], float]:
    return {(e["id"], e["routine"]): median(e["ns"]) for e in of(events, "cell") if not e["aa"]}


# ---- the native part -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "op=copy size=64",
        "op=move size=5000 overlap=-9 src_state=L2 dst_state=L2",
        "op=set size=0",
        "op=zero size=4096 dst_state=DRAM dst_off=64",
        "op=copy mix=uniform:0-256 src_state=DRAM",
        "op=copy size=1448 src_off=5 delta=9 huge=1 src_state=L3 dst_state=L3",
    ],
)
@pytest.mark.parametrize("mode", PERCENTILES[:4])
def test_events_of_a_row(wherry_run, words: str, mode: str):
    row = f"id=1 {words} routines=libc,wherry,call_floor mode={mode} rounds=2"
    events, said = measure(wherry_run, [row])
    assert said == "" and not of(events, "skip")
    cells = of(events, "cell")
    assert [cell["routine"] for cell in cells] == ["libc", "wherry", "call_floor", "libc"]
    for cell in cells:
        assert min(cell["ns"]) > 0 and cell["parts"]["step_ns"] > 0
        # Enough that the percentile is not one call's.
        assert cell["calls"] >= max(100, 9 / (1 - float(mode[1:]) / 100))


def test_what_waits_now_and_then_shows_at_its_percentile_and_not_before(wherry_run, tmp_path: Path):
    """Nine or ten in a thousand take a million ticks of the counter, hundreds of microseconds: no noise is like that at
    the median, and at p90 none of so many calls."""
    rows = [
        f"{ROW} routines=each20 mode={mode} calls=10000".replace("id=1", f"id={i}")
        for i, mode in enumerate(("p50", "p90", "p99"))
    ]
    events, _ = measure(wherry_run, rows, "--peer", peer(tmp_path, 20))
    found = figures(events)
    half, most, tail = (found[i, "each20"] for i in range(3))
    assert half < 50_000 and most < 50_000 and tail > 100_000


def test_a_coarse_counter_tells_fine_differences(wherry_run):
    """A chain of additions in the routine: the counter of some processors goes by steps of 10 ns, which are a dozen
    links, and figures have to differ by what the links between them take, at the median and beyond."""
    lengths = (100, 104, 108, 150, 200)
    names = ",".join(f"known_chain+{links}" for links in lengths)
    rows = [
        f"id={i} op=copy size=64 routines={names} mode={mode} rounds=9"
        for i, mode in enumerate(("p50", "p90"))
    ]
    for _ in range(8):
        events, _ = measure(wherry_run, rows)
        found, good = figures(events), True
        for i, end in enumerate(of(events, "rowend")):
            link = median(end["link_ns"])
            took = [found[i, f"known_chain+{links}"] for links in lengths]
            apart = [(own - took[0]) / link for own in took]
            good = good and all(
                abs(links - lengths[0] - own) < 4 for links, own in zip(lengths, apart, strict=True)
            )
        if good:
            return
    pytest.fail(str(figures(events)))


def test_two_threads(wherry_run):
    events, _ = measure(wherry_run, [f"{ROW} routines=libc,wherry mode=p99 threads=1"])
    assert len(of(events, "cell")) == 3
    if of(events, "start")[0]["cpus"] > 1:
        events, _ = measure(wherry_run, [f"{ROW} routines=libc,wherry mode=p99 threads=2"])
        assert all(0 < cell["share"] <= 1 for cell in of(events, "cell"))


def test_more_than_a_sample_may_take_is_skipped(wherry_run, tmp_path: Path):
    row = f"{ROW} routines=libc,each1 mode=p99.99"
    events, _ = measure(wherry_run, [row], "--peer", peer(tmp_path, 1))
    (skip,) = of(events, "skip")
    # It is left out beside libc for being so slow; alone it is the row that cannot be had.
    assert skip["routine"] == "each1"
    events, _ = measure(
        wherry_run, [row.replace("libc,", "")], "--peer", f"each1={tmp_path / 'each1.so'}"
    )
    (skip,) = of(events, "skip")
    assert skip["routine"] is None and "100000 calls of each1" in skip["reason"]
    assert "or a lower percentile" in skip["reason"] and not of(events, "cell")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("mode=p95", "mode=p95: give throughput, latency, fresh, p50, p90, p99, p99.9 or p99.99"),
        ("mode=p50 walk=stream", "take walk=pool"),
        ("mode=p50 content=new", "content cannot be had together"),
        ("mode=p50 code=cold", "code=cold takes walk=pool and mode=throughput"),
        ("mode=p99.9 calls=9999", "calls=9999: give 0, or for this percentile 10000 to 4194304"),
        ("mode=p50 calls=5000000", "for this percentile 100 to 4194304"),
    ],
)
def test_bad_rows(wherry_run, words: str, said: str):
    row = f"{ROW} routines=libc {words}"
    _, told = measure(wherry_run, [row], status=2)
    assert said in told and told.count("\n") == 1


def test_a_sum_has_no_percentiles(wherry_run):
    row = "id=1 op=csum size=64 routines=wherry mode=p50"
    _, told = measure(wherry_run, [row], status=2)
    assert "op=copy, move, set or zero" in told


# ---- what is asked for -----------------------------------------------------------------------------------------------


def test_rows():
    rows = EXPERIMENT.rows(Request())
    assert {row.size for row in rows if not row.mix} == set(SIZES)
    assert {row.mode for row in rows} == set(TOLD) and {row.op for row in rows} == {"copy"}
    assert {(row.src_state, row.dst_state) for row in rows} == {("L1", "L1"), ("DRAM", "DRAM")}
    assert all(row.routines[0] == "libc" and row.routines[-1] == FLOOR for row in rows)
    assert len(rows) == len(TOLD) * (len(SIZES) + 1) * 2
    assert {row.mode for row in EXPERIMENT.rows(Request(quick=True))} == set(QUICK)
    own = EXPERIMENT.rows(
        Request(sizes=(100,), ops=("set", "move"), states=(("L2", "L3"),), quick=True)
    )
    assert {(row.op, row.src_state) for row in own} == {("set", "L3"), ("move", "L2")}
    mixed = EXPERIMENT.rows(Request(mixes=(from_range("log:1-64"),)))
    assert {row.mix for row in mixed} == {"log:1-64"}
    assert len(EXPERIMENT.rows(Request(sizes=(9,), mixes=(from_range("log:1-64"),)))) == 16
    low, high = ([row for row in rows if row.mode == mode] for mode in ("p50", "p99.9"))
    assert expected_seconds(high, 1) > expected_seconds(low, 1)


# ---- what it says ----------------------------------------------------------------------------------------------------


def made(times: dict[tuple[int, str], dict[str, float]], step: float) -> dict:
    rows, own = [], []
    for number, ((size, mode), took) in enumerate(times.items()):
        row = {"experiment": "percentiles", "row": number, "op": "copy", "size": size}
        row |= {"mode": mode, "src_state": "L1", "dst_state": "L1", "fastest": None, "tied": []}
        row |= {"lead": None, "src_off": 0, "dst_off": 0}
        rows.append(row)
        for name, ns in took.items():
            cell = row | {
                "routine": name,
                "aa": False,
                "ns": {"median": ns, "q25": ns, "q75": ns},
                "ratio": None,
            }
            own.append(cell | {"bytes": size, "rounds": 1, "parts": {"step_ns": step}})
    return {"rows": rows, "cells": own, "noise": {"floor": 0.01}}


def test_sentences():
    times = {
        (64, "p50"): {"libc": 21.0, "wherry": 20.0, FLOOR: 20.2},
        (64, "p99.9"): {"libc": 42.0, "wherry": 22.0, FLOOR: 20.6},
        (4096, "p50"): {"libc": 50.0, "wherry": 40.0, FLOOR: 20.2},
        (4096, "p99.9"): {"libc": 55.0, "wherry": 44.0, FLOOR: 20.6},
    }
    (block,) = EXPERIMENT.blocks(made(times, 10.0), 100)
    assert block.title == "percentiles: memcpy, ns of calls that are timed one by one, in L1"
    assert block.sentences[-1] == (
        "p99.9 over p50: 1.1 (wherry) to 2.0 (libc) times at 64 and 1.1 times at 4K."
    )
    (note,) = block.notes
    assert "timing it takes 20 ns" in note and "by steps of 10 ns" in note
    text = tables.plain(block.lines)
    assert text.count("4K") == 1 and "p99.9" in text and "44.0" in text
    (block,) = EXPERIMENT.blocks(made(times, 0.4), 100)
    assert "steps" not in block.notes[0]
    (block,) = EXPERIMENT.blocks(made({(64, "p50"): {"libc": 21.0}}, 10.0), 100)
    assert not any("over" in said for said in block.sentences) and "timing it" not in block.notes[0]
    assert EXPERIMENT.blocks(made({}, 10.0), 100) == []


# ---- as a user runs it -----------------------------------------------------------------------------------------------


def test_as_a_user_runs_it(wherry, tmp_path: Path):
    words = ("--size", "8,64,1K", "--state", "L1,L2", "--save", "r.json", *FAST)
    done = wherry("bench", "percentiles", *words, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    for text in ("noise floor", "calls that are timed one by one, in L2", "p99.9 over p50:"):
        assert text in said, done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
    found = runfile.read(tmp_path / "r.json")
    assert {row["mode"] for row in found["rows"]} == set(TOLD) and set(TOLD) < set(RATELESS)
    assert all(cell["parts"]["step_ns"] > 0 for cell in found["cells"])
    again = wherry("bench", "--show", "r.json", cwd=tmp_path)
    assert again.returncode == 0 and "timed one by one" in again.stdout
    drawn = pictures.of(found, "percentiles")
    assert [own.title for own in drawn] == [f"By percentile: copy, in {s}" for s in ("L1", "L2")]
    picture = drawn[0]
    assert set(picture.columns["panel"]) == {"8 B", "64 B", "1 KiB"}
    assert sorted(set(picture.columns["x"])) == [2, 10, 100, 1000]
    assert {view.name for view in picture.views} == {"time per call", "time over libc's"}
    page = wherry("report", "r.json", "-o", "r.html", cwd=tmp_path)
    assert page.returncode == 0 and "p99.9" in (tmp_path / "r.html").read_text()
    same = wherry("compare", "r.json", "r.json", cwd=tmp_path)
    assert same.returncode == 0, same.stderr
    for form in ("csv", "markdown", "google-benchmark", "benchfmt"):
        told = wherry("export", "r.json", "--format", form, cwd=tmp_path)
        assert told.returncode == 0 and "p99.9" in told.stdout, told.stderr
        if form in ("google-benchmark", "benchfmt"):
            (tmp_path / form).write_text(told.stdout)
            back = wherry("import", form, "-o", f"{form}.json", cwd=tmp_path)
            assert back.returncode == 0, back.stderr
            read = json.loads((tmp_path / f"{form}.json").read_text())
            assert {row["mode"] for row in read["rows"]} == set(TOLD)


def test_curves_along_percentiles_have_mixes_beside_sizes_and_other_modes_apart():
    names = ("p50", "p90", "p99")
    found = made({(64, name): {"libc": 21.0 + i} for i, name in enumerate(names)}, 10.0)
    for row in [*found["rows"]]:
        number = len(found["rows"])
        found["rows"].append({k: v for k, v in row.items() if k != "size"})
        found["rows"][-1] |= {"row": number, "mix": "uniform:0-64", "table": 65536}
        found["cells"].append(found["cells"][row["row"]] | {"row": number})
    found["rows"].append(found["rows"][0] | {"row": number + 1, "mode": "throughput"})
    found["cells"].append(found["cells"][0] | {"row": number + 1})
    found |= {"experiments": [], "machine": {}}
    along, rest = pictures.of(found, "percentiles")
    assert along.title.startswith("By percentile: ") and along.points == 6
    assert set(along.columns["panel"]) == {"64 B", "uniform:0-64, table of 65,536"}
    assert rest.points == 1


def test_any_cell(wherry, tmp_path: Path):
    words = ("--mode", "throughput,p99.99", "--size", "64", "--save", "r.json", *FAST)
    done = wherry("bench", "cells", *words, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    (words,) = [own for line in done.stdout.splitlines() if (own := line.split())[:1] == ["p99.99"]]
    assert words[2] == "-", words  # no GB/s


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("percentiles --threads 2", "percentiles does not take --threads"),
        ("percentiles --op csum", "csum"),
        (
            "percentiles --routine csum_sse2",
            "percentiles measures copy, which csum_sse2 does not do",
        ),
        ("cells --mode p98", "p99.99"),
        ("cells --mode p50 --op csum", "--mode p50 is for copy, move, set, zero, not for csum"),
        ("cells --mode p50 --op set --content dirty", "--mode p50 and --content"),
        ("cells --mode p50 --code cold", "--code cold times each call by itself"),
    ],
)
def test_bad_options(wherry, tmp_path: Path, words: str, said: str):
    done = wherry("bench", *words.split(), "--save", "run.json", cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and not list(tmp_path.iterdir())
    assert said in done.stderr and done.stderr.count("\n") == 1
