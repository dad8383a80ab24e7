"""A plan file that a program is given: whether the library here takes it, and where the library finds it.

planuse.judged(Path("mine.toml"))                              # why not, or None, and what WHERRY_PLAN would name
planuse.of_environment(os.environ)                             # the same of a WHERRY_PLAN that is there already

planuse.refuse_unused(Path("mine.toml"), "--plan mine.toml")   # WherryError when the default would serve instead
planuse.compiled(Path("mine.toml"))                            # what WHERRY_PLAN names
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from wherry import plans, preloading
from wherry.errors import FailedError, WherryError
from wherry.plans import Plan

# Of commands that try the drop-in by themselves: one word of it for what all of them tell.
NOT_USED = "WHERRY_PLAN is not used here; --plan FILE names a plan"


def why_unused(found: Sequence[Plan], reported: Mapping) -> str | None:
    """Why the library keeps its default on that CPU, as a sentence without its end; None when it takes one of them."""
    if plans.for_this_cpu(found, reported) is not None:
        return None
    if len(found) > 1:
        return f"none of its {len(found)} plans is for this CPU"
    own = found[0]
    return plans.mismatch(own.cpu, reported) or (
        f"its choice {own.choice} needs {plans.lacks(own, reported)}, which this CPU lacks"
    )


def judged(path: Path) -> tuple[str | None, Path]:
    """Why the library would keep its default, as a sentence without its end, or None; and what to name to it, so that
    it can tell too. WherryError when nothing can be read there."""
    from wherry import planfiles, runner

    try:
        found = planfiles.read(path)
    except plans.UnusableError as error:
        return f"it {error.why}", path.absolute()
    return why_unused(found, runner.cpu()), compiled(path)


def of_environment(env: Mapping[str, str]) -> tuple[str, str | None] | None:
    """The file of WHERRY_PLAN and why the library keeps its default, or None, as the library says itself; None when
    none is named, or nobody can tell."""
    from wherry import runner

    named = env.get("WHERRY_PLAN")
    if not named:
        return None
    try:
        status = runner.cpu()["plan"]["status"]
    except (FailedError, KeyError):
        return None
    return named, unused_by(status, named)


def unused_by(status: str, named: str) -> str | None:
    """Why the library keeps its default in the place of what WHERRY_PLAN names, as its status tells; None when it
    does not. The status ends with the path in printable ASCII, or with as much of it as there was room for."""
    _, told, reason = status.partition("WHERRY_PLAN was not used: ")
    if not told:
        return None
    path = f" ({re.sub(rb'[^ -~]', b'?', os.fsencode(named)).decode()})"
    ends = (at for at in range(len(reason)) if path.startswith(reason[at:]))
    return reason[: next(ends, len(reason))]


def refuse_unused(path: Path, asked: str) -> None:
    """For what measures: figures of the default plan under the name of another would be wrong."""
    from wherry import planfiles, runner

    if why := why_unused(planfiles.read(path), runner.cpu()):
        raise WherryError(
            f"{asked}: {why}; the default plan would serve in its place (wherry plan show {path} tells what it is for)"
        )


def compiled(path: Path) -> Path:
    """The compiled form, absolute: the file itself, or made of the text and kept."""
    from wherry import planfiles

    try:
        return planfiles.library_form(path)
    except (FailedError, OSError, RuntimeError):
        # No home directory, or none that can be written: a container's, or that of a service's user.
        return _aside(planfiles.read(path))


def kept(found: Sequence[Plan]) -> Path:
    """Those plans compiled and kept."""
    from wherry import planfiles

    try:
        return planfiles.keep(found)
    except (FailedError, OSError, RuntimeError):
        return _aside(found)


def _aside(found: Sequence[Plan]) -> Path:
    """In a directory of our own elsewhere."""
    from wherry import planbinary, runfile

    data = planbinary.encode(list(found))
    for home in preloading.own_directories():
        made = home / f"{hashlib.sha256(data).hexdigest()[:32]}.plan"
        try:
            if not made.is_file() or made.read_bytes() != data:
                runfile.write_bytes(made, data, quiet=True)
        except (FailedError, OSError):
            continue
        return made
    raise FailedError(
        "there is no place for the compiled plan: neither ~/.cache nor /tmp can be written; set XDG_CACHE_HOME to a "
        "directory that can be"
    )
