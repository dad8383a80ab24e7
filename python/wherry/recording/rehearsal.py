"""What the recorder's way of timing makes of calls whose data are in the nearest cache.

A call that is timed alone takes longer than one among others: the processor waits before and after. So `wherry-run
rehearse` makes small calls under the recorder, once after each boot; what they take there more than the same sizes
again and again, among others, is what timing adds, to a program's calls too."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from wherry import bootcache, ceiling, preloading, runner
from wherry.errors import FailedError
from wherry.recording.merge import Merger

VERSION = 4
LIMIT_S = 60.0
REHEARSALS = 15
# Fewer tell nothing.
LEAST_CALLS = 8
LEAST_CLASSES = 10
NOT_MEASURED = "the recorder's own time could not be measured"
# Of how much longer or shorter than in the rehearsal timing can take; what is beyond is of something else.
SLOWEST, FASTEST = 4.0, 0.25


def hot(begins: Callable[[], None] = lambda: None, fresh: bool = False) -> dict:
    """Ticks of the processor's clock: hot["ticks_per_ns"], hot["nothing"] of a call that does nothing, and
    hot[op][least size of a class], a call. `begins` is called before the seconds that it takes."""
    natives = [Path(runner.path()), preloading.library("recorder")]
    place = bootcache.path("rehearsal")
    return bootcache.kept(place, bootcache.key(VERSION, natives), _good, _measure, fresh, begins)


def _good(found: object) -> bool:
    classes = [own for op in ceiling.OPS for own in found[op].items()]
    return found["ticks_per_ns"] > 0 and all(
        int(least) >= 0 and 0 < ticks < 1e12 for least, ticks in [(0, found["nothing"]), *classes]
    )


def _measure() -> dict:
    """A processor is as fast as its neighbours let it be, so each rehearsal's ticks are over those of a call that does
    nothing in it. Of that the fastest counts, as of what costs are measured."""
    done = [_once() for _ in range(REHEARSALS)]
    nothing = min(own["nothing"] for own in done)
    found: dict = {
        "ticks_per_ns": statistics.median(own["ticks_per_ns"] for own in done),
        "nothing": round(nothing, 2),
    }
    for op in ceiling.OPS:
        over = [{least: t / own["nothing"] for least, t in own[op].items()} for own in done]
        everywhere = set.intersection(*map(set, over))
        found[op] = {
            least: round(nothing * statistics.median(own[least] for own in over), 2)
            for least in over[0]
            if least in everywhere
        }
    if any(len(found[op]) < LEAST_CLASSES for op in ceiling.OPS):
        raise FailedError(NOT_MEASURED)
    return found


def _once() -> dict:
    home = Path(tempfile.mkdtemp(prefix="wherry-rehearse-"))
    try:
        env = preloading.environment(preloading.own_environment(), [preloading.library("recorder")])
        env["WHERRY_RECORD"] = str(home)
        try:
            done = subprocess.run(
                [runner.path(), "rehearse"],
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
            said = json.loads(done.stdout.strip().splitlines()[-1])
            rate = float(said["ticks_per_ns"])
        except (OSError, subprocess.TimeoutExpired, ValueError, IndexError, KeyError, TypeError):
            raise FailedError(NOT_MEASURED) from None
        merger = Merger()
        for part in home.iterdir():
            merger.add(part)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    found: dict = {"ticks_per_ns": rate, "nothing": merger.nothing()}
    for op, rows in merger.times().items():
        found[op] = {
            str(least): ticks / calls
            for least, _, calls, _, ticks, *_ in rows
            if calls >= LEAST_CALLS
        }
    if rate <= 0 or not found["nothing"]:
        raise FailedError(NOT_MEASURED)
    return found


def pace(merger: Merger, rehearsed: dict) -> float:
    """How long the processor took for the same in the run, over the rehearsal: its clock may be another, or a neighbour
    on its core have taken a part. 1.0 where too little of that was timed."""
    nothing = merger.nothing()
    return min(max(nothing / rehearsed["nothing"], FASTEST), SLOWEST) if nothing else 1.0


def rows(
    timed: list[list[int]], op: str, rehearsed: dict, costs: dict, slower: float = 1.0
) -> list[list]:
    """Of what was timed in a program, as a mix keeps it: least and greatest size, calls, bytes, nanoseconds of all of
    them, of those what timing added, page faults, nanoseconds of those, calls left out; and how often both sides were
    near, the source
    near and the destination in the last cache, ... and both in memory. `slower`: the run's pace, which what timing
    adds has, too."""
    rate, known = rehearsed["ticks_per_ns"], {int(k): v for k, v in rehearsed[op].items()}
    found = []
    for least, greatest, calls, total, ticks, faults, fault_ticks, late, *places in timed:
        # Of larger calls as of the largest rehearsed: nothing goes on beside them.
        near = max((own for own in known if own <= least), default=min(known))
        size = near * 5 / 4 if near < least or not calls else total / calls
        added = max(known[near] / rate - ceiling.cost_ns(costs["repeated"][op], size), 0)
        whole, added = ticks / rate, added * slower
        times = [round(ns, 1) for ns in (whole, min(calls * added, whole), fault_ticks / rate)]
        found.append([least, greatest, calls, total, *times[:2], faults, times[2], late, places])
    return found
