"""Recorded mixes as the runner draws and measures them."""

from __future__ import annotations

import json
import subprocess

import pytest
from wherry import recordedcalls, recordings


@pytest.fixture
def measured(wherry_run, tmp_path):
    def call(text: str, op: str = "copy", more: str = "") -> subprocess.CompletedProcess:
        path = tmp_path / "calls"
        path.write_text(text)
        line = f"id=1 op={op} routines=libc,wherry mix=@{path} rounds=1 batch_us=20 {more}\n"
        return subprocess.run(
            [wherry_run, "measure"],
            input=line,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    return call


@pytest.mark.parametrize("op", ["copy", "move", "set", "zero"])
@pytest.mark.parametrize("state", ["L1", "L2", "DRAM"])
def test_calls_are_measured_and_verified(measured, op: str, state: str):
    runs = recordedcalls.table(
        recordings.shipped("sqlite"), "move" if op == "move" else "copy", most=2000, count=5000
    )
    done = measured(recordedcalls.runner_text(runs), op, f"src_state={state} dst_state={state}")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    cells = [event for event in events if event["event"] == "cell"]
    assert {cell["routine"] for cell in cells} == {"libc", "wherry"}
    assert all(cell["verified"] for cell in cells)
    mean = sum(c[0] for run in runs for c in run) / sum(len(run) for run in runs)
    assert cells[0]["bytes"] == pytest.approx(mean, rel=0.05)


@pytest.mark.parametrize(
    "text",
    [
        "calls\n",
        "calls\n-\n",
        "calls\n5\n",
        "calls\n5 1\n",
        "calls\n5 64 0\n",
        "calls\n5 0 4096\n",
        "calls\n5 0 0 5\n",
        "calls\n5 0 0 -5\n",
        "calls\n5 0 0 1 1\n",
        "calls\n-1 0 0\n",
        "calls\n2000000000 0 0\n",
        "calls\nx\n",
        "calls\n5 0 0\n\n",
    ],
)
def test_bad_calls_are_misuse(measured, text: str):
    done = measured(text)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "calls" in done.stderr or "SIZE SRC DELTA" in done.stderr


def test_a_place_contradicts_an_offset(measured):
    assert measured("calls\n5 0 0\n", more="src_off=3").returncode == 2
