"""`wherry tune`: the sizes of string instructions and the choice of routines, out of figures that are known."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from made_tuning import REPORTED, proof
from wherry import plans
from wherry.cell import Cell
from wherry.row import Row
from wherry.tune import choice, choose, grids, measuring, prove, session, strings

CACHES = {"L1d": {"size": 32 << 10}, "L2": {"size": 1 << 20}, "L3": {"size": 32 << 20}}


def tuned(monkeypatch, side, log, **thresholds):
    """log(row, near): of string instructions' time over the loop's. Returns what was found, and the rows that prove."""
    tuning = session.Session(REPORTED | {"believed": CACHES}, grids.FULL)
    base = tuning.result.plan
    never = {"copy_ymm_from": plans.OFF}
    for one in ("copy", "set"):
        never |= {f"{one}_rep_from": plans.OFF, f"{one}_rep_recent_from": 0}
        never |= base.past(one, plans.OFF)
    tuning.result.plan = base.changed(**never | thresholds)
    proved = []

    def prove_it(_, rows, *__):
        proved.extend(rows)
        return proof(-0.1, 0.001)

    def logs(campaign, i, name, to):
        row = campaign.rows[i]
        if name == "turned":
            return 0.1 if row.delta in grids.AHEAD else None
        return log(row, grids.is_near(row)) if (name, to) == ("strings", "loop") else None

    def take(what, rows, measured, processes):
        """The plans have no more to differ in than the method, and past the caches goes neither."""
        for name, window in {"loop": None, "strings": 128, "turned": None}.items():
            if name == "turned" and side == "set":
                continue
            plan = measured[name]
            assert not plans.fault(plan) and plan.past_from(side) == plans.OFF
            assert not plan.thresholds["copy_rep_slow_ahead"]
            for recent in (False, True):
                own = session.window_of(plan, side, recent=recent)
                assert own == choose.Window(window, None)
        usual = grids.PLACES if side == "copy" else grids.set_places()
        usual = [*usual, *((0, 0, far) for far in grids.AHEAD if side == "copy")]
        assert {(row.src_off, row.dst_off, row.delta) for row in rows} == set(usual)
        if side == "copy":
            ahead = measured["turned"].thresholds["copy_backward_ahead"]
            assert measured["turned"] == measured["loop"].changed(copy_backward_ahead=ahead)
            assert bool(ahead) != bool(base.thresholds["copy_backward_ahead"])
        return SimpleNamespace(rows=rows, cells={})

    monkeypatch.setattr(tuning, "take", take)
    monkeypatch.setattr(tuning, "prove", prove_it)
    monkeypatch.setattr(strings.measuring, "log_ratio", logs)
    was = tuning.result.plan
    turned = strings.strings(tuning, side)
    changed = {key for key, n in was.thresholds.items() if tuning.result.plan.thresholds[key] != n}
    assert all(key.startswith(side) for key in changed) and not plans.fault(tuning.result.plan)
    assert {row.delta for row, _ in turned} == (set(grids.AHEAD) if side == "copy" else set())
    (dimension,) = tuning.result.dimensions
    return tuning.result.plan, dimension, proved


def gain(*logs: float) -> float:
    return pytest.approx(1 - math.exp(sum(logs) / len(logs)))


def test_strings_from_where_they_win_by_how_the_destination_lies(monkeypatch):
    def log(row, near):
        if row.delta in grids.AHEAD:
            return 0.3 if row.delta <= 128 and row.size < 16384 else -0.2
        if near:
            return -0.4 if row.size >= 4096 else 0.2
        return -0.2 if 2048 <= row.size < 65536 else 0.5

    plan, found, proved = tuned(monkeypatch, "copy", log)
    # Two sizes an octave from 2 to 64 KiB, three of them also near.
    assert found.kept and found.gain == gain(*[-0.2] * 10, *[-0.4] * 3)
    words = "2 KiB to 64 KiB; written lately from 4 KiB; 1 to 128 B ahead from 16 KiB"
    assert (found.default, found.found) == ("never", words)
    own = ("rep_from", "rep_to", "rep_recent_from", "rep_slow_ahead", "rep_all_from")
    assert [plan.thresholds[f"copy_{key}"] for key in own] == [2048, 65536, 4096, 128, 16384]
    sizes = {near: [r.size for r in proved if grids.is_near(r) == near] for near in (True, False)}
    assert min(sizes[True]) >= 4096 > min(sizes[False]) >= 2048 and max(sizes[False]) < 65536
    assert {row.rounds for row in proved} == {grids.FULL.proof_rounds}
    usual = {(row.src_off, row.dst_off, row.delta) for row in proved}
    assert len(usual) == 5 and not usual & {(s, d or 0, delta) for s, d, delta in grids.PLACES}


@pytest.mark.parametrize("side", ["copy", "set"])
def test_strings_that_lose_are_left_where_that_is_worth_it(monkeypatch, side):
    window = {f"{side}_rep_from": 1024, f"{side}_rep_recent_from": 4096}
    window |= {f"{side}_rep_to": 32768}
    ahead = ""
    if side == "copy":
        window |= {"copy_rep_slow_ahead": 63, "copy_rep_all_from": 8192}
        ahead = "; 1 to 63 B ahead from 8 KiB"
    for log, changed in ((0.3, True), (0.005, False)):
        plan, found, proved = tuned(monkeypatch, side, lambda *_, log=log: log, **window)
        assert found.gain == gain(-log) and found.kept is changed and bool(proved) is changed
        assert found.default == "1 KiB to 32 KiB; written lately from 4 KiB" + ahead
        assert found.found == ("never" if changed else found.default)
        assert plan.thresholds[f"{side}_rep_from"] == (plans.OFF if changed else 1024)
        for near, least in ((True, 4096), (False, 1024)) if changed else ():
            own = [row.size for row in proved if grids.is_near(row) == near]
            assert least < min(own) and max(own) < 32768 and (side == "set" or min(own) < 2 * least)


@pytest.mark.parametrize(
    ("side", "now", "recent"),
    [
        ("copy", None, 16384),
        ("copy", 20480, 20480),
        ("set", None, 786432),
        ("set", 1 << 19, 1 << 19),
    ],
)
def test_where_they_never_win_near_the_usual_size_stands(monkeypatch, side, now, recent):
    """Half of the first level, of a set three quarters of the second; or what the plan in force has."""
    window = {f"{side}_rep_from": 1024, f"{side}_rep_recent_from": now, f"{side}_rep_to": plans.OFF}
    plan, found, _ = tuned(
        monkeypatch, side, lambda row, near: 0.2 if near else -0.2, **(window if now else {})
    )
    assert now or (plan.thresholds[f"{side}_rep_recent_from"] == recent and found.kept)
    assert f"; written lately from {recent >> 10} KiB" in found.found


def test_a_window_in_words():
    own = {"copy_rep_from": 1024, "copy_rep_to": plans.OFF, "copy_rep_recent_from": 1024}
    own |= {"copy_rep_slow_ahead": 63, "copy_rep_all_from": plans.OFF}
    own |= {"set_rep_from": 2048, "set_rep_to": 4096, "set_rep_recent_from": 2048}
    plan = plans.default(REPORTED).changed(**own)
    assert strings._window_words(plan, "copy") == "1 KiB to any size; 1 to 63 B ahead never"
    assert strings._window_words(plan, "set") == "2 KiB to 4 KiB"
    assert strings._window_words(plan.changed(copy_rep_slow_ahead=0), "copy") == "1 KiB to any size"


def test_where_a_cliff_is_in_words():
    for row, said in (
        (Row("", "set", (), dst_off=33), "destination + 33"),
        (Row("", "copy", (), src_off=1, dst_off=2), "source + 1, destination + 2"),
        (Row("", "copy", (), src_off=17, delta=0), "source + 17, destination 0 ahead mod 4096"),
    ):
        assert strings._place_in_words(row) == said


@pytest.mark.parametrize("processes", [2, 1])
def test_cliffs_are_looked_for_on_the_way(monkeypatch, processes):
    """Of what all processes measured: libc's copies of 4 KiB from L2 take three times as long at one place."""
    tuning = session.Session(REPORTED | {"believed": CACHES}, grids.FULL)

    def take(what, rows, *_):
        cells = {}
        for i, row in enumerate(rows):
            far = (row.size, row.src_state, row.dst_off, row.delta) == (4096, "L2", 1, None)
            for name in ("libc", prove.TUNED):
                ns = row.size / 50 * (3 if far and name == "libc" else 1)
                samples = dict.fromkeys(range(processes), np.full(5, ns))
                cells[i, name, False] = Cell(1, row.size, samples)
        return SimpleNamespace(rows=rows, cells=cells)

    monkeypatch.setattr(tuning, "take", take)
    monkeypatch.setattr(strings.measuring, "log_ratio", lambda *_: None)
    strings.strings(tuning, "copy")
    said = "libc, copy of 4 KiB in L2, source + 0, destination + 1: 67 % below "
    assert {cliff.words() for cliff in tuning.result.cliffs} == {
        said + beside for beside in ("both sizes beside it", "other places") if processes == 2
    }
    assert all(cliff.record()["fall"] == 0.6667 for cliff in tuning.result.cliffs)


