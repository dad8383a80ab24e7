"""Checksums against answers that others have published or computed: RFC 1071's example, headers from the wild, carries
that wrap, CRC-32C's check value and those of iSCSI (RFC 3720, B.4); combining at odd places; each tier."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import ROOT, run
from wherry.experiments import Request
from wherry.experiments.checksum import EXPERIMENT

FLAGS = ("-O1", "-Wall", "-Wextra", "-Werror")


@pytest.fixture(scope="module")
def program(build_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("checksum") / "checksum"
    source = ROOT / "tests/c/checksum.c"
    library = build_dir / "src/libwherry.a"
    includes = ("-I", ROOT / "include", "-I", ROOT / "src")
    run("cc", *FLAGS, *includes, source, library, "-o", out)
    return out


def test_known_answers(program: Path):
    done = run(program, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tiers" in done.stdout


def test_a_wrong_answer_is_seen(program: Path):
    done = run(program, "--wrong", check=False)
    assert done.returncode == 1
    assert "expected" in done.stdout


@pytest.mark.parametrize(
    ("isa", "name"),
    [(None, "nofault"), ("sse2", "nofault@sse2"), ("avx512_together", "nofault@avx512")],
)
def test_the_sum_that_survives_faults_is_measured(isa: str | None, name: str):
    rows = EXPERIMENT.rows(Request(quick=True, isa=isa))
    assert {name in row.routines for row in rows if row.op == "copy_csum"} == {True}
    assert not [row for row in rows if row.op == "copy_crc32c" and name in row.routines]


@pytest.mark.parametrize("tier", ["sse2", "avx2", "avx512"])
def test_the_tier_is_right(wherry_run: Path, tier: str):
    names = ("csum_partial", "csum_partial_copy", "crc32c", "crc32c_copy")
    functions = [f"wherry@{tier}:wherry_{name}" for name in names]
    done = run(
        wherry_run,
        "verify",
        *functions,
        "--brief",
        "--family",
        "sums,guard",
        check=False,
        timeout=120,
    )
    assert done.returncode == 0 or "no target" in done.stderr, done.stdout + done.stderr
