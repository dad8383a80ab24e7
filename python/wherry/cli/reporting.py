"""`wherry report`, and what --plot and --report of `wherry bench` do: from run files to one page, or to pictures.
(wherry.cli.report prints a run to the terminal.)"""

from __future__ import annotations

import os
import re
import string
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from wherry import named_files, outputs, runfile
from wherry.cli import names, streams
from wherry.errors import FailedError, WherryError, unknown

PAGE = (".html", ".htm")


@click.command(
    epilog="Example: wherry report runs/A.json runs/B.json -o report.html; wherry report runs/A.json --plot sizes.png "
    "--experiment sizes"
)
@click.argument("files", metavar="RUN ...", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    metavar="FILE.html",
    help="The page (default: beside the first run file, ending in .html).",
)
@click.option(
    "--plot",
    metavar="FILE.png|FILE.svg",
    help="A picture instead of the page; of several experiments one each, FILE-NAME.png.",
)
@click.option(
    "--experiment",
    "wanted",
    multiple=True,
    metavar="NAME,...",
    help="--plot: only these experiments. Repeatable.",
)
def command(files, output, plot, wanted) -> None:
    """Writes a page that tells and shows all of a run, or of several side by side. It is one file, opens from disk in
    any browser, and asks no network. RUN may be another tool's file too, or a single mix (a file of wherry record,
    or the name of one that comes with Wherry)."""
    for line in report(files, output, plot, names.split(wanted)):
        streams.line_of(line)


def check_page(name: str, option: str = "-o") -> Path:
    """Before anything is read or measured: a place for a page."""
    path = Path(name)
    if path.suffix.lower() not in PAGE:
        raise WherryError(f"{option} {name}: the report is a page; give a name that ends in .html")
    if path.is_dir():
        raise WherryError(f"{option} {name}: it is a directory; give a file name")
    return path


def _stem(path: Path) -> str:
    """`a.json.gz` and `a.json` are a."""
    return path.name.removesuffix(".gz").removesuffix(".json")


def page_beside(path: Path) -> Path:
    """The place of a run file's report when none is given."""
    return path.with_name(_stem(path) + ".html")


def write_page(runs: Sequence[tuple[dict, Path]], path: Path) -> None:
    """Under a temporary name, then renamed, as run files are."""
    from wherry.report import page

    several = len(runs) > 1
    shown = [
        page.Run(run, file.name, string.ascii_uppercase[i] if several else "")
        for i, (run, file) in enumerate(runs)
    ]
    outputs.write(path, page.page(shown).encode(), outputs.PAGE)


def _has_none(run: dict, experiment: str) -> bool:
    """Whether there is nothing to draw; of figures beyond all reason drawing tells what is wrong."""
    from wherry.report import pictures
    from wherry.report.words import ABSURD

    try:
        return not pictures.of(run, experiment)
    except ABSURD:
        return False


def draw(run: dict, path: Path, experiments: Sequence[str], named: bool = False) -> list[str]:
    """A picture of each of the experiments; lines that say where they are. One with nothing to draw is an error only
    when it was asked for by name, or when no other has."""
    from wherry.report import still

    said = []
    empty = [] if named else [name for name in experiments if _has_none(run, name)]
    for name, target in still.paths(path, list(experiments)).items():
        if name in empty and len(empty) < len(experiments):
            said.append(f"No plot: {name} has nothing to draw in this run")
            continue
        outputs.write(target, still.draw(run, name, target), outputs.PICTURE)
        said.append(f"Plot: {target}")
    return said


def report(files: Sequence[str], output: str | None, plot: str | None, wanted) -> list[str]:
    """Writes what was asked for; lines that say where it is."""
    from wherry.formats import files as foreign
    from wherry.report import still

    target = check_page(output) if output else None
    picture = still.check(plot) if plot else None
    if len(files) > len(string.ascii_uppercase):
        raise WherryError(
            f"{len(files)} runs do not fit beside each other; give {len(string.ascii_uppercase)} at most"
        )
    mixes = {name: mix for name in files if (mix := _recorded(name))}
    if mixes and len(files) > 1:
        raise WherryError(
            f"{next(iter(mixes))} is a mix, which is shown alone; give it to a report of its own"
        )
    if picture and len(files) > 1:
        raise WherryError("--plot draws one run; give one run file, or -o for a page of several")
    if wanted and not picture:
        raise WherryError("--experiment chooses what --plot draws; the page shows all")
    for name, recording in mixes.items():
        if wanted:
            raise WherryError(f"--experiment chooses among those of a run, and {name} is a mix")
        return _of_mix(recording, Path(name), target, picture)
    runs = [(foreign.load(Path(name)), Path(name)) for name in files]
    said = []
    if picture:
        has = [e["name"] for e in runs[0][0]["experiments"]]
        for name in wanted:
            if name not in has:
                raise unknown("experiment", name, has, "the run file")
        if not has:
            raise WherryError(f"{files[0]} holds no experiment; nothing to draw")
        for own in still.paths(picture, list(wanted or has)).values():
            outputs.refuse_inputs(own, {runs[0][1]: "the run file"}, "--plot")
            outputs.refuse(own, outputs.PICTURE)
    if target or not picture:
        target = target or page_beside(runs[0][1])
        outputs.refuse_inputs(target, {file: "the run file" for _, file in runs})
        outputs.refuse(target, outputs.PAGE)
    if picture:
        said += draw(runs[0][0], picture, wanted or has, named=bool(wanted))
    if target:
        write_page(runs, target)
        said.append(f"Report: {target}")
    return said


