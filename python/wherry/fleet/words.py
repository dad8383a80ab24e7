"""A fleet's report in words and aligned tables, for a terminal or a mail; and as data."""

from __future__ import annotations

import itertools
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence

from wherry.fleet.outliers import counts
from wherry.fleet.summary import TOO_FEW, Change, Report
from wherry.units import percent, plural, size_in_words

MOST_HOSTS = 40
MOST_UNFIT = 20
# A column of names is made no narrower to fit.
LEAST_NAME = 12


def _fits(cell: str, width: int) -> bool:
    """Whether wrapping would leave it as it is."""
    return not cell or (len(cell) <= width and cell.isprintable() and cell[-1] != " ")


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], width: int | None = None
) -> list[str]:
    """Figures to the right, names to the left: a column whose head ends with a unit or begins with a number sign. Where
    it is wider than `width`, heads and names go over several lines, of the widest column first."""
    rows = [list(row) for row in rows]
    right = [head.endswith((")", "hosts", "floor", "scatter", "libc")) for head in heads]
    widest = [max(map(len, column), default=0) for column in zip(*rows, strict=True)]
    widest = widest or [0] * len(heads)
    widths = [max(len(head), own) for head, own in zip(heads, widest, strict=True)]
    # A head breaks at its blanks, a figure nowhere.
    least = [
        max(widest[i] if right[i] else 0, *map(len, heads[i].split()), 0) for i in range(len(heads))
    ]
    least = [n if r else min(w, LEAST_NAME) for n, w, r in zip(least, widths, right, strict=True)]
    while width and sum(widths) + 2 * len(widths) > width:
        wide = max(range(len(widths)), key=lambda i: (widths[i] > least[i], right[i], widths[i]))
        if widths[wide] <= least[wide]:
            break
        widths[wide] -= 1
    lines = []
    one = "  " + "  ".join(
        f"{{:{'>' if r else '<'}{w}}}" for w, r in zip(widths, right, strict=True)
    )
    for row in [list(heads), *rows]:
        if all(map(_fits, row, widths)):
            lines.append(one.format(*row).rstrip())
            continue
        parts = [textwrap.wrap(cell, w) or [""] for cell, w in zip(row, widths, strict=True)]
        for line in itertools.zip_longest(*parts, fillvalue=""):
            cells = (
                c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right, strict=True)
            )
            lines.append("  " + "  ".join(cells).rstrip())
    return lines


def _share(value: float | None) -> str:
    return "-" if value is None else percent(value)


def summary(report: Report) -> list[str]:
    """The whole in a few sentences."""
    models = {g.group.model for g in report.groups}
    lines = [
        f"{plural(report.hosts, 'host')} of {plural(len(models), 'CPU model')}, "
        f"{plural(report.runs, 'run')}, {report.cells:,} cells."
    ]
    named = {id(f.host) for f in report.findings}
    judged = sum(len(g.group.hosts) for g in report.groups if g.judged)
    if named:
        kinds = ", ".join(f"{n} {kind}" for kind, n in counts(report.findings))
        differ = "differs from its" if len(named) == 1 else "differ from their"
        lines.append(f"{plural(len(named), 'host')} {differ} own model: {kinds}.")
    elif judged:
        lines.append("No host differs from its own model by more than chance.")
    if judged < report.hosts:
        few = report.hosts - judged
        where = "is in a group" if few == 1 else "are in groups"
        lines.append(
            f"{plural(few, 'host')} {where} of fewer than five, too few to tell what is usual."
        )
    ratios = [(g.to_libc, g.group.title) for g in report.groups if g.to_libc]
    if ratios:
        (low, best), (high, worst) = min(ratios), max(ratios)
        words = f"Wherry takes {low:.2f} × libc's time on {best}"
        lines.append(f"{words}, {high:.2f} × on {worst}." if len(ratios) > 1 else f"{words}.")
    for change in report.changes:
        if change.verdict in ("slower", "faster"):
            lines.append(f"{change.title}: {change.verdict}, {change.ratio:.3f} × the time before.")
    if report.sought and all(c.verdict not in ("slower", "faster") for c in report.changes):
        lines.append(f"Before and after: {_unchanged(report)}.")
    if report.unfit:
        lines.append(f"{plural(len(report.unfit), 'file')} left out; named below.")
    if report.foreign:
        lines.append(f"{plural(report.foreign, 'run')} of other tools passed over.")
    return lines


