"""`wherry replay`: how a mix is cut, what is predicted of known totals, and the command as a user runs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
from conftest import wait_until
from made_replays import CACHES, MIX, recorded_here, timed_mix, totals
from wherry import runfile, runner, tables
from wherry.cli import tuning
from wherry.errors import WherryError
from wherry.recording import host
from wherry.replay import parts, predict
from wherry.replay import totals as measured

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


@pytest.mark.parametrize(
    ("given", "ops", "mean", "largest"),
    [
        ("uniform:0-64", {"copy", "move", "set"}, 32, 64),
        ("log:1-4K", {"copy", "move", "set"}, None, 4096),
        ("sort.copy", {"copy"}, None, None),
    ],
)
def test_what_the_list_of_mixes_has_is_a_mix(given, ops, mean, largest):
    subject = parts.subject(given, CACHES)
    assert {part.op for part in subject.parts} == ops and subject.ceiling is None
    assert subject.name == given.replace("4K", "4096")
    assert mean is None or {part.mean for part in subject.parts} == {mean}
    assert largest is None or {part.largest for part in subject.parts} == {largest}


@pytest.mark.parametrize("given", ["uniform:9-3", "log:0-9", "uniform:0-2G", "gcc.none", "none"])
def test_no_mix_is_told_without_the_words_of_an_option(given):
    with pytest.raises(WherryError, match=re.escape(given)) as raised:
        parts.subject(given, CACHES)
    assert "--mix" not in str(raised.value)


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


def test_a_figure_is_whole_where_a_column_alone_is_wider_than_the_terminal():
    columns = [tables.Column("", left=True), tables.Column("95 % interval"), tables.Column("B is")]
    rows = [[tables.Figure(text) for text in ("peak memory", "[-15.9, +23.4] %", "slower")]]
    shown = tables.render(tables.layout(columns, rows, 20), tables.console(20))
    assert "…" not in shown
    assert shown.splitlines()[1].split() == ["peak", "memory", "[-15.9,", "+23.4]", "%"]
    assert shown.splitlines()[-1].split() == ["peak", "memory", "slower"]


def test_calls_beyond_a_gibibyte_are_said(tmp_path):
    path = tmp_path / "big.mix.json"
    big = {"calls": 2, "bytes": 3 << 30, "sizes": [[3 << 29, 3 << 29, 2, 3 << 30]], "places": []}
    path.write_text(json.dumps({**MIX, "ops": {"copy": big}}))
    with pytest.raises(WherryError, match="its 2 calls is of more than 1 GiB"):
        parts.subject(str(path), CACHES)
    both = {"copy": big, "move": next(iter(MIX["ops"].values()))}
    path.write_text(json.dumps({**MIX, "ops": both}))
    assert parts.subject(str(path), CACHES).beyond == 2


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


def test_two_plans_of_one_name_are_told_apart(wherry, tmp_path, monkeypatch, capsys):
    from wherry.cli import replaying

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for directory in ("a", "b"):
        (tmp_path / directory).mkdir()
        wherry("plan", "default", "-o", tmp_path / directory / "mine.toml")
    files = [str(tmp_path / directory / "mine.toml") for directory in ("a", "b")]
    found, _, _ = replaying._plans(files, runner.cpu())
    assert list(found)[-2:] == ["mine", "mine~"]
    assert capsys.readouterr().err == f"wherry: mine~ is the plan {files[1]}\n"


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

    monkeypatch.setattr(loading, "seconds", lambda: loading.Cost(0.0002, 0.00014, 0.00028))
    subject = parts.Subject("x", (), {"cpu_s": 2.0}, processes=100)
    share = replaying._loading(subject)
    assert (share.middle, share.low, share.high) == pytest.approx((0.01, 0.007, 0.014))
    own = predict.Prediction("wherry", -0.02, -0.024, -0.017, True, True, True)
    paid = predict.with_loading(own, share)
    # Each end is as far off as both spreads together.
    assert (paid.change, paid.low, paid.high) == pytest.approx((-0.01, -0.015, -0.005))
    assert not predict.with_loading(own, share.times(2)).measurable
    ceiling = {"likely": 0.0001, "at_most": 0.0002}
    own = predict.with_loading(predict.Prediction("wherry", 0.0, 0.0, 0.0, False), share.times(4))
    said = predict.verdict(
        ceiling, {"wherry": own}, {}, {"wherry": ""}, 0.01, replaying._of_loading(subject)
    )
    assert "+4.0 % [+2.8, +5.6] % of its CPU time with wherry, with 1.0 % for loading" in said
    assert "for loading the library into 100 processes; keep libc." in said
    # Of a mix that tells of no run nothing is known.
    none = parts.Subject("x", (), None)
    assert replaying._loading(none) == loading.NOTHING and replaying._of_loading(none) == ""


def test_what_loading_costs_is_measured_once(monkeypatch, tmp_path):
    from wherry.replay import loading

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = loading.seconds()
    assert 0 <= first.low <= first.middle <= first.high < 1
    monkeypatch.setattr(loading, "_measure", lambda: pytest.fail("measured again"))
    assert loading.seconds() == first


def test_replay_of_turns(wherry, tmp_path):
    """What the whole program told; unless it told less than single calls."""
    rows = [[65536, 98303, [10] * 6, [10 * 20000.0] * 6, [10] * 6, [10 * 10000.0] * 6]]
    turns = {"measure": "calls", "pairs": 400, "covered": 0.9, "change": -0.125, "half": 0.01}
    turns |= {"runs": [-0.12, -0.13, -0.125]}
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


def test_a_mix_of_one_size_has_one_part(wherry, tmp_path):
    (tmp_path / "memcpy_one.csv").write_text("8:1\n")
    done = wherry("replay", "memcpy_one.csv", *QUICK)
    assert done.returncode == 0, done.stderr
    assert re.search(r"memcpy_one, 1 part$", done.stdout, re.M), done.stdout


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


@pytest.mark.parametrize("data", [b"", b"[1]", "{}".encode("utf-16"), b"[[[["])
def test_what_is_no_mix_is_said_of_the_mix(tmp_path, data):
    (tmp_path / "x.mix.json").write_bytes(data)
    with pytest.raises(WherryError) as error:
        parts.subject("x.mix.json", CACHES)
    said = str(error.value)
    assert said.startswith("x.mix.json") and "size:probability" not in said and "--mix" not in said


def test_scratch_that_cannot_be_written_is_named(wherry_run, tmp_path):
    line = f"ulimit -f 1; {sys.executable} -m wherry replay --quick --no-found-peers uniform:0-16"
    env = {**os.environ, "WHERRY_RUN": str(wherry_run)}
    done = subprocess.run(
        ["bash", "-c", line], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "cannot write what is to be measured" in done.stderr and "ulimit -f" in done.stderr


def test_what_a_killed_replay_left_is_removed_by_the_next(wherry_run, wherry, tmp_path):
    place = tmp_path / "scratch"
    place.mkdir()
    env = {**os.environ, "WHERRY_RUN": str(wherry_run), "TMPDIR": str(place)}
    words = [sys.executable, "-m", "wherry", "replay", "hand.mix.json", "--no-found-peers"]
    own = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: list(place.glob("wherry-mixes-*/*.csv")), "calls to make are written")
    (used,) = place.iterdir()
    assert wherry("replay", "hand.mix.json", *QUICK, env=env).returncode == 0
    assert used.is_dir()
    own.kill()
    own.wait()
    assert wherry("replay", "hand.mix.json", *QUICK, env=env).returncode == 0
    assert not list(place.iterdir())


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
    assert own.wait(300) == 143
    assert not list(place.iterdir())
