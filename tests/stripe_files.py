"""What the tests of `stripes` share: the runner's answers, members, scratch that is held, a directory on a disk."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from pathlib import Path

from wherry.striping.place import encoded

MIB = 1 << 20
NAMES = "read,direct,touch,libc,x87_fild64,wherry,nofault"


class Holder:
    """`wherry-run hold`, until it is let go."""

    def __init__(self, wherry_run: Path, directory: Path, *arguments: str):
        self.process = subprocess.Popen(
            [wherry_run, "hold", "--directory", directory, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.events = {}
        for line in self.process.stdout:
            event = json.loads(line)
            self.events[event["event"]] = event
            if event["event"] == "ready":
                break

    def __enter__(self) -> Holder:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=300)
        self.process.stdout.close()

    @property
    def files(self) -> list[str]:
        return self.events["files"]["files"]


def loops(directory: Path) -> list[str]:
    """Loop devices over files below the directory."""
    found = []
    for own in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            if str(directory) in own.read_text():
                found.append(own.parts[3])
    return found


def processor_seconds(pid: int) -> float:
    """What a process has used of the processors."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def members(directory: Path, count: int = 3, size: int = 2 * MIB) -> list[Path]:
    paths = [directory / f"member {i},%" for i in range(count)]
    for i, path in enumerate(paths):
        path.write_bytes(bytes([i + 1]) * size)
    return paths


def listed(paths: list[Path]) -> str:
    return encoded([str(path) for path in paths])
