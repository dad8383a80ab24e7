"""What a whole mix takes, added up from its parts."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from wherry.replay import totals

PARTS = [SimpleNamespace(calls=10), SimpleNamespace(calls=1)]
SHARES = [{0: 1.0}, {1: 0.5, 2: 0.5}]


def added(*cells: dict[int, list[float]], **more) -> dict[int, list[float]]:
    found = {
        (row, totals.LIBC, False): SimpleNamespace(ns={p: np.array(ns) for p, ns in cell.items()})
        for row, cell in enumerate(cells)
    }
    campaign = SimpleNamespace(cells=found)
    table = totals._table(campaign, PARTS, SHARES, more.get("routine", totals.LIBC), False)
    return {process: list(map(float, own)) for process, own in table.items()}


def test_parts_are_added_round_by_round_in_each_process():
    found = added({0: [1, 2, 3], 1: [4]}, {0: [10, 10], 1: [30]}, {0: [0, 20], 1: [10]})
    assert found == {0: [15.0, 35.0], 1: [60.0]}


def test_a_process_that_lacks_a_part_is_left_out():
    assert added({0: [1], 1: [2]}, {0: [2]}, {0: [4], 1: [6]}) == {0: [13.0]}


def test_where_every_process_lacks_some_part_another_one_stands_in():
    """Long calls on a busy machine: a round free of disturbance is rare."""
    found = added({0: [1, 3], 1: [2]}, {0: [2, 2]}, {1: [6]})
    assert found == {0: [14.0], 1: [24.0]}


def test_what_nobody_has_measured_is_nothing():
    assert added({0: [1]}, {}, {0: [1]}) == {}
    assert added({0: [1]}, {0: [1]}, {0: [1]}, routine="wherry") == {}
