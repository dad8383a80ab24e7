"""A Ctrl-C when there is something to lose ends what can be done without, and nothing else."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
# Meant for the command, which may be gone by then; they end who knows nothing of them.
OTHERS = (signal.SIGUSR1, signal.SIGUSR2)


class Ending:
    def __init__(self) -> None:
        self.asked = False
        self._leaves = False

    @contextlib.contextmanager
    def in_charge(self) -> Iterator[None]:
        """Such signals are noted here."""
        before = {number: signal.getsignal(number) for number in (*ENDING, *OTHERS)}
        for number, handler in before.items():
            if handler != signal.SIG_IGN:
                # A handler, since a command would inherit that they are ignored.
                signal.signal(number, self._note if number in ENDING else _pass)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextlib.contextmanager
    def can_be_left(self) -> Iterator[None]:
        """KeyboardInterrupt, when one comes or has come already; once: what is left clears up behind itself."""
        if self.asked:
            raise KeyboardInterrupt
        self._leaves = True
        try:
            yield
        finally:
            self._leaves = False

    def _note(self, number: int, frame: object) -> None:
        self.asked = True
        if self._leaves:
            self._leaves = False
            raise KeyboardInterrupt


def _pass(number: int, frame: object) -> None:
    pass
