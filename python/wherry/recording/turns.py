"""What the turns of a trial tell of the whole program.

For a millisecond or two all calls of a process go to libc's routines, then as long to those that are tried, in pairs in
random order (preload/recorder/turns.c). How far the program came in a turn is told by how many calls it made, or how
many larger ones, or their bytes. So a pair compares the program with the one and with the other, neighbours in time
and in what it was doing, with all that a routine does to the code around it.

A program does not make calls evenly, but whether a turn falls on many or on few does not depend on whose turn it is.
So the logarithms of the two turns' times a call differ by the routines' effect on average, and the spread of many pairs
tells how sure that is; that of groups of consecutive ones too, since what a program does lasts longer than a pair.

All that is of one run. Another one has other pages and addresses, and a routine gains another amount there; how much,
several runs tell. Where there are none, what programs were found to differ by is taken."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from wherry.recording.trial import summed as summed_calls
from wherry.recording.trial import whom
from wherry.significance import half_interval, t_within
from wherry.units import percent, signed

# By which it is told how far the program came, by their place in the recorder's fields.
MEASURES = {"calls": 1, "larger": 2, "bytes": 3}
# Fewer tell nothing; of those that last each has dozens of the calls that it is about.
LEAST_PAIRS, LEAST_LASTING_PAIRS = 24, 4
# In this share of the pairs both turns must have some of the measure.
LEAST_VALID = 0.8
# A pair counts by its time, but at most so many times as much as the one in the middle: one in which the program
# waited, or the kernel worked, would otherwise outweigh all others.
MOST_WEIGHT = 2.0
# Beyond so many deviations (of the middle ones) a pair's difference counts as at that.
MOST_DEVIATIONS = 4.0
LEAST_DEVIATION = 0.0125
# So many groups, of no fewer pairs each.
GROUPS, LEAST_OF_GROUP = 12, 4
# From so many runs on their differences count.
LEAST_RUNS = 3
# Below that, the deviation of runs from each other beyond what their pairs tell, as found in 18 to 42 single runs of
# each of nine programs (docs/record.md): of the run's time, but no more than copies took at most, and of what copies
# took.
APART, APART_OF_COPIES = 0.01, 0.02
# Above so wide a half interval, absolute or relative to the change, they tell less than single calls do, which see less
# of the program. Of a large change, too: turns that scatter by more are not about the routines.
MOST_HALF, MOST_HALF_OF_MUCH = 0.05, 0.1
# Nobody waits for more.
MOST_RUNS = 100
# No routine takes less of what another does.
LEAST_RATIO = 0.05
_TOLD = ("measure", "pairs", "covered", "change", "half")
# What stands between a program and its copies hides a part of what a routine gains there: of calls of up to SMALL
# bytes, and of larger ones, at most so much each, as far as programs were from what their turns told (docs/record.md):
# 1.25 where Perl joins strings and 0.3 where SQLite does; 2.9 where Perl cuts strings of 16 KB. It was always a gain.
HIDDEN_NS, HIDDEN_LARGER_NS, SMALL = 1.3, 3.0, 1024


@dataclass(frozen=True)
class Turned:
    """Change of the run's time as fractions, with half of its 95 % interval: that of these runs, and what another run
    may differ by. `covered`: the part of the run that the turns tell of; the rest is taken to be as it is. `hidden`:
    what more it may gain without the recorder. `lasting`: of what is covered, by turns that last."""

    measure: str
    pairs: int
    covered: float
    change: float
    within: float
    hidden: float = 0.0
    apart: float = 0.0
    lasting: float = 0.0

    @property
    def half(self) -> float:
        return math.hypot(self.within, self.apart)

    @property
    def low(self) -> float:
        return self.change - self.half - self.hidden

    @property
    def high(self) -> float:
        return self.change + self.half

    @property
    def tells(self) -> bool:
        return self.within <= max(MOST_HALF, min(abs(self.change) / 2, MOST_HALF_OF_MUCH))


@dataclass(frozen=True)
class _Mean:
    value: float
    error: float
    ticks: float  # that it stands for


def _mean(pairs: np.ndarray, measure: int) -> _Mean | None:
    """Mean logarithm of the tried turn's time a call over the usual one's."""
    ticks, done = pairs[:, :, 0], pairs[:, :, measure]
    valid = (done > 0).all(axis=1) & (ticks > 0).all(axis=1)
    if valid.sum() < max(LEAST_VALID * len(pairs), 2):
        return None
    ticks, done = ticks[valid], done[valid]
    ratio = np.log(ticks[:, 1] / done[:, 1]) - np.log(ticks[:, 0] / done[:, 0])
    weight = ticks.sum(axis=1)
    weight = np.minimum(weight, MOST_WEIGHT * np.median(weight))
    middle = np.median(ratio)
    deviation = max(1.4826 * float(np.median(np.abs(ratio - middle))), LEAST_DEVIATION)
    ratio = np.clip(
        ratio, middle - MOST_DEVIATIONS * deviation, middle + MOST_DEVIATIONS * deviation
    )
    value = float(np.average(ratio, weights=weight))
    error = max(_error(ratio, weight, value), _grouped_error(ratio, weight, value))
    return _Mean(value, error, float(weight.sum()))


def _error(ratio: np.ndarray, weight: np.ndarray, value: float) -> float:
    """Of the weighted mean `value`."""
    return float(np.sqrt(((weight * (ratio - value)) ** 2).sum()) / weight.sum())


def _grouped_error(ratio: np.ndarray, weight: np.ndarray, value: float) -> float:
    """By groups of consecutive pairs, which are alike where a program goes through phases."""
    if len(ratio) < GROUPS * LEAST_OF_GROUP:
        return 0.0
    begins = np.linspace(0, len(ratio), GROUPS, endpoint=False).astype(int)
    heavy = np.add.reduceat(weight, begins)
    means = np.add.reduceat(weight * ratio, begins) / heavy
    return _error(means, heavy, value) * math.sqrt(GROUPS / (GROUPS - 1))


@dataclass(frozen=True)
class _Told:
    """By pairs of one kind. Changes and half intervals are fractions of the run's time."""

    measure: str
    pairs: int
    covered: float
    change: float
    half: float
    runs: list[float]


