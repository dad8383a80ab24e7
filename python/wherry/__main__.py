"""The console scripts. They answer Ctrl-C from their first line on: who types it early wants no account of what was
being imported."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

# What Python sets LC_CTYPE to where it finds the locale C, so that it has UTF-8 itself.
_COERCED = ("C.UTF-8", "C.utf8", "UTF-8")
_THREADS = "OPENBLAS_NUM_THREADS"
# Of the editable package in somebody else's tree (tools/setup).
_VERBOSE = "MESONPY_EDITABLE_VERBOSE"


def _give_back_environment() -> None:
    """What was set on the way here is not for the programs that we start: by the locale they would read and write other
    text."""
    own = [name for name in (_VERBOSE,) if name in os.environ]
    if os.environ.get("LC_CTYPE") in _COERCED:
        own.append("LC_CTYPE")
    if not own:
        return
    try:
        with open("/proc/self/environ", "rb") as file:  # noqa: PTH123
            given = dict(word.split(b"=", 1) for word in file.read().split(b"\0") if b"=" in word)
    except OSError:
        return
    for name in own:
        if name.encode() in given:
            os.environb[name.encode()] = given[name.encode()]
        else:
            del os.environ[name]


def _not_loaded(error: Exception) -> str:
    """In a line, and with nothing that would have to be imported or opened. Where a process may open no more files
    Python may find no module in a directory, or fail to read one that it has found."""
    if os.environ.get("WHERRY_DEBUG"):
        raise error
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as why:
        return f"wherry: cannot be loaded: {why.strerror}; raise the limit (ulimit -n)"
    said = " ".join(str(error).split())
    return f"wherry: cannot be loaded: {said}; is it installed whole?"


def _run(load: Callable[[], Callable[[], None]]) -> None:
    """`load` imports a command, which answers interrupts itself once it runs; until then one ends the process."""
    previous = signal.getsignal(signal.SIGINT)
    # A shell that starts us in the background has it ignored, and that stays.
    if previous is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    elif (
        previous is signal.SIG_DFL
    ):  # Python begins with none such: tools/setup has us end so from the start
        previous = signal.default_int_handler
    _give_back_environment()
    try:
        from wherry import children

        children.are_heard()
        command = load()
    except (ImportError, OSError) as error:
        sys.exit(_not_loaded(error))
    try:
        signal.signal(signal.SIGINT, previous)
        command()
    except ImportError as error:
        sys.exit(_not_loaded(error))
    except KeyboardInterrupt:  # just before it listens, or just after
        from wherry.errors import EXIT_INTERRUPTED

        sys.exit(EXIT_INTERRUPTED)
    finally:
        _nothing_unhandled()


def _nothing_unhandled() -> None:
    """Python notes where an interrupt left code that it had compiled from a string, as that of each dataclass while its
    module is loaded, and kills itself at its end for it, whoever handled the interrupt since. Other such code clears
    the note."""
    exec("")


def _in_one_thread() -> None:
    """numpy's library of linear algebra begins a thread for each CPU when it is loaded, for products larger than any
    here, and where it gets none (`ulimit -u`) it interrupts this process. It is told by the environment, of which
    `os.environ` knows nothing: so what is handed on of that is as it came."""
    if _THREADS not in os.environ:
        os.putenv(_THREADS, "1")


def _workbench() -> Callable[[], None]:
    _in_one_thread()
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
