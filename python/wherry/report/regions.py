"""The scoreboard as pictures: Wherry's time over the best peer's and over libc's, region by region, with intervals; and
everybody's figure over the best."""

from __future__ import annotations

from collections.abc import Sequence

from wherry import dimensions
from wherry.dimensions import number
from wherry.report import look
from wherry.report.curves import decades
from wherry.report.picture import FORMAT, Layout, Picture, View, column_table
from wherry.units import ns_label, percent

BAR = 18
BEST, LIBC = "over the best peer's", "over libc's"
_FUNCTIONS = {"copy": "memcpy", "move": "memmove", "set": "memset"}


def pictures(score: dict) -> list[Picture]:
    found = []
    for own in score["ops"]:
        function = _FUNCTIONS.get(own["op"], own["op"])
        if own["regions"]:
            found.append(_ratios(own, score, function))
            found.append(_figures(own, score, function))
    return found


def _written(value: float | None, region: dict) -> str | None:
    if value is None:
        return None
    return f"{value:.4g} GB/s" if region["rate"] else f"{ns_label(value)} ns"


def _ratios(own: dict, score: dict, function: str) -> Picture:
    points, names = [], []
    for region in own["regions"]:
        name = dimensions.clean(region["name"])
        names.append(name)
        limit = region["limit"] or {}
        for against, key, peer in ((BEST, "to_best", region["best"]), (LIBC, "to_libc", "libc")):
            ratio = region[key]
            if not ratio:
                continue
            points.append(
                {
                    "region": name,
                    "against": against,
                    "peer": dimensions.clean(peer),
                    "ratio": number(ratio["median"]),
                    "low": number(ratio["low"]),
                    "high": number(ratio["high"]),
                    "verdict": region["verdict"] if against == BEST else None,
                    "wherry": _written(number(region["figures"].get(score["wherry"])), region),
                    "theirs": _written(number(region["figures"].get(peer)), region),
                    "limit": _written(number(limit.get("figure")), region),
                    "about": dimensions.clean(region["about"], 120),
                }
            )
    keys = ["region", "against", "peer", "ratio", "low", "high", "verdict", "wherry", "theirs"]
    place = {
        "y": {
            "field": "region",
            "type": "nominal",
            "sort": names,
            "axis": {"title": None, "grid": True, "labelLimit": 150},
        },
        "yOffset": {"field": "against", "type": "nominal", "sort": [BEST, LIBC]},
    }
    colour, _, shape = look.encodings([BEST, LIBC], "against")

    found = [p[key] for p in points for key in ("ratio", "low", "high") if p[key]]
    marks = decades(min(found), max(found)) if found else []

    def x(of: str) -> dict:
        return {
            "field": of,
            "type": "quantitative",
            "scale": {"type": "log", "nice": False, "padding": 10},
            "axis": {
                "title": "Wherry's time over theirs",
                "format": FORMAT,
                "values": marks,
            },
        }

    floor = number(score["floor"]) or 0
    held = f", held to {dimensions.clean(score['isa'])}," if score.get("isa") else ""
    band = {
        "data": {"values": [{"from": 1 / (1 + floor), "to": 1 + floor}]},
        "mark": {"type": "rect", "opacity": 0.18, "color": "#888888"},
        "encoding": {
            "x": {"field": "from", "type": "quantitative"},
            "x2": {"field": "to"},
        },
    }
    one = {
        "data": {"values": [{"one": 1}]},
        "mark": {"type": "rule", "strokeDash": [3, 3]},
        "encoding": {"x": {"datum": 1, "type": "quantitative"}},
    }
    tooltip = {"content": "data"}
    layers = [
        band,
        one,
        {
            "transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}],
            "mark": {"type": "rule", "strokeWidth": 1.6, "tooltip": tooltip},
            "encoding": place | {"x": x("low"), "x2": {"field": "high"}, "color": colour},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1, "tooltip": tooltip},
            "encoding": place | {"x": x("ratio"), "color": colour, "shape": shape},
        },
    ]
    spec = {
        "transform": [{"filter": "indexof(shown, datum.against) >= 0 && isValid(datum.ratio)"}],
        "height": {"step": BAR / 2},
        "layer": layers,
    }
    return Picture(
        key=f"ratios {function}",
        title=f"{function}: Wherry's time{held} over the best peer's and over libc's",
        how="Left of 1 Wherry is faster. Lines are 95 % intervals; the grey band is the noise floor of a region "
        f"({percent(floor)}), within which all are ties.",
        alt=f"Ratios of Wherry's time by region of {function}, {len(names)} regions.",
        columns=column_table(points, [*keys, "limit", "about"]),
        views=[View("ratio", spec)],
        series=[BEST, LIBC],
        tips=[
            ("region", "", "text"),
            ("about", "", "text"),
            ("ratio", "Wherry's time over theirs", "ratio"),
            ("low high", "95 % interval", "ratio range"),
            ("peer", "whose", "text"),
            ("wherry", "Wherry", "text"),
            ("theirs", "theirs", "text"),
            ("limit", "limit of the machine", "text"),
            ("verdict", "verdict", "text"),
        ],
        layout=Layout(1, most=1000, left=120),
        own_look=True,
    )


