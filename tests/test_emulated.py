"""The AVX-512 tier on a CPU without AVX-512, in an emulated computer: nothing else would run an instruction of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from arrangements import built_otherwise
from emulated import KERNEL, Done, compute, need_emulator

# Thin: a fifth of the offsets of --brief, and a quarter of its large sizes and of its distances of what overlaps. Sizes
# beside each other take the same way, so that each offset and each distance comes to each way none the less.
# WHERRY_EMULATED=long has all of them.
LEVEL = "--brief" if os.environ.get("WHERRY_EMULATED") == "long" else "--thin"
VERIFY = f"wherry-run verify {LEVEL} --jobs 1"
# Without the families that take the longest there and add the least; nor watch-test, whose calls are too many.
MOST = (
    "sweep,guard,overlap,empty,values,state,delta,huge,places,neighbour,reentry,ordering,sums,zeros"
)
# "avx512" takes its ways by turns; of each alone what depends on it.
SMALL = "sweep,guard,overlap,values,state"
FAULTS = "nofault-read,nofault-write"
# The CRC is not among them: there it would be the one without AVX-512, which all other tests run.
OTHERS = (
    "csum_partial",
    "csum_partial_copy",
    "iszero",
    "pagezero",
)
# What goes on in the text of memcpy and memset, but has a beginning and a result of its own for each way.
BEGINNINGS = ("mempcpy", "bcopy", "bzero")
WAYS = ("avx512", "avx512_ladder", "avx512_together")
# Of the build in which the text of the smallest calls lies otherwise, and half of what is AVX-512's is another.
OTHERWISE = f"wherry-run-otherwise verify {LEVEL} --jobs 1"
# Non-temporal stores from the smallest sizes on, and that they are fenced.
STREAMS = (
    "wherry@avx512+stream:wherry_memmove wherry@avx512+stream:wherry_memset "
    "wherry@avx512:wherry_memcpy_stream wherry@avx512:wherry_memset_stream"
)
COMMANDS = {
    "memcpy": f"{VERIFY} wherry@avx512:wherry_memcpy --family {MOST}",
    "memcpy, apart": f"{VERIFY} wherry@avx512_ladder:wherry_memcpy --family {MOST}",
    "memcpy, together": f"{VERIFY} wherry@avx512_together:wherry_memcpy --family {SMALL}",
    "memcpy, otherwise": f"{OTHERWISE} wherry@avx512:wherry_memcpy --family {SMALL},delta",
    "memset": f"{VERIFY} wherry@avx512:wherry_memset --family {MOST}",
    "memset, apart": f"{VERIFY} wherry@avx512_ladder:wherry_memset --family {MOST}",
    "memset, together": f"{VERIFY} wherry@avx512_together:wherry_memset --family {SMALL}",
    "memset, otherwise": f"{OTHERWISE} wherry@avx512:wherry_memset --family {SMALL},delta",
    "past the caches": f"{VERIFY} {STREAMS} --family sweep,ordering",
    "the others": f"{VERIFY} {' '.join(f'wherry@avx512:wherry_{name}' for name in OTHERS)} --family sweep",
    **{
        f"{name}, {which}": f"{verify} {' '.join(f'wherry@{way}:wherry_{name}' for way in WAYS)} --family places"
        for name in BEGINNINGS
        for which, verify in (("all ways", VERIFY), ("otherwise", OTHERWISE))
    },
    # Large ones that overlap have a result of their own, too.
    "mempcpy, large": f"{VERIFY} wherry@avx512:wherry_mempcpy --family state",
    **{
        f"{function}_nofault": f"{VERIFY} nofault@avx512:wherry_{function}_nofault --family {FAULTS}"
        for function in ("copy", "set", "csum_copy")
    },
    **{
        f"{function}_nofault, otherwise": f"{OTHERWISE} nofault@avx512:wherry_{function}_nofault --family {FAULTS}"
        for function in ("copy", "set")
    },
    "copy_nofault, apart": f"{VERIFY} nofault@avx512_ladder:wherry_copy_nofault --family sweep,overlap,{FAULTS}",
    "copy_nofault, together": f"{VERIFY} nofault@avx512_together:wherry_copy_nofault --family sweep,overlap",
    "directions": "direction-test",
    # The tiers that other CPUs have as well are looked at without an emulator. Held together, large calls go as apart.
    "recency": "recent-test avx512 avx512_ladder",
    "a fault's signals": "nofault-own one_signal",
    # That the verifier sees a register of AVX-512's that was never set: no other CPU can tell.
    "a wrong routine": f"{VERIFY} bad:unset_bzero --peer bad=/bin/libwrong.so:unset_ --family sweep 2>&1"
    " | busybox grep 'byte 0 .*, expected 0x00'",
}
SECONDS = 840  # below the limit of a test


@pytest.fixture(scope="module")
def computed(build_dir: Path, wherry_run: Path, tmp_path_factory) -> dict[str, Done]:
    if "avx512bw" in Path("/proc/cpuinfo").read_text().split():
        pytest.skip("this CPU has AVX-512: all other tests run it")
    need_emulator()
    tests = build_dir / "tests"
    names = ("c/direction-test", "c/recent-test", "c/nofault/nofault-own", "fixtures/libwrong.so")
    programs = {
        "wherry-run": wherry_run,
        "wherry-run-otherwise": built_otherwise(build_dir) / "runner" / "wherry-run",
        **{Path(name).name: tests / name for name in names},
    }
    done = compute(tmp_path_factory.mktemp("computer"), programs, COMMANDS, SECONDS)
    if "has AVX-512" not in done:
        pytest.skip(f"this Bochs does not get as far as AVX-512 with the kernel {KERNEL}")
    if not any(name in done for name in COMMANDS):
        pytest.fail(
            f"it has AVX-512, and no command came to an end within {SECONDS} s", pytrace=False
        )
    return done


@pytest.mark.parametrize("name", COMMANDS)
def test_the_avx512_tier_in_an_emulated_computer(computed: dict[str, Done], name: str):
    if name not in computed and "end" not in computed:
        pytest.skip(f"not reached within {SECONDS} s: a slow machine")
    assert computed[name].status == 0, computed[name].output[-2000:]
    assert "lacks" not in computed[name].output, f"skipped: {computed[name].output[-500:]}"
