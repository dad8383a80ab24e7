"""From nothing to a plan that was proved, one dimension after the other: the choice of routines first, since the
windows are those of its loops; then the windows and the sizes from which stores go past the caches."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from wherry import plans
from wherry.campaign import Watcher
from wherry.plans import OFF, Plan
from wherry.row import Row
from wherry.tune import choose, cliffs, grids, measuring, prove
from wherry.tune.choose import Window
from wherry.tune.measuring import PlanCampaign
from wherry.tune.prove import DEFAULT, TUNED, Proof
from wherry.units import MIB

# Less than this is not worth a plan, nor the time to prove it.
WORTH = 0.01
# Of one size of a curve: what a method must win by before a threshold is drawn there.
MARGIN = 0.03
# Of copies that go by the loop, those from here on may go backward (src/routines/thresholds.h).
EITHER_WAY_FROM = 2049
# Seconds for all of it, and what each step may take of those that are left; what it does not need the next ones have.
LIMIT = 165.0
_SHARES = {
    "choice": 0.12,
    "choice, proof": 0.18,
    "copy: windows": 0.45,
    "copy: string instructions, proof": 0.3,
    "copy: direction, proof": 0.2,
    "copy: past the caches": 0.4,
    "copy: past the caches, proof": 0.3,
    "set: windows": 0.5,
    "set: string instructions, proof": 0.4,
    "set: past the caches": 0.6,
    "set: past the caches, proof": 0.95,
}
HELD_OUT_AHEAD = (8, 40, 300, 900, 1400)


@dataclass(frozen=True)
class Asked:
    """A part of a mix that the choice of routines goes by."""

    op: str
    spec: str  # what the runner takes
    state: str  # cache
    calls: float


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
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def better(self) -> bool:
        return any(own.kept for own in self.dimensions)


class _InterruptedError(Exception):
    pass


Progress = Callable[[str, int], Watcher]


class Tuning:
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
        self.limit = limit
        self._ends = math.inf  # of time.monotonic()
        self._campaigns = 0
        # Of rows with the destination ahead: the row, and log of the turned loop's time over that of the plan.
        self._turned: list[tuple[Row, float]] = []

    def run(self) -> Tuned:
        began = time.monotonic()
        self._ends = began + self.limit
        try:
            self._choice()
            for side in ("copy", "set"):
                self._windows(side)
                if side == "copy":
                    self._direction()
                self._stream(side)
        except _InterruptedError:
            self.result.interrupted = True
        self.result.seconds = time.monotonic() - began
        return self.result

    def _take(self, what: str, rows: Sequence[Row], own: dict[str, Plan], processes: int):
        self._campaigns += 1
        now = time.monotonic()
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
            raise _InterruptedError
        every = len(rows) * processes
        if len(campaign.done) < every and campaign.out_of_time:
            self.result.notes.append(
                f"{what}: {len(campaign.done)} of {every} rows in the time there was"
            )
        for problem in campaign.problems:
            if problem.kind != "skip":
                self.result.notes.append(f"{problem.routine} {problem.kind}: {problem.message}")
        return campaign

    def _prove(
        self,
        what: str,
        rows: Sequence[Row],
        candidate: Plan,
        calls: Sequence[float] | None = None,
    ) -> Proof:
        own = {DEFAULT: self.result.plan, TUNED: candidate}
        campaign = self._take(f"{what}, proof", rows, own, self.extent.proof_processes)
        return prove.judge(campaign, range(len(rows)), self.seed, calls)

    def _settle(self, own: Dimension, rows: Callable[[], Sequence[Row]], candidate: Plan) -> None:
        """Proves what is worth it, and takes it when it is proved."""
        self.result.dimensions.append(own)
        if own.found == own.default or own.gain is None or own.gain < WORTH:
            return
        calls = self._calls() if own.name == "choice" else None
        own.proof = self._prove(own.name, rows(), candidate, calls)
        own.kept = own.proof.call == "faster"
        if own.kept:
            self.result.plan = candidate

    # ---- the choice of routines -------------------------------------------------------------------------------------

    def _mix_rows(self, names: Sequence[str], rounds: int, held_out: bool) -> list[Row]:
        if not self.mixes:
            extent = self.extent
            mixes = grids.HELD_OUT_MIXES if held_out else grids.MIXES
            return [
                row if row.rounds == rounds else _with_rounds(row, rounds)
                for row in grids.choice(names, extent, mixes)
            ]
        return [
            Row(
                grids.EXPERIMENT,
                own.op,
                tuple(names),
                mix=own.spec,
                src_state=own.state,
                dst_state=own.state,
                rounds=rounds,
                batch_us=self.extent.batch_us,
            )
            for own in self.mixes
        ]

    def _calls(self) -> list[float] | None:
        return [own.calls for own in self.mixes] or None

    def _choice(self) -> None:
        base = self.result.default
        able = [
            choice
            for choice in plans.CHOICES
            if not plans.lacks(base.changed(choice=choice), self.reported)
        ]
        # The default first: it is the one that is measured twice.
        able = [base.choice, *(choice for choice in able if choice != base.choice)]
        own = {choice: base.changed(choice=choice) for choice in able}
        names = {f"plan_{choice}": plan for choice, plan in own.items()}
        rows = self._mix_rows(list(names), self.extent.rounds, held_out=False)
        campaign = self._take("choice", rows, names, self.extent.processes)
        gains = {}
        for choice in able[1:]:
            pairs = [
                measuring.log_ratios(campaign, i, f"plan_{choice}", f"plan_{able[0]}")
                for i in range(len(rows))
            ]
            calls = self._calls()
            weights = calls and [
                count * (measuring.nanoseconds(campaign, i, f"plan_{able[0]}") or 0)
                for i, count in enumerate(calls)
            ]
            if logs := prove.over_rows(pairs, weights):
                gains[choice] = 1 - math.exp(float(np.median(np.concatenate(logs))))
        best = max(gains, key=gains.get, default=base.choice)
        if gains.get(best, 0) < WORTH:
            best = base.choice
        dimension = Dimension("choice", base.choice, best, gains.get(best))
        self._settle(
            dimension,
            lambda: self._mix_rows((DEFAULT, TUNED), self.extent.proof_rounds, held_out=True),
            base.changed(choice=best, name="tuned"),
        )

    # ---- string instructions -----------------------------------------------------------------------------------------

    def _curves(self, side: str) -> tuple[dict[tuple, dict[int, float]], dict[int, float]]:
        """By place: log of string instructions' time over the loop's, with the destination far; and over the usual
        places with it near, as a destination that was written lately is. Also looks for cliffs."""
        off = {
            f"{side}_rep_from": OFF,
            f"{side}_rep_to": 0,
            f"{side}_stream_from": OFF,
        }
        always = {
            f"{side}_rep_from": plans.REP_LEAST,
            f"{side}_rep_to": OFF,
            f"{side}_stream_from": OFF,
        }
        off[f"{side}_rep_recent_from"] = 0
        always[f"{side}_rep_recent_from"] = plans.REP_LEAST
        if side == "copy":
            off |= {"copy_rep_slow_ahead": 0, "copy_rep_all_from": 0}
            always |= {"copy_rep_slow_ahead": 0, "copy_rep_all_from": plans.REP_LEAST}
        base = self.result.plan
        own = {"loop": base.changed(**off), "strings": base.changed(**always), TUNED: base}
        turned = own["loop"].changed(copy_backward_ahead=_turned(base))
        names = ("loop", "strings", TUNED, "libc")
        usual = grids.PLACES if side == "copy" else grids.set_places()
        grid = [n for n in grids.rep_grid(self.extent, self.last_level) if n <= self.largest]
        rows = grids.windows(side, names, self.extent, self.caches, grid, usual)
        if side == "copy":
            ahead = [(0, None, distance) for distance in grids.AHEAD]
            small = [n for n in grids.small_grid(self.extent) if n <= self.largest]
            own["turned"] = turned
            rows += grids.windows(side, (*names, "turned"), self.extent, self.caches, small, ahead)
        campaign = self._take(f"{side}: windows", rows, own, self.extent.processes)
        sums: dict[tuple, dict[int, list[float]]] = {}
        near: dict[int, list[float]] = {}
        speeds: dict[tuple, dict[int, float]] = {}
        for i, row in enumerate(rows):
            place = (row.src_off, row.dst_off, row.delta)
            log = measuring.log_ratio(campaign, i, "strings", "loop")
            if log is not None and place in usual and grids.is_near(row):
                near.setdefault(row.size, []).append(log)
            elif log is not None:
                sums.setdefault(place, {}).setdefault(row.size, []).append(log)
            log = measuring.log_ratio(campaign, i, "turned", "loop")
            if log is not None:
                self._turned.append((row, log))
            for name, shown in (("libc", "libc"), (TUNED, "wherry")):
                ns = measuring.nanoseconds(campaign, i, name)
                # Where time ran out, one process alone may have been beside a neighbour: no cliff.
                if ns and len(campaign.cells[i, name, False].ns) == self.extent.processes:
                    key = (side, shown, row.src_state, place_in_words(row))
                    speeds.setdefault(key, {})[row.size] = ns
        self.result.cliffs += cliffs.find(speeds)
        return (
            {place: _means(own) for place, own in sums.items()},
            _means(near),
        )

    def _windows(self, side: str) -> None:
        base = self.result.plan
        curves, near = self._curves(side)
        usual = [curve for place, curve in curves.items() if place in grids.PLACES or side == "set"]
        curve = choose.mean_curve(usual)
        found = choose.window(curve)
        now, now_near = _window_of(base, side), _window_of(base, side, recent=True)
        recent = None
        if found.start is not None:
            recent = choose.recent_from(near, found, self._both_near(base, side), MARGIN)
        changes = _window_changes(side, found, recent, base.thresholds[f"{side}_stream_from"])
        if side == "copy" and found.start is not None:
            ahead = {
                delta: own
                for (_, _, delta), own in curves.items()
                if delta is not None and delta in grids.AHEAD
            }
            checked = Window(recent, found.end)
            distance = choose.slow_ahead(ahead, checked, MARGIN)
            every = choose.all_from(ahead, distance, checked) if distance else found.start
            changes |= {
                "copy_rep_slow_ahead": distance,
                "copy_rep_all_from": OFF if every is None else max(every, found.start),
            }
        candidate = base.changed(**changes)
        # Not beyond where stores go past the caches.
        found, found_near = _window_of(candidate, side), _window_of(candidate, side, recent=True)
        # Of the sizes that the two treat differently.
        differ = [
            own[n] * (1 if old.has(n) else -1)
            for own, new, old in ((curve, found, now), (near, found_near, now_near))
            for n in own
            if new.has(n) != old.has(n)
        ]
        gain = 1 - math.exp(-sum(differ) / len(differ)) if differ else None
        if not differ or gain < WORTH:
            changes = {}
            candidate = base
        dimension = Dimension(
            f"{side}: string instructions",
            _window_words(base, side),
            _window_words(candidate, side),
            gain,
        )
        far = (now, found)
        self._settle(
            dimension, lambda: self._window_proof(side, far, (now_near, found_near)), candidate
        )

    # ---- the direction of the loop ----------------------------------------------------------------------------------

    def _by_loop(self, row: Row) -> bool:
        """Does the plan take a loop there, and one that may go either way?"""
        t = self.result.plan.thresholds
        window = _window_of(self.result.plan, "copy", recent=grids.is_near(row))
        return EITHER_WAY_FROM <= row.size < t["copy_stream_from"] and not window.has(row.size)

    def _direction(self) -> None:
        base = self.result.plan
        now = base.thresholds["copy_backward_ahead"]
        logs: dict[int, list[float]] = {}
        for row, log in self._turned:
            if self._by_loop(row):
                logs.setdefault(row.delta, []).append(-log if now else log)
        if not logs:
            return
        curves = {ahead: sum(own) / len(own) for ahead, own in logs.items()}
        found = choose.backward_ahead(curves, MARGIN, plans.BACKWARD_AHEAD)
        differ = [
            log * (1 if ahead <= found else -1)
            for ahead, log in curves.items()
            if (ahead <= found) != (ahead <= now)
        ]
        gain = 1 - math.exp(sum(differ) / len(differ)) if differ else None
        if gain is None or gain < WORTH:
            found = now
        candidate = base.changed(copy_backward_ahead=found)

        def held_out() -> list[Row]:
            sizes = [
                n
                for n in grids.off_grid(EITHER_WAY_FROM, min(self.extent.largest, 4 * MIB), 1)
                if n <= self.largest
            ]
            ahead = [(5, None, n) for n in HELD_OUT_AHEAD if (n <= found) != (n <= now)]
            rows = grids.windows(
                "copy", (DEFAULT, TUNED), self.extent, self.caches, sizes[::2], ahead
            )
            return [_with_rounds(r, self.extent.proof_rounds) for r in rows if self._by_loop(r)]

        self._settle(
            Dimension("copy: direction", _backward_words(now), _backward_words(found), gain),
            held_out,
            candidate,
        )

    def _both_near(self, base: Plan, side: str) -> int:
        """The default for the size from which a destination that was written lately goes by string instructions: that
        of the plan in force, else where both sides leave the first level, or a set three quarters of the second."""
        if base.thresholds[f"{side}_rep_from"] != OFF:
            return base.thresholds[f"{side}_rep_recent_from"]
        if side == "copy":
            return (self.caches["L1"] or 32 << 10) // 2
        return (self.caches["L2"] or 512 << 10) // 4 * 3

    def _window_proof(
        self, side: str, far: tuple[Window, Window], near: tuple[Window, Window]
    ) -> list[Row]:
        """far and near: what is so now, and what was found."""

        def differ(n: int, own: tuple[Window, Window]) -> bool:
            return own[0].has(n) != own[1].has(n)

        grid = [
            n
            for n in grids.off_grid(
                256, min(self.extent.largest, self.last_level), self.extent.step
            )
            if n <= self.largest and (differ(n, far) or differ(n, near))
        ]
        rows = grids.windows(
            side,
            (DEFAULT, TUNED),
            self.extent,
            self.caches,
            grid[:: max(len(grid) // 12, 1)],
            grids.held_out_places(side),
        )
        return [
            _with_rounds(row, self.extent.proof_rounds)
            for row in rows
            if differ(row.size, near if grids.is_near(row) else far)
        ]

    # ---- past the caches ---------------------------------------------------------------------------------------------

    def _stream(self, side: str) -> None:
        base = self.result.plan
        grid = [n for n in grids.stream_grid(self.extent, self.last_level) if n <= self.largest]
        now = base.thresholds[f"{side}_stream_from"]
        if len(grid) < 2:
            return
        key, to = f"{side}_stream_from", f"{side}_rep_to"
        strings = base.thresholds[f"{side}_rep_from"] != OFF
        cached = {key: OFF} | ({to: OFF} if strings else {})
        first = grid[0] // 2
        past = {key: first}
        if strings:
            past[to] = max(first, base.thresholds[f"{side}_rep_from"])
        own = {"cached": base.changed(**cached), "past": base.changed(**past)}
        rows = grids.streams(side, ("cached", "past"), self.extent, grid)
        campaign = self._take(f"{side}: past the caches", rows, own, self.extent.processes)
        curves: dict[int, dict[int, list[float]]] = {}
        for i, row in enumerate(rows):
            log = measuring.log_ratio(campaign, i, "past", "cached")
            if log is not None:
                curves.setdefault(row.threads, {}).setdefault(row.size, []).append(log)
        means = {
            threads: {size: sum(logs) / len(logs) for size, logs in own.items()}
            for threads, own in curves.items()
        }
        starts = {threads: choose.from_on(curve, MARGIN) for threads, curve in means.items()}
        found = choose.safer(*starts.values()) if starts else None
        told = ", ".join(
            f"{'alone' if threads == 1 else f'{threads} CPUs at once'}: "
            + (f"from {plans.size_text(start)}" if start is not None else "at no size")
            for threads, start in sorted(starts.items())
        )
        self.result.notes.append(f"{side}: stores past the caches win {told}")
        start = OFF if found is None else found
        both = choose.mean_curve(list(means.values()))
        differ = [n for n in both if (n >= start) != (n >= now)]
        gain = None
        if differ:
            saved = sum(both[n] * (1 if n >= now else -1) for n in differ) / len(differ)
            gain = 1 - math.exp(-saved)
        changes = {}
        if differ and gain >= WORTH:
            changes = {key: start}
            if strings:
                ended = base.thresholds[to]
                end = start if ended == now else min(ended, start)
                changes[to] = max(end, base.thresholds[f"{side}_rep_from"])
        candidate = base.changed(**changes)
        dimension = Dimension(
            f"{side}: past the caches",
            _from_words(now),
            _from_words(candidate.thresholds[key]),
            gain,
        )

        def held_out() -> list[Row]:
            sizes = [
                n
                for n in grids.off_grid(
                    grid[0], min(self.extent.largest, 2 * max(grid)), self.extent.step
                )
                if (n >= start) != (n >= now)
            ]
            rows = grids.streams(side, (DEFAULT, TUNED), self.extent, sizes[:4])
            return [_with_rounds(row, self.extent.proof_rounds) for row in rows]

        self._settle(dimension, held_out, candidate)


def _means(own: dict[int, list[float]]) -> dict[int, float]:
    return {size: sum(logs) / len(logs) for size, logs in own.items()}


def _with_rounds(row: Row, rounds: int) -> Row:
    return replace(row, rounds=rounds)


def place_in_words(row: Row) -> str:
    if row.op == "set":
        return f"destination + {row.dst_off}"
    if row.delta is not None:
        return f"source + {row.src_off}, destination {row.delta} ahead mod 4096"
    return f"source + {row.src_off}, destination + {row.dst_off}"


def _window_of(plan: Plan, side: str, *, recent: bool = False) -> Window:
    """With a destination far, or one that was written lately."""
    start, end, later = (
        plan.thresholds[f"{side}_rep_{key}"] for key in ("from", "to", "recent_from")
    )
    if recent and start != OFF:
        start = max(start, later)
    return Window(None, None) if start == OFF else Window(start, None if end == OFF else end)


def _window_changes(
    side: str, found: Window, recent: int | None, stream_from: int
) -> dict[str, int]:
    if found.start is None:
        off = {f"{side}_rep_from": OFF, f"{side}_rep_to": 0, f"{side}_rep_recent_from": 0}
        return off | ({"copy_rep_slow_ahead": 0, "copy_rep_all_from": 0} if side == "copy" else {})
    end = stream_from if found.end is None else min(found.end, stream_from)
    return {
        f"{side}_rep_from": found.start,
        f"{side}_rep_to": max(end, found.start),
        f"{side}_rep_recent_from": recent,
    }


def _turned(plan: Plan) -> int:
    return 0 if plan.thresholds["copy_backward_ahead"] else plans.BACKWARD_AHEAD


def _backward_words(ahead: int) -> str:
    return f"backward 1 to {ahead} B ahead" if ahead else "forward"


def _from_words(size: int) -> str:
    return "never" if size == OFF else f"from {plans.size_text(size)}"


def _window_words(plan: Plan, side: str) -> str:
    t = plan.thresholds
    start, end = t[f"{side}_rep_from"], t[f"{side}_rep_to"]
    if start == OFF:
        return "never"
    text = f"{plans.size_text(start)} to {'any size' if end == OFF else plans.size_text(end)}"
    if (recent := t[f"{side}_rep_recent_from"]) != start:
        text += f"; written lately {_from_words(recent)}"
    if side == "copy" and t["copy_rep_slow_ahead"]:
        every = t["copy_rep_all_from"]
        limit = "never" if every == OFF else f"from {plans.size_text(every)}"
        text += f"; 1 to {t['copy_rep_slow_ahead']} B ahead {limit}"
    return text
