"""From cells to what all calls of the mix take, by routine and by where the bytes lay, round by round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wherry import significance, stats
from wherry.campaign import Campaign
from wherry.replay.parts import HEATS, Part, Subject
from wherry.row import Row

LIBC = "libc"
EXPERIMENT = "replay"


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
        return "tie" if self.ratio is None else stats.call(self.ratio, self.floor, self.p)


def rows(
    subject: Subject, routines: Sequence[str], rounds: int, batch_us: int, heats: Sequence[str]
) -> tuple[list[Row], dict[tuple[int, str], int]]:
    """The rows, and which stands for each part and heat; what is the same at two heats is measured once."""
    found: list[Row] = []
    places: dict[tuple[int, str], int] = {}
    for number, part in enumerate(subject.parts):
        known: dict[str, int] = {}
        for heat in heats:
            state = part.states[heat]
            if state not in known:
                known[state] = len(found)
                found.append(
                    Row(
                        EXPERIMENT,
                        part.op,
                        tuple(routines),
                        mix=part.spec,
                        mix_name=f"@{subject.name}-{part.op}-{part.band}".replace(" ", "-"),
                        src_state=state,
                        dst_state=state,
                        rounds=rounds,
                        batch_us=batch_us,
                    )
                )
            places[number, heat] = known[state]
    return found, places


def _table(
    campaign: Campaign,
    parts: Sequence[Part],
    places: Mapping[tuple[int, str], int],
    heat: str,
    routine: str,
    twin: bool,
) -> dict[int, np.ndarray]:
    """By process, nanoseconds of all calls in each round; empty when any part lacks the routine."""
    sums: dict[int, np.ndarray] = {}
    for number, part in enumerate(parts):
        cell = campaign.cells.get((places[number, heat], routine, twin))
        if cell is None or not cell.ns:
            return {}
        for process in list(sums) if number else list(cell.ns):
            if process not in cell.ns:
                sums.pop(process, None)
                continue
            own = cell.ns[process] * part.calls
            before = sums.get(process)
            if before is not None:
                n = min(len(before), len(own))
                own = before[:n] + own[:n]
            sums[process] = own
    return sums


def measured(
    campaign: Campaign, subject: Subject, places: Mapping[tuple[int, str], int], heat: str
) -> list[int]:
    """The parts that libc was measured in; what this machine cannot measure, nobody is."""
    return [
        number
        for number in range(len(subject.parts))
        if (cell := campaign.cells.get((places[number, heat], LIBC, False))) and cell.ns
    ]


def add_up(
    campaign: Campaign,
    subject: Subject,
    places: Mapping[tuple[int, str], int],
    routines: Sequence[str],
    heats: Sequence[str] = HEATS,
) -> dict[str, dict[str, Total]]:
    """By heat, then by routine."""
    rng = np.random.default_rng(campaign.seed)
    found: dict[str, dict[str, Total]] = {}
    for heat in heats:
        kept = measured(campaign, subject, places, heat)
        parts = [subject.parts[number] for number in kept]
        where = {(i, heat): places[number, heat] for i, number in enumerate(kept)}
        libc = _table(campaign, parts, where, heat, LIBC, False)
        if not parts or not libc:
            continue
        again = _table(campaign, parts, where, heat, LIBC, True)
        twin = stats.bootstrap(stats.log_ratios(again, libc), rng)
        floor = stats.LEAST_FLOOR
        if twin is not None:
            # As far as the interval of libc against itself reaches.
            floor = max(floor, twin.high - 1, 1 / twin.low - 1)
        own = {}
        for routine in routines:
            table = (
                libc if routine == LIBC else _table(campaign, parts, where, heat, routine, False)
            )
            if not table:
                continue
            seconds = float(np.median(stats.pooled(table))) / 1e9
            if routine == LIBC:
                own[routine] = Total(routine, heat, seconds, None, floor, 1.0)
                continue
            pairs = stats.log_ratios(table, libc)
            ratio = stats.bootstrap(pairs, rng)
            p = float(significance.p_values([significance.units(pairs)])[0]) if ratio else 1.0
            own[routine] = Total(routine, heat, seconds, ratio, floor, p)
        found[heat] = own
    return found
