"""Runs the command with the recorder in it, and looks now and then at what it starts."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
import re
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wherry import children, jobcontrol, preloading
from wherry.recording import blocks, handing, leftovers, orphans, processor
from wherry.recording.merge import Merger
from wherry.recording.processor import Watched
from wherry.recording.unseen import Counting

if TYPE_CHECKING:
    from wherry.commands import Verdict

# Children that live shorter than this may be missed.
LOOK_S = 0.02
# From so many files on, those of processes that have ended are merged while the command still runs.
MANY_FILES = 500
RECORDER = b"/libwherry-recorder.so"
# Of glibc, among a process's mappings.
LIBC = re.compile(rb"/libc(?:\.so\.6|-2\.\d+\.so)(?: \(deleted\))?$", re.MULTILINE)


@dataclasses.dataclass
class Ran:
    # As a shell has it: 128 + N for signal N; None: nobody knows, as it was recovered, or goes on.
    exit: int | None
    signal: int
    elapsed_s: float  # without what Ctrl-Z stopped
    user_s: float
    system_s: float
    seen: dict[str, set[int]]  # program file -> processes seen running it
    still: int  # processes that outlived the command
    watched: Mapping[int, Watched] = dataclasses.field(default_factory=dict)
    # of `seen` those that ran it without the recorder
    without: Mapping[str, set[int]] = dataclasses.field(default_factory=dict)
    # why, as far as that could be seen: by program and process
    reasons: Mapping[tuple[str, int], str] = dataclasses.field(default_factory=dict)
    look_s: float = LOOK_S  # the longest time between two looks
    unrecorded_s: float = 0.0  # processor time of what was not recorded, at least
    runs: int = 1
    goes_on: bool = False  # it was read meanwhile

    def followed_by(self, other: Ran) -> Ran:
        """Both in one; the exit status is the later's."""
        return dataclasses.replace(
            other,
            elapsed_s=self.elapsed_s + other.elapsed_s,
            user_s=self.user_s + other.user_s,
            system_s=self.system_s + other.system_s,
            seen=_joined(self.seen, other.seen),
            without=_joined(self.without, other.without),
            reasons={**self.reasons, **other.reasons},
            still=self.still + other.still,
            watched={},
            unrecorded_s=self.unrecorded_s + other.unrecorded_s,
            runs=self.runs + other.runs,
        )


def _joined(some: Mapping[str, set[int]], more: Mapping[str, set[int]]) -> dict[str, set[int]]:
    return {
        program: some.get(program, set()) | more.get(program, set()) for program in {**some, **more}
    }


@dataclasses.dataclass
class _Asked:
    """What is known of what a process executes."""

    image: tuple[str, ...]
    since_ns: int  # of processor time, when it was first seen
    # From how much on it is asked again whether it has a record; None: it has one.
    again_ns: int | None
    # The recorder is there: what it has copied by now is recorded, also where that is nothing yet.
    loaded: bool = False


