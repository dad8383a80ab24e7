"""A picture: its data as columns, and one or more views of them in Vega-Lite, without colours or width, which depend on
where it is shown."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from wherry.dimensions import number

# Columns that are near another one, and are kept as thousandths of it: (column, of which).
NEAR = {"q25": "ns", "q75": "ns", "low": "ratio", "high": "ratio"}
RATE, TIME, RATIO = "GB/s", "time per call", "time over libc's"
# Plain figures with thousands apart, never 1e+3.
FORMAT = ",~r"


def axis_of(quantity: str) -> dict:
    """Title and labels; a time has its unit at each mark, since one axis may go from nanoseconds to milliseconds."""
    if quantity != TIME:
        return {"title": quantity, "format": FORMAT}
    steps = [("1e9", "s"), ("1e6", "ms"), ("1e3", "µs")]
    tests = [
        f"abs(datum.value) >= {n} ? format(datum.value / {n}, '{FORMAT}') + ' {u}'"
        for n, u in steps
    ]
    return {
        "title": TIME,
        "labelExpr": " : ".join([*tests, f"format(datum.value, '{FORMAT}') + ' ns'"]),
    }


@dataclass
class View:
    """One quantity. `scales` are the parts of the spec that take a domain where runs stand side by side."""

    name: str
    spec: dict
    scales: dict[str, dict] = field(default_factory=dict)
    extents: dict[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Layout:
    """How it fills a page: panels beside each other, each so wide; `left` is what the axis takes."""

    panels: int = 1
    least: int = 200
    most: int = 900
    left: int = 60
    square: bool = False
    across: int = 4  # panels in a line at most
    grain: int = 1  # a panel is a multiple of it: rectangles that end within a pixel leave a line between them


@dataclass
class Picture:
    key: str  # pictures of several runs with one key belong together
    title: str
    how: str  # how to read it
    alt: str  # what somebody is told who does not see it
    columns: dict[str, list]
    views: list[View]
    series: list[str]
    tips: list[tuple[str, str, str]]  # column, what to call it, how to write it
    layout: Layout
    one: str = ""  # the one routine that it is about
    own_look: bool = False  # its series are no routines
    heavy: bool = False  # so many marks that they are drawn on a canvas

    @property
    def points(self) -> int:
        return len(next(iter(self.columns.values()), ()))


def column_table(points: Sequence[dict], keys: Sequence[str]) -> dict[str, list]:
    return {key: [point.get(key) for point in points] for key in keys}


Rate = Callable[[float, float], float]


def bytes_a_nanosecond(size: float, ns: float) -> float:
    return size / ns


def figures(
    cell: dict, to_libc: bool = True, rate: Rate = bytes_a_nanosecond
) -> dict[str, float | None]:
    """What of a cell is drawn and told; `rate` from its bytes and its time."""
    ns, ratio = cell["ns"], cell.get("ratio") or {}
    time, size = number(ns["median"]), number(cell["bytes"])
    return {
        "ns": time,
        "q25": number(ns["q25"]),
        "q75": number(ns["q75"]),
        "rate": rate(size, time) if time and size else None,
        "ratio": number(ratio.get("median")) if to_libc else None,
        "low": number(ratio.get("low")),
        "high": number(ratio.get("high")),
        "rounds": number(cell.get("rounds")),
    }


TIPS = [
    ("ns", "median", "time"),
    ("q25 q75", "middle half of the rounds", "time range"),
    ("rate", "rate", "rate"),
    ("ratio", "time over libc's", "ratio"),
    ("low high", "95 % interval of that", "ratio range"),
    ("rounds", "rounds", "count"),
]


# ---- columns, packed -------------------------------------------------------------------------------------------------


def _short(value: float | None) -> float | int | None:
    """Four figures: more than any measurement here has."""
    if value is None:
        return None
    rounded = float(f"{value:.4g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def packed(columns: dict[str, list]) -> dict[str, object]:
    """For the page: words by number, repeated values once, what is near another column as thousandths of it."""
    found: dict[str, object] = {}
    for key, values in columns.items():
        if any(isinstance(value, str) for value in values):
            words = list(dict.fromkeys(values))
            at = {word: i for i, word in enumerate(words)}
            found[key] = {"words": words, "at": _repeats([at[value] for value in values])}
        elif key in NEAR and NEAR[key] in columns:
            found[key] = {"near": NEAR[key], "at": _repeats(_near(values, columns[NEAR[key]]))}
        else:
            exact = key not in ("ns", "rate", "ratio", "best")
            found[key] = _repeats(values if exact else [_short(v) for v in values])
    return found


def _near(values: list, of: list) -> list:
    near = []
    for value, other in zip(values, of, strict=True):
        base = _short(other)
        if value is None or not base:
            near.append(None)
            continue
        thousandths = min((value / base - 1) * 1000, 1e15)
        near.append(round(thousandths, 0 if abs(thousandths) >= 20 else 1))
    return [int(v) if v is not None and v == int(v) else v for v in near]


def _repeats(values: list) -> object:
    runs: list[list] = []
    for value in values:
        if runs and runs[-1][0] == value:
            runs[-1][1] += 1
        else:
            runs.append([value, 1])
    return {"runs": runs} if len(runs) * 3 < len(values) else values


# ---- width and colours -----------------------------------------------------------------------------------------------


def sized(spec: dict, layout: Layout, width: int) -> dict:
    """The spec for so many pixels. What page.js does when the page has a width, this does for a still picture."""
    spec = copy.deepcopy(spec)
    if layout.panels <= 1:
        inner = spec["spec"] if "facet" in spec else spec
        left = min(layout.left, max(width // 2, 130))
        inner["width"] = _grained(min(width - left, layout.most), layout)
        labelled(inner, left, layout.left > left)
        if layout.square:
            inner["height"] = inner["width"]
        return spec
    room = width - layout.left
    across = max(1, min(layout.panels, layout.across, room // (layout.least + 16)))
    inner = _grained(min(room // across - 16, layout.most), layout)
    spec["columns"] = across
    if layout.panels > across and layout.panels % across:
        # The axis below the last line of panels would be far from those that have none below them.
        spec.setdefault("resolve", {}).setdefault("axis", {})["x"] = "independent"
    spec["spec"]["width"] = inner
    if layout.square:
        spec["spec"]["height"] = inner
    return spec


def _grained(width: int, layout: Layout) -> int:
    return max(width - width % layout.grain, 80)


# What a label says last stands on a line of its own.
_BROKEN = (
    "lastindexof(datum.label, ', ') < 0 ? datum.label : [slice(datum.label, 0, lastindexof(datum.label, ', ') + 1), "
    "slice(datum.label, lastindexof(datum.label, ', ') + 2)]"
)


def labelled(spec: dict, left: int, broken: bool) -> None:
    """Labels of the upright axis get the room that there is, two lines where that is little; what is longer is cut."""
    for layer in spec.get("layer", [spec]):
        axis = layer.get("encoding", {}).get("y", {}).get("axis")
        if axis and layer["encoding"]["y"].get("type") == "nominal":
            axis["labelLimit"] = left - 20
            if broken:
                axis["labelExpr"] = _BROKEN
