"""Members of a stripe that are bad from the first, or fail while they are read: each is named, nothing hangs, and what
was measured before is kept."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import need_root, need_tool, rows_in, wait_until
from stripe_files import MIB, listed, members, processor_seconds
from systems import system
from wherry import runfile
from wherry.errors import WherryError
from wherry.journal import path_for
from wherry.striping import given


@pytest.mark.parametrize("kind", ["missing", "short", "pipe", "directory", "device", "empty"])
def test_bad_members_are_named(wherry_run: Path, wherry, tmp_path: Path, kind: str):
    paths = members(tmp_path)
    bad = paths[1]
    bad.unlink()
    words = {
        "missing": "missing",
        "short": "short",
        "empty": "short",
        "pipe": "neither a file nor a block device",
        "directory": "neither a file nor a block device",
        "device": "neither a file nor a block device",
    }[kind]
    if kind in ("short", "empty"):
        bad.write_bytes(b"x" * (MIB if kind == "short" else 0))
    elif kind == "pipe":
        os.mkfifo(bad)
    elif kind == "directory":
        bad.mkdir()
    elif kind == "device":
        bad.symlink_to("/dev/zero")
    options = [word for path in paths for word in ("--members", path)]
    result = wherry("bench", "stripes", *options, "--save", tmp_path / "run.json", timeout=300)
    assert result.returncode == 2 and result.stderr.count("\n") == 1, result.stderr
    assert f"member 2 ({bad})" in result.stderr and words in result.stderr
    assert not (tmp_path / "run.json").exists()
    # The runner by itself, as when it happens after the first look.
    row = f"id=1 op=stripes routines=read members=3 files={listed(paths)} rounds=1\n"
    events, _ = system(wherry_run, row, 1)
    assert events[-1]["event"] == "broken"
    assert f"member 2 ({bad})" in events[-1]["message"]


def test_unreadable_members(wherry_run: Path, tmp_path: Path):
    """/proc/self/mem is a file that opens and has neither an end nor, at its beginning, a byte."""
    with pytest.raises(WherryError, match=r"member 1 .* cannot be read: Invalid argument"):
        given.check(["/proc/self/mem"], 8192)
    paths = members(tmp_path)
    if os.geteuid() != 0:
        paths[2].chmod(0)
        with pytest.raises(WherryError, match=r"member 3 .* cannot be read: Permission denied"):
            given.check([str(path) for path in paths], 8192)
        paths[2].unlink()
    # The way to it is barred: the look at what it is fails too, for root by a name that is too long.
    far = tmp_path / ("x" * 300)
    with pytest.raises(WherryError, match=r"member 1 .* cannot be read: File name too long"):
        given.check(given.gather([str(far)]), 8192)
    with pytest.raises(WherryError, match="at most 9"):
        given.gather([str(path) for path in members(tmp_path, 10)])
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(WherryError, match="has no files"):
        given.gather([str(empty)])


def spoilt(wherry_run: Path, paths: list[Path], words: str, deed: Callable[[], object]):
    """What the runner says of a row in the middle of which that is done: once it has worked for a while, and so many
    calls that no machine is through with them by then."""
    row = f"id=1 op=stripes members={len(paths)} files={listed(paths)} rounds=1000 {words}\n"
    with subprocess.Popen(
        [wherry_run, "system"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as own:
        own.stdin.write(row)
        own.stdin.close()
        wait_until(lambda: processor_seconds(own.pid) > 0.5, "the runner is at work")
        deed()
        events = [json.loads(line) for line in own.stdout]
    assert own.returncode == 1 and events[-1]["event"] == "broken", events[-1]
    return events


@pytest.mark.parametrize("name", ["read", "libc", "wherry", "nofault", "touch", "direct"])
def test_truncated_while_it_is_read(wherry_run: Path, disk: Path, name: str):
    paths = members(disk, 3, 8 * MIB)
    words = f"routines={name} calls=10000000"
    *_, last = spoilt(wherry_run, paths, words, lambda: os.truncate(paths[1], 4 * MIB))
    assert f"member 2 ({paths[1]}) was truncated while it was read" in last["message"]
    assert f"{4 * MIB} bytes, and {8 * MIB} before" in last["message"]


def test_grown_while_it_is_read(wherry_run: Path, disk: Path):
    """Each process looks at the lengths: the next would call the others short."""
    paths = members(disk, 2, 2 * MIB)
    words = "routines=read calls=50000"
    *_, last = spoilt(wherry_run, paths, words, lambda: os.truncate(paths[1], 3 * MIB))
    assert f"member 2 ({paths[1]}) grew while it was read: {3 * MIB} bytes" in last["message"]


@pytest.mark.parametrize("name", ["read", "libc", "nofault"])
def test_a_device_that_fails(wherry_run: Path, disk: Path, name: str):
    """A loop device over a file that is cut gives an error for what is gone, as a disk for a bad sector."""
    need_root()
    losetup = need_tool("losetup", "mount")
    backing = members(disk, 1, 8 * MIB)[0]
    done = subprocess.run(
        [losetup, "--find", "--show", "--read-only", backing], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"no loop device here: {done.stderr.strip()}")
    device = done.stdout.strip()
    try:
        os.truncate(backing, 4 * MIB)
        row = f"id=1 op=stripes routines={name} members=1 files={device} rounds=2\n"
        events, _ = system(wherry_run, row, 1)
    finally:
        subprocess.run([losetup, "--detach", device], check=True)
    assert events[-1]["event"] == "broken"
    assert f"member 1 ({device}) cannot be read at byte 4" in events[-1]["message"], events[-1]


def test_a_cut_within_a_page_is_seen(wherry_run: Path, tmp_path: Path):
    """The rest of the page reads as zeros without a fault."""
    paths = members(tmp_path, 2)
    words = "routines=libc calls=50000"
    *_, last = spoilt(wherry_run, paths, words, lambda: os.truncate(paths[0], 2 * MIB - 100))
    assert "member 1 " in last["message"]


# ---- in the middle of a run ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def loop_over(backing: Path) -> Iterator[str]:
    need_root()
    losetup = need_tool("losetup", "mount")
    done = subprocess.run(
        [losetup, "--find", "--show", "--read-only", backing], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"no loop device here: {done.stderr.strip()}")
    try:
        yield done.stdout.strip()
    finally:
        subprocess.run([losetup, "--detach", done.stdout.strip()], check=True)


def put_shorter(path: Path) -> None:
    """Another, shorter file in its place: the one that is open stays as it was."""
    other = path.with_name("other")
    other.write_bytes(b"x" * MIB)
    other.replace(path)


@pytest.mark.parametrize(
    ("deed", "said"),
    [
        (Path.unlink, "is missing"),
        (put_shorter, f"is short: {MIB} bytes, where others have {2 * MIB}"),
        (lambda path: os.truncate(path, MIB), f"is short: {MIB} bytes"),
        (lambda path: (path.unlink(), path.mkdir()), "is neither a file nor a block device"),
    ],
    ids=["missing", "replaced", "cut", "directory"],
)
def test_between_two_rows(wherry_run: Path, tmp_path: Path, deed, said: str):
    paths = members(tmp_path)
    row = f"op=stripes routines=read,libc members=3 files={listed(paths)} rounds=2 batch_us=500\n"
    events = []
    with subprocess.Popen(
        [wherry_run, "system"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as own:
        own.stdin.write(f"id=1 {row}")
        own.stdin.flush()
        for line in own.stdout:
            events.append(json.loads(line))
            if events[-1]["event"] == "rowend":
                deed(paths[1])
                own.stdin.write(f"id=2 {row}")
                own.stdin.close()
                own.stdin = None
    assert own.returncode == 1
    assert [e["id"] for e in events if e["event"] == "rowend"] == [1]
    assert events[-1]["event"] == "broken" and events[-1]["id"] == 2
    assert f"member 2 ({paths[1]}) {said}" in events[-1]["message"]


def test_removed_while_it_is_read(wherry_run: Path, tmp_path: Path):
    """Whoever has it open can read it still; what was measured of the row until then comes with it."""
    paths = members(tmp_path)
    events = spoilt(wherry_run, paths, "routines=read,libc calls=5000", paths[2].unlink)
    assert f"member 3 ({paths[2]}) is missing: it was removed" in events[-1]["message"]
    kept = {e["routine"]: len(e["ns"]) for e in events if e["event"] == "cell"}
    assert kept.keys() == {"read", "libc"} and all(0 < n < 1000 for n in kept.values()), kept


@pytest.mark.parametrize("kind", ["missing", "short", "unreadable", "truncated"])
def test_what_was_measured_is_kept(wherry_run: Path, wherry, disk: Path, tmp_path: Path, kind: str):
    paths, said = members(disk, 3, 4 * MIB), {
        "missing": "is missing",
        "short": f"is short: {MIB:,} bytes".replace(",", ""),
        "unreadable": "cannot be read at byte",
        "truncated": "was truncated while it was read",
    }[kind]  # fmt: skip
    saved = tmp_path / "run.json"
    with contextlib.ExitStack() as around:
        names = [str(path) for path in paths]
        if kind == "unreadable":
            names[1] = around.enter_context(loop_over(paths[1]))
        options = [word for name in names for word in ("--members", name)]
        options += ["--size", "64K", "--disks", "3", "--processes", "2", "--rounds", "4", "--quick"]
        own = subprocess.Popen(
            [sys.executable, "-m", "wherry", "bench", "stripes", *options, "--save", saved],
            env={**os.environ, "WHERRY_RUN": str(wherry_run)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        journal = path_for(saved)
        wait_until(lambda: rows_in(journal) > 0, "a row")
        if kind == "missing":
            paths[1].unlink()
        elif kind == "short":
            put_shorter(paths[1])
        else:
            os.truncate(paths[1], MIB)
        out, complaint = own.communicate(timeout=300)
    assert own.returncode == 1, out + complaint
    told = complaint.splitlines()
    assert len(told) == 1 and told[0].startswith(f"wherry: member 2 ({names[1]}) "), complaint
    # The one that is open may be seen to have lost its name before the other is opened; and what is cut between two
    # openings is seen by the next.
    elsewise = {"short": "is missing: it was removed", "truncated": f"is short: {MIB} bytes"}
    assert said in told[0] or elsewise.get(kind, said) in told[0], told
    assert str(saved) in told[0] and "stripes: files, cached" in out and "CUT SHORT" in out
    run = runfile.read(saved)
    assert run["rows"] and run["interrupted"] and not run["experiments"][0]["complete"]
    assert [p["kind"] for p in run["problems"] if p["kind"] != "skip"] == ["broken"]
    if kind != "truncated":
        return
    members(disk, 3, 4 * MIB)
    again = wherry("bench", "--resume", saved, timeout=300)
    assert again.returncode == 0, again.stdout[-2000:] + again.stderr
    whole = runfile.read(saved)
    assert not whole["interrupted"] and len(whole["rows"]) > len(run["rows"])
    assert all(cell["processes"] == 2 for cell in whole["cells"])


def test_broken_before_anything_was_measured(wherry_run: Path, wherry, disk: Path, tmp_path: Path):
    """Nothing is saved, and no empty file is left."""
    backing = members(disk, 1, 4 * MIB)[0]
    with loop_over(backing) as device:
        os.truncate(backing, 2 * MIB)
        saved = tmp_path / "run.json"
        result = wherry("bench", "stripes", "--members", device, "--save", saved, timeout=300)
    assert result.returncode in (1, 2) and f"member 1 ({device})" in result.stderr
    assert result.stderr.count("\n") == 1 and not list(tmp_path.glob("run*"))
