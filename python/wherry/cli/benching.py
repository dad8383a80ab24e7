"""What `wherry bench` does, from the options to the run file."""

from __future__ import annotations

import contextlib
import itertools
import re
import secrets
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path

from wherry import (
    entries,
    found_peers,
    machine,
    results,
    runfile,
    runner,
    stats,
    verification,
    version,
)
from wherry import mixes as mix_room
from wherry import rounds as rounds_room
from wherry import then as then_room
from wherry.campaign import Campaign, Problem, Watcher, expected_seconds
from wherry.cli import dimensions as dimension_room
from wherry.cli import names, report, reporting, stamp, thennow, whole
from wherry.cli import peers as peer_room
from wherry.cli.printer import Printer
from wherry.cli.progress import CampaignProgress, Progress
from wherry.course import Course
from wherry.errors import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_TERMINATED,
    FailedError,
    unknown,
)
from wherry.experiments import Experiment, Request
from wherry.formats import files
from wherry.units import about, parse_size
from wherry.yardsticks import INLINED, YARDSTICKS

# Seconds from which on somebody may want to know beforehand how long it takes.
TELL_FROM = 30


def show(
    file: str,
    given,
    as_json: bool,
    then: bool = False,
    markdown: bool = False,
    counters: bool = False,
) -> None:
    thennow.check_json(then, as_json)
    run = files.load(Path(file))
    printer = Printer()
    if as_json:
        printer.write(runfile.encode(run).decode())
        return
    has = [e["name"] for e in run["experiments"]]
    for name in given:
        if name not in has:
            raise unknown("experiment", name, has, "the run file")
    shown = [name for name in has if not given or name in given]
    thennow.check(then, shown)
    if markdown:
        thennow.page(printer, run, shown)
        return
    run["method"]["counters_shown"] = counters
    report.heading(printer, run)
    for name in shown:
        report.experiment(printer, run, name)
        thennow.show(then, printer, run, name)
    report.problems(printer, run)


# What to end with when interrupted; a list, since a signal handler has nowhere else to put it.
_interrupted_status = [EXIT_INTERRUPTED]


def _on_sigterm(number: int, frame: object) -> None:
    """What was measured is kept, as with Ctrl-C; only the exit status differs."""
    _interrupted_status[:] = [EXIT_TERMINATED]
    raise KeyboardInterrupt


