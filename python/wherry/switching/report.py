"""The tables of a run's switches, and what they mean."""

from __future__ import annotations

from wherry import tables
from wherry.sentences import join
from wherry.switching import answer
from wherry.switching.found import Found
from wherry.switching.words import (
    ALWAYS,
    COPIES,
    IN_USE,
    LIVE_WORDS,
    METHOD_WORDS,
    METHODS,
    NO_COPY,
    SEED_TOTAL,
    SEGMENT,
    WHO,
)
from wherry.tables import Block, Column, Figure
from wherry.units import ns_label

_PLAIN = ("no", "child", "parent")


def blocks(run: dict, width: int) -> list[Block]:
    found = Found(run)
    made = [
        _pipes(found, width),
        _ways(found, width),
        _stacks(found, width),
        _six_rows(found, width),
        _savings(found, width),
        _copies(found, width),
        _wide(found, width),
    ]
    shown = [block for block in made if block]
    said = answer.sentences(found)
    if said:
        shown.append(
            Block("switch: what does it cost a program that it uses wide registers?", [], said)
        )
    return shown


def _label(value: float | None) -> Figure:
    return tables.MISSING if value is None else Figure(ns_label(value))


def _cycles(found: Found, ns: float | None) -> Figure:
    cycles = found.clock.cycles(ns)
    return tables.MISSING if cycles is None else Figure(f"{cycles:,.0f}")


def _part(cell: dict | None, name: str) -> float | None:
    return None if cell is None else (cell.get("parts") or {}).get(name)


def _both(cell: dict | None) -> float | None:
    parts = [_part(cell, "user_ns"), _part(cell, "system_ns")]
    return None if None in parts else sum(parts)


def _pipes(found: Found, width: int) -> Block | None:
    columns = [
        Column("registers", left=True),
        Column("used by", left=True),
        Column("user", "ns"),
        Column("system", "ns"),
        Column("user+system", "ns"),
        Column("elapsed", "ns"),
        Column("one switch", "ns"),
        Column("", "cycles"),
    ]
    body = []
    for live, words in LIVE_WORDS.items():
        cells = found.cells(via="pipe", partners="processes", place="same", live=live, size=0)
        for who in WHO:
            cell = cells.get(who)
            if cell is None:
                continue
            took = cell["ns"]["median"]
            body.append(
                [
                    Figure(words),
                    Figure(who),
                    _label(_part(cell, "user_ns")),
                    _label(_part(cell, "system_ns")),
                    _label(_both(cell)),
                    _label(took),
                    _label(took / 2),
                    _cycles(found, took / 2),
                ]
            )
    if not body:
        return None
    return Block(
        "switch: the kernel's, a byte to a child and back through two pipes, on one CPU; a round trip",
        tables.layout(columns, body, width, keep=2),
        [],
        [
            "user, system: of the parent, as the kernel accounts for them in ticks, over all rounds; "
            "elapsed: the median; one switch: half a round trip, with its system calls",
            f"used by: who multiplies floats by 1.00001 in every register at each turn; {found.clock.in_words()}",
        ],
    )


def _ways(found: Found, width: int) -> Block | None:
    columns = [
        Column("by", left=True),
        Column("between", left=True),
        Column("CPUs"),
        Column("none used", "ns"),
        Column("AVX-512 by both", "ns"),
        Column("more", "%"),
        Column("one switch", "ns"),
        Column("", "cycles"),
    ]
    body = []
    trips: dict[str, int] = {}
    for row, cells in found.rows(size=0, live="avx512"):
        if row["via"] not in ("pipe", "eventfd", "futex") or "no" not in cells:
            continue
        trips[row["place"]] = cells["no"]["calls"]
        took = cells["no"]["ns"]["median"]
        both = cells["both"]["ns"]["median"] if "both" in cells else None
        body.append(
            [
                Figure(row["via"]),
                Figure(row["partners"]),
                Figure("one" if row["place"] == "same" else "two"),
                _label(took),
                _label(both),
                tables.MISSING if both is None else Figure(f"{(both / took - 1) * 100:+.1f}"),
                _label(took / 2),
                _cycles(found, took / 2),
            ]
        )
    if not body:
        return None
    return Block(
        "switch: the kernel's, other ways to hand over; a round trip",
        tables.layout(columns, body, width, keep=3),
        [],
        [
            "two: each hand-over wakes the other CPU, and no state is saved and loaded in between"
            + _fewer(trips)
        ]
        if "apart" in trips
        else [],
    )


