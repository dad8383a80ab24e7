"""Members that the user gives: looked at before anything is measured, so that a bad one is named at once."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from wherry.errors import WherryError
from wherry.striping.place import LONGEST_LIST, encoded
from wherry.striping.words import MEMBERS
from wherry.units import size_in_words


def gather(words: Sequence[str]) -> tuple[str, ...]:
    """The paths behind `--members`: files and block devices, or one directory of them, in the order of their names."""
    paths = [Path(word) for word in words]
    # Path.is_dir would raise where the way to it is barred; that is told of the member itself.
    if len(paths) == 1 and os.path.isdir(paths[0]):  # noqa: PTH112
        directory = paths[0]
        try:
            paths = sorted(own for own in directory.iterdir() if not own.name.startswith("."))
        except OSError as error:
            raise WherryError(
                f"--members {directory} cannot be read: {error.strerror}; mend its rights, or name files"
            ) from None
        if not paths:
            raise WherryError(f"--members {directory} has no files; put 1 to {MEMBERS} into it")
    if len(paths) > MEMBERS:
        raise WherryError(f"--members: {len(paths)} files, and a stripe takes at most {MEMBERS}")
    found = tuple(str(path.absolute()) for path in paths)
    if len(encoded(found)) > LONGEST_LIST:
        raise WherryError(
            f"--members: the paths take more than {LONGEST_LIST} characters together; link them from "
            "a directory with a shorter path"
        )
    return found


def check(paths: Sequence[str], least: int) -> None:
    """Raises for the first that cannot be a member of a stripe; `least`: bytes of the largest block."""
    lengths, known = [], {}
    for number, path in enumerate(paths, 1):
        length, identity = _looked_at(number, path)
        first = known.setdefault(identity, number)
        if first != number:
            raise WherryError(
                f"member {number} ({path}) is member {first} once more, and would be read from the page "
                "cache; give files of their own"
            )
        lengths.append(length)
    for number, (path, length) in enumerate(zip(paths, lengths, strict=True), 1):
        if length < max(lengths):
            raise WherryError(
                f"member {number} ({path}) is short: {length:,} bytes, where others have "
                f"{max(lengths):,}; give members of one length"
            )
        if length < least:
            raise WherryError(
                f"member {number} ({path}) is short: {length:,} bytes are less than a block of "
                f"{size_in_words(least)}; give a longer one, or smaller blocks (--size)"
            )


def lengths(paths: Sequence[str]) -> dict[str, int]:
    """In bytes, by path."""
    return {path: _looked_at(number, path)[0] for number, path in enumerate(paths, 1)}


def _looked_at(number: int, path: str) -> tuple[int, tuple[int, ...]]:
    """Its length, and what it is by whatever name."""
    what = f"member {number} ({path})"
    try:
        # A pipe that nobody writes to would keep whoever opens it waiting.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise WherryError(f"{what} is missing; give files that are there") from None
    except OSError as error:
        raise WherryError(
            f"{what} cannot be read: {error.strerror}; mend it, or leave it out of --members"
        ) from None
    try:
        own = os.fstat(fd)
        is_device = stat.S_ISBLK(own.st_mode)
        if not stat.S_ISREG(own.st_mode) and not is_device:
            raise WherryError(
                f"{what} is neither a file nor a block device; give one that can be read at any place"
            )
        length = os.lseek(fd, 0, os.SEEK_END)
        if length:
            os.pread(fd, 1, length - 1)
        return length, (own.st_rdev,) if is_device else (own.st_dev, own.st_ino)
    except OSError as error:
        raise WherryError(
            f"{what} cannot be read: {error.strerror}; mend it, or leave it out of --members"
        ) from None
    finally:
        os.close(fd)
