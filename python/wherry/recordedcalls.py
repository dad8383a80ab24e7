"""The calls of a recording for the runner: as they followed each other, and drawn from its distribution.

runs = recordedcalls.table(recordings.shipped("gcc"), "copy")           # in an order that lives
spec = recordedcalls.keep(recordedcalls.table(recording, "copy", least=0, most=4096))   # "@FILE" for a row's mix
"""

from __future__ import annotations

import bisect
import random
from collections.abc import Iterator, Sequence

import numpy as np

from wherry import mixcopies, raking
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
# So many are drawn at once.
BATCH = 4096
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
    draw = _Drawer(recording, op, least, most, seed)
    runs = bursts(recording, op, least, min(most, ORDERED_TO)) if ordered else []
    if sum(map(len, runs)) < FEW:
        return [[call] for call in draw.any(count)]
    large, more = 1 - small / whole, draw.large()
    made, total = [], 0
    for run in raking.again(runs, _weights(runs, rows), chance):
        mixed: list[Call] = []
        for call in run:
            while large and chance.random() < large:
                mixed.append(next(more))
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

    def __init__(self, recording: Recording, op: str, least: int, most: int, seed: int) -> None:
        self._chance = np.random.default_rng(seed)
        self._op = op
        self._rows = recording.within(op, least, most)
        self._bounds = least, min(most, LARGEST_SIZE)
        self._places: dict[int | None, list[Sequence]] = {}
        places = recording.document["ops"].get(op, {}).get("places", ())
        for row in sorted(places, key=lambda row: (row[0] is None, row[0] or 0)):
            if row[5]:
                self._places.setdefault(row[0], []).append(row)

    def any(self, count: int) -> list[Call]:
        return self._drawn(self._rows, count)

    def large(self) -> Iterator[Call]:
        """Those that no sequence holds, for ever."""
        above = [row for row in self._rows if row[1] > ORDERED_TO]
        while True:
            yield from self._drawn(above, BATCH)

    def _drawn(self, rows: Sequence[Sequence[int]], count: int) -> list[Call]:
        sizes = np.array([self._mean(row) for row in rows])
        groups = list(self._places)
        bounds = np.array([np.inf if up_to is None else up_to for up_to in groups])
        size = sizes[self._shares([row[2] for row in rows], count)]
        group = np.searchsorted(bounds, size)
        at, delta = np.zeros(count, int), np.zeros(count, int)
        distance = np.full(count, None, object)
        for place, up_to in enumerate(groups):
            own = np.flatnonzero(group == place)
            members = self._places[up_to]
            which = self._shares([row[5] for row in members], len(own))
            for number, (_, source, destination, far, overlap, _) in enumerate(members):
                calls = own[which == number]
                at[calls], delta[calls] = self._offsets(source, destination, far, len(calls))
                if overlap != "none":
                    distance[calls] = [
                        _overlapping(n, apart, overlap)
                        for n, apart in zip(
                            size[calls].tolist(), delta[calls].tolist(), strict=True
                        )
                    ]
        return list(zip(size.tolist(), at.tolist(), delta.tolist(), distance, strict=True))

    def _mean(self, row: Sequence[int]) -> int:
        """Most sizes of a class are the same in most programs: its mean is nearer to them than an even draw."""
        low, high = max(row[0], self._bounds[0]), min(row[1], self._bounds[1])
        return min(max(round(row[3] / row[2]), low), high)

    def _shares(self, weights: Sequence[int], count: int) -> np.ndarray:
        """Places in a list, each as often as it weighs."""
        until = np.cumsum(np.asarray(weights, float))
        drawn = np.searchsorted(until, self._chance.random(count) * until[-1], "right")
        return np.minimum(drawn, len(until) - 1)

    def _offset(self, alignment: int, count: int) -> np.ndarray:
        if alignment == 64:
            return np.zeros(count, int)
        return alignment * (2 * self._chance.integers(64 // alignment // 2, size=count) + 1)

    def _offsets(
        self, source: int, destination: int, distance: str, count: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Source mod 64 and distance of so many calls; where no distance of the class fits, the least one."""
        if self._op == "set":
            to = self._offset(destination, count)
            return np.zeros(count, int), to + 64 * self._chance.integers(64, size=count)
        low, high = DISTANCES[distance]
        at, delta = np.zeros(count, int), np.zeros(count, int)
        left = np.arange(count)
        for _ in range(20):
            at[left] = self._offset(source, len(left))
            least = (self._offset(destination, len(left)) - at[left]) % 64
            first = np.maximum(-((least - low) // 64), 0)
            fitting = np.maximum((high - least) // 64 + 1 - first, 0)
            lines = first + (self._chance.random(len(left)) * fitting).astype(int)
            delta[left] = least + 64 * np.where(fitting > 0, lines, 0)
            left = left[fitting == 0]
            if not len(left):
                break
        return at, delta


def runner_text(runs: list[list[Call]]) -> str:
    """The form that the runner reads: a call a line, a line of its own between runs (docs/runner-protocol.md)."""
    texts = [
        "\n".join(
            [
                f"{size} {source} {delta}"
                if distance is None
                else f"{size} {source} {delta} {distance}"
                for size, source, delta, distance in run
            ]
        )
        for run in runs
    ]
    return "\n".join(["calls", *(["\n-\n".join(texts)] if texts else [])]) + "\n"


def keep(runs: list[list[Call]]) -> str:
    """A file of them, removed when the program ends; as the `mix` of a row."""
    return mixcopies.keep(runner_text(runs).encode())
