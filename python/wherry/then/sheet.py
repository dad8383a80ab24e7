"""A table with its sentences, which a terminal, a mail and a page of documentation show alike."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from wherry import tables

MISSING = "-"


@dataclass
class Sheet:
    title: str
    columns: list[tables.Column]
    rows: list[list[str]]
    said: list[str] = field(default_factory=list)  # what it means, in words
    notes: list[str] = field(default_factory=list)  # what to know before reading it
    keep: int = 1  # columns that each part repeats when it is too wide

    def block(self, width: int) -> tables.Block:
        body = [
            [tables.MISSING if text == MISSING else tables.Figure(text) for text in row]
            for row in self.rows
        ]
        # A column that wraps takes what the others leave; nothing has to be split for it.
        room = 10_000 if any(column.wraps for column in self.columns) else width
        lines = tables.layout(self.columns, body, room, keep=self.keep) if body else []
        return tables.Block(self.title, lines, self.said, self.notes)

    def markdown(self, level: int = 3) -> str:
        lines = [f"{'#' * level} {self.title}", ""]
        if self.rows:
            heads = [_cell(f"{c.head}, {c.unit}" if c.unit else c.head) for c in self.columns]
            lines.append(f"| {' | '.join(heads)} |")
            lines.append(f"|{'|'.join('---' if c.left else '--:' for c in self.columns)}|")
            lines += [f"| {' | '.join(map(_cell, row))} |" for row in self.rows]
            lines.append("")
        for note in self.notes:
            lines += [f"*{note}*", ""]
        if self.said:
            lines += [" ".join(self.said), ""]
        return "\n".join(lines)


def _cell(text: str) -> str:
    """On one line; a name that was stacked for a narrow column is whole again."""
    whole = re.sub(r"([_/-])\n|\n(?=/)", r"\1", text.strip())
    return re.sub(r"\s*\n\s*", " ", whole).replace("|", "\\|")


def figures(value: float | None, digits: int = 3) -> str:
    """A number with so many figures: 0.123, 1.23, 12.3, 123, 1234."""
    if value is None:
        return MISSING
    if value == 0:
        return "0"
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    return f"{value:.{max(digits - whole, 0)}f}"


def count(value: float | None) -> str:
    return MISSING if value is None else f"{value:.0f}"


def span(values: Sequence[float], digits: int = 2) -> str:
    """`1.05 to 2.3`, or one figure when they do not differ."""
    low, high = figures(min(values), digits), figures(max(values), digits)
    return low if low == high else f"{low} to {high}"
