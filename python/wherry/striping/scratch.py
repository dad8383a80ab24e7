"""Scratch members, and a RAID-0 over more of it: made and held by `wherry-run hold`, which leaves nothing behind,
however it or this program ends."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from wherry import runner
from wherry.errors import FailedError, WherryError
from wherry.striping.place import Place
from wherry.striping.words import MEMBERS
from wherry.units import MIB, size_in_words

# Of each member and of the RAID's file.
BYTES, RAID_BYTES = 48 * MIB, 216 * MIB
QUICK_BYTES, QUICK_RAID_BYTES = 8 * MIB, 72 * MIB
# What btrfs keeps beside the data, on all devices together; rounded up.
RAID_BESIDES = 160 * MIB
# Of the free space and of the free memory, that much may be taken; and so much of the space stays free.
SHARE_OF_SPACE, SHARE_OF_MEMORY = 0.5, 0.4
MARGIN = 256 * MIB
LEAST_MEMBER = 2 * MIB
# Seconds without a word of progress.
SILENCE = 60.0
_IN_MEMORY = ("tmpfs", "ramfs")


def directory(given: str | None) -> Path:
    """Where scratch goes: as asked, TMPDIR, or /var/tmp when /tmp lies in memory, where nothing is ever cold."""
    if given is not None:
        own = Path(given)
        if not own.is_dir():
            raise WherryError(f"--scratch {given} is no directory; give one that can be written to")
        if not os.access(own, os.W_OK | os.X_OK):
            raise WherryError(f"--scratch {given} cannot be written to; give another directory")
        return own.absolute()
    own = Path(tempfile.gettempdir())
    if "TMPDIR" in os.environ or file_system(own) not in _IN_MEMORY:
        return own.absolute()
    other = Path("/var/tmp")
    return other if other.is_dir() and os.access(other, os.W_OK) else own.absolute()


def file_system(path: Path) -> str:
    """Its type, by the longest mount point above it."""
    best, kind = "", "unknown"
    try:
        mounts = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return kind
    where = str(path.resolve())
    for line in mounts:
        _, point, own, *_ = line.split(" ")
        inside = where == point or where.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, own
    return kind


def _memory_available() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 1 << 40


def has_md() -> bool:
    """Asked without having the kernel load it."""
    return Path("/proc/mdstat").exists()


def sizes(where: Path, quick: bool, raids: int) -> tuple[int, int]:
    """Bytes of a member and of the file on each RAID (0: none), as far as there is room."""
    member, on_raid = (QUICK_BYTES, QUICK_RAID_BYTES) if quick else (BYTES, RAID_BYTES)
    on_raid = on_raid if raids else 0
    free = shutil.disk_usage(where).free
    room = min((free - MARGIN) * SHARE_OF_SPACE, _memory_available() * SHARE_OF_MEMORY)
    wanted = MEMBERS * member + raids * on_raid + (RAID_BESIDES if on_raid else 0)
    if wanted <= room:
        return member, on_raid
    member = min(member, int(room / MEMBERS) // MIB * MIB)  # RAIDs go first
    if member < LEAST_MEMBER:
        raise FailedError(
            f"{where} has {size_in_words(free)} free, too little for scratch of "
            f"{MEMBERS} x {size_in_words(LEAST_MEMBER)} and {size_in_words(MARGIN)} to spare; make "
            "room, or give another directory (--scratch)"
        )
    return member, 0


@contextlib.contextmanager
def held(place: Place, where: Path, quick: bool, with_raid: bool = True) -> Iterator[None]:
    """Fills in the place for as long as the block lasts."""
    # Somebody without the right gets no RAID, and pays no room for it.
    asked = ["btrfs", "md"] if has_md() else ["btrfs"]
    raids = len(asked) if os.geteuid() == 0 and with_raid else 0
    member, on_raid = sizes(where, quick, raids)
    asked = asked if on_raid else []
    total = MEMBERS * member + len(asked) * on_raid
    free = shutil.disk_usage(where).free
    print(
        f"wherry: stripes: writes {size_in_words(total)} of scratch in {where} "
        f"({size_in_words(free)} free), which is gone at the end",
        file=sys.stderr,
        flush=True,
    )
    place.content = secrets.randbits(48) | 1
    arguments = ["hold", "--directory", str(where), "--members", str(MEMBERS)]
    arguments += ["--bytes", str(member), "--seed", str(place.content)]
    for kind in asked:
        arguments += [{"btrfs": "--raid-bytes", "md": "--md-bytes"}[kind], str(on_raid)]
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [runner.path(), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,  # Ctrl-C is for us; the holder ends when we do
        )
        try:
            if not on_raid:
                reason = "needs root" if os.geteuid() != 0 else f"no room for it in {where}"
                place.no_raid = {kind: f"{kind} RAID-0: {reason}" for kind in ("btrfs", "md")}
            elif "md" not in asked:
                place.no_raid["md"] = (
                    "md RAID-0: this kernel has no md, or its module is not loaded (modprobe raid0)"
                )
            _fill_in(place, process, errors)
            yield
        finally:
            place.__init__()
            process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)
            process.kill()
            process.wait()
            process.stdout.close()


def _fill_in(place: Place, process: subprocess.Popen, errors) -> None:
    for event in _events(process):
        kind = event.get("event")
        if kind == "files":
            place.files = event["files"]
        elif kind == "raid":
            if event.get("reason"):
                place.no_raid[event["kind"]] = f"{event['kind']} RAID-0: {event['reason']}"
            else:
                place.raids[event["kind"]] = (event["file"], event["beneath"])
        elif kind == "ready":
            return
    process.wait()
    errors.seek(0)
    said = runner.complaint(errors.read().decode(errors="replace")).removeprefix("hold: ")
    raise FailedError(
        f"scratch could not be made: {said or 'its keeper ' + runner.ended_by(process.returncode)}"
    )


def _events(process: subprocess.Popen) -> Iterator[dict]:
    rest, heard = b"", time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if not selector.select(0.25):
                if time.monotonic() - heard > SILENCE:
                    process.kill()
                    raise FailedError(f"scratch could not be made: no progress for {SILENCE:g} s")
                continue
            heard = time.monotonic()
            data = os.read(process.stdout.fileno(), 1 << 16)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            yield from (json.loads(line) for line in lines if line.strip())
