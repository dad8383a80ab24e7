"""Tables as text: aligned, with units, readable in a mail. Styles are words that the printer may turn into colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

LEAD = "*"
TIE = "="
LEGEND = (
    "* fastest, by more than the noise floor and the interval of its lead; = tied with the fastest"
)


@dataclass(frozen=True)
class Span:
    text: str
    style: str = ""  # "", "title", "dim", "lead", "tie", "bad", "heat0" ... "heat9"


Line = list[Span]


@dataclass
class Block:
    """A title, lines, and sentences under them."""

    title: str = ""
    lines: list[Line] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Figure:
    """What stands in one cell of a table."""

    text: str
    mark: str = " "
    style: str = ""


@dataclass(frozen=True)
class Column:
    head: str
    unit: str = ""
    left: bool = False


MISSING = Figure("-", style="dim")


def figure(text: str, name: str, row: dict) -> Figure:
    """A figure with the mark that the row's verdict gives this routine."""
    if row.get("fastest") == name:
        return Figure(text, LEAD, "lead")
    if name in (row.get("tied") or ()):
        return Figure(text, TIE, "tie")
    return Figure(text)


def _two_lines(column: Column) -> list[str]:
    """`int4x8_bcopy1k` over two lines: `int4x8_`, `bcopy1k`."""
    first, bar, rest = column.head.rpartition("_")
    return [first + bar, rest] if bar else ["", column.head]


def layout(
    columns: Sequence[Column], rows: Sequence[Sequence[Figure]], width: int, keep: int = 1
) -> list[Line]:
    """The table. When it is too wide, its heads go over two lines; when that is not enough, it is printed in several
    parts that each repeat the first `keep` columns."""

    def widths(heads: Sequence[Sequence[str]]) -> list[int]:
        return [
            max(*map(len, (*heads[i], c.unit)), *(len(row[i].text) for row in rows), 0)
            for i, c in enumerate(columns)
        ]

    def needed(chosen: Sequence[int], of: Sequence[int]) -> int:
        return 2 + sum(of[i] + 2 for i in chosen)

    everything = range(len(columns))
    heads = [[column.head] for column in columns]
    own = widths(heads)
    if needed(everything, own) > width:
        heads = [_two_lines(column) for column in columns]
        own = widths(heads)
    parts: list[list[int]] = []
    current = list(range(min(keep, len(columns))))
    for i in range(keep, len(columns)):
        if len(current) > keep and needed([*current, i], own) > width:
            parts.append(current)
            current = list(range(keep))
        current.append(i)
    parts.append(current)
    lines: list[Line] = []
    for number, chosen in enumerate(parts):
        if number:
            lines.append([])
        lines += _part(
            [columns[i] for i in chosen],
            [heads[i] for i in chosen],
            [[r[i] for i in chosen] for r in rows],
            [own[i] for i in chosen],
        )
    return lines


def _head(columns: Sequence[Column], texts: Sequence[str], widths: Sequence[int]) -> str:
    parts = [
        # The blank after a head stands over the marks of the column.
        text.ljust(width) if column.left else text.rjust(width) + " "
        for column, text, width in zip(columns, texts, widths, strict=True)
    ]
    return "  " + " ".join(parts).rstrip()


def _part(
    columns: Sequence[Column],
    heads: Sequence[Sequence[str]],
    rows: Sequence[Sequence[Figure]],
    widths: Sequence[int],
) -> list[Line]:
    lines: list[Line] = []
    for texts in zip(*heads, strict=True):
        if any(texts):
            lines.append([Span(_head(columns, texts, widths), "title")])
    if any(column.unit for column in columns):
        lines.append([Span(_head(columns, [c.unit for c in columns], widths), "dim")])
    for row in rows:
        line: Line = [Span("  ")]
        for i, (column, cell, width) in enumerate(zip(columns, row, widths, strict=True)):
            if i:
                line.append(Span(" "))
            if column.left:
                line.append(Span(cell.text.ljust(width), cell.style))
            else:
                line.append(Span(cell.text.rjust(width) + cell.mark, cell.style))
        lines.append(line)
    return lines


# ---- reading a run for a table -------------------------------------------------------------------------------------


def rows_of(run: dict, experiment: str) -> list[dict]:
    return [row for row in run["rows"] if row["experiment"] == experiment]


def cells_of(run: dict, experiment: str) -> dict[int, dict[str, dict]]:
    """By row number, then by routine; without the second measurements of the noise floor."""
    by_row: dict[int, dict[str, dict]] = {}
    for cell in run["cells"]:
        if cell["experiment"] == experiment and not cell["aa"]:
            by_row.setdefault(cell["row"], {})[cell["routine"]] = cell
    return by_row


def routines_in(cells: dict[int, dict[str, dict]]) -> list[str]:
    return list(dict.fromkeys(name for row in cells.values() for name in row))


def plain(lines: Sequence[Line]) -> str:
    return "\n".join("".join(span.text for span in line).rstrip() for line in lines)
