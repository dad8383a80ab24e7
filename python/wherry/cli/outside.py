"""`wherry record --into` and `--collect`: what somebody else starts."""

from __future__ import annotations

import os
from pathlib import Path

from wherry.errors import EXIT_FAILED, FailedError
from wherry.recording import leftovers, telling


def into(
    given: str,
    output: str | None,
    note: str,
    *,
    tries: bool,
    plan: Path | None,
    library: str | None,
) -> int:
    """Makes the directory ready and prints the environment."""
    from wherry import outputs, shellwords
    from wherry.cli import streams
    from wherry.recording import outside, preparing

    home = outside.check(Path(given))
    target = Path(output or f"{outputs.plain_name(home.name)}.mix.json")
    outputs.check(target, outputs.MIX)
    prepared = preparing.preparation(tries=tries, plan=plan, library=library)
    env = outside.make(home, prepared, target, note)
    for name, value in env.items():
        streams.line_of(f"{name}={value}")
    place = shellwords.path(str(home))
    telling.say(
        f"what is started with this environment ({place}/{outside.ENVIRONMENT}) is recorded; wherry record --collect "
        f"{place} saves what there is until then. When nothing is started with it any more: rm -r {place}"
    )
    if os.geteuid() == 0 and (closed := outside.closed_to_others(home)) is not None:
        telling.say(
            f"only its owner can go through {closed}: what runs as another user cannot be recorded there"
        )
    return 0


def collect(given: str, output: str | None, note: str, *, ceiling: bool, quiet: bool) -> int:
    from wherry import outputs
    from wherry.cli import recorded
    from wherry.recording import outside, preparing, running, writing
    from wherry.units import percent

    home = Path(given)
    found = leftovers.read_outside(home)
    home = home.absolute()
    target = Path(output) if output else found.output
    outputs.check(target, outputs.MIX)
    preparing.leave_out_the_dropin()
    got = outside.collect(home)
    if not got.merger.processes:
        raise FailedError(
            f"{home}: nothing has been recorded there; start what is to be with the environment in "
            f"{home / outside.ENVIRONMENT}"
        )
    if ceiling and not got.times_known:
        ceiling = False
        telling.say(
            "no ceiling and no trial: no process that is recorded there goes on, and of those that have ended nobody "
            "knows what time they took; collect while they work"
            if not got.alive
            else f"no ceiling and no trial: processes that have ended did {percent(got.ended_share)} of it, and nobody "
            "knows what time they took"
        )
    document = writing.document(
        name=recorded.name_of(target),
        command=found.command,
        note=note or found.note,
        ran=got.ran,
        merger=got.merger,
        unrecorded=running.refused_unseen(got.merger.refused, home),
        ceilings=ceiling,
        tried=outside.tried(found),
        alive=got.alive,
    )
    saved = recorded.save(document, target, home, got.merger, got.ran, quiet)
    return 0 if saved else EXIT_FAILED
