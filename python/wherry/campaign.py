"""Takes rows through the runner: several fresh processes, on after a crash or a hang without the culprit, and with
whatever was measured when the user interrupts."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from wherry import runner
from wherry.errors import FailedError

# Longer than the runner's own limit, so that it can name the culprit itself; ours is for a runner that cannot.
HANG_LIMIT = 60.0

# As many times slower than the campaign's best pace of core or memory, and a process' rows are left out
# where others have the row: it ran beside a neighbour, or at a lower clock, from first to last round.
SLOW_PACE = (1.07, 1.12)


@dataclass(frozen=True)
class Row:
    """Cells that differ only in the routine, measured interleaved; the words are those of docs/runner-protocol.md."""

    experiment: str
    op: str
    routines: tuple[str, ...]
    size: int = 0  # of a mix: not used
    mix: str = ""  # what the runner takes: uniform:0-64, log:1-4096, @FILE
    mix_name: str = (
        ""  # what people and the run file call a file's mix, whose path means nothing elsewhere
    )
    src_off: int = 0
    dst_off: int = 0
    delta: int | None = None
    overlap: int | None = None
    walk: str = "pool"
    buffer: int = 4 << 20
    src_state: str = "L1"
    dst_state: str = "L1"
    content: str = "any"
    code: str = "warm"
    mode: str = "throughput"
    threads: int = 1
    huge: int = 0
    rounds: int = 15
    batch_us: int = 200
    calls: int = 0

    def dimensions(self) -> dict[str, object]:
        """Everything that says what was measured, for the run file."""
        own = {"op": self.op}
        own |= {"mix": self.mix_name or self.mix} if self.mix else {"size": self.size}
        own |= {
            "src_off": self.src_off,
            "dst_off": self.dst_off,
            "walk": self.walk,
            "mode": self.mode,
            "threads": self.threads,
            "huge": bool(self.huge),
        }
        if self.walk == "stream":
            own["buffer"] = self.buffer
        else:
            own["src_state"] = self.src_state
            own["dst_state"] = self.dst_state
        return own | self._unusual()

    def _unusual(self) -> dict[str, object]:
        """What most rows leave at its default, in the words of the protocol and of the run file alike."""
        own: dict[str, object] = {}
        if self.content != "any":
            own["content"] = self.content
        if self.code != "warm":
            own["code"] = self.code
        if self.delta is not None:
            own["delta"] = self.delta
        if self.overlap is not None:
            own["overlap"] = self.overlap
        return own

    def line(self, number: int) -> str:
        words = {
            "id": number,
            "op": self.op,
            "routines": ",".join(self.routines),
        }
        words |= {"mix": self.mix} if self.mix else {"size": self.size}
        words |= {"src_off": self.src_off, "dst_off": self.dst_off, "walk": self.walk}
        if self.walk == "stream":
            words["buffer"] = self.buffer
        else:
            words |= {"src_state": self.src_state, "dst_state": self.dst_state}
        words |= self._unusual()
        words |= {"mode": self.mode, "threads": self.threads, "huge": self.huge}
        words |= {"rounds": self.rounds, "batch_us": self.batch_us, "calls": self.calls}
        return " ".join(f"{key}={value}" for key, value in words.items())


# Of one sample, in seconds beside its own time, and of what makes some rows dear: measured on a virtual machine of two
# Zen 5 cores with a neighbour, slow-phase waits and rounds thrown away included. An estimate for people, no more.
SAMPLE_COST, BATCH_COST, STREAM_COST = 0.0002, 3.3, 0.45e-9
COLD_CODE_COST, DRAM_COST = 0.018, 0.015


def expected_seconds(rows: Sequence[Row], processes: int) -> float:
    seconds = 0.0
    for row in rows:
        sample = SAMPLE_COST + BATCH_COST * row.batch_us * 1e-6
        if row.walk == "stream":
            sample += STREAM_COST * max(row.buffer, row.calls * row.size)
        elif row.src_state == row.dst_state == "DRAM":
            sample += DRAM_COST
        if row.code == "cold":
            sample += COLD_CODE_COST
        seconds += sample * row.rounds * len(row.routines)
    return seconds * processes


@dataclass
class Cell:
    """One routine of a row, over all processes."""

    calls: int = 0
    bytes: float = 0
    ns: dict[int, np.ndarray] = field(default_factory=dict)
    voided: int = 0
    verified: bool = True
    disturbed_in: set[int] = field(
        default_factory=set
    )  # only rounds that should have been thrown away

    @property
    def disturbed(self) -> bool:
        return bool(self.disturbed_in & self.ns.keys())


@dataclass
class Problem:
    kind: str  # skip, wrong, crash, hang, lost
    routine: str
    message: str
    row: int | None = None
    experiment: str | None = None


@dataclass
class _PassState:
    """What one runner has said so far."""

    trying: tuple[int, str] | None = None
    cells: dict[tuple[str, bool], dict] = field(default_factory=dict)
    blamed: bool = False
    ended: bool = False


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
    ):
        self.rows = list(rows)
        self.processes = processes
        self.peers = list(peers)
        self.pin = pin
        self.seed = seed
        self.hang_limit = hang_limit
        self.watcher = watcher or Watcher()
        self.excluded = set(excluded)
        self.wrong: set[str] = set()
        self.cells: dict[tuple[int, str, bool], Cell] = {}
        self.problems: list[Problem] = []
        self.interrupted = False
        self.start: dict = {}
        self.voided: dict[str, int] = {}
        self.finished_rows = 0  # over all processes
        self._paces: dict[tuple[int, int], tuple[float, ...]] = {}  # by process and row
        self._random = random.Random(seed)
        self._done = 0

    def total_cells(self) -> int:
        return self.processes * sum(len(row.routines) for row in self.rows)

    def run(self) -> None:
        try:
            for process in range(self.processes):
                self._process(process)
        except KeyboardInterrupt:
            self.interrupted = True
        self._leave_out_slow()
        for name in self.wrong:
            for key in [key for key in self.cells if key[1] == name]:
                del self.cells[key]

    def _best_pace(self) -> tuple[float, ...]:
        return tuple(map(min, zip(*self._paces.values(), strict=True)))

    def _leave_out_slow(self) -> None:
        if not self._paces:
            return
        limits = [slow * best for slow, best in zip(SLOW_PACE, self._best_pace(), strict=True)]
        measured: dict[int, set[int]] = {}  # processes by row
        slow: dict[int, set[int]] = {}
        cells: dict[int, list[Cell]] = {}
        for (process, row), pace in self._paces.items():
            measured.setdefault(row, set()).add(process)
            if any(a > b for a, b in zip(pace, limits, strict=True)):
                slow.setdefault(row, set()).add(process)
        for (row, _, _), cell in self.cells.items():
            cells.setdefault(row, []).append(cell)
            slow.setdefault(row, set()).update(cell.disturbed_in)
        for row, left_out in slow.items():
            if not left_out or left_out >= measured.get(row, set()):
                continue
            for cell in cells.get(row, ()):
                cell.voided += sum(len(cell.ns.pop(process, ())) for process in left_out)
            rounds = len(left_out) * self.rows[row].rounds
            self.voided["contended"] = self.voided.get("contended", 0) + rounds

    def _process(self, process: int) -> None:
        pending = list(range(len(self.rows)))
        if process:
            # In another order, so that a disturbance that lasts does not meet the same rows again.
            self._random.shuffle(pending)
        while pending:
            pending = [i for i in pending if self._routines(i)]
            if not pending:
                return
            before = (len(pending), len(self.excluded))
            self._pass(process, pending)
            if (len(pending), len(self.excluded)) == before:
                # Neither a row done nor a culprit found: the row it stopped at goes, or this would never end.
                row = pending.pop(0)
                self._problem("lost", "", "the runner stopped here and did not say why", row)

    def _routines(self, row: int) -> tuple[str, ...]:
        return tuple(r for r in self.rows[row].routines if r not in self.excluded)

    def _silence(self, row: int) -> float:
        """Seconds that a row of large sizes may rightly be silent: all its samples at a crawl."""
        own = self.rows[row]
        return 20 * own.rounds * len(own.routines) * own.size / 1e9

    def _arguments(self, process: int) -> list[str]:
        arguments = ["measure", "--seed", str(self.seed + process)]
        for spec in self.peers:
            if spec.partition("=")[0] not in self.excluded:
                arguments += ["--peer", spec]
        if self.pin is not None:
            arguments += ["--pin", str(self.pin)]
        if self._paces:
            arguments += ["--pace", ",".join(f"{best:.6g}" for best in self._best_pace())]
        return arguments

    def _problem(self, kind: str, routine: str, message: str, row: int | None) -> None:
        experiment = None if row is None else self.rows[row].experiment
        problem = Problem(kind, routine, message, row, experiment)
        if problem not in self.problems:
            self.problems.append(problem)

    def _pass(self, process: int, pending: list[int]) -> None:
        """One runner, until it ends, dies or hangs. Rows that are done leave `pending`."""
        lines = [replace(self.rows[i], routines=self._routines(i)).line(i) for i in pending]
        state = _PassState()
        limit = max([self.hang_limit, *(self._silence(i) for i in pending)])
        with runner.Stream(self._arguments(process), lines, limit) as stream:
            try:
                for event in stream:
                    self._event(event, process, pending, state)
            except runner.HangError:
                self._blame("hang", state, f"no sign of life for {limit:g} s; stopped")
                return
            except runner.BadLineError as error:
                self._blame("crash", state, f"the runner's output was damaged: {error}")
                return
            status = stream.end()
            if state.ended:
                return
            if status == 2:
                said = stream.complaint()
                raise FailedError(
                    f"wherry-run refused what it was asked: {said or 'no reason given'}"
                )
            if not state.blamed:
                said = stream.complaint()
                self._blame(
                    "crash",
                    state,
                    f"the runner {runner.ended_by(status)}" + (f": {said}" if said else ""),
                )

    def _blame(self, kind: str, state: _PassState, message: str) -> None:
        if state.trying is None:
            return
        row, routine = state.trying
        self._problem(kind, routine, message, row)
        self._exclude(routine)

    def _exclude(self, routine: str) -> None:
        self.excluded.add(routine)

    def _event(self, event: dict, process: int, pending: list[int], state: _PassState) -> None:
        kind = event["event"]
        row = event.get("id")
        if kind == "start":
            self.start = event
        elif kind == "row":
            state.cells = {}
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
        elif kind in ("crash", "hang"):
            state.trying = (row, event["routine"])
            state.blamed = True
            self._blame(kind, state, event.get("message") or kind)
        elif kind == "rowend":
            self._keep(process, row, state.cells)
            if event.get("pace"):
                self._paces[process, row] = tuple(event["pace"])
            state.cells = {}
            for reason, count in (event.get("reasons") or {}).items():
                self.voided[reason] = self.voided.get(reason, 0) + int(count)
            if row in pending:
                pending.remove(row)
            self.finished_rows += 1
            state.trying = None
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
            cell.verified = cell.verified and bool(event.get("verified", True))
            if len(values):
                cell.ns[process] = values
