"""From samples to the score. A region's figure is the geometric mean over its rows; a ratio is of paired rounds, with
an interval that draws the same processes for every row. Whoever is picked as the best of many is picked on one half of
the rounds and measured on the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wherry import stats
from wherry.stats import Ratio, Samples

# Row number and routine to samples.
Table = Mapping[tuple[int, str], Samples]

AHEAD, TIE, BEHIND = "ahead", "tie", "behind"


def halves(samples: Samples) -> tuple[Samples, Samples]:
    """(to pick on, to judge on): every second round."""
    return (
        {process: values[0::2] for process, values in samples.items()},
        {process: values[1::2] for process, values in samples.items()},
    )


@dataclass(frozen=True)
class Estimate:
    """A log ratio with its resampled values, so that estimates can be averaged before an interval is taken."""

    log: float
    draws: np.ndarray

    def ratio(self) -> Ratio:
        low, high = np.quantile(self.draws, (0.025, 0.975))
        return Ratio(
            float(np.exp(self.log)),
            float(np.exp(min(low, self.log))),
            float(np.exp(max(high, self.log))),
        )


def mean(estimates: Sequence[Estimate]) -> Estimate:
    return Estimate(
        float(np.mean([e.log for e in estimates])),
        np.mean([e.draws for e in estimates], axis=0),
    )


class Judge:
    """Compares routines over rows; holds the samples by half."""

    def __init__(self, table: Table, rng: np.random.Generator, resamples: int):
        self.rng = rng
        self.resamples = resamples
        self.all = dict(table)
        fewest: dict[int, int] = {}
        for (row, _), samples in table.items():
            count = len(stats.pooled(samples))
            fewest[row] = min(count, fewest.get(row, count))
        self.halved = {row: count >= stats.LEAST_TO_HALVE for row, count in fewest.items()}
        parts = {
            key: halves(samples) if self.halved[key[0]] else (samples, samples)
            for key, samples in table.items()
        }
        self.pick = {key: part[0] for key, part in parts.items()}
        self.judge = {key: part[1] for key, part in parts.items()}
        processes = max((len(s) for s in table.values()), default=1)
        # One choice of processes for all rows: what a process' layout does to one row it does to the next.
        self.chosen = rng.random((resamples, max(processes, 1)))
        self._known: dict[tuple, Estimate | None] = {}

    def has(self, rows: Sequence[int], name: str) -> bool:
        return bool(rows) and all((row, name) in self.all for row in rows)

    @staticmethod
    def point(table: Table, rows: Sequence[int], a: str, b: str) -> float | None:
        """Mean over the rows of the median log ratio of a's time to b's."""
        found = []
        for row in rows:
            pairs = stats.log_ratios(table[row, a], table[row, b])
            if not pairs:
                return None
            found.append(float(np.median(np.concatenate(pairs))))
        return float(np.mean(found)) if found else None

    def compare(self, table: Table, rows: Sequence[int], a: str, b: str) -> Estimate | None:
        """Asked again the answer is the same, so that a table's marks and its words agree."""
        key = (id(table), tuple(rows), a, b)
        if key not in self._known:
            self._known[key] = self._estimate(table, rows, a, b)
        return self._known[key]

    def _estimate(self, table: Table, rows: Sequence[int], a: str, b: str) -> Estimate | None:
        log = self.point(table, rows, a, b)
        if log is None:
            return None
        draws = [self._drawn(stats.log_ratios(table[row, a], table[row, b])) for row in rows]
        return Estimate(log, np.mean(draws, axis=0))

    def _drawn(self, pairs: Sequence[np.ndarray]) -> np.ndarray:
        lengths = np.array([len(p) for p in pairs])
        padded = np.full((len(pairs), lengths.max()), np.nan)
        for line, values in zip(padded, pairs, strict=True):
            line[: len(values)] = values
        process = (self.chosen[:, : len(pairs)] * len(pairs)).astype(np.intp)
        # Every process drawn gives as many rounds as the longest has: medians of equal weight.
        fraction = self.rng.random((*process.shape, padded.shape[1]))
        index = (fraction * lengths[process][:, :, None]).astype(np.intp)
        return np.median(padded[process[:, :, None], index].reshape(self.resamples, -1), axis=1)

    def best(self, rows: Sequence[int], names: Sequence[str], beside: str) -> str | None:
        """The fastest of `names` on the picking half; `beside` is whom all are paired with."""
        logs = {name: self.point(self.pick, rows, name, beside) for name in names}
        usable = [name for name in names if logs[name] is not None]
        return min(usable, key=lambda name: logs[name]) if usable else None


