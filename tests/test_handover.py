"""Lines that another CPU has used last: who touches them and how, what the runner tells of such rows, and
`wherry bench handover`."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from conftest import run
from measured import measure, of
from wherry import runfile, tables
from wherry.errors import WherryError
from wherry.experiments import Request
from wherry.experiments.handover import EXPERIMENT, MIX, SIDES, SIZES
from wherry.formats import naming
from wherry.mixes import from_range

HELPER = "tests/c/handover-test"
FAST = ("--processes", "1", "--rounds", "2")
ROW = "id=1 rounds=2 batch_us=20"


def core_of(cpu: int) -> tuple[str, ...]:
    own = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
    try:
        return tuple((own / f).read_text() for f in ("physical_package_id", "core_id"))
    except OSError:
        return (str(cpu),)


CPUS = sorted(os.sched_getaffinity(0))
two_cores = pytest.mark.skipif(
    len(set(map(core_of, CPUS))) < 2,
    reason="one core: needs a CPU of another one, which hands lines over",
)


# ---- who touches what ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sides", range(4))
def test_of_a_source_one_byte_of_each_line_is_written_and_nothing_of_a_destination(
    build_dir, sides
):
    """Three calls of 100 bytes from 5 past the lines 0, 4 and 30 on, three passes in either of two turns."""
    done = run(build_dir / HELPER, "bytes", str(sides))
    written = (
        [line * 64 for first in (0, 4, 30) for line in (first, first + 1)] if sides & 1 else []
    )
    told = "".join(f" {at}:{7 + 6}" for at in written)
    assert done.stdout == f"by CPU 2\nsource{told}\ndestination\n"
    assert done.returncode == 0


READ, WRITE = 1, 3


@pytest.mark.parametrize(
    ("sides", "source", "destination", "size", "good"),
    [
        (1, WRITE, 0, 4096, True),
        (1, READ, 0, 1, False),
        (1, WRITE, 0, 4097, False),
        (2, 0, READ, 4096, True),
        (2, 0, 0, 1, False),
        (2, 0, READ, 4097, False),
        (3, WRITE, READ, 4096, True),
        (3, READ, READ, 1, False),
        (3, WRITE, 0, 1, False),
        (1, 0, 0, 0, True),
    ],
)
def test_a_source_is_written_and_a_destination_read_to_the_last_line_and_no_further(
    build_dir, sides, source, destination, size, good
):
    """The page behind is not there. A thread that faults with all signals blocked takes the process with it."""
    words = map(str, (sides, source, destination, size))
    done = run(build_dir / HELPER, "pages", *words, check=False)
    assert done.returncode == (0 if good else -signal.SIGSEGV), done.stderr


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (-1, "by CPU 1"),  # 5 shares the core of 4, and 1 is nearer than 0
        (0, "by CPU 0"),
        (5, "by CPU 5"),
        (4, "handed_by=4: this process measures on that CPU; leave it out, or give another one"),
        (7, "handed_by=7: this process may not use such a CPU; leave it out, or give another one"),
    ],
)
def test_which_cpu(build_dir, asked, told):
    assert run(build_dir / HELPER, "ask", str(asked)).stdout == told + "\n"


# ---- rows ------------------------------------------------------------------------------------------------------------


@two_cores
@pytest.mark.parametrize(
    "words",
    [
        "op=copy size=64 handed=source",
        "op=move size=5000 handed=both src_off=3 delta=70",
        "op=copy mix=log:1-4096 handed=destination mode=latency",
        "op=set size=100 handed=destination dst_off=9",
        "op=copy_csum size=1448 handed=source",
        "op=csum size=1448 handed=source",
        "op=copy size=100000 handed=both huge=1",
        "op=pagezero size=4096 handed=destination ascending=destination",
    ],
)
def test_events_of_a_row(wherry_run, words):
    row = f"{ROW} {words} routines=wherry src_state=L2 dst_state=L2"
    events, said = measure(wherry_run, [row])
    assert said == "" and not of(events, "skip") and not of(events, "wrong")
    (told,) = of(events, "row")
    assert told["handed_by"] in set(CPUS) - {events[0]["cpu"]}
    cells = of(events, "cell")
    assert len(cells) == 2 and all(min(cell["ns"]) > 0 for cell in cells)


@two_cores
def test_a_row_that_nobody_hands_over_follows_one_that_somebody_does(wherry_run):
    rows = [
        f"id={i} op=copy size=64 routines=libc src_state=L2 dst_state=L2 rounds=1 {words}"
        for i, words in enumerate(("handed=source", "", "handed=both"))
    ]
    events, _ = measure(wherry_run, rows)
    assert [("handed_by" in row) for row in of(events, "row")] == [True, False, True]
    assert len(of(events, "cell")) == 6


# Counts how often the first byte of a source is not what this found there before.
PEER = """
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#define SLOTS 65536
static unsigned long changed, same;
static const unsigned char *seen[SLOTS];
static unsigned char was[SLOTS];
__attribute__((destructor)) static void tell(void)
{
    FILE *file = fopen(getenv("TOLD_IN"), "w");
    fprintf(file, "%lu %lu", changed, same);
    fclose(file);
}
void *memcpy(void *d, const void *s, size_t n)
{
    unsigned char *to = d;
    const unsigned char *from = s;
    const size_t slot = ((size_t)from >> 6) % SLOTS;
    for (size_t i = 0; i < n; i++)
        to[i] = from[i];
    if (seen[slot] == from)
        *(was[slot] != *from ? &changed : &same) += 1;
    seen[slot] = from;
    was[slot] = *from;
    return d;
}
"""


@two_cores
@pytest.mark.parametrize(("handed", "share"), [("source", 0.9), ("destination", 0)])
def test_every_timed_call_finds_what_another_cpu_has_just_written(
    wherry_run, tmp_path: Path, monkeypatch, handed, share
):
    """All but the untimed calls, which bring the routine's code in, and those that verify it with other contents."""
    (tmp_path / "peer.c").write_text(PEER)
    made, told = tmp_path / "peer.so", tmp_path / "told"
    flags = ("-O1", "-fno-builtin", "-shared", "-fPIC")
    assert run("cc", *flags, "-o", made, tmp_path / "peer.c").returncode == 0
    monkeypatch.setenv("TOLD_IN", str(told))
    row = f"id=1 op=copy size=64 routines=p src_state=L2 dst_state=L2 handed={handed} calls=12000"
    events, _ = measure(wherry_run, [row + " rounds=4"], "--peer", f"p={made}")
    assert len(of(events, "cell")) == 2
    changed, same = map(int, told.read_text().split())
    assert changed + same > 40_000
    assert share <= changed / (changed + same) <= share + 0.1


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("op=copy handed=sink", "none, source, destination or both"),
        ("op=copy handed=source handed_by=-1", "a number from 0"),
        ("op=copy handed_by=1", "give handed with it"),
        ("op=copy handed=none handed_by=1", "give handed with it"),
        ("op=copy handed=source src_state=DRAM", "L1, L2 or L3"),
        ("op=copy handed=both dst_state=DRAM", "L1, L2 or L3"),
        ("op=set handed=source", "op=set has no source; give destination"),
        ("op=set handed=both", "op=set has no source; give destination"),
        ("op=csum handed=both", "op=csum has no destination; give source"),
        ("op=iszero handed=destination", "not for op=iszero"),
        ("op=move overlap=1 handed=source", "no overlap"),
        ("op=copy walk=stream handed=source", "walk=pool"),
        ("op=copy code=cold handed=source", "code=warm"),
        ("op=copy content=new handed=source", "no content"),
        ("op=copy mode=fresh handed=source", "throughput or latency"),
        ("op=copy mode=p50 handed=source", "throughput or latency"),
    ],
)
def test_bad_row(wherry_run, words, hint):
    _, said = measure(wherry_run, [f"id=1 routines=wherry size=8 {words}"], status=2)
    assert said.count("\n") == 1 and hint in said


