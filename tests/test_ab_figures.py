"""What wherry ab makes of its runs: figures, noise and what it says of them."""

from __future__ import annotations

import numpy as np
import pytest
from wherry.ab import figures, sides, verdict
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


def test_few_rounds_decide_nothing():
    own = figures.of(made(np.random.default_rng(3), 0.5, 0.001, rounds=3), "cpu", 0)
    assert own.call == "tie"


def test_the_noise_floor_grows_with_the_noise():
    floors = [
        figures.of(made(np.random.default_rng(4), 1.0, noise), "cpu", 0).floor
        for noise in (0.001, 0.02, 0.2)
    ]
    assert floors[0] == 0.005 and floors[0] < floors[1] < floors[2]


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


def test_one_round_has_no_interval():
    own = figures.of(made(np.random.default_rng(3), 0.5, 0.001, rounds=1), "cpu", 0)
    assert not own.ratio.told and own.call == "tie" and verdict.interval(own.ratio) == "-"
