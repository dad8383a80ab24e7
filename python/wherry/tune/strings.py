"""String instructions: the sizes at which they win over the loop, by where the destination lies and by how lately
it was written."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from wherry import plans
from wherry.plans import OFF, Plan
from wherry.row import Row
from wherry.tune import choose, cliffs, grids, measuring
from wherry.tune.choose import Window
from wherry.tune.direction import turned_over
from wherry.tune.prove import DEFAULT, TUNED
from wherry.tune.session import (
    MARGIN,
    WORTH,
    Dimension,
    Session,
    from_words,
    window_of,
    with_rounds,
)
from wherry.units import size_in_words


@dataclass
class Curves:
    """By size: log of string instructions' time over the loop's."""

    far: dict[tuple, dict[int, float]] = field(default_factory=dict)  # by place
    near: dict[int, float] = field(default_factory=dict)  # a destination that was written lately
    # Rows with the destination ahead, and log of the turned loop's time over that of the plan.
    turned: list[tuple[Row, float]] = field(default_factory=list)


def strings(session: Session, side: str) -> list[tuple[Row, float]]:
    """Returns what was measured of the loop's direction on the way."""
    base = session.result.plan
    curves = _curves(session, side)
    near = curves.near
    usual = [curve for place, curve in curves.far.items() if place in grids.PLACES or side == "set"]
    curve = choose.mean_curve(usual)
    found = choose.window(curve)
    now, now_near = window_of(base, side), window_of(base, side, recent=True)
    recent = None
    if found.start is not None:
        recent = choose.recent_from(near, found, _both_near(session, base, side), MARGIN)
    changes = _window_changes(side, found, recent, base.past_from(side))
    if side == "copy" and found.start is not None:
        ahead = {
            delta: own
            for (_, _, delta), own in curves.far.items()
            if delta is not None and delta in grids.AHEAD
        }
        checked = Window(recent, found.end)
        distance = choose.slow_ahead(ahead, checked, MARGIN)
        every = choose.all_from(ahead, distance, checked) if distance else found.start
        changes |= {
            "copy_rep_slow_ahead": distance,
            "copy_rep_all_from": OFF if every is None else max(every, found.start),
        }
    candidate = base.changed(**changes)
    # Not beyond where stores go past the caches.
    found, found_near = window_of(candidate, side), window_of(candidate, side, recent=True)
    # Of the sizes that the two treat differently.
    differ = [
        own[n] * (1 if old.has(n) else -1)
        for own, new, old in ((curve, found, now), (near, found_near, now_near))
        for n in own
        if new.has(n) != old.has(n)
    ]
    gain = 1 - math.exp(-sum(differ) / len(differ)) if differ else None
    if not differ or gain < WORTH:
        changes = {}
        candidate = base
    dimension = Dimension(
        f"{side}: string instructions",
        _window_words(base, side),
        _window_words(candidate, side),
        gain,
    )
    far = (now, found)
    session.settle(
        dimension, lambda: _window_proof(session, side, far, (now_near, found_near)), candidate
    )
    return curves.turned


def _curves(session: Session, side: str) -> Curves:
    """The near one is over the usual places. Also looks for cliffs."""
    base = session.result.plan
    off = {
        f"{side}_rep_from": OFF,
        f"{side}_rep_to": 0,
        **base.past(side, OFF),
    }
    always = {
        f"{side}_rep_from": plans.REP_LEAST,
        f"{side}_rep_to": OFF,
        **base.past(side, OFF),
    }
    off[f"{side}_rep_recent_from"] = 0
    always[f"{side}_rep_recent_from"] = plans.REP_LEAST
    if side == "copy":
        off |= {"copy_rep_slow_ahead": 0, "copy_rep_all_from": 0}
        always |= {"copy_rep_slow_ahead": 0, "copy_rep_all_from": plans.REP_LEAST}
    own = {"loop": base.changed(**off), "strings": base.changed(**always), TUNED: base}
    names = ("loop", "strings", TUNED, "libc")
    usual = grids.PLACES if side == "copy" else grids.set_places()
    grid = [n for n in grids.rep_grid(session.extent, session.last_level) if n <= session.largest]
    rows = grids.windows(side, names, session.extent, session.caches, grid, usual)
    if side == "copy":
        ahead = [(0, None, distance) for distance in grids.AHEAD]
        small = [n for n in grids.small_grid(session.extent) if n <= session.largest]
        own["turned"] = own["loop"].changed(copy_backward_ahead=turned_over(base))
        rows += grids.windows(
            side, (*names, "turned"), session.extent, session.caches, small, ahead
        )
    campaign = session.take(f"{side}: windows", rows, own, session.extent.processes)
    sums: dict[tuple, dict[int, list[float]]] = {}
    near: dict[int, list[float]] = {}
    turned: list[tuple[Row, float]] = []
    speeds: dict[tuple, dict[int, list[float]]] = {}
    for i, row in enumerate(rows):
        place = (row.src_off, row.dst_off, row.delta)
        log = measuring.log_ratio(campaign, i, "strings", "loop")
        if log is not None and place in usual and grids.is_near(row):
            near.setdefault(row.size, []).append(log)
        elif log is not None:
            sums.setdefault(place, {}).setdefault(row.size, []).append(log)
        log = measuring.log_ratio(campaign, i, "turned", "loop")
        if log is not None:
            turned.append((row, log))
        for name, shown in (("libc", "libc"), (TUNED, "wherry")):
            cell = campaign.cells.get((i, name, False))
            # Where time ran out fewer measured than were to.
            if cell and len(cell.ns) == session.extent.processes:
                key = (side, shown, row.src_state, _place_in_words(row))
                speeds.setdefault(key, {})[row.size] = cliffs.by_each(cell.ns)
    session.result.cliffs += cliffs.find(speeds)
    return Curves({place: _means(own) for place, own in sums.items()}, _means(near), turned)


