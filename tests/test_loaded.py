"""The experiment `loaded`: loads along a cycle while other CPUs copy. Who copies is told, and how much; what copies
wrong or crashes is named; what cannot be had is skipped with a reason. What takes how long is no matter here."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import run, wait_until
from systems import cells, system
from test_latency import skipped
from wherry import dimensions, runfile, tables
from wherry.errors import WherryError
from wherry.estimate import expected_seconds
from wherry.experiments import Request
from wherry.experiments.loaded import EXPERIMENT, IDLE, WALKED, buffer_for, own_sets
from wherry.formats import places
from wherry.report import pictures
from wherry.units import GIB, KIB, MIB

OTHERS = len(os.sched_getaffinity(0)) - 1
two_cpus = pytest.mark.skipif(OTHERS < 1, reason="needs two CPUs")
ROW = f"op=loaded rounds=2 calls=2000 buffer={2 * MIB}"
FAST = ("--processes", "1", "--rounds", "2")

PEER = """
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>
void *memcpy(void *d, const void *s, size_t n)
{
    unsigned char *to = d;
    const unsigned char *from = s;
    if (CRASH && syscall(SYS_gettid) != getpid())
        *(volatile int *)8 = 0;
    for (size_t i = 0; i < n; i++)
        to[i] = WRONG && i == 5000 ? 0 : from[i];
    return d;
}
"""


def peer(directory: Path, crash: int, wrong: int) -> Path:
    (directory / "peer.c").write_text(PEER)
    made = directory / f"peer{crash}{wrong}.so"
    flags = (f"-DCRASH={crash}", f"-DWRONG={wrong}", "-O1", "-fno-builtin", "-shared", "-fPIC")
    assert run("cc", *flags, "-o", made, directory / "peer.c").returncode == 0
    return made


# ---- the native part -------------------------------------------------------------------------------------------------


@two_cpus
@pytest.mark.parametrize("block", [64, 4096, MIB, 2 * MIB])
def test_others_copy_while_one_loads(wherry_run: Path, block: int):
    names = "idle,libc,wherry,copy_stream_sse2"
    events, _ = system(wherry_run, f"id=3 {ROW} routines={names} size=65536 block={block}\n")
    assert events[-1] == {"event": "end", "rows": 1} and not skipped(events)
    found = cells(events)
    assert [name for _, name in found] == names.split(",")
    for (_, name), cell in found.items():
        parts, busy = cell["parts"], name != IDLE
        assert len(cell["ns"]) == 2 and min(cell["ns"]) > 0 and cell["bytes"] == 8
        assert parts["copiers"] == (OTHERS if busy else 0)
        assert (parts["copied_gbs"] > 0) == busy and 0 <= parts["same_core"] <= parts["copiers"]
    (own,) = [e for e in events if e["event"] == "row"]
    assert own["pool_bytes_src"] >= 65536 + OTHERS * 4 * MIB
    assert [e["routine"] for e in events if e["event"] == "cell" and e["aa"]] == [IDLE]


def test_with_no_other_cpu_the_row_is_skipped(wherry_run: Path):
    cpu = min(os.sched_getaffinity(0))
    events, _ = system(
        wherry_run,
        f"id=1 {ROW} routines=idle,libc\n",
        preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),
    )
    assert skipped(events) == {1: "there is no other CPU that this process may use"}


def test_more_cpus_than_there_are(wherry_run: Path):
    events, _ = system(wherry_run, f"id=1 {ROW} routines=idle,libc others=4000\n")
    assert "not 4000" in skipped(events)[1] or "no other CPU" in skipped(events)[1]


@two_cpus
def test_memory_that_is_not_there(wherry_run: Path):
    rows = f"id=1 {ROW} routines=idle size={8 * GIB}\nid=2 {ROW} routines=idle\n"
    code = f"ulimit -v {512 * KIB}; exec '{wherry_run}' system"
    done = subprocess.run(["sh", "-c", code], input=rows, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert '"skip","id":1' in done.stdout and "memory" in done.stdout
    assert '"cell","id":2' in done.stdout


@two_cpus
def test_a_wrong_copy_is_named(wherry_run: Path, tmp_path: Path):
    row = f"id=1 {ROW} routines=idle,libc,bad block=65536\n"
    events, _ = system(wherry_run, row, 1, "--peer", f"bad={peer(tmp_path, 0, 1)}")
    (wrong,) = [e for e in events if e["event"] == "wrong"]
    assert wrong["routine"] == "bad"
    assert wrong["message"] == "byte 5000 of a copy of 65536 is wrong"
    assert [name for _, name in cells(events)] == [IDLE, "libc"]


WHERE = """
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static uintptr_t low[2] = {-1, -1}, high[2];
static void note(int side, uintptr_t at)
{
    low[side] = at < low[side] ? at : low[side];
    high[side] = at > high[side] ? at : high[side];
}
void *memcpy(void *d, const void *s, size_t n)
{
    if (syscall(SYS_gettid) != getpid()) {
        note(0, (uintptr_t)s);
        note(1, (uintptr_t)d);
    }
    return memmove(d, s, n);
}
__attribute__((destructor)) static void tell(void)
{
    FILE *file = fopen(PATH, "w");
    fprintf(file, "%ld %ld %ld", high[0] - low[0], high[1] - low[1], low[1] - low[0]);
    fclose(file);
}
"""


@two_cpus
def test_all_of_the_buffer_is_copied(wherry_run: Path, tmp_path: Path):
    """A block after the other to the end: one block again and again would lie in a cache."""
    (tmp_path / "where.c").write_text(WHERE)
    flags = (f'-DPATH="{tmp_path}/told"', "-O1", "-fno-builtin", "-shared", "-fPIC")
    run("cc", *flags, "-o", tmp_path / "where.so", tmp_path / "where.c")
    words = f"rounds=10 calls=500000 buffer={4 * 16 * KIB} block={16 * KIB} others=1"
    system(
        wherry_run,
        f"id=1 op=loaded {words} routines=where\n",
        0,
        *("--peer", f"where={tmp_path}/where.so"),
    )
    from_range, to_range, apart = map(int, (tmp_path / "told").read_text().split())
    assert from_range == to_range == 3 * 16 * KIB and apart == 4 * 16 * KIB


@two_cpus
def test_what_takes_multiples_only_is_skipped(wherry_run: Path):
    events, _ = system(wherry_run, f"id=1 {ROW} routines=idle,int4x8 block=1000\n")
    assert skipped(events)[1] == "takes sizes that are multiples of 32 bytes only, not 1000"


@two_cpus
def test_interrupted_it_ends_by_the_signal(wherry_run: Path):
    with subprocess.Popen(
        [wherry_run, "system"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as own:
        own.stdin.write(f"id=1 {ROW.replace('rounds=2', 'rounds=1000')} routines=libc size={MIB}\n")
        own.stdin.close()
        said: list[str] = []
        wait_until(lambda: said.append(own.stdout.readline()) or "trying" in said[-1], "it began")
        own.send_signal(signal.SIGINT)
        assert own.wait(60) == -signal.SIGINT


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("size=1000", "size=1000: give a number from 1024 to 8589934592"),
        ("size=1100", "size= is the working set: give a multiple of 64 bytes"),
        ("block=63", "block=63: give a number from 64 to 1073741824"),
        ("block=4194304", "block= is copied within buffer=: give no more than that"),
        ("others=-1", "others=-1: give a number from 0 to 4095"),
        ("huge=1", "op=loaded has no word 'huge'"),
    ],
)
def test_bad_rows(wherry_run: Path, row: str, words: str):
    _, said = system(wherry_run, f"id=1 {ROW} routines=idle {row}\n", 2)
    assert words in said and said.count("\n") == 1


@pytest.mark.parametrize("name", ["1_chain", "evans_movnti", "csum_sse2", "no_such"])
def test_bad_names(wherry_run: Path, name: str):
    _, said = system(wherry_run, f"id=1 {ROW} routines=idle,{name}\n", 2)
    assert f"'{name}' is neither idle nor anything that copies" in said


# ---- what is asked for -----------------------------------------------------------------------------------------------


def test_working_sets_and_buffers():
    caches = {"L2": MIB, "L3": 32 * MIB}
    assert own_sets(caches, 64 * GIB, quick=False) == (512 * KIB, 16 * MIB, 256 * MIB)
    assert own_sets(caches, 64 * GIB, quick=True) == (16 * MIB, 256 * MIB)
    assert own_sets({"L2": 2 * MIB, "L3": 480 * MIB}, 64 * GIB, quick=False)[1] == WALKED
    assert own_sets({}, 64 * GIB, quick=False) == (256 * KIB, 256 * MIB)
    assert buffer_for(1, caches, 64 * GIB) == 64 * MIB
    assert buffer_for(63, caches, 64 * GIB) == 32 * MIB
    assert buffer_for(1, {"L3": GIB}, 64 * GIB) == 256 * MIB
    for others in (1, 7, 255):
        for memory in (GIB, 16 * GIB):
            buffer = buffer_for(others, caches, memory)
            assert buffer % MIB == 0 and (buffer == MIB or 8 * others * buffer <= memory)


def test_rows():
    rows = EXPERIMENT.rows(Request(sizes=(MIB, 4096)))
    assert [row.size for row in rows[:2]] == [4096, MIB] and rows[0].routines[0] == IDLE
    words = [dict(row.words) for row in rows]
    assert {own["others"] for own in words} == {1, max(OTHERS, 1)}
    assert {own["block"] for own in words} == {64 * KIB, words[0]["buffer"]}
    assert rows[0].dimensions()["mode"] == "latency"
    small, large = (EXPERIMENT.rows(Request(sizes=(size,))) for size in (4096, GIB))
    assert expected_seconds(large, 1) > expected_seconds(small, 1) + 1


@pytest.mark.parametrize("size", [512, 1000, 16 * GIB])
def test_sizes_that_are_no_working_set(size: int):
    with pytest.raises(WherryError, match="a working set of loaded is 1K to 8G, a multiple of 64"):
        EXPERIMENT.rows(Request(sizes=(size,)))


# ---- what it says ----------------------------------------------------------------------------------------------------


def made(times: dict[int, dict[str, float]], others: int = 1, floor: float | None = None) -> dict:
    rows, own = [], []
    for number, (size, took) in enumerate(times.items()):
        row = {"experiment": "loaded", "row": number, "op": "loaded", "size": size}
        row |= {"block": 64 * KIB, "buffer": 64 * MIB, "others": others}
        rows.append(row)
        for name, ns in took.items():
            busy = name != IDLE
            parts = {"copied_gbs": 12.5 * busy, "copiers": others * busy, "same_core": others > 1}
            figures = {"median": ns, "q25": ns, "q75": ns}
            own.append(row | {"routine": name, "aa": False, "ns": figures, "parts": parts})
    experiments = [{"name": "loaded", "noise_floor": floor}]
    return {"experiments": experiments, "rows": rows, "cells": own}


def test_sentences():
    times = {
        MIB: {IDLE: 4.0, "libc": 4.0, "wherry": 4.01},
        16 * MIB: {IDLE: 20.0, "libc": 40.0, "wherry": 30.0},
        256 * MIB: {IDLE: 100.0, "libc": 150.0, "wherry": 150.2},
    }
    (said,) = EXPERIMENT.in_words(made(times))
    assert said == (
        "While one other CPU copies 64K at a time through 64M, loads take no longer that could be told (noise "
        "0.5 %) in a working set of 1M, 1.50 times as long with wherry to 2.00 times with libc in a working set "
        "of 16M and 1.50 times as long, whoever copies, in a working set of 256M."
    )
    (block,) = EXPERIMENT.blocks(made(times, others=7), 100)
    text = tables.plain(block.lines)
    assert "7 other CPUs copy 64K" in block.title and "2.00" in text and "12.5" in text
    assert any("of the CPUs that copy 1 share" in note for note in block.notes)
    # Beside a noise that is more than twice the time nothing is told apart; it is the one that the heading tells.
    (noisy,) = EXPERIMENT.in_words(made({16 * MIB: times[16 * MIB]}, floor=1.2))
    assert "no longer that could be told (noise 120 %)" in noisy
    assert EXPERIMENT.in_words(made({})) == [] and EXPERIMENT.blocks(made({}), 100) == []
    assert EXPERIMENT.in_words(made({MIB: {IDLE: 4.0}})) == []


def test_rows_are_told_in_words():
    row = made({16 * MIB: {IDLE: 20.0}}, others=3)["rows"][0] | {"mode": "latency"}
    assert places.place(row) == "16M, buffers of 64M, latency, others copy 64K, 3 copying"
    words = dimensions.common([row])
    assert "others copy 64 KiB at a time, 3 other CPUs copy" in words
    assert "1 other CPU copies" in dimensions.common([row | {"others": 1}])


# ---- as a user runs it -----------------------------------------------------------------------------------------------


@two_cpus
def test_as_a_user_runs_it(wherry, tmp_path: Path):
    words = ("--size", "64K,1M,4M", "--routine", "rep_movsb,wherry", "--save", "r.json", *FAST)
    done = wherry("bench", "loaded", *words, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    for text in ("noise floor", "random loads that wait for the one before, while", "copied"):
        assert text in said, done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
    found = runfile.read(tmp_path / "r.json")
    assert {row["op"] for row in found["rows"]} == {"loaded"}
    assert {cell["routine"] for cell in found["cells"]} == {IDLE, "libc", "rep_movsb", "wherry"}
    again = wherry("bench", "--show", "r.json", cwd=tmp_path)
    assert again.returncode == 0 and "random loads that wait" in again.stdout
    picture = pictures.of(found, "loaded")[0]
    assert picture.views[0].name == "time per load" and "working set, bytes" in picture.alt
    page = wherry("report", "r.json", "-o", "r.html", cwd=tmp_path)
    assert page.returncode == 0 and "working set" in (tmp_path / "r.html").read_text()
    for form in ("csv", "markdown", "google-benchmark", "benchfmt"):
        told = wherry("export", "r.json", "--format", form, cwd=tmp_path)
        assert told.returncode == 0 and "rep_movsb" in told.stdout, told.stderr


@two_cpus
def test_a_peer_that_crashes_on_another_cpu_is_named_and_left_out(wherry, tmp_path: Path):
    made = peer(tmp_path, 1, 0)
    words = ("--size", "64K", "--routine", "wherry", "--peer", f"bad={made}", "--save", "r.json")
    done = wherry("bench", "loaded", *words, *FAST, cwd=tmp_path, timeout=300)
    assert "bad" in done.stdout + done.stderr and "Traceback" not in done.stderr
    found = runfile.read(tmp_path / "r.json")
    assert {cell["routine"] for cell in found["cells"]} == {IDLE, "libc", "wherry"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--size 100", "--size 100: a working set of loaded is 1K to 8G, a multiple of 64 bytes"),
        ("--state L2", "loaded does not take --state"),
        ("--routine csum_sse2", "loaded measures loaded, which csum_sse2 does not do"),
    ],
)
def test_bad_options(wherry, tmp_path: Path, words: str, said: str):
    done = wherry("bench", "loaded", *words.split(), "--save", "run.json", cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and not list(tmp_path.iterdir())
    assert said in done.stderr and done.stderr.count("\n") == 1
