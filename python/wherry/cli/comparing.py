"""What `wherry compare` prints and how it ends."""

from __future__ import annotations

from pathlib import Path

import click

from wherry import runfile, tables
from wherry.cli.printer import Printer
from wherry.compare import limits as limit_room
from wherry.compare import words
from wherry.compare.apart import nothing_common
from wherry.compare.judge import FASTER, SLOWER, UNCHANGED, UNDECIDED, Change, Comparison
from wherry.compare.judge import compare as judged
from wherry.compare.limits import Limit
from wherry.errors import EXIT_FAILED, EXIT_OK
from wherry.formats import files
from wherry.formats.naming import dimensions
from wherry.formats.places import place
from wherry.formats.samples import Raw, read_raw
from wherry.units import percent

# Lines of a table of changes before the rest is only counted.
SHOWN = 30
SHOWN_UNDECIDED = 5


def compare(paths, limits, *, method, vouched, reference, everything, as_json) -> int:
    given = limit_room.parse(limits)
    runs = [files.load(Path(path)) for path in paths]
    raws = [_raw(Path(path)) for path in paths]
    found = []
    for path, run, raw in zip(paths[1:], runs[1:], raws[1:], strict=True):
        own = judged(
            runs[0], run, (raws[0], raw), vouched=vouched, method=method, reference=reference
        )
        if not own.changes:
            raise nothing_common((paths[0], path), (runs[0], run))
        found.append(own)
    printer = Printer()
    if as_json:
        record = {
            "base": paths[0],
            "comparisons": [
                _record(path, own, given) for path, own in zip(paths[1:], found, strict=True)
            ],
        }
        record["failed"] = any(
            limit["failing"] for own in record["comparisons"] for limit in own["limits"]
        )
        printer.write(runfile.encode(record).decode())
    else:
        for i, own in enumerate(found, 1):
            if i > 1:
                printer.text()
            _print(printer, (paths[0], paths[i]), (runs[0], runs[i]), own, everything)
            _limits(printer, own, given)
        if len(found) > 1:
            _overview(printer, paths, found, given)
    failed = any(limit.failing(own) for own in found for limit in given)
    return EXIT_FAILED if failed else EXIT_OK


def _raw(path: Path) -> Raw:
    raw = read_raw(path)
    if raw.trouble:
        click.echo(f"wherry: {raw.trouble}", err=True)
    return raw


def _of(run: dict) -> str:
    source = run.get("source")
    when = run["started"].replace("T", " ").replace("Z", " UTC")
    if source:
        return f"{source['tool']}, {when}"
    return f"Wherry {run['wherry']} on {run['machine']['host']}, {when}"


def _print(printer: Printer, paths, runs, own: Comparison, everything: bool) -> None:
    printer.pairs(
        [
            ("First", f"{paths[0]} ({_of(runs[0])})"),
            ("Second", f"{paths[1]} ({_of(runs[1])})"),
            ("Compared", words.method(own)),
            ("Noise", words.noise(own)),
        ]
    )
    for note in own.notes:
        printer.paragraph(f"Note: {note}.", "dim")
    if own.unrecorded:
        printer.paragraph(
            f"Note: {', '.join(own.unrecorded)} is recorded in one of the runs only, and was not "
            "used to match cells.",
            "dim",
        )
    printer.text()
    printer.paragraph(words.summary(own) + ".", "title")
    for sentence in words.groups(own):
        printer.paragraph(sentence + ".")
    changed = own.of(SLOWER, FASTER)
    changed.sort(key=lambda c: -max(c.ratio, 1 / c.ratio))
    undecided = own.of(UNDECIDED)
    undecided.sort(key=lambda c: -max(c.ratio, 1 / c.ratio))
    if everything:
        shown = own.changes
    else:
        shown = [*changed[:SHOWN], *undecided[:SHOWN_UNDECIDED]]
    if shown:
        printer.text()
        printer.lines(words.table(shown, own, printer.width))
    left = len(changed) - SHOWN, len(undecided) - SHOWN_UNDECIDED
    more = [
        words.count(n, f"{kind} cell")
        for n, kind in zip(left, ("changed", "undecided"), strict=True)
        if n > 0
    ]
    if more and not everything:
        printer.paragraph(f"And {' and '.join(more)} more (--all lists them).", "dim")
    yardsticks = [c for c in own.changes if c.yardstick]
    if yardsticks:
        ratios = sorted(c.ratio for c in yardsticks)
        printer.paragraph(
            f"Yardsticks, which are no routines: {words.count(len(yardsticks))}, "
            f"{words.times(ratios[0])} to {words.times(ratios[-1])}.",
            "dim",
        )
    if own.unreferenced:
        printer.paragraph(
            f"{words.count(own.unreferenced)} left out: {own.reference} was not measured beside them.",
            "dim",
        )
    for cells, which in ((own.only_a, "the first"), (own.only_b, "the second")):
        if cells:
            printer.paragraph(words.only(cells, which), "dim")


