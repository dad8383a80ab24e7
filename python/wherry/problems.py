"""What went wrong in a run, in sentences: for the terminal and for the report alike."""

from __future__ import annotations

_WORDS = {
    "skip": "skipped",
    "wrong": "WRONG, so it has no speed",
    "crash": "CRASHED and was left out from there on",
    "hang": "HUNG and was left out from there on",
    "lost": "not measured",
    "broken": "CUT SHORT",
}
# More experiments than this are counted.
_NAMED = 2


def grouped(run: dict) -> list[tuple[str, str]]:
    """(kind, sentence), each thing said once. A routine that is wrong is so in most rows and in each with bytes and
    addresses of its own: one sentence, with the first of them."""
    found: dict[tuple[str, str, str], list[dict]] = {}
    for problem in run["problems"]:
        own = "" if problem["kind"] == "wrong" else problem["message"]
        found.setdefault((problem["kind"], problem["routine"], own), []).append(problem)
    lines = []
    for (kind, routine, _), problems in found.items():
        count = (
            len({(problem.get("experiment"), problem.get("row")) for problem in problems})
            if kind == "wrong"
            else len(problems)
        )
        # Below the tables of many experiments nobody could tell whose rows these are.
        where = _experiments(problems) if len(run.get("experiments", ())) > 1 else ""
        rows = f" ({count} rows{where})" if count > 1 else f" (a row{where})" if where else ""
        first = "first, " if kind == "wrong" and len(problems) > 1 else ""
        who = f"{routine} " if routine else ""
        if kind == "skip" and not routine:  # what the row itself needs is not there
            who = "whole rows " if count > 1 else "a whole row "
        lines.append(
            (kind, f"{who}{_WORDS.get(kind, kind)}{rows}: {first}{problems[0]['message']}")
        )
    return lines


def _experiments(problems: list[dict]) -> str:
    names = list(dict.fromkeys(p["experiment"] for p in problems if p.get("experiment")))
    if len(names) > _NAMED:
        return f" of {len(names)} experiments"
    return f" of {' and '.join(names)}" if names else ""
