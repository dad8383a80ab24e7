"""The command line: one module a command, loaded when it is asked for. Here ends every error: as one line."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys

import click

from wherry import errors
from wherry.cli import grouped, streams

# What it is for, as `wherry --help` shows it, in the order in which a person comes to need them.
_PURPOSES = {
    "Of the machine": {
        "bench": "measure routines by size, alignment, cache state, program",
        "verify": "prove routines right against a byte-by-byte reference",
        "doctor": "what this machine is, what libc and Wherry believe of it",
        "list": "the routines, experiments, regions, mixes, peers, history",
        "tune": "find the plan that is fastest on this CPU, or glibc's tunables",
        "plan": "look at, check and compile plans",
    },
    "Of your program": {
        "record": "run a program and write down what it copies",
        "replay": "what it would gain from other routines",
        "exec": "run it with Wherry's routines in the place of libc's",
        "ab": "run it both ways in turns and tell whether it got faster",
    },
    "Of results": {
        "report": "one page that shows all of a run, or of several",
        "compare": "runs cell by cell; an exit status for CI",
        "export": "a run as CSV, Markdown, or as other benchmarks write theirs",
        "import": "another tool's results as a run",
        "fleet": "many machines: measure on a Dask cluster, report, query",
    },
}
COMMANDS = tuple(sorted(name for named in _PURPOSES.values() for name in named))
# Modules that cannot be called as their command is, or whose name is taken.
_MODULES = {"import": "importing", "report": "reporting"}


class _InterruptedError(Exception):
    """Past click, which would answer an interrupt with an empty line."""


class _Group(grouped.Group):
    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise _InterruptedError from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS]  # list may be the module of that command here

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"wherry.cli.{_MODULES.get(name, name)}")
        return grouped.refuse_nonsense(module.command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for purpose, named in _PURPOSES.items():
            with formatter.section(purpose):
                formatter.write_dl([(name.ljust(7), text) for name, text in named.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]):
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            raise errors.unknown("command", name, COMMANDS, "wherry --help")
        return super().resolve_command(ctx, args)


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from wherry import version

        click.echo(f"wherry {version()}")
        ctx.exit()


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: wherry bench sizes --routine rep_movsb,avx2_loop",
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_version,
    help="Show the version and exit.",
)
def wherry() -> None:
    """Measures, verifies and explains memory routines: memcpy, memmove, memset and their relatives.

    Where a file is to be written into a directory that is missing, the directory is made, and a line on standard error
    says so. A file is whole or not there. It replaces an earlier one of its kind, and nothing else."""


def _say(line: str) -> None:
    with contextlib.suppress(OSError):
        print(errors.printable(line), file=sys.stderr)


def _named(arguments: list[str]) -> str:
    """The command that these arguments ask for; click does not tell which lacks an option's word."""
    where, group = "wherry", wherry
    context = click.Context(wherry)
    for word in arguments:
        if not isinstance(group, click.Group) or word not in group.list_commands(context):
            break
        where, group = f"{where} {word}", group.get_command(context, word)
    return where


def _usage(error: click.UsageError, arguments: list[str]) -> str:
    where = error.ctx.command_path if error.ctx else _named(arguments)
    said = error.format_message().rstrip(".")
    for kind, words in (("integer", "whole number"), ("float", "number")):
        said = said.replace(f"a valid {kind} range", f"a {words}").replace(
            f"a valid {kind}", f"a {words}"
        )
    return f"{where}: {said} ({where} --help tells more)"


# What Python says where the kernel gives it no thread.
_PYTHONS_NO_THREAD = "can't start new thread"
_NO_THREAD = "no thread can be begun; end some processes, or raise the limit (ulimit -u; of a container its pids.max)"


def _bug(error: Exception) -> str:
    return f"this is a bug in Wherry: {type(error).__name__}: {error} (WHERRY_DEBUG=1 shows where)"


def _run(arguments: list[str] | None) -> int:
    from wherry.cli.ending import ends_in_order, interrupted_status

    ends_in_order()
    try:
        status = wherry.main(args=arguments, prog_name="wherry", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except errors.WherryError as error:
        for line in (str(error), *error.others):
            _say(f"wherry: {line}")
        return error.exit_code
    except click.UsageError as error:
        _say(_usage(error, sys.argv[1:] if arguments is None else arguments))
        return errors.EXIT_MISUSE
    except click.ClickException as error:
        _say(f"wherry: {error.format_message()}")
        return errors.EXIT_MISUSE
    except (KeyboardInterrupt, click.Abort, _InterruptedError):
        _say("wherry: interrupted")
        return interrupted_status[0]
    except OSError as error:
        if os.environ.get("WHERRY_DEBUG"):
            raise
        what = f"{error.filename}: " if isinstance(error.filename, str) else ""
        if isinstance(error, streams.LostError):
            streams.silence_stdout()
            what = "cannot write to standard output: "
        _say(f"wherry: {what}{error.strerror or error}")
        return errors.EXIT_FAILED
    except MemoryError:
        if os.environ.get("WHERRY_DEBUG"):
            raise
        _say("wherry: there is not enough memory; free some, or raise its limit (ulimit -v)")
        return errors.EXIT_FAILED
    except RuntimeError as error:
        if os.environ.get("WHERRY_DEBUG"):
            raise
        _say(f"wherry: {_NO_THREAD if str(error) == _PYTHONS_NO_THREAD else _bug(error)}")
        return errors.EXIT_FAILED
    except ImportError:  # the console script says so, with nothing that would have to be imported
        raise
    except Exception as error:
        if os.environ.get("WHERRY_DEBUG"):
            raise
        _say(f"wherry: {_bug(error)}")
        return errors.EXIT_FAILED


def _open_missing() -> None:
    """Standard streams that were closed before we began lead nowhere: else files of ours would take their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123


def main(arguments: list[str] | None = None) -> None:
    """The console script `wherry`."""
    _open_missing()
    streams.go_on_unread()
    status = _run(arguments)
    try:
        sys.stdout.flush()
    except OSError as error:
        streams.silence_stdout()
        _say(f"wherry: cannot write to standard output: {error.strerror}")
        status = status or errors.EXIT_FAILED
    sys.exit(status)
