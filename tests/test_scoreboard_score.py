"""The arithmetic of the scoreboard: who picks does not fool himself, intervals cover, regions weigh the same."""

import numpy as np
import pytest
from wherry import stats
from wherry.scoreboard import score

SEED = 2026
ROWS = (0, 1, 2)


def table(rng, times, rows=ROWS, processes=5, rounds=10, within=0.02, between=0.0):
    """Samples by row and routine. What disturbs a process disturbs all its rows alike."""
    shift = {name: rng.normal(0, between, processes) for name in times}
    return {
        (row, name): {
            process: centre * np.exp(shift[name][process] + rng.normal(0, within, rounds))
            for process in range(processes)
        }
        for name, centre in times.items()
        for row in rows
    }


def judge(samples, rng, resamples=200):
    return score.Judge(samples, rng, resamples)


def scored(own, envelope, floor=0.005, rows=ROWS):
    found = score.region(
        own,
        "r",
        rows,
        wherry="wherry",
        libc="libc",
        envelope=envelope,
        beside=["libc"],
    )
    return score.settled([found], wherry="wherry", floor=floor)[0]


def test_the_best_of_many_is_not_the_luckiest_of_many():
    """Thirty peers that are all as fast as Wherry: picked and measured on the same rounds, the best of them would look
    faster than it is; measured on the other half it does not."""
    rng = np.random.default_rng(SEED)
    names = [f"p{i}" for i in range(30)]
    times = dict.fromkeys(["wherry", "libc", *names], 1.0)
    honest, lucky = [], []
    for _ in range(25):
        own = judge(table(rng, times, within=0.05), rng, 2)
        best = own.best(ROWS, names, "wherry")
        honest.append(own.point(own.judge, ROWS, "wherry", best))
        lucky.append(own.point(own.pick, ROWS, "wherry", best))
    assert abs(np.mean(honest)) < 0.006
    assert np.mean(lucky) > 0.015


@pytest.mark.parametrize("processes", [2, 5])
def test_the_best_of_many_is_not_the_luckiest_of_many_layouts(processes):
    """What lasts as long as a process is in both halves of its rounds: other processes pick."""
    rng = np.random.default_rng(SEED)
    names = [f"p{i}" for i in range(12)]
    times = dict.fromkeys(["wherry", "libc", *names], 1.0)
    best, single = [], []
    for _ in range(25):
        own = judge(table(rng, times, processes=processes, within=0.005, between=0.02), rng, 2)
        found = [scored(own, ["libc", *names])]
        total = score.total(own, found, wherry="wherry", envelope=["libc", *names])
        best.append(total.to_envelope.log)
        single.append(total.to_single.log)
    assert abs(np.mean(best)) < 0.009 and abs(np.mean(single)) < 0.009


def test_halves_are_disjoint_and_too_few_rounds_are_not_halved():
    first, second = score.halves({0: np.arange(5.0)})
    assert list(first[0]) == [0, 2, 4] and list(second[0]) == [1, 3]
    rng = np.random.default_rng(SEED)
    few = judge(
        table(rng, {"wherry": 1.0}, rows=(0,), processes=1, rounds=stats.LEAST_TO_HALVE - 1), rng
    )
    many = judge(
        table(rng, {"wherry": 1.0}, rows=(0,), processes=1, rounds=stats.LEAST_TO_HALVE), rng
    )
    assert few.halved == {0: False} and many.halved == {0: True}
    assert len(few.judge[0, "wherry"][0]) == stats.LEAST_TO_HALVE - 1


@pytest.mark.parametrize(
    ("wherry", "word", "fastest"),
    [(0.9, "ahead", "wherry"), (1.0, "tie", None), (1.1, "behind", "a")],
)
def test_verdicts(wherry, word, fastest):
    rng = np.random.default_rng(SEED)
    own = judge(table(rng, {"libc": 1.5, "wherry": wherry, "a": 1.0, "b": 1.3}), rng)
    found = scored(own, ["libc", "a", "b"], floor=0.02)
    assert (found.best, found.verdict, found.fastest) == ("a", word, fastest)
    assert set(found.tied) == (set() if fastest else {"wherry", "a"})
    ratio = found.to_best.ratio()
    assert ratio.low <= wherry <= ratio.high or ratio.median == pytest.approx(wherry, rel=0.01)


