"""The candidate against the default on cells that it was not chosen by, in fresh processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wherry import significance, stats
from wherry.tune import measuring
from wherry.tune.measuring import PlanCampaign

DEFAULT, TUNED = "default", "tuned"


@dataclass(frozen=True)
class Proof:
    """Over all its cells: the candidate's time over the default's. `floor`: what the default differs from itself."""

    cells: int
    ratio: stats.Ratio | None
    floor: float
    p: float
    worst: tuple[float, str] | None  # of a single cell, and which

    @property
    def call(self) -> str:
        if self.ratio is None or not self.ratio.told:
            return "tie"
        # The floor is shown as so many per cent either way, and a gain within it is none: of a large one its inverse
        # would be nearer.
        if self.ratio.median < 1 <= self.ratio.median + self.floor:
            return "tie"
        return stats.call(self.ratio, self.floor, self.p) or "tie"

    def record(self) -> dict:
        ratio = self.ratio and {
            key: None if value is None else float(f"{value:.5g}")
            for key, value in self.ratio.as_dict().items()
        }
        return {
            "cells": self.cells,
            "ratio": ratio,
            "noise_floor": float(f"{self.floor:.4g}"),
            "p": float(f"{self.p:.4g}"),
            "call": self.call,
        }


def over_rows(
    of_rows: Sequence[stats.Samples], weights: Sequence[float] | None = None
) -> list[np.ndarray]:
    """Log ratios of rows, by process and round, as one for all rows: the mean of each round of each process that all
    rows have, by the weights when there are any."""
    rows = [row for row in of_rows if row]
    if not rows:
        return []
    if weights is not None:
        weights = [weight for weight, row in zip(weights, of_rows, strict=True) if row]
    found = []
    for process in sorted(set.intersection(*map(set, rows))):
        rounds = min(len(row[process]) for row in rows)
        if rounds:
            logs = [row[process][:rounds] for row in rows]
            found.append(np.average(logs, axis=0, weights=weights))
    return found


def noise_floor(twins: Sequence[np.ndarray], rng: np.random.Generator) -> float:
    """As far as the interval of a plan against itself reaches."""
    ratio = stats.bootstrap(twins, rng)
    if ratio is None or not ratio.told:
        return stats.LEAST_FLOOR
    return max(stats.LEAST_FLOOR, ratio.high - 1, 1 / ratio.low - 1)


def judge(
    campaign: PlanCampaign, rows: Sequence[int], seed: int, calls: Sequence[float] | None = None
) -> Proof:
    """Of these rows of the campaign, whose routines are the default, then the candidate. With `calls`, how many of a
    program's each row stands for, a row counts by the time that they take."""
    rng = np.random.default_rng(seed)
    pairs = [measuring.log_ratios(campaign, row, TUNED, DEFAULT) for row in rows]
    twins = []
    for row in rows:
        own, twin = (campaign.cells.get((row, DEFAULT, aa)) for aa in (False, True))
        twins.append(stats.paired(twin.ns, own.ns) if own and twin else {})
    weights = calls and [
        count * (measuring.nanoseconds(campaign, row, DEFAULT) or 0)
        for count, row in zip(calls, rows, strict=True)
    ]
    merged = over_rows(pairs, weights)
    ratio = stats.interval(merged, rng)
    p = float(significance.p_values([significance.units(merged)])[0]) if ratio else 1.0
    each = [
        (float(np.exp(np.median(np.concatenate(list(pair.values()))))), row)
        for pair, row in zip(pairs, rows, strict=True)
        if pair
    ]
    worst = max(each, default=None)
    return Proof(
        len(each),
        ratio,
        noise_floor(over_rows(twins, weights), rng),
        p,
        worst and (worst[0], campaign.rows[worst[1]].line(worst[1])),
    )