def _unchanged(report: Report) -> str:
    if not report.changes:
        return "no host has runs of both with a cell in common"
    if all(c.verdict == TOO_FEW for c in report.changes):
        return "no CPU model has three hosts with runs of both, too few to tell a change"
    return "no change seen"


def interval(change: Change) -> str:
    return "-" if change.verdict == TOO_FEW else f"{change.low:.3f} ... {change.high:.3f}"


def groups(report: Report, width: int | None = None) -> list[str]:
    named = Counter(id(f.group) for f in {id(f.host): f for f in report.findings}.values())
    rows = []
    for own in report.groups:
        plan = own.plans[0][0] if own.plans else "-"
        if len(own.plans) > 1:
            plan += f" ({own.plans[0][1]:.0%})"
        rows.append(
            (
                own.group.model,
                own.group.hypervisor or "several",
                own.group.libc or "several",
                str(len(own.group.hosts)),
                str(named[id(own.group)]),
                _share(own.floor),
                _share(own.scatter),
                f"{own.to_libc:.2f} ×" if own.to_libc else "-",
                plan,
            )
        )
    heads = (
        "CPU model",
        "hypervisor",
        "C library",
        "hosts",
        "other hosts",
        "noise floor",
        "scatter",
        "Wherry/libc",
        "plan",
    )
    return table(heads, rows, width)


def curves(report: Report) -> list[str]:
    lines: list[str] = []
    for own in report.groups:
        for curve in own.curves:
            step = max(1, len(curve.points) // 8)
            rows = [
                (size_in_words(size), f"{mid:.2f}", f"{low:.2f}", f"{high:.2f}")
                for size, mid, low, high in curve.points[::step]
            ]
            lines += ["", f"{own.group.title}: {curve.routine} ({curve.what})"]
            lines += table(("size", "median (ns)", "5 % (ns)", "95 % (ns)"), rows)
    return lines


def findings(report: Report, every: bool, width: int | None = None) -> list[str]:
    shown = report.findings if every else report.findings[:MOST_HOSTS]
    lines = table(
        ("host", "what", "CPU model", "how it differs"),
        ((f.host.name, f.kind, f.group.model, f.words) for f in shown),
        width,
    )
    if len(shown) < len(report.findings):
        lines.append(f"  and {len(report.findings) - len(shown):,} more (--all shows them)")
    return lines


def changes(report: Report, width: int | None = None) -> list[str]:
    return table(
        ("what", "hosts", "time after / before (×)", "interval (×)", "verdict"),
        ((c.title, str(c.hosts), f"{c.ratio:.3f}", interval(c), c.verdict) for c in report.changes),
        width,
    )


def unfit(report: Report, every: bool) -> list[str]:
    shown = report.unfit if every else report.unfit[:MOST_UNFIT]
    lines = [f"  {path} {why}" for path, why in shown]
    if len(shown) < len(report.unfit):
        lines.append(f"  and {len(report.unfit) - len(shown):,} more (--all shows them)")
    return lines


def as_dict(report: Report) -> dict:
    return {
        "runs": report.runs,
        "hosts": report.hosts,
        "cells": report.cells,
        "summary": summary(report),
        "groups": [
            {
                "model": g.group.model,
                "hypervisor": g.group.hypervisor or None,
                "libc": g.group.libc or None,
                "hosts": len(g.group.hosts),
                "judged": g.judged,
                "noise_floor": g.floor,
                "scatter": g.scatter,
                "wherry_to_libc": g.to_libc,
                "plans": [{"plan": p, "share": s} for p, s in g.plans],
                "curves": [
                    {"routine": c.routine, "what": c.what, "points": [list(p) for p in c.points]}
                    for c in g.curves
                ],
            }
            for g in report.groups
        ],
        "findings": [
            {
                "host": f.host.name,
                "file": f.host.facts.path,
                "kind": f.kind,
                "model": f.group.model,
                "words": f.words,
                "ratio": f.ratio,
            }
            for f in report.findings
        ],
        "changes": [vars(c) for c in report.changes],
        "unread": [{"file": path, "why": why} for path, why in report.unfit],
    }
