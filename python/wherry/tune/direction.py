"""How far ahead of the source a destination makes the loop go backward."""

from __future__ import annotations

import math

from wherry import plans
from wherry.plans import Plan
from wherry.row import Row
from wherry.tune import choose, grids
from wherry.tune.prove import DEFAULT, TUNED
from wherry.tune.session import MARGIN, WORTH, Dimension, Session, window_of, with_rounds
from wherry.units import MIB

# Of copies that go by the loop, those from here on may go backward (src/routines/thresholds.h).
EITHER_WAY_FROM = 2049
EITHER_WAY_FROM_AVX512 = 4096
HELD_OUT_AHEAD = (8, 40, 300, 900, 1400)


def direction(session: Session, turned: list[tuple[Row, float]]) -> None:
    """`turned`: rows with the destination ahead, and log of the turned loop's time over that of the plan."""
    base = session.result.plan
    now = base.thresholds["copy_backward_ahead"]
    logs: dict[int, list[float]] = {}
    for row, log in turned:
        if _by_loop(session, row):
            logs.setdefault(row.delta, []).append(-log if now else log)
    if not logs:
        return
    curves = {ahead: sum(own) / len(own) for ahead, own in logs.items()}
    found = choose.backward_ahead(curves, MARGIN, plans.BACKWARD_AHEAD)
    differ = [
        log * (1 if ahead <= found else -1)
        for ahead, log in curves.items()
        if (ahead <= found) != (ahead <= now)
    ]
    gain = 1 - math.exp(sum(differ) / len(differ)) if differ else None
    if gain is None or gain < WORTH:
        found = now
    candidate = base.changed(copy_backward_ahead=found)

    def held_out() -> list[Row]:
        sizes = [
            n
            for n in grids.off_grid(_either_way_from(base), min(session.extent.largest, 4 * MIB), 1)
            if n <= session.largest
        ]
        ahead = [(5, None, n) for n in HELD_OUT_AHEAD if (n <= found) != (n <= now)]
        rows = grids.windows(
            "copy", (DEFAULT, TUNED), session.extent, session.caches, sizes[::2], ahead
        )
        return [with_rounds(r, session.extent.proof_rounds) for r in rows if _by_loop(session, r)]

    session.settle(
        Dimension("copy: direction", _backward_words(now), _backward_words(found), gain),
        held_out,
        candidate,
    )


def _by_loop(session: Session, row: Row) -> bool:
    """Does the plan take a loop there, and one that may go either way?"""
    t = session.result.plan.thresholds
    window = window_of(session.result.plan, "copy", recent=grids.is_near(row))
    least = _either_way_from(session.result.plan)
    return least <= row.size < t["copy_stream_from"] and not window.has(row.size)


def _either_way_from(plan: Plan) -> int:
    if plan.choice not in ("avx512", "avx512_together"):
        return EITHER_WAY_FROM
    return max(EITHER_WAY_FROM, min(EITHER_WAY_FROM_AVX512, plan.thresholds["copy_ymm_from"]))


def turned_over(plan: Plan) -> int:
    return 0 if plan.thresholds["copy_backward_ahead"] else plans.BACKWARD_AHEAD


def _backward_words(ahead: int) -> str:
    return f"backward 1 to {ahead} B ahead" if ahead else "forward"
