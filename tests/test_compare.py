"""`wherry compare`: what it calls changed has changed, what it does not has not, and CI gets the right exit status."""

from __future__ import annotations

import dataclasses
import json

import made_runs
import numpy as np
import pytest
from made_runs import SIZES, Made, usual
from wherry import cli, runfile, tables
from wherry.compare import judge, limits, machines, match, words
from wherry.compare.judge import FASTER, SLOWER, UNCHANGED, UNDECIDED
from wherry.errors import WherryError
from wherry.formats import files
from wherry.formats.places import place
from wherry.formats.samples import Raw


def compared(a: Made, b: Made, **options) -> judge.Comparison:
    return judge.compare(a.run, b.run, (Raw(), Raw()), **options)


def verdicts(found: judge.Comparison, *kinds: str) -> set[tuple[str, int]]:
    return {(c.a["routine"], c.a["size"]) for c in found.of(*kinds)}


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Runs a command of wherry in a directory of its own: (exit status, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        status = cli._run([str(a) for a in arguments])
        return status, *capsys.readouterr()

    return run


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
    assert between({("wherry", 64): 1.8})[1] == 6


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
    (tmp_path / "b.json.raw.json.gz").write_bytes(b"\x1f\x8bnonsense")
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


# ---- the command -----------------------------------------------------------------------------------------------------


def test_packets_of_an_older_run_are_told_to_have_no_partner(tmp_path, call):
    """There they have the name of the copies of the same sizes, which come first in the file."""
    times, runs = {"libc": 2.0, "wherry": 1.5}, []
    for name, buffer in (("old.json", {}), ("new.json", {"buffer": 2048})):
        made = Made().row("small", times, size=64).row("small", times, size=64, **buffer)
        runs.append(made.row("small", times, size=72, **buffer).save(tmp_path / name))
    status, out, _ = call("compare", *runs)
    said = " ".join(out.split())
    assert status == 0 and "2 cells in both" in out and "Only in the first: 4 cells of small" in out
    assert "4 cells of the first run are packets that an earlier Wherry did not tell from" in said
    assert "the second run does, so they are compared with nothing" in said
    out = call("compare", *reversed(runs))[1]
    assert "4 cells of the second run are packets" in " ".join(out.split())
    for own in runs:
        assert "are packets" not in " ".join(call("compare", own, own)[1].split())


def test_it_tells_in_words_and_in_json(tmp_path, call):
    a = usual(1).save(tmp_path / "a.json")
    b = usual(2, {("wherry", 64): 1.31, ("wherry", 8): 1.2}).save(tmp_path / "b.json")
    status, out, said = call("compare", a, b)
    assert status == 0 and said == ""
    assert "small: 2 of 32 cells slower, worst 1.3" in out and "at 64 B, L1 wherry" in out
    assert "one machine: same host, boot" in out and "noise floors together" in out
    assert max(map(len, out.splitlines())) <= 100
    record = json.loads(call("compare", a, b, "--json")[1])
    own = record["comparisons"][0]
    assert own["counts"]["slower"] == 4 and own["method"] == "paired" and not record["failed"]
    assert {c["verdict"] for c in own["cells"]} == {SLOWER, UNCHANGED, UNDECIDED} - (
        set() if own["counts"]["undecided"] else {UNDECIDED}
    )


@pytest.mark.parametrize(
    ("limit", "status"),
    [
        ("slower:5%", 1),
        ("slower:25%", 1),
        ("slower:40%", 0),
        ("faster:5%", 0),
        ("changed:5%", 1),
        ("changed:5", 1),
        ("slower", 1),
        ("faster:1%,slower:2%", 1),
    ],
)
def test_limits_give_the_exit_status(tmp_path, call, limit, status):
    a = usual(1).save(tmp_path / "a.json")
    b = usual(2, {("wherry", 64): 1.31}).save(tmp_path / "b.json")
    got, out, _ = call("compare", a, b, "--fail-on", limit)
    assert got == status and ("FAILED" in out) == bool(status)


def test_the_noise_floor_is_the_bar(tmp_path, call):
    """However small the limit: what lies within the noise fails nobody, and the user is told that it hides more."""
    a = usual(1, floor=0.1).save(tmp_path / "a.json")
    b = usual(2, {"wherry": 1.08}, floor=0.1).save(tmp_path / "b.json")
    status, out, _ = call("compare", a, b, "--fail-on", "slower:1%")
    assert status == 0 and "noise floor is 14 %" in out


def test_an_undecided_cell_is_told(tmp_path, call):
    a = usual(1, noise=0.1).save(tmp_path / "a.json")
    b = usual(2, {("wherry", 64): 1.2}, noise=0.1).save(tmp_path / "b.json")
    status, out, _ = call("compare", a, b, "--fail-on", "slower:5%")
    assert status == 0 and "Undecided for slower:5%" in out and "more processes" in out


def test_more_runs_than_two_are_each_set_to_the_first(tmp_path, call):
    names = ["a.json", "b.json", "c.json"]
    usual(1).save(tmp_path / names[0])
    usual(2).save(tmp_path / names[1])
    usual(3, {"wherry": 1.5}).save(tmp_path / names[2])
    status, out, _ = call("compare", *names, "--fail-on", "slower:5%")
    assert status == 1 and out.count("First     a.json") == 2 and out.count("Passed") == 1
    last = out.splitlines()[-4:]
    assert last[0].split() == [
        "beside",
        "a.json",
        "slower",
        "faster",
        "unchanged",
        "undecided",
        "slower:5%",
    ]
    assert last[2].split()[:2] == ["b.json", "0"] and last[2].endswith("passed")
    assert last[3].split()[:2] == ["c.json", "16"] and last[3].endswith("FAILED")
    record = json.loads(call("compare", *names, "--json")[1])
    assert [c["counts"]["slower"] for c in record["comparisons"]] == [0, 16]


MISUSE = [
    (["compare"], "two runs or more"),
    (["compare", "a.json"], "two runs or more"),
    (["compare", "a.json", "none.json"], "No such file"),
    (["compare", "a.json", "other.json"], "... in one, other in the other; no routine"),
    (["compare", "a.json", "size.json"], "no cell in common: size is "),
    (["compare", "a.json", "size.json"], "in one, 3 in the other"),
    (["compare", "a.json", "b.json", "size.json"], "a.json and size.json have no cell in common"),
    (["compare", "a.json", "b.json", "--fail-on", "slower:5%,"], "an empty limit; write it as"),
    (["compare", "a.json", "b.json", "--fail-on", "slower:"], "names no share"),
    (["compare", "a.json", "b.json", "--fail-on", "undecided:5%"], "no limit 'undecided'"),
    (["compare", "a.json", "text.txt"], "is not a run file"),
    (["compare", "a.json", "cut.json"], "cut short"),
    (["compare", "a.json", "empty.json"], "is empty"),
    (["compare", "a.json", "b.json", "--fail-on", "slow:5%"], "did you mean slower?"),
    (["compare", "a.json", "b.json", "--fail-on", "slower:x"], "write it as slower:5%"),
    (["compare", "a.json", "b.json", "--fail-on", "slower:-5%"], "not a share"),
    (["compare", "a.json", "b.json", "--fail-on", "slower:nan"], "not a share"),
    (["compare", "a.json", "b.json", "--method", "magic"], "magic"),
    (["compare", "a.json", "b.json", "--reference", "qqq"], "no reference"),
    (["compare", "a.json", "b.json", "--reference", "libc", "--method", "paired"], "leave out"),
]


@pytest.mark.parametrize(("arguments", "said"), MISUSE, ids=[" ".join(a) for a, _ in MISUSE])
def test_misuse_is_one_line(tmp_path, call, arguments, said):
    whole = usual(1).save(tmp_path / "a.json").read_text()
    usual(2).save(tmp_path / "b.json")
    Made().row("x", {"other": 3.0}, size=3).save(tmp_path / "other.json")
    Made().row("x", {"libc": 3.0}, size=3).save(tmp_path / "size.json")
    (tmp_path / "text.txt").write_text("hello\n")
    (tmp_path / "cut.json").write_text(whole[: len(whole) // 2])
    (tmp_path / "empty.json").write_text("")
    status, out, err = call(*arguments)
    assert status == 2 and out == "" and err.count("\n") == 1 and said in err


def test_a_run_beside_itself_and_other_cpus_are_told(tmp_path, call):
    made = usual(1)
    a = made.save(tmp_path / "a.json")
    assert "Note: both are the same run." in call("compare", a, a)[1]
    made.run["method"]["pin"] = 0
    made.save(a)
    made.run["method"]["pin"] = 1
    made.run["started"] = "2026-11-21T00:00:00Z"
    b = made.save(tmp_path / "b.json")
    out = call("compare", a, b)[1]
    assert "the first run was pinned to CPU 0, the second to CPU 1" in out and "same run" not in out


def test_other_plans_are_told(tmp_path, call):
    made = usual(1)
    statuses = "the default plan is in force", "plan 'mine' is in force, from /mine.plan"
    paths = []
    for status in (None, *statuses):
        made.run["machine"]["reported"] = {"plan": {"status": status}} if status else {}
        paths.append(made.save(tmp_path / f"{len(paths)}.json"))
    out = " ".join(call("compare", *paths[1:])[1].split())
    assert f"in the first run {statuses[0]}, in the second {statuses[1]}" in out
    for other in (paths[0], paths[2]):
        assert "is in force" not in call("compare", paths[2], other)[1]


def test_shapes_are_called_so(tmp_path, call):
    a = usual(1).save(tmp_path / "a.json")
    b = usual(2, {("wherry", 64): 1.31}).save(tmp_path / "b.json")
    for method, word in (("shapes", "shape"), ("paired", "time")):
        heads = call("compare", a, b, "--method", method)[1].splitlines()
        at = next(i for i, line in enumerate(heads) if " ratio " in line)
        assert heads[at + 1].split()[:3] == ["ns", "ns", word]


def test_a_limit_reads_its_share():
    assert [own.share for own in limits.parse(["slower:5%,faster:2.5", "changed"])] == [
        0.05,
        0.025,
        0,
    ]


def test_places_are_told_by_what_is_not_usual():
    made = Made().row("x", {"a": 1.0}, size=64, src_state="DRAM", src_off=3, mode="latency")
    assert place(made.run["cells"][0]) == "64 B, DRAM to L1, source + 3, latency"
    made.row("x", {"a": 1.0}, size=4096, op="set", overlap=-8)
    assert place(made.run["cells"][1]) == "4K, L1, overlap -8"


def test_the_op_is_told_where_an_experiment_has_several():
    """One line of the table may show one op alone: place and routine do not tell which."""

    def change(op: str) -> judge.Change:
        cell = {"experiment": "x", "op": op, "routine": "wherry", "size": 64, "ns": {"median": 2.0}}
        own = dict.fromkeys(f.name for f in dataclasses.fields(judge.Change))
        return judge.Change(**own | {"a": cell, "b": cell, "ratio": 1.5, "verdict": SLOWER})

    found = compared(usual(1), usual(2))
    several = dataclasses.replace(found, changes=[change("copy_csum"), change("copy_crc32c")])
    head = words.table(several.changes[:1], several, 96)
    assert "copy_csum" in tables.plain(head)
    assert "at copy_csum, 64 B wherry" in words._group(several.changes[:1], 2, SLOWER, True)
    one = dataclasses.replace(found, changes=[change("copy_csum")])
    assert "copy_csum" not in tables.plain(words.table(one.changes, one, 96))


def test_twenty_thousand_cells_are_compared_in_seconds(tmp_path):
    """By their quantiles: nobody waits for that many resamplings."""
    import time

    a = Made(noise=0.01)
    a.row("x", {"libc": 2.0, "wherry": 2.0}, size=1)
    template = a.run["cells"]
    a.run["cells"], a.run["rows"] = [], []
    for n in range(10_000):
        for cell in template:
            a.run["cells"].append(cell | {"row": n, "size": n})
        a.run["rows"].append({"experiment": "x", "row": n})
    start = time.process_time()
    found = judge.compare(a.run, a.run, (Raw(), Raw()))
    assert len(found.changes) == 20_000 and time.process_time() - start < 20


def test_hostile_figures_end_in_no_traceback(tmp_path, call):
    made = usual(1)
    for cell in made.run["cells"]:
        cell["ns"] = dict.fromkeys(cell["ns"], 1e-300)
    made.save(tmp_path / "a.json")
    usual(2).save(tmp_path / "b.json")
    for order in (("a.json", "b.json"), ("b.json", "a.json")):
        status, _, err = call("compare", *order, "--fail-on", "slower:5%")
        assert status in (0, 1) and "bug" not in err
    assert files.load(tmp_path / "a.json")["cells"]
