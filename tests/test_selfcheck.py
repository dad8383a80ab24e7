"""`wherry bench --self-check`: a method that is wrong by more than the bar fails, one that is right passes. Times are
made up here, since no test judges a real one; the routines of which something is known are called for what they do."""

import json
import os
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import FAKE, need_tool, run, workbench
from wherry import selfcheck
from wherry.cell import Cell
from wherry.cli import selfcheck as command_of_it
from wherry.selfcheck import delays, independent, known, verdicts

LINK = 0.8


def session(quick=True):
    return selfcheck.Session(1, None, quick, time.monotonic() + 60)


def made_up(times, link=LINK, drift=0.0, noise=0.001):
    """In place of known.measure: times(row, routine) are the medians."""

    def measure(_, rows, processes, seed):
        campaign = known.KnownCampaign(rows, processes=processes, seed=seed)
        rng = np.random.default_rng(seed)
        for number, row in enumerate(rows):
            for process in range(processes):
                campaign.links[process, number] = (link, link * (1 + drift))
                shared = rng.normal(0, 0.01, row.rounds)
                for twin in (False, True):
                    for routine in row.routines[: 1 if twin else None]:
                        cell = campaign.cells.setdefault((number, routine, twin), Cell(100, 1.0))
                        own = rng.normal(0, noise, row.rounds)
                        cell.ns[process] = times(row, routine) * np.exp(shared + own)
        campaign.start = {"cpu": 0}
        return campaign

    return measure


def links_of(routine):
    return int(routine.partition("+")[2] or 0)


def chain_time(scale):
    return lambda row, routine: 40 + row.size / 50 + scale * LINK * links_of(routine)


@pytest.mark.parametrize(
    ("scale", "passed"), [(1.0, True), (1.03, True), (1.06, False), (0.94, False)]
)
def test_a_delay_that_is_measured_wrong_is_seen(monkeypatch, scale, passed):
    monkeypatch.setattr(delays, "measure", made_up(chain_time(scale)))
    (claim,) = delays.check(session())
    assert claim.passed is passed
    assert len(claim.cells) == sum(len(links) for _, links in delays.ROWS)
    assert all(abs(cell["error"] - (scale - 1)) < 0.01 for cell in claim.cells)


def test_a_delay_is_not_known_while_the_clock_moves(monkeypatch):
    monkeypatch.setattr(delays, "measure", made_up(chain_time(1.0), drift=0.05))
    (claim,) = delays.check(session())
    assert claim.passed is None and claim.undecided and "clock moved" in claim.reason


def test_what_is_left_out_for_the_clock_is_counted_by_process_and_nothing_else_with_it(monkeypatch):
    """A row that this machine cannot have has no clock that moved."""
    made = made_up(chain_time(1.0))

    def measure(own, rows, processes, seed):
        campaign = made(own, rows, processes + 1, seed)
        last = len(rows) - 1
        campaign.links = {key: link for key, link in campaign.links.items() if key[1] != last}
        campaign.cells = {key: cell for key, cell in campaign.cells.items() if key[0] != last}
        campaign.links[2, 0] = (LINK, 1.1 * LINK)
        return campaign

    monkeypatch.setattr(delays, "measure", measure)
    (claim,) = delays.check(session())
    assert claim.passed and [cell["processes"] for cell in claim.cells] == [3] * 5 + [4] * 20
    assert claim.reason == "1 of 20 rows of 4 processes left out: the clock moved meanwhile"


def test_a_delay_of_rounds_that_were_thrown_away_is_not_judged(monkeypatch):
    """A process with too few good rounds has the bad ones in their place; the other three tell."""
    made = made_up(chain_time(1.0))

    def measure(own, rows, processes, seed, bad=(0,)):
        campaign = made(own, rows, processes + 1, seed)
        for cell in campaign.cells.values():
            for process in bad:
                cell.ns[process] = cell.ns[process] * 3
                cell.disturbed_in.add(process)
        return campaign

    monkeypatch.setattr(delays, "measure", measure)
    (claim,) = delays.check(session())
    assert claim.passed and all(cell["processes"] == 3 for cell in claim.cells)
    monkeypatch.setattr(delays, "measure", lambda *words: measure(*words, bad=range(4)))
    (claim,) = delays.check(session())
    assert claim.undecided and "disturbed" in claim.reason


def copies(apart):
    def times(row, routine):
        if "chain" in routine:
            return chain_time(1.0)(row, routine)
        return (20 + (row.size or 128) / 40) * (apart if routine == "known_copy_b" else 1)

    return times


