"""Evans' zeroing routines of 2003 beside this machine's: rate and time, speed over the stock routine, the order of them
all, and what memory takes and gives."""

from __future__ import annotations

from wherry import history, sentences, tables
from wherry.clock import Clock
from wherry.reading import last_cache
from wherry.then import ranks
from wherry.then.sheet import MISSING, Sheet, count, figures
from wherry.units import percent, size_in_words

SCANNER = "i686_pagezero"
LIBC = "libc"
LARGE = 1 << 20  # his buffer of 4 KiB was in a cache, and has to be
MMX, SSE = "mmx_zero", "sse2_zero"


def _ns(cell: dict) -> float:
    return cell["ns"]["median"]


def _rate(cell: dict) -> float:
    return cell["bytes"] / _ns(cell) * 1e9


def _alike(run: dict, where: dict) -> list[dict]:
    """Rows in which the same buffer is zeroed again and again, of whatever size."""
    return [
        row
        for row in tables.rows_of(run, "zero")
        if all(row.get(key) == value for key, value in where.items() if key != "size")
    ]


def cells_of(run: dict, where: dict) -> dict[str, dict]:
    cells = tables.cells_of(run, "zero")
    same = (row for row in _alike(run, where) if row.get("size") == where["size"])
    return next((cells[row["row"]] for row in same), {})


def _row(run: dict, table: history.Table) -> dict | None:
    """The row with a buffer of his size. His large one was in no cache; where the run has none of that size the
    smallest that is in none today stands for it."""
    alike, cache = _alike(run, table.where), last_cache(run)
    same = [row for row in alike if row.get("size") == table.size]
    larger = [row for row in alike if row.get("size", 0) > max(cache, table.size)]
    if same or table.size < LARGE or not cache or not larger:
        return same[0] if same else None
    return min(larger, key=lambda row: row["size"])


def sheets(run: dict, clock: Clock) -> list[Sheet]:
    found, cells = [], tables.cells_of(run, "zero")
    for table in history.tables("zero"):
        row = _row(run, table)
        if row is None:
            continue
        now, size = cells[row["row"]], row["size"]
        own = [_absolute(table, now), _comparable(table, now, clock, size)]
        if size != table.size:
            for sheet in own:
                sheet.notes.append(
                    f"Now: a buffer of {size_in_words(size)}, which no cache of this machine holds, as none held his."
                )
        if table.size >= LARGE:
            own[-1].said += _memory(now, last_cache(run) >= size, size, table.size)
        found += own
    return found


def _place(table: history.Table) -> str:
    return f"{table.size:,} bytes ({size_in_words(table.size)})"


def _at(table: history.Table, size: int) -> str:
    now = "" if size == table.size else f" then and {size_in_words(size)} now"
    return f"At {size_in_words(table.size)}{now}"


def _time(table: history.Table, cell: dict) -> float:
    return table.total / _rate(cell) * 1e6


def _absolute(table: history.Table, now: dict[str, dict]) -> Sheet:
    columns = [
        tables.Column("then", left=True),
        tables.Column("how", left=True),
        tables.Column("then", "B/s"),
        tables.Column("then", "us"),
        tables.Column("today", left=True),
        tables.Column("now", "B/s"),
        tables.Column("now", "us"),
    ]
    calls = table.total // table.size
    rows = []
    for record in table.records():
        cell = now.get(record["routine"])
        rows.append(
            [
                record["name"],
                record["how"],
                count(record["rate"]),
                count(record["time"]),
                record["routine"],
                count(_rate(cell)) if cell else MISSING,
                count(_time(table, cell)) if cell else MISSING,
            ]
        )
    for name in ("libc", "wherry"):
        if name in now and name not in [line[4] for line in rows]:
            rate, time = count(_rate(now[name])), count(_time(table, now[name]))
            rows.append([MISSING, MISSING, MISSING, MISSING, name, rate, time])
    return Sheet(
        f"zero, then and now: {_place(table)}; us for {calls:,} calls, {table.total:,} bytes",
        columns,
        rows,
        notes=[
            f"{table.mail.in_words()}.",
            f"Machine: {table.machine.in_words()}.",
            *table.notes,
        ],
    )


