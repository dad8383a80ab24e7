"""How fast the machine runs just now (runner/measure/pace.c), on machines that are made up (tests/c/pace_test.c)."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import run

PATIENCE_MS = 1500
ROUNDS = 400


@pytest.fixture
def measured(build_dir: Path):
    def ask(machine: str) -> tuple[int, ...]:
        return tuple(map(int, run(build_dir / "tests/c/pace-test", machine).stdout.split()))

    return ask


def test_a_cache_that_fills_again_slowly_is_no_neighbour(measured):
    """Once each round counted as disturbed there, and the naps, in which the cache was lost, took most of the time."""
    _, waited, slow = measured("crowded")
    assert waited == 0 and slow == 0


def test_waits_take_no_longer_than_what_is_measured(measured):
    worked, waited, slow = measured("phases")
    assert PATIENCE_MS < waited <= worked + PATIENCE_MS
    assert 0 < slow < ROUNDS / 20


def test_what_is_slow_for_good_is_waited_for_once(measured):
    _, waited, slow = measured("for-good")
    assert waited == PATIENCE_MS and slow == 0
