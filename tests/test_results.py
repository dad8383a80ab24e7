"""What a run file holds of a campaign: ratios with intervals, verdicts that are corrected together, leaders, noise."""

import numpy as np
import pytest
from wherry import results, significance
from wherry.campaign import Campaign
from wherry.cell import Cell
from wherry.row import Row
from wherry.yardsticks import LEVEL


def campaign(times, rows=1, processes=3, rounds=8, noise=0.002, twins=()):
    """`times`: nanoseconds by routine, for all processes or for each; of `twins` those of the second measurement."""
    random = np.random.default_rng(1)
    own = [Row("cells", "copy", tuple(times), 64 + row) for row in range(rows)]
    made = Campaign(own, processes=processes, seed=1)
    named = [(name, False, ns) for name, ns in times.items()]
    named += [(name, True, ns) for name, ns in dict(twins).items()]
    for row in range(rows):
        for name, twin, ns in named:
            each = np.broadcast_to(ns, processes)
            samples = {
                p: each[p] * np.exp(random.normal(0, noise, rounds)) for p in range(processes)
            }
            made.cells[row, name, twin] = Cell(100, 64, samples)
    return made


def by_name(cells, aa=False):
    return {cell["routine"]: cell for cell in cells if cell["aa"] == aa}


def test_an_interval_is_no_narrower_than_what_processes_differ_by():
    """Of two processes the resampled one reaches from one to the other and no further."""
    made = campaign({"libc": 10.0, "wherry": (11.0, 13.0)}, processes=2)
    _, cells, _ = results.digest(made, 0)
    ratio = by_name(cells)["wherry"]["ratio"]
    half = significance.half_interval(np.log([1.1, 1.3]))
    assert ratio["high"] / ratio["median"] > 0.9 * np.exp(half)
    assert ratio["median"] / ratio["low"] > 0.9 * np.exp(half)
    assert by_name(cells)["wherry"]["verdict"] == "tie" and ratio["p"] > 0.05


def test_all_comparisons_of_an_experiment_are_corrected_together():
    """Those of second measurements among themselves, so that they do not dilute what is claimed."""
    times = {"libc": 10.0, "slow": 12.0, "same": 10.01, "fast": (8.0, 8.1, 8.5), LEVEL: 9.0}
    made = campaign(times, rows=2, twins=[("libc", 10.0), ("slow", 12.0)])
    rows, cells, floor = results.digest(made, 5)
    assert floor == results.noise(made) == 0.005
    assert [(row["row"], row["fastest"], row["tied"]) for row in rows] == [
        (5, "fast", []),
        (6, "fast", []),
    ]
    assert all(1.15 < row["lead"]["median"] < 1.3 for row in rows)
    ratios = [cell["ratio"] for cell in cells if cell["ratio"] and not cell["aa"]]
    p = np.array([ratio["p"] for ratio in ratios])
    assert len(p) == 6 == results.correction(made, cells)["comparisons"]
    assert [ratio["p_corrected"] for ratio in ratios] == pytest.approx(
        significance.corrected(p), rel=1e-4
    )
    own = by_name(cells)
    said = {name: own[name].get("verdict") for name in times}
    assert said == {"libc": None, "slow": "slower", "same": "tie", "fast": "faster", LEVEL: None}
    assert own["libc"]["ratio"] is None is own[LEVEL]["ratio"]
    assert by_name(cells, True)["slow"]["verdict"] == "slower"


def test_a_second_measurement_alone_tells_nothing_of_noise():
    made = campaign({"libc": 10.0, "wherry": 8.0}, twins=[("libc", 10.8)])
    assert results.noise(made) == pytest.approx(0.08, abs=0.01)
    made.cells[0, "gone", True] = made.cells[0, "libc", True]
    assert results.noise(made) == pytest.approx(0.08, abs=0.01)
    del made.cells[0, "libc", False]
    assert results.noise(made) is None


def test_who_leads_within_the_noise_is_a_tie():
    made = campaign({"libc": 10.0, "wherry": 9.6}, twins=[("libc", 10.8)])
    (row,), cells, _ = results.digest(made, 0)
    assert row["fastest"] is None and set(row["tied"]) == {"libc", "wherry"}
    assert by_name(cells)["wherry"]["verdict"] == "tie"