def bench(
    experiments,
    *,
    routines,
    sizes,
    peers,
    states,
    ops,
    regions,
    isa,
    mixes,
    no_found_peers,
    quick,
    verify_first,
    pin,
    processes,
    rounds,
    seed,
    hang_limit,
    save,
    raw,
    as_json,
    then=False,
    every=False,
    budget=None,
    asked=None,
    run=None,
    plot=None,
    page=False,
    counters=False,
    **dimensions,
) -> int:
    thennow.check_json(then, as_json)
    picture = reporting.check_plot(plot)
    limit = whole.seconds(budget, every, processes, rounds)
    chosen = whole.chosen(experiments, every)
    thennow.check(then, [experiment.name for experiment in chosen])
    if then and not routines:
        chosen = [then_room.widened(experiment) for experiment in chosen]
    dimension_room.check_heeded(
        chosen,
        routines=routines,
        sizes=sizes,
        states=states,
        ops=ops,
        regions=regions,
        isa=isa,
        mixes=mixes,
        found=no_found_peers,
        **dimensions,
    )
    wanted = names.split(routines)
    # Source and destination have to fit together.
    product = dimension_room.product(chosen, sizes, mixes, ops, pin, dimensions)
    size_list = () if product else tuple(parse_size(t, buffers=2) for t in names.split(sizes))
    state_list = names.states(states)
    pin = dimension_room.check_pins(pin, product)
    mix_list = product.mixes if product else mix_room.gather(mixes)
    op_list = product.ops if product else names.ops(ops)
    region_list = names.regions(regions, mix_list, op_list)
    cpu = runner.cpu()
    names.check_isa(isa, cpu)
    catalogue = runner.routines()
    found = []
    if not no_found_peers and any("found" in experiment.takes for experiment in chosen):
        found = found_peers.found(without=map(peer_room.name_of, peers))
    specs = [*peers, *(peer.spec for peer in found)]
    peer_problems = peer_room.check(specs, hang_limit)
    good_specs = peer_room.without(specs, peer_problems)
    good_names = set(map(peer_room.name_of, good_specs))
    known = names.targets(catalogue, specs)
    for name in wanted:
        if name != "all" and names.unknown_routine(name, known):
            raise unknown("routine", name, known | {"all"}, "wherry list routines")
    request = Request(
        catalogue=catalogue,
        routines=tuple(name for name in wanted if name != "all"),
        all_routines="all" in wanted,
        peers=tuple(name for name in map(peer_room.name_of, peers) if name in good_names),
        ops=op_list,
        regions=region_list,
        isa=isa,
        mixes=mix_list,
        found=tuple(peer for peer in found if peer.name in good_names),
        caches=_caches(cpu),
        tier=cpu.get("tier") or "",
        sizes=size_list,
        states=state_list,
        product=product,
        quick=quick,
        processes=processes,
        rounds=rounds,
    )
    plan, left_out = whole.plan(chosen, request, every)
    path = Path(save) if save else stamp.run_path(sum(len(rows) for _, rows in plan))
    runfile.check_target(path)
    seed = secrets.randbits(32) if seed is None else seed
    job = _Bench(
        plan,
        request,
        path,
        raw=raw,
        then=then,
        asked=asked or {},
        left_out=left_out,
        course=whole.course_of(plan, request, limit, seed, run),
        as_json=as_json,
        explicit=bool(save),
        peers=good_specs,
        pin=pin,
        seed=seed,
        hang_limit=hang_limit,
        verify_first=verify_first,
        problems=peer_problems,
        counters=counters,
    )
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGTERM, _on_sigterm)
    status = job.run()
    reporting.after_bench(job.document, job.path, picture, page, aside=as_json)
    return status


def _caches(cpu: dict) -> dict[str, int]:
    """Sizes of the data caches that the runner believes in."""
    believed = cpu.get("believed") or {}
    return {
        level.removesuffix("d"): own["size"]
        for level, own in believed.items()
        if level in ("L1d", "L2", "L3") and isinstance(own, dict) and own.get("size")
    }


