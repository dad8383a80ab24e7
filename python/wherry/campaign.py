"""Takes rows through the runner: several fresh processes, on after a crash or a hang without the culprit, and with
whatever was measured when the user interrupts."""

from __future__ import annotations

import contextlib
import random
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from wherry import jobcontrol, runner
from wherry.cell import Cell, Problem, rounded
from wherry.entries import targets_of
from wherry.errors import FailedError
from wherry.journal import Journal
from wherry.rounds import Rounds
from wherry.row import Row

# Longer than the runner's own limit, so that it can name the culprit itself; ours is for a runner that cannot.
HANG_LIMIT = 60.0
# The least for the rounds, whatever is asked for: within it the runner names who does not return.
RUNNER_TELLS = 15.0
# Seconds of a round trip between two CPUs that are wanted elsewhere too: measured were 70 us.
SLOW_TURN = 0.0002

# As many times slower than the campaign's best pace of core or memory, and a process' rows are left out
# where others have the row: it ran beside a neighbour, or at a lower clock, from first to last round.
SLOW_PACE = (1.07, 1.12)


@dataclass
class _PassState:
    """What one runner has said so far."""

    trying: tuple[int, str] | None = None
    cells: dict[tuple[str, bool], dict] = field(default_factory=dict)
    blamed: bool = False
    ended: bool = False


class _OutOfTimeError(Exception):
    """The campaign's deadline has passed."""


class _BrokenError(Exception):
    """What is measured, a disk for instance, has failed; the message names it."""


class Watcher:
    """What a campaign tells while it runs; the command line shows it as progress."""

    def cells(self, done: int) -> None: ...

    def row(self, row: int) -> None: ...


