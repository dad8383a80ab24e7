"""`wherry bench --self-check`: what is shown, how well, and whether that is good enough."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path

from wherry import jobcontrol, machine, outputs, runfile, selfcheck, stamp, tables, version
from wherry.cli import keeping, names
from wherry.cli.printer import Printer
from wherry.cli.progress import Progress
from wherry.errors import EXIT_FAILED, EXIT_OK, EXIT_UNDECIDED, WherryError, printable
from wherry.selfcheck.claims import LIMIT, QUICK_LIMIT, Claim, Session

FORMAT, FORMAT_VERSION = "wherry-self-check", 1
# Of the options of bench, those that have a meaning here.
HEEDS = frozenset({"quick", "pin", "seed", "save"})


def check(
    as_json: bool, experiments: tuple[str, ...], given: dict[str, object], others: list[str]
) -> int:
    if experiments or others:
        raise WherryError(
            "--self-check measures routines of its own; leave out "
            + ", ".join([*experiments, *others])
        )
    return _Check(as_json, **given).run()


class _Check:
    def __init__(
        self, as_json: bool, quick: bool, pin: int | None, seed: int | None, save: str | None
    ):
        names.check_pin(pin)
        self.as_json = as_json
        self.explicit = bool(save)
        self.path = Path(save) if save else stamp.path("-self-check.json")
        keeping.check(self.path, explicit=self.explicit, kind=outputs.SELF_CHECK)
        self.quick, self.pin = quick, pin
        self.seed = secrets.randbits(32) if seed is None else seed
        self.printer = Printer()

    def run(self) -> int:
        with jobcontrol.counting():
            return self._run()

    def _run(self) -> int:
        began = jobcontrol.clock()
        limit = QUICK_LIMIT if self.quick else LIMIT
        document = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "wherry": version(),
            "started": stamp.now(),
            "machine": machine.record(),
            "method": {
                "command": ["wherry", *sys.argv[1:]],
                "seed": self.seed,
                "pin": self.pin,
                "quick": self.quick,
                "limit_seconds": limit,
            },
        }
        steps = 0
        with Progress("self-check", "steps", selfcheck.steps(self.quick)) as progress:

            def at(what: str) -> None:
                nonlocal steps
                progress.at(steps, what=what)
                steps += 1

            claims = selfcheck.check(
                Session(self.seed, self.pin, self.quick, began + limit, progress=at)
            )
        undecided = any(claim.undecided for claim in claims)
        passed: bool | None = all(claim.passed is not False for claim in claims)
        if passed and undecided:
            passed = None
        document |= {
            "finished": stamp.now(),
            "seconds": round(jobcontrol.clock() - began, 2),
            "passed": passed,
            "claims": [claim.as_dict() for claim in claims],
        }
        self.path = keeping.save(self.path, document, explicit=self.explicit)
        if self.as_json:
            self.printer.write(runfile.encode(document).decode())
        else:
            self._print(document, claims)
        return {True: EXIT_OK, False: EXIT_FAILED, None: EXIT_UNDECIDED}[passed]

    def _print(self, document: dict, claims: list[Claim]) -> None:
        when = document["started"].replace("T", " ").replace("Z", " UTC")
        host = document["machine"]["host"]
        self.printer.text(f"Wherry {document['wherry']} on {host}, {when}: self-check", "title")
        self.printer.pairs(machine.heading(document["machine"]))
        self.printer.block(tables.Block("", self._table(claims), notes=[], sentences=[]))
        for claim in claims:
            self._worst(claim)
        self.printer.text()
        tried = [claim for claim in claims if claim.passed is not None]
        good = sum(claim.passed is True for claim in tried)
        text = f"{good} of {len(tried)} claims hold, in {document['seconds']:.0f} s."
        skipped = [claim.name for claim in claims if claim.passed is None and not claim.undecided]
        if skipped:
            text += f" Not tried: {', '.join(skipped)}."
        if undecided := [claim.name for claim in claims if claim.undecided]:
            again = " without --quick" if self.quick else ""
            text += (
                f" Undecided: {', '.join(undecided)}; try again{again} when the machine is quiet."
            )
        style = {True: "lead", False: "bad", None: ""}[document["passed"]]
        self.printer.paragraph(text, style)
        self.printer.text(f"Saved as {printable(str(self.path))}, every cell in it")

    def _table(self, claims: list[Claim]) -> list:
        lines: list[tables.Line] = []
        words = {True: ("holds", "lead"), False: ("FAILS", "bad"), None: ("not tried", "dim")}
        for claim in claims:
            word, style = ("undecided", "") if claim.undecided else words[claim.passed]
            tried = claim.passed is not None or claim.undecided
            seconds = f"{claim.seconds:.0f} s" if tried else ""
            lines += [
                [
                    tables.Span(f"{word:<10}", style),
                    tables.Span(f"{claim.says:<54}"),
                    tables.Span(f"{seconds:>6}", "dim"),
                ],
                [tables.Span(f"{'':10}bar       {claim.bar}", "dim")],
            ]
            if claim.measured:
                lines.append([tables.Span(f"{'':10}measured  {claim.measured}")])
            if claim.reason:
                label = "why" if claim.passed is not True else "note"
                lines.append([tables.Span(f"{'':10}{label:<10}{claim.reason}")])
        return lines

    def _worst(self, claim: Claim) -> None:
        """Of a claim that does not hold, the cells that are to blame."""
        if claim.note:
            self.printer.paragraph(claim.note, "dim")
        if claim.passed is not False:
            return
        for cell in claim.cells:
            said = ", ".join(f"{key} {value}" for key, value in cell.items() if key != "cell")
            self.printer.paragraph(f"{cell['cell']}: {said}", indent="    ")
