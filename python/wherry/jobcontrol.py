"""Ctrl-Z. A runner has a session of its own, so that Ctrl-C is ours alone to answer, and the terminal would stop us and
not it. Whoever follows is told before we stop and after we go on."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator

Told = Callable[[], None]

_following: list[tuple[Told, Told]] = []
_stood = [0.0]  # seconds, of all stops
_held = [0]  # how many of us are about to start somebody
_waits = [False]  # a Ctrl-Z, for the last of them


def clock() -> float:
    """Seconds as time.monotonic() has them, without those that we have stood still by Ctrl-Z: no limit of ours is about
    them."""
    return time.monotonic() - _stood[0]


def _on_stop(number: int, frame: object) -> None:
    if _held[0]:
        _waits[0] = True
        return
    for before, _ in _following:
        before()
    began = time.monotonic()
    signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    try:
        # To this thread, which stops with all others before the call returns; nothing happens where no shell is there
        # to continue us.
        signal.raise_signal(signal.SIGTSTP)
    finally:
        signal.signal(signal.SIGTSTP, _on_stop)
        _stood[0] += time.monotonic() - began
        for _, after in _following:
            after()


def counting() -> contextlib.AbstractContextManager[None]:
    """Meanwhile `clock` takes note of each Ctrl-Z, also while nobody follows."""
    return following(lambda: None, lambda: None)


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Meanwhile a Ctrl-Z waits. For who starts what `following` is to tell: it runs before its number is known."""
    _held[0] += 1
    try:
        yield
    finally:
        _held[0] -= 1
        if _waits[0] and not _held[0]:
            _waits[0] = False
            _on_stop(signal.SIGTSTP, None)


@contextlib.contextmanager
def following(before: Told, after: Told) -> Iterator[None]:
    """Meanwhile `before` is called when we are about to stop and `after` when we go on, both in a signal handler. Where
    a program that started us has Ctrl-Z ignored, or we are no main thread, nothing changes."""
    _following.append((before, after))
    outermost = len(_following) == 1 and signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL
    try:
        if outermost:
            try:
                signal.signal(signal.SIGTSTP, _on_stop)
            except ValueError:  # another thread
                outermost = False
        yield
    finally:
        if outermost:
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        _following.remove((before, after))
