"""Which pictures an experiment gets, by the dimensions of its rows alone: heat maps where both alignments vary, curves
where a size or another figure does, bars for mixes and for the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wherry import dimensions, tables
from wherry.dimensions import AXES, LEAST_POINTS
from wherry.report import bars, counted, curves, heatmaps, regions, thennow, ticks
from wherry.report.picture import Picture

# Offsets on each side from which on a map says more than a curve.
LEAST_OFFSETS = 4


def of(run: dict, experiment: str) -> list[Picture]:
    own = next((e for e in run["experiments"] if e["name"] == experiment), {})
    if "score" in own:
        return regions.pictures(own["score"])
    rows = tables.rows_of(run, experiment)
    cells = tables.cells_of(run, experiment)
    found: list[Picture] = []
    by_op: dict[str, list[dict]] = {}
    for row in rows:
        by_op.setdefault(row["op"], []).append(row)
    for ops in by_op.values():
        mixes = [row for row in ops if "mix" in row]
        left = [row for row in ops if "mix" not in row]
        maps, left = _maps(left)
        for group in maps:
            found += heatmaps.pictures(group, cells)
        groups, both = _along([*left, *mixes], "mode", ("size", "mix", "table"))
        found += [curves.picture(run, group, cells, "mode") for group in groups]
        mixes, left = ([row for row in both if ("mix" in row) == mixed] for mixed in (True, False))
        for axis in AXES:
            # One picture of all panels, unless they differ in more than a place: then what they share says little.
            groups, left = _along(left, axis, _PANELS)
            by_mix, mixes = _along(mixes, axis, _PANELS)
            found += [
                counted.renamed(curves.picture(run, group, cells, axis), group)
                for group in (*groups, *by_mix)
            ]
        for rest in (mixes, left):
            # Rows of the same routines stand together, so that no picture has holes; and of what takes times alike.
            for group in _grouped(
                rest, lambda row: (frozenset(cells.get(row["row"], ())), counted.what([row]))
            ):
                found.append(counted.renamed(bars.picture(group, cells), group))
    found += thennow.pictures(run, experiment)
    found = [picture for picture in found if picture.points]
    return list(map(ticks.renamed, found)) if ticks.are(run) else found


def _grouped(rows: Sequence[dict], key: Callable[[dict], object]) -> list[list[dict]]:
    groups: dict[object, list[dict]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.values())


def _maps(rows: Sequence[dict]) -> tuple[list[list[dict]], list[dict]]:
    """Rows with a map of alignments, those of one size together; and the rest."""
    offsets = ("src_off", "dst_off")
    maps, left = [], []
    for group in _grouped(rows, lambda row: dimensions.without(row, offsets)):
        sides = [len({row[key] for row in group}) for key in offsets]
        # Both sides moved by the same (usercopy) are one line across a map, and a map for each routine and size.
        apart = {(row["dst_off"] or 0) - (row["src_off"] or 0) for row in group}
        (maps if min(sides) >= LEAST_OFFSETS and len(apart) > 1 else left).extend(group)
    places = (*offsets, "src_state", "dst_state")
    return _grouped(maps, lambda row: dimensions.without(row, places)), left


# What may differ between the panels of one picture.
_PANELS = ("src_state", "dst_state", "walk", "buffer", "content", "ascending", "handed", "code")
_PANELS += ("handed_by", "places", "mix", "cpu", "huge", "threads")


def _along(
    rows: Sequence[dict], axis: str, panels: Sequence[str]
) -> tuple[list[list[dict]], list[dict]]:
    """Rows that make curves along this axis, and the rest; those that lack it are of the rest."""
    found, left = [], [row for row in rows if dimensions.along(row, axis) is None]
    there = [row for row in rows if dimensions.along(row, axis) is not None]
    for group in _grouped(there, lambda row: dimensions.without(row, (axis,))):
        values = {dimensions.along(row, axis) for row in group}
        (found if len(values) >= LEAST_POINTS else left).extend(group)
    return _grouped(found, lambda row: dimensions.without(row, (axis, *panels))), left
