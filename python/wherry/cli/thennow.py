"""`wherry bench --then`: what a seed published, printed under what was measured."""

from __future__ import annotations

from collections.abc import Sequence

from wherry import history, then
from wherry.cli.printer import Printer
from wherry.errors import WherryError
from wherry.sentences import join


def check_json(wanted: bool, as_json: bool) -> None:
    if wanted and as_json:
        raise WherryError(
            "--then prints tables; leave out --json, or read the figures with wherry list history --json"
        )


def check(wanted: bool, names: Sequence[str]) -> None:
    """Before an hour of measuring for nothing."""
    if wanted and not any(then.has(name) for name in names):
        raise WherryError(
            f"--then: the mails have no figures of what {join(names)} "
            f"{'measures' if len(names) == 1 else 'measure'}; "
            f"they have some for {join(history.experiments())}"
        )


def show(wanted: bool, printer: Printer, run: dict, name: str) -> None:
    if wanted:
        for sheet in then.sheets(run, name):
            printer.block(sheet.block(printer.width))


def page(printer: Printer, run: dict, names: Sequence[str]) -> None:
    from wherry.then.page import page

    kept = [own for own in run["experiments"] if own["name"] in names]
    printer.write(page(run | {"experiments": kept}))
