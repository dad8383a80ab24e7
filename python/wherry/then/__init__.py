"""Then and now: what a seed measured beside what this machine does, for one experiment of a run. A module here has the
name of an experiment and offers `sheets(run, clock)`, and may have `BESIDE`: routines that the seed proposes and gives
no figure of. An experiment without one shows the seed's figures alone."""

from __future__ import annotations

import importlib
import pkgutil

from wherry import history
from wherry.clock import Clock, clock_of
from wherry.then.alone import alone
from wherry.then.sheet import Sheet

_ROOM = ("alone", "page", "points", "ranks", "sheet")


def paired() -> list[str]:
    """Experiments whose figures stand beside the seed's."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name not in _ROOM)


def _module(experiment: str):
    return importlib.import_module(f"{__name__}.{experiment}")


def has(experiment: str) -> bool:
    return experiment in history.experiments()


def of_seed(seed: history.Seed) -> set[str]:
    return {own.experiment for own in (*seed.tables, *seed.statements)}


def sheets(run: dict, experiment: str) -> list[Sheet]:
    """Tables and sentences: then, now, and what stays comparable. Empty when no seed measured such a thing."""
    if not has(experiment):
        return []
    clock = clock_of(run)
    found: list[Sheet] = []
    if experiment in paired():
        found = _module(experiment).sheets(run, clock)
    if found:
        return found
    own = alone(experiment)
    own[0].notes.insert(0, "The run has nothing that could stand beside these figures.")
    return own


def widened(experiment):
    """The experiment with the routines of the seeds among its own choice, so that each has its counterpart."""
    from dataclasses import replace

    beside = getattr(_module(experiment.name), "BESIDE", ()) if experiment.name in paired() else ()
    named = (*history.routines(experiment.name), *beside)
    own = [name for name in named if name not in experiment.routines]
    # `zero` takes every routine of the registry already, `libc` stands in every row.
    return replace(experiment, routines=(*experiment.routines, *(n for n in own if n != "libc")))


__all__ = ["Clock", "Sheet", "alone", "clock_of", "has", "of_seed", "paired", "sheets", "widened"]
