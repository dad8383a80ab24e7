"""Where `wherry-run` is, and how to talk to it: events as JSON lines (docs/runner-protocol.md)."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from wherry import children, jobcontrol
from wherry.errors import FailedError, WherryError

Event = dict
# Seconds between two looks at whether a silent runner still runs.
LOOK_AGAIN = 0.25
# Seconds for a runner's last words.
LAST_WORDS = 2.0


class HangError(Exception):
    """Nothing was heard of the runner for longer than the limit."""


class LateError(Exception):
    """The time that the runner was given is over."""


class BadLineError(Exception):
    """The runner wrote something that is not an event."""


def path() -> str:
    """The native runner: WHERRY_RUN when set, else the one inside the package."""
    given = os.environ.get("WHERRY_RUN")
    if given:
        if not os.access(given, os.X_OK) or not Path(given).is_file():
            raise WherryError(
                f"WHERRY_RUN={given} is not a program that can be run; unset or mend it"
            )
        return given
    from importlib import resources

    inside = resources.files("wherry") / "bin" / "wherry-run"
    if not inside.is_file():
        raise WherryError("wherry-run is not built; run make bench once, or set WHERRY_RUN to it")
    return str(inside)


def exec_native() -> None:
    """The console script `wherry-run`: becomes the native program."""
    try:
        native = path()
        # Python ignores these two, and a program that is executed inherits that.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        children.give_back()
        os.execv(native, ["wherry-run", *sys.argv[1:]])
    except WherryError as error:
        print(f"wherry-run: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except OSError as error:
        print(f"wherry-run: cannot start {native}: {error.strerror}", file=sys.stderr)
        sys.exit(1)


def version() -> str:
    words = _run(["--version"]).stdout.split()
    return words[-1] if words else "unknown"


def compiler() -> str | None:
    """The compiler that built the runner, which it leaves in the program's .comment."""
    try:
        program = Path(path()).read_bytes()
    except OSError:
        return None
    found = re.search(rb"clang version [\d.]+", program) or re.search(
        rb"GCC: \([^)\0]*\) [\d.]+", program
    )
    return found[0].decode(errors="replace").replace("GCC: ", "GCC ") if found else None


