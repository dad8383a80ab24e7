"""One `wherry bench`, from its plan to the run file: verifies, measures, prints, saves."""

from __future__ import annotations

import contextlib
import re
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from wherry import (
    entries,
    jobcontrol,
    levels,
    machine,
    results,
    runfile,
    stamp,
    stats,
    verification,
    version,
)
from wherry import inputs as inputs_room
from wherry import rounds as rounds_room
from wherry.campaign import Campaign, Watcher
from wherry.cell import Problem
from wherry.cli import dimensions as dimension_room
from wherry.cli import peers as peer_room
from wherry.cli import report, thennow, whole
from wherry.cli.ending import interrupted_status
from wherry.cli.keeping import Keeper
from wherry.cli.options import Options
from wherry.cli.printer import Printer
from wherry.cli.progress import CampaignProgress, Progress
from wherry.course import Course
from wherry.errors import (
    EXIT_FAILED,
    EXIT_OK,
    FailedError,
    WherryError,
    printable,
)
from wherry.estimate import expected_seconds
from wherry.experiments import Experiment, Request
from wherry.journal import path_for
from wherry.units import about, plural
from wherry.yardsticks import INLINED, YARDSTICKS

# Seconds from which on somebody may want to know beforehand how long it takes.
TELL_FROM = 30


@dataclass(frozen=True)
class Task:
    """What is to be measured, and what is known of it beforehand."""

    plan: list[tuple[Experiment, list]]
    request: Request
    path: Path
    asked: dict  # what to go on by, should it be interrupted
    left_out: dict[str, str]  # of all experiments those that cannot be had, with the reason
    course: Course
    peers: list[str]
    inputs: dict[str, str]
    pin: int | None
    seed: int
    problems: list[Problem]


