"""What a run is given beside its options, and may be another when it goes on: the contents of files, by what each is to
the run, and settings that change what libc and Wherry do."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from wherry import found_peers, runner
from wherry.striping import given

# Whoever sets one of these has another libc, or another Wherry, under the same name.
# What the column libc shows then.
_SETTINGS = {
    "GLIBC_TUNABLES": "a libc that is tuned",
    "LD_PRELOAD": "what the preloaded library has in the place of libc's",
}


def gather(
    peers: Iterable[str], members: Sequence[str], experiments: Sequence[str]
) -> dict[str, str]:
    """`peers`: as --peer takes them."""
    own = {"wherry-run": _content(runner.path())}
    for spec in peers:
        name, _, rest = spec.partition("=")
        own[f"peer {name}"] = _content(_file_of(rest))
    if "network" in experiments and (stack := found_peers.stack()):
        own["lwIP"] = _content(stack.path)
    if "stripes" in experiments:
        # What they hold is not measured, and may be mended after one has failed: their lengths must be the same.
        lengths = given.lengths(members)
        own |= {f"member {path}": f"{length} bytes" for path, length in lengths.items()}
    if plan := os.environ.get("WHERRY_PLAN"):
        own["the plan of WHERRY_PLAN"] = _content(plan)
    return own | {name: os.environ[name] for name in _SETTINGS if os.environ.get(name)}


def uncontrolled() -> list[dict[str, str]]:
    """What of the environment makes libc another than its name says, as wherry.machine tells such."""
    return [
        {
            "what": f"{name} is set",
            "why": f"the column libc shows {shows}",
            "do": f"unset {name}, unless that is what you measure",
        }
        for name, shows in _SETTINGS.items()
        if os.environ.get(name)
    ]


def _file_of(rest: str) -> str:
    """Of PATH[:PREFIX], where a path may have a colon of its own: as the runner reads it."""
    path, colon, prefix = rest.rpartition(":")
    return path if colon and "/" not in prefix and not os.path.exists(rest) else rest  # noqa: PTH110


def _content(path: str) -> str:
    try:
        # What else may be named there ends never, or waits for somebody.
        if not Path(path).is_file() or not Path(path).stat().st_size:
            return "cannot be read"
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except (OSError, ValueError):
        return "cannot be read"
