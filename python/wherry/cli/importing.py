"""`wherry import`: another tool's figures as a run file."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(
    "import",
    epilog="Example: wherry import bench-memcpy.out --ghz 2.6 -o runs/glibc.json",
)
@click.argument("file", metavar="FILE")
@click.option(
    "-o",
    "--output",
    metavar="RUN",
    help="The run file (default: FILE.run.json). Replaces an earlier run file only.",
)
@click.option(
    "--ghz",
    type=click.FloatRange(0.01, 100),
    help="glibc benchtests: the rate of the CPU's counter, to make nanoseconds of its ticks.",
)
@click.option("--json", "as_json", is_flag=True, help="The run to standard output instead.")
def command(file: str, output: str | None, ghz: float | None, as_json: bool) -> None:
    """Makes a run file of another tool's: google-benchmark's JSON, Go's benchmark text (also out of go test -json), the
    JSON of glibc's benchtests. It is shown, compared, exported and reported like a run of ours; what the tool does not
    tell (the machine, say) stays unknown."""
    from wherry import outputs, runfile
    from wherry.cli import streams
    from wherry.cli.printer import Printer
    from wherry.errors import WherryError
    from wherry.formats import files
    from wherry.units import plural

    if as_json and output:
        raise WherryError("--json writes the run to standard output; leave it out, or -o")
    path = Path(file)
    run = files.load(path, foreign=True)
    if ghz is not None:
        if run["source"]["unit"] != "ticks":
            raise WherryError(
                f"--ghz is the rate of a counter, and {file} ({run['source']['tool']}) has no figures in ticks of one; "
                "leave it out"
            )
        run = files.load(path, ghz, foreign=True)
    if as_json:
        Printer().write(runfile.encode(run).decode())
        return
    target = Path(output) if output else outputs.beside(path, path.name + ".run.json")
    outputs.refuse_inputs(target, {path: "the file that is imported"})
    outputs.check(target, outputs.RUN)
    runfile.write(target, run)
    source = run["source"]
    cells = plural(len(run["cells"]), "cell")
    streams.line_of(f"{cells} of {file} ({source['tool']}) in {target}")
    for note in source["notes"]:
        click.echo(f"wherry: {note}", err=True)
    if source["unit"] == "ticks":
        click.echo(
            "wherry: the figures are ticks of the CPU's counter, whose rate the file does not tell; "
            "--ghz 2.6 makes nanoseconds of them",
            err=True,
        )
