"""The measuring half of wherry-run: what bad input gets, and output that cannot be written."""

import json
import os
import re
import resource
import subprocess
from pathlib import Path

import pytest
from conftest import need_tool
from measured import LIMIT_S, QUICK, measure, of, peers, runner

__all__ = ["peers", "runner"]  # fixtures


@pytest.mark.parametrize("pace", ["", "1", "1,", "1,2,3", "fast", "-1,2"])
def test_a_pace_is_two_figures(runner, pace):
    _, said = measure(runner, [], "--pace", pace, status=2)
    assert "--pace" in said


@pytest.mark.parametrize(
    "row",
    [
        "op=copy routines=libc size=4194304 src_state=L1 dst_state=L1",
        "op=copy routines=libc size=70368744177664 src_state=DRAM dst_state=DRAM",
        "op=set routines=libc walk=stream size=64 buffer=70368744177664",
    ],
)
def test_row_that_this_machine_cannot_hold(runner, row):
    events, _ = measure(runner, [f"id=1 {row}", f"id=2 op=copy routines=libc size=8 {QUICK}"])
    (skip,) = of(events, "skip")
    assert skip["routine"] is None and "choose a smaller size" in skip["reason"]
    assert {cell["id"] for cell in of(events, "cell")} == {2}


@pytest.mark.parametrize(
    ("row", "sides"),
    [
        ("op=copy src_state=L1 dst_state=L1", 2),
        ("op=copy src_off=9 dst_off=3 src_state=L1 dst_state=L2", 2),
        ("op=copy src_state=L2 dst_state=L2", 2),
        ("op=move overlap=100 src_state=L1 dst_state=L1", 2),
        ("op=set dst_state=L1", 1),
        ("op=crc32c src_state=L1", 1),
        ("op=iszero dst_state=L2", 1),
    ],
)
def test_the_largest_size_of_a_state_is_told(runner, row, sides):
    """And is the largest; no other side is blamed where there is none."""
    tail = f"routines=wherry {QUICK}"
    events, _ = measure(runner, [f"id=1 {row} size=16000000 {tail}"])
    (skip,) = of(events, "skip")
    fit = int(re.search(r": at most (\d+) do; choose a smaller size", skip["reason"])[1])
    assert ("beside the other side" in skip["reason"]) == (sides == 2)
    events, _ = measure(
        runner, [f"id=1 {row} size={fit} {tail}", f"id=2 {row} size={fit + 1} {tail}"]
    )
    assert {cell["id"] for cell in of(events, "cell")} == {1}
    assert [skip["id"] for skip in of(events, "skip")] == [2]


def test_calls_that_would_take_too_long(runner):
    rows = [
        f"id=1 op=copy routines=libc,wherry size=4096 {QUICK} calls={2**40}",
        f"id=2 op=copy routines=libc size=8 {QUICK} calls=1000",
    ]
    events, _ = measure(runner, rows)
    (skip,) = of(events, "skip")
    assert skip["id"] == 1 and skip["routine"] is None
    assert f"calls={2**40}: a sample of " in skip["reason"] and "5 s are the most" in skip["reason"]
    assert {cell["id"] for cell in of(events, "cell")} == {2}


