"""`wherry bench --resume`: an interrupted or killed run is gone on with."""

from __future__ import annotations

from pathlib import Path

import click

from wherry import course, journal, runfile
from wherry.cli import benching, whole
from wherry.cli.options import Options
from wherry.errors import WherryError


def resume(ctx: click.Context, file: str) -> int:
    """Goes on with an interrupted run, as it was asked for."""
    others = [word for name, word in whole.given(ctx).items() if name not in ("resume", "as_json")]
    others += ctx.params["experiments"]
    if others:
        raise WherryError(f"--resume goes on as the run began; leave out {', '.join(others)}")
    path = journal.run_of(Path(file))
    run = journal.read(path) or runfile.read(path)
    before = course.interrupted(run, path)
    parameters = {name: value for name, value in ctx.params.items() if name not in whole.NOT_KEPT}
    if strange := sorted(set(before) - set(parameters)):
        raise WherryError(f"cannot resume {path}: this Wherry has no {', '.join(strange)}")
    parameters |= _taken(ctx, before | {"seed": run["method"]["seed"]}, path)
    parameters |= {
        "save": str(path),
        "as_json": ctx.params["as_json"],
    }
    parameters.pop("markdown", None)
    return benching.bench(Options.of(parameters), asked=before, run=run)


def _taken(ctx: click.Context, before: dict, path: Path) -> dict[str, object]:
    """What was asked for then, held to what the command line holds it to now."""
    found = {}
    for parameter in ctx.command.params:
        if (value := before.get(parameter.name)) is None:
            continue
        try:
            if isinstance(value, list) and None in value:
                raise TypeError
            found[parameter.name] = parameter.type_cast_value(ctx, value)
        except (click.ClickException, TypeError, ValueError, AttributeError):
            raise WherryError(
                f"cannot resume {path}: what it says was asked for is damaged ({parameter.name}); begin a new run"
            ) from None
    return found