def _limits(printer: Printer, own: Comparison, given: list[Limit]) -> None:
    if given:
        printer.text()
    for limit in given:
        failing, possible = limit.failing(own), limit.possible(own)
        if failing:
            worst = max(failing, key=lambda c: max(c.ratio, 1 / c.ratio))
            printer.paragraph(
                f"FAILED {limit.text}: {words.count(len(failing))}, the most "
                f"{words.times(worst.ratio)} at {place(worst.a)} {worst.a['routine']}.",
                "bad",
            )
        else:
            printer.paragraph(f"Passed {limit.text}: no cell is told to be beyond it.")
        if possible:
            most = max(possible, key=limit.towards)
            printer.paragraph(
                f"Undecided for {limit.text}: {words.count(len(possible))} may be beyond it, such as "
                f"{most.a['routine']} at {place(most.a)} ({words.times(most.ratio)}); "
                "measure again with more processes.",
            )
        unseen = limit.unseen(own)
        if unseen is not None and limit.share:
            printer.paragraph(
                f"The noise floor is {percent(unseen)} at most: below it {limit.text} sees nothing.",
                "dim",
            )


def _overview(printer: Printer, paths, found: list[Comparison], given: list[Limit]) -> None:
    """Of several runs one line each, since what is above is long."""
    kinds = (SLOWER, FASTER, UNCHANGED, UNDECIDED)
    columns = [tables.Column(f"beside {paths[0]}", left=True)]
    columns += [tables.Column(kind, "cells") for kind in kinds]
    columns += [tables.Column(limit.text, left=True) for limit in given]
    body = []
    for path, own in zip(paths[1:], found, strict=True):
        line = [tables.Figure(path), *(tables.Figure(f"{len(own.of(kind)):,}") for kind in kinds)]
        for limit in given:
            failed = bool(limit.failing(own))
            line.append(tables.Figure("FAILED" if failed else "passed", "bad" if failed else ""))
        body.append(line)
    printer.text()
    printer.lines(tables.layout(columns, body, printer.width))


# ---- JSON ------------------------------------------------------------------------------------------------------------


def _record(path: str, own: Comparison, given: list[Limit]) -> dict:
    return {
        "run": path,
        "method": own.decision.method,
        "decided": own.decision.why,
        "differ": list(own.decision.differ),
        "reference": own.reference,
        "noise_floors": own.floors,
        "noise_floor_missing": own.unfloored,
        "control": None
        if own.control is None
        else dict(zip(("cells", "median", "spread"), own.control, strict=True)),
        "unrecorded": own.unrecorded,
        "notes": own.notes,
        "counts": {
            verdict: len(own.of(verdict))
            for verdict in ("slower", "faster", "unchanged", "undecided")
        },
        "in_words": [words.summary(own), *words.groups(own)],
        "cells": [_change(change) for change in own.changes],
        "only_in_base": [_cell(cell) for cell in own.only_a],
        "only_in_run": [_cell(cell) for cell in own.only_b],
        "without_reference": own.unreferenced,
        "limits": [
            {
                "limit": limit.text,
                "failing": len(limit.failing(own)),
                "undecided": len(limit.possible(own)),
            }
            for limit in given
        ],
    }


def _cell(cell: dict) -> dict:
    own = {"experiment": cell["experiment"], "routine": cell["routine"]}
    return own | dimensions(cell)


def _change(change: Change) -> dict:
    own = _cell(change.a) | {
        "verdict": change.verdict,
        "yardstick": change.yardstick,
        "base": change.a["ns"]["median"],
        "run": change.b["ns"]["median"],
        "ratio": change.ratio,
        "noise_floor": change.floor,
        "interval": None,
        "interval_of_all": None,
    }
    if change.low is not None:
        own["interval"] = [change.low, change.high]
        own["interval_of_all"] = [change.sure_low, change.sure_high]
    return own
