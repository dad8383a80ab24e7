"""Curves along the size of a call, or another figure that was varied, on logarithmic axes. One panel for each place
where the bytes were; bands are the middle half of the rounds; the machine's limits are lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from wherry import dimensions
from wherry.dimensions import number
from wherry.report import counted, look
from wherry.report.picture import (
    FORMAT,
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
from wherry.units import KIB, size_in_words
from wherry.yardsticks import KERNEL, LIMITS, YARDSTICKS

# Calls no longer than this are told in nanoseconds, longer ones in bytes a second.
SMALL = 8192
# Bytes from which on the scoreboard's limit counts a copy in five parts at once.
PARTS_FROM = 128 * KIB
# Ops whose bytes go through more than one buffer, or through files larger than a block.
_WITHOUT_CACHES = ("network", "stripes")
# Past this the points of a curve run together.
MANY_POINTS = 5000
# Axes of bytes from an address: marks at powers of two.
_BYTES = ("delta", "overlap", "src_off", "dst_off")
_QUANTITIES = {TIME: ("ns", "q25", "q75"), RATE: ("rate", "rate75", "rate25")}
_SIZE_LABEL = (
    "datum.value >= 1073741824 ? datum.value / 1073741824 + 'G' : "
    "datum.value >= 1048576 ? datum.value / 1048576 + 'M' : "
    "datum.value >= 1024 ? datum.value / 1024 + 'K' : '' + datum.value"
)


def picture(
    run: dict, rows: Sequence[dict], cells: Mapping[int, Mapping[str, dict]], axis: str
) -> Picture:
    """One curve a routine; one panel for each set of rows that differ in `axis` alone."""
    differ = dimensions.varying(rows) - {axis}
    points, panels, rate = [], [], counted.rate(rows)
    for row in sorted(rows, key=dimensions.state_order):
        x = dimensions.along(row, axis)
        panel = dimensions.label(row, differ) if differ else ""
        if x is None:
            continue
        if panel not in panels:
            panels.append(panel)
        own = [
            (dimensions.clean(name), figures(cell, name not in YARDSTICKS, rate))
            for name, cell in cells.get(row["row"], {}).items()
        ]
        own += _limits(run, row, x) if axis == "size" else []
        for name, found in own:
            points.append({"routine": name, "x": x, "panel": panel} | found)
    _rates(points)
    series = dimensions.in_order(p["routine"] for p in points)
    xs = sorted({p["x"] for p in points})
    one = len(panels) == 1
    # Four states of the source by four of the destination make a square.
    across = 2 if len(panels) <= 4 else 4
    layout = Layout(len(panels), 520 // across, 1180 if one else 560, left=66, across=across)
    waiting = any(row.get("mode") in RATELESS for row in rows)
    zero = axis == "size" and bool(xs) and xs[0] <= 0
    scale = {"type": "log", "base": 2} if xs and xs[0] > 0 else {"type": "linear", "zero": False}
    if axis == "mode":
        scale = {"type": "log"}
    if zero:
        # 0 has no logarithm: along log(1 + size) it has a place, a doubling before 1.
        scale = {"type": "symlog", "constant": 1}
    caches = _caches(run, xs) if axis == "size" and _caches_end_at_sizes(rows) else []
    views = []
    for name in _quantities(axis, xs, series):
        if name == RATE and waiting:
            continue  # of calls that wait for each other a rate says nothing
        if name == RATIO and not any(p.get("ratio") for p in points):
            continue  # an op that libc lacks
        extent = _extent(points, name)
        views.append(_view(name, axis, xs, scale, series, panels, caches, extent))
    what = "size" if axis == "size" else dimensions.AXES[axis].split(",")[0]
    return Picture(
        key=f"curves {axis} {dimensions.common(rows)}",
        title=f"By {what}: {dimensions.common(rows)}",
        how=_how(points, axis, zero, bool(caches)),
        alt=f"Curves of {', '.join(series)} along {dimensions.AXES[axis]}, {len(panels)} "
        f"panel{'s' if len(panels) != 1 else ''}.",
        columns=column_table(points, ["routine", "x", "panel", *figures_of(points)]),
        views=views,
        series=series,
        tips=[("routine", "", "text"), ("panel", "", "text"), ("x", *_tip(axis)), *TIPS],
        layout=layout,
        heavy=len(points) > MANY_POINTS,
    )


def _how(points: Sequence[dict], axis: str, zero: bool, caches: bool) -> str:
    """How to read it: no word of what it does not have."""
    said = []
    if axis == "size":
        said.append(f"Both axes are logarithmic{', with a place for size 0' if zero else ''}")
    if axis == "mode":
        said.append(
            "Both axes are logarithmic; p99 is one call of a hundred, p99.9 one of a thousand"
        )
    if any(p.get("q25") is not None and p.get("q75") is not None for p in points):
        said.append("A band is the middle half of the rounds")
    grey = any(look.is_yardstick(p["routine"]) for p in points)
    if grey:
        what = "limits and yardsticks" if axis == "size" else "yardsticks"
        upright = ", upright ones the sizes of the caches" if caches else ""
        said.append(f"Dashed grey lines are {what}{upright}")
    elif caches:
        said.append("Dashed upright lines are the sizes of the caches")
    return "".join(f"{text}. " for text in said).strip()


def _tip(axis: str) -> tuple[str, str]:
    if axis == "mode":
        return "slowest of", "count"
    return ("size", "size") if axis == "size" else (dimensions.AXES[axis].split(",")[0], "count")


def figures_of(points: Sequence[dict]) -> list[str]:
    """Columns that hold something."""
    keys = ["ns", "q25", "q75", "rate", "rate25", "rate75", "ratio", "low", "high", "rounds"]
    return [key for key in keys if any(p.get(key) is not None for p in points)]


def _rates(points: list[dict]) -> None:
    """The quartiles of a rate, from those of its time."""
    for p in points:
        for key, time in (("rate25", p.get("q75")), ("rate75", p.get("q25"))):
            known = p.get("rate") and p.get("ns") and time
            p[key] = p["rate"] * p["ns"] / time if known else None


def _limits(run: dict, row: dict, size: float) -> list[tuple[str, dict]]:
    """What the same run's scoreboard found that plain loops reach at this level, as if it were a routine."""
    level = row.get("dst_state")
    if row.get("walk") != "pool" or row.get("src_state") != level or row.get("threads") != 1:
        return []
    scored = next((e["score"] for e in run["experiments"] if "score" in e), None)
    rates = (scored or {}).get("limits", {}).get(level, {})
    op = "copy" if row["op"] in ("copy", "move") else "write"
    loops = ["", "nt_"] + ["nt_parts_"] * (op == "copy" and size >= PARTS_FROM)
    found = [number(rates.get(f"{op}_{past}bandwidth")) for past in loops]
    best = max((rate for rate in found if rate), default=None)
    if best is None:
        return []
    return [("limit: plain loops", {"ns": size / best, "rate": best})]


