"""`wherry list mixes`: what they are, in figures and characters; as files of other forms, as a picture."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from wherry import mixes, mixfiles, outputs, runfile
from wherry.cli import dimensions, streams
from wherry.cli.names import tell
from wherry.cli.printer import Printer
from wherry.errors import WherryError, unknown
from wherry.mixes import Mix
from wherry.tables import Column, Figure, layout
from wherry.units import percent, size_label

# So many named ones are shown class by class.
DETAILED = 3


def listed(
    names: Sequence[str],
    files: Sequence[str],
    *,
    export: str | None,
    form: str | None,
    plot: str | None,
    as_json: bool,
) -> None:
    if as_json and (export or plot):
        flag = "--export" if export else "--plot"
        raise WherryError(
            f"--json prints the list, and {flag} writes files instead; give one of them"
        )
    if form and not export:
        raise WherryError("--format goes with --export FILE")
    if form and form not in mixfiles.FORMS:
        raise unknown("form of mixes", form, mixfiles.FORMS, "wherry list --help")
    own = [*mixes.built_in(), *mixes.shipped(runnable=False)]
    given = dimensions.mixes(files)
    found = mixes.with_given(own, given)
    # `gcc` means all ops of what was recorded there.
    known: dict[str, list[Mix]] = {mix.name: [mix] for mix in found}
    for mix in found:
        whole, _, op = mix.name.rpartition(".")
        if op in mix.ops and whole not in known:
            known[whole] = [
                m for m in found if m.name in {f"{whole}.{o}" for o in mixes.OPS.values()}
            ]
    for name in names:
        if name not in known:
            raise unknown("mix", name, known, "wherry list mixes")
    chosen = [mix for name in dict.fromkeys(names) for mix in known[name]]
    if files and not names and (export or plot):
        chosen = list(given)  # who gives some means those
    chosen = chosen or found
    outputs.refuse_same(
        {"--plot": Path(plot) if plot else None, "--export": Path(export) if export else None}
    )
    if plot:
        _plot(chosen, plot)
    if export:
        form = form or mixfiles.FLEETBENCH
        if form == mixfiles.LLVM and not names and not files:
            chosen = _dense(chosen)
        _export(chosen, Path(export), form, [Path(file) for file in files])
    if plot or export:
        return
    printer = Printer()
    if as_json:
        printer.write(runfile.encode([mix.record() for mix in chosen]).decode())
        return
    _table(printer, chosen)
    _picture(printer, chosen, detailed=bool(names))


def _dense(chosen: Sequence[Mix]) -> list[Mix]:
    """Who wants all gets those that the form has room for."""
    for mix in chosen:
        if mix.largest > mixfiles.LARGEST_DENSE:
            click.echo(f"wherry: {mix.name}: sizes too large for a dense list; left out", err=True)
    return [mix for mix in chosen if mix.largest <= mixfiles.LARGEST_DENSE]


def _table(printer: Printer, chosen: Sequence[Mix]) -> None:
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
        for mix in (one.record() for one in chosen)
    ]
    printer.lines(layout(columns, body, printer.width))


def _signs() -> str:
    """Blocks, where the terminal or the pipe has them."""
    from wherry import mixplots

    try:
        mixplots.BLOCKS.encode(sys.stdout.encoding or "ascii")
    except (UnicodeError, LookupError):
        return mixplots.PLAIN
    return mixplots.BLOCKS


def _picture(printer: Printer, chosen: Sequence[Mix], detailed: bool) -> None:
    from wherry import mixplots

    signs = _signs()
    printer.text()
    if not detailed or len(chosen) > DETAILED:
        printer.text("Share of the calls by size, each mix to its own most:", "dim")
        for line in mixplots.lines(chosen, signs):
            printer.text("  " + line)
        return
    heads = [Column("size", "bytes"), Column("", left=True), Column("calls", "share")]
    heads += [Column("up to there", "of calls"), Column("bytes", "share")]
    for number, mix in enumerate(chosen):
        if number:
            printer.text()
        printer.text(mix.name, "title")
        body = [
            [Figure(word) for word in line] for line in mixplots.detail(mix, printer.width, signs)
        ]
        printer.lines(layout(heads, body, printer.width))
        _beside(printer, mix)


def _beside(printer: Printer, mix: Mix) -> None:
    """What a file says beside the sizes."""
    for part, what in ((mix.shares[1], "overlap"), (mix.shares[2], "alignment")):
        total = sum(part.values())
        words = [f"{value}: {percent(share / total)}" for value, share in sorted(part.items())]
        if words:
            printer.paragraph(f"{what} {', '.join(words)}", "dim", indent="  ")


def _plot(chosen: Sequence[Mix], name: str) -> None:
    from wherry import mixplots
    from wherry.report import still

    path = still.check(name)
    outputs.write(path, mixplots.draw(chosen, path), outputs.PICTURE)
    streams.line_of(f"{len(chosen)} mix{'es' if len(chosen) != 1 else ''} drawn in {path}")


def _file_name(mix: Mix) -> str:
    """One that tells the op, where the mix is of one: a file has no other place for it."""
    stem = mix.name.replace(":", "-")
    return f"{stem}.csv" if mixes.ops_of_name(stem) == mix.ops else f"{stem}.{mix.ops[0]}.csv"


def _says_the_op(mix: Mix, path: Path) -> None:
    if (taken := mixes.ops_of_name(path.stem)) == mix.ops:
        return
    what = ", ".join(taken) or "none of them"
    better = path.with_name(f"{path.stem}.{mix.ops[0]}.csv").name
    advice = f"; {better} would say so" if len(mix.ops) == 1 else ""
    tell(
        f"{mix.name}: is for {', '.join(mix.ops)}, and a file named {path.name} is read as for {what}{advice}"
    )


def _export(chosen: Sequence[Mix], target: Path, form: str, given: Sequence[Path]) -> None:
    """One mix to a file, several into a directory."""
    if target.is_dir():
        paths = [target / _file_name(mix) for mix in chosen]
    elif len(chosen) == 1:
        paths = [target]
    else:
        raise WherryError(
            f"--export {target}: {len(chosen)} mixes do not go into one file; name one of "
            f"{', '.join(mix.name for mix in chosen[:5])}{' ...' if len(chosen) > 5 else ''}, or give "
            "a directory that is there"
        )
    read = [file for own in given for file in (own.iterdir() if own.is_dir() else [own])]
    for path in paths:
        outputs.refuse_inputs(path, dict.fromkeys(read, "a mix that is read"), "--export")
    for mix in chosen:
        if mixes.is_range(mix.name) and mix.largest - min(mix.shares[0]) >= len(mix.shares[0]):
            raise WherryError(
                f"--export: {mix.name} has more sizes than a file has room for ({mixfiles.MOST_SIZES:,}); bench "
                "and tune take the range itself"
            )
    # Whatever cannot be written is found before the first file is.
    texts = [mixfiles.write(form, mix.shares, mix.name) for mix in chosen]
    for path, text in zip(paths, texts, strict=True):
        outputs.refuse(path, outputs.SIZES, text.encode())
    for mix, path, text in zip(chosen, paths, texts, strict=True):
        outputs.write(path, text.encode(), outputs.SIZES)
        streams.line_of(f"{mix.name} in {path} ({form})")
        _says_the_op(mix, path)
        if form == mixfiles.LLVM and any(mix.shares[1:]):
            click.echo(
                f"wherry: {mix.name}: overlaps and alignments have no place in a dense list; left out",
                err=True,
            )
