"""What the turns of a trial tell of the whole program: the estimate by what is known, and the recorder's turns."""

from __future__ import annotations

import json
import os
import random
import re

import numpy as np
import pytest
from conftest import run
from test_record import Recorded, known, record, recorder
from wherry.recording import blocks, turns
from wherry.replay import predict

__all__ = ["known", "record", "recorder"]  # fixtures

TICKS_PER_NS = 2.0
TURN = 4_000_000  # ticks: 2 ms


def made(
    pairs: int, effect: float, seed: int, spread: float = 0.2, phase: float = 1.0
) -> np.ndarray:
    """Pairs of turns of a program that calls unevenly, and in one half of the time `phase` times as often."""
    chance = np.random.default_rng(seed)
    found = np.zeros((pairs, 2, blocks.TURN_FIELDS), np.uint64)
    for i in range(pairs):
        rate = 5000 * (phase if i < pairs / 2 else 1)
        for side, own in enumerate((1.0, 1 + effect)):
            calls = rate / own * np.exp(chance.normal(0, spread))
            found[i, side] = (TURN, round(calls), round(calls / 10), round(calls * 800))
    return found


def told(runs, elapsed_s: float | None = None) -> turns.Turned:
    if elapsed_s is None:
        elapsed_s = sum(int(p[:, :, 0].sum()) for run in runs for p in run) / TICKS_PER_NS / 1e9
    found = turns.summed(runs, TICKS_PER_NS, elapsed_s, elapsed_s)
    assert found is not None
    return turns.of({"trial": {"turns": found}})


@pytest.mark.parametrize("effect", [-0.3, -0.05, 0.0, 0.04, 0.5])
@pytest.mark.parametrize("phase", [1.0, 100.0])
def test_a_known_effect(effect: float, phase: float):
    inside = 0
    for seed in range(10):
        own = told([[made(1000, effect, seed, phase=phase)]])
        inside += abs(own.change - effect) <= own.within
        # The groups' own spread is known to a fifth.
        assert own.within < 0.03 * max(1 + effect, 1) and own.tells
        assert own.covered == pytest.approx(1, abs=0.02)
    # 95 % of them; of ten all but two come out with more than 98 % chance, and these seeds stay as they are.
    assert inside >= 8


def test_turns_in_which_the_program_waited():
    """They are some pairs in a hundred and most of the time; nothing is claimed of it."""
    pairs = made(1000, -0.2, 1)
    pairs[::100, 1, 0] *= np.uint64(200)
    pairs[50::100, 0, 0] *= np.uint64(200)
    own = told([[pairs]])
    # 980 pairs of two turns and 20 of 201, which count as four.
    assert own.covered == pytest.approx((980 * 2 + 20 * 4) / (980 * 2 + 20 * 201), abs=0.01)
    assert own.change == pytest.approx(-0.2 * own.covered, abs=0.02)


def lasting(pairs: int, effect: float, seed: int) -> np.ndarray:
    """Of calls of many megabytes alone: a turn is 24 of them, whatever these take."""
    chance = np.random.default_rng(seed)
    found = np.zeros((pairs, 2, blocks.TURN_FIELDS), np.uint64)
    for i in range(pairs):
        for side, own in enumerate((1.0, 1 + effect)):
            found[i, side] = (round(1e8 * own * np.exp(chance.normal(0, 0.02))), 30, 24, 24 << 24)
    return found


