"""`wherry bench --self-check`: shows on this machine that the method is right, by what is known beforehand."""

from __future__ import annotations

from wherry import jobcontrol
from wherry.selfcheck.claims import QUICK_RUNS, RUNS, Claim, Session


def steps(quick: bool) -> int:
    """Calls of progress that a session will make."""
    from wherry.selfcheck import delays, independent

    return delays.steps(quick) + 1 + (QUICK_RUNS if quick else RUNS) + independent.steps(quick)


def check(session: Session) -> list[Claim]:
    """All claims, in the order in which they are told."""
    from wherry.selfcheck import delays, independent, verdicts

    claims: list[Claim] = []
    for part in (delays.check, verdicts.check, independent.check):
        began = jobcontrol.clock()
        made = part(session)
        for claim in made:
            # Parts that are measured together share their time.
            claim.seconds = (jobcontrol.clock() - began) / len(made)
        claims += made
    return claims
