"""From cells to what all calls of the mix take, by routine and by where the bytes lay, round by round."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wherry import significance, stats
from wherry.campaign import Campaign
from wherry.replay.parts import HEATS, Part, Subject
from wherry.row import Row

LIBC = "libc"
# Beside the heats: data where the program had them, and libc taking what it took there.
TIMED = "timed"
# The same of those parts alone that the recording's trial tells nothing of.
REST = "timed_rest"
# The same two with small calls hot, as long as libc took there: what a small call takes in a program is known within a
# factor of two, and where its data were, not at all.
SMALL_HOT = {TIMED: "timed_small_hot", REST: "timed_rest_small_hot"}
EXPERIMENT = "replay"


# Which row stands for a part (by its number) at a heat, or at a pair of states.
Places = dict[tuple[int, str | tuple[str, str]], int]


@dataclass(frozen=True)
class Total:
    """All calls of the mix with one routine, against libc, at one heat."""

    routine: str
    heat: str
    seconds: float  # of all calls
    ratio: stats.Ratio | None
    floor: float
    p: float

    @property
    def call(self) -> str:
        return "tie" if not self.told else stats.call(self.ratio, self.floor, self.p) or "tie"

    @property
    def told(self) -> bool:
        return self.ratio is not None and self.ratio.told


def rows(
    subject: Subject, routines: Sequence[str], rounds: int, batch_us: int, heats: Sequence[str]
) -> tuple[list[Row], Places]:
    """The rows, and which stands for each part and heat; what is the same at two heats is measured once."""
    found: list[Row] = []
    places: Places = {}
    for number, part in enumerate(subject.parts):
        known: dict[tuple[str, str], int] = {}
        wanted = [(heat, (part.states[heat], part.states[heat])) for heat in heats]
        wanted += [(pair, pair) for pair in part.found_in]
        for where, pair in wanted:
            if pair not in known:
                known[pair] = len(found)
                found.append(
                    Row(
                        EXPERIMENT,
                        part.op,
                        tuple(routines),
                        mix=part.spec,
                        mix_name=f"@{subject.name}-{part.op}-{part.band}".replace(" ", "-"),
                        src_state=pair[0],
                        dst_state=pair[1],
                        ascending=part.ascending,
                        rounds=rounds,
                        batch_us=batch_us,
                    )
                )
            places[number, where] = known[pair]
    return found, places


def _table(
    campaign: Campaign,
    parts: Sequence[Part],
    shares: Sequence[Mapping[int, float]],
    routine: str,
    twin: bool,
) -> dict[int, np.ndarray]:
    """By process, nanoseconds of all calls in each round; empty when any part lacks the routine. Of processes that had
    a round free of disturbance for every part; where none had, a part that one lacks is taken from another.
    `shares`: of each part, how much of which row stands for it."""
    own: list[tuple[dict[int, np.ndarray], float]] = []
    for part, rows in zip(parts, shares, strict=True):
        for row, share in rows.items():
            cell = campaign.cells.get((row, routine, twin))
            if cell is None or not cell.ns:
                return {}
            own.append((cell.ns, part.calls * share))
    if not own:
        return {}
    every = [process for process in own[0][0] if all(process in ns for ns, _ in own)]
    sums: dict[int, np.ndarray] = {}
    for process in every or dict.fromkeys(process for ns, _ in own for process in ns):
        rounds = [ns.get(process, next(iter(ns.values()))) * calls for ns, calls in own]
        least = min(len(taken) for taken in rounds)
        sums[process] = np.sum([taken[:least] for taken in rounds], axis=0)
    return sums


def measured(campaign: Campaign, subject: Subject, places: Places, heat: str) -> list[int]:
    """The parts that libc was measured in; what this machine cannot measure, nobody is."""
    return [
        number
        for number in range(len(subject.parts))
        if (cell := campaign.cells.get((places[number, heat], LIBC, False))) and cell.ns
    ]


def _libc(campaign: Campaign, row: int) -> float | None:
    """Nanoseconds of a call."""
    cell = campaign.cells.get((row, LIBC, False))
    return float(np.median(stats.pooled(cell.ns))) if cell and cell.ns else None


def _between(took: float, known: Sequence[tuple[float, int]]) -> dict[int, float]:
    """Of the rows that `known` has with libc's time, as much as makes up what a call took; of one alone where it lies
    beyond them all."""
    known = sorted(known)
    if took <= known[0][0]:
        return {known[0][1]: took / known[0][0]}
    for (low, below), (high, above) in itertools.pairwise(known):
        if took <= high:
            part = (took - low) / (high - low) if high > low else 1.0
            return {below: 1 - part, above: part}
    return {known[-1][1]: took / known[-1][0]}


def _as_found(
    campaign: Campaign, number: int, part: Part, places: Places, heats: Sequence[str]
) -> dict[int, float]:
    """The rows that stand for a part's calls as the program made them, and how much of each."""
    some = {
        places[number, pair]: share
        for pair, share in part.found_in.items()
        if _libc(campaign, places[number, pair])
    }
    if some:
        # Together they take what libc took there.
        whole = sum(share * _libc(campaign, row) for row, share in some.items())
        scale = part.took / whole if part.took else 1 / sum(some.values())
        return {row: share * scale for row, share in some.items()}
    known = [
        (ns, row)
        for row in dict.fromkeys(places[number, heat] for heat in heats)
        if (ns := _libc(campaign, row))
    ]
    if not known:
        return {}
    return _between(part.took, known) if part.took else {known[0][1]: 1.0}


