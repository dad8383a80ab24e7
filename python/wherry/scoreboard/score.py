"""From samples to the score. A region's figure is the geometric mean over its rows; a ratio is of paired rounds, with
an interval that draws the same processes for every row, and is no narrower than a t test of the processes has it.
Whoever is picked as the best of many is measured where it was not picked: in each process stands the one that was the
best in the others, since a lucky layout lasts as long as its process; of a single one half of the rounds picks.
Verdicts are corrected for as many regions as there are, since two or three processes may all differ the same way by
chance."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from wherry import significance, stats
from wherry.stats import Ratio, Samples

# Row number and routine to samples.
Table = Mapping[tuple[int, str], Samples]

# Who stands for the best of many; no routine has such a name.
_BEST = "(best)"

AHEAD, TIE, UNDECIDED, BEHIND = "ahead", "tie", "undecided", "behind"


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
    units: Mapping[int, float]  # what is independent: by process, or of a single one by round
    half: float = 0.0  # of the interval, what a t test asks for
    p: float = 1.0  # corrected for all that it was judged beside

    def ratio(self) -> Ratio:
        if len(self.units) < 2:
            return Ratio(float(np.exp(self.log)), None, None)
        return stats.widened(stats.between(self.log, self.draws), self.half)


def _together(units: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """Their mean, of the processes that all have."""
    common = set.intersection(*(set(own) for own in units)) if units else set()
    return {key: float(np.mean([own[key] for own in units])) for key in sorted(common)}


def mean(estimates: Sequence[Estimate]) -> Estimate:
    return Estimate(
        float(np.mean([e.log for e in estimates])),
        np.mean([e.draws for e in estimates], axis=0),
        _together([e.units for e in estimates]),
    )


def judged(estimates: Sequence[Estimate | None]) -> list[Estimate | None]:
    """Each with what all of them tell of how far processes are apart, corrected for as many."""
    own = [np.array(list(e.units.values())) for e in estimates if e is not None]
    halves = iter(significance.half_intervals(own))
    p = iter(significance.corrected(significance.p_values(own)))
    return [
        None if e is None else replace(e, half=float(next(halves)), p=float(next(p)))
        for e in estimates
    ]


class Judge:
    """Compares routines over rows; holds the samples by half."""

    def __init__(self, table: Table, rng: np.random.Generator, resamples: int):
        self.rng = rng
        self.resamples = resamples
        self.all = dict(table)
        of_rows: dict[int, list[Samples]] = {}
        for (row, _), samples in table.items():
            of_rows.setdefault(row, []).append(samples)
        self.halved = {row: stats.can_halve(own) for row, own in of_rows.items()}
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
            found.append(statistics.median(np.concatenate(pairs).tolist()))
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
        return Estimate(log, np.mean(draws, axis=0), self._units(table, rows, a, b))

    @staticmethod
    def _units(table: Table, rows: Sequence[int], a: str, b: str) -> dict[int, float]:
        """About the figure of all rows, as far as each process is from the others in the rows that it has: a process
        that was left out of one row still counts in the others."""
        pairs: list[dict[int, np.ndarray]] = []
        for row in rows:
            own = {
                process: stats.log_ratios({process: samples}, table[row, b])
                for process, samples in table[row, a].items()
            }
            pairs.append({process: logs[0] for process, logs in own.items() if logs})
        if len({process for own in pairs for process in own}) == 1:
            return _together([dict(enumerate(next(iter(own.values())))) for own in pairs])
        middles = [statistics.median(np.concatenate(list(own.values())).tolist()) for own in pairs]
        apart: dict[int, list[float]] = {}
        for own, middle in zip(pairs, middles, strict=True):
            for process, logs in own.items() if len(own) > 1 else ():
                apart.setdefault(process, []).append(statistics.median(logs.tolist()) - middle)
        log = float(np.mean(middles))
        return {process: log + float(np.mean(own)) for process, own in sorted(apart.items())}

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

    def against_best(
        self, groups: Sequence[Sequence[int]], names: Sequence[str], whose: str, usual: str
    ) -> list[Estimate | None]:
        """Of each group of rows, `whose` time over that of the best of `names` over all groups, as the other processes
        have it. `usual`: the best of all, where there are no others."""
        processes = {p for rows in groups for row in rows for p in self.all[row, whose]}
        chosen = {}
        for process in sorted(processes) if len(processes) > 1 else ():
            logs = {
                name: [self._point_without(process, r, name, whose) for r in groups]
                for name in names
            }
            usable = [name for name in names if None not in logs[name]]
            chosen[process] = min(usable, key=lambda name: sum(logs[name])) if usable else usual
        found = []
        for rows in groups:
            table = {(row, whose): self.all[row, whose] for row in rows}
            for row in rows:
                there = {p: self.all[row, name].get(p) for p, name in chosen.items()}
                table[row, _BEST] = {p: ns for p, ns in there.items() if ns is not None}
            own = self._estimate(table, rows, whose, _BEST)
            found.append(own or self.compare(self.judge, rows, whose, usual))
        return found

    def _point_without(self, process: int, rows: Sequence[int], a: str, b: str) -> float | None:
        table = {
            (row, name): {p: ns for p, ns in self.all[row, name].items() if p != process}
            for row in rows
            for name in (a, b)
        }
        return self.point(table, rows, a, b)


_WORDS = {"faster": AHEAD, "slower": BEHIND, "tie": TIE, None: None}


def verdict(own: Estimate, floor: float) -> str | None:
    """Of a time over another's: a difference within the noise floor is a tie, one beyond it that chance may have done
    undecided. None where the samples do not tell."""
    ratio = own.ratio()
    word = _WORDS[stats.call(ratio, floor, own.p)]
    near = 1 / (1 + floor) <= ratio.median <= 1 + floor
    return UNDECIDED if word == TIE and not near else word


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
    """What one region gave; estimates are kept for the means over regions. Its verdict and its marks come with those of
    all other regions."""

    name: str
    rows: tuple[int, ...]
    best: str | None
    to_best: Estimate | None
    to_libc: Estimate | None
    leader: str | None  # the fastest on the picking half, peer or not
    others: Mapping[str, Estimate]  # over the leader
    fastest: str | None = None
    tied: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()
    verdict: str | None = None


def region(
    judge: Judge,
    name: str,
    rows: Sequence[int],
    *,
    wherry: str,
    libc: str,
    envelope: Sequence[str],
    beside: Sequence[str],
) -> Scored:
    """`envelope`: who can be the best peer; `beside`: who is shown and may be marked as fastest, but is no peer."""
    peers = [peer for peer in envelope if judge.has(rows, peer)]
    best = judge.best(rows, peers, wherry)
    to_best = judge.against_best([rows], peers, wherry, best)[0] if best else None
    to_libc = judge.compare(judge.all, rows, wherry, libc) if judge.has(rows, libc) else None
    everybody = [wherry, *(n for n in dict.fromkeys([*envelope, *beside]) if judge.has(rows, n))]
    leader = judge.best(rows, everybody, wherry) if len(everybody) > 1 else None
    others = {}
    for other in everybody if leader else ():
        own = None if other == leader else judge.compare(judge.judge, rows, other, leader)
        if own is not None:
            others[other] = own
    return Scored(name, tuple(rows), best, to_best, to_libc, leader, others)


def settled(regions: Sequence[Scored], *, wherry: str, floor: float) -> list[Scored]:
    """With verdicts and marks. What is said of Wherry is corrected among what is said of it elsewhere, so that many
    slow routines beside it make no difference."""
    to_best = judged([own.to_best for own in regions])
    to_libc = judged([own.to_libc for own in regions])
    others = iter(judged([e for own in regions for e in own.others.values()]))
    found = []
    for own, best, libc in zip(regions, to_best, to_libc, strict=True):
        marks = {name: verdict(next(others), floor) for name in own.others}
        word = verdict(best, floor) if best else None
        # The mark and the word are of the same two, and agree.
        if best and own.leader == own.best and wherry in marks:
            marks[wherry] = word
        if best and own.leader == wherry and own.best in marks:
            marks[own.best] = {AHEAD: BEHIND, BEHIND: TIE}.get(word, word)
        tied = [name for name, mark in marks.items() if mark in (TIE, AHEAD)]
        unsure = [name for name, mark in marks.items() if mark == UNDECIDED]
        alone = own.leader if marks and set(marks.values()) == {BEHIND} else None
        if tied:
            tied.insert(0, own.leader)
        elif unsure:
            unsure.insert(0, own.leader)
        found.append(
            replace(
                own,
                to_best=best,
                to_libc=libc,
                fastest=alone,
                tied=tuple(tied),
                unsure=tuple(unsure),
                verdict=word,
            )
        )
    return found


@dataclass(frozen=True)
class Total:
    """An op over its base regions."""

    regions: int
    to_libc: Estimate | None
    to_envelope: Estimate | None
    single: str | None
    to_single: Estimate | None
    worst: str | None

    def estimates(self) -> tuple[Estimate | None, ...]:
        return self.to_libc, self.to_envelope, self.to_single


def totals(of_ops: Sequence[Total]) -> list[Total]:
    """With intervals that all of them tell together."""
    own = iter(judged([estimate for total in of_ops for estimate in total.estimates()]))
    return [
        replace(t, to_libc=next(own), to_envelope=next(own), to_single=next(own)) for t in of_ops
    ]


def total(judge: Judge, scored: Sequence[Scored], *, wherry: str, envelope: Sequence[str]) -> Total:
    """Regions weigh the same. A peer that lacks one of them cannot be the best single one."""
    with_best = [s for s in scored if s.to_best is not None]
    with_libc = [s.to_libc for s in scored if s.to_libc is not None]
    single, to_single = None, None
    complete = [n for n in envelope if with_best and all(judge.has(s.rows, n) for s in with_best)]
    logs = {n: [judge.point(judge.pick, s.rows, n, wherry) for s in with_best] for n in complete}
    complete = [name for name in complete if None not in logs[name]]
    if complete:
        single = min(complete, key=lambda name: sum(logs[name]))
        own = judge.against_best([s.rows for s in with_best], complete, wherry, single)
        to_single = mean(own) if None not in own else None
    worst = max(with_best, key=lambda s: s.to_best.log, default=None)
    return Total(
        len(with_best),
        mean(with_libc) if with_libc else None,
        mean([s.to_best for s in with_best]) if with_best else None,
        single,
        to_single,
        worst.name if worst else None,
    )