@pytest.mark.parametrize(("apart", "passed"), [(1.0, True), (1.05, False)])
def test_copies_that_do_not_tie_are_seen(monkeypatch, apart, passed):
    monkeypatch.setattr(verdicts, "measure", made_up(copies(apart)))
    tie, slow, fast = verdicts.check(session())
    assert tie.passed is passed
    assert slow.passed and fast.passed, "the others are as they should be"
    assert all(0.095 < k < 0.105 for cell in slow.cells for k in cell["known"])


def test_copies_of_which_the_rounds_tell_nothing_do_not_tie():
    """Many times apart, and the two rounds far from each other: nobody leads, and that is no tie."""
    campaign = known.KnownCampaign(verdicts.TIES[:1], processes=1)
    for name, ns in zip(known.TWINS, ([10.0, 40.0], [1000.0, 260.0]), strict=True):
        assert verdicts._ties(campaign, 0, 0.01) is None
        campaign.cells[0, name, False] = Cell(1, 16, {0: np.array(ns)})
    assert verdicts._ties(campaign, 0, 0.01) is False
    campaign.cells[0, known.TWINS[1], False].ns[0] = np.array([10.0, 41.0])
    assert verdicts._ties(campaign, 0, 0.01) is True


@pytest.mark.parametrize(("apart", "said"), [(0.0004, ""), (-0.03, "differs by up to 3%")])
def test_another_place_of_the_page_is_spoken_of_where_it_makes_a_difference(
    monkeypatch, apart, said
):
    monkeypatch.setattr(verdicts, "measure", made_up(copies(1.0)))
    cell = {"cell": "64 B, elsewhere in its page", "apart": apart}
    monkeypatch.setattr(verdicts, "_moved", lambda _: [cell, cell | {"apart": 0.0001}])
    tie, *_ = verdicts.check(session())
    assert said in tie.note and bool(tie.note) == bool(said) and cell in tie.cells


@pytest.mark.parametrize("sign", [1, -1])
def test_a_tenth_that_is_not_called_is_seen(monkeypatch, sign):
    """Delays that come to nothing: whoever is a tenth slower by construction measures the same."""

    def times(row, routine):
        base = min((128, 256, 512, 1024, 2048), key=lambda n: abs(n - links_of(routine)))
        links = links_of(routine)
        hidden = links > base if sign > 0 else links < base
        return chain_time(1.0)(row, f"+{base}" if hidden else routine)

    monkeypatch.setattr(verdicts, "measure", made_up(times))
    _, slow, fast = verdicts.check(session())
    assert (slow.passed, fast.passed) == ((False, True) if sign > 0 else (True, False))


@pytest.mark.parametrize(("slowed", "passed"), [(1, True), (2, None), (5, None)])
def test_routines_that_turn_out_to_be_no_tenth_apart_show_nothing(monkeypatch, slowed, passed):
    """So many of five runs were slower than what the routines were constructed by."""
    made = made_up(copies(1.0))

    def measure(own, rows, processes, seed):
        campaign = made(own, rows, processes, seed)
        if 1000 < seed <= 1000 * slowed + 1:
            for (_, routine, _), cell in campaign.cells.items():
                if "chain" in routine:
                    cell.ns = {process: 1.4 * ns for process, ns in cell.ns.items()}
        return campaign

    monkeypatch.setattr(verdicts, "measure", measure)
    tie, *tenths = verdicts.check(session())
    assert tie.passed
    for claim in tenths:
        assert claim.passed is passed and claim.undecided == (passed is None)
        count = len(verdicts.BASES)
        assert (
            claim.reason
            == f"{slowed * count} cells left out: no tenth apart by the calibrated loop"
        )
        assert claim.measured.startswith(
            f"{(5 - slowed) * count} of {(5 - slowed) * count} cells"
        ) == (slowed < 5)


def test_a_base_without_a_time_leaves_the_others_their_names(monkeypatch):
    made = made_up(copies(1.0))

    def measure(own, rows, processes, seed):
        campaign = made(own, rows, processes, seed)
        if len(rows) == len(verdicts.BASES):
            campaign.cells[0, known.chain(verdicts.BASES[0][0]), False].ns.clear()
        return campaign

    monkeypatch.setattr(verdicts, "measure", measure)
    _, *tenths = verdicts.check(session())
    for claim in tenths:
        told = [(cell["links"][0], cell["cell"]) for cell in claim.cells]
        assert told == [(links, known.label(row)) for links, row in verdicts.BASES[1:]]