# What tells a mix among files of JSON, in whatever order its fields are.
_MIX = re.compile(rb'"format"\s*:\s*"wherry-mix"')


def _recorded(given: str):
    """A mix that wherry record wrote, under whatever name, or that comes with Wherry, or None."""
    from wherry import recordings

    path = Path(given)
    if given.endswith(".mix.json"):
        return recordings.read(path)
    if given in recordings.shipped_names() and not path.exists():
        return recordings.shipped(given)
    try:
        if not path.is_file():  # nor can a pipe be read twice
            return None
        data = named_files.at_most(path, recordings.LARGEST_FILE)
    except OSError:
        return None  # whoever reads it as a run says why
    if recordings.is_recorded(data[:64]) and _MIX.search(data):
        return recordings.read(path)
    return None


def _of_mix(recording, path: Path, target: Path | None, picture: Path | None) -> list[str]:
    from wherry.report import mixpage

    if not picture:
        target = target or page_beside(path)
    for option, own, kind in (
        ("-o", target, outputs.PAGE),
        ("--plot", picture, outputs.PICTURE),
    ):
        if own:
            outputs.refuse_inputs(own, {path: "the mix"}, option)
            outputs.refuse(own, kind)
    said = []
    if picture:
        outputs.write(picture, mixpage.picture(recording, picture), outputs.PICTURE)
        said.append(f"Plot: {picture}")
    if target:
        outputs.write(target, mixpage.page(recording).encode(), outputs.PAGE)
        said.append(f"Report: {target}")
    return said


def options(function: Callable) -> Callable:
    """Those of `wherry bench`."""
    for option in (
        click.option(
            "--report",
            "page",
            is_flag=True,
            help="Also a page that shows it all, beside the run file (wherry report).",
        ),
        click.option(
            "--plot",
            metavar="FILE.png|FILE.svg",
            help="Also a picture; of several experiments one each, FILE-NAME.png.",
        ),
    ):
        function = option(function)
    return function


def check_plot(plot: str | None) -> Path | None:
    """Before an hour of measuring: a picture that can be drawn, in a place where it can be put."""
    if plot is None:
        return None
    from wherry.report import still

    path = still.check(plot)
    try:
        runfile.check_target(path)
    except WherryError as error:
        what = str(error).split(";")[0]
        raise WherryError(f"{what}; choose another place with --plot FILE") from None
    return path


def check_beside(run: Path, picture: Path | None, page: bool, experiments: Sequence[str]) -> None:
    """The same of the page, and that no picture takes the place of the run file."""
    if picture:
        from wherry.report import still

        for target in still.paths(picture, list(experiments)).values():
            if os.path.realpath(target) == os.path.realpath(run):
                raise WherryError(f"--plot {target}: the run file goes there; give another name")
            outputs.check(target, outputs.PICTURE)
    if page:
        outputs.check(page_beside(run), outputs.PAGE)


def after_bench(run: dict, path: Path, plot: Path | None, page: bool, aside: bool) -> None:
    """What cannot be drawn costs a line, not the figures, which are saved. `aside`: standard output is JSON."""
    if not run["rows"]:
        return
    try:
        if plot:
            there = {row["experiment"] for row in run["rows"]}
            shown = [e["name"] for e in run["experiments"] if e["name"] in there]
            for line in draw(run, plot, shown):
                streams.line_of(line, aside=aside)
        if page:
            target = page_beside(path)
            write_page([(run, path)], target)
            streams.line_of(f"Report: {target} (opens in any browser)", aside=aside)
    except WherryError as error:
        raise FailedError(f"{error}; the figures are saved in {path}") from None


def show(file: str, experiments: Sequence[str], plot: str | None, page: bool, aside: bool) -> None:
    """--plot and --report beside --show. `aside`: standard output is a document."""
    lines = report([file], None, plot, experiments) if plot else []
    if page:
        lines += report([file], None, None, ())
    for line in lines:
        streams.line_of(line, aside=aside)
