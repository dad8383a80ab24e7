"""Callers in what a program unloads, where something else is loaded afterwards."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import run
from test_record import Recorded, record, recorder

__all__ = ["record", "recorder"]  # fixtures

CALLS = {"first": 3, "second": 5}
# Calls of so many bytes have their callers noted each.
BYTES = 20000
LIBRARY = """
#include <string.h>
static char to[%(bytes)d];
__attribute__((noinline)) void %(name)s_copies(const char *from, int calls)
{
    while (calls--)
        memcpy(to, from, %(bytes)d);
}
void work(const char *from) { %(name)s_copies(from, %(calls)d); __asm__(""); }
"""
PROGRAM = """
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
static char from[%(bytes)d];
static void *use(void *name)
{
    void *library = dlopen(name, RTLD_NOW);
    void (*work)(const char *) = (void (*)(const char *))dlsym(library, "work");
    work(from);
    if (dlclose(library))
        exit(4);
    return NULL;
}
static void use_in_thread(char *name)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, use, name) || pthread_join(thread, NULL))
        exit(5);
}
int main(int argc, char **argv)
{
    for (int i = atoi(argv[1]); i; i--) {
        use("./first.so");
        if (i %% 2)
            use("./second.so");
        use_in_thread("./first.so");
    }
}
"""


def built(directory: Path, calls: dict[str, int], size: int) -> Path:
    """The program, and the libraries with so many calls of that size each."""
    for name, each in calls.items():
        source = directory / f"{name}.c"
        source.write_text(LIBRARY % {"name": name, "calls": each, "bytes": size})
        flags = ("-O1", "-fno-builtin", "-shared", "-fPIC")
        run("cc", *flags, source, "-o", directory / f"{name}.so")
    (directory / "program.c").write_text(PROGRAM % {"bytes": size})
    run("cc", "-w", directory / "program.c", "-o", directory / "program", "-ldl", "-pthread")
    return directory / "program"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return built(tmp_path, CALLS, BYTES)


# More often than there is room for modules, or for callers. One of the two is used half as often: a record tells how
# the calls are divided, so that what all lost alike would not show.
@pytest.mark.parametrize("rounds", [1, 600])
def test_callers_are_those_of_what_was_loaded_then(record, program, rounds: int):
    done, mix = record("--no-ceiling", "--", program, str(rounds))
    assert done.returncode == 0, done.stderr
    found = {
        row["function"]: (Path(row["module"]).name, row["calls"], row["bytes"])
        for row in mix["callers"]
        if row["bytes"] >= BYTES
    }
    calls = {"first": 2 * rounds * CALLS["first"], "second": (rounds + 1) // 2 * CALLS["second"]}
    assert found == {
        f"{name}_copies": (f"{name}.so", each, each * BYTES) for name, each in calls.items()
    }


def test_callers_that_were_drawn_keep_their_calls(recorder, tmp_path, monkeypatch):
    """Small calls are met by chance: of all events between bursts, the first left out, one each."""
    small = built(tmp_path, {"first": 5000, "second": 3000}, 40)
    monkeypatch.chdir(tmp_path)
    (process,) = Recorded(recorder, tmp_path / "records", small, "5").processes
    often = []
    for block in process.blocks:
        drawn, drawn_bytes = block["callers"][:, 1], block["callers"][:, 2]
        assert drawn.sum() == block["samples"] - 1
        often += [
            (calls, size) for calls, size in zip(drawn, drawn_bytes, strict=True) if calls > 100
        ]
    assert len(often) >= 2 and all(size == 40 * calls for calls, size in often)


@pytest.mark.parametrize("recorded", [False, True])
def test_unloading_where_no_file_can_be_begun(recorder, program, tmp_path, recorded: bool):
    """Neither without a directory of records, nor with one that is gone."""
    place = {"WHERRY_RECORD": str(tmp_path / "gone")} if recorded else {}
    run(program, "2", cwd=program.parent, env={**os.environ, "LD_PRELOAD": str(recorder), **place})
