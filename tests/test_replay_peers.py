"""`wherry replay` beside peers: what is given, and what lies about."""

from __future__ import annotations

import json
import subprocess

import pytest
from made_replays import MIX

QUICK = ("--quick", "--no-found-peers", "--rounds", "3")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hand.mix.json").write_text(json.dumps(MIX))


BYTEWISE = """
void *memcpy(void *dst, const void *src, unsigned long n)
{
    char *to = dst;
    for (const char *from = src; n--;)
        *to++ = *from++;
    return dst;
}
void *memset(void *dst, int c, unsigned long n)
{
    for (char *to = dst; n--;)
        *to++ = c;
    return dst;
}
"""
ABORTS = "__attribute__((constructor)) static void early(void) { __builtin_trap(); }"


def test_a_peer_that_lies_about_and_crashes_is_left_out(wherry, tmp_path):
    peers = tmp_path / "peers"
    peers.mkdir()
    flags = ["-O1", "-fno-builtin", "-fno-tree-loop-distribute-patterns", "-shared", "-fPIC"]
    for name, source in (("bytewise", BYTEWISE), ("crashing", BYTEWISE + ABORTS)):
        (tmp_path / f"{name}.c").write_text(source)
        words = ["cc", *flags, f"{name}.c", "-o", peers / f"{name}.so"]
        subprocess.run(words, cwd=tmp_path, check=True)
    env = {"WHERRY_PEERS": str(peers)}
    done = wherry("replay", "hand.mix.json", "--quick", "--rounds", "3", env=env)
    assert done.returncode == 1 and done.stderr.startswith("wherry: crashing: crash: ")
    assert done.stderr.count("\n") == 1, done.stderr
    assert "bytewise" in done.stdout and "Nothing was measured" not in done.stdout
    (peers / "crashing.so").write_bytes((peers / "bytewise.so").read_bytes()[:2000])
    done = wherry("replay", "hand.mix.json", "--quick", env=env)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is cut short" in done.stderr and "--no-found-peers goes without" in done.stderr


def test_a_name_is_one_column(wherry, tmp_path):
    done = wherry("replay", "hand.mix.json", *QUICK, "--peer", "wherry=x.so")
    assert (done.returncode, done.stdout) == (2, "") and "is taken" in done.stderr
