"""Pictures of systems: what is timed there is no call but a round trip, a message or a block, and is called so."""

from __future__ import annotations

from collections.abc import Sequence

from wherry.dimensions import AXES
from wherry.report.picture import RATE, TIME, Picture, Rate, bytes_a_nanosecond
from wherry.switching.words import NO_COPY

ROUND_TRIP = "round trip"
LOAD = "load"
# By op; where a part of it does something else, by the word `via` too.
_WHAT = {
    "switch": ROUND_TRIP,
    ("switch", "alone"): "copy",
    ("switch", "clock"): "2048 additions",
    ("switch", "first"): "first use",
    "network": "message",
    ("network", "rings"): "frame",
    "stripes": "block",
    "chase": LOAD,
    "loaded": LOAD,
}
# What a rate is where it is not told in bytes, as in the tables: its unit, of what page.js writes, and how it comes.
_RATES: dict[str, tuple[str, str, Rate]] = {
    "message": ("10^6 bit/s", "bitrate", lambda size, ns: 8000 * size / ns),
    "frame": ("Mpps", "packetrate", lambda size, ns: 1000 / ns),
}
# Rows that take no time to speak of, so that only their difference from others says something: nothing that a bar or a
# point on a logarithmic axis could show.
_NOTHING = {("switch", "alone"): NO_COPY}


def nothing(row: dict) -> str:
    """The routine of this row that does nothing; empty where there is none."""
    return _NOTHING.get((row["op"], row.get("via")), "")


def rate(rows: Sequence[dict]) -> Rate:
    """How the rate of these rows comes from bytes and nanoseconds."""
    return _RATES.get(what(rows), ("", "", bytes_a_nanosecond))[2]


def what(rows: Sequence[dict]) -> str:
    """What the times of these rows are of, where that is no call; empty where it is one, or they differ."""
    found = {_WHAT.get((row["op"], row.get("via"))) or _WHAT.get(row["op"], "") for row in rows}
    return found.pop() if len(found) == 1 else ""


def renamed(picture: Picture, rows: Sequence[dict]) -> Picture:
    """The same picture, with the name of what was counted in the place of calls."""
    own = what(rows)
    if not own:
        return picture
    size = "working set, bytes" if own == LOAD else f"size of one {own}, bytes"
    words = {TIME: f"time per {own}", AXES["size"]: size}
    if own in _RATES:
        words[RATE], kind, _ = _RATES[own]
        picture.tips = [(key, name, kind if of == "rate" else of) for key, name, of in picture.tips]
    if own == LOAD:
        picture.title = picture.title.replace("By size", "By working set")
    if own == ROUND_TRIP:
        # Of a switch with a copy on each side a rate says nothing.
        picture.views = [view for view in picture.views if view.name != RATE]
    for view in picture.views:
        view.name = words.get(view.name, view.name)
        _rename(view.spec, words)
    for old, new in words.items():
        picture.alt = picture.alt.replace(old, new)
    return picture


def _rename(part: object, words: dict[str, str]) -> None:
    if isinstance(part, list):
        for item in part:
            _rename(item, words)
    if not isinstance(part, dict):
        return
    if isinstance(part.get("title"), str):
        part["title"] = words.get(part["title"], part["title"])
    for key, value in part.items():
        if key != "data":
            _rename(value, words)
