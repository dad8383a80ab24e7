"""P-values against known ones, and what they promise: few wrong calls among many cells, real differences found."""

import math
import statistics

import numpy as np
import pytest
from wherry import significance, stats

SEED = 4711


@pytest.mark.parametrize(
    ("t", "df", "both"),
    # From printed tables of Student's t, and for 1 and 2 degrees from the closed forms.
    [
        (1.0, 1, 0.5),
        (12.7062, 1, 0.05),
        (4.30265, 2, 0.05),
        (2.22814, 10, 0.05),
        (4.58689, 10, 0.001),
        (2.04227, 30, 0.05),
        (0.0, 5, 1.0),
        (1.0, 2, 1 - 1 / np.sqrt(3)),
    ],
)
def test_tails_of_students_t(t, df, both):
    assert significance.t_tails(t, df)[0] == pytest.approx(both, rel=2e-5)
    assert significance.t_tails(-t, df)[0] == pytest.approx(both, rel=2e-5)


def test_far_tails_keep_their_digits():
    # Two degrees of freedom have a closed form: 1 - t / sqrt(2 + t^2).
    t = 1e4
    exact = 2 / (np.sqrt(2 + t * t) * (np.sqrt(2 + t * t) + t))
    assert significance.t_tails(t, 2)[0] == pytest.approx(exact, rel=1e-9)


def test_gamma_derivatives():
    assert significance.digamma(1) == pytest.approx(-0.5772156649, abs=1e-8)
    assert significance.trigamma(1) == pytest.approx(np.pi**2 / 6, abs=1e-8)
    for y in (0.01, 0.7, 5.0):
        assert significance.trigamma(significance.trigamma_inverse(y)) == pytest.approx(y)


def test_what_comparisons_have_in_common_is_found_again():
    """Variances of a hundredth squared, which differ as those of six degrees of freedom do."""
    rng = np.random.default_rng(SEED)
    true = 6 * 1e-4 / rng.chisquare(6, 4000)
    worth, centre = significance.prior(true * rng.chisquare(4, 4000) / 4, np.full(4000, 4.0))
    assert worth == pytest.approx(6, rel=0.1) and centre == pytest.approx(1e-4, rel=0.05)
    assert significance.prior(np.array([1e-4]), np.array([4.0])) == (0, 0)


def test_correction_against_a_worked_example():
    # Benjamini and Hochberg (1995), table of 15 p-values: four survive at 0.05.
    p = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344]
    p += [0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0]
    found = significance.corrected(np.array(p))
    assert (found < 0.05).sum() == 4
    assert found[3] == pytest.approx(0.0095 * 15 / 4)
    shuffled = np.random.default_rng(SEED).permutation(len(p))
    assert significance.corrected(np.array(p)[shuffled]) == pytest.approx(found[shuffled])
    assert len(significance.corrected(np.array([]))) == 0


@pytest.mark.parametrize("processes", [2, 3, 5, 11])
def test_of_many_cells_few_are_called_wrongly_and_those_apart_are_found(processes):
    rng = np.random.default_rng(SEED)
    wrong, found = [], []
    for _ in range(60):
        spread = np.exp(rng.normal(np.log(0.004), 0.5, 60))  # cells are not equally quiet
        cells = [rng.normal(0 if i < 30 else 0.1, spread[i], processes) for i in range(60)]
        called = significance.corrected(significance.p_values(cells)) < significance.LEVEL
        wrong.append(called[:30].sum() / max(called.sum(), 1))
        found.append(called[30:].mean())
    assert np.mean(wrong) <= significance.LEVEL
    assert np.mean(found) >= 0.99


def test_equal_cells_are_not_called_though_they_are_many():
    """Uncorrected, one in twenty of these would be."""
    rng = np.random.default_rng(SEED)
    plain = mended = 0
    for _ in range(20):
        p = significance.p_values([rng.normal(0, 0.01, 5) for _ in range(200)])
        plain += (p < significance.LEVEL).any()
        mended += (significance.corrected(p) < significance.LEVEL).any()
    assert plain == 20 and mended <= 4


def test_what_is_told_by_one_round_is_nothing():
    assert list(significance.p_values([np.array([0.5]), np.array([])])) == [1, 1]
    assert list(significance.units([np.array([1.0, 2.0, 9.0]), np.array([3.0])])) == [2, 3]
    assert list(significance.units([np.array([1.0, 2.0])])) == [1, 2]


def test_a_cell_is_called_only_beyond_the_floor_and_when_it_survives():
    ratio = stats.Ratio(0.9, 0.88, 0.92)
    assert stats.call(ratio, 0.01, 0.01) == "faster"
    assert stats.call(ratio, 0.01, 0.06) == "tie"
    assert stats.call(ratio, 0.2, 0.01) == "tie"
    assert stats.call(stats.Ratio(1.2, 1.1, 1.3), 0.01, 0.001) == "slower"
    assert stats.call(stats.Ratio(1.2, 0.9, 1.3), 0.01, 0.001) == "tie"


@pytest.mark.parametrize("processes", [2, 3, 5])
def test_intervals_of_many_cells_cover_and_agree_with_their_p_values(processes):
    rng = np.random.default_rng(SEED)
    held = []
    for _ in range(30):
        spread = np.exp(rng.normal(np.log(0.01), 0.5, 60))
        cells = [rng.normal(0, own, processes) for own in spread]
        outside = np.abs([own.mean() for own in cells]) > significance.half_intervals(cells)
        assert list(outside) == list(significance.p_values(cells) < significance.LEVEL)
        held.append(1 - outside.mean())
    assert np.mean(held) == pytest.approx(0.95, abs=0.015)
    assert list(significance.half_intervals([np.array([0.5]), np.array([])])) == [0, 0]


def test_half_an_interval_is_students():
    for count, t in ((2, 12.706), (3, 4.303), (6, 2.571), (31, 2.042)):
        values = [0.0, 1.0] + [0.5] * (count - 2)
        spread = statistics.stdev(values) / math.sqrt(count)
        assert significance.half_interval(values) == pytest.approx(t * spread, rel=1e-3)
