"""Brings the times of rows that work in DRAM to one level. Other users of a machine's memory come and go in phases of
milliseconds to minutes; they slow down all routines of a round by the same factor, which no fixed work in the caches
tells of. Rows that have the yardstick copy_lines, which does the same at every alignment, carry what tells it: each
round is divided by its own reading of it and multiplied by what it took where memory was calm. Ratios within a round
stay what they were."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import numpy as np

from wherry.campaign import Campaign, Cell
from wherry.row import Row
from wherry.units import percent
from wherry.yardsticks import LEVEL

# The part of all readings that are taken for calm: few, since a neighbour may work for most of a run; not the best,
# since a reading is one sample.
CALM = 0.02
# With fewer readings there is no telling what calm is.
LEAST_READINGS = 50


def _work(row: Row) -> tuple:
    """Rows of which the yardstick does the same."""
    return row.op, row.size, row.src_state, row.dst_state, row.mode, row.threads, row.huge, row.pin


def levelled(campaign: Campaign) -> tuple[Campaign, list[dict]]:
    """The campaign with its cells at one level, and what an experiment's entry says of it; itself and nothing where no
    row has the yardstick."""
    groups: dict[tuple, list[tuple[int, Cell]]] = {}
    for (row, routine, twin), cell in campaign.cells.items():
        if routine == LEVEL and not twin and cell.ns:
            groups.setdefault(_work(campaign.rows[row]), []).append((row, cell))
    factors: dict[int, dict[int, np.ndarray]] = {}  # by row and process
    told = []
    for own in groups.values():
        every = np.concatenate([ns for _, cell in own for ns in cell.ns.values()])
        if len(every) < LEAST_READINGS:
            continue
        calm = float(np.quantile(every, CALM))
        for row, cell in own:
            factors[row] = {process: calm / ns for process, ns in cell.ns.items()}
        row = campaign.rows[own[0][0]]
        times = [float(np.quantile(every, q)) / calm for q in (0.5, 0.9)]
        told.append(
            {
                "by": LEVEL,
                "size": row.size,
                "src_state": row.src_state,
                "dst_state": row.dst_state,
                "calm_ns": float(f"{calm:.6g}"),
                "median": round(times[0], 4),
                "q90": round(times[1], 4),
                "readings": len(every),
            }
        )
    if not factors:
        return campaign, []
    own = copy.copy(campaign)
    own.cells = {
        key: cell if key[1] == LEVEL else _brought(cell, factors.get(key[0], {}))
        for key, cell in campaign.cells.items()
    }
    return own, told


def _brought(cell: Cell, factors: Mapping[int, np.ndarray]) -> Cell:
    found = copy.copy(cell)
    found.ns = {
        process: ns * factors[process]
        if process in factors and len(factors[process]) == len(ns)
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
    slowest = max(own["median"] for own in told)
    return (
        f"times with a side in DRAM are brought to the level of the calmest {percent(CALM)} of the rounds, by a plain "
        f"copy ({told[0]['by']}) measured in each; that copy took {slowest:.2f} times as long in the median round"
    )
