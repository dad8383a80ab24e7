"""One total time for many experiments: shared by weight, what one does not need going to the others, and reckoned anew
before each with the time that is left."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from wherry import jobcontrol
from wherry.errors import WherryError
from wherry.estimate import expected_seconds
from wherry.experiments import Experiment, Request
from wherry.row import Row

DEFAULT = 600.0
LEAST, MOST = 10.0, 7 * 86400.0
# Below these an interval says nothing; rather fewer rows than worse ones.
LEAST_ROUNDS, LEAST_PROCESSES = 5, 2
# Beside the samples of a row, and beside the rows of a process: its memory and its verification, its start.
ROW_COST, DRAM_ROW_COST, PROCESS_COST = 0.005, 0.01, 0.15
# Kept for tables, summaries and the file.
RESERVE, RESERVE_EACH = 0.02, 0.3
# Rows by which it is found out how long an experiment takes here, where the estimate says that it does not fit; some
# take ten times as long beside a neighbour, or a tenth.
PILOT_ROWS, PILOT_SHARE = 16, 0.05
# What a pilot may really take of its experiment's time, whatever was expected of it.
PILOT_MOST = 0.25
# An experiment that turns out slower may take some of what the others have left, so that no row is lost to a little.
OVERRUN = 1.15

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600}
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(min|s|m|h)?")


def parse(text: str) -> float:
    """Seconds of `10m`, `90s`, `1h30m`, `600`."""
    parts = _TIME.findall(text.lower())
    bare = [unit for _, unit in parts if not unit]
    if not parts or _TIME.sub("", text.lower()).strip() or (bare and len(parts) > 1):
        raise WherryError(f"--budget {text}: give a time, as in 10m, 90s or 1h30m")
    seconds = sum(float(number) * _UNITS[unit or "s"] for number, unit in parts)
    if not LEAST <= seconds <= MOST:
        raise WherryError(f"--budget {text}: give at least {LEAST:.0f} s and at most a week")
    return seconds


def cost(rows: Sequence[Row], processes: int) -> float:
    """About how many seconds: an estimate, mended by what earlier experiments have really taken."""
    fixed = sum(
        DRAM_ROW_COST
        if row.walk == "pool" and "DRAM" in (row.src_state, row.dst_state)
        else ROW_COST
        for row in rows
    )
    return expected_seconds(rows, processes) + processes * (fixed + PROCESS_COST)


@dataclass(frozen=True)
class Share:
    """What of an experiment is measured in its part of the time."""

    request: Request
    rows: tuple[Row, ...]  # all of its form: their numbers mean something to the experiment
    processes: int
    planned_rows: int  # that it would have had
    only: tuple[int, ...] | None = None  # numbers of the rows to measure
    deadline: float | None = None  # of jobcontrol.clock(); the row under way then is the last
    latest: float | None = None  # likewise; the row under way then is given up
    expected: float = 0.0  # seconds, by the estimate alone
    quick: bool = False  # the short form, since the long one did not fit


def whole(experiment: Experiment, request: Request) -> Share:
    """All of it, without a limit."""
    rows = tuple(experiment.rows(request))
    return Share(request, rows, experiment.process_count(request), len(rows))


def _slowed(rows: Sequence[Row], factor: float) -> tuple[Row, ...]:
    return tuple(
        replace(
            row,
            rounds=max(min(row.rounds, LEAST_ROUNDS), min(row.rounds, int(row.rounds * factor))),
        )
        for row in rows
    )


def _drawn(total: int, count: int, seed: int) -> tuple[int, ...]:
    """One of each of `count` stretches: every n-th would be a pattern of its own in a sweep."""
    drawn = random.Random(seed)
    bounds = [i * total // count for i in range(count + 1)]
    return tuple(drawn.randrange(low, high) for low, high in itertools.pairwise(bounds))


def fit(full: Share, seconds: float, pace: float = 1.0) -> Share | None:
    """The same rows within that many seconds, with fewer rounds and then fewer processes; None when the least of both
    takes longer."""
    seconds /= pace
    at_once = cost(full.rows, full.processes)
    if at_once <= seconds:
        return replace(full, expected=at_once)
    for processes in range(full.processes, min(full.processes, LEAST_PROCESSES) - 1, -1):
        fixed = cost(full.rows, processes) - expected_seconds(full.rows, processes)
        sampling = expected_seconds(full.rows, processes)
        rows = _slowed(full.rows, max(seconds - fixed, 0) / sampling if sampling else 1)
        needed = cost(rows, processes)
        if needed <= seconds:
            return replace(full, rows=rows, processes=processes, expected=needed)
    return None


def thin(full: Share, seconds: float, seed: int, pace: float = 1.0) -> Share:
    """Fewer rows, each with the least of rounds and processes; at least one."""
    processes = min(full.processes, LEAST_PROCESSES)
    rows = _slowed(full.rows, 0)

    def needed(only: Sequence[int]) -> float:
        return cost([rows[i] for i in only], processes)

    each = (needed(range(len(rows))) - processes * PROCESS_COST) / len(rows) * pace
    count = min(int((seconds - processes * PROCESS_COST) / each), len(rows))
    only: tuple[int, ...] = ()
    while count > 1:
        only = _drawn(len(rows), count, seed)
        if needed(only) * pace <= seconds:
            break
        count -= 1  # rows that take longer than the mean were among them
    if count <= 1:
        # Of an experiment whose rows differ by a hundred times the dear ones would take the time of many others.
        costs = [needed((i,)) for i in range(len(rows))]
        cheap = [i for i, own in enumerate(costs) if own <= 1.5 * min(costs)]
        only = (random.Random(seed).choice(cheap),)
    return replace(full, rows=rows, processes=processes, only=only, expected=needed(only))


# Measures some rows in one process, no longer than until a time of jobcontrol.clock(), and forgets them; the numbers of
# those that it got through.
Pilot = Callable[[Sequence[Row], float], Sequence[int]]


class Budget:
    """Hands out shares, one experiment after the other."""

    def __init__(
        self,
        seconds: float,
        experiments: Sequence[Experiment],
        request: Request,
        seed: int,
        began: float | None = None,
    ):
        self.seconds = seconds
        self.request = request
        self.seed = seed
        self.began = jobcontrol.clock() if began is None else began
        self.full = {e.name: whole(e, request) for e in experiments}
        self.weights = {e.name: e.weight or 1.0 for e in experiments}
        self.left = [e.name for e in experiments]
        self.paces: dict[str, float] = {}  # of experiments that a pilot has timed
        self._expected = self._spent = 0.0

    def remaining(self) -> float:
        kept = self.seconds * RESERVE + RESERVE_EACH * len(self.left)
        return self.began + self.seconds - kept - jobcontrol.clock()

    def pace(self) -> float:
        """How many times as long as expected the experiments have taken; carefully, while few are done."""
        assumed = self.seconds * 0.05
        return (self._spent + assumed) / (self._expected + assumed)

    def spent(self, share: Share, seconds: float) -> None:
        self._spent += seconds
        self._expected += share.expected

    def _seconds(self, name: str) -> float:
        """This one's part of the time left: all that it wants, when the others want less than theirs."""
        pace = self.pace()
        wants = {
            n: cost(self.full[n].rows, self.full[n].processes) * self.paces.get(n, pace)
            for n in self.left
        }
        open_names, pot = set(self.left), max(self.remaining(), 0.0)
        while True:
            total = sum(self.weights[n] for n in open_names)
            content = {n for n in open_names if wants[n] <= pot * self.weights[n] / total}
            if name in content:
                return wants[name]
            if not content:
                return pot * self.weights[name] / total
            pot -= sum(wants[n] for n in content)
            open_names -= content

    def try_out(self, full: Share, seconds: float, pilot: Pilot) -> float:
        """How many times as long as expected it takes, by a few of its rows; by nothing new, where there is no time
        to try."""
        rows = _slowed(full.rows, 0)
        most = PILOT_MOST * seconds
        for count in (PILOT_ROWS, PILOT_ROWS // 4, 1):
            some = [rows[i] for i in _drawn(len(rows), min(count, len(rows)), self.seed)]
            # The estimate may be ten times too small; then a few rows are what there is time for.
            if cost(some, 1) * self.pace() <= PILOT_SHARE * seconds:
                break
        if cost(some, 1) > most:
            return self.pace()
        began = jobcontrol.clock()
        done = [some[i] for i in pilot(some, began + most)]
        took = max(jobcontrol.clock() - began, 1e-3)
        # When it got through none, the time was not enough for the dearest.
        return took / (cost(done, 1) if done else max(cost([row], 1) for row in some))

    def share(self, experiment: Experiment, pilot: Pilot | None = None) -> Share:
        """What to measure of the next experiment. Takes it off the list."""
        name = experiment.name
        seconds, pace = self._seconds(name), self.pace()
        full = self.full[name]
        found = fit(full, seconds, pace)
        if pilot and (found is None or found.processes < full.processes or found.rows != full.rows):
            self.paces[name] = pace = self.try_out(full, seconds, pilot)
            seconds = self._seconds(name)
            found = fit(full, seconds, pace)
        if found is None and not self.request.quick:
            short = whole(experiment, replace(self.request, quick=True))
            if cost(short.rows, 1) < cost(full.rows, 1):
                full = replace(short, planned_rows=full.planned_rows, quick=True)
                found = fit(full, seconds, pace)
        if found is None:
            found = thin(full, seconds, self.seed, pace)
        self.left.remove(name)
        end = self.began + self.seconds * (1 - RESERVE)
        limit = jobcontrol.clock() + max(seconds, found.expected * pace) * OVERRUN + 1
        deadline = min(limit, end)
        return replace(found, deadline=deadline, latest=deadline + self.seconds * RESERVE)
