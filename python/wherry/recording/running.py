"""Runs the command with the recorder in it, and looks now and then at what it starts."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from wherry.recording.merge import Merger
from wherry.recording.unseen import Counting

# Children that live shorter than this may be missed.
LOOK_S = 0.02
# From so many files on, those of processes that have ended are merged while the command still runs.
MANY_FILES = 500


@dataclasses.dataclass
class Ran:
    exit: int  # as a shell has it: 128 + N for signal N
    signal: int
    elapsed_s: float
    user_s: float
    system_s: float
    seen: dict[str, set[int]]  # program file -> processes seen running it
    still: int  # processes that outlived the command
    runs: int = 1

    def followed_by(self, other: Ran) -> Ran:
        """Both in one; the exit status is the later's."""
        seen = {program: set(pids) for program, pids in self.seen.items()}
        for program, pids in other.seen.items():
            seen.setdefault(program, set()).update(pids)
        return dataclasses.replace(
            other,
            elapsed_s=self.elapsed_s + other.elapsed_s,
            user_s=self.user_s + other.user_s,
            system_s=self.system_s + other.system_s,
            seen=seen,
            still=self.still + other.still,
            runs=self.runs + other.runs,
        )


class _Look(threading.Thread):
    """The processes below one, by the files that they execute."""

    def __init__(self, root: int, directory: Path, merger: Merger) -> None:
        super().__init__(daemon=True)
        self.root = root
        self.seen: dict[str, set[int]] = {}
        self.alive: set[int] = set()
        self._directory = directory
        self._merger = merger
        self._done = threading.Event()

    def run(self) -> None:
        turns = 0
        while not self._done.wait(LOOK_S):
            self._look()
            turns += 1
            if turns % 50 == 0:
                self._merge_ended()

    def stop(self) -> None:
        self._done.set()
        self.join()

    def _look(self) -> None:
        # Those that lost their parents are found by what is remembered of them.
        waiting, met = [self.root, *self.alive], set()
        while waiting:
            pid = waiting.pop()
            if pid in met:
                continue
            met.add(pid)
            with contextlib.suppress(OSError):
                program = str(Path(f"/proc/{pid}/exe").readlink()).removesuffix(" (deleted)")
                self.seen.setdefault(program, set()).add(pid)
            with contextlib.suppress(OSError):
                for task in Path(f"/proc/{pid}/task").iterdir():
                    with contextlib.suppress(OSError):
                        words = (task / "children").read_text().split()
                        waiting += [int(word) for word in words]
        self.alive = {pid for pid in met if running(pid)}

    def _merge_ended(self) -> None:
        parts = list(self._directory.iterdir())
        if len(parts) < MANY_FILES:
            return
        for part in parts:
            pid = part.name.partition("-")[0]
            if pid.isdigit() and not Path(f"/proc/{pid}").exists():
                self._merger.add(part)
                part.unlink(missing_ok=True)


def running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[:1] not in ([], ["Z"], ["X"])


def run(
    argv: Sequence[str],
    executable: str,
    env: Mapping[str, str],
    directory: Path,
    merger: Merger,
    counting: Counting | None = None,
) -> Ran:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # A Ctrl-C at the terminal is for the command; what it leaves is still to be read.
    previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGQUIT)}
    begin = time.monotonic()
    process = None

    def hand_on(number: int, _: object) -> None:
        if process is not None:
            process.send_signal(number)

    others = {n: signal.signal(n, hand_on) for n in (signal.SIGTERM, signal.SIGHUP)}
    try:
        if counting is None:
            # What the command was to inherit stays open; nothing of ours would be inherited.
            process = subprocess.Popen(
                list(argv), executable=executable, env=dict(env), close_fds=False
            )
        else:
            words, descriptors = counting.around(executable, argv, env)
            for own in descriptors:
                os.set_inheritable(own, True)
            process = subprocess.Popen(words, close_fds=False)
            counting.started()
        for number in previous:
            signal.signal(number, signal.SIG_IGN)
        look = _Look(process.pid, directory, merger)
        look.start()
        try:
            code = process.wait()
            elapsed = time.monotonic() - begin
        finally:
            look.stop()
    finally:
        for number, handler in {**previous, **others}.items():
            signal.signal(number, handler)
    if counting is not None:
        look.seen.pop(str(Path(counting.program).resolve()), None)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Ran(
        128 - code if code < 0 else code,
        -code if code < 0 else 0,
        elapsed,
        after.ru_utime - before.ru_utime,
        after.ru_stime - before.ru_stime,
        look.seen,
        sum(running(pid) for pid in look.alive if pid != process.pid),
    )


def unrecorded(ran: Ran, recorded: Mapping[str, int], env: Mapping[str, str]) -> list[dict]:
    """Programs that ran and left nothing, with the reason."""
    from wherry import preloading

    rows = []
    for program, pids in sorted(ran.seen.items()):
        verdict = preloading.examine(program, env)
        if verdict.helps and program in recorded:
            continue
        reason = verdict.reason if not verdict.helps else None
        if reason is None:
            reason = "it was started without LD_PRELOAD, or could not write the record"
        rows.append({"program": program, "reason": reason, "count": len(pids)})
    return rows
