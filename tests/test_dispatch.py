"""The public functions work before anything has been set up, and report the tier in force."""

import shutil
import subprocess

import pytest
from conftest import ROOT, meson_build


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_calls_before_constructors_and_relocation(build_dir):
    """An IFUNC resolver and an early constructor call in before the constructor of the library."""
    assert "resolver 1 constructor 1 main 1" in run([build_dir / "tests" / "c" / "early-static"])


@pytest.mark.skipif(not shutil.which("qemu-x86_64"), reason="needs the Debian package qemu-user")
@pytest.mark.parametrize(("model", "tier"), [("Nehalem", "sse2"), ("Haswell", "avx2")])
def test_the_tier_follows_the_cpu(build_dir, model, tier):
    program = build_dir / "tests" / "c" / "early-static"
    assert f"isa {tier}" in run(["qemu-x86_64", "-cpu", model, program])


@pytest.mark.skipif(not shutil.which("valgrind"), reason="needs the Debian package valgrind")
def test_valgrind_hides_avx512_and_finds_nothing(build_dir):
    program = build_dir / "tests" / "c" / "early-static"
    run(["valgrind", "--quiet", "--error-exitcode=9", program])


@pytest.mark.parametrize("first", ["avx2", "avx512"])
def test_either_tier_may_stand_first(first):
    """The order in memory is the build's; what each tier does is the same in both, from a first call on."""
    build = ROOT / "build" / f"first-{first}"
    own = f"-Dfirst_tier={first}"
    meson_build(ROOT, build, own, targets=("runner/wherry-run", "tests/c/early-static"))
    runner = build / "runner" / "wherry-run"
    assert "resolver 1 constructor 1 main 1" in run([build / "tests" / "c" / "early-static"])
    (text,) = (build / "src").glob("libwherry.*/dispatch_public.S.o")
    assert (" copy_avx512" in run(["nm", text])) == (first == "avx2")
    proved = set()
    for tier in ("sse2", "avx2", "avx512", "avx512_ladder", "avx512_together"):
        said = run([runner, "verify", f"wherry@{tier}", "--brief"])
        assert "all right" in said, said
        if "all right: 0 cases" not in said:
            proved.add(tier)
    assert "sse2" in proved
