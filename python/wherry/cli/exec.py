"""`wherry exec -- CMD`: a program as it is, with the drop-in preloaded."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

import click

from wherry import children
from wherry.errors import EXIT_FAILED, WherryError, printable


def _plan_for(plan: str | None, isa: str | None) -> Path | None:
    """The plan to load; says so when the library here will not take it, or that of WHERRY_PLAN."""
    from wherry import plans, planuse, runner

    if isa:
        return planuse.kept([plans.forced(isa, runner.cpu())])
    if plan:
        why, found = planuse.judged(Path(plan))
        _say_unused(plan, why)
        return found
    if told := planuse.of_environment(os.environ):
        _say_unused(f"{told[0]} (WHERRY_PLAN)", told[1])
        # With its whole path: what the program starts elsewhere looks for it, too.
        return None if told[1] else Path(told[0])
    return None


def _say_unused(plan: str, why: str | None) -> None:
    if why:
        _say(f"{plan} is not used, the default plan is: {why}")


def _say(line: str) -> None:
    # Standard error is the program's: where it cannot be written to, the program may do without it, as without us.
    with contextlib.suppress(OSError):
        print(printable(f"wherry exec: {line}"), file=sys.stderr, flush=True)


def _asked_plan(plan: str | None, isa: str | None) -> tuple[str, str | None] | None:
    """The file that --plan or WHERRY_PLAN names, and why the default plan would serve in its place, or None."""
    from wherry import planuse

    if plan:
        return plan, planuse.judged(Path(plan))[0]
    return None if isa else planuse.of_environment(os.environ)


def _own_functions(verdict) -> list[str]:
    """A note on those that the program has itself. For --check: to read those of a shell takes a tenth of a second."""
    from wherry import elf, preloading

    if not verdict.helps or not verdict.program:
        return []
    try:
        own = elf.exports(Path(verdict.program)) & elf.exports(preloading.library("dropin"))
    except (OSError, elf.DamagedError):
        return []
    if not own:
        return []
    return [f"it has its own {', '.join(sorted(own))}, which all that it loads calls, too"]


def _check(verdict, as_json: bool, plan: tuple[str, str | None] | None) -> int:
    from wherry import runfile
    from wherry.commands import named

    notes = [*verdict.notes, *_own_functions(verdict)]
    if as_json:
        print(
            runfile.encode(
                {
                    "command": verdict.command,
                    "path": verdict.path,
                    "program": verdict.program,
                    "chain": list(verdict.chain),
                    "helps": verdict.helps,
                    "kind": verdict.kind,
                    "reason": verdict.reason,
                    "notes": notes,
                    "plan": plan and {"file": plan[0], "used": plan[1] is None, "reason": plan[1]},
                }
            )
            .decode()
            .rstrip("\n")
        )
    else:
        where = " -> ".join(verdict.chain)
        place = f" ({where})" if where and where != verdict.command else ""
        if verdict.helps:
            print(printable(f"{verdict.command}{place}: yes, the drop-in can serve it"))
        else:
            print(printable(f"{named(verdict.command)}{place}: no: {verdict.reason}"))
        for note in notes:
            print(f"  note: {printable(note)}")
        if plan:
            used = f"not used, the default plan is: {plan[1]}" if plan[1] else "used"
            print(printable(f"plan {plan[0]}: {used}"))
    if verdict.helps:
        return 0
    return verdict.exit_code or EXIT_FAILED


def _become(verdict, arguments: tuple[str, ...], env: dict[str, str]) -> NoReturn:
    """Not a child: signals, terminal, exit status and process id are the program's own."""
    path, argv = verdict.argv(arguments)
    # Python ignores these two, and a program that is executed inherits that.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    children.give_back()
    try:
        os.execve(path, argv, env)
    except OSError as error:
        _say(f"cannot execute {path}: {error.strerror}")
        from wherry.commands import exit_code_of

        raise click.exceptions.Exit(exit_code_of(error)) from None
    except ValueError as error:
        raise WherryError(f"cannot execute {path}: {error}") from None


@click.command(
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
    epilog="Examples: wherry exec -- sort big.txt; wherry exec --plan mine.toml -- make -j4; "
    "wherry exec --check sudo",
)
@click.option(
    "--plan", metavar="FILE", help="The plan to go by, as text or compiled (default: this CPU's)."
)
@click.option(
    "--isa",
    metavar="TIER",
    help="Force sse2, avx2, avx512, avx512_ladder or avx512_together, with the default thresholds.",
)
@click.option("--check", is_flag=True, help="Only say whether the drop-in can help, and why not.")
@click.option("--json", "as_json", is_flag=True, help="With --check: as JSON, for a program.")
@click.argument(
    "command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- CMD [ARG]..."
)
def command(
    plan: str | None, isa: str | None, check: bool, as_json: bool, command: tuple[str, ...]
) -> int:
    """Runs a program with Wherry's memory routines in the place of libc's, without a rebuild.

    The program takes this command's place: its exit status, signals, standard streams and process id are as without.
    What it cannot help (a static binary, a set-user-ID program, another C library or architecture, a program built with
    a sanitizer) runs untouched, and one line on standard error says why."""
    from wherry import commands, preloading
    from wherry.errors import unknown
    from wherry.plans import CHOICES

    if isa and isa not in CHOICES:
        raise unknown("tier", isa, CHOICES, "wherry exec --help")
    if isa and plan:
        raise WherryError("--isa and --plan exclude each other: a plan says which tier itself")
    if as_json and not check:
        raise WherryError("--json goes with --check")
    verdict = commands.examine(command[0], arguments=command[1:])
    if check:
        return _check(verdict, as_json, _asked_plan(plan, isa))
    if verdict.exit_code:
        _say(f"{commands.named(command[0])}: {verdict.reason}")
        return verdict.exit_code
    env = preloading.own_environment()
    if verdict.helps:
        env = preloading.environment(env, [preloading.library("dropin")], _plan_for(plan, isa))
        for note in verdict.notes:
            _say(f"{command[0]}: {note}")
        if env.get("WHERRY_RECORD"):
            # Without it, it is told as not recorded; there, it would be taken for one that copies nothing.
            env = preloading.without(env, "recorder")
            _say(
                "nothing of this is recorded, as all calls go to the drop-in; wherry record -- CMD without it "
                "tries the drop-in too"
            )
    else:
        _say(f"{command[0]} runs untouched: {verdict.reason}")
    _become(verdict, command[1:], env)
