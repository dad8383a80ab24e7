"""Who called: addresses become functions, lines and inlined frames, each weighed by what it stands for."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from conftest import need_tool, run
from test_record import Recorded, known, recorded, recorder
from wherry.recording import blocks

__all__ = ["known", "recorded", "recorder"]  # fixtures


def test_callers_are_named(recorded, tmp_path):
    from wherry.recording import callers

    found = recorded("times", "100000").merger
    (row,) = [r for r in callers.named(found.callers) if r["calls"] > 50000]
    assert row["function"] == "times"
    assert row["op"] == "copy"
    assert Path(row["module"]).name == "recorder-known"
    assert 90000 <= row["calls"] <= 100100
    assert 0.9 * 7e7 <= row["bytes"] <= 1.1 * 7e7


def test_callers_are_named_when_the_first_thread_has_ended(recorded):
    from wherry.recording import callers

    found = recorded("survivor")
    (row,) = [r for r in callers.named(found.merger.callers) if r["calls"] > 500]
    assert row["function"].startswith("times") and Path(row["module"]).name == "recorder-known"
    assert Path(found.processes[0].program).name == "recorder-known"


PHASES = r"""
#include <stdlib.h>
#include <string.h>
static char from[20000], to[20000];
#define PHASE(name) __attribute__((noinline)) static void name(long n, size_t s) { while (n--) memcpy(to, from, s); \
    __asm__ volatile("" ::: "memory"); }
PHASE(early)
PHASE(later)
int main(int c, char **v)
{
    early(atol(v[1]), (size_t)atol(v[2]));
    later(atol(v[3]), (size_t)atol(v[4]));
    return c == 0;
}
"""


@pytest.fixture(scope="session")
def phases(tmp_path_factory) -> Path:
    """A program that copies in one function first, then in another, as often and as much as it is told."""
    home = tmp_path_factory.mktemp("phases")
    (home / "phases.c").write_text(PHASES)
    run("cc", "-O1", "-fno-builtin", "-o", home / "phases", home / "phases.c")
    return home / "phases"


def test_callers_are_weighed_by_what_they_did(recorded, phases):
    """The sampled runs of calls are dense where a thread begins; what called there is not to count for more."""
    from wherry.recording import callers

    given = {"early": (20000, 1000), "later": (2000000, 20)}
    found = recorded(*(str(n) for own in given.values() for n in own), program=phases).merger
    rows = {row["function"]: row for row in callers.named(found.callers)}
    for name, (calls, size) in given.items():
        assert rows[name]["calls"] == pytest.approx(calls, rel=0.25), name
        assert rows[name]["bytes"] == pytest.approx(calls * size, rel=0.25), name


def test_few_calls_have_their_callers(recorded, phases):
    from wherry.recording import callers

    found = recorded("3", "700", "1", "20000", program=phases).merger
    rows = {row["function"]: row for row in callers.named(found.callers)}
    assert (rows["early"]["calls"], rows["early"]["bytes"]) == (3, 2100)
    assert (rows["later"]["calls"], rows["later"]["bytes"]) == (1, 20000)


def test_inlined_frames_are_named(recorder, tmp_path):
    need_tool("addr2line", "binutils")
    source = tmp_path / "inlined.c"
    source.write_text(
        "#include <string.h>\nchar a[999], b[999];\n"
        "static inline __attribute__((always_inline)) void inner(size_t n)"
        '{ memcpy(a, b, n); __asm__ volatile("" ::: "memory"); }\n'
        "__attribute__((noinline)) void outer(size_t n) { inner(n); }\n"
        "int main(int c, char **v) { (void)v; for (int i = 0; i < 50000; i++) outer(c + 700);"
        " return 0; }\n"
    )
    run("cc", "-O2", "-g", "-fno-builtin", "-o", tmp_path / "inlined", source)
    from wherry.recording import callers

    found = Recorded(recorder, tmp_path / "parts", tmp_path / "inlined").merger
    row = max(callers.named(found.callers), key=lambda r: r["calls"])
    assert row["function"] == "inner"
    assert row["inlined_into"] == ["outer"]
    assert re.search(r"inlined\.c:3", row["source"])
    assert re.fullmatch(r"[0-9a-f]{40}", row["build_id"])


@pytest.mark.parametrize(
    "name", ["two\nlines", "back\\\\012slash", "a blank", os.fsdecode(b"no\xfftext")]
)
def test_callers_are_named_whatever_the_name_of_the_file(recorder, tmp_path, name):
    """A process's maps have a line feed as a backslash and its number, and a backslash as it is."""
    need_tool("addr2line", "binutils")
    home = tmp_path / name
    home.mkdir()
    (home / f"{name}.c").write_text(
        "#include <string.h>\nchar a[999], b[999];\n"
        + HIDDEN
        + "int main(int c, char **v) { (void)v; for (int i = 0; i < 50000; i++) hidden(c + 700); return 0; }\n"
    )
    run("cc", "-O1", "-g", "-fno-builtin", "-o", home / name, home / f"{name}.c")
    from wherry.recording import callers, summary

    found = Recorded(recorder, tmp_path / "parts", home / name).merger
    row = max(callers.named(found.callers), key=lambda r: r["calls"])
    assert (row["function"], row["source"].endswith(".c:3")) == ("hidden", True)
    assert "\n" not in row["module"] + summary.caller(row)


HIDDEN = (
    "__attribute__((noinline)) static void hidden(int n)"
    '{ memcpy(a, b, n); __asm__ volatile("" ::: "memory"); }\n'
)


