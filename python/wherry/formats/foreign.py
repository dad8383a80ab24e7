"""A run made of another tool's figures. What that tool does not tell is null; nothing is made up."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from wherry import dimensions, runfile, version
from wherry.errors import WherryError
from wherry.stats import QUANTILES

# More than any table, page or person takes.
MOST_CELLS = 200_000
# The place of several benchmarks whose names alone say what they measure.
AS_NAMED = "as named"
# A name is printed, and stands in a run file that is mailed about.
LONGEST_NAME = 200
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
# Of a cell, what its row does not have.
_FIGURES = frozenset(
    ("routine", "aa", "calls", "bytes", "ns", "rounds", "processes", "voided", "verified", "ratio")
)
_UNTOLD = ("src_off", "dst_off", "walk", "src_state", "dst_state", "mode", "threads", "huge")


def clean(text: object) -> str:
    return _UNPRINTABLE.sub("?", str(text))[:LONGEST_NAME]


def _cleaned(value):
    if isinstance(value, dict):
        return {key: _cleaned(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    return clean(value) if isinstance(value, str) else value


@dataclass(frozen=True)
class Made:
    """What our own export tells of how a cell was measured; 0 and None where an earlier one did not."""

    quantiles: bool  # samples are those of the rounds, not the rounds
    rounds: int = 0
    processes: int = 0
    floor: float | None = None


def made(about: object, told: Callable[[str], object]) -> Made:
    """`about`: what the export says of its samples; `told`: of a cell, by name."""

    def count(name: str) -> int:
        value = told(name)
        fits = isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 31
        return value if fits else 0

    floor = told("noise_floor")
    return Made(
        isinstance(about, str) and about.startswith("quantiles"),
        count("rounds"),
        count("processes"),
        floor if positive(floor) or (floor == 0 and not isinstance(floor, bool)) else None,
    )


@dataclass
class Cell:
    """One benchmark of another tool: samples, or what it says of samples that it does not give."""

    experiment: str
    op: str
    routine: str
    dimensions: dict[str, object]
    name: str = ""
    samples: list[float] = field(default_factory=list)
    summary: dict[str, float] = field(default_factory=dict)  # median, mean, stddev, min, max
    repetitions: int = 1
    calls: int | None = None
    bytes: float | None = None
    made: Made | None = None

    def rounds(self) -> int:
        """Samples that are quantiles do not tell how many there were: of those that differ two at least."""
        count = len(self.samples) or self.repetitions
        if self.made is None:
            return count
        if not self._are_quantiles():
            # Of a cell that gave no more than its median, how many it is the median of.
            return self.made.rounds or count if count == 1 else count
        return self.made.rounds or (2 if self.samples[0] < self.samples[-1] else 1)

    def _are_quantiles(self) -> bool:
        return (
            self.made is not None
            and self.made.quantiles
            and len(self.samples) == len(QUANTILES)
            and self.samples == sorted(self.samples)
        )

    def figures(self) -> dict[str, float | None]:
        """As a run file has them; null for quantiles that nobody told."""
        if self._are_quantiles():
            own = dict(zip(QUANTILES, self.samples, strict=True))
        elif len(self.samples) == 1 and self.rounds() > 1:
            own = dict.fromkeys(QUANTILES) | {"median": self.samples[0]}
        elif self.samples:
            found = np.quantile(np.array(self.samples), list(QUANTILES.values()))
            own = {key: float(v) for key, v in zip(QUANTILES, found, strict=True)}
        else:
            own = {key: self.summary.get(key) for key in QUANTILES}
            if own["median"] is None:
                own["median"] = self.summary["mean"]
        own |= {
            key: self.summary[key] for key in ("mean", "stddev") if self.summary.get(key, 0) > 0
        }
        return {k: None if v is None else float(f"{v:.7g}") for k, v in own.items()}

    def place(self) -> tuple:
        """What tells its row from others."""
        return (
            self.experiment,
            self.op,
            self.name,
            tuple(sorted((k, str(v)) for k, v in self.dimensions.items())),
        )


@dataclass
class Source:
    """Which tool, which file, and what it says of the machine and of itself."""

    tool: str
    file: str
    unit: str = "ns"
    told: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    machine: dict = field(default_factory=dict)
    when: str | None = None

    def record(self) -> dict:
        return {
            "tool": self.tool,
            "file": clean(self.file),
            "unit": self.unit,
            "told": {clean(k): clean(v) for k, v in list(self.told.items())[:100]},
            "notes": [clean(note) for note in self.notes],
        }


def unknown_machine() -> dict:
    return {
        "host": None,
        "boot": None,
        "cpu": {"model": None},
        "caches": [],
        "reported": {},
        "kernel": None,
        "libc": None,
        "compiler": None,
        "pages": {"bytes": None, "thp": None},
        "clock_source": None,
        "virtualisation": {"virtual": None},
        "governor": None,
        "turbo": None,
        "load": [],
        "memory": {"total": None, "available": None},
        "counters": None,
        "uncontrolled": [],
    }


def moment(text: object) -> str | None:
    """A date of another tool as ours are written; None when it is none."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
        if found.tzinfo is None:
            found = found.replace(tzinfo=datetime.timezone.utc)
        return _utc(found)
    except (ValueError, OverflowError):
        return None