class Bench:
    def __init__(self, task: Task, options: Options):
        self.task = task
        self.options = options
        self.plan = task.plan
        self.request = task.request
        self.course = task.course
        self.keeper = Keeper(task.path, explicit=bool(options.save), raw=options.raw)
        self.printer = Printer()
        self.excluded: set[str] = set()
        self.samples: list[dict] = []
        self.began = jobcontrol.clock()
        self.document = _fresh(task, options)
        if self.course.run is not None:
            self.document, self.began, self.excluded = whole.go_on(
                self.course, self.document, task.path
            )
            self.samples = whole.samples_of(self.course, task.path) if options.raw else []

    @property
    def path(self) -> Path:
        return self.keeper.path

    def run(self) -> int:
        self.course.rehearse([own for own, _ in self.plan], self.request, self._campaign)
        if not self.options.as_json:
            report.heading(self.printer, self.document)
        if self.options.verify_first:
            self._verify()
        for experiment, _ in self.plan:
            if self.document["interrupted"]:
                break
            if self.course.is_complete(experiment.name):
                if not self.options.as_json:
                    report.experiment(self.printer, self.document, experiment.name)
                continue
            try:
                with contextlib.ExitStack() as around:
                    if self._enter(around, experiment):
                        self._measure(experiment)
            except KeyboardInterrupt:
                self.document["interrupted"] = True
                if self.keeper.left():
                    return self._leave_to_journal()
            except WherryError:
                if self.course.run is None and not self.document["rows"]:
                    self.keeper.nothing()
                raise
        if not self.document["rows"]:
            return self._leave_nothing()
        self._save()
        return self._finish()

    def _leave_nothing(self) -> int:
        self.keeper.nothing()
        report.problems_to_stderr(self.document)
        if self.document["interrupted"]:
            print(
                "wherry: interrupted before anything was measured; nothing saved", file=sys.stderr
            )
            return interrupted_status[0]
        if broken := _broken(self.document):
            raise FailedError(broken)
        skipped: dict[str, dict] = {}  # the first of each routine, in their order
        for problem in self.document["problems"]:
            if problem["kind"] == "skip":
                skipped.setdefault(problem["routine"], problem)
        reasons = {problem["message"] for problem in skipped.values()}
        if len(reasons) > 1:
            report.skipped_to_stderr(list(skipped.values()))
            raise FailedError("nothing could be measured")
        raise FailedError(": ".join(["nothing could be measured", *reasons]))

    def _leave_to_journal(self) -> int:
        """Interrupted again, or when all was measured and only the figures of it were not made."""
        path = self.path
        print(
            f"wherry: interrupted before the figures were made; what was measured until then is in {path_for(path)}, "
            f"and wherry bench --resume {path} goes on with it",
            file=sys.stderr,
        )
        return interrupted_status[0]

    def _enter(self, around: contextlib.ExitStack, experiment: Experiment) -> bool:
        """What an experiment needs around it. When that cannot be had, the other experiments go on without it."""
        try:
            around.enter_context(experiment.surroundings(self.request))
        except WherryError as error:
            if len(self.plan) == 1:
                raise
            self.document["method"]["left_out"][experiment.name] = str(error)
            print(f"wherry: {experiment.name} is left out: {error}", file=sys.stderr)
            return False
        return True

    def _verify(self) -> None:
        named = (name for _, rows in self.plan for row in rows for name in row.routines)
        known = set(map(peer_room.name_of, self.task.peers))
        arguments = [
            name for name in entries.targets(named, known) if name not in (*YARDSTICKS, *INLINED)
        ]
        for spec in self.task.peers:
            arguments += ["--peer", spec]
        with Progress("verify", "parts", 0) as progress:
            result = verification.verify(
                [*arguments, "--brief", "--seed", str(self.task.seed)],
                lambda done, total, what: progress.at(done, total, f"verify {what}"[:40]),
            )
        if result.interrupted:
            self.document["interrupted"] = True
            return
        for target, message in result.wrong_targets().items():
            name = re.split("[:]", target)[0]
            self.excluded.add(name)
            self.document["problems"].append(asdict(Problem("wrong", name, message)))
        if not self.options.as_json:
            report.verified(self.printer, result)

    def _campaign(self, rows, **how) -> Campaign:
        return Campaign(
            rows,
            peers=self.task.peers,
            pin=self.task.pin,
            seed=self.task.seed,
            excluded=self.excluded,
            hang_limit=self.options.hang_limit,
            raw=self.options.raw,
            counters=dimension_room.counter_set(),
            **how,
        )

    def _pilot(self, rows, until: float) -> list[int]:
        pilot = self._campaign(rows, processes=1, deadline=until, latest=until, at_least_one=False)
        pilot.run()
        if pilot.interrupted:
            raise KeyboardInterrupt
        return [row for _, row in pilot.done]

    def _measure(self, experiment: Experiment) -> None:
        began = jobcontrol.clock()
        try:
            share = self.course.share(experiment, self.request, self._pilot)
        except KeyboardInterrupt:
            self.document["interrupted"] = True
            return
        campaign = self._campaign(
            share.rows,
            processes=share.processes,
            only=share.only,
            deadline=share.deadline,
            latest=share.latest,
        )
        self.course.begin(experiment, campaign)
        campaign.journal = self.keeper.begin(
            self.document | {"interrupted": True}, self.course.in_case(experiment, campaign)
        )
        self._carry_out(experiment, campaign)
        self.keeper.measured()
        first = 1 + max((row["row"] for row in self.document["rows"]), default=-1)
        some = self._take_in(experiment, campaign, share.request, first, began)
        if self.options.raw:
            self.samples += results.samples(campaign, experiment.name, first)
        if some:
            # Before printing: a reader of our output that leaves must not cost what was measured.
            self._save(quiet=True)
        if not self.options.as_json:
            report.experiment(self.printer, self.document, experiment.name)
            thennow.show(self.options.then, self.printer, self.document, experiment.name)

    def _carry_out(self, experiment: Experiment, campaign: Campaign) -> None:
        """On a terminal with what it will take, and how far it is."""
        rows = campaign.rows
        expected = expected_seconds([rows[i] for i in campaign.chosen], campaign.processes)
        if expected > TELL_FROM and sys.stderr.isatty():
            routines = {name for row in rows for name in row.routines} - YARDSTICKS.keys()
            print(
                f"wherry: {experiment.name}: {plural(len(campaign.chosen), 'row')}, "
                f"{plural(len(routines), 'routine')}, "
                f"{plural(campaign.processes, 'process', 'processes')}; about {about(expected)}",
                file=sys.stderr,
            )
        draft = report.Draft(campaign, experiment, self.printer.width) if len(rows) < 100 else None
        with Progress(
            experiment.name, "cells", campaign.total_cells(), draft, self.course.clock
        ) as progress:
            campaign.watcher = CampaignProgress(progress) if sys.stderr.isatty() else Watcher()
            campaign.run()

    def _take_in(
        self,
        experiment: Experiment,
        campaign: Campaign,
        request: Request,
        first: int,
        began: float,
    ) -> bool:
        """What a campaign gave, into the document, where its rows are numbered from `first` on. Whether it has any."""
        self.excluded |= campaign.excluded
        document = self.document
        document["interrupted"] = campaign.interrupted
        document["runner"] = {k: v for k, v in campaign.start.items() if k != "event"}
        new_rows, cells, floor = results.digest(campaign, first)
        document["rows"] += new_rows
        document["cells"] += cells
        document["problems"] += [
            asdict(p) | {"row": None if p.row is None else first + p.row} for p in campaign.problems
        ]
        cut = campaign.interrupted or bool(campaign.broken)
        checks = [] if cut else experiment.cross_check(campaign, request)
        summary = experiment.summary(campaign, request, first) if new_rows else None
        took = jobcontrol.clock() - began
        entry = (
            ({} if summary is None else {"score": summary})
            | ({"cross_check": checks} if checks else {})
            | {
                "name": experiment.name,
                "processes": campaign.processes,
                "rounds": experiment.round_count(self.request),
                "seconds": round(took, 2),
                "noise_floor": floor,
                "voided": campaign.voided,
                "complete": not cut,
                "correction": results.correction(campaign, cells),
            }
            | campaign.rounds.record()
            | levels.record(campaign)
            | self.course.finished(experiment, campaign, took)
        )
        document["experiments"].append(entry)
        if undone := self.course.left_undone(experiment, campaign, entry):
            document["resume"] = undone
        uncontrolled = document["machine"]["uncontrolled"]
        known = {note["what"] for note in uncontrolled}
        own = rounds_room.uncontrolled(entry)
        uncontrolled += [note for note in own if note["what"] not in known]
        floors = [e["noise_floor"] for e in document["experiments"] if e["noise_floor"] is not None]
        document["noise"]["floor"] = max(floors, default=None)
        document["finished"] = stamp.now()
        document["seconds"] = round(jobcontrol.clock() - self.began, 2)
        return bool(new_rows)

    def _save(self, quiet: bool = False) -> None:
        """After each experiment, and at the end; a failure is told once, at the end."""
        left_out = self.document["method"]["left_out"]
        wanted = [experiment.name for experiment, _ in self.plan if experiment.name not in left_out]
        complete = [own for own in self.document["experiments"] if own["complete"]]
        missing = len(complete) < len(wanted)
        interrupted = missing or self.document["interrupted"]
        try:
            self.keeper.save(self.document | {"interrupted": interrupted}, self.samples)
        except FailedError:
            if not quiet:
                if self.options.as_json:
                    self.printer.write(runfile.encode(self.document).decode())
                raise

    def _finish(self) -> int:
        document = self.document
        if self.options.as_json:
            self.printer.write(runfile.encode(document).decode())
            report.problems_to_stderr(document)
        else:
            report.problems(self.printer, document)
            self.printer.text()
        if document["interrupted"]:
            print(
                f"wherry: interrupted; what was measured until then is in {self.path}",
                file=sys.stderr,
            )
        elif broken := _broken(document):
            print(
                f"wherry: {broken}; what was measured until then is in {self.path}, and "
                f"wherry bench --resume {self.path} measures the rest",
                file=sys.stderr,
            )
        elif not self.options.as_json:
            self.printer.text(
                f"Saved as {printable(str(self.path))}"
                + (", raw samples beside it" if self.options.raw else "")
            )
        if document["interrupted"]:
            return interrupted_status[0]
        bad = any(p["kind"] != "skip" for p in document["problems"])
        return EXIT_FAILED if bad else EXIT_OK


