"""Which way large copies and sets go, by what was written lately."""

from __future__ import annotations

from pathlib import Path

from conftest import run


def test_near_goes_by_a_loop_and_far_by_a_string_instruction(build_dir: Path):
    answer = run(build_dir / "tests/c/recent-test")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "sse2 looked at" in answer.stdout
