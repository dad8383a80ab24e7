"""One cell of one run as a logarithm with its standard error, and the references that shapes are taken to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wherry import stats
from wherry.formats import naming
from wherry.formats.samples import Raw
from wherry.yardsticks import YARDSTICKS

# Of a normal distribution: half of the quartiles' distance, the 97.5 % quantile, and what a median's error is more than
# a mean's.
QUARTILES, WIDE, MEDIAN_ERROR = 1.349, 1.959964, 1.2533
# However alike the rounds: a clock and a loop have their own grain.
LEAST_ERROR = 0.001
# More cells than this are judged by their quantiles: resampling them all would take minutes.
RESAMPLED = 3000
LIBC = "libc"
# Fewer of a bistable kind are often all on one side, and then seem to agree.
LEAST_PROCESSES = 3


@dataclass(frozen=True)
class Side:
    log: float
    error: float | None  # None: a single sample, which says nothing of its error
    # Of the error, as of a t test. 0: of a single process, in which what processes differ by is not to be seen.
    freedom: float = 0.0
    few: bool = False  # too few processes to show what processes differ by


def _resampled(processes: Sequence[np.ndarray], seed: int, foreign: bool) -> Side | None:
    ratio = stats.bootstrap(processes, np.random.default_rng(seed))
    if ratio is None:
        return None
    error = math.log(ratio.high / ratio.low) / (2 * WIDE) if ratio.told else 0.0
    count = sum(len(values) for values in processes)
    own = [float(np.median(values)) for values in processes if len(values)]
    if len(own) > 1:
        # Resampled, few processes seem nearer to each other than they are.
        error = max(error, float(np.std(own, ddof=1)) / math.sqrt(len(own)))
    error = max(error, LEAST_ERROR) if count > 1 else None
    few = not foreign and len(own) < LEAST_PROCESSES
    return Side(math.log(ratio.median), error, (count if foreign else len(own)) - 1, few)


def between(a: Side, b: Side) -> Side:
    """The second over the first. The freedom of two errors together is that of Welch and Satterthwaite."""
    few = a.few or b.few
    if a.error is None or b.error is None:
        return Side(b.log - a.log, None, few=few)
    freedom = 0.0
    if a.freedom > 0 and b.freedom > 0:
        whole = (a.error**2 + b.error**2) ** 2
        freedom = whole / (a.error**4 / a.freedom + b.error**4 / b.freedom)
    return Side(b.log - a.log, math.hypot(a.error, b.error), freedom, few)


def _by_quantiles(cell: dict, foreign: bool) -> Side:
    """Rounds of one process are alike in what differs from process to process, so they count for less than they are:
    halfway between the processes and the rounds. Other tools do not tell of processes; their repetitions are taken as
    they take them, each for itself."""
    ns = cell["ns"]
    log = math.log(ns["median"])
    if cell["rounds"] < 2:
        return Side(log, None, few=not foreign)
    freedom = cell["rounds" if foreign else "processes"] - 1
    few = not foreign and cell["processes"] < LEAST_PROCESSES
    if ns.get("q25") and ns.get("q75"):
        spread = math.log(ns["q75"] / ns["q25"]) / QUARTILES
        count = cell["rounds"] if foreign else math.sqrt(cell["processes"] * cell["rounds"])
    elif ns.get("stddev"):
        spread = ns["stddev"] / ns["median"]
        count = cell["rounds"]
    else:
        return Side(log, None)
    return Side(log, max(MEDIAN_ERROR * spread / math.sqrt(count), LEAST_ERROR), freedom, few)


class Figures:
    """The cells of one run."""

    def __init__(self, run: dict, raw: Raw, resample: bool):
        source = run.get("source")
        # What we exported ourselves tells of processes.
        self.foreign = bool(source) and naming.BY[0] not in source.get("told", {})
        self.raw = raw if resample else Raw()
        self._rows: dict[tuple, dict[str, dict]] = {}
        for cell in run["cells"]:
            if not cell["aa"]:
                own = self._rows.setdefault((cell["experiment"], cell["row"]), {})
                own[cell["routine"]] = cell

    def time(self, cell: dict) -> Side:
        samples = self.raw.of(cell)
        if samples:
            logs = [np.log(values) for _, values in sorted(samples.items())]
            return _resampled(logs, cell["row"], self.foreign) or _by_quantiles(cell, self.foreign)
        return _by_quantiles(cell, self.foreign)

    def has(self, cell: dict, reference: str) -> bool:
        return reference in self._rows[cell["experiment"], cell["row"]]

    def shape(self, cell: dict, reference: str) -> Side | None:
        """Time over the reference's in the same row; round by round where that is known."""
        other = self._rows[cell["experiment"], cell["row"]].get(reference)
        if other is None:
            return None
        own, its = self.raw.of(cell), self.raw.of(other)
        if own and its:
            paired = _resampled(stats.log_ratios(own, its), cell["row"], self.foreign)
            if paired:
                return paired
        ratio = cell["ratio"]
        if ratio and ratio["to"] == reference and ratio["low"] is not None:
            error = max(math.log(ratio["high"] / ratio["low"]) / (2 * WIDE), LEAST_ERROR)
            log = math.log(ratio["median"])
            # Of a file that was edited the ratio may no longer be that of the times.
            if abs(log - math.log(cell["ns"]["median"] / other["ns"]["median"])) < 4 * error + 0.02:
                processes = cell["processes"] or 1
                return Side(log, error, processes - 1, processes < LEAST_PROCESSES)
        return between(self.time(other), self.time(cell))


def usable_references(pairs: Sequence[tuple[dict, dict]], a: Figures, b: Figures) -> dict[str, int]:
    """Routines that stand beside other ones in rows of both runs, and for how many cells."""
    found: dict[str, int] = {}
    for one, other in pairs:
        rows = a._rows[one["experiment"], one["row"]], b._rows[other["experiment"], other["row"]]
        for name in set(rows[0]) & set(rows[1]):
            if name != one["routine"]:
                found[name] = found.get(name, 0) + 1
    return found


def choose_reference(pairs: Sequence[tuple[dict, dict]], a: Figures, b: Figures) -> str | None:
    """libc; else who stands beside most cells; None when nobody stands beside anybody."""
    found = usable_references(pairs, a, b)
    routines = {name: count for name, count in found.items() if name not in YARDSTICKS} or found
    if LIBC in routines:
        return LIBC
    # glibc's plain loops, which nobody tunes, before those that somebody may be tuning.
    plain = {name: name.startswith(("simple_", "generic_")) for name in routines}
    return max(sorted(routines), key=lambda n: (plain[n], routines[n]), default=None)