def _fresh(task: Task, options: Options) -> dict:
    """A run in which nothing has been measured yet."""
    request = task.request
    document = {
        "format": runfile.FORMAT,
        "format_version": runfile.FORMAT_VERSION,
        "wherry": version(),
        "runner": {},
        "started": stamp.now(),
        "finished": stamp.now(),
        "seconds": 0.0,
        "interrupted": False,
        "machine": machine.record(),
        "method": {
            "command": ["wherry", *sys.argv[1:]],
            "seed": task.seed,
            "pin": task.pin,
            "quick": request.quick,
            "peers": task.peers,
            "inputs": task.inputs,
            "verified": options.verify_first,
            "resamples": stats.RESAMPLES,
            "asked": task.asked,
            "counters_shown": options.counters,
            "left_out": task.left_out,
        },
        "mixes": [mix.record() for mix in request.mixes if mix.sha256],
        "noise": {"floor": None},
        "ideas": {r["name"]: r.get("idea", "") for r in request.catalogue},
        "experiments": [],
        "rows": [],
        "cells": [],
        "problems": [asdict(problem) for problem in task.problems],
    }
    document["machine"]["uncontrolled"] += inputs_room.uncontrolled()
    return document


def _broken(document: dict) -> str:
    """What has failed while it was measured; empty when nothing has."""
    return next((p["message"] for p in document["problems"] if p["kind"] == "broken"), "")
