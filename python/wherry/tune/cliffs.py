"""Where a routine falls: sizes or places at which it is slower, by more than a share, than beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wherry import stats
from wherry.plans import size_text
from wherry.units import percent

SHARE = 0.25
MOST = 12


@dataclass(frozen=True)
class Cliff:
    op: str
    routine: str
    size: int
    place: str
    state: str
    fall: float  # fraction of the neighbours' speed that is lost
    beside: str  # "sizes beside it" or "other places"

    def words(self) -> str:
        return (
            f"{self.routine}, {self.op} of {size_text(self.size)} in {self.state}, {self.place}: "
            f"{percent(self.fall)} below {self.beside}"
        )

    def record(self) -> dict:
        return {**vars(self), "fall": float(f"{self.fall:.4g}")}


# op, routine, state, place -> size -> nanoseconds, by each of those who measured
Speeds = Mapping[tuple[str, str, str, str], Mapping[int, Sequence[float]]]


def by_each(samples: stats.Samples) -> list[float]:
    """What each process measured. One alone may have been beside a neighbour for a while: its earlier and its later
    rounds."""
    rounds = list(samples.values())
    each = rounds if len(rounds) > 1 else np.array_split(rounds[0], 2) if rounds else []
    return [float(np.median(own)) for own in each] if all(len(own) for own in each) else []


def find(speeds: Speeds, share: float = SHARE) -> list[Cliff]:
    """Those that all saw, as deep as they did at least; the deepest first. Of a routine and place neighbouring sizes
    count once."""
    each = max((len(ns) for own in speeds.values() for ns in own.values()), default=0)
    seen: dict[tuple, list[Cliff]] = {}
    for number in range(each):
        one = {
            key: {size: ns[number] for size, ns in own.items() if len(ns) == each}
            for key, own in speeds.items()
        }
        for cliff in _seen_by_one(one, share):
            where = (cliff.op, cliff.routine, cliff.state, cliff.place, cliff.size, cliff.beside)
            seen.setdefault(where, []).append(cliff)
    found = [min(own, key=lambda cliff: cliff.fall) for own in seen.values() if len(own) == each]
    found.sort(key=lambda cliff: -cliff.fall)
    kept: dict[tuple, Cliff] = {}
    for cliff in found:
        kept.setdefault((cliff.op, cliff.routine, cliff.place, cliff.beside), cliff)
    return list(kept.values())[:MOST]


def _seen_by_one(speeds: Mapping[tuple, Mapping[int, float]], share: float) -> list[Cliff]:
    found = []
    for (op, routine, state, place), own in speeds.items():
        sizes = sorted(own)
        for before, size, after in zip(sizes, sizes[1:], sizes[2:], strict=False):
            slower = min(before / own[before], after / own[after])
            fall = 1 - (size / own[size]) / slower
            if fall > share:
                found.append(Cliff(op, routine, size, place, state, fall, "both sizes beside it"))
    alike: dict[tuple, dict[str, float]] = {}
    for (op, routine, state, place), own in speeds.items():
        for size, ns in own.items():
            alike.setdefault((op, routine, state, size), {})[place] = ns
    for (op, routine, state, size), places in alike.items():
        if len(places) < 3:
            continue
        usual = float(np.median(list(places.values())))
        for place, ns in places.items():
            fall = 1 - usual / ns
            if fall > share:
                found.append(Cliff(op, routine, size, place, state, fall, "other places"))
    return found
