"""`wherry tune`: from which size copies and sets go past the caches, and in how many streams."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from made_tuning import REPORTED, proof
from wherry import plans
from wherry.cell import Problem
from wherry.cli import tuning as cli_tuning
from wherry.tune import grids, parts, session, streams


@pytest.mark.parametrize("side", ["copy", "set"])
@pytest.mark.parametrize(
    ("memory", "again", "found"),
    [
        (8 << 20, 8 << 20, 8 << 20),
        # What wins only where both sides were in memory is a loss for who uses the same buffers again.
        (8 << 20, 32 << 20, 32 << 20),
        (8 << 20, 1 << 40, plans.OFF),
        (1 << 40, 8 << 20, plans.OFF),
    ],
)
def test_past_the_caches_only_where_all_win(monkeypatch, side, memory, again, found):
    tuning = session.Session(REPORTED, grids.FULL)
    tuning.result.plan = tuning.result.plan.changed(
        **{f"{side}_rep_from": plans.OFF}, **tuning.result.plan.past(side, 12 << 20)
    )
    proved = []
    monkeypatch.setattr(tuning, "take", lambda what, rows, own, processes: rows)
    monkeypatch.setattr(
        tuning, "prove", lambda what, rows, *_: proved.extend(rows) or proof(-0.1, 0.001)
    )

    def log(rows, i, *_):
        start = again if rows[i].walk == "stream" else memory
        return -0.1 if rows[i].size >= start else 0.3

    monkeypatch.setattr(streams.measuring, "log_ratio", log)
    default = tuning.result.plan
    streams.streams(tuning, side)
    assert tuning.result.plan.past_from(side) == found
    assert tuning.result.plan == default.changed(**default.past(side, found))
    # It is proved by sizes that the two plans treat differently.
    assert proved and all((row.size >= found) != (row.size >= 12 << 20) for row in proved)
    (note,) = tuning.result.notes
    assert "alone, from memory:" in note and "alone, the same again:" in note
    # Where nothing was touched lately they go past the caches sooner, and do so still.
    far = {f"{side}_stream_from": 1 << 20, f"{side}_stream_recent_from": 12 << 20}
    tuning.result.plan = default.changed(**far)
    streams.streams(tuning, side)
    far[f"{side}_stream_recent_from"] = found
    assert tuning.result.plan == default.changed(**far)


@pytest.mark.parametrize(
    ("alone", "together", "now", "found"),
    [
        (-0.1, -0.08, plans.OFF, parts.LEAST),
        (-0.1, -0.08, 1 << 20, 1 << 20),
        (-0.1, 0.02, plans.OFF, plans.OFF),  # not with all CPUs at it
        (0.2, 0.1, parts.LEAST, plans.OFF),
        (0.2, -0.1, parts.LEAST, parts.LEAST),
        (0.01, -0.01, parts.LEAST, parts.LEAST),
        (-0.1, -0.1, 1 << 40, parts.LEAST),  # of no size that goes past the caches
    ],
)
def test_parts_where_they_win_alone_and_together(monkeypatch, alone, together, now, found):
    tuning = session.Session(REPORTED, grids.FULL)
    tuning.result.plan = tuning.result.plan.changed(
        **tuning.result.plan.past("copy", 24 << 20), copy_parts_from=now
    )
    taken, proved = [], []
    monkeypatch.setattr(grids.os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(
        tuning, "take", lambda what, rows, own, processes: taken.extend(rows) or rows
    )
    monkeypatch.setattr(
        tuning, "prove", lambda what, rows, *_: proved.extend(rows) or proof(-0.1, 0.001)
    )
    monkeypatch.setattr(
        parts.measuring,
        "log_ratio",
        lambda rows, i, *_: alone if rows[i].threads == 1 else together,
    )
    parts.parts(tuning)
    assert tuning.result.plan.thresholds["copy_parts_from"] == found
    assert bool(proved) is (found != now)
    assert {row.threads for row in taken} == {1, 2}
    # Names that the runner's --plan and rows take.
    assert all(name.isidentifier() for row in taken for name in row.routines)
    assert all(row.src_state == "DRAM" and row.size >= 24 << 20 for row in taken + proved)
    assert not {row.size for row in taken} & {row.size for row in proved}


def test_parts_are_of_what_goes_past_the_caches(monkeypatch):
    off = {"copy_stream_from": plans.OFF, "copy_stream_recent_from": 0}
    for options in ({"largest": 1 << 20}, off):
        tuning = session.Session(REPORTED, grids.FULL, largest=options.pop("largest", None))
        tuning.result.plan = tuning.result.plan.changed(**options)
        parts.parts(tuning)  # measures nothing
        assert not tuning.result.dimensions


@pytest.mark.parametrize("side", ["copy", "set"])
def test_what_quick_leaves_out_is_said(side):
    """But not of a mix that has no calls that large."""
    tuning = session.Session(REPORTED, grids.QUICK)
    streams.streams(tuning, side)
    (note,) = tuning.result.notes
    assert note.startswith(f"{side}: from which size stores past the caches win was not measured")
    assert "sizes to 2 MiB were" in note and not tuning.result.dimensions
    tuning = session.Session(REPORTED, grids.FULL, largest=70000)
    streams.streams(tuning, side)
    assert not tuning.result.notes and not tuning.result.dimensions


def test_what_there_is_no_memory_for_is_said(monkeypatch):
    """As in a container that may have a little."""
    why = "needs 192 MiB for its buffers, and may take 70 MiB"

    def poor(rows, own, *, processes, **_):
        problems = [Problem("skip", "", f"{why}; choose another", n) for n in range(len(rows))]
        done = {(process, row) for process in range(processes) for row in range(len(rows))}
        known = {"interrupted": False, "out_of_time": False, "run": lambda: None}
        return SimpleNamespace(
            rows=rows, problems=problems, done=done, cells={}, total_cells=lambda: 0, **known
        )

    monkeypatch.setattr(session, "PlanCampaign", poor)
    monkeypatch.setattr(streams.measuring, "log_ratio", lambda *_: None)
    tuning = session.Session(REPORTED, grids.FULL)
    streams.streams(tuning, "copy")
    (note,) = tuning.result.notes
    wanted = tuning.result.wanted
    assert (
        note == f"copy: past the caches: {wanted} of {wanted} rows cannot be measured here: {why}"
    )
    assert tuning.result.rows == 0 and tuning.result.impossible == wanted > 0
    said = cli_tuning.sentence(tuning.result, None)
    assert "already right" not in said and "the memory and the time there was" in said


@pytest.mark.parametrize("out_of_time", [False, True])
@pytest.mark.parametrize("lacking", [(), (3,)])
def test_what_was_not_measured_is_said(monkeypatch, out_of_time, lacking):
    """Two processes had four rows each and came to five in all; for one row there may be no memory."""
    made = {}

    def campaign(rows, own, **options):
        made.update(options)
        done = {(0, 0), (0, 1), (0, 2), (0, 3), (1, 3)}
        problems = [Problem("skip", "", "needs memory; choose", row) for row in lacking]
        problems += [Problem("skip", "loop", "not here", 0), Problem("crash", "loop", "died", 1)]
        known = {"interrupted": made["seed"] > 1004, "out_of_time": out_of_time}
        return SimpleNamespace(
            done=done, problems=problems, run=lambda: None, total_cells=lambda: 0, **known
        )

    monkeypatch.setattr(session, "PlanCampaign", campaign)
    monkeypatch.setattr(session.jobcontrol, "clock", lambda: 100.0)
    tuning = session.Session(REPORTED, grids.FULL, seed=4, limit=40.0)
    tuning.begin()
    tuning.take("copy: parts", [None] * 4, {}, 2)
    skipped = 2 * len(lacking)
    notes = [f"copy: parts: {skipped} of 8 rows cannot be measured here: needs memory"] * bool(
        lacking
    )
    notes += ["copy: parts: 5 of 8 rows in the time there was"] * out_of_time
    own = tuning.result
    assert own.notes == [*notes, "loop crash: died"]
    assert (own.wanted, own.rows, own.impossible) == (8, 5 - skipped, skipped)
    assert (made["processes"], made["seed"], made["deadline"]) == (2, 1004, 100 + 0.15 * 40)
    with pytest.raises(session.StoppedError):
        tuning.take("copy: parts", [None] * 4, {}, 2)
    assert (own.wanted, own.rows) == (8, 5 - skipped)
