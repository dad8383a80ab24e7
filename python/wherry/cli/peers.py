"""Peers are loaded once before anything is done with them: one that breaks is named, the others go on without it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from wherry import runner
from wherry.cell import Problem
from wherry.errors import FailedError, WherryError
from wherry.yardsticks import INLINED, YARDSTICKS

# Longer than the runner's own limit, so that it can say itself what happened.
LOADING_LIMIT = 20.0
# What the runner takes at once.
MOST = 32
# Names that mean something else: a yardstick has no verdict, and `--routine all` is everybody.
_NO_NAMES = frozenset(("all", *YARDSTICKS, *INLINED))


def name_of(spec: str) -> str:
    return spec.partition("=")[0]


def check(
    specs: Sequence[str], limit: float = LOADING_LIMIT, found_by_us: Collection[str] = ()
) -> list[Problem]:
    """The peers that crash, hang or end the process while they are loaded; raises for those that are no peers, and
    names all of them. `found_by_us`: those that no --peer gave, so that giving fewer is no way out."""
    if len(specs) > MOST:
        raise WherryError(f"--peer: at most {MOST} at once")
    found, refused = [], []
    taken = set()
    for spec in specs:
        name = name_of(spec)
        # It stands in tables and run files, which are text.
        if not name.isprintable():
            raise WherryError(f"--peer '{spec}': a NAME has printable characters only")
        if name in taken or name in _NO_NAMES:
            raise WherryError(f"--peer '{spec}': the name {name} is taken; choose another")
        taken.add(name)
        try:
            wrong = runner.check_peer(spec, min(limit, LOADING_LIMIT))
        except FailedError:
            raise
        except WherryError as error:
            way_out = "; make peers builds such anew, --no-found-peers goes without"
            refused.append(f"{error}{way_out if name in found_by_us else ''}")
            continue
        if wrong:
            hung = wrong.startswith("hung") or " did not return " in wrong
            kind = "hang" if hung else "crash"
            found.append(Problem(kind, name, wrong))
    if refused:
        raise WherryError(*refused)
    return found


def without(specs: Iterable[str], problems: Iterable[Problem]) -> list[str]:
    """The peers that load."""
    broken = {problem.routine for problem in problems}
    return [spec for spec in specs if name_of(spec) not in broken]
