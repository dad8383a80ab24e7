"""`wherry verify` as a command: what it takes for a target, and what it calls proved."""

import functools
import json
import os
import re
import resource
import subprocess

import pytest
from test_verify import events, library, runner
from wherry import plans
from wherry.cli import report as report_of_bench
from wherry.cli.printer import Printer
from wherry.cli.verify import report
from wherry.runner import cpu, path
from wherry.units import size_in_words
from wherry.verification import Verification

__all__ = ["library", "runner"]  # fixtures


def test_one_extent_of_verification(wherry):
    done = wherry("verify", "--full", "--quick", "rep_movsb")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--full and --quick exclude each other" in done.stderr


def test_a_case_goes_by_the_multiples_that_a_routine_takes(runner, wherry):
    done = runner("int_unrolled64", "--case", "sweep:n=100,d=3,s=5,seed=1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "int_unrolled64 takes multiples of 64 bytes only; give n=64 or n=128" in done.stderr
    both = wherry("verify", "int_unrolled64", "--case", "sweep:n=100")
    assert both.returncode == 2 and "multiples of 64 bytes" in both.stderr
    for n in (0, 64, 128):
        assert runner("int_unrolled64", "--case", f"sweep:n={n},d=3,s=5").returncode == 0
    done = runner("int_unrolled64", "rep_movsb", "--case", "sweep:n=100", "--json")
    assert done.returncode == 0
    (skip,) = events(done, "skip")
    assert skip["target"] == "int_unrolled64" and "multiples of 64 bytes" in skip["reason"]
    assert events(done, "end")[0]["cases"] == 1


def test_a_tier_of_the_public_functions_is_verified_by_their_name(runner, wherry):
    few = ("--isa", "sse2", "--brief", "--family", "empty", "--json")
    ways = {"wherry@sse2", "wherry@sse2+stream", "wherry@sse2+rep"}
    own = runner("wherry", *few)
    assert own.returncode == 0 and {f["target"] for f in events(own, "family")} == ways
    every = runner("wherry@sse2", *few[2:])
    assert {f["function"] for f in events(own, "family")} == {
        f["function"] for f in events(every, "family")
    }
    for name in ("wherry:wherry_memcpy", "wherry_memcpy"):
        done = runner(name, *few)
        told = {(f["target"], f["function"]) for f in events(done, "family")}
        assert told == {("wherry@sse2", "wherry_memcpy")}
    done = wherry("verify", "wherry", "rep_movsb", *few)
    assert done.returncode == 0, done.stderr
    assert {f["target"] for f in json.loads(done.stdout)["families"]} == ways | {"rep_movsb"}
    done = runner("rep_movsb", "wherry@avx2", *few)
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        "wherry@avx2 is of --isa sse2; leave out one of the two, or give wherry@sse2" in done.stderr
    )


def test_every_function_may_be_named(runner, wherry):
    """That is verified; by both commands."""
    seen = events(runner("wherry", "--family", "empty", "--brief", "--json"), "family")
    functions = sorted({family["function"] for family in seen})
    assert {"wherry_iszero", "wherry_crc32c_copy", "wherry_csum_partial"} <= set(functions)
    done = wherry("verify", *functions, "--family", "empty", "--brief", "--json")
    assert done.returncode == 0, done.stderr
    assert {family["function"] for family in json.loads(done.stdout)["families"]} == set(functions)
    done = wherry("verify", ",".join(functions[:2]), "--family", "empty", "--brief", "--json")
    assert {own["function"] for own in json.loads(done.stdout)["families"]} == set(functions[:2])
    # What can only be measured is no target, and is not proposed as one.
    for name in ("pipe", "nope"):
        done = wherry("verify", name)
        assert done.returncode == 2 and f"no routine '{name}'" in done.stderr, done.stderr
        assert "did you mean pipe" not in done.stderr
    done = wherry("verify", "wherry_izero")
    assert done.returncode == 2 and "no target 'wherry_izero'" in done.stderr


def test_what_was_cut_off_is_not_proved(runner, wherry, library):
    def limit(seconds):
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))

    what = ["x:good_memcpy", "--only-peers", "--peer", f"x={library}:good_"]
    what += ["--full", "--family", "sweep"]
    program = [runner.program, "verify", *what]
    done = subprocess.run(
        program, stdout=subprocess.PIPE, text=True, preexec_fn=functools.partial(limit, 1)
    )
    assert done.returncode == 1 and "not proved: cut off" in done.stdout
    # wherry itself takes a part of it.
    limited = functools.partial(limit, 3)
    done = wherry("verify", *what, preexec_fn=limited)
    assert done.returncode == 1, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert "nothing wrong so far; cut off, so not proved: x." in said and "ulimit -t" in said
    document = json.loads(wherry("verify", *what, "--json", preexec_fn=limited).stdout)
    assert all(own["unfinished"] for own in document["skips"])
    assert document["end"]["unfinished"] == len(document["skips"]) == 1


