"""The scoreboard on planted times: what it says of them is known beforehand. The runner is the fake one."""

import json
import math
import os
import re

import pytest
from conftest import FAKE, workbench
from wherry import mixes, runfile, stats
from wherry.campaign import Row
from wherry.errors import WherryError
from wherry.experiments import Request
from wherry.experiments.mixes import EXPERIMENT as MIXES
from wherry.experiments.scoreboard import EXPERIMENT
from wherry.found_peers import Peer
from wherry.report import regions as report_regions
from wherry.report import words
from wherry.scoreboard import listed, regions, show

CACHES = {"L1": 48 << 10, "L2": 1 << 20, "L3": 32 << 20}
# libc is 1 everywhere. Of 14 base regions of copy, five are mixes; move has two more, which overlap.
TIMES = {
    "wherry": {"all": 0.8, "mix": 1.2},
    "alpha": {"all": 0.9, "mix": 0.6},
    "beta": {"all": 1.0, "mix": 0.55, "set": None},
    "gamma": {"all": 1.4, "overlap": 0.5},
}


@pytest.fixture
def bench(tmp_path):
    """Runs `wherry` with the fake runner; peers alpha, beta and gamma are files."""
    for name in ("alpha", "beta", "gamma"):
        (tmp_path / f"{name}.so").write_bytes(b"peer")

    def call(*args, times=TIMES, env=None):
        environment = {
            **os.environ,
            "WHERRY_RUN": str(FAKE),
            "WHERRY_PEERS": "",
            "WHERRY_FAKE_TIMES": json.dumps(times),
            **(env or {}),
        }
        return workbench(*args, cwd=tmp_path, env=environment)

    call.directory = tmp_path
    return call


PEERS = tuple(
    word for name in ("alpha", "beta", "gamma") for word in ("--peer", f"{name}={name}.so")
)


def scored(bench, *args, **options):
    # The fake runner's noise follows the seed: a verdict that holds here holds on every machine.
    result = bench("bench", "scoreboard", *args, "--seed", "7", "--save", "r.json", **options)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    run = runfile.read(bench.directory / "r.json")
    return run["experiments"][0]["score"], result.stdout


def envelope(score):
    """Without what `make peers` built in this checkout, which is found too."""
    return [name for name in score["envelope"] if name in {"libc", "alpha", "beta", "gamma"}]


def of(score, op):
    own = next(own for own in score["ops"] if own["op"] == op)
    return {region["name"]: region for region in own["regions"]}, own["total"]


def near(ratio, value):
    assert ratio["median"] == pytest.approx(value, rel=0.01)
    assert ratio["low"] <= ratio["median"] <= ratio["high"]
    assert ratio["low"] > 0.97 * value and ratio["high"] < 1.03 * value


def test_who_leaves_upper_halves_in_use_is_marked(bench):
    few = ("--region", "fixed-64,any-64", "--processes", "1", "--rounds", "3")
    score, shown = scored(bench, *PEERS, *few, env={"WHERRY_FAKE_UPPER": "beta,gamma"})
    assert score["upper_in_use"] == ["beta", "gamma"]
    assert "beta^" in shown and "gamma^" in shown and "alpha^" not in shown
    assert "^: beta and gamma leave the upper halves" in " ".join(shown.split())
    run = runfile.read(bench.directory / "r.json")
    assert {c["routine"] for c in run["cells"] if c.get("upper_in_use")} == {"beta", "gamma"}
    score, shown = scored(bench, *PEERS, *few)
    assert score["upper_in_use"] == [] and "beta^" not in shown and "^:" not in shown


