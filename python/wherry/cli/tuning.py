"""`wherry tune`: from its options to the table of dimensions, the cliffs and the plan."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from wherry import machine, outputs, planfiles, plans, runfile, runner, shellwords, stamp
from wherry.campaign import Watcher
from wherry.cli.ending import interrupted_status
from wherry.cli.names import tell
from wherry.cli.printer import Printer
from wherry.cli.progress import CampaignProgress, Progress
from wherry.errors import EXIT_OK, FailedError
from wherry.plans import Plan
from wherry.replay import parts
from wherry.tables import Block, Column, Figure, layout
from wherry.tune import grids, whole
from wherry.tune.session import Asked, Dimension, Session, Tuned
from wherry.units import percent, plural, seconds_in_words, size_in_words

DEFAULT_OUTPUT = "wherry-plan.toml"


class Shown:
    """One bar after the other, as the stages come. A context manager."""

    def __init__(self) -> None:
        self._bar: Progress | None = None

    def __enter__(self) -> Shown:
        return self

    def __exit__(self, *reason: object) -> None:
        self._end()

    def _end(self) -> None:
        if self._bar is not None:
            self._bar.__exit__()
            self._bar = None

    def __call__(self, what: str, cells: int) -> Watcher:
        self._end()
        if not sys.stderr.isatty():
            return Watcher()
        self._bar = Progress(what, "cells", cells)
        self._bar.__enter__()
        return CampaignProgress(self._bar)


def given_mixes(
    given, caches: dict[str, int], seed: int = 1, told: Callable[[str], object] = tell
) -> tuple[list[Asked], int | None]:
    """Their parts, with their data where the recording found them, or hot and one cache further out, and the largest
    size of all. `seed`: of what is sampled of a recording. `told`: gets a line for each not taken as a whole."""
    asked, largest = [], None
    for text in given:
        subject = parts.subject(text, caches, seed)
        if subject.beyond:
            told(
                f"{subject.name}: {plural(subject.beyond, 'call')} of more than 1 GiB left out: nothing above that is "
                "measured"
            )
        for part in subject.parts:
            states = dict.fromkeys((part.states["hot"], part.states["warm"]))
            places = part.found_in or {(state, state): 1.0 for state in states}
            asked += [
                Asked(part.op, part.spec, *pair, part.calls * share, part.ascending)
                for pair, share in places.items()
            ]
            largest = max(largest or 0, part.largest)
    return asked, largest


def tune(given, output: str | None, *, quick: bool, seed: int | None, as_json: bool) -> int:
    path = Path(output or DEFAULT_OUTPUT)
    if output:
        outputs.refuse_inputs(path, dict.fromkeys(map(Path, given), "a mix that is read"))
    # Without -o, too: whether a plan comes of it is known only after minutes of measuring.
    outputs.check(path, planfiles.kind(path))
    reported = runner.cpu()
    if not reported.get("plan"):
        raise FailedError("wherry-run does not tell its default plan; install Wherry again")
    rows, largest = given_mixes(given, parts.caches_of(reported))
    seed = time.time_ns() % 2**32 if seed is None else seed
    extent = grids.QUICK if quick else grids.FULL
    with Shown() as progress:
        session = Session(
            reported, extent, mixes=rows, largest=largest, seed=seed, progress=progress
        )
        tuned = whole.tune(session)
    plan = _named(tuned, given)
    # Half of the dimensions are no plan that was proved.
    wanted = not tuned.interrupted and (tuned.better or output is not None)
    if wanted:
        planfiles.save(path, [plan], _head(tuned, given), [_notes(tuned)])
    if as_json:
        Printer().write(runfile.encode(_record(tuned, plan, path if wanted else None)).decode())
    else:
        _show(Printer(), tuned, given, path if wanted else None)
    if tuned.interrupted:
        print("wherry: interrupted; no plan was written", file=sys.stderr)
        return interrupted_status[0]
    return EXIT_OK


def _named(tuned: Tuned, given) -> Plan:
    for_what = " for " + Path(given[0]).stem if given else ""
    name = ("tuned" if tuned.better else "default") + for_what
    made = {"by": "wherry tune", "at": stamp.now(), "won": _won(tuned)}
    return tuned.plan.changed(name=name[:47], made=made)


def _won(tuned: Tuned) -> str:
    kept = [own.name for own in tuned.dimensions if own.kept]
    return ", ".join(kept) if kept else "nothing: equal to the default"


def _change(own: Dimension) -> str:
    from wherry.ab.verdict import change, interval

    proof = own.proof
    return f"{change(proof.ratio.median)} {interval(proof.ratio)}"


def _head(tuned: Tuned, given) -> str:
    what = f"the mix {', '.join(given)}" if given else "sizes and places of every kind"
    lines = [
        f"A plan of Wherry for {machine.cpu(machine.record())}, by {what}.",
        f"Won over the default: {_won(tuned)}. What wherry tune found stands above each key.",
        "Use it: wherry exec --plan FILE -- CMD. See whether CMD gains: wherry ab --plan FILE -- CMD.",
    ]
    return "\n".join(lines)


def _notes(tuned: Tuned) -> dict[str, str]:
    keys = {
        "choice": "choice",
        "copy: string instructions": "copy.rep_from",
        "copy: loop": "copy.source_lines_to",
        "copy: direction": "copy.backward_ahead",
        "set: string instructions": "set.rep_from",
        "copy: past the caches": "copy.stream_recent_from",
        "copy: parts": "copy.parts_from",
        "set: past the caches": "set.stream_recent_from",
    }
    notes = {}
    for own in tuned.dimensions:
        text = f"{own.outcome}; default: {own.default}"
        if own.found != own.default:
            text += f"; found: {own.found}"
        if own.proof is not None and own.proof.ratio is not None:
            text += f"\nheld-out cells: time {_change(own)}, noise ±{percent(own.proof.floor)}"
        notes[keys[own.name]] = text
    return notes


def sentence(tuned: Tuned, path: Path | None) -> str:
    if tuned.interrupted:
        return "Interrupted: what stands above is not the whole, and no plan comes of it."
    if not tuned.better:
        text = "The default is already right: nothing that was found beats it beyond the noise on cells held out."
        if tuned.above:
            text = (
                "Nothing that was found beats the default beyond the noise on cells held out. Calls of more than "
                f"{size_in_words(tuned.above)} were not measured"
                + (": they are without --quick." if tuned.above < grids.FULL.largest else ".")
            )
        if tuned.thin:
            little = "the time" if not tuned.impossible else "the memory and the time"
            text = (
                f"Nothing that was found beats the default, but no more than {tuned.rows} of {tuned.wanted} rows could "
                f"be measured in {little} there was. Try again when less runs here, or beside this machine"
                + (", and where more memory may be taken." if tuned.impossible else ".")
            )
        if path is None:
            return text + " No plan was written."
        return text + f" {path} holds a plan equal to the default."
    named = shellwords.path(str(path))
    return (
        f"The plan in {path} wins over the default in: {_won(tuned)}. "
        f"Use it: wherry exec --plan {named} -- CMD; see whether a program gains: "
        f"wherry ab --plan {named} -- CMD."
    )


def _show(printer: Printer, tuned: Tuned, given, path: Path | None) -> None:
    kept = ("CPU", "Caches", "Kernel", "libc", "Machine", "Uncontrolled")
    record = machine.record()
    pairs = [pair for pair in machine.heading(record) if pair[0] in kept]
    pairs.append(("Chosen by", ", ".join(given) if given else "sizes and places of every kind"))
    pairs.append(("Took", seconds_in_words(tuned.seconds)))
    printer.pairs(pairs)
    columns = [
        Column("", left=True),
        Column("default", left=True, wraps=True),
        Column("found", left=True, wraps=True),
        Column("expected", left=False),
        Column("held-out cells", left=True),
        Column("noise"),
        Column("", left=True),
    ]
    lines = []
    for own in tuned.dimensions:
        proof = own.proof
        told = proof is not None and proof.ratio is not None
        lines.append(
            [
                Figure(own.name),
                Figure(own.default),
                Figure("the same" if own.found == own.default else own.found),
                Figure(
                    "-" if own.gain is None or own.found == own.default else f"−{percent(own.gain)}"
                ),
                Figure(_change(own) if told else "-"),
                Figure(f"±{percent(proof.floor)}" if told else "-"),
                Figure(own.outcome, style="lead" if own.kept else ""),
            ]
        )
    printer.block(
        Block("What a plan says, and what was measured", layout(columns, lines, printer.width))
    )
    if tuned.cliffs:
        printer.block(Block("Cliffs: where a routine falls"))
        for cliff in tuned.cliffs:
            printer.paragraph(cliff.words(), indent="  ")
    for note in tuned.notes:
        printer.paragraph(note, "dim")
    printer.text()
    printer.paragraph(sentence(tuned, path), "lead" if tuned.better else "")


def _record(tuned: Tuned, plan: Plan, path: Path | None) -> dict:
    return {
        "format": "wherry-tune",
        "format_version": 1,
        "machine": machine.record(),
        "seconds": round(tuned.seconds, 2),
        "interrupted": tuned.interrupted,
        "rows": {
            "measured": tuned.rows,
            "wanted": tuned.wanted,
            "impossible": tuned.impossible,
        },
        "better": tuned.better,
        "verdict": sentence(tuned, path),
        "written": None if path is None else str(path),
        "default": {"choice": tuned.default.choice, **_or_null(tuned.default.thresholds)},
        "plan": {"name": plan.name, "choice": plan.choice, **_or_null(plan.thresholds)},
        "dimensions": [own.record() for own in tuned.dimensions],
        "cliffs": [own.record() for own in tuned.cliffs],
        "notes": tuned.notes,
    }


def _or_null(thresholds: dict[str, int]) -> dict[str, int | None]:
    """As wherry-run writes them: no number for what is off, or without an end."""
    return {name: None if value == plans.OFF else value for name, value in thresholds.items()}
