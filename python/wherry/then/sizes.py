"""Asami's copies of 1996 beside this machine's: MB/s, what the x87 copy gains over the stock bcopy, bytes a cycle."""

from __future__ import annotations

from statistics import geometric_mean

from wherry import history, reading, sentences, tables
from wherry.clock import Clock
from wherry.experiments.sizes import BUFFER
from wherry.reading import beats, no_size, speed
from wherry.then.sheet import Sheet, count, figures, span
from wherry.units import MIB, percent, size_in_words, size_label

X87, OLD_STOCK, INTEGER = "x87_fild64", "rep_movsl", "int_unrolled64"
# Below, the x87 copy is rep movsb.
LEAST = 64


def _rate(cell: dict | None) -> float | None:
    return None if cell is None else cell["bytes"] / cell["ns"]["median"] * 1e9 / MIB


def cells_by_size(run: dict, where: dict) -> dict[int, dict[str, dict]]:
    """Cells by size, of the rows that walk the two buffers as he did."""
    cells = tables.cells_of(run, "sizes")
    return {
        row["size"]: cells[row["row"]]
        for row in tables.rows_of(run, "sizes")
        if "size" in row
        and all(row.get(key) == value for key, value in where.items())
        and row["src_off"] == row["dst_off"] == 0
        and row["threads"] == 1
    }


def _in_memory(run: dict) -> dict[int, dict[str, dict]]:
    """Where his buffers lay, and those of today do not."""
    return cells_by_size(run, {"op": "copy", "src_state": "DRAM", "dst_state": "DRAM"})


def _gain(record: dict) -> float | None:
    return record["ours"] / record["libc"] if record["libc"] else None


def _name(table: history.Table) -> str:
    return f"{table.machine.cpu} {table.machine.mhz:g}"


def sheets(run: dict, clock: Clock) -> list[Sheet]:
    then = [t for t in history.tables("sizes") if t.of_role("key")]
    now, where = cells_by_size(run, then[0].where), ""
    if not now:
        now = _in_memory(run)
        where = "Now source and destination lie in memory, as his did, and are taken in no order; he walked through."
    if not now:
        return []
    by_size = [{record["size"]: record for record in table.records()} for table in then]
    sizes = sorted({size for records in by_size for size in records} | set(now))
    return [
        _absolute(then, by_size, now, sizes, where),
        _speeds(then, by_size, now, sizes, reading.floor(run, "sizes"), where or _cached(run)),
        _per_cycle(then, by_size, now, sizes, clock),
    ]


def _cached(run: dict) -> str:
    buffers, cache = 2 * BUFFER, reading.last_cache(run)
    if cache < buffers:
        return ""
    return (
        f"His buffers, {size_in_words(buffers)} together, were in memory; now a cache of {size_in_words(cache)} holds "
        "them, and --state DRAM asks for memory."
    )


def _absolute(then, by_size, now, sizes, where: str) -> Sheet:
    names = [
        n for n in ("libc", OLD_STOCK, INTEGER, X87, "wherry") if any(n in c for c in now.values())
    ]
    columns = [tables.Column("size", "bytes")]
    for table in then:
        columns += [
            tables.Column(f"{_name(table)}\n{name}".replace(" ", "\n"), "MB/s")
            for name in ("libc", "x87")
        ]
    columns += [tables.Column(f"now\n{tables.stacked(name)}", "MB/s") for name in names]
    rows = []
    for size in sizes:
        line = [size_label(size)]
        for records in by_size:
            own = records.get(size, {})
            line += [figures(own.get("libc"), 3), figures(own.get("ours"), 3)]
        line += [count(_rate(now.get(size, {}).get(name))) for name in names]
        rows.append(line)
    return Sheet(
        f"sizes, then and now: copy through {'memory' if where else 'two 4 MiB buffers'}, MB/s (2^20 bytes a second)",
        columns,
        rows,
        notes=[f"{then[0].mail.in_words()}."]
        + [f"{_name(t)}: {t.machine.in_words()}." for t in then]
        + [
            f"libc then is rep movsl, which is {OLD_STOCK} today; x87 is {X87}. {then[0].notes[0]} "
            f"{then[1].notes[1]}"
        ]
        + ([where] if where else []),
    )