def test_planted_times_are_told_right(bench):
    score, shown = scored(bench, *PEERS, "--processes", "2", "--rounds", "9")
    assert score["unhalved"] == 0 and score["envelope"] == ["libc", "alpha", "beta", "gamma"]
    there, total = of(score, "copy")
    assert there["fixed-64"]["best"] == "alpha" and there["any-64"]["best"] == "beta"
    near(there["fixed-64"]["to_best"], 0.8 / 0.9)
    near(there["any-64"]["to_best"], 1.2 / 0.55)
    near(there["any-64"]["to_libc"], 1.2)
    assert there["fixed-64"]["verdict"] == "ahead" and there["fixed-64"]["fastest"] == "wherry"
    assert there["any-64"]["verdict"] == "behind" and there["any-64"]["fastest"] == "beta"
    assert total["regions"] == 14 and total["worst"] in [
        n for n in there if n[:3] in ("any", "log")
    ]
    near(total["to_libc"], math.exp((9 * math.log(0.8) + 5 * math.log(1.2)) / 14))
    near(
        total["to_envelope"],
        math.exp((9 * math.log(0.8 / 0.9) + 5 * math.log(1.2 / 0.55)) / 14),
    )
    # alpha's mean is the smallest: 0.9 in nine regions and 0.6 in five, where beta has 1 and 0.55.
    assert total["single"] == "alpha"
    near(total["to_single"], math.exp((9 * math.log(0.8 / 0.9) + 5 * math.log(2)) / 14))

    there, total = of(score, "move")
    assert total["regions"] == 16
    assert there["forward"]["best"] == there["backward"]["best"] == "gamma"
    near(there["forward"]["to_best"], 0.8 / 0.5)

    # Without a memset beta is out: of the regions and of the choice of the best single peer.
    there, total = of(score, "set")
    assert there["any-64"]["best"] == "alpha" and total["single"] == "alpha"
    assert all("beta" not in region["figures"] for region in there.values())
    assert "forward" not in there and total["regions"] == 14
    for text in ("memcpy by region", "memmove by region", "memset by region", "what this machine"):
        assert text in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_figures_are_geometric_means_over_rows(bench):
    score, _ = scored(bench, "--op", "copy", "--region", "fixed-2K,1M-4M", "--processes", "1")
    there, _ = of(score, "copy")
    base = [2 + size / 20 for size in (520, 768, 1000, 1448, 2048)]
    mean = math.exp(sum(map(math.log, base)) / len(base))
    assert there["fixed-2K"]["figures"]["libc"] == pytest.approx(mean, rel=0.01)
    assert there["fixed-2K"]["figures"]["wherry"] == pytest.approx(0.8 * mean, rel=0.01)
    assert there["1M-4M"]["rate"] and there["1M-4M"]["figures"]["libc"] == pytest.approx(
        20, rel=0.01
    )
    assert set(there) == {"fixed-2K", "1M-4M"}
    assert len(there["fixed-2K"]["rows"]) == there["fixed-2K"]["planned"] == 10


def test_equal_routines_tie(bench):
    score, shown = scored(bench, *PEERS, "--op", "copy", "--quick", times={"x": {"all": 1.0}})
    there, _ = of(score, "copy")
    assert {region["verdict"] for region in there.values()} == {"tie"}
    assert all(region["fastest"] is None for region in there.values())
    assert "It is ahead in 0, ties in 14 and is behind in 0" in " ".join(shown.split())


def test_without_peers_the_envelope_is_libc_and_that_is_said(bench):
    score, shown = scored(bench, "--op", "copy", "--region", "any-64", "--quick")
    there, total = of(score, "copy")
    assert score["envelope"] == ["libc"] and there["any-64"]["best"] == "libc"
    assert total["single"] == "libc"
    near(there["any-64"]["to_best"], 1.2)
    words = " ".join(shown.split())
    assert "the envelope is libc alone: make peers builds some" in words


def test_peers_are_found(bench):
    sidecar = {"what": "the letter alpha", "version": "1.2", "tier": "avx2", "has": ["memcpy"]}
    (bench.directory / "alpha.json").write_text(json.dumps(sidecar))
    found = {"WHERRY_PEERS": str(bench.directory)}
    score, shown = scored(bench, "--quick", env=found)
    assert envelope(score) == ["libc", "alpha", "beta", "gamma"]
    assert score["about"]["alpha"] == "the letter alpha, 1.2, avx2"
    assert "alpha: the letter alpha, 1.2, avx2" in " ".join(shown.split())
    # It has no memmove, so it is not asked for one.
    assert "alpha" in of(score, "copy")[0]["any-64"]["figures"]
    assert "alpha" not in of(score, "move")[0]["any-64"]["figures"]
    alone, _ = scored(bench, "--no-found-peers", "--region", "any-64", "--quick", env=found)
    assert alone["envelope"] == ["libc"]


def test_found_peers_that_only_sum_take_no_part(bench):
    for name in ("alpha", "beta", "gamma"):
        (bench.directory / f"{name}.json").write_text('{"what": "sums", "has": ["csum_partial"]}')
    found = {"WHERRY_PEERS": str(bench.directory)}
    for more in ((), ("--isa", "sse2")):
        times = {**TIMES, "wherry@sse2": {"all": 0.7}}
        some = ("--region", "any-64", "--quick", *more)
        score, shown = scored(bench, *some, env=found, times=times)
        assert not {"alpha", "beta", "gamma"} & {*score["envelope"], *score["about"]}
        assert "sums" not in shown


