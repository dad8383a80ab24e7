"""Which loop copies from 513 bytes on go by, where AVX-512 leaves a choice: at lines of which side, and how wide the
vectors are."""

from __future__ import annotations

import math
from collections.abc import Mapping

from wherry.plans import OFF, YMM_LEAST, Plan
from wherry.row import Row
from wherry.tune import choose, grids, measuring
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
from wherry.units import KIB, size_in_words

# The least size that has a loop, and the largest below which all are one: those of source_lines_to above or not.
LEAST, ONE = 513, 1024
LARGEST = 32 * KIB
# From here on a loop that may go backward is at lines of the destination (src/routines/thresholds.h).
EITHER_WAY = 4096
SOURCE, DESTINATION, HALVES = "source_lines", "destination_lines", "32_byte_vectors"
_NEVER_REP = {"copy_rep_from": OFF, "copy_rep_to": 0, "copy_rep_recent_from": 0}


def loops(session: Session) -> None:
    base = session.result.plan
    if base.choice not in ("avx512", "avx512_together"):
        return
    zmm = base.changed(**_NEVER_REP, copy_ymm_from=OFF)
    own = {
        SOURCE: zmm.changed(copy_source_lines_to=OFF),
        DESTINATION: zmm.changed(copy_source_lines_to=0),
        HALVES: zmm.changed(copy_ymm_from=YMM_LEAST),
    }
    limit = min(session.largest, LARGEST)
    grid = [n for n in grids.loop_grid(session.extent) if LEAST <= n <= limit]
    if not grid:
        return
    rows = grids.windows(
        "copy", tuple(own), session.extent, session.caches, grid, grids.loop_places()
    )
    campaign = session.take("copy: loop", rows, own, session.extent.processes)
    curves = {name: _curve(campaign, rows, name) for name in (DESTINATION, HALVES)}
    lines = choose.split(
        {n: log for n, log in curves[DESTINATION].items() if not _either_way(base, n)}, ONE
    )
    over = _over_the_best(curves[HALVES], curves[DESTINATION], lines)
    halves = choose.from_on(over, MARGIN)
    if halves is not None and halves == min(over):
        halves = YMM_LEAST
    candidate = base.changed(
        copy_source_lines_to=lines, copy_ymm_from=OFF if halves is None else halves
    )
    gain = _gain(curves, base, candidate)
    if gain is None or gain < WORTH:
        candidate = base
    session.settle(
        Dimension("copy: loop", _words(base), _words(candidate), gain),
        lambda: _proof(session, base, candidate, limit),
        candidate,
    )


def loop_of(plan: Plan, size: int) -> str:
    """Of those above, for a size that goes by a loop."""
    if size >= max(plan.thresholds["copy_ymm_from"], YMM_LEAST):
        return HALVES
    if _either_way(plan, size):
        return DESTINATION
    least = ONE + 1 if size <= ONE else size + 1
    return SOURCE if plan.thresholds["copy_source_lines_to"] >= least else DESTINATION


def _either_way(plan: Plan, size: int) -> bool:
    return size >= EITHER_WAY and plan.thresholds["copy_backward_ahead"] > 0


def _curve(campaign: measuring.PlanCampaign, rows: list[Row], name: str) -> dict[int, float]:
    """By size: log of the time over that by lines of the source."""
    logs: dict[int, list[float]] = {}
    for i, row in enumerate(rows):
        log = measuring.log_ratio(campaign, i, name, SOURCE)
        if log is not None:
            logs.setdefault(row.size, []).append(log)
    return {size: sum(own) / len(own) for size, own in logs.items()}


def _over_the_best(halves: choose.Curve, destination: choose.Curve, lines: int) -> dict[int, float]:
    """Of the sizes that may go by either: 32-byte vectors over the lines that were found."""
    return {
        n: log - (0.0 if n < lines else destination.get(n, 0.0))
        for n, log in halves.items()
        if n >= YMM_LEAST
    }


def _gain(curves: Mapping[str, choose.Curve], base: Plan, candidate: Plan) -> float | None:
    """Of the sizes that the two treat differently."""
    differ = [
        curves.get(new, {}).get(n, 0.0) - curves.get(old, {}).get(n, 0.0)
        for n in curves[DESTINATION]
        if (new := loop_of(candidate, n)) != (old := loop_of(base, n))
    ]
    return 1 - math.exp(sum(differ) / len(differ)) if differ else None


def _proof(session: Session, base: Plan, candidate: Plan, limit: int) -> list[Row]:
    """Where the plan takes a loop, and another one than before."""
    sizes = [
        n
        for n in grids.off_grid(LEAST, limit, session.extent.step)
        if loop_of(base, n) != loop_of(candidate, n)
    ]
    rows = grids.windows(
        "copy",
        (DEFAULT, TUNED),
        session.extent,
        session.caches,
        sizes[:: max(len(sizes) // 8, 1)],
        grids.held_out_places("copy"),
    )
    return [
        with_rounds(row, session.extent.proof_rounds)
        for row in rows
        if not window_of(base, "copy", recent=grids.is_near(row)).has(row.size)
    ]


def _words(plan: Plan) -> str:
    lines, halves = (plan.thresholds[f"copy_{key}"] for key in ("source_lines_to", "ymm_from"))
    if lines == OFF:
        text = "lines of the source"
    elif lines <= LEAST:
        text = "lines of the destination"
    else:
        text = f"lines of the source to {size_in_words(lines)}, then of the destination"
    return text if halves == OFF else f"{text}; 32-byte vectors {from_words(halves)}"
