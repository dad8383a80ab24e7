"""What was made once and holds for a while: as long as the machine runs, or a package is the same; see the key."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

from wherry import runfile
from wherry.errors import WherryError
from wherry.preloading import home_cache, own_directories


def key(version: int, natives: list[Path]) -> str:
    """Of this boot, of the native programs as they are, and of what glibc was told and comes before it."""
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
    if preloaded := os.environ.get("LD_PRELOAD"):
        text += f":{preloaded}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def path(name: str) -> Path | None:
    """In the user's cache; of a user without a home, as in many containers, elsewhere, or nowhere."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not base.startswith("/"):
        base = home_cache()
    home = Path(base) / "wherry" if base.startswith("/") else next(own_directories(), None)
    return home / f"{name}.json" if home else None


# Builds that take turns on one machine each find their own; who has more measures again.
MOST_KEPT = 8


def _entries(place: Path) -> dict[str, object]:
    """By key, the one made last at the end; empty when the file cannot be read or is none of ours."""
    try:
        found = json.loads(place.read_bytes())["kept"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def kept(
    place: Path | None,
    known: str,
    good: Callable[[object], bool],
    make: Callable[[], dict],
    fresh: bool,
    begins: Callable[[], None] = lambda: None,
) -> dict:
    """What lies at `place` under the key `known`, when it is `good`; else it is made, which `begins` may tell of, and
    put there."""
    if place is None:
        begins()
        return make()
    if not fresh:
        try:
            found = _entries(place)[known]
            if good(found):
                return found
        except (ValueError, KeyError, TypeError, AttributeError):
            pass
    begins()
    made = make()
    # Read again: another may have put its own there meanwhile.
    entries = {key: own for key, own in _entries(place).items() if key != known}
    entries = dict([*[*entries.items()][1 - MOST_KEPT :], (known, made)])
    try:
        runfile.write_bytes(place, json.dumps({"kept": entries}).encode(), quiet=True)
    except (OSError, WherryError):
        pass  # then it is made again
    return made
