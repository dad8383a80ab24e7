"""Pictures of mixes: classes of sizes by doubling, as characters in a terminal and as SVG or PNG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from wherry.errors import FailedError
from wherry.mixes import Mix
from wherry.report import drawing, look, still
from wherry.units import percent, size_label

BLOCKS = " ▁▂▃▄▅▆▇█"
PLAIN = " .:-=+*%#"
# A mix has up to 65536 sizes; on a logarithmic axis those nearer than this fall together.
STEP = 1.005
# More than these cannot be told apart over each other.
FEW = 8
_AXIS = (
    "datum.value < 1 ? '0' : datum.value >= 1048576 ? datum.value / 1048576 + 'M' : "
    "datum.value >= 1024 ? datum.value / 1024 + 'K' : datum.value"
)


def size_class(size: int) -> int:
    """0 alone, 1 alone, 2 to 3, 4 to 7 ..."""
    return size.bit_length()


def class_label(number: int) -> str:
    return "0" if number == 0 else size_label(1 << (number - 1))


def class_range(number: int) -> str:
    if number < 2:
        return str(number)
    low, high = 1 << (number - 1), (1 << number) - 1
    return f"{size_label(low)}-{size_label(high + 1)}" if low >= 1024 else f"{low}-{high}"


def by_class(mix: Mix) -> dict[int, float]:
    """Share of the calls in each class that has any."""
    total = math.fsum(mix.shares[0].values())
    found: dict[int, float] = {}
    for size, share in mix.shares[0].items():
        number = size_class(size)
        found[number] = found.get(number, 0.0) + share / total
    return dict(sorted(found.items()))


def bytes_by_class(mix: Mix) -> dict[int, float]:
    """Share of the bytes."""
    total = math.fsum(size * share for size, share in mix.shares[0].items())
    found: dict[int, float] = {}
    for size, share in mix.shares[0].items():
        number = size_class(size)
        found[number] = found.get(number, 0.0) + (size * share / total if total else 0.0)
    return dict(sorted(found.items()))


def bar(share: float, most: float, signs: str) -> str:
    """One character for a share; what is there at all is seen."""
    if share <= 0:
        return signs[0]
    return signs[max(1, min(len(signs) - 1, round(share / most * (len(signs) - 1))))]


def lines(mixes: Sequence[Mix], signs: str) -> list[str]:
    """A line for each mix over a common axis of sizes: two columns for each class."""
    found = [by_class(mix) for mix in mixes]
    last = max(max(classes) for classes in found)
    width = max(len(mix.name) for mix in mixes)
    made = [
        f"{mix.name.ljust(width)}  "
        + "".join(
            bar(own.get(number, 0.0), max(own.values()), signs) * 2 for number in range(last + 1)
        )
        for mix, own in zip(mixes, found, strict=True)
    ]
    # A label every third class, from 1 on: none touches the next.
    axis = "".join(
        class_label(number).ljust(6) if number % 3 == 1 else "" for number in range(1, last + 1)
    )
    return [*made, f"{'bytes'.ljust(width)}  0 {axis}"]


def detail(mix: Mix, width: int, signs: str) -> list[tuple[str, str, str, str, str]]:
    """(class, bar, share of the calls, up to there, share of the bytes)."""
    calls, volume = by_class(mix), bytes_by_class(mix)
    most, running, found = max(calls.values()), 0.0, []
    room = max(min(width - 50, 40), 10)
    for number, share in calls.items():
        running += share
        length = share / most * room
        full = signs[-1] * int(length)
        rest = bar(length - int(length), 1.0, signs).strip()
        found.append(
            (
                class_range(number),
                (full + rest) or signs[1],
                percent(share),
                percent(min(running, 1.0)),
                percent(volume[number]),
            )
        )
    return found


# ---- SVG and PNG ----------------------------------------------------------------------------------------------------


def _points(mix: Mix) -> list[dict]:
    """The share of calls up to each size, thinned where there are too many."""
    total = math.fsum(mix.shares[0].values())
    running, points, shown = 0.0, [], -1.0
    sizes = sorted(mix.shares[0])
    for size in sizes:
        running += mix.shares[0][size] / total
        if size >= shown * STEP or size == sizes[-1]:
            shown = max(size, 1)
            # A logarithmic axis has no place for 0: it stands half a step before 1.
            points.append({"mix": mix.name, "size": size or 0.5, "share": min(running, 1.0)})
    return points


def _bars(mix: Mix) -> list[dict]:
    return [
        {"mix": mix.name, "class": class_label(number), "at": number, "share": share}
        for number, share in by_class(mix).items()
    ]


def spec(mixes: Sequence[Mix]) -> dict:
    """Pictures of a few mixes over each other, of many below each other."""
    few = len(mixes) <= FEW
    named = mixes if few else ()
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": {
            "text": "Mixes of sizes",
            "subtitle": [
                f"{mix.name}: mean {mix.mean:.0f} B, median {dict(mix.percentiles)[50]} B, "
                f"largest {size_label(mix.largest)}"
                for mix in named
            ],
            "fontSize": 18,
            "subtitleFontSize": 12,
            "offset": 18,
        },
        "config": look.config(dark=False, still=True) | {"concat": {"spacing": 30}},
        "vconcat": _over_each_other(mixes) if few else _below_each_other(mixes),
        "resolve": {"scale": {"color": "shared" if few else "independent"}},
    }


def _below_each_other(mixes: Sequence[Mix]) -> list[dict]:
    """A line of the picture for each: its calls by class of size as shades, and its percentiles."""
    names = [mix.name for mix in mixes]
    points = [point for mix in mixes for point in _bars(mix)]
    classes = range(max(point["at"] for point in points) + 1)
    line = {
        "field": "mix",
        "type": "nominal",
        "sort": names,
        "axis": {"title": None, "labelLimit": 180},
    }
    shades = {
        "data": {"values": points},
        "title": {
            "text": "Share of the calls, by size (from this one to the next)",
            "frame": "group",
        },
        "width": still.WIDTH - 80,
        "height": {"step": 15},
        "mark": {"type": "rect"},
        "encoding": {
            "x": {
                "field": "class",
                "type": "ordinal",
                "scale": {"domain": [class_label(number) for number in classes]},
                "title": "size of one call, bytes",
                "axis": {"labelAngle": 0},
            },
            "y": line,
            "color": {
                "field": "share",
                "type": "quantitative",
                # What is nearly white has nearly no calls.
                "scale": {"scheme": "blues", "type": "sqrt", "domain": [0, 1]},
                "legend": {
                    "title": "share of the calls",
                    "format": ".0%",
                    "values": [0.01, 0.1, 0.3, 0.6, 1],
                },
            },
        },
    }
    spans = [
        {"mix": mix.name} | {f"p{at}": size or 0.5 for at, size in mix.percentiles} for mix in mixes
    ]

    def at(field: str) -> dict:
        return {
            "field": field,
            "type": "quantitative",
            "scale": {"type": "log", "base": 2, "nice": False, "padding": 6},
            "title": "size of one call, bytes",
            "axis": {"labelExpr": _AXIS, "values": [0.5, *(4.0**k for k in range(16))]},
        }

    ink = {"color": look.WHERRY[0]}
    percentiles = {
        "data": {"values": spans},
        "title": {
            "text": "Percentiles: thin line 10 to 99, thick line to 90, dot the median",
            "frame": "group",
        },
        "width": still.WIDTH - 80,
        "height": {"step": 15},
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 1.2} | ink,
                "encoding": {"y": line, "x": at("p10"), "x2": {"field": "p99"}},
            },
            {
                "mark": {"type": "rule", "strokeWidth": 5, "opacity": 0.45} | ink,
                "encoding": {"y": line, "x": at("p10"), "x2": {"field": "p90"}},
            },
            {
                "mark": {
                    "type": "point",
                    "filled": True,
                    "size": 50,
                    "opacity": 1,
                    "color": look.LIBC[0],
                },
                "encoding": {"y": line, "x": at("p50")},
            },
        ],
    }
    return [shades, percentiles]


def _over_each_other(mixes: Sequence[Mix]) -> list[dict]:
    """Above the calls by class of size, below the calls up to each size."""
    names = [mix.name for mix in mixes]
    colours = [own[0] for own in (look.WHERRY, *look.OTHERS, look.LIBC)]
    colour = {
        "field": "mix",
        "type": "nominal",
        "sort": names,
        "scale": {"domain": names, "range": [colours[i % len(colours)] for i in range(len(names))]},
        "title": None,
        "legend": {"orient": "top", "columns": 4, "symbolType": "square", "labelLimit": 220},
    }
    dash = {
        "field": "mix",
        "type": "nominal",
        "sort": names,
        "scale": {
            "domain": names,
            "range": [look.DASHES[i // len(colours) % len(look.DASHES)] for i in range(len(names))],
        },
        "legend": None,
    }
    share = {"type": "quantitative", "axis": {"format": "%", "tickCount": 5}}
    classes = sorted({point["at"] for mix in mixes for point in _bars(mix)})
    bars = {
        "data": {"values": [point for mix in mixes for point in _bars(mix)]},
        "title": {
            "text": "Share of the calls, by size (from this one to the next)",
            "frame": "group",
        },
        "width": still.WIDTH - 80,
        "height": 240,
        "mark": {"type": "bar"},
        "encoding": {
            "x": {
                "field": "class",
                "type": "ordinal",
                "sort": [class_label(number) for number in classes],
                "title": "size of one call, bytes",
                "axis": {"labelAngle": 0},
            },
            "xOffset": {"field": "mix", "type": "nominal", "sort": names},
            "y": share | {"field": "share", "title": "share of the calls"},
            "color": colour,
        },
    }
    curve = {
        "data": {"values": [point for mix in mixes for point in _points(mix)]},
        "title": {"text": "Share of the calls that ask for so much at most", "frame": "group"},
        "width": still.WIDTH - 80,
        "height": 260,
        "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2},
        "encoding": {
            "x": {
                "field": "size",
                "type": "quantitative",
                "scale": {"type": "log", "base": 2, "nice": False},
                "title": "size of one call, bytes",
                "axis": {"labelExpr": _AXIS, "tickCount": 12},
            },
            "y": share
            | {"field": "share", "scale": {"domain": [0, 1]}, "title": "share of the calls"},
            "color": colour,
            "strokeDash": dash,
        },
    }
    return [bars, curve]


def draw(mixes: Sequence[Mix], path: Path) -> bytes:
    import vl_convert

    document = spec(mixes)
    try:
        with drawing.engine():
            if path.suffix.lower() == ".svg":
                return vl_convert.vegalite_to_svg(document).encode()
            return vl_convert.vegalite_to_png(document, scale=still.SCALE)
    except ValueError as error:
        line = " ".join(str(error).split())[:160]
        raise FailedError(f"the mixes could not be drawn: {line}") from None
