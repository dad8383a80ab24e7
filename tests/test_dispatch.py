"""The public functions work before anything has been set up, and report the tier in force."""

import json
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from arrangements import built
from conftest import ROOT


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def has_avx2() -> bool:
    return " avx2 " in Path("/proc/cpuinfo").read_text()


def test_calls_before_constructors_and_relocation(build_dir):
    """An IFUNC resolver and an early constructor call in before the constructor of the library."""
    assert "resolver 1 constructor 1 main 1" in run([build_dir / "tests" / "c" / "early-static"])


@pytest.mark.skipif(not shutil.which("qemu-x86_64"), reason="needs the Debian package qemu-user")
@pytest.mark.parametrize(
    ("model", "tier"), [("Nehalem", "sse2"), ("Haswell", "avx2"), ("EPYC", "avx2")]
)
def test_the_tier_follows_the_cpu(build_dir, model, tier):
    program = build_dir / "tests" / "c" / "early-static"
    assert f"isa {tier}" in run(["qemu-x86_64", "-cpu", model, program])


@pytest.mark.skipif(not shutil.which("valgrind"), reason="needs the Debian package valgrind")
def test_valgrind_hides_avx512_and_finds_nothing(build_dir):
    program = build_dir / "tests" / "c" / "early-static"
    run(["valgrind", "--quiet", "--error-exitcode=9", program])


FORBIDS = ("tsc", "strict")
AVX512 = {"avx512f", "avx512bw", "avx512vl", "avx512dq"}


def has_avx512() -> bool:
    return set(Path("/proc/cpuinfo").read_text().split()) >= AVX512


def without_the_counter(build_dir, how, plan) -> int:
    program = build_dir / "tests/c/no-clock"
    ended = subprocess.run([program, how, plan], timeout=120).returncode
    if ended == 4:
        pytest.skip("no process may forbid itself anything here")
    return ended


@pytest.mark.parametrize("choice", ["sse2", "avx2", "avx512_ladder", "avx512_together"])
@pytest.mark.parametrize("how", FORBIDS)
def test_where_the_counter_is_forbidden_a_plan_helps(build_dir, wherry, tmp_path, how, choice):
    """All choices but avx512 do without it, as man 3 wherry says."""
    assert wherry("plan", "default", "-o", tmp_path / "own.toml").returncode == 0
    text = (tmp_path / "own.toml").read_text()
    (tmp_path / "own.toml").write_text(re.sub('choice = "[^"]*"', f'choice = "{choice}"', text))
    compiled = wherry("plan", "compile", tmp_path / "own.toml", "-o", tmp_path / "own.plan")
    assert compiled.returncode == 0, compiled.stderr
    ended = without_the_counter(build_dir, how, tmp_path / "own.plan")
    flags = Path("/proc/cpuinfo").read_text().split()
    if not {"sse2": {"sse2"}, "avx2": {"avx2"}}.get(choice, AVX512) <= set(flags):
        assert ended == 3
        pytest.skip(f"this CPU has no {choice}")
    assert ended == 0


@pytest.mark.parametrize("how", FORBIDS)
def test_where_the_counter_is_forbidden_other_calls_go_on(build_dir, how):
    assert without_the_counter(build_dir, how, "none") == 0


@pytest.mark.parametrize("how", FORBIDS)
def test_where_the_counter_is_forbidden_the_default_ends(build_dir, how):
    """With AVX-512."""
    ended = without_the_counter(build_dir, how, "default")
    avx512 = has_avx512()
    by = {"tsc": signal.SIGSEGV, "strict": signal.SIGKILL}[how]
    assert ended == (-by if avx512 else 0)


@pytest.mark.parametrize(
    "page", ["include/wherry.h", "man/wherry.3", "man/libwherry-dropin.7", "docs/dropin.md"]
)
def test_that_the_counter_is_read_is_said_where_the_calls_are_described(page):
    said = " ".join((ROOT / page).read_text().split())
    assert "PR_SET_TSC" in said and "strict mode" in said


