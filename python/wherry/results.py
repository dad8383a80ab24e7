"""From what a campaign measured to what a run file holds: cells with quantiles, rows with a verdict, a noise floor."""

from __future__ import annotations

import numpy as np

from wherry import stats
from wherry.campaign import Campaign, Cell
from wherry.yardsticks import YARDSTICKS

REFERENCE = "libc"
# Beyond this many cells the intervals are resampled less often: a minute of arithmetic buys nobody anything.
MANY_CELLS = 4000


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def _rounded_all(values: dict[str, float]) -> dict[str, float]:
    return {key: _rounded(value) for key, value in values.items()}


def _ratio(cell: Cell, reference: Cell | None, rng: np.random.Generator, resamples: int):
    if reference is None or reference is cell:
        return None
    ratio = stats.bootstrap(stats.log_ratios(cell.ns, reference.ns), rng, resamples)
    return None if ratio is None else {"to": REFERENCE} | _rounded_all(ratio.as_dict())


def noise(campaign: Campaign) -> float | None:
    return stats.noise_floor(
        (cell.ns, campaign.cells[row, routine, False].ns)
        for (row, routine, twin), cell in campaign.cells.items()
        if twin and (row, routine, False) in campaign.cells
    )


def digest(campaign: Campaign, first_row: int) -> tuple[list[dict], list[dict], float | None]:
    """(rows, cells, noise floor) for the run file; rows are numbered from `first_row` on."""
    rng = np.random.default_rng(campaign.seed)
    resamples = stats.RESAMPLES if len(campaign.cells) <= MANY_CELLS else stats.RESAMPLES // 4
    floor = noise(campaign)
    rows, cells = [], []
    for number, row in enumerate(campaign.rows):
        own = {
            routine: campaign.cells[number, routine, False]
            for routine in row.routines
            if (number, routine, False) in campaign.cells
            and campaign.cells[number, routine, False].ns
        }
        if not own:
            continue
        racing = {name: cell.ns for name, cell in own.items() if name not in YARDSTICKS}
        verdict = stats.verdict(racing, floor or stats.LEAST_FLOOR, rng, resamples)
        dimensions = {"experiment": row.experiment, "row": first_row + number} | row.dimensions()
        rows.append(
            dimensions
            | {
                "fastest": verdict.fastest,
                "tied": list(verdict.tied),
                "lead": None if verdict.lead is None else _rounded_all(verdict.lead.as_dict()),
            }
        )
        twins = (
            {
                routine: cell
                for (r, routine, twin), cell in campaign.cells.items()
                if r == number and twin and cell.ns
            }
            if len(campaign.rows) <= MANY_CELLS
            else {}
        )
        for aa, group in ((False, own), (True, twins)):
            for routine, cell in group.items():
                cells.append(
                    dimensions
                    | {
                        "routine": routine,
                        "aa": aa,
                        "calls": cell.calls,
                        "bytes": cell.bytes,
                        "ns": _rounded_all(stats.quantiles(cell.ns)),
                        "rounds": len(stats.pooled(cell.ns)),
                        "processes": len(cell.ns),
                        "voided": cell.voided,
                        "verified": cell.verified,
                        "disturbed": cell.disturbed,
                        "ratio": None
                        if routine in YARDSTICKS
                        else _ratio(cell, own.get(REFERENCE), rng, resamples),
                    }
                )
    return rows, cells, floor