class _Look(threading.Thread):
    """The processes below one, by the files that they execute. It is begun before there is that one, so that what no
    thread can be begun for is not left running alone; it waits for `begin`."""

    def __init__(self, directory: Path, merger: Merger) -> None:
        super().__init__(daemon=True)
        self.root = 0
        self.seen: dict[str, set[int]] = {}
        self.without: dict[str, set[int]] = {}
        self.reasons: dict[tuple[str, int], str] = {}
        self.alive: set[int] = set()
        self.watched: dict[int, Watched] = {}
        self.longest_s = LOOK_S
        self._looked = time.monotonic()
        self._stood = False
        self._asked: dict[int, _Asked] = {}
        self._orphans = orphans.Orphans(0)
        self._by_records = orphans.ByRecords(directory)
        self._directory = directory
        self._merger = merger
        self._begun = threading.Event()
        self._done = threading.Event()

    def begin(self, root: int) -> None:
        self.root = root
        self._orphans = orphans.Orphans(root)
        self._looked = time.monotonic()
        self._begun.set()

    def run(self) -> None:
        turns = 0
        self._begun.wait()
        while not self._done.wait(LOOK_S):
            self._time()
            self._look()
            turns += 1
            if turns % 50 == 0:
                self._merge_ended()

    def stop(self) -> None:
        if self._begun.is_set():
            self._time()
        self._done.set()
        self._begun.set()
        self.join()
        self._orphans.look(self.alive)

    def orphans_s(self) -> tuple[float, float]:
        return self._orphans.seconds()

    def stood(self) -> None:
        """We are about to be stopped, or were: nothing can be missed meanwhile."""
        self._stood = True

    def _time(self) -> None:
        """Where the machine is busy, looks come late."""
        now = time.monotonic()
        if not self._stood:
            self.longest_s = max(self.longest_s, now - self._looked)
        self._looked, self._stood = now, False

    def _look(self) -> None:
        met: set[int] = set()
        # Those that lost their parents are found by what is remembered of them, or by their records.
        self._meet([self.root, *self.alive], met)
        self._meet(self._by_records.find(met), met)
        self._orphans.look(met)
        self.alive = {pid for pid in met if running(pid)}

    def _meet(self, waiting: list[int], met: set[int]) -> None:
        while waiting:
            pid = waiting.pop()
            if pid in met:
                continue
            met.add(pid)
            try:
                program = _program(pid)
                self.seen.setdefault(program, set()).add(pid)
                self._watch(pid, program)
            except FileNotFoundError:
                self._watch_end(pid)
            except OSError:
                pass
            with contextlib.suppress(OSError):
                for task in Path(f"/proc/{pid}/task").iterdir():
                    with contextlib.suppress(OSError):
                        words = (task / "children").read_text().split()
                        waiting += [int(word) for word in words]

    def _watch(self, pid: int, program: str) -> None:
        """Its processor time, and whether it has the recorder, or a record: the file is among its mappings then."""
        cpu_ns = processor.of_process(pid)
        if cpu_ns is None:
            return
        image = (program, *_image(pid))
        asked = self._asked.get(pid)
        if asked is None or asked.image != image:
            asked = self._asked[pid] = _Asked(image, cpu_ns, cpu_ns)
        if asked.again_ns is not None and cpu_ns >= asked.again_ns:
            maps = Path(f"/proc/{pid}/maps").read_bytes()
            without = _without(maps)
            recorded = os.fsencode(self._directory) in maps
            why = _why_without(pid) if without else ""
            if without is False and not recorded and _is_hidden(self._directory, pid):
                without, why = True, NOT_BEGUN
            asked.loaded = without is False
            # What was another program's, had it begun one meanwhile.
            if without and _program(pid) == program:
                self.without.setdefault(program, set()).add(pid)
                self.reasons[program, pid] = why
            # What has none yet will hardly have one later, unless it is being loaded: ask less and less.
            more = (cpu_ns - asked.since_ns) // 8 + (1 if without is None else 1_000_000)
            asked.again_ns = None if recorded else cpu_ns + more
        seen = self.watched.setdefault(pid, Watched())
        seen.look(cpu_ns, time.monotonic_ns(), asked.loaded or asked.again_ns is None)

    def _watch_end(self, pid: int) -> None:
        """It has ended, or nearly so, and executes no file any more. What giving its memory back takes, long where
        there was much, is of what it executed."""
        seen, cpu_ns = self.watched.get(pid), processor.of_process(pid)
        if seen is not None and cpu_ns is not None:
            seen.look(cpu_ns, time.monotonic_ns(), seen.recorded)

    def _merge_ended(self) -> None:
        parts = leftovers.parts(self._directory)
        if len(parts) < MANY_FILES:
            return
        alive = collections.defaultdict(list)
        for part in parts:
            pid = part.name.partition("-")[0]
            if Path(f"/proc/{pid}").exists():
                alive[pid].append(part)
            else:
                self._merge(part)
        for several in alive.values():
            if len(several) > 1:
                self._merge_executed(several)
        leftovers.note_merged(self._directory, self._merger.processes)

    def _merge_executed(self, parts: Sequence[Path]) -> None:
        """Of one that lives what it executed before, in which nobody counts any more, as a process does that shares its
        memory and goes on."""
        begun = collections.defaultdict(list)
        for part in parts:
            with contextlib.suppress(OSError):
                if found := blocks.begun(part):
                    begun[found[0]].append((found[1], part))
        before = [part for started, own in begun.items() if started for _, part in sorted(own)[:-1]]
        if not before:
            return
        maps = b""
        for pid in self.alive:
            with contextlib.suppress(OSError):
                maps += Path(f"/proc/{pid}/maps").read_bytes()
        for part in before:
            if os.fsencode(part) + b"\n" not in maps:
                self._merge(part)

    def _merge(self, part: Path) -> None:
        self._merger.add(part)
        part.unlink(missing_ok=True)


