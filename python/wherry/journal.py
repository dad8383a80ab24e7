"""What is measured of an experiment goes to disk as it comes, beside the run file: a run that is killed loses no row
that was finished. The first line holds the run as it was when the experiment began and how to go on with that; each
further line one thing that the runner said, or that was concluded of it. Gone once the run file has it all."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from wherry import jobcontrol, runfile
from wherry.errors import WherryError

FORMAT = runfile.JOURNAL_FORMAT
FORMAT_VERSION = 1
# Events that tell nothing once they are over.
_PASSING = frozenset({"trying", "end"})


def path_for(run: Path) -> Path:
    return run.with_name(run.name + runfile.JOURNAL)


def run_of(given: Path) -> Path:
    """The run that is meant where its journal is named; a run file may be called so, too."""
    if given.suffix != runfile.JOURNAL or not given.is_file() or runfile.is_document(given):
        return given
    return given.with_suffix("")


class Journal:
    """Written while one experiment is measured. A disk that is full ends the journal, not the run, and is told when the
    run cannot be saved either. While it is written it is locked, which ends with whoever writes it."""

    def __init__(self, run_path: Path, document: dict, part: dict):
        self.path = path_for(run_path)
        # What an earlier journal had, which is gone on with, and may be nowhere else.
        self._earlier = len(part["state"]["done"])
        self.rows = self._earlier  # that have come to their end in it
        self._began = jobcontrol.clock()
        self._file = None
        head = {"format": FORMAT, "format_version": FORMAT_VERSION, "run": document, "resume": part}
        try:
            # Under a temporary name first: an older journal stays whole until this one can take its place.
            runfile.write(self.path, head)
            self._file = self.path.open("ab", buffering=0)
        except (OSError, WherryError):
            self.rows = self._earlier if self.path.exists() else 0
            return
        with contextlib.suppress(OSError):  # a file system that has no locks
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def event(self, process: int, event: dict) -> None:
        if event["event"] not in _PASSING:
            self._write({"process": process, "event": event})

    def problem(self, problem: dict) -> None:
        self._write({"problem": problem})

    def excluded(self, routine: str) -> None:
        self._write({"excluded": routine})

    def _write(self, what: dict) -> None:
        if self._file is None:
            return
        what["seconds"] = round(jobcontrol.clock() - self._began, 2)
        try:
            line = runfile.exact(what)
            if self._file.write(line) != len(line):
                raise OSError(0, "the disk is full")
            self.rows += what.get("event", {}).get("event") == "rowend"
        except OSError:
            # Half a journal only keeps the disk full, but for what would be lost with it.
            self.close() if self._earlier else self.remove()

    def close(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # NFS tells of a quota only now
                self._file.close()
            self._file = None

    def remove(self) -> None:
        self.rows = 0
        self.close()
        with contextlib.suppress(OSError):
            self.path.unlink()


# ---- what is there already ------------------------------------------------------------------------------------------


def _under_way(run: Path) -> WherryError:
    return WherryError(
        f"cannot save to {run}: a run that is under way will be saved there ({path_for(run)} is its journal); wait for "
        "its end, or give another name"
    )


@contextlib.contextmanager
def taken(run: Path) -> Iterator[None]:
    """Around the making of a run's first journal. Of two that began together neither saw one of the other's: who makes
    the file has the name. One that is there belongs to a killed run, which is gone on with, unless somebody has it
    locked, or has just made it."""
    path, made = path_for(run), False
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        made = True
    except FileExistsError:
        with contextlib.suppress(OSError):
            if runfile.is_locked(path) or not path.stat().st_size:
                raise _under_way(run) from None
    except OSError:
        pass  # told when the run is saved
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if made and not path.stat().st_size:
                path.unlink()


def check_none(run: Path) -> None:
    """Before a new run takes the place: what a killed one measured is in its journal alone."""
    path = runfile.journal_beside(run)
    if path is None:
        return
    if runfile.is_locked(path):
        raise _under_way(run)
    raise WherryError(
        f"cannot save to {run}: {path} holds what a killed run measured; go on with that (wherry bench --resume "
        f"{run}), remove {path}, or give another name"
    )


# ---- going on -------------------------------------------------------------------------------------------------------


def _lines(path: Path) -> Iterator[dict]:
    lines = runfile.read_bytes(path).split(b"\n")
    for number, line in enumerate(lines):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            yield found
        elif number == 0:
            raise _none(path)
        # A last line that is cut short was under way when the run was killed.
        elif number < len(lines) - 1:
            raise _damaged(path, f"line {number + 1} is none of it")


def _none(path: Path) -> WherryError:
    return WherryError(f"{path} is not a journal of Wherry; {_advice(path)}")


def _damaged(path: Path, how: str) -> WherryError:
    return WherryError(f"{path} is damaged: {how}; {_advice(path)}")


def _advice(path: Path) -> str:
    """What is there without the journal."""
    run = path.with_suffix("")
    if run.exists() and run.stat().st_size:
        return f"remove it to go on with what {run} has"
    return "remove it and begin a new run"


def _is_number(value: object) -> bool:
    """One that arithmetic takes; whole numbers of JSON have no bounds."""
    return isinstance(value, int | float) and abs(value) <= sys.float_info.max


def _are_times(value: object) -> bool:
    """In ns, of rounds: above none, and below thirty years."""
    return _are_numbers(value, gaps=True) and all(v is None or 0 < v < 1e18 for v in value)


def _are_numbers(value: object, *, gaps: bool = False) -> bool:
    return isinstance(value, list) and all(_is_number(v) or (gaps and v is None) for v in value)


def _is_told(value: object) -> bool:
    """Numbers by name; of what could not be counted there is none."""
    return isinstance(value, dict) and _are_numbers([*value.values()], gaps=True)


def _is_pace(value: object) -> bool:
    return _are_numbers(value) and len(value) in (0, 2)


# Of an event: what a campaign takes as it comes and reckons with only at its end.
_FORMS = {
    **dict.fromkeys(("routine", "reason", "message"), lambda value: isinstance(value, str)),
    **dict.fromkeys(("calls", "bytes", "voided", "rounds", "share"), _is_number),
    **dict.fromkeys(("ns", "tried"), _are_times),
    **dict.fromkeys(("cores", "memories"), _are_numbers),
    **dict.fromkeys(("counters", "parts"), _is_told),
    "reasons": lambda value: isinstance(value, dict) and _are_numbers([*value.values()]),
    "pace": _is_pace,
    "outcomes": lambda value: (
        isinstance(value, list) and all(v is None or isinstance(v, str) for v in value)
    ),
}
# The same of the one that a runner begins with, and of what was concluded.
_BEGINNING = {"cpu": int, "randomised": bool, "layout": str, "apart": bool, "counters": dict}
_PROBLEM = {"kind": str, "routine": str, "message": str, "row": int, "experiment": str}


def _check_form(event: dict) -> None:
    """ValueError for an event that no runner has said."""
    if event["event"] == "start":
        _check_kinds(event, _BEGINNING)
        return
    for key, fits in _FORMS.items():
        if event.get(key) is not None and not fits(event[key]):
            raise ValueError


def _check_kinds(told: dict, kinds: Mapping[str, type]) -> None:
    for key, kind in kinds.items():
        if told.get(key) is not None and not isinstance(told[key], kind):
            raise ValueError


def read(run_path: Path) -> dict | None:
    """The run that was killed, as one that was interrupted: `resume` says how to go on, and has the further lines.
    None when there is no journal."""
    path = runfile.journal_beside(run_path)
    if path is None:
        return None
    if runfile.is_locked(path):
        raise WherryError(
            f"cannot resume {run_path}: its run is still under way; wait for its end, or end it with Ctrl-C first"
        )
    lines = _lines(path)
    head = next(lines, {})
    part = head.get("resume")
    if head.get("format") != FORMAT or not isinstance(part, dict):
        raise _none(path)
    if head.get("format_version") != FORMAT_VERSION:
        raise WherryError(
            f"{path} is of format {head.get('format_version')}; this Wherry reads {FORMAT_VERSION}"
        )
    run = head.get("run")
    if isinstance(run, dict):
        run |= {"interrupted": True, "resume": part}
    run = runfile.checked(path, run)
    heard = list(lines)
    for number, line in enumerate(heard, 2):
        if not _is_number(line.get("seconds", 0.0)):
            raise _damaged(path, _strange(number))
    spent = max((line.get("seconds", 0.0) for line in heard), default=0.0)
    run["seconds"] += spent
    part["seconds"] += spent
    part["heard"], part["journal"] = heard, path
    return run


def _strange(number: int) -> str:
    return f"line {number} tells what no run does"


class Hearer(Protocol):
    """A campaign, as far as a journal tells it something."""

    rows: Sequence
    processes: int
    excluded: set[str]

    def hear(self, event: dict, process: int) -> None: ...

    def note(self, problem: Mapping) -> None: ...


def replay(campaign: Hearer, part: dict) -> None:
    """Lets a campaign of the same rows hear it all again."""
    for number, line in enumerate(part.get("heard", ()), 2):
        try:
            if "event" in line:
                event, process = line["event"], line["process"]
                known = event["event"] == "start" or event["id"] in range(len(campaign.rows))
                if not known or process not in range(campaign.processes):
                    raise ValueError
                _check_form(event)
                campaign.hear(event, process)
            elif "problem" in line:
                _check_kinds(line["problem"], _PROBLEM)
                campaign.note(line["problem"])
            elif "excluded" in line:
                if not isinstance(line["excluded"], str):
                    raise TypeError
                campaign.excluded.add(line["excluded"])
            else:
                raise ValueError
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            raise _damaged(part["journal"], _strange(number)) from None
