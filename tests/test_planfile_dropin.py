"""Compiled plans in the drop-in: which one it goes by, and that the program's own calls do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from conftest import CC, need_root, need_tool, run
from test_planfile import compiled, own, reported

__all__ = ["compiled", "own", "reported"]  # fixtures


ASK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
__attribute__((noinline)) void before_the_copy(void) { __asm__ volatile(""); }
static char from[300];
int main(int argc, char **argv)
{
    char to[300];
    before_the_copy();
    void *(*volatile copy)(void *, const void *, size_t) = memcpy;
    copy(to, from, (size_t)argc + 200);
    const char *(*status)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "wherry_dropin_plan_status");
    puts(status ? status() : "no drop-in");
    return 0;
}
"""


@pytest.fixture(scope="module")
def ask(tmp_path_factory) -> Path:
    """A program that says which plan the drop-in in it goes by."""
    home = tmp_path_factory.mktemp("ask")
    (home / "ask.c").write_text(ASK)
    run(*CC, "-O1", home / "ask.c", "-o", home / "ask", "-ldl")
    home.chmod(0o755)
    return home / "ask"


def asked(ask: Path, dropin: Path | None, plan: str | None, *before: str | Path, **options) -> str:
    env = {k: v for k, v in os.environ.items() if k not in ("WHERRY_PLAN", "LD_PRELOAD")}
    env |= {"LD_PRELOAD": str(dropin)} if dropin else {}
    env |= {"WHERRY_PLAN": plan} if plan is not None else {}
    return run(*before, ask, env=env, **options).stdout.strip()


def test_the_dropin_reads_the_environment(ask, dropin, compiled):
    assert asked(ask, None, str(compiled)) == "no drop-in"
    assert asked(ask, dropin, None) == "the default plan is in force"
    assert asked(ask, dropin, "") == "the default plan is in force"
    assert asked(ask, dropin, str(compiled)) == f"plan 'mine' is in force, from {compiled}"
    assert "there is no such file (/nosuch)" in asked(ask, dropin, "/nosuch")


def test_the_environment_is_found_whoever_starts_the_program(ask, dropin, compiled):
    loader = re.search(r"interpreter: (\S+)\]", run("readelf", "-lW", ask).stdout)[1]
    wanted = f"plan 'mine' is in force, from {compiled}"
    assert asked(ask, dropin, str(compiled), loader) == wanted
    assert asked(ask, None, str(compiled), loader, "--preload", str(dropin)) == wanted
    if shutil.which("valgrind"):
        # It makes up a CPU of its own, which the plan may not be for; that it was read is what is asked here.
        said = asked(ask, dropin, str(compiled), "valgrind", "-q", "--error-exitcode=9")
        assert said == wanted or "WHERRY_PLAN was not used: it is for " in said


@pytest.mark.parametrize("road", ["preloaded", "linked"])
def test_a_set_user_id_program_is_given_no_plan(dropin, compiled, road):
    """Into such a program the object gets by its system-wide name alone, whereupon the loader takes LD_PRELOAD out of
    the environment, or when it is linked in or named in /etc/ld.so.preload, and the environment is as it was."""
    need_root()
    need_tool("setpriv", "util-linux")
    system = Path("/usr/lib/x86_64-linux-gnu")
    if not system.is_dir():
        pytest.skip("needs Debian's directories")
    home = Path(
        tempfile.mkdtemp(prefix="wherry-test-", dir="/var/tmp")
    )  # nobody may look into pytest's
    name = f"lib{home.name}.so"
    try:
        home.chmod(0o755)
        (home / "ask.c").write_text(ASK)
        shutil.copy(compiled, home / "mine.plan")
        shutil.copy(dropin, home / name)
        shutil.copy(dropin, system / name)
        (system / name).chmod(0o4755)  # the loader wants that of what it preloads there
        linked = [home / name] if road == "linked" else []
        run(*CC, "-O1", "ask.c", "-o", "ask", *linked, "-ldl", cwd=home)
        nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        env = {"WHERRY_PLAN": str(home / "mine.plan"), "PATH": os.environ["PATH"]}
        env |= {"LD_PRELOAD": name} if road == "preloaded" else {}
        plain = run(*nobody, home / "ask", env=env).stdout.strip()
        (home / "ask").chmod(0o4755)
        secure = run(*nobody, home / "ask", env=env).stdout.strip()
    finally:
        (system / name).unlink(missing_ok=True)
        shutil.rmtree(home)
    assert plain == f"plan 'mine' is in force, from {home}/mine.plan"
    assert secure == "the default plan is in force"


@pytest.mark.parametrize(("planned", "routine"), [(True, "sse2"), (False, None)])
def test_the_plan_reaches_the_calls(ask, dropin, compiled, planned, routine):
    """The program's own memcpy, of a size for which each tier has its own instructions, comes by the baseline's,
    which no modern CPU's default plan chooses."""
    need_tool("gdb", "gdb")
    commands = [
        *("set breakpoint pending on", "set startup-with-shell off"),
        *(f"set environment LD_PRELOAD {dropin}", "unset environment WHERRY_PLAN"),
        *((f"set environment WHERRY_PLAN {compiled}",) if planned else ()),
        *("break before_the_copy", "run", "break *copy_sse2_64_on", "continue", "bt 1"),
    ]
    words = [word for command in commands for word in ("-ex", command)]
    done = subprocess.run(
        ["gdb", "-batch", *words, ask], capture_output=True, text=True, timeout=300, check=False
    )
    if "ptrace" in done.stderr:
        pytest.skip("gdb may not trace here")
    assert "before_the_copy" in done.stdout, done.stderr
    found = re.search(r"#0 .*cop(?:y|ies)_(sse2)", done.stdout)
    assert (found and found[1]) == routine, done.stdout
