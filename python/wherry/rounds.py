"""What became of a campaign's rounds: how many were thrown away and why, how fast fixed work ran beside them, on which
CPU and at which addresses its processes lay, and what could be counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from wherry.units import percent

# Fixed work that takes longer than this, against the best of the campaign, tells of a clock that moved. The runner
# throws a round away from 1.07 on; what lies between is kept, and has to be said.
DRIFTED = 1.03
# So much of the rounds may be above it before a heading says so.
OFTEN = 0.05
KINDS = ("core", "memory")

REASONS = {
    "migrated": "moved to another CPU",
    "descheduled": "interrupted by another program",
    "steal": "robbed by the hypervisor",
    "contended": "beside a slow clock or a neighbour",
}


@dataclass
class Rounds:
    starts: dict[int, list[dict]] = field(default_factory=dict)  # by process; it may start anew
    paces: dict[int, list[tuple[float, float]]] = field(default_factory=dict)
    outcomes: dict[tuple[int, int], list[str | None]] = field(default_factory=dict)  # with --raw
    left_out: set[tuple[int, int]] = field(default_factory=set)  # process and row, as too slow

    def begin(self, process: int, event: Mapping) -> None:
        own = {key: event.get(key) for key in ("cpu", "randomised", "layout", "apart", "counters")}
        self.starts.setdefault(process, []).append(own)

    def end_row(self, process: int, row: int, event: Mapping) -> None:
        cores, memories = event.get("cores") or (), event.get("memories") or ()
        self.paces.setdefault(process, []).extend(zip(cores, memories, strict=False))
        if "outcomes" in event:
            self.outcomes[process, row] = list(event["outcomes"])

    def state(self) -> dict:
        return {
            "starts": [[process, own] for process, own in self.starts.items()],
            "paces": [[process, own] for process, own in self.paces.items()],
            "outcomes": [[*key, own] for key, own in self.outcomes.items()],
        }

    def go_on_from(self, state: Mapping) -> None:
        self.starts = dict(map(tuple, state["starts"]))
        self.paces = {process: list(map(tuple, own)) for process, own in state["paces"]}
        self.outcomes = {(process, row): own for process, row, own in state["outcomes"]}

    # ---- for the run file -------------------------------------------------------------------------------------------

    def record(self) -> dict[str, object]:
        """For the experiment's entry."""
        own: dict[str, object] = {}
        pace = {
            kind: found
            for number, kind in enumerate(KINDS)
            if (found := _course([[p[number] for p in of] for of in self.paces.values()]))
        }
        if pace:
            own["pace"] = pace
            own["tried"] = sum(len(of) for of in self.paces.values())
        starts = [start for of in self.starts.values() for start in of]
        if starts and all(start.get("cpu") is not None for start in starts):
            own["cpus"] = sorted({start["cpu"] for start in starts})
        told = [start for start in starts if start.get("randomised") is not None]
        if told:
            own["randomisation"] = {
                "on": all(start["randomised"] for start in told),
                "processes": len(told),
                "layouts": len({start["layout"] for start in told}),
            }
        apart = [start["apart"] for start in starts if start.get("apart") is not None]
        if apart:
            own["apart"] = all(apart)
        counters = [start["counters"] for start in starts if start.get("counters")]
        if counters:
            own["counters"] = counters[0]
        return own


def _course(processes: Sequence[Sequence[float]]) -> dict[str, object] | None:
    processes = [own for own in processes if len(own)]
    every = [value for own in processes for value in own if value]
    if not every:
        return None
    best = min(every)

    def times(value: float) -> float:
        return round(float(value) / best, 4)

    return {
        "best_ns": float(f"{best:.6g}"),
        "median": times(np.median(every)),
        "worst": times(max(every)),
        "above": DRIFTED,
        "share_above": round(sum(value > DRIFTED * best for value in every) / len(every), 4),
        "by_process": [times(np.median(own)) for own in processes],
    }


# ---- in words -------------------------------------------------------------------------------------------------------


def voided_in_words(experiment: Mapping, disturbed: int = 0) -> str:
    """`12 of 312 rounds thrown away: 9 beside a slow clock or a neighbour, 3 interrupted by another program`.
    `disturbed`: so many cells had no better rounds than such."""
    reasons = {name: n for name, n in (experiment.get("voided") or {}).items() if n}
    count = sum(reasons.values())
    if not count:
        return ""
    tried = experiment.get("tried")
    of = f" of {tried:,}" if tried and tried >= count else ""
    parts = [
        f"{n:,} {REASONS.get(name, name)}"
        for name, n in sorted(reasons.items(), key=lambda pair: -pair[1])
    ]
    plural = "" if count == 1 and not of else "s"
    if not disturbed:
        return f"{count:,}{of} round{plural} thrown away: {', '.join(parts)}"
    return (
        f"{count:,}{of} round{plural} disturbed: {', '.join(parts)}; thrown away where others were to be had, but "
        f"for want of them used in {disturbed:,} {'cell' if disturbed == 1 else 'cells'}"
    )


def drift_in_words(experiment: Mapping) -> str:
    """Empty while the clock held."""
    core = (experiment.get("pace") or {}).get("core")
    if not core or core["share_above"] <= OFTEN:
        return ""
    return (
        f"the clock drifted, or a neighbour took its share: fixed work took up to {core['worst']:.2f} "
        f"times its best, and more than {core['above']:.2f} times beside {percent(core['share_above'])} of "
        "the rounds"
    )


def uncontrolled(experiment: Mapping) -> list[dict[str, str]]:
    """What only the measurement itself could tell, in the form of the machine's record."""
    found = []
    if drift_in_words(experiment):
        core = experiment["pace"]["core"]
        found.append(
            {
                "what": "clock drifted while measuring",
                "why": f"{experiment['name']}: fixed work took up to {core['worst']:.2f} times its best",
                "do": "measure again when the machine is idle; ratios within a round hold, nanoseconds less",
            }
        )
    own = experiment.get("randomisation")
    if own and not own["on"]:
        found.append(
            {
                "what": "address randomisation off",
                "why": "every process has the same layout, so more processes do not average it out",
                "do": "start it without setarch -R, and sysctl kernel.randomize_va_space=2 (as root)",
            }
        )
    if experiment.get("apart") is False:
        found.append(
            {
                "what": "Wherry called from nearby",
                "why": "its routines stand beside the timed loop and others' more than 4 GiB away, which may "
                "take some cycles a call",
                "do": "mount /proc, and measure Wherry's library as a peer: --peer lib=libwherry.so:wherry_",
            }
        )
    return found


def counters_in_words(experiment: Mapping) -> str:
    """Why there are none, or not all; empty when all are there."""
    own = experiment.get("counters")
    if own is None:
        return "no hardware counters here: the runner does not tell"
    if own["set"] == "none":
        return "no counters: not asked for"
    if not own["events"]:
        return f"no {own['set']} counters here: {own['reason'] or 'not told why'}"
    return f"not counted here: {own['reason']}" if own["reason"] else ""


def thinned_in_words(own: Mapping) -> str:
    """What the time there was has cost an experiment; empty where it was enough."""
    said = []
    if thinned := own.get("thinned"):
        short = ", the short form" if thinned["quick"] else ""
        said.append(
            f"{thinned['measured']} of {thinned['planned']} rows, for the time there was{short}"
        )
    if own.get("cut_short"):
        said.append("the time was up before all processes had ended")
    return "; ".join(said)
