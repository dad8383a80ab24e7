"""iszero, pagezero and the copies past the caches: right in every tier, wrong ones are seen, and what they measure."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, need_tool, run

RIGHT = """
#include <stdbool.h>
#include <stddef.h>
bool p_iszero(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}
void p_pagezero(unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            ((volatile unsigned char *)p)[i] = 0;
}
"""
WRONG = {
    "a bit that is not looked at": (
        "if (p[i])\n            return",
        "if (p[i] & 0x7f)\n            return",
    ),
    "the last byte not looked at": (
        "i < n; i++)\n        if (p[i])\n            return",
        "i + 1 < n; i++)\n        if (p[i])\n            return",
    ),
    "a byte too many": (
        "i < n; i++)\n        if (p[i])\n            return",
        "i <= n; i++)\n        if (p[i])\n            return",
    ),
    "zeros written over zeros": ("        if (p[i])\n            ((", "            (("),
    "a byte left": (
        "i < n; i++)\n        if (p[i])\n            ((",
        "i + 1 < n; i++)\n        if (p[i])\n            ((",
    ),
}


def verified(wherry_run: Path, tmp_path: Path, source: str, *more: str, only: str = ""):
    need_tool("cc", "gcc")
    (tmp_path / "p.c").write_text(source)
    run("cc", "-O1", "-fPIC", "-shared", tmp_path / "p.c", "-o", tmp_path / "p.so")
    peer = f"p={tmp_path}/p.so:p_"
    which = f"p:p_{only}" if only else "--only-peers"
    return run(wherry_run, "verify", "--peer", peer, which, *more, check=False)


def test_a_right_one_passes(wherry_run: Path, tmp_path: Path):
    result = verified(wherry_run, tmp_path, RIGHT, "--family", "zeros", "--brief")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "p_iszero" in result.stdout and "p_pagezero" in result.stdout


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_one_is_seen(wherry_run: Path, tmp_path: Path, fault: str):
    right, wrong = WRONG[fault]
    assert RIGHT.count(right) == 1
    source = RIGHT.replace(right, wrong)
    only = "iszero" if "return" in right else "pagezero"
    result = verified(wherry_run, tmp_path, source, "--family", "zeros", "--brief", only=only)
    assert result.returncode == 1, result.stdout
    assert "WRONG" in result.stdout.upper()


@pytest.mark.parametrize(
    "function", ["wherry_memcpy_stream", "wherry_memset_stream", "wherry_iszero", "wherry_pagezero"]
)
def test_every_tier_is_right(wherry_run: Path, function: str):
    families = "guard,empty,ordering,zeros,neighbour"
    result = run(wherry_run, "verify", function, "--family", families, "--brief", "--json")
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert events[-1]["failures"] == 0
    targets = {event["target"] for event in events if event["event"] == "family"}
    assert {"wherry", "wherry@sse2"} <= targets


def measure(wherry_run: Path, *rows: str) -> list[dict]:
    result = subprocess.run(
        [wherry_run, "measure"], input="\n".join(rows), capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_mixed_content(wherry_run: Path):
    row = "routines=wherry,zero:wherry size=4096 dst_state=L2 content=mixed rounds=1 batch_us=50"
    events = measure(wherry_run, f"id=1 op=pagezero {row}")
    assert {e["routine"] for e in events if e["event"] == "cell"} == {"wherry", "zero:wherry"}


def test_content_mixed_is_not_for_a_set(wherry_run: Path):
    row = "id=1 op=set routines=wherry size=4096 dst_state=L2 content=mixed\n"
    result = subprocess.run([wherry_run, "measure"], input=row, capture_output=True, text=True)
    assert result.returncode == 2 and "content=zero and mixed need op=zero" in result.stderr


INLINED = "padded,inlined_padded,inlined_memcpy,inlined_wherry,inlined_padded_n,inlined_memcpy_n"


def test_inlined_copies(wherry_run: Path):
    events = measure(
        wherry_run,
        f"id=1 op=copy routines={INLINED} size=60 rounds=1 batch_us=20",
        f"id=2 op=copy routines={INLINED} size=61 rounds=1 batch_us=20 mode=latency",
        f"id=3 op=copy routines={INLINED} mix=uniform:1-256 rounds=1 batch_us=20",
    )
    cells = {(e["id"], e["routine"]) for e in events if e["event"] == "cell"}
    names = INLINED.split(",")
    assert {name for row, name in cells if row == 1} == set(names)
    for row in (2, 3):
        assert {name for own, name in cells if own == row} == set(names[:4])
    reasons = [e["reason"] for e in events if e["event"] == "skip"]
    assert len(reasons) == 4 and all("constant" in reason for reason in reasons)
    assert not [e for e in events if e["event"] == "wrong"]


def test_the_example(build_dir: Path, tmp_path: Path):
    need_tool("cc", "gcc")
    source = ROOT / "examples/streaming.c"
    flags = ("-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "include")
    run("cc", *flags, source, build_dir / "src/libwherry.a", "-o", tmp_path / "s")
    said = run(tmp_path / "s", str(64 << 10)).stdout
    assert said.count("stream/memcpy") == 6 and said.count("\n") == 2 * (3 + 4)
    for *right, wrong in (["many"], ["64k"], ["100"], ["-1"], [" -1"], [""], ["1024", "4096"]):
        done = run(tmp_path / "s", *right, wrong, check=False)
        assert (done.returncode, done.stdout) == (2, ""), wrong
        assert f"streaming: '{wrong}': give the largest size" in done.stderr
