"""What a trial's single calls tell: what they took with libc's routines and with others, of all and of the largest."""

from __future__ import annotations

import copy

import pytest
from conftest import ROOT
from made_mixes import SMALL
from wherry.recording import trial


def test_a_trial_is_calls_times_the_difference():
    op = {"sizes": [[100, 100, 50, 5000], [9000, 9000, 1000, 9000000], [70000, 70000, 9, 630000]]}
    usual, tried = [20] * 6, [40] * 6
    row = [8192, 12287, usual, [20 * 500.0] * 6, tried, [40 * 400.0] * 6]
    own = trial.change(op, [row], 4097, 1 << 30)
    # 1000 calls of 500 and of 400 ns; the bytes of which nothing is known are as those.
    assert own.seconds == pytest.approx(-1070 * 100e-9)
    assert own.libc.mean() == pytest.approx(1070 * 500e-9)
    assert own.half == pytest.approx(0)
    assert trial.change(op, [row], 65536, 1 << 30) is None
    few = [8192, 12287, [1] * 6, [500.0] * 6, [1] * 6, [400.0] * 6]
    assert trial.change(op, [few], 4097, 1 << 30) is None
    uneven = [8192, 12287, usual, [20 * 500.0] * 6, tried, [40.0 * ns for ns in (200, 600) * 3]]
    own = trial.change(op, [uneven], 4097, 10000)
    assert own.seconds == pytest.approx(-1000 * 100e-9) and own.half > 1000 * 100e-9


def test_calls_that_outlast_a_turn_are_told_apart():
    document = copy.deepcopy(SMALL)
    document["ops"]["copy"]["sizes"] = [
        [2000, 2000, 100, 200_000],
        [1 << 25, 1 << 25, 20, 20 << 25],
    ]
    row = [1 << 25, (3 << 24) - 1, [2] * 6, [8e6] * 6, [1] * 6, [3e6] * 6]
    document["trial"]["ops"] = {
        "copy": [[1536, 2047, [9] * 6, [900.0] * 6, [9] * 6, [90.0] * 6], row]
    }
    own = trial.outlasting(document)
    assert own.seconds == pytest.approx(20 * -1e-3) and own.libc.mean() == pytest.approx(20 * 4e-3)
    row[4:] = [1] * 5 + [0], [3e6] * 5 + [0.0]
    assert trial.outlasting(document) is None  # fewer than six of a side
    row[2:] = [2] * 6, [1.9e6] * 6, [1] * 6, [1e6] * 6
    assert trial.outlasting(document) is not None  # not as long, but short turns have few of these
    document["ops"]["copy"]["sizes"][1] = [1 << 19, 1 << 19, 20, 20 << 19]
    row[:2] = [1 << 19, (3 << 18) - 1]
    assert trial.outlasting(document) is None


def test_calls_of_megabytes_that_nothing_tells_of():
    document = copy.deepcopy(SMALL)
    document["ops"] = {"copy": document["ops"]["copy"]}
    document["ops"]["copy"]["sizes"] = [
        [1 << 19, 1 << 19, 8, 8 << 19],
        [16 << 20, 16 << 20, 3, 48 << 20],
    ]
    part = {"op": "copy", "calls": 11, "at_most_s": 0.5}
    parts = [part | {"up_to": 1 << 20, "likely_s": 0.3}, part | {"up_to": None, "likely_s": 0.4}]
    document["ceiling"] = {"cpu_s": 1.0, "likely": 0.7, "at_most": 0.9, "parts": parts}
    document["trial"] = {"routines": "dropin", "plan": "default", "ops": {}}
    assert trial.untold(document) == pytest.approx(0.4)
    document["trial"]["turns"] = {"lasting": 0.2}
    assert trial.untold(document) == 0
    row = [16 << 20, (24 << 20) - 1, [1] * 6, [3e6] * 6, [1] * 6, [2e6] * 6]
    document["trial"] |= {"turns": {}, "ops": {"copy": [row]}}
    assert trial.untold(document) == 0
    assert trial.untold({"ops": {}}) == 0


def test_a_trial_that_took_no_time_tells_nothing():
    rows = [[8192, 12287, [10] * 6, [0.0] * 6, [10] * 6, [0.0] * 6]]
    op = {"sizes": [[9000, 9000, 100, 900000]]}
    document = {"ops": {"copy": op}, "ceiling": {"cpu_s": 1.0}}
    document["trial"] = {"plan": "default", "ops": {"copy": rows}}
    assert trial.in_words(document) is None


def test_calls_of_a_run_take_no_more_than_all_of_its_time():
    """Beside other programs they wait, which the clock counts; and none takes less than nothing."""
    # Of 90 ns a call of libc's and 9 to 171 of the others, by group.
    rows = [[8192, 12287, [10] * 6, [900.0] * 6, [10] * 6, [90.0, 1710.0] * 3]]
    op = {"sizes": [[9000, 9000, 10_000_000, 90_000_000_000]]}
    document = {"ops": {"copy": op}, "ceiling": {"cpu_s": 0.3}}
    document["trial"] = {"routines": "dropin", "plan": "default", "ops": {"copy": rows}}
    assert "took 1.00 times as long" in trial.in_words(document)
    assert "0.0 % [−100.0, +103.5] of this run" in trial.in_words(document)
    rows[0][5] = [9.0] * 5 + [1710.0]
    assert "−67.5 % [−100.0, +13.5] of this run" in trial.in_words(document)
    document["ceiling"]["cpu_s"] = 9.0
    assert "−6.8 % [−10.0, +1.3] of this run" in trial.in_words(document)


def test_the_recorder_and_its_reader_agree_from_where_turns_last():
    power = trial.LASTING_FROM.bit_length() - 1
    assert 1 << power == trial.LASTING_FROM
    assert f"LASTING_FROM = 1 << {power}," in (ROOT / "preload/recorder/block.h").read_text()
