"""Anand's cycles for 1448 bytes of 2002 beside this machine's, and what a misaligned copy costs: then, as she and
Morton tell, and now, for every routine and state of the run."""

from __future__ import annotations

from statistics import median

from wherry import history, reading, sentences, tables
from wherry.clock import Clock
from wherry.experiments.alignment import state_name
from wherry.stats import LEAST_FLOOR
from wherry.then.sheet import MISSING, Sheet, count, figures, span
from wherry.units import ns_label, percent

State = tuple[str, str]
Medians = dict[bool, float]  # by whether both sides are multiples of 8
CACHED = ("L1", "L1")
# Pulavarty proposed MMX registers in place of integer ones, and both were looking into it when she wrote.
BESIDE = ("mmx_movq",)


def medians(run: dict, where: dict) -> dict[State, dict[str, Medians]]:
    """By state and routine: the medians over the aligned and over the misaligned pairs of offsets."""
    found: dict[State, dict[str, dict[bool, list[float]]]] = {}
    for cell in run["cells"]:
        if cell["experiment"] != "alignment" or cell["aa"] or cell["mode"] != "throughput":
            continue
        if any(cell.get(key) != value for key, value in where.items()) or "src_state" not in cell:
            continue
        aligned = cell["src_off"] % 8 == 0 and cell["dst_off"] % 8 == 0
        state = cell["src_state"], cell["dst_state"]
        own = found.setdefault(state, {}).setdefault(cell["routine"], {})
        own.setdefault(aligned, []).append(cell["ns"]["median"])
    return {
        state: {
            name: {aligned: median(values) for aligned, values in own.items()}
            for name, own in of.items()
        }
        for state, of in found.items()
    }


def sheets(run: dict, clock: Clock) -> list[Sheet]:
    (table,) = history.tables("alignment")
    now = medians(run, table.where)
    if not now:
        return []
    return [_cycles(table, now, clock), _costs(table, now, reading.floor(run, "alignment"))]


def _then(table: history.Table) -> dict[tuple[str, bool], float]:
    return {(r["routine"], r["aligned"]): r["time"] for r in table.records()}


def _cycles(table: history.Table, now: dict[State, dict[str, Medians]], clock: Clock) -> Sheet:
    known = clock.ghz is not None
    warm = now.get(CACHED, {})
    then = _then(table)
    words = {r["routine"]: r["method"] for r in table.records()}
    columns = [
        tables.Column("method", left=True),
        tables.Column("aligned", left=True),
        tables.Column("then", "cycles"),
        tables.Column("then", "B/cycle"),
        tables.Column("now", "ns"),
    ]
    if known:
        columns += [tables.Column("now", "cycles"), tables.Column("now", "B/cycle")]
    others = [name for name in warm if name not in words]
    rows = []
    for name in (*words, *others):
        for aligned in (True, False):
            cycles = then.get((name, aligned))
            ns = warm.get(name, {}).get(aligned)
            if cycles is None and ns is None:
                continue
            line = [
                f"{words[name]} ({name})" if name in words else name,
                "yes" if aligned else "no",
                count(cycles),
                figures(table.size / cycles if cycles else None),
                MISSING if ns is None else ns_label(ns),
            ]
            if known:
                line.append(count(clock.cycles(ns)))
                line.append(figures(table.size / clock.cycles(ns) if ns else None))
            rows.append(line)
    return Sheet(
        f"alignment, then and now: copy of {table.size} bytes, both sides cached now",
        columns,
        rows,
        notes=[
            f"{table.mail.in_words()}.",
            f"Machine: {table.machine.in_words()}. {table.method}",
            f"Aligned: both addresses multiples of 8; now medians over the pairs. {clock.in_words()[:1].upper()}"
            f"{clock.in_words()[1:]}. Whether the bytes were cached then is not told.",
        ],
    )


def _costs(table: history.Table, now: dict[State, dict[str, Medians]], floor: float) -> Sheet:
    then = _then(table)
    names = list(dict.fromkeys(name for of in now.values() for name in of))
    columns = [tables.Column("misaligned / aligned", left=True)]
    columns += [tables.Column(tables.stacked(name), "time") for name in names]
    old = then["rep_movsl", False] / then["rep_movsl", True]
    rows = [
        [
            f"then, {table.machine.cpu}",
            *(figures(old) if name == "rep_movsl" else MISSING for name in names),
        ]
    ]
    for state, of in now.items():
        line = [f"now, {state_name(state)}"]
        rows.append(line + [figures(_cost(of.get(name, {}))) for name in names])
    said = [_said_then(table, old), _said_now(now), _integers(table, now, floor), _mmx(now)]
    return Sheet(
        f"alignment, what stays comparable: time of a misaligned copy of {table.size} bytes over an aligned one",
        columns,
        rows,
        [text for text in said if text],
        [
            "The integer routine then was faster than movsl only where addresses are misaligned; aligned it is "
            "movsl itself, so its cost over movsl aligned is told in words."
        ],
    )


def _cost(own: Medians) -> float | None:
    return own[False] / own[True] if len(own) == 2 else None


def _said_then(table: history.Table, old: float) -> str:
    then = _then(table)
    integer = then["int_prefetch64_from", False]
    wrong = history.statement("anand-2002", "wrong-cost")
    mixed = history.statement("anand-2002", "mixed-gain")
    return (
        f"Then a misaligned movsl took {figures(old)} times as long as an aligned one, and integer registers "
        f"{figures(integer / then['rep_movsl', True])} times: {percent(1 - integer / then['rep_movsl', False])} "
        f"less than movsl. Morton remembers {wrong.value:g} % for the wrong copy, and gained {mixed.value:g} % "
        "over a mixed network load by choosing the right one."
    )


def _said_now(now: dict[State, dict[str, Medians]]) -> str:
    parts = []
    for name in ("rep_movsl", "libc", "wherry"):
        costs = [c for of in now.values() if (c := _cost(of.get(name, {})))]
        if costs:
            parts.append(f"{name} {span(costs, 3)}")
    if not parts:
        return ""
    states = f"over {len(now)} cache states" if len(now) > 1 else f"{state_name(next(iter(now)))}"
    return f"Now a misaligned copy takes, {states}, so many times as long as an aligned one: {sentences.join(parts)}."


def _integers(table: history.Table, now: dict[State, dict[str, Medians]], floor: float) -> str:
    warm = now.get(CACHED, {})
    pair = [warm.get(name, {}).get(False) for name in ("int_prefetch64_from", "rep_movsl")]
    if None in pair:
        return ""
    ratio = pair[0] / pair[1]
    then = _then(table)
    old = then["int_prefetch64_from", False] / then["rep_movsl", False]
    least = 1 + max(floor, LEAST_FLOOR)
    verdict = "would make no difference now that can be told"
    if not 1 / least <= ratio <= least:
        verdict = "would still help" if ratio < 1 else "would do harm now"
    return (
        f"Her patch, integer registers where addresses are misaligned, {verdict}: cached and misaligned it takes "
        f"{figures(ratio)} times as long as movsl, {figures(old)} times then."
    )


def _mmx(now: dict[State, dict[str, Medians]]) -> str:
    warm = now.get(CACHED, {})
    mmx, *others = (
        warm.get(name, {}).get(False) for name in (*BESIDE, "rep_movsl", "int_prefetch64_from")
    )
    if None in (mmx, *others):
        return ""
    movsl, integer = others
    return (
        f"MMX registers, which Pulavarty proposed and of which no figure was mailed, now take {figures(mmx / movsl)} "
        f"times as long as movsl there, and {figures(mmx / integer)} times as long as integer registers."
    )
