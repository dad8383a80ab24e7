"""What a comparison found, in sentences and tables."""

from __future__ import annotations

from collections.abc import Sequence

from wherry.compare.judge import FASTER, SLOWER, UNCHANGED, UNDECIDED, Change, Comparison
from wherry.compare.machines import PAIRED
from wherry.formats.places import place
from wherry.sentences import join
from wherry.tables import MISSING, Column, Figure, Line, layout
from wherry.units import ns_label, percent

_STYLES = {SLOWER: "bad", FASTER: "lead", UNCHANGED: "", UNDECIDED: "dim"}


def times(ratio: float) -> str:
    return f"{ratio:.2f}x" if 0.095 < ratio < 99.5 else f"{ratio:.3g}x"


def count(number: int, what: str = "cell") -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _interval(change: Change) -> str:
    if change.sure_low is None:
        return "no interval"
    return f"{times(change.sure_low)[:-1]} to {times(change.sure_high)}"


def _several_ops(found: Comparison, experiment: str) -> bool:
    """Whether a cell of it is told by its place and routine only together with its op."""
    return len({c.a["op"] for c in found.changes if c.a["experiment"] == experiment}) > 1


def groups(found: Comparison) -> list[str]:
    """`sizes: 12 of 90 cells slower, 1.06x to 1.31x, worst at 64 B, L1 (wherry)`, the largest first."""
    total: dict[str, int] = {}
    for change in found.changes:
        if not change.yardstick:
            total[change.a["experiment"]] = total.get(change.a["experiment"], 0) + 1
    said = []
    for verdict in (SLOWER, FASTER):
        by_experiment: dict[str, list[Change]] = {}
        for change in found.of(verdict):
            by_experiment.setdefault(change.a["experiment"], []).append(change)
        for name, own in sorted(by_experiment.items(), key=lambda item: -len(item[1])):
            with_op = _several_ops(found, name)
            said.append((verdict, f"{name}: {_group(own, total[name], verdict, with_op)}"))
    return [sentence for _, sentence in said]


def _group(own: Sequence[Change], total: int, verdict: str, with_op: bool) -> str:
    extreme = (max if verdict == SLOWER else min)(own, key=lambda c: c.ratio)
    text = f"{len(own)} of {count(total)} {verdict}, "
    text += "worst " if verdict == SLOWER else "best "
    op = f"{extreme.a['op']}, " if with_op else ""
    text += f"{times(extreme.ratio)} at {op}{place(extreme.a)} {extreme.a['routine']}"
    if len(own) > 1:
        least = (min if verdict == SLOWER else max)(own, key=lambda c: c.ratio)
        if times(least.ratio) != times(extreme.ratio):
            text += f", least {times(least.ratio)}"
        routines: dict[str, int] = {}
        for change in own:
            routines[change.a["routine"]] = routines.get(change.a["routine"], 0) + 1
        if len(routines) > 1:
            most = sorted(routines.items(), key=lambda item: (-item[1], item[0]))
            shown = [f"{name} {number}" for name, number in most[:6]]
            shown += [f"{len(most) - 6} routines more"] if len(most) > 6 else []
            text += f"; {join(shown)}"
        else:
            text += f"; all {extreme.a['routine']}"
    return text


def summary(found: Comparison) -> str:
    judged = [c for c in found.changes if not c.yardstick]
    parts = [
        f"{len(found.of(verdict)):,} {verdict}"
        for verdict in (SLOWER, FASTER, UNCHANGED, UNDECIDED)
    ]
    return f"{count(len(judged))} in both: {join(parts)}"


def method(found: Comparison) -> str:
    if found.decision.method == PAIRED:
        how = "time against time"
    elif found.reference:
        how = f"shape against shape, each cell over {found.reference} in its own row"
    else:
        how = "shape against shape, each cell over the middle of the cells that both runs have"
    return f"{how}; {found.decision.why}"


def noise(found: Comparison) -> str:
    """What a difference has to exceed."""
    kinds: dict[str, list[str]] = {}
    for name, floor in found.floors.items():
        kinds.setdefault(percent(floor), []).append(name)
    parts = [f"{floor} in {join(names)}" for floor, names in kinds.items()]
    text = f"both noise floors together: {'; '.join(parts)}"
    if found.unfloored:
        text += f" (not measured in both for {join(found.unfloored)})"
    if found.control:
        cells, middle, spread = found.control
        text += (
            f"; or, where it is more, what the same code (libc, yardsticks: {count(cells)}) shows "
            f"between the runs: {middle:.3f}x the time, scattered by {percent(spread)}"
        )
    if found.bulk is not None:
        text += (
            "; what is of a single sample or of fewer than three processes is judged by the scatter of all cells, "
            f"{percent(found.bulk)}"
        )
    return text


def only(cells: Sequence[dict], which: str) -> str:
    """What one run alone has, by experiment."""
    by_experiment: dict[str, list[dict]] = {}
    for cell in cells:
        by_experiment.setdefault(cell["experiment"], []).append(cell)
    parts = []
    for name, own in by_experiment.items():
        routines = list(dict.fromkeys(cell["routine"] for cell in own))
        shown = ", ".join(routines[:4]) + (", ..." if len(routines) > 4 else "")
        parts.append(f"{count(len(own))} of {name} ({shown})")
    return f"Only in {which}: {'; '.join(parts)}."


def table(changes: Sequence[Change], found: Comparison, width: int) -> list[Line]:
    """`found` tells what the ratio is one of. Of runs in two units each has its own."""
    unit = "ns" if found.one_unit else "own unit"
    columns = [
        Column("experiment", left=True),
        Column("op", left=True),
        Column("cell", left=True),
        Column("routine", left=True),
        Column("first", unit),
        Column("second", unit),
        Column("ratio", "time" if found.decision.method == PAIRED else "shape"),
        Column("lies in", "95 % of all", left=True),
        Column("", left=True),
    ]
    body = []
    for change in changes:
        style = _STYLES[change.verdict]
        body.append(
            [
                Figure(change.a["experiment"]),
                Figure(change.a["op"]),
                Figure(place(change.a)),
                Figure(change.a["routine"], style=style),
                Figure(ns_label(change.a["ns"]["median"])),
                Figure(ns_label(change.b["ns"]["median"])),
                Figure(times(change.ratio), style=style),
                Figure(_interval(change)) if change.sure_low is not None else MISSING,
                Figure(change.verdict, style=style),
            ]
        )
    # What is the same on every line needs no column, nor does the op that the experiment tells.
    experiments = {change.a["experiment"] for change in changes}
    kept = [0] if len(experiments) > 1 else []
    kept += [1] if any(_several_ops(found, name) for name in experiments) else []
    kept += range(2, len(columns))
    body = [[line[i] for i in kept] for line in body]
    return layout([columns[i] for i in kept], body, max(width, 40))
