"""Rizzo's nanoseconds a call of 2012 beside this machine's: bcopy and his fast copy, in L1 and not."""

from __future__ import annotations

from statistics import median

from wherry import history, reading, sentences, tables
from wherry.clock import Clock
from wherry.reading import beats, no_size, ns, speed
from wherry.then.sheet import MISSING, Sheet, figures, span
from wherry.units import ns_label, size_label

FAST, OLD_STOCK = "int4x8", "rep_movsq"
OUTSIDE = "not in L1"
FROM_HERE = 1024  # bcopy is as fast from here on, he says


def _rows(run: dict, table: history.Table) -> list[dict]:
    return [
        row
        for row in tables.rows_of(run, "small")
        if all(row.get(k) == v for k, v in table.where.items())
        and "size" in row
        and not (row["src_off"] or row["dst_off"])
        and row["mode"] == "throughput"
    ]


def states_of(run: dict, table: history.Table) -> dict[str, list[str]]:
    """What stands for his states. He does not say where the data were when they were not in L1, so where the run lacks
    the usual level the nearest other one that both sides are in does."""
    there = {row["src_state"] for row in _rows(run, table) if row["src_state"] == row["dst_state"]}
    found = dict(table.states)
    if OUTSIDE in found and found[OUTSIDE][0] not in there:
        other = next((state for state in ("L2", "DRAM") if state in there), None)
        found[OUTSIDE] = [other, other] if other else found[OUTSIDE]
    return found


def by_state(run: dict, table: history.Table) -> dict[tuple[str, int], dict[str, dict]]:
    """Cells by his state and size."""
    cells = tables.cells_of(run, "small")
    found = {}
    for row in _rows(run, table):
        for state, sides in states_of(run, table).items():
            if [row["src_state"], row["dst_state"]] == sides:
                # The first: rows of packets come later.
                found.setdefault((state, row["size"]), cells[row["row"]])
    return found


def sheets(run: dict, clock: Clock) -> list[Sheet]:
    (table,) = history.tables("small")
    now = by_state(run, table)
    if not now:
        return []
    then: dict[tuple[str, int], dict[str, float]] = {}
    for record in table.records():
        then.setdefault((record["state"], record["size"]), {})[record["function"]] = record["time"]
    order = list(table.states)
    # Sizes that only one of the two has say nothing about then and now.
    keys = sorted(then, key=lambda key: (order.index(key[0]), key[1]))
    return [
        _absolute(table, then, now, keys, _elsewhere(run, table)),
        _comparable(table, then, now, keys, clock, reading.floor(run, "small")),
    ]


def _elsewhere(run: dict, table: history.Table) -> str:
    own, usual = states_of(run, table)[OUTSIDE], table.states[OUTSIDE]
    return f" In this run it is {own[0]}." if own != usual else ""


def _absolute(table, then, now, keys, elsewhere: str) -> Sheet:
    there = {name for cells in now.values() for name in cells}
    names = [n for n in ("libc", OLD_STOCK, FAST, "wherry") if n in there]
    columns = [
        tables.Column("data", left=True),
        tables.Column("size", "bytes"),
        tables.Column("then\nbcopy", "ns"),
        tables.Column("then\nfast_bcopy", "ns"),
        *(tables.Column(f"now\n{name}", "ns") for name in names),
    ]
    rows = []
    for state, size in keys:
        own, cells = then[state, size], now.get((state, size), {})
        line = [state, size_label(size)]
        line += [_label(own.get(name)) for name in ("bcopy", "fast_bcopy")]
        line += [_label(ns(cells.get(name))) for name in names]
        rows.append(line)
    return Sheet(
        "small, then and now: copy, ns a call",
        columns,
        rows,
        notes=[
            f"{table.mail.in_words()}.",
            f"Machine: {table.machine.in_words()}.",
            f"bcopy then is {OLD_STOCK} today, fast_bcopy is {FAST}. {' '.join(table.notes)}{elsewhere}",
        ],
        keep=2,
    )


def _label(took: float | None) -> str:
    return MISSING if took is None else ns_label(took)