def test_turns_that_last_tell_of_what_was_before_them():
    """For half of the time nothing is told by either side; the program does the same there."""
    short, long = made(40, 0.0, 1, spread=0.05), lasting(5, -0.3, 1)
    both_s = (int(short[:, :, 0].sum()) + 2 * int(long[:, :, 0].sum())) / TICKS_PER_NS / 1e9
    found = turns.summed([[short]], TICKS_PER_NS, both_s, both_s, [[long]])
    own = turns.of({"trial": {"turns": found}})
    assert own.covered == pytest.approx(1, abs=0.01) and own.pairs == 45
    part = 2 * int(long[:, :, 0].sum()) / TICKS_PER_NS / 1e9 / both_s
    assert own.lasting == pytest.approx(part, abs=0.01) and 0.8 < part < 0.95
    assert own.change == pytest.approx(-0.3 * part, abs=0.02) and 0.003 < own.within < 0.05
    # What the others tell, and what might be chance, is not added.
    noisy = turns.summed([[made(40, -0.1, 1, spread=0.5)]], TICKS_PER_NS, both_s, both_s, [[long]])
    sure = turns.summed([[made(40, -0.4, 1, spread=0.05)]], TICKS_PER_NS, both_s, both_s, [[long]])
    assert noisy["change"] == pytest.approx(found["change"], abs=0.003)
    assert noisy["half"] > found["half"]
    assert sure["change"] == pytest.approx(found["change"] - 0.4 * (1 - part), abs=0.02)
    # Fewer pairs of a kind than tell something are left out, of either.
    found = turns.summed([[short[:20]]], TICKS_PER_NS, both_s, both_s, [[long]])
    assert found["pairs"] == 5 and found["lasting"] == pytest.approx(part, abs=0.01)
    found = turns.summed([[short]], TICKS_PER_NS, both_s, both_s, [[long[:3]]])
    assert found["pairs"] == 40 and "lasting" not in found
    # Several runs tell by themselves how they differ.
    runs = [lasting(2, effect, seed) for seed, effect in enumerate((-0.2, -0.3, -0.4))]
    whole_s = 2 * sum(int(run[:, :, 0].sum()) for run in runs) / TICKS_PER_NS / 1e9
    found = turns.summed([[], [], []], TICKS_PER_NS, whole_s, whole_s, [[run] for run in runs])
    assert len(found["runs"]) == 3 and found["half"] > 0.1


def test_what_the_run_had_taken_with_libc_alone():
    def alone(change: float, covered: float = 1.0, half: float = 0.01, ops: dict | None = None):
        told = {"measure": "calls", "pairs": 99, "covered": covered, "change": change, "half": half}
        rows = {"copy": [[8192, 12287, [9] * 6, [9e6] * 6, [9] * 6, [4.5e6] * 6]]} if ops else {}
        return turns.libc_alone(2.0, {"turns": told, "ops": rows}, ops or {})

    assert alone(0.0) == 2.0
    # In its half of the time the other, twice as fast, came as far as libc in all of it.
    assert alone(-0.5) == pytest.approx(1 + 2)
    assert alone(1.0) == alone(1.0, half=0.4) == pytest.approx(1 + 0.5)
    assert alone(-0.25, 0.5) == pytest.approx(
        1.0 + 0.5 + 1.0
    )  # half of the run is outside of turns
    # Turns that tell too little: by single calls of a millisecond, of which the faster side had two of three.
    assert alone(-0.5, half=0.3) == 2.0
    ops = {"copy": {"sizes": [[9000, 9000, 1200, 1200 * 9000]]}}
    assert alone(-0.5, half=0.3, ops=ops) == pytest.approx(2.0 + 1200 * 0.5e-3 * 2 / 3)
    assert turns.libc_alone(2.0, {"ops": {}}, {}) == 2.0


def test_runs_that_differ_widen_the_interval():
    alike = told([[made(300, -0.1, seed)] for seed in range(5)])
    apart = told([[made(300, effect, 7)] for effect in (-0.2, -0.1, 0.0, -0.15, -0.05)])
    assert apart.half > 3 * alike.half and apart.apart == alike.apart == 0
    assert abs(apart.change + 0.1) < apart.half
    two = told([[made(300, -0.2, 1)], [made(300, 0.0, 2)]])
    # Two tell by their groups that they differ, and not by how much others may: what programs were found to differ by
    # is taken, of one run more than of the mean of two.
    assert 2 * alike.within < two.within < apart.within
    one = told([[made(300, -0.1, 1)]])
    assert one.apart == pytest.approx(two.apart * 2**0.5) == pytest.approx(1.96 * turns.APART)
    assert one.half == pytest.approx((one.within**2 + one.apart**2) ** 0.5)


