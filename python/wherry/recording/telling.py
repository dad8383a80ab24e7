"""What `wherry record` says on standard error, which is the program's too: where it cannot be written to, nothing that
was recorded is to be lost for that."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

from wherry.errors import printable


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """What is written there in here may get lost; from then on all of it is."""
    try:
        yield
        sys.stderr.flush()
    except OSError:
        # What is left in the buffer would else fail once more at the end, and change the exit status.
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stderr.fileno())
            os.close(nowhere)


def say(line: str) -> None:
    with unheard():
        print(printable(f"wherry record: {line}"), file=sys.stderr)


def measures() -> None:
    """Whoever sits before a terminal is told why nothing comes yet."""
    if sys.stderr.isatty():
        say("measuring what copies cost here, once after each boot: some seconds")
