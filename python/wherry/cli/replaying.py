"""`wherry replay`: from a mix to the table, the prediction and the verdict."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import asdict
from pathlib import Path

from wherry import (
    found_peers,
    jobcontrol,
    machine,
    outputs,
    planfiles,
    plans,
    planuse,
    results,
    runfile,
    runner,
    stamp,
)
from wherry.ab import record
from wherry.campaign import Watcher
from wherry.cell import Problem
from wherry.cli import peers as peer_room
from wherry.cli import streams
from wherry.cli.ending import interrupted_status
from wherry.cli.names import tell
from wherry.cli.printer import Printer
from wherry.cli.progress import CampaignProgress, Progress
from wherry.errors import EXIT_FAILED, EXIT_OK, FailedError, WherryError
from wherry.plans import Plan
from wherry.recording import host, trial
from wherry.replay import loading, parts, predict, totals
from wherry.replay.predict import Prediction
from wherry.tables import Block, Column, Figure, layout
from wherry.tune.measuring import PlanCampaign
from wherry.units import ns_label, percent, plural

WHERRY, LADDER = "wherry", "ladder"
PROCESSES, ROUNDS, BATCH_US = 4, 9, 200
PEER_LIMIT = 60.0  # seconds to load one
QUICK_PROCESSES, QUICK_ROUNDS, QUICK_BATCH_US = 1, 5, 50


def replay(
    mix,
    *,
    plan_files,
    peers,
    no_found_peers,
    noise,
    quick,
    processes,
    rounds,
    seed,
    save,
    as_json,
) -> int:
    if "WHERRY_PLAN" in os.environ:
        streams.line_of(f"wherry replay: {planuse.NOT_USED}", aside=True)
        del os.environ["WHERRY_PLAN"]
    # Files of calls in the temporary directory go with the process, when it ends by itself.
    reported = runner.cpu()
    seed = time.time_ns() % 2**32 if seed is None else seed
    if save:
        outputs.check(Path(save), outputs.RUN)
    subject = parts.subject(mix, parts.caches_of(reported), here=host.here(reported))
    given, usable, identities = _plans(plan_files, reported)
    specs, broken = _peers(peers, no_found_peers, {totals.LIBC, WHERRY, *given})
    routines = [totals.LIBC, WHERRY, *given, *(spec.partition("=")[0] for spec in specs)]
    rows, places = totals.rows(
        subject,
        routines,
        rounds or (QUICK_ROUNDS if quick else ROUNDS),
        QUICK_BATCH_US if quick else BATCH_US,
        parts.HEATS,
    )
    started, began = stamp.now(), jobcontrol.clock()
    campaign = PlanCampaign(
        rows,
        given,
        processes=processes or (QUICK_PROCESSES if quick else PROCESSES),
        peers=specs,
        seed=seed,
    )
    with (
        jobcontrol.counting(),
        Progress(subject.name, "cells", campaign.total_cells()) as progress,
    ):
        campaign.watcher = CampaignProgress(progress) if sys.stderr.isatty() else Watcher()
        campaign.run()
    found = totals.add_up(campaign, subject, places, routines)
    ceiling = subject.ceiling
    predictions = {}
    if ceiling:
        predictions = _predictions(subject, routines[1:], identities, found, noise / 100)
    said = (
        predict.verdict(ceiling, predictions, found, usable, noise / 100, _of_loading(subject))
        if found
        else "Nothing was measured."
    )
    if save and not campaign.interrupted:
        runfile.write(Path(save), _run(campaign, started, jobcontrol.clock() - began, seed))
    bad = broken + [p for p in campaign.problems if p.kind != "skip"]
    if as_json:
        told = bad + [p for p in campaign.problems if _of_a_whole_row(p)]
        Printer().write(runfile.encode(_record(subject, found, predictions, said, told)).decode())
    else:
        _show(Printer(), subject, campaign, places, routines, found, predictions, said)
    for problem in bad:
        who = f"{problem.routine}: " if problem.routine else ""
        print(f"wherry: {who}{problem.kind}: {problem.message}", file=sys.stderr)
    if campaign.interrupted:
        print(
            "wherry: interrupted; the totals are of what was measured until then", file=sys.stderr
        )
        return interrupted_status[0]
    if not found and not bad:
        skips = dict.fromkeys(p.message for p in campaign.problems)
        why = (
            "; ".join(skips)
            or "no round was free of disturbance; try again when the machine does less"
        )
        print(f"wherry: nothing was measured: {why}", file=sys.stderr)
    return EXIT_FAILED if bad or not found else EXIT_OK


def _plans(files, reported: dict) -> tuple[dict[str, Plan], dict[str, str], dict[str, str]]:
    """The plans beside the default by the names of their columns; of each how a program is given it, and as what a
    trial would know it."""
    identities = {WHERRY: trial.DEFAULT_PLAN}
    own = plans.default(reported)
    usable = {WHERRY: "wherry ab -- CMD"}
    found = {}
    ladder = own.changed(choice="avx512_ladder")
    if own.choice != ladder.choice and not plans.lacks(ladder, reported):
        found[LADDER] = ladder
        usable[LADDER] = (
            'wherry plan default -o FILE, choice = "avx512_ladder" in it, wherry ab --plan FILE -- CMD'
        )
    for text in files:
        path = Path(text)
        plan = plans.for_this_cpu(planfiles.read(path), reported)
        if plan is None:
            raise WherryError(
                f"--plan {text}: it is not for this CPU; wherry plan show {text} tells for which"
            )
        own_name = "".join(c if c.isalnum() or c in "_-" else "_" for c in path.stem)[:24] or "plan"
        name = own_name
        while name in found or name in (WHERRY, totals.LIBC):
            name += "~"
        if name != own_name:
            tell(f"{name} is the plan {text}")
        found[name] = plan
        identities[name] = trial.identity(planuse.compiled(path))
        usable[name] = f"wherry ab --a libc --b plan:{text} -- CMD"
    return found, usable, identities


# Of loading the library, as a share of the program's time.
LEAST_TOLD = 0.0005


def _predictions(subject, routines, identities, found, noise) -> dict[str, Prediction]:
    """Of what was tried in the program by that; of the others by what is measured here, as far as that holds for what
    was tried."""
    predictions, measured, tried = {}, None, None
    for name in routines:
        own = predict.predict(name, subject.ceiling, found, noise)
        turned = None
        if subject.tried_plan is not None and identities.get(name) == subject.tried_plan:
            turned = subject.turned
            if turned and turned.tells:
                measured = own
                own = tried = predict.of_turns(
                    name,
                    turned,
                    noise,
                    subject.outlasting,
                    subject.ceiling["cpu_s"],
                    subject.untold,
                )
            elif subject.tried:
                measured = own
                tried = own = predict.predict(name, subject.ceiling, found, noise, subject.tried)
        if own is not None and not own.turned:
            own = predict.by_calls(own, subject.ceiling, turned, noise)
        if own is not None:
            predictions[name] = own
    if measured and tried:
        for name, own in predictions.items():
            if not own.tried:
                predictions[name] = predict.as_the_trial(own, measured, tried, noise)
    share = _loading(subject)
    return {
        name: predict.with_loading(predict.within_ceiling(own, subject.ceiling), share, noise)
        for name, own in predictions.items()
    }


def _loading(subject) -> loading.Cost:
    """Share of the program's CPU time that it takes to load one more library in each of its processes."""
    cpu_s = (subject.ceiling or {}).get("cpu_s", 0)
    if cpu_s <= 0 or not subject.processes:
        return loading.NOTHING
    try:
        return loading.seconds().times(subject.processes / cpu_s)
    except (FailedError, OSError):  # it is not built, or nothing can be started here
        return loading.NOTHING


