"""The experiment `usercopy`: its paths are there and carry, one that is forbidden is left out with its reason, nothing
stays behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import report_runs as runs
from wherry import runfile
from wherry.experiments import Request
from wherry.experiments.usercopy import EXPERIMENT, FLOOR, PATHS, SEGMENT
from wherry.report import words

FAST = ("--processes", "1", "--rounds", "3")
ROW = f"id=1 op=copy routines={','.join(PATHS)},{FLOOR} size=1448 rounds=1 batch_us=20 {{}}\n"


def measure(wherry_run: Path, rows: str, *prefix: str, env: dict | None = None) -> list[dict]:
    result = subprocess.run(
        [*prefix, wherry_run, "measure"],
        input=rows,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **(env or {})},
    )
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("offsets", ["", "src_off=1 dst_off=1", "src_off=63 dst_off=5"])
def test_every_path_carries(wherry_run: Path, offsets: str):
    events = measure(wherry_run, ROW.format(offsets))
    skipped = {e["routine"] for e in events if e["event"] == "skip"}
    assert not [e for e in events if e["event"] == "wrong"]
    cells = {e["routine"] for e in events if e["event"] == "cell"}
    assert cells | skipped == {*PATHS, FLOOR} and {"pipe", "page_read", FLOOR} <= cells


def test_they_need_a_copy(wherry_run: Path):
    events = measure(wherry_run, "id=1 op=set routines=pipe,wherry size=64 rounds=1\n")
    assert [e["reason"] for e in events if e["event"] == "skip"] == ["needs op=copy and threads=1"]


def test_no_place_for_a_file(wherry_run: Path, tmp_path: Path):
    events = measure(wherry_run, ROW.format(""), env={"TMPDIR": str(tmp_path / "gone")})
    skipped = {e["routine"]: e["reason"] for e in events if e["event"] == "skip"}
    assert "TMPDIR" in skipped["page_read"] and "No such file" in skipped["page_write"]
    assert "pipe" in {e["routine"] for e in events if e["event"] == "cell"}


FORBID = """
import ctypes, os, struct, sys
# A filter of five instructions: one system call ends the process or fails with EPERM, all others pass.
number, action = int(sys.argv[1]), int(sys.argv[2], 16)
code = b"".join(struct.pack("HBBI", *i) for i in (
    (0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, action), (0x06, 0, 0, 0x7FFF0000)))
kept = ctypes.create_string_buffer(code)
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
program = Program(4, ctypes.addressof(kept))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(program), 0, 0):
    sys.exit(77)
os.execv(sys.argv[3], sys.argv[3:])
"""
VM_READV, SOCKETPAIR = 310, 53
EPERM, KILL = "00050001", "80000000"


@pytest.mark.parametrize(
    ("number", "action", "path", "words"),
    [
        (VM_READV, EPERM, "vm_readv", "not permitted"),
        (VM_READV, KILL, "vm_readv", "forbidden"),
        (SOCKETPAIR, EPERM, "unix", "not permitted"),
        (SOCKETPAIR, KILL, "unix", "forbidden"),
    ],
)
def test_what_is_forbidden_is_left_out(
    wherry_run: Path, number: int, action: str, path: str, words: str
):
    forbidding = (sys.executable, "-c", FORBID, str(number), action)
    if subprocess.run([*forbidding, "/bin/true"]).returncode == 77:
        pytest.skip("this system takes no filters of system calls")
    events = measure(wherry_run, ROW.format(""), *forbidding)
    skipped = {e["routine"]: e["reason"] for e in events if e["event"] == "skip"}
    assert words in skipped[path]
    assert "pipe" in {e["routine"] for e in events if e["event"] == "cell"}


def test_rows():
    quick, full = (EXPERIMENT.rows(Request(quick=quick)) for quick in (True, False))
    assert len(quick) < len(full)
    asked = EXPERIMENT.rows(Request(sizes=(512,)))
    assert {row.size for row in asked} == {1, 512}


def test_one_path_whose_copy_stands_out_is_no_range():
    """The line through the sizes tells the others from noise no longer on a busy machine."""

    def cell(ns: float) -> dict:
        return {"ns": {"median": ns}}

    found = {}
    for offset, each in ((0, 0.010), (1, 0.011)):
        for size in (1, 64, SEGMENT, 4096):
            found[offset, size] = {"unix": cell(500 + each * size)}
    said = EXPERIMENT._alignment(found, 0.01)
    assert said.startswith("Misaligned copies take 1.10 (unix) times the time of aligned ones;")


def test_the_tables(wherry, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = wherry("bench", "usercopy", "--quick", "--save", "run.json", *FAST)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 96
    said = " ".join(" ".join(lines).split())
    assert (
        "3,000 cycles for movsl, aligned" in said and "7,000 cycles for movsl, misaligned" in said
    )
    assert "4,000 cycles for integer, misaligned" in said
    # Said of the paths whose copies stand out of the noise; on a busy machine none may.
    assert "Misaligned copies take" in said or " noise " in said
    assert f"usercopy: {SEGMENT} bytes, the data of one packet" in said
    for name in (FLOOR, "pipe", "libc", "nofault"):
        assert sum(line.split()[:1] == [name] for line in lines) >= 3, name
    document = runfile.read(tmp_path / "run.json")
    assert {row["size"] for row in document["rows"]} == {1, 64, SEGMENT, 4096, 16384}
    shown = wherry("bench", "--show", "run.json", "--then").stdout
    assert "usercopy, then and now: the kernel's copy of 1448 bytes" in shown
    assert "could stand beside" not in shown and max(map(len, shown.splitlines())) <= 96
    assert wherry("report", "run.json", "-o", "r.html").returncode == 0


def test_a_page_tells_first_what_the_kernels_copies_take():
    """Not who is fastest within user space, which is beside the point, as if the kernel were in it."""
    run = runs.empty()
    runs.add(run, "usercopy", [{"size": size} for size in (1, SEGMENT)], ("libc", "wherry"))
    said = words.summary(run, "usercopy")
    assert said[0].startswith("Anand 2002") and len(said) > 1
    assert all(text.startswith("Within user space, without the kernel: ") for text in said[1:])


def test_nothing_stays_behind(wherry_run: Path, tmp_path: Path):
    own = tmp_path / "own"
    own.mkdir()
    row = ROW.format("").replace("rounds=1", "rounds=1000").replace("batch_us=20", "batch_us=5000")
    process = subprocess.Popen(
        [wherry_run, "measure"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(own)},
    )
    process.stdin.write(row)
    process.stdin.flush()
    last = row.partition("routines=")[2].split()[0].split(",")[-1]
    # What it makes there it makes before the last of them is tried.
    while json.loads(process.stdout.readline()).get("routine") != last:
        pass
    assert process.poll() is None and not list(own.iterdir())
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)
    assert process.returncode == -signal.SIGINT and not list(own.iterdir())


def test_more_than_the_ends_hold(wherry_run: Path):
    """Beyond what sockets and pipes hold at once: the pieces are carried in turns."""
    events = measure(wherry_run, ROW.format("walk=stream").replace("1448", "3000001"))
    assert {"pipe", "page_read"} <= {e["routine"] for e in events if e["event"] == "cell"}
    assert not [e for e in events if e["event"] in ("wrong", "hang", "crash")]
