"""Entries of a row that are more than a name: `OP:NAME` is what NAME does for another op in that memory, `COPY+SUM`
is COPY's copy and then SUM's sum (docs/runner-protocol.md)."""

from __future__ import annotations

from collections.abc import Container, Iterable

OPS = frozenset(
    [
        "copy",
        "move",
        "set",
        "zero",
        "csum",
        "copy_csum",
        "crc32c",
        "copy_crc32c",
        "iszero",
        "pagezero",
    ]
)


def targets_of(entry: str, known: Container[str]) -> list[str]:
    """What must be right for the entry to be."""
    op, colon, name = entry.partition(":")
    if colon and op in OPS:
        return [name]
    if entry in known or "+" not in entry:
        return [entry]
    first, _, second = entry.rpartition("+")
    return [first, second]


def targets(entries: Iterable[str], known: Container[str]) -> list[str]:
    """Of all of them, each once."""
    return list(dict.fromkeys(name for entry in entries for name in targets_of(entry, known)))
