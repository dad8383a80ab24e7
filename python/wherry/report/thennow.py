"""Then and now: what a seed's routines gained over the stock routine of their time, beside what they gain here."""

from __future__ import annotations

import re
from dataclasses import replace

from wherry import dimensions
from wherry.report import look
from wherry.report.curves import decades
from wherry.report.picture import FORMAT, Layout, Picture, View, column_table
from wherry.then.points import Point, points

BAR = 18
_SIZE = re.compile(r"\d+[KMG]?")


def pictures(run: dict, experiment: str) -> list[Picture]:
    panels: dict[str, list[Point]] = {}
    for point in points(run, experiment):
        panels.setdefault(point.panel, []).append(point)
    return [_picture(panel, own) for panel, own in panels.items()]


def _picture(panel: str, own: list[Point]) -> Picture:
    # A line is too low for a label of two, into which a narrow page breaks those with a comma.
    own = [replace(point, place=point.place.replace(", ", " ")) for point in own]
    places = list(dict.fromkeys(point.place for point in own))
    series = list(dict.fromkeys(dimensions.clean(point.series) for point in own))
    rows = [
        {
            "place": point.place,
            "series": dimensions.clean(point.series),
            "speed": dimensions.number(point.speed),
            "what": point.what,
        }
        for point in own
    ]
    found = [row["speed"] for row in rows]
    colour, _, shape = look.encodings(series, "series")
    axis = {"title": "speed over the stock routine (right of 1: faster)", "format": FORMAT}
    value = {
        "field": "speed",
        "type": "quantitative",
        "scale": {"type": "log", "nice": False, "padding": 14},
        "axis": axis | {"values": decades(min(found), max(found))},
    }
    place = {
        "field": "place",
        "type": "nominal",
        "sort": places,
        "axis": {"title": "bytes" if all(map(_SIZE.fullmatch, places)) else None, "grid": True},
    }
    one = {
        "data": {"values": [{"one": 1}]},
        "mark": {"type": "rule", "strokeDash": [3, 3]},
        "encoding": {"x": {"datum": 1, "type": "quantitative"}},
    }
    dots = {
        "mark": {
            "type": "point",
            "filled": True,
            "size": 62,
            "opacity": 0.95,
            "tooltip": {"content": "data"},
        },
        "encoding": {"y": place, "x": value, "color": colour, "shape": shape},
    }
    spec = {
        "transform": [{"filter": "indexof(shown, datum.series) >= 0"}],
        "height": {"step": BAR},
        "layer": [one, dots],
    }
    return Picture(
        key=f"then {panel}",
        title=f"Then and now: {panel}",
        how="Absolute figures of other years say little; the ratio to the stock routine of the same table can be "
        "compared.",
        alt=f"Speed over the stock routine of {', '.join(series)}, {len(places)} cases.",
        columns=column_table(rows, ["place", "series", "speed", "what"]),
        views=[View("speed over the stock routine", spec)],
        series=series,
        tips=[
            ("series", "", "text"),
            ("place", "", "text"),
            ("what", "what", "text"),
            ("speed", "times as fast", "ratio"),
        ],
        layout=Layout(1, most=1000, left=70 + 5 * max(map(len, places))),
        own_look=True,
    )
