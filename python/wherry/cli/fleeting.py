"""What `wherry fleet` prints, and the commands that measure on hosts."""

from __future__ import annotations

import click

from wherry.fleet import words

# What a host can be asked for, and what that is good for.
WORK = {
    "bench": "Runs `wherry bench` on every host, one at a time on each; what is there already is not measured again.",
    "verify": "Runs `wherry verify` on every host: proves the routines right there.",
    "tune": "Runs `wherry tune` on every host; the plans can be made one bundle (wherry fleet report --bundle).",
    "doctor": "Asks every host what it is, and what may spoil a measurement there.",
}


def report(printer, found, curves: bool, everything: bool) -> None:
    printer.text("The fleet", "title")
    for line in words.summary(found):
        printer.paragraph(line)

    def part(title: str, lines: list[str]) -> None:
        printer.text()
        printer.text(title, "title")
        printer.write("\n".join(lines) + "\n")

    part("By CPU model, hypervisor and C library", words.groups(found, printer.width))
    if found.findings:
        part(
            "Hosts that differ from their own model",
            words.findings(found, everything, printer.width),
        )
    if found.changes:
        part("Before and after", words.changes(found, printer.width))
    if curves:
        part("Curves", words.curves(found)[1:])
    if found.unfit:
        part("Left out", words.unfit(found, everything))


def _measuring(kind: str) -> click.Command:
    @click.command(
        name=kind,
        help=WORK[kind],
        context_settings={"ignore_unknown_options": True},
        epilog=f"Example: wherry fleet {kind} --scheduler tcp://head:8786 --out runs/fleet"
        + (" sizes --quick" if kind == "bench" else ""),
    )
    @click.option(
        "--scheduler",
        required=True,
        metavar="ADDRESS",
        help="tcp://HOST:PORT or tls://HOST:PORT of a Dask scheduler, or its scheduler file.",
    )
    @click.option(
        "--out",
        default="runs/fleet",
        show_default=True,
        metavar="DIR-OR-URL",
        help="Where results go: a directory, or any fsspec URL (s3://...).",
    )
    @click.option(
        "--one-per",
        type=click.Choice(["host", "model"]),
        default="host",
        show_default=True,
        help="Every host, or one of each CPU model.",
    )
    @click.option(
        "--time-limit",
        type=click.FloatRange(1),
        default=3600,
        show_default=True,
        metavar="SECONDS",
        help="A host that takes longer is stopped.",
    )
    @click.option(
        "--retries",
        type=click.IntRange(0, 10),
        default=2,
        show_default=True,
        help="Of a host that was lost or busy.",
    )
    @click.option(
        "--wait",
        type=click.FloatRange(0),
        default=30,
        show_default=True,
        metavar="SECONDS",
        help="For a lost or busy host, before each retry.",
    )
    @click.option(
        "--busy-load",
        type=click.FloatRange(0),
        default=0.5,
        show_default=True,
        metavar="LOAD",
        help="A host with more load than this for each CPU is busy.",
    )
    @click.option("--tls-ca-file", metavar="FILE", help="As for dask: of a tls:// scheduler.")
    @click.option("--tls-cert", metavar="FILE", help="As for dask.")
    @click.option("--tls-key", metavar="FILE", help="As for dask.")
    @click.option(
        "--json", "as_json", is_flag=True, help="What became of each host as JSON, for a program."
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGUMENT ...]")
    def own(scheduler, arguments, as_json, **options) -> int:
        from wherry.cli import conducting

        return conducting.conduct(kind, scheduler, list(arguments), as_json=as_json, **options)

    return own


MEASURING = [_measuring(kind) for kind in WORK]
