"""`wherry compare`: what it calls changed has changed, what it does not has not, and CI gets the right exit status."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import made_runs
import numpy as np
import pytest
from made_runs import SIZES, Made, usual
from wherry import runfile
from wherry.compare import judge, machines, match, sides
from wherry.compare.judge import FASTER, SLOWER, UNCHANGED, UNDECIDED
from wherry.errors import WherryError
from wherry.formats import naming
from wherry.formats.samples import Raw


def compared(a: Made, b: Made, **options) -> judge.Comparison:
    return judge.compare(a.run, b.run, (Raw(), Raw()), **options)


def verdicts(found: judge.Comparison, *kinds: str) -> set[tuple[str, int]]:
    return {(c.a["routine"], c.a["size"]) for c in found.of(*kinds)}


def test_the_runs_made_here_keep_the_schema():
    assert runfile.fault(usual(1).run) is None


# ---- which method ----------------------------------------------------------------------------------------------------


def test_times_of_one_machine_are_set_against_times():
    decision = compared(usual(1), usual(2)).decision
    assert decision.method == machines.PAIRED
    for word in ("host", "boot", "CPU", "kernel", "libc"):
        assert word in decision.why


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        ({"host": "there"}, "host here and there"),
        ({"boot": "fedcba9876543210"}, "booted"),
        ({"kernel": "Linux 6.2.0 x86_64"}, "kernel"),
        ({"libc": "glibc 2.40"}, "libc glibc 2.36 and glibc 2.40"),
        ({"cpu": {"model": "Other CPU"}}, "CPU"),
    ],
)
def test_another_machine_or_state_of_it_gives_shapes(machine, said):
    found = compared(usual(1), usual(2, **machine))
    assert found.decision.method == machines.SHAPES and said in found.decision.why
    assert found.reference == "libc"


def test_a_run_from_before_boots_were_recorded():
    old = usual(1)
    del old.run["machine"]["boot"]
    decision = compared(old, usual(2)).decision
    assert decision.method == machines.PAIRED and "boot not told" in decision.why


def test_what_is_not_told_is_not_the_same():
    a, b = usual(1, host=None), usual(2, host=None)
    assert "--same-machine" in compared(a, b).decision.why
    assert compared(a, b).decision.method == machines.SHAPES
    assert compared(a, b, vouched=True).decision.method == machines.PAIRED
    assert compared(usual(1), usual(2), method="shapes").decision.method == machines.SHAPES


# ---- verdicts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_changed_is_found_and_nothing_else(elsewhere):
    machine = {"host": "there"} if elsewhere else {}
    changed = {("wherry", 64): 1.31, ("wherry", 256): 1.08, ("avx2_loop", 4096): 0.8}
    found = compared(usual(1), usual(2, changed, **machine))
    assert verdicts(found, SLOWER) == {("wherry", 64), ("wherry", 256)}
    assert verdicts(found, FASTER) == {("avx2_loop", 4096)}
    assert len(found.of(UNCHANGED)) > 5 * len(found.of(UNDECIDED))
    worst = max(found.of(SLOWER), key=lambda c: c.ratio)
    assert worst.ratio == pytest.approx(1.31, rel=0.02)
    assert worst.sure_low < worst.low < worst.ratio < worst.high < worst.sure_high


def test_equal_runs_seldom_have_changes():
    """Twenty pairs of equal runs of 64 cells: of 1280 verdicts a correction lets hardly one be wrong."""
    wrong = sum(len(compared(usual(s), usual(s + 100)).of(SLOWER, FASTER)) for s in range(20))
    assert wrong <= 1


@pytest.mark.parametrize("processes", [1, 2, 3])
@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("method", ["paired", "shapes"])
def test_few_processes_that_differ_are_no_change(monkeypatch, processes, raw, method):
    """Processes that differ by more than the noise floor, which is of two measurements in one process, tells."""
    monkeypatch.setattr(made_runs, "PROCESSES", processes)

    def with_raw(made: Made) -> Raw:
        own = Raw()
        for e in made.raw if raw else ():
            key = (e["experiment"], e["row"], e["routine"], e["aa"])
            own.cells.setdefault(key, {})[e["process"]] = np.array(e["ns"])
        return own

    def between(factors):
        wrong = right = 0
        for seed in range(6):
            a, b = usual(seed, noise=0.02), usual(seed + 100, factors, noise=0.02)
            found = judge.compare(a.run, b.run, (with_raw(a), with_raw(b)), method=method)
            slower = verdicts(found, SLOWER)
            right += len(slower & set(factors))
            wrong += len(slower - set(factors)) + len(found.of(FASTER))
        return wrong, right

    assert between({})[0] <= 1
    # Of fewer than three little is known: only what stands out far is told.
    assert between({("wherry", 64): 1.8 if processes > 2 else 4.0})[1] == 6


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("method", ["paired", "shapes"])
def test_cells_that_take_a_cycle_more_in_some_processes_have_not_changed(
    monkeypatch, processes, method
):
    """One in ten differs by many times as much as the others: the same code in another process."""
    usually = made_runs.samples

    def bistable(centre, rng, noise):
        return {
            process: values * (1.13 if rng.random() < 0.1 else 1.0)
            for process, values in usually(centre, rng, noise).items()
        }

    monkeypatch.setattr(made_runs, "PROCESSES", processes)
    monkeypatch.setattr(made_runs, "samples", bistable)
    found = [compared(usual(s), usual(s + 100), method=method) for s in range(20)]
    assert sum(bool(own.of(SLOWER, FASTER)) for own in found) <= 1


def test_a_few_cells_of_a_single_process_each_are_undecided(monkeypatch):
    """Its rounds agree with each other, and tell nothing of the next process."""
    monkeypatch.setattr(made_runs, "PROCESSES", 1)

    def one(seed, took):
        return Made(seed=seed).row("x", {"libc": 2.0 * took, "wherry": 2.0}, size=64)

    for method in ("paired", "shapes"):
        found = compared(one(1, 1.0), one(2, 1.15), method=method)
        assert found.changes and len(found.of(UNDECIDED)) == len(found.changes)


def test_without_the_correction_there_would_be_some(monkeypatch):
    """The test above can fail: with the interval of a single comparison, and no floor, it would."""
    monkeypatch.setattr(
        judge, "_floors", lambda own, estimated, a, b: own.floors.update(small=0, far=0)
    )
    monkeypatch.setattr(judge, "_controls", lambda own, estimated: [])
    monkeypatch.setattr(judge, "LEVEL", 0.05 * 64)
    assert sum(len(compared(usual(s), usual(s + 100)).of(SLOWER, FASTER)) for s in range(5)) > 5


def test_a_change_within_the_noise_floor_is_none():
    found = compared(
        usual(1, floor=0.1, noise=1e-4), usual(2, {"wherry": 1.08}, floor=0.1, noise=1e-4)
    )
    assert not found.of(SLOWER, FASTER)
    assert all(c.floor == pytest.approx(0.1 * np.sqrt(2)) for c in found.changes)
    found = compared(usual(1, floor=0.01, noise=1e-4), usual(2, {"wherry": 1.08}, noise=1e-4))
    assert {c.a["routine"] for c in found.of(SLOWER)} == {"wherry"}


def test_a_clock_that_moved_a_little_slows_no_cell():
    found = compared(usual(1), usual(2, clock=1.03))
    assert found.control[1] == pytest.approx(1.03, abs=0.005)
    assert not found.of(SLOWER, FASTER)


def test_a_machine_that_is_much_slower_is_told_and_shapes_take_it_out():
    found = compared(usual(1), usual(2, clock=1.2))
    assert len(found.of(SLOWER)) > 50 and "the machine was slower" in found.notes[0]
    assert not compared(usual(1), usual(2, clock=1.2), method="shapes").of(SLOWER, FASTER)


def test_noise_between_the_runs_counts():
    """libc's own cells scatter from run to run by more than within one: that is the bar then."""
    rng = np.random.default_rng(5)
    shaken = {("libc", s): float(np.exp(rng.normal(0, 0.1))) for s in SIZES}
    shaken |= {("call_floor", s): float(np.exp(rng.normal(0, 0.1))) for s in SIZES}
    found = compared(usual(1), usual(2, shaken | {"wherry": 1.05}))
    assert found.control[2] > 0.06 and "wherry" not in {c.a["routine"] for c in found.of(SLOWER)}


