"""The arithmetic behind a figure: medians, intervals, verdicts that do not fool themselves."""

import numpy as np
import pytest
from wherry import stats
from wherry.experiments import small

SEED = 12345


def noisy(rng, centre, processes=5, rounds=9, within=0.01, between=0.0):
    """Samples whose processes differ among themselves, as fresh processes do."""
    shift = rng.normal(0, between, processes) if between else np.zeros(processes)
    return {p: centre * np.exp(shift[p] + rng.normal(0, within, rounds)) for p in range(processes)}


def test_quantiles_are_of_all_rounds_of_all_processes():
    found = stats.quantiles({0: np.array([1.0, 2.0]), 1: np.array([3.0, 4.0, 5.0])})
    assert found["min"] == 1 and found["median"] == 3 and found["max"] == 5
    assert list(found) == ["min", "q05", "q25", "median", "q75", "q95", "max"]


def test_ratio_pairs_the_same_round_of_the_same_process():
    # Each round is disturbed alike for both: unpaired medians would differ wildly, the pairs do not.
    weather = {0: np.array([1.0, 5.0, 2.0]), 1: np.array([9.0, 1.0, 3.0])}
    other = {p: 2 * values for p, values in weather.items()}
    ratio = stats.bootstrap(stats.log_ratios(other, weather), np.random.default_rng(SEED))
    assert ratio.median == pytest.approx(2) and ratio.low == pytest.approx(2)


def test_only_processes_that_measured_both_count():
    pairs = stats.log_ratios({0: np.array([2.0]), 1: np.array([8.0])}, {1: np.array([4.0])})
    assert len(pairs) == 1 and np.exp(pairs[0][0]) == pytest.approx(2)
    assert stats.bootstrap([], np.random.default_rng(SEED)) is None


def test_interval_resamples_processes_not_rounds():
    """With processes that differ, many rounds must not shrink the interval to nothing."""
    rng = np.random.default_rng(SEED)
    base = {p: np.ones(200) for p in range(5)}
    other = noisy(rng, 1.0, rounds=200, within=0.001, between=0.05)
    ratio = stats.bootstrap(stats.log_ratios(other, base), rng)
    assert ratio.high / ratio.low > 1.02


def test_interval_covers_the_truth_most_of_the_time():
    rng = np.random.default_rng(SEED)
    held = 0
    for _ in range(60):
        pairs = [rng.normal(0.1, 0.02, 9) for _ in range(7)]
        ratio = stats.bootstrap(pairs, rng, 200)
        held += ratio.low <= np.exp(0.1) <= ratio.high
    assert held >= 48


@pytest.mark.parametrize("processes", [1, 2, 3, 5])
def test_interval_of_few_processes_covers_the_truth(processes):
    """Resampling two processes that differ, it would leave out the truth every other time; the rounds of one are taken
    as they are."""
    rng = np.random.default_rng(SEED)
    between, within = (0.02, 0.005) if processes > 1 else (0, 0.02)
    held = 0
    for _ in range(200):
        pairs = [
            rng.normal(0.1 + rng.normal(0, between), within, 5 if processes > 1 else 4)
            for _ in range(processes)
        ]
        ratio = stats.interval(pairs, rng, 100)
        held += ratio.low <= np.exp(0.1) <= ratio.high
    assert held >= 182


@pytest.mark.parametrize("rounds", [(3, 9, 6), (8, 4), (12,), (1, 5)])
def test_an_interval_is_that_of_medians_drawn_one_by_one(rounds):
    """Processes first, then as many rounds of each as the longest has."""
    rng = np.random.default_rng(SEED)
    own = [rng.normal(0.4 * place, 0.3, n) for place, n in enumerate(rounds)]
    drawn = [
        np.median([rng.choice(own[p], max(rounds)) for p in rng.integers(len(own), size=len(own))])
        for _ in range(4000)
    ]
    found = stats.bootstrap(own, rng, 4000)
    assert found.median == pytest.approx(np.exp(np.median(np.concatenate(own))))
    ends = np.quantile(drawn, (0.025, 0.975))
    assert np.log([found.low, found.high]) == pytest.approx(ends, abs=0.05)


def test_an_interval_leaves_out_a_fortieth_at_each_end_and_holds_the_median():
    draws = np.linspace(0, 1, 41)
    own = stats.between(0.5, draws)
    assert np.log([own.low, own.median, own.high]) == pytest.approx([0.025, 0.5, 0.975])
    beyond = [stats.between(log, draws) for log in (-1.0, 2.0)]
    assert (beyond[0].low, beyond[1].high) == (beyond[0].median, beyond[1].median)
    for count in (1, 2, 5, 6):
        rows = np.random.default_rng(SEED).normal(size=(7, count))
        assert stats._medians(rows.copy()) == pytest.approx(np.median(rows, axis=1))


