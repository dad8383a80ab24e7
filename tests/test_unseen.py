"""`wherry record --unseen`: what libc copies inside itself, by probes of the kernel."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import CC, need_root, need_tool, run
from wherry.recording import unseen

# 1000 copies of 100 bytes by stdio, which the recorder does not see, and 600 calls that it does.
PROGRAM = r"""
#include <stdio.h>
#include <string.h>
static char from[200], to[200];
int main(void)
{
    FILE *file = fopen("/dev/null", "w");
    setvbuf(file, NULL, _IOFBF, 65536);
    for (int i = 0; i < 1000; i++)
        fwrite(from, 1, 100, file);
    volatile size_t n = 50;
    for (int i = 0; i < 300; i++) {
        memcpy(to, from, n);
        memset(from, i, n);
    }
    return 7;
}
"""
INSIDE = 1000
STARTING = 100  # what libc copies at most before main and after it


# Calls of libc's own routines by every size to 400 bytes; how many left other bytes than they should.
CHECKED = r"""
#include <string.h>
#include <wchar.h>
static unsigned char from[4096], to[4096];
static int wrong;
static void check(size_t n, int step, unsigned char own)
{
    for (size_t i = 0; i < n; i++)
        wrong += to[i] != (unsigned char)(own + step * i);
    wrong += to[n] != 0xee;
    for (size_t i = 0; i <= n; i++)
        to[i] = 0xee;
}
int main(void)
{
    for (size_t i = 0; i < sizeof from; i++) {
        from[i] = (unsigned char)(i + 1);
        to[i] = 0xee;
    }
    for (volatile size_t n = 0; n < 400; n++) {
        memset(to, (int)n, n), check(n, 0, (unsigned char)n);
        memcpy(to, from, n), check(n, 1, 1);
        memmove(to, from, n), check(n, 1, 1);
        mempcpy(to, from, n), check(n, 1, 1);
        wmemset((wchar_t *)to, 0x5a5a5a5a, n), check(4 * n, 0, 0x5a);
    }
    return wrong != 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("unseen")
    (home / "x.c").write_text(PROGRAM)
    run(*CC, "-O1", "-fno-builtin", "x.c", "-o", "x", cwd=home)
    return home / "x"


def entered(wherry_run: Path, *words: str | Path, before: tuple = ()) -> tuple[int, dict]:
    control, ours = os.pipe()
    answer, report = os.pipe()
    numbers = ("--control", str(control), "--report", str(report))
    process = subprocess.Popen(
        [*before, str(wherry_run), "entered", *numbers, *map(str, words)],
        pass_fds=(control, report),
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(control)
    os.close(report)
    process.communicate(timeout=300)
    os.close(ours)
    with os.fdopen(answer) as file:
        text = file.read()
    return process.returncode, json.loads(text) if text else {}


def need_probes() -> None:
    """Asked of the kernel, not of what is tested: where this says yes, the count must work."""
    need_root()
    need_tool("unshare", "util-linux")
    look = "mount -t tracefs none /sys/kernel/tracing && test -w /sys/kernel/tracing/uprobe_events"
    done = run("unshare", "-m", "sh", "-c", look, check=False)
    if done.returncode:
        pytest.skip(f"needs tracefs with probes in user space: {done.stderr.strip()}")


def recorded(wherry, target: Path, *command: str | Path) -> tuple[dict, str, int]:
    done = wherry("record", "--unseen", "-o", target, "--", *command)
    return json.loads(target.read_text()), done.stderr, done.returncode


def test_what_libc_copies_inside_itself_is_counted(wherry, program, tmp_path):
    need_probes()
    document, said, status = recorded(wherry, tmp_path / "x.mix.json", program)
    assert status == 7
    found = document["run"]["unseen"]
    assert INSIDE <= found["inside_libc"] <= INSIDE + STARTING
    assert found["entered"] - found["inside_libc"] == 600
    assert f"{found['inside_libc']:,} copies and sets inside libc itself" in " ".join(said.split())
    assert document["ceiling"] is None  # the probes made the run longer


def test_children_are_counted_and_nothing_is_left(wherry, program, tmp_path):
    need_probes()
    twice = f"{program}; {program}; exit 3"
    document, _, status = recorded(wherry, tmp_path / "x.mix.json", "sh", "-c", twice)
    assert status == 3
    assert 2 * INSIDE <= document["run"]["unseen"]["inside_libc"] <= 2 * (INSIDE + 2 * STARTING)
    assert document["run"]["unrecorded"] == []
    place = tmp_path / "tracing"
    place.mkdir()
    run("mount", "-t", "tracefs", "none", place)
    try:
        assert "wherry/" not in (place / "uprobe_events").read_text()
    finally:
        run("umount", place)


def test_without_the_right_the_reason_is_told_and_the_program_runs(wherry_run, tmp_path):
    need_root()
    need_tool("setpriv", "util-linux")
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all")
    copy = tmp_path / "wherry-run"
    copy.write_bytes(wherry_run.read_bytes())
    for path in (*tmp_path.parents, tmp_path, copy):
        if path.is_relative_to("/tmp") and path != Path("/tmp"):
            path.chmod(0o755)
    status, event = entered(copy, "--", "/bin/sh", "sh", "-c", "exit 5", before=nobody)
    assert status == 5
    assert "allows no probes" in event["error"]
    assert "not counted: the kernel allows no probes" in unseen.in_words({"error": event["error"]})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--", "/bin/true", "true"), "give --control and --report"),
        (("--control", "0"), "give --control and --report"),
        (("--control", "99", "--report", "1", "--", "/bin/true", "true"), "an open descriptor"),
        (("--control", "x"), "an open descriptor"),
        (("--set", "=3"), "KEY=VALUE"),
        (("--control", "0", "--report", "1", "--", "/bin/true"), "no program"),
        (("--else",), "unknown argument '--else'"),
    ],
)
def test_misuse_is_one_line(wherry_run, words, said):
    done = run(wherry_run, "entered", *words, check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_program_that_is_not_there_is_named(wherry_run, tmp_path):
    status, _ = entered(wherry_run, "--", tmp_path / "none", "none")
    assert status == 127


def test_the_words():
    assert unseen.judged({"entered": 10}, 12) == {"entered": 10, "inside_libc": 0}
    assert "(25.0% of the 400 times" in unseen.in_words({"entered": 400, "inside_libc": 100})
    assert "--unseen counts" in unseen.in_words(None)
    none = unseen.in_words({"entered": 0, "inside_libc": 0})
    assert none.startswith("0 copies and sets inside libc itself, ")


def test_a_routine_does_the_same_where_it_is_counted(wherry, tmp_path):
    """AVX-512's memset begins with an instruction that Linux takes for a jump, and plays as one where a probe is."""
    need_probes()
    (tmp_path / "c.c").write_text("#define _GNU_SOURCE\n" + CHECKED)
    run(*CC, "-O1", "-fno-builtin", "-w", "c.c", "-o", "c", cwd=tmp_path)
    assert subprocess.run([tmp_path / "c"], check=False).returncode == 0
    document, said, status = recorded(wherry, tmp_path / "x.mix.json", tmp_path / "c")
    assert status == 0, said
    assert document["run"]["unseen"]["entered"] >= 400 * 4