def test_a_tier_that_is_asked_for_twice_is_noticed(build_dir):
    """What the test of changing plans looks for, planted."""
    command = [build_dir / "tests" / "c" / "midcall-test", "planted"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0 and (done.stdout.startswith("skipped") or not has_avx2()):
        pytest.skip("needs AVX2, and one instruction at a time")
    assert done.returncode == 1, done.stdout
    assert "sse2 becomes avx2 before" in done.stdout
    assert "an instruction that neither tier has" in done.stdout


TIERS = ("sse2", "avx2", "avx512", "avx512_ladder", "avx512_together")
# What stands in public.S; and what is C that calls a routine of the registry by the tier, in objects of its own: the
# same ones in every arrangement.
ARRANGED = {"memcpy", "memmove", "mempcpy", "bcopy", "memset", "bzero"}
BY_TIER = {
    *("csum_partial", "csum_partial_copy", "crc32c", "crc32c_copy"),
    *("memcpy_stream", "memset_stream", "iszero", "pagezero"),
}


def alike(build: Path, other: Path) -> bool:
    """Have two builds the same objects of what BY_TIER has and calls?"""
    own, others = (
        {
            path.name: path.read_bytes()
            for pattern in ("libroutines-*/*.o", "libwherry.so*/dispatch_*.o")
            for path in (each / "src").glob(pattern)
            if path.name not in ("dispatch_public.S.o", "dispatch_dispatch.c.o")
        }
        for each in (build, other)
    )
    assert {"dispatch_csum.c.o", "dispatch_pages.c.o", "dispatch_stream.c.o"} < own.keys()
    assert len(own) > 50
    return own == others


def verified(runner: Path, functions: set[str], *options: str) -> None:
    """In each tier that this CPU has, and in no other."""
    widest = re.search(r"^tier +(\w+)$", run([runner, "cpu"]), re.M)[1]
    here = True
    for tier in TIERS:
        names = [f"wherry@{tier}:wherry_{name}" for name in sorted(functions)]
        said = run([runner, "verify", *names, "--brief", *options])
        assert ("all right" if here else "nothing verified") in said, (tier, said)
        here = widest == "avx512" or (here and tier != widest)


def bytes_at_null_fault(build, *library):
    """None of them takes bytes at or near null for an empty buffer, and returns."""
    run([build / "tests/c/low-test", *library])


def test_bytes_at_null_are_a_fault_of_the_drop_in_too(build_dir):
    bytes_at_null_fault(build_dir, build_dir / "preload/libwherry-dropin.so")


def masks_keep_to_their_page(build, *library):
    """An access that reaches into the page behind only by what is masked out takes long, and nothing else tells."""
    run([build / "tests/c/edge-test", *library])


def test_masks_of_the_drop_in_keep_to_their_page_too(build_dir):
    if not has_avx512():
        pytest.skip("this CPU has no AVX-512")
    masks_keep_to_their_page(build_dir, build_dir / "preload/libwherry-dropin.so")


def test_what_is_verified_is_all_there_is(wherry_run):
    said = run([wherry_run, "verify", "wherry@sse2", "--brief", "--family", "sweep", "--json"])
    events = [json.loads(line) for line in said.splitlines()]
    found = {event["function"] for event in events if event["event"] == "family"}
    assert found == {f"wherry_{name}" for name in ARRANGED | BY_TIER}


def test_what_goes_by_the_tier_alone(wherry_run):
    verified(wherry_run, BY_TIER)


@pytest.mark.parametrize(
    ("first", "edge"), [("avx2", "branch"), ("avx512", "branch"), ("avx512", "select")]
)
def test_either_tier_may_stand_first(build_dir, first, edge):
    """The order in memory is the build's, and how small blocks keep to their page; what each tier does is the same in
    all, from a first call on, and in calls during which the plan changes."""
    build = built(build_dir, first, edge)
    runner = build / "runner" / "wherry-run"
    early = build / "tests" / "c" / "early-static"
    assert "resolver 1 constructor 1 main 1" in run([early])
    (text,) = (build / "src").glob("libwherry.*/dispatch_public.S.o")
    symbols = run(["nm", text])
    assert (" copy_avx512" in symbols) == (first == "avx2")
    assert (" move_together_loop" in symbols) == (edge == "select")
    if shutil.which("qemu-x86_64"):  # no byte from nowhere to nowhere, without AVX-512
        run(["qemu-x86_64", "-cpu", "Haswell", early])
    said = run([build / "tests" / "c" / "midcall-test"])
    assert " calls, 0 wrong" in said or said.startswith("skipped"), said
    bytes_at_null_fault(build)
    if has_avx512():
        masks_keep_to_their_page(build)
    verified(runner, ARRANGED)
    # Those of the other build have been verified above; here it is that the tier is what they go by.
    verified(runner, BY_TIER, *(("--family", "sweep") if alike(build, build_dir) else ()))
