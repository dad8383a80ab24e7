"""What every step of `wherry tune` works with: what was found so far, the time that is left, and the proof that a
dimension has to pass before it is taken."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from wherry import jobcontrol, plans
from wherry.campaign import Watcher
from wherry.plans import OFF, Plan
from wherry.row import Row
from wherry.tune import cliffs, grids, prove
from wherry.tune.choose import Window
from wherry.tune.measuring import PlanCampaign
from wherry.tune.prove import DEFAULT, TUNED, Proof
from wherry.units import size_in_words

# Less than this is not worth a plan, nor the time to prove it.
WORTH = 0.01
# Of one size of a curve: what a method must win by before a threshold is drawn there.
MARGIN = 0.03
# Of the rows that were to be measured; with fewer nothing is said of what was not found.
ENOUGH = 0.25
# Seconds for all of it, and what each step may take of those that are left; what it does not need the next ones have.
LIMIT = 165.0
_SHARES = {
    "choice": 0.12,
    "choice, proof": 0.18,
    "copy: loop": 0.1,
    "copy: loop, proof": 0.1,
    "copy: windows": 0.45,
    "copy: string instructions, proof": 0.3,
    "copy: direction, proof": 0.2,
    "copy: past the caches": 0.4,
    "copy: past the caches, proof": 0.3,
    "copy: parts": 0.15,
    "copy: parts, proof": 0.15,
    "set: windows": 0.5,
    "set: string instructions, proof": 0.4,
    "set: past the caches": 0.6,
    "set: past the caches, proof": 0.95,
}


@dataclass(frozen=True)
class Asked:
    """A part of a mix that the choice of routines goes by."""

    op: str
    spec: str  # what the runner takes
    src_state: str
    dst_state: str
    calls: float
    ascending: str = "none"

    def row(self, routines: Sequence[str], rounds: int, batch_us: int) -> Row:
        return Row(
            grids.EXPERIMENT,
            self.op,
            tuple(routines),
            mix=self.spec,
            src_state=self.src_state,
            dst_state=self.dst_state,
            ascending=self.ascending,
            rounds=rounds,
            batch_us=batch_us,
        )


@dataclass
class Dimension:
    """One thing that a plan says: what the default has, what was found, what became of it."""

    name: str
    default: str
    found: str
    gain: float | None = (
        None  # expected, of the cells that it was chosen by, as a fraction of the time
    )
    proof: Proof | None = None
    kept: bool = False

    @property
    def outcome(self) -> str:
        if self.found == self.default:
            return "as the default"
        if self.proof is None:
            return "not worth it" if self.gain is not None else "as the default"
        return "taken" if self.kept else f"not proved ({self.proof.call})"

    def record(self) -> dict:
        return {
            "name": self.name,
            "default": self.default,
            "found": self.found,
            "expected_gain": None if self.gain is None else float(f"{self.gain:.4g}"),
            "proof": self.proof and self.proof.record(),
            "kept": self.kept,
        }


@dataclass
class Tuned:
    default: Plan
    plan: Plan
    dimensions: list[Dimension] = field(default_factory=list)
    cliffs: list[cliffs.Cliff] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rows: int = 0  # that were measured, of those that were to be
    wanted: int = 0
    impossible: int = 0  # of those: this machine has too little memory for them
    seconds: float = 0.0
    interrupted: bool = False
    above: int | None = None  # calls above this size were in question and are not measured

    @property
    def thin(self) -> bool:
        """Was so little measured that what was not found may be there all the same?"""
        return self.rows < ENOUGH * self.wanted

    @property
    def better(self) -> bool:
        return any(own.kept for own in self.dimensions)


class StoppedError(Exception):
    """By the person."""


Progress = Callable[[str, int], Watcher]


class Session:
    """One tuning: each step measures through it and leaves what it found in `result`."""

    def __init__(
        self,
        reported: dict,
        extent: grids.Extent,
        *,
        mixes: Sequence[Asked] = (),
        largest: int | None = None,
        seed: int = 0,
        limit: float = LIMIT,
        progress: Progress = lambda what, cells: Watcher(),
    ):
        """`mixes` are measured in place of the built-in ones. What does not fit into `limit` seconds, for neighbours of
        the machine, is left out, here and there; the notes say how much."""
        self.reported = reported
        self.extent = extent
        self.mixes = list(mixes)
        self.seed = seed
        self.progress = progress
        default = plans.default(reported)
        self.result = Tuned(default, default.changed(name="tuned"))
        self.caches = {
            name: (reported.get("believed", {}).get(key) or {}).get("size") or 0
            for name, key in (("L1", "L1d"), ("L2", "L2"), ("L3", "L3"))
        }
        self.last_level = reported.get("last_level") or 16 << 20
        self.largest = min(largest or extent.largest, extent.largest)
        if (largest or grids.FULL.largest) > extent.largest:
            self.result.above = extent.largest
        self.limit = limit
        self._ends = math.inf  # of jobcontrol.clock()
        self._campaigns = 0

    def begin(self) -> None:
        self._ends = jobcontrol.clock() + self.limit

    def take(self, what: str, rows: Sequence[Row], own: dict[str, Plan], processes: int):
        self._campaigns += 1
        now = jobcontrol.clock()
        campaign = PlanCampaign(
            rows,
            own,
            processes=processes,
            seed=self.seed + 1000 * self._campaigns,
            deadline=now + _SHARES[what] * max(self._ends - now, 0),
        )
        campaign.watcher = self.progress(what, campaign.total_cells())
        campaign.run()
        if campaign.interrupted:
            raise StoppedError
        every = len(rows) * processes
        self.result.wanted += every
        # A row without its memory is done as soon as it begins.
        lacking = {
            p.row: p.message for p in campaign.problems if p.kind == "skip" and not p.routine
        }
        skipped = sum(row in lacking for _, row in campaign.done)
        self.result.rows += len(campaign.done) - skipped
        self.result.impossible += skipped
        if skipped:
            why = next(iter(lacking.values())).partition("; ")[0]
            self.result.notes.append(
                f"{what}: {skipped} of {every} rows cannot be measured here: {why}"
            )
        if len(campaign.done) < every and campaign.out_of_time:
            self.result.notes.append(
                f"{what}: {len(campaign.done)} of {every} rows in the time there was"
            )
        for problem in campaign.problems:
            if problem.kind != "skip":
                self.result.notes.append(f"{problem.routine} {problem.kind}: {problem.message}")
        return campaign

    def prove(
        self,
        what: str,
        rows: Sequence[Row],
        candidate: Plan,
        calls: Sequence[float] | None = None,
    ) -> Proof:
        own = {DEFAULT: self.result.plan, TUNED: candidate}
        campaign = self.take(f"{what}, proof", rows, own, self.extent.proof_processes)
        return prove.judge(campaign, range(len(rows)), self.seed, calls)

    def settle(self, own: Dimension, rows: Callable[[], Sequence[Row]], candidate: Plan) -> None:
        """Proves what is worth it, and takes it when it is proved."""
        self.result.dimensions.append(own)
        if own.found == own.default or own.gain is None or own.gain < WORTH:
            return
        calls = self.calls() if own.name == "choice" else None
        own.proof = self.prove(own.name, rows(), candidate, calls)
        own.kept = own.proof.call == "faster"
        if own.kept:
            self.result.plan = candidate

    def calls(self) -> list[float] | None:
        return [own.calls for own in self.mixes] or None


def from_words(size: int) -> str:
    return "never" if size == OFF else f"from {size_in_words(size)}"


def with_rounds(row: Row, rounds: int) -> Row:
    return replace(row, rounds=rounds)


def window_of(plan: Plan, side: str, *, recent: bool = False) -> Window:
    """With a destination far, or one that was written lately."""
    start, end, later = (
        plan.thresholds[f"{side}_rep_{key}"] for key in ("from", "to", "recent_from")
    )
    if recent and start != OFF:
        start = max(start, later)
    return Window(None, None) if start == OFF else Window(start, None if end == OFF else end)
