"""What a command ends with that was told to end, and keeps what it has measured until then."""

from __future__ import annotations

import contextlib
import signal

from wherry.errors import EXIT_INTERRUPTED, EXIT_OF_SIGNAL

# What to end with when interrupted; a list, since a signal handler has nowhere else to put it.
interrupted_status = [EXIT_INTERRUPTED]
# Those that ask for an end; the second comes when a terminal is closed.
_ASKING = (signal.SIGTERM, signal.SIGHUP)


def on_asked(number: int, frame: object) -> None:
    """What was measured is kept, as with Ctrl-C; only the exit status differs."""
    interrupted_status[:] = [EXIT_OF_SIGNAL + number]
    raise KeyboardInterrupt


def ends_in_order() -> None:
    """From here on these are as Ctrl-C, unless whoever started us had them ignored. A program that is executed in our
    place has them as they were."""
    with contextlib.suppress(ValueError):  # not of the main thread
        for number in _ASKING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, on_asked)
