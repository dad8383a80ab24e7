"""`wherry replay`: how a mix is cut, what is predicted of known totals, and the command as a user runs it."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
from conftest import ROOT, wait_until
from wherry import runfile, runner, stats
from wherry.cli import tuning
from wherry.errors import WherryError
from wherry.recording import host
from wherry.recording.trial import Change
from wherry.recording.turns import Turned
from wherry.replay import parts, predict
from wherry.replay import totals as measured
from wherry.replay.totals import Total

CACHES = {"L1": 48 << 10, "L2": 1 << 20, "L3": 32 << 20}
MIX = {
    "format": "wherry-mix",
    "version": 1,
    "name": "hand",
    "ops": {
        "copy": {
            "calls": 2100,
            "bytes": 8_008_000 + 1000 * 300,
            "sizes": [
                [8, 8, 1000, 8000],
                [300, 300, 1000, 300_000],
                [80_000, 80_000, 100, 8_000_000],
            ],
        },
        "set": {"calls": 2, "bytes": 4 << 20, "sizes": [[2 << 20, 2 << 20, 2, 4 << 20]]},
    },
    "ceiling": {"cpu_s": 1.0, "likely_s": 0.2, "at_most_s": 0.4, "likely": 0.2, "at_most": 0.4},
}
QUICK = ("--quick", "--no-found-peers", "--rounds", "3")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hand.mix.json").write_text(json.dumps(MIX))


def test_a_mix_is_cut_by_op_and_band():
    subject = parts.subject("hand.mix.json", CACHES)
    assert [(part.op, part.band, part.calls) for part in subject.parts] == [
        ("copy", "to 1K", 2000),
        ("copy", "to 383K", 100),
        ("set", "to 8191K", 2),
    ]
    assert subject.parts[0].mean == 154 and subject.parts[0].largest == 300
    assert dict(subject.parts[0].states) == {"hot": "L1", "warm": "L2", "cold": "DRAM"}
    assert dict(subject.parts[1].states) == {"hot": "L2", "warm": "L3", "cold": "DRAM"}
    assert dict(subject.parts[2].states) == {"hot": "L3", "warm": "DRAM", "cold": "DRAM"}
    assert subject.ceiling["likely"] == 0.2


def test_each_cache_is_a_band():
    """What fits the nearest is measured there, whatever larger calls there are."""
    found = parts.bands(CACHES, copies=True)
    assert found == [
        (0, 1 << 10),
        ((1 << 10) + 1, 17 << 10),
        ((17 << 10) + 1, 383 << 10),
        ((383 << 10) + 1, 4095 << 10),
        ((4095 << 10) + 1, parts.LARGEST_SIZE),
    ]
    for (_, end), hot in zip(found, ("L1", "L1", "L2", "L3", "DRAM"), strict=True):
        assert parts._states(end, CACHES, True)["hot"] == hot
    assert parts.bands({}, copies=True) == [(0, 1 << 10), ((1 << 10) + 1, parts.LARGEST_SIZE)]
    assert [end for _, end in parts.bands(CACHES, copies=False)][1:3] == [35 << 10, 767 << 10]


def test_a_published_distribution_has_no_ceiling(tmp_path):
    (tmp_path / "memcpy_a.csv").write_text("8:0.5,100:0.5\n")
    subject = parts.subject("memcpy_a.csv", CACHES)
    assert [part.op for part in subject.parts] == ["copy"] and subject.ceiling is None


@pytest.mark.parametrize("given", ["gone.mix.json", "no-such-mix", "."])
def test_what_is_no_mix_is_refused(given):
    with pytest.raises(WherryError):
        parts.subject(given, CACHES)


def totals(hot: float, warm: float, spread: float = 0.01, floor: float = 0.01) -> dict:
    found = {}
    for heat, ratio, seconds in (("hot", hot, 1.0), ("warm", warm, 1.5)):
        interval = stats.Ratio(ratio, ratio * (1 - spread), ratio * (1 + spread))
        found[heat] = {
            "libc": Total("libc", heat, seconds, None, floor, 1.0),
            "wherry": Total("wherry", heat, seconds * ratio, interval, floor, 1e-6),
        }
    return found


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


def timed_mix(**more) -> dict:
    """Calls of 80,000 bytes that took 20 us inside the program, with their data where the last array tells."""
    mix = json.loads(json.dumps(MIX))
    places = [0, 0, 30, 0, 0, 0, 0, 1, 69]
    mix["ops"]["copy"]["times"] = [
        [192, 255, 50, 50 * 200, 50 * 45.0, 50 * 40.0, 0, 0.0, 0, [0] * 9],
        [65536, 98303, 100, 8_000_000, 2_000_000.0, 0.0, 0, 0.0, 0, places],
    ]
    mix["ops"]["copy"]["order"] = [[131072, 100, 0, 90]]
    return mix | more


def recorded_here(**more) -> dict:
    return timed_mix(machine=host.here(runner.cpu()), **more)


def test_parts_know_where_their_data_were(tmp_path):
    (tmp_path / "timed.mix.json").write_text(json.dumps(timed_mix()))
    small, large, sets = parts.subject("timed.mix.json", CACHES).parts
    assert large.took == pytest.approx(20000) and large.ascending == "destination"
    # What holds fewer calls than one in twenty is left out.
    assert large.found_in == {
        ("DRAM", "DRAM"): pytest.approx(69 / 99),
        ("L2", "DRAM"): pytest.approx(30 / 99),
    }
    assert small.found_in == {} and small.ascending == "none"
    # Of 45 ns that a call of 200 bytes took, timing had added 40; others take in proportion to their lines.
    assert small.took == pytest.approx(5 * (72 + 364) / 2 / 264) and small.small and not large.small
    assert sets.took is None and sets.found_in == {}
    # Without a cache between, the last one is the nearest.
    (_, large, _) = parts.subject("timed.mix.json", {"L1": 48 << 10, "L2": 1 << 20}).parts
    assert set(large.found_in) == {("DRAM", "DRAM"), ("L2", "DRAM")}


def test_tune_has_the_data_where_they_were(tmp_path):
    (tmp_path / "timed.mix.json").write_text(json.dumps(timed_mix()))
    asked, largest = tuning.given_mixes(["timed.mix.json"], CACHES)
    rows = [own.row(("libc",), 3, 50) for own in asked]
    assert [(r.op, r.src_state, r.dst_state, r.ascending) for r in rows] == [
        ("copy", "L1", "L1", "none"),
        ("copy", "L2", "L2", "none"),
        ("copy", "DRAM", "DRAM", "destination"),
        ("copy", "L2", "DRAM", "destination"),
        ("set", "L3", "L3", "none"),
        ("set", "DRAM", "DRAM", "none"),
    ]
    assert [own.calls for own in asked[2:4]] == pytest.approx([100 * 69 / 99, 100 * 30 / 99])
    assert largest == 2 << 20


def test_as_much_of_each_cache_as_makes_up_the_time():
    known = [(10.0, 1), (30.0, 2), (130.0, 3)]
    assert measured._between(20.0, known) == {1: 0.5, 2: 0.5}
    assert measured._between(105.0, known) == {2: 0.25, 3: 0.75}
    assert measured._between(5.0, known) == {1: 0.5}
    assert measured._between(260.0, known) == {3: 2.0}


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


def test_small_hot_calls_take_what_they_took(tmp_path):
    """The rows that stand for a part: hot alone, in the proportion that makes up libc's time in the program."""
    (tmp_path / "timed.mix.json").write_text(json.dumps(timed_mix()))
    subject = parts.subject("timed.mix.json", CACHES)
    rows = {"hot": 0, "warm": 1, "cold": 2}
    campaign = SimpleNamespace(
        cells={
            (row, "libc", False): SimpleNamespace(ns={0: [ns]})
            for row, ns in zip(rows.values(), (2.0, 4.0, 8.0), strict=True)
        }
    )
    places = {(0, heat): row for heat, row in rows.items()}
    subject = replace(subject, parts=(replace(subject.parts[0], took=5.0),))
    of = [
        measured.as_timed(campaign, subject, places, ("hot", "warm", "cold"), small_hot)
        for small_hot in (False, True)
    ]
    assert of == [([0], [{1: 0.75, 2: 0.25}]), ([0], [{0: 2.5}])]


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


