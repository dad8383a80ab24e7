"""Whether sizes go apart or together, by what the watch finds of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from arrangements import built
from conftest import run


@pytest.mark.parametrize("edge", ["branch", "select"])
def test_sizes_go_together_when_they_cannot_be_foreseen_and_apart_when_they_can(
    build_dir: Path, edge: str
):
    """Calls are counted in other places where page_edge is another."""
    build = built(build_dir, "avx512", edge)
    answer = run(build / "tests/c/watch-test", check=False)
    if answer.returncode == 77:
        pytest.skip("needs AVX-512 (F, BW, VL, DQ), which this CPU or its operating system lacks")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert answer.stdout == "all right\n"
