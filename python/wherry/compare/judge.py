"""Changed, unchanged or undecided, cell by cell, against the noise floor of both runs and for as many comparisons as
there are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from wherry import machine, significance, stats
from wherry.compare import machines, match, namesakes, sides
from wherry.compare.sides import Figures, Side
from wherry.errors import unknown
from wherry.formats.samples import Raw
from wherry.yardsticks import YARDSTICKS

SLOWER, FASTER, UNCHANGED, UNDECIDED = "slower", "faster", "unchanged", "undecided"
LEVEL = 0.05
# Fewer controls than this tell nothing of the noise between two runs.
LEAST_CONTROLS = 5
# By so much a clock moves from one run to the next without anybody's doing; more is a change, and is told.
DRIFT = 0.05
# A median absolute deviation, as a standard one.
ROBUST = 1.4826
# By how much single processes differ in a cell is seldom much and at times many times as much as in most cells: a call
# that takes a cycle more in half of all processes, say. The scatter of all cells has the tails of Student's t with so
# much freedom (docs/comparing.md).
TAILS = 2.5
# However much alike most cells are: a cycle more is up to so much of the time of a small call.
FEW_APART = 0.2
# With fewer cells nothing tells what processes differ by.
LEAST_CELLS = 8


@dataclass(frozen=True)
class Change:
    """One cell: time in the second run over time in the first, or the same of its ratios to the reference."""

    a: dict
    b: dict
    verdict: str
    ratio: float
    low: float | None  # 95 % interval of this cell alone
    high: float | None
    sure_low: float | None  # 95 % of all intervals together
    sure_high: float | None
    floor: float

    @property
    def yardstick(self) -> bool:
        return self.a["routine"] in YARDSTICKS


@dataclass
class Comparison:
    changes: list[Change] = field(default_factory=list)
    decision: machines.Decision = field(default_factory=machines.Decision)
    reference: str | None = None
    one_unit: bool = True  # both in nanoseconds
    only_a: list[dict] = field(default_factory=list)
    only_b: list[dict] = field(default_factory=list)
    unreferenced: int = 0  # cells that have no reference in their row
    floors: dict[str, float] = field(default_factory=dict)  # by experiment
    unfloored: list[str] = field(
        default_factory=list
    )  # experiments in which a noise floor is missing
    control: tuple[int, float, float] | None = (
        None  # cells, median ratio, spread, of what did not change
    )
    bulk: float | None = (
        None  # spread of all cells, for what is of a single sample or of few processes
    )
    unrecorded: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def of(self, *verdicts: str) -> list[Change]:
        return [c for c in self.changes if c.verdict in verdicts and not c.yardstick]


def compare(
    a: dict,
    b: dict,
    raw: tuple[Raw, Raw],
    *,
    vouched: bool = False,
    method: str | None = None,
    reference: str | None = None,
) -> Comparison:
    matched = match.match(a, b)
    own = Comparison(only_a=matched.only_a, only_b=matched.only_b, unrecorded=matched.unrecorded)
    own.decision = machines.decide(a, b, vouched, method)
    own.one_unit = all((run.get("source") or {}).get("unit", "ns") == "ns" for run in (a, b))
    resample = len(matched.pairs) <= sides.RESAMPLED
    figures = (Figures(a, raw[0], resample), Figures(b, raw[1], resample))
    if own.decision.method == machines.PAIRED:
        estimated = [(pair, _times(pair, figures)) for pair in matched.pairs]
    else:
        estimated = _shapes(matched.pairs, figures, own, reference)
    _notes(own, a, b)
    own.notes += namesakes.differ(a, b, matched.pairs)
    _judge(own, estimated, a, b)
    return own


def _times(pair: tuple[dict, dict], figures: tuple[Figures, Figures]) -> Side:
    return sides.between(figures[0].time(pair[0]), figures[1].time(pair[1]))


def _shapes(
    pairs: list, figures: tuple[Figures, Figures], own: Comparison, reference: str | None
) -> list[tuple[tuple[dict, dict], Side]]:
    """To the reference of each row; without one to the middle of all common cells, so that the clock cancels."""
    usable = sides.usable_references(pairs, *figures)
    if reference and reference not in usable:
        raise unknown("reference in both runs", reference, usable, "wherry compare --all")
    own.reference = reference or sides.choose_reference(pairs, *figures)
    found = []
    if own.reference is None:
        times = [(pair, _times(pair, figures)) for pair in pairs]
        middle = float(np.median([side.log for _, side in times])) if times else 0.0
        return [(pair, replace(side, log=side.log - middle)) for pair, side in times]
    for pair in pairs:
        if pair[0]["routine"] == own.reference:
            continue
        shapes = [f.shape(cell, own.reference) for f, cell in zip(figures, pair, strict=True)]
        if None in shapes:
            own.unreferenced += 1
            continue
        found.append((pair, sides.between(*shapes)))
    return found


def _notes(own: Comparison, a: dict, b: dict) -> None:
    libcs = a["machine"]["libc"], b["machine"]["libc"]
    if own.reference == sides.LIBC and None not in libcs and libcs[0] != libcs[1]:
        own.notes.append(
            f"the reference itself is not the same ({libcs[0]} and {libcs[1]}); "
            "--reference NAME takes another routine"
        )
    if a["wherry"] != b["wherry"] and not (a.get("source") or b.get("source")):
        own.notes.append(f"made by Wherry {a['wherry']} and {b['wherry']}")
    if a["started"] == b["started"] and a["cells"] == b["cells"]:
        own.notes.append("both are the same run")
    pins = [(run.get("method") or {}).get("pin") for run in (a, b)]
    if None not in pins and pins[0] != pins[1] and own.decision.method == machines.PAIRED:
        own.notes.append(f"the first run was pinned to CPU {pins[0]}, the second to CPU {pins[1]}")
    plans = [machine.plan_status(run["machine"]) for run in (a, b)]
    if None not in plans and plans[0] != plans[1]:
        own.notes.append(
            f"of Wherry's own routines in the first run {plans[0]}, in the second {plans[1]}"
        )
    for which, run in (("first", a), ("second", b)):
        if run["interrupted"]:
            own.notes.append(f"the {which} run was interrupted")
    for which, other, ours, theirs in (
        ("first", "second", own.only_a, own.only_b),
        ("second", "first", own.only_b, own.only_a),
    ):
        if number := match.untold_rooms(ours, theirs):
            cells = (
                "cell of the {} run is a packet"
                if number == 1
                else "cells of the {} run are packets"
            )
            own.notes.append(
                f"{number:,} {cells.format(which)} that an earlier Wherry did not tell from copies; the {other} run "
                "does, so they are compared with nothing: measure again for that"
            )


# ---- verdicts --------------------------------------------------------------------------------------------------------


def _floor(run: dict, experiment: str) -> float | None:
    return next(
        (e["noise_floor"] for e in run["experiments"] if e["name"] == experiment),
        run["noise"]["floor"],
    )


def _floors(own: Comparison, estimated: list, a: dict, b: dict) -> None:
    """Both floors together: each is what one run's figures are apart from themselves."""
    for (one, other), _ in estimated:
        name = one["experiment"]
        if name in own.floors:
            continue
        both = _floor(a, name), _floor(b, other["experiment"])
        if None in both:
            own.unfloored.append(name)
        told = [floor for floor in both if floor is not None]
        own.floors[name] = max(stats.LEAST_FLOOR, math.hypot(*told) if told else 0.0)