def test_a_path_that_is_no_text(wherry, library, tmp_path):
    """Else what is wrong would be lost, for the path is told with it; and the command that repeats it works."""
    folder = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(folder)  # noqa: PTH102
    os.symlink(library, folder + b"/x.so")  # noqa: PTH211
    peer = f"x={os.fsdecode(folder)}/x.so:end_"
    done = wherry("verify", "--only-peers", "--brief", "--family", "sweep", "--peer", peer)
    assert done.returncode == 1 and "WRONG: x" in done.stdout, done.stdout + done.stderr
    (repeat, *_) = re.findall(r"repeat: wherry-run (.*)", done.stdout)
    again = subprocess.run(["bash", "-c", f"{path()} {repeat}"], capture_output=True, check=False)
    assert again.returncode == 1 and b"WRONG" in again.stdout


def test_bench_too_calls_nothing_right_that_was_cut_off(capsys):
    cut = [{"target": "x", "family": "sweep", "reason": "too slow", "unfinished": True}] * 2
    report_of_bench.verified(Printer(), Verification(skips=cut, end={"cases": 7, "seconds": 1}))
    said = capsys.readouterr().out
    assert "cut off, so not proved: x; nothing wrong so far." in said and "all right" not in said
    wrong = [{"target": "y", "message": "bad"}]
    report_of_bench.verified(Printer(), Verification(skips=cut, failures=wrong, end={"cases": 7}))
    assert "not proved: x; WRONG and not measured: y" in capsys.readouterr().out
    report_of_bench.verified(Printer(), Verification(end={"cases": 7, "seconds": 1}))
    assert "; all right." in capsys.readouterr().out


def test_all_right_says_what_was_tried(runner, wherry, capsys):
    """By what the runner counted: of a call that came back from memory that is not there, what it did."""
    few = (
        "rep_movsb",
        "nofault@sse2:wherry_copy_nofault",
        "--brief",
        "--family",
        "sweep,nofault",
        "--seed",
        "7",
    )
    told = events(runner(*few, "--json"), "family")
    longest = {}
    for own in filter(lambda own: own["cases"], told):
        name = own["target"], own["function"]
        longest[name] = max(longest.get(name, 0), own["longest"])
    assert all(16 << 10 <= most < 1 << 20 for most in longest.values()), longest
    said = " ".join(wherry("verify", *few).stdout.split())
    assert "cases (level brief: 4 families of checks" in said and "all right." in said
    assert f"; sizes to {size_in_words(min(longest.values()))}" in said
    plain = runner(*few).stdout
    assert f"cases of up to {max(longest.values())} bytes in" in plain
    empty = wherry("verify", "rep_movsb", "--brief", "--family", "empty").stdout
    assert "(level brief: family empty; sizes to 0 B)" in " ".join(empty.split())
    one = wherry("verify", "rep_movsb", "--case", "sweep:n=100,d=3,s=5").stdout
    assert one.startswith("Verified 1 target, 1 case in") and "level" not in one
    families = [
        {"target": "x", "function": name, "family": family, "cases": 1, "longest": longest}
        for name, longest in (("a", 8 << 20), ("b", 32 << 20))
        for family in ("sweep", "guard", "sizes", "delta")
    ]
    result = Verification({"level": "quick"}, families, end={"cases": 8, "seconds": 1})
    report(Printer(), result)
    report_of_bench.verified(Printer(), result)
    said = " ".join(capsys.readouterr().out.split())
    tried = (
        "level quick: 4 families of checks; sizes to 8 MiB at least, of some functions to 32 MiB"
    )
    assert said.count(f"8 cases ({tried}) in 1.0 s") == 2


def test_each_wrong_function_is_told(capsys):
    """However many failures the one before it had."""
    failures = [
        {"target": "x", "function": name, "message": f"{name} is wrong in way {i}"}
        for name, many in (("x_memcpy", 5), ("x_memset", 1))
        for i in range(many)
    ]
    report(Printer(), Verification(failures=failures))
    said = capsys.readouterr().out
    for line in ("x_memcpy is wrong in way 1", "x_memset is wrong in way 0", "and 3 more of"):
        assert line in said
    assert "in way 2" not in said


@pytest.mark.parametrize(
    "option", [["--full"], ["--brief"], ["--family", "guard"], ["--seed", "5"], ["--jobs", "2"]]
)
def test_a_case_passes_over_no_other_option(wherry, option: list[str]):
    done = wherry("verify", "rep_movsb", "--case", "sweep:n=100,d=3,s=5", *option)
    assert done.returncode == 2 and not done.stdout
    assert f"whose family and seed it says itself; leave out {option[0]}" in done.stderr


def test_a_case_that_proves_nothing(runner):
    done = runner("rep_movsb", "--case", "ordering:n=0,seed=1")
    assert done.returncode == 2
    assert (
        "family ordering has nothing to look at" in done.stderr and "all right" not in done.stdout
    )


def test_nothing_verified_is_no_proof(wherry):
    done = wherry("verify", "rep_movsb", "--family", "nofault")
    assert done.returncode == 2
    assert "nothing was verified" in done.stderr and done.stderr.count("\n") == 1
    if not plans.lacks(plans.default().changed(choice="avx512"), cpu()):
        pytest.skip("this CPU has AVX-512")
    done = wherry("verify", "--isa", "avx512", "--brief")
    assert done.returncode == 2 and "which --isa avx512 needs" in done.stderr
