"""What wherry ab makes of its runs: figures, noise and what it says of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from wherry import runfile
from wherry.ab import figures, record, sides, turns, verdict
from wherry.ab.running import Ran


def made(rng, factor: float, noise: float, rounds: int = 20):
    def ran(mean):
        seconds = mean * float(np.exp(rng.normal(0, noise)))
        return Ran(0, seconds, seconds * 0.9, seconds * 0.1, 1 << 20, 1, "")

    return [(ran(1), ran(1), ran(factor), ran(factor)) for _ in range(rounds)]


def test_a_difference_is_told_from_noise():
    rng = np.random.default_rng(1)
    for factor, call in ((0.9, "faster"), (1.1, "slower")):
        own = figures.of(made(rng, factor, 0.02), "cpu", 0)
        assert own.call == call
        assert own.ratio.low < factor < own.ratio.high
        assert 0.005 <= own.floor < 0.03
        # A part of the time that all runs have is judged alike.
        assert figures.of(made(rng, factor, 0.02), "user", 0).call == call


def test_noise_is_called_a_difference_seldom():
    rng = np.random.default_rng(2)
    calls = [figures.of(made(rng, 1.0, 0.05), "elapsed", i).call for i in range(200)]
    assert calls.count("tie") >= 185


def test_a_part_of_the_time_that_some_runs_do_not_have_has_no_ratio():
    """The kernel splits a short run by its ticks; a microsecond in place of nothing would make +5000 % of it."""

    def ran(user: float) -> Ran:
        return Ran(0, 0.003, user, 0.0027 - user, 1 << 20, 1, "")

    rounds = [(ran(0.0), ran(0.0026), ran(0.0027), ran(0.0026))] * 6
    found = figures.all_of(rounds, 0)
    assert found["user"].ratio is None and figures.negligible(found, "user")
    assert found["cpu"].ratio is not None and not figures.negligible(found, "cpu")
    # The sum is exact in a run of less than a millisecond, too.
    short = [tuple(Ran(0, t, t, 0.0, 1 << 20, 1, "") for t in (8e-4, 8e-4, 6e-4, 6e-4))] * 6
    told = figures.all_of(short, 0)
    assert [m for m in figures.TIMES if figures.negligible(told, m)] == ["user", "system"]
    assert told["cpu"].call == "faster"
    a, b = sides.parse("libc", {}), sides.parse("A=1", {})
    assert "some runs have no user time" in verdict.sentence(a, b, found["user"], 6)


def test_what_a_run_file_says_of_the_runs(tmp_path):
    """B takes 0.8 of A's elapsed time and 1.5 of its memory; of CPU time there is as much, of one part of it not
    always any."""

    def ran(seconds: float, user: float, peak: int) -> Ran:
        return Ran(0, seconds, user, 1 - user, peak, 3, "")

    rounds = [(ran(2.0, 0.0, 100), ran(2.2, 0.6, 100), ran(1.6, 0.6, 150), ran(1.76, 0.6, 150))] * 8
    pair = (sides.parse("libc", {}), sides.parse("A=1", {}))
    for count, untold in ((8, "noise"), (2, "noise"), (1, "one sample")):
        own = turns.Turns(pair, rounds[:count], ["ABBA"] * count, seconds=7.0, stolen=0.25)
        found = figures.all_of(own.rounds, 0)
        run = record.document(
            own, found, "elapsed", "so it is", ["x"], ["ab"], 1, "2026-11-21T08:00:00Z"
        )
        (tmp_path / "run.json").write_bytes(runfile.encode(run))
        run = runfile.read(tmp_path / "run.json")
        told = {
            row["name"]: (row["fastest"], row["tied"], row.get("undecided")) for row in run["rows"]
        }
        few, none, both = count < 4, (None, [], untold), (None, [pair[0].name, "A=1"], None)
        assert told == {
            "CPU time": none if few else both,
            "user time": none,
            "system time": none if few else both,
            "elapsed time": none if few else ("A=1", [], None),
        }
        cells = {(cell["name"], cell["routine"]): cell for cell in run["cells"]}
        one, other = (cells["elapsed time", side.name] for side in pair)
        assert (one["ns"]["median"], other["ns"]["max"]) == (2.1e9, 1.76e9)
        assert one["rounds"] == one["processes"] == 2 * count and one["ratio"] is None
        assert other["ratio"]["median"] == 0.8 and other["ratio"]["to"] == one["routine"]
        assert other.get("verdict") == (None if few else "faster")
        assert cells["user time", "A=1"]["ratio"] is None
        (entry,) = run["experiments"]
        assert (entry["processes"], entry["rounds"], entry["complete"]) == (4 * count, count, True)
        assert run["noise"]["floor"] == entry["noise_floor"] == found["elapsed"].floor
        said = entry["ab"]
        assert (said["a"]["environment"], said["b"]["environment"]) == ({}, {"A": "1"})
        assert (said["rounds"], said["stolen"], said["verdict"]) == (count, 0.25, "so it is")
        assert said["call"] == ("tie" if few else "faster") and said["by"] == "elapsed"
        peak = said["metrics"]["peak"]
        assert (peak["unit"], peak["a"], peak["b"]) == ("bytes", 100, 150)
        assert peak["ratio"]["median"] == 1.5 and peak["call"] == ("tie" if few else "slower")
        assert said["metrics"]["cpu"]["unit"] == "s" and said["metrics"]["user"]["ratio"] is None
        assert said["runs"][0][2]["elapsed"] == 1.6 and said["runs"][0][2]["processes"] == 3


def test_what_is_far_apart_by_chance_alone_is_no_tie():
    """Six times the time in the middle, and less than libc's in three rounds of eight."""
    rounds = [
        tuple(Ran(0, t, t, 0.0, 1 << 20, 1, "") for t in (1.0, 1.0, other, other))
        for other in (0.2, 0.25, 0.3, 5.0, 8.0, 30.0, 40.0, 50.0)
    ]
    own = turns.Turns((sides.parse("libc", {}), sides.parse("A=1", {})), rounds, ["ABBA"] * 8)
    found = figures.all_of(rounds, 0)
    assert found["cpu"].ratio.median > 6 and found["cpu"].ratio.low < 1
    said = verdict.sentence(*own.sides, found["cpu"], 8)
    assert said.startswith("Not decided")
    rows, cells = record._rows(own, found)
    assert rows[0]["undecided"] == "noise" and rows[0]["tied"] == []
    assert not any("verdict" in cell for cell in cells if cell["row"] == 0)


