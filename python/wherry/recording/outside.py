"""Recording of what somebody else starts: a service, a container, a whole session.

A directory is made ready that has in it all that is to be preloaded there, so that a container needs this directory
and nothing else of ours, and the environment that does it. What is recorded comes into it, and is read while that goes
on."""

from __future__ import annotations

import collections
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wherry import runfile
from wherry.errors import FailedError, WherryError
from wherry.recording import blocks, leftovers, preparing, processor
from wherry.recording.merge import Merger
from wherry.recording.running import Ran
from wherry.recording.trial import Tried

ENVIRONMENT = "environment"
# What a path may not have to be one of several in LD_PRELOAD, or to stand in a file of KEY=VALUE unquoted.
NOT_THERE = frozenset("$:\"'\\#")
LONGEST = 300  # the recorder has room for no longer one
# What has ended tells of no processor time. When it made more than this part of the calls and bytes, nobody knows what
# share of all time copies took.
MOST_ENDED = 0.01


def _not_empty(home: Path) -> WherryError:
    return WherryError(f"--into {home}: it is not empty; give a directory that is, or a new one")


def check(home: Path) -> Path:
    """Where it is to be, when it can be there."""
    place = home.absolute()
    text = str(place)
    if not text.isprintable() or any(letter.isspace() or letter in NOT_THERE for letter in text):
        raise WherryError(
            f"--into {home}: LD_PRELOAD cannot name what is in {text!r}; give a path without blanks, colons and signs"
        )
    if len(os.fsencode(text)) > LONGEST:
        raise WherryError(
            f"--into {home}: the recorder has no room for so long a path; give one of up to {LONGEST}"
        )
    if place.is_dir() and any(place.iterdir()):
        raise _not_empty(home)
    if os.path.lexists(place) and not place.is_dir():
        raise WherryError(f"--into {home}: it is not a directory; give a new one")
    return place


def make(home: Path, prepared: preparing.Preparation, output: Path, note: str) -> dict[str, str]:
    """The environment of what is to be recorded there. When it cannot be made nothing is left of it."""
    new = not home.is_dir()
    try:
        home.mkdir(parents=True, exist_ok=True)
        # Of two that found it empty who makes this has it, and the other clears nothing away.
        (home / ENVIRONMENT).touch(exist_ok=False)
    except FileExistsError:
        raise _not_empty(home) from None
    except OSError as error:
        if new:
            shutil.rmtree(home, ignore_errors=True)
        raise FailedError(f"--into {home}: {error.strerror}") from None
    try:
        return _made(home, prepared, output, note)
    except (OSError, WherryError) as error:
        if new:
            shutil.rmtree(home, ignore_errors=True)
        elif home.is_dir():
            for file in home.iterdir():
                file.unlink()
        if isinstance(error, OSError):
            raise FailedError(f"--into {home}: {error.strerror}") from None
        raise


def _made(home: Path, prepared: preparing.Preparation, output: Path, note: str) -> dict[str, str]:
    # A service's own user begins files there, and cannot take away what is not its own.
    home.chmod(0o1733 if os.geteuid() == 0 else 0o700)
    if os.statvfs(home).f_flag & os.ST_NOEXEC:
        raise WherryError(
            f"--into {home}: nothing can be executed from that file system (noexec), so nothing can be preloaded; give "
            "a directory elsewhere"
        )
    libraries = [_copied(library, home) for library in prepared.libraries]
    plan = _copied(prepared.plan, home) if prepared.plan else None
    env = preparing.Preparation(tuple(libraries), plan, prepared.tried).environment({}, home)
    tried = prepared.tried
    leftovers.write_outside(home, output, note, (tried.routines, tried.plan) if tried else None)
    lines = "".join(f"{name}={value}\n" for name, value in env.items())
    runfile.write_bytes(home / ENVIRONMENT, lines.encode())
    return env


def _copied(file: Path, home: Path) -> Path:
    target = home / file.name
    shutil.copyfile(file, target)
    target.chmod(0o644)
    return target


def closed_to_others(home: Path) -> Path | None:
    """The first directory on the way there that only its owner can go through; None: all let everybody through."""
    for directory in reversed((home, *home.parents)):
        if not directory.stat().st_mode & 0o001:
            return directory
    return None


@dataclass(frozen=True)
class Collected:
    merger: Merger
    ran: Ran
    alive: frozenset[int]  # processes that go on
    ended_share: float  # what others did of the calls, or of the bytes, whichever is more

    @property
    def times_known(self) -> bool:
        return bool(self.alive) and self.ended_share <= MOST_ENDED


@dataclass(frozen=True)
class _Record:
    process: blocks.Process
    pid: int | None  # as it is here; None: it has ended, or executed something else
    calls: int
    bytes: int


def _work(process: blocks.Process) -> tuple[int, int]:
    """Calls, and the bytes that these had at least."""
    least = blocks.size_bounds()[0].astype(float)
    sizes = [block["sizes"].sum(axis=0).astype(float) for block in process.blocks]
    return int(sum(own.sum() for own in sizes)), int(sum((own * least).sum() for own in sizes))


def _times(records: Sequence[_Record]) -> tuple[float, float, float, list[_Record]]:
    """Of the processes that go on: user and system time and how long they have been recorded, in seconds; and the
    records of others, of which no time is known."""
    cpu_s = system_s = 0.0
    began_ns: list[int] = []
    unknown: list[_Record] = []
    by_process: dict[tuple, list[_Record]] = collections.defaultdict(list)
    for number, record in enumerate(records):
        started = record.process.started
        by_process[record.process.pid, started or -number].append(record)
    for own in by_process.values():
        own.sort(key=lambda record: record.process.span.clock_ns)
        last = own[-1]
        now_ns = processor.of_process(last.pid) if last.pid is not None else None
        if now_ns is None:
            unknown += own
            continue
        took_s = max(now_ns - own[0].process.span.cpu_ns, 0) / 1e9
        cpu_s += took_s
        system_s += took_s * _system_share(last.pid)
        began_ns.append(own[0].process.span.clock_ns)
    elapsed_s = (time.monotonic_ns() - min(began_ns)) / 1e9 if began_ns else 0.0
    return cpu_s - system_s, system_s, elapsed_s, unknown


def _system_share(pid: int) -> float:
    """Of a process's time so far what the kernel took."""
    try:
        words = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        user, system = int(words[11]), int(words[12])
    except (OSError, ValueError, IndexError):
        return 0.0
    return system / (user + system) if user + system else 0.0


def collect(home: Path) -> Collected:
    """What is there until now; it stays there, and goes on."""
    merger, records = Merger(), []
    alive = leftovers.counting(home)
    for part in leftovers.parts(home):
        process = merger.add(part)
        if process is not None:
            records.append(_Record(process, alive.get(part.name), *_work(process)))
    user_s, system_s, elapsed_s, unknown = _times(records)
    going_on = frozenset(record.pid for record in records if record.pid is not None)
    ran = Ran(None, 0, elapsed_s, user_s, system_s, {}, 0, goes_on=True)
    return Collected(merger, ran, going_on, _share(unknown, records))


def _share(some: Sequence[_Record], every: Sequence[_Record]) -> float:
    shares = []
    for what in ("calls", "bytes"):
        whole = sum(getattr(record, what) for record in every)
        part = sum(getattr(record, what) for record in some)
        shares.append(part / whole if whole else 0.0)
    return max(shares)


def tried(found: leftovers.Leftover) -> Tried | None:
    return Tried(*found.tried) if found.tried else None
