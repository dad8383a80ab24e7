"""The arithmetic behind a figure. Times are nanoseconds a call, kept by process: {process: array of rounds}.

Rounds of one process are correlated (one set of pages, one layout), so an interval resamples whole processes first and
rounds within them second, and is no narrower than a t test of the processes has it. Comparisons are of the same round
of the same process: log ratios, whose median is reported.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from wherry import significance

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
# Nor do fewer than this on one half tell anything about the other.
LEAST_TO_JUDGE = 3
# Whoever takes so many times as long is no tie: where that is not told from chance, the rounds are too few or too far
# apart to tell anything.
FAR = 2.0
# Why a row has no verdict.
ONE_SAMPLE, NOISE = "one sample", "noise"


@dataclass(frozen=True)
class Ratio:
    """How many times as long as the other it takes, with a 95 % interval; of a single sample there is none."""

    median: float
    low: float | None
    high: float | None
    p_corrected: float | None = None  # where it was judged among many

    @property
    def told(self) -> bool:
        """Whether there is an interval, and with it anything to tell the ratio from 1 by."""
        return self.low is not None and self.high is not None

    def as_dict(self) -> dict[str, float | None]:
        own = {"median": self.median, "low": self.low, "high": self.high}
        return own if self.p_corrected is None else own | {"p_corrected": self.p_corrected}


@dataclass(frozen=True)
class Verdict:
    """Who leads a row: `fastest` alone, or None and all those that cannot be told apart in `tied`, however far apart
    their figures are. Neither where the samples do not tell: `undecided` has the reason."""

    fastest: str | None
    tied: tuple[str, ...]
    lead: Ratio | None  # of the runner-up over the fastest
    undecided: str | None = None


def pooled(samples: Samples) -> np.ndarray:
    return np.concatenate([samples[p] for p in sorted(samples)]) if samples else np.empty(0)


def quantiles(samples: Samples) -> dict[str, float]:
    values = np.quantile(pooled(samples), list(QUANTILES.values()))
    return dict(zip(QUANTILES, (float(v) for v in values), strict=True))


def paired(samples: Samples, reference: Samples) -> dict[int, np.ndarray]:
    """Log ratios round by round, of the processes that both were measured in."""
    pairs = {}
    for process in sorted(set(samples) & set(reference)):
        count = min(len(samples[process]), len(reference[process]))
        if count:
            pairs[process] = np.log(samples[process][:count]) - np.log(reference[process][:count])
    return pairs


def log_ratios(samples: Samples, reference: Samples) -> list[np.ndarray]:
    """The same without the processes' numbers, in their order."""
    return list(paired(samples, reference).values())


def bootstrap(
    processes: Sequence[np.ndarray], rng: np.random.Generator, resamples: int = RESAMPLES
) -> Ratio | None:
    """Median of the log ratios, as a ratio, with the 95 % interval of the resampled medians."""
    processes = [p for p in processes if len(p)]
    if not processes:
        return None
    median = statistics.median(np.concatenate(processes).tolist())
    if sum(map(len, processes)) < 2:
        return Ratio(float(np.exp(median)), None, None)
    rounds = max(len(p) for p in processes)
    # One row of all, and where in it each process begins; those that are short are drawn from by their own length.
    values = np.concatenate(processes)
    lengths = np.array([len(p) for p in processes])
    begins = np.cumsum(lengths) - lengths
    chosen = rng.integers(len(processes), size=(resamples, len(processes)))
    fraction = rng.random((resamples, len(processes), rounds))
    index = (fraction * lengths[chosen][:, :, None]).astype(np.intp) + begins[chosen][:, :, None]
    return between(median, _medians(values.take(index.reshape(resamples, -1))))


def _medians(rows: np.ndarray) -> np.ndarray:
    """Of each row, which is put in another order; np.median would look for NaN as well, of which there is none."""
    half = rows.shape[1] // 2
    if rows.shape[1] % 2:
        rows.partition(half, axis=1)
        return rows[:, half]
    rows.partition((half - 1, half), axis=1)
    return (rows[:, half - 1] + rows[:, half]) / 2


def between(log: float, draws: np.ndarray) -> Ratio:
    """The ratio of this logarithm, with the 95 % interval of the resampled ones."""
    low, high = np.quantile(draws, (0.025, 0.975))
    return Ratio(float(np.exp(log)), float(np.exp(min(low, log))), float(np.exp(max(high, log))))


def widened(ratio: Ratio, half: float) -> Ratio:
    """With an interval of at least so much, as a logarithm, to both sides. Two or three processes are seldom as far
    apart as many would be, and resampling makes no others of them: of two that differ every other interval would leave
    out the truth."""
    if not ratio.told:
        return ratio
    return replace(
        ratio,
        low=min(ratio.low, ratio.median * float(np.exp(-half))),
        high=max(ratio.high, ratio.median * float(np.exp(half))),
    )


