"""The arithmetic behind a figure. Times are nanoseconds a call, kept by process: {process: array of rounds}.

Rounds of one process are correlated (one set of pages, one layout), so an interval resamples whole processes first and
rounds within them second. Comparisons are of the same round of the same process: log ratios, whose median is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Samples = Mapping[int, np.ndarray]

QUANTILES = {
    "min": 0.0,
    "q05": 0.05,
    "q25": 0.25,
    "median": 0.5,
    "q75": 0.75,
    "q95": 0.95,
    "max": 1.0,
}
RESAMPLES = 400
# Below this a difference is not told apart however quiet the machine was: the clock and the loop have their own grain.
LEAST_FLOOR = 0.005
# With fewer rounds than this, halving them for an honest pick leaves too little to pick from.
LEAST_TO_HALVE = 8


@dataclass(frozen=True)
class Ratio:
    """How many times as long as the other it takes, with a 95 % interval."""

    median: float
    low: float
    high: float

    def as_dict(self) -> dict[str, float]:
        return {"median": self.median, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Verdict:
    """Who leads a row: `fastest` alone, or None and all those that cannot be told apart in `tied`."""

    fastest: str | None
    tied: tuple[str, ...]
    lead: Ratio | None  # of the runner-up over the fastest


def pooled(samples: Samples) -> np.ndarray:
    return np.concatenate([samples[p] for p in sorted(samples)]) if samples else np.empty(0)


def quantiles(samples: Samples) -> dict[str, float]:
    values = np.quantile(pooled(samples), list(QUANTILES.values()))
    return dict(zip(QUANTILES, (float(v) for v in values), strict=True))


def log_ratios(samples: Samples, reference: Samples) -> list[np.ndarray]:
    """Round by round, for the processes that both were measured in."""
    pairs = []
    for process in sorted(set(samples) & set(reference)):
        count = min(len(samples[process]), len(reference[process]))
        if count:
            pairs.append(np.log(samples[process][:count]) - np.log(reference[process][:count]))
    return pairs


def bootstrap(
    processes: Sequence[np.ndarray], rng: np.random.Generator, resamples: int = RESAMPLES
) -> Ratio | None:
    """Median of the log ratios, as a ratio, with the 95 % interval of the resampled medians."""
    processes = [p for p in processes if len(p)]
    if not processes:
        return None
    median = float(np.median(np.concatenate(processes)))
    rounds = max(len(p) for p in processes)
    # Short processes are filled with NaN, drawn over by index modulo their own length.
    table = np.full((len(processes), rounds), np.nan)
    lengths = np.array([len(p) for p in processes])
    for row, values in zip(table, processes, strict=True):
        row[: len(values)] = values
    chosen = rng.integers(len(processes), size=(resamples, len(processes)))
    fraction = rng.random((resamples, len(processes), rounds))
    index = (fraction * lengths[chosen][:, :, None]).astype(np.intp)
    drawn = table[chosen[:, :, None], index].reshape(resamples, -1)
    low, high = np.quantile(np.median(drawn, axis=1), (0.025, 0.975))
    return Ratio(
        float(np.exp(median)), float(np.exp(min(low, median))), float(np.exp(max(high, median)))
    )


def noise_floor(twins: Iterable[tuple[Samples, Samples]]) -> float | None:
    """What a routine differs from itself: the 95 % quantile, over rows, of the difference between the two measurements
    of one routine, by the statistic that every comparison uses (the median over all processes and rounds). A fraction:
    0.01 is one per cent."""
    differences = []
    for a, b in twins:
        pairs = log_ratios(a, b)
        if pairs:
            differences.append(abs(float(np.expm1(np.median(np.concatenate(pairs))))))
    if not differences:
        return None
    return max(LEAST_FLOOR, float(np.quantile(differences, 0.95)))


def _half(samples: Samples, odd: int) -> dict[int, np.ndarray]:
    return {process: values[odd::2] for process, values in samples.items()}


def verdict(
    cells: Mapping[str, Samples], floor: float, rng: np.random.Generator, resamples: int = RESAMPLES
) -> Verdict:
    """Picks the fastest on one half of the rounds and measures its lead on the other, since the best of many is partly
    the luckiest of many."""
    cells = {name: samples for name, samples in cells.items() if len(pooled(samples))}
    if not cells:
        return Verdict(None, (), None)
    if len(cells) == 1:
        return Verdict(None, (), None)
    halve = min(len(pooled(samples)) for samples in cells.values()) >= LEAST_TO_HALVE
    pick = {name: _half(s, 0) if halve else s for name, s in cells.items()}
    judge = {name: _half(s, 1) if halve else s for name, s in cells.items()}
    best = min(pick, key=lambda name: float(np.median(pooled(pick[name]))))
    tied = [best]
    lead = None
    for name in cells:
        if name == best:
            continue
        ratio = bootstrap(log_ratios(judge[name], judge[best]), rng, resamples)
        if ratio is None:
            continue
        if not (ratio.median > 1 + floor and ratio.low > 1):
            tied.append(name)
        if lead is None or ratio.median < lead.median:
            lead = ratio
    if len(tied) > 1:
        return Verdict(None, tuple(tied), None)
    return Verdict(best, (), lead)