def _quantities(axis: str, xs: Sequence[float], series: Sequence[str]) -> list[str]:
    """The first is shown first: a system call that copies nothing has no rate worth a look."""
    small = axis != "size" or (xs and xs[-1] <= SMALL)
    first = TIME if small or not KERNEL.isdisjoint(series) else RATE
    return [first, RATE if first == TIME else TIME, RATIO]


def _extent(points: Sequence[dict], quantity: str) -> tuple[float, float]:
    key = "ratio" if quantity == RATIO else _QUANTITIES[quantity][0]
    values = [p[key] for p in points if p.get(key)]
    return (min(values), max(values)) if values else (1, 1)


def _view(quantity, axis, xs, scale, series, panels, caches, extent) -> View:
    y, low, high = ("ratio", "low", "high") if quantity == RATIO else _QUANTITIES[quantity]
    y_scale = {"type": "log", "nice": False, "padding": 8}
    colour, dash, shape = look.encodings(series)
    x = {
        "field": "x",
        "type": "quantitative",
        "scale": scale | {"nice": False},
        "axis": {"title": dimensions.AXES[axis], "grid": False} | _ticks(axis, xs),
    }

    y_axis = axis_of(quantity) | {"values": decades(*extent)}

    def at(field: str) -> dict:
        return {"field": field, "type": "quantitative", "scale": y_scale, "axis": y_axis}

    there = {"filter": f"isValid(datum.{y}) && datum.{y} > 0"}
    layers: list[dict] = [*caches]
    if quantity == RATIO:
        layers.append(
            {
                "data": {"values": [{"one": 1}]},
                "mark": {"type": "rule", "strokeWidth": 1},
                "encoding": {"y": {"datum": 1, "type": "quantitative"}},
            }
        )
    layers += [
        {
            "transform": [{"filter": f"isValid(datum.{low}) && isValid(datum.{high})"}],
            "mark": {"type": "area", "opacity": 0.18, "tooltip": None},
            "encoding": {"x": x, "y": at(low), "y2": {"field": high}, "color": colour},
        },
        {
            "mark": {"type": "line", "strokeWidth": 1.8, "tooltip": None},
            "encoding": {"x": x, "y": at(y), "color": colour, "strokeDash": dash},
        },
        {
            "transform": [{"filter": f"!({_of_yardsticks(series)})"}],
            "mark": {"type": "point", "filled": True, "size": 42, "opacity": 1, "tooltip": None},
            "encoding": {"x": x, "y": at(y), "color": colour, "shape": shape},
        },
        {
            # What the pointer finds is larger than what is seen.
            "mark": {
                "type": "point",
                "size": 260,
                "opacity": 0,
                "filled": True,
                "tooltip": {"content": "data"},
            },
            "encoding": {"x": x, "y": at(y)},
        },
    ]
    shown = [{"filter": "indexof(shown, datum.routine) >= 0"}, there]
    spec = {"height": 340, "layer": layers}
    if len(panels) > 1:
        spec = {
            "facet": {"field": "panel", "type": "nominal", "title": None, "sort": panels},
            "spec": {"height": 260, "layer": layers},
        }
    return View(quantity, {"transform": shown} | spec, {"y": y_scale}, {"y": extent})


