"""How tests run `wherry-run system`, and what its events say."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path


def system(
    wherry_run: Path, rows: str, status: int = 0, *options: str, **more
) -> tuple[list[dict], str]:
    """Its events, and what it said beside them."""
    done = subprocess.run(
        [wherry_run, "system", *options],
        input=rows,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        **more,
    )
    assert done.returncode == status, done.stdout[-800:] + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def cells(events: list[dict]) -> dict[tuple[int, str], dict]:
    return {(e["id"], e["routine"]): e for e in events if e["event"] == "cell" and not e["aa"]}