def test_few_rounds_decide_nothing():
    own = figures.of(made(np.random.default_rng(3), 0.5, 0.001, rounds=3), "cpu", 0)
    assert own.call == "tie"


def test_the_noise_floor_grows_with_the_noise():
    floors = [
        figures.of(made(np.random.default_rng(4), 1.0, noise), "cpu", 0).floor
        for noise in (0.001, 0.02, 0.2)
    ]
    assert floors[0] == 0.005 and floors[0] < floors[1] < floors[2]


def test_a_round_is_the_ratio_of_its_geometric_means():
    def ran(seconds: float) -> Ran:
        return Ran(0, seconds, seconds, 0.0, int(1e6 * seconds), 1, "")

    own = figures.of([tuple(map(ran, (2.0, 2.4, 3.0, 3.9)))] * 5, "elapsed", 0)
    assert (own.a, own.b) == pytest.approx((2.2, 3.45))
    assert own.ratio.median == pytest.approx((3.0 * 3.9 / (2.0 * 2.4)) ** 0.5)
    assert own.rounds == pytest.approx([np.log(own.ratio.median)] * 5)
    assert [own.alike[side][4] for side in (0, 1)] == pytest.approx(np.log([2 / 2.4, 3 / 3.9]))
    peak = figures.of([tuple(map(ran, (2.0, 2.4, 3.0, 3.9)))] * 5, "peak", 0)
    assert (peak.a, peak.b) == pytest.approx((2.2e6, 3.45e6))


def test_the_noise_floor_is_that_of_rounds_whose_sides_are_one():
    rng = np.random.default_rng(7)
    a, b = rng.normal(0.03, 0.02, 9), rng.normal(0, 0.06, 9)
    null = []
    for _ in range(20_000):
        rounds = [
            (rng.choice((-1, 1)) * a[i] + rng.choice((-1, 1)) * b[i]) / 2
            for i in rng.integers(9, size=9)
        ]
        null.append(abs(np.median(rounds)))
    floor = figures.noise_floor(a, b, rng)
    assert floor == pytest.approx(np.expm1(np.quantile(null, 0.95)), rel=0.06)


