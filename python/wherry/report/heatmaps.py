"""Heat maps of source alignment by destination alignment: one picture a routine, one panel for each place where the
bytes were. The colour is the time over the best of all routines and alignments in that place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wherry import dimensions
from wherry.dimensions import number
from wherry.report.picture import TIPS, Layout, Picture, View, column_table, figures
from wherry.yardsticks import LEVEL, YARDSTICKS

# Beyond this many rectangles the browser paints them on a canvas.
HEAVY = 3000
# Upper ends of the shades, as multiples of the best: the eye tells ten steps apart, and most of a map lies below 2.
SHADES = [1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2, 3, 5]
_NAMES = [*(f"to {top:g}" for top in SHADES), f"over {SHADES[-1]:g}"]
_SHADE = (
    "".join(
        f"datum.ns <= {top} * datum.best ? '{name}' : "
        for top, name in zip(SHADES, _NAMES, strict=False)
    )
    + f"'{_NAMES[-1]}'"
)


def pictures(rows: Sequence[dict], cells: Mapping[int, Mapping[str, dict]]) -> list[Picture]:
    differ = dimensions.varying(rows) - {"src_off", "dst_off"}
    best: dict[str, float] = {}
    points: dict[str, list[dict]] = {}
    panels: list[str] = []
    labels: dict[tuple, str] = {}
    for row in sorted(rows, key=dimensions.state_order):
        key = tuple(row.get(k) for k in sorted(differ))
        if key not in labels:
            labels[key] = dimensions.label(row, differ) if differ else ""
            panels.append(labels[key])
        panel = labels[key]
        for name, cell in cells.get(row["row"], {}).items():
            if name == LEVEL:  # the same at every alignment, or it would not be what it is
                continue
            found = figures(cell, name not in YARDSTICKS)
            if not found["ns"]:
                continue
            if name not in YARDSTICKS:
                best[panel] = min(found["ns"], best.get(panel, found["ns"]))
            where = {"panel": panel, "src": row["src_off"], "dst": row["dst_off"]}
            points.setdefault(dimensions.clean(name), []).append(where | found)
    return [
        _picture(name, points[name], best, list(dict.fromkeys(panels)), dimensions.common(rows))
        for name in dimensions.in_order(points)
    ]


def _picture(name: str, points: list[dict], best: dict, panels: list[str], common: str) -> Picture:
    for point in points:
        point["best"] = best.get(point["panel"], point["ns"])
    points.sort(key=lambda p: (panels.index(p["panel"]), p["src"], p["dst"]))
    panels = [panel for panel in panels if any(p["panel"] == panel for p in points)]
    keys = ["panel", "src", "dst", "best", "ns", "q25", "q75", "ratio", "low", "high", "rounds"]
    pairs = [len({p[side] for p in points}) for side in ("src", "dst")]
    sparse = len(points) < pairs[0] * pairs[1] * len(panels)
    worst = max(points, key=lambda p: p["ns"] / p["best"])
    return Picture(
        key=f"heat {common} {name}",
        title=f"{name}: {common}",
        how=("Blank: not measured. " if sparse else "")
        + "Down: the source's offset in its 64-byte line; across: the destination's. Colour: time over the best that "
        "any routine reached at any alignment with the bytes in the same place; yellow is slow.",
        alt=f"Heat map of {name} by source and destination offset, {len(panels)} "
        f"panel{'s' if len(panels) != 1 else ''}; worst {worst['ns'] / worst['best']:.2f} times the best, at source "
        f"+ {worst['src']}, destination + {worst['dst']}.",
        columns={
            k: v for k, v in column_table(points, keys).items() if any(x is not None for x in v)
        },
        views=[_view(points, panels, sparse)],
        series=[name],
        tips=[
            ("panel", "", "text"),
            ("src", "source offset", "count"),
            ("dst", "destination offset", "count"),
            ("over", "time over the best", "ratio"),
            *(tip for tip in TIPS if tip[0] != "rate"),
        ],
        layout=Layout(len(panels), least=120, most=300, left=130, square=True, grain=max(pairs)),
        one=name,
        heavy=len(points) > HEAVY,
    )


def _view(points: list[dict], panels: list[str], sparse: bool) -> View:
    def offsets(side: str) -> dict:
        # What is off the grid of --quick stands beside it, so that the map has no holes.
        values = sorted({number(p[side]) for p in points}, key=lambda v: (sparse and v % 8 != 0, v))
        step = 8 if len(values) > 16 else 1
        shown = [v for v in values if v % step == 0]
        return {
            "field": side,
            "type": "ordinal",
            "scale": {"domain": values, "padding": 0},
            "axis": {
                "values": shown,
                "labelAngle": 0,
                "ticks": False,
                "grid": False,
                "labelOverlap": len(values) > 16,
            },
        }

    x, y = offsets("dst"), offsets("src")
    x["axis"] |= {"title": "destination offset, bytes"}
    y["axis"] |= {"title": "source offset, bytes"}
    unit = {
        "height": 240,
        "mark": {"type": "rect", "tooltip": {"content": "data"}},
        "encoding": {
            "x": x,
            "y": y,
            "color": {
                "field": "shade",
                "type": "ordinal",
                "scale": {"domain": _NAMES, "scheme": {"name": "viridis", "count": len(_NAMES)}},
                "legend": {
                    "title": ["time over", "the best"],
                    "symbolType": "square",
                    "symbolStrokeWidth": 0,
                    "symbolSize": 150,
                },
            },
        },
    }
    over = {"calculate": _SHADE, "as": "shade"}
    spec = unit
    if len(panels) > 1:
        spec = {
            "facet": {"field": "panel", "type": "nominal", "title": None, "sort": panels},
            "spec": unit,
        }
    return View("time over the best", {"transform": [over]} | spec)
