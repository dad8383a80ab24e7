"""How tests run `wherry-run verify`, and the wrong routines that it has to find."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path


def verifier(build: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs it with these arguments; does not judge its exit status."""
    program = build / "runner" / "wherry-run"

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [str(program), "verify", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    run.program = program
    return run


def wrong_routines(build: Path) -> Path:
    """A shared object of them."""
    return build / "tests" / "fixtures" / "libwrong.so"
