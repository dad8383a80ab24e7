"""What happens in which order: one operation stopped after each of its instructions, and another done there."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import run
from test_planfile import compiled, own, reported

__all__ = ["compiled", "own", "reported"]  # fixtures

SCENES = (
    *("plan-in-init", "plan-in-status", "init-in-plan", "status-in-plan"),
    *("taken-in-status", "taken-in-init", "taken-in-init-anew", "init-in-status"),
    *("status-in-init", "plan-in-copy", "init-in-copy", "status-in-copy"),
    *("fork-in-init", "fork-in-load"),
)
LOOKS = (
    *("others-in-verdict", "plan-in-verdict", "left-in-verdict", "fork-in-verdict"),
    *("others-in-look", "plan-in-look", "fork-in-look", "hold-in-look"),
    *("begin-in-plan", "look-in-plan", "count-in-plan"),
)


@pytest.fixture(scope="session")
def program(build_dir: Path) -> Path:
    return build_dir / "tests/c/order-test"


def played(program: Path, scene: str, *words: Path, why: str) -> None:
    done = run(program, scene, *words, check=False, timeout=300)
    if done.returncode == 77:
        pytest.skip(done.stdout.strip() or why)
    assert done.returncode == 0, done.stdout + done.stderr
    steps, looked_at = map(int, done.stdout.split())
    assert steps >= looked_at > 20


def test_each_scene_is_played(program):
    assert run(program).stdout.split() == [*SCENES, *LOOKS]


@pytest.mark.parametrize("scene", SCENES)
def test_whole_operations_between_any_two_instructions(program, compiled, scene: str):
    """Of plans, of who owns the signals, of copies; as another thread, a handler or the child of a fork."""
    played(program, scene, compiled, why="no sandbox can be entered here")


@pytest.mark.parametrize("scene", LOOKS)
def test_looks_go_on_whatever_comes_between(program, scene: str):
    """Other threads, plans and forks in the middle of a look, or of its verdict: the next finds out what is so."""
    played(program, scene, why="the AVX-512 tier is not the default here")