def written(path: Path) -> str:
    """When the file was, for figures of a tool that tells no date."""
    try:
        return _utc(datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.timezone.utc))
    except (OSError, ValueError, OverflowError):  # no date of a calendar
        return _utc(datetime.datetime.now(datetime.timezone.utc))


def _utc(found: datetime.datetime) -> str:
    return found.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def positive(value: object) -> float | None:
    """A figure that a time can have."""
    found = dimensions.number(value)
    return found if found is not None and 0 < found < 1e18 else None


def build(cells: Sequence[Cell], source: Source, verified: bool | None = None) -> dict:
    """The run. Cells of the same place are one row; the same routine twice there is a mistake of the file."""
    if not cells:
        raise WherryError(
            f"{source.file} has no figures to take ({source.tool})"
            + (f": {source.notes[0]}" if source.notes else "")
        )
    if len(cells) > MOST_CELLS:
        raise WherryError(f"{source.file} has {len(cells)} benchmarks; at most {MOST_CELLS:,} fit")
    rows, made = {}, []
    experiments: dict[str, dict] = {}
    for cell in cells:
        number = rows.setdefault(cell.place(), len(rows))
        own = {"experiment": clean(cell.experiment), "row": number, "op": cell.op}
        own |= dict.fromkeys(_UNTOLD) | cell.dimensions
        if cell.name or not {"size", "mix"} & set(own):
            own["name"] = clean(cell.name or cell.routine)
        count, processes = cell.rounds(), max((cell.made.processes if cell.made else 0), 1)
        processes = min(processes, count)  # each had a round
        of = experiments.setdefault(
            own["experiment"], {"processes": 1, "rounds": 1, "noise_floor": None}
        )
        of["processes"] = max(of["processes"], processes)
        of["rounds"] = max(of["rounds"], math.ceil(count / processes))
        if cell.made and cell.made.floor is not None:
            of["noise_floor"] = max(of["noise_floor"] or 0.0, cell.made.floor)
        made.append(
            own
            | {
                "routine": clean(cell.routine),
                "aa": False,
                "calls": cell.calls,
                "bytes": cell.bytes,
                "ns": cell.figures(),
                "rounds": count,
                "processes": processes,
                "voided": None,
                "verified": verified,
                "ratio": None,
            }
        )
    heads = {
        cell["row"]: {key: value for key, value in cell.items() if key not in _FIGURES}
        | {"fastest": None, "tied": [], "lead": None}
        for cell in made
    }
    routines: dict[int, set[str]] = {}
    for cell in made:
        routines.setdefault(cell["row"], set()).add(cell["routine"])
    for number, head in heads.items():
        if len(routines[number]) > 1 and head.get("name") in routines[number]:
            head["name"] = AS_NAMED
    machine = unknown_machine() | _cleaned(source.machine)
    machine["uncontrolled"] = [
        {
            "what": f"measured by {source.tool}, not by Wherry",
            "why": "how it was measured, and that the bytes were right, is not known here",
            "do": "compare it within itself, or measure again with wherry bench",
        },
        *machine["uncontrolled"],
    ]
    if source.unit == "ticks":
        machine["uncontrolled"].append(
            {
                "what": "figures are ticks of the CPU's counter, not nanoseconds",
                "why": "the file does not tell how many ticks a nanosecond has",
                "do": "wherry import --ghz GHZ (the counter's rate, as dmesg tells it for tsc)",
            }
        )
    return {
        "format": runfile.FORMAT,
        "format_version": runfile.FORMAT_VERSION,
        "wherry": version(),
        "runner": {},
        "started": source.when,  # None is filled in by whoever knows the file
        "finished": source.when,
        "seconds": 0.0,
        "interrupted": False,
        "machine": machine,
        "source": source.record(),
        "method": {"seed": None, "peers": [], "quick": False},
        "mixes": [],
        "noise": {
            "floor": max(
                (e["noise_floor"] for e in experiments.values() if e["noise_floor"] is not None),
                default=None,
            )
        },
        "ideas": {},
        "experiments": [{"name": name, **of, "complete": True} for name, of in experiments.items()],
        "rows": [heads[number] for number in sorted(heads)],
        "cells": made,
        "problems": [],
    }
