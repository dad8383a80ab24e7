"""The experiment `stripes`: every way reads what was written, bad members are named, nothing hangs, and nothing is left
behind, however a part of it ends."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import need_root, need_tool, wait_until
from stripe_files import MIB, NAMES, Holder, listed, loops, members
from systems import cells, system
from wherry import runfile, tables, then
from wherry.campaign import Cell
from wherry.errors import FailedError
from wherry.experiments import Request
from wherry.experiments.stripes import EXPERIMENT
from wherry.striping import fio, report, scratch, shares
from wherry.striping.place import Place, encoded
from wherry.striping.words import megabytes

# ---- what is read -------------------------------------------------------------------------------------------------


def test_every_way_reads_what_was_written(wherry_run: Path, disk: Path):
    with Holder(wherry_run, disk, "--bytes", str(2 * MIB), "--seed", "5") as held:
        files = encoded(held.files)
        assert not list(disk.iterdir()), "scratch has a name"
        rows = [
            f"id={i} op=stripes routines={names} files={files} content=5 rounds=2 batch_us=1000 {words}\n"
            for i, (names, words) in enumerate(
                [
                    (NAMES, "cache=cold members=9"),
                    (NAMES.replace("direct,", ""), "size=8192 members=2"),
                    ("touch,libc,nofault", "mapping=kept size=1048576 members=9"),
                ]
            )
        ]
        events, _ = system(wherry_run, "".join(rows))
    bad = [e for e in events if e["event"] in ("wrong", "broken", "crash")]
    assert not bad
    found = cells(events)
    skipped = {(e["id"], e["routine"]) for e in events if e["event"] == "skip"}
    assert set(found) | skipped == {
        *((0, name) for name in NAMES.split(",")),
        *((1, name) for name in NAMES.split(",") if name != "direct"),
        *((2, name) for name in ("touch", "libc", "nofault")),
    }
    assert skipped <= {(0, "direct")}
    for (row, name), cell in found.items():
        parts = cell["parts"]
        assert cell["bytes"] == (65536, 8192, 1048576)[row] and min(cell["ns"]) > 0
        if row == 0 and os.geteuid() == 0:
            assert parts["cached"] <= 0.02, name
        if row == 0:
            assert cell["calls"] <= 9 * 32, "a cold block is read twice"
        # Of a thread's own clock, not of ticks that may fall into a short sample or beside it.
        assert 0 < parts["cpu_ns"] < 1.5 * parts["elapsed_ns"], name
        assert 100 <= parts["tick_us"] <= 10000
    assert found[2, "touch"]["ns"][0] < found[2, "libc"]["ns"][0]


def test_wrong_content_is_seen(wherry_run: Path, disk: Path):
    with Holder(wherry_run, disk, "--bytes", str(MIB), "--members", "2", "--seed", "5") as held:
        row = f"op=stripes routines=read,libc,touch members=2 files={encoded(held.files)} rounds=1"
        events, _ = system(wherry_run, f"id=1 {row} content=6 batch_us=500\n", 1)
        wrong = [e for e in events if e["event"] == "wrong"]
        assert [e["routine"] for e in wrong] == ["read", "libc", "touch"]
        assert all("byte 0 of /proc/" in e["message"] for e in wrong)
        assert not cells(events)
        # One byte, in the last page of the second member.
        fd = os.open(held.files[1], os.O_WRONLY)
        os.pwrite(fd, b"\x01\x02\x03", MIB - 4096)
        os.close(fd)
        events, _ = system(wherry_run, f"id=1 {row} content=5 batch_us=500\n", 1)
        wrong = [e for e in events if e["event"] == "wrong"]
        assert [e["routine"] for e in wrong] == ["read", "libc", "touch"]


def test_own_members_are_held_to_what_read_gives(wherry_run: Path, tmp_path: Path):
    paths = members(tmp_path)
    row = (
        f"id=1 op=stripes routines=libc,x87_fild64,touch members=3 files={listed(paths)} rounds=1\n"
    )
    events, _ = system(wherry_run, row)
    assert len(cells(events)) == 3
    assert [path.stat().st_size for path in paths] == [2 * MIB] * 3


def test_files_in_memory_are_never_cold(wherry_run: Path):
    place = Path("/dev/shm")
    if scratch.file_system(place) != "tmpfs":
        pytest.skip("/dev/shm is no tmpfs")
    with Holder(wherry_run, place, "--bytes", str(MIB), "--members", "1", "--seed", "3") as held:
        row = f"id=1 op=stripes routines=read members=1 files={held.files[0]} content=3 cache=cold"
        events, _ = system(wherry_run, row + "\n")
    skips = [e["reason"] for e in events if e["event"] == "skip"]
    assert len(skips) == 1 and "stay in the page cache" in skips[0] and not cells(events)


def test_sparse_files_are_never_cold(wherry_run: Path, disk: Path):
    """What was never written comes from no device, and would be the fastest of all."""
    paths = members(disk, 2)
    os.truncate(paths[1], 0)
    os.truncate(paths[1], 2 * MIB)
    for cache, measured in (("cold", 0), ("warm", 1)):
        row = f"id=1 op=stripes routines=read members=2 files={listed(paths)} cache={cache} rounds=1\n"
        events, _ = system(wherry_run, row)
        skips = [e["reason"] for e in events if e["event"] == "skip"]
        assert len(cells(events)) == measured and len(skips) == 1 - measured, events
        assert all(f"member 2 ({paths[1]}) has a hole at byte 0" in reason for reason in skips)


# ---- bad members --------------------------------------------------------------------------------------------------


def test_bad_rows(wherry_run: Path, tmp_path: Path):
    path = listed(members(tmp_path, 1))
    for words, said in (
        ("routines=read", "files= is missing"),
        (f"routines=read files={path} size=12288", "power of two"),
        (f"routines=read files={path} size=2048", "size=2048: give a number from 4096"),
        (f"routines=read files={path} members=10", "members=10: give a number from 1 to 9"),
        (f"routines=smoke files={path}", "'smoke' is none of read, direct, touch"),
        (f"routines=libc files={path} mapping=kept cache=cold", "mapping=kept goes with"),
        (f"routines=read files={path} mapping=kept", "not for read and direct"),
    ):
        _, text = system(wherry_run, f"id=1 op=stripes {words}\n", 2)
        assert said in text and text.count("\n") == 1


def test_a_peer_without_a_copy_is_skipped(wherry_run: Path, tmp_path: Path):
    """Peers are given for all rows, and those that others built may do nothing but sum."""
    (tmp_path / "sets.c").write_text(
        "#include <stddef.h>\nvoid *memset(void *d, int c, size_t n)"
        " { char *t = d; for (size_t i = 0; i < n; i++) t[i] = (char)c; return d; }\n"
    )
    made = tmp_path / "sets.so"
    words = (need_tool("cc", "gcc"), "-shared", "-fPIC", "-fno-builtin", "-O1")
    subprocess.run([*words, tmp_path / "sets.c", "-o", made], check=True)
    paths = listed(members(tmp_path, 2))
    row = f"id=1 op=stripes routines=sets,libc members=2 files={paths} rounds=1 batch_us=100\n"
    events, _ = system(wherry_run, row, 0, "--peer", f"sets={made}")
    skips = [(e["routine"], e["reason"]) for e in events if e["event"] == "skip"]
    assert skips == [("sets", "has nothing for op=copy")]
    assert list(cells(events)) == [(1, "libc")]


# ---- scratch ------------------------------------------------------------------------------------------------------


def test_scratch_is_sized_to_the_room(monkeypatch, tmp_path: Path):
    def room(free: int, raids: int = 1) -> tuple[int, int]:
        usage = shutil._ntuple_diskusage(10 * free, 9 * free, free)
        monkeypatch.setattr(scratch.shutil, "disk_usage", lambda _: usage)
        return scratch.sizes(tmp_path, quick=False, raids=raids)

    monkeypatch.setattr(scratch, "_memory_available", lambda: 1 << 40)
    assert room(1 << 40) == room(1 << 40, 2) == (scratch.BYTES, scratch.RAID_BYTES)
    enough = 2 * (9 * scratch.BYTES + scratch.RAID_BYTES + scratch.RAID_BESIDES) + scratch.MARGIN
    assert room(enough)[1] and not room(enough, 2)[1], "two RAIDs need more than one"
    for free in (1 << 30, 512 * MIB, 320 * MIB):
        member, raid = room(free)
        assert not raid and MIB <= member <= scratch.BYTES and member % MIB == 0
        assert 9 * member <= free - scratch.MARGIN
    with pytest.raises(FailedError, match="make room, or give another directory"):
        room(270 * MIB)
    monkeypatch.setattr(scratch, "_memory_available", lambda: 400 * MIB)
    assert 9 * room(1 << 40)[0] <= 200 * MIB


def test_scratch_directories(tmp_path: Path, wherry):
    for words, said in (
        (("--scratch", tmp_path / "none"), "is no directory"),
        (("--scratch", tmp_path, "--members", tmp_path), "leave it out with --members"),
        (("--disks", "10"), "--disks 10: give numbers from 1 to 9"),
        (("--size", "12K"), "power of two"),
        (("--size", "2M"), "power of two from 4K to 1M"),
        (("--members", tmp_path, "--disks", "3"), "--members has 1 files"),
    ):
        (tmp_path / "one").write_bytes(b"x" * MIB)
        result = wherry("bench", "stripes", *words, "--save", tmp_path / "r.json", timeout=300)
        assert result.returncode == 2 and said in result.stderr, result.stderr
        (tmp_path / "one").unlink()
    result = wherry("bench", "sizes", "--members", tmp_path, timeout=300)
    assert result.returncode == 2 and "stripes" in result.stderr


def free_bytes(path: Path) -> int:
    own = os.statvfs(path)
    return own.f_bfree * own.f_frsize


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_holder_leaves_nothing(wherry_run: Path, disk: Path, number: int):
    raid = ("--raid-bytes", str(16 * MIB)) if os.geteuid() == 0 else ()
    held = Holder(wherry_run, disk, "--bytes", str(2 * MIB), "--seed", "4", *raid)
    file = held.files[0]
    assert Path(file).exists()
    if raid and held.events["raid"]["reason"] is None:
        assert len(loops(disk)) == 9
    held.process.send_signal(number)
    held.process.wait(timeout=300)
    assert not Path(file).exists() and not list(disk.iterdir())
    wait_until(lambda: not loops(disk), "loop devices are gone")
    assert "btrfs" not in "".join(
        line for line in Path("/proc/self/mounts").read_text().splitlines() if "loop" in line
    )
    held.process.stdin.close()
    held.process.stdout.close()


def raid_of(wherry_run: Path, disk: Path) -> Holder:
    need_root()
    need_tool("mkfs.btrfs", "btrfs-progs")
    held = Holder(
        wherry_run, disk, "--bytes", str(MIB), "--seed", "9", "--raid-bytes", str(32 * MIB)
    )
    reason = held.events["raid"]["reason"]
    if reason:
        with held:
            pytest.skip(f"no RAID here: {reason}")
    return held


def test_a_raid_of_the_kernel(wherry_run: Path, disk: Path):
    with raid_of(wherry_run, disk) as held:
        raid = held.events["raid"]
        assert len(raid["beneath"]) == 9 and len(loops(disk)) == 9
        used = [Path(path).stat().st_blocks * 512 for path in raid["beneath"]]
        assert min(used) > 32 * MIB / 9 * 0.8, "some device has none of the data"
        row = f"op=stripes raid=btrfs files={raid['file']} content=9 rounds=2 batch_us=3000"
        events, _ = system(
            wherry_run,
            f"id=1 {row} routines={NAMES} beneath={','.join(raid['beneath'])} cache=cold\n"
            f"id=2 {row} routines=read,libc,nofault\n",
        )
    assert not [e for e in events if e["event"] in ("wrong", "skip", "broken")]
    assert len(cells(events)) == 7 + 3
    assert not loops(disk) and not list(disk.iterdir())


def test_without_a_raid_its_rows_are_skipped(wherry_run: Path):
    row = "id=1 op=stripes routines=read raid=btrfs missing=needs%20root%2C%20as%20it%20is\n"
    events, _ = system(wherry_run, row)
    assert [e["reason"] for e in events if e["event"] == "skip"] == ["needs root, as it is"]
    place = Place(no_raid={"btrfs": "needs root"})
    assert place.words("btrfs") == {"missing": "needs%20root"}
    assert place.words("md") == {"missing": "there%20is%20none"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("delay", [0.3, 3.0])
def test_an_interrupted_command_leaves_nothing(
    wherry_run: Path, disk: Path, tmp_path: Path, number: int, delay: float
):
    environment = {**os.environ, "WHERRY_RUN": str(wherry_run)}
    own = subprocess.Popen(
        [
            *(sys.executable, "-m", "wherry", "bench", "stripes", "--scratch", disk),
            *("--save", tmp_path / "run.json"),
        ],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    # Not while the interpreter is still starting, which a busy machine draws out: nothing is there to leave then.
    wait_until(lambda: own.poll() is not None or holders(disk), "a beginning")
    time.sleep(delay)
    own.send_signal(number)
    _, said = own.communicate(timeout=300)
    assert "Traceback" not in said
    if number != signal.SIGKILL:
        assert own.returncode == {signal.SIGTERM: 143, signal.SIGINT: 130}[number], said
    wait_until(lambda: not loops(disk), "loop devices are gone")
    assert not list(disk.iterdir())
    wait_until(lambda: not holders(disk), "nobody holds scratch")


def holders(directory: Path) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            for own in (process / "fd").iterdir():
                with contextlib.suppress(OSError):
                    if str(directory) in str(own.readlink()):
                        found.append(str(own))
    return found


# ---- the experiment -----------------------------------------------------------------------------------------------


def test_the_rows(tmp_path: Path):
    rows = EXPERIMENT.rows(Request())
    words = [dict(row.words) | {"size": row.size} for row in rows]
    assert {own["members"] for own in words} == set(range(1, 10))
    assert {own["size"] for own in words} == {8192 << i for i in range(8)}
    assert {own["raid"] for own in words} == {"none", "btrfs", "md"}
    assert len(EXPERIMENT.rows(Request(quick=True))) < len(rows) / 2
    assert all("files=" not in row.line(0) for row in rows), "a run could not be resumed"
    paths = members(tmp_path, 4)
    own = EXPERIMENT.rows(Request(members=tuple(map(str, paths)), disks=(2, 4), sizes=(65536,)))
    assert {dict(row.words)["members"] for row in own} == {2, 4}
    assert {row.dimensions()["from"] for row in own} == {"given"}


def test_the_command(wherry, tmp_path: Path, disk: Path):
    saved = tmp_path / "run.json"
    began = free_bytes(disk)
    short = ("--quick", "--rounds", "2", "--then")
    result = wherry("bench", "stripes", *short, "--scratch", disk, "--save", saved, timeout=180)
    assert result.returncode == 0, result.stderr
    announced = result.stderr.splitlines()[0]
    assert announced.startswith("wherry: stripes: writes ") and str(disk) in announced
    run = runfile.read(saved)
    assert {row["op"] for row in run["rows"]} == {"stripes"}
    text = result.stdout
    for words in ("files, cached", "files, cold", "what is the kernel's", "then: 9 disks", "+14"):
        assert words in text, words
    check = run["experiments"][0]["cross_check"]
    if shutil.which("fio") is None:
        assert "Debian package fio" in check[0]["reason"]
    else:
        assert all(own["bytes_per_s"] > MIB for own in check), check
    assert not list(disk.iterdir()) and abs(free_bytes(disk) - began) < 512 * MIB
    again = wherry("bench", "--show", saved, timeout=300)
    assert again.returncode == 0 and "files, cached" in again.stdout
    page = wherry("report", saved, "-o", tmp_path / "page.html", timeout=300)
    assert page.returncode == 0, page.stderr
    assert then.sheets(run, "stripes")


def sampled(milliseconds: float, rounds: int, **parts: float) -> dict:
    """A cell whose call is a whole sample; parts as shares of the time."""
    ns = milliseconds * 1e6
    own = {f"{name}_ns": share * ns for name, share in parts.items()}
    return {
        "calls": 1,
        "rounds": rounds,
        "bytes": MIB,
        "ns": {"median": ns},
        "parts": own | {"elapsed_ns": ns, "tick_us": 4000},
    }


def test_shares_of_few_ticks_are_not_told():
    found = shares.shares(sampled(8, 1, user=2.33, system=0, cpu=0.97, machine=5.85), 2)
    assert (found.user, found.system, found.machine) == (None, None, None)
    assert found.cpu == 0.97 and found.waiting == pytest.approx(0.03)
    # A second of it is enough, and one more CPU than there are is none.
    found = shares.shares(sampled(20, 50, user=0.6, system=0.3, cpu=0.9, machine=2.04), 2)
    assert (found.user, found.system) == (pytest.approx(0.6), pytest.approx(0.3))
    assert found.machine == 2 and shares.shares(sampled(8, 1, user=0.6, system=0.3), 2).cpu is None
    # Where there is little to split up, it is known.
    found = shares.shares(sampled(20, 1, user=0, system=0.5, cpu=0.05), 2)
    assert found.user == 0 and found.system == 0.05
    assert shares.shares({"parts": {}}, 2) == shares.NOTHING


def test_no_share_is_above_what_there_is():
    own = {"experiment": "stripes", "row": 0, "op": "stripes", "size": 65536, "members": 1}
    own |= {"raid": "none", "mapping": "kept", "cache": "warm", "routine": "touch", "aa": False}
    cell = sampled(8, 3, user=2.33, system=0.1, cpu=1.01, machine=5.85) | {"ratio": None}
    run = {"experiments": [], "problems": [], "machine": {"cpu": {"count": 2}}}
    run |= {"rows": [own], "cells": [own | cell]}
    (block,) = [b for b in report.blocks(run, 96) if "what is ours" in b.title]
    (line,) = [text for text in tables.plain(block.lines).splitlines() if "mapped once" in text]
    assert line.split()[-6:] == ["125", "-", "-", "0", "-", "8.192"]
    assert any("too few here" in note for note in block.notes)


@pytest.mark.parametrize(
    ("half", "said"),
    [(10, "Cold, 1,000 (libc) to 1,100 MB/s (wherry)"), (60, "whatever copies them")],
)
def test_what_is_said_of_cold_members(half: float, said: str):
    """Copies that differ by 10 %, and by how much in a thousand each does from round to round."""

    def cell(rate: float) -> dict:
        ns = 65536 / (rate * MIB) * 1e9
        own = {"median": ns, "q05": ns - half * ns / 1e3, "q95": ns + half * ns / 1e3}
        return {"bytes": 65536, "ns": own}

    own = {"libc": cell(1000), "wherry": cell(1100)}
    found = SimpleNamespace(usual=lambda **_: own, floor=0.02, cpus=2)
    assert said in report._cold(found)


def test_the_check_stands_beside_the_figure_of_the_tables():
    """By the median as the run file has it: 6222.3112 ns are 10,044 MB/s, and 6222.31 are 10,045."""
    words = (("members", 1), ("cache", "warm"), ("mapping", "fresh"), ("raid", "none"))
    row = SimpleNamespace(size=65536, words=words)
    ns = 6222.3112
    cell = Cell(bytes=65536, ns={0: np.array([ns])})
    campaign = SimpleNamespace(rows=[row], cells={(0, "read", False): cell})
    kept = {"bytes": 65536, "ns": {"median": float(f"{ns:.6g}")}}
    case = next(case for case in fio._CASES if case[4] == "read")
    assert fio._ours(campaign, case) / MIB == megabytes(kept) > 10044.5


def test_fio_under_the_drop_in(disk: Path, wherry_run: Path, monkeypatch):
    need_tool("fio", "fio")
    monkeypatch.setenv("WHERRY_RUN", str(wherry_run))

    nothing = SimpleNamespace(rows=(), cells={})
    found = fio.check(nothing, [str(path) for path in members(disk, 3, 4 * MIB)], quick=True)
    assert [own.get("reason") for own in found] == [None] * 4
    assert found[2]["what"].endswith("drop-in") and found[2]["runs"] == 2
    monkeypatch.setattr(fio.shutil, "which", lambda _: None)
    assert "Debian package fio" in fio.check(nothing, [], quick=True)[0]["reason"]


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        (
            98.5,
            "no difference to fio's mmap engine that can be told from the spread of its runs (2.0 %): −1.5 %.",
        ),
        (99.98, "(2.0 %): 0.0 %."),
        (110.0, "Under the drop-in fio's mmap engine reads 10 % more a second."),
        (90.0, "Under the drop-in fio's mmap engine reads 10 % less a second."),
        (None, ""),
    ],
)
def test_what_the_dropin_makes_of_fio(rate, said):
    own = [{"what": "mmap engine, cached", "bytes_per_s": 100.0, "spread": 0.01}]
    if rate is not None:
        own.append({"what": "mmap engine, cached, drop-in", "bytes_per_s": rate, "spread": 0.02})
    found = report._dropin(SimpleNamespace(cross_check=own))
    assert found.endswith(said) and bool(found) is bool(said)