@pytest.mark.parametrize(
    ("ceiling", "deviation"),
    [
        ({"likely": 0.5, "at_most": 0.6}, turns.APART + 0.5 * turns.APART_OF_COPIES),
        # What copies are nothing of, their routines change little.
        ({"likely": 0.001, "at_most": 0.002}, 0.002 + 0.001 * turns.APART_OF_COPIES),
        ({"likely": 0.001, "at_most": 0.002, "incomplete": True}, turns.APART + 0.00002),
        (None, turns.APART),
    ],
)
def test_another_run_of_a_program_differs_by_as_much_as_copies_are(ceiling, deviation):
    found = {"measure": "calls", "pairs": 900, "covered": 1.0, "change": -0.05, "half": 0.002}
    document = {
        "trial": {"routines": "dropin", "plan": "default", "turns": found | {"runs": [-0.05]}},
        "ceiling": ceiling and {"cpu_s": 1.0, **ceiling},
        "ops": {},
    }
    assert turns.of(document).apart == pytest.approx(1.96 * deviation)
    said = "most of the interval is what other runs may differ by: --runs 3 or more tells it"
    assert (said in turns.in_words(document)) == (1.96 * deviation > 0.002)
    found["runs"] = [-0.05] * 3
    assert turns.of(document | {"trial": {"routines": "dropin", "turns": found}}).apart == 0


def test_a_prediction_by_one_run_says_so():
    """And asks for more where that is why nothing is claimed."""
    one = turns.Turned("calls", 900, 1.0, -0.05, 0.002, apart=0.03)
    several = turns.Turned("calls", 900, 1.0, -0.05, 0.03)
    ceiling = {"cpu_s": 1.0, "likely": 0.3, "at_most": 0.4}

    def said(turned: turns.Turned, noise: float = 0.01) -> str:
        own = predict.of_turns("wherry", turned, noise)
        return predict.verdict(ceiling, {"wherry": own}, {}, {"wherry": "wherry ab"}, noise)

    assert "by what was tried in few runs of the program. See whether" in said(one)
    assert "by what was tried in the program. See whether" in said(several)
    wide = turns.Turned("calls", 900, 1.0, -0.02, 0.002, apart=0.03)
    assert "does not leave out 0, which more runs may: wherry record --runs 5; keep" in said(wide)
    assert "does not leave out 0; keep" in said(turns.Turned("calls", 900, 1.0, -0.02, 0.03))


def test_phases_of_a_program_widen_the_interval():
    """Of a hundred and fifty pairs each in which a routine gains much or nothing there are few, however many pairs."""
    steady = told([[made(1200, -0.1, 1, spread=0.05)]])
    phases = np.concatenate([made(150, (-0.2, 0.0)[i % 2], i, spread=0.05) for i in range(8)])
    assert told([[phases]]).within > 3 * steady.within
    # In an order in which they are as many, but last no longer than a pair, it says no less than it did.
    mixed = phases[np.random.default_rng(1).permutation(len(phases))]
    assert told([[mixed]]).within < told([[phases]]).within / 2


def test_the_measure_that_spreads_least_is_taken():
    pairs = made(500, -0.1, 3)
    chance = random.Random(1)
    for pair in pairs:
        for side in pair:
            side[1] = np.uint64(max(1, int(side[1]) * chance.choice([1, 30])))
    own = told([[pairs]])
    assert own.measure in ("larger", "bytes")
    assert own.change == pytest.approx(-0.1, abs=0.03)


