"""What the copies of a run took of its time.

`likely`: of every class of sizes, its calls times what they took inside the program, of which the recorder times some;
less what timing adds. `at_most`: as far as that may be from the mean of all calls, and with what the kernel took to
bring pages. A class of which few calls were timed takes what its neighbours take; when its bytes are many, all that the
kernel did for the run may have been for their pages. Neither is more than the run took. `incomplete`: of programs or
calls that could not be recorded it knows nothing.

Where nothing was timed (older mixes), only sizes are known: then `likely` has all data in the nearest cache that holds
it, sizes that nobody can predict, and `at_most` both sides in memory, those of up to 64 bytes in the last-level cache:
single lines that miss it are paid by whoever touches them next, if not by the copy.

Costs are measured with libc's routines by wherry-run, once after each boot, less what a call takes of a function that
returns at once: a free memcpy would be called, too."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wherry import bootcache, runner
from wherry.errors import FailedError
from wherry.scoreboard.regions import home
from wherry.units import MIB

OPS = ("copy", "move", "set")
FLOOR = "call_floor"
VERSION = 5
KINDS = ("hot", "repeated", "cold")
# Calls of a class have sizes from half of this on; the last stands for all above, in proportion.
HOT = (0, 16, 32, 64, 128, 256, 512, *(1 << n for n in range(10, 25)))
# As far as timing is rehearsed.
REPEATED = (
    0,
    1,
    2,
    3,
    *(n for octave in range(2, 11) for n in (5 << octave >> 2, 7 << octave >> 2)),
)
COLD_IN_L3 = 64
COLD = (16, 64, 256, 1024, 4096, 16384, 65536, 1 << 20, 1 << 24)
# What two routines differ by is not known more finely, and no copy is free.
LEAST_NS = 0.1
# The second fastest counts: neighbours make calls slower, never faster.
ROUNDS, BATCH_US = 4, 100
LINE = 64
# With fewer calls timed, a class's neighbours tell more of it.
FEW_TIMED = 8
# So many bytes in calls of at least a page may be new pages, which no cost of warm memory tells of.
MANY_BYTES = MIB
PAGE = 4096


def _rows() -> list[tuple[str, str, int, str]]:
    believed = runner.cpu().get("believed") or {}
    caches = {level: own.get("size", 0) for level, own in believed.items() if isinstance(own, dict)}
    caches["L1"] = caches.get("L1d", caches.get("L1", 0))
    rows = []
    for op in OPS:
        rows += [("hot", op, size, home(size, op, caches)) for size in HOT]
        rows += [("repeated", op, size, home(size, op, caches)) for size in REPEATED]
        far = "L3" if caches.get("L3", 0) > 4 * caches.get("L2", 0) else "DRAM"
        rows += [("cold", op, size, far if size <= COLD_IN_L3 else "DRAM") for size in COLD]
    return rows


def _measure() -> dict:
    rows = _rows()
    lines = []
    for number, (kind, op, size, state) in enumerate(rows):
        least = size // 2 + 1 if size > 16 else 0 if size == 0 else 1
        drawn = kind != "repeated" and 0 < size < MIB
        what = f"mix=uniform:{least}-{size}" if drawn else f"size={size}"
        lines.append(
            f"id={number} op={op} routines=libc,{FLOOR} {what} src_state={state} dst_state={state} "
            f"rounds={ROUNDS} batch_us={BATCH_US}"
        )
    costs: dict[str, dict[str, dict[str, float]]] = {kind: {op: {} for op in OPS} for kind in KINDS}
    took: dict[tuple[int, str], float] = {}
    with runner.Stream(["measure"], lines, limit=60) as stream:
        for event in stream:
            if event.get("event") == "cell" and not event.get("aa") and event.get("ns"):
                took[event["id"], event["routine"]] = sorted(event["ns"])[:2][-1]
    for number, (kind, op, size, _) in enumerate(rows):
        whole, floor = took.get((number, "libc")), took.get((number, FLOOR))
        if whole and floor:
            costs[kind][op][str(size)] = round(max(whole - floor, LEAST_NS), 3)
    for op in OPS:
        if any(len(costs[kind][op]) < 3 for kind in KINDS):
            raise FailedError(
                "the cost of copies could not be measured; wherry doctor may tell why"
            )
    return costs


# ---- kept as long as the machine runs -------------------------------------------------------------------------------


def costs(begins: Callable[[], None] = lambda: None, fresh: bool = False) -> dict:
    """Nanoseconds a call: costs["hot" | "repeated" | "cold"][op][size]: in the nearest cache that holds them, of sizes
    that nobody can predict and of one size again and again, and in memory. From the cache when it is of this boot;
    else `begins` is called before the seconds that it takes."""
    key = bootcache.key(VERSION, [Path(runner.path())])
    return bootcache.kept(bootcache.path("costs"), key, _good, _measure, fresh, begins)


def _good(found: object) -> bool:
    return all(
        isinstance(ns, int | float) and 0 < ns < 1e12 and int(size) >= 0
        for kind in KINDS
        for op in OPS
        for size, ns in found[kind][op].items()
    ) and all(found[kind][op] for kind in KINDS for op in OPS)


def cost_ns(table: Mapping[str, float], size: float) -> float:
    """Between two sizes by their logarithms; above the largest in proportion to the size."""
    points = sorted((int(known), ns) for known, ns in table.items())
    if size <= points[0][0]:
        return points[0][1]
    if size >= points[-1][0]:
        return points[-1][1] * size / points[-1][0]
    for (low, below), (high, above) in itertools.pairwise(points):
        if size <= high:
            if low == 0:
                return max(below, above)
            part = math.log(size / low) / math.log(high / low)
            return math.exp(math.log(below) * (1 - part) + math.log(above) * part)
    return points[-1][1]


def _up_to(size: int) -> int | None:
    """The class that a line of the table stands for."""
    bound = 16
    while bound < size and bound < 1 << 20:
        bound <<= 2
    return bound if size <= bound else None


@dataclass(frozen=True)
class Cost:
    """Of one class of sizes, nanoseconds a call: what is likely and what it is at most; and by how many timed calls."""

    likely: float
    at_most: float
    known_by: int


@dataclass(frozen=True)
class Timed:
    """What calls took inside the program, of one op."""

    rows: Sequence[Sequence[float]]  # of a mix's `times`

    @property
    def calls(self) -> int:
        return int(sum(row[2] for row in self.rows))

    def near(self, size: float) -> tuple[float, float, float, int] | None:
        """Nanoseconds of a call, of those what timing added, those of its page faults, and by how many calls that is
        known; None: none was timed. From the class of that size, and from as many on both sides of it as it takes to
        have enough."""
        order = sorted(
            (row for row in self.rows if row[2]),
            key=lambda row: abs(math.log2((row[3] / row[2] + 1) / (size + 1))),
        )
        some = []
        for row in order:
            if some and sum(own[2] for own in some) >= FEW_TIMED:
                break
            some.append(row)
        calls = sum(row[2] for row in some)
        if not calls:
            return None
        whole = added = faults = 0.0
        for row in some:
            # From afar in proportion to the size: what comes late comes line by line.
            by = (size + LINE) / (row[3] / row[2] + LINE) / calls
            whole += row[4] * by
            added += row[5] * by
            faults += row[7] * by
        return whole, added, faults, calls


def cost(found: Mapping, op: str, timed: Timed | None, size: float) -> Cost:
    hot = cost_ns(found["hot"][op], size)
    near = timed.near(size) if timed else None
    if near is None:
        return Cost(hot, max(hot, cost_ns(found["cold"][op], size)), 0)
    whole, added, faults, calls = near
    # What timing adds is told by other calls, so not to the tick; but nothing takes less than the same again and again,
    # large calls at least half of what they take in the nearest cache, and none takes longer than it took.
    least = cost_ns(found["repeated"][op], size) if size <= max(REPEATED) else hot / 2
    likely = max(whole - added, min(least, whole))
    # As if calls differed from each other by as much as they take.
    return Cost(likely, likely * (1 + 2 / math.sqrt(calls)) + faults, calls)


def _at_pace(found: Mapping, pace: float) -> Mapping:
    """What is in the nearest cache takes as much longer as the processor does; memory has a pace of its own."""
    slower = {
        kind: {op: {size: ns * pace for size, ns in own.items()} for op, own in found[kind].items()}
        for kind in ("hot", "repeated")
        if kind in found
    }
    return {**found, **slower}


def of(
    ops: Mapping[str, Mapping],
    cpu_s: float,
    found: Mapping,
    system_s: float = 0.0,
    incomplete: bool = False,
    unrecorded_s: float = 0.0,
    pace: float = 1.0,
) -> dict:
    """The ceiling, as a mix keeps it. `system_s`: of the run's processor time what the kernel took. `incomplete`: some
    of the run was not recorded; `unrecorded_s`: what that took at least. `pace`: how much longer the processor took in
    the run than where costs were measured."""
    found = _at_pace(found, pace)
    parts: dict[tuple, list[float]] = {}
    calls_timed, guessed = 0, 0
    for op, counted in ops.items():
        timed = Timed(counted["times"]) if counted.get("times") else None
        calls_timed += timed.calls if timed else 0
        for least, _, calls, total in counted["sizes"]:
            if not calls:
                continue
            own = cost(found, op, timed, total / calls)
            entry = parts.setdefault((op, _up_to(least)), [0, 0.0, 0.0])
            entry[0] += calls
            entry[1] += own.likely * calls / 1e9
            entry[2] += own.at_most * calls / 1e9
            if "times" in counted and own.known_by < FEW_TIMED and total >= PAGE * calls:
                # What one or two calls took, and what memory takes elsewhere, may be half of what these took.
                entry[2] += own.at_most * calls / 1e9
                guessed += total
    likely = sum(part[1] for part in parts.values())
    most = sum(part[2] for part in parts.values())
    if guessed >= MANY_BYTES:
        most += system_s
    # A run cannot have spent more than it took; less than was seen where some of that was the trial's.
    likely, most, unrecorded_s = min(likely, cpu_s), min(most, cpu_s), min(unrecorded_s, cpu_s)
    together = sum(own[1] for own in parts.values())
    for own in parts.values():
        own[1] *= min(likely / together, 1) if together > 0 else 1
        own[2] = min(own[2], most)  # each may be it, though not all together
    share = [s / cpu_s if cpu_s > 0 else 0.0 for s in (likely, most)]
    return {
        "cpu_s": round(cpu_s, 6),
        "likely_s": round(likely, 9),
        "at_most_s": round(most, 9),
        "likely": round(share[0], 6),
        "at_most": round(share[1], 6),
        "timed": calls_timed,
        "pace": round(pace, 3),
        **({"few_timed": True} if guessed >= MANY_BYTES else {}),
        **({"incomplete": True} if incomplete else {}),
        **({"unrecorded_s": round(unrecorded_s, 6)} if unrecorded_s else {}),
        "parts": [
            {
                "op": op,
                "up_to": up_to,
                "calls": calls,
                "likely_s": round(a, 9),
                "at_most_s": round(b, 9),
            }
            for (op, up_to), (calls, a, b) in parts.items()
        ],
    }
