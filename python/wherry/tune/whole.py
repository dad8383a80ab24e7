"""From nothing to a plan that was proved, one dimension after the other: the choice of routines first, then its loops,
whose windows the next ones are, and the sizes from which stores go past the caches."""

from __future__ import annotations

from wherry import jobcontrol
from wherry.tune.choice import choice
from wherry.tune.direction import direction
from wherry.tune.loops import loops
from wherry.tune.parts import parts
from wherry.tune.session import Session, StoppedError, Tuned
from wherry.tune.streams import streams
from wherry.tune.strings import strings


def tune(session: Session) -> Tuned:
    """What was interrupted has what was found until then."""
    began = jobcontrol.clock()
    session.begin()
    try:
        choice(session)
        loops(session)
        for side in ("copy", "set"):
            turned = strings(session, side)
            if side == "copy":
                direction(session, turned)
            streams(session, side)
            if side == "copy":
                parts(session)
    except StoppedError:
        session.result.interrupted = True
    session.result.seconds = jobcontrol.clock() - began
    return session.result
