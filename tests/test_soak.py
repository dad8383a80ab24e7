"""`make soak` itself: that it sees what it is there to see. The programs are run by it, not here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import CC, ROOT, run

SOAK = ROOT / "tools/soak"


@pytest.fixture
def soak(wherry_run: Path):
    def call(*words: str | Path) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "WHERRY_RUN": str(wherry_run)}
        return run(sys.executable, SOAK, *words, check=False, env=env)

    return call


def test_every_trial_says_what_it_is(soak):
    listed = soak("--list").stdout.splitlines()
    names = {line.split()[0] for line in listed}
    wanted = "bash coreutils git sqlite3 redis nginx postgres gcc perl python3 openssl imagemagick zstd java node go"
    assert set(wanted.split()) | {"static", "valgrind", "rr", "ffmpeg", "archives"} == names
    for path in (ROOT / "tools/soak.d").glob("*.sh"):
        assert path.read_text().startswith("# idea: ")
        run("bash", "-n", path)


def test_a_program_and_a_static_one(soak):
    done = soak("bash", "static")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^bash +same ", done.stdout, re.MULTILINE)
    assert done.stdout.endswith("2 same\n")


def test_a_wrong_copy_is_seen(soak, tmp_path):
    (tmp_path / "off.c").write_text(
        "typedef unsigned long size_t;\nvoid *memcpy(void *d, const void *s, size_t n)\n"
        "{ char *to = d; const char *from = s; for (size_t i = 0; i + (n > 99) < n; i++) ((volatile char *)to)[i] = "
        "from[i]; return d; }\n"
    )
    off = tmp_path / "off.so"
    run(*CC, "-O1", "-fno-builtin", "-fPIC", "-shared", tmp_path / "off.c", "-o", off)
    done = soak("bash", "--preload", off)
    assert done.returncode == 1
    assert "DIFFERENT" in done.stdout


def test_a_dropin_that_is_not_there_is_seen(soak, tmp_path):
    """An object of its name that is empty leads to the same output, but a shell without it would be told apart."""
    (tmp_path / "e.c").write_text("int nothing;\n")
    empty = tmp_path / "libother.so"
    run(*CC, "-shared", "-fPIC", tmp_path / "e.c", "-o", empty)
    assert soak("bash", "--preload", empty).returncode == 0
    text = (ROOT / "tools/soak.d/prelude").read_text()
    done = subprocess.run(
        ["bash", "-c", text], env={"PATH": os.environ["PATH"], "EXPECTED": "1"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, "drop-in 1, seen 0" in done.stderr) == (99, True)


def test_misuse(soak, tmp_path):
    assert soak("nosuch").returncode == 2
    assert "there is no" in soak("--preload", tmp_path / "none", "bash").stderr
    assert "cannot read" in soak("--plan", tmp_path / "none", "bash").stderr