def test_runs_that_do_not_fit_into_the_time_show_nothing(monkeypatch):
    monkeypatch.setattr(verdicts, "measure", made_up(copies(1.0)))
    late = session()
    late.deadline = time.monotonic() - 1
    claims = verdicts.check(late)
    assert all(claim.passed is None and claim.undecided for claim in claims)
    assert all("0 of 5 runs" in claim.reason for claim in claims)


@pytest.mark.parametrize(("sizes", "passed"), [((), None), ((16,), None), ((16, 256), False)])
def test_what_the_runs_that_did_not_fit_could_not_change_is_told(monkeypatch, sizes, passed):
    """Three of five runs: copies of which one in twelve does not tie may still turn out to hold, of two in twelve not
    any more."""
    usual, other = copies(1.0), copies(1.5)
    monkeypatch.setattr(
        verdicts,
        "measure",
        made_up(lambda row, name: (other if row.size in sizes else usual)(row, name)),
    )
    own = session()
    left = iter((False,) * 3)
    monkeypatch.setattr(own, "late", lambda: next(left, True))
    tie, slow, _ = verdicts.check(own)
    assert tie.passed is passed and tie.undecided == (passed is None)
    assert slow.undecided and "3 of 5 runs" in slow.reason


@pytest.mark.parametrize(
    ("states", "status", "word"),
    [
        ((True, None), 0, "holds"),
        ((True, "open"), 3, "undecided"),
        ((False, "open"), 1, "FAILS"),
    ],
)
def test_the_exit_status_tells_what_is_undecided(
    monkeypatch, tmp_path, capsys, states, status, word
):
    def claims(_):
        made = [selfcheck.Claim(str(i), f"claim {i}", "all") for i in range(len(states))]
        for claim, state in zip(made, states, strict=True):
            if state == "open":
                claim.leave_open("no time")
            else:
                claim.passed = state
        return made

    monkeypatch.setattr(selfcheck, "check", claims)
    path = tmp_path / "check.json"
    given = {"quick": True, "pin": None, "seed": 1, "save": str(path)}
    assert command_of_it.check(False, (), given, []) == status
    said = " ".join(capsys.readouterr().out.split())
    assert word in said and ("Undecided: 1; try again without --quick" in said) == (
        "open" in states
    )
    assert json.loads(path.read_text())["passed"] is {0: True, 1: False, 3: None}[status]


def test_no_time_for_the_other_tool(monkeypatch):
    monkeypatch.setattr(independent, "_build", lambda directory: ("program", ""))
    late = session()
    late.deadline = time.monotonic() - 1
    (claim,) = independent.check(late)
    assert claim.passed is None and claim.undecided and "no time" in claim.reason


@pytest.mark.parametrize(
    ("factor", "passed"), [(1.0, True), (1.04, True), (1.07, False), (0.93, False)]
)
def test_a_tool_that_disagrees_is_seen(monkeypatch, factor, passed):
    monkeypatch.setattr(independent, "_build", lambda directory: ("program", ""))
    monkeypatch.setattr(
        independent, "measure", made_up(lambda row, routine: 5 + row.size / 100, noise=1e-5)
    )
    theirs = [(5 + size / 100) * factor for _, size, _, _ in independent.CELLS]
    monkeypatch.setattr(independent, "_theirs", lambda program, cpu: theirs)
    (claim,) = independent.check(session())
    # The best of five beside noise of 1 % that all rounds share.
    assert claim.passed is passed or (
        factor == 1.04 and max(abs(c["error"]) for c in claim.cells) < 0.06
    )


@pytest.mark.parametrize("does", ["kill -9 $$", "exit 1", "echo {}", "echo '{\"benchmarks\": []}'"])
def test_a_tool_that_tells_no_times_is_no_failure_of_wherry(monkeypatch, tmp_path, does):
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)
    monkeypatch.setattr(independent, "_build", lambda directory: (str(program), ""))
    monkeypatch.setattr(independent, "measure", made_up(lambda row, routine: row.size / 100))
    (claim,) = independent.check(session())
    assert claim.passed is None and claim.undecided and "google-benchmark's" in claim.reason


def test_the_other_tool_is_named_by_its_package(monkeypatch):
    monkeypatch.setenv("PATH", "")
    (claim,) = independent.check(session())
    assert claim.passed is None and "Debian package g++" in claim.reason


