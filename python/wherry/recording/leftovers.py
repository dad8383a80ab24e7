"""What a recording needs to be finished by somebody else: its directory has a file that says what was to become of it.

`wherry record` holds a lock on that file as long as it runs, which the kernel takes away however it ends. So a
directory whose file nobody has locked is left over from one that was killed, or was made ready for what somebody else
starts (outside.py); its processes may go on counting."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import json
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from wherry import runfile
from wherry.errors import WherryError

PREFIX = "wherry-record-"
STATE, MERGED = "recording.json", "merged"
FORMAT, VERSION = "wherry-recording", 1
LARGEST_STATE = 16 << 20


@dataclass(frozen=True)
class Leftover:
    home: Path
    command: tuple[str, ...]
    output: Path
    note: str
    started: str
    merged: int  # processes whose records were merged already, and are gone
    outside: bool = False  # made ready for what somebody else starts
    tried: tuple[str, str] | None = None  # then: what, and by which plan


def counting(home: Path) -> dict[str, int]:
    """Processes that count there still, by the names of their files: in a container it has another number there."""
    begins = {os.fsencode(f"{own}/") for own in (home.absolute(), home.resolve())}
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            maps = (process / "maps").read_bytes()
            for rest in (part for begin in begins for part in maps.split(begin)[1:]):
                name = rest.partition(b"\n")[0].decode(errors="replace")
                if is_part(name):
                    found[name] = int(process.name)
    return found


def started_there(home: Path) -> set[int]:
    """Processes that were to count there, also such as have copied nothing yet."""
    word = os.fsencode(f"WHERRY_RECORD={home}")
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if word in (process / "environ").read_bytes().split(b"\0"):
                found.add(int(process.name))
    return found


_PART = re.compile(r"[0-9]+-[0-9]+")


def is_part(name: str) -> bool:
    """Of a process: PID-N. Others may have put anything beside those."""
    return _PART.fullmatch(name) is not None


def parts(home: Path) -> list[Path]:
    """The files of processes, PID-N each; none where somebody has removed the directory."""
    try:
        found = list(home.iterdir())
    except FileNotFoundError:
        return []
    return sorted(path for path in found if is_part(path.name) and path.is_file())


def _state(command: Sequence[str], output: Path, note: str) -> dict:
    return {
        "format": FORMAT,
        "version": VERSION,
        "command": list(command),
        "output": str(output.absolute()),
        "note": note,
        "started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }


def write_outside(home: Path, output: Path, note: str, tried: tuple[str, str] | None) -> None:
    """Of one that is for what somebody else starts."""
    outside = {"tried": list(tried) if tried else None}
    found = _state((), output, note) | {"outside": outside}
    runfile.write_bytes(home / STATE, json.dumps(found).encode())


@contextlib.contextmanager
def held(home: Path, command: Sequence[str], output: Path, note: str) -> Iterator[None]:
    """With the file there, and locked. Without it, where it cannot be written, the recording goes on all the same."""
    found = _state(command, output, note)
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            fresh = home / f".{STATE}"
            # Unbuffered, so that what cannot be written is not told once more, as a failure, when it is closed.
            file = stack.enter_context(fresh.open("xb", buffering=0))
            # Locked before it has its name: what is there and not locked is left over.
            fcntl.flock(file, fcntl.LOCK_EX)
            data = json.dumps(found).encode()
            if file.write(data) == len(data):
                fresh.replace(home / STATE)
        yield


def note_merged(home: Path, count: int) -> None:
    """What is in the merger of this process only."""
    fresh = home / f".{MERGED}"
    with contextlib.suppress(OSError):
        fresh.write_text(str(count))
        fresh.replace(home / MERGED)


def _read(home: Path) -> Leftover | None:
    """None: there is none, or not of this user."""
    try:
        descriptor = os.open(home / STATE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if about.st_uid != os.geteuid() or not stat.S_ISREG(about.st_mode):
            return None
        try:
            found = json.loads(file.read(LARGEST_STATE))
            if (found["format"], found["version"]) != (FORMAT, VERSION):
                return None
            merged = 0
            with contextlib.suppress(OSError, ValueError):
                merged = int((home / MERGED).read_text())
            outside = found.get("outside")
            tried = outside["tried"] if outside else None
            return Leftover(
                home,
                tuple(map(str, found["command"])),
                Path(str(found["output"])),
                str(found["note"]),
                str(found["started"]),
                merged,
                outside is not None,
                (str(tried[0]), str(tried[1])) if tried else None,
            )
        except (ValueError, KeyError, TypeError, IndexError, RecursionError):
            return None


def read(home: Path) -> Leftover:
    """That one, or an error that says why it cannot be had."""
    found = _read(home)
    if found is None:
        raise WherryError(
            f"{home}: no recording of yours is there that could be recovered; give the directory that wherry record "
            "named"
        )
    if runfile.is_locked(home / STATE):
        raise WherryError(f"{home}: that recording is under way; its wherry record saves it")
    if busy := counting(home):
        what = (
            "--collect saves what there is until now"
            if found.outside
            else "recover it when that has ended"
        )
        raise WherryError(f"{home}: process {min(busy.values())} is still recorded there; {what}")
    return found


def read_outside(home: Path) -> Leftover:
    """One that --into made ready, or an error."""
    found = _read(home)
    if found is None or not found.outside:
        raise WherryError(
            f"{home}: no directory of yours that wherry record --into has made ready; give that one"
        )
    return found


def every() -> Iterator[Leftover]:
    """Those of this user whose `wherry record` is gone."""
    for base in dict.fromkeys((Path("/dev/shm"), Path(tempfile.gettempdir()))):
        try:
            homes = sorted(base.glob(f"{PREFIX}*"))
        except OSError:
            continue
        for home in homes:
            found = None if home.is_symlink() else _read(home)
            if found and not found.outside and not runfile.is_locked(home / STATE):
                yield found