@pytest.mark.skipif(len(CPUS) < 2, reason="one CPU: two threads are refused by their number")
def test_several_threads_are_refused(wherry_run):
    row = "id=1 op=copy routines=libc size=8 handed=source threads=2"
    _, said = measure(wherry_run, [row], status=2)
    assert "threads=1" in said


def test_one_cpu_is_not_enough(wherry_run):
    cpu = CPUS[0]
    row = "id=1 op=copy routines=libc size=64 src_state=L2 dst_state=L2 handed=source"
    done = run("taskset", "-c", str(cpu), wherry_run, "measure", input=row)
    assert done.returncode == 0
    assert '"reason":"handed needs a CPU of another core, and this process may use none"' in (
        done.stdout.replace('": ', '":')
    )


# ---- the experiment, and cells ---------------------------------------------------------------------------------------


def test_rows():
    rows = EXPERIMENT.rows(Request())
    assert {(row.src_state, row.dst_state) for row in rows} == {("L2", "L2")}
    assert [row.handed for row in rows] == [s for s in SIDES for _ in range(len(SIZES) + 1)]
    assert {row.mix for row in rows} == {"", MIX}
    assert {row.handed for row in EXPERIMENT.rows(Request(ops=("set",)))} == {"none", "destination"}
    mixed = EXPERIMENT.rows(Request(mixes=(from_range("uniform:0-64"),)))
    assert {row.mix for row in mixed} == {"uniform:0-64"} and len(mixed) == len(SIDES)
    with pytest.raises(WherryError, match="no CPU hands over"):
        EXPERIMENT.rows(Request(states=(("DRAM", "L2"),)))