@pytest.mark.parametrize(
    "runs",
    [
        [],
        [[]],
        [[made(turns.LEAST_PAIRS - 1, -0.1, 1)]],
        [[np.zeros((100, 2, blocks.TURN_FIELDS), np.uint64)]],
    ],
)
def test_too_little_tells_nothing(runs):
    assert turns.summed(runs, TICKS_PER_NS, 1.0, 1.0) is None
    assert turns.of({"trial": {}}) is None and turns.of({}) is None


def test_no_time_is_no_traceback():
    found = turns.summed([[made(100, -0.1, 1)]], TICKS_PER_NS, 0.0, 0.0)
    assert found["covered"] == found["change"] == 0


def test_a_prediction_is_what_the_turns_tell():
    own = predict.of_turns("wherry", turns.Turned("calls", 500, 1.0, -0.05, 0.01))
    assert (own.change, own.low, own.high) == pytest.approx((-0.05, -0.06, -0.04))
    assert own.measurable and own.tried
    assert not predict.of_turns("wherry", turns.Turned("calls", 500, 1.0, -0.05, 0.06)).measurable
    # Too wide to be of use, unless the change is far wider.
    assert not turns.Turned("calls", 30, 1.0, -0.01, 0.06).tells
    assert turns.Turned("calls", 30, 1.0, -0.30, 0.06).tells
    # What scatters much is not vouched for by how much it is.
    assert not turns.Turned("calls", 53, 1.0, -0.58, 0.245).tells


# --- the recorder's turns -------------------------------------------------------------------------
def test_calls_may_gain_more_than_turns_tell():
    """A loss that the recorder may have made of a gain is not claimed; a gain is one all the more."""
    found = {"measure": "calls", "pairs": 900, "covered": 0.9, "change": 0.015, "half": 0.005}
    rows = [[1, 1, 30_000_000, 30_000_000], [2000, 2047, 100_000, 200_000_000]]
    document = {
        "trial": {"routines": "wherry", "turns": found},
        "ops": {"move": {"sizes": rows}},
        "ceiling": {"cpu_s": 0.7},
    }
    found["runs"] = [0.015] * 3
    own = turns.of(document)
    assert own.hidden == pytest.approx((30e6 * 1.3e-9 + 1e5 * 3e-9) / 0.7)
    predicted = predict.of_turns("wherry", own)
    assert (predicted.low, predicted.high) == pytest.approx((0.01 - own.hidden, 0.02))
    assert not predicted.measurable
    found["change"] = -0.02
    assert predict.of_turns("wherry", turns.of(document)).measurable
    rows[0][2] = 1000
    found["change"] = 0.015
    assert predict.of_turns("wherry", turns.of(document)).measurable
    assert turns.of(document | {"ceiling": None}).hidden == 0


@pytest.fixture
def tried(recorder, build_dir, known, tmp_path):
    """A run under the recorder, with a library behind it to be tried, or without one."""

    def call(*arguments: str, behind: str | None) -> Recorded:
        preloaded = f"{recorder}:{build_dir / behind}" if behind else str(recorder)
        more = {"WHERRY_TRIAL": "1"}
        return Recorded(preloaded, tmp_path / "parts", known, *arguments, more=more)

    return call


SLOW = "tests/c/recorder/librecorder-slow.so"


def test_the_recorder_sees_that_the_program_is_slower(tried):
    """Of calls that take two microseconds more in every other turn."""
    found = tried("times", "10000000", behind=SLOW)
    own = told(found.merger.turns)
    assert own.pairs > 30
    assert own.change > 1.0
    (pairs,) = found.merger.turns[0]
    # As long as asked for, less what went into counting: little beside two microseconds, much beside libc's.
    assert np.median(pairs[:, 1, 0]) >= 0.9 * (1 << 22)
    assert 0.1 * (1 << 22) < np.median(pairs[:, 0, 0]) < 0.9 * (1 << 22)
    assert pairs[:, :, 1].sum() <= found.count(700)
    # 700 bytes are none of the larger ones.
    assert not pairs[:, :, 2:].any()


