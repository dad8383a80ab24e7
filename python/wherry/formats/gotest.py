"""What `go test -json` prints: an event a line, of which the outputs together are the text that `go test` prints
without it. A line of that text may come in pieces, and lines of several packages in turns."""

from __future__ import annotations

import json

from wherry.errors import WherryError


def fits(data: bytes) -> bool:
    """By the first line."""
    try:
        event = json.loads(data.lstrip().partition(b"\n")[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(event, dict) and isinstance(event.get("Action"), str)


def text(data: bytes, file: str) -> str:
    """The text of each package after the other."""
    texts: dict[str, list[str]] = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict):
            raise WherryError(
                f"{file}, line {number}: no event of go test -json; is the file cut short?"
            )
        if event.get("Action") == "output":
            package, output = event.get("Package", ""), event.get("Output", "")
            texts.setdefault(str(package), []).append(str(output))
    return "\n".join("".join(pieces) for pieces in texts.values())
