"""What was not recorded of a run: programs that cannot be, processes without room, and the time that they took."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import need_namespaces, need_tool, run
from test_record import known, record, recorder
from wherry import commands
from wherry.recording import blocks, merge, running, summary

__all__ = ["known", "record", "recorder"]  # fixtures


def test_what_cannot_be_recorded_is_named(record, build_dir):
    static = build_dir / "tests/c/recorder/recorder-static"
    done, mix = record("--no-ceiling", "--", "sh", "-c", f"{static} times 30000000; true")
    assert done.returncode == 0
    (row,) = mix["run"]["unrecorded"]
    assert row["program"] == str(static)
    assert "static" in row["reason"]
    assert row["count"] == 1
    assert "not recorded" in done.stderr
    done, mix = record("--no-ceiling", "--", static, "names")
    assert "cannot be recorded: it is linked statically" in done.stderr
    assert mix["ops"] == {}
    assert "no call was seen" in done.stderr


TSAN = """#include <string.h>
#include <unistd.h>
int main(int c, char **v)
{
    char to[64];
    for (int i = 0; i < 1000; i++) {
        memcpy(to, v[0], (size_t)c);
        __asm__ volatile("" : : "r"(to) : "memory");
    }
    usleep(300000);
    return 0;
}
"""


def test_a_child_that_was_recorded_is_not_named_as_not_recorded(record, tmp_path):
    """GCC's ThreadSanitizer lets the recorder see the calls, long as nobody preloads it into such a command."""
    child = tmp_path / "child"
    (tmp_path / "child.c").write_text(TSAN)
    flags = ("-fsanitize=thread", "-fno-builtin", "-O1")
    made = run(need_tool("gcc", "gcc"), *flags, tmp_path / "child.c", "-o", child, check=False)
    if made.returncode or run(child, check=False).returncode:
        pytest.skip("a program with ThreadSanitizer is not made or does not run here")
    done, mix = record("--no-ceiling", "--", "sh", "-c", f"{child}; true")
    assert mix["ops"]["copy"]["calls"] >= 1000
    assert mix["run"]["unrecorded"] == [] and "not recorded" not in done.stderr
    done, mix = record("--no-ceiling", "--", "sh", "-c", f"env -u LD_PRELOAD {child}; true")
    (row,) = mix["run"]["unrecorded"]
    assert row["program"] == str(child) and "ThreadSanitizer" in row["reason"]


def test_a_command_that_ran_untouched_is_named_whatever_its_children_left(monkeypatch):
    name = "/nowhere/it"
    verdict = commands.Verdict(name, name, name, False, "it was built with a sanitizer")
    monkeypatch.setattr(commands, "examine", lambda program, env: verdict)
    ran = running.Ran(0, 0, 1.0, 1.0, 0.1, {name: {1, 2}}, 0)
    told = {"program": name, "reason": verdict.reason}
    merger = merge.Merger()
    assert running.unrecorded(ran, merger, verdict, Path(), {}) == [{**told, "count": 2}]
    merger.programs[name] = 1
    assert running.unrecorded(ran, merger, verdict, Path(), {}) == [{**told, "count": 1}]
    other = dataclasses.replace(
        verdict, command="sh", path="/bin/sh", program="/bin/sh", helps=True
    )
    assert running.unrecorded(ran, merger, other, Path(), {}) == []


def test_a_process_without_the_recorder_is_told_though_its_program_left_a_record_elsewhere(
    recorder, tmp_path
):
    env = {**os.environ, "LD_PRELOAD": str(recorder), "WHERRY_RECORD": str(tmp_path)}
    # The same program in the same process, again.
    words = ["sh", "-c", 'read x; exec env -i "$0" -c "read x; :"', shutil.which("sh")]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, env=env, stdin=pipe, text=True) as process:
        look = running._Look(tmp_path, merge.Merger())
        look.begin(process.pid)

        def look_until(done) -> None:
            deadline = time.monotonic() + 60
            while not done():
                assert time.monotonic() < deadline
                look._look()

        program = str(Path(words[-1]).resolve())
        look_until(lambda: b"libwherry-recorder" in Path(f"/proc/{process.pid}/maps").read_bytes())
        look._look()
        assert look.without == {} and look.seen[program] == {process.pid}
        process.stdin.write("\n")
        process.stdin.flush()
        look_until(lambda: look.without)
        process.communicate("\n", timeout=60)
    assert look.without == {program: {process.pid}}
    merger = merge.Merger()
    merger.programs[program] = 1
    ran = running.Ran(0, 0, 1.0, 1.0, 0.1, look.seen, 0, without=look.without)
    both = ran.followed_by(dataclasses.replace(ran, without={program: {1}}))
    verdict = commands.examine(program)
    for some, count in ((ran, 1), (both, 2)):
        rows = running.unrecorded(some, merger, verdict, Path(), os.environ)
        (row,) = [row for row in rows if row["program"] == program]  # env may have been seen
        assert row == {"program": program, "reason": running.NO_RECORD, "count": count}