def _of_loading(subject) -> str:
    """In words; empty where it is too little to be told."""
    share = _loading(subject).middle
    if share < LEAST_TOLD:
        return ""
    processes = "one process" if subject.processes == 1 else f"{subject.processes:,} processes"
    return f"with {percent(share)} for loading the library into {processes}"


def _peers(given, without_found: bool, taken: set[str]) -> tuple[list[str], list[Problem]]:
    """Those that can be measured, and what is wrong with the others of those that were found."""
    names = {peer_room.name_of(spec) for spec in given}
    for name in names & taken:
        raise WherryError(f"--peer {name}=...: the name {name} is taken; choose another")
    found = [] if without_found else found_peers.found(names | taken)
    found = [peer for peer in found if "memcpy" in peer.has or not peer.has]
    specs = [*given, *(peer.spec for peer in found)]
    broken = peer_room.check(specs, PEER_LIMIT, {peer.name for peer in found})
    for problem in broken:
        if problem.routine in names:
            raise FailedError(f"peer {problem.routine} {problem.message}; leave it out")
    return peer_room.without(specs, broken), broken


def _ratio_text(own: totals.Total | None) -> str:
    if own is None or own.ratio is None:
        return "-"
    if not own.told:
        return f"{own.ratio.median:.2f}"
    return f"{own.ratio.median:.2f} [{own.ratio.low:.2f}, {own.ratio.high:.2f}]"