class _Clock:
    """What the command takes. Ctrl-Z stops us, and with us a command that does not ask for another session or ignore
    it: that time is not the command's."""

    def __init__(self, process: subprocess.Popen, look: _Look, begin: float) -> None:
        self._process = process
        self._look = look
        self._begin = begin
        self._before = 0.0
        self._went_on = 0.0  # while we were stopped

    def following(self) -> contextlib.AbstractContextManager[None]:
        return jobcontrol.following(self._stop, self._go_on)

    def elapsed(self) -> float:
        return jobcontrol.clock() - self._begin + self._went_on

    def _stop(self) -> None:
        self._look.stood()
        self._before = time.monotonic()

    def _go_on(self) -> None:
        self._look.stood()
        if not self._command_stood():
            self._went_on += time.monotonic() - self._before

    def _command_stood(self) -> bool:
        # What is told of it once, or as long as it stands; it may be continued a moment after us.
        told = os.WSTOPPED | os.WCONTINUED | os.WNOHANG
        with contextlib.suppress(ChildProcessError):
            return os.waitid(os.P_PID, self._process.pid, told) is not None
        return False


def _program(pid: int) -> str:
    return blocks.program_of(str(Path(f"/proc/{pid}/exe").readlink()))


def _image(pid: int) -> list[str]:
    """Where its stack began, its arguments and its environment: another exec, also of the same program, has others."""
    words = orphans.stat(pid)
    return words[25:26] + words[45:49]


def _without(maps: bytes) -> bool | None:
    """Whether the recorder is not there and will not come, by a process's mappings; None: nobody knows. What is
    preloaded is there before libc. They are in the order of addresses, with the stack behind all libraries: without it
    the process ended, or executed another program, while they were read."""
    if RECORDER in maps:
        return False
    return True if LIBC.search(maps) and b"[stack]" in maps else None


def _why_without(pid: int) -> str:
    """Of one that has no recorder, by the environment that it was started with. What is not there it may have written
    over (setproctitle)."""
    try:
        given = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return NO_RECORD
    preloads = [word for word in given if word.startswith(b"LD_PRELOAD=") and word[11:]]
    if not preloads:
        return NO_RECORD
    return NOT_LOADED if any(RECORDER in word for word in preloads) else OTHER_PRELOAD


def _is_hidden(directory: Path, pid: int) -> bool:
    """Whether that process has another directory under this name, or none, or may write nothing there (a sandbox)."""
    there = Path(f"/proc/{pid}/root{directory}")
    try:
        return (
            not os.path.samestat(there.stat(), directory.stat())
            or os.statvfs(there).f_flag & os.ST_RDONLY != 0
        )
    except (FileNotFoundError, NotADirectoryError):
        return running(pid) and directory.is_dir()
    except OSError:
        return False


def running(pid: int) -> bool:
    return orphans.stat(pid)[:1] not in ([], ["Z"], ["X"])