@pytest.mark.parametrize("wherry", [1.02, 0.96])
def test_marks_and_words_agree(wherry):
    """Whoever the words call behind has no mark, near the edge too; nor has the best peer where Wherry is ahead."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        times = {"libc": 1.03, "wherry": wherry, "a": 1.0}
        own = judge(table(rng, times, rows=(0,), processes=3, rounds=6, between=0.02), rng, 50)
        found = scored(own, ["libc", "a"], rows=(0,))
        marked = {found.fastest, *found.tied, *found.unsure}
        if found.leader != "wherry":
            assert ("wherry" in marked) != (found.verdict == "behind")
        else:
            assert (found.best in marked) != (found.verdict == "ahead")


def test_ahead_of_every_peer_is_no_lead_over_what_stands_beside_them():
    rng = np.random.default_rng(SEED)
    own = judge(table(rng, {"libc": 1.0, "wherry": 0.9, "mine": 0.8}), rng)
    found = score.region(
        own, "r", ROWS, wherry="wherry", libc="libc", envelope=["libc"], beside=["mine"]
    )
    (found,) = score.settled([found], wherry="wherry", floor=0.005)
    assert (found.best, found.verdict) == ("libc", "ahead")
    assert (found.leader, found.fastest, found.tied) == ("mine", "mine", ())


def test_a_difference_within_the_noise_floor_is_a_tie():
    rng = np.random.default_rng(SEED)
    own = judge(table(rng, {"libc": 1.0, "wherry": 1.03}, within=0.001), rng)
    assert scored(own, ["libc"], floor=0.005).verdict == "behind"
    assert scored(own, ["libc"], floor=0.05).verdict == "tie"


@pytest.mark.parametrize(("floor", "word"), [(0.02, "undecided"), (0.2, "tie")])
def test_what_chance_may_have_done_is_a_tie_within_the_noise_floor_alone(floor, word):
    """Two processes that do not agree, a tenth apart in the middle; b is behind in both."""
    rng = np.random.default_rng(SEED)
    samples = table(rng, {"libc": 1.0, "wherry": 1.0, "b": 1.5}, processes=2, within=0.001)
    for (_, name), of in samples.items():
        if name == "wherry":
            of[0] = of[0] * 0.82
            of[1] = of[1] * 1.01
    found = scored(judge(samples, rng), ["libc", "b"], floor=floor)
    assert (found.best, found.verdict, found.fastest) == ("libc", word, None)
    both = {"wherry", "libc"}
    assert (set(found.tied), set(found.unsure)) == (
        (both, set()) if word == "tie" else (set(), both)
    )


def test_intervals_cover_though_processes_disturb_all_rows_alike():
    """Were processes drawn for each row alone, the rows' errors would average out and the interval be too narrow."""
    rng = np.random.default_rng(SEED)
    held = 0
    for _ in range(60):
        samples = table(
            rng,
            {"libc": 1.0, "wherry": 1.1},
            rows=range(8),
            processes=7,
            between=0.03,
            within=0.005,
        )
        own = judge(samples, rng, 150)
        ratio = own.compare(own.all, range(8), "wherry", "libc").ratio()
        held += ratio.low <= 1.1 <= ratio.high
    assert held >= 45


def test_a_process_left_out_of_a_row_is_left_out_of_its_pairs():
    samples = {
        (0, "wherry"): {0: np.array([2.0] * 8), 1: np.array([9.0] * 8)},
        (0, "libc"): {0: np.array([1.0] * 8)},
    }
    own = judge(samples, np.random.default_rng(SEED))
    ratio = own.compare(own.all, (0,), "wherry", "libc").ratio()
    assert (ratio.low, ratio.median, ratio.high) == pytest.approx((2, 2, 2))


def test_a_peer_without_all_rows_is_no_peer_of_the_region():
    rng = np.random.default_rng(SEED)
    samples = table(rng, {"libc": 1.0, "wherry": 1.0, "a": 0.5})
    del samples[1, "a"]
    own = judge(samples, rng)
    assert scored(own, ["libc", "a"]).best == "libc"
    assert scored(own, ["a"]).best is None and scored(own, ["a"]).verdict is None


