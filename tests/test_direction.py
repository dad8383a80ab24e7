"""Which way large copies go, by the distance of source and destination modulo 4096, and in what steps."""

from __future__ import annotations

from pathlib import Path

from conftest import run


def test_backward_where_the_plan_says_so(build_dir: Path):
    answer = run(build_dir / "tests/c/direction-test", check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "sse2 looked at" in answer.stdout


def test_by_a_string_instruction_where_the_plan_says_so(build_dir: Path):
    answer = run(build_dir / "tests/c/string-test", check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "sse2 looked at" in answer.stdout


def test_exact_where_loads_go_by_halves(build_dir: Path):
    answer = run(build_dir / "tests/c/halves-test", check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "sse2 looked at" in answer.stdout
