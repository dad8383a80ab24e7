"""Past the caches goes only what was written before."""

from __future__ import annotations

from pathlib import Path

from conftest import need_tool, run


def test_what_is_new_goes_by_a_string_instruction(build_dir: Path):
    answer = run(build_dir / "tests/c/written-test")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "sse2 looked at" in answer.stdout


def test_what_was_not_touched_lately_goes_past_the_caches_sooner(build_dir: Path):
    answer = run(build_dir / "tests/c/touched-test")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "sse2 looked at" in answer.stdout


def test_valgrind_finds_nothing_in_what_was_never_set(build_dir: Path):
    valgrind = need_tool("valgrind", "valgrind")
    program = build_dir / "tests/c/written-test"
    answer = run(valgrind, "--quiet", "--error-exitcode=9", program, "uninitialised")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert answer.stdout == "never past the caches\n"
    assert run(program, "uninitialised").stdout == "past the caches\n"
