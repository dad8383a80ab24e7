"""`wherry bench`: measures, prints, saves."""

from __future__ import annotations

import click

from wherry.cli import dimensions, reporting, whole


@click.command(
    epilog="Example: wherry bench sizes small --routine rep_movsb,avx2_loop --peer musl=/lib/ld-musl-x86_64.so.1"
)
@click.argument("experiments", metavar="[EXPERIMENT ...]", nargs=-1)
@click.option(
    "--routine",
    "routines",
    multiple=True,
    metavar="NAME,...",
    help="Only these beside libc; 'all' for every one of the op. Repeatable.",
)
@click.option(
    "--size",
    "sizes",
    multiple=True,
    metavar="SIZE,...",
    help="Only these sizes: 1448, 4K, 8M. Repeatable.",
)
@click.option(
    "--peer",
    "peers",
    multiple=True,
    metavar="NAME=PATH[:PREFIX]",
    help="Also somebody else's shared object. Repeatable.",
)
@click.option(
    "--state",
    "states",
    multiple=True,
    metavar="STATE,...",
    help="Where the bytes are: L1, L2, L3, DRAM, or SOURCE/DESTINATION.",
)
@click.option(
    "--op",
    "ops",
    multiple=True,
    metavar="OP,...",
    help="scoreboard, mixes, percentiles, handover, cells: only copy, move or set; cells: or another op. Repeatable.",
)
@click.option(
    "--region",
    "regions",
    multiple=True,
    metavar="NAME,...",
    help="scoreboard: only these regions (wherry list regions) and what --mix gives. Repeatable.",
)
@click.option(
    "--isa",
    metavar="TIER",
    help="scoreboard, mixes, percentiles, handover, cells: hold Wherry to sse2, avx2, avx512, avx512_ladder or "
    "avx512_together.",
)
@click.option(
    "--mix",
    "mixes",
    multiple=True,
    metavar="MIX",
    help="scoreboard, mixes, percentiles, handover, cells: also these sizes: uniform:LO-HI, log:LO-HI, a file "
    "(size:probability,..., or as in LLVM libc) or a directory.",
)
@click.option(
    "--found-peers",
    is_flag=True,
    help="What make peers built as if each were given with --peer, in every experiment.",
)
@click.option(
    "--no-found-peers",
    is_flag=True,
    help="small, scoreboard, mixes, checksum, network: without what make peers built.",
)
@click.option(
    "--turns",
    type=click.IntRange(1, 100_000_000),
    metavar="N",
    help="switch: round trips in a sample (default: 10000; 2000 between two CPUs).",
)
@click.option(
    "--members",
    multiple=True,
    metavar="PATH",
    help="stripes: read these files, or those of a directory, in place of scratch. Repeatable.",
)
@click.option("--disks", multiple=True, metavar="N,...", help="stripes: so many members, 1 to 9.")
@click.option("--scratch", metavar="DIR", help="stripes: where scratch goes (default: TMPDIR).")
@click.option("--quick", is_flag=True, help="The short form of experiments that have one.")
@click.option(
    "--verify",
    "verify_first",
    is_flag=True,
    help="A brief verification first; what fails it is named and not measured.",
)
@dimensions.options
@click.option(
    "--counters",
    is_flag=True,
    help="Also what the processor counted: cycles, instructions, misses.",
)
@click.option(
    "--pin", type=dimensions.Cpus(), metavar="CPU", help="Run on this CPU; cells: or on several."
)
@click.option("--processes", type=click.IntRange(1, 100), help="Fresh processes to measure in.")
@click.option("--rounds", type=click.IntRange(1, 1000), help="Rounds in each process.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Of all random choices.")
@click.option(
    "--hang-limit",
    type=click.FloatRange(0.1),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Stop a runner that is silent for so long.",
)
@click.option(
    "--save",
    metavar="FILE",
    help="The run file (default: runs/TIME-HOST.json). Replaces an earlier run file, nothing else, and no journal of "
    "a killed run.",
)
@click.option("--raw", is_flag=True, help="Raw samples beside it, in FILE.raw.json.gz.")
@click.option("--json", "as_json", is_flag=True, help="The run as JSON instead of tables.")
@click.option("--show", metavar="FILE", help="Print the tables of a run file; measure nothing.")
@click.option(
    "--then",
    is_flag=True,
    help="Also the published figures that an experiment repeats, beside this machine's.",
)
@click.option(
    "--markdown",
    is_flag=True,
    help="With --show and --then: as a page of Markdown, as docs/then-and-now.md is.",
)
@reporting.options
@whole.options
@click.pass_context
def command(ctx, experiments, show, as_json, then, markdown, **options) -> int:
    """Measures routines and prints the tables: `sizes` when no experiment is named (wherry list experiments)."""
    from wherry.cli import benching, showing
    from wherry.cli.options import Options
    from wherry.errors import EXIT_OK, WherryError

    if options.pop("self_check"):
        if isinstance(options["pin"], tuple):
            raise WherryError("--self-check takes one CPU (--pin); give one of them")
        return whole.self_check(ctx)
    if (resumed := options.pop("resume")) is not None:
        from wherry.cli import resuming

        return resuming.resume(ctx, resumed)
    if markdown and not (show and then):
        raise WherryError(
            "--markdown writes the page of then and now; give --show FILE --then with it"
        )
    if show is None:
        given = options | {"experiments": experiments, "as_json": as_json, "then": then}
        return benching.bench(Options.of(given), asked=whole.asked(ctx))
    plot, page, counters = (options.pop(key) for key in ("plot", "page", "counters"))
    given = [_flag(key) for key, value in options.items() if value and key not in ("hang_limit",)]
    if given:
        raise WherryError(f"--show only prints what was measured; leave out {', '.join(given)}")
    reporting.check_plot(plot)
    showing.show(show, experiments, as_json, then, markdown, counters)
    reporting.show(show, experiments, plot, page, aside=as_json or markdown)
    return EXIT_OK


def _flag(key: str) -> str:
    """The option of a parameter: `routines` is --routine."""
    own = {"verify_first": "--verify", "mixes": "--mix", "no_found_peers": "--no-found-peers"}
    own |= {"found_peers": "--found-peers"}
    own |= dimensions.FLAGS
    same = {"processes", "rounds", "turns", "members", "disks"}
    return own.get(key) or "--" + (key if key in same else key.rstrip("s"))