def interval(
    processes: Sequence[np.ndarray], rng: np.random.Generator, resamples: int = RESAMPLES
) -> Ratio | None:
    """As `bootstrap`, and no narrower than what the few processes (of one, its rounds) tell by a t test. For a
    comparison that stands alone; of many, those of all tell how far processes are apart."""
    ratio = bootstrap(processes, rng, resamples)
    if ratio is None:
        return None
    return widened(ratio, float(significance.half_intervals([significance.units(processes)])[0]))


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


def can_halve(cells: Iterable[Samples]) -> bool:
    """Whether one half of the rounds is enough to pick on, and the other to judge by."""
    cells = list(cells)
    return (
        min(len(pooled(samples)) for samples in cells) >= LEAST_TO_HALVE
        and min(len(pooled(_half(samples, 1))) for samples in cells) >= LEAST_TO_JUDGE
    )


@dataclass(frozen=True)
class Race:
    """Who was the fastest of a row on one half of the rounds, and how the others compare with it on the other half."""

    best: str | None
    others: Mapping[str, tuple[Ratio, np.ndarray]]  # with what is independent of the log ratios
    undecided: str | None = None  # why nobody can be compared


def race(
    cells: Mapping[str, Samples], rng: np.random.Generator, resamples: int = RESAMPLES
) -> Race:
    """Picks the fastest on one half of the rounds and measures its lead on the other, since the best of many is partly
    the luckiest of many."""
    cells = {name: samples for name, samples in cells.items() if len(pooled(samples))}
    if len(cells) < 2:
        return Race(None, {})
    # Whoever has a single sample, where the others have more, runs in no race.
    cells = {name: samples for name, samples in cells.items() if len(pooled(samples)) > 1}
    if len(cells) < 2:
        return Race(None, {}, ONE_SAMPLE)
    halve = can_halve(cells.values())
    pick = {name: _half(s, 0) if halve else s for name, s in cells.items()}
    judge = {name: _half(s, 1) if halve else s for name, s in cells.items()}
    best = min(pick, key=lambda name: statistics.median(pooled(pick[name]).tolist()))
    others = {}
    for name in cells:
        pairs = log_ratios(judge[name], judge[best])
        ratio = None if name == best else bootstrap(pairs, rng, resamples)
        if ratio is not None and ratio.told:
            others[name] = (ratio, significance.units(pairs))
    return Race(best, others, None if others else ONE_SAMPLE)


def decide(own: Race, floor: float, p: Mapping[str, float]) -> Verdict:
    """`p`: of each of the others, corrected for all that are judged beside it."""
    if own.best is None or own.undecided:
        return Verdict(None, (), None, own.undecided)
    calls = {name: call(ratio, floor, p[name]) for name, (ratio, _) in own.others.items()}
    if {"tie", "faster"} & set(calls.values()):
        tied = [name for name, said in calls.items() if said != "slower"]
        return Verdict(None, (own.best, *tied), None)
    if None in calls.values():
        return Verdict(None, (), None, NOISE)
    name = min(own.others, key=lambda name: own.others[name][0].median)
    return Verdict(own.best, (), replace(own.others[name][0], p_corrected=p[name]))


def decide_all(races: Sequence[Race], floor: float) -> list[Verdict]:
    """Of all rows of an experiment, corrected together."""
    own = [units for one in races for _, units in one.others.values()]
    p = iter(significance.corrected(significance.p_values(own)))
    halves = iter(significance.half_intervals(own))
    races = [
        replace(
            one,
            others={
                name: (widened(ratio, float(next(halves))), units)
                for name, (ratio, units) in one.others.items()
            },
        )
        for one in races
    ]
    return [
        decide(one, floor, {name: float(value) for name, value in zip(one.others, p, strict=False)})
        for one in races
    ]


def verdict(
    cells: Mapping[str, Samples], floor: float, rng: np.random.Generator, resamples: int = RESAMPLES
) -> Verdict:
    """Of a row that stands alone."""
    return decide_all([race(cells, rng, resamples)], floor)[0]


def call(ratio: Ratio, floor: float, p_corrected: float) -> str | None:
    """What a cell is called against its reference; None where the samples do not tell."""
    if not ratio.told:
        return None
    if p_corrected < significance.LEVEL:
        if ratio.median > 1 + floor and ratio.low > 1:
            return "slower"
        if ratio.median < 1 / (1 + floor) and ratio.high < 1:
            return "faster"
    return "tie" if 1 / FAR < ratio.median < FAR else None
