"""What tools/programs has measured already, in its work directory."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from wherry import runfile

FILE = "results.json"


def digest(plan: Path | None) -> str | None:
    """Of the tuned plan that results were measured with; None: with none."""
    return hashlib.sha256(plan.read_bytes()).hexdigest() if plan else None


def read(home: Path, commands: Mapping[str, str], plan: str | None) -> dict[str, dict]:
    """Of those programs that do still what they did then, measured with the plan of this digest."""
    try:
        kept = json.loads((home / FILE).read_text())
        return {
            name: own
            for name, own in kept.items()
            if own["command"] == commands.get(name) and own["plan"] == plan
        }
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError):
        print(f"programs: {home / FILE} is damaged or old; it is left out", file=sys.stderr)
        return {}


def write(home: Path, results: Mapping[str, Mapping]) -> None:
    runfile.write_bytes(home / FILE, json.dumps(results, indent=1).encode())
