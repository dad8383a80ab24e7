"""`wherry record`: every name counted right, in every kind of process, however it ends."""

from __future__ import annotations

import collections
import json
import os
import signal
from pathlib import Path

import pytest
from conftest import run
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
    *("memset_explicit", "__memset_explicit_chk"),
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
        self.done = run(*command, check=check, env=env, timeout=300)
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


# Calls to 16 KiB are counted by the recorder, many at once, and those that are left by what reads its file; larger ones
# at once.
@pytest.mark.parametrize(
    ("mode", "sizes", "count"),
    [("small", range(1025), 1), ("small", range(1025), 4), ("larger", range(1025, 20001), 1)],
)
def test_calls_are_counted_where_they_were(recorded, mode, sizes, count):
    def group(n: int) -> int:
        return next(to for to in (0, *(1 << k for k in range(4, 16))) if n <= to)

    def alignment(address: int) -> int:
        return next(to for to in (64, 32, 16, 8, 4, 2, 1) if address % to == 0)

    def apart(distance: int) -> str:
        return next(
            name
            for to, name in ((0, "same"), (63, "near"), (1536, "alias"), (4095, "far"))
            if distance <= to
        )

    def overlap(distance: int, n: int) -> str:
        return "none" if abs(distance) >= n else "above" if distance > 0 else "below"

    places = {op: collections.Counter() for op in blocks.OPS}
    for n in sizes:
        for op, dst, src, meets in (
            ("copy", 5 * n % 4096, 3 * n % 64, 0),
            ("move", 7 * n % 4096, n % 32, 0),
            ("move", 1 + n % 61, 0, n),
            ("move", 0, 1 + n % 59, n),
        ):
            distance = dst - src
            sides = (alignment(src), alignment(dst), apart(distance % 4096))
            places[op][(group(n), *sides, overlap(distance, meets))] += count
        places["set"][group(n), 64, alignment(n % 128), "far", "none"] += count
    found = recorded(mode, str(count))
    for op, own in found.ops.items():
        assert {tuple(row[:5]): row[5] for row in own["places"]} == places[op], op
        each = 3 * count if op == "move" else count
        assert sum(row[2] for row in own["sizes"]) == each * len(sizes), op
        for least, greatest, calls, total in own["sizes"]:
            here = range(max(least, sizes[0]), min(greatest, sizes[-1]) + 1)
            assert (calls, total) == (each * len(here), each * sum(here)), (op, least)
            begin = least - (least == 1025)  # 1024 has a counter of its own
            assert least == greatest or greatest - begin == (1 << begin.bit_length() - 5) - 1


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