def test_no_more_than_the_ceiling_is_claimed():
    ceiling = {"likely": 0.53, "at_most": 0.54}
    own = predict.of_turns("wherry", Turned("calls", 60, 1.0, -0.58, 0.1))
    assert own.measurable
    capped = predict.within_ceiling(own, ceiling)
    assert (capped.low, capped.change, capped.beyond) == (-0.54, -0.54, True)
    assert not predict.with_loading(capped, 0.01).measurable
    said = predict.verdict(ceiling, {"wherry": capped}, {}, {"wherry": "wherry ab"}, predict.NOISE)
    assert "not measurable, since more than that was found" in said and "See whether" not in said
    # An interval ends there; the claim stays. What was not recorded may copy too.
    own = predict.of_turns("wherry", Turned("calls", 60, 1.0, -0.5, 0.1))
    capped = predict.within_ceiling(own, ceiling)
    assert capped.low == -0.54 and capped.change == -0.5 and capped.measurable
    assert predict.within_ceiling(own, ceiling | {"at_most": 0.1, "incomplete": True}) == own


def test_wide_turns_are_no_reason_to_believe_calls(tmp_path):
    """By the same way as the command: turns, calls, ceiling."""
    from wherry.cli import replaying

    rows = [[65536, 98303, [10] * 6, [10 * 20000.0] * 6, [10] * 6, [10 * 10000.0] * 6]]
    for change, half, tells in ((-0.58, 0.25, False), (0.04, 0.08, False), (-0.209, 0.049, True)):
        turns = {
            "measure": "calls",
            "pairs": 60,
            "covered": 1.0,
            "change": change,
            "half": half,
        }
        trial = {"routines": "dropin", "plan": "default", "ops": {"copy": rows}, "turns": turns}
        (tmp_path / "x.mix.json").write_text(json.dumps(timed_mix(trial=trial)))
        subject = parts.subject("x.mix.json", CACHES)
        own = replaying._predictions(subject, ["wherry"], {"wherry": "default"}, {}, 0.01)["wherry"]
        assert own.turned is tells and own.measurable is tells
        assert own.low >= -0.4


