"""Environments that a shell seldom makes: commands are found, recorded and compared in them all the same."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import report_runs
from conftest import need_tool, run
from wherry import elf, machine, mixcopies
from wherry.fleet import agent

# With the words of the command line, in an environment of one variable more, which has no name.
EXECVE = """
import ctypes, os, sys
words = [os.fsencode(word) for word in sys.argv[1:]]
given = [b"=nameless", *(name + b"=" + value for name, value in os.environb.items())]
array = lambda items: (ctypes.c_char_p * (len(items) + 1))(*items)
ctypes.CDLL(None).execve(words[0], array(words), array(given))
"""


@pytest.mark.parametrize(
    "words",
    [("exec",), ("record", "-o", "one.mix.json"), ("ab", "--runs", "2", "--save", "one.run.json")],
    ids=lambda words: words[0],
)
def test_a_variable_without_a_name(wherry_run: Path, tmp_path: Path, words: tuple[str, ...]):
    """execve takes it, the kernel hands it on, and Python's own execve refuses it."""
    done = run(
        *(sys.executable, "-c", EXECVE, sys.executable, "-m", "wherry"),
        *(*words, "--", "printenv", "KEPT"),
        cwd=tmp_path,
        env={**os.environ, "WHERRY_RUN": str(wherry_run), "KEPT": "kept"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert words[0] == "ab" or done.stdout == "kept\n"


@pytest.mark.parametrize(
    "words", [("exec",), ("exec", "--check"), ("record",), ("ab",)], ids=" ".join
)
def test_a_command_that_shows_nothing(wherry, tmp_path: Path, words: tuple[str, ...]):
    done = wherry(*words, "--", "", cwd=tmp_path)
    assert done.returncode == (2 if words[0] == "ab" else 127)
    assert (
        "'': " in done.stdout + done.stderr
        and "there is no such command" in done.stdout + done.stderr
    )


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"LD_PRELOAD": "libdl.so.2"}, "LD_PRELOAD is set"),
        ({"GLIBC_TUNABLES": "glibc.malloc.check=0"}, "GLIBC_TUNABLES is set"),
    ],
)
def test_what_makes_libc_another_is_told_with_the_figures(wherry, tmp_path, setting, said):
    own = {"LD_PRELOAD": "", "GLIBC_TUNABLES": "", **setting}
    some = ("bench", "cells", "--size", "64", "--routine", "wherry", "--processes", "1")
    done = wherry(*some, "--rounds", "3", "--save", "r.json", cwd=tmp_path, env=own)
    assert done.returncode == 0, done.stderr
    assert said in " ".join(done.stdout.split())
    machine = json.loads((tmp_path / "r.json").read_text())["machine"]
    (note,) = [item for item in machine["uncontrolled"] if said in item["what"]]
    assert note["why"] and note["do"]


@pytest.mark.parametrize(
    "words",
    [
        ("replay", "uniform:0-16", "--quick", "--no-found-peers", "--rounds", "3"),
        ("ab", "--runs", "2", "--", "true"),
        ("record", "--", "true"),
    ],
)
def test_a_plan_of_the_environment_is_not_used_and_that_is_said(wherry, tmp_path, words):
    """Else what replay measures would not be what record tried and ab will try."""
    none = str(tmp_path / "none.plan")
    done = wherry(*words, env={"WHERRY_PLAN": none}, cwd=tmp_path)
    assert done.returncode == 0
    assert (
        f"wherry {words[0]}: WHERRY_PLAN is not used here; --plan FILE names a plan\n"
        in done.stderr
    )
    assert "WHERRY_PLAN" not in wherry(*words, cwd=tmp_path).stderr


def test_a_limit_on_addresses(tmp_path: Path):
    """As batch systems set one (ulimit -v): a small file is read, and drawing says what it lacks."""
    report_runs.write(tmp_path / "r.json", report_runs.every_kind())

    def limited(*words: str):
        return run(
            *(sys.executable, "-m", "wherry", *words),
            cwd=tmp_path,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (900 << 20, 900 << 20)),
        )

    done = limited("export", "r.json")
    assert done.returncode == 0 and "wherry" in done.stdout, done.stderr
    for words in (("r.json", "--plot", "r.png"), ("xz",)):
        done = limited("report", *words)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("wherry: drawing sets aside 68 GiB of addresses"), done.stderr
        assert done.stderr.endswith("lift the limit (ulimit -v unlimited)\n"), done.stderr


