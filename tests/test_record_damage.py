"""What a recorded process leaves is read with care: what no calls can have given is left out, and named so."""

from __future__ import annotations

import os
import resource
import sys

import numpy as np
import pytest
from conftest import run
from test_record import known, recorder
from wherry.recording import blocks, leftovers, orphans
from wherry.recording.merge import Merger

__all__ = ["known", "recorder"]  # fixtures


@pytest.mark.parametrize("table", ["sizes", "places", "functions"])
def test_counters_that_contradict_each_other_are_left_out(recorder, known, tmp_path, table):
    """As where the program wrote over them; what other threads left is kept."""
    env = {**os.environ, "LD_PRELOAD": str(recorder), "WHERRY_RECORD": str(tmp_path)}
    assert run(known, "late", env=env).returncode == 0
    (path,) = tmp_path.iterdir()
    left = blocks.read(path)
    assert not left.damaged and len(left.blocks) == 4
    data = bytearray(path.read_bytes())
    at = blocks.HEADER_BYTES + blocks.BLOCK_BYTES + blocks._BLOCK.fields[table][1]
    data[at + 2] ^= 1
    path.write_bytes(data)
    merger = Merger()
    merger.add(path)
    assert len(merger.damaged) == 1 and merger.damaged[0].startswith("what a thread of process ")
    assert merger.threads == 3
    assert sum(row["calls"] for row in merger.by_thread() if row["name"].startswith("by ")) == 2000


@pytest.mark.parametrize(
    ("table", "word", "bit"),
    [
        *(("times", word, 40) for word in range(blocks.TIME_FIELDS)),
        *(("callers", word, 50) for word in range(1, 5)),
        ("callers", 0, 63),
        ("trials", 0, 40),
        ("trials", 1, 60),
        *(("order", word, 40) for word in range(3)),
    ],
)
def test_what_no_call_can_have_given_is_damage(recorder, known, tmp_path, table, word, bit):
    """Times, callers and order are of calls that were counted, too: no more of them, nor longer than is timed."""
    env = {**os.environ, "LD_PRELOAD": str(recorder), "WHERRY_RECORD": str(tmp_path)}
    assert run(known, "times", "123457", env=env).returncode == 0
    (path,) = tmp_path.iterdir()
    assert not blocks.read(path).damaged
    data = bytearray(path.read_bytes())
    block = np.frombuffer(data, blocks._BLOCK, 1, blocks.HEADER_BYTES)
    rows = block[table][0].reshape(-1, blocks._BLOCK[table].shape[-1])
    # The row that tells of most, where there is one.
    row = int(rows[:, 1 if table == "callers" else 0].argmax())
    row = 2 * blocks.TRIAL_GROUPS * 20 if table == "trials" else row
    rows[row, word] ^= np.uint64(1 << bit) if table != "callers" or word else np.uint64(3 << 62)
    path.write_bytes(data)
    merger = Merger()
    merger.add(path)
    assert len(merger.damaged) == 1 and merger.ops() == {}


@pytest.mark.parametrize("table", ["sizes", "functions", "log_bytes", "uncounted"])
@pytest.mark.filterwarnings("error")
def test_a_counter_below_zero_is_damage(recorder, known, tmp_path, table):
    """In 64 bits that is a few calls fewer; in a mix, more than a mix may tell."""
    env = {**os.environ, "LD_PRELOAD": str(recorder), "WHERRY_RECORD": str(tmp_path)}
    assert run(known, "times", "1000", env=env).returncode == 0
    (path,) = tmp_path.iterdir()
    data = bytearray(path.read_bytes())
    at = 24  # in the head: calls that were not counted
    if table != "uncounted":
        field, begin = blocks._BLOCK.fields[table]
        last = len(blocks.FUNCTIONS) if table == "functions" else field.itemsize // 8 - 1
        at = blocks.HEADER_BYTES + begin + 8 * (last - 1)
    data[at : at + 8] = b"\xff" * 8
    path.write_bytes(data)
    merger = Merger()
    merger.add(path)
    assert len(merger.damaged) == 1 and merger.ops() == {}


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


READ = """
import pathlib, resource, sys
from wherry.recording.merge import Merger
merger = Merger()
pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + (24 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
merger.add(pathlib.Path(sys.argv[1]))
print(merger.records, merger.damaged)
"""


def test_reading_asks_for_no_more_memory_than_there_is_to_read(recorder, known, tmp_path):
    """What makes products of matrices wants 32 MB for itself, and where it may not have them (`ulimit -v`) it ended the
    process, which had run the command by then, and left the recording behind."""
    env = {**os.environ, "LD_PRELOAD": str(recorder), "WHERRY_RECORD": str(tmp_path)}
    assert run(known, "times", "1000", env=env).returncode == 0
    (path,) = tmp_path.iterdir()
    done = run(sys.executable, "-c", READ, path, check=False)
    assert (done.returncode, done.stdout) == (0, "1 []\n"), done.stderr


def test_no_more_is_read_than_a_recorder_writes(recorder, known, tmp_path):
    """A file that somebody made longer took more memory than there is, and with it all that was recorded."""
    env = {**os.environ, "LD_PRELOAD": str(recorder), "WHERRY_RECORD": str(tmp_path)}
    assert run(known, "times", "1000", env=env).returncode == 0
    (path,) = tmp_path.iterdir()
    os.truncate(path, 1 << 40)
    other = tmp_path / "1-0"
    other.touch()
    os.truncate(other, 1 << 40)
    merger = Merger()
    for file in (path, other):
        merger.add(file)
    assert merger.ops()["copy"]["calls"] >= 1000 and merger.threads == 1
    assert merger.damaged == ["what process 1 left: it is not a recorder's file"]


def test_what_others_put_beside_the_records_is_none(recorder, known, tmp_path):
    """Names that are nearly those of records, which a process of the run may make: the number in front was missing."""
    env = {**os.environ, "LD_PRELOAD": str(recorder), "WHERRY_RECORD": str(tmp_path)}
    assert run(known, "times", "10", env=env).returncode == 0
    (path,) = tmp_path.iterdir()
    for name in ("-5", "5", "5-", "\u0665-0", "5-0-0"):
        (tmp_path / name).touch(0o200)
    assert leftovers.parts(tmp_path) == [path]
    assert orphans.ByRecords(tmp_path).find(set()) == []


def test_no_room_for_what_a_killed_recording_is_found_by_costs_no_recording(tmp_path):
    """A file that is closed tells once more what could not be written to it."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with leftovers.held(tmp_path, ["a"], tmp_path / "a.mix.json", ""):
            found = (tmp_path / leftovers.STATE).exists()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not found
