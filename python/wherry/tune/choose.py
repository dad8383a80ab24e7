"""Pure: from measured curves to thresholds. A curve is {size: log of (this method's time over the loop's)}: below zero
the method wins. Sizes are a grid even in the logarithm, so a sum over it weighs each octave alike."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wherry.plans import OFF

Curve = Mapping[int, float]


def mean_curve(curves: Sequence[Curve]) -> dict[int, float]:
    """Of the sizes that all have."""
    sizes = set.intersection(*(set(curve) for curve in curves)) if curves else set()
    return {n: sum(curve[n] for curve in curves) / len(curves) for n in sorted(sizes)}


@dataclass(frozen=True)
class Window:
    """[start, end): sizes for which a method is taken. end None: no upper end. start None: at no size."""

    start: int | None
    end: int | None

    def has(self, size: int) -> bool:
        return (
            self.start is not None and size >= self.start and (self.end is None or size < self.end)
        )


def cost(curve: Curve, window: Window) -> float:
    return sum(value for size, value in curve.items() if window.has(size))


def window(curve: Curve) -> Window:
    """The one that saves most: the run of sizes with the least sum."""
    sizes = sorted(curve)
    best, best_cost = Window(None, None), 0.0
    for i, start in enumerate(sizes):
        total = 0.0
        for j in range(i, len(sizes)):
            total += curve[sizes[j]]
            if total < best_cost:
                best_cost = total
                best = Window(start, sizes[j + 1] if j + 1 < len(sizes) else None)
    return best


def recent_from(near: Curve, own: Window, usual: int, margin: float) -> int:
    """The size from which on the method wins even with the destination near, not below the window's start. Where it
    does not as far as the curve goes, the usual size, or the curve's end when that is beyond it."""
    start = from_on(near, margin)
    if start is None:
        start = max([usual, *near])
    return max(start, own.start or 0)


def from_on(curve: Curve, margin: float, least: int = 0) -> int | None:
    """The smallest size, at least `least`, from which on the method wins by more than the margin at every size; None
    when it does not at the largest."""
    found = None
    for size in sorted((n for n in curve if n >= least), reverse=True):
        if curve[size] > -margin:
            break
        found = size
    return found


def split(curve: Curve, least: int = 0) -> int:
    """The size from which on the method is taken so that most is saved, 0 for all sizes, OFF for none; those up to
    `least` are one."""
    best, best_cost = OFF, 0.0
    for start in (0, *(n for n in sorted(curve)[1:] if n > least)):
        total = cost(curve, Window(start, None))
        if total < best_cost:
            best, best_cost = start, total
    return best


def safer(*starts: int | None) -> int | None:
    """The later one; one that says never has its way."""
    return None if None in starts else max(starts)


def slow_ahead(curves: Mapping[int, Curve], window: Window, margin: float) -> int:
    """curves by how far the destination is ahead, mod 4096. The largest such distance, from the smallest on, at which
    the method loses at the window's smaller sizes; 0 when at none."""
    found = 0
    for ahead in sorted(curves):
        every = all_from(curves, ahead, window, ahead)
        below = [
            value
            for size, value in curves[ahead].items()
            if window.has(size) and (every is None or size < every)
        ]
        if not below or sum(below) / len(below) <= margin:
            break
        found = ahead
    return found


def all_from(curves: Mapping[int, Curve], ahead: int, window: Window, least: int = 0) -> int | None:
    """The size from which on the method wins even with the destination `least` to `ahead` bytes ahead; None: at no
    size."""
    own = mean_curve([curve for distance, curve in curves.items() if least <= distance <= ahead])
    inside = {size: value for size, value in own.items() if window.has(size)}
    best, least, total = None, 0.0, 0.0
    for size in sorted(inside, reverse=True):
        total += inside[size]
        if total < least:
            best, least = size, total
    return best


def backward_ahead(curves: Mapping[int, float], margin: float, most: int) -> int:
    """curves: how far the destination is ahead, mod 4096, to log of the backward loop's time over the forward one's.
    The largest such distance, from the smallest on, at which backward wins; `most` when it does at all of them, 0 when
    at none."""
    found = 0
    for ahead in sorted(curves):
        if curves[ahead] > -margin:
            return found
        found = ahead
    return most if found else 0


def between(low: int, high: int) -> int:
    """A size between two of the grid, as a plan has it: the middle by the logarithm, rounded to 64 bytes."""
    return max(64, round(math.sqrt(low * high) / 64) * 64)
