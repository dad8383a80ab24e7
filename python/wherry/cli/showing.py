"""`wherry bench --show`: the tables of a run file; nothing is measured."""

from __future__ import annotations

from pathlib import Path

from wherry import runfile
from wherry.cli import report, thennow
from wherry.cli.printer import Printer
from wherry.errors import unknown
from wherry.formats import files


def show(
    file: str,
    given,
    as_json: bool,
    then: bool = False,
    markdown: bool = False,
    counters: bool = False,
) -> None:
    thennow.check_json(then, as_json)
    run = files.load(Path(file))
    printer = Printer()
    if as_json:
        printer.write(runfile.encode(run).decode())
        return
    has = [e["name"] for e in run["experiments"]]
    for name in given:
        if name not in has:
            raise unknown("experiment", name, has, "the run file")
    shown = [name for name in has if not given or name in given]
    thennow.check(then, shown)
    if markdown:
        thennow.page(printer, run, shown)
        return
    run["method"]["counters_shown"] = counters
    report.heading(printer, run)
    for name in shown:
        report.experiment(printer, run, name)
        thennow.show(then, printer, run, name)
    report.problems(printer, run)