def test_a_runner_that_is_a_link_to_itself(wherry, tmp_path: Path):
    (tmp_path / "loop").symlink_to("loop")
    done = wherry("exec", "true", env={"WHERRY_RUN": "loop"}, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


# A word of its own comes before the words of the command line: what the process begins with.
BEGUN = "import sys; from wherry.__main__ import main; "
# As where `ulimit -u`, or a container's pids.max, leaves no room: root has no such limit.
NO_THREADS = """
import threading
def refused(own):
    raise RuntimeError("can't start new thread")
threading.Thread.start = refused
"""


def test_without_threads_no_program_is_left_running(wherry_run, tmp_path: Path):
    """It was started before, and ran on with nobody to wait for it, recorded into a directory that was removed."""
    done = subprocess.run(
        [sys.executable, "-c", f"{NO_THREADS}{BEGUN}main()", "record", "--", "touch", "ran"],
        cwd=tmp_path,
        env={**os.environ, "WHERRY_RUN": str(wherry_run)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("wherry: no thread can be begun; ") and "ulimit -u" in done.stderr
    assert not list(tmp_path.iterdir())


THREADS = """
import atexit, os, pathlib
tell = lambda: pathlib.Path("threads").write_text(str(len(os.listdir("/proc/self/task"))))
atexit.register(tell)
"""


def test_it_begins_no_threads_of_linear_algebra(tmp_path: Path):
    """Where numpy gets none it interrupts the process, which then said that somebody had."""
    report_runs.write(tmp_path / "r.json", report_runs.every_kind())
    own = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", f"{THREADS}{BEGUN}main()", "compare", "r.json", "r.json"],
        cwd=tmp_path,
        env=own,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "threads").read_text() == "1"


@pytest.mark.parametrize(
    "words",
    [
        ("exec", "--", "sh", "-c", "env > given"),
        ("record", "--", "sh", "-c", "env > given"),
        ("record", "--prepare", "env > given", "--", "true"),
        ("ab", "--runs", "2", "--", "sh", "-c", "env > given"),
        ("ab", "--runs", "2", "--prepare", "env > given", "--", "true"),
    ],
    ids=" ".join,
)
def test_what_numpy_is_told_is_told_to_nobody_else(wherry_run, tmp_path: Path, words):
    own = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    for given in ({}, {"OPENBLAS_NUM_THREADS": "3"}):
        done = subprocess.run(
            [sys.executable, "-m", "wherry", *words],
            cwd=tmp_path,
            env={**own, "WHERRY_RUN": str(wherry_run), **given},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        found = (tmp_path / "given").read_text().splitlines()
        assert [line for line in found if line.startswith("OPENBLAS_NUM_THREADS=")] == [
            f"{name}={value}" for name, value in given.items()
        ]


def test_a_library_that_cannot_be_loaded_is_not_called_missing(tmp_path: Path):
    report_runs.write(tmp_path / "r.json", report_runs.every_kind())
    own = tmp_path / "own"
    own.mkdir()

    def report(text: str) -> str:
        (own / "vl_convert.py").write_text(text)
        done = subprocess.run(
            [sys.executable, "-m", "wherry", "report", "r.json", "-o", "r.html"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(own), "XDG_CACHE_HOME": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 1 and not (tmp_path / "r.html").exists()
        return done.stderr

    said = report("raise ImportError('failed to map segment from shared object')")
    assert said == (
        "wherry: cannot be loaded: failed to map segment from shared object; is it installed whole?\n"
    )
    panics = "__version__ = '0'\nclass PanicException(BaseException): pass\n"
    said = report(panics + "def javascript_bundle(_): raise PanicException('no worker thread')\n")
    assert said.startswith("wherry: the drawing library gave up: no worker thread; "), said
    assert said.count("\n") == 1


def test_want_of_memory_says_nothing_of_a_program(monkeypatch):
    """A program that could not be looked at for that was called damaged, and ran without the drop-in."""
    for error in (MemoryError(), ImportError("failed to map segment from shared object")):

        def refused(_, own=error):
            raise own

        monkeypatch.setattr(elf, "_read", refused)
        with pytest.raises(type(error)):
            elf.read(Path(sys.executable))


def test_where_a_mix_cannot_be_kept_is_told():
    keep = (
        "import resource; from wherry import errors, mixcopies\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "try: mixcopies.keep(b'0' * 1000)\n"
        "except errors.FailedError as error: print(error)"
    )
    done = run(sys.executable, "-c", keep)
    assert f"to {tempfile.gettempdir()}: File too large; set TMPDIR" in done.stdout


def test_a_file_system_without_locks_keeps_nobody_from_measuring(monkeypatch, tmp_path):
    """As Lustre's and some of FUSE and NFS: TMPDIR may lie there."""

    def none(*_: object) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", none)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    copies = mixcopies._Copies()
    assert Path(copies.keep(b"8:1")).read_bytes() == b"8:1"
    with agent._alone("h") as ours:
        assert ours


def test_a_sandbox_that_does_not_tell_the_load_keeps_nothing_from_it(monkeypatch, wherry_run):
    def refused():
        raise OSError("Load averages are unobtainable")

    monkeypatch.setenv("WHERRY_RUN", str(wherry_run))
    monkeypatch.setattr(os, "getloadavg", refused)
    found = machine.record()
    assert found["load"] == []
    assert not any("when it began" in str(note) for note in machine.uncontrolled(found))
    assert agent.probe()["load"] == 0


PINNED = """
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
int sched_setaffinity(pid_t process, size_t bytes, const cpu_set_t *set)
{
    (void)process, (void)bytes, (void)set;
    errno = EPERM;
    return -1;
}
"""


def test_a_sandbox_that_lets_nobody_choose_a_cpu_is_told_as_that(wherry_run, tmp_path):
    """As systemd's SystemCallFilter=~@resources: the CPU is one of those that may be used."""
    (tmp_path / "pin.c").write_text(PINNED)
    run(need_tool("cc", "gcc"), "-shared", "-fPIC", "-o", tmp_path / "p.so", tmp_path / "pin.c")
    env = {**os.environ, "LD_PRELOAD": str(tmp_path / "p.so")}
    done = run(wherry_run, "measure", input="", check=False, env=env)
    assert done.returncode == 2
    assert "sched_setaffinity: Operation not permitted" in done.stderr
    assert "may not use such a CPU" not in done.stderr


CLOCK = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now)
{
    const long grain = atol(getenv("GRAIN"));
    for (long calls = atol(getenv("CALLS")); calls > 0; calls--)
        syscall(SYS_getppid);
    const int status = (int)syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_MONOTONIC && !grain)
        now->tv_sec = now->tv_nsec = 0;
    else if (clock == CLOCK_MONOTONIC)
        now->tv_nsec -= now->tv_nsec % grain;
    return status;
}
"""


@pytest.mark.parametrize(
    ("grain", "command", "row"),
    [
        (4_000_000, "measure", "id=1 op=copy routines=libc size=64 rounds=3"),
        (4_000_000, "system", "id=1 op=switch routines=no rounds=3"),
        (0, "measure", ""),
        (0, "system", ""),
        (0, "sizes", ""),
    ],
)
def test_nothing_is_timed_by_a_clock_that_cannot_tell(wherry_run, tmp_path, grain, command, row):
    """By steps of the timer's (clock source jiffies) a call would take a hundred thousandth of a nanosecond."""
    (tmp_path / "clock.c").write_text(CLOCK)
    run(need_tool("cc", "gcc"), "-shared", "-fPIC", "-o", tmp_path / "c.so", tmp_path / "clock.c")
    env = {**os.environ, "GRAIN": str(grain), "CALLS": "0", "LD_PRELOAD": str(tmp_path / "c.so")}
    done = run(wherry_run, command, input=row + "\n", check=False, env=env, timeout=60)
    if not grain:
        assert (done.returncode, done.stdout) == (1, "")
        assert "the clock (CLOCK_MONOTONIC) stands still" in done.stderr
        return
    assert done.returncode == 0
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert "in steps of 4000 us" in next(e["reason"] for e in events if e["event"] == "skip")
    assert not any(e["event"] == "cell" for e in events)


def test_a_clock_that_is_slow_to_read_goes_in_no_steps(wherry_run, tmp_path):
    """As in an emulated computer, where readings that follow each other are tens of microseconds apart."""
    (tmp_path / "clock.c").write_text(CLOCK)
    run(need_tool("cc", "gcc"), "-shared", "-fPIC", "-o", tmp_path / "c.so", tmp_path / "clock.c")
    slow = {"GRAIN": "1", "CALLS": "400", "LD_PRELOAD": str(tmp_path / "c.so")}
    row = "id=1 op=copy routines=libc size=16384 rounds=1\n"
    done = run(wherry_run, "measure", input=row, env={**os.environ, **slow}, timeout=60)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[0]["clock_ns"] > 10_000
    assert not any(e["event"] == "skip" for e in events) and len(events) > 3
