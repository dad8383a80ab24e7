"""`wherry record` as a command: what interrupts, stops, hangs up or kills it, and what is left all the same."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from conftest import children_of, run, wait_until
from test_record import known, record, recorded, recorder
from test_record_callers import phases
from wherry import recordings
from wherry.recording import running

__all__ = ["known", "phases", "record", "recorded", "recorder"]  # fixtures


def has_worked(pid: str) -> bool:
    """For half a second of processor time."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return int(words[11]) > os.sysconf("SC_CLK_TCK") // 2


def begun(wherry_run: Path, *words: str | Path, **options) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "wherry", "record", "--no-ceiling", *map(str, words)],
        env={**os.environ, "WHERRY_RUN": str(wherry_run), **options.pop("more", {})},
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


ENDLESS = ("times", "100000000000")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1])
def test_an_interrupt_is_the_programs(wherry_run, tmp_path, known, number: int):
    """The mix of what ran until then is written all the same."""
    target = tmp_path / "cut.mix.json"
    process = begun(wherry_run, "-o", target, "--", known, *ENDLESS)
    wait_until(lambda: any(map(has_worked, children_of(process.pid))), "the program at work")
    process.send_signal(number)
    said = process.communicate(timeout=300)[1]
    assert process.returncode == 128 + number, said
    assert json.loads(target.read_text())["ops"]["copy"]["calls"] > 1000


def test_no_thread_takes_the_interrupts(wherry_run, tmp_path, known):
    """Each of wherry's threads blocks them, but for the one that waits for them and hands them on."""
    threads = {"OPENBLAS_NUM_THREADS": "2"}  # one more than the tests have it use
    process = begun(
        wherry_run, "-o", "x.mix.json", "--", known, *ENDLESS, cwd=tmp_path, more=threads
    )
    try:
        wait_until(lambda: any(map(has_worked, children_of(process.pid))), "the program at work")
        tasks = Path(f"/proc/{process.pid}/task").iterdir()
        states = [(task / "status").read_text() for task in tasks]
    finally:
        process.terminate()
        process.communicate(timeout=300)
    blocked = [int(re.search(r"SigBlk:\s*(\w+)", state)[1], 16) for state in states]
    both = 1 << signal.SIGINT - 1 | 1 << signal.SIGQUIT - 1
    # The thread that waits in sigwaitinfo has them unblocked there, which the kernel shows so.
    assert len([mask for mask in blocked if mask & both != both]) <= 1
    assert len(states) >= 3


def test_a_stop_is_no_interrupt(wherry_run, tmp_path, known):
    """Ctrl-Z and fg: what waits for signals goes on waiting."""
    process = begun(wherry_run, "-o", tmp_path / "x.mix.json", "--", known, *ENDLESS)
    wait_until(lambda: any(map(has_worked, children_of(process.pid))), "the program at work")
    for _ in range(3):
        process.send_signal(signal.SIGSTOP)
        time.sleep(10 * running.LOOK_S)
        process.send_signal(signal.SIGCONT)
        time.sleep(10 * running.LOOK_S)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=300)[1]
    assert process.returncode == 130 and "Traceback" not in said, said


