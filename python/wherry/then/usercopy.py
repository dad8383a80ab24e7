"""Anand's cycles for 1448 bytes of 2002, which she timed in the kernel's copy to user space, beside what one such copy
of the running kernel takes as it is seen from user space."""

from __future__ import annotations

from wherry import history, sentences, tables
from wherry.clock import Clock
from wherry.experiments.usercopy import (
    ALIGNED,
    MISALIGNED,
    PATHS,
    SEGMENT,
    USER,
    Copy,
    Found,
    found_in,
    how_told,
    one_copy,
)
from wherry.then.alone import alone
from wherry.then.sheet import MISSING, Sheet, count, figures, span

_SIDES = (ALIGNED, MISALIGNED)


def sheets(run: dict, clock: Clock) -> list[Sheet]:
    """Empty when the run did not measure what she did."""
    found = found_in(run)
    if not any((side, SEGMENT) in found for side in _SIDES):
        return []
    (table,) = history.tables("alignment")
    floor = next((e["noise_floor"] for e in run["experiments"] if e["name"] == "usercopy"), None)
    return [_cycles(table, found, floor or 0.0, clock), *alone("usercopy")]


Pair = tuple[Copy | None, Copy | None]  # aligned, misaligned


def _copies(found: Found, name: str, floor: float) -> Pair:
    aligned, misaligned = (one_copy(found, side, name, floor) for side in _SIDES)
    return aligned, misaligned


def _told(own: Copy | None) -> float | None:
    return own.ns if own is not None and own.told else None


def _ratio(pair: Pair) -> float | None:
    aligned, misaligned = pair
    sure = aligned is not None and misaligned is not None and aligned.sure and misaligned.sure
    return misaligned.ns / aligned.ns if sure else None


def _cycles(table: history.Table, found: Found, floor: float, clock: Clock) -> Sheet:
    columns = [tables.Column("one copy", left=True)]
    for side in ("aligned", "misaligned"):
        columns += [tables.Column(side, unit) for unit in ("ns", "cycles", "B/cycle")]
    columns.append(tables.Column("misaligned / aligned", "time"))

    def line(
        name: str, times: list[str], cycles: list[float | None], ratio: float | None
    ) -> list[str]:
        words = [name]
        for ns, own in zip(times, cycles, strict=True):
            words += [ns, count(own), figures(SEGMENT / own if own else None)]
        return [*words, figures(ratio)]

    then = {(r["method"], r["aligned"]): r["time"] for r in table.records()}
    rows = []
    for method in dict.fromkeys(method for method, _ in then):
        cycles = [then.get((method, aligned)) for aligned in (True, False)]
        ratio = cycles[1] / cycles[0] if all(cycles) else None
        rows.append(line(f"then, {method}", [MISSING, MISSING], cycles, ratio))
    now = {name: _copies(found, name, floor) for name in (*PATHS, *USER)}
    for name, pair in now.items():
        if any(own is not None for own in pair):
            times = [MISSING if own is None else own.in_words() for own in pair]
            cycles = [clock.cycles(_told(own)) for own in pair]
            rows.append(line(f"now, {name}", times, cycles, _ratio(pair)))
    return Sheet(
        f"usercopy, then and now: the kernel's copy of {SEGMENT} bytes, the data of one packet",
        columns,
        rows,
        [text for text in (_said_then(then), _said_now(now, clock, then)) if text],
        [
            f"{table.mail.in_words()}.",
            f"Machine: {table.machine.in_words()}. {table.method}",
            f"Now: {how_told(found)}. libc, wherry, nofault: copies within user space. "
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
        took = f"{span(list(ratios.values()), 3)} times as long misaligned"
        parts.append(
            f"Now the kernel's copies take {took}, {worst} most."
            if len(ratios) > 1
            else f"Now only the copy of {worst} is known well enough to tell: it takes {took}."
        )
    told = [ns for name in PATHS if (ns := _told(now[name][0]))]
    if told and clock.ghz is not None:
        fewer = [then["movsl", True] / clock.cycles(ns) for ns in told]
        parts.append(
            f"One aligned copy takes {span(fewer)} times fewer cycles than her {then['movsl', True]:,.0f}."
        )
    hidden = [name for name in PATHS if now[name][0] is not None and not now[name][0].told]
    if hidden:
        # Where not even copies without the kernel can be told, it is not the kernel that hides them.
        told = all(now[name][0] is None or now[name][0].told for name in USER)
        what = "the way through the kernel" if told else "noise"
        parts.append(f"In {sentences.join(hidden)} {what} hides the copy.")
    return " ".join(parts)