def _figures(own: dict, score: dict, function: str) -> Picture:
    """Everybody's time over the best of the region; the limit is a yardstick."""
    points, names = [], []
    everybody = dimensions.in_order(name for region in own["regions"] for name in region["figures"])
    for region in own["regions"]:
        figures = {
            name: number(region["figures"][name]) for name in everybody if name in region["figures"]
        }
        figures = {name: value for name, value in figures.items() if value}
        if not figures:
            continue
        best = max(figures.values()) if region["rate"] else min(figures.values())
        limit = number((region["limit"] or {}).get("figure"))
        names.append(dimensions.clean(region["name"]))
        for name, value in [*figures.items(), *([("limit", limit)] if limit else [])]:
            points.append(
                {
                    "region": names[-1],
                    "routine": dimensions.clean(name),
                    "over": best / value if region["rate"] else value / best,
                    "figure": _written(value, region),
                }
            )
    series = dimensions.in_order(p["routine"] for p in points)
    over = [p["over"] for p in points]
    marks = decades(min(over), max(over)) if over else []
    colour, _, shape = look.encodings(series)
    layer = {
        "mark": {
            "type": "point",
            "filled": True,
            "size": 62,
            "opacity": 0.95,
            "tooltip": {"content": "data"},
        },
        "encoding": {
            "y": {
                "field": "region",
                "type": "nominal",
                "sort": names,
                "axis": {"title": None, "grid": True, "labelLimit": 150},
            },
            "x": {
                "field": "over",
                "type": "quantitative",
                "scale": {"type": "log", "nice": False, "padding": 10},
                "axis": {
                    "title": "time over the best of the region",
                    "format": FORMAT,
                    "values": marks,
                },
            },
            "color": colour,
            "shape": shape,
        },
    }
    limit = {
        "transform": [{"filter": "datum.routine == 'limit'"}],
        "mark": {"type": "tick", "thickness": 2, "size": 14, "tooltip": {"content": "data"}},
        "encoding": {key: layer["encoding"][key] for key in ("x", "y", "color")},
    }
    layer["transform"] = [{"filter": "datum.routine != 'limit'"}]
    spec = {
        "transform": [{"filter": "indexof(shown, datum.routine) >= 0"}],
        "height": {"step": BAR},
        "layer": [layer, limit],
    }
    return Picture(
        key=f"figures {function}",
        title=f"{function}: everybody's time over the best of the region",
        how="1 is the fastest routine of the region; a tick is the limit of the machine, which may lie below 1.",
        alt=f"Times of {', '.join(series)} over the best, by region of {function}.",
        columns=column_table(points, ["region", "routine", "over", "figure"]),
        views=[View("time over the best", spec)],
        series=series,
        tips=[
            ("routine", "", "text"),
            ("region", "", "text"),
            ("figure", "figure", "text"),
            ("over", "time over the best", "ratio"),
        ],
        layout=Layout(1, most=1000, left=120),
    )


def names_of(score: dict) -> Sequence[str]:
    return [name for own in score["ops"] for region in own["regions"] for name in region["figures"]]