def _fewer(trips: dict[str, int]) -> str:
    """Where samples between two CPUs are shorter than the others."""
    one, two = trips.get("same"), trips.get("apart")
    if one is None or two is None or one == two:
        return ""
    return f"; a round trip takes so much longer that a sample has {two:,} in place of {one:,}"


def _stacks(found: Found, width: int) -> Block | None:
    columns = [
        Column("registers", left=True),
        Column("used by", left=True),
        *(Column(name, "ns") for name in METHODS),
    ]
    body = []
    for row, cells in found.rows(via="stacks"):
        words = LIVE_WORDS.get(row["live"], "none")
        line = [Figure(words), Figure(row["who"])]
        for name in METHODS:
            cell = cells.get(name)
            line.append(tables.MISSING if cell is None else _label(cell["ns"]["median"] / 2))
        body.append(line)
    if not body:
        return None
    return Block(
        "switch: our own, between two stacks of one thread; one switch",
        tables.layout(columns, body, width, keep=2),
        [],
        [
            *(f"{name}: {what}" for name, what in METHOD_WORDS.items()),
            "every method but never is checked to keep the registers of both sides before it is timed",
        ],
    )


def _six_rows(found: Found, width: int) -> Block | None:
    """The mail's table: noopt and opt, where the switch is ours."""
    columns = [
        Column("", left=True),
        Column("registers", left=True),
        Column("used by", left=True),
        Column("user", "s"),
        Column("system", "s"),
        Column("user+system", "s"),
        Column("elapsed", "s"),
    ]
    body = []
    for live, words in LIVE_WORDS.items():
        six = found.six(live)
        for name, method in (("noopt", ALWAYS), ("opt", IN_USE)):
            for who in _PLAIN:
                cell = six.get((method, who))
                if cell is None:
                    continue
                line = [Figure(name), Figure(words), Figure(who)]
                for ns in (
                    _part(cell, "user_ns"),
                    _part(cell, "system_ns"),
                    _both(cell),
                    cell["ns"]["median"],
                ):
                    line.append(
                        tables.MISSING if ns is None else Figure(f"{ns * SEED_TOTAL / 1e9:.3f}")
                    )
                body.append(line)
    if not body:
        return None
    return Block(
        f"switch: the mail's six rows, where the switch is ours; seconds for {SEED_TOTAL:,} round trips",
        tables.layout(columns, body, width, keep=3),
        [],
        [
            f"noopt: all registers at each switch ({ALWAYS}); opt: those in use ({IN_USE}). Kernels that "
            "saved x87 state only when somebody wanted it are gone: what was not saved yet could be "
            "read (CVE-2018-3665)",
            "all of it is user time; what the kernel calls system are its ticks",
        ],
    )


def _times(cell: dict) -> tuple[float | None, ...]:
    """User, system, both, elapsed: the columns of the mail."""
    parts = (_part(cell, "user_ns"), _part(cell, "system_ns"))
    return (*parts, _both(cell), cell["ns"]["median"])


def _savings(found: Found, width: int) -> Block | None:
    """The mail's second table: each saving in seconds, and below it in per cent."""
    columns = [
        Column("registers", left=True),
        Column("used by", left=True),
        Column("", left=True),
        *(Column(name) for name in ("user", "system", "user+system", "elapsed")),
        Column("one switch", "ns"),
        Column("", "cycles"),
    ]
    body, sums = [], []
    for live, words in LIVE_WORDS.items():
        six = found.six(live)
        for who in _PLAIN:
            always, in_use = (six.get((method, who)) for method in (ALWAYS, IN_USE))
            if always is None or in_use is None:
                continue
            pairs = list(zip(_times(always), _times(in_use), strict=True))
            saved = [None if None in pair else pair[0] - pair[1] for pair in pairs]
            one = saved[-1] / 2
            cycles = found.clock.cycles(one)
            body.append(
                [
                    *(Figure(words), Figure(who), Figure("s")),
                    *(
                        tables.MISSING if ns is None else Figure(f"{ns * SEED_TOTAL / 1e9:+.3f}")
                        for ns in saved
                    ),
                    Figure(f"{one:+.1f}"),
                    tables.MISSING if cycles is None else Figure(f"{cycles:+,.0f}"),
                ]
            )
            percents = (
                None if ns is None or not before else 100 * ns / before
                for ns, (before, _) in zip(saved, pairs, strict=True)
            )
            body.append(
                [
                    *(Figure(""), Figure(""), Figure("%")),
                    *(tables.MISSING if p is None else Figure(f"{p:+.1f}") for p in percents),
                    *(Figure(""), Figure("")),
                ]
            )
        sums += _together(found, six, words)
    if not body:
        return None
    return Block(
        "switch: what saving only what is in use saves",
        tables.layout(columns, body, width, keep=3),
        [
            f"Child's and parent's together, of elapsed time: {join(sums)} a round trip; the mail adds "
            "up 165 cycles (+5.8 %), of user+system. Both per cents are of what opt takes, as the mail reckons."
        ]
        if sums
        else [],
        [
            "s: of as many round trips; below it per cent of what saving always takes; one switch: of elapsed "
            "time. Below zero: it costs more than saving always. User and system are counted in ticks, "
            "and nothing here is the kernel's"
        ],
    )


