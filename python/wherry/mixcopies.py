"""What the runner reads as a mix, in every process: copies, which nobody changes meanwhile and whose paths have no
blanks. Removed when the program ends, or, where it was killed, by the next that makes some."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path

from wherry.errors import FailedError

_PREFIX, _LOCK = "wherry-mixes-", "lock"
_BEGINS = 60.0  # seconds within which one that begins has its lock


def _is_left(directory: Path) -> bool:
    """Whether it is ours and nobody uses it: its lock ends with whoever made it."""
    try:
        found = directory.lstat()
        if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode):
            return False
        lock = directory / _LOCK
        if not lock.exists():
            return time.time() - found.st_mtime > _BEGINS
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody uses it, or it is gone
        return False
    return True


def _remove_left() -> None:
    with contextlib.suppress(OSError):
        for directory in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            if _is_left(directory):
                shutil.rmtree(directory, ignore_errors=True)


class _Copies:
    def __init__(self) -> None:
        self._directory: tempfile.TemporaryDirectory | None = None
        self._lock = None
        self._count = 0

    def _begin(self) -> None:
        _remove_left()
        self._directory = tempfile.TemporaryDirectory(prefix=_PREFIX)
        self._lock = (Path(self._directory.name) / _LOCK).open("wb")
        # Where a file system has no locks nobody removes it either.
        with contextlib.suppress(OSError):
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    def keep(self, data: bytes) -> str:
        try:
            if self._directory is None:
                self._begin()
            self._count += 1
            path = Path(self._directory.name) / f"{self._count}.csv"
            path.write_bytes(data)
        except OSError as error:
            raise FailedError(
                f"cannot write the mix that is to be measured to {tempfile.gettempdir()}: {error.strerror}; "
                "set TMPDIR to where there is room, or raise the limit on files (ulimit -f)"
            ) from None
        return str(path)


_copies = _Copies()


def keep(data: bytes) -> str:
    """`@FILE`, as the `mix` of a row: a file with it that lasts as long as the program does."""
    return f"@{_copies.keep(data)}"
