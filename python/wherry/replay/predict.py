"""What a replay means for the program: the share of its time that copies take, times what they would gain.

What the recorder tried inside the program is known best: how fast the whole of it was in its turns with the drop-in;
and, where turns did not cover all of the run, what calls that outlast a turn took there with libc and with the drop-in.
Where there were too few turns to tell, what calls of more than 1 KiB took there with libc and with the drop-in. Of all
other calls, and of other routines, the share is what the recorder timed, and the gain is that of data where the
recorder found them, or else as warm as makes libc take so long. Of calls of at most 1 KiB it found nothing, and what
they took is known within a factor of two: their gain is that of hot data, and the interval takes in the other.

Of recordings without times only sizes are known: the likely change is that of hot data then, and its interval takes in
what warm data would give, with the share that copies take then.

Single calls, tried or modelled, scatter little and are all wrong together: timed alone they do not show what a routine
does to the code around it. So the interval of what goes by them takes in how far programs were from their calls, and
where turns that are too wide to go by have their middle.

What is not clear of nothing by its interval, or is smaller than ab can tell, is called not measurable: a claim that ab
refutes would be worth less than none. So is a gain of more than copies that cost nothing would have."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from wherry.recording.trial import Change
from wherry.recording.turns import Turned
from wherry.replay.loading import Cost
from wherry.replay.totals import LIBC, REST, SMALL_HOT, TIMED, Total
from wherry.units import percent, signed

# What ab seldom tells less than, on a machine with neighbours; --noise says another.
NOISE = 0.01
# By how much of the time in copies the change of a whole program was another than its single calls told: of a loop that
# calls for 53 % of its time and takes 2 % more with the drop-in they said 2 % less, of one with 31 % (ffmpeg-pad) that
# takes 6 % less 1 (docs/programs.md).
CALLS_SPREAD = 0.2
# In short turns with copies that go past the caches libc's of many megabytes find nothing of their destination there,
# and not for tens of calls after: in a program of its own they may find most of it in a last-level cache larger than is
# believed. Of what such calls gained in turns so much was not there in the whole program (docs/programs-intel.md).
LASTING_SPREAD = 0.6
# A program that its copies take less of has nothing to gain.
SMALL_SHARE = 0.01


@dataclass(frozen=True)
class Prediction:
    """Change of the program's CPU time, as fractions: -0.019 is 1.9 % less."""

    routine: str
    change: float
    low: float
    high: float
    measurable: bool
    tried: bool = False  # in the program itself, as far as that tells
    turned: bool = False  # all of it there, by turns
    beyond: bool = False  # it was more than copies that cost nothing would gain
    few_runs: bool = False  # most of the interval is what other runs may differ by

    def words(self) -> str:
        low, high = (signed(value) for value in (self.low, self.high))
        return f"{signed(self.change)} % [{low}, {high}] %"


def shares(ceiling: Mapping, totals: Mapping[str, Mapping[str, Total]]) -> dict[str, float]:
    """By heat, the share of the run's CPU time that its copies took with libc, if its data were so warm."""
    if TIMED in totals:
        cpu_s = ceiling["cpu_s"]
        return {TIMED: min(totals[TIMED][LIBC].seconds / cpu_s, 1.0) if cpu_s > 0 else 0.0}
    likely, most = ceiling["likely"], max(ceiling["at_most"], ceiling["likely"])
    hot = totals.get("hot", {}).get(LIBC)
    found = {}
    for heat, own in totals.items():
        libc = own.get(LIBC)
        if libc is None or hot is None:
            continue
        found[heat] = min(likely * libc.seconds / hot.seconds, most, 1.0)
    return found


def _range(own: Total, share: float) -> tuple[float, float, float]:
    """Change of the program's time, its lowest and its highest."""
    low, high = own.ratio.low, own.ratio.high
    # A tie may be a gain or a loss of as much as the noise.
    if own.call == "tie":
        low, high = min(low, 1 / (1 + own.floor)), max(high, 1 + own.floor)
    return tuple(share * (ratio - 1) for ratio in (own.ratio.median, low, high))


def _as_timed(
    kind: str, routine: str, totals: Mapping[str, Mapping[str, Total]], share: float
) -> tuple[float, float, float] | None:
    """Change of the program's time, its lowest and its highest: with small calls hot, which most are; the interval
    takes in that they are where such calls take as long as they took."""
    found = [
        _range(own, share)
        for where in (SMALL_HOT[kind], kind)
        if (own := totals.get(where, {}).get(routine)) is not None and own.told
    ]
    if not found:
        return None
    return found[0][0], min(own[1] for own in found), max(own[2] for own in found)


