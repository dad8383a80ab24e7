"""Wherry against libc and every peer, region by region: who is best there, how far Wherry is from the best, and what
the machine would allow. The regions are in wherry.scoreboard.listed, what of them is measured in regions, the
arithmetic in score, the tables in show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wherry import sentences, stats, tables
from wherry.campaign import Campaign, Row
from wherry.experiments import Experiment, Request
from wherry.found_peers import tier_rank
from wherry.scoreboard import listed, regions, score, show
from wherry.yardsticks import YARDSTICKS

LIBC = "libc"
# Short of the sixty-odd that a row may have; a table of more nobody reads.
QUICK = {"processes": 3, "rounds": 6, "batch_us": 100}


@dataclass(frozen=True)
class _Line:
    """One row of the campaign, and what it is for."""

    row: Row
    regions: tuple[str, ...] = ()
    level: str = ""  # of the machine's limits


class Scoreboard(Experiment):
    takes = frozenset({"routines", "ops", "regions", "isa", "mixes", "found"})
    weight = 3.0
    quick_processes = QUICK["processes"]
    quick_rounds = QUICK["rounds"]

    def rows(self, request: Request) -> list[Row]:
        ops = request.ops or listed.OPS
        self.check_named(request, ops, sentences.join(list(ops)))
        return [line.row for line in self._lines(request)]

    def _lines(self, request: Request) -> list[_Line]:
        lines = []
        wanted = regions.chosen(request.regions, request.mixes, request.quick)
        for op in request.ops or listed.OPS:
            names = (
                LIBC,
                request.wherry(),
                *_beside(request, op),
                *request.contenders(op),
            )
            for planned in regions.plan(op, wanted, request.quick, request.caches):
                own = self._with_effort(planned.cells, request)
                beside = (name for name in planned.yardsticks if _there(request, name))
                routines = tuple(dict.fromkeys([*names, *beside]))
                lines.append(_Line(Row(self.name, op, routines, **own), planned.regions))
        if any(region.limit == "bandwidth" for region in wanted):
            for level, cells in regions.limits_plan(request.caches):
                own = self._with_effort(cells, request)
                routines = (LIBC, *regions.LIMIT_YARDSTICKS)
                lines.append(_Line(Row(self.name, "copy", routines, **own), level=level))
        return lines

    def _with_effort(self, cells: dict, request: Request) -> dict:
        own = dict(cells)
        most = own.pop("rounds", self.rounds)
        own["rounds"] = request.rounds or min(most, self.round_count(request))
        own["batch_us"] = QUICK["batch_us"] if request.quick else 200
        return own

    def summary(self, campaign: Campaign, request: Request, first_row: int) -> dict:
        lines = self._lines(request)
        wherry = request.wherry()
        # Checksums of others are found, too, and take no part.
        offered = {peer for op in request.ops or listed.OPS for peer in request.contenders(op)}
        # Who does not come back from one call is not measured by those that it did come back from.
        failed = {own.routine for own in campaign.problems if own.kind in ("crash", "hang")}
        peers = tuple(p for p in request.contenders() if p in offered and p not in failed)
        # A tier below this CPU's own is compared with what that tier could use: libc chooses by CPU.
        below = request.isa and request.tier and tier_rank(request.isa) < tier_rank(request.tier)
        envelope = peers if below and peers else (LIBC, *peers)
        samples = {
            (row, name): cell.ns
            for (row, name, twin), cell in campaign.cells.items()
            if not twin and cell.ns
        }
        twins = {
            (row, name): cell.ns
            for (row, name, twin), cell in campaign.cells.items()
            if twin and name == LIBC and cell.ns
        }
        judge = score.Judge(samples, np.random.default_rng(campaign.seed), stats.RESAMPLES)
        of_region: dict[tuple[str, str], list[int]] = {}
        for number, line in enumerate(lines):
            for name in line.regions:
                of_region.setdefault((line.row.op, name), []).append(number)
        floor = score.region_floor(judge, twins, list(of_region.values()), LIBC)
        limits = _limits(campaign, lines)
        scored: dict[tuple[str, str], score.Scored] = {}
        for op in request.ops or listed.OPS:
            beside = [*_beside(request, op), LIBC]
            for region in regions.every(request.mixes):
                planned = of_region.get((op, region.name), [])
                rows = [row for row in planned if (row, wherry) in samples]
                if not rows:
                    continue
                scored[op, region.name] = score.region(
                    judge,
                    region.name,
                    rows,
                    wherry=wherry,
                    libc=LIBC,
                    envelope=envelope,
                    beside=beside,
                )
        settled = score.settled(list(scored.values()), wherry=wherry, floor=floor)
        scored = dict(zip(scored, settled, strict=True))
        by_op, totals = [], []
        for op in request.ops or listed.OPS:
            found, told = [], []
            for region in regions.every(request.mixes):
                one = scored.get((op, region.name))
                if one is None:
                    continue
                if region.base:
                    found.append(one)
                rows = list(one.rows)
                names = [wherry, LIBC, *_beside(request, op), *peers]
                own = _told(campaign, region, one, names)
                planned = of_region[op, region.name]
                own |= {"rows": [first_row + row for row in rows], "planned": len(planned)}
                own["limit"] = _limit(judge, campaign, region, op, rows, wherry, limits)
                told.append(own)
            if told:
                totals.append(score.total(judge, found, wherry=wherry, envelope=envelope))
                by_op.append({"op": op, "regions": told})
        for own, total in zip(by_op, score.totals(totals), strict=True):
            own["total"] = _total(total)
        return {
            "wherry": wherry,
            "isa": request.isa,
            "floor": _six(floor),
            "unhalved": sum(not halved for halved in judge.halved.values()),
            "best_by": "processes" if campaign.processes > 1 else "rounds",
            "envelope": list(envelope),
            "about": {peer: request.about(peer) for peer in peers if request.about(peer)},
            "left_out": list(request.left_out(request.ops or listed.OPS)),
            "upper_in_use": sorted(
                {name for (_, name, _), cell in campaign.cells.items() if cell.upper_in_use}
            ),
            "ops": by_op,
            "limits": limits,
        }

    def blocks(self, run: dict, width: int) -> list[tables.Block]:
        own = next((e for e in run.get("experiments", ()) if e["name"] == self.name), {})
        if "score" not in own:
            return []  # rows that are not judged yet
        return show.blocks(own["score"], run.get("mixes", ()), width)


def _there(request: Request, name: str) -> bool:
    return name in YARDSTICKS or any(row["name"] == name for row in request.catalogue)


def _beside(request: Request, op: str) -> tuple[str, ...]:
    """Routines of the registry that the user names: shown, but no peers."""
    if not request.routines and not request.all_routines:
        return ()
    names = request.choose(("copy", "move") if op == "copy" else (op,), ())
    out = {LIBC, "wherry", request.wherry(), *request.contenders(), *YARDSTICKS}
    return tuple(name for name in names if name not in out)


def _six(value: float) -> float:
    return float(f"{value:.6g}")


def _ratio(estimate: score.Estimate | None) -> dict | None:
    if estimate is None:
        return None
    own = estimate.ratio().as_dict()
    return {key: None if value is None else _six(value) for key, value in own.items()}


def _judged(estimate: score.Estimate | None) -> dict | None:
    """With what a reader of the file needs to tell it from chance."""
    own = _ratio(estimate)
    return own and own | {"p_corrected": _six(estimate.p)}


def _figure(campaign: Campaign, rows: list[int], name: str, rate: bool) -> float | None:
    """Geometric mean of the medians: nanoseconds a call, or bytes a nanosecond."""
    logs = []
    for row in rows:
        cell = campaign.cells.get((row, name, False))
        if cell is None or not cell.ns:
            return None
        ns = float(np.median(stats.pooled(cell.ns)))
        logs.append(np.log(cell.bytes / ns if rate else ns))
    return _six(float(np.exp(np.mean(logs)))) if logs else None


def _told(campaign: Campaign, region: listed.Region, scored: score.Scored, names) -> dict:
    """A region for the run file."""
    figures = {name: _figure(campaign, list(scored.rows), name, region.rate) for name in names}
    own = {
        "name": region.name,
        "about": region.about,
        "base": region.base,
        "rate": region.rate,
        "figures": {name: figure for name, figure in figures.items() if figure is not None},
        "fastest": scored.fastest,
        "tied": list(scored.tied),
        "unsure": list(scored.unsure),
        "best": scored.best,
        "to_best": _judged(scored.to_best),
        "to_libc": _judged(scored.to_libc),
        "verdict": scored.verdict,
    }
    return own | ({"mix": region.mix["name"]} if region.mix else {})


def _limits(campaign: Campaign, lines: list[_Line]) -> dict[str, dict[str, float]]:
    """GB/s by level and yardstick."""
    limits: dict[str, dict[str, float]] = {}
    for number, line in enumerate(lines):
        for name in regions.LIMIT_YARDSTICKS if line.level else ():
            cell = campaign.cells.get((number, name, False))
            if cell is not None and cell.ns:
                own = limits.setdefault(line.level, {})
                own[name] = _six(cell.bytes / float(np.median(stats.pooled(cell.ns))))
    return limits


def _limit(judge, campaign, region, op, rows, wherry, limits) -> dict | None:
    """The empty call, in pairs with Wherry's; or what the plain loops reach, in the row itself or, since a short loop
    does not get up to speed, in the row of its level."""
    beside = regions.yardsticks(region, op)
    if not beside:
        return None
    if region.limit == "call_floor":
        (floor,) = beside
        if not judge.has(rows, floor):
            return None
        ratio = _ratio(judge.compare(judge.all, rows, wherry, floor))
        return {"by": floor, "figure": _figure(campaign, rows, floor, False), "ratio": ratio}
    logs = []
    for row in rows:
        rates = [_figure(campaign, [row], name, True) for name in beside]
        level = campaign.rows[row].dst_state
        if campaign.rows[row].walk == "pool" and campaign.rows[row].src_state == level:
            rates += [limits.get(level, {}).get(name) for name in beside]
        best = max((rate for rate in rates if rate is not None), default=None)
        if best is None:
            return None
        size = campaign.cells[row, wherry, False].bytes
        logs.append(np.log(best if region.rate else size / best))
    return {"by": "bandwidth", "figure": _six(float(np.exp(np.mean(logs)))), "ratio": None}


def _total(total: score.Total) -> dict:
    return {
        "regions": total.regions,
        "to_libc": _ratio(total.to_libc),
        "to_envelope": _ratio(total.to_envelope),
        "single": total.single,
        "to_single": _ratio(total.to_single),
        "worst": total.worst,
    }


EXPERIMENT = Scoreboard(
    name="scoreboard",
    after="",
    shows="memcpy, memmove and memset of Wherry, libc and every peer by region, with the best peer and the limit",
    op="copy",
    ops=("copy", "move", "set"),
    routines=(),
    processes=5,
    rounds=9,
)
