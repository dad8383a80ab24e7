"""tools/programs: one program through all of it, what its page calls agreement, and what it measures again."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

import pytest
from conftest import ROOT, need_tool

pytestmark = pytest.mark.usefixtures("own_directory")


def test_the_script_of_real_programs(wherry_run, tmp_path):
    """One program through all of it, as small as it goes; then the page again from what was kept."""
    need_tool("gzip", "gzip")
    env = os.environ | {"WHERRY_RUN": str(wherry_run)}
    script = [sys.executable, str(ROOT / "tools" / "programs")]

    def call(*words):
        return subprocess.run(
            [*script, *words], capture_output=True, text=True, env=env, check=False, timeout=600
        )

    assert call("no-such-program").returncode == 2
    assert call("gzip", "--runs", "2").returncode == 2
    options = (
        "gzip",
        "--quick",
        "--work",
        str(tmp_path / "w"),
        "--plan",
        "none",
        "--runs",
        "8",
        "--time",
        "5",
        "-o",
        "p.md",
    )
    done = call(*options)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "p.md").read_text()
    assert "| gzip |" in text and "ceiling" in text and "With the default plan" in text
    again = call(*options)
    assert again.returncode == 0 and "record" not in again.stderr


def test_what_the_page_calls_agreement(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "programs.d"))
    page = importlib.import_module("page")

    def of(change: float, claimed: bool, call: str, low: float, high: float) -> str:
        predicted = {"change": change, "measurable": claimed}
        ratio = {"median": 1 + (low + high) / 2, "low": 1 + low, "high": 1 + high}
        return page.agreement(predicted, {"call": call, "ratio": ratio})

    assert of(-0.05, True, "faster", -0.06, -0.04) == "yes, size too"
    assert of(-0.05, True, "faster", -0.12, -0.08) == "in sign; 0.5 times the size"
    assert of(-0.05, True, "slower", 0.01, 0.02) == "no: refuted"
    assert of(-0.05, True, "tie", -0.06, 0.01).startswith("undecided")
    assert of(-0.05, True, "tie", -0.01, 0.01) == "no: claimed, not seen"
    assert of(-0.05, False, "tie", -0.01, 0.01).startswith("yes: nothing claimed")
    assert of(-0.001, False, "slower", 0.02, 0.04) == "nothing claimed; sign wrong"


def test_what_was_measured_with_another_plan_is_measured_again(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "programs.d"))
    kept = importlib.import_module("kept")
    plan = tmp_path / "mine.toml"
    plan.write_text("a")
    first = kept.digest(plan)
    plan.write_text("b")
    second = kept.digest(plan)
    commands = {"one": "cat", "two": "dd"}
    kept.write(
        tmp_path,
        {
            "one": {"command": "cat", "plan": first},
            "two": {"command": "dd if=x", "plan": first},
            "gone": {"command": "cat", "plan": first},
        },
    )
    assert list(kept.read(tmp_path, commands, first)) == ["one"]
    assert kept.read(tmp_path, commands, second) == kept.read(tmp_path, commands, None) == {}
    assert capsys.readouterr().err == ""
    (tmp_path / kept.FILE).write_text('{"one": {"command": "cat"}}')
    assert kept.read(tmp_path, commands, None) == {}
    assert "damaged or old" in capsys.readouterr().err
