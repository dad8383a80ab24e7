"""What a campaign finds: of each routine of a row a cell, and what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np


def rounded(values: Sequence[float]) -> list[float]:
    """As files keep them."""
    return [float(f"{value:.6g}") for value in values]


def _of_all(by_process: Mapping[int, Mapping], take: Callable) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for name in dict.fromkeys(name for own in by_process.values() for name in own):
        values = [own[name] for own in by_process.values() if own.get(name) is not None]
        found[name] = float(take(values)) if values else None
    return found


@dataclass
class Cell:
    """One routine of a row, over all processes."""

    calls: int = 0
    bytes: float = 0
    ns: dict[int, np.ndarray] = field(default_factory=dict)
    voided: int = 0
    verified: bool = True
    disturbed_in: set[int] = field(
        default_factory=set
    )  # only rounds that should have been thrown away

    # By process, where the runner tells them.
    shares: dict[int, float] = field(default_factory=dict)  # fastest thread over slowest
    counts: dict[int, dict[str, float | None]] = field(default_factory=dict)  # of one call
    parts: dict[int, dict[str, float | None]] = field(default_factory=dict)  # of a whole system
    tried: dict[int, list[float]] = field(default_factory=dict)  # every round, also voided ones
    upper_in_use: bool = False  # it left the upper halves of vector registers so

    def counts_of_all(self) -> dict[str, float | None]:
        """Medians over the processes."""
        return _of_all(self.counts, np.median)

    def parts_of_all(self) -> dict[str, float | None]:
        """Means over the processes: the kernel accounts for time in ticks, which only many samples even out."""
        return _of_all(self.parts, np.mean)

    @property
    def disturbed(self) -> bool:
        return bool(self.disturbed_in & self.ns.keys())


@dataclass
class Problem:
    kind: str  # skip, wrong, crash, hang, lost, broken
    routine: str
    message: str
    row: int | None = None
    experiment: str | None = None
