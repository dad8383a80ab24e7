"""Ctrl-Z: what we have started stands still with us, and nothing is told of what was stopped amid."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from conftest import children_of, program, wait_until
from wherry import cli, jobcontrol, journal, selfcheck
from wherry.cli import progress, replaying

pytestmark = pytest.mark.usefixtures("own_directory")


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


WHERRY = (sys.executable, "-m", "wherry")


def _stopped_and_continued(words, environment, runner_there, stands=1.5):
    """Starts a command in a process group of its own, as a shell does, and presses Ctrl-Z once its runner works.
    Returns the runner of then, what it is while we are stopped (None: gone), and what came of it all."""
    with subprocess.Popen(
        words,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=os.setpgrp,
    ) as process:
        try:
            wait_until(lambda: runner_there(process.pid), "its runner works")
            runner = int(runner_there(process.pid))
            os.killpg(process.pid, signal.SIGTSTP)
            wait_until(lambda: _state(process.pid) == "T", "it is stopped")
            try:
                wait_until(lambda: _state(runner) in "TZ", "its runner is stopped, too", 5)
                meanwhile = _state(runner)
            except (FileNotFoundError, ProcessLookupError):
                meanwhile = "gone"
            time.sleep(stands)
            os.killpg(process.pid, signal.SIGCONT)
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    return runner, meanwhile, process.returncode, out, err


def test_ctrl_z_stops_a_measurement_and_what_was_under_way_is_measured_anew(tmp_path):
    (tmp_path / "peer.so").write_bytes(b"peer")
    environment = {
        **os.environ,
        "WHERRY_RUN": str(Path(__file__).with_name("fake_runner.py")),
        "WHERRY_FAKE_LOG": str(tmp_path / "log"),
        "WHERRY_FAKE_ROWS": str(tmp_path / "rows"),
        "WHERRY_FAKE_SLOW": "0.4",
    }

    def third_row(pid):
        rows = tmp_path / "rows"
        there = rows.read_text().count("\n") if rows.exists() else 0
        return next(iter(children_of(pid)), None) if there >= 3 else None

    words = (*WHERRY, "bench", "sizes", "--size", "64,128,256,512", "--processes", "1", "--peer")
    words += ("slow=peer.so", "--hang-limit", "1.2", "--save", "run.json", "--routine", "rep_movsb")
    _, meanwhile, status, out, err = _stopped_and_continued(words, environment, third_row)
    assert meanwhile in ("gone", "Z") and status == 0, out + err
    run = json.loads((tmp_path / "run.json").read_text())
    assert run["problems"] == [] and not run["interrupted"]
    libc = [c for c in run["cells"] if c["routine"] == "libc" and not c["aa"]]
    assert [c["size"] for c in libc] == [64, 128, 256, 512]
    starts = (tmp_path / "log").read_text().splitlines()
    assert sum(line.startswith("measure --seed") for line in starts) == 2
    # The rows that were done were not measured again.
    ids = [re.search(r"\bid=(\d+)", row)[1] for row in (tmp_path / "rows").read_text().splitlines()]
    assert ids[-2:] == ["2", "3"] and ids.count("0") == ids.count("1") == 1
    assert run["experiments"][0]["seconds"] < run["seconds"] + 1e-6


def _child_for(pid, word):
    """That has this argument. Not every child is the runner: the editable package asks ninja first."""
    own = children_of(pid)
    words = Path(f"/proc/{own[0]}/cmdline").read_bytes().split(b"\0") if own else []
    return own[0] if word in words else None


def test_ctrl_z_stops_a_verification_and_it_goes_on(wherry_run):
    environment = {**os.environ, "WHERRY_RUN": str(wherry_run)}

    def runner(pid):
        own = _child_for(pid, b"verify")
        return own if own and children_of(int(own)) else None

    # Families that take seconds together, which is time enough to be stopped in.
    some = ("--family", "sweep,sizes,contents")
    words = (*WHERRY, "verify", "rep_movsb", *some, "--jobs", "1", "--seed", "1")
    _, meanwhile, status, out, err = _stopped_and_continued(words, environment, runner)
    assert meanwhile == "T" and status == 0, out + err


SLEEPS = """
    import sys, time
    with open("starts", "a") as file:
        file.write("x")
    for _ in range(30):
        time.sleep(0.01)
