"""Whether a difference is one, when a table has many of them.

Each comparison is a handful of process medians of a log ratio; its p-value is that of a t test against 0. With two or
three processes a variance of its own says little, so it is drawn towards that of all comparisons of the table, as far
as they agree (the moderated t of Smyth, 2004). Of a table with many cells some are far from 0 by chance alone: p-values
are corrected by the procedure of Benjamini and Hochberg (1995), so that of all the cells called faster or slower at
most one in twenty is expected to be neither.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence

import numpy as np

LEVEL = 0.05
METHOD = "Benjamini-Hochberg"
TEST = "moderated t test of the processes' median log ratios"
TEST_OF_ONE = (
    "t test of the rounds' log ratios: one process, so what processes differ by is not in it"
)
TEST_OF_ROUNDS = "t test of the rounds' log ratios, each of runs in fresh processes"
# Identical figures have no variance; a clock has grain all the same.
LEAST_VARIANCE = 1e-12
# Comparisons of one table are never so much alike that a variance should count for nothing of its own.
MOST_PRIOR = 30.0
_STEPS = 300
_TINY = 1e-300


def units(processes: Sequence[np.ndarray]) -> np.ndarray:
    """What is independent: the median of each process; of a single one its rounds."""
    processes = [p for p in processes if len(p)]
    if len(processes) == 1:
        return np.asarray(processes[0], dtype=float)
    return np.array([statistics.median(p.tolist()) for p in processes], dtype=float)


# ---- special functions ----------------------------------------------------------------------------------------------


def _continued(x: np.ndarray, a: np.ndarray | float, b: np.ndarray | float) -> np.ndarray:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    c = np.ones_like(x)
    d = 1 - (a + b) * x / (a + 1)
    d = 1 / np.where(np.abs(d) < _TINY, _TINY, d)
    found = d.copy()
    for m in range(1, _STEPS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + term * d
            d = 1 / np.where(np.abs(d) < _TINY, _TINY, d)
            c = 1 + term / c
            c = np.where(np.abs(c) < _TINY, _TINY, c)
            found = found * c * d
        if np.all(np.abs(c * d - 1) < 1e-13):
            break
    return found


def t_tails(t: np.ndarray, df: np.ndarray) -> np.ndarray:
    """Both tails of Student's t."""
    t, df = (np.atleast_1d(np.asarray(v, dtype=float)) for v in (t, df))
    t, df = np.broadcast_arrays(np.abs(t), df)
    a = df / 2
    # x^a (1 - x)^b with the logarithms taken so that neither end loses its digits.
    x = df / (df + t * t)
    rest = t * t / (df + t * t)
    gammas = np.array([math.lgamma(v + 0.5) - math.lgamma(v) for v in a.ravel()]).reshape(a.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        front = np.exp(gammas - math.lgamma(0.5) + a * np.log(x) + 0.5 * np.log(rest))
        # On the other side of this the fraction takes hundreds of terms.
        near = x < (a + 1) / (a + 2.5)
        far = ~near
        found = np.empty_like(x)
        found[near] = front[near] * _continued(x[near], a[near], 0.5) / a[near]
        found[far] = 1 - front[far] * 2 * _continued(rest[far], 0.5, a[far])
    return np.clip(np.where(t == 0, 1.0, found), 0.0, 1.0)


def digamma(x: float) -> float:
    shift = 0.0
    while x < 6:
        shift -= 1 / x
        x += 1
    own = 1 / (x * x)
    return shift + math.log(x) - 0.5 / x - own * (1 / 12 - own * (1 / 120 - own / 252))


def trigamma(x: float) -> float:
    shift = 0.0
    while x < 6:
        shift += 1 / (x * x)
        x += 1
    own = 1 / (x * x)
    return shift + 1 / x + own / 2 + own / x * (1 / 6 - own * (1 / 30 - own / 42))


def trigamma_inverse(y: float) -> float:
    """By bisection of the logarithm: it falls from infinity to 0."""
    low, high = math.log(1e-6), math.log(1e8)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if trigamma(math.exp(middle)) > y else (low, middle)
    return math.exp((low + high) / 2)


# ---- the test -------------------------------------------------------------------------------------------------------


def prior(variances: np.ndarray, freedom: np.ndarray) -> tuple[float, float]:
    """(degrees of freedom, variance) of what all comparisons have in common."""
    if len(variances) < 2:
        return 0.0, 0.0
    halves = freedom / 2
    own = np.log(variances) - np.array([digamma(v) - math.log(v) for v in halves])
    spread = float(np.var(own, ddof=1)) - float(np.mean([trigamma(v) for v in halves]))
    worth = MOST_PRIOR if spread <= 0 else min(2 * trigamma_inverse(spread), MOST_PRIOR)
    centre = float(np.mean(own)) + digamma(worth / 2) - math.log(worth / 2)
    return worth, math.exp(centre)


def _moderated(
    comparisons: Sequence[np.ndarray],
) -> tuple[list[int], np.ndarray, np.ndarray, np.ndarray]:
    """Which comparisons have two units and more; of those the mean, its standard error and the degrees of freedom."""
    usable = [i for i, own in enumerate(comparisons) if len(own) >= 2]
    if not usable:
        return [], np.empty(0), np.empty(0), np.empty(0)
    counts = np.array([len(comparisons[i]) for i in usable], dtype=float)
    means = np.array([np.mean(comparisons[i]) for i in usable])
    variances = np.array([np.var(comparisons[i], ddof=1) for i in usable])
    variances = np.maximum(variances, LEAST_VARIANCE)
    worth, centre = prior(variances, counts - 1)
    freedom = worth + counts - 1
    moderated = (worth * centre + (counts - 1) * variances) / freedom
    return usable, means, np.sqrt(moderated / counts), freedom


def p_values(comparisons: Sequence[np.ndarray]) -> np.ndarray:
    """One for each; 1 where there is nothing to tell by."""
    found = np.ones(len(comparisons))
    usable, means, errors, freedom = _moderated(comparisons)
    if usable:
        found[usable] = t_tails(means / errors, freedom)
    return found


def half_intervals(comparisons: Sequence[np.ndarray], level: float = LEVEL) -> np.ndarray:
    """Half of each mean's interval, by the same test: what it leaves out has a p-value below the level. 0 where there
    is nothing to tell by."""
    found = np.zeros(len(comparisons))
    usable, _, errors, freedom = _moderated(comparisons)
    if usable:
        found[usable] = errors * [t_within(float(df), level) for df in freedom]
    return found


def corrected(p: np.ndarray) -> np.ndarray:
    """By Benjamini and Hochberg: what to hold against the level in place of p."""
    p = np.asarray(p, dtype=float)
    if not len(p):
        return p
    order = np.argsort(p)
    scaled = p[order] * len(p) / np.arange(1, len(p) + 1)
    found = np.empty_like(p)
    found[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return found


@functools.cache
def t_within(df: float, level: float = LEVEL) -> float:
    """What all but this share of Student's t lies within, on both sides of 0."""
    low, high = 0.0, 1.0
    while t_tails(high, df)[0] > level:
        low, high = high, 4 * high
    while high - low > 1e-6 * high:
        points = np.linspace(low, high, 33)
        first = int(np.argmax(t_tails(points, df) <= level))
        low, high = float(points[first - 1]), float(points[first])
    return high


def slope(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Of the line through these points by least squares, with the half of its 95 % interval, by how far the points are
    from the line. Needs three points."""
    across = np.asarray(x, float) - np.mean(x)
    own = float(across @ np.asarray(y, float) / (across @ across))
    far = np.asarray(y, float) - np.mean(y) - own * across
    error = math.sqrt(float(far @ far) / (len(x) - 2) / float(across @ across))
    return own, t_within(len(x) - 2) * error


def half_interval(values: Sequence[float]) -> float:
    """Half of the 95 % interval of the mean of two and more independent values."""
    own = np.asarray(values, dtype=float)
    return t_within(len(own) - 1) * float(own.std(ddof=1)) / math.sqrt(len(own))