def test_the_other_tool_measures(tmp_path):
    need_tool("g++", "g++")
    if not Path("/usr/include/benchmark/benchmark.h").exists():
        pytest.skip(
            "google-benchmark is not installed (Debian package libbenchmark-dev; make extras)"
        )
    program, reason = independent._build(str(tmp_path))
    assert program, reason
    times = independent._theirs(program, min(os.sched_getaffinity(0)))
    assert len(times) == len(independent.CELLS) and all(ns > 0 for ns in times)
    refused = run(program, "copy:0:0:0", check=False)
    assert refused.returncode == 2 and "copy:1024:64:2048" in refused.stderr


# ---- the routines ---------------------------------------------------------------------------------------------------


def measured(wherry_run, line):
    done = run(
        wherry_run, "measure", "--seed", "1", input=f"{line} rounds=3 batch_us=20\n", check=False
    )
    return done.returncode, [json.loads(text) for text in done.stdout.splitlines()], done.stderr


@pytest.mark.parametrize(
    "where",
    [
        "size=0",
        "size=1",
        "size=3",
        "size=15",
        "size=33",
        "size=64",
        "size=65",
        "size=127 src_off=3",
        "size=4097 dst_off=9",
        "mix=uniform:0-300",
        "size=100 mode=latency",
    ],
)
def test_the_known_routines_are_right(wherry_run, where):
    """They are verified as any other is, at each size: a copy that is wrong has no cell."""
    names = (
        "known_copy_a,known_copy_b,known_copy_moved,known_chain+0,known_chain+7,known_chain+4096"
    )
    status, events, said = measured(wherry_run, f"id=1 op=copy routines={names} {where}")
    assert status == 0 and said == ""
    cells = [e["routine"] for e in events if e["event"] == "cell" and not e["aa"]]
    assert cells == names.split(",")
    (end,) = [e for e in events if e["event"] == "rowend"]
    assert len(end["link_ns"]) == 2 and all(ns > 0 for ns in end["link_ns"])


def test_links_take_time(wherry_run):
    _, events, _ = measured(
        wherry_run, "id=1 op=copy size=64 routines=known_chain+0,known_chain+1,known_chain+4000"
    )
    ns = {e["routine"]: min(e["ns"]) for e in events if e["event"] == "cell"}
    assert ns["known_chain+4000"] > 10 * ns["known_chain+0"]


def test_other_rows_have_no_link(wherry_run):
    _, events, _ = measured(wherry_run, "id=1 op=copy size=64 routines=libc,known_copy_a")
    assert all("link_ns" not in e for e in events)


@pytest.mark.parametrize(
    "name", ["known_chain+4097", "known_chain+", "known_chain+01", "known_chain+1x", "known_copy"]
)
def test_what_is_no_known_routine(wherry_run, name):
    status, _, said = measured(wherry_run, f"id=1 op=copy size=64 routines=libc,{name}")
    assert status == 2 and "no routine" in said


def test_known_routines_are_copies_only(wherry_run):
    status, events, _ = measured(wherry_run, "id=1 op=set size=64 routines=libc,known_copy_a")
    assert status == 0
    assert [e["routine"] for e in events if e["event"] == "skip"] == ["known_copy_a"]


# ---- the command ----------------------------------------------------------------------------------------------------


def command(directory, *args):
    environment = {**os.environ, "WHERRY_RUN": str(FAKE), "PATH": str(Path(sys.executable).parent)}
    return workbench("bench", "--self-check", *args, cwd=directory, env=environment)


def test_a_runner_that_measures_nothing_fails_the_check(tmp_path):
    if shutil.which("g++", path=str(Path(sys.executable).parent)):
        pytest.skip("a compiler stands beside this Python")
    done = command(tmp_path, "--quick", "--json", "--save", "check.json")
    assert done.returncode == 1 and done.stderr == ""
    document = json.loads(done.stdout)
    assert document == json.loads((tmp_path / "check.json").read_text())
    assert document["format"] == "wherry-self-check" and not document["passed"]
    assert {claim["name"]: claim["passed"] for claim in document["claims"]} == {
        "delay": False,
        "tie": False,
        "tenth": False,
        "tenth faster": False,
        "independent tool": None,
    }
    shown = command(tmp_path, "--quick")
    assert shown.returncode == 1 and "FAILS" in shown.stdout and "g++" in shown.stdout
    assert len(list((tmp_path / "runs").glob("*-self-check.json"))) == 1


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("sizes",), "sizes"),
        (("--size", "64"), "--size"),
        (("--rounds", "3"), "--rounds"),
        (("--all",), "--all"),
    ],
)
def test_what_the_self_check_does_not_take(tmp_path, arguments, named):
    done = command(tmp_path, *arguments)
    assert done.returncode == 2 and named in done.stderr and done.stderr.count("\n") == 1
