"""Asami's stripe of nine disks beside this machine's: what the copy was worth then, and is now."""

from __future__ import annotations

from wherry import history, tables
from wherry.clock import Clock
from wherry.striping.found import Found
from wherry.striping.report import SOURCES, is_tie, ratio
from wherry.striping.words import MEMBERS, READ, STOCK, TOUCH, X87, megabytes
from wherry.then.sheet import MISSING, Sheet, count

_NOW = (READ, TOUCH, STOCK, X87, "wherry", "nofault")
_HEADS = {READ: "now\nread()", TOUCH: "now\nno copy"}


def sheets(run: dict, clock: Clock) -> list[Sheet]:
    found = Found(run)
    now = {title: found.usual(**words) for title, words in SOURCES}
    now = {title: cells for title, cells in now.items() if cells}
    if not now:
        return []
    table = next(t for t in history.tables("stripes") if t.id == "stripe-read")
    then = {record["copy"]: record["rate"] for record in table.records()}
    return [_absolute(table, then, now), _comparable(table, then, now, found.floor)]


def _absolute(table: history.Table, then: dict, now: dict) -> Sheet:
    columns = [tables.Column("bytes from", left=True)]
    columns += [tables.Column(_HEADS.get(name, f"now\n{name}"), "MB/s") for name in _NOW]
    rows = [
        [title, *(count(megabytes(cells.get(name))) for name in _NOW)]
        for title, cells in now.items()
    ]
    return Sheet(
        f"stripes, then and now: then {then['stock']} MB/s with the stock copy and {then['x87']} with the x87 copy",
        columns,
        rows,
        notes=[
            f"{table.mail.in_words()}.",
            f"Machine: {table.machine.in_words()}.",
            f"{table.method} Now the copy of the kernel's read() cannot be exchanged; mapped files are copied by "
            "whichever routine is named.",
            *table.notes,
        ],
    )


def _gain(cells: dict, name: str, to: str, floor: float) -> str:
    own = ratio(cells, name, to)
    if own is None:
        return MISSING
    told = cells[name].get("ratio")
    return f"{(own - 1) * 100:+.0f}{' =' if told and is_tie(cells[name], floor) else '  '}"


def _comparable(table: history.Table, then: dict, now: dict, floor: float) -> Sheet:
    columns = [
        tables.Column("bytes from", left=True),
        tables.Column("x87 copy\nfor stock", "%"),
        tables.Column("Wherry's\nfor stock", "%"),
        tables.Column("no copy\nfor stock", "%"),
    ]
    gained = (then["x87"] / then["stock"] - 1) * 100
    rows = [[f"then: {MEMBERS} disks", f"{gained:+.0f}  ", MISSING, MISSING]]
    rows += [
        [
            f"now: {title}",
            _gain(cells, X87, STOCK, floor),
            _gain(cells, "wherry", STOCK, floor),
            _gain(cells, TOUCH, STOCK, floor),
        ]
        for title, cells in now.items()
    ]
    disks = history.statement("asami-1996", "stripe-disks").value
    said = [
        f"Then a better copy brought {gained:.0f} % more from {disks:.0f} disks, since memory was about as "
        "slow as the disks together.",
        *_now(now, floor),
    ]
    notes = ["=: not to be told from the noise; ratios are of the same rounds."]
    return Sheet(
        "stripes, what stays comparable: the change of the rate", columns, rows, said, notes
    )


def _change(cells: dict, name: str, floor: float) -> str | None:
    """A change in words; one that the noise may have made must not read like one that was found."""
    own = ratio(cells, name, STOCK)
    if own is None:
        return None
    told = cells[name].get("ratio")
    tie = " (within the noise)" if told and is_tie(cells[name], floor) else ""
    return f"{(own - 1) * 100:+.0f} %{tie}"


def _now(now: dict, floor: float) -> list[str]:
    """What that copy brings today, and what any could at most: as if nothing were copied."""
    told = []
    for title, cells in now.items():
        own, most = _change(cells, X87, floor), _change(cells, TOUCH, floor)
        if own is not None and most is not None:
            told.append(f"{title}: {own}, no copy at all {most}")
    return (
        [f"Now that copy, in place of libc's, changes the rate of {'; '.join(told)}."]
        if told
        else []
    )
