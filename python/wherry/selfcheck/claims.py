"""What is to be shown, how well, and what all parts share while they do it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from wherry import jobcontrol

# Seconds for everything; what is not done by then may stay undecided.
LIMIT, QUICK_LIMIT = 180.0, 60.0
# A claim may not say more than its bar: these are what the method promises, not what a machine happened to give.
WITHIN, SHARE = 0.05, 0.95
RUNS, QUICK_RUNS = 20, 5


@dataclass
class Claim:
    """One thing that is to be shown, and what came of it."""

    name: str
    says: str
    bar: str
    measured: str = ""
    passed: bool | None = None  # None: could not be tried, or undecided; the reason says why
    undecided: bool = (
        False  # tried, and what could be measured shows neither that it holds nor that it fails
    )
    reason: str = ""
    note: str = ""  # worth knowing, and no part of the claim
    seconds: float = 0.0
    cells: list[dict] = field(default_factory=list)

    def leave_open(self, reason: str) -> None:
        self.passed, self.undecided, self.reason = None, True, reason

    def as_dict(self) -> dict:
        return asdict(self) | {"seconds": round(self.seconds, 2)}


@dataclass
class Session:
    """What all parts share."""

    seed: int
    pin: int | None
    quick: bool
    deadline: float  # of jobcontrol.clock()
    progress: Callable[[str], None] = lambda what: None

    def late(self) -> bool:
        return jobcontrol.clock() > self.deadline

    def runs(self) -> int:
        return QUICK_RUNS if self.quick else RUNS
