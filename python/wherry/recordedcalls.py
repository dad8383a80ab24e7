"""The calls of a recording for the runner: as they followed each other, and drawn from its distribution.

runs = recordedcalls.table(recordings.shipped("gcc"), "copy")           # in an order that lives
spec = recordedcalls.keep(recordedcalls.table(recording, "copy", least=0, most=4096))   # "@FILE" for a row's mix
"""

from __future__ import annotations

import bisect
import itertools
import random
from collections.abc import Sequence

import numpy as np

from wherry import raking
from wherry.mixfiles import LARGEST_SIZE
from wherry.recordings import Recording

# (destination - source) mod 4096, by what it does to copies: the string instructions are slow just ahead, forward
# loops wait for themselves a little further on.
DISTANCES = {"same": (0, 0), "near": (1, 63), "alias": (64, 1536), "far": (1537, 4095)}
# Sequences hold what is frequent; of the rarer large calls only the distribution is known well enough.
ORDERED_TO = 1024
TABLE = 65536
# Of the sizes that follow each other, the classes that have their due share of a table.
CLASSES = (8, 16, 32, 64, 128, 256, 512, ORDERED_TO)
# Smaller than this, sequences tell nothing that the distribution does not.
FEW = 1024

# One call for the runner: bytes, source mod 64, (destination - source) mod 4096, distance where both overlap.
Call = tuple[int, int, int, int | None]


def bursts(recording: Recording, op: str, least: int, most: int) -> list[list[Call]]:
    """The sampled sequences of one op, of sizes from `least` to `most`."""
    sequences = recording.document.get("sequences") or {"calls": [], "bursts": []}
    known = sequences["calls"]
    found = []
    for burst in sequences["bursts"]:
        calls = [known[int(word)] for word in burst.split()]
        mine = [
            (size, source, delta, _overlapping(size, delta, overlap))
            for name, size, source, delta, overlap in calls
            if name == op and least <= size <= most
        ]
        if mine:
            found.append(mine)
    return found


def table(
    recording: Recording,
    op: str,
    least: int = 0,
    most: int = LARGEST_SIZE,
    *,
    ordered: bool = True,
    count: int = TABLE,
    seed: int = 1,
) -> list[list[Call]]:
    """About `count` calls in the proportions of the mix: runs in whose order the runner may not meddle.
    Sizes to 1 KiB follow each other as they did, unless `ordered` is false or too few were seen; the larger are
    strewn in as often as they were asked for."""
    chance = random.Random(seed)
    rows = recording.within(op, least, most)
    small = sum(row[2] for row in rows if row[1] <= ORDERED_TO)
    whole = sum(row[2] for row in rows)
    if not whole:
        return []
    draw = _Drawer(recording, op, least, most, chance)
    runs = bursts(recording, op, least, min(most, ORDERED_TO)) if ordered else []
    if sum(map(len, runs)) < FEW:
        return [[draw.any()] for _ in range(count)]
    large = 1 - small / whole
    made, total = [], 0
    for run in raking.again(runs, _weights(runs, rows), chance):
        mixed: list[Call] = []
        for call in run:
            while large and chance.random() < large:
                mixed.append(draw.large())
            mixed.append(call)
        made.append(mixed)
        total += len(mixed)
        if total >= count:
            break
    return made


def _weights(runs: Sequence[Sequence[Call]], rows: Sequence[Sequence[int]]) -> np.ndarray:
    """How often each run has to come for the classes of sizes of `rows`."""
    wanted = [0] * len(CLASSES)
    for _, most, calls, _ in rows:
        if most <= ORDERED_TO:
            wanted[bisect.bisect_left(CLASSES, most)] += calls
    counts = [[0] * len(CLASSES) for _ in runs]
    for own, run in zip(counts, runs, strict=True):
        for size, *_ in run:
            own[bisect.bisect_left(CLASSES, size)] += 1
    return raking.weights(counts, wanted)


def _overlapping(size: int, delta: int, overlap: str) -> int | None:
    """The distance, of which the low twelve bits are known; that of larger ones is taken as the least possible."""
    if overlap == "none":
        return None
    distance = {"same": 0, "above": delta, "below": delta - 4096}[overlap]
    return distance if abs(distance) < max(size, 1) else None


class _Drawer:
    """Single calls from the distribution."""

    def __init__(
        self, recording: Recording, op: str, least: int, most: int, chance: random.Random
    ) -> None:
        self._chance = chance
        self._op = op
        rows = recording.within(op, least, most)
        self._bounds = least, min(most, LARGEST_SIZE)
        self._all = _Shares(rows, [row[2] for row in rows])
        above = [row for row in rows if row[1] > ORDERED_TO]
        self._above = _Shares(above, [row[2] for row in above])
        self._places: dict[int | None, _Shares] = {}
        places = recording.document["ops"].get(op, {}).get("places", ())
        for up_to, group in itertools.groupby(
            sorted(places, key=lambda row: (row[0] is None, row[0] or 0)), key=lambda row: row[0]
        ):
            members = [row for row in group if row[5]]
            if members:
                self._places[up_to] = _Shares(members, [row[5] for row in members])

    def any(self) -> Call:
        return self._call(self._all.draw(self._chance))

    def large(self) -> Call:
        return self._call(self._above.draw(self._chance))

    def _call(self, row: tuple[int, int, int, int]) -> Call:
        low, high = max(row[0], self._bounds[0]), min(row[1], self._bounds[1])
        # Most sizes of a class are the same in most programs: its mean is nearer to them than an even draw.
        mean = min(max(round(row[3] / row[2]), low), high)
        place = self._place(mean)
        if place is None:
            return mean, 0, 0, None
        _, source, destination, distance, overlap, _ = place
        at, delta = self._offsets(source, destination, distance)
        return mean, at, delta, _overlapping(mean, delta, overlap)

    def _place(self, size: int) -> tuple | None:
        for up_to, shares in self._places.items():
            if up_to is None or size <= up_to:
                return shares.draw(self._chance)
        return None

    def _offset(self, alignment: int) -> int:
        return 0 if alignment == 64 else alignment * self._chance.randrange(1, 64 // alignment, 2)

    def _offsets(self, source: int, destination: int, distance: str) -> tuple[int, int]:
        low, high = DISTANCES[distance]
        for _ in range(20):
            at, to = self._offset(source), self._offset(destination)
            if self._op == "set":
                return 0, to + 64 * self._chance.randrange(64)
            fitting = [d for d in range((to - at) % 64, 4096, 64) if low <= d <= high]
            if fitting:
                return at, self._chance.choice(fitting)
        return at, (to - at) % 64


class _Shares:
    def __init__(self, items: list, weights: list[int]) -> None:
        self._items = items
        self._until = list(itertools.accumulate(weights))

    def draw(self, chance: random.Random):
        return self._items[
            bisect.bisect_right(self._until, chance.random() * self._until[-1] * (1 - 1e-12))
        ]


def runner_text(runs: list[list[Call]]) -> str:
    """The form that the runner reads: a call a line, a line of its own between runs (docs/runner-protocol.md)."""
    lines = ["calls"]
    for number, run in enumerate(runs):
        if number:
            lines.append("-")
        lines += [
            f"{min(size, LARGEST_SIZE)} {source} {delta}"
            + ("" if distance is None else f" {distance}")
            for size, source, delta, distance in run
        ]
    return "\n".join(lines) + "\n"


def keep(runs: list[list[Call]]) -> str:
    """A file of them, removed when the program ends; as the `mix` of a row."""
    from wherry import mixes

    return mixes.keep(runner_text(runs).encode())