def test_a_narrow_terminal_cuts_nothing_off(monkeypatch, capsys):
    """Names of routines and what is said of them are wrapped, not cut."""
    from wherry.cli import replaying
    from wherry.cli.printer import Printer

    predictions = {
        name: predict.Prediction(name, -0.023, -0.25, 0.083, False, True)
        for name in ("wherry", "ladder")
    }
    found = totals(0.8, 0.9)
    found["hot"]["ladder"] = found["hot"]["wherry"]
    subject = parts.subject("hand.mix.json", CACHES)
    monkeypatch.setattr(replaying, "_parts_block", lambda *_: replaying.Block())
    printer = Printer()
    printer.width = 40
    printer._console.width = 40
    replaying._show(
        printer, subject, None, None, ["libc", "wherry", "ladder"], found, predictions, "Said."
    )
    shown = capsys.readouterr().out
    assert "…" not in shown and max(map(len, shown.splitlines())) <= 40
    words = " ".join(shown.split())
    assert "wherry −2.3 % [−25.0, +8.3] %, tried, not measurable" in words


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


def test_calls_beyond_a_gibibyte_are_said(tmp_path):
    path = tmp_path / "big.mix.json"
    big = {"calls": 2, "bytes": 3 << 30, "sizes": [[3 << 29, 3 << 29, 2, 3 << 30]], "places": []}
    path.write_text(json.dumps({**MIX, "ops": {"copy": big}}))
    with pytest.raises(WherryError, match="its 2 calls is of more than 1 GiB"):
        parts.subject(str(path), CACHES)
    both = {"copy": big, "move": next(iter(MIX["ops"].values()))}
    path.write_text(json.dumps({**MIX, "ops": both}))
    assert parts.subject(str(path), CACHES).beyond == 2


def test_what_was_not_recorded_may_copy_too():
    own = {"likely": 0.001, "at_most": 0.002, "incomplete": True}
    found = totals(0.8, 0.9)
    predictions = {"wherry": predict.predict("wherry", own, found)}
    text = predict.verdict(own, predictions, found, {"wherry": "wherry ab"}, predict.NOISE)
    assert "what was not may copy too" in text and "no more" not in text


