"""Tables of figures, with units, readable in a mail: rich lays them out, this says what stands where and how it is
marked. A style is a word of `STYLES`."""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from wherry.errors import escaped
from wherry.units import ns_label, size_label

# rich drops blanks at the end of what it aligns to the right; where the blank counts, this
# character, which is nobody's, stands for it until the text is written.
BLANK = "\ue000"
LEAD = "*"
TIE = "="
UNSURE = "?"
_LEGEND = {
    LEAD: "* fastest, by more than the noise floor and the interval of its lead",
    TIE: "= tied with the fastest",
    UNSURE: "? undecided: apart by more than the noise floor, but perhaps by chance",
}
# At the end of a figure, or before what stands in brackets after it.
_MARKED = re.compile(rf"\d(?: B/s)?([{re.escape(LEAD + TIE + UNSURE)}])(?=[\s(]|$)")
# Names over columns of figures go over several lines: parts are joined up to the first, a part broken after the second.
HEAD_WIDTH = 8
LONGEST_PART = 11
# Left of a table.
INDENT = 1
STYLES = Theme(
    {
        "title": "bold",
        "dim": "dim",
        "lead": "bold green",
        "tie": "cyan",
        "unsure": "yellow",
        "bad": "bold red",
        # From the best (dark green) to the worst (red), as background of a heat map's cell.
        **{
            f"heat{i}": f"color(16) on color({c})"
            for i, c in enumerate((34, 40, 76, 112, 154, 226, 220, 214, 202, 196))
        },
    }
)


class Span(NamedTuple):
    text: str
    style: str = ""


# A line that is drawn by hand, as a heat map's.
Line = list[Span]


@dataclass
class Block:
    """A title, tables or lines, and sentences under them."""

    title: str = ""
    lines: list[Line | RenderableType] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Figure:
    """What stands in one cell of a table."""

    text: str
    mark: str = BLANK
    style: str = ""


@dataclass(frozen=True)
class Column:
    head: str
    unit: str = ""
    left: bool = False
    wraps: bool = False


MISSING = Figure("-", style="dim")


def figure(text: str, name: str, row: dict) -> Figure:
    """A figure with the mark that the row's verdict gives this routine."""
    if row.get("fastest") == name:
        return Figure(text, LEAD, "lead")
    if name in (row.get("tied") or ()):
        return Figure(text, TIE, "tie")
    if name in (row.get("unsure") or ()):
        return Figure(text, UNSURE, "unsure")
    return Figure(text)


def call(row: dict) -> str:
    """Its mix or its size."""
    return row["mix"].removeprefix("@") if "mix" in row else size_label(row["size"])


def time(cells: Mapping[str, dict], name: str, row: dict) -> Figure:
    """The median of a routine's times in ns, where it was measured; `cells` are those of the row."""
    return figure(ns_label(cells[name]["ns"]["median"]), name, row) if name in cells else MISSING


def _two_lines(head: str) -> str:
    """`int4x8_bcopy1k` over two lines: `int4x8_`, `bcopy1k`. What is stacked already stays so."""
    if "\n" in head:
        return head
    first, bar, rest = head.rpartition("_")
    return f"{first}{bar}\n{rest}" if bar else f"\n{head}"


def stacked(name: str) -> str:
    """`glibc_avx512` as `glibc_` over `avx512`: a name broken where its parts join, else where it is too long."""
    lines, line = [], ""
    for piece in re.findall(r"[^-_@.+]+[-_@.+]*|[-_@.+]+", name):
        if line and len(line) + len(piece) > HEAD_WIDTH:
            lines.append(line)
            line = ""
        line += piece
        while len(line) > LONGEST_PART:
            lines.append(line[:LONGEST_PART])
            line = line[LONGEST_PART:]
    return "\n".join([*lines, line] if line else lines)


def unstacked(head: str) -> str:
    """On one line again: the parts of a name as they were, words with a blank between them."""
    first, *others = head.split("\n")
    text = last = first
    for part in others:
        cut = last[-1:] in tuple("-_@.+/") or part[:1] == "/" or len(last) == LONGEST_PART
        text += part if cut or not last else f" {part}"
        last = part
    return text


def _table(columns: Sequence[Column], rows: Sequence[Sequence[Figure]], two_lines: bool) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="title")
    table.add_column("", min_width=INDENT)
    for column in columns:
        head = Text(_two_lines(column.head) if two_lines else column.head)
        if any(c.unit for c in columns):
            head.append(f"\n{column.unit}", "not bold dim")
        if not column.left:
            # The blank after a head stands over the marks of the column.
            head = Text("\n").join(
                Text.assemble(line, BLANK) for line in head.split("\n", allow_blank=True)
            )
        table.add_column(
            head,
            justify="left" if column.left else "right",
            vertical="top",
            no_wrap=not column.wraps,
        )
    for row in rows:
        table.add_row(
            "",
            *(
                Text(cell.text if column.left else cell.text + cell.mark, cell.style)
                for column, cell in zip(columns, row, strict=True)
            ),
        )
    return table


