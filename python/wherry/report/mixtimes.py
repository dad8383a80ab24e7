"""What the calls of a recorded mix took inside the program, and what was tried, as tables of its page."""

from __future__ import annotations

from collections.abc import Mapping

from wherry.recording import trial, turns
from wherry.recordings import Recording
from wherry.report import hypertext
from wherry.units import ns_label, percent, size_label

# Of a class with fewer there is nothing to tell.
LEAST_CALLS = 8
# Of smaller calls bytes are no measure.
LEAST_BYTES = 64


def sizes(least: int, greatest: int) -> str:
    """The second number is the next class's first."""
    return (
        size_label(least)
        if least == greatest
        else f"{size_label(least)}–{size_label(greatest + 1)}"
    )


def _ns(ns: float) -> str:
    """Seven digits in a row are not read."""
    return ns_label(ns) if ns < 9999.5 else f"{ns:,.0f}"


def _where(places: list[int]) -> list[str]:
    """Shares of calls whose source was near, in the last cache, in memory; then the destination's."""
    whole = sum(places)
    if not whole:
        return [""] * 6
    sources = [sum(places[3 * i : 3 * i + 3]) for i in range(3)]
    destinations = [sum(places[i::3]) for i in range(3)]
    return [percent(count / whole) for count in (*sources, *destinations)]


def _faults(each: float) -> str:
    """Page faults a call, as a person writes such a number."""
    if not each:
        return ""
    return "<0.001" if each < 0.001 else f"{each:.0f}" if each >= 100 else f"{each:.2g}"


def taken(recording: Recording) -> str:
    """By class of sizes: how long calls took, and where their data lay."""
    rows = []
    for op in recording.ops:
        for least, greatest, calls, total, ns, added, faults, _, _, places in recording.times(op):
            if calls < LEAST_CALLS:
                continue
            where = _where(places)
            if op == "set":
                where[:3] = ["", "", ""]
            rows.append(
                [
                    op,
                    sizes(least, greatest),
                    f"{calls:,}",
                    _ns((ns - added) / calls),
                    f"{total / (ns - added):.3g}" if ns > added and least >= LEAST_BYTES else "",
                    _faults(faults / calls),
                    *where,
                ]
            )
    if not rows:
        return ""
    heads = ["op", "bytes", "timed", "ns a call", "GB/s", "page faults a call"]
    heads += [
        f"{side} {place}"
        for side in ("source", "destination")
        for place in ("near", "in L3", "in memory")
    ]
    note = (
        "What libc's calls took inside the program, without what timing adds and without page faults. Near: in the "
        "first two caches."
    )
    # Where nothing was looked at, or all were sets, there is nothing to tell.
    told = [i for i in range(len(heads)) if any(row[i] for row in rows)]
    rows = [[row[i] for i in told] for row in rows]
    table = hypertext.table([heads[i] for i in told], rows, "What calls took")
    return f"<h2>What calls took</h2>{hypertext.paragraph(note, 'note')}{table}"


def tried(document: Mapping) -> str:
    """By class of sizes: libc's routines and the drop-in's, which had their turns."""
    rows = []
    for op, classes in (document.get("trial") or {}).get("ops", {}).items():
        for least, greatest, calls, ns, other_calls, other_ns in classes:
            usual, other = sum(calls), sum(other_calls)
            if greatest <= trial.FROM or min(usual, other) < trial.LEAST_CALLS:
                continue
            one, two = sum(ns) / usual, sum(other_ns) / other
            rows.append(
                [
                    op,
                    sizes(least, greatest),
                    f"{usual:,}",
                    f"{other:,}",
                    _ns(one),
                    _ns(two),
                    f"{two / one:.2f}" if one else "",
                ]
            )
    said = []
    if document.get("ceiling"):
        said = [turns.in_words(document), trial.in_words(document) if rows else None]
    summed = "".join(hypertext.paragraph(f"Trial: {own}.") for own in said if own)
    if not rows:
        return f"<h2>What was tried</h2>{summed}" if summed else ""
    whom = trial.whom(document)
    heads = [
        "op",
        "bytes",
        "libc's calls",
        f"those of {whom}",
        "libc, ns",
        f"{whom}, ns",
        f"{whom} over libc",
    ]
    note = (
        f"Calls of the program went to libc's routines and to those of {whom} by turns; "
        "page faults are in the times."
    )
    return (
        f"<h2>What was tried</h2>{summed}{hypertext.paragraph(note, 'note')}"
        f"{hypertext.table(heads, rows, 'What was tried')}"
    )