def test_a_trial_of_nothing_else_finds_no_difference(tried):
    """Without a library behind it both sides are libc's; in one of a few runs at least, since turns of a machine that
    has other work are also of who waits for a processor."""
    changes = []
    while not changes or (abs(changes[-1]) >= 0.5 and len(changes) < 8):
        own = told(tried("times", "20000000", behind=None).merger.turns)
        assert own.pairs > 24
        changes.append(own.change)
    assert abs(changes[-1]) < 0.5, changes


def test_larger_calls_and_their_bytes(tried):
    found = tried("ascending", "200000", behind="preload/libwherry-dropin.so")
    (pairs,) = found.merger.turns[0]
    sides = pairs.sum(axis=(0, 1)).tolist()
    assert 0 < sides[2] <= 200000 and sides[3] == sides[2] * found_size(found)
    # Turns go to both, one after the other.
    assert (pairs[:, :, 0] > 0).all()


def found_size(found: Recorded) -> int:
    (size,) = {row[3] // row[2] for row in found.ops["copy"]["sizes"] if row[0] <= 8192 <= row[1]}
    return size


def test_more_turns_than_are_kept_become_longer(build_dir):
    """Two pairs become one of turns that are twice as long, and nothing that was counted is lost."""
    assert run(build_dir / "tests/c/recorder/turns-test").stdout == "turns: kept\n"


@pytest.mark.parametrize("mode", ["fork", "threads", "signals", "vfork"])
def test_turns_of_processes_and_threads(tried, mode: str):
    processes = tried(mode, "8", behind="preload/libwherry-dropin.so").processes
    assert processes
    for process in processes:
        assert process.turns.shape[1:] == (2, blocks.TURN_FIELDS)
        assert (process.turns[:, :, 0] < 1 << 50).all()


def test_record_tells_what_the_turns_tell(record, known):
    done, mix = record("--", known, "ascending", "400000")
    assert done.returncode == 0
    words = " ".join(done.stderr.split())
    assert re.search(
        r"trial the whole program's time changes by \S+ % \[\S+, \S+\] in turns with the drop-in, against turns with "
        r"libc \([\d,]+ pairs of turns, [\d.]+ % of the run\)",
        words,
    )
    own = mix["trial"]["turns"]
    assert own["pairs"] >= turns.LEAST_PAIRS and own["half"] >= 0 and len(own["runs"]) == 1


def test_another_library_is_tried(record, known, build_dir, wherry, tmp_path):
    done, mix = record("--try", build_dir / SLOW, "--", known, "times", "10000000")
    assert done.returncode == 0, done.stderr
    trial = mix["trial"]
    assert trial["routines"] == "librecorder-slow" and re.fullmatch("[0-9a-f]{64}", trial["plan"])
    assert trial["turns"]["change"] > 1.0
    # The ceiling is of what the run had taken with libc alone, as far as turns tell: on a busy machine they may not.
    ceiling = mix["ceiling"]
    whole_s = ceiling["cpu_s"] + ceiling["trial_s"]
    assert 0 < whole_s <= mix["run"]["user_s"] + mix["run"]["system_s"] + 1e-6
    assert ceiling["cpu_s"] == pytest.approx(turns.libc_alone(whole_s, trial, mix["ops"]), abs=1e-5)
    alone = "of processor time of its own, with libc alone)" in " ".join(done.stderr.split())
    assert alone == (ceiling["trial_s"] >= 0.01 * ceiling["cpu_s"])
    assert "in turns with librecorder-slow, against turns with libc" in " ".join(
        done.stderr.split()
    )
    # What is told of it is not taken for the drop-in's.
    (tmp_path / "slow.mix.json").write_text(json.dumps(mix))
    done = wherry("replay", tmp_path / "slow.mix.json", "--quick", "--no-found-peers", "--json")
    assert done.returncode == 0, done.stderr
    assert not any(own["tried"] for own in json.loads(done.stdout)["predictions"].values())


def test_libc_is_tried_against_itself(record, known):
    changes = []
    while not changes or (abs(changes[-1]) >= 0.5 and len(changes) < 8):
        done, mix = record("--try", "libc", "--", known, "times", "10000000")
        assert done.returncode == 0, done.stderr
        assert (mix["trial"]["routines"], mix["trial"]["plan"], mix["trial"]["ops"]) == (
            "libc",
            "libc",
            {},
        )
        changes.append(mix["trial"]["turns"]["change"])
    assert abs(changes[-1]) < 0.5, changes
    assert "in turns with libc once more" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--try", "gone.so"), "gone.so: No such file or directory; give a shared object, or libc"),
        (("--try", "text.so"), "it is no shared object"),
        (("--try", "pipe.so"), "pipe.so: it is not a file; give a shared object, or libc"),
        (("--try", "PROGRAM"), "it has none of memcpy, memmove, memset"),
        (("--plan", "foreign.toml"), "foreign.toml: it is for family 2, and this CPU is family"),
        (("--try", "libc", "--plan", "x.toml"), "--plan is the drop-in's"),
        (("--try", "libc", "--no-trial"), "--try is of the trial, which --no-trial leaves out"),
    ],
)
def test_what_cannot_be_tried(record, wherry, build_dir, tmp_path, words, said):
    (tmp_path / "text.so").write_text("no object")
    os.mkfifo(tmp_path / "pipe.so")
    places = {"PROGRAM": build_dir / "runner/wherry-run"}
    places |= {name: tmp_path / name for name in ("text.so", "pipe.so")}
    if "foreign.toml" in words:
        places["foreign.toml"] = tmp_path / "foreign.toml"
        wherry("plan", "default", "-o", places["foreign.toml"])
        text = re.sub(r"family = \d+", "family = 2", places["foreign.toml"].read_text())
        places["foreign.toml"].write_text(text)
    words = [places.get(word, word) for word in words]
    done, mix = record(*words, "--", "true")
    assert (done.returncode, mix) == (2, None)
    assert said in done.stderr and len(done.stderr.strip().splitlines()) == 1, done.stderr


