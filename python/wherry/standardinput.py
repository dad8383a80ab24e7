"""What whoever started us gives on standard input, where a command runs more than once and each run wants all of it."""

from __future__ import annotations

import fcntl
import os
import select
import stat
import struct
import termios

STDIN = 0


def _kind(descriptor: int) -> int:
    """Its type; 0 where it was closed, and where a file of our own has its number since."""
    try:
        return stat.S_IFMT(os.fstat(descriptor).st_mode) if os.get_inheritable(descriptor) else 0
    except OSError:
        return 0


def _at_end(pipe: int) -> bool:
    """Nothing is in it, and nobody can write to it any more."""
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    return [events & (select.POLLIN | select.POLLHUP) for _, events in poll.poll(0)] == [
        select.POLLHUP
    ]


def waits(descriptor: int = STDIN) -> bool:
    """Whether there is something in that file, or already in that pipe, that nobody has read."""
    kind = _kind(descriptor)
    try:
        if kind == stat.S_IFREG:
            return os.fstat(descriptor).st_size > os.lseek(descriptor, 0, os.SEEK_CUR)
        if kind == stat.S_IFIFO:
            return struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)))[0] > 0
    except OSError:  # opened for writing alone, for instance
        return False
    return False


class Repeated:
    """Standard input, made before the first run."""

    def __init__(self, descriptor: int = STDIN) -> None:
        self._descriptor = descriptor
        self._kind = _kind(descriptor)
        self._begin = 0
        self._ended = False
        try:
            if self._kind == stat.S_IFREG:
                self._begin = os.lseek(descriptor, 0, os.SEEK_CUR)
            elif self._kind == stat.S_IFIFO:
                self._ended = _at_end(descriptor)
        except OSError:
            self._kind = 0

    def again(self) -> bool:
        """Puts a file back to where it was. False, once: it is a pipe that has been read to its end, which all further
        runs find empty."""
        if self._kind == stat.S_IFREG:
            os.lseek(self._descriptor, self._begin, os.SEEK_SET)
        if self._kind != stat.S_IFIFO or self._ended or not _at_end(self._descriptor):
            return True
        self._ended = True
        return False
