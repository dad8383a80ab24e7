"""Each wrong routine is caught at the default level, by name, with a command that repeats it."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from verified import verifier, wrong_routines

WRONG = {
    "lastbyte_memcpy": "byte 776",
    "offsetpair_memcpy": "expected",
    "band2049_memcpy": "expected",
    "power_memcpy": "expected",
    "power_less_memcpy": "expected",
    "aliased_memcpy": "byte 40",
    "page_beside_memcpy": "source offset 1, destination offset 0",
    "low_half_memcpy": "byte 17",
    "source_above_memcpy": "byte 20",
    "same32_memmove": "destination at 0x",
    "near40_memmove": "byte 0",
    "big_aligned_memcpy": "expected",
    "beyond4m_memcpy": "expected",
    "page_cross_memcpy": "expected",
    "src_page_cross_memcpy": "byte 0",
    "odd_middle_memcpy": "byte 6144",
    "line_beyond_memcpy": "byte 786495",
    "swapped_memcpy": "byte 100",
    "short_memcpy": "expected",
    "stale_memcpy": "expected",
    "first_call_memcpy": "byte 63",
    "thousandth_memcpy": "byte 0",
    "backward_memmove": "distance +96",
    "forward_memmove": "distance -3",
    "same_memmove": "distance +0",
    "always_forward_memmove": "expected",
    "far_overlap_memmove": "wrong direction",
    "swapped_arguments_bcopy": "expected",
    "int_pattern_memset": "expected",
    "value_sign_memset": "expected",
    "last_memset": "byte 999",
    "zero_only_memset": "expected",
    "tail_bzero": "expected",
    "read_after_memcpy": "read 1 B past the end of the source",
    "read_before_memcpy": "read 1 B before the source",
    "read_word_memcpy": "past the end of the source",
    "write_after_memcpy": "past the end of the destination",
    "write_before_memcpy": "1 B before the destination",
    "write_far_memcpy": "byte 1200",
    "rmw_memcpy": "outside the destination",
    "rmw_before_memcpy": "outside the destination",
    "rmw_memset": "outside the destination",
    "source_memcpy": "source",
    "source_same_memcpy": "source",
    "source_huge_memcpy": "changed the source: byte 5 was",
    "empty_write_memcpy": "destination",
    "empty_read_memcpy": "source",
    "empty_return_memcpy": "returned",
    "null_return_memcpy": "returned",
    "begin_mempcpy": "destination + size",
    "end_memcpy": "returned",
    "size32_memcpy": "perhaps the size was cut to 32 bits (0x0)",
    "size33_memcpy": "perhaps the size was cut to 33 bits",
    "size40_memset": "perhaps the size was cut to 40 bits",
    "size31_memcpy": "of the buffers; it had written nothing of the beginning",
    "size32_memset": "perhaps the size was cut to 32 bits (0x0)",
    "bounce_memcpy": "expected",
    "rbx_memcpy": "rbx",
    "r12_memcpy": "r12",
    "rbp_memcpy": "rbp",
    "direction_memcpy": "direction flag",
    "mmx_memcpy": "emms",
    "x87_memcpy": "x87",
    "mxcsr_memcpy": "MXCSR",
    "mxcsr_reset_memcpy": "MXCSR",
    "fcw_memcpy": "x87 control word",
    "fninit_memcpy": "x87 control word",
    "fninit_pages_memcpy": "x87 control word",
    "upper_memcpy": "upper",
    "stack_memcpy": "stack",
    "smash_memcpy": "damaged memory",
    "unfenced_memcpy": "sfence",
    "crash_memcpy": "illegal instruction",
    "abort_memcpy": "abort()",
    "null_memcpy": "crashed",
    "exit_memcpy": "exit status 0",
    "hang_memcpy": "did not return",
    "rep_begin_memcpy": "byte 2104",
    "rep_end_memcpy": "byte 8192",
    "rep_near_memmove": "expected",
    "mask_page_memset": "past the end of the destination",
    "mask_page_memcpy": "1 B before the destination",
    "stream_tail_memcpy": "expected",
    "both_page_memcpy": "expected",
    "clamped_memmove": "expected",
    "narrow_memmove": "expected",
    "read_overlapping_memmove": "read 1 B before the source",
    "rmw_overlapping_memmove": "outside the destination",
    "bounce_overlapping_memmove": "expected",
    "read_large_memcpy": "past the end of the source",
    "read_large_memset": "past the end of the destination",
    "whole_pages_memcpy": "expected",
    "beyond16m_memcpy": "expected",
    "touching_memcpy": "byte 0",
    "touched_memcpy": "expected",
    "two_pages_memmove": "byte 5",
    "near_large_memmove": "expected",
    "low_bit_memcpy": "expected",
    "zeros_memcpy": "expected",
    "elide_memcpy": "expected",
    "elide_memset": "expected",
    "elide_bzero": "expected",
    "zero_value_memset": "byte 776",
    "below_memcpy": "returned",
    "errno_memcpy": "changed errno",
    "upper_band_memcpy": "upper",
    "upper_overlapping_memmove": "upper",
    "upper_same_memmove": "upper",
    "leftover_bzero": "expected",
    "unfenced_small_memcpy": "sfence",
    "unfenced_band_memcpy": "sfence",
    "oddlast_csum_partial": "expected 0x",
    "carry_csum_partial": "expected 0x",
    "negzero_csum_partial": "expected 0x",
    "oddstart_csum_partial": "expected 0x",
    "borrow_csum_partial": "expected 0x",
    "forgets_csum_partial": "expected 0x",
    "reads_csum_partial": "read 1 B past the end of the source",
    "lastcopy_csum_partial_copy": "byte 1447",
    "before_csum_partial_copy": "expected 0x",
    "poly_crc32c": "expected 0x",
    "cross_small_memcpy": "expected",
    "src_cross_small_memcpy": "expected",
    "apart_large_memcpy": "expected",
    "one_page_memcpy": "expected",
    "four_offsets_memcpy": "expected",
    "gap_memmove": "byte 0",
    "end32_memmove": "expected",
    "miss_iszero": "returned 1, expected 0",
    "large_iszero": "returned 0, expected 1",
    "summing_iszero": "returned 1, expected 0",
    "halves_iszero": "returned 1, expected 0",
    "miss_pagezero": "expected 0x00",
    "read_rest_memcpy": "past the end of the source",
    "read_moved_large_memmove": "before the source",
    "rmw_rest_memcpy": "outside the destination",
    "unfenced_octave_memcpy": "sfence",
    "unfenced_aligned_memcpy": "sfence",
    "unfenced_moved_memmove": "sfence",
    "upper_cross_memcpy": "upper",
    "lane_csum_partial": "expected 0x",
    "src_page_end_memcpy": "expected",
    "page_line_memmove": "expected",
    "bounce_large_memcpy": "expected",
    "length_memcpy": "expected",
    "length_large_memcpy": "expected",
    "streams_crc32c": "expected 0x",
    "clean_pagezero": "in a line that was zero already",
    "clean_group_pagezero": "in a line that was zero already",
    "rmw_page_memcpy": "outside the destination",
    "locked_memcpy": "did not return within 1.2 s",
    "twice_csum_partial_copy": "the source changed after each instruction",
    "reread_crc32c_copy": "the source changed after each instruction",
    "deep_memcpy": "KiB of stack",
    "rmw_large_memcpy": "outside the destination",
    "unfenced_moved_large_memmove": "sfence",
    "unfenced_backward_large_memmove": "sfence",
    "beyond48m_memcpy": "expected",
    "ones_memcpy": "expected",
    "high_memcpy": "expected",
    "alignment_memcpy": "left the alignment-check flag set",
    "misaligned_memcpy": "it had set the alignment-check flag",
    "unfenced_written_memcpy": "sfence",
    "unfenced_mask_memcpy": "sfence",
    "unfenced_clzero_bzero": "sfence",
    "unset_bzero": "expected",
    "popped_memcpy": "used the stack pointer for something else",
    "aligned_load_memcpy": "general protection fault",
    "wild_read_memcpy": "general protection fault",
    "refuses_memset": "of the buffers; it had written nothing of the beginning",
    "apart_beyond_memcpy": "expected",
    "apart_band_memcpy": "expected",
    "upper_beyond_memcpy": "upper",
    "read_beyond_memcpy": "past the end of the source",
    "near_beyond_memmove": "expected",
    "rmw_beyond_memcpy": "outside the destination",
    "last_beyond_iszero": "returned 1, expected 0",
}
GOOD = ["memcpy", "memmove", "mempcpy", "memset", "bzero", "bcopy"]
GOOD += ["csum_partial", "csum_partial_copy"]

# Of the default level, where nothing else is said: the families that a mistake in any routine shows in.
USUAL = "sweep,guard,overlap,empty,values,state,delta,sums"
# Where the default level would spend its time on families that this bug does not concern, the one that has to see it.
FAMILIES = {
    **dict.fromkeys(("page_cross", "src_page_cross"), "delta"),
    **dict.fromkeys(
        ("backward", "forward", "same", "always_forward", "clamped", "narrow", "rep_near"),
        "overlap",
    ),
    **dict.fromkeys(("read_after", "read_before", "read_word", "source_same"), "guard"),
    **dict.fromkeys(("mmx", "x87", "mxcsr_reset", "fninit", "fninit_pages", "upper"), "state"),
    **dict.fromkeys(("empty_write", "empty_read"), "guard,empty"),
    "reads": "guard",
    "thousandth": "guard,delta",
    "big_aligned": "sizes",
    "beyond4m": "sizes",
    "power_less": "sizes",
    "page_beside": "sizes",
    "line_beyond": "sizes",
    "far_overlap": "huge",
    "size32": "huge",
    "size31": "huge",
    **dict.fromkeys(("size33", "size40"), "huge"),
    **dict.fromkeys(("low_half", "source_above", "same32", "near40"), "places"),
    "source_huge": "huge",
    "unfenced": "ordering",
    "bounce": "reentry",
    "rmw": "neighbour",
    "rmw_before": "neighbour",
    "aliased": "delta",
    "read_overlapping": "guard",
    "rmw_overlapping": "neighbour",
    "bounce_overlapping": "reentry",
    "read_large": "guard",
    "whole_pages": "sizes",
    "beyond16m": "sizes",
    "two_pages": "overlap",
    "near_large": "overlap",
    "zero_value": "sweep",
    "below": "reentry",
    "errno": "sweep",
    "upper_band": "state",
    "upper_overlapping": "state",
    "upper_same": "state",
    "leftover": "sweep",
    "unfenced_small": "ordering",
    "unfenced_band": "ordering",
    **dict.fromkeys(("cross_small", "src_cross_small", "apart_large"), "delta"),
    "one_page": "contents",
    "four_offsets": "sweep",
    "rmw_page": "neighbour",
    "locked": "reentry",
    "gap": "overlap",
    "end32": "huge",
    **dict.fromkeys(("miss", "large", "summing", "halves"), "zeros"),
    **dict.fromkeys(("read_rest", "read_moved_large"), "guard"),
    "rmw_rest": "neighbour",
    **dict.fromkeys(("unfenced_octave", "unfenced_aligned", "unfenced_moved"), "ordering"),
    "upper_cross": "state",
    "lane": "sums",
    "borrow": "sums",
    "src_page_end": "delta",
    "page_line": "overlap",
    **dict.fromkeys(("bounce_large", "length", "length_large"), "reentry"),
    "streams": "sums",
    **dict.fromkeys(("clean", "clean_group"), "zeros"),
    **dict.fromkeys(("touching", "touched", "low_bit", "zeros", "elide"), "contents"),
    **dict.fromkeys(("lastbyte", "band2049", "stale", "stream_tail", "last"), "guard"),
    **dict.fromkeys(("rep_begin", "rep_end", "mask_page", "both_page"), "guard"),
    **dict.fromkeys(("negzero", "lastcopy"), "sums"),
    "mxcsr": "state",
    "alignment": "sweep",
    "misaligned": "sweep",
    "ones": "contents",
    "high": "contents",
    "beyond48m": "sizes",
    "apart_beyond": "sizes",
    "apart_band": "delta",
    "upper_beyond": "state",
    "read_beyond": "guard",
    "near_beyond": "overlap",
    "rmw_beyond": "neighbour",
    "last_beyond": "zeros",
    "unfenced_moved_large": "ordering",
    "unfenced_backward_large": "ordering",
    "rmw_large": "neighbour",
    "deep": "threads",
    **dict.fromkeys(("unfenced_written", "unfenced_mask", "unfenced_clzero"), "ordering"),
    "popped": "reentry",
    "aligned_load": "sweep",
    "wild_read": "empty",
    "refuses": "huge",
    **dict.fromkeys(("twice", "reread"), "sums"),
    "hang": "sweep",
}


@pytest.fixture
def runner(build_dir):
    return verifier(build_dir)


@pytest.fixture
def library(build_dir):
    return wrong_routines(build_dir)


def events(done, kind):
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [line for line in lines if line["event"] == kind]


@pytest.mark.parametrize("function", WRONG)
def test_wrong_routine_is_caught(runner, library, function):
    if "clzero" in function and not re.search(r"\bclzero\b", Path("/proc/cpuinfo").read_text()):
        pytest.skip("this CPU has no clzero")
    if function == "unset_bzero" and not re.search(
        r"\bavx512bw\b", Path("/proc/cpuinfo").read_text()
    ):
        pytest.skip("this CPU has no AVX-512: tests/test_emulated.py looks at it")
    several = re.fullmatch(r"(.*)_(?:csum_\w+|crc32c_copy)", function)
    prefix = several[1] if several else function.rsplit("_", 1)[0]
    peer = f"bad={library}:{prefix}_"
    family = FAMILIES.get(prefix, USUAL)
    done = runner(f"bad:{function}", "--peer", peer, "--family", family, "--json")
    assert done.returncode == 1, done.stdout + done.stderr
    failures = events(done, "failure")
    expected = [f for f in failures if WRONG[function] in f["message"]]
    assert expected, [f["message"] for f in failures]
    for failure in expected:  # families report in the order in which they end
        message = failure["message"]
        assert function in message and failure["op"] in message
        assert f"{failure['size']} bytes" in message and "destination offset" in message
        if failure["op"] in ("copy", "move"):
            assert "source offset" in message and "distance" in message
    failure = expected[0]
    command = shlex.split(failure["repeat"])
    assert command[:2] == ["wherry-run", "verify"]
    again = runner(*command[2:])
    assert again.returncode == 1, failure["repeat"] + again.stdout + again.stderr


def test_the_page_counts_the_wrong_routines():
    page = (Path(__file__).parents[1] / "docs/verification.md").read_text()
    told = re.findall(r"(\d+) (?:\[)?wrong routines", page)
    assert len(told) == 2 and {int(number) for number in told} == {len(WRONG)}


CHANGES = {"source": 90, "source_first": 92, "source_beyond": 93}  # calls of so many bytes
# With a second thread the destination is compared with what the source holds after the call.
SEEN = [("threads", "source"), *((f, prefix) for f in ("sweep", "delta") for prefix in CHANGES)]


@pytest.mark.parametrize(("family", "prefix"), SEEN)
def test_a_changed_source_is_told_as_that(runner, library, family, prefix):
    """And of the call that changed it, not of one that read what it left."""
    beyond, said = prefix == "source_beyond", f"(copy, {CHANGES[prefix]} bytes"
    what = "past the end of the source, at byte 96:" if beyond else "changed the source: byte 5 was"
    peer = ("--peer", f"bad={library}:{prefix}_")
    for seed in range(1, 6):  # delta draws its sizes
        done = runner("--only-peers", *peer, "--family", family, "--json", "--seed", seed)
        told = [failure["message"] for failure in events(done, "failure")]
        assert all(what in message and said in message for message in told), told
        if told:
            break
    else:
        assert family == "delta", "never seen"


# What a failure says of itself: what was seen, and nothing that was not.
@pytest.mark.parametrize(
    ("function", "family", "said", "unsaid"),
    [
        ("aligned_load_memcpy", "sweep", "B into the function", "address 0x0"),
        ("wild_read_memcpy", "empty", "an address that cannot exist", "past the end"),
        ("refuses_memset", "huge", "2147483648 bytes", "was cut"),
        ("popped_memcpy", "reentry", "made no second call", "4294967295"),
    ],
)
def test_a_failure_tells_what_was_seen(runner, library, function, family, said, unsaid):
    peer = f"bad={library}:{function.rsplit('_', 1)[0]}_"
    done = runner(f"bad:{function}", "--peer", peer, "--family", family, "--json")
    told = [failure["message"] for failure in events(done, "failure")]
    assert told and all(said in message for message in told), told
    assert not any(unsaid in message for message in told), told


@pytest.mark.parametrize("name", GOOD)
def test_right_routine_passes(runner, library, name):
    done = runner(f"good:good_{name}", "--brief", "--peer", f"good={library}:good_")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all right" in done.stdout


# As the start file that GCC links with -ffast-math does, and one that wants another precision of the x87.
LOADED = """\
#include <stddef.h>
static void __attribute__((constructor)) loaded(void)
{
    const unsigned mxcsr = 0x9fc0;
    const unsigned short fcw = 0x27f;
    __asm__ volatile("ldmxcsr %0\\n\\tfldcw %1" ::"m"(mxcsr), "m"(fcw));
}
void *memcpy(void *dst, const void *src, size_t n)
{
    void *to = dst;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(src), "+c"(n)::"memory");
    return dst;
}
"""


def test_what_a_library_set_when_it_was_loaded_is_no_mistake_of_its_routines(runner, tmp_path):
    (tmp_path / "l.c").write_text(LOADED)
    command = ["cc", "-O1", "-fno-builtin", "-shared", "-fPIC", "l.c", "-o", "libloaded.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    families = ("--family", "sweep,state,threads")
    done = runner("--only-peers", "--peer", f"l={tmp_path}/libloaded.so", "--brief", *families)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_peer_is_verified_beside_named_routines(runner, library):
    """Unless a name says which of its functions."""
    family = ("--family", "state", "--brief", "--json")
    done = runner("rep_movsb", "--peer", f"bad={library}:rbx_", *family)
    assert done.returncode == 1
    assert {f["target"] for f in events(done, "family")} == {"rep_movsb", "bad"}
    done = runner("good:good_memset", "--peer", f"good={library}:good_", *family)
    assert done.returncode == 0
    assert {f["function"] for f in events(done, "family")} == {"good_memset"}


def test_events_of_a_right_routine(runner):
    done = runner("rep_movsb", "--brief", "--family", "sweep,empty", "--seed", "7", "--json")
    assert done.returncode == 0
    assert events(done, "start")[0]["seed"] == "0x7"
    assert {f["family"] for f in events(done, "family")} == {"sweep", "empty"}
    assert events(done, "end")[0]["failures"] == 0


@pytest.mark.parametrize(
    ("function", "case"),
    [
        # A buffer that ends at the address, and two that overlap about it: what a failure would print.
        ("wherry_memset", "huge:n=70000,d=70000,at=4"),
        ("wherry_memmove", "huge:n=70000,d=104999,dist=69999,at=12"),
        # Only a move goes by the overlap.
        ("wherry_memset", "huge:n=2000000,dist=1048576,at=2"),
    ],
)
def test_a_case_across_a_large_address_can_be_repeated(runner, function, case):
    done = runner(f"wherry@sse2:{function}", "--case", case)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["rep_movbs"], "did you mean rep_movsb"),
        (["--family", "swep"], "no family 'swep'; wherry-run verify --help lists them"),
        (["--case", "sweep:n=x"], "cannot read 'n=x'"),
        (["--case", "nonsense"], "begins with no family"),
        (["--case", "threads:n=9999999"], "has room for 1 MiB"),
        (["--case", "huge:n=5"], "has room for n of 1 MiB or more"),
        (["--case", "huge:n=2000000,at=2,dist=9"], "has room for a dist of 1 MiB or more"),
        (["--case", "huge:n=300000,at=4"], "less than 256 KiB across a multiple of 2 GiB"),
        (["--case", "nofault:n=9,at=15"], "has room for at of 0 to 6"),
        (["--case", "nofault:n=9,at=5,dist=-9"], "has room for n, s and dist of 0 to"),
        (["--case", "nofault-read:n=9,dist=9"], "with the fault (dist) inside them"),
        (["rep_movsb", "--case", "overlap:n=3"], "does not apply"),
        (
            ["wherry_iszero", "--family", "overlap"],
            "overlap does not apply to wherry:wherry_iszero",
        ),
        (["--isa", "mmx"], "give sse2, avx2, avx512, avx512_ladder or"),
        (["--seed", "-4"], "give an integer"),
        (["--jobs", "0"], "give an integer from 1 to 64"),
        (["--jobs", "65"], "give an integer from 1 to 64"),
        (["--fast"], "unknown option"),
        (["--only-peers"], "without a --peer"),
        (["--peer"], "needs a value"),
        (["--peer", "x=/nonexistent.so"], "cannot open"),
    ],
)
def test_misuse(runner, arguments, expected):
    done = runner(*arguments)
    assert done.returncode == 2
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1 and not done.stdout


@pytest.mark.parametrize("seed", [1, 3, 6])  # which a sample by luck misses
def test_sixteen_sizes_have_every_pair_of_offsets_modulo_16(runner, library, seed):
    peer = f"bad={library}:offset_pair_"
    done = runner("bad:offset_pair_memcpy", "--peer", peer, "--family", "sweep", "--seed", seed)
    assert done.returncode == 1, done.stdout + done.stderr
