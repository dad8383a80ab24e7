"""`wherry record`: every name counted right, in every kind of process, however it ends."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from conftest import children_of, need_root, need_tool, run, wait_until
from wherry import recordings
from wherry.recording import blocks
from wherry.recording.merge import Merger

# In the order in which recorder-known calls them, with sizes from 601 on; wide ones round down to whole elements.
NAMES = (
    *("memcpy", "mempcpy", "__mempcpy", "memmove"),
    *("wmemcpy", "wmempcpy", "wmemmove"),
    *("__memcpy_chk", "__mempcpy_chk", "__memmove_chk"),
    *("__wmemcpy_chk", "__wmempcpy_chk", "__wmemmove_chk"),
    *("bcopy", "memset", "wmemset", "__memset_chk", "__wmemset_chk"),
    *("bzero", "explicit_bzero", "__explicit_bzero_chk"),
)


@pytest.fixture(scope="session")
def recorder(build_dir: Path) -> Path:
    return build_dir / "preload/recorder/libwherry-recorder.so"


@pytest.fixture(scope="session")
def known(build_dir: Path) -> Path:
    return build_dir / "tests/c/recorder/recorder-known"


class Recorded:
    """A command run under the bare recorder, and what is in its files."""

    def __init__(
        self,
        recorder: Path | str,
        home: Path,
        *command: str | Path,
        check: bool = True,
        more: dict[str, str] | None = None,
    ):
        home.mkdir(exist_ok=True)
        env = {**os.environ, "LD_PRELOAD": str(recorder), "WHERRY_RECORD": str(home)}
        env |= more or {}
        self.done = run(*command, check=check, env=env, timeout=120)
        self.merger = Merger()
        self.processes = []
        for path in sorted(home.iterdir()):
            self.processes.append(blocks.read(path))
            self.merger.add(path)
        assert self.merger.damaged == []
        self.ops = self.merger.ops()

    def count(self, size: int, op: str = "copy", exact: bool = True) -> int:
        return sum(
            row[2]
            for row in self.ops.get(op, {"sizes": []})["sizes"]
            if (row[0] == size if exact else row[0] <= size <= row[1])
        )


@pytest.fixture
def recorded(recorder: Path, tmp_path: Path, known: Path):
    def call(*arguments: str, check: bool = True, program: Path = known) -> Recorded:
        return Recorded(recorder, tmp_path / "parts", program, *arguments, check=check)

    return call


# --- what is counted ------------------------------------------------------------------------------
def test_the_layout_is_that_of_the_header(recorded):
    """HEADER_BYTES and BLOCK_BYTES are held to the file's own on reading; so are the places of the numbers here."""
    found = recorded("times", "3").processes[0]
    assert found.pid > 0
    assert Path(found.program).name == "recorder-known"
    (block,) = found.blocks
    assert int(block["claims"]) == 1
    assert int(block["sizes"][0][700]) == 3


def test_every_name_is_counted_once(recorded):
    found = recorded("names")
    assert found.done.stdout == "done\n"
    for i, name in enumerate(NAMES):
        op = blocks.OP_OF[name]
        size = (601 + i) // 4 * 4 if "wmem" in name else 601 + i
        assert found.ops[op]["functions"].get(name, 0) >= 1, name
        assert found.count(size, op) >= 1, (name, size)
    calls = {op: sum(part["functions"].values()) for op, part in found.ops.items()}
    assert calls == {op: part["calls"] for op, part in found.ops.items()}
    # `__bzero` has no declaration to call it by; all others of the list were called.
    assert set(blocks.FUNCTIONS) - set(NAMES) == {"__bzero"}


def test_exact_counts(recorded):
    assert recorded("times", "123457").count(700) == 123457


def test_sizes_to_1_kib_exactly_and_16_classes_an_octave(recorded):
    found = recorded("sizes")
    n, total = 1000, 0
    rows = found.ops["copy"]["sizes"]
    while n < 1 << 20:
        least, greatest, calls, size = next(row for row in rows if row[0] <= n <= row[1])
        if n <= 1024:
            assert least == greatest == n
        else:
            assert greatest - least < n / 15
            assert calls == 1
            assert size == n
        total += n
        n = n * 3 // 2 + 1
    assert sum(row[3] for row in rows if row[0] >= 1000) == total