@pytest.mark.parametrize(
    ("change", "covered"), [("x", 1), (-2, 1), (0.1, 1.5), (float("nan"), 1), (0.1, None)]
)
def test_a_mix_with_turns_that_cannot_be(wherry, tmp_path, change, covered):
    from test_replay import MIX

    own = {"measure": "calls", "pairs": 100, "covered": covered, "change": change, "half": 0.1}
    mix = MIX | {"trial": {"routines": "dropin", "plan": "default", "ops": {}, "turns": own}}
    (tmp_path / "bad.mix.json").write_text(json.dumps(mix))
    done = wherry("replay", tmp_path / "bad.mix.json", "--quick")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1 and "bad.mix.json" in done.stderr


@pytest.mark.parametrize(
    ("half", "runs", "said"),
    [(0.1, 5, "--runs 20 may"), (0.06, 1, "--runs 3 may"), (0.04, 1, None)],
)
def test_more_runs_are_asked_for_where_turns_tell_too_little(half, runs, said):
    own = {"measure": "calls", "pairs": 60, "covered": 1.0, "change": -0.03, "half": half}
    trial = {"routines": "dropin", "plan": "default", "turns": own}
    words = turns.in_words({"trial": trial, "run": {"runs": runs}})
    assert (said in words) if said else "--runs" not in words


def test_turns_that_tell_too_little_are_called_so_where_no_number_of_runs_helps():
    own = {"measure": "calls", "pairs": 26, "covered": 1.0, "change": 0.059, "half": 0.98}
    trial = {"routines": "dropin", "plan": "default", "turns": own}
    words = turns.in_words({"trial": trial, "run": {"runs": 1}})
    assert words.endswith("; too wide to predict by")
    # No interval reaches to less time than none.
    trial["turns"] = {**own, "half": 1.49}
    words = turns.in_words({"trial": trial, "run": {"runs": 1}})
    assert "[−100.0, +154.9]" in words


