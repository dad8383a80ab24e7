"""What was made once and holds for a while: as long as the machine runs, or a package is the same; see the key."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

from wherry import runfile
from wherry.errors import WherryError
from wherry.preloading import own_directories


def key(version: int, natives: list[Path]) -> str:
    """Of this boot, of the native programs as they are, and of what glibc was told."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = ""
    stamps = []
    for native in natives:
        try:
            stamps.append(f"{native.stat().st_mtime_ns}:{native.stat().st_size}")
        except OSError:
            stamps.append("")
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    text = f"{version}:{boot}:{':'.join(stamps)}:{tunables}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def path(name: str) -> Path | None:
    """In the user's cache; of a user without a home, as in many containers, elsewhere, or nowhere."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not base.startswith("/"):
        # Not Path.home(), which fails where a user has none.
        base = os.path.expanduser("~/.cache")  # noqa: PTH111
    home = Path(base) / "wherry" if base.startswith("/") else next(own_directories(), None)
    return home / f"{name}.json" if home else None


def kept(
    place: Path | None,
    known: str,
    good: Callable[[object], bool],
    make: Callable[[], dict],
    fresh: bool,
) -> dict:
    """What lies at `place` under the key `known`, when it is `good`; else it is made and put there."""
    if place is None:
        return make()
    if not fresh:
        try:
            found = json.loads(place.read_bytes())
            if found["key"] == known and good(found["costs"]):
                return found["costs"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            pass
    made = make()
    try:
        runfile.write_bytes(place, json.dumps({"key": known, "costs": made}).encode())
    except (OSError, WherryError):
        pass  # then it is made again
    return made
