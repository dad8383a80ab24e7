"""The sizes from which stores go past the caches."""

from __future__ import annotations

import math

from wherry.plans import OFF
from wherry.row import Row
from wherry.tune import choose, grids, measuring
from wherry.tune.prove import DEFAULT, TUNED
from wherry.tune.session import MARGIN, WORTH, Dimension, Session, from_words, with_rounds
from wherry.units import size_in_words


def streams(session: Session, side: str) -> None:
    base = session.result.plan
    grid = [
        n for n in grids.stream_grid(session.extent, session.last_level) if n <= session.largest
    ]
    now = base.past_from(side)
    far = base.thresholds[f"{side}_stream_from"]  # less than now: where nothing was touched lately
    if len(grid) < 2:
        if session.largest == session.extent.largest:  # else the mix has no calls that large
            session.result.notes.append(
                f"{side}: from which size stores past the caches win was not measured: sizes to "
                f"{size_in_words(session.largest)} were, and it is "
                f"{size_in_words(grids.stream_least(session.last_level))} at least"
            )
        return
    to = f"{side}_rep_to"
    strings = base.thresholds[f"{side}_rep_from"] != OFF
    cached = base.past(side, OFF) | ({to: OFF} if strings else {})
    first = grid[0] // 2
    past = base.past(side, first)
    if strings:
        past[to] = max(first, base.thresholds[f"{side}_rep_from"])
    own = {"cached": base.changed(**cached), "past": base.changed(**past)}
    rows = grids.streams(side, ("cached", "past"), session.extent, grid)
    campaign = session.take(f"{side}: past the caches", rows, own, session.extent.processes)
    curves: dict[tuple[int, str], dict[int, list[float]]] = {}
    for i, row in enumerate(rows):
        log = measuring.log_ratio(campaign, i, "past", "cached")
        if log is not None:
            kind = row.threads, grids.stream_kind(row)
            curves.setdefault(kind, {}).setdefault(row.size, []).append(log)
    means = {
        kind: {size: sum(logs) / len(logs) for size, logs in own.items()}
        for kind, own in curves.items()
    }
    starts = {kind: choose.from_on(curve, MARGIN) for kind, curve in means.items()}
    found = choose.safer(*starts.values()) if starts else None
    told = "; ".join(
        f"{'alone' if threads == 1 else f'{threads} CPUs at once'}, {kind}: "
        + (f"from {size_in_words(start)}" if start is not None else "at no size")
        for (threads, kind), start in sorted(starts.items())
    )
    if told:
        session.result.notes.append(f"{side}: stores past the caches win {told}")
    start = OFF if found is None else found
    both = choose.mean_curve(list(means.values()))
    differ = [n for n in both if (n >= start) != (n >= now)]
    gain = None
    if differ:
        saved = sum(both[n] * (1 if n >= now else -1) for n in differ) / len(differ)
        gain = 1 - math.exp(-saved)
    changes = {}
    if differ and gain >= WORTH:
        changes = base.past(side, start)
        if far < now:
            changes = {
                f"{side}_stream_from": min(far, start),
                f"{side}_stream_recent_from": start,
            }
        if strings:
            ended = base.thresholds[to]
            end = start if ended == now else min(ended, start)
            changes[to] = max(end, base.thresholds[f"{side}_rep_from"])
    candidate = base.changed(**changes)
    dimension = Dimension(
        f"{side}: past the caches",
        from_words(now),
        from_words(candidate.past_from(side)),
        gain,
    )

    def held_out() -> list[Row]:
        sizes = [
            n
            for n in grids.off_grid(
                grid[0], min(session.extent.largest, 2 * max(grid)), session.extent.step
            )
            if (n >= start) != (n >= now)
        ]
        rows = grids.streams(side, (DEFAULT, TUNED), session.extent, sizes[:4])
        return [with_rounds(row, session.extent.proof_rounds) for row in rows]

    session.settle(dimension, held_out, candidate)
