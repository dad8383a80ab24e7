"""Verification of stores past the caches: that a fence orders them, behind whatever loop, and at which sizes."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import run
from elftools.elf.elffile import ELFFile
from verified import verifier, wrong_routines


@pytest.fixture
def runner(build_dir):
    return verifier(build_dir)


@pytest.fixture
def library(build_dir):
    return wrong_routines(build_dir)


# Stepped from its first instruction on, and from the last pages on: neither goes another way in larger sizes.
@pytest.mark.parametrize("case", ["n=8000", "n=70000,d=3,s=9"])
@pytest.mark.parametrize("name", ["fenced_rep", "fenced_slowly"])
def test_a_late_fence_is_one(runner, library, name, case):
    """Behind a tail by string instruction, and after a loop of many instructions a page."""
    peer = ("--only-peers", "--peer", f"late={library}:{name}_")
    done = runner(*peer, "--case", f"ordering:{case}")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("function", "asked"),
    [
        ("flags_memcpy", ("--family", "reentry")),
        ("flags_memmove", ("--family", "reentry")),
        ("flags_stream_memcpy", ("--case", "ordering:n=8000")),
        ("flags_stream_memcpy", ("--case", "ordering:n=70000,d=3,s=9")),
    ],
)
def test_flags_that_are_kept_and_taken_back_are_no_mistake(runner, library, function, asked):
    """The trap flag is not among them, nor is it lost by what was kept before it was set."""
    peer = f"right={library}:{function.rsplit('_', 1)[0]}_"
    done = runner("--only-peers", "--peer", peer, *asked)
    assert done.returncode == 0, done.stdout + done.stderr


def test_stores_are_told_from_fences(build_dir):
    done = subprocess.run(
        [str(build_dir / "tests/c/stores-test")], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout


def test_full_looks_for_fences_beyond_the_caches(runner, library):
    peer = f"bad={library}:unfenced_beyond65m_"
    named = ("bad:unfenced_beyond65m_memcpy", "--peer", peer, "--family", "ordering")
    assert runner(*named).returncode == 0
    done = runner(*named, "--full")
    assert done.returncode == 1 and "sfence" in done.stdout, done.stdout + done.stderr


FENCE, NO_OPERATION = bytes.fromhex("0faef8"), bytes.fromhex("0f1f00")


@pytest.mark.parametrize("tier", ["avx2", "avx512", "vnni"])
def test_copies_that_sum_are_verified_past_the_caches_at_small_sizes(
    runner, tmp_path: Path, tier: str
):
    """By turns, so it takes a few seeds. Their loop past the caches is known by the fence behind it, which is gone."""
    name = f"copy_csum_{tier}"
    listed = map(json.loads, run(runner.program, "list", "--json").stdout.splitlines())
    (own,) = (event for event in listed if event.get("name") == name)
    if own["unavailable"]:
        pytest.skip(f"{name}: {own['unavailable']}")
    unfenced = tmp_path / "wherry-run"
    shutil.copy(runner.program, unfenced)
    with unfenced.open("r+b") as file:
        program = ELFFile(file)
        symbols = program.get_section_by_name(".symtab")
        (symbol,) = symbols.get_symbol_by_name(f"wherry_routine_{name}")
        (begin,) = program.address_offsets(symbol["st_value"], symbol["st_size"])
        file.seek(begin)
        text = file.read(symbol["st_size"])
        assert FENCE in text
        file.seek(begin)
        file.write(text.replace(FENCE, NO_OPERATION))
    said = ""
    for seed in range(1, 9):
        asked = ("verify", name, "--brief", "--family", "ordering", "--seed", seed)
        intact = run(runner.program, *asked, check=False)
        assert intact.returncode == 0, intact.stdout
        said = run(unfenced, *asked, check=False).stdout
        if "sfence" in said:
            break
    assert "sfence" in said, said
