"""Where a mix was recorded, and whether that is here: what was tried in a program holds for the CPU and the libc that
it was tried with."""

from __future__ import annotations

import platform
from collections.abc import Mapping

# Of what the runner reports, what has to be the same for a trial to hold; by the names that a mix gives them.
_CPU = {
    "cpu": "brand",
    "family": "family",
    "model_number": "model",
    "stepping": "stepping",
    "tier": "tier",
}
_WORDS = {
    "cpu": "CPU {}",
    "family": "CPU family {}",
    "model_number": "CPU model {}",
    "stepping": "CPU stepping {}",
    "tier": "vectors to {}",
    "libc": "{}",
}


def here(reported: Mapping | None) -> dict[str, str | int | None]:
    """`reported`: by runner.cpu(), or None where that is not known. What a mix keeps of the machine."""
    own = {name: (reported or {}).get(key) for name, key in _CPU.items()}
    libc = " ".join(platform.libc_ver()).strip()
    return own | {"kernel": platform.release(), "libc": libc or None}


def other(recorded: Mapping, own: Mapping) -> str:
    """What of the machine of a recording is not as here, in words; empty when it is the same as far as that decides
    what a copy takes."""
    untold = [name for name in _WORDS if recorded.get(name) is None or own.get(name) is None]
    differ = [name for name in _WORDS if name not in untold and recorded[name] != own[name]]
    if differ:
        there, now = (
            ", ".join(_WORDS[name].format(where[name]) for name in differ)
            for where in (recorded, own)
        )
        return f"{there} there, {now} here"
    return "the mix does not tell which machine it was" if untold else ""


def words(recorded: Mapping) -> list[tuple[str, str]]:
    """Of a mix's machine, for people; what it does not tell is left out."""
    numbers = [
        f"{word} {recorded[name]}"
        for word, name in (
            ("family", "family"),
            ("model", "model_number"),
            ("stepping", "stepping"),
            ("vectors to", "tier"),
        )
        if recorded.get(name) is not None
    ]
    cpu = recorded.get("cpu") or ("CPU not told" if numbers else "")
    pairs = [("cpu", cpu + (f" ({', '.join(numbers)})" if numbers else ""))]
    pairs += [(name, str(recorded.get(name) or "")) for name in ("kernel", "libc")]
    return [pair for pair in pairs if pair[1]]