def test_a_file_without_lines_is_named_alone(recorder, tmp_path):
    """What the symbol table alone tells."""
    need_tool("addr2line", "binutils")
    (tmp_path / "bare.c").write_text(
        "#include <string.h>\nchar a[999], b[999];\n"
        + HIDDEN
        + "int main(int c, char **v) { (void)v; for (int i = 0; i < 50000; i++) hidden(c + 700);"
        " return 0; }\n"
    )
    run("cc", "-O1", "-fno-builtin", "-o", tmp_path / "bare", tmp_path / "bare.c")
    from wherry.recording import callers, summary

    found = Recorded(recorder, tmp_path / "parts", tmp_path / "bare").merger
    row = max(callers.named(found.callers), key=lambda r: r["calls"])
    assert (row["function"], row["source"]) == ("hidden", "bare.c")
    assert summary.caller(row) == f"hidden bare.c at {row['offset']:#x} in bare"


def test_what_is_stripped_is_not_named_after_what_is_exported(recorder, tmp_path):
    """Two copies of one program, whose only name left is far from where it copies."""
    need_tool("addr2line", "binutils")
    (tmp_path / "s.c").write_text(
        "#include <string.h>\nchar a[999], b[999];\nvoid shown(void) {}\n"
        + HIDDEN
        + "int main(int c, char **v) { (void)v; shown(); for (int i = 0; i < 50000; i++) hidden(c + 700);"
        " return 0; }\n"
    )
    from wherry.recording import callers

    for strip in (("-g",), ("-s",)):
        program = tmp_path / "".join(strip)
        run(
            "cc",
            "-O1",
            *strip,
            "-rdynamic",
            "-fno-builtin",
            "-o",
            program,
            tmp_path / "s.c",
        )
        found = Recorded(recorder, tmp_path / "".join(("parts", *strip)), program).merger
        row = max(callers.named(found.callers), key=lambda r: r["calls"])
        assert (row["function"], bool(row["source"])) == (
            ("hidden", True) if strip == ("-g",) else (None, False)
        )
        assert "discriminator" not in (row["source"] or "")


def test_a_pipe_that_a_recording_names_is_not_waited_for(tmp_path):
    """Who records for others reads what they wrote."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    where = ("copy", str(pipe), 0, pipe.stat().st_ino, 100)
    code = f"from wherry.recording import callers; print(callers.named({{{where}: [1, 1]}}))"
    done = run(sys.executable, "-c", code, timeout=60)
    assert f"'module': '{pipe}'" in done.stdout, done.stderr


def test_callers_without_room_are_not_told_as_others(recorder, tmp_path):
    """One makes half of the calls, and each of 2,000 one. Of these most have no room."""
    from wherry.recording import callers

    copy = '{ memcpy(to, from, 20000); __asm__(""); }'
    each = [f"__attribute__((noinline)) static void once{i}(void) {copy}" for i in range(2000)]
    often = f"__attribute__((noinline)) static void often(void) {{ for (int i = 0; i < 2000; i++) {copy} }}"
    calls = "".join(f"once{i}(); " for i in range(2000))
    source = "\n".join(["#include <string.h>", "static char from[20000], to[20000];", *each, often])
    (tmp_path / "places.c").write_text(
        f"{source}\nint main(void) {{ often(); {calls} return 0; }}\n"
    )
    run("cc", "-O1", "-fno-builtin", "-o", tmp_path / "places", tmp_path / "places.c")
    found = Recorded(recorder, tmp_path / "records", tmp_path / "places").merger
    told = {row["function"]: row["calls"] for row in callers.named(found.callers)}
    assert 1990 <= told["often"] <= 2000
    assert sum(own[0] for own in found.callers.values()) == pytest.approx(4000, abs=50)
    assert found.callers["copy", "", 0, 0, 0] == pytest.approx([1500, 1500 * 20000], rel=0.03)


MANY = r"""
#include <dlfcn.h>
int main(int count, char **names)
{
    for (int i = 1; i < count; i++) {
        void *library = dlopen(names[i], RTLD_NOW);
        void (*work)(void) = (void (*)(void))dlsym(library, "work");
        work();
    }
}
"""
ONE = """
#include <string.h>
static char from[20000], to[20000];
void work(void) { memcpy(to, from, sizeof to); __asm__(""); }
"""


@pytest.mark.parametrize(("stem", "all_named"), [("", True), ("x" * 230, False)])
def test_more_modules_than_there_is_room_for(recorder, tmp_path, stem: str, all_named: bool):
    """Or than there is room for their paths: of one that does not fit there is nothing, and none of another's."""
    (tmp_path / "one.c").write_text(ONE)
    run("cc", "-fno-builtin", "-shared", "-fPIC", tmp_path / "one.c", "-o", tmp_path / "one.so")
    (tmp_path / "many.c").write_text(MANY)
    run("cc", "-w", tmp_path / "many.c", "-o", tmp_path / "many", "-ldl")
    names = [tmp_path / f"{stem}{i}.so" for i in range(300)]
    for name in names:
        shutil.copy(tmp_path / "one.so", name)
    (process,) = Recorded(recorder, tmp_path / "records", tmp_path / "many", *names).processes
    found = [module.path for module in process.modules]
    assert len(found) == blocks.MODULES and all(Path(path).exists() for path in found if path)
    assert all(found) == all_named and sum(map(len, found)) <= blocks.NAMES
    own = [path for path in found if Path(path) in names]
    assert len(own) == len(set(own)) > 100
