"""`wherry export`: a run in another format."""

from __future__ import annotations

from pathlib import Path

import click

from wherry.formats.export import FORMATS, SUFFIXES, USES_SAMPLES


@click.command(
    epilog="Example: wherry export runs/A.json --format google-benchmark -o A.gb.json    "
    "Formats: " + "; ".join(f"{name}: {about}" for name, (about, _) in FORMATS.items()) + "."
)
@click.argument("run", metavar="RUN")
@click.option(
    "--format",
    "form",
    metavar="FORMAT",
    help=f"{', '.join(FORMATS)}. Default: by the name of FILE, else csv.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Where to (default: standard output). Replaces an earlier export in that format only.",
)
def command(run: str, form: str | None, output: str | None) -> None:
    """Writes the cells of RUN in another format. Samples are the raw ones when they lie beside RUN (wherry bench
    --raw), else the quantiles that it keeps; the output says which. RUN may be another tool's file too."""
    from wherry import outputs
    from wherry.cli import streams
    from wherry.cli.printer import Printer
    from wherry.errors import WherryError, unknown
    from wherry.formats import export, files
    from wherry.formats.samples import Samples, beside, read_raw
    from wherry.units import plural

    if form is None:
        suffix = Path(output).suffix if output and output != "-" else ".csv"
        form = SUFFIXES.get(suffix)
        if form is None:
            raise WherryError(
                f"{output}: its name does not tell a format; give --format {' or '.join(FORMATS)}"
            )
    if form not in FORMATS:
        raise unknown("format", form, FORMATS, "wherry export --help")
    path = Path(run)
    document = files.load(path)
    raw = read_raw(path) if form in USES_SAMPLES else None
    if raw and raw.trouble:
        click.echo(f"wherry: {raw.trouble}", err=True)
    samples = Samples(document, raw)
    if not samples.cells:
        raise WherryError(f"{run} has no cells to export")
    text = export.text(form, document, samples)
    if output is None or output == "-":
        Printer().write(text)
        return
    target = Path(output)
    outputs.refuse_inputs(target, {path: "the run file", beside(path): "its raw samples"})
    outputs.write(target, text.encode(), outputs.EXPORTS[form])
    streams.line_of(
        f"{plural(len(samples.cells), 'cell')} of {run} in {output}"
        + (f" ({form}; samples: {samples.about})" if form in USES_SAMPLES else f" ({form})")
    )
