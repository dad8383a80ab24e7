"""`wherry list`: what there is to measure and to verify."""

from __future__ import annotations

import click


@click.command("list", epilog="Example: wherry list routines --json")
@click.argument("what", metavar="routines|experiments|regions|mixes|peers")
@click.option(
    "--mix",
    "mixes",
    multiple=True,
    metavar="FILE",
    help="mixes: also those of this file, or of all .csv in a directory. Repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="As JSON, for a program.")
def command(what: str, mixes: tuple[str, ...], as_json: bool) -> None:
    """Lists the routines, the experiments, the scoreboard's regions, the mixes of sizes or the peers that there are."""
    from wherry.errors import WherryError, unknown

    kinds = {
        "routines": _routines,
        "experiments": _experiments,
        "regions": _regions,
        "peers": _peers,
    }
    if what == "mixes":
        _mixes(mixes, as_json)
        return
    if what not in kinds:
        raise unknown("list of", what, [*kinds, "mixes"], "wherry list --help")
    if mixes:
        raise WherryError(f"--mix goes with wherry list mixes, not with wherry list {what}")
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
        "wherever a routine can; so can call_floor, a function that returns at once, and plain loops of "
        "the widest vectors: read_bandwidth, write_bandwidth, copy_bandwidth and, past the caches, "
        "write_nt_bandwidth and copy_nt_bandwidth."
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
    from wherry.scoreboard.regions import FUNCTIONS, OPS, REGIONS

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


def _mixes(files: tuple[str, ...], as_json: bool) -> None:
    from wherry import mixes
    from wherry.cli.printer import Printer
    from wherry.runfile import encode
    from wherry.tables import Column, Figure, layout
    from wherry.units import percent, size_label

    printer = Printer()
    found = [mix.record() for mix in (*mixes.built_in(), *mixes.gather(files))]
    if as_json:
        printer.write(encode(found).decode())
        return
    columns = [Column("mix", "", left=True)]
    columns += [Column("median" if p == 50 else f"p{p}", "bytes") for p in mixes.PERCENTILES]
    columns += [Column("largest", "bytes"), Column("mean", "bytes")]
    columns += [Column("to 16", "of calls"), Column("to 64", "of calls"), Column("for", left=True)]
    body = [
        [
            Figure(mix["name"], style="title"),
            *(Figure(size_label(size)) for size in mix["percentiles"].values()),
            Figure(size_label(mix["largest"])),
            Figure(f"{mix['mean']:.0f}"),
            Figure(percent(mix["up_to_16"])),
            Figure(percent(mix["up_to_64"])),
            Figure("all" if len(mix["ops"]) == len(mixes.OPS) else ", ".join(mix["ops"])),
        ]
        for mix in found
    ]
    printer.lines(layout(columns, body, printer.width))


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
        printer.text(
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


def _near(path: str) -> str:
    """As it is typed from here, when that is shorter."""
    import os

    near = os.path.relpath(path)
    return near if len(near) < len(path) and not near.startswith("..") else path
