"""The document of a recorded run."""

from __future__ import annotations

import datetime
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from wherry import recordings
from wherry.errors import WherryError
from wherry.recording import callers
from wherry.recording.merge import Merger
from wherry.recording.running import Ran


def _machine() -> dict:
    from wherry import runner

    try:
        brand = runner.cpu().get("brand")
    except WherryError:
        brand = None
    libc = " ".join(platform.libc_ver()).strip()
    return {"cpu": brand, "kernel": platform.release(), "libc": libc}


def _ceiling(ops: dict[str, dict], timed: Mapping[str, list], cpu_s: float) -> dict | None:
    """What the copies took of the run; each op gets its `times` when its calls could be told by them."""
    from wherry import ceiling
    from wherry.recording import rehearsal

    if not ops:
        return {
            "cpu_s": round(cpu_s, 6),
            "likely_s": 0,
            "at_most_s": 0,
            "likely": 0,
            "at_most": 0,
            "timed": 0,
            "parts": [],
        }
    try:
        costs = ceiling.costs()
        try:
            rehearsed = rehearsal.hot()
            for op, part in ops.items():
                part["times"] = rehearsal.rows(timed[op], op, rehearsed, costs)
        except WherryError as error:
            print(f"wherry record: what was timed is left out: {error}", file=sys.stderr)
        return ceiling.of(ops, cpu_s, costs)
    except WherryError as error:
        print(f"wherry record: no ceiling: {error}", file=sys.stderr)
        return None


def _trial(merger: Merger, plan: str) -> dict:
    from wherry.recording import rehearsal, trial

    rate = rehearsal.hot()["ticks_per_ns"]
    ops = {op: trial.rows(own, rate) for op, own in merger.trials().items() if own}
    return {"routines": "dropin", "plan": plan, "ops": ops}


def document(
    *,
    name: str,
    command: Sequence[str],
    note: str,
    ran: Ran,
    merger: Merger,
    unrecorded: Sequence[Mapping],
    ceilings: bool,
    unseen: Mapping | None = None,
    tried: str | None = None,
) -> dict:
    from wherry import version

    ops = merger.ops()
    found = _ceiling(ops, merger.times(), ran.user_s + ran.system_s) if ceilings else None
    more = {}
    if tried and found and any("times" in part for part in ops.values()):
        more["trial"] = _trial(merger, tried)
    return {
        "format": recordings.FORMAT,
        "version": recordings.VERSION,
        "name": name,
        "created": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "wherry": version(),
        "how": {"command": [_printable(word) for word in command], "programs": [], "note": note},
        "machine": _machine(),
        "run": {
            "exit": ran.exit,
            "runs": ran.runs,
            "elapsed_s": round(ran.elapsed_s, 6),
            "user_s": round(ran.user_s, 6),
            "system_s": round(ran.system_s, 6),
            "processes": merger.processes,
            "threads": merger.threads,
            "uncounted": merger.uncounted,
            "unrecorded": list(unrecorded),
            "unseen": dict(unseen) if unseen else None,
        },
        "ops": ops,
        "sequences": merger.sequences(),
        "callers": callers.named(merger.callers),
        "ceiling": found,
        **more,
    }


def _printable(word: str) -> str:
    """Bytes that are no text came as surrogates, which no file of text can hold."""
    return word.encode(errors="surrogateescape").decode(errors="replace")


def save(path: Path, found: dict) -> None:
    recordings.write(path, found)