@pytest.mark.parametrize("index", [*range(1020, 1100), 1500, blocks.SIZES - 2, blocks.SIZES - 1])
def test_size_classes_join(index: int):
    assert blocks.size_range(index)[0] == blocks.size_range(index - 1)[1] + 1


def test_places(recorded):
    found = recorded("places")

    def calls(op: str, *where: object) -> int:
        return sum(row[5] for row in found.ops[op]["places"] if row[:5] == [512, *where])

    assert calls("copy", 64, 64, "same", "none") == 1
    assert calls("copy", 64, 8, "near", "none") == 1
    assert calls("copy", 1, 2, "alias", "none") == 1
    assert calls("copy", 4, 64, "far", "none") == 1
    assert calls("move", 64, 4, "alias", "above") == 1
    assert calls("move", 4, 64, "far", "below") == 1
    assert calls("move", 64, 64, "same", "same") == 1
    assert calls("move", 4, 64, "far", "none") == 1
    for part in found.ops.values():
        assert sum(row[5] for row in part["places"]) == part["calls"]


def test_sequences_hold_consecutive_calls(recorded):
    found = recorded("sizes").merger.sequences()
    n, wanted = 1000, []
    while n < 1 << 20:
        wanted.append(n)
        n = n * 3 // 2 + 1
    seen = [[found["calls"][int(w)][1] for w in burst.split()] for burst in found["bursts"]]
    assert any(wanted == burst[i : i + len(wanted)] for burst in seen for i in range(len(burst))), (
        seen
    )


def test_long_sequences_are_spread_over_the_run(recorded):
    (process,) = recorded("times", "3000000").processes
    (block,) = process.blocks
    assert int(block["bursts_begun"]) > blocks.BURSTS
    assert int((block["bursts"][:, 0] != 0).sum()) == blocks.BURSTS


def test_callers_are_named(recorded, tmp_path):
    from wherry.recording import callers

    found = recorded("times", "100000").merger
    (row,) = [r for r in callers.named(found.callers) if r["calls"] > 50000]
    assert row["function"] == "times"
    assert row["op"] == "copy"
    assert Path(row["module"]).name == "recorder-known"
    assert 90000 <= row["calls"] <= 100100
    assert 0.9 * 7e7 <= row["bytes"] <= 1.1 * 7e7


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


