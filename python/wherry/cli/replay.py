"""`wherry replay MIX`: what a program copies, with libc, with Wherry's plans and with peers."""

from __future__ import annotations

import click


@click.command(
    epilog="Example: wherry record -o gcc.mix.json -- gcc -O2 -c x.c && wherry replay gcc.mix.json"
)
@click.argument("mix", metavar="MIX")
@click.option(
    "--plan", "plan_files", multiple=True, metavar="FILE", help="Also this plan. Repeatable."
)
@click.option(
    "--peer",
    "peers",
    multiple=True,
    metavar="NAME=PATH[:PREFIX]",
    help="Also somebody else's shared object. Repeatable.",
)
@click.option("--no-found-peers", is_flag=True, help="Without the peers that make peers built.")
@click.option(
    "--noise",
    type=click.FloatRange(0, 100),
    default=1.0,
    show_default=True,
    metavar="PERCENT",
    help="What ab tells at best of that program; a change below it is called not measurable.",
)
@click.option("--quick", is_flag=True, help="One process and few rounds.")
@click.option("--processes", type=click.IntRange(1, 100), help="Fresh processes to measure in. [4]")
@click.option("--rounds", type=click.IntRange(1, 1000), help="Rounds in each process. [9]")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Of all random choices.")
@click.option(
    "--save",
    metavar="FILE",
    help="Also a run file, for wherry compare and report. Replaces an earlier one only.",
)
@click.option("--json", "as_json", is_flag=True, help="Totals, predictions and verdict as JSON.")
def command(mix, **options) -> int:
    """Measures MIX (a file of wherry record, a mix that comes with Wherry, a range as uniform:0-64, a published
    distribution) as it was recorded: sizes in their order, alignments, overlaps; hot, one cache further out, and in
    memory. Tells by how much each routine's time differs from libc's and, where the recording has a ceiling, what that
    would change of the program."""
    from wherry.cli import replaying

    return replaying.replay(mix, **options)
