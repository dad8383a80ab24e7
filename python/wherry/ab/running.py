"""The program, run once by `wherry-run timed`, which counts what it and everything it started used."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wherry import children, jobcontrol, runner
from wherry.ab.sides import Side
from wherry.errors import FailedError

_PIECE = 1 << 20
_LONGEST_COMPLAINT = 200
# How long a --prepare that is to end may take to.
_OBEY_S = 2.0


@dataclass(frozen=True)
class Ran:
    """One run. Times in seconds, of the whole process tree."""

    status: int
    elapsed: float
    user: float
    system: float
    peak: int  # bytes, of the largest process
    processes: int
    output: str  # sha256 of what it wrote to standard output; empty when nobody asked

    @property
    def cpu(self) -> float:
        return self.user + self.system


@dataclass
class Program:
    """What is run, and how."""

    argv: Sequence[str]
    stdin: Path | None = None
    prepare: str | None = None  # a shell command before each run, not timed
    keep: Path | None = None  # a directory for what it writes
    hash_output: bool = False
    limit: float | None = None  # seconds for one run
    expect: int = 0

    def __post_init__(self) -> None:
        self._count = 0
        self._right: set[str] = set()  # sides under which it ended as it should

    def run(self, side: Side, base: Mapping[str, str]) -> Ran:
        """What Ctrl-Z stopped amid is no measurement, and is run again."""
        self._count += 1
        while (ran := self._run(side, base)) is None:
            pass
        return ran

    def _run(self, side: Side, base: Mapping[str, str]) -> Ran | None:
        if self.prepare is not None:
            self._prepare(base)
        with contextlib.ExitStack() as stack:
            source = stack.enter_context((self.stdin or Path(os.devnull)).open("rb"))
            errors = stack.enter_context(tempfile.TemporaryFile())
            if self.keep is not None:
                name = f"{self._count:04d}-{side.name.replace('/', '_')}.out"
                output = stack.enter_context((self.keep / name).open("w+b"))
            elif self.hash_output:
                output = stack.enter_context(tempfile.TemporaryFile())
            else:
                output = stack.enter_context(Path(os.devnull).open("wb"))
            event = self._timed(side, base, source, output, errors)
            self._check(event, errors, side)
            if event["stops"]:
                return None
            return Ran(
                event["status"],
                event["elapsed_ns"] / 1e9,
                event["user_us"] / 1e6,
                event["system_us"] / 1e6,
                event["peak_bytes"],
                event["processes"],
                _digest(output) if self.hash_output else "",
            )

    def _prepare(self, base: Mapping[str, str]) -> None:
        with tempfile.TemporaryFile() as errors:
            # In our own session: what asks for a password by the terminal still can.
            process = subprocess.Popen(
                ["/bin/sh", "-c", self.prepare],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=dict(base),
                close_fds=False,
                preexec_fn=children.before_exec(),
            )
            try:
                status = _waited(process, self.limit)
            except subprocess.TimeoutExpired:
                _end(process)
                raise FailedError(
                    f"--prepare did not end within {self.limit:g} s; ended. "
                    f"Give it less to do, or more time with --limit: {self.prepare}"
                ) from None
            except BaseException:
                _end(process)
                raise
            if status:
                errors.seek(0)
                raise FailedError(
                    f"--prepare {_ended(status)}{_said(errors.read())}; mend it: {self.prepare}"
                )

    def _timed(self, side: Side, base: Mapping[str, str], source, output, errors) -> dict:
        given, taken = side.changes(base)
        read, write = os.pipe()
        arguments = [runner.path(), "timed", "--report", str(write)]
        if self.limit:
            arguments += ["--limit", f"{self.limit:g}"]
        for key, value in given.items():
            arguments += ["--set", f"{key}={value}"]
        for key in taken:
            arguments += ["--unset", key]
        os.set_inheritable(write, True)
        process: subprocess.Popen | None = None

        def tell(number: int) -> None:
            if process and process.returncode is None:
                process.send_signal(number)

        with jobcontrol.following(lambda: tell(signal.SIGTSTP), lambda: tell(signal.SIGCONT)):
            try:
                # What we were given beyond the standard streams is the program's too, as without us; what is our own is
                # closed when it begins, and wherry-run does so with the report.
                with jobcontrol.held():
                    process = subprocess.Popen(
                        [*arguments, "--", *self.argv],
                        stdin=source,
                        stdout=output,
                        stderr=errors,
                        close_fds=False,
                        env=dict(base),
                        start_new_session=True,
                        preexec_fn=children.before_exec(),
                    )
            except OSError as error:
                os.close(read)
                raise FailedError(f"cannot start wherry-run: {error.strerror}") from None
            finally:
                os.close(write)
            try:
                with os.fdopen(read, "rb") as report:
                    line = report.read()
                process.wait()
            except BaseException:
                # It ends what it has started, and then itself.
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGTERM)
                process.wait()
                raise
        try:
            return json.loads(line)
        except ValueError:
            errors.seek(0)
            raise FailedError(
                f"wherry-run timed {runner.ended_by(process.returncode)}{_said(errors.read())}"
            ) from None

    def _check(self, event: dict, errors, side: Side) -> None:
        name = self.argv[0]
        if "start_error" in event:
            raise FailedError(f"{name} cannot be run: {event['message']}")
        errors.seek(0, os.SEEK_END)
        errors.seek(max(errors.tell() - 4096, 0))
        said = _said(errors.read())
        if event["timed_out"]:
            raise FailedError(
                f"{name} did not end within {self.limit:g} s under {side.name}; ended. "
                "Give it less to do, or more time with --limit"
            )
        if event["left"]:
            raise FailedError(
                f"{name} left {event['left']} process{'es' if event['left'] > 1 else ''} running, which were ended: "
                "ab measures programs that end by themselves; keep it in the foreground"
            )
        if event["status"] != self.expect:
            wanted = "" if self.expect == 0 else f", not {self.expect} (--expect)"
            code = event["status"]
            others = sorted(self._right - {side.name})
            if side.name in self._right:
                hint = (
                    f", which it did with {self.expect} before: its status differs from run to run"
                )
            elif others:
                hint = (
                    f", and with {self.expect} under {others[0]}: the sides differ in what it does"
                )
            else:
                hint = "" if event["signal"] else f"; if that is right, say --expect {code}"
            raise FailedError(
                f"{name} {_ended(-event['signal'] or code)}{wanted} under {side.name}{said}{hint}"
            )
        self._right.add(side.name)


def _waited(process: subprocess.Popen, limit: float | None) -> int:
    """Its status; TimeoutExpired when it runs for longer, not counting what Ctrl-Z has stopped, which is it as well as
    us."""
    with jobcontrol.counting():
        until = math.inf if limit is None else jobcontrol.clock() + limit
        while True:
            try:
                return process.wait(min(runner.LOOK_AGAIN, max(until - jobcontrol.clock(), 0)))
            except subprocess.TimeoutExpired:
                if jobcontrol.clock() >= until:
                    raise


def _below(pid: int) -> list[int]:
    """That process, and all that it and its children started."""
    found, waiting = [], [pid]
    while waiting:
        found.append(waiting.pop())
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{found[-1]}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
    return found


def _end(process: subprocess.Popen) -> None:
    """A shell and what it runs: asked first, then made to. It is no group of its own that one kill could reach."""
    found = _below(process.pid)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in found:
            with contextlib.suppress(OSError):  # it has ended, or is root's
                os.kill(pid, number)
        until = time.monotonic() + _OBEY_S
        while process.poll() is None or any(map(_runs, found[1:])):
            if time.monotonic() > until:
                break
            time.sleep(0.01)
        else:
            return
        found = [process.pid, *filter(_runs, found[1:])]


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in "ZX"


def _ended(code: int) -> str:
    return runner.ended_by(code)


def _said(errors: bytes) -> str:
    """` (its last words)`, or nothing."""
    lines = [line for line in errors.decode(errors="replace").splitlines() if line.strip()]
    if not lines:
        return ""
    text = "".join(c if c.isprintable() else "?" for c in " ".join(lines[-1].split()))
    return f" ({text[:_LONGEST_COMPLAINT]})"


def _digest(file) -> str:
    file.flush()
    file.seek(0)
    digest = hashlib.sha256()
    while piece := file.read(_PIECE):
        digest.update(piece)
    return digest.hexdigest()
