"""Rows of routines of which something is known (runner/measure/known.h), and the campaign that hears how long a link of
their chain takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wherry.campaign import Campaign, Row
from wherry.errors import FailedError
from wherry.selfcheck.claims import Session

TWINS = ("known_copy_a", "known_copy_b")
MOST_LINKS = 4096
# Before and after a row: beyond that the clock has moved in it, and nobody can say how long its delay was.
STEADY = 0.02


def chain(links: int) -> str:
    return f"known_chain+{links}"


def label(row: Row) -> str:
    """`4096 B, L1, offsets 3 and 17, latency`."""
    what = row.mix or f"{row.size} B"
    where = row.src_state if row.src_state == row.dst_state else f"{row.src_state}/{row.dst_state}"
    words = [what, where]
    if row.src_off or row.dst_off:
        words.append(f"offsets {row.src_off} and {row.dst_off}")
    if row.mode != "throughput":
        words.append(row.mode)
    return ", ".join(words)


class KnownCampaign(Campaign):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.links: dict[tuple[int, int], tuple[float, float]] = {}  # ns by process and row

    def _event(self, event, process, pending, state) -> None:
        if event["event"] == "rowend" and event.get("link_ns"):
            self.links[process, event["id"]] = tuple(event["link_ns"])
        super()._event(event, process, pending, state)

    def steady_link(self, process: int, row: int) -> float | None:
        """Nanoseconds of a link while the row was measured, or None when that changed meanwhile."""
        before, after = self.links.get((process, row), (0.0, 0.0))
        if not before or abs(after / before - 1) > STEADY:
            return None
        return (before + after) / 2

    def median(self, row: int, routine: str, process: int | None = None) -> float | None:
        cell = self.cells.get((row, routine, False))
        if cell is None or not cell.ns:
            return None
        samples = cell.ns if process is None else {process: cell.ns.get(process, np.empty(0))}
        values = np.concatenate(list(samples.values()))
        return float(np.median(values)) if len(values) else None


def measure(session: Session, rows: list[Row], processes: int, seed: int) -> KnownCampaign:
    rows = [replace(row, experiment="self-check") for row in rows]
    campaign = KnownCampaign(rows, processes=processes, pin=session.pin, seed=seed)
    campaign.run()
    if campaign.interrupted:
        raise KeyboardInterrupt
    for problem in campaign.problems:
        # A row that this machine cannot have (no such cache) is no fault of the method.
        if problem.kind != "skip":
            raise FailedError(f"self-check: {problem.routine or 'a row'}: {problem.message}")
    return campaign