def _told(
    runs: Sequence[Sequence[np.ndarray]], least_pairs: int, stands_for: float, ticks: float
) -> _Told | None:
    """`stands_for`: how many ticks of the run one of a turn does. `ticks`: of the whole run."""
    joined = [np.concatenate(own).astype(float) for own in runs if any(len(part) for part in own)]
    if not joined or sum(map(len, joined)) < least_pairs:
        return None
    whole = np.concatenate(joined)
    means = {name: _mean(whole, place) for name, place in MEASURES.items()}
    known = {name: own for name, own in means.items() if own is not None}
    if not known:
        return None
    # Which tells most does not depend on what it tells.
    measure = min(known, key=lambda name: known[name].error)
    mean = known[measure]
    by_run = [own.value for part in joined if (own := _mean(part, MEASURES[measure])) is not None]
    half = 1.96 * mean.error
    if len(whole) < LEAST_PAIRS:
        half *= t_within(len(whole) - 1) / 1.96
    if len(by_run) >= LEAST_RUNS:
        half = max(half, half_interval(by_run))
    covered = min(mean.ticks * stands_for / ticks, 1.0) if ticks > 0 else 0.0
    return _Told(
        measure,
        len(whole),
        covered,
        covered * math.expm1(mean.value),
        covered * math.exp(mean.value) * half,
        [covered * math.expm1(value) for value in by_run],
    )


def summed(
    runs: Sequence[Sequence[np.ndarray]],
    ticks_per_ns: float,
    cpu_s: float,
    elapsed_s: float,
    lasting: Sequence[Sequence[np.ndarray]] = (),
) -> dict | None:
    """As a mix keeps it. `runs`: of each run the pairs of its processes; `lasting`: those of turns that last. None when
    there are too few."""
    # Several threads or processes at once have more time than there is.
    ticks = max(min(cpu_s, elapsed_s), 0.0) * 1e9 * ticks_per_ns
    # As much of the program was before these as is in them.
    long = _told(lasting, LEAST_LASTING_PAIRS, 2.0, ticks)
    short = _told(runs, LEAST_PAIRS, 1.0, ticks)
    if long and short and long.covered > short.covered and abs(short.change) < short.half:
        # They tell of a program that begins, and of little else: what could be chance is not added to what is known.
        short = replace(short, change=0.0, runs=[0.0] * len(short.runs))
    found = [own for own in (long, short) if own is not None]
    if not found:
        return None
    most = max(found, key=lambda own: own.covered)
    by_run = most.runs
    if len(found) == 2 and len(long.runs) == len(short.runs):
        by_run = [a + b for a, b in zip(long.runs, short.runs, strict=True)]
    covered = sum(own.covered for own in found)
    part = 1 / max(covered, 1.0)  # what was before them is guessed
    return {
        "measure": most.measure,
        "pairs": sum(own.pairs for own in found),
        "covered": round(covered * part, 4),
        "change": round(sum(own.change for own in found) * part, 6),
        "half": round(math.hypot(*(own.half for own in found)) * part, 6),
        "runs": [round(value * part, 6) for value in by_run],
        **({"lasting": round(long.covered * part, 4)} if long else {}),
    }