def test_rounds_that_one_of_two_lacks_are_left_out():
    pairs = stats.log_ratios(
        {0: np.array([2.0, 4.0, 8.0]), 1: np.array([]), 2: np.array([6.0])},
        {0: np.array([1.0, 1.0]), 1: np.array([1.0]), 2: np.array([2.0, 1.0])},
    )
    assert [np.exp(own).tolist() for own in pairs] == [pytest.approx([2, 4]), pytest.approx([3])]


def test_processes_of_different_length():
    ratio = stats.bootstrap([np.zeros(3), np.zeros(7), np.zeros(1)], np.random.default_rng(SEED))
    assert (ratio.low, ratio.median, ratio.high) == (1, 1, 1)


def test_noise_floor_has_a_least_value_and_sees_noise():
    quiet = {0: np.ones(5)}
    assert stats.noise_floor([(quiet, quiet)]) == stats.LEAST_FLOOR
    assert stats.noise_floor([]) is None
    loud = {0: np.full(5, 1.08)}
    assert stats.noise_floor([(loud, quiet)]) == pytest.approx(0.08)


def test_verdict_names_a_clear_leader_with_its_lead():
    rng = np.random.default_rng(SEED)
    cells = {"a": noisy(rng, 10), "b": noisy(rng, 12), "c": noisy(rng, 20)}
    found = stats.verdict(cells, 0.01, rng)
    assert found.fastest == "a" and found.tied == ()
    assert found.lead.median == pytest.approx(1.2, rel=0.03)


def test_verdict_calls_a_tie_a_tie():
    rng = np.random.default_rng(SEED)
    cells = {"a": noisy(rng, 10), "b": noisy(rng, 10.02), "c": noisy(rng, 20)}
    found = stats.verdict(cells, 0.01, rng)
    assert found.fastest is None and set(found.tied) == {"a", "b"}


def test_a_lead_within_the_noise_floor_is_a_tie():
    rng = np.random.default_rng(SEED)
    cells = {"a": noisy(rng, 10, within=1e-4), "b": noisy(rng, 10.4, within=1e-4)}
    assert stats.verdict(cells, 0.01, rng).fastest == "a"
    assert stats.verdict(cells, 0.05, rng).fastest is None


def test_equal_routines_seldom_get_a_winner():
    """The luckiest of twenty equals must not be crowned: it is picked on one half and judged on the other."""
    rng = np.random.default_rng(SEED)
    crowned = sum(
        stats.verdict(
            {f"r{i}": noisy(rng, 10, within=0.03) for i in range(20)}, 0.005, rng, 200
        ).fastest
        is not None
        for _ in range(20)
    )
    assert crowned <= 1


def test_the_fastest_is_picked_on_one_half_of_the_rounds_and_judged_on_the_other():
    rng = np.random.default_rng(SEED)
    # Ahead in the first round, the third and so on, behind in the others.
    cells = {"lucky": {0: np.array([9.0, 11.0] * 4)}, "b": {0: np.full(8, 9.9)}}
    found = stats.race(cells, rng)
    ratio, units = found.others["b"]
    assert found.best == "lucky" and ratio.median == pytest.approx(9.9 / 11) and len(units) == 4
    # By the median: a round beside a neighbour does not count.
    cells["lucky"][0][0] = 1000.0
    assert stats.race(cells, rng).best == "lucky"
    cells["lucky"][0][0] = 9.0
    # With fewer rounds, or where one half has hardly any, it is picked and judged on all.
    few = {name: {0: own[0][:7]} for name, own in cells.items()}
    single = {
        name: {p: own[0][p : p + 1] for p in range(7)} | {7: own[0][:2]}
        for name, own in cells.items()
    }
    for own in (few, single):
        found = stats.race(own, rng)
        assert found.best == "lucky" and found.others["b"][0].median == pytest.approx(9.9 / 9)
    enough = {p: np.ones(2 if p < 3 else 1) for p in range(5)}
    assert stats.can_halve([{0: np.ones(8)}, enough])
    assert not stats.can_halve([{0: np.ones(8)}, {0: np.ones(7)}])
    assert not stats.can_halve([single["b"] | {7: np.ones(1)}, {0: np.ones(8)}])


