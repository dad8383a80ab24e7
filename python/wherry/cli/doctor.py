"""`wherry doctor`: what this machine is, who believes what of it, and what may spoil a measurement here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from wherry.cli.printer import Printer


def _tell(printer: Printer, item: Mapping[str, str]) -> None:
    """What it is, why it matters and what to do."""
    printer.paragraph(item["what"], "bad", indent="  ")
    printer.paragraph(f"why it matters: {item['why']}", indent="    ")
    printer.paragraph(f"what to do: {item['do']}", indent="    ")


@click.command(epilog="Example: wherry doctor --json > machine.json")
@click.option("--json", "as_json", is_flag=True, help="The machine record as JSON, for a program.")
def command(as_json: bool) -> None:
    """Shows what this machine is, every source of cache sizes and thresholds, which one libc and Wherry believe and
    what is wrong with it, the plan in force, what is not under control, and what to run next."""
    from wherry import diagnosis, machine, runner
    from wherry.cli.printer import Printer
    from wherry.runfile import encode
    from wherry.tables import Block
    from wherry.units import size_in_words

    printer = Printer()
    record = machine.record()
    libc = diagnosis.libc()
    named = os.environ.get("WHERRY_PLAN", "")
    found = diagnosis.findings(record, libc, named)
    told = runner.sharing()
    shared = diagnosis.sharing(told, record["smt"])
    then, what_for = diagnosis.next_command(record, named)
    if as_json:
        record["doctor"] = {
            "libc": libc,
            "findings": [finding._asdict() for finding in found],
            "sharing": told and {"cpu": told["cpu"], "others": told["others"]},
            "next": then,
        }
        printer.write(encode(record).decode())
        return
    below = ("Caches", "Plan", "Uncontrolled")
    lines = [pair for pair in machine.heading(record) if pair[0] not in below]
    # The kernel names ERMS and FSRM alone.
    has = record["reported"].get("features", {})
    flags = [name.upper() for name in ("erms", "fsrm", "fzrm", "fsrs", "fsrc") if has.get(name)]
    lines.insert(1, ("Strings", ", ".join(flags) or "no ERMS, FSRM, FZRM"))
    memory = record["memory"]
    if memory["total"] and memory["available"]:
        lines.append(
            (
                "Memory",
                f"{size_in_words(memory['total'])}, {size_in_words(memory['available'])} free",
            )
        )
    load = " ".join(f"{value:.2f}" for value in record["load"])
    lines.append(("Load", f"{load} (1, 5, 15 min)" if load else "not told here"))
    printer.pairs(lines)
    printer.block(Block("Caches by source"))
    sources = [
        (f"  {source}", words + (f"  <- believed for {levels}" if levels else ""))
        for source, words, levels in machine.caches_by_source(record)
    ]
    sources += [(f"  {label}", words) for label, words in diagnosis.caches_of_libc(libc)]
    printer.pairs(sources)
    printer.block(Block("Thresholds"))
    limits = [(f"  {who}", words) for who, words in diagnosis.thresholds(record, libc)]
    if build := diagnosis.build_in_words(record["reported"]):
        limits.append(("  Build", build))
    plan = record["reported"].get("plan")
    if plan:
        limits.append(("  Plan", plan["status"]))
    printer.pairs(limits)
    printer.block(Block("What is wrong"))
    if not found:
        printer.text("  nothing that can be seen from here")
    for finding in found:
        _tell(printer, finding._asdict())
    printer.block(Block("Not under control"))
    loose = [*record["uncontrolled"], *([shared._asdict()] if shared else [])]
    if not loose:
        printer.text("  nothing that is known")
    for item in loose:
        _tell(printer, item)
    printer.block(Block("Next"))
    printer.pairs([(f"  {then}", what_for)])