def decades(low: float, high: float) -> list[float]:
    """Marks of a logarithmic axis: 1, 2, 5 of each decade; fewer of many decades, more of one."""
    if high / low < 1.5:
        return _fine(low, high)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    if last - first > 12:
        return [10.0**k for k in range(first, last + 1, (last - first) // 8)]
    steps = (1, 2, 5) if last - first <= 4 else (1,)
    if high / low < 12:
        steps = (1, 1.5, 2, 3, 4, 5, 7)
    if high / low < 4:
        steps = (1, 1.1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)
    return [float(f"{s * 10.0**k:.3g}") for k in range(first, last + 1) for s in steps]


def _fine(low: float, high: float) -> list[float]:
    """Where hardly anything differs: half a dozen round figures, some beyond either end, where intervals may reach."""
    rough = max((high - low) / 4, high / 100)
    unit = 10.0 ** math.floor(math.log10(rough))
    step = unit * next(s for s in (1, 2, 5, 10) if s * unit >= rough)
    return [
        float(f"{k * step:.6g}")
        for k in range(math.floor(low / step) - 3, math.ceil(high / step) + 4)
        if k > 0
    ]


def _of_yardsticks(series: Sequence[str]) -> str:
    """An expression of our own words: names out of a file never stand in one."""
    names = [name for name in series if name in LIMITS]
    return " || ".join(
        ["slice(datum.routine, 0, 6) == 'limit:'", *(f"datum.routine == '{n}'" for n in names)]
    )


def _ticks(axis: str, xs: Sequence[float]) -> dict:
    if axis in _BYTES and xs and all(x % 8 == 0 for x in xs) and xs[-1] > xs[0]:
        step = 2.0 ** math.ceil(math.log2((xs[-1] - xs[0]) / 9))
        first = math.ceil(xs[0] / step)
        return {
            "values": [k * step for k in range(first, math.floor(xs[-1] / step) + 1)],
            "format": ",d",
        }
    if axis == "mode":
        names = {place: name for name, place in dimensions.RARITY.items()}
        tests = [f"datum.value < {1.5 * place} ? '{name}'" for place, name in names.items()]
        return {"values": list(xs), "labelExpr": " : ".join([*tests, "''"])}
    if axis != "size":
        return {"format": FORMAT, "tickCount": min(len(xs), 8)}
    zero = [0.0] if xs and xs[0] <= 0 else []
    sizes = xs[len(zero) :]
    if not sizes:
        return {}
    first, last = math.floor(math.log2(sizes[0])), math.ceil(math.log2(sizes[-1]))
    step = max(1, -(-(last - first) // 10))
    powers = [2.0**k for k in range(first, last + 1, step)]
    return {"values": zero + powers, "labelExpr": _SIZE_LABEL}


def _caches_end_at_sizes(rows: Sequence[dict]) -> bool:
    """Not where the size is that of a step through larger buffers: then these tell where the bytes lie."""
    return rows[0]["op"] not in _WITHOUT_CACHES and not any(
        row.get("walk") == "stream"
        and (number(row.get("buffer")) or 0) > (number(row.get("size")) or 0)
        for row in rows
    )


def _caches(run: dict, xs: Sequence[float]) -> list[dict]:
    """Upright lines where a cache ends, so far as they lie within the picture."""
    reported = run["machine"].get("reported")
    believed = reported.get("believed") if isinstance(reported, dict) else None
    found = []
    for level in ("L1d", "L2", "L3"):
        own = believed.get(level) if isinstance(believed, dict) else None
        size = number(own.get("size")) if isinstance(own, dict) else None
        if size and xs and xs[0] < size < xs[-1]:
            found.append({"x": size, "name": level, "what": f"{level} {size_in_words(size)}"})
    if not found:
        return []
    x = {"field": "x", "type": "quantitative"}
    return [
        {
            "data": {"values": found},
            "mark": {"type": "rule", "strokeDash": [2, 3], "opacity": 0.8, "tooltip": None},
            "encoding": {"x": x},
        },
        {
            "data": {"values": found},
            "mark": {
                "type": "text",
                "align": "left",
                "dx": 3,
                "dy": -3,
                "baseline": "bottom",
                "tooltip": None,
            },
            "encoding": {"x": x, "y": {"value": "height"}, "text": {"field": "name"}},
        },
    ]