def libc_alone(cpu_s: float, found: Mapping, ops: Mapping[str, Mapping]) -> float:
    """What the run had taken with libc's routines alone, where its calls went to others by turns of as long. `found`:
    the trial, as a mix keeps it; `ops`: the mix's counts."""
    own = found.get("turns")
    if own and own["covered"] > 0 and own["half"] <= max(MOST_HALF, abs(own["change"]) / 2):
        # In half of what turns cover the program came as far as it does in so much time with libc.
        as_far = 1 / max(1 + own["change"] / own["covered"], LEAST_RATIO)
        return cpu_s * (1 + own["covered"] * (as_far - 1) / 2)
    calls = summed_calls({"trial": found, "ops": ops})
    if calls is None or calls.libc.mean() <= 0:
        return cpu_s
    # So many of these calls went to the others, since in turns of as long these make more, or fewer.
    ratio = max(1 + calls.seconds / float(calls.libc.mean()), LEAST_RATIO)
    return max(cpu_s - calls.seconds / (1 + ratio), cpu_s * LEAST_RATIO)


def of(document: Mapping) -> Turned | None:
    """What the turns of a mix tell."""
    found = (document.get("trial") or {}).get("turns")
    if not found:
        return None
    told = tuple(found[name] for name in _TOLD)
    apart = _apart(document, len(found.get("runs", [])) or 1)
    return Turned(*told, _hidden(document), apart, found.get("lasting", 0.0))


def _apart(document: Mapping, runs: int) -> float:
    """Half of the interval that other runs need; of as many as tell it themselves, nothing."""
    if runs >= LEAST_RUNS:
        return 0.0
    ceiling = document.get("ceiling") or {}
    most = 1.0 if ceiling.get("incomplete") else ceiling.get("at_most", 1.0)
    deviation = min(APART, most) + APART_OF_COPIES * ceiling.get("likely", 0.0)
    return 1.96 * deviation / math.sqrt(runs)


def _hidden(document: Mapping) -> float:
    cpu_s = (document.get("ceiling") or {}).get("cpu_s", 0)
    if cpu_s <= 0:
        return 0.0
    rows = [row for part in document["ops"].values() for row in part["sizes"]]
    hidden_ns = sum(
        calls * (HIDDEN_NS if greatest <= SMALL else HIDDEN_LARGER_NS)
        for _, greatest, calls, _ in rows
    )
    return min(hidden_ns / 1e9 / cpu_s, 1.0)


def in_words(document: Mapping) -> str | None:
    own = of(document)
    if own is None:
        return None
    # No time is less than none.
    low, high = signed(max(own.low, -1.0)), signed(own.high)
    said = (
        f"the whole program's time changes by {signed(own.change)} % [{low}, {high}] in turns with {whom(document)}, "
        f"against turns with libc ({own.pairs:,} pairs of turns, {percent(own.covered)} of the run)"
    )
    return "; ".join([said, *_doubts(document, own)])


def _doubts(document: Mapping, own: Turned) -> list[str]:
    found = []
    most = _most(document)
    if most is not None and own.change < -most:
        found.append(
            f"copies that cost nothing would gain {percent(most)} at most, so it is not theirs"
        )
    if own.apart > own.within:
        found.append(
            f"most of the interval is what other runs may differ by: --runs {LEAST_RUNS} or more tells it"
        )
    if not own.tells:
        found.append("too wide to predict by")
        # An interval narrows with the root of what was seen.
        runs = (document.get("run") or {}).get("runs") or 1
        wanted = math.ceil(runs * (own.within / MOST_HALF) ** 2)
        if wanted <= MOST_RUNS:
            found[-1] += f", --runs {max(wanted, LEAST_RUNS)} may narrow it"
    return found


def _most(document: Mapping) -> float | None:
    """What there is to gain at most, as far as all of the run was recorded."""
    ceiling = document.get("ceiling")
    if not ceiling or ceiling.get("incomplete"):
        return None
    return max(ceiling["at_most"], ceiling["likely"])