def _run(arguments: Sequence[str], limit: float = 60) -> subprocess.CompletedProcess:
    native = path()
    try:
        process = subprocess.Popen(
            [native, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise FailedError(f"cannot start {native}: {error.strerror}") from None
    deadline = time.monotonic() + limit
    ended = False
    try:
        while True:
            try:
                output = process.communicate(timeout=LOOK_AGAIN)
                break
            except subprocess.TimeoutExpired as silence:
                # A process that a peer has started may keep the pipes open long after the runner has ended.
                if ended:
                    output = (silence.stdout or b"", silence.stderr or b"")
                    break
                ended = process.poll() is not None
                if time.monotonic() >= deadline:
                    raise FailedError(
                        f"wherry-run {arguments[0]} did not end within {limit:.0f} s"
                    ) from None
    finally:
        _kill_session(process)
        process.stdout.close()
        process.stderr.close()
    texts = [part.decode(errors="replace") for part in output]
    return subprocess.CompletedProcess(process.args, process.returncode, *texts)


def _kill_session(process: subprocess.Popen) -> None:
    """Ends the runner, and whatever a peer has started in its session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def complaint(text: str) -> str:
    """The last line of a standard error, without the program's name before it."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].removeprefix("wherry-run: ").strip() if lines else ""


def ended_by(returncode: int) -> str:
    if returncode >= 0:
        return f"ended with status {returncode}"
    try:
        return f"was ended by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"was ended by signal {-returncode}"


def _processor_time() -> float:
    """Seconds of all children that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# Of a limit on processor time. What a program that it ended is told to have used was 0.84 to 0.97 of it beside others
# (13 trials), presumably since the kernel ends it by whole ticks and tells what was really used.
NEARLY_ALL = 0.7


def out_of_time(status: int, used_s: float) -> str:
    """What to say of a program that the limit on processor time has ended; empty when something else did. The kernel
    sends SIGXCPU at the soft limit and SIGKILL at the hard one, which `ulimit -t` makes the same."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if status == -signal.SIGXCPU and soft != resource.RLIM_INFINITY:
        limit = soft
    elif (
        status == -signal.SIGKILL and hard != resource.RLIM_INFINITY and used_s >= NEARLY_ALL * hard
    ):
        limit = hard
    else:
        return ""
    return (
        f"the limit on processor time (ulimit -t, {limit} s) has ended the runner; raise the limit"
    )


def routines() -> list[Event]:
    """The registry, one event a routine."""
    done = _run(["list", "--json"])
    if done.returncode != 0:
        raise FailedError(f"wherry-run list {ended_by(done.returncode)}: {complaint(done.stderr)}")
    return [e for e in _events(done.stdout) if e.get("event") == "routine"]


def cpu() -> Event:
    """What the runner says of the CPU."""
    done = _run(["cpu", "--json"])
    events = [e for e in _events(done.stdout) if e.get("event") == "cpu"]
    if not events:
        why = complaint(done.stderr) or f"it {ended_by(done.returncode)}"
        mend = "unset or mend WHERRY_RUN" if os.environ.get("WHERRY_RUN") else "run make bench once"
        raise WherryError(
            f"{path()} says nothing of the CPU, as Wherry's runner would ({why}); {mend}"
        )
    return events[0]


def sharing() -> Event | None:
    """How many times as long work takes on the first CPU beside work on each of the others: `cpu`, and `others` with
    `cpu` and `ratio` (null: not told). None when the runner cannot say."""
    try:
        done = _run(["sharing", "--json"])
    except FailedError:
        return None
    return next((e for e in _events(done.stdout) if e.get("event") == "sharing"), None)


def check_peer(spec: str, limit: float) -> str | None:
    """Loads a peer in a runner of its own. None when it loads; raises for misuse; else what it did wrong."""
    try:
        done = _run(["measure", "--peer", spec], limit)
    except FailedError:
        return f"hung while it was loaded (stopped after {limit:.0f} s)"
    if done.returncode == 2:
        raise WherryError(complaint(done.stderr) or f"peer '{spec}' was refused")
    if any(event.get("event") == "end" for event in _events(done.stdout)):
        return None
    said = complaint(done.stderr)
    if "while it was loaded" in said:
        return said.removeprefix(f"peer {spec.partition('=')[0]}: ").removesuffix("; leave it out")
    return f"failed while it was loaded: the runner {ended_by(done.returncode)}" + (
        f" ({said})" if said else ""
    )


def _events(text: str) -> list[Event]:
    events = []
    for line in text.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            events.append(event)
    return events


class Stream:
    """One `wherry-run` whose events are read as they come. A context manager: leaving it ends the program. Ctrl-Z stops
    it until we go on; with `measures` it ends it, since a sample that was stopped amid says nothing."""

    def __init__(
        self,
        arguments: Sequence[str],
        lines: Sequence[str] = (),
        limit: float = 60,
        measures: bool = False,
        env: Mapping[str, str] | None = None,
    ):
        self.limit = limit
        self.until: float | None = None  # of jobcontrol.clock(); from then on it is ended
        self.measures = measures
        self.stopped = False  # and so ended
        self._errors = tempfile.TemporaryFile()
        self._process: subprocess.Popen | None = None
        with contextlib.ExitStack() as around:
            around.enter_context(jobcontrol.following(self._stop, self._go_on))
            with jobcontrol.held():
                self._process = self._start(arguments, lines, env)
            self._around = around.pop_all()

    def _start(
        self, arguments: Sequence[str], lines: Sequence[str], env: Mapping[str, str] | None
    ) -> subprocess.Popen:
        # A file, not a pipe: thousands of rows must not wait for a reader that is busy measuring.
        # Unbuffered, so that what cannot be written is told there, and not once more when it is closed.
        with tempfile.TemporaryFile(buffering=0) as rows:
            try:
                wanted = "".join(line + "\n" for line in lines).encode()
                while wanted:
                    wanted = wanted[rows.write(wanted) :]
                rows.seek(0)
            except OSError as error:
                raise FailedError(
                    f"cannot write what is to be measured to {tempfile.gettempdir()}: {error.strerror}; "
                    "set TMPDIR to where there is room, or raise the limit on files (ulimit -f)"
                ) from None
            native = path()
            self._used_before = _processor_time()
            try:
                # A session of its own: Ctrl-C reaches us alone, and we decide what becomes of the runner.
                return subprocess.Popen(
                    [native, *arguments],
                    stdin=rows,
                    stdout=subprocess.PIPE,
                    stderr=self._errors,
                    env=env,
                    start_new_session=True,
                )
            except OSError as error:
                raise FailedError(f"cannot start {native}: {error.strerror}") from None

    def __enter__(self) -> Stream:
        return self

    def _stop(self) -> None:
        self.stopped = self.measures
        self._signal(signal.SIGKILL if self.measures else signal.SIGSTOP)

    def _go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        # Once it has been waited for its number may be another's.
        if self._process and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def __exit__(self, *_: object) -> None:
        self._around.close()
        _kill_session(self._process)
        self._process.stdout.close()
        self._errors.close()

    def __iter__(self) -> Iterator[Event]:
        """Events until the output or the program ends; HangError after `limit` seconds of silence, LateError when the
        time is over."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            rest = b""
            while True:
                deadline = jobcontrol.clock() + self.limit
                while not selector.select(LOOK_AGAIN):
                    self._check_time()
                    # Its output may stay open in a process that a peer has started.
                    if self._process.poll() is not None and not selector.select(0):
                        return
                    if jobcontrol.clock() >= deadline:
                        yield from self._last_words()
                        raise HangError
                data = os.read(self._process.stdout.fileno(), 1 << 16)
                if not data:
                    return
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    if line.strip():
                        yield self._event(line)
                self._check_time()

    def _last_words(self) -> list[Event]:
        """Ends a runner that is silent, but not yet its process that tells who it was busy with, if any."""
        self._process.kill()
        said = b""
        until = time.monotonic() + LAST_WORDS
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in said and selector.select(max(until - time.monotonic(), 0)):
                data = os.read(self._process.stdout.fileno(), 1 << 16)
                if not data:
                    break
                said += data
        _kill_session(self._process)
        for event in _events(said.decode(errors="replace")):
            if event.get("event") == "crash":
                why = f"no sign of life for {self.limit:g} s; stopped"
                return [{**event, "event": "hang", "message": why}]
        return []

    def _check_time(self) -> None:
        if self.until is not None and jobcontrol.clock() >= self.until:
            _kill_session(self._process)
            raise LateError

    @staticmethod
    def _event(line: bytes) -> Event:
        try:
            # It tells paths as it was given them, which need not be text.
            event = json.loads(line.decode(errors="surrogateescape"))
        except ValueError:
            event = None
        if not isinstance(event, dict) or "event" not in event:
            raise BadLineError(line[:80].decode(errors="replace"))
        return event

    def end(self) -> int:
        """Waits for the program, whose output has ended; its status (negative: the signal)."""
        try:
            return self._process.wait(timeout=self.limit)
        except subprocess.TimeoutExpired:
            _kill_session(self._process)
            return -signal.SIGKILL

    def out_of_time(self, status: int) -> str:
        """As the function of that name, of this program once it has ended with `status`."""
        return out_of_time(status, _processor_time() - self._used_before)

    def complaint(self) -> str:
        self._errors.seek(0)
        return complaint(self._errors.read().decode(errors="replace"))
