"""What is preloaded into what is to be recorded: the recorder, and behind it what is tried."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wherry import outputs, planuse, preloading
from wherry.errors import FailedError, WherryError
from wherry.recording import telling, trial
from wherry.recording.trial import Tried

DIRECTORY = "WHERRY_RECORD"


@dataclass(frozen=True)
class Preparation:
    libraries: tuple[Path, ...]
    plan: Path | None = None  # compiled
    tried: Tried | None = None

    def environment(self, base: Mapping[str, str], home: Path) -> dict[str, str]:
        """That, with what has it recorded there."""
        env = dict(base)
        if self.tried and env.pop("WHERRY_PLAN", None) is not None:
            telling.say(planuse.NOT_USED)
        for word in preloading.that_export(env, preloading.TRIED_NAMES):
            telling.say(
                f"LD_PRELOAD names {word}, which has such functions of its own: what is told of libc is of these"
            )
        env = preloading.environment(env, self.libraries, self.plan)
        if self.tried:
            env[trial.VARIABLE] = "1"
        return env | {DIRECTORY: str(home)}


def leave_out_the_dropin() -> None:
    """Of what this process starts, what is measured for the ceiling too: with a drop-in that LD_PRELOAD names already
    (an installed one, or that of wherry exec) what is called libc's would be its."""
    if preloading.names(os.environ, "dropin"):
        os.environ.update(preloading.without(os.environ, "dropin"))
        telling.say(
            "LD_PRELOAD names the drop-in, which is left out: what it served would be told as libc's"
        )


def _library(given: str) -> Path:
    """The file of --try, when it has something to try."""
    path = Path(given)
    if why := preloading.why_not_preloaded(path, preloading.TRIED_NAMES):
        raise WherryError(f"--try {given}: {why}; give a shared object, or libc")
    return path


def preparation(*, tries: bool, plan: Path | None, library: str | None) -> Preparation:
    """The drop-in is tried, with that plan, or a `library`; nothing unless `tries`, or where it is not built."""
    recorder = preloading.library("recorder")
    if not tries:
        return Preparation((recorder,))
    if library == trial.LIBC:
        return Preparation((recorder,), tried=Tried(trial.LIBC, trial.LIBC))
    if library is not None:
        own = _library(library)
        tried = Tried(outputs.plain_name(own.stem), trial.identity(own))
        return Preparation((recorder, own), tried=tried)
    try:
        dropin = preloading.library("dropin")
    except FailedError as error:
        telling.say(f"nothing is tried: {error}")
        return Preparation((recorder,))
    compiled = planuse.compiled(plan) if plan else None
    return Preparation((recorder, dropin), compiled, Tried(trial.DROPIN, trial.identity(compiled)))