@pytest.mark.parametrize(
    ("row", "hint"),
    [
        ("op=copy routines=libc size=8", "id is missing"),
        ("id=1 routines=libc size=8", "op is missing"),
        ("id=1 op=copy size=8", "routines is missing"),
        ("id=1 op=copy routines=libc", "one of size and mix"),
        ("id=1 op=copy routines=libc size=8 mix=log:1-2", "one of size and mix"),
        ("id=x op=copy routines=libc size=8", "an integer"),
        ("id=1 op=jump routines=libc size=8", "give copy, move, set, zero, csum"),
        ("id=1 op=copy routines=libc size=-1", "0 to"),
        ("id=1 op=copy routines=libc size=4X", "0 to"),
        ("id=1 op=copy routines=libc size=99999999999999999999", "0 to"),
        ("id=1 op=copy routines=libc,libc size=8", "each once"),
        ("id=1 op=copy routines=libc, size=8", "names with commas"),
        ("id=1 op=copy routines=nobody size=8", "nobody"),
        ("id=1 op=copy routines=libc size=8 aa=wherry", "one of the row's routines"),
        ("id=1 op=copy routines=libc size=8 colour=red", "colour"),
        ("id=1 op=copy routines=libc size=8 size=9", "twice"),
        ("id=1 op=copy routines=libc size=8 rounds=0", "1 to 1000"),
        ("id=1 op=copy routines=libc size=8 threads=100000", "1 to"),
        ("id=1 op=copy routines=libc size=8 src_off=4096", "0 to 4095"),
        ("id=1 op=copy routines=libc size=8 src_state=L9", "L1, L2, L3 or DRAM"),
        ("id=1 op=copy routines=libc size=8 overlap=1", "op=move"),
        ("id=1 op=move routines=libc size=8 overlap=1 src_state=L2", "the same"),
        ("id=1 op=copy routines=libc size=8 delta=1 dst_off=5", "no dst_off"),
        ("id=1 op=copy routines=libc size=99 walk=stream buffer=98", "buffer"),
        ("id=1 op=copy routines=libc mix=log:0-8", "LO-HI"),
        ("id=1 op=copy routines=libc mix=uniform:9-8", "LO-HI"),
        ("id=1 op=copy routines=libc mix=normal:1-8", "@FILE"),
        ("id=1 op=copy routines=libc mix=@/nonexistent/mix", "cannot be read"),
        (
            "id=1 op=copy routines=libc size=8 content=dirty",
            "are for ops with a destination alone",
        ),
        ("id=1 op=set routines=libc size=8 content=zero", "need op=zero, iszero or pagezero"),
        ("id=1 op=csum routines=csum_sse2 size=8 content=new", "an op that writes"),
        ("id=1 op=iszero routines=iszero_sse2 size=8 content=new", "an op that writes"),
        ("id=1 op=move routines=libc size=8 overlap=1 content=new", "where the source does"),
        ("id=1 op=copy routines=libc mix=uniform:1-8 content=new", "no mix"),
        ("id=1 op=zero routines=libc mix=uniform:1-8 content=zero", "no mix"),
        ("id=1 op=zero routines=libc size=0 content=dirty", "from 1 byte on"),
        ("id=1 op=copy routines=libc size=8 code=tepid", "warm or cold"),
        ("id=1 op=copy routines=libc size=8 code=cold mode=latency", "mode=throughput"),
        ("id=1 op=copy routines=libc size=8 code=cold walk=stream", "walk=pool"),
        ("id=1 op=copy routines=libc size=8 code=cold mode=fresh", "mode=throughput"),
        ("id=1 op=set routines=libc size=8 mode=fresh", "op=set lacks"),
        ("id=1 op=iszero routines=wherry size=8 mode=fresh", "op=iszero lacks"),
        ("id=1 op=zero routines=libc size=8 code=cold content=dirty", "one of them"),
        ("id=1 op=zero routines=libc size=8 content=old", "any, dirty, zero, mixed or new"),
        ("id=1 op=copy routines=libc size=8 places=anywhere", "repeat or change"),
        ("id=1 op=copy routines=libc size=8 places=change walk=stream", "walk=pool"),
        ("id=1 op=copy routines=libc size=8 places=change src_off=1", "where each call lies"),
        ("id=1 op=copy routines=libc size=8 places=change dst_off=1", "where each call lies"),
        ("id=1 op=copy routines=libc size=8 places=change delta=64", "where each call lies"),
        ("id=1 op=move routines=libc size=8 places=change overlap=4", "where each call lies"),
        ("id=1 op=copy routines=libc size=8 places=change ascending=source", "at random"),
        ("id=1 op=copy routines=libc size=8 places=change handed=source", "at random"),
        ("id=1 op=zero routines=libc size=8 places=change content=dirty", "at random"),
        ("id=1 op=copy routines=libc size=4294967296 places=change", "below 4 GiB"),
        ("id=1 op=copy routines=libc size=8 table=32768 places=change", "more than 32768"),
        ("id=1 op=copy routines=libc mix=log:1-9 table=1 places=change", "more than 32768"),
        ("id=1 op=copy routines=libc size=8 ascending=up", "none, source, destination or both"),
        ("id=1 op=set routines=libc size=8 ascending=both", "op=set has no source"),
        ("id=1 op=csum routines=csum_sse2 size=8 ascending=destination", "no destination"),
        (
            "id=1 op=move routines=libc size=8 overlap=1 ascending=destination",
            "where the source does",
        ),
        ("id=1 op=copy routines=libc size=8 walk=stream ascending=source", "by itself"),
        ("hello", "not a key=value"),
    ],
)
def test_bad_row(runner, row, hint):
    events, said = measure(runner, ["# first line", row], status=2)
    assert [event["event"] for event in events] == ["start"]
    assert said.count("\n") == 1 and "line 2" in said and hint in said


