"""What glibc makes of GLIBC_TUNABLES: without a word it passes over names that it does not know and over values that it
cannot read. What there is, and within which bounds, its loader lists (from glibc 2.33 on)."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from wherry.errors import unknown

VARIABLE = "GLIBC_TUNABLES"
_LOADER = "/lib64/ld-linux-x86-64.so.2"
_LINE = re.compile(
    r"(glibc\.[\w.]+):\s*(?:(-?(?:0x[0-9a-f]+|\d+)) \(min: (\S+), max: ([^)]+)\))?", re.ASCII
)
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
    env = {key: value for key, value in os.environ.items() if key != VARIABLE}
    if given is not None:
        env[VARIABLE] = given
    try:
        done = subprocess.run(
            [loader(), "--list-tunables"], env=env, capture_output=True, timeout=10, check=False
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    return parsed(done.stdout.decode(errors="replace")) if done.returncode == 0 else {}


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
    Names within the value of hwcaps are not looked at: nothing lists them."""
    words = [word for word in entries.split(":") if word]
    if not words:
        return []
    line = entries if line is None else line
    known, after = listed(), listed(line)
    # Of a name that is there twice the last one holds.
    times = Counter(word.partition("=")[0] for word in line.split(":"))
    after = {name: own for name, own in after.items() if times[name] == 1}
    return [(word, why) for word in words if (why := _entry(word, known, after))]