def _together(found: Found, six: dict, words: str) -> list[str]:
    """The mail's fairer estimate: the child's and the parent's savings in one sum, of what is left. What it calls a
    switch is one of the parent's, a whole round trip."""
    pairs = [[six.get((method, who)) for who in ("child", "parent")] for method in (ALWAYS, IN_USE)]
    if any(cell is None for own in pairs for cell in own):
        return []
    before, after = (sum(cell["ns"]["median"] for cell in own) for own in pairs)
    one = (before - after) / 2
    cycles = found.clock.cycles(one)
    told = f"{one:+.1f} ns" if cycles is None else f"{cycles:+,.0f} cycles"
    return [f"{words} {told} ({(before / after - 1) * 100:+.1f} %)"]


def _copies(found: Found, width: int) -> Block | None:
    switched = found.cells(via="pipe", size=SEGMENT)
    alone = found.cells(via="alone", size=SEGMENT)
    bare = switched.get(NO_COPY)
    if bare is None:
        return None
    columns = [
        Column("copy", left=True),
        Column("two copies", "ns"),
        Column("round trip", "ns"),
        Column("more than\nwithout", "ns"),
        Column("of it the\nswitch's", "ns"),
    ]
    empty = alone.get(NO_COPY)
    body = []
    for name in (*COPIES, "libc", "wherry", NO_COPY):
        cell = switched.get(name)
        if cell is None:
            continue
        took = cell["ns"]["median"]
        more = took - bare["ns"]["median"]
        own = None
        if name in alone and empty:
            own = 2 * (alone[name]["ns"]["median"] - empty["ns"]["median"])
        body.append(
            [
                Figure(name),
                _label(own) if name != NO_COPY else tables.MISSING,
                _label(took),
                tables.MISSING if name == NO_COPY else Figure(f"{more:+.1f}"),
                tables.MISSING if name == NO_COPY or own is None else Figure(f"{more - own:+.1f}"),
            ]
        )
    floor = found.floor(via="pipe", partners="processes", place="same") * bare["ns"]["median"]
    return Block(
        f"switch: {SEGMENT} bytes copied by each side between the kernel's switches",
        tables.layout(columns, body, width),
        [],
        [
            "two copies: the same without a switch, one after the other; of it the switch's: what they "
            "cost beyond that, also since no copy overlaps with the next. Differences below "
            f"{ns_label(floor)} ns are noise"
        ],
    )


def _wide(found: Found, width: int) -> Block | None:
    clock, first = found.cells(via="clock"), found.cells(via="first")
    if "none" not in clock:
        return None
    columns = [
        Column("registers", left=True),
        Column("additions\nbeside it", "ns"),
        Column("", "%"),
        Column("first use", "ns"),
    ]
    base = clock["none"]["ns"]["median"]
    idle = first["none"]["ns"]["median"] if "none" in first else None
    body = []
    for live in ("none", *LIVE_WORDS):
        if live not in clock:
            continue
        took = clock[live]["ns"]["median"]
        own = first.get(live)
        body.append(
            [
                Figure(LIVE_WORDS.get(live, "none")),
                _label(took),
                Figure(f"{(took / base - 1) * 100:+.1f}" if live != "none" else "0"),
                tables.MISSING
                if own is None or idle is None or live == "none"
                else Figure(f"{own['ns']['median'] - idle:+.0f}"),
            ]
        )
    return Block(
        "switch: wide registers without any switch",
        tables.layout(columns, body, width),
        [],
        [
            "additions: 2048 that wait for each other, beside one multiplication in each register; a lower "
            "clock would show in them. First use: after a millisecond without, more than reading the clock takes"
        ],
    )