def layout(
    columns: Sequence[Column], rows: Sequence[Sequence[Figure]], width: int, keep: int = 1
) -> list[Line | RenderableType]:
    """The table. When it is too wide, its heads go over two lines; when that is not enough, it is printed in several
    parts that each repeat the first `keep` columns. A column without a head is of the one before it, and stays
    there."""
    ruler = Console(width=10_000, theme=STYLES)

    def part(chosen: Sequence[int], two_lines: bool) -> Table:
        two_lines = two_lines and any("_" in columns[i].head for i in chosen)
        return _table(
            [columns[i] for i in chosen], [[r[i] for i in chosen] for r in rows], two_lines
        )

    @functools.cache
    def wide(i: int, two_lines: bool) -> int:
        """How much of the width this column takes, with the blank that parts it from the one before."""
        alone = _table([columns[i]], [[row[i]] for row in rows], two_lines)
        return Measurement.get(ruler, ruler.options, alone).maximum - INDENT

    def fits(chosen: Sequence[int], two_lines: bool) -> bool:
        return INDENT + sum(wide(i, two_lines) for i in chosen) <= width

    everything = range(len(columns))
    if fits(everything, two_lines=False):
        return [part(everything, two_lines=False)]
    first = list(everything[:keep])

    together: list[list[int]] = []
    for i in everything[keep:]:
        if together and not columns[i].head:
            together[-1].append(i)
        else:
            together.append([i])

    def split(most: int) -> list[list[int]]:
        parts = [list(first)]
        for group in together:
            longer = [*parts[-1], *group]
            full = len(longer) - keep > most
            if len(parts[-1]) > keep and (full or not fits(longer, two_lines=True)):
                parts.append(list(first))
            parts[-1] += group
        return parts

    parts = split(len(columns))
    # As many columns in each, so that none stands alone at the end.
    even = split(-(-(len(columns) - keep) // len(parts)) + max(map(len, together), default=1) - 1)
    lines: list[Line | RenderableType] = []
    for chosen in even if len(even) == len(parts) else parts:
        table = part(chosen, two_lines=True)
        if not fits(chosen, two_lines=True) and not any(columns[i].wraps for i in chosen):
            # A terminal goes on in its next line; a figure that is cut is none.
            table.width = INDENT + sum(wide(i, True) for i in chosen)
        lines += [*([[]] if lines else []), table]
    return lines


# ---- reading a run for a table -------------------------------------------------------------------------------------


def rows_of(run: dict, experiment: str) -> list[dict]:
    """With `tied` as `parted` leaves it."""
    rows = [row for row in run["rows"] if row["experiment"] == experiment]
    if not any(row.get("tied") for row in rows):
        return rows
    from wherry.stats import LEAST_FLOOR  # with numpy, which few commands need

    own = next((e for e in run.get("experiments", ()) if e["name"] == experiment), {})
    floor = own.get("noise_floor") or run["noise"]["floor"] or LEAST_FLOOR
    cells = cells_of(run, experiment)
    return [parted(row, cells.get(row["row"], {}), floor) for row in rows]


def parted(row: dict, cells: Mapping[str, dict], floor: float) -> dict:
    """A run file has in `tied` all that chance may set apart. A tie are only those whose figures are within the noise
    floor of the best; the others go to `unsure`, as the best itself where nobody is near it: with few processes twice
    as long may be chance, and still is no tie."""
    there = {name: cells[name]["ns"]["median"] for name in row["tied"] if name in cells}
    near = [name for name, ns in there.items() if ns <= min(there.values()) * (1 + floor)]
    if len(near) < 2:
        near = []
    return row | {"tied": near, "unsure": [name for name in row["tied"] if name not in near]}


def cells_of(run: dict, experiment: str) -> dict[int, dict[str, dict]]:
    """By row number, then by routine; without the second measurements of the noise floor."""
    by_row: dict[int, dict[str, dict]] = {}
    for cell in run["cells"]:
        if cell["experiment"] == experiment and not cell["aa"]:
            by_row.setdefault(cell["row"], {})[cell["routine"]] = cell
    return by_row


def measured_twice(run: dict, experiment: str) -> str:
    """Who the noise floor is of."""
    found = {c["routine"] for c in run["cells"] if c["experiment"] == experiment and c["aa"]}
    return found.pop() if len(found) == 1 else "a routine"


def routines_in(cells: dict[int, dict[str, dict]]) -> list[str]:
    return list(dict.fromkeys(name for row in cells.values() for name in row))


def console(width: int, colour: bool = False, file=None) -> Console:
    return Console(
        file=file or io.StringIO(),
        width=width,
        theme=STYLES,
        color_system="256" if colour else None,
        force_terminal=colour,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )


def _shown(span: Span) -> Span:
    return Span(BLANK.join(map(escaped, span.text.split(BLANK))), span.style)


def render(lines: Sequence[Line | RenderableType], to: Console) -> str:
    """As text, with escape sequences when the console has colour, without blanks at the ends of lines."""
    with to.capture() as captured:
        for line in lines:
            if isinstance(line, list):
                to.print(
                    Text.assemble(*map(_shown, line)), no_wrap=True, overflow="ignore", crop=False
                )
            else:
                to.print(line, crop=False)
    text = captured.get().replace(BLANK, " ")
    return "".join(f"{line.rstrip()}\n" for line in text.split("\n")[:-1])


def legend(blocks: Sequence[Block]) -> str:
    """What the marks in these tables mean; empty where there are none."""
    found = {
        mark for block in blocks if block.lines for mark in _MARKED.findall(plain(block.lines))
    }
    return "; ".join(text for mark, text in _LEGEND.items() if mark in found)


def plain(lines: Sequence[Line | RenderableType], width: int = 10_000) -> str:
    return render(lines, console(width)).rstrip("\n")