REFUSED = """
import errno, os, pathlib, subprocess, sys
from wherry.recording import merge, running
asked = []
def refuse(process, number):
    asked.append(int(number))
    pathlib.Path(sys.argv[2], "asked").touch()
    raise PermissionError(errno.EPERM, "Operation not permitted")
subprocess.Popen.send_signal = refuse
shell = f"kill -{sys.argv[1]} {os.getpid()}; while [ ! -e {sys.argv[2]}/asked ]; do sleep 0.02; done; exit 5"
home = pathlib.Path(sys.argv[2], "parts")
home.mkdir()
ran = running.run(["sh", "-c", shell], "/bin/sh", os.environ, home, merge.Merger())
print(ran.exit, asked)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_command_that_takes_no_signals_of_ours_goes_on(tmp_path, number: int):
    """As one by sudo does, which is root's. In a process of its own: a thread of the tests' could take the signal."""
    done = subprocess.run(
        [sys.executable, "-c", REFUSED, str(int(number)), tmp_path],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.stdout, done.returncode) == (f"5 [{int(number)}]\n", 0), done.stderr


def test_an_interrupt_of_a_terminal_comes_once(wherry_run, tmp_path):
    """The terminal gives it to the program too."""
    program = (
        "import signal, sys, time; met = []; signal.signal(signal.SIGINT, lambda *_: met.append(1))\n"
        "print('begun', flush=True)\nwhile not met: time.sleep(0.01)\ntime.sleep(0.5); sys.exit(len(met))"
    )
    ours, theirs = os.openpty()

    def leads() -> None:
        os.setsid()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    target = tmp_path / "x.mix.json"
    words = ("-o", target, "--", sys.executable, "-c", program)
    process = begun(wherry_run, *words, stdin=theirs, stdout=theirs, preexec_fn=leads)
    os.close(theirs)
    said = b""
    while b"begun" not in said:
        said += os.read(ours, 100)
    os.write(ours, b"\x03")
    assert process.wait(timeout=300) == 1
    os.close(ours)
    assert json.loads(target.read_text())["run"]["exit"] == 1


COUNTS = """
import signal, time
met = []
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, lambda number, _: met.append(int(number)))
print("begun", flush=True)
while not met: time.sleep(0.01)
time.sleep(0.5)
print(*met)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_to_the_group_comes_once(wherry_run, tmp_path, number: int):
    """As `timeout` sends it, to us first and then to all; and again to us alone, which is handed on."""
    for whole in (True, False):
        process = begun(
            wherry_run,
            *("-o", tmp_path / "x.mix.json", "--", sys.executable, "-c", COUNTS),
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout.readline() == "begun\n"
        process.send_signal(number)
        if whole:
            os.killpg(process.pid, number)
        said, errors = process.communicate(timeout=300)
        assert (said, process.returncode) == (f"{int(number)}\n", 0), errors
        (tmp_path / "x.mix.json").unlink()


def test_an_exit_status_is_told_where_children_are_ignored(wherry_run, tmp_path):
    """By a shell's trap '' CHLD; the command has them ignored as without us."""
    asks = (
        "import signal; raise SystemExit(3 + (signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN))"
    )
    process = begun(
        wherry_run,
        *("-o", tmp_path / "x.mix.json", "--", sys.executable, "-c", asks),
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    )
    said = process.communicate(timeout=300)[1]
    assert process.returncode == 4, said
    assert json.loads((tmp_path / "x.mix.json").read_text())["run"]["exit"] == 4


def test_an_interrupt_at_the_end_leaves_out_the_ceiling(recorded, monkeypatch, capsys):
    from wherry import ceiling
    from wherry.recording import running, writing
    from wherry.recording.ending import Ending

    def interrupted(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(ceiling, "costs", interrupted)
    monkeypatch.setattr(writing, "_machine", dict)
    merger = recorded("times", "100").merger
    ending = Ending()
    with ending.in_charge():
        found = writing.document(
            name="x",
            command=["x"],
            note="",
            ran=running.Ran(0, 0, 1.0, 1.0, 0.0, {}, 0),
            merger=merger,
            unrecorded=[],
            ceilings=True,
            ending=ending,
        )
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGUSR1)
    assert found["ceiling"] is None
    assert found["ops"]["copy"]["calls"] >= 100
    assert "saved without the ceiling" in capsys.readouterr().err


def test_a_second_interrupt_leaves_nothing_uncleared():
    """It came while what the first had ended was removed, and left a directory in TMPDIR."""
    from wherry.recording.ending import Ending

    ending, cleared = Ending(), []
    with ending.in_charge(), pytest.raises(KeyboardInterrupt), ending.can_be_left():
        try:
            os.kill(os.getpid(), signal.SIGINT)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            cleared.append(True)
    assert cleared and ending.asked
    with pytest.raises(KeyboardInterrupt), ending.can_be_left():
        pytest.fail("what can be left is not begun any more")


def test_nohup_holds_for_it_and_for_the_program(wherry_run, tmp_path):
    """The program sends SIGHUP to wherry, which would hand it on, and to itself."""
    target = tmp_path / "held.mix.json"
    own = [sys.executable, "-m", "wherry", "record", "--no-ceiling", "-q", "-o", target, "--"]
    script = "kill -HUP $PPID; sleep 0.2; kill -HUP $$; echo held; exit 4"
    done = run(
        *("nohup", *own, "sh", "-c", script),
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "WHERRY_RUN": str(wherry_run)},
    )
    assert (done.stdout, done.returncode) == ("held\n", 4), done.stderr
    assert json.loads(target.read_text())["run"]["exit"] == 4


def test_what_a_killed_recorder_leaves_can_be_recovered(wherry, wherry_run, tmp_path, known):
    target = tmp_path / "cut.mix.json"
    words = ("--note", "a test", "-o", target, "--", known, *ENDLESS)
    process = begun(wherry_run, *words)
    child = []

    def at_work() -> bool:
        child[:] = children_of(process.pid)
        return any(map(has_worked, child))

    wait_until(at_work, "the program at work")
    (home,) = {
        Path(line.split()[-1]).parent
        for line in Path(f"/proc/{child[0]}/maps").read_text().splitlines()
        if "/wherry-record-" in line
    }
    try:
        done = wherry("record", "--recover", home)
        assert (done.returncode, "under way" in done.stderr) == (2, True)
        process.kill()
        process.wait()
        done = wherry("record", "--recover", home)
        assert (done.returncode, f"process {child[0]} is still recorded" in done.stderr) == (
            2,
            True,
        )
        done = wherry("record", "--no-ceiling", "-o", tmp_path / "y", "--", "true")
        assert f"wherry record --recover {home} saves it" in done.stderr
    finally:
        os.kill(int(child[0]), signal.SIGKILL)
    wait_until(
        lambda: (
            not Path(f"/proc/{child[0]}/maps").exists()
            or not Path(f"/proc/{child[0]}/maps").read_bytes()
        ),
        "its end",
    )
    done = wherry("record", "--recover", home)
    assert done.returncode == 0, done.stderr
    assert "recovered, so that neither exit status nor times are known" in " ".join(
        done.stderr.split()
    )
    mix = json.loads(target.read_text())
    assert mix["how"] == {"command": [str(known), *ENDLESS], "programs": [], "note": "a test"}
    assert (mix["run"]["exit"], mix["run"]["recovered"], mix["ceiling"]) == (None, True, None)
    assert mix["ops"]["copy"]["calls"] > 1000
    recordings.read(target)
    assert not home.exists()
    done = wherry("record", "--recover", home)
    assert (done.returncode, "no recording of yours" in done.stderr) == (2, True)
    assert wherry("record", "--recover", home, "--", "true").returncode == 2
    assert wherry("report", target, "-o", tmp_path / "page.html").returncode == 0
