"""The experiment `latency`: its cycle visits every line once, what cannot be had is skipped with a reason, bad input is
refused in one line, and tables, picture and sentences say what was measured. What takes how long is no matter here."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import run
from systems import cells, system
from wherry import course, runfile, tables
from wherry.chasing import report
from wherry.chasing.found import CHAINS, HUGE, SMALL, Found, Level, levels
from wherry.errors import WherryError
from wherry.estimate import expected_seconds
from wherry.experiments import Request
from wherry.experiments.latency import EXPERIMENT, working_sets
from wherry.report import pictures
from wherry.units import GIB, KIB, MIB

FAST = ("--processes", "1", "--rounds", "2")
ROW = "id=1 op=chase routines=1_chain,12_chains rounds=2 batch_us=50"


def skipped(events: list[dict]) -> dict[int, str]:
    return {e["id"]: e["reason"] for e in events if e["event"] == "skip"}


# ---- the native part -------------------------------------------------------------------------------------------------


def test_cycles_visit_each_line_once(build_dir: Path):
    assert run(build_dir / "tests/c/cycle-test").stdout == "cycles: right\n"


@pytest.mark.parametrize("size", [1024, 4096, 49152 + 64, 1 << 20])
def test_every_number_of_chains(wherry_run: Path, size: int):
    """Each is checked after each sample to be where the cycle leads, or the row would end."""
    row = f"id=4 op=chase routines={','.join(CHAINS)} size={size} rounds=3 calls=5000\n"
    events, _ = system(wherry_run, row)
    assert events[-1] == {"event": "end", "rows": 1} and not skipped(events)
    found = cells(events)
    assert [name for _, name in found] == list(CHAINS)
    for cell in found.values():
        assert len(cell["ns"]) == 3 and min(cell["ns"]) > 0
        assert cell["bytes"] == 8 and cell["calls"] == 5000 and cell["parts"] == {"huge_share": 0}
    assert [e["routine"] for e in events if e["event"] == "cell" and e["aa"]] == ["1_chain"]
    (own,) = [e for e in events if e["event"] == "row"]
    assert own["pool_bytes_src"] >= size and not own["huge"]


def test_huge_pages_are_had_or_it_is_said(wherry_run: Path):
    events, _ = system(wherry_run, f"{ROW} size=4194304 huge=1\n")
    (own,) = [e for e in events if e["event"] == "row"]
    if skipped(events):
        assert "the kernel gives huge pages for" in skipped(events)[1] and not cells(events)
    else:
        assert own["huge"] and cells(events)[1, "1_chain"]["parts"]["huge_share"] >= 0.9


WITHOUT_HUGE = """
import ctypes, os, sys
assert ctypes.CDLL(None).prctl(41, 1, 0, 0, 0) == 0  # PR_SET_THP_DISABLE
os.execv(sys.argv[1], [sys.argv[1], "system"])
"""


def test_without_huge_pages_the_row_is_skipped(wherry_run: Path):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_HUGE, wherry_run],
        input=f"{ROW} size=4194304 huge=1\n{ROW.replace('id=1', 'id=2')} size=4194304\n",
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert skipped(events)[1].startswith("the kernel gives huge pages for 0 % of it")
    assert {row for row, _ in cells(events)} == {2}


def test_memory_that_is_not_there(wherry_run: Path):
    def little() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (256 * MIB, 256 * MIB))

    rows = f"{ROW} size={GIB}\n{ROW.replace('id=1', 'id=2')} size=4096\n"
    events, _ = system(wherry_run, rows, preexec_fn=little)
    assert "memory" in skipped(events)[1] and {row for row, _ in cells(events)} == {2}


def test_interrupted_it_ends_by_the_signal(wherry_run: Path):
    with subprocess.Popen(
        [wherry_run, "system"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as own:
        own.stdin.write(f"{ROW} size=4096\n{ROW.replace('id=1 ', 'id=2 ')} size={64 * MIB}\n")
        own.stdin.write(f"id=3 op=chase routines=1_chain rounds=1000 batch_us=100000 size={MIB}\n")
        own.stdin.close()
        said = ""
        while '"rowend","id":2' not in said:
            line = own.stdout.readline()
            assert line, said
            said += line
        own.send_signal(signal.SIGINT)
        said += own.stdout.read()
        assert own.wait(300) == -signal.SIGINT
    events = [json.loads(line) for line in said.splitlines()]
    assert not skipped(events) and {row for row, _ in cells(events)} == {1, 2}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("size=1000", "size=1000: give a number from 1024 to 8589934592"),
        ("size=8589934656", "size=8589934656: give a number from 1024"),
        ("size=1100", "size= is the working set: give a multiple of 64 bytes"),
        ("size=-64", "size=-64: give a number"),
        ("size=4K", "size=4K: give a number"),
        ("huge=2", "huge=2: give one of 0 1"),
        ("huge=yes", "huge=yes: give one of 0 1"),
        ("chains=3", "op=chase has no word 'chains'"),
        ("rounds=0", "rounds=0: give a number from 1 to 1000"),
    ],
)
def test_bad_rows(wherry_run: Path, row: str, words: str):
    _, said = system(wherry_run, f"id=1 op=chase routines=1_chain {row}\n", 2)
    assert words in said and said.startswith("wherry-run: system: row on line 1: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("name", ["3_chains", "1_chains", "libc", "16_chains"])
def test_bad_names(wherry_run: Path, name: str):
    _, said = system(wherry_run, f"id=1 op=chase routines={name}\n", 2)
    assert f"'{name}' is none of 1_chain, 2_chains, 4_chains, 8_chains, 12_chains" in said


# ---- what is asked for -----------------------------------------------------------------------------------------------


def test_rows_have_both_kinds_of_pages():
    rows = EXPERIMENT.rows(Request(sizes=(8192, 4096)))
    assert [(row.size, dict(row.words)["huge"]) for row in rows] == [
        *((4096, 0), (4096, 1), (8192, 0), (8192, 1))
    ]
    assert [row.dimensions()["huge"] for row in rows] == [False, True] * 2
    assert " huge=1 " in rows[1].line(0) and rows[1].line(0).count("huge=") == 1
    assert all(row.routines == tuple(CHAINS) and row.command == "system" for row in rows)
    assert len({course.fingerprint([row]) for row in rows}) == 4


def test_working_sets_leave_the_caches_and_memory_alone():
    whole = working_sets({"L3": 32 * MIB}, 64 * GIB, quick=False)
    assert whole[:4] == (4 * KIB, 6 * KIB, 8 * KIB, 12 * KIB) and whole[-1] == 256 * MIB
    assert working_sets({"L3": 480 * MIB}, 64 * GIB, quick=False)[-1] == GIB
    assert working_sets({"L3": 480 * MIB}, 64 * GIB, quick=True)[-1] == 256 * MIB
    assert working_sets({}, 64 * GIB, quick=True)[-1] == 256 * MIB
    for memory in (64 * MIB, 512 * MIB, 3 * GIB):
        for quick in (False, True):
            some = working_sets({"L3": 96 * MIB}, memory, quick)
            assert 8 * some[-1] <= memory and list(some) == sorted(some)
    assert working_sets({}, KIB, quick=False) == (4 * KIB,)


def test_a_large_set_is_expected_to_take_longer():
    small, large = (EXPERIMENT.rows(Request(sizes=(size,)))[:1] for size in (4096, GIB))
    assert expected_seconds(large, 1) > expected_seconds(small, 1) + 0.5


@pytest.mark.parametrize("size", [512, 1000, 4097, 16 * GIB])
def test_sizes_that_are_no_working_set(size: int):
    with pytest.raises(WherryError, match="a working set of latency is 1K to 8G, a multiple of 64"):
        EXPERIMENT.rows(Request(sizes=(size,)))


# ---- what it says ----------------------------------------------------------------------------------------------------


def test_levels():
    steps = [(4, 1.0), (8, 1.02), (16, 1.0), (32, 3.0), (64, 4.0), (128, 4.1), (256, 20.0)]
    assert levels(steps) == [Level(4, 16, 1.0), Level(64, 128, 4.05)]
    halves = [(4, 1.0), (6, 1.0), (8, 2.0), (12, 2.0), (16, 2.0)]
    assert levels(halves) == [Level(8, 16, 2.0)], "half an octave is no level"
    assert levels([(4, 1.0), (8, 1.0), (16, 1.5), (32, 1.0), (64, 1.0)]) == [Level(4, 64, 1.0)]
    # A third level that creeps, and a second whose end does: 5.45 ns is no level of its own beside 4.48.
    near = [
        (128, 4.48),
        (192, 4.49),
        (256, 4.49),
        (384, 4.48),
        (512, 4.95),
        (768, 5.45),
        (1024, 5.83),
        (1536, 8.88),
    ]
    far = [(4096, 29.6), (6144, 35.6), (8192, 38.2), (12288, 41.6), (16384, 57.6)]
    assert levels(near + far) == [Level(128, 1024, 4.49), Level(6144, 12288, 38.2)]
    assert levels([]) == [] and levels([(4, 1.0)]) == []


def made(times: dict[int, tuple[float, float]], chains: float = 4.0) -> dict:
    """A run of sets with the times of one chain in small and huge pages; of more they overlap by `chains` at most."""
    rows, own = [], []
    for number, (size, huge) in enumerate((s, h) for s in times for h in (SMALL, HUGE)):
        row = {"experiment": "latency", "row": number, "op": "chase", "size": size, "huge": huge}
        rows.append(row)
        for name, many in CHAINS.items():
            ns = times[size][huge] / min(many, chains)
            figures = {"median": ns, "q25": ns * 0.99, "q75": ns * 1.01}
            own.append(row | {"routine": name, "aa": False, "ns": figures, "parts": {}})
        own.append(own[-len(CHAINS)] | {"aa": True})
    believed = {"L1d": {"size": 32 * KIB}, "L2": {"size": MIB}}
    return {
        "rows": rows,
        "cells": own,
        "runner": {"ghz": 4.0},
        "machine": {"cpu": {}, "reported": {"believed": believed}},
    }


TIMES = {
    16 * KIB: (1.25, 1.25),
    32 * KIB: (1.25, 1.25),
    128 * KIB: (4.0, 4.0),
    256 * KIB: (4.0, 4.0),
    64 * MIB: (120.0, 100.0),
    128 * MIB: (130.0, 100.0),
}


def test_sentences():
    levels_said, pages, overlap = report.sentences(Found(made(TIMES)))
    assert levels_said == (
        "In huge pages a load that waits for the one before takes 1.25 ns (5 cycles) in working sets to 32K, "
        "4.00 ns (16 cycles) from 128K to 256K and 100.0 ns (400 cycles) from 64M to 128M; in between a part of "
        "the loads has left the nearer level. The machine reports L1d 32K and L2 1M."
    )
    assert pages == (
        "Pages of 4 KiB take longer than huge ones from 64M on, at 128M by 30.0 ns a load (30 %): what misses of "
        "the TLB cost there."
    )
    # What is dearest may lie among sets that are not.
    dear = report.sentences(Found(made(TIMES | {64 * KIB: (9.0, 3.0), 256 * MIB: (105.0, 100.0)})))
    dearest = report.sentences(Found(made({64 * KIB: (90.0, 3.0)} | TIMES)))
    assert "on, at 128M" in dear[1] and "huge ones, at 64K by 87.0 ns" in dearest[1]
    assert overlap.startswith(
        "Loads that do not wait for each other overlap, as many as 4.0 at 32K (0.31 ns a"
    )
    assert (
        "4.0 at 128M (25.0 ns a load by 4 chains)." in overlap and "more under way" not in overlap
    )
    assert "more under way than is asked" in report.sentences(Found(made(TIMES, 12)))[-1]


def test_sentences_of_less():
    """One kind of pages, one working set, or nothing at all."""
    alone = made(TIMES)
    alone["cells"] = [cell for cell in alone["cells"] if not cell["huge"]]
    alone["rows"] = [row for row in alone["rows"] if not row["huge"]]
    said = report.sentences(Found(alone))
    assert said[0].startswith("In 4 KiB pages a load") and not any("TLB" in text for text in said)
    text = "\n".join(tables.plain(block.lines) for block in report.blocks(alone, 100))
    assert "128M" in text
    same = report.sentences(Found(made({64 * KIB: (2.0, 2.0), 128 * KIB: (2.0, 2.0)})))
    assert any("cost nothing beside huge ones that could be told" in text for text in same)
    one = report.sentences(Found(made({64 * KIB: (2.0, 2.0)})))
    assert not any("waits for the one before takes" in text for text in one)
    nothing = made({})
    assert report.sentences(Found(nothing)) == [] and report.blocks(nothing, 100) == []


def test_more_overlap_than_chains_is_not_told():
    run = made(TIMES)
    for cell in run["cells"]:
        if cell["size"] == 32 * KIB and cell["routine"] == "1_chain":
            cell["ns"] = dict.fromkeys(cell["ns"], 100.0)
    assert Found(run).overlap(32 * KIB, HUGE) is None
    assert Found(run).overlap(16 * KIB, HUGE) == ("4_chains", 4.0)


# ---- as a user runs it -----------------------------------------------------------------------------------------------


def test_as_a_user_runs_it(wherry, tmp_path: Path):
    sizes = "4K,8K,64K,128K,2M,4M"
    done = wherry("bench", "latency", "--size", sizes, "--save", "r.json", *FAST, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in (
        "noise floor",
        "random loads that wait for the one before, by working set, 4 KiB pages; ns a load",
        "one pointer in each line of 64 bytes",
        "latency: where do the levels end, and what do pages and waiting cost?",
    ):
        assert words in " ".join(done.stdout.split()), done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
    found = runfile.read(tmp_path / "r.json")
    assert {row["op"] for row in found["rows"]} == {"chase"}
    assert {row["mode"] for row in found["rows"]} == {"latency"}
    assert all(cell["bytes"] == 8 for cell in found["cells"])
    own = {row["size"] for row in found["rows"] if not row["huge"]}
    assert own == {4 * KIB, 8 * KIB, 64 * KIB, 128 * KIB, 2 * MIB, 4 * MIB}
    assert all(row["huge_obtained"] for row in found["rows"] if row["huge"])
    again = wherry("bench", "--show", "r.json", cwd=tmp_path)
    assert again.returncode == 0 and "by working set, 4 KiB pages" in again.stdout
    (picture,) = pictures.of(found, "latency")
    assert [view.name for view in picture.views] == ["time per load"]
    assert picture.series == list(CHAINS) and "working set, bytes" in picture.alt
    page = wherry("report", "r.json", "-o", "r.html", cwd=tmp_path)
    assert page.returncode == 0 and "working set" in (tmp_path / "r.html").read_text()
    for form in ("csv", "markdown", "google-benchmark", "benchfmt"):
        told = wherry("export", "r.json", "--format", form, cwd=tmp_path)
        assert told.returncode == 0 and "12_chains" in told.stdout, told.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--size 100", "--size 100: a working set of latency is 1K to 8G, a multiple of 64 bytes"),
        ("--size 0", "'0' is not a positive number of bytes"),
        ("--size nan", "'nan' is not a size"),
        ("--routine libc", "latency does not take --routine"),
        ("--state L2", "latency does not take --state"),
        ("--turns 9", "latency does not take --turns; switch does"),
    ],
)
def test_bad_options(wherry, tmp_path: Path, words: str, said: str):
    done = wherry("bench", "latency", *words.split(), "--save", "run.json", cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and not list(tmp_path.iterdir())
    assert said in done.stderr and done.stderr.count("\n") == 1


def test_it_is_listed(wherry):
    (own,) = [
        row
        for row in json.loads(wherry("list", "experiments", "--json").stdout)
        if row["name"] == "latency"
    ]
    assert "huge pages" in own["shows"]
