"""`wherry doctor`: what this machine is, and what may spoil a measurement here."""

from __future__ import annotations

import click


@click.command(epilog="Example: wherry doctor --json > machine.json")
@click.option("--json", "as_json", is_flag=True, help="The machine record as JSON, for a program.")
def command(as_json: bool) -> None:
    """Shows what this machine is, what is not under control, and what can be done about it."""
    from wherry import machine
    from wherry.cli.printer import Printer
    from wherry.runfile import encode
    from wherry.tables import Block
    from wherry.units import size_in_words

    printer = Printer()
    record = machine.record()
    if as_json:
        printer.write(encode(record).decode())
        return
    lines = [pair for pair in machine.heading(record) if pair[0] not in ("Caches", "Uncontrolled")]
    flags = record["cpu"]["string_flags"]
    lines.insert(
        1, ("Strings", ", ".join(f.upper() for f in flags) if flags else "no ERMS, FSRM, FZRM")
    )
    memory = record["memory"]
    if memory["total"] and memory["available"]:
        lines.append(
            (
                "Memory",
                f"{size_in_words(memory['total'])}, {size_in_words(memory['available'])} free",
            )
        )
    lines.append(("Load", " ".join(f"{value:.2f}" for value in record["load"]) + " (1, 5, 15 min)"))
    printer.pairs(lines)
    printer.block(Block("Caches by source"))
    printer.pairs(
        [
            (f"  {source}", words + (f"  <- believed for {levels}" if levels else ""))
            for source, words, levels in machine.caches_by_source(record)
        ]
    )
    printer.block(Block("Not under control"))
    if not record["uncontrolled"]:
        printer.text("  nothing that is known")
    for item in record["uncontrolled"]:
        printer.text(f"  {item['what']}", "bad")
        printer.paragraph(f"why it matters: {item['why']}", indent="    ")
        printer.paragraph(f"what to do: {item['do']}", indent="    ")
