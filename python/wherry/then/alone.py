"""The seeds' own figures, with where they come from: for experiments that have nothing beside them, and for
`wherry list history`."""

from __future__ import annotations

from wherry import history, tables
from wherry.then.sheet import MISSING, Sheet
from wherry.units import size_label

_KINDS = {"measured": "measured", "derived": "worked out", "reported": "told", "method": "method"}


def value(own: history.Value, unit: str = "") -> str:
    """As the mail has it, sizes of tables short."""
    if own is None:
        return MISSING
    if isinstance(own, bool):
        return "yes" if own else "no"
    if isinstance(own, int) and unit == "bytes" and own >= 1024:
        return size_label(own)
    return str(own)


def _decimals(table: history.Table, at: int) -> int:
    """The digits behind the point that the mail gives; JSON drops zeros at the end."""
    texts = [str(row[at]) for row in table.rows if isinstance(row[at], float)]
    return max((len(text.partition(".")[2]) for text in texts), default=0)


def of_table(table: history.Table) -> Sheet:
    shown = [i for i, c in enumerate(table.columns) if c.role != "routine"]
    columns = [
        tables.Column(c.name, c.unit, left=c.role in ("label", "state"))
        for c in (table.columns[i] for i in shown)
    ]
    decimals = {i: _decimals(table, i) for i in shown}
    rows = [
        [
            f"{row[i]:.{decimals[i]}f}"
            if table.columns[i].role == "figure" and decimals[i] and row[i] is not None
            else value(row[i], table.columns[i].unit)
            for i in shown
        ]
        for row in table.rows
    ]
    return Sheet(
        f"{table.experiment}, {table.mail.year}: {table.title}",
        columns,
        rows,
        notes=[
            f"{table.mail.in_words()}.",
            f"Machine: {table.machine.in_words()}.",
            table.method,
            *table.notes,
        ],
    )


def of_statements(experiment: str, seed: history.Seed) -> Sheet | None:
    own = [s for s in seed.statements if s.experiment == experiment]
    if not own:
        return None
    columns = [
        tables.Column("who", left=True),
        tables.Column("how", left=True),
        tables.Column("what", left=True, wraps=True),
        tables.Column("figure"),
        tables.Column("unit", left=True),
    ]
    rows = [
        [
            f"{s.mail.author.split()[-1]} {s.mail.year}",
            _KINDS[s.kind],
            s.what,
            f"{s.value:,g}" if abs(s.value) < 1e5 else f"{s.value:,.0f}",
            s.unit,
        ]
        for s in own
    ]
    return Sheet(f"{experiment}: figures that stand in sentences", columns, rows)


def alone(experiment: str, seed: history.Seed | None = None) -> list[Sheet]:
    """All of the experiment's, or what one seed has for it."""
    found: list[Sheet | None] = []
    for own in history.seeds():
        if seed in (None, own):
            found += [of_table(table) for table in own.tables if table.experiment == experiment]
            found.append(of_statements(experiment, own))
    return [sheet for sheet in found if sheet]