BURSTS = r"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
static _Alignas(4096) char from[8192], to[8192];
static long calls;
static pthread_barrier_t end;
static void *halves(void *unused)
{
    char here[256];
    for (long i = 0; i < 2 * calls; i++)
        memcpy(here, from, i < calls ? 100 : 200);
    pthread_barrier_wait(&end);
    return unused;
}
int main(int count, char **words)
{
    const int threads = atoi(words[1]);
    pthread_t thread[64];
    calls = atol(words[2]);
    pthread_barrier_init(&end, NULL, threads + 1);
    for (int i = 0; i < threads; i++)
        pthread_create(&thread[i], NULL, halves, NULL);
    pthread_barrier_wait(&end);
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    for (long i = 0; !threads && i < calls; i++) {
        memcpy(to + 100, from + 5, 100);
        memmove(to + 64, to, 1024);
        memmove(to, to + 65, 300);
        memset(to + 7, 1, 40);
    }
}
"""


@pytest.fixture(scope="session")
def bursts(tmp_path_factory) -> Path:
    """Threads that make so many calls of 100 bytes and as many of 200; or four calls in turn that lie otherwise."""
    home = tmp_path_factory.mktemp("bursts")
    (home / "bursts.c").write_text(BURSTS)
    run("cc", "-O1", "-fno-builtin", "-w", "-pthread", "-o", home / "bursts", home / "bursts.c")
    return home / "bursts"


def test_sequences_tell_how_calls_lie(recorder, tmp_path, bursts):
    (process,) = Recorded(recorder, tmp_path / "records", bursts, "0", "4000").processes
    (block,) = process.blocks

    def word(op: int, size: int, source: int, ahead: int, overlap: int) -> int:
        return size | op << 40 | source << 42 | (ahead % 4096) << 48 | overlap << 60 | 1 << 63

    in_turn = [
        word(0, 100, 5, 95, 0),
        word(1, 1024, 0, 64, 1),
        word(1, 300, 1, -65, 2),
        word(2, 40, 0, 7, 0),
    ]
    begun = int(block["bursts_begun"])
    told = block["bursts"][:begun].tolist()
    assert 4 < begun <= blocks.BURSTS
    for burst in told[1:]:  # what the C library copies before main is in the first
        written = burst[: burst.index(0)] if 0 in burst else burst
        first = in_turn.index(written[0])
        assert written == [in_turn[(first + i) % 4] for i in range(len(written))]
    # Of calls of up to 1024 bytes those behind the first of a sequence tell whether they go on where others were.
    behind = [call & (1 << 40) - 1 for burst in told for call in burst[1:] if call]
    small = block["order"][:, : blocks._group_of(blocks.EXACT) + 1, 0]
    assert small.sum() == sum(size <= blocks.EXACT for size in behind)


def test_sequences_are_of_all_of_the_run_alike(recorder, tmp_path, bursts):
    """As many of its first half as of its second: 32 of each of 16 threads, half of them within five deviations."""
    (process,) = Recorded(recorder, tmp_path / "records", bursts, "16", "500000").processes
    sizes = [
        int(burst[0]) & (1 << 40) - 1
        for block in process.blocks
        for burst in block["bursts"]
        if block["bursts_begun"] > 2 * blocks.BURSTS
    ]
    assert len(sizes) == 16 * blocks.BURSTS
    assert sizes.count(100) + sizes.count(200) == len(sizes)
    assert abs(sizes.count(100) - sizes.count(200)) < 140


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
    assert (found.merger.processes, found.merger.execs) == (2, 0)


def test_threads_whose_first_copy_is_in_the_child_of_a_vfork(recorded):
    """It would be the child's block, which has ended before the thread goes on: the next thread took it over, and both
    counted there."""
    found = recorded("vforks")
    (process,) = found.processes
    assert len(process.blocks) == 9 and found.merger.threads == 9
    assert (found.count(701), found.count(700)) == (8, 800)
    assert found.merger.uncounted == 0 and not found.merger.damaged


def test_processes_whose_first_copy_is_in_the_child_of_a_vfork(recorded):
    """The file would be that child's, by whose number no thread is found: each took over the blocks of the others."""
    found = recorded("forked-vforks")
    first, child = sorted(found.processes, key=lambda one: one.span.clock_ns)
    assert child.span.parent == first.pid
    assert len(child.blocks) == 8
    assert found.count(700) == 800
    assert found.count(701) + found.merger.uncounted == 8


def test_exec_loses_nothing(recorded):
    found = recorded("exec")
    assert found.count(700) == 1500
    assert len(found.processes) == 2
    assert len({p.pid for p in found.processes}) == 1
    assert len({p.started for p in found.processes}) == 1 and found.processes[0].started
    assert (found.merger.processes, found.merger.threads, found.merger.execs) == (1, 1, 1)


def test_threads_take_over_blocks(recorded):
    found = recorded("threads", "64")
    assert found.count(777) == 64 * 100000
    assert found.merger.threads == 65
    assert len(found.processes[0].blocks) <= 20
    assert found.merger.uncounted == 0


def test_what_each_thread_copied(recorded):
    found = recorded("named")
    rows = [row for row in found.merger.by_thread() if row["name"] in ("reader", "writer")]
    told = [(row["name"], row["threads"], row["calls"], row["bytes"]) for row in rows]
    assert told == [("reader", 2, 2000, 600000), ("writer", 1, 1000, 300000)]
    # Both readers had one counter, so which copied more is not known.
    assert [row.get("most_bytes") for row in rows] == [None, 300000]
    assert all(row["program"].endswith("recorder-known") for row in rows)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("late", {"by itself": 1, "by prctl, and o": 1, "by others": 1}),
        ("many-late", {"by itself": 100}),
    ],
)
def test_threads_are_told_under_the_name_that_they_get_later(recorded, mode, expected):
    told = {row["name"]: row for row in recorded(mode).merger.by_thread()}
    assert {name: told[name]["threads"] for name in expected} == expected
    for name, count in expected.items():
        assert (told[name]["calls"], told[name]["bytes"]) == (count * 1000, count * 300000)


def test_a_name_that_comes_later_is_not_that_of_others(recorded):
    found = recorded("kept")
    told = {row["name"]: row for row in found.merger.by_thread()}
    assert "by itself" not in told
    assert (told[None]["threads"], told[None]["calls"]) == (2, 2000)


