"""Figures of another tool, or of no experiment of ours, as tables: a line for each row, a column for each routine."""

from __future__ import annotations

from wherry import tables
from wherry.formats.places import place
from wherry.machine import heading as machine_heading
from wherry.units import ns_label

# More routines than this and each cell gets a line of its own.
MOST_COLUMNS = 24


def heading(run: dict) -> list[tuple[str, str]]:
    """What is told of the machine; lines that would say nothing are left out."""
    source = run["source"]
    lines = [("Source", f"{source['tool']}, {source['file']}; figures in {_unit(run)}")]
    lines += [pair for pair in machine_heading(run["machine"]) if "not told" not in pair[1]]
    return lines + [("Note", note) for note in source.get("notes", ())]


def _ticks(run: dict) -> bool:
    return (run.get("source") or {}).get("unit") == "ticks"


def _unit(run: dict, what: str = "call") -> str:
    unit = "ticks of the CPU's counter" if _ticks(run) else "ns"
    return f"{unit} per {what}"


def blocks(run: dict, experiment: str, width: int) -> list[tables.Block]:
    cells = tables.cells_of(run, experiment)
    found = []
    rows = tables.rows_of(run, experiment)
    for op in dict.fromkeys(row["op"] for row in rows):
        own = [row for row in rows if row["op"] == op]
        found.append(_block(run, experiment, op, own, cells, width))
    return found


def _block(run, experiment, op, rows, cells, width) -> tables.Block:
    names = tables.routines_in({row["row"]: cells[row["row"]] for row in rows})
    unit = "ticks" if _ticks(run) else "ns"
    per = _unit(run, "run" if experiment == "ab" else "call")
    title = f"{experiment}{'' if op == 'other' else ': ' + op}, {per}, medians"
    head = tables.Column("cell", "", left=True)
    if len(names) <= MOST_COLUMNS:
        columns = [head, *(tables.Column(tables.stacked(name), unit) for name in names)]
        body = [
            [
                tables.Figure(place(row), style="title"),
                *(
                    tables.Figure(ns_label(cells[row["row"]][name]["ns"]["median"]))
                    if name in cells[row["row"]]
                    else tables.MISSING
                    for name in names
                ),
            ]
            for row in rows
        ]
    else:
        columns = [head, tables.Column("benchmark", "", left=True), tables.Column("median", unit)]
        body = [
            [
                tables.Figure(place(row), style="title"),
                tables.Figure(name),
                tables.Figure(ns_label(cell["ns"]["median"])),
            ]
            for row in rows
            for name, cell in cells[row["row"]].items()
        ]
    return tables.Block(title, tables.layout(columns, body, width))
