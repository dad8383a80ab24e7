"""`wherry` as a process of its own, without the start of an interpreter.

Most tests look at what the command says and saves. Its start takes longer than most of them: Python, the editable
package's look at ninja, and modules, each time the same. Here one process has done that; each call is a fork of it.
What a test changes in the surroundings of a command holds for the fork: environment, directory, umask, CPUs. What is
read before Wherry's first line does not; `serves` tells, and those calls are started as users start them. That each
command finds its modules without the others' is held by tests/test_house.py.

As a program: takes calls from the socket that is its standard input."""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

# What commands import of others when they have begun.
LATER = (
    *("numpy.random", "jsonschema_rs", "importlib.metadata", "importlib.resources"),
    *("rich.progress", "rich.markup"),
)
# Read before the first line of Wherry: by Python, the dynamic loader, the C library or a package.
EARLY = ("PYTHON", "LD_", "GLIBC_", "MALLOC_", "LC_", "LANG", "OPENBLAS_", "MESONPY_", "NPY_")
OPTIONS = {"env", "cwd", "timeout"}


def _early(environment: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in environment.items() if name.startswith(EARLY)}


def _send(own: socket.socket, what: object, files: tuple[int, ...] = ()) -> None:
    text = json.dumps(what).encode()
    socket.send_fds(own, [struct.pack("<I", len(text))], files)
    own.sendall(text)


def _receive(own: socket.socket, files: int = 0) -> tuple[dict | int, list[int]] | None:
    """None when the other side has ended."""
    head, given, _, _ = socket.recv_fds(own, 4, files)
    if len(head) < 4:
        return None
    left, parts = struct.unpack("<I", head)[0], []
    while left:
        parts.append(own.recv(left))
        left -= len(parts[-1])
    return json.loads(b"".join(parts)), given


class Forks:
    """The process that every `wherry` is a fork of."""

    def __init__(self) -> None:
        self.early = _early(dict(os.environ))
        self.lock = threading.Lock()
        self.socket, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, __file__], stdin=theirs, stdout=subprocess.DEVNULL
            )

    def serves(self, environment: dict[str, str], options: dict) -> bool:
        return set(options) <= OPTIONS and _early(environment) == self.early

    def call(
        self,
        words: list[str],
        env: dict[str, str],
        cwd: str | os.PathLike | None = None,
        timeout: float = 600,
    ) -> subprocess.CompletedProcess[str]:
        """As subprocess.run with captured output: it also waits until nobody can write any more."""
        umask = os.umask(0)
        os.umask(umask)
        what = {
            "words": words,
            "environment": env,
            "directory": os.fspath(cwd or Path.cwd()),
            "umask": umask,
            "cpus": sorted(os.sched_getaffinity(0)),
        }
        reply, theirs = socket.socketpair()
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        try:
            with theirs, self.lock:
                _send(self.socket, what, (0, out_end, err_end, theirs.fileno()))
            for end in (out_end, err_end):
                os.close(end)
            said = {out: bytearray(), err: bytearray()}
            # None in place of an answer: the process has ended, and what it said stands in the test's report.
            pid, _ = _receive(reply)
            self._read(said, pid, words, timeout)
            code, _ = _receive(reply)
        finally:
            reply.close()
            for end in (out, err):
                os.close(end)
        texts = (bytes(said[end]).decode() for end in (out, err))
        texts = (text.replace("\r\n", "\n").replace("\r", "\n") for text in texts)
        return subprocess.CompletedProcess(["wherry", *words], code, *texts)

    @staticmethod
    def _read(said: dict[int, bytearray], pid: int, words: list[str], timeout: float) -> None:
        until = time.monotonic() + timeout
        with selectors.DefaultSelector() as open_ends:
            for end in said:
                open_ends.register(end, selectors.EVENT_READ)
            while open_ends.get_map():
                left = until - time.monotonic()
                if left < 0:
                    os.kill(pid, signal.SIGKILL)
                    raise subprocess.TimeoutExpired(["wherry", *words], timeout)
                for key, _ in open_ends.select(left):
                    if more := os.read(key.fd, 1 << 16):
                        said[key.fd] += more
                    else:
                        open_ends.unregister(key.fd)

    def end(self) -> None:
        self.socket.close()
        self.process.wait(300)


# --- the program ---------------------------------------------------------------------------------
def _become(what: dict, files: list[int]) -> None:
    """In the child."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for target, given in enumerate(files[:3]):
        os.dup2(given, target)
    os.closerange(3, 256)
    # Python's own keep what it found out about the files that were there at its start.
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        mode = "r" if number == 0 else "w"
        own = open(number, mode, encoding=old.encoding, errors=old.errors, closefd=False)
        own.reconfigure(line_buffering=own.isatty() or number == 2)
        setattr(sys, name, own)
        setattr(sys, f"__{name}__", own)
    os.environ.clear()
    os.environ.update(what["environment"])
    time.tzset()
    os.umask(what["umask"])
    os.sched_setaffinity(0, what["cpus"])
    os.chdir(what["directory"])
    # As `python -m wherry` has them.
    sys.path[0] = what["directory"]
    sys.argv = ["wherry", *what["words"]]


def _children(replies: dict[int, socket.socket]) -> None:
    """Tells who waits how those that ended did."""
    while replies:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with replies.pop(pid) as reply, contextlib.suppress(OSError):
            _send(reply, os.waitstatus_to_exitcode(status))


def _serve() -> dict | None:
    """Comes back in each child, with what it is to be; in the process itself when the tests have ended."""
    own = socket.socket(fileno=os.dup(0))
    woken, wake = socket.socketpair()
    for end in (woken, wake):
        end.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    replies: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as both:
        both.register(own, selectors.EVENT_READ)
        both.register(woken, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in both.select()}
            if woken in ready:
                woken.recv(4096)
                _children(replies)
            if own not in ready:
                continue
            if (call := _receive(own, 4)) is None:
                return None
            what, files = call
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                for open_end in (own, woken, wake, both, *replies.values()):
                    open_end.close()
                _become(what, files)
                return what
            replies[pid] = socket.socket(fileno=files.pop())
            for file in files:
                os.close(file)
            _send(replies[pid], pid)


def _end(main: Callable[[], None]) -> None:
    """As an interpreter ends, but that it leaves to the system what lies in memory: taking it apart would copy it."""
    status = 1
    try:
        main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            status = 120
    os._exit(status & 0xFF)


if __name__ == "__main__":
    import wherry.__main__
    import wherry.cli

    for name in (
        *LATER,
        *(f"wherry.cli.{m.name}" for m in pkgutil.iter_modules(wherry.cli.__path__)),
    ):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    if _serve():
        _end(wherry.__main__.main)
