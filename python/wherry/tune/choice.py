"""The choice of routines: which of a tier serve a mix best."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wherry import plans
from wherry.row import Row
from wherry.tune import grids, measuring, prove
from wherry.tune.prove import DEFAULT, TUNED
from wherry.tune.session import WORTH, Dimension, Session, with_rounds


def choice(session: Session) -> None:
    base = session.result.default
    able = [
        choice
        for choice in plans.CHOICES
        if not plans.lacks(base.changed(choice=choice), session.reported)
    ]
    # The default first: it is the one that is measured twice.
    able = [base.choice, *(choice for choice in able if choice != base.choice)]
    own = {choice: base.changed(choice=choice) for choice in able}
    names = {f"plan_{choice}": plan for choice, plan in own.items()}
    rows = _mix_rows(session, list(names), session.extent.rounds, held_out=False)
    campaign = session.take("choice", rows, names, session.extent.processes)
    gains = {}
    for choice in able[1:]:
        pairs = [
            measuring.log_ratios(campaign, i, f"plan_{choice}", f"plan_{able[0]}")
            for i in range(len(rows))
        ]
        calls = session.calls()
        weights = calls and [
            count * (measuring.nanoseconds(campaign, i, f"plan_{able[0]}") or 0)
            for i, count in enumerate(calls)
        ]
        if logs := prove.over_rows(pairs, weights):
            gains[choice] = 1 - math.exp(float(np.median(np.concatenate(logs))))
    best = max(gains, key=gains.get, default=base.choice)
    if gains.get(best, 0) < WORTH:
        best = base.choice
    dimension = Dimension("choice", base.choice, best, gains.get(best))
    session.settle(
        dimension,
        lambda: _mix_rows(session, (DEFAULT, TUNED), session.extent.proof_rounds, held_out=True),
        base.changed(choice=best, name="tuned"),
    )


def _mix_rows(session: Session, names: Sequence[str], rounds: int, held_out: bool) -> list[Row]:
    if not session.mixes:
        extent = session.extent
        mixes = grids.HELD_OUT_MIXES if held_out else grids.MIXES
        return [
            row if row.rounds == rounds else with_rounds(row, rounds)
            for row in grids.choice(names, extent, mixes)
        ]
    return [own.row(names, rounds, session.extent.batch_us) for own in session.mixes]