def test_totals_weigh_regions_not_rows():
    """Region one has one row, region two has two: their ratios count the same."""
    rng = np.random.default_rng(SEED)
    samples = table(rng, {"libc": 1.0, "wherry": 0.5, "a": 1.0, "b": 0.9}, rows=(0,), within=0.001)
    samples |= table(
        rng, {"libc": 1.0, "wherry": 2.0, "a": 1.0, "b": 9.0}, rows=(1, 2), within=0.001
    )
    own = judge(samples, rng)
    envelope = ["libc", "a", "b"]
    regions = [scored(own, envelope, rows=rows) for rows in ((0,), (1, 2))]
    total = score.total(own, regions, wherry="wherry", envelope=envelope)
    assert np.exp(total.to_libc.log) == pytest.approx(1.0, rel=0.01)
    assert np.exp(total.to_envelope.log) == pytest.approx((0.5 / 0.9 * 2.0) ** 0.5, rel=0.01)
    assert total.single in ("libc", "a") and np.exp(total.to_single.log) == pytest.approx(
        1, rel=0.01
    )
    ratio = total.to_envelope.ratio()
    assert ratio.low < ratio.median < ratio.high < 1.02 * ratio.median


def test_a_peer_that_lacks_a_region_is_not_the_best_single_one():
    rng = np.random.default_rng(SEED)
    samples = table(rng, {"libc": 1.0, "wherry": 1.0, "a": 0.5}, rows=(0,))
    samples |= table(rng, {"libc": 1.0, "wherry": 1.0}, rows=(1,))
    own = judge(samples, rng)
    regions = [scored(own, ["libc", "a"], rows=(row,)) for row in (0, 1)]
    assert regions[0].best == "a"
    total = score.total(own, regions, wherry="wherry", envelope=["libc", "a"])
    assert total.single == "libc" and total.worst == "r"


def many(rng, wherry, **how):
    """Regions of one row that Wherry and one peer have, disturbed each for itself and settled together."""
    samples: dict = {}
    for row in range(24):
        samples |= table(rng, {"libc": 1.0, "wherry": wherry}, rows=(row,), **how)
    own = judge(samples, rng, 100)
    names = {"wherry": "wherry", "libc": "libc", "envelope": ["libc"], "beside": []}
    found = [score.region(own, f"r{row}", (row,), **names) for row in range(24)]
    return score.settled(found, wherry="wherry", floor=0.005)


@pytest.mark.parametrize("processes", [2, 3, 5])
def test_few_processes_that_differ_by_chance_give_no_lead(processes):
    """Of two processes both are on one side of equal every other time, and resampling them does not tell."""
    rng = np.random.default_rng(SEED)
    found = []
    for _ in range(12):
        found += many(rng, 1.0, processes=processes, between=0.02, within=0.005)
    ratios = [one.to_best.ratio() for one in found]
    leads = [one.verdict not in ("tie", "undecided") for one in found]
    assert np.mean(leads) <= 0.02
    assert leads == [one.fastest is not None for one in found]
    assert np.mean([ratio.low <= 1 <= ratio.high for ratio in ratios]) >= 0.93


def test_few_processes_that_agree_give_a_lead():
    found = many(np.random.default_rng(SEED), 0.95, processes=2, rounds=9, within=0.01)
    assert {(one.verdict, one.fastest) for one in found} == {("ahead", "wherry")}


def test_a_process_that_one_row_lacks_counts_in_the_others():
    rng = np.random.default_rng(SEED)
    samples = table(rng, {"libc": 1.0, "wherry": 0.9}, processes=3, within=0.005)
    for name in ("libc", "wherry"):
        del samples[0, name][0]
        del samples[1, name][1]
        del samples[2, name][2]
    found = scored(judge(samples, rng), ["libc"])
    assert len(found.to_best.units) == 3 and found.verdict == "ahead"


def test_one_row_has_the_interval_of_medians_that_any_comparison_has():
    rng = np.random.default_rng(SEED)
    logs = {p: 0.4 * p + rng.exponential(0.5, n) for p, n in enumerate((3, 9, 6))}
    samples = {
        (0, "wherry"): {p: np.exp(own) for p, own in logs.items()},
        (0, "libc"): {p: np.ones(len(own)) for p, own in logs.items()},
    }
    own = judge(samples, rng, 4000)
    draws = own.compare(own.all, (0,), "wherry", "libc").draws
    usual = stats.bootstrap(list(logs.values()), rng, 4000)
    ends = np.log([usual.low, usual.high])
    assert np.quantile(draws, (0.025, 0.975)) == pytest.approx(ends, abs=0.05)
    assert np.median(draws) == pytest.approx(np.log(usual.median), abs=0.1)


