"""What a run has of the experiment: times by working set, by pages and by chains; and where they are level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wherry import tables
from wherry.clock import clock_of

EXPERIMENT = "latency"
CHAINS = {"1_chain": 1, "2_chains": 2, "4_chains": 4, "8_chains": 8, "12_chains": 12}
ONE = "1_chain"
SMALL, HUGE = False, True
PAGES = {SMALL: "4 KiB pages", HUGE: "huge pages"}
LEAST = 0.005  # below this nothing is told apart
# Over a doubling of the working set a level takes no more than 25 % longer; the step to the next one, in which a part
# of the loads has left the cache, is steeper. Two stretches nearer than that are one level with a disturbance in it.
LEVEL_STEP = 1.25


@dataclass(frozen=True)
class Level:
    """Working sets in which a load takes as long."""

    first: int
    last: int
    ns: float


def levels(times: Sequence[tuple[int, float]]) -> list[Level]:
    """Of (working set, time) in the order of the sets. A level is at least an octave long."""
    stretches: list[list[tuple[int, float]]] = []
    for size, ns in times:
        if stretches:
            before, took = stretches[-1][-1]
            if math.log(ns / took) <= math.log(LEVEL_STEP) * math.log2(size / before):
                stretches[-1].append((size, ns))
                continue
        stretches.append([(size, ns)])
    found: list[list[tuple[int, float]]] = []
    for own in stretches:
        if own[-1][0] < 2 * own[0][0]:
            continue
        if found and _middle(own) < LEVEL_STEP * _middle(found[-1]):
            found[-1] += own
        else:
            found.append(own)
    return [Level(own[0][0], own[-1][0], _middle(own)) for own in found]


def _middle(own: Sequence[tuple[int, float]]) -> float:
    return float(np.median([ns for _, ns in own]))


class Found:
    def __init__(self, run: dict):
        self.clock = clock_of(run)
        self.caches = _reported(run)
        twins = {
            cell["row"]: cell
            for cell in run["cells"]
            if cell["experiment"] == EXPERIMENT and cell["aa"]
        }
        own = tables.cells_of(run, EXPERIMENT)
        # By pages, by working set: the cells by name.
        self._cells: dict[bool, dict[int, dict[str, dict]]] = {SMALL: {}, HUGE: {}}
        self._floors: list[float] = [LEAST]
        for row in tables.rows_of(run, EXPERIMENT):
            cells = own.get(row["row"], {})
            self._cells[bool(row["huge"])][row["size"]] = cells
            twin = twins.get(row["row"])
            first = cells.get(twin["routine"]) if twin else None
            if first:
                self._floors.append(abs(twin["ns"]["median"] / first["ns"]["median"] - 1))

    @property
    def floor(self) -> float:
        """What a row differs from itself: nine of ten rows by no more than this."""
        return max(LEAST, float(np.quantile(self._floors, 0.9)))

    def sizes(self, pages: bool | None = None) -> list[int]:
        chosen = PAGES if pages is None else (pages,)
        return sorted({size for own in chosen for size in self._cells[own]})

    def cell(self, size: int, pages: bool, name: str = ONE) -> dict | None:
        return self._cells[pages].get(size, {}).get(name)

    def took(self, size: int, pages: bool, name: str = ONE) -> float | None:
        cell = self.cell(size, pages, name)
        return None if cell is None else cell["ns"]["median"]

    def names(self, pages: bool) -> list[str]:
        return [n for n in CHAINS if any(n in own for own in self._cells[pages].values())]

    def pages(self) -> bool | None:
        """Those by which the caches show best: huge ones, which the TLB holds longest."""
        return next((p for p in (HUGE, SMALL) if any(self.took(s, p) for s in self.sizes(p))), None)

    def levels(self, pages: bool) -> list[Level]:
        times = [(size, self.took(size, pages)) for size in self.sizes(pages)]
        return levels([(size, ns) for size, ns in times if ns])

    def overlap(self, size: int, pages: bool) -> tuple[str, float] | None:
        """The chains by which a load is had in the least time, and how many loads then went on at once."""
        one = self.took(size, pages)
        took = {n: self.took(size, pages, n) for n in CHAINS if n != ONE}
        known = {name: ns for name, ns in took.items() if ns}
        if not one or not known:
            return None
        best = min(known, key=lambda name: known[name])
        many = one / known[best]
        # More than there are chains is what a disturbance makes.
        return (best, many) if many <= CHAINS[best] * (1 + self.floor) else None


def _reported(run: dict) -> dict[str, int]:
    """The caches that the machine is believed to have."""
    reported = run["machine"].get("reported")
    believed = reported.get("believed") if isinstance(reported, dict) else None
    found = {}
    for level in ("L1d", "L2", "L3"):
        own = believed.get(level) if isinstance(believed, dict) else None
        size = own.get("size") if isinstance(own, dict) else None
        if isinstance(size, int) and size > 0:
            found[level] = size
    return found