def test_what_is_stripped_is_not_named_after_what_is_exported(recorder, tmp_path):
    """Two copies of one program, whose only name left is far from where it copies."""
    need_tool("addr2line", "binutils")
    (tmp_path / "s.c").write_text(
        "#include <string.h>\nchar a[999], b[999];\nvoid shown(void) {}\n"
        "__attribute__((noinline)) static void hidden(int n)"
        '{ memcpy(a, b, n); __asm__ volatile("" ::: "memory"); }\n'
        "int main(int c, char **v) { (void)v; shown(); for (int i = 0; i < 50000; i++) hidden(c + 700);"
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


# --- processes and threads ------------------------------------------------------------------------
def test_fork(recorded):
    found = recorded("fork", "20")
    assert found.count(700) == 2000 + 20 * 1000
    assert found.merger.processes == 21


def test_a_child_that_can_begin_no_file_says_so_in_its_parents(recorded):
    found = recorded("lost")
    assert found.count(700) == 2000
    assert found.merger.processes == 1
    assert found.merger.uncounted == 1000


def test_vfork_counts_for_the_parent(recorded):
    found = recorded("vfork")
    assert found.count(701) == 1
    assert found.count(700) == 1500
    assert found.merger.processes == 2


def test_exec_loses_nothing(recorded):
    found = recorded("exec")
    assert found.count(700) == 1500
    assert len(found.processes) == 2
    assert len({p.pid for p in found.processes}) == 1


def test_threads_take_over_blocks(recorded):
    found = recorded("threads", "64")
    assert found.count(777) == 64 * 100000
    assert found.merger.threads == 65
    assert len(found.processes[0].blocks) <= 20
    assert found.merger.uncounted == 0


def test_signal_handlers_lose_no_count(recorded):
    found = recorded("signals")
    assert found.count(900) == 20000000
    assert found.count(901) > 0
    assert found.count(901) % 3 == 0
    # The two counters that the handler shares with what it interrupts.
    part = found.ops["copy"]
    assert part["functions"]["memcpy"] == part["calls"]
    assert sum(row[5] for row in part["places"]) == part["calls"]


@pytest.mark.parametrize(
    ("mode", "code"),
    [("abort", signal.SIGABRT), ("kill", signal.SIGKILL), ("overflow", signal.SIGABRT)],
)
def test_a_violent_end_loses_nothing(recorded, mode: str, code: int):
    found = recorded(mode, check=False)
    assert found.done.returncode == -code
    assert found.count(700) == 1000
    # What overflowed was not done, so it is not counted.
    assert found.count(100) == 0


def test_an_early_call_is_right(recorder, build_dir, tmp_path):
    """From an IFUNC resolver of another object, before the recorder has been relocated."""
    found = Recorded(recorder, tmp_path / "parts", build_dir / "tests/c/dropin/dropin-early")
    assert found.merger.processes == 1


def test_without_a_directory_it_only_passes_on(recorder, known):
    env = {**os.environ, "LD_PRELOAD": str(recorder)}
    for value in (None, "relative", "/nowhere/at/all"):
        more = {} if value is None else {"WHERRY_RECORD": value}
        assert run(known, "names", env={**env, **more}).stdout == "done\n"


def test_no_room_is_no_crash(recorder, known, tmp_path):
    """A limit on file sizes raises SIGXFSZ in whoever grows a file beyond it."""
    env = {"LD_PRELOAD": str(recorder), "WHERRY_RECORD": str(tmp_path)}
    assert run("bash", "-c", f"ulimit -f 100; exec env LD_PRELOAD={recorder} {known} names",
               env={**os.environ, **env}).stdout == "done\n"  # fmt: skip


def test_descriptors_are_left_alone(recorder, tmp_path):
    env = {**os.environ, "LD_PRELOAD": str(recorder), "WHERRY_RECORD": str(tmp_path)}
    listing = run("ls", "/proc/self/fd", env=env).stdout.split()
    assert listing == run("ls", "/proc/self/fd").stdout.split()


def test_it_wants_nothing_but_weak_things(recorder):
    rows = [line.split() for line in run("nm", "-D", recorder).stdout.splitlines()]
    assert sorted(r for r in rows if len(r) == 2) == [["w", "__libc_stack_end"], ["w", "_r_debug"]]
    assert sorted(row[-1] for row in rows if len(row) == 3) == sorted(blocks.FUNCTIONS)


# --- the command ----------------------------------------------------------------------------------
@pytest.fixture
def record(wherry, tmp_path):
    def call(*words: str | Path, **options):
        target = tmp_path / "out.mix.json"
        done = wherry("record", "-o", target, *words, cwd=tmp_path, **options)
        return done, json.loads(target.read_text()) if target.exists() else None

    return call


def test_record_writes_a_mix(record, known, wherry, tmp_path):
    done, mix = record("--note", "a test", "--", known, "times", "50000")
    assert done.returncode == 0
    assert done.stdout == "done\n"  # the summary goes to standard error
    assert "50,0" in done.stderr
    assert re.search(r"ceiling +at most [\d.]+ % of this run", done.stderr)
    assert "not seen    copies inside libc itself" in done.stderr
    assert mix["how"] == {
        "command": [str(known), "times", "50000"],
        "programs": [],
        "note": "a test",
    }
    assert mix["ops"]["copy"]["calls"] >= 50000
    ceiling = mix["ceiling"]
    assert 0 < ceiling["likely_s"] <= ceiling["at_most_s"]
    assert sum(part["calls"] for part in ceiling["parts"]) == sum(
        part["calls"] for part in mix["ops"].values()
    )
    listed = wherry("list", "mixes", "--mix", tmp_path / "out.mix.json", "out")
    assert listed.returncode == 0
    assert "out.copy" in listed.stdout


def test_the_exit_status_is_the_programs(record, known):
    assert record("--no-ceiling", "--", "sh", "-c", "exit 7")[0].returncode == 7
    done, mix = record("--no-ceiling", "--", known, "kill")
    assert done.returncode == 128 + signal.SIGKILL
    assert mix["run"]["exit"] == 137
    assert "signal 9" in done.stderr
    assert record("--no-ceiling", "--", "no-such-command")[0].returncode == 127


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


def test_a_long_command_is_cut(record, wherry, tmp_path):
    numbers = [str(n) for n in range(1, 20001)]
    done, mix = record("--no-ceiling", "--no-trial", "--", "/bin/true", *numbers)
    assert done.returncode == 0
    assert mix["how"]["command"] == ["/bin/true", *numbers[:999]]
    assert mix["how"]["left_out"] == 19001
    recordings.read(tmp_path / "out.mix.json")
    assert "left_out" not in record("--no-ceiling", "--", "/bin/true", "1")[1]["how"]
    # Those that were written before commands were cut.
    mix["how"] = {"command": ["/bin/true", *numbers]}
    recordings.parse(json.dumps(mix).encode(), "x")


def test_misuse(wherry, tmp_path):
    assert wherry("record").returncode == 2
    done = wherry("record", "-o", tmp_path, "--", "true")
    assert done.returncode == 2
    assert "is a directory" in done.stderr


def has_worked(pid: str) -> bool:
    """For half a second of processor time."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return int(words[11]) > os.sysconf("SC_CLK_TCK") // 2


def begun(wherry_run: Path, *words: str | Path, **options) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "wherry", "record", "--no-ceiling", *map(str, words)],
        env={**os.environ, "WHERRY_RUN": str(wherry_run), **options.pop("more", {})},
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


ENDLESS = ("times", "100000000000")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1])
def test_an_interrupt_is_the_programs(wherry_run, tmp_path, known, number: int):
    """The mix of what ran until then is written all the same."""
    target = tmp_path / "cut.mix.json"
    process = begun(wherry_run, "-o", target, "--", known, *ENDLESS)
    wait_until(lambda: any(map(has_worked, children_of(process.pid))), "the program at work")
    process.send_signal(number)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 128 + number, said
    assert json.loads(target.read_text())["ops"]["copy"]["calls"] > 1000


def test_an_interrupt_of_a_terminal_comes_once(wherry_run, tmp_path):
    """The terminal gives it to the program too."""
    program = (
        "import signal, sys, time; met = []; signal.signal(signal.SIGINT, lambda *_: met.append(1))\n"
        "print('begun', flush=True)\nwhile not met: time.sleep(0.01)\ntime.sleep(0.5); sys.exit(len(met))"
    )
    ours, theirs = os.openpty()

    def leads() -> None:
        os.setsid()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    target = tmp_path / "x.mix.json"
    words = ("-o", target, "--", sys.executable, "-c", program)
    process = begun(wherry_run, *words, stdin=theirs, stdout=theirs, preexec_fn=leads)
    os.close(theirs)
    said = b""
    while b"begun" not in said:
        said += os.read(ours, 100)
    os.write(ours, b"\x03")
    assert process.wait(timeout=60) == 1
    os.close(ours)
    assert json.loads(target.read_text())["run"]["exit"] == 1


def test_an_interrupt_at_the_end_leaves_out_the_ceiling(recorded, monkeypatch, capsys):
    from wherry import ceiling
    from wherry.recording import running, writing
    from wherry.recording.ending import Ending

    def interrupted(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(ceiling, "costs", interrupted)
    monkeypatch.setattr(writing, "_machine", dict)
    merger = recorded("times", "100").merger
    ending = Ending()
    with ending.in_charge():
        found = writing.document(
            name="x",
            command=["x"],
            note="",
            ran=running.Ran(0, 0, 1.0, 1.0, 0.0, {}, 0),
            merger=merger,
            unrecorded=[],
            ceilings=True,
            ending=ending,
        )
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGUSR1)
    assert found["ceiling"] is None
    assert found["ops"]["copy"]["calls"] >= 100
    assert "saved without the ceiling" in capsys.readouterr().err


def test_what_a_killed_recorder_leaves_can_be_recovered(wherry, wherry_run, tmp_path, known):
    target = tmp_path / "cut.mix.json"
    words = ("--note", "a test", "-o", target, "--", known, *ENDLESS)
    process = begun(wherry_run, *words)
    child = []

    def at_work() -> bool:
        child[:] = children_of(process.pid)
        return any(map(has_worked, child))

    wait_until(at_work, "the program at work")
    (home,) = {
        Path(line.split()[-1]).parent
        for line in Path(f"/proc/{child[0]}/maps").read_text().splitlines()
        if "/wherry-record-" in line
    }
    try:
        done = wherry("record", "--recover", home)
        assert (done.returncode, "under way" in done.stderr) == (2, True)
        process.kill()
        process.wait()
        done = wherry("record", "--recover", home)
        assert (done.returncode, f"process {child[0]} is still recorded" in done.stderr) == (
            2,
            True,
        )
        done = wherry("record", "--no-ceiling", "-o", tmp_path / "y", "--", "true")
        assert f"wherry record --recover {home} saves it" in done.stderr
    finally:
        os.kill(int(child[0]), signal.SIGKILL)
    wait_until(
        lambda: (
            not Path(f"/proc/{child[0]}/maps").exists()
            or not Path(f"/proc/{child[0]}/maps").read_bytes()
        ),
        "its end",
    )
    done = wherry("record", "--recover", home)
    assert done.returncode == 0, done.stderr
    assert "recovered, so that neither exit status nor times are known" in " ".join(
        done.stderr.split()
    )
    mix = json.loads(target.read_text())
    assert mix["how"] == {"command": [str(known), *ENDLESS], "programs": [], "note": "a test"}
    assert (mix["run"]["exit"], mix["run"]["recovered"], mix["ceiling"]) == (None, True, None)
    assert mix["ops"]["copy"]["calls"] > 1000
    recordings.read(target)
    assert not home.exists()
    done = wherry("record", "--recover", home)
    assert (done.returncode, "no recording of yours" in done.stderr) == (2, True)
    assert wherry("record", "--recover", home, "--", "true").returncode == 2
    assert wherry("report", target, "-o", tmp_path / "page.html").returncode == 0


def test_nohup_holds_for_it_and_for_the_program(wherry_run, tmp_path):
    """The program sends SIGHUP to wherry, which would hand it on, and to itself."""
    target = tmp_path / "held.mix.json"
    own = [sys.executable, "-m", "wherry", "record", "--no-ceiling", "-q", "-o", target, "--"]
    script = "kill -HUP $PPID; sleep 0.2; kill -HUP $$; echo held; exit 4"
    done = run(
        *("nohup", *own, "sh", "-c", script),
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "WHERRY_RUN": str(wherry_run)},
    )
    assert (done.stdout, done.returncode) == ("held\n", 4), done.stderr
    assert json.loads(target.read_text())["run"]["exit"] == 4


def test_damaged_parts_are_told(tmp_path):
    merger = Merger()
    for name, data in {
        "1-0": b"",
        "2-0": b"WHERRYRC",
        "3-0": b"x" * 100000,
        "4-0": b"WHERRYRC" + b"\1\0\0\0" + b"\0" * 2000000,
    }.items():
        (tmp_path / name).write_bytes(data)
        merger.add(tmp_path / name)
    assert len(merger.damaged) == 4
    assert merger.damaged[1].startswith("what process 2 left: ")
    assert merger.ops() == {}


def odd_places(tmp_path: Path) -> list[Path]:
    """Directories whose paths are no UTF-8, or long."""
    return [
        tmp_path / os.fsdecode(b"not \xff\xfe text"),
        tmp_path.joinpath(*(letter * 200 for letter in "abcd")),
    ]


def test_odd_paths_are_paths(record, phases, tmp_path):
    for home in odd_places(tmp_path):
        home.mkdir(parents=True)
        shutil.copy(phases, home / "phases")
        # Long enough to be seen.
        words = ("50000000", "16", "10", "16")
        done, mix = record("--no-ceiling", "--", home / "phases", *words)
        assert mix["run"]["unrecorded"] == [], done.stderr
        row = mix["callers"][0]
        assert row["function"] == "early"
        assert row["module"] == os.fsencode(home / "phases").decode(errors="replace")
        assert re.fullmatch(r"[0-9a-f]{40}", row["build_id"])


@pytest.mark.parametrize("why", ["limit", "room"])
def test_no_room_is_told(record, known, tmp_path, why: str):
    command = f"for i in 1 2 3; do {known} times 1000; done >/dev/null"
    if why == "limit":
        done, mix = record("--no-ceiling", "--", "sh", "-c", f"ulimit -f 100; {command}")
        reason, processes = "ulimit -f", 3
    else:
        need_root()
        need_tool("unshare", "util-linux")
        small = tmp_path / "small"
        small.mkdir()
        target = tmp_path / "out.mix.json"
        shell = (
            "mount -t tmpfs -o size=1500k none /dev/shm && mount -t tmpfs -o size=1500k none "
            f"{small} && TMPDIR={small} {sys.executable} -m wherry record --no-ceiling -o {target} "
            f"-- sh -c '{command}'"
        )
        done = run("unshare", "-m", "sh", "-c", shell)
        mix, reason, processes = (
            json.loads(target.read_text()),
            f"no room for its record in {small}",
            2,
        )
    rows = [row for row in mix["run"]["unrecorded"] if reason in row["reason"]]
    assert sum(row["count"] for row in rows) >= processes, mix["run"]
    assert reason in " ".join(done.stderr.split())
    assert "not a recorder's file" not in done.stderr


# --- what was not recorded ------------------------------------------------------------------------
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
        for cpu_ms, clock_ms, recorded in looks:
            made.look(round(cpu_ms * 1e6), round(clock_ms * 1e6), recorded)
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


def test_a_static_command_is_named_however_short(record, build_dir):
    static = build_dir / "tests/c/recorder/recorder-static"
    done, mix = record("--", static, "times", "1")
    (row,) = mix["run"]["unrecorded"]
    assert (row["program"], row["count"]) == (str(static.resolve()), 1)
    assert "static" in row["reason"]
    assert "(at least 1 process)" in " ".join(done.stderr.split())
    assert mix["ceiling"] is None


# --- the end --------------------------------------------------------------------------------------
def test_a_summary_that_cannot_be_written_changes_no_status(record, known, tmp_path, wherry_run):
    target = tmp_path / "out.mix.json"
    program = f"{sys.executable} -m wherry record --no-ceiling -o {target} --"
    for to in ("2>/dev/full", "2>&-", "2> >(true)"):
        for status in (0, 7):
            target.unlink(missing_ok=True)
            shell = f"{program} sh -c 'sleep 0.1; exit {status}' {to}"
            env = {**os.environ, "WHERRY_RUN": str(wherry_run)}
            done = run("bash", "-c", shell, check=False, env=env)
            assert (to, done.returncode) == (to, status)
            assert json.loads(target.read_text())["run"]["exit"] == status


def test_where_there_is_no_more_room_the_mix_goes_elsewhere(wherry, wherry_run, tmp_path):
    """The directory fills up while the command runs."""
    need_root()
    need_tool("unshare", "util-linux")
    small, other = tmp_path / "small", tmp_path / "other"
    small.mkdir()
    other.mkdir()
    shell = (
        f"mount -t tmpfs -o size=400k none {small} && cd {small} && TMPDIR={other} {sys.executable} -m wherry record "
        f"--no-ceiling -o {small}/x.mix.json -- sh -c 'cat /dev/zero >{small}/filled 2>/dev/null; exit 7'"
    )
    env = {**os.environ, "WHERRY_RUN": str(wherry_run)}
    done = run("unshare", "-m", "sh", "-c", shell, check=False, env=env)
    assert done.returncode == 1
    (found,) = other.glob("x.*.mix.json")
    assert json.loads(found.read_text())["run"]["exit"] == 7
    said = done.stderr.strip().splitlines()
    assert said[-1].startswith("wherry record: could not save ")
    assert f"the mix is in {found} instead" in said[-1]


def test_permissions_are_kept(record, tmp_path):
    target = tmp_path / "out.mix.json"
    target.touch()
    target.chmod(0o640)
    record("--no-ceiling", "--", "true")
    assert target.stat().st_mode & 0o777 == 0o640
    target.unlink()
    umask = os.umask(0o027)
    try:
        record("--no-ceiling", "--", "true")
    finally:
        os.umask(umask)
    assert target.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    "name",
    ["plain", "two words", "it's", "a\nb", "\x1b[31mred", "-x", "b\\s", "\udcffbytes", "\u202e*"],
)
def test_the_hint_can_be_given_to_a_shell(wherry, known, tmp_path, name: str):
    from wherry.recording.summary import in_shell

    word = in_shell(name)
    assert word.isprintable()
    env = {**os.environ, "LC_ALL": "C.UTF-8"}
    read = run(
        "bash", "-c", f"printf %s {word}", env=env, encoding="utf-8", errors="surrogateescape"
    )
    assert read.stdout.removeprefix("./") == name
    done = wherry("record", "--no-ceiling", "-o", tmp_path / name, "--", known, "times", "10")
    assert done.stderr.splitlines()[-1].endswith(
        f"(next: wherry replay {in_shell(str(tmp_path / name))})"
    )


def test_the_drop_in_alone_is_not_recorded(wherry, tmp_path):
    done = wherry("record", "--", "wherry", "exec", "--", "true", cwd=tmp_path)
    assert done.returncode == 2
    assert "record the program itself" in done.stderr
    done = wherry("exec", "--", "true", env={"WHERRY_RECORD": "/nowhere"})
    assert done.returncode == 0
    assert "nothing of this is recorded" in done.stderr
    assert wherry("exec", "--", "true").stderr == ""
