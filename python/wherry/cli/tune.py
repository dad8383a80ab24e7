"""`wherry tune`: a plan for this CPU, proved, or the word that the default is right; and the same for glibc."""

from __future__ import annotations

import click


@click.command(epilog="Example: wherry tune -o mine.toml && wherry ab --plan mine.toml -- CMD")
@click.option(
    "--mix",
    "mixes",
    multiple=True,
    metavar="MIX",
    help="Choose by what this program copies (wherry record), not by all sizes. Repeatable.",
)
@click.option(
    "-o",
    "--output",
    metavar="PLAN",
    help="The plan, as commented TOML; compiled when named FILE.plan. Default: wherry-plan.toml, only when it wins.",
)
@click.option(
    "--glibc",
    is_flag=True,
    help="Tune the libc that is here instead: the GLIBC_TUNABLES line that wins, with the proof.",
)
@click.option("--quick", is_flag=True, help="Shorter, for a first look; proves little.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Of all random choices.")
@click.option("--json", "as_json", is_flag=True, help="What was found as JSON.")
def command(mixes, output, glibc, quick, seed, as_json) -> int:
    """Measures what a plan says on this CPU: the routines, the sizes between which string instructions win, the
    direction of loops, the size from which stores go past the caches, and in how many streams, alone and with all CPUs
    at it. What wins by more than the noise on cells that it was not chosen by goes into the plan; the rest stays as in
    the default. Takes up to three minutes."""
    if glibc:
        from wherry.cli import tuninglibc as how
    else:
        from wherry.cli import tuning as how

    return how.tune(mixes, output, quick=quick, seed=seed, as_json=as_json)
