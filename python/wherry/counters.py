"""What the processor counted, as a table: a line for each cell, counts for one call."""

from __future__ import annotations

from wherry import dimensions, rounds, tables

_HEADS = {
    "cycles": "cycles",
    "instructions": "instructions",
    "branch_misses": "branch misses",
    "cache_misses": "cache misses",
    "task_clock": "task clock, ns",
    "page_faults": "page faults",
    "migrations": "migrations",
}


def _figure(value: float | None) -> tables.Figure:
    if value is None:
        return tables.MISSING
    return tables.Figure(f"{value:,.0f}" if value >= 1000 else f"{value:.4g}")


def block(run: dict, name: str, width: int) -> tables.Block:
    experiment = next(e for e in run["experiments"] if e["name"] == name)
    why = rounds.counters_in_words(experiment)
    rows = tables.rows_of(run, name)
    cells = tables.cells_of(run, name)
    there = [c for own in cells.values() for c in own.values() if c.get("counters")]
    names = list(dict.fromkeys(event for cell in there for event in cell["counters"]))
    if not names:
        return tables.Block("", [], [f"{name}: {why}."])
    differ = dimensions.varying(rows)
    columns = [tables.Column("cell", "", left=True), tables.Column("routine", "", left=True)]
    columns += [tables.Column(_HEADS.get(event, event), "a call") for event in names]
    both = {"cycles", "instructions"} <= set(names)
    if both:
        columns.append(tables.Column("a cycle", "instructions"))
    body = []
    for row in rows:
        for routine, cell in cells[row["row"]].items():
            counts = cell.get("counters") or {}
            line = [tables.Figure(dimensions.label(row, differ)), tables.Figure(routine)]
            line += [_figure(counts.get(event)) for event in names]
            if both:
                cycles, work = counts.get("cycles"), counts.get("instructions")
                line.append(_figure(work / cycles if cycles and work is not None else None))
            body.append(line)
    kind = experiment["counters"]["set"]
    said = [f"{why}."] if why else []
    if any(row["threads"] and row["threads"] > 1 for row in rows):
        said.append("With several threads the counts are those of the first.")
    title = f"{name}: {kind} events of one call, in user mode (medians)"
    return tables.Block(title, tables.layout(columns, body, width, keep=2), said)