@two_cores
def test_bench(wherry, tmp_path: Path):
    saved = tmp_path / "run.json"
    done = wherry(
        "bench",
        "handover",
        "--quick",
        "--processes",
        "1",
        "--rounds",
        "1",
        "--size",
        "64,1K",
        "--save",
        saved,
    )
    assert done.returncode == 0, done.stderr
    kept = runfile.read(saved)
    found = [(row["size"], row.get("handed")) for row in tables.rows_of(kept, "handover")]
    sides = (None, "source", "destination", "both")
    assert found == [(size, side) for side in sides for size in (64, 1024)]
    for words in ("has just written the source\n", "has just read the destination\n"):
        assert words in done.stdout
    told = re.findall(
        r"takes ([\d.]+) times at 64 and ([\d.]+) times at 1K", " ".join(done.stdout.split())
    )
    assert len(told) == 3


@two_cores
def test_cells(wherry, tmp_path: Path):
    own = CPUS[0]
    other = next(cpu for cpu in reversed(CPUS) if core_of(cpu) != core_of(own))
    saved = tmp_path / "run.json"
    words = ("--handed", "none,both", "--handed-by", str(other), "--pin", str(own), "--size", "256")
    done = wherry("bench", "cells", *FAST, *words, "--save", saved)
    assert done.returncode == 0, done.stderr
    rows = tables.rows_of(runfile.read(saved), "cells")
    assert [(row.get("handed"), row.get("handed_by")) for row in rows] == [
        (None, None),
        ("both", other),
    ]
    assert {row["dst_state"] for row in rows} == {"L2"}
    cell = next(c for c in runfile.read(saved)["cells"] if c.get("handed"))
    name = naming.write(cell, ":")
    assert "handed:both" in name
    again = naming.read(name, ":", ours=True)
    assert again.dimensions["handed"] == "both" and again.dimensions["handed_by"] == other


REFUSED = {
    "--handed sink": "none, source",
    "--op set --handed both": "give --handed destination",
    "--op csum --handed destination": "give --handed source",
    "--op iszero --handed destination": "not for iszero",
    "--handed source --state DRAM": "give --state L2 or L3",
    "--handed destination --state L2/DRAM": "give --state L2 or L3",
    "--handed source --mode fresh": "no --mode fresh",
    "--handed source --mode p99": "no --mode p99",
    "--handed source --code cold": "--code cold",
    "--op move --handed source --overlap 8": "--overlap",
    "--op set --handed destination --content dirty": "--content",
    "--handed-by %d": "--handed source, destination or both with it",
    "--handed none --handed-by %d": "--handed source, destination or both with it",
    "--handed source --handed-by 4095": "not there",
    "--handed source --threads all": "--threads 1",
}


@pytest.mark.parametrize("words", REFUSED)
def test_contradictions_are_refused_before_anything_is_measured(wherry, words):
    if "--threads" in words and len(CPUS) < 2:
        pytest.skip("one CPU: all are one thread")
    done = wherry("bench", "cells", *words.replace("%d", str(CPUS[0])).split())
    assert done.returncode == 2
    assert REFUSED[words] in done.stderr.replace("\n", " ") and done.stderr.count("\n") == 1
