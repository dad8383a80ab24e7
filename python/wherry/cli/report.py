"""A run, printed: the block that heads a mail, the tables and sentences of its experiments, what went wrong."""

from __future__ import annotations

import sys
import time

from wherry import counters, levels, machine, rounds, sentences, stats, tables
from wherry import experiments as rooms
from wherry.campaign import Campaign
from wherry.cli.printer import Printer
from wherry.experiments import Experiment
from wherry.formats import shown
from wherry.problems import grouped
from wherry.units import percent, plural, seconds_in_words


def heading(printer: Printer, run: dict) -> None:
    record = run["machine"]
    stamp = run["started"].replace("T", " ").replace("Z", " UTC")
    if run.get("source"):
        on = f" on {record['host']}" if record["host"] else ""
        printer.text(
            f"Imported by Wherry {run['wherry']}: {run['source']['tool']}{on}, {stamp}", "title"
        )
        printer.pairs(shown.heading(run))
        return
    printer.text(f"Wherry {run['wherry']} on {record['host']}, {stamp}", "title")
    printer.pairs(machine.heading(record))


def verified(printer: Printer, result) -> None:
    printer.text()
    wrong = result.wrong_targets()
    end = result.end or {}
    tried = f" ({tried})" if (tried := result.tried()) else ""
    text = (
        f"Verified: {end.get('cases', 0):,} cases{tried} in {seconds_in_words(end.get('seconds', 0))}"
        + (f", seed {result.start['seed']}" if "seed" in result.start else "")
    )
    if cut := result.unfinished_targets():
        text += f"; cut off, so not proved: {', '.join(cut)}"
    if not wrong:
        printer.paragraph(f"{text}; {'nothing wrong so far' if cut else 'all right'}.")
        return
    printer.text(f"{text}; WRONG and not measured: {', '.join(wrong)}", "bad")
    for target, message in wrong.items():
        printer.paragraph(f"{target}: {message}", indent="  ")


def experiment(printer: Printer, run: dict, name: str) -> None:
    own = next(e for e in run["experiments"] if e["name"] == name)
    if not tables.rows_of(run, name):
        return
    floor = own["noise_floor"]
    noise = (
        f"{name}: noise floor {percent(floor)} ({tables.measured_twice(run, name)} against itself); "
        if floor is not None
        else f"{name}: noise floor not measured; "
    )
    disturbed = sum(
        bool(c.get("disturbed")) for c in run["cells"] if c["experiment"] == name and not c["aa"]
    )
    printer.text()
    printer.paragraph(
        noise
        + f"medians of {plural(own['processes'], 'process', 'processes')} x "
        + plural(own["rounds"], "round")
        + (f"; {said}" if (said := sentences.corrected(own.get("correction"))) else "")
        + (f"; {said}" if (said := rounds.thinned_in_words(own)) else "")
        + ("" if own["complete"] else "; INTERRUPTED, so fewer")
    )
    some = f"{plural(disturbed, 'cell has', 'cells have')} disturbed rounds" if disturbed else ""
    for line in (
        rounds.voided_in_words(own, disturbed) or some,
        rounds.drift_in_words(own),
        levels.in_words(own),
    ):
        if line:
            printer.paragraph(f"{name}: {line}")
    if "ab" in own:
        printer.paragraph(own["ab"].get("verdict", ""))
    if run.get("source") or name not in rooms.names():
        for block in shown.blocks(run, name, printer.width):
            printer.block(block)
        return
    rows = tables.rows_of(run, name)
    if untold := sentences.untold(rows):
        printer.paragraph(f"{name}: {untold}")
    blocks = rooms.load(name).blocks(run | {"noise": {"floor": floor}}, printer.width)
    if legend := tables.legend(blocks):
        printer.paragraph(legend, "dim")
    for block in blocks:
        printer.block(block)
    if run["method"].get("counters_shown"):
        printer.block(counters.block(run, name, printer.width))


def problems(printer: Printer, run: dict) -> None:
    lines = grouped(run)
    if not lines:
        return
    printer.text()
    for kind, line in lines:
        printer.paragraph(line, "dim" if kind == "skip" else "bad")


def problems_to_stderr(run: dict) -> None:
    for kind, line in grouped(run):
        if kind != "skip":
            print(f"wherry: {line}", file=sys.stderr)


def skipped_to_stderr(problems: list[dict]) -> None:
    for _, line in grouped({"problems": problems}):
        print(f"wherry: {line}", file=sys.stderr)


class Draft:
    """The table so far, from rows that are not done in every process yet: medians, no verdicts."""

    def __init__(self, campaign: Campaign, own: Experiment, width: int):
        self.campaign = campaign
        self.own = own
        self.width = width
        self.seen = -1
        self.lines: list[str] = []
        self.made = 0.0

    def __call__(self) -> list[str]:
        campaign = self.campaign
        if campaign.finished_rows == self.seen or time.monotonic() - self.made < 0.3:
            return self.lines
        self.seen = campaign.finished_rows
        rows, cells = [], []
        for number, row in enumerate(campaign.rows):
            own = campaign.measured(number)
            if not own:
                continue
            where = {"experiment": row.experiment, "row": number} | row.dimensions()
            rows.append(where | {"fastest": None, "tied": [], "lead": None})
            for name, cell in own.items():
                cells.append(
                    where
                    | {
                        "routine": name,
                        "aa": False,
                        "bytes": cell.bytes,
                        "calls": cell.calls,
                        "ns": stats.quantiles(cell.ns),
                        "ratio": None,
                    }
                )
        run = {"rows": rows, "cells": cells, "noise": {"floor": None}, "machine": {}}
        blocks = self.own.blocks(run, self.width) if rows else []
        self.lines = [
            line
            for block in blocks
            for line in (block.title, *tables.plain(block.lines).split("\n"))
        ]
        self.made = time.monotonic()
        return self.lines
