"""Brings the times of rows to one level. A neighbour in the memory or on the core, and the clock, come and go in phases
of milliseconds to minutes, and slow down all routines of a round alike. Rows that have the yardstick copy_lines, which
does the same at every alignment, carry what tells it: each round is brought to where the yardstick was when all was
calm, by as much as its routine answers to it (one that does not wait for memory answers less). How much that is, the
processes of each row tell: some were calmer than others. Paired ratios are taken from what was measured."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import numpy as np

from wherry.campaign import Campaign
from wherry.cell import Cell
from wherry.row import Row
from wherry.units import percent
from wherry.yardsticks import LEVEL

# The part of all readings that are taken for calm. In DRAM few, since a neighbour may work for most of a run; not the
# best, since a reading is one sample. In the caches the runner has thrown away what was slow: most readings are calm.
CALM_DRAM, CALM_CACHED = 0.005, 0.25
# With fewer readings there is no telling what calm is.
LEAST_READINGS = 50
# Readings further than this from calm tell nothing of how a routine answers nearer to it.
FAR = np.log(1.5)
# With fewer pairs of a process and a row a routine is taken to answer in full, and nobody answers more than that.
LEAST_PAIRS = 30
MOST = 1.2


def _work(row: Row) -> tuple:
    """Rows of which the yardstick does the same."""
    return row.op, row.size, row.src_state, row.dst_state, row.mode, row.threads, row.huge, row.pin


class _Answers:
    """How much each routine of a kind of work answers to the yardstick: the slope between the logarithms of both, over
    the processes of each row."""

    def __init__(self) -> None:
        self._sums: dict[str, list[float]] = {}

    def add(self, routine: str, cell: Cell, readings: Mapping[int, np.ndarray]) -> None:
        pairs = [
            (np.median(readings[process]), np.median(np.log(ns)))
            for process, ns in cell.ns.items()
            if process in readings and len(readings[process]) == len(ns)
        ]
        near = np.array([pair for pair in pairs if pair[0] < FAR])
        if len(near) > 1:
            x, y = (near - near.mean(axis=0)).T
            sums = self._sums.setdefault(routine, [0, 0, 0])
            sums[0] += len(near)
            sums[1] += float(x @ y)
            sums[2] += float(x @ x)

    def of(self, routine: str) -> float:
        pairs, both, own = self._sums.get(routine, (0, 0, 0))
        return float(np.clip(both / own, 0, MOST)) if pairs >= LEAST_PAIRS and own else 1.0


def levelled(campaign: Campaign) -> tuple[Campaign, list[dict]]:
    """The campaign with its cells at one level, and what an experiment's entry says of it; itself and nothing where no
    row has the yardstick."""
    groups: dict[tuple, dict[int, Cell]] = {}
    for (row, routine, twin), cell in campaign.cells.items():
        if routine == LEVEL and not twin and cell.ns:
            groups.setdefault(_work(campaign.rows[row]), {})[row] = cell
    above: dict[int, dict[int, np.ndarray]] = {}  # logarithms, by row and process
    answers: dict[tuple, _Answers] = {}
    told = []
    for work, own in groups.items():
        every = np.concatenate([ns for cell in own.values() for ns in cell.ns.values()])
        if len(every) < LEAST_READINGS:
            continue
        first = campaign.rows[next(iter(own))]
        share = CALM_DRAM if "DRAM" in (first.src_state, first.dst_state) else CALM_CACHED
        calm = float(np.quantile(every, share))
        answers[work] = _Answers()
        for row, cell in own.items():
            above[row] = {process: np.log(ns / calm) for process, ns in cell.ns.items()}
        times = [float(np.quantile(every, q)) / calm for q in (0.5, 0.9)]
        told.append(
            {
                "by": LEVEL,
                "size": first.size,
                "src_state": first.src_state,
                "dst_state": first.dst_state,
                "calm": share,
                "calm_ns": float(f"{calm:.6g}"),
                "median": round(times[0], 4),
                "q90": round(times[1], 4),
                "readings": len(every),
            }
        )
    if not above:
        return campaign, []
    for (row, routine, twin), cell in campaign.cells.items():
        if row in above and routine != LEVEL and not twin:
            answers[_work(campaign.rows[row])].add(routine, cell, above[row])
    for own, each in zip(told, answers.values(), strict=True):
        names = dict.fromkeys(key[1] for key in campaign.cells if key[1] != LEVEL)
        own["answers"] = {name: round(each.of(name), 3) for name in names}
    own = copy.copy(campaign)
    own.cells = {
        key: cell
        if key[1] == LEVEL or key[0] not in above
        else _brought(cell, above[key[0]], answers[_work(campaign.rows[key[0]])].of(key[1]))
        for key, cell in campaign.cells.items()
    }
    return own, told


def _brought(cell: Cell, above: Mapping[int, np.ndarray], answer: float) -> Cell:
    found = copy.copy(cell)
    found.ns = {
        process: ns * np.exp(-answer * above[process])
        if process in above and len(above[process]) == len(ns)
        else ns
        for process, ns in cell.ns.items()
    }
    return found


def record(campaign: Campaign) -> dict[str, object]:
    """For the experiment's entry."""
    told = levelled(campaign)[1]
    return {"levelled": told} if told else {}


def in_words(experiment: Mapping) -> str:
    """Empty where nothing was levelled."""
    told = experiment.get("levelled")
    if not told:
        return ""
    slowest = max(told, key=lambda own: own["median"])
    shares = [f"{percent(share)}" for share in sorted({own.get("calm", CALM_DRAM) for own in told})]
    where = " (both sides cached) or ".join(reversed(shares))
    return (
        f"times are brought to the level of the calmest {where} of the rounds, by a plain copy ({told[0]['by']}) "
        f"measured in each; that copy took {slowest['median']:.2f} times as long in the median round "
        f"({slowest['src_state']} to {slowest['dst_state']})"
    )