@pytest.mark.parametrize("pin", ["4000", "99999999", "-1", "one"])
@pytest.mark.parametrize("command", ["measure", "sizes"])
def test_pin_to_a_cpu_that_is_not_there(runner, command, pin):
    done = subprocess.run(
        [runner, command, "--pin", pin], input="", capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and pin in done.stderr


def test_yardstick_is_no_name_for_a_peer(runner, peers):
    _, said = measure(runner, [], "--peer", f"read_bandwidth={peers}:good_", status=2)
    assert "taken" in said


def test_closed_output(runner):
    row = f"id=1 op=copy routines=libc size=8 {QUICK}\n"
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [runner, "measure"], input=row, stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "cannot write" in done.stderr


def test_what_a_terminal_would_obey_is_not_echoed(runner):
    sign = "\x1b[31m\n\x9b\u00fc"
    for words, row, status in (
        (["list", sign], "", 2),
        (["measure"], "id=1 size=\x1b[31m\x7f\n", 2),
        (["hold", "--directory", sign], "", 1),
    ):
        done = subprocess.run([runner, *words], input=row, capture_output=True, text=True)
        assert done.returncode == status and done.stderr.count("\n") == 1
        assert done.stderr.rstrip("\n").isprintable() and "\\x1b[31m" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["measure"],
        ["sizes", "--size", "64", "--rounds", "2"],
        ["list"],
        ["cpu"],
        ["--help"],
        ["fuzz", "--help"],
        ["fuzz", "rep_movsb", "--executions", "100", "--jobs", "1"],
        ["verify", "rep_movsb", "--family", "empty", "--jobs", "1"],
    ],
)
def test_full_disk(runner, command):
    row = f"id=1 op=copy routines=libc size=8 {QUICK}\n"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [runner, *command], input=row, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "No space left" in done.stderr


@pytest.mark.parametrize(
    "options",
    [
        ["--size", "0"],
        ["--size", "4X"],
        ["--size", "-1"],
        ["--rounds", "0"],
        ["--routine", "nobody"],
        ["--speed"],
    ],
)
def test_sizes_misuse(runner, options):
    done = subprocess.run(
        [runner, "sizes", *options], capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and options[-1] in done.stderr


def test_who_sets_the_clock_makes_no_routine_hang(runner, tmp_path):
    """What the runner reads is a day before what the kernel has, as if somebody had set it in between."""
    (tmp_path / "clock.c").write_text(
        "#define _GNU_SOURCE\n#include <sys/syscall.h>\n#include <time.h>\n#include <unistd.h>\n"
        "int clock_gettime(clockid_t which, struct timespec *at) {\n"
        "int status = (int)syscall(SYS_clock_gettime, which, at);\n"
        "if (which == CLOCK_REALTIME) at->tv_sec -= 86400;\nreturn status; }\n"
    )
    shim = tmp_path / "clock.so"
    subprocess.run(
        [need_tool("cc", "gcc"), "-shared", "-fPIC", tmp_path / "clock.c", "-o", shim], check=True
    )
    done = subprocess.run(
        [runner, "measure"],
        input=f"id=1 op=copy routines=libc,wherry size=256 threads=2 {QUICK}\n",
        env={**os.environ, "LD_PRELOAD": str(shim)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert not of(events, "hang") and len(of(events, "cell")) >= 2


@pytest.mark.parametrize("command", ["measure", "system"])
def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(runner, command):
    with Path("/dev/zero").open("rb") as zeros:
        done = subprocess.run([runner, command], stdin=zeros, capture_output=True, timeout=LIMIT_S)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1 and b"line 1 is longer than any row" in done.stderr


def test_help_names_every_key_of_a_row(runner):
    """As the answer to a key that there is not, which goes by the parser's own list."""
    _, said = measure(runner, ["key"], status=2)
    keys = said.partition("keys are ")[2].split()
    shown = subprocess.run([runner, "measure", "--help"], capture_output=True, text=True).stdout
    told = shown.partition("Keys of a row: ")[2].partition(";")[0].split()
    assert told == keys and "ascending" in keys


def test_without_memory_to_verify_in_nobody_is_wrong(runner):
    """Where a limit leaves room for the two buffers and not for a third, which keeps what the source held."""
    row = (
        f"id=1 op=copy routines=libc,wherry walk=stream buffer={32 << 20} size={32 << 20} rounds=1"
    )
    met = set()
    for room in range(64, 160, 12):
        done = subprocess.run(
            [runner, "measure"],
            input=row + "\n",
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            preexec_fn=lambda room=room: resource.setrlimit(
                resource.RLIMIT_AS, (room << 20, room << 20)
            ),
        )
        events = [json.loads(line) for line in done.stdout.splitlines()]
        assert done.returncode == 0 and not of(events, "wrong"), done.stdout + done.stderr
        met |= {event["reason"].partition(" in ")[0] for event in of(events, "skip")}
        met |= {"measured" for _ in of(events, "cell")}
    assert met >= {"no memory to verify it", "measured"}