def _of_a_whole_row(problem: Problem) -> bool:
    """That it cannot be measured here, with no routine."""
    return problem.kind == "skip" and not problem.routine


def _left_out(campaign, subject, places) -> list[str]:
    """Where the data would have been and of how many parts there is no figure, and why of the first."""
    reasons = {p.row: p.message.partition("; ")[0] for p in campaign.problems if _of_a_whole_row(p)}
    found = []
    for heat in parts.HEATS:
        rows = [places[number, heat] for number in range(len(subject.parts))]
        if missing := [row for row in rows if row in reasons]:
            found.append(
                f"{heat}: {len(missing)} of {plural(len(rows), 'part')} cannot be measured here: {reasons[missing[0]]}"
            )
    return found


def _parts_block(printer, subject, campaign, places, routines) -> Block:
    """libc's nanoseconds a call and Wherry's time over it, by op, band and heat."""
    columns = [
        Column("op", left=True),
        Column("bytes", left=True),
        Column("calls"),
        Column("mean", "B"),
        *(Column(f"libc, {heat}", "ns") for heat in parts.HEATS),
        *(Column(f"wherry, {heat}", "ns") for heat in parts.HEATS),
    ]
    timed = any(part.took for part in subject.parts)
    if timed:
        columns += [Column("libc, in the program", "ns"), Column("upwards", left=True)]
    lines = []
    from wherry.tune.measuring import nanoseconds

    for number, part in enumerate(subject.parts):
        share = part.calls / subject.calls
        line = [
            Figure(part.op),
            Figure(part.band),
            Figure(percent(share)),
            Figure(f"{part.mean:.0f}"),
        ]
        for name in (totals.LIBC, WHERRY):
            for heat in parts.HEATS:
                ns = nanoseconds(campaign, places[number, heat], name)
                line.append(Figure("-" if ns is None else ns_label(ns)))
        if timed:
            line.append(Figure("-" if part.took is None else ns_label(part.took)))
            line.append(Figure("-" if part.ascending == "none" else part.ascending))
        lines.append(line)
    return Block(
        "A call of the mix, in nanoseconds",
        layout(columns, lines, printer.width, keep=2),
        notes=[
            "hot: in the nearest cache that holds such calls; warm: one further out; cold: in memory",
            *(
                [
                    "in the program: what the recorder timed; upwards: the side on which most calls went on where one "
                    "shortly before had been, and do here"
                ]
                if timed
                else []
            ),
            *_left_out(campaign, subject, places),
        ],
    )


