"""Options of `wherry bench` that are about the whole: the self-check, every experiment in one time, an interrupted run
taken up again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from wherry import budget as budgets
from wherry import course, jobcontrol, runfile
from wherry import experiments as rooms
from wherry.cli import names
from wherry.errors import WherryError

if TYPE_CHECKING:
    from wherry.campaign import Row
    from wherry.experiments import Experiment, Request

_OPTIONS = (
    click.option(
        "--self-check",
        is_flag=True,
        help="Show on this machine that the method is right, by what is known beforehand (about 2 minutes).",
    ),
    click.option(
        "--all",
        "every",
        is_flag=True,
        help="Every experiment there is, in one total time: --budget, 10m if not given.",
    ),
    click.option(
        "--budget",
        metavar="TIME",
        help="Of all experiments together: 10m, 90s, 1h30m. Shared by weight; what does not fit is thinned.",
    ),
    click.option(
        "--resume",
        metavar="FILE",
        help="Go on with an interrupted or killed run, named by its file or its journal: measure what is missing, as "
        "it was asked for then.",
    ),
)
# At least this part of a budget is there for what is missing, however late the run was interrupted.
LEAST_TO_RESUME = 0.1
# Of a run that goes on: what only says where it goes, or how it is shown.
NOT_KEPT = frozenset({"as_json", "resume", "save", "self_check", "show"})


def options(function: Callable) -> Callable:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def given(ctx: click.Context) -> dict[str, str]:
    """Parameters that were given on the command line, with the option's own word for each."""
    words = {
        parameter.name: parameter.opts[0]
        for parameter in ctx.command.params
        if isinstance(parameter, click.Option)
    }
    return {
        name: word
        for name, word in words.items()
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }


def self_check(ctx: click.Context) -> int:
    from wherry.cli import selfcheck

    heeds = selfcheck.HEEDS
    others = [
        word for name, word in given(ctx).items() if name not in heeds | {"self_check", "as_json"}
    ]
    parameters = ctx.params
    return selfcheck.check(
        parameters["as_json"],
        parameters["experiments"],
        {name: parameters[name] for name in heeds},
        others,
    )


# ---- all of them, in a time -----------------------------------------------------------------------------------------


def asked(ctx: click.Context) -> dict:
    """What was given on the command line, for a run that may have to go on one day."""
    kept = {name: ctx.params[name] for name in given(ctx) if name not in NOT_KEPT}
    if ctx.params["experiments"]:
        kept["experiments"] = ctx.params["experiments"]
    return {name: list(v) if isinstance(v, tuple) else v for name, v in kept.items()}


def chosen(experiments: Sequence[str], every: bool) -> list[Experiment]:
    if not every:
        return [
            rooms.load(name)
            for name in names.experiment_names(experiments or ("sizes",), rooms.names())
        ]
    if experiments:
        raise WherryError(f"--all is every experiment; leave out {', '.join(experiments)} or --all")
    return [experiment for experiment in rooms.load_all() if experiment.weight]


def seconds(
    budget: str | None, every: bool, processes: int | None, rounds: int | None
) -> float | None:
    """Of the budget; None when there is none."""
    if budget is None and not every:
        return None
    if processes or rounds:
        raise WherryError(
            "a budget decides on processes and rounds; leave out --processes and --rounds, or "
            + ("--all" if every else "--budget")
        )
    return budgets.DEFAULT if budget is None else budgets.parse(budget)


def plan(
    experiments: Sequence[Experiment], request: Request, every: bool
) -> tuple[list[tuple[Experiment, list[Row]]], dict[str, str]]:
    """Experiments with their rows; and of --all those that are left out, with the reason."""
    found, left_out = [], {}
    if every:
        chosen_names = {experiment.name for experiment in experiments}
        others = (name for name in rooms.names() if name not in chosen_names)
        left_out = dict.fromkeys(others, "only when asked for by name")
    for experiment in experiments:
        try:
            rows = experiment.rows(request)
        except WherryError as error:
            if not every:
                raise
            left_out[experiment.name] = str(error)
            continue
        found.append((experiment, rows))
    if every:
        # The longest last: they take the time that the others have left over.
        found.sort(key=lambda own: budgets.cost(own[1], own[0].process_count(request)))
    return found, left_out


def course_of(
    plan: list[tuple[Experiment, list[Row]]],
    request: Request,
    limit: float | None,
    seed: int,
    run: dict | None,
    began: float,
) -> course.Course:
    """`began`: of jobcontrol.clock(), when the command did. What it took until now is of the budget, too: the recorded
    mixes that come with Wherry take some seconds to make ready."""
    if limit is None:
        return course.Course(run=run)
    spent = run["seconds"] if run else 0.0
    left = max(limit - spent, LEAST_TO_RESUME * limit)
    own = [experiment for experiment, _ in plan]
    return course.Course(budgets.Budget(left, own, request, seed, began), run)


def go_on(own: course.Course, fresh: dict, path: Path) -> tuple[dict, float, set[str]]:
    """The run that goes on in place of the one that would begin; when it would have begun; whom it knows to be bad."""
    run = own.run
    course.check_same(run, fresh, path)
    run["interrupted"] = False
    run["method"].setdefault("resumed", []).append(fresh["started"])
    bad = {p["routine"] for p in run["problems"] if p["kind"] != "skip" and p["routine"]}
    return run, jobcontrol.clock() - run.get("seconds", 0.0), bad


def samples_of(own: course.Course, path: Path) -> list[dict]:
    """The raw samples of what is complete."""
    if not any(own.is_complete(entry["name"]) for entry in own.run["experiments"]):
        return []
    try:
        there = runfile.parse(path, runfile.read_bytes(path.with_name(path.name + ".raw.json.gz")))
        samples = there["samples"]
    except (WherryError, KeyError, TypeError):
        raise WherryError(f"cannot resume {path}: its raw samples are not beside it") from None
    return [sample for sample in samples if own.is_complete(sample["experiment"])]