def test_a_forced_tier_is_compared_with_peers_of_that_tier(bench):
    (bench.directory / "alpha.json").write_text('{"tier": "avx2"}')
    (bench.directory / "beta.json").write_text('{"tier": "sse2"}')
    # It would take no part in a scoreboard of any tier.
    (bench.directory / "sums.so").write_bytes((bench.directory / "alpha.so").read_bytes())
    (bench.directory / "sums.json").write_text('{"tier": "avx2", "has": ["crc32c"]}')
    found = {"WHERRY_PEERS": str(bench.directory)}
    times = {**TIMES, "wherry@sse2": {"all": 0.7}, "wherry@avx2": {"all": 0.6}}
    some = ("--op", "copy", "--region", "any-64,fixed-64", "--quick")
    score, shown = scored(bench, *some, "--isa", "sse2", env=found, times=times)
    assert score["isa"] == "sse2" and score["wherry"] == "wherry@sse2"
    assert "alpha" in score["left_out"] and "sums" not in score["left_out"]
    assert envelope(score) == ["beta", "gamma"]
    there, _ = of(score, "copy")
    near(there["fixed-64"]["to_best"], 0.7)
    near(there["fixed-64"]["to_libc"], 0.7)
    words = " ".join(shown.split())
    assert "held to its sse2 tier" in words and re.search(
        r"Left out, for they use more: [^.]*\balpha\b", words
    )
    # At the CPU's own tier libc uses no more than Wherry may.
    score, _ = scored(bench, *some, "--isa", "avx2", env=found, times=times)
    assert envelope(score) == ["libc", "alpha", "beta", "gamma"]
    assert "alpha" not in score["left_out"]
    near(of(score, "copy")[0]["fixed-64"]["to_best"], 0.6 / 0.9)


def test_routines_named_stand_beside_and_are_no_peers(bench):
    times = {**TIMES, "rep_movsb": {"all": 0.1}}
    some = ("--op", "copy", "--region", "any-64", "--quick", "--routine", "rep_movsb")
    score, shown = scored(bench, *some, times=times)
    there, _ = of(score, "copy")
    assert there["any-64"]["fastest"] == "rep_movsb" and there["any-64"]["best"] == "libc"
    assert score["envelope"] == ["libc"] and "rep_" in shown


@pytest.mark.parametrize("name", ["crash", "later", "liar"])
def test_a_bad_peer_is_in_no_envelope(bench, name):
    """Nor when it was the fastest in regions that were measured before it crashed."""
    (bench.directory / "bad.so").write_bytes(b"peer")
    some = ("--quick", "--op", "copy", "--peer", f"{name}=bad.so", "--peer", "alpha=alpha.so")
    times = {**TIMES, name: {"all": 0.1}}
    result = bench("bench", "scoreboard", *some, "--save", "r.json", times=times)
    assert result.returncode == 1 and "Traceback" not in result.stderr
    score = runfile.read(bench.directory / "r.json")["experiments"][0]["score"]
    there, total = of(score, "copy")
    assert total["regions"] == 14 and total["single"] == "alpha"
    assert {region["best"] for region in there.values()} == {"alpha"}
    assert not any(name in region["figures"] for region in there.values())


def test_json_is_the_run(bench):
    result = bench("bench", "scoreboard", "--region", "any-64", "--quick", "--json")
    assert result.returncode == 0 and result.stderr == ""
    run = json.loads(result.stdout)
    assert runfile.fault(run) is None and run["experiments"][0]["score"]["ops"]


def test_a_region_cut_short_says_so(bench):
    """Of a run that was interrupted only some rows are there."""
    some = ("--op", "copy", "--region", "fixed-64", "--quick", "--save", "r.json")
    assert bench("bench", "scoreboard", *some).returncode == 0
    run = json.loads((bench.directory / "r.json").read_text())
    run["experiments"][0]["score"]["ops"][0]["regions"][0]["planned"] = 7
    (bench.directory / "r.json").write_text(json.dumps(run))
    shown = bench("bench", "--show", "r.json").stdout
    assert "fixed-64 3/7" in shown and "so many of them were measured" in " ".join(shown.split())


