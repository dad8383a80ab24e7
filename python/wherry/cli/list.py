"""`wherry list`: what there is to measure and to verify."""

from __future__ import annotations

import itertools

import click

# In the order in which routines are listed.
OPS = (
    "copy",
    "move",
    "zero",
    "set",
    "csum",
    "copy_csum",
    "crc32c",
    "copy_crc32c",
    "iszero",
    "pagezero",
)
# What a routine does to its caller beside its work, by the traits of src/routines/registry.h.
EFFECTS = {
    "x87-saved": "saves and restores the x87 state",
    "x87-clobbered": "leaves the x87 stack empty",
    "mmx-clobbered": "loses the MMX and x87 state and leaves the stack empty",
    "reads-first": "reads before it writes",
    "calls-libc": "calls libc",
}
# Ops whose two sides may not overlap.
DISJOINT = ("copy", "copy_csum", "copy_crc32c")


@click.command("list", epilog="Example: wherry list routines --json")
@click.argument("what", metavar="routines|experiments|regions|mixes|peers|history")
@click.argument("chosen", metavar="[MIX ...]", nargs=-1)
@click.option(
    "--mix",
    "mixes",
    multiple=True,
    metavar="FILE|RANGE",
    help="mixes: also those of this file, or of all .csv in a directory; or uniform:LO-HI, log:LO-HI. Repeatable.",
)
@click.option(
    "--export",
    metavar="FILE",
    help="mixes: write one as a file, or several into a directory.",
)
@click.option(
    "--format", "form", metavar="FORM", help="--export: fleetbench (default) or llvm, LLVM libc's."
)
@click.option("--plot", metavar="FILE.svg|png", help="mixes: draw them.")
@click.option(
    "--experiment", metavar="NAME", help="history: only what this experiment of Wherry's repeats."
)
@click.option("--json", "as_json", is_flag=True, help="As JSON, for a program.")
def command(
    what: str,
    chosen: tuple[str, ...],
    mixes: tuple[str, ...],
    export: str | None,
    form: str | None,
    plot: str | None,
    experiment: str | None,
    as_json: bool,
) -> None:
    """Lists the routines, the experiments, the scoreboard's regions, the mixes of sizes (with their percentiles and a
    plot; MIX: only those, size by size), the peers that there are, or the history: every figure of the five mails that
    the experiments repeat."""
    from wherry.errors import WherryError, unknown

    kinds = {
        "routines": _routines,
        "experiments": _experiments,
        "regions": _regions,
        "peers": _peers,
    }
    if what not in (*kinds, "mixes", "history"):
        raise unknown("list of", what, [*kinds, "mixes", "history"], "wherry list --help")
    if experiment is not None and what != "history":
        raise WherryError(
            f"--experiment goes with wherry list history, not with wherry list {what}"
        )
    if what == "mixes":
        from wherry.cli import mixing

        mixing.listed(chosen, mixes, export=export, form=form, plot=plot, as_json=as_json)
        return
    given = {"--mix": mixes, "--export": export, "--format": form, "--plot": plot, "MIX": chosen}
    for flag, value in given.items():
        if value:
            raise WherryError(f"{flag} goes with wherry list mixes, not with wherry list {what}")
    if what == "history":
        _history(experiment, as_json)
        return
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
    order = {op: i for i, op in enumerate(OPS)}
    rows.sort(key=lambda r: (order.get(r["op"], 9), r["era"]))
    columns = [
        Column("routine", left=True),
        Column("needs", left=True),
        Column("era"),
        Column("idea; what else it does (source)", left=True, wraps=True),
    ]
    table = []
    for op, rows_of_op in itertools.groupby(rows, key=lambda r: r["op"]):
        of_op = [f"{op}:", "", "", "sides that do not overlap" if op in DISJOINT else ""]
        table += [[Figure("")] * len(columns)] * bool(table)
        table.append([Figure(text, style="title") for text in of_op])
        for row in rows_of_op:
            style = "dim" if row.get("unavailable") else ""
            told = [row["idea"], *(EFFECTS[own] for own in row["traits"] if own in EFFECTS)]
            if row["quantum"] != 1:
                told.append(f"multiples of {row['quantum']} bytes only")
            cells = (
                row["name"],
                row["needs"] + (" (not here)" if style else ""),
                str(row["era"]),
                f"{'; '.join(told)} ({row['source']})",
            )
            table.append([Figure(text, style=style) for text in cells])
    # No parts: the sentences of the last column wrap.
    printer.lines(layout(columns, table, 10_000))
    printer.text()
    printer.paragraph(
        f"{len(rows)} routines; libc, wherry (and wherry@sse2, wherry@avx2 ...) and peers can stand "
        "wherever a routine can; so can call_floor, a function that returns at once, and plain loops of "
        "the widest vectors: read_bandwidth, write_bandwidth, copy_bandwidth and, past the caches, "
        "write_nt_bandwidth, copy_nt_bandwidth and copy_nt_parts_bandwidth."
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
    printer.pairs([(e.name, e.shows + (f" (after {e.after})" if e.after else "")) for e in found])


def _regions(as_json: bool) -> None:
    from wherry.cli.printer import Printer
    from wherry.runfile import encode
    from wherry.scoreboard.listed import FUNCTIONS, OPS, REGIONS

    printer = Printer()
    if as_json:
        rows = [{"name": r.name, "about": r.about, "base": r.base, "ops": r.ops} for r in REGIONS]
        printer.write(encode(rows).decode())
        return
    for base, title in ((True, "Regions of the score"), (False, "Beside the score")):
        printer.text(title, "title")
        told = []
        for region in REGIONS:
            if region.base == base:
                some = ", ".join(FUNCTIONS[op] for op in region.ops)
                told.append(
                    (region.name, region.about + ("" if region.ops == OPS else f" ({some})"))
                )
        printer.pairs(told)
        if base:
            printer.text()


def _peers(as_json: bool) -> None:
    from wherry import found_peers
    from wherry.cli.printer import Printer
    from wherry.runfile import encode
    from wherry.tables import Column, Figure, layout

    printer = Printer()
    peers, problems = found_peers.survey()
    if as_json:
        printer.write(encode([peer.record() for peer in peers]).decode())
    elif peers:
        heads = ("name", "what", "version", "functions", "tier", "path")
        body = []
        for peer in peers:
            tier = peer.tier + ("" if peer.runs_here else " (not here)")
            words = (peer.what, peer.version, " ".join(peer.has), tier, _near(peer.path))
            style = "title" if peer.runs_here else "dim"
            body.append([Figure(peer.name, style=style), *(Figure(word or "-") for word in words)])
        printer.lines(layout([Column(head, left=True) for head in heads], body, printer.width))
    else:
        printer.paragraph(
            "no peers are there by themselves; "
            + (
                "make peers builds some"
                if found_peers.checkout()
                else f"{found_peers.VARIABLE} names a directory of shared objects"
            )
            + ", --peer NAME=PATH takes any"
        )
    for problem in problems:
        click.echo(f"wherry: left out: {problem}", err=True)


def _history(experiment: str | None, as_json: bool) -> None:
    from wherry import history, then
    from wherry.cli.printer import Printer
    from wherry.errors import unknown
    from wherry.runfile import encode
    from wherry.sentences import join

    known = history.experiments()
    if experiment is not None and experiment not in known:
        raise unknown("experiment with a history", experiment, known, "wherry list history")
    printer = Printer()
    if as_json:
        found = history.documents().values()
        if experiment is not None:
            parts = ("tables", "statements")
            found = [
                raw | {p: [own for own in raw[p] if own["experiment"] == experiment] for p in parts}
                for raw in found
            ]
            found = [raw for raw in found if raw["tables"] or raw["statements"]]
        printer.write(encode(list(found)).decode())
        return
    for number, seed in enumerate(history.seeds()):
        own = [name for name in known if name in then.of_seed(seed)]
        own = [name for name in own if experiment in (None, name)]
        if not own:
            continue
        if number:
            printer.text()
        printer.paragraph(f"{seed.about} ({seed.name})", "title")
        printer.paragraph(f"Repeated by {join(own)}.")
        for name in own:
            for sheet in then.alone(name, seed):
                printer.block(sheet.block(printer.width))


def _near(path: str) -> str:
    """As it is typed from here, when that is shorter."""
    import os

    near = os.path.relpath(path)
    return near if len(near) < len(path) and not near.startswith("..") else path