def _speeds(then, by_size, now, sizes, floor: float, where: str) -> Sheet:
    columns = [tables.Column("size", "bytes")]
    columns += [tables.Column(f"{_name(t)}\nx87/libc".replace(" ", "\n"), "speed") for t in then]
    own = [n for n in (X87, OLD_STOCK, INTEGER) if any(n in cells for cells in now.values())]
    columns += [tables.Column(f"now\n{tables.stacked(n)}\n/libc", "speed") for n in own]
    columns.append(tables.Column(f"now\nx87/\n{tables.stacked(OLD_STOCK)}", "speed"))
    rows = []
    for size in sizes:
        cells = now.get(size, {})
        line = [size_label(size)]
        line += [figures(_gain(r[size]) if size in r else None) for r in by_size]
        line += [figures(speed(cells, name, "libc")) for name in own]
        rows.append([*line, figures(speed(cells, X87, OLD_STOCK))])
    said = [*(_won_then(t, r) for t, r in zip(then, by_size, strict=True)), _won_now(now, floor)]
    said += [_old_stock(now), _integers(now), where]
    return Sheet(
        "sizes, what stays comparable: speed over the stock copy of the same table (above 1: faster)",
        columns,
        rows,
        [text for text in said if text],
        _missing(now),
    )


def _per_cycle(then, by_size, now, sizes, clock: Clock) -> Sheet:
    columns = [tables.Column("size", "bytes")]
    for table in then:
        columns += [
            tables.Column(f"{_name(table)}\n{name}".replace(" ", "\n"), "B/cycle")
            for name in ("libc", "x87")
        ]
    names = [n for n in ("libc", OLD_STOCK, X87) if any(n in cells for cells in now.values())]
    if clock.ghz is None:
        names = []
    columns += [tables.Column(f"now\n{tables.stacked(name)}", "B/cycle") for name in names]
    rows = []
    for size in sizes:
        line = [size_label(size)]
        for table, records in zip(then, by_size, strict=True):
            for name in ("libc", "ours"):
                rate = records.get(size, {}).get(name)
                line.append(figures(rate * MIB / (table.machine.mhz * 1e6) if rate else None))
        for name in names:
            rate = _rate(now.get(size, {}).get(name))
            line.append(figures(clock.bytes_a_cycle(rate * MIB if rate else None)))
        rows.append(line)
    return Sheet(
        "sizes, what stays comparable: bytes a cycle",
        columns,
        rows,
        notes=[f"Cycles then are of the stated clock; {clock.in_words()}."],
    )


def _missing(now: dict[int, dict[str, dict]]) -> list[str]:
    """Says so when the run lacks the counterparts."""
    there = {name for cells in now.values() for name in cells}
    missing = [name for name in (X87, OLD_STOCK) if name not in there]
    return [f"Not in this run: {sentences.join(missing)}."] if missing else []


def _won_then(table: history.Table, records: dict[int, dict]) -> str:
    """From what size on it was ahead, to the end of the table."""
    gains = {size: gain for size, record in records.items() if (gain := _gain(record))}
    behind = [size for size, gain in gains.items() if gain <= 1]
    first = min(size for size in gains if size > max(behind))
    ahead = [gain for size, gain in gains.items() if size >= first]
    level = [size for size, gain in gains.items() if gain == 1]
    text = (
        f"Then, on the {_name(table)}, the x87 copy was ahead from {size_label(first)} bytes on: by "
        f"{percent(min(ahead) - 1)} to {percent(max(ahead) - 1)}"
    )
    if level:
        text += f", level at {sentences.join([size_label(size) for size in level])}"
    return text + f", behind below ({figures(min(gains.values()), 2)} of the speed at worst)."


def _won_now(now: dict[int, dict[str, dict]], floor: float) -> str:
    told = {size: beats(cells.get(X87), floor) for size, cells in now.items()}
    speeds = [
        speed(now[size], X87, "libc") for size, b in told.items() if b is not None and size >= LEAST
    ]
    if not speeds:
        return ""
    won = sorted(size for size, better in told.items() if better)
    verdict = f"beats libc at {no_size(max(speeds))}"
    if won:
        verdict = f"still beats libc at {sentences.join([size_label(size) for size in won])}"
    return (
        f"Now it {verdict}; from 64 bytes on, where its loop begins, it runs at {span(speeds)} times libc's "
        "speed."
    )


def _old_stock(now: dict[int, dict[str, dict]]) -> str:
    """What became of the code that it was compared with."""
    own = {s: v for s, c in now.items() if (v := speed(c, OLD_STOCK, "libc"))}
    x87 = [v for s, c in now.items() if s >= LEAST and (v := speed(c, X87, OLD_STOCK))]
    if not own or not x87:
        return ""
    large = [value for size, value in own.items() if size >= 1024] or list(own.values())
    return (
        f"The code that it beat then, rep movsl, runs at {span(list(own.values()))} times the speed of "
        f"today's libc ({figures(geometric_mean(large), 2)} in the mean from 1 KiB on), and the x87 copy at "
        f"{span(x87)} times the speed of that."
    )


def _integers(now: dict[int, dict[str, dict]]) -> str:
    own = [v for c in now.values() if (v := speed(c, INTEGER, X87))]
    if not own:
        return ""
    return (
        "Then copying through integer registers was 10 MB/s slower than through the x87 stack; now "
        f"{INTEGER} runs at {span(own)} times the speed of {X87}."
    )
