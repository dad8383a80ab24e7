"""Times in DRAM brought to one level: what a neighbour adds to all routines of a round goes, what differs stays."""

import numpy as np
import pytest
from wherry import experiments, levels, results
from wherry.campaign import Campaign
from wherry.cell import Cell
from wherry.experiments import Request
from wherry.row import Row
from wherry.yardsticks import LEVEL

TIMES = {"libc": 100.0, "wherry": 80.0, LEVEL: 90.0}


def campaign(
    noise, states=("DRAM", "DRAM"), names=("libc", "wherry", LEVEL), rounds=10, rows=20, half=()
):
    """Each routine takes its own time, times what a neighbour makes of the round; of those in `half` the root of it.
    One process had more of the neighbour than the other."""
    random = np.random.default_rng(1)
    own = [
        Row("alignment", "copy", names, 1448, src_off=i, src_state=states[0], dst_state=states[1])
        for i in range(rows)
    ]
    made = Campaign(own, processes=2)
    for row in range(rows):
        for process in range(2):
            slow = 1 + noise * random.random(rounds) * (1 + process) / 2
            slow[: rounds // 3] = 1.0
            for name in names:
                cell = made.cells.setdefault((row, name, False), Cell(100, 1448))
                cell.ns[process] = TIMES[name] * slow ** (0.5 if name in half else 1)
    return made


@pytest.mark.parametrize("states", [("DRAM", "DRAM"), ("L1", "L1")])
def test_a_neighbours_part_goes_and_what_differs_stays(states):
    made = campaign(0.5, states)
    own, told = levels.levelled(made)
    for (row, name, _), cell in own.cells.items():
        plain = made.cells[row, name, False]
        if name == LEVEL:
            assert cell is plain, "the yardstick shows what there was"
            continue
        for process in (0, 1):
            assert cell.ns[process] == pytest.approx(TIMES[name])
    ratio = own.cells[0, "wherry", False].ns[0] / own.cells[0, "libc", False].ns[0]
    assert ratio == pytest.approx([0.8] * 10)
    (said,) = told
    assert said["calm_ns"] == pytest.approx(90) and said["readings"] == 400
    assert 1.02 < said["median"] < said["q90"] < 1.5
    every = np.concatenate(
        [c.ns[p] for k, c in made.cells.items() if k[1] == LEVEL for p in (0, 1)]
    )
    assert [said["median"], said["q90"]] == pytest.approx(
        np.quantile(every, (0.5, 0.9)) / 90, abs=1e-4
    )
    assert said["answers"] == {"libc": 1.0, "wherry": 1.0}
    text = levels.in_words({"levelled": told})
    share = "0.5 %" if "DRAM" in states else "25 %"
    assert f"calmest {share}" in text and f"{said['median']:.2f} times" in text


def test_a_routine_that_waits_less_for_memory_is_brought_less_far():
    own, (said,) = levels.levelled(campaign(0.5, half=("wherry",)))
    assert said["answers"] == {"libc": 1.0, "wherry": 0.5}
    for (_, name, _), cell in own.cells.items():
        for ns in () if name == LEVEL else cell.ns.values():
            assert ns == pytest.approx(TIMES[name])


def test_rounds_without_a_reading_stay_as_they_were_measured():
    """Of a row without the yardstick, of a process that it lacks, and of one that has another number of rounds. A
    second measurement of it is no reading."""
    made = campaign(0.5)
    for key in (0, LEVEL, False), (1, LEVEL, False):
        del made.cells[key].ns[0]
    del made.cells[0, LEVEL, False]
    made.cells[2, LEVEL, False].ns[0] = made.cells[2, LEVEL, False].ns[0][:-1]
    made.cells[3, LEVEL, True] = Cell(100, 1448, {p: np.full(10, 900.0) for p in (0, 1)})
    made.cells[4, "libc", True] = Cell(100, 1448, dict(made.cells[4, "libc", False].ns))
    own, (said,) = levels.levelled(made)
    assert said["readings"] == 400 - 20 - 10 - 1
    for (row, name, _), cell in own.cells.items():
        for process, ns in cell.ns.items() if name != LEVEL else ():
            if row == 0 or (row in (1, 2) and process == 0):
                assert ns is made.cells[row, name, False].ns[process]
            else:
                assert ns == pytest.approx(TIMES[name])


@pytest.mark.parametrize(("rows", "answer"), [(14, 1.0), (15, 0.5)])
def test_how_far_a_routine_is_brought_takes_pairs_to_tell(rows, answer):
    """Of rows and processes; with fewer it is brought as far as the yardstick."""
    _, (said,) = levels.levelled(campaign(0.5, half=("wherry",), rows=rows))
    assert said["answers"]["wherry"] == answer and levels.LEAST_PAIRS == 2 * 15


def test_a_yardstick_that_never_moves_changes_nothing():
    own, (said,) = levels.levelled(campaign(0.0))
    assert said["answers"] == {"libc": 1.0, "wherry": 1.0}
    assert own.cells[0, "wherry", False].ns[0] == pytest.approx([80.0] * 10)


def test_ratios_are_those_that_were_measured():
    made = campaign(0.5, half=("wherry",))
    _, cells, _ = results.digest(made, 0)
    (plain,) = {
        float(
            np.median(
                np.concatenate([cell.ns[p] / made.cells[0, "libc", False].ns[p] for p in (0, 1)])
            )
        )
        for key, cell in made.cells.items()
        if key == (0, "wherry", False)
    }
    ratio = next(c["ratio"]["median"] for c in cells if c["row"] == 0 and c["routine"] == "wherry")
    assert ratio == pytest.approx(plain, abs=0.01) and ratio < 0.79


def test_the_run_file_has_levelled_times_and_says_so():
    made = campaign(0.5)
    _, cells, _ = results.digest(made, 0)
    medians = {c["routine"]: c["ns"]["median"] for c in cells}
    assert medians["libc"] == pytest.approx(100) and medians["wherry"] == pytest.approx(80)
    assert medians[LEVEL] > 92, "not levelled itself"
    assert levels.record(made)["levelled"][0]["by"] == LEVEL
    # Raw samples stay what was measured.
    raw = [s for s in results.samples(made, "alignment", 0) if s["routine"] == "libc"]
    assert max(max(s["ns"]) for s in raw) > 120


@pytest.mark.parametrize(
    "made",
    [
        campaign(0.5, names=("libc", "wherry")),
        campaign(0.5, rounds=2, rows=5),  # too few readings to tell what calm is
    ],
)
def test_without_readings_nothing_is_changed(made):
    own, told = levels.levelled(made)
    assert own is made and not told and not levels.record(made)
    assert levels.in_words({}) == ""


def test_states_have_levels_of_their_own():
    one, other = campaign(0.5), campaign(0.5, ("DRAM", "L1"))
    for (row, name, twin), cell in other.cells.items():
        cell.ns = {process: ns * 0.5 for process, ns in cell.ns.items()}
        one.cells[row + 20, name, twin] = cell
    one.rows += other.rows
    own, told = levels.levelled(one)
    assert [t["calm_ns"] for t in told] == pytest.approx([90, 45])
    assert own.cells[25, "libc", False].ns[1] == pytest.approx(50)


def test_the_sweep_has_the_yardstick_in_every_row():
    rows = experiments.load("alignment").rows(Request(catalogue=()))
    assert len(rows) == 4 * 64 * 64
    assert all(LEVEL in row.routines for row in rows)