def test_replay_prints_totals_and_a_verdict(wherry, tmp_path):
    done = wherry("replay", "hand.mix.json", *QUICK, "--save", "r.json")
    assert done.returncode == 0, done.stderr
    words = " ".join(done.stdout.split())
    # The part of its 80000 bytes: calls whose two sides take at most three quarters of the second level.
    second = parts.caches_of(runner.cpu())["L2"]
    for text in (
        f"to {second * 3 // 8 // 1024 - 1}K",
        "wherry",
        "This run spends 20 % in copies",
        "over libc's",
        "noise",
    ):
        assert text in words
    assert done.stderr == "" and "\033" not in done.stdout
    run = runfile.read(tmp_path / "r.json")
    assert {cell["routine"] for cell in run["cells"]} >= {"libc", "wherry"}
    assert wherry("compare", "r.json", "r.json").returncode == 0
    assert wherry("report", "r.json", "-o", "page.html").returncode == 0


def test_replay_as_json_with_a_plan(wherry):
    made = wherry("plan", "default", "-o", "mine.toml")
    assert made.returncode == 0, made.stderr
    done = wherry("replay", "hand.mix.json", *QUICK, "--plan", "mine.toml", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {"libc", "wherry", "mine"} <= set(found["totals"]["hot"])
    assert {"wherry", "mine"} <= set(found["predictions"]) and found["verdict"]
    low, change, high = (found["predictions"]["mine"][key] for key in ("low", "change", "high"))
    assert low <= change <= high


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_where_nothing_was_measured_that_is_said(monkeypatch, capsys, form):
    from wherry import cli
    from wherry.replay import totals

    monkeypatch.setattr(totals, "add_up", lambda *_: {})
    with pytest.raises(SystemExit) as ended:
        cli.main(["replay", "hand.mix.json", *QUICK, *form])
    assert ended.value.code == 1
    assert "nothing was measured: no round was free of disturbance" in capsys.readouterr().err


def test_a_plan_where_no_cache_can_be_written(wherry, tmp_path, monkeypatch):
    from wherry.cli import replaying

    wherry("plan", "default", "-o", "mine.toml")
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    _, _, identities = replaying._plans(["mine.toml"], runner.cpu())
    assert len(identities["mine"]) == 64


def test_replay_of_a_trial(wherry, tmp_path):
    """Of the plan that was tried, what was tried; of another, what is measured here."""
    rows = [[65536, 98303, [10] * 6, [10 * 20000.0] * 6, [10] * 6, [10 * 10000.0] * 6]]
    trial = {"routines": "dropin", "plan": "default", "ops": {"copy": rows}}
    (tmp_path / "timed.mix.json").write_text(json.dumps(recorded_here(trial=trial)))
    assert wherry("plan", "default", "-o", "mine.toml").returncode == 0
    done = wherry("replay", "timed.mix.json", *QUICK, "--plan", "mine.toml", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["predictions"]["wherry"]["tried"] and not found["predictions"]["mine"]["tried"]
    # 100 calls that take 10 us less, of one second.
    assert found["predictions"]["wherry"]["change"] == pytest.approx(-1e-3, abs=4e-4)
    assert {"timed", "timed_rest"} <= set(found["totals"])
    done = wherry("replay", "timed.mix.json", *QUICK)
    words = " ".join(done.stdout.split())
    for text in ("as timed", "libc, in the program", "upwards", "destination", ", tried"):
        assert text in words, text


HOST = {
    "cpu": "AMD EPYC",
    "family": 26,
    "model_number": 2,
    "stepping": 1,
    "tier": "avx512",
    "libc": "glibc 2.36",
}


@pytest.mark.parametrize(
    ("recorded", "said"),
    [
        (HOST, ""),
        (HOST | {"kernel": "5.10"}, ""),
        (
            HOST | {"family": 25, "model_number": 17},
            "CPU family 25, CPU model 17 there, CPU family 26",
        ),
        (HOST | {"tier": "avx2"}, "vectors to avx2 there, vectors to avx512 here"),
        (HOST | {"libc": "glibc 2.41"}, "glibc 2.41 there, glibc 2.36 here"),
        ({"cpu": "AMD EPYC", "libc": "glibc 2.36"}, "does not tell which machine"),
        ({}, "does not tell which machine"),
    ],
)
def test_which_machine_it_was(recorded, said):
    assert said in host.other(recorded, HOST)
    assert bool(host.other(recorded, HOST)) == bool(said)


def test_what_was_tried_elsewhere_is_not_claimed_here(wherry, tmp_path):
    """Turns and timed calls of another CPU tell nothing of this one; how much of the run were copies stays."""
    rows = [[65536, 98303, [10] * 6, [10 * 20000.0] * 6, [10] * 6, [10 * 10000.0] * 6]]
    turns = {"measure": "calls", "pairs": 400, "covered": 0.9, "change": -0.125, "half": 0.01}
    trial = {"routines": "dropin", "plan": "default", "ops": {"copy": rows}, "turns": turns}
    own = host.here(runner.cpu())
    there = own | {"family": own["family"] + 1, "cpu": "Some\x1b[31m other"}
    (tmp_path / "far.mix.json").write_text(json.dumps(timed_mix(trial=trial, machine=there)))
    done = wherry("replay", "far.mix.json", *QUICK, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    own = found["predictions"]["wherry"]
    assert not own["tried"] and not own["turned"] and own["change"] > -0.1
    assert f"CPU family {there['family']}" in found["elsewhere"] and "timed" in found["totals"]
    done = wherry("replay", "far.mix.json", *QUICK)
    words = " ".join(done.stdout.split())
    assert "Recorded on another machine: CPU" in words and "tried in the program" not in words
    assert "\x1b" not in done.stdout


def test_loading_is_paid_by_each_process(monkeypatch):
    from wherry.cli import replaying
    from wherry.replay import loading

    monkeypatch.setattr(loading, "seconds", lambda: 0.0002)
    subject = parts.Subject("x", (), {"cpu_s": 2.0}, processes=100)
    assert replaying._loading(subject) == pytest.approx(0.01)
    own = predict.Prediction("wherry", -0.02, -0.025, -0.015, True, True, True)
    paid = predict.with_loading(own, 0.01)
    assert (paid.change, paid.low, paid.high) == pytest.approx((-0.01, -0.015, -0.005))
    assert not predict.with_loading(own, 0.02).measurable
    # Of a mix that tells of no run nothing is known.
    assert replaying._loading(parts.Subject("x", (), None)) == 0


def test_what_loading_costs_is_measured_once(monkeypatch, tmp_path):
    from wherry.replay import loading

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = loading.seconds()
    assert 0 <= first < 0.1
    monkeypatch.setattr(loading, "_measure", lambda: pytest.fail("measured again"))
    assert loading.seconds() == first


def test_replay_of_turns(wherry, tmp_path):
    """What the whole program told; unless it told less than single calls."""
    rows = [[65536, 98303, [10] * 6, [10 * 20000.0] * 6, [10] * 6, [10 * 10000.0] * 6]]
    turns = {"measure": "calls", "pairs": 400, "covered": 0.9, "change": -0.125, "half": 0.01}
    trial = {"routines": "dropin", "plan": "default", "ops": {"copy": rows}, "turns": turns}
    (tmp_path / "turned.mix.json").write_text(json.dumps(recorded_here(trial=trial)))
    done = wherry("replay", "turned.mix.json", *QUICK, "--json")
    assert done.returncode == 0, done.stderr
    own = json.loads(done.stdout)["predictions"]["wherry"]
    assert own["tried"] and own["turned"] and own["measurable"]
    assert (own["change"], own["low"], own["high"]) == pytest.approx((-0.125, -0.135, -0.115))
    trial["turns"] = turns | {"half": 0.09}
    (tmp_path / "wide.mix.json").write_text(json.dumps(recorded_here(trial=trial)))
    done = wherry("replay", "wide.mix.json", *QUICK, "--json")
    own = json.loads(done.stdout)["predictions"]["wherry"]
    assert own["tried"] and not own["turned"]
    assert own["change"] == pytest.approx(-1e-3, abs=4e-4)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("gone.mix.json",), 2, "no such file"),
        (("bad.mix.json",), 2, "bad.mix.json"),
        (("empty.mix.json",), 2, "nothing was copied"),
        (("hand.mix.json", "--plan", "gone.toml"), 2, "gone.toml"),
        (("hand.mix.json", "--peer", "x"), 2, "peer"),
        ((), 2, "MIX"),
    ],
)
def test_misuse_is_one_line(wherry, tmp_path, words, status, said):
    (tmp_path / "bad.mix.json").write_text(json.dumps(MIX)[:200])
    (tmp_path / "empty.mix.json").write_text(json.dumps(MIX | {"ops": {}}))
    done = wherry("replay", *words)
    assert done.returncode == status and said in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr


