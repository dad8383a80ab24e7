"""Commands that have commands of their own, and what holds for the options of all."""

from __future__ import annotations

import math
from pathlib import Path

import click

from wherry import errors

_NAMES_A_FILE = ("FILE", "PATH", "DIR", "RUN", "MIX", "PLAN", "BASE")
# Of ab: without them it would compare something else than what was meant.
_NAMES_A_SIDE = ("WHAT", "TUNABLES")
_NAMES_A_TIER = ("TIER",)
_NAMES_A_TIME = ("TIME",)


def not_empty(ctx: click.Context, parameter: click.Parameter, value: object) -> object:
    given = value if isinstance(value, (list, tuple)) else (value,)
    listed = "," in (parameter.metavar or "")
    if isinstance(parameter, click.Option) and "--" in given:
        # What was meant to end the options was taken for the file's name.
        raise click.UsageError(f"{parameter.opts[0]} --: the name is missing", ctx)
    if any(own == "" or (listed and own is not None and not own.strip(", ")) for own in given):
        named = (
            parameter.opts[0]
            if isinstance(parameter, click.Option)
            else parameter.human_readable_name
        )
        raise click.UsageError(f"{named} is empty; was a variable not set?", ctx)
    return value


def _a_number(ctx: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    """No range leaves NaN out, since it compares with nothing."""
    if value is not None and math.isnan(value):
        raise click.UsageError(f"{parameter.opts[0]} nan: give a number", ctx)
    return value


class FileName(click.ParamType):
    """A Path; the text is seen before it becomes one, where an empty name would be the current directory."""

    name = "file"

    def convert(self, value, param, ctx) -> Path:
        if value == "":
            not_empty(ctx, param, value)
        return Path(value)


def refuse_nonsense(command: click.Command) -> click.Command:
    """An empty name of a file is misuse, not the current directory or none; so is an empty list, side or
    tier. No number is NaN."""
    for parameter in command.params:
        metavar = parameter.metavar or ""
        if parameter.callback is not None:
            continue
        named = (*_NAMES_A_FILE, *_NAMES_A_SIDE, *_NAMES_A_TIER, *_NAMES_A_TIME, ",")
        if any(word in metavar for word in named):
            parameter.callback = not_empty
        elif isinstance(parameter.type, click.FloatRange):
            parameter.callback = _a_number
    for inner in getattr(command, "commands", {}).values():
        refuse_nonsense(inner)
    return command


class Group(click.Group):
    """Its help has the whole first sentence of each command, where click would cut it. To name none is misuse, which
    click before 8.2 takes for a call of --help."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit(errors.EXIT_MISUSE)
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, self.get_command(ctx, name).get_short_help_str(limit=300))
                    for name in self.list_commands(ctx)
                ]
            )
