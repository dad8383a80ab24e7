"""How children end is told to whoever does not ignore SIGCHLD. Whoever started us may have it ignored (a shell's
`trap '' CHLD`, a daemon), and Python takes a child of which nothing is told for one that ended well. So it is not
ignored here, and is in the programs that we start for others, which have it as without us."""

from __future__ import annotations

import signal
from collections.abc import Callable

_ignored = False


def are_heard() -> None:
    """From here on, by this process."""
    global _ignored
    _ignored = _ignored or signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
    if _ignored:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def give_back() -> None:
    """As it came, for a program that is executed in our place."""
    if _ignored:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def before_exec() -> Callable[[], None] | None:
    """What subprocess is to call in the child that becomes somebody's program; as a rule nothing."""
    return give_back if _ignored else None
