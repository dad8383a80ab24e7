"""`wherry list`: what there is to measure and to verify."""

from __future__ import annotations

import click


@click.command("list", epilog="Example: wherry list routines --json")
@click.argument("what", metavar="routines|experiments")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for a program.")
def command(what: str, as_json: bool) -> None:
    """Lists the routines or the experiments there are."""
    from wherry.errors import unknown

    kinds = {"routines": _routines, "experiments": _experiments}
    if what not in kinds:
        raise unknown("list of", what, kinds, "wherry list --help")
    kinds[what](as_json)


def _routines(as_json: bool) -> None:
    from wherry import runner
    from wherry.cli.printer import Printer
    from wherry.runfile import encode
    from wherry.tables import Column, Figure, layout

    printer = Printer()
    rows = runner.routines()
    if as_json:
        printer.write(encode([{k: v for k, v in r.items() if k != "event"} for r in rows]).decode())
        return
    order = {op: i for i, op in enumerate(("copy", "move", "zero", "set"))}
    rows.sort(key=lambda r: (order.get(r["op"], 9), r["era"]))
    columns = [
        Column("routine", left=True),
        Column("op", left=True),
        Column("needs", left=True),
        Column("quantum"),
        Column("era"),
        Column("idea", left=True, wraps=True),
    ]
    table = []
    for row in rows:
        style = "dim" if row.get("unavailable") else ""
        quantum = f"{row['quantum']} B" if row["quantum"] != 1 else ""
        table.append(
            [
                Figure(row["name"], style=style or "title"),
                Figure(row["op"], style=style),
                Figure(row["needs"] + (" (not here)" if style else ""), style=style),
                Figure(quantum, style=style),
                Figure(str(row["era"]), style=style),
                Figure(row["idea"], style=style),
            ]
        )
    # No parts: the sentences of the last column wrap.
    printer.lines(layout(columns, table, 10_000))
    printer.text()
    printer.paragraph(
        f"{len(rows)} routines; libc, wherry (and wherry@sse2, wherry@avx2 ...) and peers can stand "
        "wherever a routine can; so can call_floor, a function that returns at "
        "once, and read_bandwidth, write_bandwidth and write_nt_bandwidth, plain loops of the widest vectors."
    )


def _experiments(as_json: bool) -> None:
    from wherry import experiments
    from wherry.cli.printer import Printer
    from wherry.runfile import encode

    printer = Printer()
    found = experiments.load_all()
    if as_json:
        keys = ("name", "after", "shows", "op", "routines")
        printer.write(encode([{key: getattr(e, key) for key in keys} for e in found]).decode())
        return
    printer.pairs([(e.name, f"{e.shows} (after {e.after})") for e in found])
