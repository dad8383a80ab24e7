"""From runs to figures: of each metric both sides, their ratio round by round with an interval, and the noise.

The ratio of a round is that of the geometric means of its two runs of each side. The noise is taken from the same runs:
what a round's ratio would be if the sides were one is (±a ± b) / 2, with a and b the log ratios of each side's two runs
and signs drawn at random. The noise floor is what the median of as many such rounds stays below in 95 of 100 draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wherry import significance, stats
from wherry.ab.running import Ran

TIMES = ("cpu", "user", "system", "elapsed")
PARTS = ("user", "system")
METRICS = (*TIMES, "peak")
NAMES = {
    "cpu": "CPU time",
    "user": "user time",
    "system": "system time",
    "elapsed": "elapsed time",
    "peak": "peak memory",
}
# The kernel's own grain, in seconds; a part of the time of less than a thousand of them has no ratio worth a word.
GRAIN = 1e-6
LEAST_SHARE = 0.01
RESAMPLES = 4000
# From so few rounds an interval and a noise floor mean little.
FEW_ROUNDS = 4
# One round has no spread: what an interval and a noise floor would say of it is made up.
LEAST_SPREAD = 2


@dataclass(frozen=True)
class Figure:
    metric: str
    a: float  # median of all its runs; seconds or bytes
    b: float
    ratio: stats.Ratio | None  # B over A; None when there is nothing to divide
    floor: float  # as a fraction
    p: float
    call: str  # faster, slower, tie: of B
    rounds: tuple[float, ...]  # log ratios
    alike: tuple[tuple[float, ...], tuple[float, ...]]  # of each side to itself


def _values(rounds: Sequence[tuple[Ran, Ran, Ran, Ran]], metric: str) -> np.ndarray:
    table = np.array([[getattr(ran, metric) for ran in one] for one in rounds], dtype=float)
    return np.maximum(table, 1 if metric == "peak" else GRAIN)


def noise_floor(a: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> float:
    """Of the median of these rounds, from the log ratios of each side to itself."""
    n = len(a)
    rows = rng.integers(n, size=(RESAMPLES, n))
    signs = rng.choice((-1.0, 1.0), size=(2, RESAMPLES, n))
    null = (signs[0] * a[rows] + signs[1] * b[rows]) / 2
    far = float(np.quantile(np.abs(np.median(null, axis=1)), 0.95))
    return max(stats.LEAST_FLOOR, float(np.expm1(far)))


def of(rounds: Sequence[tuple[Ran, Ran, Ran, Ran]], metric: str, seed: int) -> Figure:
    rng = np.random.default_rng(seed)
    values = _values(rounds, metric)
    logs = np.log(values)
    a, b = float(np.median(values[:, :2])), float(np.median(values[:, 2:]))
    each = (logs[:, 2] + logs[:, 3] - logs[:, 0] - logs[:, 1]) / 2
    own = (logs[:, 0] - logs[:, 1], logs[:, 2] - logs[:, 3])
    floor = noise_floor(*own, rng)
    # The kernel splits the time of a short run by its ticks, and may count none on one of the two sides.
    unsplit = metric in PARTS and bool((values <= GRAIN).any())
    ratio = None if unsplit else stats.interval([each], rng, RESAMPLES)
    p = float(significance.p_values([each])[0]) if len(each) > 1 else 1.0
    call = "tie"
    if ratio is not None and len(each) >= FEW_ROUNDS:
        call = stats.call(ratio, floor, p) or "tie"
    return Figure(
        metric,
        a,
        b,
        ratio,
        floor,
        p,
        call,
        tuple(map(float, each)),
        tuple(tuple(map(float, side)) for side in own),
    )


def all_of(rounds: Sequence[tuple[Ran, Ran, Ran, Ran]], seed: int) -> dict[str, Figure]:
    return {metric: of(rounds, metric, seed) for metric in METRICS} if rounds else {}


def negligible(figures: dict[str, Figure], metric: str) -> bool:
    """A part of the time that is too small for its ratio to mean anything. The whole of a short run is exact."""
    if metric not in PARTS:
        return False
    own, whole = figures[metric], figures["cpu"]
    return own.ratio is None or max(own.a, own.b) < max(
        LEAST_SHARE * max(whole.a, whole.b), 1000 * GRAIN
    )