def test_yardsticks_are_no_cells_that_fail():
    found = compared(usual(1), usual(2, {"call_floor": 2.0}))
    assert "call_floor" not in {c.a["routine"] for c in found.of(SLOWER)}
    assert any(c.yardstick for c in found.changes)


def test_shapes_need_a_reference_that_is_there():
    a, b = usual(1), usual(2, {"wherry": 1.3}, host="there")
    found = compared(a, b, reference="rep_movsb")
    assert found.reference == "rep_movsb" and {r for r, _ in verdicts(found, SLOWER)} == {"wherry"}
    with pytest.raises(WherryError, match="did you mean rep_movsb"):
        compared(a, b, reference="rep_mosb")


def test_ratios_of_an_edited_file_are_not_believed():
    b = usual(2, host="there")
    for cell in b.run["cells"]:
        if cell["routine"] == "wherry":
            cell["ns"] = {k: 1.4 * v for k, v in cell["ns"].items()}
    found = compared(usual(1), b)
    assert {r for r, _ in verdicts(found, SLOWER)} == {"wherry"} and len(found.of(SLOWER)) > 10


def test_one_routine_alone_is_set_to_the_middle_of_all():
    def alone(seed, slow, **machine):
        made = Made(seed=seed, **machine)
        for size in SIZES:
            made.row("own", {"mine": (2 + size / 50) * (1.5 if size == slow else 1)}, size=size)
        return made

    found = compared(alone(1, 0), alone(2, 64, host="there"))
    assert found.reference is None and verdicts(found, SLOWER) == {("mine", 64)}


