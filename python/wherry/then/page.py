"""docs/then-and-now.md: a run beside the figures of the seeds, as a page of Markdown. Nothing in it depends on anything
but the run and history/, so that a test can tell whether the page is that of its run."""

from __future__ import annotations

import shlex

from wherry import history, machine, sentences, tables, then
from wherry.clock import clock_of
from wherry.then.sheet import Sheet
from wherry.units import percent


def page(run: dict) -> str:
    measured = {e["name"] for e in run["experiments"] if tables.rows_of(run, e["name"])}
    known = history.experiments()
    beside = [name for name in known if name in measured and name in then.paired()]
    lines = [
        "# Then and now",
        "",
        "Five mails made Wherry: people who wrote a memory routine, timed it and mailed the table. Here is every "
        "table that they published, beside what one machine does today. What can be compared over the years is not "
        "nanoseconds but ratios: to the stock routine of the same table, and bytes a cycle.",
        "",
        "This page is written by a command from a run; do not edit it:",
        "",
        "```",
        f"{_command(run, beside)} --save RUN     # measures",
        *(
            f"wherry bench {' '.join(own['experiments'])} --then     # likewise; its rows were put into the same file"
            for own in _joined(run)
        ),
        "wherry bench --show RUN --then --markdown > docs/then-and-now.md     # writes this page",
        "```",
        "",
        "The figures of the mails, with those that stand in sentences, are in [history/](../history/README.md) as they "
        "were mailed; `wherry list history` prints them. Here they are rounded. A ratio is of speeds, above 1 faster, "
        "unless it says time.",
        "",
        "## This machine",
        "",
        *_machine(run),
    ]
    answers = [(name, then.sheets(run, name)) for name in beside]
    lines += ["", "## In words", ""]
    for name, sheets in answers:
        said = [text for sheet in sheets for text in sheet.said]
        lines += [f"**{name}** ({_after(name)}). {' '.join(said)}", ""]
    for name, sheets in answers:
        lines += [f"## {name}: {_after(name)}", ""]
        lines += [_without_words(sheet).markdown() for sheet in sheets]
    rest = [name for name in known if name not in beside]
    if rest:
        lines += [
            "## Then alone",
            "",
            f"The run has nothing beside the figures of {sentences.join(rest)}.",
            "",
        ]
        for name in rest:
            lines += [sheet.markdown() for sheet in then.alone(name)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _command(run: dict, beside: list[str]) -> str:
    """That of the run, but for where it was saved. One that went on with another run does not say what was asked."""
    words = (run.get("method") or {}).get("command") or []
    if words[:2] != ["wherry", "bench"] or any(word.startswith("--resume") for word in words):
        return f"wherry bench {' '.join(beside)} --then"
    kept, skip = [], False
    for word in words:
        if not skip and word != "--save" and not word.startswith("--save="):
            kept.append(word)
        skip = word == "--save" and not skip
    return shlex.join(kept)


def _joined(run: dict) -> list[dict]:
    """Other runs on the same machine whose rows stand in this one: of experiments that take minutes by themselves."""
    return run["method"].get("joined") or []


def _moment(text: str) -> str:
    return text.replace("T", " ").replace("Z", " UTC")


def _after(name: str) -> str:
    """Who measured it, and when."""
    told = [s for own in history.seeds() for s in own.statements if s.experiment == name]
    # Whoever only told of it, when nobody has a table.
    own = history.tables(name) or told
    found = [(each.mail.author.split()[-1], each.mail.year) for each in own]
    return sentences.join([f"{who} {year}" for who, year in dict.fromkeys(found)])


def _without_words(sheet: Sheet) -> Sheet:
    """They stand at the top of the page already."""
    return Sheet(sheet.title, sheet.columns, sheet.rows, notes=sheet.notes)


def _machine(run: dict) -> list[str]:
    floors = [
        f"{e['name']} {percent(e['noise_floor'])}"
        for e in run["experiments"]
        if e["noise_floor"] is not None and then.has(e["name"])
    ]
    pairs = [
        ("Measured", f"{_moment(run['started'])}, Wherry {run['wherry']}"),
        *(
            (f"Measured: {sentences.join(own['experiments'])}", _moment(own["started"]))
            for own in _joined(run)
        ),
        *machine.heading(run["machine"]),
        ("Cycles", clock_of(run).in_words().removeprefix("cycles now are ")),
        ("Noise floor", sentences.join(floors) or "not measured"),
    ]
    return ["| | |", "|---|---|", *(f"| {label} | {text} |" for label, text in pairs)]