def _clear(low: float, high: float, change: float, noise: float) -> bool:
    return (low > 0 or high < 0) and abs(change) > noise


def predict(
    routine: str,
    ceiling: Mapping,
    totals: Mapping[str, Mapping[str, Total]],
    noise: float = NOISE,
    tried: Sequence[Change] = (),
) -> Prediction | None:
    """`tried`: what the recording's trial tells of this routine."""
    if tried:
        return _of_trial(routine, ceiling, totals, noise, tried)
    share = shares(ceiling, totals)
    ranges = []
    if TIMED in totals:
        own = _as_timed(TIMED, routine, totals, share[TIMED])
        ranges = [own] if own else []
    for heat in () if TIMED in totals else ("hot", "warm"):
        own = totals.get(heat, {}).get(routine)
        if own is not None and own.told and heat in share:
            ranges.append(_range(own, share[heat]))
    if not ranges:
        return None
    low, high = min(r[1] for r in ranges), max(r[2] for r in ranges)
    change = ranges[0][0]
    return Prediction(routine, change, low, high, _clear(low, high, change, noise))


def of_turns(
    routine: str,
    turned: Turned,
    noise: float = NOISE,
    outlasting: Change | None = None,
    cpu_s: float = 0.0,
    untold: float = 0.0,
) -> Prediction:
    """`outlasting`: what calls that outlast a turn were found to take more, of `cpu_s` seconds; for the part of them
    that the turns do not tell of, and for how much less they may gain where nobody takes turns. `untold`: the share of
    the run of such calls that nothing tells of: they may take twice as long, or nothing."""
    change, half, gained = turned.change, turned.half, 0.0
    half = math.hypot(half, min(untold, 1 - turned.covered))
    if outlasting is not None and cpu_s > 0 and outlasting.libc.mean() > 0:
        share = float(outlasting.libc.mean()) / cpu_s
        # What turns that last cover is of such calls for the most part, as they are where nobody takes turns.
        others = max(share - turned.lasting, 0.0)
        part = min(1 - turned.covered, others) / share
        change += part * outlasting.seconds / cpu_s
        half = math.hypot(half, part * outlasting.half / cpu_s)
        gained = max(min(-outlasting.seconds / cpu_s, -change), 0.0) * others / share
    low, high = change - half - turned.hidden, change + half + LASTING_SPREAD * gained
    clear = _clear(low, high, change, noise)
    few_runs = turned.apart > turned.within
    return Prediction(routine, change, low, high, clear, True, True, few_runs=few_runs)


def by_calls(
    own: Prediction, ceiling: Mapping, turned: Turned | None = None, noise: float = NOISE
) -> Prediction:
    """What single calls told, with how far that may be from the whole program. `turned`: of the same routine."""
    spread = CALLS_SPREAD * ceiling["likely"]
    low = own.change - math.hypot(own.change - own.low, spread)
    high = own.change + math.hypot(own.high - own.change, spread)
    if turned is not None:
        low, high = min(low, turned.change), max(high, turned.change)
    clear = _clear(low, high, own.change, noise)
    return replace(own, low=low, high=high, measurable=clear)


def within_ceiling(own: Prediction, ceiling: Mapping) -> Prediction:
    """No more than copies that cost nothing would gain; a prediction of more is wrong, by however much."""
    most = -max(ceiling["at_most"], ceiling["likely"])
    if ceiling.get("incomplete") or own.low >= most:
        return own
    low, change, high = (max(value, most) for value in (own.low, own.change, own.high))
    beyond = own.change < most
    return replace(
        own,
        change=change,
        low=low,
        high=high,
        measurable=own.measurable and not beyond,
        beyond=beyond,
    )


def with_loading(own: Prediction, share: Cost, noise: float = NOISE) -> Prediction:
    """`share`: of the program's CPU time, that it takes more to load the library in all its processes."""
    change = own.change + share.middle
    low = change - math.hypot(own.change - own.low, share.middle - share.low)
    high = change + math.hypot(own.high - own.change, share.high - share.middle)
    clear = _clear(low, high, change, noise) and not own.beyond
    return replace(own, change=change, low=low, high=high, measurable=clear)