def test_single_samples_are_judged_by_the_scatter_of_all():
    def single(seed, factor):
        made = Made(seed=seed, floor=None)
        for size in range(1, 40):
            made.row("own", {"mine": 5.0 * (factor if size == 7 else 1)}, size=size)
        for cell in made.run["cells"]:
            cell |= {"rounds": 1, "processes": 1}
        return made

    found = compared(single(1, 1.0), single(2, 1.5))
    assert found.bulk and verdicts(found, SLOWER) == {("mine", 7)}
    few = Made(floor=None).row("own", {"mine": 5.0}, size=1)
    few.run["cells"][0]["rounds"] = 1
    assert compared(few, few).of(UNDECIDED)


def test_raw_samples_are_used_when_they_belong_to_the_run(tmp_path, call):
    a = usual(1).save(tmp_path / "a.json", raw=True)
    b = usual(2).save(tmp_path / "b.json", raw=True)
    raw = json.loads(call("compare", a, b, "--json")[1])
    for path in (a, b):
        path.with_name(path.name + ".raw.json.gz").unlink()
    bare = json.loads(call("compare", a, b, "--json")[1])
    pairs = zip(raw["comparisons"][0]["cells"], bare["comparisons"][0]["cells"], strict=True)
    assert all(x["interval"] != y["interval"] for x, y in pairs)
    # Those of another run are not.
    usual(9, clock=3.0).save(b, raw=True)
    usual(2).save(b)
    again = json.loads(call("compare", a, b, "--json")[1])["comparisons"][0]["cells"]
    assert [c["ratio"] for c in again] == [c["ratio"] for c in bare["comparisons"][0]["cells"]]
    beside = tmp_path / "b.json.raw.json.gz"
    own = gzip.decompress(usual(2).save(b, raw=True) and beside.read_bytes())
    for damaged in (
        b"\x1f\x8bnonsense",
        gzip.compress(own.replace(b'"process": 1,', b'"process": null,')),
    ):
        beside.write_bytes(damaged)
        status, _, said = call("compare", a, b)
        assert status == 0 and "was not used" in said and said.count("\n") == 1