def test_show_prints_what_bench_printed(bench):
    some = ("--quick", "--op", "copy,set")
    _, first = scored(bench, *some, *PEERS)
    again = bench("bench", "--show", "r.json")
    assert again.returncode == 0, again.stderr
    assert again.stdout.strip() == first.rsplit("\nSaved as", 1)[0].strip()


def test_a_mix_is_recorded_without_its_path(bench):
    directory = bench.directory / "my mixes"
    directory.mkdir()
    (directory / "Memcpy_Fleet.csv").write_text("8:0.5,64:0.3,4096:0.2\n0:1\n1:0.5,64:0.5\n")
    (directory / "Bcmp_0.csv").write_text("1:1\n")
    some = ("--mix", "my mixes", "--quick", "--processes", "1")
    score, shown = scored(bench, *some, "--op", "copy,move")
    run = json.loads((bench.directory / "r.json").read_text())
    (record,) = run["mixes"]
    assert record["name"] == "Memcpy_Fleet" and record["ops"] == ["copy"]
    assert record["percentiles"] == {"10": 8, "50": 8, "75": 64, "90": 4096, "99": 4096}
    assert record["mean"] == pytest.approx(842.4) and len(record["sha256"]) == 64
    assert {row.get("mix") for row in run["rows"]} >= {"@Memcpy_Fleet", "uniform:0-64"}
    kept = json.dumps({key: value for key, value in run.items() if key != "method"})
    assert "wherry-mixes" not in kept and "my mixes" not in kept
    there, total = of(score, "copy")
    assert not there["Memcpy_Fleet"]["base"] and total["regions"] == 14
    assert "Memcpy_Fleet" not in of(score, "move")[0]
    assert "memcpy, mixes of sizes" in shown
    result = bench("bench", "mixes", *some, "--op", "copy", "--save", "m.json")
    assert result.returncode == 0, result.stderr
    assert "Memcpy_Fleet: p10 8, median 8, p75 64, p90 4K, p99 4K, mean 842 B" in result.stdout
    shown = bench("bench", "--show", "m.json")
    assert shown.stdout.strip() == result.stdout.rsplit("\nSaved as", 1)[0].strip()


# ---- the rows --------------------------------------------------------------------------------------------------------


def rows(**request) -> list[Row]:
    return EXPERIMENT.rows(Request(caches=CACHES, **request))


def test_rows_are_measured_once_and_words_are_the_protocols():
    every = rows(ops=("move",), peers=("p",))
    lines = [row.line(1) for row in every]
    assert len(set(lines)) == len(lines)
    assert {row.routines[:3] for row in every[:-4]} == {("libc", "wherry", "p")}
    assert any("overlap=-8 " in line for line in lines)
    assert any("delta=4095 " in line for line in lines)
    assert any("code=cold " in line for line in lines)
    assert any("mix=log:1-4096 " in line and "size=" not in line for line in lines)
    assert any("ascending=both " in line for line in lines)
    assert {row.ascending for row in rows(ops=("set",))} == {"none", "destination"}
    assert all(row.overlap is None or row.src_state == row.dst_state for row in every)
    assert all(
        "src_off" not in c for r in listed.REGIONS for c in regions.measured(r, "set", False)
    )


def test_states_follow_the_caches():
    states = {
        row.size: row.dst_state for row in rows(ops=("copy",)) if row.walk == "pool" and row.size
    }
    assert states[16 << 10] == "L1" and states[64 << 10] == "L2" and states[4 << 20] == "L3"
    nothing = EXPERIMENT.rows(Request(ops=("copy",), regions=("any-16",)))
    assert {row.dst_state for row in nothing} == {"DRAM"}


def test_quick_has_few_rows_and_every_base_region():
    quick, every = rows(quick=True), rows()
    assert len(quick) < len(every) / 3
    assert all(region.few for region in listed.REGIONS if region.base)
    assert {row.rounds for row in quick} <= {5, 6} and max(row.rounds for row in every) == 9


def test_a_peer_found_is_asked_for_what_it_has():
    found = (Peer("a", "a.so", has=("memset",)), Peer("b", "b.so"))
    by_op = {row.op: row.routines[2:4] for row in rows(found=found, regions=("any-16",))}
    assert by_op["copy"][0] == "b" and by_op["set"] == ("a", "b")


