"""Callers in what a program unloads, where something else is loaded afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import run
from test_record import record

__all__ = ["record"]  # a fixture

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
        use("./second.so");
        use_in_thread("./first.so");
    }
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    for name, calls in CALLS.items():
        source = tmp_path / f"{name}.c"
        source.write_text(LIBRARY % {"name": name, "calls": calls, "bytes": BYTES})
        flags = ("-O1", "-fno-builtin", "-shared", "-fPIC")
        run("cc", *flags, source, "-o", tmp_path / f"{name}.so")
    (tmp_path / "program.c").write_text(PROGRAM % {"bytes": BYTES})
    run("cc", "-w", tmp_path / "program.c", "-o", tmp_path / "program", "-ldl", "-pthread")
    return tmp_path / "program"


# More often than there is room for modules, or for callers.
@pytest.mark.parametrize("rounds", [1, 600])
def test_callers_are_those_of_what_was_loaded_then(record, program, rounds: int):
    done, mix = record("--no-ceiling", "--", program, str(rounds))
    assert done.returncode == 0, done.stderr
    found = {
        row["function"]: (Path(row["module"]).name, row["calls"])
        for row in mix["callers"]
        if row["bytes"] >= BYTES
    }
    assert found == {
        "first_copies": ("first.so", 2 * rounds * CALLS["first"]),
        "second_copies": ("second.so", rounds * CALLS["second"]),
    }
