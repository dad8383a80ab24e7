"""The document of a recorded run."""

from __future__ import annotations

import contextlib
import datetime
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from wherry import recordings
from wherry.errors import WherryError
from wherry.recording import callers, host, telling
from wherry.recording.ending import Ending
from wherry.recording.merge import Merger
from wherry.recording.running import Ran
from wherry.recording.trial import Tried

# Of the command these are kept at most: a build may hand on a list of files that is larger than all else in the mix.
MOST_WORDS, MOST_LETTERS = 1000, 32768
# Counting takes no more than that leaves, whatever the clock says.
LEAST_OWN_SHARE = 0.25


def _command(words: Sequence[str]) -> dict:
    """The command as a mix keeps it: `command`, and `left_out` where it has more words than are kept."""
    kept: list[str] = []
    letters = 0
    for word in map(_printable, words[:MOST_WORDS]):
        letters += len(word)
        if kept and letters > MOST_LETTERS:
            break
        kept.append(word)
    return {"command": kept} | (
        {"left_out": len(words) - len(kept)} if len(kept) < len(words) else {}
    )


def _machine() -> dict:
    from wherry import runner

    try:
        reported = runner.cpu()
    except WherryError:
        reported = None
    return host.here(reported)


def _rehearsed() -> dict | None:
    """None where what timing adds is not known."""
    from wherry.recording import rehearsal

    try:
        return rehearsal.hot(telling.measures)
    except WherryError as error:
        telling.say(f"what was timed is left out: {error}")
        return None


def own_share(merger: Merger, cpu_s: float, ticks_per_ns: float) -> float:
    """Of the run's processor time what is the programs' and did not go into counting. The clock that tells it runs on
    while another program runs; most of that is left out, and no more is told than there can be."""
    aside_s = merger.aside / ticks_per_ns / 1e9
    return max(1 - aside_s / cpu_s, LEAST_OWN_SHARE) if cpu_s > 0 else 1.0


def _timed(
    ops: dict[str, dict],
    merger: Merger,
    costs: Mapping,
    rehearsed: Mapping,
    tried: Tried | None,
    cpu_s: float,
    elapsed_s: float,
    pace: float,
) -> dict:
    """Gives each op its `times`; what the mix keeps of the trial. Of both times what is the programs' own."""
    from wherry.recording import rehearsal, trial, turns

    times = merger.times()
    for op, part in ops.items():
        part["times"] = rehearsal.rows(times[op], op, rehearsed, costs, pace)
    if tried is None:
        return {}
    rate = rehearsed["ticks_per_ns"]
    rows = {op: trial.rows(own, rate) for op, own in merger.trials().items() if own}
    found = {"routines": tried.routines, "plan": tried.plan, "ops": rows}
    turned = turns.summed(merger.turns, rate, cpu_s, elapsed_s, merger.lasting)
    return {"trial": found | ({"turns": turned} if turned else {})}


def _ceiling(
    ops: dict[str, dict], merger: Merger, ran: Ran, tried: Tried | None, incomplete: bool = False
) -> tuple[dict | None, dict]:
    """What the copies took of the run; and, when a plan was tried, the trial. `incomplete`: some was not recorded."""
    from wherry import ceiling
    from wherry.recording import rehearsal, turns

    cpu_s = ran.user_s + ran.system_s
    if not ops:
        # Where nothing could be recorded, nothing is known; a program that was recorded and copied nothing is another.
        return (None if incomplete else ceiling.of({}, cpu_s, {})), {}
    try:
        costs = ceiling.costs(telling.measures)
    except WherryError as error:
        telling.say(f"no ceiling: {error}")
        return None, {}
    more, rehearsed, pace = {}, _rehearsed(), 1.0
    if rehearsed:
        pace = rehearsal.pace(merger, rehearsed)
        own = own_share(merger, cpu_s, rehearsed["ticks_per_ns"])
        cpu_s *= own
        more = _timed(ops, merger, costs, rehearsed, tried, cpu_s, ran.elapsed_s * own, pace)
    alone_s = turns.libc_alone(cpu_s, more["trial"], ops) if more else cpu_s
    found = ceiling.of(ops, alone_s, costs, ran.system_s, incomplete, ran.unrecorded_s, pace)
    return found | ({"trial_s": round(cpu_s - alone_s, 6)} if more else {}), more