def test_one_sample_is_shown_without_an_interval(bench):
    few = ("--quick", "--processes", "1", "--rounds", "1", "--region", "fixed-64", *PEERS)
    score, shown = scored(bench, *few)
    region = of(score, "copy")[0]["fixed-64"]
    assert region["to_best"]["low"] is None is region["to_best"]["high"]
    assert region["verdict"] is None is region["fastest"] and not region["tied"]
    assert not re.search(r"\d\.\d\d \(\d", shown) and "tied with the fastest" not in shown
    said = " ".join(shown.split())
    assert said.count("give more --rounds or --processes") == 1
    assert "The samples do not tell in which it is ahead" in said
    run = runfile.read(bench.directory / "r.json")
    assert {row["undecided"] for row in run["rows"]} == {stats.ONE_SAMPLE}
    assert run["experiments"][0]["correction"]["comparisons"] == 0
    assert not any("verdict" in cell for cell in run["cells"])
    (own, *_) = report_regions.pictures(score)
    rule = own.views[0].spec["layer"][2]
    assert rule["mark"]["type"] == "rule" and "isValid(datum.low)" in str(rule["transform"])
    assert not any(own.columns["low"])
    assert "samples do not tell" in words.summary(run, "scoreboard")[0]


def test_words_tell_ties_from_what_is_undecided():
    def region(name, verdict):
        ratio = {"median": 1.1, "low": 1.0, "high": 1.2} if verdict else None
        return {"name": name, "verdict": verdict, "to_best": ratio, "best": "p"}

    def own(*verdicts):
        return [region(f"r{n}", word) for n, word in enumerate(verdicts, 1)]

    def said(*verdicts):
        return show._leaders(own(*verdicts)), show.standing(own(*verdicts))

    assert said("undecided", "ahead", "tie") == (
        "Wherry is ahead in r2; r1 is undecided; the rest are ties.",
        "It is ahead in 1, ties in 1 and is behind in 0; 1 is undecided",
    )
    assert said("undecided", "undecided", "behind")[0] == (
        "Wherry is behind in r3 (1.10 of p); r1 and r2 are undecided."
    )
    assert said("undecided", "undecided")[0] == "Who leads is undecided everywhere here."
    assert said("undecided", None)[0] == ("Who leads is undecided; in r2 the samples do not tell.")
    assert said("tie", "tie")[0] == "Wherry ties with the best peer everywhere here."
    assert said("tie", "undecided")[0] == "r2 is undecided; the rest are ties."


# ---- mixes -----------------------------------------------------------------------------------------------------------


def test_a_range_is_a_mix_of_the_scoreboard(bench):
    some = ("--op", "copy", "--region", "any-64", "--quick", *PEERS)
    score, shown = scored(bench, *some, "--mix", "uniform:0-8K,uniform:0-8192")
    there, total = of(score, "copy")
    assert there["uniform:0-8192"]["base"] is False and total["regions"] == 1
    assert "uniform:0-8192: p10 819, median 4K," in " ".join(shown.split())


def test_a_range_is_a_row_of_mixes_and_a_built_in_one_is_there_once():
    found = (*mixes.built_in()[1:2], mixes.of_range("uniform:0-8192", "uniform", 0, 8192))
    rows = MIXES.rows(Request(caches=CACHES, mixes=found, ops=("copy",), quick=True))
    named = [row.mix for row in rows]
    assert named.count("uniform:0-64") == 1 and named[-1] == "uniform:0-8192"


def test_mixes_have_the_string_instruction_of_each_op_and_refuse_what_does_none_of_them():
    """Of a set it stood there by the name of the one that only zeroes, which was then left out."""
    catalogue = [
        {"name": name, "op": op}
        for name, op in (("rep_movsb", "copy"), ("rep_stosb", "zero"), ("rep_stosb_set", "set"))
    ]
    rows = MIXES.rows(Request(caches=CACHES, catalogue=catalogue, quick=True))
    assert {"rep_movsb" in row.routines for row in rows if row.op == "copy"} == {True}
    assert {"rep_stosb_set" in row.routines for row in rows if row.op == "set"} == {True}
    with pytest.raises(WherryError, match="mixes measures set, which rep_movsb does not do"):
        MIXES.rows(
            Request(caches=CACHES, catalogue=catalogue, ops=("set",), routines=("rep_movsb",))
        )


