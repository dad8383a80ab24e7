"""Whether copies past the caches go from both ends or in parts side by side."""

from __future__ import annotations

import math

from wherry.plans import OFF
from wherry.row import Row
from wherry.tune import grids, measuring
from wherry.tune.prove import DEFAULT, TUNED
from wherry.tune.session import MARGIN, WORTH, Dimension, Session, with_rounds
from wherry.units import KIB

# The least size that was found to gain by parts (docs/performance-intel-large.md); below, both ways take as long.
LEAST = 32 * KIB
ENDS, PARTS = "both_ends", "parts"
_WORDS = {ENDS: "from both ends", PARTS: "in parts"}


def parts(session: Session) -> None:
    base = session.result.plan
    start, now = base.past_from("copy"), base.thresholds["copy_parts_from"]
    sizes = [
        n
        for n in grids.stream_grid(session.extent, session.last_level)
        if start <= n <= session.largest
    ][:2]
    if start == OFF or not sizes:
        return
    own = {ENDS: base.changed(copy_parts_from=OFF), PARTS: base.changed(copy_parts_from=0)}
    rows = _rows(session, (ENDS, PARTS), sizes)
    campaign = session.take("copy: parts", rows, own, session.extent.processes)
    logs: dict[int, list[float]] = {}
    for i, row in enumerate(rows):
        log = measuring.log_ratio(campaign, i, PARTS, ENDS)
        if log is not None:
            logs.setdefault(row.threads, []).append(log)
    means = [sum(of) / len(of) for of in logs.values()]
    found = now
    if means and max(means) < -MARGIN and now > start:
        found = LEAST
    elif means and min(means) > MARGIN and now <= start:
        found = OFF
    gain = None
    if found != now:
        saved = sum(means) / len(means)
        gain = 1 - math.exp(saved if found != OFF else -saved)
        if gain < WORTH:
            found = now
    candidate = base.changed(copy_parts_from=found)

    def held_out() -> list[Row]:
        off_grid = grids.off_grid(start, session.extent.largest, session.extent.step)
        proof = _rows(session, (DEFAULT, TUNED), [n for n in off_grid if n <= session.largest][:3])
        return [with_rounds(row, session.extent.proof_rounds) for row in proof]

    words = {way: _WORDS[ENDS if way > start else PARTS] for way in (now, found)}
    session.settle(Dimension("copy: parts", words[now], words[found], gain), held_out, candidate)


def _rows(session: Session, routines: tuple[str, ...], sizes: list[int]) -> list[Row]:
    """Both sides in memory: in the caches nothing is there to be waited for."""
    rows = grids.streams("copy", routines, session.extent, sizes)
    return [row for row in rows if grids.stream_kind(row) == grids.MEMORY]
