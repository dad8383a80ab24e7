"""Sizes, times and rates: read from users, written for people."""

from __future__ import annotations

import os
import re

from wherry.errors import WherryError

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
_SUFFIX = {"": 1, "K": KIB, "M": MIB, "G": GIB}
_SIZE = re.compile(r"(-?)(\d+)([KMG]?)(i?B?)", re.ASCII | re.IGNORECASE)


def memory_bytes() -> int:
    """What this machine has, in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def parse_size(text: str, limit: int | None = None, buffers: int = 1, least: int = 1) -> int:
    """`1448`, `4K`, `8M`, `1G` (powers of 1024) as bytes, from least on; so many buffers of it have to fit into `limit`
    (default: memory)."""
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise WherryError(f"size '{text}' is not a size; write bytes, or K, M, G: 1448, 4K, 8M")
    sign, digits, suffix, _ = match.groups()
    value = int(digits[:30]) * _SUFFIX[suffix.upper()]
    if sign or value < least:
        what = "a positive number" if least else "a number"
        raise WherryError(f"size '{text}' is not {what} of bytes; write {least} or more")
    limit = memory_bytes() if limit is None else limit
    if len(digits) > 30 or value * buffers > limit:
        what = "is" if buffers == 1 or value > limit else f"taken {buffers} times is"
        raise WherryError(
            f"size '{text}' {what} larger than this machine's memory ({size_in_words(limit)}); "
            "write a smaller one"
        )
    return value


def size_label(size: int) -> str:
    """Short, exact, for a table: 4096 is 4K, 1448 stays 1448."""
    for unit, letter in ((GIB, "G"), (MIB, "M"), (KIB, "K")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{letter}"
    return str(size)


def size_in_words(size: float) -> str:
    """Rounded, with its unit: 33554432 is 32 MiB."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            return (
                f"{size / unit:.3g} {name}" if size < 1000 * unit else f"{size / unit:.0f} {name}"
            )
    return f"{size:.0f} B"


def ns_label(ns: float) -> str:
    """Nanoseconds with three or four figures."""
    if ns < 9.9995:
        return f"{ns:.2f}"
    if ns < 999.95:
        return f"{ns:.1f}"
    return f"{ns:.0f}"


def rate_label(rate: float) -> str:
    """GB/s with three figures, and as many as there are before the point."""
    decimals = 3 if rate < 0.9995 else 2 if rate < 9.995 else 1 if rate < 99.95 else 0
    return f"{rate:.{decimals}f}"


def seconds_in_words(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 9.5 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"


def about(seconds: float) -> str:
    """For an estimate: `40 s`, `3 min`."""
    if seconds < 100:
        return f"{max(round(seconds, -1), 10):.0f} s"
    return f"{seconds / 60:.0f} min"


def plural(number: int, word: str, several: str = "") -> str:
    return f"{number:,} {word if number == 1 else several or word + 's'}"


def percent(fraction: float) -> str:
    """0.0123 is 1.2 %; above ten there is no decimal."""
    value = fraction * 100
    return f"{value:.1f} %" if abs(value) < 9.95 else f"{value:.0f} %"


def signed(fraction: float) -> str:
    """Per cent with a sign, without the unit: -0.019 is −1.9."""
    text = f"{fraction * 100:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")
