"""The fuzzer finds planted bugs within seconds, makes them small, and lets right functions pass."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import need_tool, run, strict_build, wait_until
from wherry.ab.running import _runs as runs

# The kinds that one wrong call can show: bytes, bounds, overlap, return value, crashes, state between calls.
PLANTED = {
    "lastbyte_memcpy": "777 bytes",
    "offsetpair_memcpy": "destination offset",
    "band2049_memcpy": "expected",
    "power_memcpy": "expected",
    "aliased_memcpy": "64 bytes",
    "page_cross_memcpy": "destination offset 409",
    "stale_memcpy": "expected",
    "backward_memmove": "distance +96",
    "same_memmove": "distance +0",
    "always_forward_memmove": "expected",
    "swapped_arguments_bcopy": "expected",
    "value_sign_memset": "16 bytes",
    "tail_bzero": "expected",
    "read_after_memcpy": "read 1 B past the end of the source",
    "read_before_memcpy": "read 1 B before the source",
    "write_after_memcpy": "past the end of the destination",
    "write_before_memcpy": "1 B before the destination",
    "write_far_memcpy": "past the end of the destination",
    "source_memcpy": "changed the source: byte 5",
    "null_return_memcpy": "outside both buffers",
    "begin_mempcpy": "destination + size",
    "crash_memcpy": "signal 4",
    "hang_memcpy": "did not return",
    "exit_memcpy": "ended the process with exit status 0",
    "mask_page_memset": "past the end of the destination",
    "mask_page_memcpy": "1 B before the destination",
    "rep_begin_memcpy": "byte 2104",
    "rep_end_memcpy": "byte 8192",
    "rep_near_memmove": "expected",
    "stream_tail_memcpy": "expected",
    "both_page_memcpy": "expected",
    "clamped_memmove": "expected",
    "narrow_memmove": "destination offset",
    "sequence_memset": "byte 3",
}


@pytest.fixture
def fuzz(wherry_run: Path, tmp_path: Path):
    def call(*arguments):
        command = [str(wherry_run), "fuzz", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=400, cwd=tmp_path)

    return call


@pytest.fixture
def library(build_dir: Path) -> Path:
    return build_dir / "tests" / "fixtures" / "libwrong.so"


@pytest.mark.parametrize("function", PLANTED)
def test_planted_bug_is_found(fuzz, wherry_run, library, tmp_path, function):
    prefix = function.rsplit("_", 1)[0]
    peer = f"bad={library}:{prefix}_"
    # The bug of the pair needs both of its functions.
    names = [] if prefix == "sequence" else [f"bad:{function}"]
    done = fuzz("--only-peers", "--peer", peer, "--seconds", 200, *names)
    assert done.returncode == 1, done.stdout + done.stderr
    first = next(line for line in done.stdout.splitlines() if line.startswith("FAILED"))
    assert PLANTED[function] in first
    assert len(list(tmp_path.glob("wherry-fuzz-*.input"))) == 1
    assert not list(tmp_path.glob("*.part"))
    assert f"bad:{function}" in first
    repeat = next(line for line in done.stdout.splitlines() if line.startswith("  repeat"))
    words = shlex.split(repeat)[1:]
    assert words[:2] == ["wherry-run", "fuzz"]
    again = fuzz(*words[2:])
    assert again.returncode == 1
    assert PLANTED[function] in again.stdout


def test_a_function_that_blocks_is_found(fuzz, library):
    """Whatever the time that was given: the child that called it never comes to look at it."""
    names = ["--only-peers", "--peer", f"bad={library}:block_", "bad:block_memcpy"]
    done = fuzz(*names, "--seconds", 1, "--jobs", 1)
    assert done.returncode == 1, done.stdout + done.stderr
    first = next(line for line in done.stdout.splitlines() if line.startswith("FAILED"))
    assert "bad:block_memcpy (copy, 64 bytes" in first and "did not return within 10 s" in first
    assert "1 call)" in done.stdout and "--case 'sweep:n=64," in done.stdout


def test_the_time_ends_between_two_calls_of_an_input(fuzz, library):
    """An input has 512 of them, 50 ms each."""
    names = ["--only-peers", "--peer", f"slow={library}:dawdle_"]
    done = fuzz(*names, "--seconds", 1, "--jobs", 1)
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    assert "all right" in last and 0 < int(last.split()[0]) < 512


def test_the_case_for_verify_shows_it_too(fuzz, wherry_run, library):
    for prefix in ("lastbyte", "backward", "read_before", "tail"):
        done = fuzz("--only-peers", "--peer", f"bad={library}:{prefix}_", "--seconds", 200)
        line = next(x for x in done.stdout.splitlines() if x.startswith("  the call"))
        command = [str(wherry_run), *shlex.split(line)[3:]]
        again = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert again.returncode == 1, line + again.stdout + again.stderr


ORPHANED = """
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int fork(void)
{
    const int parent = getpid(), child = ((int (*)(void))dlsym(RTLD_NEXT, "fork"))();
    if (child)
        return child;
    FILE *file = fopen("orphan.new", "w");
    fprintf(file, "%d", (int)getpid());
    fclose(file);
    kill(parent, SIGKILL);
    while (getppid() == parent)
        usleep(1000);
    rename("orphan.new", "orphan");
    return 0;
}
"""


def test_a_child_whose_parent_is_killed_at_once_ends_too(wherry_run, tmp_path):
    """It asked the kernel to be told of that end when it had come already, and called for ever."""
    (tmp_path / "orphaned.c").write_text(ORPHANED)
    words = ("-D_GNU_SOURCE", "-shared", "-fPIC", "-o", "orphaned.so", "orphaned.c")
    run("cc", *words, cwd=tmp_path)
    env = {**os.environ, "LD_PRELOAD": str(tmp_path / "orphaned.so")}
    command = [str(wherry_run), "fuzz", "--seconds", "300"]
    done = subprocess.run(command, cwd=tmp_path, env=env, timeout=400, stdout=subprocess.DEVNULL)
    assert done.returncode == -signal.SIGKILL
    wait_until((tmp_path / "orphan").exists, "the child is alone")
    orphan = int((tmp_path / "orphan").read_text())
    try:
        wait_until(lambda: not runs(orphan), "the child ends too")
    finally:
        if runs(orphan):
            os.kill(orphan, signal.SIGKILL)


def test_right_functions_pass(fuzz, library):
    done = fuzz("--only-peers", "--peer", f"good={library}:good_", "--executions", 300000)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1].startswith("300000 executions")


def test_everything_of_ours_passes_for_a_few_seconds(fuzz):
    done = fuzz("--seconds", 5)
    assert done.returncode == 0, done.stdout
    assert "all right" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--secnods", "1"], "unknown option"),
        (["--seconds", "soon"], "give an integer"),
        (["--jobs", "0"], "give 1 or more"),
        (["rep_movbs"], "no target"),
        (["rep_movsb", "iszero_sse2"], "nothing to call of 'iszero_sse2': no copy, move or set"),
        (["wherry:wherry_crc32c"], "verify has the other ops"),
        (["--only-peers"], "without a --peer"),
        (["--replay", "/nonexistent"], "No such file"),
        (["--replay", "."], "the directory holds no input (a file of 14 bytes or more)"),
        (["--artifacts", "/nonexistent"], "no such directory"),
        (["--seed"], "needs a value"),
    ],
)
def test_misuse(fuzz, arguments, expected):
    done = fuzz(*arguments)
    assert done.returncode == 2
    assert expected in done.stderr and done.stderr.count("\n") == 1


def test_a_fuzzing_engine_can_drive_it(build_dir: Path, tmp_path: Path):
    """libFuzzer takes the same entry, with everything that this CPU can run."""
    program = build_dir / "runner" / "wherry-libfuzzer"
    if not program.exists():  # this build's compiler brings no engine; clang's does
        need_tool("clang", "clang")
        program = strict_build("clang") / "runner" / "wherry-libfuzzer"
    if not program.exists():
        pytest.skip("clang brings no fuzzing engine here (package libclang-rt-dev)")
    done = subprocess.run(
        [str(program), "-runs=2000", "-max_len=600"],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_bug_that_needs_the_calls_before_is_said(fuzz, library):
    """The thousandth call: no input is so long."""
    done = fuzz("--only-peers", "--peer", f"bad={library}:thousandth_", "--seconds", 200)
    assert done.returncode == 1
    assert "keeps state between inputs" in done.stdout