class Campaign:
    def __init__(
        self,
        rows: Sequence[Row],
        *,
        processes: int,
        peers: Sequence[str] = (),
        pin: int | None = None,
        seed: int = 0,
        excluded: Sequence[str] = (),
        hang_limit: float = HANG_LIMIT,
        watcher: Watcher | None = None,
        deadline: float | None = None,
        latest: float | None = None,
        at_least_one: bool = True,
        only: Sequence[int] | None = None,
        raw: bool = False,
        counters: str | None = None,
    ):
        self.rows = list(rows)
        self.chosen = range(len(self.rows)) if only is None else sorted(only)
        self.processes = processes
        self.peers = list(peers)
        self._peer_names = {spec.partition("=")[0] for spec in self.peers}
        self.pin = pin
        self.seed = seed
        self.hang_limit = hang_limit
        self.watcher = watcher or Watcher()
        self.excluded = set(excluded)
        self.wrong: set[str] = set()
        self._killed: set[tuple[int, str]] = set()  # row and routine that a SIGKILL met
        self.cells: dict[tuple[int, str, bool], Cell] = {}
        self.problems: list[Problem] = []
        self.interrupted = False
        self.broken = ""  # what has failed for good, so that nothing more can be measured
        self.deadline = deadline  # of jobcontrol.clock(); the row under way is the last
        self.latest = latest  # the row under way then is given up
        self.at_least_one = at_least_one  # but not before a row is done
        self.out_of_time = False
        self.done: set[tuple[int, int]] = set()  # process and row
        self.state: dict | None = None  # what an interrupted one needs to go on
        self.journal: Journal | None = None  # hears what the runner says, in case we are killed
        self._heard = _PassState()  # of what comes out of one
        self.start: dict = {}
        self.raw = raw
        self.counters = counters  # the runner's own choice when None
        self.rounds = Rounds()
        self.huge: set[int] = set()  # rows that got the huge pages they asked for
        self.voided: dict[str, int] = {}
        self._few: dict[tuple[int, int], int] = {}  # valid rounds of disturbed processes
        self.finished_rows = 0  # over all processes
        self._paces: dict[tuple[int, int], tuple[float, ...]] = {}  # by process and row
        self._random = random.Random(seed)
        self._done = 0

    def total_cells(self) -> int:
        return self.processes * sum(len(self.rows[i].routines) for i in self.chosen)

    def measured(self, row: int) -> dict[str, Cell]:
        """Of the routines of a row those that have a figure, without twins."""
        own = {name: self.cells.get((row, name, False)) for name in self.rows[row].routines}
        return {name: cell for name, cell in own.items() if cell is not None and cell.ns}

    def run(self) -> None:
        try:
            for process in range(self.processes):
                self._process(process)
        except KeyboardInterrupt:
            self.interrupted = True
            self.state = self.so_far()
        except _BrokenError as error:
            self.state = self.so_far()
            self.broken = str(error)
            experiment = self.rows[0].experiment
            self.problems.append(Problem("broken", "", self.broken, None, experiment))
        except _OutOfTimeError:
            self.out_of_time = True
        self._leave_out_slow()
        for name in self.wrong:
            for key in [key for key in self.cells if key[1] == name]:
                del self.cells[key]

    def so_far(self) -> dict:
        """Everything measured so far, as JSON has it."""
        return {
            "done": sorted(map(list, self.done)),
            "excluded": sorted(self.excluded),
            "wrong": sorted(self.wrong),
            "voided": dict(self.voided),
            "paces": [[*key, *pace] for key, pace in self._paces.items()],
            "problems": [vars(problem) for problem in self.problems],
            "rounds": self.rounds.state(),
            "huge": sorted(self.huge),
            "cells": [
                {
                    "cell": list(key),
                    "calls": cell.calls,
                    "bytes": cell.bytes,
                    "voided": cell.voided,
                    "verified": cell.verified,
                    "disturbed_in": sorted(cell.disturbed_in),
                    "ns": {str(p): rounded(ns) for p, ns in cell.ns.items()},
                    "shares": {str(p): share for p, share in cell.shares.items()},
                    "counts": {str(p): own for p, own in cell.counts.items()},
                    "parts": {str(p): own for p, own in cell.parts.items()},
                    "tried": {str(p): rounded(ns) for p, ns in cell.tried.items()},
                    "upper_in_use": cell.upper_in_use,
                }
                for key, cell in self.cells.items()
            ],
        }

    def go_on_from(self, state: dict) -> None:
        """Takes over what an interrupted campaign of the same rows, seed and method had. ValueError for rows and
        processes that this one has not."""
        self._check_places(state)
        self.done = {(process, row) for process, row in state["done"]}
        self.finished_rows = len(self.done)
        self.excluded |= set(state["excluded"])
        self.wrong = set(state["wrong"])
        self.voided = dict(state["voided"])
        self._paces = {(process, row): tuple(pace) for process, row, *pace in state["paces"]}
        self.problems = [Problem(**problem) for problem in state["problems"]]
        if "rounds" in state:
            self.rounds.go_on_from(state["rounds"])
        self.huge = set(state.get("huge", ()))
        for own in state["cells"]:
            row, routine, twin = own["cell"]
            self.cells[row, routine, twin] = Cell(
                own["calls"],
                own["bytes"],
                {int(process): np.array(ns, dtype=float) for process, ns in own["ns"].items()},
                own["voided"],
                own["verified"],
                set(own["disturbed_in"]),
                *(
                    {int(process): value for process, value in own.get(key, {}).items()}
                    for key in ("shares", "counts", "parts", "tried")
                ),
                upper_in_use=own.get("upper_in_use", False),
            )
            if not twin:
                self._done += len(own["ns"])

    def _check_places(self, state: dict) -> None:
        """Of all that is put together with the rows at the end."""
        of_row = [row for row, _, _ in (own["cell"] for own in state["cells"])]
        of_row += state.get("huge", ())
        of_both = [(process, row) for process, row, *_ in (*state["done"], *state["paces"])]
        of_process = {int(process) for own in state["cells"] for process in own["ns"]}
        of_process |= {process for process, _ in of_both}
        rows = {*of_row, *(row for _, row in of_both)}
        if not (rows <= {*range(len(self.rows))} and of_process <= {*range(self.processes)}):
            raise ValueError

    def hear(self, event: dict, process: int) -> None:
        """What a runner of this campaign said before it was killed, out of its journal."""
        if event["event"] == "start":
            self._heard = _PassState()
        with contextlib.suppress(_BrokenError):  # whoever goes on has mended it
            self._event(event, process, [], self._heard)

    def note(self, problem: Mapping) -> None:
        """A problem that the journal has."""
        own = Problem(**problem)
        if own not in self.problems:
            self.problems.append(own)

    def _best_pace(self, pin: int | None) -> tuple[float, ...]:
        """On that CPU; the cores of a machine need not be alike."""
        own = [pace for (_, row), pace in self._paces.items() if self.rows[row].pin == pin]
        return tuple(map(min, zip(*own, strict=True)))

    def _leave_out_slow(self) -> None:
        if not self._paces:
            return
        limits = {
            pin: [slow * best for slow, best in zip(SLOW_PACE, self._best_pace(pin), strict=False)]
            for pin in {row.pin for row in self.rows}
        }
        measured: dict[int, set[int]] = {}  # processes by row
        slow: dict[int, set[int]] = {}
        cells: dict[int, list[Cell]] = {}
        for (process, row), pace in self._paces.items():
            measured.setdefault(row, set()).add(process)
            if any(a > b for a, b in zip(pace, limits[self.rows[row].pin], strict=True)):
                slow.setdefault(row, set()).add(process)
        for (row, _, _), cell in self.cells.items():
            cells.setdefault(row, []).append(cell)
            slow.setdefault(row, set()).update(cell.disturbed_in)
        for row, left_out in slow.items():
            if not left_out or left_out >= measured.get(row, set()):
                continue
            # Of a disturbed process all rounds but the few valid ones are counted as thrown away already.
            rounds = sum(
                self._few.get((process, row), 0)
                if any(process in cell.disturbed_in for cell in cells.get(row, ()))
                else max((len(cell.ns.get(process, ())) for cell in cells.get(row, ())), default=0)
                for process in left_out
            )
            for cell in cells.get(row, ()):
                cell.voided += sum(len(cell.ns.pop(process, ())) for process in left_out)
            self.rounds.left_out |= {(process, row) for process in left_out}
            self.voided["contended"] = self.voided.get("contended", 0) + rounds

    def _process(self, process: int) -> None:
        pending = list(self.chosen)
        if process or self.deadline is not None:
            # In another order, so that a disturbance that lasts does not meet the same rows again. With a deadline
            # the first process too: what is left undone is then here and there.
            self._random.shuffle(pending)
        pending = [row for row in pending if (process, row) not in self.done]
        runners: dict[tuple[str, int | None], list[int]] = {}
        for row in pending:
            runners.setdefault((self.rows[row].command, self.rows[row].pin), []).append(row)
        for own in runners.values():
            self._process_on(process, own)

    def _process_on(self, process: int, pending: list[int]) -> None:
        """Rows of one command and CPU."""
        while pending:
            pending = [i for i in pending if self._routines(i)]
            if not pending:
                return
            before = (len(pending), len(self.excluded), len(self._killed))
            stopped = self._pass(process, pending)
            now = (len(pending), len(self.excluded), len(self._killed))
            if not stopped and now == before:
                # Neither a row done nor a culprit found: the row it stopped at goes, or this would never end.
                row = pending.pop(0)
                self._problem("lost", "", "the runner stopped here and did not say why", row)

    def _routines(self, row: int) -> tuple[str, ...]:
        return tuple(r for r in self.rows[row].routines if not self._is_excluded(r))

    def _is_excluded(self, entry: str) -> bool:
        """By itself, or by what it is made of: the runner is told of a peer no longer once that is excluded."""
        return not self.excluded.isdisjoint([entry, *targets_of(entry, self._peer_names)])

    def _silence(self, row: int) -> float:
        """Seconds that a row of large sizes or many turns may rightly be silent: all its samples at a crawl."""
        own = self.rows[row]
        turns = own.calls * SLOW_TURN if own.command == "system" else 0.0
        return own.rounds * len(own.routines) * (20 * own.size / 1e9 + turns)

    def _arguments(self, process: int, row: Row) -> list[str]:
        pin = row.pin
        arguments = [row.command, "--seed", str(self.seed + process)]
        for spec in self.peers:
            if spec.partition("=")[0] not in self.excluded:
                arguments += ["--peer", spec]
        if pin is not None or self.pin is not None:
            arguments += ["--pin", str(self.pin if pin is None else pin)]
        if row.command != "measure":
            return arguments
        if best := self._best_pace(pin):
            arguments += ["--pace", ",".join(f"{value:.6g}" for value in best)]
        if self.counters is not None:
            arguments += ["--counters", self.counters]
        if self.raw:
            arguments += ["--raw"]
        return arguments

    def _problem(self, kind: str, routine: str, message: str, row: int | None) -> None:
        experiment = None if row is None else self.rows[row].experiment
        problem = Problem(kind, routine, message, row, experiment)
        if problem not in self.problems:
            self.problems.append(problem)
            if self.journal:
                self.journal.problem(vars(problem))

    def _pass(self, process: int, pending: list[int]) -> bool:
        """One runner, until it ends, dies or hangs, or we were stopped. Rows that are done leave `pending`. Whether we
        were stopped: the row under way is measured anew then."""
        lines = [replace(self.rows[i], routines=self._routines(i)).told(i) for i in pending]
        state = _PassState()
        limit = max([self.hang_limit, *(self._silence(i) for i in pending)])
        arguments = self._arguments(process, self.rows[pending[0]])
        with runner.Stream(arguments, lines, limit, measures=True) as stream:
            try:
                stream.until = self._latest()
                for event in stream:
                    if self.journal:
                        self.journal.event(process, event)
                    self._event(event, process, pending, state)
                    # Once all were tried only the runner knows whose turn it is: it is given the time to tell.
                    stream.limit = max(limit, RUNNER_TELLS) if self._all_tried(state) else limit
                    stream.until = self._latest()
            except runner.LateError:
                raise _OutOfTimeError from None
            except runner.HangError:
                if not state.blamed:
                    self._suspect_peer(state)
                    self._blame("hang", state, f"no sign of life for {stream.limit:g} s; stopped")
                return False
            except runner.BadLineError as error:
                self._blame("crash", state, f"the runner's output was damaged: {error}")
                return False
            if stream.stopped:
                return True
            status = stream.end()
            if state.ended:
                return False
            if status == 2:
                said = stream.complaint()
                raise FailedError(
                    f"wherry-run refused what it was asked: {said or 'no reason given'}"
                )
            if limited := stream.out_of_time(status):
                # No routine's fault. Each runner has the time anew, so the next goes on, unless this got nowhere.
                if len(pending) < len(lines):
                    return False
                raise _BrokenError(limited)
            if status == -signal.SIGKILL and state.trying and state.trying not in self._killed:
                # No fault of a routine ends so: somebody did it, or the kernel for want of memory. Once more.
                self._killed.add(state.trying)
                return False
            if not state.blamed:
                self._suspect_peer(state)
                said = stream.complaint()
                self._blame(
                    "crash",
                    state,
                    f"the runner {runner.ended_by(status)}" + (f": {said}" if said else ""),
                )
        return False

    def _latest(self) -> float | None:
        return None if self.at_least_one and not self.done else self.latest

    def _all_tried(self, state: _PassState) -> bool:
        row, routine = state.trying or (None, "")
        if row is None or self.rows[row].command != "measure":
            return False
        left = self._routines(row)  # none where all of them were wrong
        return not left or routine == left[-1]

    def _suspect_peer(self, state: _PassState) -> None:
        """Where nobody told who was under way and all were tried, the last of them is as good as any; but the one peer
        is more likely than what has been verified here."""
        if not self._all_tried(state):
            return
        row, _ = state.trying
        known = self._peer_names
        peers = [r for r in self._routines(row) if not known.isdisjoint(targets_of(r, known))]
        if len(peers) == 1:
            state.trying = row, peers[0]

    def _blame(self, kind: str, state: _PassState, message: str) -> None:
        if state.trying is None:
            return
        row, routine = state.trying
        self._problem(kind, routine, message, row)
        self._exclude(routine)

    def _exclude(self, routine: str) -> None:
        self.excluded.add(routine)
        if self.journal:
            self.journal.excluded(routine)

    def _event(self, event: dict, process: int, pending: list[int], state: _PassState) -> None:
        kind = event["event"]
        row = event.get("id")
        if kind == "start":
            self.start = event
            self.rounds.begin(process, event)
        elif kind == "row":
            state.cells = {}
            if event.get("huge"):
                self.huge.add(row)
            self.watcher.row(row)
        elif kind == "trying":
            state.trying = (row, event["routine"])
        elif kind == "cell":
            state.cells[event["routine"], bool(event.get("aa"))] = event
            if not event.get("aa"):
                self._done += 1
                self.watcher.cells(self._done)
        elif kind == "skip":
            # Without a routine, the whole row cannot be measured here.
            self._problem("skip", event.get("routine") or "", event.get("reason", ""), row)
            self._done += 1
            self.watcher.cells(self._done)
        elif kind == "wrong":
            self._problem("wrong", event["routine"], event.get("message", "wrong bytes"), row)
            self.wrong.add(event["routine"])
            self._exclude(event["routine"])
        elif kind == "broken":
            # What was measured of the row before it happened is as good as the rest.
            self._keep(process, row, state.cells)
            state.cells = {}
            raise _BrokenError(event["message"])
        elif kind in ("crash", "hang"):
            state.trying = (row, event["routine"])
            state.blamed = True
            self._blame(kind, state, event.get("message") or kind)
        elif kind == "rowend":
            self._keep(process, row, state.cells)
            self.rounds.end_row(process, row, event)
            if event.get("pace"):
                self._paces[process, row] = tuple(event["pace"])
            state.cells = {}
            for reason, count in (event.get("reasons") or {}).items():
                self.voided[reason] = self.voided.get(reason, 0) + int(count)
            if row in pending:
                pending.remove(row)
            self.finished_rows += 1
            self.done.add((process, row))
            state.trying = None
            if self.deadline is not None and jobcontrol.clock() > self.deadline:
                raise _OutOfTimeError
        elif kind == "end":
            state.ended = True

    def _keep(self, process: int, row: int, events: dict[tuple[str, bool], dict]) -> None:
        for (routine, twin), event in events.items():
            values = np.array([v for v in event.get("ns") or [] if v is not None], dtype=float)
            cell = self.cells.setdefault((row, routine, twin), Cell())
            cell.calls = event.get("calls", 0)
            cell.bytes = event.get("bytes", self.rows[row].size)
            cell.voided += event.get("voided", 0)
            if event.get("disturbed"):
                cell.disturbed_in.add(process)
                self._few[process, row] = event.get("rounds", 0)
            cell.verified = cell.verified and bool(event.get("verified", True))
            cell.upper_in_use |= bool(event.get("upper_in_use"))
            if len(values):
                cell.ns[process] = values
            if event.get("share") is not None:
                cell.shares[process] = event["share"]
            if event.get("counters"):
                cell.counts[process] = event["counters"]
            if event.get("parts"):
                cell.parts[process] = event["parts"]
            if event.get("tried"):
                cell.tried[process] = event["tried"]
