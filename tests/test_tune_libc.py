"""`wherry tune --glibc`: which settings are tried, how they are proved, and within which time."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from wherry import stats
from wherry.cli import tuning as cli_tuning
from wherry.cli import tuninglibc
from wherry.tune import (
    grids,
    libc,
    prove,
    tunables,
)

LISTED = """glibc.rtld.nns: 0x4 (min: 0x1, max: 0x10)
glibc.cpu.x86_rep_movsb_threshold: 0x840 (min: 0x2000, max: 0xffffffffffffffff)
glibc.cpu.x86_ibt:
glibc.cpu.hwcaps:
glibc.cpu.x86_non_temporal_threshold: 0xc0000 (min: 0x4040, max: 0xfffffffffffffff)
"""


def test_the_list_of_the_loader_is_read():
    found = tunables.listed(LISTED)
    assert set(found) == {
        "x86_rep_movsb_threshold",
        "x86_ibt",
        "hwcaps",
        "x86_non_temporal_threshold",
    }
    assert found["x86_rep_movsb_threshold"].value == 0x840
    assert found["hwcaps"].value is None


class MadeLibc:
    """In place of processes: what each setting takes over the default, by tunable, and how long a process does."""

    def __init__(self, monkeypatch, of: dict[str, float], seconds: float = 0.01, scatter=0.0):
        self.of, self.seconds, self.scatter, self.now = of, seconds, scatter, 0.0
        self.processes = []  # (rows, setting)
        self.chance = np.random.default_rng(1)
        monkeypatch.setattr(libc, "_measure", self.measure)
        monkeypatch.setattr(libc, "jobcontrol", SimpleNamespace(clock=lambda: self.now))

    def measure(self, rows, setting, seed, ends=math.inf):
        if self.now + self.seconds > ends:
            self.now = max(self.now, ends)
            raise libc._LateError
        self.now += self.seconds
        self.processes.append((list(rows), setting))
        far = math.exp(self.chance.normal(0, self.scatter)) if self.scatter else 1.0
        over = self.of.get(setting, 1.0) if setting else 1.0
        return dict.fromkeys(range(len(rows)), 100.0 * over * far)

    def search(self, extent=None, **more):
        extent = extent or libc.FULL
        return libc.Search(extent, {"L1": 48 << 10, "L2": 1 << 20}, 32 << 20, seed=1, **more)


MOVSB = "glibc.cpu.x86_rep_movsb_threshold=1099511627776"


NON_TEMPORAL = "glibc.cpu.x86_non_temporal_threshold=8388608"


def test_what_does_not_hold_together_leaves_the_best_of_them(monkeypatch):
    made = MadeLibc(
        monkeypatch, {MOVSB: 0.9, NON_TEMPORAL: 0.7, f"{MOVSB}:{NON_TEMPORAL}": 1.0}, scatter=1e-4
    )
    found = made.search().run(tunables.listed(LISTED))
    assert found.line == NON_TEMPORAL and found.proof.call == "faster"
    assert found.apart == f"{MOVSB}:{NON_TEMPORAL}" and found.apart_proof.call == "tie"
    assert {own.name: own.outcome for own in found.settings} == {
        "x86_rep_movsb_threshold": "proved, left out of the line",
        "x86_non_temporal_threshold": "taken",
        "hwcaps": "no gain",
    }
    said = tuninglibc.sentence(found)
    assert "already tuned" not in said and "in one line they did not hold" in said
    assert tuninglibc._record(found)["line"] == f"GLIBC_TUNABLES={NON_TEMPORAL}"
    # Where it holds it is the line.
    made.of[f"{MOVSB}:{NON_TEMPORAL}"] = 0.65
    found = made.search().run(tunables.listed(LISTED))
    assert found.line == f"{MOVSB}:{NON_TEMPORAL}" and found.apart is None
    assert tuninglibc.sentence(found).startswith("On ")


def test_a_gain_within_the_noise_that_is_shown_is_none():
    # Noise of 79 % is 44 % less by its inverse, and is shown as ±79 %.
    far = prove.Proof(9, stats.Ratio(0.517, 0.37, 0.57), 0.79, 1e-6, None)
    assert far.call == "tie"
    assert replace(far, floor=0.47).call == "faster"
    assert replace(far, ratio=stats.Ratio(1.9, 1.85, 1.95)).call == "slower"


@pytest.mark.parametrize("extent", ["FULL", "QUICK"])
@pytest.mark.parametrize("seconds", [0.2, 3.0, 30.0, 200.0])
def test_glibc_is_tuned_within_its_time(monkeypatch, extent, seconds):
    """However long a process takes."""
    made = MadeLibc(monkeypatch, {MOVSB: 0.5, NON_TEMPORAL: 0.5}, seconds, scatter=1e-4)
    extent = getattr(libc, extent)
    found = made.search(extent).run(tunables.listed(LISTED))
    assert found.seconds == made.now <= extent.seconds <= 170
    outcomes = {own.outcome for own in found.settings}
    if seconds == 200.0:
        assert outcomes == {"not tried: too little time"} and found.line is None
    said = tuninglibc.sentence(found)
    if any("too little time" in text for text in outcomes):
        assert "too little time for x86" in said and "already tuned" not in said


def test_no_time_for_a_proof_is_said(monkeypatch):
    # Nine processes of four seconds choose; sixteen and more would have to prove.
    made = MadeLibc(monkeypatch, {MOVSB: 0.5}, 4.0)
    only = {
        name: own
        for name, own in tunables.listed(LISTED).items()
        if name == "x86_rep_movsb_threshold"
    }
    found = made.search(replace(libc.FULL, seconds=95)).run(only)
    (own,) = found.settings
    assert own.best and own.proof is None and own.outcome == "not proved: too little time"
    assert "too little time" in tuninglibc.sentence(found)


def test_of_what_was_interrupted_nothing_is_claimed(monkeypatch):
    """Whenever that happens: no gain and left out is only what was measured to its end."""
    there = tunables.listed(LISTED)
    made = MadeLibc(monkeypatch, {MOVSB: 0.5, NON_TEMPORAL: 0.5}, scatter=1e-4)
    whole = made.search(libc.QUICK).run(there)
    assert "no gain" in {own.outcome for own in whole.settings}
    usual, met = made.measure, set()
    for after in range(len(made.processes)):
        left = [after]

        def measure(*how, left=left):
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return usual(*how)

        monkeypatch.setattr(libc, "_measure", measure)
        found = made.search(libc.QUICK).run(there)
        assert found.interrupted and found.line is None
        assert [own.name for own in found.settings] == [own.name for own in whole.settings]
        for own in found.settings:
            met.add(own.outcome)
            assert own.outcome != "no gain" or (own.tried == own.values and own.best is None)
    assert met == {
        "no gain",
        "not tried: interrupted",
        "not proved: interrupted",
        "proved, interrupted before the line",
    }


def test_some_values_are_tried_where_there_is_no_time_for_all(monkeypatch):
    # 0.5 and 2 times the last-level cache, of six values; rows take so long that eight processes have no room.
    there = tunables.listed(LISTED)
    made = MadeLibc(monkeypatch, {"glibc.cpu.x86_non_temporal_threshold=16777216": 0.5}, 6.0)
    usual = made.measure

    def measure(rows, *how):
        made.seconds = 2.6 * len(rows)
        return usual(rows, *how)

    monkeypatch.setattr(libc, "_measure", measure)
    monkeypatch.setattr(libc.os, "sched_getaffinity", lambda _: {0, 1})
    only = {"x86_non_temporal_threshold": there["x86_non_temporal_threshold"]}
    found = made.search(replace(libc.QUICK, seconds=50)).run(only)
    (own,) = found.settings
    assert {setting for _, setting in made.processes if setting} == {
        f"{tunables.PREFIX}x86_non_temporal_threshold={16 << 20}",
        f"{tunables.PREFIX}x86_non_temporal_threshold={64 << 20}",
    }
    assert (own.tried, own.values) == (2, 6) and own.outcome.endswith("; 2 of 6 values tried")
    assert tuninglibc._record(found)["settings"][0]["values_tried"] == 2
    own.best, own.proof = None, None
    assert "Of x86_non_temporal_threshold not all values were tried." in tuninglibc.sentence(found)


def test_what_is_left_in_the_end_is_for_proofs(monkeypatch):
    """One that took longer than its part to choose is proved in the time that others did not need."""
    made = MadeLibc(monkeypatch, {MOVSB: 0.5}, 0.5)
    slow = made.measure

    def measure(rows, setting, seed, ends=math.inf):
        made.seconds = 3.0 if setting and "movsb" in setting and not later else 0.5
        later.extend([1] * bool(setting and "hwcaps" in setting))
        return slow(rows, setting, seed, ends)

    later: list[int] = []
    monkeypatch.setattr(libc, "_measure", measure)
    found = made.search(replace(libc.FULL, seconds=60)).run(tunables.listed(LISTED))
    own = found.settings[0]
    assert own.outcome == "taken" and found.seconds <= 60 and found.line == MOVSB


def test_tuned_by_a_mix_other_samples_prove(monkeypatch, tmp_path):
    made = MadeLibc(monkeypatch, {"glibc.cpu.hwcaps=-ERMS": 0.5}, scatter=1e-4)
    rows = [grids.choice(("libc",), grids.FULL, (mix,))[0] for mix in ("@a", "@b")]
    search = made.search(mix_rows=rows[:1], held_out_mix_rows=rows[1:], largest=64)
    found = search.run(tunables.listed(LISTED))
    own = {own.name: own for own in found.settings}
    assert own["hwcaps"].kept
    by = {"@a": set(), "@b": set()}
    for measured, setting in made.processes:
        by[measured[0].mix].add(setting)
    assert len(by["@a"]) > 2 and by["@b"] == {None, "glibc.cpu.hwcaps=-ERMS"}
    # No call of the mix is as large as what these bear on.
    for name in ("x86_rep_movsb_threshold", "x86_non_temporal_threshold"):
        assert own[name].outcome == "not tried: nothing in this mix reaches it"


def test_other_samples_of_a_recording():
    """What is proved by is not what was chosen by."""
    asked = [cli_tuning.given_mixes(["gcc"], {"L1": 48 << 10}, seed)[0] for seed in (1, 2)]
    texts = [Path(own[0].spec.removeprefix("@")).read_text() for own in asked]
    assert len(asked[0]) == len(asked[1]) and texts[0] != texts[1]


def test_only_what_this_glibc_has_and_allows_is_tried():
    tried = tunables.candidates(tunables.listed(LISTED), 32 << 20)
    assert set(tried) == {"x86_rep_movsb_threshold", "hwcaps", "x86_non_temporal_threshold"}
    values = [int(text.partition("=")[2]) for text in tried["x86_rep_movsb_threshold"]]
    assert min(values) >= 0x2000
    newer = tunables.listed(
        LISTED
        + "glibc.cpu.x86_memset_non_temporal_threshold: 0xc0000 (min: 0x4040, max: 0xfff0000)"
    )
    assert tunables.MEMSET_NON_TEMPORAL in tunables.candidates(newer, 32 << 20)


def test_a_setting_is_judged_by_the_cells_that_both_have():
    assert libc._log({0: 50.0, 1: 100.0, 3: 8.0}, {1: 50.0, 2: 1.0, 3: 4.0}) == (math.log(2), 2)
    assert libc._log({0: 1.0}, {1: 1.0}) == (0.0, 0)


def test_this_loader_lists_its_tunables():
    assert tunables.MOVSB in tunables.here()