def _comparable(table, then, now, keys, clock: Clock, floor: float) -> Sheet:
    columns = [
        tables.Column("data", left=True),
        tables.Column("size", "bytes"),
        tables.Column("then\nfast_bcopy\n/bcopy", "speed"),
        tables.Column(f"now\n{FAST}\n/libc", "speed"),
        tables.Column(f"now\n{FAST}\n/{OLD_STOCK}", "speed"),
        tables.Column("then\n\nbcopy", "B/cycle"),
        tables.Column("then\nfast_\nbcopy", "B/cycle"),
    ]
    known = clock.ghz is not None
    if known:
        columns += [tables.Column(f"now\n\n{name}", "B/cycle") for name in ("libc", FAST)]
    rows = []
    for state, size in keys:
        own, cells = then[state, size], now.get((state, size), {})
        line = [state, size_label(size), figures(_gain(own))]
        line += [figures(speed(cells, FAST, "libc")), figures(speed(cells, FAST, OLD_STOCK))]
        for name in ("bcopy", "fast_bcopy"):
            took = own.get(name)
            line.append(figures(size / (took * table.machine.ghz) if took else None))
        if known:
            for name in ("libc", FAST):
                took = ns(cells.get(name))
                line.append(figures(clock.bytes_a_cycle(size / took * 1e9) if took else None))
        rows.append(line)
    said = [_fast_then(then), _fast_now(now, floor), _tails_then(), _tails_now(now)]
    return Sheet(
        "small, what stays comparable: speed over the stock copy (above 1: faster), bytes a cycle",
        columns,
        rows,
        [text for text in said if text],
        [f"Cycles then are of the stated clock; {clock.in_words()}."],
        keep=2,
    )


def _gain(own: dict[str, float]) -> float | None:
    return own["bcopy"] / own["fast_bcopy"] if {"bcopy", "fast_bcopy"} <= set(own) else None


def _fast_then(then) -> str:
    gains = {size: g for (state, size), own in then.items() if state == "L1" and (g := _gain(own))}
    small = {size: g for size, g in gains.items() if size < FROM_HERE}
    large = max(gains)
    return (
        f"Then, in L1, the fast copy ran at {span(list(small.values()))} times the speed of bcopy below 1 KiB, "
        f"most at {size_label(max(small, key=small.get))} bytes; at 1K they were level "
        f"({figures(gains[FROM_HERE])}), and at {size_label(large)} it ran at {figures(gains[large], 2)} times."
    )


def _fast_now(now, floor: float) -> str:
    """Is it still faster below 1 KiB?"""
    below = {size: c for (state, size), c in now.items() if state == "L1" and size < FROM_HERE}
    told = {size: beats(cells.get(FAST), floor) for size, cells in sorted(below.items())}
    told = {size: better for size, better in told.items() if better is not None}
    if not told:
        return ""
    faster = [size_label(size) for size, better in told.items() if better]
    speeds = [speed(below[size], FAST, "libc") for size in told]
    again = [v for cells in below.values() if (v := speed(cells, FAST, OLD_STOCK))]
    text = f"Now, below 1 KiB in L1, it runs at {span(speeds)} times the speed of libc: "
    if not faster:
        text += f"faster at {no_size(max(speeds))}"
    elif len(faster) == len(told):
        text += "faster at every size"
    else:
        text += f"faster at {sentences.join(faster)} only"
    if again:
        text += f"; against {OLD_STOCK}, the code of his bcopy, at {span(again)} times"
    return text + "."


def _tails_then() -> str:
    cost = history.statement("rizzo-2012", "tail-cost").value
    return f"Then 8n + {{4..7}} bytes cost bcopy {cost:g} ns more than others."


def _tails_now(now) -> str:
    """His pairs again: 4 against 3, 63 against 64, in L1."""
    parts = []
    there = [pair for pair in ((4, 3), (63, 64)) if {("L1", size) for size in pair} <= now.keys()]
    for name in ("libc", OLD_STOCK):
        costs = []
        for odd, even in there:
            own = [ns(now["L1", size].get(name)) for size in (odd, even)]
            if None not in own:
                costs.append(own[0] - own[1])
        if costs:
            parts.append(f"{name} {round(median(costs), 1) + 0:+.1f} ns")
    if not parts:
        return ""
    pairs = [f"{odd} against {even}" for odd, even in there]
    compared = f"{'the mean of ' if len(pairs) > 1 else ''}{' and of '.join(pairs)} bytes"
    return f"Now they cost {sentences.join(parts)} ({compared}, in L1)."
