"""`wherry compare` as a command: what it prints, its exit status, misuse."""

from __future__ import annotations

import dataclasses
import json

import pytest
from made_runs import Made, usual
from wherry import tables
from wherry.compare import judge, limits, words
from wherry.compare.judge import SLOWER, UNCHANGED, UNDECIDED
from wherry.compare.sides import Side
from wherry.formats import files
from wherry.formats.places import place
from wherry.formats.samples import Raw


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


@pytest.mark.parametrize(
    ("limit", "named"), [("slower:5%", "1.02x"), ("faster:5%", "0.61x"), ("changed:90%", "0.61x")]
)
def test_what_has_no_interval_may_be_beyond_any_limit(tmp_path, call, limit, named):
    """Of a single sample nobody knows how far it is from the truth."""
    paths = []
    for name, times in (("a", (10.0, 10.0)), ("b", (10.2, 6.1))):
        made = Made(floor=None, noise=0)
        for size, ns in zip((64, 128), times, strict=True):
            made.row("cells", {"libc": ns}, size=size)
        for cell in made.run["cells"]:
            cell |= {"rounds": 1, "processes": 1}
        paths.append(made.save(tmp_path / f"{name}.json"))
    status, out, _ = call("compare", *paths, "--fail-on", limit)
    said = " ".join(out.split())
    assert status == 0 and f"Undecided for {limit}: 2 cells may be beyond it" in said
    # What went furthest that way.
    assert f"({named}); measure again" in said


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


@pytest.mark.parametrize(
    ("limit", "status"),
    [("faster:20%", 1), ("changed:20%", 1), ("faster:60%", 0), ("faster:38%", 0), ("slower", 0)],
)
def test_limits_of_what_takes_less_time(tmp_path, call, limit, status):
    """By as much as the other would be slower: 0.73 of the time is 37 % faster."""
    a = usual(1).save(tmp_path / "a.json")
    b = usual(2, {("wherry", 64): 0.73}).save(tmp_path / "b.json")
    got, out, _ = call("compare", a, b, "--fail-on", limit)
    assert got == status and ("FAILED" in out) == bool(status)


def test_the_noise_floor_is_the_bar(tmp_path, call):
    """However small the limit: what lies within the noise fails nobody, and the user is told that it hides more."""
    a = usual(1, floor=0.1).save(tmp_path / "a.json")
    b = usual(2, {"wherry": 1.08}, floor=0.1).save(tmp_path / "b.json")
    status, out, _ = call("compare", a, b, "--fail-on", "slower:1%")
    assert status == 0 and "The noise floor is 14 % at most: below it slower:1% sees" in out
    assert "sees nothing" not in call("compare", a, b, "--fail-on", "slower:20%")[1]


@pytest.mark.parametrize(
    ("clock", "times"), [(0.9, "0.90x"), (1.1, "1.10x"), (0.97, None), (1.03, None)]
)
def test_of_a_clock_so_much_is_taken_out_and_no_more(tmp_path, call, clock, times):
    """Beyond that it is a change, and told, whichever way it went."""
    a = usual(1).save(tmp_path / "a.json")
    b = usual(2, clock=clock).save(tmp_path / "b.json")
    said = " ".join(call("compare", a, b)[1].split())
    assert ("whose code is the same" in said) == (times is not None)
    assert times is None or f"whose code is the same, took {times} the time" in said
    assert (" 0 slower, 0 faster" in said) == (times is None)


@pytest.mark.parametrize(
    ("log", "error", "verdict"),
    [
        (0.01, 0.01, UNCHANGED),
        (0.01, 0.06, UNDECIDED),
        (0.07, 0.001, SLOWER),
        (0.07, 0.03, UNDECIDED),
    ],
)
def test_unchanged_is_what_could_not_be_much_more_than_the_noise(log, error, verdict):
    own = judge._change({}, {}, Side(log, error, 10.0, False), 0.05, 0.0, (2.0, 3.0))
    assert own.verdict == verdict


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


