"""Text into HTML. Everything goes through `escape`: run files are mailed about, and anybody may have written one."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from wherry import runfile
from wherry.dimensions import clean
from wherry.tables import BLANK, LEAD, TIE, UNSURE, Block, unstacked

# A table of more rows than this is for a machine to read; the pictures' own figures are a click away.
LONGEST_TABLE = 400
_MARKS = {
    LEAD: ("lead", "fastest"),
    TIE: ("tie", "tied with the fastest"),
    UNSURE: ("unsure", "undecided"),
}


def escape(value: object, longest: int = 400) -> str:
    return html.escape(clean(value, longest))


def script_json(value: object) -> str:
    """JSON that ends no script element, whatever it holds."""
    text = runfile.plain_json(json.dumps(value, separators=(",", ":"), allow_nan=False))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def paragraph(text: str, kind: str = "") -> str:
    return f"<p{f' class={kind}' if kind else ''}>{escape(text, 4000)}</p>" if text else ""


def pairs(found: Iterable[tuple[str, str]]) -> str:
    rows = (f"<div><dt>{escape(a)}</dt><dd>{escape(b)}</dd></div>" for a, b in found)
    return f"<dl>{''.join(rows)}</dl>"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    head = "".join(f'<th scope="col">{escape(h)}</th>' for h in heads)
    body = "".join(
        "<tr>"
        + "".join(
            f'<th scope="row">{escape(c)}</th>' if i == 0 else f"<td>{escape(c, 2000)}</td>"
            for i, c in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return _scrolling(
        f'<table><caption class="unseen">{escape(caption)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>",
        caption,
    )


def _scrolling(inner: str, label: str) -> str:
    """A region of its own that the keyboard reaches, so that a wide table can be scrolled on a phone."""
    return f'<div class="scrolls" tabindex="0" role="region" aria-label="{escape(label)}">{inner}</div>'


def block(own: Block) -> str:
    """A block of an experiment, as it would be printed: its tables as tables, what is drawn by hand as it is."""
    if any(_is_map(line) for line in own.lines):
        return ""  # drawn above, and nothing to read out
    parts = [f"<h4>{escape(own.title)}</h4>"] if own.title else []
    by_hand: list[str] = []

    def flush() -> None:
        text = "\n".join(by_hand).strip("\n")
        if text:
            parts.append(_scrolling(f"<pre>{html.escape(text)}</pre>", own.title))
        by_hand.clear()

    for line in own.lines:
        if isinstance(line, Table):
            flush()
            parts.append(_of_rich(line, own.title))
        elif isinstance(line, list):
            by_hand.append(
                "".join(clean(span.text, 200).replace(BLANK, " ") for span in line).rstrip()
            )
    flush()
    parts += [paragraph(note, "note") for note in own.notes]
    parts.append(paragraph(" ".join(own.sentences)))
    return f'<div class="block">{"".join(parts)}</div>'


def _is_map(line: object) -> bool:
    return isinstance(line, list) and any(span.style.startswith("heat") for span in line)


def _plain(value: object) -> str:
    return (value.plain if isinstance(value, Text) else str(value)).replace(BLANK, "")


def _of_rich(own: Table, caption: str) -> str:
    """Without its first column, which is the indent. The marks of the fastest and of ties become words too."""
    columns = own.columns[1:]
    heads = []
    for column in columns:
        name, _, unit = _plain(column.header).rpartition("\n")
        if not name:
            name, unit = unit, ""
        name = unstacked(name)
        unit = f" <small>{escape(unit)}</small>" if unit.strip() else ""
        side = "" if column.justify == "right" else ' class="left"'
        heads.append(f'<th scope="col"{side}>{escape(name)}{unit}</th>')
    lines = zip(*(list(column.cells) for column in columns), strict=True)
    body = [
        _row([_plain(cell) for cell in cells], columns) for cells in list(lines)[:LONGEST_TABLE]
    ]
    return _scrolling(
        f'<table><caption class="unseen">{escape(caption)}</caption>'
        f"<thead><tr>{''.join(heads)}</tr></thead><tbody>{''.join(body)}</tbody></table>",
        caption,
    )


def _row(cells: list[str], columns: Sequence) -> str:
    out = []
    for i, (text, column) in enumerate(zip(cells, columns, strict=True)):
        kind, words = _MARKS.get(text[-1:], ("", "")) if column.justify == "right" else ("", "")
        if kind:
            said = f'<span class="unseen"> {words}</span>'
            shown = f'{escape(text[:-1])}<span aria-hidden="true">{escape(text[-1])}</span>{said}'
        else:
            shown = escape(text)
        side = "" if column.justify == "right" else "left"
        name = " ".join(filter(None, (side, kind)))
        classes = f' class="{name}"' if name else ""
        tag, scope = ("th", ' scope="row"') if i == 0 else ("td", "")
        out.append(f"<{tag}{scope}{classes}>{shown}</{tag}>")
    return f"<tr>{''.join(out)}</tr>"