def test_whoever_shares_no_process_with_wherry_is_nobodys_best():
    rng = np.random.default_rng(SEED)
    samples = table(rng, {"libc": 1.0, "wherry": 0.9, "a": 0.5}, processes=2)
    for row in ROWS:
        samples[row, "wherry"].pop(1)
        samples[row, "a"].pop(0)
    own = judge(samples, rng)
    found = scored(own, ["libc", "a"])
    total = score.total(own, [found], wherry="wherry", envelope=["libc", "a"])
    assert (found.best, total.single) == ("libc", "libc")


def test_a_process_stands_as_far_from_the_figure_as_from_the_others_of_its_rows():
    """Its medians of a row from that of all rounds; where it is the only one, nothing tells how far."""
    logs = {
        0: {0: [0.0, 0.1, 0.5], 1: [0.2, 0.3, 0.7], 2: [0.3, 0.4, 0.4]},
        1: {0: [1.0, 1.0, 1.6], 1: [1.1, 1.3, 1.3]},
        2: {2: [2.0, 2.0, 2.3]},
    }
    samples: dict = {}
    for row, own in logs.items():
        samples[row, "wherry"] = {process: np.exp(values) for process, values in own.items()}
        samples[row, "libc"] = {process: np.ones(3) for process in own}
    own = judge(samples, np.random.default_rng(SEED))
    found = own.compare(own.all, ROWS, "wherry", "libc")
    assert found.log == pytest.approx((0.3 + 1.2 + 2.0) / 3)
    apart = {process: value - found.log for process, value in found.units.items()}
    assert apart == pytest.approx({0: -0.2, 1: 0.05, 2: 0.1})


def test_nothing_measured_gives_no_total():
    own = judge({}, np.random.default_rng(SEED))
    total = score.total(own, [], wherry="wherry", envelope=["libc"])
    assert (total.regions, total.to_libc, total.single, total.worst) == (0, None, None, None)


def test_the_floor_of_regions_is_what_libc_differs_from_itself():
    rng = np.random.default_rng(SEED)
    samples = table(rng, {"libc": 1.0}, within=0.001)
    twins = table(rng, {"libc": 1.04}, within=0.001)
    own = judge(samples, rng)
    assert score.region_floor(own, twins, [ROWS], "libc") == pytest.approx(0.04, abs=0.005)
    assert score.region_floor(own, {}, [ROWS], "libc") == stats.LEAST_FLOOR


@pytest.mark.parametrize(("rounds", "floor"), [(8, 0.04), (2, (1.5 * 1.04) ** 0.5 - 1)])
def test_the_floor_is_of_the_rounds_that_judge(rounds, floor):
    """Every second one; of few all."""
    own = judge({(0, "libc"): {0: np.ones(rounds)}}, np.random.default_rng(SEED))
    twins = {(0, "libc"): {0: np.resize([1.5, 1.04], rounds)}}
    assert score.region_floor(own, twins, [(0,)], "libc") == pytest.approx(floor)


@pytest.mark.parametrize("times", [1.1, 1 / 1.1, 1.015, 1 / 1.015])
def test_what_chance_may_have_done_is_undecided_to_both_sides(times):
    own = score.Estimate(np.log(times), np.zeros(9), {0: 0.0, 1: 0.1}, p=0.5)
    near = max(times, 1 / times) < 1.02
    assert score.verdict(own, 0.02) == (score.TIE if near else score.UNDECIDED)


def test_one_sample_gives_no_interval_and_no_word():
    rng = np.random.default_rng(SEED)
    times = {"wherry": 8.0, "libc": 10.0, "peer": 9.0}
    own = judge(table(rng, times, processes=1, rounds=1), rng)
    found = scored(own, ("libc", "peer"))
    assert (found.verdict, found.fastest, found.tied) == (None, None, ())
    for estimate in (found.to_best, found.to_libc):
        assert not estimate.ratio().told
    # Eight of one round each are not halved: of the second half nothing would be left to judge by.
    own = judge(table(rng, times, processes=8, rounds=1, within=1e-3), rng)
    assert not any(own.halved.values()) and scored(own, ("libc", "peer")).verdict == score.AHEAD
