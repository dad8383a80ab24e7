"""Colours, dashes, shapes and fonts. The colours are those of Okabe and Ito, which people with any kind of colour
vision tell apart, and three more; on a dark page each has a lighter sister. Where there are more routines than
colours, dashes and shapes tell them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from wherry.dimensions import in_order
from wherry.yardsticks import LIMITS

# (on light, on dark)
LIBC = ("#1a1a1a", "#f2f2f2")
WHERRY = ("#0072b2", "#5db8f0")
YARDSTICK = ("#767676", "#a0a0a0")
OTHERS = (
    ("#d55e00", "#ff8c42"),
    ("#009e73", "#34cfa0"),
    ("#b0528a", "#e69bc8"),
    ("#b37a00", "#f0b83c"),
    ("#3d8fc4", "#a6d8f7"),
    ("#6e4b3a", "#c8a48f"),
    ("#5b4bb8", "#b3a6ff"),
)
DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3])
# A cross of two diagonals, wide enough to be seen where a curve goes through it.
SALTIRE = "M-1,-.5L-.5,-1L0,-.5L.5,-1L1,-.5L.5,0L1,.5L.5,1L0,.5L-.5,1L-1,.5L-.5,0Z"
# One more than colours, so that what shares a colour differs in shape.
SHAPES = (
    *("square", "triangle-up", "diamond", "cross"),
    *("triangle-down", "triangle-right", "triangle-left", SALTIRE),
)
YARDSTICK_DASHES = ([4, 3], [1, 2], [8, 3], [5, 2, 1, 2], [2, 4], [3, 1])

FONT = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', Arial, sans-serif"
# What the drawing library brings itself, so that a picture looks alike on every machine.
STILL_FONT = "Liberation Sans"


@dataclass(frozen=True)
class Style:
    light: str
    dark: str
    dash: list[int]
    shape: str
    yardstick: bool = False


def is_yardstick(name: str) -> bool:
    return name in LIMITS or name.startswith("limit")


def styles(
    groups: Sequence[Sequence[str]], pictures: Sequence[Sequence[str]] = ()
) -> dict[str, Style]:
    """One for each routine, the same wherever it appears, and different from all that share a group with it as long as
    there are enough. Small groups choose first: there the curves are. Those of one picture get colours of their own
    while there are any: bars have neither dashes nor shapes."""
    found: dict[str, Style] = {}
    taken: dict[str, int] = {}
    for group in sorted(groups, key=len):
        for name in in_order(group):
            if name in found or name in ("libc", "wherry") or is_yardstick(name):
                continue
            used = {taken[n] for own in groups if name in own for n in own if n in taken}
            near = {
                taken[n] % len(OTHERS) for own in pictures if name in own for n in own if n in taken
            }
            free = [i for i in range(len(used) + len(OTHERS)) if i not in used]
            taken[name] = next((i for i in free if i % len(OTHERS) not in near), free[0])
            found[name] = _other(taken[name])
    found["libc"] = Style(*LIBC, DASHES[0], "circle")
    found["wherry"] = Style(*WHERRY, DASHES[0], "circle")
    yardsticks = dict.fromkeys(n for group in groups for n in group if is_yardstick(n))
    for i, name in enumerate(yardsticks):
        dash = YARDSTICK_DASHES[i % len(YARDSTICK_DASHES)]
        found[name] = Style(*YARDSTICK, dash, "stroke", True)
    return found


def with_ticks(of: Mapping[str, Style]) -> dict[str, Style]:
    """For pictures without lines, whose marks are filled: there a stroke has nothing to be seen by."""
    tick = "M-.2,-1H.2V1H-.2Z"
    return {
        name: replace(style, shape=tick) if style.yardstick else style for name, style in of.items()
    }


def _other(i: int) -> Style:
    dash = DASHES[i // len(OTHERS) % len(DASHES)]
    return Style(*OTHERS[i % len(OTHERS)], dash, SHAPES[i % len(SHAPES)])


def config(dark: bool, still: bool = False) -> dict:
    """Vega's configuration but for the colours of the series."""
    ink, dim, grid = (
        ("#e8e8e8", "#b4b4b4", "#3a3f45") if dark else ("#1a1a1a", "#555555", "#dddddd")
    )
    text = {"labelColor": dim, "titleColor": ink}
    return {
        "background": "white" if still else "transparent",
        "font": STILL_FONT if still else FONT,
        "padding": 14 if still else 2,
        # The picture as a whole has words; a label on each of its marks would double its size.
        "aria": False,
        "view": {"stroke": grid},
        "axis": text
        | {
            "gridColor": grid,
            "domainColor": dim,
            "tickColor": dim,
            "labelFontSize": 11,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "titlePadding": 8,
            "labelOverlap": "greedy",
        },
        "axisX": {"labelSeparation": 6},
        "header": text | {"labelFontSize": 12, "labelFontWeight": "bold", "labelPadding": 6},
        "legend": text | {"labelFontSize": 11, "titleFontSize": 11, "symbolSize": 70},
        "title": {
            "color": ink,
            "subtitleColor": dim,
            "fontSize": 14,
            "subtitleFontSize": 11,
            "anchor": "start",
            "offset": 12,
        },
        "rule": {"color": dim},
        "text": {"color": dim, "fontSize": 10},
    }


def encodings(series: Sequence[str], field: str = "routine") -> tuple[dict, dict, dict]:
    """Colour, dash and shape of a series. `dress` fills in what they are, so that a routine looks alike in all pictures
    of a page."""
    own = {"field": field, "type": "nominal", "legend": None}
    return tuple(own | {"scale": {"domain": list(series)}} for _ in range(3))


def dress(
    part: object, series: Sequence[str], of: Mapping[str, Style], colours: bool = False
) -> None:
    """Dashes and shapes into the scales of these series; the colours of white paper and legends too when asked for."""
    if isinstance(part, list):
        for item in part:
            dress(item, series, of, colours)
    if not isinstance(part, dict):
        return
    ranges = {
        "color": [of[name].light for name in series] if colours else None,
        "strokeDash": [of[name].dash for name in series],
        "shape": [of[name].shape for name in series],
    }
    for key, value in part.items():
        if key == "data":
            continue
        if (
            key in ranges
            and isinstance(value, dict)
            and value.get("scale", {}).get("domain") == series
        ):
            if ranges[key]:
                value["scale"]["range"] = ranges[key]
            if colours and not {"x2", "y2"} & {k for k, v in part.items() if "field" in (v or ())}:
                value["legend"] = {"title": None, "labelLimit": 180, "symbolOpacity": 1}
        else:
            dress(value, series, of, colours)
