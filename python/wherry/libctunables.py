"""What glibc makes of GLIBC_TUNABLES: without a word it passes over names that it does not know and over values that it
cannot read. What there is, and within which bounds, its loader lists (from glibc 2.33 on)."""

from __future__ import annotations

import mmap
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from wherry.errors import unknown

VARIABLE = "GLIBC_TUNABLES"
_LOADER = "/lib64/ld-linux-x86-64.so.2"
_LINE = re.compile(
    r"(glibc\.[\w.]+):\s*(?:(-?(?:0x[0-9a-f]+|\d+)) \(min: (\S+), max: ([^)]+)\))?", re.ASCII
)
HWCAPS = "glibc.cpu.hwcaps"
# Kinds of programs (wherry.preloading) that run without a glibc, or with one that reads no GLIBC_TUNABLES.
_WITHOUT = {"musl", "other libc", "damaged", "refused", "no loader", "no program", "script"}
_PRIVILEGED = {"set-user-ID", "set-group-ID", "given capabilities"}
_STATIC = {"static", "static-pie"}
_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)", re.ASCII)
_WORD = 1 << 64


@dataclass(frozen=True)
class Tunable:
    name: str
    value: int | None  # None of all three: its value is a text
    least: int | None
    most: int | None


def loader() -> str:
    """That of the glibc which runs us."""
    from wherry import elf

    try:
        return elf.read(Path("/proc/self/exe")).interpreter or _LOADER
    except (OSError, elf.DamagedError):
        return _LOADER


def parsed(text: str) -> dict[str, Tunable]:
    """By name, what `ld.so --list-tunables` prints."""
    found = {}
    for line in text.splitlines():
        if match := _LINE.match(line.strip()):
            numbers = [None if word is None else int(word, 0) for word in match.groups()[1:]]
            found[match[1]] = Tunable(match[1], *numbers)
    return found


def listed(given: str | None = None) -> dict[str, Tunable]:
    """Of this glibc, with GLIBC_TUNABLES set so; empty where it does not tell."""
    return parsed(_told("--list-tunables", given))


def _told(question: str, given: str | None) -> str:
    env = {key: value for key, value in os.environ.items() if key != VARIABLE}
    if given is not None:
        env[VARIABLE] = given
    try:
        done = subprocess.run(
            [loader(), question], env=env, capture_output=True, timeout=10, check=False
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode(errors="replace") if done.returncode == 0 else ""


# ---- hwcaps: no list has the names that its value may have, but the loader tells what came of them ------------------


def features(given: str | None = None) -> dict[str, int]:
    """What this glibc goes by of the CPU, by the names of `ld.so --list-diagnostics`; empty where it does not tell
    (before 2.33). What CPUID says is left out: no setting changes that, and the CPU that ran it does."""
    rows = re.findall(
        r"^(x86\.cpu_features\.\S+?)=(0x[0-9a-f]+)$", _told("--list-diagnostics", given), re.M
    )
    return {name: int(value, 0) for name, value in rows if ".cpuid[" not in name}


def uses_erms(found: Mapping[str, int]) -> bool | None:
    """Whether this glibc takes the CPU to have ERMS, by its features; None where it does not tell."""
    word = found.get("x86.cpu_features.features[0x1].active[0x1]")
    return None if word is None else bool(word >> 9 & 1)


def caps(line: str) -> list[str]:
    """The words of the hwcaps that hold in that GLIBC_TUNABLES: of several entries the last one's."""
    found = ""
    for entry in line.split(":"):
        name, _, value = entry.partition("=")
        if name == HWCAPS:
            found = value
    return list(dict.fromkeys(filter(None, found.split(","))))


def without_effect(words: Iterable[str]) -> list[str]:
    """Those words of hwcaps after which this glibc goes by the same as without them."""
    usual = features()
    return [word for word in words if usual and features(f"{HWCAPS}={word}") == usual]


def why_not_followed(kind: str, program: str | None, reason: str | None) -> str | None:
    """Why a program of that kind would not go by GLIBC_TUNABLES, as wherry.preloading tells kind and reason; None when
    it may."""
    if kind in _WITHOUT:
        return reason
    if kind in _PRIVILEGED:
        return f"it is {kind}: glibc reads no GLIBC_TUNABLES in such programs"
    if kind in _STATIC and program is not None and not _has_tunables(program):
        return f"it is linked statically ({kind}), and not with a glibc that has tunables"
    return None


def _has_tunables(program: str) -> bool:
    """By a name that stands in the list of every glibc that has them."""
    try:
        with (
            Path(program).open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as own,
        ):
            return own.find(HWCAPS.encode()) >= 0
    except (OSError, ValueError):
        return True  # it cannot be read: then nobody knows


def _number(text: str) -> int | None:
    """As glibc reads it: C's prefixes, and what is negative counts from the top. It reads no further than the number
    goes, or not at all, as its version has it."""
    if not _NUMBER.fullmatch(text):
        return None
    digits = text.lstrip("+-")
    base = 16 if digits[:2] in ("0x", "0X") else 8 if digits.startswith("0") else 10
    value = min(int(digits, base), _WORD - 1)
    return -value % _WORD if text.startswith("-") else value


def _entry(entry: str, known: dict[str, Tunable], after: dict[str, Tunable]) -> str | None:
    name, equals, text = entry.partition("=")
    if not equals:
        return "it is no glibc.cpu.NAME=VALUE"
    if not known:
        return None
    if name not in known:
        return str(unknown("tunable of this glibc", name, known, "ld.so --list-tunables"))
    own = known[name]
    if name == HWCAPS:
        idle = without_effect(dict.fromkeys(filter(None, text.split(","))))
        if not idle:
            return None
        return (
            f"{' and '.join(idle)} {'changes' if len(idle) == 1 else 'change'} nothing in this glibc: "
            "it does not know such a name, or the CPU lacks that, or it is so already"
        )
    if own.value is None:
        return None
    value = _number(text)
    if value is None:
        read = after.get(name, own).value
        return f"'{text}' is no number" + (
            f", and {read:#x} is made of it" if read != own.value else ""
        )
    if not own.least <= value <= own.most:
        return f"it is outside {own.least:#x} to {own.most:#x}"
    if name in after and value != own.value == after[name].value:
        return f"glibc stays at {own.value:#x}"
    return None


def ignored(entries: str, line: str | None = None) -> list[tuple[str, str]]:
    """(entry, why) of those that this glibc does not follow; `line` is the whole GLIBC_TUNABLES that they are part of.
    Of the value of hwcaps, whose names nothing lists, each must change what glibc goes by."""
    words = [word for word in entries.split(":") if word]
    if not words:
        return []
    line = entries if line is None else line
    known, after = listed(), listed(line)
    # Of a name that is there twice the last one holds.
    times = Counter(word.partition("=")[0] for word in line.split(":"))
    after = {name: own for name, own in after.items() if times[name] == 1}
    return [(word, why) for word in words if (why := _entry(word, known, after))]