def _incomplete(merger: Merger, unrecorded: Sequence[Mapping], ran: Ran) -> bool:
    """Whether something of the run was not recorded."""
    return bool(
        unrecorded
        or merger.uncounted
        or merger.damaged
        or ran.still
        or ran.unrecorded_s
        or not merger.processes
    )


def unrecorded_s(ran: Ran, merger: Merger, ending: Ending) -> float:
    """Of one run: the processor time of what was not recorded, at least."""
    from wherry.recording import processor, rehearsal

    try:
        with ending.can_be_left():
            rate = rehearsal.hot(telling.measures)["ticks_per_ns"]
    except KeyboardInterrupt:
        return 0.0
    except WherryError:
        return 0.0  # said where what was timed is left out
    recorded = processor.recorded_s(merger.spans, ran.watched, rate, ran.look_s)
    return processor.unrecorded_s(ran.user_s + ran.system_s, recorded)


def document(
    *,
    name: str,
    command: Sequence[str],
    note: str,
    ran: Ran,
    merger: Merger,
    unrecorded: Sequence[Mapping],
    ceilings: bool,
    ending: Ending | None = None,
    unseen: Mapping | None = None,
    tried: Tried | None = None,
    alive: Iterable[int] = (),
) -> dict:
    """`ending`: who may say that it has lasted long enough. `alive`: of the recorded processes those that go on."""
    from wherry import version

    ending = ending or Ending()

    ops = merger.ops()
    found, more = None, {}
    if ceilings:
        try:
            with ending.can_be_left():
                found, more = _ceiling(
                    ops, merger, ran, tried, _incomplete(merger, unrecorded, ran)
                )
        except KeyboardInterrupt:
            # Of `times` some may be there.
            ops = merger.ops()
            telling.say("interrupted: the mix is saved without the ceiling")
    return {
        "format": recordings.FORMAT,
        "version": recordings.VERSION,
        "name": name,
        "created": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "wherry": version(),
        "how": {
            **_command(command),
            "programs": [],
            "note": _printable(note),
        },
        "machine": _machine(),
        "run": {
            "exit": ran.exit,
            **({"collected": True} if ran.goes_on else {}),
            **({"recovered": True} if ran.exit is None and not ran.goes_on else {}),
            "runs": ran.runs,
            "elapsed_s": round(ran.elapsed_s, 6),
            "user_s": round(ran.user_s, 6),
            "system_s": round(ran.system_s, 6),
            "processes": merger.processes,
            "execs": merger.execs,
            "threads": merger.threads,
            "uncounted": merger.uncounted,
            "unrecorded": [{**row, "program": _printable(row["program"])} for row in unrecorded],
            "unseen": dict(unseen) if unseen else None,
        },
        "ops": ops,
        "threads": [
            {
                **row,
                "program": _printable(row["program"]),
                "name": None if row["name"] is None else _printable(row["name"]),
            }
            for row in merger.by_thread()
        ],
        "sequences": merger.sequences(),
        "callers": callers.named(merger.callers, alive),
        "ceiling": found,
        **more,
    }


def _printable(word: str) -> str:
    """Bytes that are no text came as surrogates, which no file of text can hold."""
    return word.encode(errors="surrogateescape").decode(errors="replace")


def save(path: Path, found: dict, others: Sequence[Path]) -> tuple[Path, str]:
    """Where it is now, and why not at `path`: a run cannot be had again, so that one of the directories `others` will
    do."""
    try:
        recordings.write(path, found)
        return path, ""
    except WherryError as error:
        for home in others:
            try:
                descriptor, name = tempfile.mkstemp(
                    prefix=f"{found['name']}.", suffix=".mix.json", dir=home
                )
                os.close(descriptor)
            except OSError:
                continue
            try:
                recordings.write(Path(name), found)
                return Path(name), str(error)
            except WherryError:
                with contextlib.suppress(OSError):
                    Path(name).unlink()
        raise