def test_what_a_reader_should_know_beside_the_verdict():
    def said(seconds=1.0, works=1.0, stolen=None, b="dropin", **calls) -> str:
        rounds = made(np.random.default_rng(5), 1.0, 0.02)
        found = {metric: figures.of(rounds, metric, 0) for metric in figures.METRICS}
        for metric, call in calls.items():
            found[metric] = replace(found[metric], call=call)
        found["elapsed"] = replace(found["elapsed"], a=seconds, b=2 * seconds)
        found["cpu"] = replace(found["cpu"], a=works, b=2 * works)
        pair = [sides.Side(name, name, {}, name == "dropin") for name in ("libc", b)]
        return " ".join(verdict.remarks(*pair, found, stolen))

    assert "A run lasts 12.0 ms: loading one more object" in said(0.012)
    # As it is of one that waits for the most part.
    assert "A run takes 1.2 ms of CPU time: loading one more object" in said(works=0.0012)
    # Both load as many, or it is little beside the run.
    assert "loading" not in said(0.012, b="A=1") and "loading" not in said(0.021)
    assert "The hypervisor took 3.0 % of the machine's time" in said(stolen=0.03)
    assert "hypervisor" not in said(stolen=0.01) and "hypervisor" not in said()
    assert "do not agree" in said(cpu="slower", elapsed="faster")
    assert "do not agree" not in said(cpu="slower", elapsed="tie")
    # What is decided needs no other way to tell it.
    assert "wherry record" in said() and "wherry record" not in said(cpu="slower")


def test_to_stay_with_is_the_side_that_is_held_against():
    own = figures.of(made(np.random.default_rng(1), 1.1, 0.01), "cpu", 0)
    libc, other = (sides.Side(name, name, {}, False) for name in ("libc", "A=1"))
    assert verdict.sentence(libc, other, own, 20).endswith("; keep libc.")
    assert verdict.sentence(other, libc, own, 20).endswith("; keep A=1.")


def test_no_difference_names_what_tells_more():
    rounds = made(np.random.default_rng(5), 1.0, 0.02)
    found = {metric: figures.of(rounds, metric, 0) for metric in figures.METRICS}
    assert found["cpu"].call == "tie"
    libc, drop_in = (sides.Side(name, name, {}, name != "libc") for name in ("libc", "dropin"))
    assert any("wherry record" in said for said in verdict.remarks(libc, drop_in, found, None))
    # Two settings of libc have no trial.
    assert not any("wherry record" in said for said in verdict.remarks(libc, libc, found, None))


@pytest.mark.parametrize(
    ("a", "b", "options"),
    [
        ("libc", "dropin", ""),
        ("plan:default", "libc", ""),
        ("libc", "plan:my.toml", "--plan my.toml "),
        ("libc", "'preload:a b.so'", "--try 'a b.so' "),
        ("dropin", "plan:my.toml", None),
        ("libc", "dropin A=1", None),
        ("A=1", "preload:a.so", None),
        ("libc", "preload:other.so", None),
        ("libc", "A=1", None),
    ],
)
def test_a_trial_of_the_same_is_named_where_there_is_one(
    a, b, options, tmp_path, monkeypatch, build_dir
):
    """The drop-in's by turns say nothing of another library, and wherry record tries none without such a function."""
    monkeypatch.chdir(tmp_path)
    for name, library in (("a b", "slow"), ("other", "nothing")):
        made_of = build_dir / f"tests/c/recorder/librecorder-{library}.so"
        (tmp_path / f"{name}.so").symlink_to(made_of)
    rounds = made(np.random.default_rng(5), 1.0, 0.02)
    found = {metric: figures.of(rounds, metric, 0) for metric in figures.METRICS}
    pair = [sides.Side(what, what, {}, what not in ("libc", "A=1")) for what in (a, b)]
    said = " ".join(verdict.remarks(*pair, found, None))
    assert ("wherry record" in said) == (options is not None)
    assert options is None or f"wherry record {options}--runs 5 -- CMD gives" in said


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (1.032, "+3.2 %"),
        (0.95, "−5.0 %"),
        (0.9996, "0.0 %"),
        (1.0004, "0.0 %"),
        (1.994, "+99.4 %"),
        (1.9951, "+100 %"),
    ],
)
def test_changes_in_words(ratio, said):
    assert verdict.change(ratio) == said


def test_one_round_has_no_interval():
    own = figures.of(made(np.random.default_rng(3), 0.5, 0.001, rounds=1), "cpu", 0)
    assert not own.ratio.told and own.call == "tie" and verdict.interval(own.ratio) == "-"