def test_the_script_of_real_programs(wherry_run, tmp_path):
    """One program through all of it, as small as it goes; then the page again from what was kept."""
    import os
    import subprocess
    import sys

    if not (wherry_run.parent.parent / "preload").is_dir() or shutil.which("gzip") is None:
        pytest.skip("needs gzip and a build with the preloaded objects")
    env = os.environ | {"WHERRY_RUN": str(wherry_run)}
    script = [sys.executable, str(ROOT / "tools" / "programs")]

    def call(*words):
        return subprocess.run(
            [*script, *words], capture_output=True, text=True, env=env, check=False, timeout=600
        )

    assert call("no-such-program").returncode == 2
    assert call("gzip", "--runs", "2").returncode == 2
    options = (
        "gzip",
        "--quick",
        "--work",
        str(tmp_path / "w"),
        "--plan",
        "none",
        "--runs",
        "8",
        "--time",
        "5",
        "-o",
        "p.md",
    )
    done = call(*options)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "p.md").read_text()
    assert "| gzip |" in text and "ceiling" in text and "With the default plan" in text
    again = call(*options)
    assert again.returncode == 0 and "record" not in again.stderr


def test_what_the_page_calls_agreement(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "programs.d"))
    page = importlib.import_module("page")

    def of(change: float, claimed: bool, call: str, low: float, high: float) -> str:
        predicted = {"change": change, "measurable": claimed}
        ratio = {"median": 1 + (low + high) / 2, "low": 1 + low, "high": 1 + high}
        return page.agreement(predicted, {"call": call, "ratio": ratio})

    assert of(-0.05, True, "faster", -0.06, -0.04) == "yes, size too"
    assert of(-0.05, True, "faster", -0.12, -0.08) == "in sign; 0.5 times the size"
    assert of(-0.05, True, "slower", 0.01, 0.02) == "no: refuted"
    assert of(-0.05, True, "tie", -0.06, 0.01).startswith("undecided")
    assert of(-0.05, True, "tie", -0.01, 0.01) == "no: claimed, not seen"
    assert of(-0.05, False, "tie", -0.01, 0.01).startswith("yes: nothing claimed")
    assert of(-0.001, False, "slower", 0.02, 0.04) == "nothing claimed; sign wrong"