def _umask() -> int:
    """Ours. Where subprocess is to set none it starts a program by posix_spawn, and glibc leaves the two signals that
    are its own (32, 33) ignored there."""
    own = os.umask(0o077)
    os.umask(own)
    return own


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
    begin = jobcontrol.clock()
    handed: handing.Handing | None = None
    early: list[int] = []

    def hand_on(number: int, _: object) -> None:
        if handed is None:
            early.append(number)
        else:
            handed.hand_on(number)

    # What whoever started us has ignored stays so, for us and for the command: nohup sets SIGHUP to that.
    others = {
        number: signal.signal(number, hand_on)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    for number, handler in previous.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, hand_on)
    interrupts, look = handing.Interrupts(), _Look(directory, merger)
    try:
        with interrupts.begun_before(look):
            try:
                if counting is None:
                    # What the command was to inherit stays open; nothing of ours would be inherited.
                    process = subprocess.Popen(
                        list(argv),
                        executable=executable,
                        env=dict(env),
                        close_fds=False,
                        preexec_fn=children.before_exec(),
                        umask=_umask(),
                    )
                else:
                    words, descriptors = counting.around(executable, argv, env)
                    for own in descriptors:
                        os.set_inheritable(own, True)
                    process = subprocess.Popen(
                        words,
                        env=preloading.own_environment(),
                        close_fds=False,
                        preexec_fn=children.before_exec(),
                        umask=_umask(),
                    )
                    counting.started()
                handed = handing.Handing(process)
                # What came while it was being started, and of which it knows nothing.
                for number in early:
                    handing.send(process, number)
                with handed, interrupts.handed_on(handed):
                    for number in previous:
                        signal.signal(number, lambda *_: None)
                    clock = _Clock(process, look, begin)
                    look.begin(process.pid)
                    with clock.following():
                        code = process.wait()
                    elapsed = clock.elapsed()
            finally:
                look.stop()
    finally:
        for number, handler in {**previous, **others}.items():
            signal.signal(number, handler)
    if counting is not None:
        for found in (look.seen, look.without):
            found.pop(str(Path(counting.program).resolve()), None)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # A daemon loses its parents sooner than anybody looks; it has its record or, if its title does not lie there now
    # (setproctitle), the environment that names the directory.
    outlive = {pid for pid in look.alive if running(pid)}
    user_s, system_s = look.orphans_s()
    outlive |= set(leftovers.counting(directory).values()) | leftovers.started_there(directory)
    return Ran(
        128 - code if code < 0 else code,
        -code if code < 0 else 0,
        elapsed,
        after.ru_utime - before.ru_utime - handed.user_s + user_s,
        after.ru_stime - before.ru_stime - handed.system_s + system_s,
        look.seen,
        len(outlive),
        look.watched,
        look.without,
        look.reasons,
        look.longest_s,
    )


NO_RECORD = "it was started without LD_PRELOAD, or could not write the record"
NOT_LOADED = (
    "its loader could not load the recorder, which its user may not read, or which is not there where it ran (a "
    "container); wherry record --into DIR makes copies elsewhere"
)
NOT_BEGUN = (
    "the recorder could not begin its file below {}, which is not there, or not to be written to, where it ran (a "
    "sandbox, a container); wherry record --into DIR records elsewhere"
)
OTHER_PRELOAD = "it was started with another LD_PRELOAD; give wherry record that, which keeps both"
NO_ROOM = "there was no room for its record in {}"
UNNAMED = "too short to be named"
NO_MEMORY = "it may have no more memory for its record (ulimit -v)"
FILE_LIMIT = "its record would be larger than files may be (ulimit -f)"


def unrecorded(
    ran: Ran, merger: Merger, verdict: Verdict, directory: Path, env: Mapping[str, str]
) -> list[dict]:
    """Programs that ran and left nothing, with the reason and how many processes are known of; of those that left
    records elsewhere in the run the processes that had no recorder. What left a record was recorded, also where nothing
    would have been preloaded into it as the command. `verdict`: on the command itself, which may have been too short
    to be seen."""
    from wherry import commands

    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    refused = dict(merger.refused)
    for program, pids in sorted(ran.seen.items()):
        own = commands.examine(program, env)
        for pid in pids & refused.keys():
            counts[program, _refusal(refused.pop(pid), directory)] += 1
        missing = ran.without.get(program, set()) if program in merger.programs else pids
        for pid in missing - merger.refused.keys():
            why = ran.reasons.get((program, pid), NO_RECORD) if own.helps else own.reason
            counts[program, _told(why or "", directory)] += 1
    rows = refused_unseen(refused, directory)
    itself = os.path.realpath(verdict.program or verdict.path or verdict.command)
    if not verdict.helps and not any(program == itself for program, _ in counts):
        counts[itself, verdict.reason or ""] += ran.runs
    return rows + [
        {"program": program, "reason": reason, "count": count}
        for (program, reason), count in sorted(counts.items())
    ]


def refused_unseen(refused: Mapping[int, int], directory: Path) -> list[dict]:
    """Of processes that could begin no record, and that nobody saw: by Merger.refused."""
    counts = collections.Counter(_refusal(why, directory) for why in refused.values())
    return [
        {"program": f"({UNNAMED})", "reason": reason, "count": count}
        for reason, count in sorted(counts.items())
    ]


def _told(why: str, directory: Path) -> str:
    return why.format(directory.parent) if why == NOT_BEGUN else why


def _refusal(why: int, directory: Path) -> str:
    known = {blocks.FILE_LIMIT: FILE_LIMIT, blocks.NO_MEMORY: NO_MEMORY}
    return known.get(why) or NO_ROOM.format(directory.parent)
