"""`wherry fleet`: many machines. What is measured on them, and what their run files say together."""

from __future__ import annotations

import json
from pathlib import Path

import click

from wherry.cli import fleeting, streams
from wherry.cli.grouped import FileName, Group


@click.group(cls=Group, epilog="Example: wherry fleet report runs/ --html fleet.html")
def command() -> None:
    """Measures on the hosts of a Dask scheduler, and reports on run files of many machines.

    RUNS are run files, or directories of them; report, query and metrics need no scheduler."""


def _load(
    runs: tuple[str, ...], output: Path | None = None, option: str = "-o", *, page: bool = False
):
    """`output`: what is made of them, a `page` or metrics; what would be lost by that is told before they are read."""
    from wherry import outputs
    from wherry.cli.progress import Progress
    from wherry.fleet import loading

    paths = loading.expand(runs)
    if output:
        outputs.refuse_inputs(output, dict.fromkeys(paths, "one of the run files"), option)
    if output and page:
        from wherry.cli.reporting import check_page

        check_page(output, option)
    if output:
        outputs.refuse(output, outputs.PAGE if page else outputs.METRICS)
    with Progress("reading", "files", len(paths)) as progress:
        return loading.read(paths, tell=lambda done, total: progress.at(done, total))


def _none_read(fleet) -> None:
    from wherry.errors import WherryError

    if not fleet.runs and not fleet.unfit:
        raise WherryError("only plans were given; give the run files of their hosts too")
    if not fleet.runs:
        path, why = fleet.unfit[0]
        more = f" (and {len(fleet.unfit) - 1:,} more)" if len(fleet.unfit) > 1 else ""
        raise WherryError(f"no run file could be read: {path} {why}{more}")


def _is_time(text: str) -> bool:
    """As run files have it, or the date of it; they are compared as text."""
    import re
    from datetime import datetime

    try:
        datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return False
    return re.fullmatch(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ)?", text) is not None


@command.command(
    epilog="Example: wherry fleet report mailed/ --before mailed/october --html fleet.html"
)
@click.argument("runs", nargs=-1, required=True, metavar="RUNS...")
@click.option(
    "--before",
    multiple=True,
    metavar="RUNS",
    help="Runs from before a change, to set the others beside.",
)
@click.option(
    "--since",
    metavar="TIME",
    help="The change's time (2026-11-21 or 2026-11-21T12:00:00Z): runs before it are before.",
)
@click.option("--html", "page", type=FileName(), metavar="FILE.html", help="Also as a page.")
@click.option(
    "--bundle",
    type=FileName(),
    metavar="FILE",
    help="Also one bundle of the plans among RUNS (FILE.plan: compiled; else as text).",
)
@click.option("--curves", is_flag=True, help="Also the curves of each group, as tables.")
@click.option(
    "--all", "everything", is_flag=True, help="Every host that differs, and every file not read."
)
@click.option("--json", "as_json", is_flag=True, help="As JSON, for a program.")
def report(runs, before, since, page, bundle, curves, everything, as_json) -> int:
    """What RUNS say together: by CPU model, hypervisor and C library; which hosts differ from their own model."""
    from wherry import outputs, planfiles, runfile
    from wherry.cli.printer import Printer
    from wherry.dimensions import clean
    from wherry.errors import EXIT_OK, WherryError
    from wherry.fleet import bundle as bundle_room
    from wherry.fleet import loading, summary, words

    if since and not _is_time(since):
        raise WherryError(
            f"--since {since} is no time; give it as 2026-11-21 or 2026-11-21T12:00:00Z"
        )
    outputs.refuse_same({"--html": page, "--bundle": bundle})
    made = bundle_room.make(bundle_room.files(list(runs), bundle)) if bundle else []
    if bundle:
        outputs.refuse(bundle, planfiles.kind(bundle))
    plain = tuple(r for r in runs if not r.endswith((".toml", ".plan")))
    if bundle:
        plain = tuple(filter(bundle_room.has_runs, plain))
    old = {clean(p, 200) for p in loading.expand(before)} if before else set()
    fleet = _load((*plain, *before), page, "--html", page=True)
    _none_read(fleet)
    found = summary.report(fleet, old, since)
    printer = Printer()
    if as_json:
        printer.write(runfile.encode(words.as_dict(found)).decode())
    else:
        fleeting.report(printer, found, curves, everything)
    if page:
        from wherry.fleet import page as page_room

        outputs.write(page, page_room.page(found).encode(), outputs.PAGE)
        streams.line_of(f"Page: {page}", aside=True)
    if bundle:
        bundle_room.write(bundle, made)
        for plan, hosts in made:
            streams.line_of(
                f"{bundle}: {plan.name}, from {words.plural(hosts, 'host')}", aside=True
            )
    return EXIT_OK


@command.command(
    epilog='Example: wherry fleet query "SELECT model, median(noise_floor) FROM runs GROUP BY model" runs/'
)
@click.argument("sql", metavar="SQL")
@click.argument("runs", nargs=-1, required=True, metavar="RUNS...")
@click.option(
    "--timeout",
    type=click.FloatRange(0.1),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="The longest a query may take.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Rows as JSON, for a program; NaN and infinities are null.",
)
def query(sql, runs, timeout, as_json) -> None:
    """Answers one SELECT about RUNS, by DuckDB.

    Tables: runs (a line a run), cells (a line a cell of a run), problems. DESCRIBE is SELECT * FROM cells LIMIT 1."""
    from wherry import runfile
    from wherry.cli.printer import Printer
    from wherry.dimensions import clean
    from wherry.errors import WherryError
    from wherry.fleet import query as room
    from wherry.fleet import words

    room._module()
    fleet = _load(runs)
    _none_read(fleet)
    for path, why in fleet.unfit:
        streams.line_of(f"wherry fleet query: {path} {why}; passed over", aside=True)
    heads, rows = room.ask(fleet, sql, timeout)
    printer = Printer()
    if as_json:
        if twice := next((head for head in heads if heads.count(head) > 1), None):
            raise WherryError(
                f"--json: two columns are named '{clean(twice)}'; give one another name: AS NAME"
            )
        found = [room.plain(dict(zip(heads, row, strict=True))) for row in rows]
        text = json.dumps(found, allow_nan=False)
        printer.write(runfile.plain_json(text) + "\n")
        return
    shown = [
        ["" if v is None else f"{v:.6g}" if isinstance(v, float) else clean(v) for v in row]
        for row in rows
    ]
    printer.write("\n".join(words.table([clean(h) for h in heads], shown)) + "\n")


@command.command(epilog="Example: wherry fleet metrics runs/ -o /var/lib/node_exporter/wherry.prom")
@click.argument("runs", nargs=-1, required=True, metavar="RUNS...")
@click.option("-o", "--output", type=FileName(), metavar="FILE", help="Write there, not to stdout.")
def metrics(runs, output) -> None:
    """The main figures of RUNS as OpenMetrics text, for Prometheus: of each host the latest."""
    from wherry import outputs
    from wherry.cli.printer import Printer
    from wherry.fleet import metrics as room

    fleet = _load(runs, output)
    _none_read(fleet)
    for path, why in fleet.unfit:
        streams.line_of(f"wherry fleet metrics: {path} {why}; passed over", aside=True)
    text = room.text(fleet)
    if output:
        outputs.write(output, text.encode(), outputs.METRICS)
    else:
        Printer().write(text)


for own in fleeting.MEASURING:
    command.add_command(own)
