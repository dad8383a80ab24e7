"""Standard output and standard error where nobody reads them any more, as after `| head`."""

from __future__ import annotations

import io
import os
import sys

from wherry.errors import printable


class LostError(OSError):
    """What was to be on a standard stream is not: its disk is full, for instance."""


class _Unread(io.FileIO):
    """Drops what nobody reads: that is no error of ours. A command goes on, saves what it is to save, and its exit
    status answers what it would have answered."""

    given: io.TextIOWrapper | None = None
    _gone = False

    def write(self, data) -> int | None:
        if self._gone:
            return len(data)
        try:
            return super().write(data)
        except BrokenPipeError:
            self._gone = True
            return len(data)
        except OSError as error:
            # A stream keeps what it could not write, and tries it again at the end; of this one nobody could be told.
            self._gone = self.fileno() == 2
            raise LostError(error.errno, error.strerror) from None


def silence_stdout() -> None:
    """So that the interpreter's own flush at exit has nothing left to fail on."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)


def go_on_unread() -> None:
    for name, number in (("stdout", 1), ("stderr", 2)):
        given = getattr(sys, name)
        raw = getattr(getattr(given, "buffer", None), "raw", getattr(given, "buffer", None))
        # Tests put streams of their own there.
        if type(raw) is not io.FileIO or raw.fileno() != number:
            continue
        given.flush()
        own = _Unread(number, "w", closefd=False)
        own.given = given  # which would close the descriptor when nobody had it any more
        unbuffered = given.buffer is raw
        setattr(
            sys,
            name,
            io.TextIOWrapper(
                own if unbuffered else io.BufferedWriter(own),
                encoding=given.encoding,
                errors=given.errors,
                line_buffering=given.line_buffering,
                write_through=given.write_through,
            ),
        )


def line_of(text: str, *, aside: bool = False) -> None:
    """One line, whatever is in the names of files that it tells; `aside`: to standard error."""
    stream = sys.stderr if aside else sys.stdout
    encoding = stream.encoding or "utf-8"
    print(printable(text).encode(encoding, "replace").decode(encoding), file=stream)
