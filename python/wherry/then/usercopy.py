"""Anand's cycles for 1448 bytes of 2002, which she timed in the kernel's copy to user space, beside what one such copy of
the running kernel takes as it is seen from user space."""

from __future__ import annotations

from wherry import history, sentences, tables
from wherry.experiments.usercopy import (
    ALIGNED,
    CLEAR,
    MISALIGNED,
    PATHS,
    SEGMENT,
    USER,
    Found,
    found_in,
    one_copy,
)
from wherry.then.alone import alone
from wherry.then.clock import Clock
from wherry.then.sheet import MISSING, Sheet, count, figures, span
from wherry.units import ns_label

_SIDES = (ALIGNED, MISALIGNED)


def sheets(run: dict, clock: Clock) -> list[Sheet]:
    """Empty when the run did not measure what she did."""
    found = found_in(run)
    if not any((side, SEGMENT) in found for side in _SIDES):
        return []
    (table,) = history.tables("alignment")
    floor = next(
        (e["noise_floor"] for e in run["experiments"] if e["name"] == "usercopy"), None
    )
    return [_cycles(table, found, floor or 0.0, clock), *alone("usercopy")]


def _copies(found: Found, name: str, floor: float) -> tuple[float | None, float | None]:
    aligned, misaligned = (one_copy(found, side, name, floor) for side in _SIDES)
    return aligned, misaligned


def _ratio(pair: tuple[float | None, float | None]) -> float | None:
    aligned, misaligned = pair
    return misaligned / aligned if aligned and misaligned else None


def _cycles(table: history.Table, found: Found, floor: float, clock: Clock) -> Sheet:
    columns = [tables.Column("one copy", left=True)]
    for side in ("aligned", "misaligned"):
        columns += [tables.Column(side, unit) for unit in ("ns", "cycles", "B/cycle")]
    columns.append(tables.Column("misaligned / aligned", "time"))

    def line(name: str, pair: tuple, then: bool) -> list[str]:
        words = [name]
        for own in pair:
            cycles = own if then else clock.cycles(own) if own else None
            words.append(MISSING if then or own is None else ns_label(own) if own else "noise")
            words += [count(cycles), figures(SEGMENT / cycles if cycles else None)]
        return [*words, figures(_ratio(pair))]

    then = {(r["method"], r["aligned"]): r["time"] for r in table.records()}
    rows = [
        line(f"then, {method}", (then.get((method, True)), then.get((method, False))), True)
        for method in dict.fromkeys(method for method, _ in then)
    ]
    now = {name: _copies(found, name, floor) for name in (*PATHS, *USER)}
    rows += [
        line(f"now, {name}", pair, False)
        for name, pair in now.items()
        if any(own is not None for own in pair)
    ]
    return Sheet(
        f"usercopy, then and now: the kernel's copy of {SEGMENT} bytes, the data of one packet",
        columns,
        rows,
        [text for text in (_said_then(then), _said_now(now, clock, then)) if text],
        [
            f"{table.mail.in_words()}.",
            f"Machine: {table.machine.in_words()}. {table.method}",
            f"Now: a call less the same call with 1 byte, over its copies; noise: less than {CLEAR} times what the call "
            "differs from itself. libc, wherry, nofault: copies within user space. "
            f"{clock.in_words()[:1].upper()}{clock.in_words()[1:]}.",
        ],
    )


def _said_then(then: dict) -> str:
    movsl, integer = "movsl", "integer"
    return (
        f"Then the kernel's movsl took {figures(then[movsl, False] / then[movsl, True])} times as long misaligned, and "
        f"integer registers {figures(then[integer, False] / then[movsl, True])} times."
    )


def _said_now(now: dict, clock: Clock, then: dict) -> str:
    parts = []
    ratios = {name: own for name in PATHS if (own := _ratio(now[name]))}
    if ratios:
        worst = max(ratios, key=ratios.get)
        parts.append(
            f"Now the kernel's copies take {span(list(ratios.values()), 3)} times as long misaligned, {worst} most."
        )
    told = {name: pair[0] for name, pair in now.items() if name in PATHS and pair[0]}
    if told and clock.ghz is not None:
        fewer = [then["movsl", True] / clock.cycles(ns) for ns in told.values()]
        parts.append(
            f"One aligned copy takes {span(fewer)} times fewer cycles than her {then['movsl', True]:,.0f}."
        )
    hidden = [name for name in PATHS if now[name][0] == 0.0]
    if hidden:
        parts.append(
            f"In {sentences.join(hidden)} what the way through the kernel differs by is more than the copy."
        )
    return " ".join(parts)