def _controls(own: Comparison, estimated: list) -> list[float]:
    """What cannot have changed between two runs of one machine: its libc and its yardsticks."""
    if own.decision.method != machines.PAIRED:
        return []
    names = set(YARDSTICKS) | (set() if "libc" in own.decision.differ else {sides.LIBC})
    return [side.log for (one, _), side in estimated if one["routine"] in names]


def _spread(logs: Sequence[float]) -> float:
    """A standard deviation that a few cells which did change do not move."""
    values = np.array(logs)
    return ROBUST * float(np.median(np.abs(values - np.median(values))))


def _moderated(estimated: list) -> list[tuple[tuple[dict, dict], Side]]:
    """Errors of few processes are drawn towards what all cells tell together, as far as they agree."""
    known = [i for i, (_, side) in enumerate(estimated) if side.error and side.freedom > 0]
    variances = np.array([estimated[i][1].error ** 2 for i in known])
    worth, centre = significance.prior(
        variances, np.array([estimated[i][1].freedom for i in known])
    )
    found = list(estimated)
    for i in known:
        pair, side = estimated[i]
        freedom = worth + side.freedom
        error = math.sqrt((worth * centre + side.freedom * side.error**2) / freedom)
        found[i] = pair, replace(side, error=error, freedom=freedom)
    return found


