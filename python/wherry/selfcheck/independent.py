"""The last claim: google-benchmark, calling the same functions of libc on the same bytes, finds the same times. Both
take turns, so that a slower clock meets both; of a turn the best of five counts, since only one of the two throws away
what a neighbour has slowed."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import tempfile
from importlib import resources
from pathlib import Path

from wherry.campaign import Row
from wherry.selfcheck.claims import WITHIN, Claim, Session
from wherry.selfcheck.known import measure

PACKAGE = "libbenchmark-dev"
COMPILE_LIMIT, RUN_LIMIT = 120, 60
# (op, size, offset of the source past a page, (dst - src) mod 4096). Large enough that a cycle more in the loop around
# the call is no 5 %: what either tool's loop takes by itself is not what they are compared by.
CELLS = (
    ("copy", 3072, 64, 2048),
    ("copy", 4096, 64, 2048),
    ("copy", 4096, 67, 2061),
    ("copy", 8192, 64, 2048),
    ("copy", 8192, 65, 2047),
    ("copy", 16384, 64, 2048),
    ("set", 2048, 64, 2048),
    ("set", 4096, 64, 2048),
    ("set", 8192, 67, 2061),
    ("set", 16384, 64, 2048),
)


def turns(quick: bool) -> int:
    return 7 if quick else 13


def steps(quick: bool) -> int:
    return 1 + turns(quick)


def _row(op: str, size: int, src_off: int, delta: int) -> Row:
    """One source and one destination, the same in every call."""
    if op == "set":
        where = {"dst_off": (src_off + delta) % 64}
    else:
        where = {"src_off": src_off, "delta": delta}
    return Row("", op, ("libc",), size, walk="stream", buffer=size, rounds=5, **where)


def _compiler() -> str | None:
    return next((path for name in ("g++", "c++", "clang++") if (path := shutil.which(name))), None)


def _build(directory: str) -> tuple[str, str]:
    """(program, "") or ("", why there is none)."""
    compiler = _compiler()
    if compiler is None:
        return "", "needs a C++ compiler (Debian package g++)"
    source = Path(directory) / "independent.cc"
    source.write_bytes((resources.files("wherry.selfcheck") / "independent.cc").read_bytes())
    program = str(Path(directory) / "independent")
    command = [compiler, "-O2", "-std=c++17", str(source), "-o", program]
    command += ["-lbenchmark", "-lpthread", "-ldl"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=COMPILE_LIMIT, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return "", f"{compiler} does not work here"
    if done.returncode == 0:
        return program, ""
    if "benchmark/benchmark.h" in done.stderr or "-lbenchmark" in done.stderr:
        return "", f"needs google-benchmark (Debian package {PACKAGE})"
    first = next((line for line in done.stderr.splitlines() if "error" in line), "no reason given")
    return "", f"google-benchmark's program does not compile here: {first}"


def _theirs(program: str, cpu: int) -> list[float] | None:
    """Nanoseconds a call of each cell, by google-benchmark."""
    cells = [":".join(map(str, cell)) for cell in CELLS]
    try:
        done = subprocess.run(
            [program, *cells, "--benchmark_format=json"],
            capture_output=True,
            text=True,
            timeout=RUN_LIMIT,
            check=False,
            preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),
        )
        events = json.loads(done.stdout)["benchmarks"] if done.returncode == 0 else []
    except (OSError, ValueError, KeyError, subprocess.SubprocessError):
        return None
    # Names may carry what was asked for behind the cell, as in copy:4096:64:2048/min_time:0.004/repeats:5.
    found: dict[str, list[float]] = {cell: [] for cell in cells}
    for event in events:
        name = event.get("name", "").partition("/")[0]
        if (
            event.get("run_type") == "iteration"
            and event.get("time_unit") == "ns"
            and name in found
        ):
            found[name].append(float(event["real_time"]))
    if not all(found.values()):
        return None
    return [min(values) for values in found.values()]


def _ours(session: Session, seed: int) -> tuple[list[float | None], int]:
    campaign = measure(session, [_row(*cell) for cell in CELLS], 1, seed)
    cells = [campaign.cells.get((number, "libc", False)) for number in range(len(CELLS))]
    times = [float(min(cell.ns[0])) if cell and 0 in cell.ns else None for cell in cells]
    return times, int(campaign.start.get("cpu", 0))


def check(session: Session) -> list[Claim]:
    claim = Claim(
        "independent tool",
        "google-benchmark finds the same times",
        f"{len(CELLS)} cells within {WITHIN:.0%}",
    )
    session.progress("google-benchmark")
    with tempfile.TemporaryDirectory(prefix="wherry-") as directory:
        program, claim.reason = _build(directory)
        if program:
            _compare(session, program, claim)
    return [claim]


def _compare(session: Session, program: str, claim: Claim) -> None:
    pairs: list[list[tuple[float, float]]] = [[] for _ in CELLS]
    # Both on one CPU; the runner takes the one it starts on when none was asked for.
    cpu = session.pin if session.pin is not None else min(os.sched_getaffinity(0))
    session.pin, asked = cpu, session.pin
    for turn in range(turns(session.quick)):
        if session.late():
            break
        session.progress("google-benchmark")
        if turn % 2:
            theirs = _theirs(program, cpu)
            ours, _ = _ours(session, session.seed + turn)
        else:
            ours, _ = _ours(session, session.seed + turn)
            theirs = _theirs(program, cpu)
        if theirs is None:
            # Its own trouble shows nothing of Wherry's times.
            claim.leave_open(
                "google-benchmark's program failed, or did not say what was expected of it"
            )
            break
        for own, mine, other in zip(pairs, ours, theirs, strict=True):
            if mine:
                own.append((mine, other))
    session.pin = asked
    if claim.undecided:
        return
    if not all(pairs):
        claim.passed, claim.reason = False, "some cells had no figures"
        if session.late() and not any(pairs):
            claim.leave_open("no time was left for it")
        return
    for cell, own in zip(CELLS, pairs, strict=True):
        op, size, src_off, delta = cell
        where = f"source at {src_off}, " if op == "copy" else ""
        claim.cells.append(
            {
                "cell": f"{op} {size} B, L1, {where}destination at {(src_off + delta) % 4096}",
                "wherry_ns": round(statistics.median(mine for mine, _ in own), 3),
                "other_ns": round(statistics.median(other for _, other in own), 3),
                "error": round(statistics.median(mine / other for mine, other in own) - 1, 5),
                "turns": len(own),
            }
        )
    errors = [abs(cell["error"]) for cell in claim.cells]
    good = sum(error <= WITHIN for error in errors)
    claim.measured = (
        f"{good} of {len(errors)} cells; worst {max(errors):.1%}, "
        f"median {statistics.median(errors):.1%} off"
    )
    claim.passed = good == len(errors)
