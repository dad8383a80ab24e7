"""What can go wrong in a way the user can act on: one line that says what is wrong and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_MISUSE = 2
EXIT_UNDECIDED = 3  # a check that was tried shows neither
EXIT_INTERRUPTED = 130
EXIT_OF_SIGNAL = 128  # and the signal's number


class WherryError(Exception):
    """Misuse: the message is all that the user sees; `others` are lines like it."""

    exit_code = EXIT_MISUSE

    def __init__(self, message: object = "", *others: str):
        super().__init__(message)
        self.others = others


class FailedError(WherryError):
    """Not the user's mistake: a check failed, a disk was full, the runner broke."""

    exit_code = EXIT_FAILED


def escaped(text: str) -> str:
    """With what a terminal would obey as an escape: names of files, and files that others wrote, may hold anything."""
    return "".join(c if c.isprintable() or c in " \n\t" else _escape(c) for c in text)


def _escape(letter: str) -> str:
    # A byte of a name that is no text, as Python hands it on.
    byte = ord(letter) - 0xDC00
    return f"\\x{byte:02x}" if 0x80 <= byte <= 0xFF else ascii(letter)[1:-1]


def printable(text: str) -> str:
    """The same on one line."""
    return " ".join(escaped(text).split())


# More names than this do not fit in a line; then the command that lists them is named instead.
SHOWN_NAMES = 8


def unknown(kind: str, name: str, known: Iterable[str], where: str) -> WherryError:
    """`no routine 'rep_mosb'; did you mean rep_movsb? (wherry list routines lists all)`"""
    choices = sorted(set(known))
    # What all begin with, as tunables do with glibc, makes no two alike.
    heads = {choice.partition(".")[0] for choice in choices}
    shared = f"{heads.pop()}." if len(heads) == 1 else ""
    own = {choice.removeprefix(shared): choice for choice in choices}
    close = difflib.get_close_matches(name.lower().removeprefix(shared), own, n=1, cutoff=0.6)
    if len(choices) <= SHOWN_NAMES:
        there = f"there are {', '.join(choices)}"
    else:
        there = f"{where} lists all"
    hint = f"did you mean {own[close[0]]}? ({there})" if close else there
    return WherryError(f"no {kind} '{name}'; {hint}")