def _judge(own: Comparison, estimated: list, a: dict, b: dict) -> None:
    _floors(own, estimated, a, b)
    controls = _controls(own, estimated)
    scatter = drift = 0.0
    if len(controls) >= LEAST_CONTROLS:
        shift = float(np.median(controls))
        scatter = math.expm1(sides.WIDE * _spread(controls))
        own.control = (len(controls), math.exp(shift), scatter)
        drift = min(max(shift, -math.log1p(DRIFT)), math.log1p(DRIFT))
        if drift != shift:
            own.notes.append(
                f"libc and the yardsticks, whose code is the same, took {math.exp(shift):.2f}x the time: "
                "the machine was slower or faster (clock, neighbours, settings); --method shapes takes "
                "that out"
            )
    if (
        any(side.few or side.freedom <= 0 for _, side in estimated)
        and len(estimated) >= LEAST_CELLS
    ):
        own.bulk = _spread([side.log for _, side in estimated])
    judged = max(sum(one["routine"] not in YARDSTICKS for (one, _), _ in estimated), 1)
    for (one, other), side in _moderated(estimated):
        if side.few or side.freedom <= 0:
            side = _of_few_processes(side, own.bulk)
        # A t test of no freedom has no end.
        freedom = side.freedom if side.freedom > 0 else math.inf
        reach = [_within(freedom, level) for level in (LEVEL, LEVEL / judged)]
        if side.few:
            # The reference's cell may take it, too.
            apart = math.log1p(FEW_APART) * (2 if own.reference else 1)
            reach[1] = max(reach[1], apart / (side.error or 1.0))
        floor = max(own.floors[one["experiment"]], scatter)
        own.changes.append(_change(one, other, side, floor, drift, reach))


def _of_few_processes(side: Side, bulk: float | None) -> Side:
    """Judged by the scatter of all cells where there are enough, and where its own is more, by that; with fewer cells
    by its own, which a single process has not."""
    if bulk is None:
        return side if side.freedom > 0 else replace(side, error=None)
    # Half of all lie within the same distance, whatever the tails.
    half = _within(math.inf, 0.5) / _within(TAILS, 0.5)
    error = max(bulk * half, side.error or 0.0, sides.LEAST_ERROR)
    return replace(side, error=error, freedom=TAILS)


def _within(freedom: float, level: float) -> float:
    """Of Student's t, with two digits of the freedom: what nearly agrees shares the search."""
    freedom = min(freedom, 1000.0)
    grain = 10.0 ** (math.floor(math.log10(freedom)) - 1)
    return significance.t_within(round(max(math.floor(freedom / grain) * grain, 0.1), 2), level)


def _change(
    one: dict, other: dict, side: Side, floor: float, drift: float, within: Sequence[float]
) -> Change:
    """`drift`: what the clock explains, from nothing up to there; only what lies outside of that can be a change."""
    outside = max(side.log - max(drift, 0.0), min(drift, 0.0) - side.log, 0.0)
    noise = math.log1p(floor)
    reach = sure_reach = None
    verdict = UNDECIDED
    if side.error is not None:
        reach, sure_reach = (own * side.error for own in within)
        if outside > max(noise, sure_reach):
            verdict = SLOWER if side.log > 0 else FASTER
        elif outside <= noise and outside + reach <= 2 * noise:
            verdict = UNCHANGED

    def at(distance: float | None) -> float | None:
        # A figure of a hostile file may be beyond what an exponential has.
        return None if distance is None else math.exp(min(max(side.log + distance, -700), 700))

    return Change(
        one,
        other,
        verdict,
        at(0.0),
        at(None if reach is None else -reach),
        at(reach),
        at(None if sure_reach is None else -sure_reach),
        at(sure_reach),
        floor,
    )
