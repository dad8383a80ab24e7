"""Peers that need no --peer: where they are looked for, and what is left out."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from conftest import FAKE, workbench
from wherry import found_peers, runner
from wherry.errors import WherryError
from wherry.experiments import Request
from wherry.experiments.scoreboard import EXPERIMENT as SCOREBOARD
from wherry.experiments.small import EXPERIMENT as SMALL


@pytest.fixture
def rooms(tmp_path: Path, monkeypatch) -> tuple[Path, Path]:
    """A directory of the user's and a checkout's; on an AVX2 machine."""
    own, tree = tmp_path / "own", tmp_path / "tree"
    for directory in (own, tree / "build/peers"):
        directory.mkdir(parents=True)
    monkeypatch.setenv("WHERRY_PEERS", str(own))
    monkeypatch.setattr(found_peers, "checkout", lambda: tree)
    monkeypatch.setattr(runner, "cpu", lambda: {"tier": "avx2"})
    monkeypatch.setattr(runner, "routines", lambda: [{"name": "rep_movsb"}])
    return own, tree / "build/peers"


def put(directory: Path, name: str, **said) -> None:
    (directory / f"{name}.so").write_bytes(b"")
    if said:
        (directory / f"{name}.json").write_text(json.dumps(said))


def test_the_directory_that_is_named_comes_first(rooms):
    own, built = rooms
    put(built, "b", what="the tree's")
    put(built, "a", what="the tree's")
    put(own, "b", what="mine", version="2", tier="avx2", has=["memcpy"])
    found = found_peers.found()
    assert [(p.name, p.what) for p in found] == [("a", "the tree's"), ("b", "mine")]
    assert found[1].spec == f"b={own}/b.so" and found[1].about == "mine, 2, avx2"
    assert [p.name for p in found_peers.found(without=["a"])] == ["b"]


def test_without_a_directory_of_the_users(rooms, monkeypatch):
    put(rooms[1], "a")
    monkeypatch.delenv("WHERRY_PEERS")
    assert [p.about for p in found_peers.found()] == ["a shared object without a description"]
    monkeypatch.setenv("WHERRY_PEERS", "")
    assert found_peers.found() == []
    monkeypatch.setattr(found_peers, "checkout", lambda: None)
    monkeypatch.delenv("WHERRY_PEERS")
    assert found_peers.found() == []


def test_a_directory_that_is_none(rooms, monkeypatch):
    monkeypatch.setenv("WHERRY_PEERS", "/nowhere")
    with pytest.raises(WherryError, match="WHERRY_PEERS=/nowhere is not a directory"):
        found_peers.found()


def test_what_this_cpu_cannot_run_is_not_offered(rooms):
    for tier in found_peers.TIERS:
        put(rooms[0], tier, tier=tier)
    assert [p.name for p in found_peers.found()] == ["avx2", "sse2"]
    assert [p.name for p in found_peers.survey()[0]] == ["avx2", "avx512", "sse2"]


@pytest.mark.parametrize(
    ("name", "sidecar", "said"),
    [
        ("a b", None, "its name cannot stand"),
        ("a", "{", "cannot be read as JSON"),
        ("a", "[]", "no JSON object"),
        ("a", '{"tier": "mmx"}', "says tier 'mmx'"),
        ("a", '{"tier": ["avx2"]}', "says tier"),
        ("a", '{"has": ["strcpy"]}', "says has"),
        ("a", '{"has": 3}', "says has"),
        ("rep_movsb", None, "is taken"),
        ("libc", None, "is taken"),
    ],
)
def test_what_can_be_no_peer_is_left_out_and_named(rooms, name, sidecar, said):
    put(rooms[0], name)
    put(rooms[0], "good")
    if sidecar:
        (rooms[0] / f"{name}.json").write_text(sidecar)
    peers, problems = found_peers.survey()
    assert [p.name for p in peers] == ["good"]
    assert len(problems) == 1 and said in problems[0] and f"{name}.so" in problems[0]


def test_a_description_stays_on_its_line(rooms):
    put(rooms[0], "a", what="two\nlines\x1b[2J", version=7)
    (peer,) = found_peers.found()
    assert peer.what == "two lines[2J" and peer.version == ""


def test_a_stack_whose_description_is_damaged_is_one_without(rooms):
    home = rooms[0] / found_peers.STACKS
    home.mkdir()
    put(home, "lwip", version="2.1.3")
    assert found_peers.stack().version == "2.1.3"
    for text in ("", "[]", 100_000 * "["):
        (home / "lwip.json").write_text(text)
        assert found_peers.stack().version == ""


def test_every_experiment_takes_what_was_found_when_asked_to(tmp_path):
    (tmp_path / "peers").mkdir()
    put(tmp_path / "peers", "one")
    env = {**os.environ, "WHERRY_PEERS": "peers", "WHERRY_RUN": str(FAKE)}

    def bench(*more):
        words = ("bench", "sizes", "--size", "64", "--processes", "1", "--save", "run.json", *more)
        return workbench(*words, cwd=tmp_path, env=env)

    told = bench()
    # Beside it those of build/peers, where somebody has built them.
    said = " ".join(told.stdout.split())
    assert re.search(r"Not in sizes: [^;]*\bone\b[^;]*; --found-peers takes them in", said)
    # One that only sums could not stand in that table, but in one of sums.
    put(tmp_path / "peers", "two", has=["crc32c"])
    assert not re.search(r"Not in sizes: [^;]*\btwo\b", " ".join(bench().stdout.split()))
    summed = ("bench", "cells", "--op", "crc32c", "--size", "64", "--processes", "1")
    told = workbench(*summed, "--save", "sums.json", cwd=tmp_path, env=env)
    assert re.search(r"Not in cells: [^;]*\btwo\b", " ".join(told.stdout.split()))
    (tmp_path / "peers/two.so").unlink()
    taken = bench("--found-peers")
    assert taken.returncode == 0, taken.stderr
    assert "Not in sizes" not in taken.stdout
    run = json.loads((tmp_path / "run.json").read_text())
    assert "one" in {cell["routine"] for cell in run["cells"]}
    options = ("--found-peers", "--no-found-peers")
    both = workbench("bench", "scoreboard", *options, cwd=tmp_path, env=env)
    assert both.returncode == 2 and "contradict" in both.stderr
    env["WHERRY_PEERS"] = ""
    none = bench("--found-peers")
    assert none.returncode == 2 and "make peers builds some" in none.stderr


def test_one_that_is_damaged_is_refused_with_a_way_out(tmp_path):
    """Nobody gave it, so nobody knows what to leave out."""
    (tmp_path / "peers").mkdir()
    put(tmp_path / "peers", "one")
    env = {**os.environ, "WHERRY_PEERS": "peers"}
    own = ("--op", "set", "--region", "any-16", "--processes", "1", "--rounds", "1")
    refused = workbench("bench", "scoreboard", "--quick", *own, cwd=tmp_path, env=env)
    assert refused.returncode == 2
    (line,) = (line for line in refused.stderr.splitlines() if "one.so is not an ELF file" in line)
    assert line.endswith("; make peers builds such anew, --no-found-peers goes without")
    env["WHERRY_PEERS"] = ""
    given = ("--peer", "one=peers/one.so")
    refused = workbench("bench", "scoreboard", "--quick", *own, *given, cwd=tmp_path, env=env)
    assert refused.returncode == 2 and "--no-found-peers" not in refused.stderr


def test_what_brings_loops_is_measured_by_small_alone(rooms):
    put(rooms[0], "avx2_rte", tier="avx2", has=[found_peers.LOOPS])
    put(rooms[0], "dpdk", tier="avx2", has=["memcpy"])
    put(rooms[0], "musl", has=["memcpy"])
    found = tuple(found_peers.found())
    assert [p.name for p in found if SMALL.wants(p)] == ["avx2_rte", "dpdk"]
    assert [p.name for p in found if SCOREBOARD.wants(p)] == ["dpdk", "musl"]
    assert Request(found=found).contenders("copy") == ("dpdk", "musl")
    rows = SMALL.rows(Request(found=found, sizes=(60,)))
    packets = [row for row in rows if "inlined_padded" in row.routines]
    assert len(packets) == 2  # a mode each
    for row in packets:
        assert {"avx2_rte", "dpdk"} <= set(row.routines) and "avx512_rte" not in row.routines
    assert not any("avx2_rte" in row.routines for row in rows if row not in packets)


def test_loops_that_are_not_there_are_spoken_of():
    row = {"row": 0, "experiment": "small", "op": "copy", "mode": "throughput", "size": 60}
    cells = [
        {"row": 0, "experiment": "small", "routine": name, "aa": False, "ns": {"median": 2.0}}
        for name in ("libc", "inlined_padded", "inlined_memcpy")
    ]
    for mix in ("", "uniform:1-256"):
        rows = [{**row, "mix": mix}]
        (block,) = SMALL.blocks({"rows": rows, "cells": cells}, 100)
        assert "libdpdk-dev" in block.notes[-1]
    more = [{**cells[0], "routine": f"avx2_{word}"} for word in ("rte", "padded")]
    (block,) = SMALL.blocks({"rows": rows, "cells": cells + more}, 100)
    assert not any("libdpdk-dev" in note for note in block.notes)
    assert any("Compiled for AVX2" in said for said in block.sentences)
