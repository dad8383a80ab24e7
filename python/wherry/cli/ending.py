"""What a command ends with that was told to end, and keeps what it has measured until then."""

from __future__ import annotations

from wherry.errors import EXIT_INTERRUPTED, EXIT_TERMINATED

# What to end with when interrupted; a list, since a signal handler has nowhere else to put it.
interrupted_status = [EXIT_INTERRUPTED]


def on_sigterm(number: int, frame: object) -> None:
    """What was measured is kept, as with Ctrl-C; only the exit status differs."""
    interrupted_status[:] = [EXIT_TERMINATED]
    raise KeyboardInterrupt
