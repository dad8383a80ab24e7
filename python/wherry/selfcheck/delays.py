"""The first claim: a delay that was added to a routine is measured as long as it is. A link of the chain is timed in a
long run of its own, by another clock; so many links are so much time."""

from __future__ import annotations

import statistics

import numpy as np

from wherry.campaign import Row
from wherry.selfcheck.claims import WITHIN, Claim, Session
from wherry.selfcheck.known import chain, label, measure
from wherry.units import plural

# Far above the few cycles by which a fence and the stores it waits for differ from call to call.
LINKS = (128, 256, 512, 1024, 2048)
LONG_LINKS = (512, 1024, 2048)
LEAST_PROCESSES = 3


def _row(size: int, links: tuple[int, ...] = LINKS, **where) -> tuple[Row, tuple[int, ...]]:
    routines = tuple(chain(count) for count in (0, *links))
    return Row("", "copy", routines, size, rounds=15, batch_us=60, **where), links


ROWS = (
    _row(64),
    _row(1024),
    _row(1024, mode="latency"),
    _row(4096, src_off=3, dst_off=17),
    _row(8192),
    _row(65536, LONG_LINKS, src_state="L2", dst_state="L2"),
)


def processes(quick: bool) -> int:
    return 3 if quick else 5


def steps(quick: bool) -> int:
    return 1


def check(session: Session) -> list[Claim]:
    claim = Claim(
        "delay",
        "a routine with a known added delay is measured right",
        f"every delay within {WITHIN:.0%}",
    )
    session.progress("known delays")
    campaign = measure(session, [row for row, _ in ROWS], processes(session.quick), session.seed)
    tried, restless, disturbed = 0, 0, False
    for number, (row, links) in enumerate(ROWS):
        steady = {p: campaign.steady_link(p, number) for p in range(campaign.processes)}
        there = [process for process in steady if (process, number) in campaign.links]
        tried += len(there)
        restless += sum(steady[process] is None for process in there)
        for count in links:
            found = []
            for process, link in steady.items():
                base = campaign.cells.get((number, chain(0), False))
                delayed = campaign.cells.get((number, chain(count), False))
                if link is None or not base or process not in base.ns or process not in delayed.ns:
                    continue
                if process in base.disturbed_in | delayed.disturbed_in:
                    # Too few good rounds: what it has are those that were thrown away, which nobody trusts.
                    disturbed = True
                    continue
                added = float(np.median(delayed.ns[process] - base.ns[process]))
                found.append((added / (count * link), count * link, added))
            if len(found) < LEAST_PROCESSES:
                continue
            ratio, known, added = (statistics.median(column) for column in zip(*found, strict=True))
            claim.cells.append(
                {
                    "cell": label(row),
                    "links": count,
                    "known_ns": round(known, 2),
                    "measured_ns": round(added, 2),
                    "error": round(ratio - 1, 5),
                    "processes": len(found),
                }
            )
    errors = [abs(cell["error"]) for cell in claim.cells]
    if not errors:
        claim.passed = False
        claim.reason = "no delay was measured"
        if campaign.links and (restless or disturbed):
            why = "the clock moved in every row" if restless else "every row was disturbed"
            claim.leave_open(f"{why}, so that no delay was known")
        return [claim]
    good = sum(error <= WITHIN for error in errors)
    known = [cell["known_ns"] for cell in claim.cells]
    claim.measured = (
        f"{good} of {len(errors)} delays of {min(known):.0f} to {max(known):.0f} ns; "
        f"worst {max(errors):.1%}, median {statistics.median(errors):.1%} off"
    )
    claim.passed = good == len(errors)
    if restless:
        claim.reason = (
            f"{restless} of {tried} rows of {plural(campaign.processes, 'process', 'processes')} left out: the clock "
            "moved meanwhile"
        )
    return [claim]
