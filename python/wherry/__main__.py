"""The console scripts. They answer Ctrl-C from their first line on: who types it early wants no account of what was
being imported."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable


def _run(load: Callable[[], Callable[[], None]]) -> None:
    """`load` imports a command, which answers interrupts itself once it runs; until then one ends the process."""
    previous = signal.getsignal(signal.SIGINT)
    # A shell that starts us in the background has it ignored, and that stays.
    if previous is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    command = load()
    try:
        signal.signal(signal.SIGINT, previous)
        command()
    except KeyboardInterrupt:  # just before it listens, or just after
        from wherry.errors import EXIT_INTERRUPTED

        sys.exit(EXIT_INTERRUPTED)


def _workbench() -> Callable[[], None]:
    from wherry.cli import main

    return main


def _runner() -> Callable[[], None]:
    from wherry.runner import exec_native

    return exec_native


def main() -> None:
    """`wherry`."""
    _run(_workbench)


def native() -> None:
    """`wherry-run`."""
    _run(_runner)


if __name__ == "__main__":
    main()