def _show(printer, subject, campaign, places, routines, found, predictions, said) -> None:
    kept = ("CPU", "Kernel", "libc", "Uncontrolled")
    pairs = [pair for pair in machine.heading(machine.record()) if pair[0] in kept]
    pairs.append(("Mix", f"{subject.name}, {plural(len(subject.parts), 'part')}"))
    if subject.command:
        shown = " ".join(subject.command)
        pairs.append(("Recorded from", shown if len(shown) < 160 else shown[:157] + "..."))
    printer.pairs(pairs)
    printer.block(_parts_block(printer, subject, campaign, places, routines))
    if subject.elsewhere and subject.ceiling:
        printer.paragraph(
            f"Recorded on another machine: {subject.elsewhere}. What was tried and timed in the program there tells "
            "how much of its time are copies, but not what other routines make of it here; record it here for that."
        )
    if subject.beyond:
        calls = "call of more bytes is" if subject.beyond == 1 else "calls of more bytes are"
        printer.paragraph(f"{subject.beyond:,} {calls} left out: nothing above 1 GiB is measured.")
    columns = [Column("", left=True)]
    heats = [*parts.HEATS, *([totals.TIMED] if totals.TIMED in found else [])]
    columns += [Column("as timed" if heat == totals.TIMED else heat, left=True) for heat in heats]
    if predictions:
        columns.append(Column("of the program's CPU time", left=True, wraps=True))
    lines = []
    for name in routines[1:]:
        own = {heat: found.get(heat, {}).get(name) for heat in heats}
        if not any(own.values()):
            continue
        marks = {"faster": "lead", "slower": "bad"}
        line = [Figure(name)]
        for heat in heats:
            total = own[heat]
            line.append(
                Figure(_ratio_text(total), style=marks.get(total.call, "") if total else "")
            )
        if predictions:
            line.append(Figure(_prediction(predictions.get(name))))
        lines.append(line)
    floors = [
        f"{'as timed' if heat == totals.TIMED else heat} ±{percent(next(iter(own.values())).floor)}"
        for heat, own in found.items()
        if own and heat in heats
    ]
    notes = [f"noise: {', '.join(floors)}"] if floors else []
    if any(own.tried for own in predictions.values()):
        notes.append(
            "tried: by how fast the whole of the recorded program was in turns with these routines"
            if any(own.turned for own in predictions.values())
            else "tried: of calls of more than 1 KiB, by what they took when the recorded program gave some of them to "
            "these routines; the interval takes in how far a program may be from its single calls"
        )
    if predictions and (more := _of_loading(subject)):
        notes.append(more)
    printer.block(
        Block(
            "Time of all calls over libc's, with a 95 % interval",
            layout(columns, lines, printer.width),
            notes=notes,
        )
    )
    printer.text()
    printer.paragraph(said)


def _prediction(own: Prediction | None) -> str:
    if own is None:
        return "-"
    tried = ", tried" if own.tried else ""
    return own.words() + tried + ("" if own.measurable else ", not measurable")


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")


def _record(subject, found, predictions, said, bad) -> dict:
    return {
        "format": "wherry-replay",
        "format_version": 1,
        "machine": machine.record(),
        "mix": subject.name,
        "elsewhere": subject.elsewhere or None,
        "ceiling": subject.ceiling,
        "totals": {
            heat: {
                name: {
                    "seconds": _rounded(own.seconds),
                    "ratio": own.ratio
                    and {
                        key: None if value is None else _rounded(value)
                        for key, value in own.ratio.as_dict().items()
                    },
                    "noise_floor": _rounded(own.floor),
                    "call": own.call,
                }
                for name, own in each.items()
            }
            for heat, each in found.items()
        },
        "predictions": {
            name: {
                key: value if isinstance(value, bool | str) else _rounded(value)
                for key, value in asdict(own).items()
            }
            for name, own in predictions.items()
        },
        "verdict": said,
        "problems": [asdict(problem) for problem in bad],
    }


def _run(campaign, started: str, seconds: float, seed: int) -> dict:
    run = record.skeleton(totals.EXPERIMENT, ["wherry", *sys.argv[1:]], seed, started, seconds)
    run["rows"], run["cells"], floor = results.digest(campaign, 0)
    run["noise"]["floor"] = floor
    run["runner"] = {k: v for k, v in campaign.start.items() if k != "event"}
    run["method"]["peers"] = campaign.peers
    run["problems"] = [asdict(p) for p in campaign.problems]
    run["experiments"].append(
        {
            "name": totals.EXPERIMENT,
            "processes": campaign.processes,
            "rounds": max(row.rounds for row in campaign.rows),
            "seconds": round(seconds, 2),
            "noise_floor": floor,
            "voided": campaign.voided,
            "complete": not campaign.interrupted,
        }
    )
    return run
