"""glibc's own settings: which there are here, and which values are worth a try."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from wherry import libctunables
from wherry.errors import FailedError
from wherry.libctunables import Tunable
from wherry.units import KIB, MIB

PREFIX = "glibc.cpu."
MOVSB, STOSB = "x86_rep_movsb_threshold", "x86_rep_stosb_threshold"
NON_TEMPORAL = "x86_non_temporal_threshold"
MEMSET_NON_TEMPORAL = "x86_memset_non_temporal_threshold"
HWCAPS = "hwcaps"
_LOADERS = ("/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")
# Features without which another variant of the routines is chosen; each by itself, and the wider vectors together.
MASKS = ("-AVX512VL", "-AVX512VL,-AVX2", "-ERMS", "Prefer_No_VZEROUPPER")


def listed(text: str) -> dict[str, Tunable]:
    """By name without `glibc.cpu.`; what `ld.so --list-tunables` prints."""
    return {
        name.removeprefix(PREFIX): own
        for name, own in libctunables.parsed(text).items()
        if name.startswith(PREFIX)
    }


def here() -> dict[str, Tunable]:
    loader = next((path for path in _LOADERS if Path(path).exists()), None)
    if loader is None:
        raise FailedError(
            "no loader of glibc for x86-64 was found; --glibc tunes glibc, and this system seems to have another libc"
        )
    try:
        done = subprocess.run(
            [loader, "--list-tunables"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
            env={},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FailedError(f"{loader} --list-tunables failed: {error}") from None
    found = listed(done.stdout)
    if done.returncode or not found:
        raise FailedError(
            f"{loader} does not list its tunables (glibc before 2.33 does not); nothing can be searched"
        )
    return found


def _within(own: Tunable, values) -> list[int]:
    return [
        value
        for value in values
        if value != own.value
        and (own.least is None or value >= own.least)
        and (own.most is None or value <= own.most)
    ]


def candidates(tunables: Mapping[str, Tunable], last_level: int) -> dict[str, list[str]]:
    """By name, the settings to try: `glibc.cpu.NAME=VALUE`; names that this glibc lacks are left out."""
    strings = [size * KIB for size in (1, 4, 8, 16, 32, 128, 512)] + [1 << 40]
    streams = [int(last_level * part) // MIB * MIB for part in (0.25, 0.5, 0.75, 1, 2, 4)]
    wanted = {
        MOVSB: strings,
        STOSB: strings,
        NON_TEMPORAL: streams,
        MEMSET_NON_TEMPORAL: streams,
    }
    found = {
        name: [f"{PREFIX}{name}={value}" for value in _within(tunables[name], values)]
        for name, values in wanted.items()
        if name in tunables
    }
    if HWCAPS in tunables:
        found[HWCAPS] = [f"{PREFIX}{HWCAPS}={mask}" for mask in MASKS]
    return {name: settings for name, settings in found.items() if settings}
