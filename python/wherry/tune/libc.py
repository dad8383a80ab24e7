"""glibc under its own tunables. They are read when a process begins, so each setting is a fresh process; the default
runs before and after the others of a turn, whose order is drawn."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from wherry import jobcontrol, runner, significance, stats
from wherry.errors import FailedError
from wherry.row import Row
from wherry.tune import grids, tunables
from wherry.tune.prove import Proof
from wherry.units import KIB, MIB

VARIABLE = "GLIBC_TUNABLES"
# What a setting must seem to gain before a proof is worth its time.
WORTH = 0.02
_TIMEOUT = 120


@dataclass(frozen=True)
class Extent:
    """`picks` and `proofs` are turns, at most; fewer, and then fewer cells, when they do not fit the seconds, of which
    all together takes no more."""

    picks: int
    proofs: int
    rounds: int
    seconds: float


FULL = Extent(3, 8, 5, 165.0)
QUICK = Extent(1, 4, 3, 60.0)
# Fewer turns prove nothing.
LEAST_PROOFS = 4
# Where there is no time for all of a tunable's values: fewer say nothing of it.
LEAST_VALUES = 2
# Rows that tell how long the others take.
FEW_ROWS = 6
# Of a tunable's part of the time, for choosing.
PICK_SHARE = 0.5
# What of its time a step is planned to take: what processes take differs, beside neighbours by several times, and the
# runner waits for those. Where that was too little, a step goes on for as long as its tunable has a part once more.
PLANNED = 0.7

NO_CELLS = "not tried: nothing in this mix reaches it"
NO_TIME = "not tried: too little time"
NO_GAIN = "no gain"
UNPROVED = "not proved: too little time"
TAKEN = "taken"
ALONE = "proved, left out of the line"
# What was under way, or was to come, when we were interrupted: nothing is known.
CUT_OFF = "not tried: interrupted"
CUT_OFF_UNPROVED = "not proved: interrupted"
CUT_OFF_ALONE = "proved, interrupted before the line"


class _LateError(Exception):
    """The time is over."""


@dataclass
class Setting:
    """What came of one tunable."""

    name: str
    default: int | None
    best: str | None = None
    expected: float | None = None  # gain on the cells that it was chosen by
    proof: Proof | None = None
    proved: bool = False
    kept: bool = False  # in the line
    untried: str | None = None
    values: int = 0  # that there are to try
    tried: int = 0  # that there was time for
    interrupted: bool = False

    @property
    def outcome(self) -> str:
        if self.untried:
            return self.untried
        if self.interrupted and not self.tried:
            return CUT_OFF
        fewer = f"; {self.tried} of {self.values} values tried"
        return self._outcome() + (fewer if self.tried < self.values else "")

    @property
    def late(self) -> bool:
        """There was too little time to try it, or to prove it."""
        return self.untried == NO_TIME or (self.best is not None and self.proof is None)

    def _outcome(self) -> str:
        if self.kept:
            return TAKEN
        if self.proved:
            return CUT_OFF_ALONE if self.interrupted else ALONE
        if self.best is None:
            return NO_GAIN
        if self.proof is None and self.interrupted:
            return CUT_OFF_UNPROVED
        return UNPROVED if self.proof is None else f"not proved ({self.proof.call})"

    def record(self) -> dict:
        return {
            "name": self.name,
            "default": self.default,
            "best": self.best,
            "expected_gain": None if self.expected is None else float(f"{self.expected:.4g}"),
            "proof": self.proof and self.proof.record(),
            "values": self.values,
            "values_tried": self.tried,
            "kept": self.kept,
            "outcome": self.outcome,
        }


@dataclass
class Found:
    settings: list[Setting] = field(default_factory=list)
    line: str | None = None  # of all that was kept
    proof: Proof | None = None  # of that line, over all cells held out
    # Of what was proved one by one and did not hold in one line: that line, and its proof when there was time for one.
    apart: str | None = None
    apart_proof: Proof | None = None
    seconds: float = 0.0
    interrupted: bool = False


def _row(op: str, size: int, rounds: int, place=(0, 0), **more) -> Row:
    src, dst = place
    return Row(
        grids.EXPERIMENT,
        op,
        ("libc",),
        size,
        src_off=0 if op == "set" else src,
        dst_off=dst,
        rounds=rounds,
        batch_us=100,
        **more,
    )


def cells(name: str, extent: Extent, caches: dict[str, int], last_level: int, held_out: bool):
    """The rows that a tunable bears on; others to prove by."""
    rounds = extent.rounds
    if name == tunables.HWCAPS:
        mixes = grids.HELD_OUT_MIXES if held_out else grids.MIXES
        small = grids.Extent(1, rounds, 1, rounds, 1, 0, 100)
        return [replace(row, table=16384) for row in grids.choice(("libc",), small, mixes)]
    sizes = grids.off_grid if held_out else grids.sizes
    if name in (tunables.MOVSB, tunables.STOSB):
        ops = ("copy", "move") if name == tunables.MOVSB else ("set",)
        places = ((3, 9), (0, 24)) if held_out else ((0, 0), (1, 0))
        return [
            _row(op, size, rounds, place, src_state=state[0], dst_state=state[1])
            for op in ops
            for size in sizes(KIB, 2 * MIB, 1)
            for place in places
            for state in grids.states(size, caches, op != "set")[:1]
        ]
    op = "copy" if name == tunables.NON_TEMPORAL else "set"
    low = max(last_level // 4, 4 * MIB)
    every = len(os.sched_getaffinity(0))
    return [
        _row(op, size, 3, (0, 0), src_state="DRAM", dst_state="DRAM", threads=threads)
        for size in sizes(low, 4 * last_level, 1)
        for threads in sorted({1, every})
    ]


def _measure(
    rows: Sequence[Row], setting: str | None, seed: int, ends: float = math.inf
) -> dict[int, float]:
    """Median nanoseconds of each row, in a fresh process, which is ended when jobcontrol.clock() has come to `ends`.
    What Ctrl-Z has ended is measured anew."""
    env = {key: value for key, value in os.environ.items() if key != VARIABLE}
    if setting:
        env[VARIABLE] = setting
    lines = [row.line(i) for i, row in enumerate(rows)]
    arguments = ["measure", "--counters", "none", "--seed", str(seed)]
    while (found := _measured(arguments, lines, env, setting or "the default", ends)) is None:
        pass
    return found


def _measured(
    arguments: Sequence[str], lines: Sequence[str], env: dict[str, str], under: str, ends: float
) -> dict[int, float] | None:
    """None where Ctrl-Z has ended it."""
    if jobcontrol.clock() >= ends:
        raise _LateError
    found = {}
    with runner.Stream(arguments, lines, _TIMEOUT, measures=True, env=env) as stream:
        stream.until = ends
        try:
            for event in stream:
                if event["event"] == "cell" and not event.get("aa") and event["ns"]:
                    found[event["id"]] = float(np.median(event["ns"]))
        except runner.LateError:
            raise _LateError from None
        except runner.HangError:
            raise FailedError(
                f"wherry-run said nothing for {_TIMEOUT} s under {under}; stopped"
            ) from None
        except runner.BadLineError as error:
            raise FailedError(f"wherry-run's output was damaged under {under}: {error}") from None
        if stream.stopped:
            return None
        if status := stream.end():
            raise FailedError(
                f"wherry-run {runner.ended_by(status)} under {under}: {stream.complaint()}"
            )
    return found


def _log(own: dict[int, float], other: dict[int, float]) -> tuple[float, int]:
    """Mean over the cells that both have of the log ratio, and how many."""
    both = own.keys() & other.keys()
    if not both:
        return 0.0, 0
    return sum(math.log(own[i] / other[i]) for i in both) / len(both), len(both)


class Search:
    def __init__(
        self,
        extent: Extent,
        caches: dict[str, int],
        last_level: int,
        *,
        mix_rows: Sequence[Row] = (),
        held_out_mix_rows: Sequence[Row] = (),
        largest: int | None = None,
        seed: int = 0,
        progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    ):
        """`held_out_mix_rows`: other samples of the same mix, to prove by."""
        self.extent = extent
        self.caches = caches
        self.last_level = last_level
        self.mix_rows = list(mix_rows)
        self.held_out_mix_rows = list(held_out_mix_rows)
        self.largest = largest
        self.random = random.Random(seed)
        self.seed = seed
        self.ends = self.until = math.inf  # of all, and of what is under way
        self.progress = progress
        self._processes = 0

    def _cells(self, name: str, held_out: bool) -> list[Row]:
        if name == tunables.HWCAPS and self.mix_rows:
            return self.held_out_mix_rows if held_out else self.mix_rows
        rows = cells(name, self.extent, self.caches, self.last_level, held_out)
        if self.largest is not None:
            rows = [row for row in rows if row.mix or row.size <= self.largest]
        return rows

    def _fitting(self, rows: list[Row], processes: int, seconds: float) -> tuple[list[Row], float]:
        """As many of the rows, evenly, as so many processes can measure in that time, and what one process takes, both
        by what a few of them take."""
        few = rows[:: max(math.ceil(len(rows) / FEW_ROWS), 1)]
        began = jobcontrol.clock()
        self._one(few, None)
        each = (jobcontrol.clock() - began) / len(few) * len(rows)
        every = max(math.ceil(each * processes / max(seconds * PLANNED, 1e-3)), 1)
        kept = rows[:: min(every, max(len(rows) // 2, 1))]
        return kept, each * len(kept) / len(rows)

    def _one(self, rows: Sequence[Row], setting: str | None) -> dict[int, float]:
        self._processes += 1
        return _measure(rows, setting, self.seed + self._processes, self.until)

    def run(self, available: dict[str, tunables.Tunable]) -> Found:
        began = jobcontrol.clock()
        self.ends = began + self.extent.seconds
        tried = tunables.candidates(available, self.last_level)
        found = Found([Setting(name, available[name].value) for name in tried])
        try:
            for number, own in enumerate(found.settings):
                settings = tried[own.name]
                # The line of all of them has a part too; what one does not need the next ones have.
                now = jobcontrol.clock()
                part = max(self.ends - now, 0) / (len(tried) - number + 1)
                self.until = min(now + 2 * part, self.ends)
                self._pick(own, settings, now + part)
                if own.best is not None:
                    self._prove_one(own, now + part)
            # What is left is for those that their parts did not suffice for, the most telling first.
            for own in sorted(found.settings, key=lambda own: -(own.expected or 0)):
                if own.best is not None and own.proof is None:
                    self.until = self.ends
                    self._prove_one(own, self.ends)
            self.until = self.ends
            self._together(found)
        except KeyboardInterrupt:
            found.interrupted = True
            for own in found.settings:
                own.interrupted = True
        found.seconds = jobcontrol.clock() - began
        return found

    def _pick(self, own: Setting, settings: list[str], end: float) -> None:
        rows = self._cells(own.name, held_out=False)
        if not rows:
            own.untried = NO_CELLS
            return
        logs: dict[str, list[float]] = {setting: [] for setting in settings}
        own.values = len(settings)
        try:
            self._turns(own.name, rows, logs, (end - jobcontrol.clock()) * PICK_SHARE)
        except _LateError:
            pass
        if not all(logs.values()):
            own.untried = NO_TIME
            return
        own.tried = len(logs)
        means = {setting: float(np.mean(values)) for setting, values in logs.items()}
        best = min(means, key=means.get)
        own.expected = 1 - math.exp(means[best])
        own.best = best if own.expected >= WORTH else None

    def _turns(
        self, name: str, rows: list[Row], logs: dict[str, list[float]], seconds: float
    ) -> None:
        """As many as there is time for, each whole in `logs` or not at all. Where there is none even for one, values go
        out of `logs`: some of them, evenly, tell more than none."""
        until = jobcontrol.clock() + seconds
        rows, each = self._fitting(rows, len(logs) + 2, seconds)
        values = list(logs)
        room = PLANNED * min(self.until - jobcontrol.clock(), self.extent.seconds)
        kept = min(max(int(room / each) - 2, LEAST_VALUES), len(values))
        for value in set(values) - {
            values[(2 * i + 1) * len(values) // (2 * kept)] for i in range(kept)
        }:
            del logs[value]
        turn_of = len(logs) + 2
        picks = min(max(int(seconds / (each * turn_of)), 1), self.extent.picks)
        total = picks * turn_of
        done = 0
        for pick in range(picks):
            if pick and jobcontrol.clock() + each * turn_of > until:
                break
            before = self._one(rows, None)
            drawn = list(logs)
            self.random.shuffle(drawn)
            turn = {}
            for setting in drawn:
                turn[setting] = self._one(rows, setting)
                done += 1
                self.progress(name, done, total)
            after = self._one(rows, None)
            done += 2
            usual = {i: math.sqrt(before[i] * after[i]) for i in before.keys() & after.keys()}
            for setting, ns in turn.items():
                logs[setting].append(_log(ns, usual)[0])

    def _prove_one(self, own: Setting, end: float) -> None:
        own.proof = self._prove(own.name, own.best, self._cells(own.name, True), end)
        own.proved = own.proof is not None and own.proof.call == "faster"

    def _prove(self, what: str, setting: str, rows: Sequence[Row], end: float) -> Proof | None:
        """Turns of default, setting, setting, default, or the other way round; None when there was time for fewer than
        prove anything."""
        ratios, alike, counts = [], [], []
        try:
            for logs, ran in self._proofs(what, setting, list(rows), end - jobcontrol.clock()):
                counts.append(logs[0][1])
                ratios.append((logs[0][0] + logs[1][0]) / 2)
                alike.append([_log(ran[which][0], ran[which][1])[0] / 2 for which in (0, 1)])
        except _LateError:
            pass
        if len(ratios) < LEAST_PROOFS:
            return None
        rng = np.random.default_rng(self.seed)
        values = np.array(ratios)
        ratio = stats.interval([values], rng)
        signs = rng.choice((-1.0, 1.0), size=(2000, len(alike), 2))
        drawn = np.array(alike)[rng.integers(len(alike), size=(2000, len(alike)))] * signs
        far = float(np.quantile(np.abs(np.median(drawn.sum(axis=2), axis=1)), 0.95))
        floor = max(stats.LEAST_FLOOR, math.expm1(far))
        p = float(significance.p_values([values])[0])
        return Proof(counts[0], ratio, floor, p, None)

    def _proofs(self, what: str, setting: str, rows: list[Row], seconds: float):
        until = jobcontrol.clock() + seconds
        rows, each = self._fitting(rows, 4 * LEAST_PROOFS, seconds)
        proofs = min(max(int(seconds / (4 * each)), LEAST_PROOFS), self.extent.proofs)
        for turn in range(proofs):
            if turn >= LEAST_PROOFS and jobcontrol.clock() + 4 * each > until:
                return
            order = self.random.choice(((0, 1, 1, 0), (1, 0, 0, 1)))
            ran: tuple[list, list] = ([], [])
            for which in order:
                ran[which].append(self._one(rows, setting if which else None))
            yield [_log(ran[1][i], ran[0][i]) for i in range(2)], ran
            self.progress(f"{what}, proof", turn + 1, proofs)

    def _together(self, found: Found) -> None:
        """The one line of all that won, held against the default on all their cells; of what does not hold together
        the one that gains most."""
        proved = [own for own in found.settings if own.proved]
        if not proved:
            return
        best = min(proved, key=lambda own: own.proof.ratio.median)
        if len(proved) > 1:
            line = ":".join(own.best for own in proved)
            rows = [row for own in proved for row in self._cells(own.name, True)]
            proof = self._prove("all together", line, rows, self.ends)
            if proof is not None and proof.call == "faster":
                found.line, found.proof = line, proof
                for own in proved:
                    own.kept = True
                return
            found.apart, found.apart_proof = line, proof
        found.line, found.proof, best.kept = best.best, best.proof, True
