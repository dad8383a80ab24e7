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


@pytest.fixture(scope="session")
def program(build_dir: Path) -> Path:
    return build_dir / "tests/c/order-test"


def test_each_scene_is_played(program):
    assert run(program).stdout.split() == list(SCENES)


@pytest.mark.parametrize("scene", SCENES)
def test_whole_operations_between_any_two_instructions(program, compiled, scene: str):
    """Of plans, of who owns the signals, of copies; as another thread, a handler or the child of a fork."""
    done = run(program, scene, compiled, check=False, timeout=300)
    if done.returncode == 77:
        pytest.skip("no instruction can be stopped at here, or no sandbox entered")
    assert done.returncode == 0, done.stdout + done.stderr
    steps, looked_at = map(int, done.stdout.split())
    assert steps >= looked_at > 100
