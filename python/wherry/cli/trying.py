"""`wherry ab`: from its options to the table, the verdict and the run file."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path

from wherry import commands, libctunables, planuse, preloading, runfile, stamp, standardinput
from wherry.ab import figures, record, running, sides, turns, verdict
from wherry.cli import keeping, streams
from wherry.cli.ending import interrupted_status
from wherry.cli.printer import Printer
from wherry.cli.progress import Progress
from wherry.errors import EXIT_OK, FailedError, WherryError, printable
from wherry.tables import Block, Column, Figure, layout
from wherry.units import percent, plural, seconds_in_words, size_in_words

DEFAULT_RUNS, LEAST_RUNS = 20, 8
RUN_LIMIT = 600.0
UNREAD = "what is on standard input goes to no run; --stdin FILE gives each the whole of a file"


def ab(words, *, runs, seconds, limit, by, force, seed, save, as_json, **options) -> int:
    base = preloading.own_environment()
    if "WHERRY_PLAN" in base:
        streams.line_of(f"wherry ab: {planuse.NOT_USED}", aside=True)
    pair = _sides(options, base)
    _examine(words, pair, force)
    seed = time.time_ns() % 2**32 if seed is None else seed
    program = _program(words, limit or RUN_LIMIT, options)
    path = Path(save) if save else stamp.path("-ab.json")
    keeping.check(path, explicit=bool(save))
    unread = program.stdin is None and standardinput.waits()
    if unread:
        streams.line_of(f"wherry ab: {UNREAD}", aside=True)
    started = stamp.now()
    wanted = -(-(runs or DEFAULT_RUNS) // 2)
    # What was asked for by number is measured; else a slow program gets fewer.
    least = wanted if runs else LEAST_RUNS // 2
    with Progress(Path(words[0]).name, "runs", wanted * turns.RUNS_A_ROUND + 2) as progress:
        taken = turns.take(
            program,
            pair,
            base,
            rounds=wanted,
            least=min(least, wanted),
            seconds=seconds,
            same_output=options["same_output"],
            seed=seed,
            progress=progress.at,
        )
    # What fills a pipe may begin later than we do.
    if program.stdin is None and not unread and standardinput.waits():
        streams.line_of(f"wherry ab: {UNREAD}", aside=True)
    found = figures.all_of(taken.rounds, seed)
    said = (
        verdict.sentence(*pair, found[by], len(taken.rounds))
        if found
        else "Interrupted before a round was done."
    )
    document = record.document(
        taken, found, by, said, words, ["wherry", *sys.argv[1:]], seed, started
    )
    # Saved before it is shown, as a reader of our output may leave; shown all the same where that fails.
    unsaved = None
    if found:
        try:
            path = keeping.save(path, document, explicit=bool(save))
        except FailedError as error:
            unsaved = error
    printer = Printer()
    if as_json:
        printer.write(runfile.encode(document).decode())
    elif found:
        _show(printer, words, taken, found, by, said, document, runs)
        if not unsaved:
            printer.text(f"Saved as {printable(str(path))}")
    if unsaved:
        raise unsaved
    if taken.interrupted:
        after = plural(len(taken.rounds), "round")
        print(f"wherry: interrupted after {after}", file=sys.stderr)
        return interrupted_status[0]
    return EXIT_OK


def _sides(options: dict, base: dict[str, str]) -> tuple[sides.Side, sides.Side]:
    a, b, plans, tunables = (options.pop(key) for key in ("a", "b", "plans", "tunables"))
    if sum(map(bool, (a or b, plans, tunables))) > 1:
        raise WherryError(
            "--a and --b, --plan, and --tunables exclude each other; give one of them"
        )
    for given, flag in ((plans, "--plan"), (tunables, "--tunables")):
        if len(given) > 2:
            raise WherryError(f"{flag} takes one or two; ab compares two sides")
    if plans:
        a, b = [shlex.quote(f"plan:{plan}") for plan in ("default", *plans)[-2:]]
    elif tunables:
        a, b = ("libc", *map(_tunables, tunables))[-2:]
    return sides.pair(a or "libc", b or "dropin", base)


def _tunables(given: str) -> str:
    """One side of --tunables, which is nothing but a line of tunables: as NAME=VALUE it would be any variable."""
    line = given.removeprefix(f"{sides.TUNABLES}=").strip()
    if not line.startswith("glibc.") or len(line.split()) > 1:
        raise WherryError(
            f"--tunables '{given}': give a line for GLIBC_TUNABLES, as in glibc.cpu.NAME=VALUE:glibc.cpu.NAME=VALUE"
        )
    return shlex.quote(line)


def _examine(words, pair: tuple[sides.Side, sides.Side], force: bool) -> None:
    """Before anything runs: is there such a program, and can the sides differ for it?"""
    command, *arguments = words
    found = commands.examine(command, arguments=arguments)
    if found.exit_code:
        raise WherryError(
            f"{commands.named(command)}: {found.reason}; give a program that can be run"
        )
    if found.helps:
        for side in pair:
            sides.refuse_left_out(side, found.program)
    if found.helps or force:
        return
    why = found.reason if any(side.preloads for side in pair) else None
    if why is None and pair[0].environment.get(sides.TUNABLES) != pair[1].environment.get(
        sides.TUNABLES
    ):
        # What nothing can be preloaded into may go by these all the same.
        why = libctunables.why_not_followed(found.kind, found.program, found.reason)
    if why is not None:
        raise WherryError(
            f"nothing can be changed in {command}: {why}; both sides would be the same (--force runs it anyway)"
        )


def _program(words, limit: float, options: dict) -> running.Program:
    stdin = Path(options["stdin"]) if options["stdin"] else None
    if stdin is not None and not stdin.is_file():
        why = (
            "it is no regular file, which each run could read from its beginning"
            if stdin.exists()
            else "there is no such file"
        )
        raise WherryError(f"--stdin {stdin}: {why}")
    if stdin is not None and not os.access(stdin, os.R_OK):
        raise WherryError(f"--stdin {stdin}: it may not be read; give another, or mend its mode")
    keep = Path(options["keep"]) if options["keep"] else None
    if keep is not None:
        try:
            keep.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WherryError(f"--keep {keep}: {error.strerror}; give a directory") from None
        if not os.access(keep, os.W_OK | os.X_OK):
            raise WherryError(
                f"--keep {keep}: nothing may be written there; give another directory"
            )
        if stdin is not None and stdin.resolve().parent == keep.resolve():
            raise WherryError(
                f"--keep {keep}: that is where --stdin {stdin} lies, which a run's output might replace; give another "
                "directory"
            )
    return running.Program(
        list(words),
        stdin,
        options["prepare"],
        keep,
        options["same_output"],
        limit,
        options["expect"],
    )


def _amount(metric: str, value: float) -> str:
    if metric == "peak":
        return size_in_words(value)
    return f"{value:.3f} s" if value >= 1 else f"{value * 1e3:.2f} ms"


def _show(printer, words, taken, found, by, said, document, asked: int | None) -> None:
    a, b = taken.sides
    shown = " ".join(words)
    rounds = len(taken.rounds)
    printer.pairs(
        [
            ("Program", shown if len(shown) <= 200 else shown[:197] + "..."),
            ("A", f"{a.name} ({a.what})" if a.name != a.what else a.name),
            ("B", f"{b.name} ({b.what})" if b.name != b.what else b.name),
            (
                "Runs",
                f"{2 * rounds} of each in {plural(rounds, 'round')} of A B B A or B A A B, "
                f"{seconds_in_words(taken.seconds)}"
                + ("; the time was up" if taken.out_of_time else "")
                + (f"; {asked} were asked for, and a round has two" if asked and asked % 2 else ""),
            ),
            *_machine(document),
        ]
    )
    columns = [
        Column("", left=True),
        Column(a.name),
        Column(b.name),
        Column("change"),
        Column("95 % interval"),
        Column("noise"),
        Column("B is", left=True),
    ]
    lines = []
    for metric in figures.METRICS:
        own = found[metric]
        # The line of the verdict says what the verdict does.
        small = figures.negligible(found, metric) and (metric != by or own.ratio is None)
        alone = small or rounds < figures.LEAST_SPREAD
        lines.append(
            [
                Figure(figures.NAMES[metric]),
                Figure(_amount(metric, own.a)),
                Figure(_amount(metric, own.b)),
                Figure("-" if small else verdict.change(own.ratio.median)),
                Figure("-" if alone else verdict.interval(own.ratio)),
                Figure("-" if alone else f"±{percent(own.floor)}"),
                Figure("too little to tell" if small else verdict.word(own, rounds)),
            ]
        )
    printer.block(Block("", layout(columns, lines, printer.width)))
    printer.text()
    printer.paragraph(said, "lead" if found[by].call == "faster" else "")
    for remark in verdict.remarks(a, b, found, taken.stolen):
        printer.paragraph(remark, "dim")


def _machine(document: dict) -> list[tuple[str, str]]:
    from wherry import machine

    kept = ("CPU", "Kernel", "libc", "Uncontrolled")
    return [pair for pair in machine.heading(document["machine"]) if pair[0] in kept]