def test_threads_of_more_names_than_counters_are_told_as_several(recorded):
    told = {row["name"]: row for row in recorded("many-names").merger.by_thread()}
    alone = [row for name, row in told.items() if name and name.startswith("worker")]
    assert all((row["threads"], row["calls"]) == (1, 1000) for row in alone)
    several = told[None]
    assert len(alone) + several["threads"] == 100 and several["threads"] > 36
    assert several["calls"] == several["threads"] * 1000


def test_signal_handlers_lose_no_count(recorded):
    found = recorded("signals")
    assert found.count(900) == 20000000
    assert found.count(901) > 0
    assert found.count(901) % 3 == 0
    # The two counters that the handler shares with what it interrupts.
    part = found.ops["copy"]
    assert part["functions"]["memcpy"] == part["calls"]
    assert sum(row[5] for row in part["places"]) == part["calls"]


def test_a_handler_between_any_two_instructions_loses_no_count(recorder, build_dir, tmp_path):
    """It copies while a call is being logged, counted, or the log emptied, and returns."""
    found = Recorded(recorder, tmp_path, build_dir / "tests/c/recorder/recorder-stepped", "nested")
    inside, calls, _, _, steps = map(int, found.done.stdout.split())
    assert steps > 20 * calls
    assert (found.count(901), found.count(902)) == (inside, calls)
    part = found.ops["copy"]
    assert part["functions"]["memcpy"] == part["calls"]
    assert sum(row[5] for row in part["places"]) == part["calls"]


def test_calls_that_are_never_gone_on_with_spoil_no_count(recorder, build_dir, tmp_path):
    found = Recorded(recorder, tmp_path, build_dir / "tests/c/recorder/recorder-stepped", "left")
    inside, calls, left, after, _ = map(int, found.done.stdout.split())
    assert left > 30
    # Whether one that was left had been counted nobody can say; one that was just being counted may be so twice.
    assert calls - left <= found.count(902) + 1 and found.count(902) - 1 <= calls
    assert abs(found.count(901) + found.count(903) - inside - after) <= 1


def test_a_handler_that_forks_between_any_two_instructions_ends_no_child(
    recorder, build_dir, tmp_path
):
    """It goes on with the call in the child too, some after a copy by which that has begun a file of its own."""
    found = Recorded(recorder, tmp_path, build_dir / "tests/c/recorder/recorder-stepped", "forked")
    forks, calls, copied, _, _ = map(int, found.done.stdout.split())
    assert forks > copied > 50
    assert found.count(901) == copied < len(found.processes)
    assert calls <= found.count(902) <= calls + forks


@pytest.fixture
def between(recorder, build_dir, tmp_path):
    """A thread stopped at a system call of the recorder's, while another makes its calls."""
    home = build_dir / "tests/c/recorder"

    def call(*arguments: str | Path) -> Recorded:
        found = Recorded(
            recorder, tmp_path / "parts", home / "recorder-between", *arguments, check=False
        )
        if found.done.returncode == 77:
            pytest.skip(f"no system call can be stopped here: {found.done.stderr}")
        assert (found.done.returncode, found.done.stdout) == (0, "1\n"), found.done.stderr
        assert found.count(20000, exact=False) == 3000
        return found

    return call


def test_threads_that_begin_at_once_take_no_room_from_each_other(between):
    """Where a file system has no fallocate: a thread made the file as short as it was for itself."""
    assert len(between("growing").processes) == 1


def test_a_module_that_another_thread_kept_from_being_noted_is_noted_later(between, build_dir):
    from wherry.recording import callers

    library = build_dir / "tests/c/recorder/librecorder-elsewhere.so"
    rows = callers.named(between("modules", library).merger.callers)
    (row,) = [row for row in rows if row["calls"] == 2000]
    assert row["module"] and Path(row["module"]).name == library.name


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
    wanted = ["__libc_stack_end", "__rseq_offset", "__rseq_size", "_r_debug", "dl_iterate_phdr"]
    assert sorted(r for r in rows if len(r) == 2) == [["w", name] for name in wanted]
    assert sorted(row[-1] for row in rows if len(row) == 3) == sorted(
        [*blocks.FUNCTIONS, "dlclose", "prctl", "pthread_setname_np", "fork", "_Fork"]
    )


@pytest.fixture
def record(wherry, tmp_path):
    def call(*words: str | Path, **options):
        target = tmp_path / "out.mix.json"
        done = wherry("record", "-o", target, *words, cwd=tmp_path, **options)
        return done, json.loads(target.read_text()) if target.exists() else None

    return call
