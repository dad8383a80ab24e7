"""When, and under which name: what the files that a command saves are called."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import os
import re
from pathlib import Path

from wherry import runfile

# More rows than this and the default run file is packed.
PACK_FROM = 5000


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def path(ending: str) -> Path:
    """runs/TIME-HOST and the ending, with a number between where another run of that second has the name."""
    stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    host = re.sub(r"[^\w.-]", "-", os.uname().nodename) or "host"
    numbers = ("", *(f"-{number}" for number in range(2, 1000)))
    names = [runfile.RUNS / f"{stamp}-{host}{number}{ending}" for number in numbers]
    return next((name for name in names if not os.path.lexists(name)), names[0])


def take(path: Path) -> Path:
    """Makes that file, which nobody named, empty; where the name was taken since it was chosen, the next free one.
    OSError where none can be made."""
    return runfile.in_directory(path.parent, lambda: _first_free(path))


def _first_free(path: Path) -> Path:
    stem, dot_json, packed = path.name.rpartition(".json")
    names = (path.with_name(f"{stem}-{number}{dot_json}{packed}") for number in itertools.count(2))
    for name in itertools.chain((path,), names):
        with contextlib.suppress(FileExistsError):
            name.touch(exist_ok=False)
            if runfile.journal_beside(name) is None:
                return name
            name.unlink()  # the journal is of a run whose file somebody has removed
    raise AssertionError("names do not end")


def run_path(rows: int) -> Path:
    return path(".json.gz" if rows > PACK_FROM else ".json")
