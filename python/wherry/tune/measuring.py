"""Plans as routines of a row: `--plan` of wherry-run measure, interleaved with each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from wherry import stats
from wherry.campaign import Campaign
from wherry.plans import FIELDS, OFF, Plan
from wherry.row import Row


def spec(name: str, plan: Plan) -> str:
    """What --plan of the runner takes."""
    values = ((field, plan.thresholds[field]) for field in FIELDS)
    words = [f"{field}={'off' if value == OFF else value}" for field, value in values]
    return f"{name}={','.join([plan.choice, *words])}"


class PlanCampaign(Campaign):
    """A campaign whose rows may name these plans as routines."""

    def __init__(self, rows: Sequence[Row], plans: Mapping[str, Plan], **options):
        super().__init__(rows, **options)
        self.plans = [spec(name, plan) for name, plan in plans.items()]

    def _arguments(self, process: int, pin: int | None) -> list[str]:
        arguments = super()._arguments(process, pin)
        for own in self.plans:
            arguments += ["--plan", own]
        return [*arguments, "--counters", "none"] if self.counters is None else arguments


def log_ratios(campaign: Campaign, row: int, name: str, to: str) -> dict[int, np.ndarray]:
    """Round by round, by process; empty when either has no cell."""
    own, other = (campaign.cells.get((row, routine, False)) for routine in (name, to))
    return stats.paired(own.ns, other.ns) if own and other else {}


def log_ratio(campaign: Campaign, row: int, name: str, to: str) -> float | None:
    pairs = log_ratios(campaign, row, name, to)
    return float(np.median(np.concatenate(list(pairs.values())))) if pairs else None


def nanoseconds(campaign: Campaign, row: int, name: str) -> float | None:
    cell = campaign.cells.get((row, name, False))
    return float(np.median(stats.pooled(cell.ns))) if cell and cell.ns else None
