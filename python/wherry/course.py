"""How the experiments of a run follow each other: all of each, or what a budget leaves of it; from the beginning, or
from where an interrupted run has ended."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from wherry import budget as budgets
from wherry import jobcontrol, journal
from wherry.budget import Budget, Pilot, Share
from wherry.campaign import Campaign, Row
from wherry.errors import FailedError, WherryError
from wherry.experiments import Experiment, Request


def fingerprint(rows: Sequence[Row]) -> str:
    """Of what is measured; a file of a mix has another path wherever it lies."""
    text = "\n".join(
        f"{row.experiment} {replace(row, mix=row.mix_name or row.mix).line(0)}" for row in rows
    )
    return hashlib.sha256(text.encode()).hexdigest()


# ---- an interrupted run ---------------------------------------------------------------------------------------------


def _identity(run: dict) -> dict[str, object]:
    """What must be the same for figures to stand beside each other in one run."""
    machine = run["machine"]
    own = machine["cpu"]
    return {
        "version of Wherry": run["wherry"],
        "machine": machine["host"],
        "CPU": ", ".join(
            f"{own.get(key)}" for key in ("model", "family", "model_number", "stepping")
        ),
        "number of CPUs": own.get("count"),
        "kernel": machine["kernel"],
        "libc": machine["libc"],
        "compiler of the routines": machine.get("compiler"),
    }


def _inputs(run: dict) -> dict[str, str]:
    """What it was given, in a word that tells whether it is the same still (`inputs.py`)."""
    mixes = {f"mix {mix['name']}": mix["sha256"] for mix in run.get("mixes", ())}
    return mixes | run["method"].get("inputs", {})


def check_same(run: dict, now: dict, path: object) -> None:
    """Refuses to go on elsewhere, or with other files; `now` is a run as it would begin here."""
    there, here = _identity(run), _identity(now)
    for what, value in there.items():
        if here[what] != value:
            raise WherryError(
                f"cannot resume {path}: it has {what} {value}, and here it is {here[what]}; "
                "begin a new run (wherry compare sets them side by side)"
            )
    _check_inputs(_inputs(run), _inputs(now), "inputs" in run["method"], path)


def _check_inputs(there: dict, here: dict, told: bool, path: object) -> None:
    """`told`: whether the run tells more than its mixes."""
    for what in [*there, *(what for what in here if what not in there)]:
        if there.get(what) == here.get(what) or not (told or what.startswith("mix ")):
            continue
        if what not in here:
            change = "is not there any more"
        else:
            change = "is not what it was then" if what in there else "was not there then"
        raise WherryError(
            f"cannot resume {path}: {what} {change}, and one run would hold figures of both; put back what was "
            "measured, or begin a new run"
        )


def interrupted(run: dict, path: object) -> dict:
    """The part of the file that tells how to go on."""
    if not run["interrupted"]:
        raise WherryError(f"{path} is complete: nothing is missing that could be resumed")
    if "asked" not in run["method"]:
        raise WherryError(
            f"cannot resume {path}: it does not say what was asked for; begin a new run"
        )
    return run["method"]["asked"]


def _damaged(experiment: Experiment) -> WherryError:
    return WherryError(
        f"what the run file has to go on with {experiment.name} is damaged; begin a new run"
    )


# ---- the course -----------------------------------------------------------------------------------------------------


@dataclass
class Course:
    """Which experiments, how much of each, and what is there already."""

    budget: Budget | None = None
    run: dict | None = None  # that goes on
    shares: dict[str, Share] = field(default_factory=dict)
    began: float = field(default_factory=jobcontrol.clock)

    def __post_init__(self) -> None:
        self._complete: set[str] = set()
        self._part: dict = {}
        self._earlier: dict[str, float] = {}  # seconds, by experiment that went on
        if self.run is None:
            return
        entries = self.run["experiments"]
        self._part = self.run.pop("resume", {})
        self._complete = {entry["name"] for entry in entries if entry["complete"]}
        # What is measured again, or gone on with, comes in anew.
        open_names = {entry["name"] for entry in entries} - self._complete
        self.run["experiments"] = [e for e in entries if e["name"] in self._complete]
        for key in ("rows", "cells"):
            self.run[key] = [e for e in self.run[key] if e["experiment"] not in open_names]
        self.run["problems"] = [
            p for p in self.run["problems"] if p.get("experiment") not in open_names
        ]
        if self.budget:
            self.budget.left = [n for n in self.budget.left if n not in self._complete]

    def is_complete(self, name: str) -> bool:
        return name in self._complete

    def share(self, experiment: Experiment, request: Request, pilot: Pilot) -> Share:
        if self.budget:
            share = self.budget.share(experiment, pilot)
        else:
            share = budgets.whole(experiment, request)
        if self._part.get("experiment") == experiment.name:
            share = self._as_before(experiment, request, share)
        self.shares[experiment.name] = share
        return share

    def _as_before(self, experiment: Experiment, request: Request, share: Share) -> Share:
        """The share that the interrupted run had: other rounds or processes would not fit what is there."""
        own = self._part
        share = replace(
            budgets.whole(experiment, replace(request, quick=own["quick"])),
            processes=int(own["processes"]),  # 3.0 is whole in JSON
            planned_rows=own["planned_rows"],
            only=None if own["only"] is None else tuple(own["only"]),
            deadline=share.deadline,
            latest=share.latest,
            quick=own["quick"] and not request.quick,
        )
        if len(share.rows) == len(own["rounds"]):
            rows = zip(share.rows, own["rounds"], strict=True)
            share = replace(share, rows=tuple(replace(row, rounds=n) for row, n in rows))
        if fingerprint(share.rows) != own["rows"]:
            raise FailedError(
                f"{experiment.name} is not what it was when the run was interrupted (another peer, mix or "
                "routine?); begin a new run"
            )
        if not {*(share.only or ())} <= {*range(len(share.rows))}:
            raise _damaged(experiment)
        return replace(
            share,
            expected=budgets.cost(
                [share.rows[i] for i in share.only or range(len(share.rows))], share.processes
            ),
        )

    def rehearse(
        self,
        experiments: Sequence[Experiment],
        request: Request,
        campaign_of: Callable[..., Campaign],
    ) -> None:
        """Raises, before anything is printed or measured, for what cannot be gone on with."""
        for experiment in experiments:
            if self._part.get("experiment") == experiment.name:
                share = self._as_before(experiment, request, budgets.whole(experiment, request))
                campaign = campaign_of(share.rows, processes=share.processes, only=share.only)
                self._take_up(experiment, campaign, copy.deepcopy(self._part))

    def _take_up(self, experiment: Experiment, campaign: Campaign, part: dict) -> None:
        try:
            campaign.go_on_from(part["state"])
        except (KeyError, TypeError, ValueError, AttributeError):
            raise _damaged(experiment) from None
        journal.replay(campaign, part)

    def begin(self, experiment: Experiment, campaign: Campaign) -> None:
        if self._part.get("experiment") == experiment.name:
            self._take_up(experiment, campaign, self._part)
            self._earlier[experiment.name] = self._part["seconds"]
            self._part = {}

    def finished(self, experiment: Experiment, campaign: Campaign, seconds: float) -> dict:
        """What the experiment's entry in the run file says beside the usual."""
        share = self.shares[experiment.name]
        if self.budget:
            self.budget.spent(share, seconds)
        seconds += self._earlier.get(experiment.name, 0.0)
        own: dict = {
            "seconds": round(seconds, 2),
            "rounds": max((row.rounds for row in share.rows), default=1),
        }
        measured = len({row for _, row in campaign.done})
        own["cut_short"] = campaign.out_of_time
        if share.quick or measured < share.planned_rows:
            own["thinned"] = {
                "planned": share.planned_rows,
                "measured": measured,
                "quick": share.quick,
            }
        return own

    def left_undone(self, experiment: Experiment, campaign: Campaign, entry: dict) -> dict | None:
        """For an interrupted run: how to go on."""
        if campaign.state is None:
            return None
        return self._part_of(experiment, campaign.state, entry["seconds"])

    def in_case(self, experiment: Experiment, campaign: Campaign) -> dict:
        """The same before anything is measured, for the journal of a run that is killed."""
        seconds = self._earlier.get(experiment.name, 0.0)
        return self._part_of(experiment, campaign.so_far(), seconds)

    def _part_of(self, experiment: Experiment, state: dict, seconds: float) -> dict:
        share = self.shares[experiment.name]
        return {
            "experiment": experiment.name,
            "seconds": seconds,
            "processes": share.processes,
            "planned_rows": share.planned_rows,
            "quick": share.request.quick,
            "only": None if share.only is None else list(share.only),
            "rounds": [row.rounds for row in share.rows],
            "rows": fingerprint(share.rows),
            "state": state,
        }

    def clock(self) -> tuple[float, float] | None:
        """Seconds gone and seconds there are, for the progress of the whole."""
        if self.budget is None:
            return None
        return jobcontrol.clock() - self.budget.began, self.budget.seconds