@pytest.mark.parametrize("form", ["benchfmt", "google-benchmark"])
@pytest.mark.parametrize(
    ("key", "value", "usual_one"),
    [
        ("places", "change", "repeat"),
        ("ascending", "both", "none"),
        ("handed", "source", "none"),
        ("code", "cold", "warm"),
        ("delta", 64, "any"),
    ],
)
def test_what_a_run_leaves_out_is_as_usual_also_beside_its_export(
    tmp_path, call, key, value, usual_one, form
):
    """Else calls of another kind would be compared as if alike."""
    for name, more in (("plain", {}), ("special", {key: value})):
        Made().row("x", {"libc": 3.0}, size=64, **more).save(tmp_path / f"{name}.json")
        assert call("export", f"{name}.json", "--format", form, "-o", f"{name}.out")[0] == 0
        assert call("import", f"{name}.out", "-o", f"{name}.in.json")[0] == 0
    for one, other, values in (
        ("plain.json", "special.json", (usual_one, value)),
        ("plain.json", "special.in.json", (usual_one, value)),
        ("special.json", "plain.in.json", (value, usual_one)),
        ("special.in.json", "plain.json", (value, usual_one)),
    ):
        status, _, said = call("compare", one, other)
        assert status == 2, (one, other)
        assert f"{key} is {values[0]} in one, {values[1]} in the other" in said
    for name in ("plain", "special"):
        assert call("compare", f"{name}.json", f"{name}.in.json")[0] == 0


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


def _of_ab(path, words, tunables, old=False):
    made = Made().row("ab", {"libc": 1e9, "tunables": 1e9}, op="other", name="CPU time")
    sides = {"a": {"name": "libc", "what": "libc"}, "b": {"name": "tunables", "what": tunables}}
    made.run["experiments"][0]["ab"] = sides if old else sides | {"program": words}
    if old:
        made.run["method"]["command"] = ["wherry", "ab", "--tunables", tunables, "--", *words]
    return made.save(path)


@pytest.mark.parametrize("old", [False, True])
def test_other_programs_and_other_sides_of_one_name_are_told(tmp_path, call, old):
    """CPU time under libc is of whatever was run."""
    one = _of_ab(tmp_path / "a.json", ["sort", "a b"], "glibc.x=1")
    two = _of_ab(tmp_path / "b.json", ["sort", "c"], "glibc.x=1", old)
    three = _of_ab(tmp_path / "c.json", ["sort", "a b"], "glibc.x=2", old)
    said = " ".join(call("compare", one, two)[1].split())
    assert "the first run is of sort 'a b', the second of sort c: two programs." in said
    assert " is glibc.x" not in said
    said = " ".join(call("compare", one, three)[1].split())
    assert "tunables is glibc.x=1 in the first run and glibc.x=2 in the second." in said
    assert "two programs" not in said
    assert "Note" not in call("compare", one, one)[1].replace("Note: both are the same run", "")


@pytest.mark.parametrize("kept", [True, False])
def test_another_mix_of_the_same_name_is_told(tmp_path, call, kept):
    """What wherry record writes is named by the command alone."""

    def one(name, mean, digest):
        made = Made().row("mixes", {"libc": 2.0, "wherry": 2.0}, mix="@python.copy")
        for cell in made.run["cells"]:
            cell["bytes"] = mean
        if kept:
            told = {"name": "python.copy", "ops": ["copy"], "mean": mean, "largest": mean}
            told |= {"percentiles": {"50": mean}, "up_to_16": 0.0, "up_to_64": 1.0}
            made.run["mixes"] = [told | {"sha256": digest}]
        return made.save(tmp_path / name)

    first, same = one("a.json", 64, "1" * 64), one("b.json", 65, "1" * 64)
    other = one("c.json", 64 if kept else 4096, "2" * 64)
    status, out, _ = call("compare", first, same)
    assert status == 0 and "another mix" not in out
    said = " ".join(call("compare", first, other)[1].split())
    assert said.count("python.copy is another mix in the second run than in the first") == 1


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

    found = judge.compare(usual(1).run, usual(2).run, (Raw(), Raw()))
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