"""
# Longer than that takes on a slow machine.
STANDS = 4


def _starts():
    return Path("starts").stat().st_size if Path("starts").exists() else 0


def test_ctrl_z_stops_the_program_of_ab_and_its_run_is_made_anew(wherry_run):
    environment = {**os.environ, "WHERRY_RUN": str(wherry_run)}

    def third_run(pid):
        below = children_of(pid) if _starts() >= 3 else ()
        return next((own for child in below for own in children_of(int(child))), None)

    words = (*WHERRY, "ab", "--runs", "2", "--a", "A=1", "--b", "A=2", "--time", "1s")
    words += ("--save", "run.json", "--", *program(SLEEPS))
    _, meanwhile, status, out, err = _stopped_and_continued(words, environment, third_run, STANDS)
    assert meanwhile == "T" and status == 0, out + err
    (ab,) = json.loads(Path("run.json").read_text())["experiments"]
    runs = [run for four in ab["ab"]["runs"] for run in four]
    assert len(runs) == 4 and _starts() == 2 + len(runs) + 1
    assert all(run["elapsed"] < STANDS for run in runs)


def test_the_limit_of_a_preparation_stands_still_with_it(wherry_run):
    environment = {**os.environ, "WHERRY_RUN": str(wherry_run)}
    words = (*WHERRY, "ab", "--runs", "2", "--a", "A=1", "--b", "A=2", "--limit", f"{STANDS - 0.5}")
    words += ("--prepare", shlex.join(program(SLEEPS)), "--save", "run.json", "--", "true")

    def preparation(pid):
        return next(iter(children_of(pid)), None) if _starts() else None

    _, meanwhile, status, out, err = _stopped_and_continued(words, environment, preparation, STANDS)
    assert meanwhile == "T" and status == 0, out + err


def test_the_limit_of_a_timed_program_stands_still_with_it(wherry_run):
    def its_program(pid):
        return next(iter(children_of(pid)), None) if _starts() else None

    words = (wherry_run, "timed", "--limit", f"{STANDS - 0.5}", "--", *program(SLEEPS))
    _, meanwhile, status, out, err = _stopped_and_continued(
        words, dict(os.environ), its_program, STANDS
    )
    ran = json.loads(out)
    assert meanwhile == "T" and status == 0 and not ran["timed_out"], out + err
    assert ran["stops"] == 1 and ran["elapsed_ns"] < STANDS * 1e9


@pytest.mark.parametrize("apart", [False, True])
def test_the_time_of_a_recorded_program_stands_still_with_it(wherry_run, apart):
    """Unless it is in a session of its own, and goes on."""
    words = (*WHERRY, "record", "--no-ceiling", "-o", "x.mix.json", "--")
    words += (*(("setsid",) if apart else ()), *program(SLEEPS.replace("30", "300")))

    def its_program(pid):
        return next(iter(children_of(pid)), None) if _starts() else None

    began = time.monotonic()
    with subprocess.Popen(words, stderr=subprocess.PIPE, preexec_fn=os.setpgrp) as process:
        try:
            wait_until(lambda: its_program(process.pid), "its program works")
            runs = int(its_program(process.pid))
            os.killpg(process.pid, signal.SIGTSTP)
            wait_until(lambda: _state(process.pid) == "T", "it is stopped")
            if not apart:
                wait_until(lambda: _state(runs) == "T", "its program is stopped, too")
            time.sleep(STANDS)
            os.killpg(process.pid, signal.SIGCONT)
            process.communicate(timeout=120)
        finally:
            process.kill()
    whole = time.monotonic() - began
    elapsed = json.loads(Path("x.mix.json").read_text())["run"]["elapsed_s"]
    assert process.returncode == 0
    assert 3 <= elapsed < whole - (0 if apart else STANDS)


def test_ctrl_z_ends_a_measurement_of_glibcs_tunables_which_is_made_anew(wherry_run):
    environment = {**os.environ, "WHERRY_RUN": str(wherry_run)}
    script = """
        from wherry.tune import libc
        rows = [libc._row("copy", 1000, 200) for _ in range(2)]
        print(sorted(libc._measure(rows, None, 1)))
    """
    words = (sys.executable, "-c", textwrap.dedent(script))

    def runner(pid):
        return _child_for(pid, b"measure")

    _, meanwhile, status, out, err = _stopped_and_continued(words, environment, runner)
    assert meanwhile in ("gone", "Z") and status == 0, out + err
    assert json.loads(out) == [0, 1]


def test_the_time_left_is_reckoned_without_what_was_stopped(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(jobcontrol, "_stood", [0.0])
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    bar = progress._bar()
    task = bar.add_task("", total=10, unit="runs")
    for done in range(1, 6):
        now[0] += 1
        if done == 3:
            now[0] += 1000
            jobcontrol._stood[0] += 1000
        bar.update(task, completed=done)
    assert bar.tasks[0].time_remaining == pytest.approx(5, abs=1.5)
    assert bar.tasks[0].elapsed == 5


def test_ctrl_z_waits_while_somebody_is_started(monkeypatch):
    """Who is started runs before we know its number: a stop right then would stop us alone."""
    told = []
    monkeypatch.setattr(signal, "raise_signal", lambda number: told.append("stopped"))
    with jobcontrol.following(lambda: told.append("before"), lambda: told.append("after")):
        with jobcontrol.held(), jobcontrol.held():
            os.kill(os.getpid(), signal.SIGTSTP)
            assert told == []
        assert told == ["before", "stopped", "after"]
        os.kill(os.getpid(), signal.SIGTSTP)
        assert told == 2 * ["before", "stopped", "after"]


@pytest.fixture
def stops(monkeypatch):
    """A Ctrl-Z at once, of a thousand seconds, on a clock that goes only when it is told to."""
    now = [100.0]
    monkeypatch.setattr(jobcontrol, "_stood", [0.0])
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def stand(number: int) -> None:
        now[0] += 1000

    monkeypatch.setattr(signal, "raise_signal", stand)

    def press(*_: object, **__: object) -> list:
        now[0] += 2
        os.kill(os.getpid(), signal.SIGTSTP)
        now[0] += 3
        return []

    return press


def test_a_self_check_does_not_count_what_was_stopped(wherry_run, tmp_path, monkeypatch, stops):
    monkeypatch.setenv("WHERRY_RUN", str(wherry_run))
    limits = []

    def check(session):
        stops()
        limits.append(session.late())
        return []

    monkeypatch.setattr(selfcheck, "check", check)
    cli._run(["bench", "--self-check", "--quick", "--save", "check.json"])
    assert json.loads(Path("check.json").read_text())["seconds"] == 5 and limits == [False]


def test_a_replay_does_not_count_what_was_stopped(wherry_run, monkeypatch, stops):
    monkeypatch.setenv("WHERRY_RUN", str(wherry_run))
    told = []

    def run(campaign, started, seconds, seed):
        told.append(seconds)
        return {}

    monkeypatch.setattr(replaying.PlanCampaign, "run", stops)
    monkeypatch.setattr(replaying, "_run", run)
    cli._run(["replay", "uniform:8-9", "--quick", "--no-found-peers", "--save", "run.json"])
    assert told == [5]


def test_a_journal_does_not_count_what_was_stopped(tmp_path, stops):
    with jobcontrol.counting():
        own = journal.Journal(tmp_path / "r.json", {}, {"state": {"done": []}})
        stops()
        own.excluded("slow")
    own.close()
    assert json.loads((tmp_path / "r.json.journal").read_text().splitlines()[1])["seconds"] == 5
