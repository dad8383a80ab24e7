"""`wherry tune --glibc`: the one GLIBC_TUNABLES line that wins here, or the word that none does."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from wherry import machine, runfile, runner
from wherry.ab.verdict import change, interval
from wherry.cli import tuning
from wherry.cli.ending import interrupted_status
from wherry.cli.printer import Printer
from wherry.cli.progress import Progress
from wherry.errors import EXIT_OK, WherryError
from wherry.replay import parts
from wherry.tables import Block, Column, Figure, layout
from wherry.tune import libc, tunables
from wherry.tune.prove import Proof
from wherry.units import percent, seconds_in_words, size_in_words


def tune(given, output: str | None, *, quick: bool, seed: int | None, as_json: bool) -> int:
    if output:
        raise WherryError("--glibc prints one line and writes no plan; leave out -o")
    available = tunables.here()
    reported = runner.cpu()
    extent = libc.QUICK if quick else libc.FULL
    caches = parts.caches_of(reported)
    rows, largest = tuning.given_mixes(given, caches)
    # A published distribution is drawn anew in each process; of a recording the samples are what was made of it here.
    others, _ = tuning.given_mixes(given, caches, seed=2, told=lambda _: None)
    mix_rows, held_out = (
        [own.row(("libc",), extent.rounds, 100) for own in asked] for asked in (rows, others)
    )
    seed = time.time_ns() % 2**32 if seed is None else seed
    with Progress("glibc", "processes", 1) as progress:
        found = libc.Search(
            extent,
            caches,
            reported.get("last_level") or 16 << 20,
            mix_rows=mix_rows,
            held_out_mix_rows=held_out,
            largest=largest,
            seed=seed,
            progress=lambda what, done, total: progress.at(done, total, what),
        ).run(available)
    if as_json:
        Printer().write(runfile.encode(_record(found)).decode())
    else:
        _show(Printer(), found, given)
    if found.interrupted:
        print("wherry: interrupted", file=sys.stderr)
        return interrupted_status[0]
    return EXIT_OK


def sentence(found: libc.Found) -> str:
    if found.interrupted:
        return "Interrupted: not all was tried."
    late = [own.name for own in found.settings if own.late]
    lacking = f" There was too little time for {', '.join(late)}." if late else ""
    if fewer := [own.name for own in found.settings if own.tried < own.values and not own.late]:
        lacking += f" Of {', '.join(fewer)} not all values were tried."
    if found.line is None:
        if lacking:
            return f"No setting was proved to beat your libc's default.{lacking}"
        return (
            "Your libc is already tuned: no setting that was tried beats its default beyond the noise "
            "on cells held out."
        )
    said = f"On {found.proof.cells} cells held out libc's time changes by {_told(found.proof)} with it."
    if found.apart is not None:
        why = (
            "there was too little time to prove them in one line"
            if found.apart_proof is None
            else f"in one line they did not hold ({_told(found.apart_proof)}: {found.apart_proof.call})"
        )
        said += f" It is the one that gains most; others were proved by themselves, but {why}."
    return said + lacking


def _told(proof: Proof) -> str:
    return f"{change(proof.ratio.median)} {interval(proof.ratio)}, noise ±{percent(proof.floor)}"


def _value(text: str | None) -> str:
    """The value of `NAME=VALUE`, for a table."""
    if text is None:
        return "-"
    value = text.partition("=")[2]
    if not value.isdigit():
        return value
    return "never" if int(value) >= 1 << 40 else size_in_words(int(value))


def _show(printer: Printer, found: libc.Found, given) -> None:
    kept = ("CPU", "Caches", "Kernel", "libc", "Machine", "Uncontrolled")
    pairs = [pair for pair in machine.heading(machine.record()) if pair[0] in kept]
    pairs.append(("Chosen by", ", ".join(map(str, map(Path, given))) if given else "all sizes"))
    pairs.append(("Took", seconds_in_words(found.seconds)))
    printer.pairs(pairs)
    columns = [
        Column("tunable", left=True),
        Column("default"),
        Column("best tried"),
        Column("expected"),
        Column("held-out cells", left=True),
        Column("noise"),
        Column("", left=True),
    ]
    lines = []
    for own in found.settings:
        proof = own.proof
        told = proof is not None and proof.ratio is not None
        lines.append(
            [
                Figure(own.name),
                Figure("-" if own.default is None else size_in_words(own.default)),
                Figure(_value(own.best)),
                Figure("-" if own.expected is None else change(1 - own.expected)),
                Figure(f"{change(proof.ratio.median)} {interval(proof.ratio)}" if told else "-"),
                Figure(f"±{percent(proof.floor)}" if told else "-"),
                Figure(own.outcome),
            ]
        )
    printer.block(
        Block("glibc's tunables, time against its default", layout(columns, lines, printer.width))
    )
    printer.text()
    if found.line is not None:
        printer.text(f"GLIBC_TUNABLES={found.line}", "lead")
    printer.paragraph(sentence(found))
    if found.line is not None:
        # On one line, however long: it is to be copied.
        printer.text("Whether a program gains:")
        printer.text(f"  wherry ab --tunables {found.line} -- CMD")


def _record(found: libc.Found) -> dict:
    return {
        "format": "wherry-tune-glibc",
        "format_version": 1,
        "machine": machine.record(),
        "seconds": round(found.seconds, 2),
        "interrupted": found.interrupted,
        "line": None if found.line is None else f"GLIBC_TUNABLES={found.line}",
        "verdict": sentence(found),
        "proof": found.proof and found.proof.record(),
        "apart": None if found.apart is None else f"GLIBC_TUNABLES={found.apart}",
        "apart_proof": found.apart_proof and found.apart_proof.record(),
        "settings": [own.record() for own in found.settings],
    }