def test_a_row_of_one_or_none_has_no_race():
    rng = np.random.default_rng(SEED)
    assert stats.verdict({}, 0.01, rng).fastest is None
    assert stats.verdict({"a": {0: np.ones(3)}}, 0.01, rng) == stats.Verdict(None, (), None)
    # Whoever has none at all is no reason for a verdict's lack.
    assert stats.verdict({"a": {0: np.ones(3)}, "b": {}}, 0.01, rng) == stats.Verdict(
        None, (), None
    )
    apart = {"a": {0: np.ones(3)}, "b": {1: np.ones(3)}}  # no process has both
    assert stats.verdict(apart, 0.01, rng).undecided
    assert stats.noise_floor([tuple(apart.values())]) is None


def test_noise_of_single_processes_averages_out_of_the_floor():
    """Layouts differ from process to process in both directions; the figures compared are medians over all of them."""
    quiet = {p: np.ones(5) for p in range(9)}
    shaken = {p: np.full(5, 1 + 0.05 * (p % 3 - 1)) for p in range(9)}
    assert stats.noise_floor([(shaken, quiet)]) == stats.LEAST_FLOOR


def test_one_sample_has_no_interval_and_no_verdict():
    rng = np.random.default_rng(SEED)
    one = {"libc": {0: np.array([10.0])}, "x": {0: np.array([260.0])}}
    ratio = stats.interval(stats.log_ratios(one["x"], one["libc"]), rng)
    assert ratio.median == pytest.approx(26) and not ratio.told
    assert ratio.as_dict() == {"median": ratio.median, "low": None, "high": None}
    assert stats.call(ratio, 0.01, 0.0) is None
    assert stats.verdict(one, 0.01, rng) == stats.Verdict(None, (), None, stats.ONE_SAMPLE)
    # Two are enough, though what they tell is little.
    assert stats.interval([np.array([0.1, 0.2])], rng).told
    # Whoever has one where others have more runs in no race.
    others = {"libc": noisy(rng, 10), "wherry": noisy(rng, 8), "x": one["x"]}
    assert stats.verdict(others, 0.01, rng).fastest == "wherry"


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        ((1.06, 1.04, 1.08), "slower"),
        ((1.06, 0.99, 1.08), "tie"),  # the interval holds 1
        ((1.04, 1.03, 1.06), "tie"),  # within the noise floor
        ((0.94, 0.92, 0.96), "faster"),
        ((0.94, 0.92, 1.01), "tie"),
        ((0.96, 0.94, 0.97), "tie"),
    ],
)
def test_what_is_called_so_survives_all_three(ratio, said):
    assert stats.call(stats.Ratio(*ratio), 0.05, 0.04) == said
    assert stats.call(stats.Ratio(*ratio), 0.05, 0.06) == "tie"


def test_what_takes_many_times_as_long_is_no_tie():
    """Two rounds that are far apart tell nothing of 26 times as long: that is no tie, and no lead either."""
    rng = np.random.default_rng(SEED)
    cells = {"libc": {0: np.array([10.0, 40.0])}, "x": {0: np.array([1000.0, 260.0])}}
    assert stats.verdict(cells, 0.01, rng) == stats.Verdict(None, (), None, stats.NOISE)
    cells["wherry"] = {0: np.array([12.0, 38.0])}
    found = stats.verdict(cells, 0.01, rng)
    # Whether it is behind those that tie is not told either.
    assert set(found.tied) == {"libc", "wherry", "x"} and found.undecided is None
    assert stats.call(stats.Ratio(26.0, 0.5, 900.0), 0.01, 0.5) is None
    assert stats.call(stats.Ratio(26.0, 20.0, 30.0), 40.0, 0.01) is None  # nor within a floor
    assert stats.call(stats.Ratio(1.2, 0.5, 3.0), 0.01, 0.5) == "tie"


def test_rounds_that_have_no_second_half_are_not_halved():
    """Of eight processes with a round each the second half is empty, and would leave the first of a race alone."""
    rng = np.random.default_rng(SEED)
    cells = {
        name: noisy(rng, centre, processes=8, rounds=1)
        for name, centre in (("a", 10), ("b", 10.01))
    }
    assert set(stats.race(cells, rng).others) == {"b"} or set(stats.race(cells, rng).others) == {
        "a"
    }
    assert stats.verdict(cells, 0.01, rng).fastest is None


@pytest.mark.parametrize(
    ("more", "said"), [(0.2, "cost libc nothing here that is beyond the noise"), (2.0, "+2.0 ns")]
)
def test_what_tails_cost_is_told_where_it_is_beyond_the_noise(more, said):
    rows = [{"row": size, "size": size} for size in (*small.TAILS, *small.EVEN)]
    cells = {
        row["row"]: {"libc": {"ns": {"median": 4.0 + more * (row["size"] in small.TAILS)}}}
        for row in rows
    }
    assert said in small.EXPERIMENT._tails(rows, cells, 0.1)
