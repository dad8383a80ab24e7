"""Checksums against answers that others have published or computed: RFC 1071's example, headers from the wild, carries
that wrap, CRC-32C's check value and those of iSCSI (RFC 3720, B.4); combining at odd places; each tier."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import report_runs
from conftest import ROOT, need_root, run
from wherry.experiments import Request
from wherry.experiments.checksum import EXPERIMENT, SEGMENT
from wherry.report import words

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


def test_at_the_lowest_addresses(build_dir: Path, tmp_path: Path):
    """What lies four blocks before the end is below 0 there; taken without its sign it is above everything."""
    need_root()
    includes = ("-I", ROOT / "include", "-I", ROOT / "src")
    options = (*FLAGS, "-fno-builtin", "-fno-delete-null-pointer-checks")
    library = build_dir / "src/libwherry.a"
    source = ROOT / "tests/c/page_zero.c"
    run("cc", *options, *includes, source, library, "-o", "p", cwd=tmp_path)
    done = run(tmp_path / "p", check=False, timeout=60)
    if done.returncode == 77:
        pytest.skip("the first page cannot be mapped here")
    assert done.returncode == 0, done.stdout + done.stderr


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


CHECKSUM = ("bench", "checksum", "--quick", "--size", "64", "--processes", "1", "--rounds", "2")


def said_of(wherry, directory: Path, *more: str) -> str:
    """Without what `make peers` built in this checkout, which is found too."""
    done = wherry(*CHECKSUM, *more, "--save", directory / "run.json", env={"WHERRY_PEERS": ""})
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.split())


def test_where_rivals_come_from_is_said_when_there_are_none(wherry, tmp_path: Path):
    assert "make peers builds some (DPDK, lwIP, ISA-L)" in said_of(wherry, tmp_path)
    assert "make peers" not in said_of(wherry, tmp_path, "--no-found-peers")
    source = tmp_path / "rival.c"
    source.write_text(
        "unsigned csum_partial(const unsigned char *p, unsigned long n, unsigned sum)\n"
        "{ unsigned long all = sum; for (unsigned long i = 0; i < n; i++) all += (unsigned long)p[i] << (i % 2 * 8);\n"
        "  while (all >> 32) all = (all >> 32) + (all & 0xffffffff); return (unsigned)all; }\n"
    )
    run("cc", "-O1", "-shared", "-fPIC", source, "-o", tmp_path / "rival.so")
    said = said_of(wherry, tmp_path, "--peer", f"rival={tmp_path}/rival.so")
    assert "make peers" not in said and "rival" in said


def test_a_copy_alone_does_not_win_what_a_sum_is_part_of():
    """A report's summary tells what one pass is worth, not that a copy without a sum takes less time."""
    run = report_runs.empty()
    names = ("wherry", "copy:wherry", "wherry+wherry", "csum:wherry", "read_bandwidth")
    rows = [{"op": "copy_csum", "size": size} for size in (64, 1448)]
    report_runs.add(run, "checksum", rows, names)
    for row in run["rows"]:
        row["fastest"] = "copy:wherry"
    said = words.summary(run, "checksum")
    assert said and "fastest" not in " ".join(said)
    assert said[0].startswith("Internet checksum (RFC 1071), source in L1: ")
    assert "as long as one pass" in said[0] or "One pass gains nothing" in said[0]


def test_what_one_pass_is_worth_is_a_sentence():
    def worth(*gains: float) -> str:
        rows = [{"row": i, "size": 64 << i} for i in range(len(gains))]
        cells = {
            i: {"own": {"ns": {"median": 1.0}}, "own+own": {"ns": {"median": gain}}}
            for i, gain in enumerate(gains)
        }
        return EXPERIMENT._worth("copy_csum", "own", rows, cells, 0.02)

    assert worth(11.4) == "A copy and then a sum took 11.40 times as long as one pass (at 64)."
    assert worth(1.25, 2) == (
        "A copy and then a sum took 1.25 (at 64) to 2.00 times (at 128) as long as one pass."
    )
    assert worth(0.97, 0.99) == "One pass gains nothing over a copy and then a sum."
    assert worth(0.97, 1.01) == (
        "A copy and then a sum took at most 1.01 times as long as one pass, no more than noise may account for."
    )


def test_what_the_sum_adds_to_a_segment_is_told_beyond_the_noise():
    def said(copy: float, floor: float) -> list[str]:
        row = {"row": 0, "size": SEGMENT}
        cells = {0: {"wherry": {"ns": {"median": 10.0}}, "copy:wherry": {"ns": {"median": copy}}}}
        blocks = EXPERIMENT._segment({}, {("copy_csum", "L1", "L1"): [row]}, cells, floor, 80)
        return blocks[0].sentences

    assert said(8, 0.02)[0].startswith("The sum makes a copy of a segment 25 % longer: ")
    noise = ["What the sum adds to a copy of a segment is no more than noise may account for."]
    assert said(8, 0.3) == said(10.5, 0.02) == said(9.9, 0.02) == noise


def test_every_tier_has_a_name_in_the_header():
    header = (ROOT / "include/wherry.h").read_text()
    comment = header[: header.index("const char *wherry_isa(void);")].rpartition("/*")[2]
    names = re.findall(r'"(\w+)"', (ROOT / "src/plan/plan.c").read_text())
    tiers = {n for n in names if n.startswith(("sse2", "avx"))}
    assert len(tiers) >= 5 and set(re.findall(r'"(\w+)"', comment)) == tiers


def test_every_peer_that_is_made_is_in_the_docs():
    text = (ROOT / "docs/peers.md").read_text()
    names = re.findall(r"^\| (`.+?) \|", text, re.MULTILINE)
    documented = set(re.findall(r"`(\w+)`", " ".join(names)))
    sys.path.insert(0, str(ROOT / "peers"))
    try:
        from recipes import RECIPES
    finally:
        sys.path.remove(str(ROOT / "peers"))
    assert documented == {recipe.name for recipe in RECIPES}


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
        timeout=300,
    )
    tiers = ("sse2", "avx2", "avx512")
    widest = re.search(r"^tier +(\w+)$", run(wherry_run, "cpu").stdout, re.MULTILINE)[1]
    if tiers.index(tier) <= tiers.index(widest):
        assert done.returncode == 0, done.stdout + done.stderr
    else:  # named, and told as not verified
        said = re.findall(r"^skip +wherry@.* needs ", done.stdout, re.MULTILINE)
        assert len(said) == len(functions), done.stdout
        assert "nothing verified: 0 cases" in done.stdout, done.stdout