def _comparable(table: history.Table, now: dict[str, dict], clock: Clock, size: int) -> Sheet:
    records = table.records()
    stock = next(r for r in records if r["name"] == table.stock)
    old = now.get(stock["routine"])
    libc = now.get(LIBC)
    known = clock.ghz is not None
    columns = [
        tables.Column("routine", left=True),
        tables.Column(f"then\n/{stock['routine']}".replace("_", "_\n"), "speed"),
        tables.Column(f"now\n/{stock['routine']}".replace("_", "_\n"), "speed"),
        tables.Column("now\n/libc", "speed"),
        tables.Column("then\nplace"),
        tables.Column("now\nplace"),
        tables.Column("then", "B/cycle"),
    ] + ([tables.Column("now", "B/cycle")] if known else [])
    both = _both(records, now)
    places_then = dict(zip(both, ranks.ranks([-r["rate"] for r in both.values()]), strict=True))
    places_now = dict(zip(both, ranks.ranks([_ns(now[n]) for n in both]), strict=True))
    rows = []
    for record in records:
        name = record["routine"]
        cell = now.get(name)
        line = [
            name,
            figures(record["rate"] / stock["rate"]),
            figures(_ns(old) / _ns(cell) if cell and old else None),
            figures(_ns(libc) / _ns(cell) if cell and libc else None),
            _place_of(places_then, name),
            _place_of(places_now, name),
            figures(record["rate"] / (table.machine.mhz * 1e6)),
        ]
        if known:
            line.append(figures(clock.bytes_a_cycle(_rate(cell)) if cell else None))
        rows.append(line)
    said = [
        _order(_at(table, size), both, now),
        _scanner(records, now),
        _best_integer(table, records, now),
        _mmx(f"At {size_in_words(size)}", stock["routine"], now),
    ]
    return Sheet(
        f"zero, what stays comparable: {_place(table)}; speed over the stock routine (above 1: faster)",
        columns,
        rows,
        [text for text in said if text],
        [
            f"{stock['routine']} was the stock routine then. Cycles then are of the stated clock; "
            f"{clock.in_words()}."
        ],
    )


def _both(records: list[dict], now: dict[str, dict]) -> dict[str, dict]:
    """The same code on both machines: libc's own routine of then is another today."""
    return {r["routine"]: r for r in records if r["routine"] in now and r["routine"] != LIBC}


def _place_of(places: dict[str, float], name: str) -> str:
    return f"{places[name]:g}" if name in places else MISSING


def _order(where: str, both: dict[str, dict], now: dict[str, dict]) -> str:
    """Are they in the same order today?"""
    found = ranks.correlation(
        [-record["rate"] for record in both.values()], [_ns(now[name]) for name in both]
    )
    if found is None:
        return ""
    rho, chance = found
    rest = {n: r for n, r in both.items() if n != SCANNER}
    if len(rest) < 2:
        return ""
    measure = f"rank correlation {rho:.2f}, and {_share(chance)} of random orders are as far from 0"
    rates = [r["rate"] for r in rest.values()]
    today = [_ns(now[name]) for name in rest]
    then_spread, now_spread = max(rates) / min(rates), max(today) / min(today)
    if then_spread < 1.05:
        return (
            f"{where} all but {SCANNER} lay within {percent(then_spread - 1)} then, which is hardly an order; "
            f"now the slowest of them takes {sentences.slower_than(now_spread)} the fastest ({measure})."
        )
    verdict = (
        "much the same order as then"
        if rho > 0.8
        else "an order that is like that of then, and not the same"
        if chance < 0.05 and rho > 0
        else "the reverse of the order of then, roughly"
        if chance < 0.05
        else "an order that has nothing to do with that of then"
    )
    first = min(rest, key=lambda n: -rest[n]["rate"])
    fastest = min(rest, key=lambda n: _ns(now[n]))
    return (
        f"{where} the {len(both)} routines are in {verdict}: {measure}. Without {SCANNER}, which only reads "
        f"here, the fastest was {then_spread:.1f} times as fast as the slowest then ({first}), and is "
        f"{now_spread:.1f} times as fast now ({fastest})."
    )


