"""`wherry-run verify` and processes: peers that crash, sleep, stop or end theirs, or bring a runtime along."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import wait_until
from test_verify import events, library, runner

__all__ = ["library", "runner"]  # fixtures


def test_peer_that_crashes_while_it_is_loaded(runner, build_dir):
    crashing = build_dir / "tests" / "fixtures" / "libcrashing.so"
    done = runner("--only-peers", "--peer", f"bad={crashing}")
    assert done.returncode == 1
    assert "crashed while it was loaded" in done.stderr


def test_a_peer_calls_its_own_functions(runner, build_dir):
    """Not libc's of the same name, which would then be what is verified and measured."""
    inner = build_dir / "tests" / "fixtures" / "libinner.so"
    done = runner("--only-peers", "--peer", f"mine={inner}:outer_", "--family", "sweep", "--brief")
    assert done.returncode == 1 and "77 bytes" in done.stdout, done.stdout + done.stderr


def test_a_peer_whose_runtime_begins_in_a_thread(runner, build_dir):
    """Each try is a fork, which has no such thread."""
    late = build_dir / "tests" / "fixtures" / "liblate.so"
    done = runner("--only-peers", "--peer", f"late={late}", "--family", "sweep", "--brief")
    assert done.returncode == 0 and "all right" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("prefix", "asked", "status", "said"),
    [
        ("right_", ("--family", "huge"), 0, "huge: it works in threads of its own"),
        ("right_", ("--case", "ordering:n=1129282,d=23,s=30"), 0, "ordering: it works in threads"),
        ("right_", ("--case", "sizes:n=1129282,d=23,s=30"), 0, "all right: 1 case"),
        ("beyond_", ("--family", "guard"), 1, "a thread that it started met signal 11"),
    ],
)
def test_a_peer_that_works_in_threads_of_its_own(runner, build_dir, prefix, asked, status, said):
    """No call can be taken back out of such a thread: where a fault is due that is no mistake, elsewhere it is one."""
    parallel = build_dir / "tests" / "fixtures" / "libparallel.so"
    done = runner("--only-peers", "--peer", f"p={parallel}:{prefix}", *asked, "--brief")
    assert done.returncode == status and said in done.stdout, done.stdout + done.stderr
    assert "damaged memory" not in done.stdout, done.stdout


def test_a_call_that_sleeps_is_a_hang_and_a_process_that_was_stopped_is_none(
    runner, wherry, library
):
    """The others are stopped for as long as it takes to see that: one the child that calls, one the runner, too."""
    program = [runner.program, "verify", "--only-peers", "--peer", f"slow={library}:dawdle_"]
    program += ["--case", "sweep:n=9,calls=80", "--json"]
    stopped = []
    for whole in (False, True):
        process = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
        assert json.loads(process.stdout.readline())["event"] == "start"
        pids = [*([process.pid] if whole else []), child_of(process.pid)]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        stopped.append((process, pids))
    # Nobody has this one go on: neither slow nor wrong.
    program = [runner.program, "verify", "--only-peers", "--peer", f"slow={library}:dawdle_"]
    program += ["--brief", "--family", "sweep", "--json"]
    left = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
    assert json.loads(left.stdout.readline())["event"] == "start"
    os.kill(child_of(left.pid), signal.SIGSTOP)
    peers = ["--peer", f"x={library}:block_first_", "--peer", f"y={library}:good_"]
    done = wherry(
        "verify", "--brief", "--only-peers", "--family", "sweep,empty", *peers, "--jobs", "1"
    )
    for _, pids in stopped:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "HUNG: x\n" in done.stdout and "did not return within 10 s of sleep" in done.stdout
    assert "(family empty: it hung in another family): x" in " ".join(done.stdout.split())
    assert "Verified 1 target," in done.stdout and ": 1 failure in x." in done.stdout
    for process, _ in stopped:
        said, _ = process.communicate(timeout=300)
        assert process.returncode == 0, said
    said, _ = left.communicate(timeout=300)
    assert left.returncode == 1, said
    assert "stopped by signal 19 (Stopped (signal)), and nobody had it go on: cut off" in said


def test_a_call_that_stops_its_own_process_is_told_as_that(runner, library):
    """It passed for a slow one, after all the time that one has."""
    peer = ("--peer", f"x={library}:stop_", "--jobs", "1")
    done = runner("--brief", "--only-peers", "--family", "sweep,empty", *peer)
    assert done.returncode == 1, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert "stopped its process with signal 19 (Stopped (signal)) instead of returning" in said
    assert "too slow" not in said
    # Only the case that is told of: nine bytes.
    done = runner("--only-peers", *peer, "--case", "sweep:n=9", "--json")
    assert done.returncode == 1 and events(done, "failure")[0]["size"] == 9
    assert runner("--only-peers", *peer, "--case", "sweep:n=8").returncode == 0


def child_of(pid: int) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    wait_until(lambda: children.read_text().split(), "it has begun")
    return int(children.read_text().split()[0])


@pytest.mark.parametrize("family", [(), ("--family", "sweep")])
def test_a_process_that_ends_in_the_first_call_is_a_failure(wherry, library, family):
    """With no case that came to its end nothing is left to say all right of."""
    peer = ("--peer", f"x={library}:exit_first_")
    done = wherry("verify", "--brief", "--only-peers", *peer, *family)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "WRONG: x\n" in done.stdout and not done.stderr
    said = " ".join(done.stdout.split())
    assert "ended its process with exit status 0 instead of returning" in said
    assert "Verified 0 targets, 0 cases" in said
