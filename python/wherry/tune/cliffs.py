"""Where a routine falls: sizes or places at which it is slower, by more than a share, than beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

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


# op, routine, state, place -> size -> nanoseconds
Speeds = Mapping[tuple[str, str, str, str], Mapping[int, float]]


def find(speeds: Speeds, share: float = SHARE) -> list[Cliff]:
    """The deepest first; of a routine and place neighbouring sizes count once."""
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
    found.sort(key=lambda cliff: -cliff.fall)
    kept: dict[tuple, Cliff] = {}
    for cliff in found:
        kept.setdefault((cliff.op, cliff.routine, cliff.place, cliff.beside), cliff)
    return list(kept.values())[:MOST]