def verdict(ratio: Ratio, floor: float) -> str:
    """Of a time over another's: a difference within the noise floor or its own interval is a tie."""
    if ratio.median > 1 + floor and ratio.low > 1:
        return BEHIND
    if ratio.median < 1 / (1 + floor) and ratio.high < 1:
        return AHEAD
    return TIE


def region_floor(judge: Judge, twins: Table, regions: Sequence[Sequence[int]], of: str) -> float:
    """What `of` differs from itself in a region, by the statistic and the half of the rounds that judge a region."""
    found = []
    pick = {row: halves(s)[1] if judge.halved.get(row) else s for (row, _), s in twins.items()}
    for rows in regions:
        usable = [row for row in rows if row in pick and (row, of) in judge.judge]
        both = {(row, "twin"): pick[row] for row in usable}
        both |= {(row, of): judge.judge[row, of] for row in usable}
        log = Judge.point(both, usable, "twin", of)
        if log is not None:
            found.append(abs(float(np.expm1(log))))
    return max(stats.LEAST_FLOOR, float(np.quantile(found, 0.95))) if found else stats.LEAST_FLOOR


@dataclass(frozen=True)
class Scored:
    """What one region gave; estimates are kept for the means over regions."""

    name: str
    rows: tuple[int, ...]
    best: str | None
    to_best: Estimate | None
    to_libc: Estimate | None
    fastest: str | None
    tied: tuple[str, ...]
    verdict: str | None


def region(
    judge: Judge,
    name: str,
    rows: Sequence[int],
    *,
    wherry: str,
    libc: str,
    envelope: Sequence[str],
    beside: Sequence[str],
    floor: float,
) -> Scored:
    """`envelope`: who can be the best peer; `beside`: who is shown and may be marked as fastest, but is no peer."""
    peers = [peer for peer in envelope if judge.has(rows, peer)]
    best = judge.best(rows, peers, wherry)
    to_best = judge.compare(judge.judge, rows, wherry, best) if best else None
    to_libc = judge.compare(judge.all, rows, wherry, libc) if judge.has(rows, libc) else None
    everybody = [wherry, *(n for n in dict.fromkeys([*envelope, *beside]) if judge.has(rows, n))]
    fastest, tied = _leader(judge, rows, everybody, wherry, floor)
    word = verdict(to_best.ratio(), floor) if to_best else None
    return Scored(name, tuple(rows), best, to_best, to_libc, fastest, tied, word)


def _leader(
    judge: Judge, rows: Sequence[int], names: Sequence[str], beside: str, floor: float
) -> tuple[str | None, tuple[str, ...]]:
    if len(names) < 2:
        return None, ()
    best = judge.best(rows, names, beside)
    tied = [best]
    for name in names:
        if name == best:
            continue
        log = judge.point(judge.judge, rows, name, best)
        if log is not None and np.expm1(log) > floor:
            # Only who is near the floor needs the interval to be told apart.
            estimate = judge.compare(judge.judge, rows, name, best)
            if estimate.ratio().low > 1:
                continue
        tied.append(name)
    return (None, tuple(tied)) if len(tied) > 1 else (best, ())


@dataclass(frozen=True)
class Total:
    """An op over its base regions."""

    regions: int
    to_libc: Estimate | None
    to_envelope: Estimate | None
    single: str | None
    to_single: Estimate | None
    worst: str | None


def total(judge: Judge, scored: Sequence[Scored], *, wherry: str, envelope: Sequence[str]) -> Total:
    """Regions weigh the same. A peer that lacks one of them cannot be the best single one."""
    with_best = [s for s in scored if s.to_best is not None]
    with_libc = [s.to_libc for s in scored if s.to_libc is not None]
    single, to_single = None, None
    complete = [n for n in envelope if with_best and all(judge.has(s.rows, n) for s in with_best)]
    if complete:
        single = min(
            complete,
            key=lambda name: sum(judge.point(judge.pick, s.rows, name, wherry) for s in with_best),
        )
        to_single = mean([judge.compare(judge.judge, s.rows, wherry, single) for s in with_best])
    worst = max(with_best, key=lambda s: s.to_best.log, default=None)
    return Total(
        len(with_best),
        mean(with_libc) if with_libc else None,
        mean([s.to_best for s in with_best]) if with_best else None,
        single,
        to_single,
        worst.name if worst else None,
    )
