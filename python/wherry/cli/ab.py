"""`wherry ab -- CMD`: the program itself, stock and with the drop-in, in turns."""

from __future__ import annotations

import click

from wherry.cli import duration


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="Example: wherry ab --runs 20 -- sort -k2 words.txt",
)
@click.argument("words", metavar="-- CMD [ARG ...]", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--runs",
    type=click.IntRange(2, 10_000),
    metavar="N",
    help="Runs of each side, two a round: of an odd number one more. Default: 20, and fewer (not below 8) when they do "
    "not fit --time.",
)
@click.option("--a", "a", metavar="WHAT", help="The side to hold against; see below. [libc]")
@click.option("--b", "b", metavar="WHAT", help="The side in question. [dropin]")
@click.option(
    "--plan",
    "plans",
    multiple=True,
    metavar="FILE",
    help="Drop-in with the default plan against it with this one; twice: one plan against another.",
)
@click.option(
    "--tunables",
    multiple=True,
    metavar="GLIBC_TUNABLES",
    help="libc as it is against libc with these; twice: one set against another.",
)
@click.option(
    "--by",
    type=click.Choice(["cpu", "elapsed", "user", "system"]),
    default="cpu",
    show_default=True,
    help="The time that the verdict goes by; cpu is user and system.",
)
@click.option(
    "--time",
    "seconds",
    type=duration.Duration(),
    default="2m",
    show_default=True,
    metavar="TIME",
    help="Begin no round after so long.",
)
@click.option(
    "--limit",
    type=duration.Duration(),
    metavar="TIME",
    help="End a run, or a --prepare, that takes longer, and give up. [ten minutes]",
)
@click.option("--stdin", metavar="FILE", help="What each run reads from. [/dev/null]")
@click.option("--prepare", metavar="SHELL", help="Before each run, not timed: rm -rf copy")
@click.option("--keep", metavar="DIR", help="Keep what each run writes to standard output.")
@click.option("--same-output", is_flag=True, help="Fail when standard output ever differs.")
@click.option(
    "--expect",
    type=click.IntRange(0, 255),
    default=0,
    metavar="STATUS",
    help="The exit status that is right. [0]",
)
@click.option("--force", is_flag=True, help="Also where nothing can be preloaded.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Of the order of the runs.")
@click.option(
    "--save",
    metavar="FILE",
    help="The run file (default: runs/TIME-HOST.json). Replaces an earlier one only.",
)
@click.option("--json", "as_json", is_flag=True, help="The run as JSON instead of a table.")
def command(words, **options) -> int:
    """Runs CMD under two environments in turns and tells whether its CPU time, elapsed time or memory differ beyond
    noise: stock libc and the drop-in, two plans, two settings of glibc, or any two.

    WHAT is one or more of: libc; dropin; plan:FILE; preload:FILE (another shared object); glibc.NAME=VALUE;
    KEY=VALUE. Times are those of CMD and all that it starts. Each round is A B B A or B A A B, so it also tells what
    a side differs from itself: that is the noise, and a difference within it is called none. Exit status: 0 whatever
    the verdict, 1 when CMD fails or its exit status changes, 2 for misuse."""
    from wherry.cli import trying
    from wherry.errors import WherryError

    if not words:
        raise WherryError(
            "no command; give it after --, as in: wherry ab -- sort words.txt (wherry ab --help tells more)"
        )
    return trying.ab(words, **options)