@pytest.mark.parametrize(
    ("preload", "why"),
    [
        (None, running.NO_RECORD),
        ("", running.NO_RECORD),
        ("/nowhere/libjemalloc.so.2", running.OTHER_PRELOAD),
        ("/nowhere/other.so:/nowhere/libwherry-recorder.so", running.NOT_LOADED),
    ],
)
def test_why_the_recorder_is_not_there_is_told(tmp_path, preload, why):
    env = {"PATH": os.environ["PATH"]} | ({} if preload is None else {"LD_PRELOAD": preload})
    pipe = subprocess.PIPE
    sh = str(Path(shutil.which("sh")).resolve())
    words = [sh, "-c", "echo there; read x"]
    # The loader complains of what it cannot preload.
    with subprocess.Popen(words, env=env, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        process.stdout.readline()
        look = running._Look(tmp_path, merge.Merger())
        look.begin(process.pid)
        look._look()
        process.communicate(b"\n", timeout=60)
    assert look.without == {sh: {process.pid}} and look.reasons == {(sh, process.pid): why}
    ran = running.Ran(0, 0, 1.0, 1.0, 0.1, look.seen, 0, without=look.without, reasons=look.reasons)
    both = ran.followed_by(dataclasses.replace(ran, without={}, seen={}, reasons={}))
    for some in (ran, both):
        rows = running.unrecorded(some, merge.Merger(), commands.examine(sh), Path(), {})
        assert rows == [{"program": sh, "reason": why, "count": 1}]


def test_what_is_being_loaded_or_read_by_half_is_not_without_the_recorder():
    libc, own = b"1-2 r-xp 0 0:0 1 /lib/libc.so.6\n", b"3-4 r-xp 0 0:0 1 /a/libwherry-recorder.so\n"
    stack = b"5-6 rw-p 0 0:0 0 [stack]\n"
    assert running._without(libc + stack) is True
    assert running._without(libc.replace(b".so.6", b"-2.31.so (deleted)") + stack) is True
    assert running._without(libc + own + stack) is False
    assert [running._without(maps) for maps in (b"", stack, libc)] == [None] * 3


def test_who_was_not_recorded_in_words():
    row = {"program": "/bin/it", "reason": "why", "count": 1}
    assert summary.unrecorded_in_words(row) == "/bin/it (at least 1 process): why"
    (row,) = running.refused_unseen({1: blocks.FILE_LIMIT, 2: blocks.FILE_LIMIT}, Path())
    said = summary.unrecorded_in_words(row)
    assert said == f"at least 2 processes, too short to be named: {running.FILE_LIMIT}"


@pytest.mark.parametrize("why", ["limit", "room"])
def test_no_room_is_told(record, known, tmp_path, why: str):
    command = f"for i in 1 2 3; do {known} times 1000; done >/dev/null"
    if why == "limit":
        done, mix = record("--no-ceiling", "--", "sh", "-c", f"ulimit -f 100; {command}")
        reason, processes = "ulimit -f", 3
    else:
        unshare = need_namespaces("-m")
        small = tmp_path / "small"
        small.mkdir()
        target = tmp_path / "out.mix.json"
        shell = (
            "mount -t tmpfs -o size=1500k none /dev/shm && mount -t tmpfs -o size=1500k none "
            f"{small} && TMPDIR={small} {sys.executable} -m wherry record --no-ceiling -o {target} "
            f"-- sh -c '{command}'"
        )
        done = run(unshare, "-m", "sh", "-c", shell)
        mix, reason, processes = (
            json.loads(target.read_text()),
            f"no room for its record in {small}",
            2,
        )
    rows = [row for row in mix["run"]["unrecorded"] if reason in row["reason"]]
    assert sum(row["count"] for row in rows) >= processes, mix["run"]
    assert reason in " ".join(done.stderr.split())
    assert "not a recorder's file" not in done.stderr


def test_where_no_thread_had_a_block_it_is_not_said_that_nothing_was_seen(known, tmp_path):
    """The file begins within the limit, and a block of it would end beyond."""
    shell = f"ulimit -f 300; exec {sys.executable} -m wherry record --no-ceiling -o x.mix.json -- {known} times 1000"
    done = run("bash", "-c", shell, cwd=tmp_path)
    said = " ".join(done.stderr.split())
    assert "no call was counted: those that were made were of threads without a block" in said
    assert "no call was seen" not in said and "nothing was copied" not in said
    assert json.loads((tmp_path / "x.mix.json").read_text())["run"]["uncounted"] >= 1000


def test_a_sandbox_that_hides_the_records_is_told(record, known, tmp_path):
    """Such a process has the recorder in it, and was taken for recorded where its program left a record elsewhere."""
    unshare = need_namespaces("-r", "-m")
    hide = 'mount -t tmpfs none "$(dirname "$WHERRY_RECORD")"'
    inside = f"{hide} && exec {known} times 30000000"
    done, mix = record("--", "sh", "-c", f"{known} times 10; exec {unshare} -rm sh -c '{inside}'")
    assert done.returncode == 0, done.stderr
    rows = [row for row in mix["run"]["unrecorded"] if row["program"] == str(Path(known).resolve())]
    assert [row["count"] for row in rows] == [1]
    assert "could not begin its file below /" in rows[0]["reason"]
    assert mix["ceiling"]["incomplete"] and mix["ceiling"]["unrecorded_s"] > 0


LITTLE_MEMORY = r"""
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
static char from[100], to[100];
int main(void)
{
    const struct rlimit none = {1 << 12, 1 << 12};
    setrlimit(RLIMIT_AS, &none);
    if (fork() == 0) {
        memcpy(to, from, sizeof to);
        _exit(0);
    }
    wait(NULL);
    return 0;
}
"""


def test_a_limit_on_memory_is_no_want_of_room(record, tmp_path):
    (tmp_path / "p.c").write_text(LITTLE_MEMORY)
    run("cc", "-O0", "-fno-builtin", "-o", tmp_path / "p", tmp_path / "p.c")
    done, mix = record("--no-ceiling", "--", tmp_path / "p")
    (row,) = mix["run"]["unrecorded"]
    assert (row["reason"], row["count"]) == (running.NO_MEMORY, 1)
    assert "(ulimit -v)" in " ".join(done.stderr.split())


def span(pid: int, cpu_ms: float, lived_ms: float, parent: int = 1) -> blocks.Span:
    """Of a processor with one tick a nanosecond, begun at 0 of the system's clock."""
    return blocks.Span(pid, parent, round(cpu_ms * 1e6), 0, 1000, 1000 + round(lived_ms * 1e6))


def test_processor_time_of_what_was_recorded():
    from wherry.recording import processor

    def known_ms(spans, watched=()) -> float:
        found = 1e3 * processor.recorded_s(spans, dict(watched), 1.0, 0.02)
        return found - len({own.pid for own in spans}) * processor.ENDING_NS / 1e6

    def seen(*looks: tuple[float, float, bool]) -> processor.Watched:
        made = processor.Watched()
        for cpu_ms, clock_ms, has_record in looks:
            made.look(round(cpu_ms * 1e6), round(clock_ms * 1e6), has_record)
        return made

    # Nobody looked: it worked as long as it lived, but not while its child did.
    assert known_ms([span(7, 2, 10)]) == pytest.approx(12)
    assert known_ms([span(7, 2, 10), span(8, 1, 5, parent=7)]) == pytest.approx(2 + 4 + 6)
    # It goes on as it did: half of its time.
    assert known_ms([span(7, 0, 110)], {7: seen((50, 100, True))}) == pytest.approx(55)
    # It waited for a minute since, or was killed: no more than what lies between two looks.
    assert known_ms([span(7, 0, 60000)], {7: seen((50, 100, True))}) == pytest.approx(60)
    assert known_ms([span(7, 0, 0)], {7: seen((50, 100, True))}) == pytest.approx(55)
    # What it executed before and after its record has none.
    looks = seen((30, 30, False), (50, 60, True), (90, 120, False))
    assert known_ms([span(7, 31, 30)], {7: looks}) == pytest.approx(20 + 10 * 19 / 60, abs=7)
    assert known_ms([], {9: seen((30, 30, False))}) == 0
    # One program after the other, each recorded, and whenever somebody looks the next is just being loaded.
    chain = [span(7, cpu_ms, 4) for cpu_ms in (1, 6, 11, 16, 21, 26, 31, 36)]
    assert known_ms(chain, {7: seen((5, 10, False), (20, 30, False))}) == pytest.approx(40)
    looks = seen((30, 30, True), (40, 50, False), (50, 60, True))
    assert known_ms([span(7, 1, 60), span(7, 41, 10)], {7: looks}) == pytest.approx(50, abs=5)
    # A child that copied nothing has no record of its own, but its parent's.
    assert known_ms([], {9: seen((30, 30, True))}) == pytest.approx(30)
    assert processor.unrecorded_s(10.0, 9.9) == 0
    assert processor.unrecorded_s(0.1, 0.09) == 0
    assert processor.unrecorded_s(1.0, 0.5) == 0.5


def test_what_nobody_recorded_is_told_by_its_time(record, build_dir, known):
    """Each of them too short to be seen; all together they took what is no longer to be left out."""
    static = build_dir / "tests/c/recorder/recorder-static"
    loop = f"for i in 1 2 3 4 5 6 7 8 9 10 11 12; do {static} times 1000000; done"
    done, mix = record("--", "sh", "-c", loop)
    assert mix["ceiling"]["incomplete"] is True
    assert 0 < mix["ceiling"]["unrecorded_s"] <= mix["ceiling"]["cpu_s"]
    said = " ".join(done.stderr.split())
    assert "that are of processes that were not recorded, and may copy too" in said
    assert "could gain no more" not in said
    mix = record("--", known, "times", "30000000")[1]
    assert "incomplete" not in mix["ceiling"]


MUCH = """
#include <string.h>
#include <sys/mman.h>
int main(void)
{
    const size_t much = (size_t)768 << 20;
    char *at = mmap(0, much, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || madvise(at, much, MADV_NOHUGEPAGE))
        return 77;
    memset(at, 1, much);
    return 0;
}
"""


def test_memory_that_is_given_back_at_the_end_is_time_of_what_was_recorded(record, tmp_path):
    """The process executes no file then, and takes some 0.1 s for a GB."""
    program = tmp_path / "much"
    (tmp_path / "much.c").write_text(MUCH)
    run(need_tool("cc", "gcc"), "-O1", "-fno-builtin", tmp_path / "much.c", "-o", program)
    done, mix = record("--", "sh", "-c", f"{program}; exit $?")
    if done.returncode == 77:
        pytest.skip("no room for 768 MiB")
    assert done.returncode == 0
    assert mix["ops"]["set"]["bytes"] >= 768 << 20
    assert "incomplete" not in mix["ceiling"], done.stderr


LATE = """
#include <string.h>
#include <time.h>
#ifdef LIBRARY
__attribute__((constructor)) static void long_to_load(void)
{
    while (clock() < CLOCKS_PER_SEC / 5)
        for (volatile int i = 0; i < 10000; i++)
            continue;
}
int loaded = 1;
#else
extern int loaded;
static char to[4096], from[4096];
int main(void)
{
    for (volatile int i = 0; i < COPIES; i++)
        memcpy(to, from, sizeof to - (unsigned)(i + loaded) % 2);
    return 0;
}
#endif
"""


@pytest.mark.parametrize("copies", [1000000, 0])
def test_what_is_still_being_loaded_is_recorded(record, tmp_path, copies: int):
    """What libraries do before the recorder's own constructor is no time of a process that nobody recorded."""
    need_tool("cc", "gcc")
    source = tmp_path / "late.c"
    source.write_text(LATE)
    library, program = tmp_path / "liblate.so", tmp_path / "late"
    run("cc", "-DLIBRARY", "-fPIC", "-shared", source, "-o", library)
    run("cc", "-O1", "-fno-builtin", f"-DCOPIES={copies}", source, library, "-o", program)
    done, mix = record("--", "sh", "-c", f"{program}; exit 0")
    assert "incomplete" not in mix["ceiling"] and not mix["run"]["unrecorded"], done.stderr
    assert mix["ops"].get("copy", {"calls": 0})["calls"] >= copies


def test_copies_of_go_are_named(record, tmp_path):
    """By the section that its programs have."""
    need_tool("cc", "gcc")
    (tmp_path / "p.c").write_text(
        '__attribute__((section(".go.buildinfo"), used)) static int info = 1;\n'
        "int main(void) { return 0; }\n"
    )
    run("cc", tmp_path / "p.c", "-o", tmp_path / "p")
    said = record("--no-ceiling", "--", tmp_path / "p")[0].stderr.splitlines()
    # Not always the first line: what a recording of another test has left is told before.
    assert any("p: it is written in Go, whose own copies do not go through libc" in a for a in said)


def test_a_static_command_is_named_however_short(record, build_dir):
    static = build_dir / "tests/c/recorder/recorder-static"
    done, mix = record("--", static, "times", "1")
    (row,) = mix["run"]["unrecorded"]
    assert (row["program"], row["count"]) == (str(static.resolve()), 1)
    assert "static" in row["reason"]
    assert "(at least 1 process)" in " ".join(done.stderr.split())
    assert mix["ceiling"] is None
