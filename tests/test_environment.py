"""Environments that a shell seldom makes: commands are found, recorded and compared in them all the same."""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path

import pytest
import report_runs
from conftest import run

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
    done = limited("report", "r.json", "--plot", "r.png")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("lift the limit (ulimit -v unlimited)\n"), done.stderr