# ---- matching --------------------------------------------------------------------------------------------------------


def test_cells_are_matched_by_all_their_dimensions():
    def one(**dimensions):
        return Made().row("x", {"libc": 2.0, "wherry": 2.0}, size=64, **dimensions)

    for other in (
        {"src_off": 1},
        {"dst_state": "L2"},
        {"mode": "latency"},
        {"threads": 2},
        {"overlap": 8},
        {"code": "cold"},
        {"delta": 5},
        {"op": "move"},
    ):
        found = match.match(one().run, one(**other).run)
        assert not found.pairs and len(found.only_a) == len(found.only_b) == 2, other
    assert len(match.match(one().run, one().run).pairs) == 2


def test_an_experiment_by_another_name_has_the_same_cells():
    a, b = (Made().row(name, {"libc": 2.0}, size=64) for name in ("small", "sizes"))
    assert len(match.match(a.run, b.run).pairs) == 1


def test_a_dimension_that_one_run_never_records_is_left_out_and_told():
    a, b = usual(1), usual(2)
    for cell in a.run["cells"]:
        del cell["huge"]
    found = match.match(a.run, b.run)
    assert len(found.pairs) == len(a.run["cells"]) and found.unrecorded == ["huge"]
    # Only some of the other's have it: those are other cells.
    for cell in b.run["cells"][:5]:
        del cell["huge"]
    assert len(match.match(a.run, b.run).pairs) == 5


def test_what_only_one_run_has_is_told(tmp_path, call):
    a = usual(1).row("more", {"libc": 2.0, "x87": 30.0}, size=7).save(tmp_path / "a.json")
    b = usual(2).row("less", {"libc": 2.0}, size=8).save(tmp_path / "b.json")
    status, out, _ = call("compare", a, b)
    assert status == 0
    assert "Only in the first: 2 cells of more (libc, x87)." in out
    assert "Only in the second: 1 cell of less (libc)." in out


# ---- what a verdict is made of ---------------------------------------------------------------------------------------


def test_the_reference_of_shapes_is_not_compared_with_itself():
    found = compared(usual(1), usual(2), method="shapes")
    assert {change.a["routine"] for change in found.changes} == {
        *("wherry", "rep_movsb", "avx2_loop", "call_floor"),
    }
    assert found.unreferenced == 0


@pytest.mark.parametrize("cells", [judge.LEAST_CELLS - 1, judge.LEAST_CELLS])
def test_few_processes_are_judged_by_all_cells_where_there_are_enough(cells):
    runs = [Made(seed=seed) for seed in (1, 2)]
    for made in runs:
        for number in range(cells):
            made.row("x", {"mine": 10.0 + number}, size=64 << number)
        for cell in made.run["cells"]:
            cell["processes"] = 2
    found = compared(*runs)
    assert (found.bulk is None) == (cells < judge.LEAST_CELLS) and len(found.changes) == cells


def test_the_error_of_few_processes():
    """Half of all lie within 0.674 of a normal distribution's, 0.785 of this t distribution's."""
    side = sides.Side(0.3, 0.02, 0.0, True)
    found = judge._of_few_processes(side, 0.1)
    assert (found.log, found.freedom) == (0.3, judge.TAILS)
    assert found.error == pytest.approx(0.1 * 0.6745 / 0.785, rel=0.01)
    assert judge._of_few_processes(replace(side, error=0.2), 0.1).error == 0.2
    assert judge._of_few_processes(side, None).error is None
    assert judge._of_few_processes(replace(side, freedom=1.0), None).error == 0.02


def test_cells_without_a_size_in_common_are_not_alike():
    ways = (naming.dimensions, naming.dimensions)
    small, untold = {"op": "copy", "size": 64, "threads": 1}, {"op": "copy", "threads": 1}
    assert match._agree(small, small | {"mode": "latency"}, ways)
    for other in (untold, small | {"size": 65}, small | {"threads": 2}):
        assert not match._agree(small, other, ways) and not match._agree(other, small, ways)
    assert not match._agree(untold, untold, ways)
