"""Signals for the command that come to this process: those that it does not have already are handed on."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

# From the first process of a group that has a signal to the last, on a busy machine; and from a signal to a process to
# the same one to its group, as `timeout` sends them.
SPREAD_S = 0.03
LOOK_S = 0.002
# From one that came to the group to its turn here, where several came together.
TURN_S = 1.0


class _Witness:
    """A process of our group that has all signals blocked: one that waits there came to the whole group."""

    def __init__(self) -> None:
        self._pid: int | None = None
        try:
            # It ends when nobody has the other end of its input any more, however we end.
            read, self._write = os.pipe()
        except OSError:
            return
        nothing = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
        try:
            self._pid = os.posix_spawnp(
                "cat",
                ["cat"],
                {},  # of ours none, which may have what this takes for no variable
                file_actions=[(os.POSIX_SPAWN_DUP2, read, 0), nothing, (os.POSIX_SPAWN_DUP2, 1, 2)],
                setsigmask=signal.valid_signals(),
            )
        except OSError:
            os.close(self._write)
        os.close(read)

    def waiting(self) -> set[int]:
        try:
            status = Path(f"/proc/{self._pid}/status").read_text()
        except OSError:  # or there is none
            return set()
        found = re.search(r"^ShdPnd:\s*([0-9a-f]+)$", status, re.MULTILINE)
        bits = int(found[1], 16) if found else 0
        return {number for number in range(1, signal.NSIG) if bits >> (number - 1) & 1}

    def end(self) -> tuple[float, float]:
        """The processor time that it has used, user and system, in seconds."""
        # Once: a signal handler may come to this while it is done.
        pid, self._pid = self._pid, None
        if pid is None:
            return 0.0, 0.0
        os.close(self._write)
        os.kill(pid, signal.SIGKILL)
        used = os.wait4(pid, 0)[2]
        return used.ru_utime, used.ru_stime


class Handing:
    """For one command that runs. Used by the main thread, in signal handlers too, and by that of `Interrupts`."""

    def __init__(self, process: subprocess.Popen) -> None:
        self._process = process
        self._lock = threading.RLock()
        self._witness = _Witness()
        # When the command had which; one to us and one to the group may come one after the other, the second while the
        # first is looked at.
        self._had: dict[int, float] = {}
        self._together: dict[
            int, float
        ] = {}  # those that came to the group with another, whose turn is yet to come
        self.user_s = self.system_s = 0.0  # what it took itself, among our children

    def __enter__(self) -> Handing:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._ended(self._witness)

    def hand_on(self, number: int) -> None:
        """Unless it was sent to our group as a whole, which the command is in."""
        try:
            apart = os.getpgid(self._process.pid) != os.getpgrp()
        except OSError:
            apart = True
        if time.monotonic() < self._together.pop(number, 0.0) + TURN_S:
            self._had[number] = time.monotonic()
            if number in self._witness.waiting():  # which came while one took the other's place
                self.begin_again(number)
            return
        until = time.monotonic() + SPREAD_S
        while not apart and time.monotonic() < until:
            if time.monotonic() < self._had.get(number, 0.0) + SPREAD_S:
                return
            if number in self._witness.waiting():
                self._had[number] = time.monotonic()
                self.begin_again(number)
                return
            time.sleep(LOOK_S)
        send(self._process, number)

    def begin_again(self, number: int) -> None:
        """What the command has had so far is not what it will have. That signal has had its turn."""
        with self._lock:
            before, self._witness = self._witness, _Witness()
            others = before.waiting() - {number}
            self._together |= dict.fromkeys(others, time.monotonic())
            self._ended(before)

    def _ended(self, witness: _Witness) -> None:
        user_s, system_s = witness.end()
        self.user_s += user_s
        self.system_s += system_s


def send(process: subprocess.Popen, number: int) -> None:
    # What runs with another's rights (sudo) takes none of us; the recording goes on.
    with contextlib.suppress(PermissionError):
        process.send_signal(number)


class Interrupts(threading.Thread):
    """Hands Ctrl-C's signals on that were sent to this process alone. Those of a terminal went to the command as well:
    the kernel itself sent them."""

    NUMBERS = (signal.SIGINT, signal.SIGQUIT)

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._handing: Handing | None = None
        self._begun = threading.Event()
        self._done = threading.Event()

    @contextlib.contextmanager
    def begun_before(self, other: threading.Thread) -> Iterator[None]:
        """This thread and that one are there before the command is: where none can be begun (`ulimit -u`), the command
        would run with nobody to wait for it. Who waits for a signal has it blocked, as all other threads must; the
        command inherits what this one has."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, self.NUMBERS)
        try:
            self.start()
            other.start()
        except BaseException:
            self._end()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        try:
            yield
        finally:
            self._end()

    @contextlib.contextmanager
    def handed_on(self, handing: Handing) -> Iterator[None]:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, self.NUMBERS)
        self._handing = handing
        self._begun.set()
        try:
            yield
        finally:
            self._end()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _end(self) -> None:
        if self._done.is_set() or self.ident is None:
            return
        self._done.set()
        self._begun.set()
        if self._handing:
            # To that thread alone; what comes to the process meanwhile waits for whoever is in charge afterwards.
            signal.pthread_kill(self.ident, self.NUMBERS[0])
        self.join()

    def run(self) -> None:
        self._begun.wait()
        while self._handing:
            # Not sigtimedwait: of one that a stop (Ctrl-Z) outlasts Python tells a signal that nobody sent.
            found = signal.sigwaitinfo(self.NUMBERS)
            if self._done.is_set():
                return
            if found.si_code <= 0:
                self._handing.hand_on(found.si_signo)
            else:
                self._handing.begin_again(found.si_signo)
