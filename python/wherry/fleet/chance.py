"""When a host differs from its model by more than chance: robust scales, tails that are measured, many comparisons."""

from __future__ import annotations

import functools
import math

import numpy as np

from wherry.significance import t_tails

# Of a thousand hosts that differ in nothing not one may be named, for whatever reason. A third of that is aimed at, for
# tails that are drawn from a measured part of them are known to that and no better.
FALSE_ALARMS = 3e-4
# Shares of the hosts between which the tail is measured, below the outliers that there are.
INNER, OUTER = 0.80, 0.92
# Fewer hosts do not tell how heavy the tail is.
ENOUGH = 100
# No scatter between hosts is smaller than this (a fraction): clocks, and the digits of a file.
LEAST_SCALE = 0.003
# The median distance knows as much as this share of the deviations.
EFFICIENCY = 0.37
# What the other groups' scatter counts, in hosts of a group's own.
PRIOR = 4.0
# Distances, as their inverse hyperbolic sine: close where most hosts are, and far enough out for any.
_GRID = np.linspace(0, np.arcsinh(1e6), 1000)


def middle(values: np.ndarray) -> np.ndarray:
    """Medians down the columns, passing over NaN; NaN where there is nothing."""
    if not len(values):
        return np.full(values.shape[1:], np.nan)
    ordered = np.sort(values, axis=0)
    count = np.isfinite(ordered).sum(axis=0)
    low = np.maximum((count - 1) // 2, 0)[None]
    high = np.minimum(count // 2, len(values) - 1)[None]
    found = (np.take_along_axis(ordered, low, 0) + np.take_along_axis(ordered, high, 0))[0] / 2
    return np.where(count > 0, found, np.nan)


def scale(residuals: np.ndarray) -> np.ndarray:
    """Of the columns: the median distance from 0, as a standard deviation."""
    return 1.4826 * middle(np.abs(residuals))


def moderated(own: list[float], sizes: list[int]) -> list[tuple[float, float]]:
    """Scale and degrees of freedom of each group, drawn towards what is usual for all when a group is small."""
    usable = [s for s, n in zip(own, sizes, strict=True) if n >= 3 and math.isfinite(s)]
    common = float(np.median(usable)) if len(usable) > 1 else None
    found = []
    for s, n in zip(own, sizes, strict=True):
        freedom = max(EFFICIENCY * (n - 1), 0.5)
        if not math.isfinite(s):
            s = 0.0
        if common is not None:
            s = math.sqrt((freedom * s * s + PRIOR * common * common) / (freedom + PRIOR))
            freedom += PRIOR
        found.append((max(s, LEAST_SCALE), freedom))
    return found


def heaviness(surprise: np.ndarray) -> float:
    """How much heavier the tail is than a normal one's: the slope of -log p between two quantiles, at least 1."""
    surprise = surprise[np.isfinite(surprise)]
    if len(surprise) < ENOUGH:
        return 1.0
    inner, outer = np.quantile(surprise, [INNER, OUTER])
    return max(1.0, float(outer - inner) / math.log((1 - INNER) / (1 - OUTER)))


@functools.lru_cache(maxsize=256)
def _tails(freedom: float) -> np.ndarray:
    """-log of both tails of Student's t along _GRID. The continued fraction behind it costs 10 ms, for one value as for
    a thousand."""
    p = t_tails(np.sinh(_GRID), np.full(_GRID.shape, freedom))
    return -np.log(np.clip(p, 1e-300, 1))


def surprises(z: np.ndarray, freedom: float, sides: int = 2) -> np.ndarray:
    """-log of the chance of being so far out; to a thousandth where it is decided."""
    found = np.interp(np.arcsinh(np.abs(z)), _GRID, _tails(float(f"{freedom:.3g}")))
    if sides == 1:
        found = np.where(z > 0, found + math.log(2), 0.0)
    return np.where(np.isfinite(z), found, np.nan)


def calibrated(surprise: np.ndarray, slope: float) -> np.ndarray:
    """What is left of a surprise when tails are so heavy."""
    inner = -math.log(1 - INNER)
    return np.where(surprise > inner, inner + (surprise - inner) / slope, surprise)