def _hot(campaign: Campaign, row: int, part: Part) -> dict[int, float]:
    """Alone, but as long as libc took in the program."""
    ns = _libc(campaign, row)
    return {row: part.took / ns} if ns and part.took else {}


def as_timed(
    campaign: Campaign,
    subject: Subject,
    places: Places,
    heats: Sequence[str],
    small_hot: bool = False,
) -> tuple[list[int], list[dict[int, float]]]:
    """The parts that count and what stands for them; none when nothing was timed."""
    numbers, shares = [], []
    for number, part in enumerate(subject.parts):
        own = _as_found(campaign, number, part, places, heats)
        if small_hot and part.small:
            own = _hot(campaign, places[number, "hot"], part) or own
        if own:
            numbers.append(number)
            shares.append(own)
    return (numbers, shares) if any(part.took for part in subject.parts) else ([], [])


def add_up(
    campaign: Campaign,
    subject: Subject,
    places: Places,
    routines: Sequence[str],
    heats: Sequence[str] = HEATS,
) -> dict[str, dict[str, Total]]:
    """By heat, then by routine; as timed too when the recording tells what calls took."""
    rng = np.random.default_rng(campaign.seed)
    kinds = {}
    for heat in heats:
        kept = measured(campaign, subject, places, heat)
        kinds[heat] = kept, [{places[number, heat]: 1.0} for number in kept]
    small = "hot" in heats and any(part.small for part in subject.parts)
    for hot in (False, True) if small else (False,):
        numbers, shares = as_timed(campaign, subject, places, heats, hot)
        kinds[SMALL_HOT[TIMED] if hot else TIMED] = numbers, shares
        if any(part.tried for part in subject.parts):
            rest = [i for i, number in enumerate(numbers) if not subject.parts[number].tried]
            kinds[SMALL_HOT[REST] if hot else REST] = (
                [numbers[i] for i in rest],
                [shares[i] for i in rest],
            )
    found: dict[str, dict[str, Total]] = {}
    for heat, (kept, shares) in kinds.items():
        parts = [subject.parts[number] for number in kept]
        libc = _table(campaign, parts, shares, LIBC, False)
        if not parts or not libc:
            continue
        again = _table(campaign, parts, shares, LIBC, True)
        twin = stats.bootstrap(stats.log_ratios(again, libc), rng)
        floor = stats.LEAST_FLOOR
        if twin is not None and twin.told:
            # As far as the interval of libc against itself reaches.
            floor = max(floor, twin.high - 1, 1 / twin.low - 1)
        own = {}
        for routine in routines:
            table = libc if routine == LIBC else _table(campaign, parts, shares, routine, False)
            if not table:
                continue
            seconds = float(np.median(stats.pooled(table))) / 1e9
            if routine == LIBC:
                own[routine] = Total(routine, heat, seconds, None, floor, 1.0)
                continue
            pairs = stats.log_ratios(table, libc)
            ratio = stats.interval(pairs, rng)
            p = float(significance.p_values([significance.units(pairs)])[0]) if ratio else 1.0
            own[routine] = Total(routine, heat, seconds, ratio, floor, p)
        found[heat] = own
    return found