def _share(chance: float) -> str:
    """Of the shuffles; none of them found is not none."""
    return percent(chance) if chance >= 0.001 else "less than 0.1 %"


def _scanner(records: list[dict], now: dict[str, dict]) -> str:
    """Reading first was faster on a buffer of zeros that no cache holds."""
    own = {r["routine"]: r for r in records}
    others = [n for n in own if n not in (SCANNER, LIBC) and n in now]
    if SCANNER not in now or not others:
        return ""
    then_best = max(own[n]["rate"] for n in others)
    now_best = min(_ns(now[n]) for n in others)
    return (
        f"{SCANNER}, which on a buffer of zeros only reads, ran at "
        f"{figures(own[SCANNER]['rate'] / then_best)} times the speed of the best of the others; now at "
        f"{figures(now_best / _ns(now[SCANNER]))} times."
    )


# What Evans calls optimized by hand with integer registers; the plain loop of single stores is none.
_INTEGER = ("unroll8", "unroll16", "unroll16_prealloc", "unroll32", "unroll32_prealloc", "unroll64")
_INTEGER += ("unroll64_prealloc", "i486_bzero")


def _best_integer(table: history.Table, records: list[dict], now: dict[str, dict]) -> str:
    own = {r["routine"]: r for r in records}
    stock = next(r["routine"] for r in records if r["name"] == table.stock)
    here = [name for name in _INTEGER if name in now]
    if not here or stock not in now:
        return ""
    best = max(_INTEGER, key=lambda name: own[name]["rate"])
    today = min(here, key=lambda name: _ns(now[name]))
    return (
        f"The best loop of integer stores ran at {figures(own[best]['rate'] / own[stock]['rate'])} times the "
        f"speed of {stock} then ({best}) and runs at {figures(_ns(now[stock]) / _ns(now[today]))} times now "
        f"({today})."
    )


def _mmx(where: str, stock: str, now: dict[str, dict]) -> str:
    """He tried it and gives no figure."""
    if MMX not in now or stock not in now or SSE not in now:
        return ""
    beside = _ns(now[MMX]) / _ns(now[stock]), _ns(now[MMX]) / _ns(now[SSE])
    return (
        f"Of MMX registers he says that they gained nothing where no cache holds the buffer. "
        f"{where} {MMX} now takes {figures(beside[0])} times as long as {stock}, and "
        f"{figures(beside[1])} times as long as {SSE}, whose stores are twice as wide."
    )


def _memory(now: dict[str, dict], cached: bool, size: int, his: int) -> list[str]:
    """What he says of read-before-write: 140 of 360 MB/s."""
    if "read_bandwidth" not in now or "write_bandwidth" not in now:
        return []
    read, write = (history.statement("evans-2003", name).value for name in ("memory", "write"))
    reads, writes = _rate(now["read_bandwidth"]), _rate(now["write_bandwidth"])
    where = f"the same {his:,} bytes" if size == his else size_in_words(size)
    text = (
        f"Memory then: reads {read:g} MB/s, writes {write:g} MB/s, {percent(write / read)} of it, since each "
        f"write read its line first. Now, over {where}: reads {reads / 1e6:,.0f} MB/s, "
        f"writes {writes / 1e6:,.0f} MB/s, {percent(writes / reads)}"
    )
    past = now.get("write_nt_bandwidth")
    if past:
        text += (
            f", and past the caches {_rate(past) / 1e6:,.0f} MB/s, {percent(_rate(past) / reads)}"
        )
    if cached:
        text += (
            "; the buffer now fits into a cache, which answers for memory; "
            "a larger one can be asked for by --size"
        )
    return [f"{text}."]