def test_strings_end_where_stores_go_past_the_caches(monkeypatch):
    plan, found, _ = tuned(
        monkeypatch,
        "set",
        lambda row, near: -0.2,
        set_stream_from=1 << 20,
        set_stream_recent_from=1 << 20,
    )
    assert found.found == "22.6 KiB to 1 MiB" and found.gain == gain(-0.2)
    # Smaller sets are measured where they were written lately, or one level out, which is as near.
    assert plan.thresholds["set_rep_recent_from"] == plan.thresholds["set_rep_from"] == 23168


@pytest.mark.parametrize(
    ("calls", "logs", "kept"),
    [
        (None, (-0.3, 0.1), True),
        (None, (-0.1, 0.3), False),
        (None, (-0.1, 0.14), False),  # not worth it
        # By the time that a program's calls of each take: ten and a thousand nanoseconds.
        ((100, 8), (-0.3, 0.1), False),
        ((300, 2), (-0.3, 0.1), True),
    ],
)
def test_the_choice_is_that_of_the_least_time(monkeypatch, calls, logs, kept):
    """Of one mix it takes less, of the other more."""
    mixes = [
        session.Asked("copy", spec, "L1", "L1", count)
        for spec, count in zip(grids.MIXES, calls or (), strict=False)
    ]
    usable = dict.fromkeys(("avx2", "bmi1", "bmi2"), True)
    tuning = session.Session(REPORTED | {"features": usable}, grids.FULL, mixes=mixes)
    proved = []

    def prove_it(what, rows, candidate, weights):
        proved.extend(rows)
        assert candidate.choice == "avx2" and weights == (
            list(map(float, calls)) if calls else None
        )
        return proof(-0.1, 0.001)

    def take(what, rows, own, processes):
        assert {name: plan.choice for name, plan in own.items()} == {
            "plan_sse2": "sse2",
            "plan_avx2": "avx2",
        }
        campaign = measuring.PlanCampaign(rows, {}, processes=3)
        for i, row in enumerate(rows):
            first = row.mix in grids.MIXES[::2] if not mixes else row.mix == grids.MIXES[0]
            for name, log in (("plan_sse2", 0), ("plan_avx2", logs[not first])):
                times = np.full(5, (10.0 if first else 1000.0) * math.exp(log))
                campaign.cells[i, name, False] = Cell(1, 64, dict.fromkeys(range(3), times))
        return campaign

    monkeypatch.setattr(tuning, "take", take)
    monkeypatch.setattr(tuning, "prove", prove_it)
    choice.choice(tuning)
    (found,) = tuning.result.dimensions
    shares = (3 / 5, 2 / 5)
    if calls:
        whole = 10 * calls[0] + 1000 * calls[1]
        shares = (10 * calls[0] / whole, 1000 * calls[1] / whole)
    log = sum(share * own for share, own in zip(shares, logs, strict=True))
    assert found.gain == (pytest.approx(1 - math.exp(log)) if kept else None)
    assert (found.default, found.found) == ("sse2", "avx2" if kept else "sse2")
    assert found.kept is bool(proved) is kept
    assert tuning.result.plan.choice == found.found
    specs = {row.mix for row in proved}
    assert not specs or specs == (set(grids.MIXES[:2]) if calls else set(grids.HELD_OUT_MIXES))
    assert all(row.rounds == grids.FULL.proof_rounds for row in proved)


@pytest.mark.parametrize(
    ("size", "copies", "levels"),
    [
        (8192, True, ["L1", "L2"]),
        (8193, True, ["L2", "L3"]),
        (16384, False, ["L1", "L2"]),
        (1 << 20, True, ["L3", "DRAM"]),
        ((1 << 20) + 1, True, ["L3"]),
        (4 << 20, True, ["L3"]),
        ((4 << 20) + 1, True, ["DRAM"]),
    ],
)
def test_where_a_call_lies_that_is_hot_and_one_level_out(size, copies, levels):
    """Of the first two caches half is counted on, of the last, which others share, a quarter."""
    caches = {"L1": 32 << 10, "L2": 1 << 20, "L3": 32 << 20}
    assert grids.states(size, caches, copies) == [(level, level) for level in levels]


def test_which_destinations_are_near():
    near = {
        (op, level)
        for op in ("copy", "set")
        for level in ("L1", "L2", "L3", "DRAM")
        if grids.is_near(Row("", op, (), 64, dst_state=level))
    }
    assert near == {("copy", "L1"), ("set", "L1"), ("set", "L2")}
