"""From what a campaign measured to what a run file holds: cells with quantiles, rows with a verdict, a noise floor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from wherry import levels, significance, stats
from wherry.campaign import Campaign
from wherry.cell import Cell, rounded
from wherry.yardsticks import YARDSTICKS

REFERENCE = "libc"
# Beyond this many cells the intervals are resampled less often: a minute of arithmetic buys nobody anything.
MANY_CELLS = 4000


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def _rounded_all(values: Mapping[str, float | None]) -> dict[str, float | None]:
    return {key: None if value is None else _rounded(value) for key, value in values.items()}


@dataclass
class _Judged:
    """A routine's cell against the reference, before all of the experiment are known."""

    ratio: stats.Ratio
    units: np.ndarray
    verdict: dict[str, object] = field(default_factory=dict)


def _against(
    cell: Cell, reference: Cell | None, rng: np.random.Generator, resamples: int
) -> _Judged | None:
    if reference is None or reference is cell:
        return None
    pairs = stats.log_ratios(cell.ns, reference.ns)
    ratio = stats.bootstrap(pairs, rng, resamples)
    return None if ratio is None else _Judged(ratio, significance.units(pairs))


def _judge(judged: Sequence[_Judged], floor: float) -> None:
    """All comparisons with the reference, corrected together. What is measured twice has its verdict too."""
    units = [own.units for own in judged]
    p, halves = significance.p_values(units), significance.half_intervals(units)
    for own, half, plain, mended in zip(judged, halves, p, significance.corrected(p), strict=True):
        own.ratio = stats.widened(own.ratio, float(half))
        ratio = {"to": REFERENCE} | _rounded_all(
            own.ratio.as_dict() | {"p": float(plain), "p_corrected": float(mended)}
        )
        own.verdict = {"ratio": ratio}
        if call := stats.call(own.ratio, floor, float(mended)):
            own.verdict["verdict"] = call


def noise(campaign: Campaign) -> float | None:
    return stats.noise_floor(
        (cell.ns, campaign.cells[row, routine, False].ns)
        for (row, routine, twin), cell in campaign.cells.items()
        if twin and (row, routine, False) in campaign.cells
    )


def _twins(campaign: Campaign) -> dict[int, dict[str, Cell]]:
    """By row."""
    found: dict[int, dict[str, Cell]] = {}
    if len(campaign.rows) > MANY_CELLS:
        return found
    for (row, routine, twin), cell in campaign.cells.items():
        if twin and cell.ns:
            found.setdefault(row, {})[routine] = cell
    return found


def _extras(cell: Cell) -> dict[str, object]:
    """What only some cells have."""
    own: dict[str, object] = {}
    if cell.shares:
        own["share"] = _rounded(float(np.median(list(cell.shares.values()))))
    counts = cell.counts_of_all()
    if counts:
        own["counters"] = {
            name: None if value is None else _rounded(value) for name, value in counts.items()
        }
    parts = {name: value for name, value in cell.parts_of_all().items() if value is not None}
    if parts:
        own["parts"] = _rounded_all(parts)
    if cell.upper_in_use:
        own["upper_in_use"] = True
    return own


def digest(campaign: Campaign, first_row: int) -> tuple[list[dict], list[dict], float | None]:
    """(rows, cells, noise floor) for the run file; rows are numbered from `first_row` on."""
    # Times at one level; what is compared within a round is left as it was measured.
    level = levels.levelled(campaign)[0].cells
    rng = np.random.default_rng(campaign.seed)
    resamples = stats.RESAMPLES if len(campaign.cells) <= MANY_CELLS else stats.RESAMPLES // 4
    floor = noise(campaign)
    twins = _twins(campaign)
    rows, cells, races, judged = [], [], [], []
    for number, row in enumerate(campaign.rows):
        own = campaign.measured(number)
        if not own:
            continue
        racing = {name: cell.ns for name, cell in own.items() if name not in YARDSTICKS}
        races.append(stats.race(racing, rng, resamples))
        dimensions = {"experiment": row.experiment, "row": first_row + number} | row.dimensions()
        obtained = {"huge_obtained": number in campaign.huge} if row.huge else {}
        rows.append(dimensions | obtained)
        for aa, group in ((False, own), (True, twins.get(number, {}))):
            for routine, cell in group.items():
                against = (
                    None
                    if routine in YARDSTICKS
                    else _against(cell, own.get(REFERENCE), rng, resamples)
                )
                entry = dimensions | {
                    "routine": routine,
                    "aa": aa,
                    "calls": cell.calls,
                    "bytes": cell.bytes,
                    "ns": _rounded_all(stats.quantiles(level[number, routine, aa].ns)),
                    "rounds": len(stats.pooled(cell.ns)),
                    "processes": len(cell.ns),
                    "voided": cell.voided,
                    "verified": cell.verified,
                    "disturbed": cell.disturbed,
                    "ratio": None,
                }
                cells.append(entry | _extras(cell))
                if against:
                    judged.append((cells[-1], against))
    least = floor or stats.LEAST_FLOOR
    # The second measurements are no claims: they do not dilute those that are.
    for aa in (False, True):
        own = [(entry, against) for entry, against in judged if entry["aa"] == aa]
        _judge([against for _, against in own], least)
        for entry, against in own:
            entry.update(against.verdict)
    for row, verdict in zip(rows, stats.decide_all(races, least), strict=True):
        lead = None if verdict.lead is None else _rounded_all(verdict.lead.as_dict())
        row.update(fastest=verdict.fastest, tied=list(verdict.tied), lead=lead)
        if verdict.undecided:
            row["undecided"] = verdict.undecided
    return rows, cells, floor


def correction(campaign: Campaign, cells: Sequence[dict]) -> dict[str, object]:
    """How the verdicts of an experiment came about, for its entry in the run file."""
    told = (cell["ratio"] for cell in cells if cell["ratio"] and not cell["aa"])
    compared = sum(ratio["low"] is not None for ratio in told)
    return {
        "method": significance.METHOD,
        "level": significance.LEVEL,
        "test": significance.TEST if campaign.processes > 1 else significance.TEST_OF_ONE,
        "comparisons": compared,
    }


def samples(campaign: Campaign, experiment: str, first_row: int) -> list[dict]:
    """Every round of every process for --raw: `ns` holds those that count; `tried` all of them in their order, and
    `voided` for each the reason why it was thrown away, or null."""
    found = []
    for (row, routine, aa), cell in campaign.cells.items():
        for process in sorted({*cell.ns, *cell.tried}):
            own = {
                "experiment": experiment,
                "row": first_row + row,
                "routine": routine,
                "aa": aa,
                "process": process,
                "ns": rounded(cell.ns.get(process, ())),
            }
            outcomes = campaign.rounds.outcomes.get((process, row))
            if process in cell.tried and outcomes:
                if (process, row) in campaign.rounds.left_out:
                    outcomes = [reason or "slow process" for reason in outcomes]
                own |= {"tried": rounded(cell.tried[process]), "voided": outcomes}
            found.append(own)
    return found