def test_what_was_measured_with_another_plan_is_measured_again(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "programs.d"))
    kept = importlib.import_module("kept")
    plan = tmp_path / "mine.toml"
    plan.write_text("a")
    first = kept.digest(plan)
    plan.write_text("b")
    second = kept.digest(plan)
    commands = {"one": "cat", "two": "dd"}
    kept.write(
        tmp_path,
        {
            "one": {"command": "cat", "plan": first},
            "two": {"command": "dd if=x", "plan": first},
            "gone": {"command": "cat", "plan": first},
        },
    )
    assert list(kept.read(tmp_path, commands, first)) == ["one"]
    assert kept.read(tmp_path, commands, second) == kept.read(tmp_path, commands, None) == {}
    assert capsys.readouterr().err == ""
    (tmp_path / kept.FILE).write_text('{"one": {"command": "cat"}}')
    assert kept.read(tmp_path, commands, None) == {}
    assert "damaged or old" in capsys.readouterr().err


@pytest.mark.parametrize("data", [b"", b"[1]", "{}".encode("utf-16"), b"[[[["])
def test_what_is_no_mix_is_said_of_the_mix(tmp_path, data):
    (tmp_path / "x.mix.json").write_bytes(data)
    with pytest.raises(WherryError) as error:
        parts.subject("x.mix.json", CACHES)
    said = str(error.value)
    assert said.startswith("x.mix.json") and "size:probability" not in said and "--mix" not in said


def test_told_to_end_it_leaves_nothing(wherry_run, tmp_path):
    place = tmp_path / "scratch"
    place.mkdir()
    env = {**os.environ, "WHERRY_RUN": str(wherry_run), "TMPDIR": str(place)}
    own = subprocess.Popen(
        [sys.executable, "-m", "wherry", "replay", "hand.mix.json", "--no-found-peers"],
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: list(place.glob("wherry-mixes-*/*")), "calls to make are written")
    own.terminate()
    assert own.wait(60) == 143
    assert not list(place.iterdir())