def _both_near(session: Session, base: Plan, side: str) -> int:
    """The default for the size from which a destination that was written lately goes by string instructions: that
    of the plan in force, else where both sides leave the first level, or a set three quarters of the second."""
    if base.thresholds[f"{side}_rep_from"] != OFF:
        return base.thresholds[f"{side}_rep_recent_from"]
    if side == "copy":
        return (session.caches["L1"] or 32 << 10) // 2
    return (session.caches["L2"] or 512 << 10) // 4 * 3


def _window_proof(
    session: Session, side: str, far: tuple[Window, Window], near: tuple[Window, Window]
) -> list[Row]:
    """far and near: what is so now, and what was found."""

    def differ(n: int, own: tuple[Window, Window]) -> bool:
        return own[0].has(n) != own[1].has(n)

    grid = [
        n
        for n in grids.off_grid(
            256, min(session.extent.largest, session.last_level), session.extent.step
        )
        if n <= session.largest and (differ(n, far) or differ(n, near))
    ]
    rows = grids.windows(
        side,
        (DEFAULT, TUNED),
        session.extent,
        session.caches,
        grid[:: max(len(grid) // 12, 1)],
        grids.held_out_places(side),
    )
    return [
        with_rounds(row, session.extent.proof_rounds)
        for row in rows
        if differ(row.size, near if grids.is_near(row) else far)
    ]


def _means(own: dict[int, list[float]]) -> dict[int, float]:
    return {size: sum(logs) / len(logs) for size, logs in own.items()}


def _place_in_words(row: Row) -> str:
    if row.op == "set":
        return f"destination + {row.dst_off}"
    if row.delta is not None:
        return f"source + {row.src_off}, destination {row.delta} ahead mod 4096"
    return f"source + {row.src_off}, destination + {row.dst_off}"


def _window_changes(
    side: str, found: Window, recent: int | None, stream_from: int
) -> dict[str, int]:
    if found.start is None:
        off = {f"{side}_rep_from": OFF, f"{side}_rep_to": 0, f"{side}_rep_recent_from": 0}
        return off | ({"copy_rep_slow_ahead": 0, "copy_rep_all_from": 0} if side == "copy" else {})
    end = stream_from if found.end is None else min(found.end, stream_from)
    return {
        f"{side}_rep_from": found.start,
        f"{side}_rep_to": max(end, found.start),
        f"{side}_rep_recent_from": recent,
    }


def _window_words(plan: Plan, side: str) -> str:
    t = plan.thresholds
    start, end = t[f"{side}_rep_from"], t[f"{side}_rep_to"]
    if start == OFF:
        return "never"
    text = f"{size_in_words(start)} to {'any size' if end == OFF else size_in_words(end)}"
    if (recent := t[f"{side}_rep_recent_from"]) != start:
        text += f"; written lately {from_words(recent)}"
    if side == "copy" and t["copy_rep_slow_ahead"]:
        every = t["copy_rep_all_from"]
        limit = "never" if every == OFF else f"from {size_in_words(every)}"
        text += f"; 1 to {t['copy_rep_slow_ahead']} B ahead {limit}"
    return text
