"""What a command ends with that was told to end, and keeps what it has measured until then."""

from __future__ import annotations

import contextlib
import signal

from wherry.errors import EXIT_INTERRUPTED, EXIT_TERMINATED

# What to end with when interrupted; a list, since a signal handler has nowhere else to put it.
interrupted_status = [EXIT_INTERRUPTED]


def on_sigterm(number: int, frame: object) -> None:
    """What was measured is kept, as with Ctrl-C; only the exit status differs."""
    interrupted_status[:] = [EXIT_TERMINATED]
    raise KeyboardInterrupt


def ends_in_order() -> None:
    """From here on SIGTERM is as Ctrl-C, unless whoever started us had it ignored. A program that is executed in our
    place has it as it was."""
    with contextlib.suppress(ValueError):  # not of the main thread
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:
            signal.signal(signal.SIGTERM, on_sigterm)