class _Bench:
    def __init__(
        self,
        plan: list[tuple[Experiment, list]],
        request: Request,
        path: Path,
        *,
        raw: bool,
        then: bool,
        asked: dict,
        left_out: dict[str, str],
        course: Course,
        as_json: bool,
        explicit: bool,
        peers: list[str],
        pin: int | None,
        seed: int,
        hang_limit: float,
        verify_first: bool,
        problems: list[Problem],
        counters: bool = False,
    ):
        self.plan = plan
        self.request = request
        self.path = path
        self.raw = raw
        self.then = then
        self.course = course
        self.as_json = as_json
        self.explicit = explicit
        self.named = False  # the default name is ours
        self.peers = peers
        self.pin = pin
        self.seed = seed
        self.hang_limit = hang_limit
        self.verify_first = verify_first
        self.printer = Printer()
        self.excluded: set[str] = set()
        self.samples: list[dict] = []
        self.began = time.monotonic()
        self.document = {
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
                "seed": seed,
                "pin": pin,
                "quick": request.quick,
                "peers": peers,
                "verified": verify_first,
                "resamples": stats.RESAMPLES,
                "asked": asked,
                "counters_shown": counters,
                "left_out": left_out,
            },
            "mixes": [mix.record() for mix in request.mixes if mix.sha256],
            "noise": {"floor": None},
            "ideas": {r["name"]: r.get("idea", "") for r in request.catalogue},
            "experiments": [],
            "rows": [],
            "cells": [],
            "problems": [asdict(problem) for problem in problems],
        }
        if course.run is not None:
            self.document, self.began, self.excluded = whole.go_on(course, self.document, path)
            self.samples = whole.samples_of(course, path) if raw else []

    def run(self) -> int:
        if not self.as_json:
            report.heading(self.printer, self.document)
        if self.verify_first:
            self._verify()
        for experiment, _ in self.plan:
            if self.document["interrupted"]:
                break
            if not self.course.is_complete(experiment.name):
                self._measure(experiment)
            elif not self.as_json:
                report.experiment(self.printer, self.document, experiment.name)
        if not self.document["rows"]:
            report.problems_to_stderr(self.document)
            if self.document["interrupted"]:
                print(
                    "wherry: interrupted before anything was measured; nothing saved",
                    file=sys.stderr,
                )
                return _interrupted_status[0]
            skipped = [p["message"] for p in self.document["problems"] if p["kind"] == "skip"]
            raise FailedError(": ".join(["nothing could be measured", *skipped[:1]]))
        self._save()
        return self._finish()

    def _verify(self) -> None:
        named = (name for _, rows in self.plan for row in rows for name in row.routines)
        known = set(map(peer_room.name_of, self.peers))
        arguments = [
            name for name in entries.targets(named, known) if name not in (*YARDSTICKS, *INLINED)
        ]
        for spec in self.peers:
            arguments += ["--peer", spec]
        with Progress("verify", "parts", 0) as progress:
            result = verification.verify(
                [*arguments, "--brief", "--seed", str(self.seed)],
                lambda done, total, what: progress.at(done, total, f"verify {what}"[:40]),
            )
        if result.interrupted:
            self.document["interrupted"] = True
            return
        for target, message in result.wrong_targets().items():
            name = re.split("[:]", target)[0]
            self.excluded.add(name)
            self.document["problems"].append(asdict(Problem("wrong", name, message)))
        if not self.as_json:
            report.verified(self.printer, result)

    def _campaign(self, rows, **how) -> Campaign:
        return Campaign(
            rows,
            peers=self.peers,
            pin=self.pin,
            seed=self.seed,
            excluded=self.excluded,
            hang_limit=self.hang_limit,
            raw=self.raw,
            counters=dimension_room.counter_set(),
            **how,
        )

    def _pilot(self, rows) -> None:
        pilot = self._campaign(rows, processes=1)
        pilot.run()
        if pilot.interrupted:
            raise KeyboardInterrupt

    def _measure(self, experiment: Experiment) -> None:
        began = time.monotonic()
        try:
            share = self.course.share(experiment, self.request, self._pilot)
        except KeyboardInterrupt:
            self.document["interrupted"] = True
            return
        rows = share.rows
        campaign = self._campaign(
            rows, processes=share.processes, only=share.only, deadline=share.deadline
        )
        self.course.begin(experiment, campaign)
        expected = expected_seconds([rows[i] for i in campaign.chosen], campaign.processes)
        if expected > TELL_FROM and sys.stderr.isatty():
            routines = {name for row in rows for name in row.routines} - YARDSTICKS.keys()
            print(
                f"wherry: {experiment.name}: {len(campaign.chosen)} rows, {len(routines)} routines, "
                f"{campaign.processes} processes; about {about(expected)}",
                file=sys.stderr,
            )
        draft = report.Draft(campaign, experiment, self.printer.width) if len(rows) < 100 else None
        with Progress(
            experiment.name, "cells", campaign.total_cells(), draft, self.course.clock
        ) as progress:
            campaign.watcher = CampaignProgress(progress) if sys.stderr.isatty() else Watcher()
            campaign.run()
        self.excluded |= campaign.excluded
        document = self.document
        document["interrupted"] = campaign.interrupted
        document["runner"] = {k: v for k, v in campaign.start.items() if k != "event"}
        first = 1 + max((row["row"] for row in document["rows"]), default=-1)
        new_rows, cells, floor = results.digest(campaign, first)
        document["rows"] += new_rows
        document["cells"] += cells
        document["problems"] += [
            asdict(p) | {"row": None if p.row is None else first + p.row} for p in campaign.problems
        ]
        summary = experiment.summary(campaign, share.request, first) if new_rows else None
        document["experiments"].append(
            ({} if summary is None else {"score": summary})
            | {
                "name": experiment.name,
                "processes": campaign.processes,
                "rounds": experiment.round_count(self.request),
                "seconds": round(time.monotonic() - began, 2),
                "noise_floor": floor,
                "voided": campaign.voided,
                "complete": not campaign.interrupted,
                "correction": results.correction(campaign, cells),
            }
            | campaign.rounds.record()
            | self.course.finished(experiment, campaign, time.monotonic() - began)
        )
        if undone := self.course.left_undone(experiment, campaign, document["experiments"][-1]):
            document["resume"] = undone
        uncontrolled = document["machine"]["uncontrolled"]
        known = {note["what"] for note in uncontrolled}
        own = rounds_room.uncontrolled(document["experiments"][-1])
        uncontrolled += [note for note in own if note["what"] not in known]
        floors = [e["noise_floor"] for e in document["experiments"] if e["noise_floor"] is not None]
        document["noise"]["floor"] = max(floors, default=None)
        document["finished"] = stamp.now()
        document["seconds"] = round(time.monotonic() - self.began, 2)
        if self.raw:
            self.samples += results.samples(campaign, experiment.name, first)
        if new_rows:
            # Before printing: a reader of our output that leaves must not cost what was measured.
            self._save(quiet=True)
        if not self.as_json:
            report.experiment(self.printer, document, experiment.name)
            thennow.show(self.then, self.printer, document, experiment.name)

    def _save(self, quiet: bool = False) -> None:
        """After each experiment, and at the end; a failure is told once, at the end."""
        # Ctrl-C now would throw away what it is meant to keep.
        with _deaf():
            if not self.explicit and not self.named:
                self._take_name()
            missing = len(self.document["experiments"]) < len(self.plan)
            try:
                runfile.write(
                    self.path,
                    self.document | {"interrupted": missing or self.document["interrupted"]},
                )
                if self.raw:
                    raw_path = self.path.with_name(self.path.name + ".raw.json.gz")
                    runfile.write(raw_path, {"run": self.path.name, "samples": self.samples})
            except FailedError:
                self._give_name_back()
                if not quiet:
                    if self.as_json:
                        self.printer.write(runfile.encode(self.document).decode())
                    raise

    def _take_name(self) -> None:
        """The default name, or the next one: another bench may have begun in the same second."""
        stem, dot_json, packed = self.path.name.rpartition(".json")
        with contextlib.suppress(OSError):  # the writing that follows tells of it
            for number in itertools.count(2):
                try:
                    self.path.touch(exist_ok=False)
                    self.named = True
                    return
                except FileExistsError:
                    self.path = self.path.with_name(f"{stem}-{number}{dot_json}{packed}")

    def _give_name_back(self) -> None:
        """An empty file only held the name; an older save stays."""
        with contextlib.suppress(OSError):
            if self.named and self.path.stat().st_size == 0:
                self.path.unlink()
                self.named = False

    def _finish(self) -> int:
        document = self.document
        if self.as_json:
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
        elif not self.as_json:
            self.printer.text(
                f"Saved as {self.path}" + (", raw samples beside it" if self.raw else "")
            )
        if document["interrupted"]:
            return _interrupted_status[0]
        bad = any(p["kind"] != "skip" for p in document["problems"])
        return EXIT_FAILED if bad else EXIT_OK


@contextlib.contextmanager
def _deaf():
    """Ctrl-C waits until the block is done."""
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