def as_the_trial(
    own: Prediction, drop_in: Prediction, tried: Prediction, noise: float = NOISE
) -> Prediction:
    """What was not tried, by how much of what is measured here the trial saw of the drop-in: at most all of it. The
    interval holds both."""
    if abs(drop_in.change) <= noise:
        return own
    part = min(max(tried.change / drop_in.change, 0.0), 1.0)
    ends = (own.low, own.high, own.low * part, own.high * part)
    low, high, change = min(ends), max(ends), own.change * part
    return replace(
        own, change=change, low=low, high=high, measurable=_clear(low, high, change, noise)
    )


def _of_trial(
    routine: str,
    ceiling: Mapping,
    totals: Mapping[str, Mapping[str, Total]],
    noise: float,
    tried: Sequence[Change],
) -> Prediction | None:
    cpu_s = ceiling["cpu_s"]
    if cpu_s <= 0:
        return None
    change = sum(own.seconds for own in tried) / cpu_s
    below = above = sum((own.half / cpu_s) ** 2 for own in tried)
    rest = totals.get(REST, {})
    own = _as_timed(REST, routine, totals, min(rest[LIBC].seconds / cpu_s, 1.0)) if rest else None
    if own:
        middle, low, high = own
        change += middle
        below += (middle - low) ** 2
        above += (high - middle) ** 2
    low, high = change - math.sqrt(below), change + math.sqrt(above)
    return Prediction(routine, change, low, high, _clear(low, high, change, noise), True)


def verdict(
    ceiling: Mapping | None,
    predictions: Mapping[str, Prediction],
    totals: Mapping[str, Mapping[str, Total]],
    usable: Mapping[str, str],
    noise: float,
    loading: str = "",
) -> str:
    """One or two sentences. `usable`: of the routines that a program can be given, how. `loading`: what of the change
    is for loading the library."""
    if not ceiling:
        return _without_ceiling(totals, usable)
    few = (
        ": too few of its largest calls were timed to tell less" if ceiling.get("few_timed") else ""
    )
    share = f"This run spends {percent(ceiling['likely'])} in copies (at most {percent(ceiling['at_most'])}{few})"
    own = {name: found for name, found in predictions.items() if name in usable}
    if not own and _once(totals, usable):
        return f"{share}; {ONCE}; keep libc."
    if not own:
        return f"{share}; nothing that could serve it was measured; keep libc."
    best = min(own.values(), key=lambda found: found.change)
    how = (
        f", by what was tried in {'few runs of ' * best.few_runs}the program" if best.tried else ""
    )
    said = f"replay predicts {best.words()} of its CPU time with {best.routine}{how}{loading and f', {loading}'}"
    if ceiling.get("incomplete"):
        share += " that were recorded; what was not may copy too"
    elif ceiling["at_most"] < SMALL_SHARE:
        return f"{share}: even a copy that costs nothing would gain no more; {said}; keep libc."
    if best.change >= 0:
        return f"{share}; {said}: nothing here is better than libc for it; keep libc."
    if not best.measurable:
        if best.beyond:
            why = "more than that was found, and copies that cost nothing would not gain it"
        elif best.low <= 0 <= best.high:
            why = f"its interval does not leave out 0{', which more runs may: wherry record --runs 5' * best.few_runs}"
        else:
            why = f"ab seldom tells less than {percent(noise)}"
        return f"{share}; {said}: not measurable, since {why}; keep libc."
    return f"{share}; {said}. See whether it holds: {usable[best.routine]}"


ONCE = "one sample of a routine tells nothing of chance: give more --rounds or --processes"


def _once(totals: Mapping[str, Mapping[str, Total]], usable: Mapping[str, str]) -> bool:
    """Whether there are figures, but no interval of any."""
    own = [each[name] for each in totals.values() for name in usable if name in each]
    return any(one.ratio for one in own) and not any(one.told for one in own)


def _without_ceiling(totals: Mapping[str, Mapping[str, Total]], usable: Mapping[str, str]) -> str:
    hot = {name: own for name, own in totals.get("hot", {}).items() if name in usable and own.told}
    tail = "What that is of a program, this mix does not tell: wherry record does."
    if not hot and _once(totals, usable):
        return f"{ONCE[:1].upper()}{ONCE[1:]}. {tail}"
    if not hot:
        return f"Nothing was measured. {tail}"
    best = min(hot.values(), key=lambda own: own.ratio.median)
    if best.call != "faster":
        return f"Nothing here beats libc on this mix beyond the noise; keep libc. {tail}"
    return (
        f"{best.routine} takes {best.ratio.median:.2f} [{best.ratio.low:.2f}, {best.ratio.high:.2f}] of libc's time "
        f"on this mix, hot. {tail}"
    )
