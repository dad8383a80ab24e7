"""Richter's six rows of 1998 beside this machine's: the kernel's switches, and those between two stacks, where saving
always and saving what is in use can still be told apart."""

from __future__ import annotations

from wherry import history, tables
from wherry.clock import Clock
from wherry.switching.found import Found
from wherry.switching.words import ALWAYS, IN_USE, SEED_TOTAL
from wherry.then import sheet
from wherry.then.alone import of_table
from wherry.then.sheet import MISSING, Sheet, figures
from wherry.units import ns_label

LIVE = "x87"  # what the mail's program uses
WHO = ("no", "child", "parent")
_PIPE = {"via": "pipe", "partners": "processes", "place": "same", "live": LIVE, "size": 0}


def took(found: Found) -> dict[tuple[str, str], float]:
    """Nanoseconds of a round trip by (kind of switch, whose registers are in use)."""
    own = {}
    kernel = found.cells(**_PIPE)
    for who in WHO:
        if who in kernel:
            own["kernel", who] = kernel[who]["ns"]["median"]
    for (method, who), cell in found.six(LIVE).items():
        own[{ALWAYS: "noopt", IN_USE: "opt"}[method], who] = cell["ns"]["median"]
    return own


def sheets(run: dict, clock: Clock) -> list[Sheet]:
    now = took(Found(run))
    if not now:
        return []
    tables_then = history.tables("switch")
    table = next(t for t in tables_then if t.id == "ping-pong")
    then = {(r["kernel"], r["x87 used by"]): r for r in table.records()}
    beside = [_absolute(table, then, now), _comparable(table, then, now, clock)]
    return [*beside, *map(of_table, tables_then)]


def _absolute(table: history.Table, then, now) -> Sheet:
    columns = [
        tables.Column("x87 used by", left=True),
        tables.Column("then\nnoopt", "s"),
        tables.Column("then\nopt", "s"),
        tables.Column("now\nkernel", "s"),
        tables.Column("now, own\nnoopt", "s"),
        tables.Column("now, own\nopt", "s"),
    ]
    rows = []
    for who in WHO:
        line = [who]
        line += [f"{then[kind, who]['elapsed']:.2f}" for kind in ("noopt", "opt")]
        for kind in ("kernel", "noopt", "opt"):
            ns = now.get((kind, who))
            line.append(MISSING if ns is None else f"{ns * SEED_TOTAL / 1e9:.2f}")
        rows.append(line)
    return Sheet(
        f"switch, then and now: elapsed time of {SEED_TOTAL:,} round trips",
        columns,
        rows,
        notes=[
            f"{table.mail.in_words()}.",
            f"Machine: {table.machine.in_words()}.",
            "noopt: the state is saved at each switch; opt: only when somebody wants the unit. Today's kernels save at "
            "each switch; own: between two stacks of one thread, all registers or those in use.",
        ],
    )


def _saved(own, kind_a: tuple, kind_b: tuple, part: str | None) -> float | None:
    a, b = own.get(kind_a), own.get(kind_b)
    if a is None or b is None:
        return None
    if part:
        a, b = a[part], b[part]
    return 1 - b / a


def _comparable(table: history.Table, then, now, clock: Clock) -> Sheet:
    columns = [
        tables.Column("x87 used by", left=True),
        tables.Column("then\nopt saves", "%"),
        tables.Column("then, of\nuser+system", "%"),
        tables.Column("now, own\nopt saves", "%"),
        tables.Column("then\nnoopt", "cycles"),
        tables.Column("now\nkernel", "cycles"),
        tables.Column("now, own\nnoopt", "cycles"),
        tables.Column("now, own\nopt", "cycles"),
    ]
    rows = []
    for who in WHO:
        line = [who]
        for own, part in ((then, "elapsed"), (then, "user+system"), (now, None)):
            saved = _saved(own, ("noopt", who), ("opt", who), part)
            line.append(MISSING if saved is None else f"{saved * 100:+.1f}")
        elapsed = then["noopt", who]["elapsed"] / SEED_TOTAL * 1e9
        line.append(f"{elapsed * table.machine.ghz:,.0f}")
        for kind in ("kernel", "noopt", "opt"):
            cycles = clock.cycles(now.get((kind, who)))
            line.append(MISSING if cycles is None else f"{cycles:,.0f}")
        rows.append(line)
    return Sheet(
        "switch, what stays comparable: per cent of elapsed time saved, cycles of a round trip",
        columns,
        rows,
        [text for text in (_then(then), _now(then, now, table, clock)) if text],
        [f"Cycles then are of the stated clock; {clock.in_words()}."],
    )


def _then(then) -> str:
    saved, used = (
        {who: _saved(then, ("noopt", who), ("opt", who), part) * 100 for who in WHO}
        for part in ("elapsed", "user+system")
    )
    cycles = history.statement("richter-1998", "both-saved-cycles").value
    return (
        f"Then saving on demand saved {saved['no']:+.1f} % of the time when nobody used the unit, "
        f"{saved['child']:+.1f} % when the child did and "
        f"{saved['parent']:+.1f} % when the parent did. Of user and system time it was {used['no']:+.1f}, "
        f"{used['child']:+.1f} and {used['parent']:+.1f} %; the latter two together are "
        f"{cycles:.0f} cycles a round trip, he says."
    )


def _now(then, now, table: history.Table, clock: Clock) -> str:
    parts = []
    saved = {who: _saved(now, ("noopt", who), ("opt", who), None) for who in WHO}
    if None not in saved.values():
        parts.append(
            "Now, where the switch is ours, saving what is in use saves "
            f"{saved['no'] * 100:+.1f} % when nothing is, {saved['child'] * 100:+.1f} % when the child uses x87 "
            f"registers and {saved['parent'] * 100:+.1f} % when the parent does."
        )
    kernel = now.get(("kernel", "no"))
    if kernel:
        before = then["noopt", "no"]["elapsed"] / SEED_TOTAL * 1e9
        text = f"A round trip through the kernel takes {ns_label(kernel)} ns, {figures(before / kernel, 2)} times less"
        cycles = clock.cycles(kernel)
        if cycles is not None:
            text += f"; in cycles {sheet.count(before * table.machine.ghz)} then, {sheet.count(cycles)} now"
        parts.append(text + ".")
    return " ".join(parts)
