"""What wherry replay predicts of known totals, trials and turns, and its verdict in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_replays import MIX, totals
from wherry import stats
from wherry.recording.trial import Change
from wherry.recording.turns import Turned
from wherry.replay import predict
from wherry.replay.loading import Cost
from wherry.replay.totals import Total


def test_a_prediction_is_share_times_gain():
    own = predict.predict("wherry", MIX["ceiling"], totals(0.8, 0.9))
    # Hot: 20 % of the run, of which a fifth is saved; warm: 30 %, of which a tenth.
    assert own.change == pytest.approx(-0.04)
    assert own.low < -0.04 and -0.03 < own.high < -0.02
    assert own.measurable


def test_what_may_be_nothing_is_not_claimed():
    assert not predict.predict("wherry", MIX["ceiling"], totals(0.8, 1.1)).measurable
    assert not predict.predict("wherry", MIX["ceiling"], totals(0.97, 0.97)).measurable
    assert not predict.predict("wherry", MIX["ceiling"], totals(0.8, 0.9), noise=0.05).measurable
    tie = predict.predict("wherry", MIX["ceiling"], totals(0.995, 0.995, floor=0.03))
    assert tie.low < 0 < tie.high and not tie.measurable


def test_what_was_timed_is_predicted_by(tmp_path):
    found = totals(0.8, 0.9)
    interval = stats.Ratio(0.7, 0.69, 0.71)
    found["timed"] = {
        "libc": Total("libc", "timed", 0.5, None, 0.01, 1.0),
        "wherry": Total("wherry", "timed", 0.35, interval, 0.01, 1e-6),
    }
    own = predict.predict("wherry", MIX["ceiling"], found)
    assert own.change == pytest.approx(0.5 * -0.3) and own.measurable and not own.tried
    assert (own.low, own.high) == pytest.approx((0.5 * -0.31, 0.5 * -0.29))


def test_small_calls_are_hot_in_the_middle_of_a_prediction(tmp_path):
    """Where their data were nobody knows: the interval takes in both."""
    found = {}
    for kind, ratio in (("timed", 1.4), ("timed_small_hot", 0.8)):
        interval = stats.Ratio(ratio, ratio - 0.01, ratio + 0.01)
        found[kind] = {
            "libc": Total("libc", kind, 0.5, None, 0.001, 1.0),
            "wherry": Total("wherry", kind, 0.5 * ratio, interval, 0.001, 1e-6),
        }
    own = predict.predict("wherry", MIX["ceiling"], found)
    assert own.change == pytest.approx(0.5 * -0.2) and not own.measurable
    assert (own.low, own.high) == pytest.approx((0.5 * -0.21, 0.5 * 0.41))


def test_what_was_tried_comes_first():
    import numpy as np

    found = totals(0.8, 0.9)
    interval = stats.Ratio(0.9, 0.9, 0.9)
    found["timed_rest"] = {
        "libc": Total("libc", "timed_rest", 0.1, None, 0.01, 1.0),
        "wherry": Total("wherry", "timed_rest", 0.09, interval, 0.01, 1e-6),
    }
    tried = [Change(np.array([-0.1, -0.1, -0.1, -0.2, -0.2, -0.2]), np.full(6, 0.5))]
    own = predict.predict("wherry", MIX["ceiling"], found, tried=tried)
    assert own.tried and own.measurable
    assert own.change == pytest.approx(-0.15 - 0.01)
    # The spread of the groups; that of the rest is none.
    assert own.high - own.change == pytest.approx(tried[0].half) == own.change - own.low
    assert "by what was tried in the program" in predict.verdict(
        MIX["ceiling"], {"wherry": own}, found, {"wherry": "wherry ab -- CMD"}, predict.NOISE
    )


def test_what_was_not_tried_is_taken_as_what_was():
    def of(change: float, low: float, high: float) -> predict.Prediction:
        return predict.Prediction("x", change, low, high, True)

    # Of the drop-in a half of what is measured here was seen in the program.
    own = predict.as_the_trial(of(-0.2, -0.3, -0.1), of(-0.4, -0.4, -0.4), of(-0.2, -0.2, -0.2))
    assert (own.change, own.low, own.high) == pytest.approx((-0.1, -0.3, -0.05))
    assert own.measurable
    # None of it, or the other way round.
    own = predict.as_the_trial(of(-0.2, -0.3, -0.1), of(-0.4, -0.4, -0.4), of(0.1, 0.1, 0.1))
    assert (own.change, own.low, own.high) == pytest.approx((0, -0.3, 0)) and not own.measurable
    # More than all of it is not believed, nor is anything told by what is nothing.
    for model, tried in ((-0.1, -0.4), (-0.001, -0.4)):
        own = predict.as_the_trial(of(-0.2, -0.3, -0.1), of(model, model, model), of(tried, 0, 0))
        assert own.change == pytest.approx(-0.2)


def test_what_goes_by_calls_may_be_as_far_off_as_programs_were():
    own = predict.Prediction("wherry", -0.019, -0.024, -0.014, True, True)
    ceiling = {"likely": 0.53, "at_most": 0.54}
    wide = predict.by_calls(own, ceiling)
    assert wide.change == -0.019 and not wide.measurable
    assert wide.low == pytest.approx(-0.125, abs=1e-3) and wide.high == pytest.approx(
        0.087, abs=1e-3
    )
    # Of a program that gains much by it, something is left.
    node = predict.Prediction("wherry", -0.078, -0.118, -0.038, True, True)
    assert predict.by_calls(node, {"likely": 0.28, "at_most": 0.49}).measurable


@pytest.mark.parametrize(("change", "claimed"), [(0.039, False), (-0.03, True), (-0.2, True)])
def test_wide_turns_of_the_other_sign_leave_no_claim(change, claimed):
    turned = Turned("calls", 60, 1.0, change, 0.079)
    own = predict.Prediction("wherry", -0.04, -0.045, -0.035, True, True)
    wide = predict.by_calls(own, {"likely": 0.1, "at_most": 0.1}, turned)
    assert wide.measurable is claimed and wide.low <= change <= max(wide.high, change)
    assert min(change, wide.high) >= wide.low and wide.high >= change


def test_what_outlasts_turns_is_told_by_its_calls():
    """Turns that hold calls of many milliseconds count as if they had less: of four fifths of the time of these calls,
    of a run that they take half of, nothing was seen."""
    turned = Turned("calls", 100, 0.6, 0.01, 0.02)
    long = Change(np.full(6, -0.1), np.full(6, 0.5))
    own = predict.of_turns("wherry", turned, predict.NOISE, long, cpu_s=1.0)
    assert own.change == pytest.approx(0.01 - 0.8 * 0.1) and own.measurable
    # Nobody takes turns in a program of its own: such calls may gain less there.
    assert own.high - own.low == pytest.approx(0.04 + predict.LASTING_SPREAD * 0.07)
    # But where turns last: as far as these tell of it.
    lasts = predict.of_turns("wherry", replace(turned, lasting=0.3), predict.NOISE, long, cpu_s=1.0)
    assert lasts.change == pytest.approx(0.01 - 0.4 * 0.1)
    assert lasts.high - lasts.low == pytest.approx(0.04 + predict.LASTING_SPREAD * 0.03 * 0.4)
    lasts = predict.of_turns("wherry", replace(turned, lasting=0.5), predict.NOISE, long, cpu_s=1.0)
    assert (lasts.change, lasts.low, lasts.high) == pytest.approx((0.01, -0.01, 0.03))
    # Where nothing tells of them nothing is claimed: they may take twice as long with the others, or no time.
    unknown = predict.of_turns("wherry", replace(turned, change=-0.05), predict.NOISE, untold=0.3)
    assert unknown.change == -0.05 and not unknown.measurable
    assert unknown.high == pytest.approx(-0.05 + (0.02**2 + 0.3**2) ** 0.5)
    slower = Change(np.full(6, 0.1), np.full(6, 0.5))
    lost = predict.of_turns("wherry", turned, predict.NOISE, slower, cpu_s=1.0)
    assert lost.measurable and lost.high - lost.low == pytest.approx(0.04)
    # Where the turns tell of all of the run, they tell of these calls too.
    whole = replace(turned, covered=1.0)
    assert predict.of_turns("wherry", whole, predict.NOISE, long, 1.0).change == 0.01
    # What is not covered can be more than they took.
    little = replace(turned, covered=0.1)
    assert predict.of_turns("wherry", little, predict.NOISE, long, 1.0).change == pytest.approx(
        -0.09
    )


def test_no_more_than_the_ceiling_is_claimed():
    ceiling = {"likely": 0.53, "at_most": 0.54}
    own = predict.of_turns("wherry", Turned("calls", 60, 1.0, -0.58, 0.1))
    assert own.measurable
    capped = predict.within_ceiling(own, ceiling)
    assert (capped.low, capped.change, capped.beyond) == (-0.54, -0.54, True)
    assert not predict.with_loading(capped, Cost(0.01, 0.01, 0.01)).measurable
    said = predict.verdict(ceiling, {"wherry": capped}, {}, {"wherry": "wherry ab"}, predict.NOISE)
    assert "not measurable, since more than that was found" in said and "See whether" not in said
    # An interval ends there; the claim stays. What was not recorded may copy too.
    own = predict.of_turns("wherry", Turned("calls", 60, 1.0, -0.5, 0.1))
    capped = predict.within_ceiling(own, ceiling)
    assert capped.low == -0.54 and capped.change == -0.5 and capped.measurable
    assert predict.within_ceiling(own, ceiling | {"at_most": 0.1, "incomplete": True}) == own


@pytest.mark.parametrize("longer", [1, 4])
def test_of_a_longer_run_that_took_more_of_all_the_same_is_told(longer):
    ceiling = MIX["ceiling"] | {"cpu_s": 1.0 * longer}
    found = {}
    for kind in ("timed", "timed_rest"):
        interval = stats.Ratio(0.7, 0.69, 0.71)
        found[kind] = {
            "libc": Total("libc", kind, 0.5 * longer, None, 0.01, 1.0),
            "wherry": Total("wherry", kind, 0.35 * longer, interval, 0.01, 1e-6),
        }
    assert predict.shares(ceiling, found) == {"timed": 0.5}
    own = predict.predict("wherry", ceiling, found)
    assert (own.change, own.low, own.high) == pytest.approx((-0.15, -0.155, -0.145))
    tried = Change(longer * np.array([-0.05, -0.1, -0.15]), np.full(3, 0.5 * longer))
    half = (tried.half / longer) ** 2 + 0.005**2
    own = predict.predict("wherry", ceiling, found, tried=[tried])
    assert own.change == pytest.approx(-0.1 - 0.15)
    assert own.high - own.change == pytest.approx(half**0.5) == own.change - own.low
    turned = Turned("calls", 100, 0.6, 0.01, 0.02, lasting=0.1)
    own = predict.of_turns("wherry", turned, predict.NOISE, tried, ceiling["cpu_s"])
    # Of the half of the run that such calls took a tenth was seen, and of its gain as much may not last.
    assert own.change == pytest.approx(0.01 - 0.1 * 0.8)
    half = (0.02**2 + (0.8 * tried.half / longer) ** 2) ** 0.5
    assert own.low == pytest.approx(own.change - half)
    assert own.high == pytest.approx(own.change + half + predict.LASTING_SPREAD * 0.07 * 0.8)


def test_a_tie_may_be_a_gain_or_a_loss_of_the_noise():
    for ratio, ends in (((1.0, 0.999, 1.001), (1 / 1.03, 1.03)), ((1.0, 0.9, 1.1), (0.9, 1.1))):
        total = Total("wherry", "timed", 0.5, stats.Ratio(*ratio), 0.03, 0.5)
        found = {"timed": {"libc": replace(total, ratio=None), "wherry": total}}
        own = predict.predict("wherry", MIX["ceiling"], found)
        assert (own.low, own.high) == pytest.approx(tuple(0.5 * (end - 1) for end in ends))


def test_loading_is_added_with_what_is_not_known_of_it():
    own = predict.Prediction("wherry", -0.1, -0.13, -0.06, True)
    paid = predict.with_loading(own, Cost(0.02, 0.016, 0.023))
    assert paid.change == pytest.approx(-0.08) and paid.measurable
    assert paid.low == pytest.approx(-0.08 - (0.03**2 + 0.004**2) ** 0.5)
    assert paid.high == pytest.approx(-0.08 + (0.04**2 + 0.003**2) ** 0.5)


def test_the_share_is_never_above_the_ceiling():
    assert predict.shares({"likely": 0.5, "at_most": 0.6}, totals(1, 1)) == {
        "hot": 0.5,
        "warm": 0.6,
    }


@pytest.mark.parametrize(
    ("hot", "warm", "ceiling", "said"),
    [
        (0.8, 0.9, (0.2, 0.4), "See whether it holds: wherry ab"),
        (0.8, 1.2, (0.2, 0.4), "not measurable"),
        (1.2, 1.2, (0.2, 0.4), "nothing here is better than libc"),
        (0.8, 0.9, (0.001, 0.002), "even a copy that costs nothing"),
    ],
)
def test_verdicts(hot, warm, ceiling, said):
    own = {"likely": ceiling[0], "at_most": ceiling[1]}
    found = totals(hot, warm)
    predictions = {"wherry": predict.predict("wherry", own, found)}
    usable = {"wherry": "wherry ab -- CMD"}
    text = predict.verdict(own, predictions, found, usable, predict.NOISE)
    assert said in text and text.startswith("This run spends")
    assert ("keep libc" in text) == ("See whether" not in text)


def test_a_share_that_few_calls_tell_is_called_so():
    own = {"likely": 1.0, "at_most": 1.0, "few_timed": True}
    found = totals(0.8, 0.9)
    predictions = {"wherry": predict.predict("wherry", own, found)}
    text = predict.verdict(own, predictions, found, {"wherry": "wherry ab"}, predict.NOISE)
    assert "(at most 100 %: too few of its largest calls were timed to tell less)" in text


def test_what_was_not_recorded_may_copy_too():
    own = {"likely": 0.001, "at_most": 0.002, "incomplete": True}
    found = totals(0.8, 0.9)
    predictions = {"wherry": predict.predict("wherry", own, found)}
    text = predict.verdict(own, predictions, found, {"wherry": "wherry ab"}, predict.NOISE)
    assert "what was not may copy too" in text and "no more" not in text


def test_one_sample_predicts_nothing():
    found = totals(0.8, 0.9)
    for own in found.values():
        own["wherry"] = replace(own["wherry"], ratio=stats.Ratio(0.8, None, None), p=1.0)
    assert found["hot"]["wherry"].call == "tie"
    assert predict.predict("wherry", MIX["ceiling"], found) is None
    usable = {"wherry": "wherry exec -- CMD"}
    said = predict.verdict(MIX["ceiling"], {}, found, usable, 0.01)
    assert "one sample of a routine tells nothing of chance" in said and "keep libc" in said
    assert predict.verdict(None, {}, found, usable, 0.01).startswith("One sample of a routine")