def test_the_legend_tells_of_each_range_that_is_a_row():
    rows = MIXES.rows(Request(caches=CACHES, mixes=(mixes.from_range("log:1-40"),), ops=("copy",)))
    rows = [row for row in rows if row.mix in ("uniform:0-16", "log:1-40")]
    run = {"noise": {"floor": 0.01}, "rows": [], "cells": []}
    for number, row in enumerate(rows):
        own = {"experiment": "mixes", "row": number} | row.dimensions()
        run["rows"].append(own | {"fastest": None, "tied": [], "lead": None})
        run["cells"].append(own | {"routine": "libc", "aa": False, "ns": {"median": 5.0}})
    (block,) = MIXES.blocks(run, 96)
    assert [note.partition(": p10")[0] for note in block.notes] == ["uniform:0-16", "log:1-40"]
    assert mixes.of_name("uniform:9-1") is None is mixes.of_name("@gcc.copy")


def test_nearly_all_of_a_mix_fits_its_cache(tmp_path):
    """A move's sides may share a stretch of twice the size; one call in a hundred may reach out."""
    (tmp_path / "m.csv").write_text("10000:0.95,200000:0.04,1000000:0.01\n")
    found = mixes.gather([str(tmp_path / "m.csv")])
    assert found[0].usual == 1000000
    (tmp_path / "m.csv").write_text("16:0.9,10000:0.098,1000000:0.002\n")
    found = mixes.gather([str(tmp_path / "m.csv")])
    assert found[0].usual == 10000 and found[0].largest == 1000000
    rows = EXPERIMENT.rows(Request(caches=CACHES, mixes=found, regions=("m",)))
    assert {row.op: row.dst_state for row in rows} == {"copy": "L1", "move": "L2", "set": "L1"}


def test_a_mix_named_like_a_region_stands_beside_it(bench):
    (bench.directory / "any-64.csv").write_text("8:1\n")
    some = ("--op", "copy", "--quick", "--mix", "any-64.csv", "--region", "any-64,mix-any-64")
    score, shown = scored(bench, *some)
    there, _ = of(score, "copy")
    assert set(there) == {"any-64", "mix-any-64"} and there["any-64"]["base"]
    # Its percentiles are told of it, not of the region.
    assert "\n  mix-any-64: p10 8" in shown and "\n  any-64: " not in shown


@pytest.mark.parametrize(
    ("region", "copied"),
    [
        ("any-64", {"any-64", "one", "two"}),
        ("any-64,two", {"any-64", "two"}),
        ("two", {"two"}),
        ("forward", {"one", "two"}),
    ],
)
def test_a_mix_is_measured_beside_regions_that_are_named(bench, region, copied):
    for name in ("one", "two"):
        (bench.directory / f"{name}.csv").write_text("8:1\n")
    some = ("--quick", "--mix", "one.csv", "--mix", "two.csv", "--region", region)
    there, _ = of(scored(bench, *some)[0], "copy")
    assert set(there) == copied


def test_a_mix_for_another_op_is_refused(bench):
    (bench.directory / "Memset_0.csv").write_text("8:1\n")
    result = bench("bench", "scoreboard", "--op", "copy", "--mix", "Memset_0.csv")
    assert result.returncode == 2 and "holds sizes for op set, not for copy" in result.stderr


MISUSE = [
    (["--region", "fixd-64"], "did you mean fixed-64?"),
    (["--region", "forward", "--op", "copy"], "region forward is of op move"),
    (["--op", "cpy"], "no op 'cpy'"),
    (["--isa", "avx512"], "this CPU has no more than avx2"),
    (["--isa", "neon"], "no tier 'neon'"),
    (["--mix", "nowhere.csv"], "No such file"),
    (["--size", "64"], "scoreboard does not take --size"),
    (["--state", "L1"], "scoreboard does not take --state"),
    (["--op", "set", "--routine", "rep_movsb"], "measures set, which rep_movsb does not do"),
]


@pytest.mark.parametrize(("arguments", "said"), MISUSE, ids=[" ".join(a) for a, _ in MISUSE])
def test_misuse_is_answered_in_one_line(bench, arguments, said):
    result = bench("bench", "scoreboard", *arguments)
    assert result.returncode == 2 and result.stdout == ""
    assert said in result.stderr and result.stderr.count("\n") == 1


def test_options_of_the_scoreboard_are_refused_elsewhere(bench):
    result = bench("bench", "sizes", "--region", "any-64")
    assert result.returncode == 2
    assert "sizes does not take --region; scoreboard does" in result.stderr
    result = bench("list", "regions", "--mix", "x")
    assert result.returncode == 2 and "--mix goes with wherry list mixes" in result.stderr
