"""`wherry compare`: runs beside each other."""

from __future__ import annotations

import click


@click.command(
    epilog="Example: wherry compare runs/before.json runs/after.json --fail-on slower:5%"
)
@click.argument("runs", metavar="BASE OTHER [...]", nargs=-1)
@click.option(
    "--fail-on",
    "limits",
    multiple=True,
    metavar="KIND[:SHARE]",
    help="Exit with 1 when a cell is slower, faster or changed by more: slower:5%. Repeatable.",
)
@click.option(
    "--method",
    type=click.Choice(["paired", "shapes"]),
    help="Times against times, or each cell over a reference in its own run. Default: by the machines.",
)
@click.option(
    "--same-machine", is_flag=True, help="They are of one machine, though they do not tell."
)
@click.option(
    "--reference", metavar="ROUTINE", help="shapes: to whom each cell is set. Default: libc."
)
@click.option("--all", "everything", is_flag=True, help="List the cells that did not change too.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for a program.")
def command(runs, limits, method, same_machine, reference, everything, as_json) -> int:
    """Compares runs with BASE, cell by cell: run files, or files of google-benchmark, Go's benchmarks and glibc's
    benchtests. A difference within the noise floor is none; one that may be chance is undecided, with as many
    comparisons as there are cells reckoned in. Times of one machine (same host, boot, CPU, kernel and libc) are
    compared as they are; else each cell is set to a reference in its own run first."""
    from wherry.cli import comparing
    from wherry.errors import WherryError

    if len(runs) < 2:
        raise WherryError(
            "compare takes two runs or more, the base first; see wherry compare --help"
        )
    if reference and method == "paired":
        raise WherryError("--reference goes with shapes; leave out --method paired")
    return comparing.compare(
        runs,
        limits,
        method="shapes" if reference else method,
        vouched=same_machine,
        reference=reference,
        everything=everything,
        as_json=as_json,
    )
