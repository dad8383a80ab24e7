"""Bars with intervals, for what lies on no axis: mixes of sizes, single sizes, contents. A few routines stand side by
side for each row; many get a panel for each row, sorted by their figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wherry import dimensions
from wherry.report import counted, look
from wherry.report.curves import decades
from wherry.report.picture import (
    RATE,
    RATIO,
    TIME,
    TIPS,
    Layout,
    Picture,
    View,
    axis_of,
    column_table,
    figures,
)
from wherry.row import RATELESS
from wherry.yardsticks import YARDSTICKS

# More routines than this do not fit side by side.
SIDE_BY_SIDE = 9
BAR = 13
# Where one bar is so many times as long as another, a linear axis shows the long one alone.
MANY_TIMES = 40
# Of a mean size, from which on bytes a second say more than nanoseconds.
LARGE = 1 << 16
_FIELDS = {
    TIME: ("ns", "q25", "q75"),
    RATE: ("rate", "rate75", "rate25"),
    RATIO: ("ratio", "low", "high"),
}


def picture(rows: Sequence[dict], cells: Mapping[int, Mapping[str, dict]]) -> Picture:
    differ = dimensions.varying(rows)
    ordered = sorted(
        rows, key=lambda row: (row.get("walk") != "stream", dimensions.state_order(row))
    )
    if "mix" in rows[0]:
        ordered = list(rows)
    points, labels, sizes, rate = [], [], [], counted.rate(rows)
    left_out = ""
    for row in ordered:
        name = dimensions.label(row, differ)
        while name in labels:
            name += " again"
        labels.append(name)
        for routine, cell in cells.get(row["row"], {}).items():
            if routine == counted.nothing(row):
                left_out = (
                    f" {routine}, which does nothing, took no time to speak of and is not drawn."
                )
                continue
            found = figures(cell, routine not in YARDSTICKS, rate)
            sizes.append(dimensions.number(cell["bytes"]) or 0)
            for key, time in (("rate25", found["q75"]), ("rate75", found["q25"])):
                known = found["rate"] and time
                found[key] = found["rate"] * found["ns"] / time if known else None
            points.append({"row": name, "routine": dimensions.clean(routine)} | found)
    series = dimensions.in_order(p["routine"] for p in points)
    keys = ["row", "routine", "ns", "q25", "q75", "rate", "rate25", "rate75"]
    keys += ["ratio", "low", "high", "rounds"]
    large = all(size >= LARGE for size in sizes)
    quantities = [RATE, TIME, RATIO] if large else [TIME, RATE, RATIO]
    panels = len(series) > SIDE_BY_SIDE
    make = _panels if panels else _side_by_side
    longest = max(map(len, series if panels else labels))
    common = dimensions.common(rows)
    ratios = [p[k] for p in points for k in ("ratio", "low", "high") if p[k]]
    marks = decades(min(ratios), max(ratios)) if ratios else []
    # Each panel has an axis of its own; the parts of a program's time add up.
    linear = panels or rows[0]["experiment"] == "ab"
    ends = {} if linear else {quantity: _ends(points, quantity) for quantity in (TIME, RATE)}
    views = [make(quantity, labels, series, marks, ends.get(quantity)) for quantity in quantities]
    if not any(p["ratio"] for p in points):
        views = [view for view in views if view.name != RATIO]
    # Of calls that wait for each other a rate says nothing.
    if not any(p["rate"] for p in points) or any(row.get("mode") in RATELESS for row in rows):
        views = [view for view in views if view.name != RATE]
    return Picture(
        key=f"bars {common}",
        title=("By mix: " if "mix" in rows[0] else "Case by case: ") + common,
        how=_how(any(ends.values())) + left_out,
        alt=f"Bars of {', '.join(series)} for {', '.join(labels)}.",
        columns={
            k: v for k, v in column_table(points, keys).items() if any(x is not None for x in v)
        },
        views=views,
        series=series,
        tips=[("routine", "", "text"), ("row", "", "text"), *TIPS],
        layout=Layout(
            len(labels) if panels else 1,
            least=170,
            most=340 if panels else 1100,
            left=min(30 + 7 * longest, 400),
            across=3,
        ),
    )


def _ends(points: Sequence[dict], quantity: str) -> tuple[float, float] | None:
    """Of a logarithmic axis; None where a linear one shows all bars."""
    field, *quartiles = _FIELDS[quantity]
    medians = [p[field] for p in points if p[field] and p[field] > 0]
    if not medians or max(medians) < MANY_TIMES * min(medians):
        return None
    return min(medians) / 2, 1.05 * max(p[k] for p in points for k in (field, *quartiles) if p[k])


def _how(logarithmic: bool) -> str:
    said = (
        "The bar is the median, the line across its end the middle half of the rounds; of the ratio, the 95 % "
        "interval."
    )
    if not logarithmic:
        return said
    return (
        f"{said} Where they differ much the axis is logarithmic and a point is the median: there the length of a bar "
        "would say nothing."
    )


def _value(field: str, quantity: str, marks: list, ends: tuple[float, float] | None) -> dict:
    ticks = {"tickCount": 5}
    if quantity == RATIO:
        scale, ticks = {"type": "log", "nice": False, "padding": 14}, {"values": marks}
    elif ends:
        scale = {"type": "log", "nice": False, "domain": list(ends), "clamp": True}
        ticks = {"values": [mark for mark in decades(*ends) if ends[0] <= mark <= ends[1]]}
    else:
        scale = {"zero": True}
    return {
        "field": field,
        "type": "quantitative",
        "scale": scale,
        "axis": axis_of(quantity) | ticks | {"grid": True},
    }


def _layers(
    quantity: str,
    place: dict,
    colour: dict,
    shape: dict,
    marks: list,
    ends: tuple[float, float] | None,
) -> list[dict]:
    value, low, high = _FIELDS[quantity]
    x = _value(value, quantity, marks, ends)
    interval = {
        "transform": [{"filter": f"isValid(datum.{low}) && isValid(datum.{high})"}],
        "mark": {
            "type": "rule",
            "strokeWidth": 1.8,
            "color": "#8c8c8c",
            "tooltip": {"content": "data"},
        },
        "encoding": place | {"x": _value(low, quantity, marks, ends), "x2": {"field": high}},
    }
    if quantity == RATIO or ends:
        one = {
            "data": {"values": [{"one": 1}]},
            "mark": {"type": "rule", "strokeWidth": 1, "strokeDash": [3, 3]},
            "encoding": {"x": {"datum": 1, "type": "quantitative"}},
        }
        interval["encoding"] |= {"color": colour}
        point = {
            "mark": {
                "type": "point",
                "filled": True,
                "size": 55,
                "opacity": 1,
                "tooltip": {"content": "data"},
            },
            "encoding": place | {"x": x, "color": colour, "shape": shape},
        }
        return [one, interval, point] if quantity == RATIO else [interval, point]
    bar = {
        "mark": {"type": "bar", "tooltip": {"content": "data"}},
        "encoding": place | {"x": x, "color": colour},
    }
    return [bar, interval]


def _shown(quantity: str) -> list[dict]:
    field = _FIELDS[quantity][0]
    return [
        {"filter": "indexof(shown, datum.routine) >= 0"},
        {"filter": f"isValid(datum.{field}) && datum.{field} > 0"},
    ]


def _side_by_side(
    quantity: str,
    labels: Sequence[str],
    series: Sequence[str],
    marks: list,
    ends: tuple[float, float] | None,
) -> View:
    colour, _, shape = look.encodings(series)
    place = {
        "y": {
            "field": "row",
            "type": "nominal",
            "sort": list(labels),
            "scale": {"paddingInner": 0.25},
            "axis": {"title": None, "labelFontSize": 12, "grid": False},
        },
        "yOffset": {"field": "routine", "type": "nominal", "sort": list(series)},
    }
    return View(
        quantity,
        {
            "transform": _shown(quantity),
            "height": {"step": BAR},
            "layer": _layers(quantity, place, colour, shape, marks, ends),
        },
    )


def _panels(
    quantity: str,
    labels: Sequence[str],
    series: Sequence[str],
    marks: list,
    ends: tuple[float, float] | None,
) -> View:
    colour, _, shape = look.encodings(series)
    place = {
        "y": {
            "field": "routine",
            "type": "nominal",
            "sort": list(series),
            "axis": {"title": None, "labelLimit": 180, "grid": False},
        }
    }
    spec = {
        "transform": _shown(quantity),
        "facet": {
            "field": "row",
            "type": "nominal",
            "title": None,
            "sort": list(labels),
            "header": {"labelLimit": 260},
        },
        "spec": {
            "height": {"step": BAR + 3},
            "layer": _layers(quantity, place, colour, shape, marks, ends),
        },
        "resolve": {"scale": {"x": "independent"}},
    }
    if len(labels) == 1:
        spec = {"transform": spec["transform"], **spec["spec"]}
    return View(quantity, spec)
