"""Copies that sum, of a source that somebody else changes during the call."""

from __future__ import annotations

from pathlib import Path

from conftest import run


def test_the_sum_is_that_of_the_destination(build_dir: Path):
    answer = run(build_dir / "tests/c/changing-test", check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "sse2 looked at" in answer.stdout
