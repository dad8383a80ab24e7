"""Tables of cells, one a line, for a spreadsheet, a program or a mail: CSV, TSV, Markdown."""

from __future__ import annotations

import csv
import io
import re

from wherry.formats import naming
from wherry.formats.samples import rate

# Of a cell's figures: column with its unit, where it stands, how it is written.
_NS = ("median", "min", "q05", "q25", "q75", "q95", "max")
# A spreadsheet takes what begins so for a formula.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
UNITS = {
    "size": "bytes",
    "src_off": "bytes",
    "dst_off": "bytes",
    "delta": "bytes",
    "overlap": "bytes",
    "buffer": "bytes",
}


def table(run: dict) -> tuple[list[str], list[list[object]]]:
    """(heads with units, lines); a dimension that no cell has takes no column."""
    cells = [cell for cell in run["cells"] if not cell["aa"]]
    unit = (run.get("source") or {}).get("unit", "ns")
    own = [naming.dimensions(cell) for cell in cells]
    keys = [k for k in naming.known_dimensions() if k != "op" and any(k in d for d in own)]
    heads = ["experiment", "op", "routine"]
    heads += [f"{key} ({UNITS[key]})" if key in UNITS else key for key in keys]
    heads += [f"{name} ({unit})" for name in _NS]
    heads += ["rate (GB/s)"] if unit == "ns" else []
    heads += ["bytes of a call (mean)", "time over libc's", "low (95 %)", "high (95 %)"]
    heads += ["rounds", "processes", "rounds voided", "verified"]
    lines = []
    for cell, dims in zip(cells, own, strict=True):
        ns, ratio = cell["ns"], cell["ratio"] or {}
        line: list[object] = [cell["experiment"], cell["op"], cell["routine"]]
        line += [dims.get(key) for key in keys]
        line += [ns.get(name) for name in _NS]
        if unit == "ns":
            fast = rate(cell["bytes"], ns["median"])
            line.append(float(f"{fast / 1e9:.6g}") if fast else None)
        line += [cell["bytes"], *(ratio.get(key) for key in ("median", "low", "high"))]
        line += [cell["rounds"], cell["processes"], cell["voided"], cell["verified"]]
        lines.append(line)
    return heads, lines


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def _safe(value: object) -> str:
    text = _text(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULAS) else text


def separated(run: dict, sign: str) -> str:
    heads, lines = table(run)
    out = io.StringIO()
    writer = csv.writer(out, delimiter=sign, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows([_safe(value) for value in line] for line in lines)
    return out.getvalue()


def markdown(run: dict) -> str:
    heads, lines = table(run)
    # A row is one line, whatever a file has for a name.
    texts = [
        [re.sub(r"\s", " ", _text(value)).replace("|", "\\|") for value in line] for line in lines
    ]
    # What stands on every line is said once, above; the last heads are for programs.
    kept = [i for i, head in enumerate(heads) if _tells(head, [line[i] for line in texts])]
    shared = [
        f"{heads[i]}: {texts[0][i]}"
        for i in range(len(heads))
        if i not in kept and texts and texts[0][i]
    ]
    numbers = {i for i in kept if any(isinstance(line[i], int | float) for line in lines)}
    widths = [max(len(heads[i]), 3, *(len(line[i]) for line in texts)) for i in range(len(heads))]

    def row(words: list[str]) -> str:
        cells = [
            words[i].rjust(widths[i]) if i in numbers else words[i].ljust(widths[i]) for i in kept
        ]
        return f"| {' | '.join(cells)} |"

    rule = [
        "-" * (widths[i] - 1) + ":" if i in numbers else "-" * widths[i] for i in range(len(heads))
    ]
    out = [f"All of them: {'; '.join(shared)}.", ""] if shared else []
    out += [row(heads), row(rule), *(row(line) for line in texts)]
    return "\n".join(out) + "\n"


_ALWAYS = ("routine", "median (ns)", "median (ticks)")


def _tells(head: str, column: list[str]) -> bool:
    return head in _ALWAYS or len(set(column)) > 1
