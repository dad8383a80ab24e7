"""`wherry plan`: plans as text and compiled, looked at and checked."""

from __future__ import annotations

import os
from pathlib import Path

import click

from wherry.cli import streams
from wherry.cli.grouped import FileName, Group
from wherry.errors import EXIT_FAILED, WherryError


def _in_library(path: Path) -> tuple[bool, str]:
    """Whether the library here takes this plan, and what it says: it is loaded once, and asked."""
    from wherry import planuse, runner

    before = os.environ.get("WHERRY_PLAN")
    named = str(planuse.compiled(path))
    os.environ["WHERRY_PLAN"] = named
    try:
        status = runner.cpu()["plan"]["status"]
    finally:
        if before is None:
            del os.environ["WHERRY_PLAN"]
        else:
            os.environ["WHERRY_PLAN"] = before
    if why := planuse.unused_by(status, named):
        # Nobody here has set that variable, and the file that it names is one that was made of this one.
        return False, f"{why}; the default plan would serve in its place"
    return status.startswith("plan '"), status


def _write(out: Path, plans_: list, head: str = "") -> None:
    from wherry import planfiles

    planfiles.save(out, plans_, head)
    streams.line_of(f"{out}: {len(plans_)} plan{'' if len(plans_) == 1 else 's'}")


@click.group(
    cls=Group, epilog="Example: wherry plan default -o mine.toml; wherry plan check mine.toml"
)
def command() -> None:
    """Looks at, checks and compiles plans: by which method each size is copied and set.

    A plan is text (TOML, FILE.toml) for people, or compiled (FILE.plan) for the library and WHERRY_PLAN."""


@command.command(epilog="Example: wherry plan show mine.toml")
@click.argument("file", type=FileName())
@click.option("--text", is_flag=True, help="The text form, of a compiled plan too.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for a program.")
def show(file: Path, text: bool, as_json: bool) -> None:
    """Tells what the plans of FILE say."""
    from wherry import planfiles, plantext, planwords, runfile
    from wherry.cli.printer import Printer

    if text and as_json:
        raise WherryError("--text and --json exclude each other; give one of them")
    found = planfiles.read(file)
    printer = Printer()
    if as_json:
        printer.write(runfile.encode([planwords.as_dict(plan) for plan in found]).decode())
    elif text:
        printer.write(plantext.to_text(found))
    else:
        for i, plan in enumerate(found):
            if i:
                printer.text()
            printer.pairs(planwords.describe(plan))


@command.command(epilog="Example: wherry plan check mine.toml")
@click.argument("file", type=FileName())
@click.option("--json", "as_json", is_flag=True, help="As JSON, for a program.")
def check(file: Path, as_json: bool) -> int:
    """Loads FILE into the library here; exit status 1 when it is not taken, and why."""
    from wherry import planfiles, runfile, runner
    from wherry.cli.printer import Printer

    runner.cpu()  # what is wrong with the runner is no word on the plan
    try:
        planfiles.read(file)
        taken, status = _in_library(file)
    except WherryError as error:
        taken, status = False, str(error)
    if as_json:
        told = {"file": str(file), "taken": taken, "status": status}
        Printer().write(runfile.encode(told).decode())
    else:
        streams.line_of(f"{'yes' if taken else 'no'}: {status}")
    return 0 if taken else EXIT_FAILED


@command.command(epilog="Example: wherry plan default -o mine.toml")
@click.option(
    "-o",
    "--output",
    type=FileName(),
    metavar="FILE",
    help="Write there, not to stdout; compiled when named FILE.plan.",
)
def default(output: Path | None) -> None:
    """This CPU's default plan as text: something to begin with."""
    from wherry import plans, plantext
    from wherry.cli.printer import Printer

    own = plans.default()
    head = f"What the library does by default on {own.cpu.vendor} family {own.cpu.family}, model {own.cpu.model}."
    if output is None:
        Printer().write(plantext.to_text([own], head))
    else:
        _write(output, [own], head)


@command.command(
    name="compile", epilog="Example: wherry plan compile mine.toml -o /etc/wherry.plan"
)
@click.argument("file", type=FileName())
@click.option(
    "-o", "--output", type=FileName(), metavar="FILE", help="Default: FILE.plan beside it."
)
def compile_(file: Path, output: Path | None) -> None:
    """Compiles the text FILE into the form that the library and WHERRY_PLAN take."""
    from wherry import outputs, planfiles

    found = planfiles.read(file)
    target = output or outputs.beside(file, file.with_suffix(".plan").name)
    if target.suffix == ".toml":
        raise WherryError(
            f"{target}: a compiled plan is no text; choose another name, as FILE.plan"
        )
    if target.exists() and file.exists() and target.samefile(file):
        raise WherryError(
            f"{file} is compiled already"
            if planfiles.is_compiled(file.read_bytes())
            else f"{file} would be replaced by its compiled form; give another name with -o FILE.plan"
        )
    planfiles.compile_to(target, found)
    streams.line_of(f"{target}: {len(found)} plan{'' if len(found) == 1 else 's'}")


@command.command(epilog="Example: wherry plan bundle zen4.toml zen5.toml -o fleet.plan")
@click.argument("files", type=FileName(), nargs=-1, required=True, metavar="FILE...")
@click.option(
    "-o",
    "--output",
    type=FileName(),
    required=True,
    metavar="FILE",
    help="FILE.plan: compiled; else as text.",
)
def bundle(files: tuple[Path, ...], output: Path) -> None:
    """Puts the plans of several files into one; each CPU takes the first that is for it."""
    from wherry import outputs, planbinary, planfiles

    outputs.refuse_inputs(output, dict.fromkeys(files, "a plan that is read"))
    found = [plan for file in files for plan in planfiles.read(file)]
    if len(found) > planbinary.MOST_PLANS:
        raise WherryError(
            f"{len(found)} plans are too many for one bundle; it has room for {planbinary.MOST_PLANS}"
        )
    for i, plan in enumerate(found):
        if plan.cpu in [other.cpu for other in found[:i]]:
            raise WherryError(
                f"the plans '{next(o.name for o in found[:i] if o.cpu == plan.cpu)}' and '{plan.name}' are for the "
                "same CPU; leave one of them out"
            )
    several = f"{len(found)} plans; each CPU takes the first that is for it."
    _write(output, found, several if len(found) > 1 else "One plan, for the CPU that it names.")
