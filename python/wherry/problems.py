"""What went wrong in a run, in sentences: for the terminal and for the report alike."""

from __future__ import annotations


def grouped(run: dict) -> list[tuple[str, str]]:
    """(kind, sentence), each thing said once."""
    found: dict[tuple[str, str, str], int] = {}
    for problem in run["problems"]:
        key = (problem["kind"], problem["routine"], problem["message"])
        found[key] = found.get(key, 0) + 1
    words = {
        "skip": "skipped",
        "wrong": "WRONG, so it has no speed",
        "crash": "CRASHED and was left out from there on",
        "hang": "HUNG and was left out from there on",
        "lost": "not measured",
        "broken": "CUT SHORT",
    }
    lines = []
    for (kind, routine, message), count in found.items():
        rows = f" ({count} rows)" if count > 1 else ""
        who = f"{routine} " if routine else ""
        lines.append((kind, f"{who}{words.get(kind, kind)}{rows}: {message}"))
    return lines