@pytest.mark.parametrize(
    ("change", "ceiling", "doubted"),
    [
        (-0.78, {"likely": 0.005, "at_most": 0.009}, True),
        (-0.78, {"likely": 0.005, "at_most": 0.009, "incomplete": True}, False),
        (-0.78, None, False),
        (-0.05, {"likely": 0.06, "at_most": 0.09}, False),
        (0.78, {"likely": 0.005, "at_most": 0.009}, False),
    ],
)
def test_a_gain_that_is_more_than_the_ceiling_is_doubted(change, ceiling, doubted):
    own = {"measure": "calls", "pairs": 26, "covered": 1.0, "change": change, "half": 0.02}
    trial = {"routines": "dropin", "plan": "default", "turns": own}
    ceiling = ceiling and {"cpu_s": 0.3, **ceiling}
    words = turns.in_words({"trial": trial, "ceiling": ceiling, "ops": {}})
    assert ("would gain 0.9 % at most, so it is not theirs" in words) == doubted


@pytest.mark.parametrize(("cpu", "elapsed"), [(1, 1), (4, 1), (1, 4)])
def test_a_change_is_of_the_part_of_the_run_that_turns_cover(cpu, elapsed):
    """Of what one thread can have: several have more than there is, and one that waits less."""
    runs = [[made(50, effect, 1, spread=0)] for effect in (-0.1, -0.3)]
    whole_s = 2 * 100 * 2 * TURN / TICKS_PER_NS / 1e9  # twice the time of all turns
    found = turns.summed(runs, TICKS_PER_NS, whole_s * cpu, whole_s * elapsed)
    assert found["covered"] == pytest.approx(0.5) and found["pairs"] == 100
    assert found["runs"] == pytest.approx([-0.05, -0.15], abs=1e-3)
    # In the mean of the logarithms.
    assert found["change"] == pytest.approx(0.5 * ((0.9 * 0.7) ** 0.5 - 1), abs=1e-3)


def test_what_is_covered_twice_counts_in_proportion():
    """What was before turns that last is guessed from them, and may be what the short ones tell of."""
    short, long = made(40, -0.1, 1, spread=0), made(8, -0.4, 1, spread=0)
    long[:, :, 0] *= 10
    whole_s = 1.25 * 8 * 2 * 10 * TURN / TICKS_PER_NS / 1e9
    # The ones cover 2 / 1.25 of it and no more than all, the others 0.4.
    found = turns.summed([[short]], TICKS_PER_NS, whole_s, whole_s, [[long]])
    assert found["covered"] == 1 and found["lasting"] == pytest.approx(1 / 1.4, abs=1e-4)
    change = (-0.4 - 0.4 * 0.1) / 1.4
    assert found["change"] == pytest.approx(change, abs=1e-3)
    assert found["runs"] == pytest.approx([change], abs=1e-3) and found["pairs"] == 48


def test_groups_of_pairs_tell_of_phases():
    """As twelve independent figures would, each by its time."""
    rng = np.random.default_rng(4)
    ratio = np.repeat(rng.normal(0, 0.1, 12), 4)
    even = turns._grouped_error(ratio, np.ones(48), ratio.mean())
    assert even == pytest.approx(np.std(ratio[::4], ddof=1) / 12**0.5)
    heavy = np.repeat(rng.uniform(1, 2, 12), 4)
    value = np.average(ratio, weights=heavy)
    own = (((heavy * (ratio - value))[::4] ** 2).sum() ** 0.5) / heavy[::4].sum()
    assert turns._grouped_error(ratio, heavy, value) == pytest.approx(own * (12 / 11) ** 0.5)
    assert turns._grouped_error(ratio[:47], np.ones(47), 0.0) == 0.0
