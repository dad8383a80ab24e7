"""The experiment `switch`: every way to hand over works, every method keeps the registers that it promises to keep, bad
rows are refused, and nobody is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import children_of, wait_until
from systems import cells, system
from wherry import runfile, tables, then
from wherry.clock import Clock
from wherry.experiments import Request
from wherry.experiments.switch import EXPERIMENT
from wherry.switching import answer, report
from wherry.switching.words import ALWAYS, IN_USE, LIVE, METHODS, SEED_TOTAL, WHO

FAST = ("--processes", "1", "--rounds", "2")


@pytest.mark.parametrize("via", ["pipe", "eventfd", "futex"])
@pytest.mark.parametrize("partners", ["processes", "threads"])
@pytest.mark.parametrize("place", ["same", "apart"])
def test_every_way_to_hand_over(wherry_run: Path, via: str, partners: str, place: str):
    row = f"op=switch routines={','.join(WHO)} live=sse via={via} partners={partners}"
    events, _ = system(wherry_run, f"id=3 {row} place={place} rounds=2 calls=50\n")
    skipped = [e["reason"] for e in events if e["event"] == "skip"]
    if place == "apart" and len(os.sched_getaffinity(0)) < 2:
        assert skipped == ["needs two CPUs that this process may use"]
        return
    assert not skipped and events[-1] == {"event": "end", "rows": 1}
    found = cells(events)
    assert [name for _, name in found] == list(WHO)
    for cell in found.values():
        assert len(cell["ns"]) == 2 and min(cell["ns"]) > 100 and cell["calls"] == 50
        assert {"user_ns", "system_ns", "partner_ns", "in_use"} == set(cell["parts"])
    assert [e["routine"] for e in events if e["event"] == "cell" and e["aa"]] == ["no"]


def test_the_registers_in_use_are_those_named(wherry_run: Path):
    """By what XGETBV says at the end of a sample: bit 0 x87, 2 the upper halves of YMM, 5 masks, 6 and 7 ZMM."""
    bits = {"x87": 1, "avx": 4, "avx512": 4 | 64 | 128, "opmask": 32}
    rows = "".join(
        f"id={i} op=switch routines=no,parent live={live} rounds=1 calls=20\n"
        for i, live in enumerate(bits)
    )
    events, _ = system(wherry_run, rows)
    found = cells(events)
    assert {(0, "no"), (0, "parent")} <= found.keys()  # x87, which every CPU has
    if any(cell["parts"]["in_use"] is None for cell in found.values()):
        pytest.skip("this CPU does not tell which registers are in use")
    for i, (live, mask) in enumerate(bits.items()):
        if (i, "parent") in found:
            assert int(found[i, "parent"]["parts"]["in_use"]) & mask == mask, live
            assert int(found[i, "no"]["parts"]["in_use"]) & mask == 0, live


def test_what_the_cpu_lacks_is_skipped_with_a_reason(wherry_run: Path):
    """On most machines the tiles of AMX."""
    row = "op=switch routines=no,both rounds=1 calls=20"
    events, _ = system(wherry_run, f"id=1 {row} live=amx\nid=2 {row} live=x87\n")
    flags = Path("/proc/cpuinfo").read_text()
    skipped = {e["id"]: e["reason"] for e in events if e["event"] == "skip"}
    if "amx_tile" in flags:
        assert (1, "both") in cells(events)
    else:
        assert skipped == {1: "needs AMX, which this CPU or its operating system lacks"}
    assert (2, "both") in cells(events)


def test_the_savings_are_those_of_the_mail():
    """His second table out of her first: seconds, and below them per cent of what saving always takes."""
    six = {
        ("noopt", "no"): (6.3, 42.16, 97.17),
        ("noopt", "child"): (6.54, 39.23, 91.19),
        ("noopt", "parent"): (8.77, 46.22, 100.85),
        ("opt", "no"): (6.1, 39.56, 92.15),
        ("opt", "child"): (6.63, 40.86, 94.75),
        ("opt", "parent"): (6.79, 40.96, 94.95),
    }

    def cell(user: float, in_kernel: float, elapsed: float) -> dict:
        ns = 1e9 / SEED_TOTAL
        return {
            "ns": {"median": elapsed * ns},
            "parts": {"user_ns": user * ns, "system_ns": in_kernel * ns},
        }

    methods = {"noopt": ALWAYS, "opt": IN_USE}
    found = SimpleNamespace(
        clock=Clock(0.3, measured=True),
        six=lambda live: (
            {(methods[m], who): cell(*own) for (m, who), own in six.items()}
            if live == "x87"
            else {}
        ),
    )
    block = report._savings(found, 100)
    rows = [line.split() for line in tables.plain(block.lines).splitlines()]
    assert ["x87", "no", "s", "+0.200", "+2.600", "+2.800", "+5.020", "+502.0", "+151"] in rows
    assert ["%", "+3.2", "+6.2", "+5.8", "+5.2"] in rows
    assert ["x87", "child", "s", "-0.090", "-1.630", "-1.720", "-3.560", "-356.0", "-107"] in rows
    assert ["%", "-1.4", "-4.2", "-3.8", "-3.9"] in rows
    assert ["%", "+22.6", "+11.4", "+13.2", "+5.9"] in rows
    assert block.sentences == [
        "Child's and parent's together, of elapsed time: x87 +70 cycles (+1.2 %) a round trip; the "
        "mail adds up 165 cycles (+5.8 %), of user+system. Both per cents are of what opt takes, as the "
        "mail reckons."
    ]


@pytest.mark.parametrize("live", LIVE)
def test_every_method_keeps_what_it_promises(wherry_run: Path, live: str):
    who = WHO if live != "none" else ("no",)
    rows = "".join(
        f"id={i} op=switch routines={','.join(METHODS)} via=stacks live={live} who={own} rounds=1 batch_us=50\n"
        for i, own in enumerate(who)
    )
    events, _ = system(wherry_run, rows)
    assert not [e for e in events if e["event"] in ("wrong", "crash")]
    reasons = {e["routine"]: e["reason"] for e in events if e["event"] == "skip"}
    if None in reasons:
        assert "lacks" in reasons[None] or "kernel" in reasons[None]
        return
    assert set(reasons) <= set(METHODS) - {"never"}
    if live not in ("none", "x87", "sse"):
        assert reasons["fxsave"] == "saves x87 and SSE registers only"
    for i in range(len(who)):
        assert (i, "never") in cells(events)


def test_copies_between_switches_and_alone(wherry_run: Path):
    names = "no_copy,libc,wherry,sse2_loop,x87_fild64"
    events, _ = system(
        wherry_run,
        f"id=1 op=switch routines={names} size=1448 rounds=2 calls=50\n"
        f"id=2 op=switch routines={names} size=1448 via=alone rounds=3 batch_us=500\n",
    )
    found = cells(events)
    assert len(found) == 10
    least = {name: min(found[2, name]["ns"]) for name in names.split(",")}
    assert least["no_copy"] < least["libc"] and least["wherry"] < least["x87_fild64"]


def test_wide_work_alone(wherry_run: Path):
    events, _ = system(
        wherry_run,
        f"id=1 op=switch routines={','.join(LIVE)} via=clock rounds=1 batch_us=100\n"
        "id=2 op=switch routines=none,sse via=first rounds=1 calls=2\n",
    )
    assert {(1, "none"), (1, "sse"), (2, "none"), (2, "sse")} <= set(cells(events))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("id=1 op=switch", "routines= is missing"),
        ("op=switch routines=no", "id= is missing"),
        ("id=1 routines=no", "op= is missing"),
        ("id=1 op=copy routines=libc", "no op 'copy'"),
        ("id=1 op=switch routines=nobody", "'nobody' is none of no, child, parent, both"),
        ("id=1 op=switch routines=no,no", "'no' is named twice"),
        ("id=1 op=switch routines=no,,both", "empty name"),
        ("id=1 op=switch routines=no via=smoke", "via=smoke: give one of pipe eventfd"),
        ("id=1 op=switch routines=no live=mmx2", "live=mmx2: give one of"),
        ("id=1 op=switch routines=no size=5000", "size=5000: give a number from 0 to 4096"),
        ("id=1 op=switch routines=no rounds=0", "rounds=0: give a number from 1 to 1000"),
        ("id=1 op=switch routines=no via=pipe via=futex", "via= is there twice"),
        ("id=1 op=switch routines=no colour=blue", "op=switch has no word 'colour'"),
        ("id=1 op=switch routines=no pipe", "'pipe' is not key=value"),
        ("id=1 op=switch routines=never via=stacks size=64", "size= goes with"),
        ("id=1 op=switch routines=libc via=alone", "via=alone is for copies"),
        ("id=1 op=switch routines=fxsave", "'fxsave' is none of no, child"),
        ("id=1 op=switch routines=memset size=64", "'memset' is none of no_copy"),
        ("id=1 op=switch routines=" + "x" * 5000, "longer than"),
    ],
)
def test_bad_rows(wherry_run: Path, row: str, words: str):
    _, said = system(wherry_run, row + "\n", 2)
    assert words in said and said.startswith("wherry-run: system: row on line 1: ")
    assert said.count("\n") == 1


def test_interrupted_it_leaves_nobody(wherry_run: Path):
    with subprocess.Popen(
        [wherry_run, "system"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as own:
        own.stdin.write("id=1 op=switch routines=no,both live=sse rounds=900 calls=20000\n")
        own.stdin.close()
        # Each sample has another: what was there a moment ago may be gone.
        found = set()
        wait_until(lambda: found.update(children_of(own.pid)) or found, "the other side is there")
        own.send_signal(signal.SIGINT)
        own.stdout.read()
        assert own.wait(300) == -signal.SIGINT
    assert found
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in found), "its end")


def test_as_a_user_runs_it(wherry, tmp_path: Path):
    said = wherry(
        "bench", "switch", "--quick", "--then", "--save", "run.json", *FAST, cwd=tmp_path
    ).stdout
    for words in (
        "a byte to a child and back through two pipes",
        "between two stacks of one thread",
        "the mail's six rows",
        "what saving only what is in use saves",
        "Child's and parent's together, of elapsed time: x87 ",
        "1448 bytes copied by each side",
        "what does it cost a program that it uses wide registers?",
        "One switch of the kernel's takes",
        "then and now: elapsed time of 5,000,000 round trips",
    ):
        assert words in said, said
    run = runfile.read(tmp_path / "run.json")
    assert {row["op"] for row in run["rows"]} == {"switch"}
    assert next(sheet.title for sheet in then.sheets(run, "switch")).startswith("switch, then and")
    page = wherry("report", "run.json", "-o", "run.html", cwd=tmp_path)
    assert page.returncode == 0 and (tmp_path / "run.html").stat().st_size > 10_000


def test_rows_have_all_the_issue_names():
    rows = EXPERIMENT.rows(Request())
    told = [dict(row.words) for row in rows]
    assert {own["live"] for own in told if own["via"] == "pipe" and "live" in own} == set(LIVE) - {
        "none"
    }
    assert {own["via"] for own in told} == {
        *("pipe", "eventfd", "futex", "stacks", "alone", "clock", "first"),
    }
    assert {own.get("place") for own in told} >= {"same", "apart"}
    assert all(
        row.calls >= 10_000
        for row, own in zip(rows, told, strict=True)
        if own["via"] == "pipe" and own["place"] == "same"
    )


def test_turns(wherry, tmp_path: Path):
    options = ("--quick", "--turns", "60", "--save", "run.json", *FAST)
    assert wherry("bench", "switch", *options, cwd=tmp_path).returncode == 0
    run = runfile.read(tmp_path / "run.json")
    assert {c["calls"] for c in run["cells"] if c["via"] == "pipe"} == {60}
    refused = wherry("bench", "sizes", "--turns", "60", cwd=tmp_path)
    assert refused.returncode == 2 and "sizes does not take --turns; switch does" in refused.stderr


@pytest.mark.parametrize(("apart", "said"), [(2000, "has 2,000 in place of 10,000"), (10_000, "")])
def test_the_table_says_that_samples_between_two_cpus_are_shorter(apart, said):
    (note,) = report._ways(found(same=10_000, apart=apart), 100).notes
    assert note.endswith(said) if said else "in place of" not in note


@pytest.mark.parametrize(
    ("middle", "said"),
    [
        ((1195.0, 1205.0), "slows other work beside it by up to 20 % (AVX (YMM))"),
        ((1004.0, 1900.0), "No width lowers the clock by what could be told here"),
    ],
)
def test_a_lower_clock_is_told_where_the_rounds_lie_apart(middle, said):
    def cell(q25, median, q75):
        return {"ns": {"q25": q25, "median": median, "q75": q75}}

    clock = {"none": cell(995.0, 1000.0, 1005.0), "avx": cell(middle[0], 1200.0, middle[1])}
    rows = {"clock": clock, "first": {}}
    own = SimpleNamespace(cells=lambda via: rows[via], floor=lambda **_: 0.005)
    assert said in answer._wide(own)


def test_of_single_samples_there_is_no_answer(wherry, tmp_path: Path):
    options = ("--quick", "--turns", "60", "--processes", "1", "--rounds", "1")
    said = wherry("bench", "switch", *options, "--save", "run.json", cwd=tmp_path).stdout
    assert "One sample of each tells nothing of chance, so there is no answer." in said
    assert "One switch of the kernel's takes" not in said and "Wide work slows" not in said


def test_one_cpu_needs_no_word_about_two():
    assert not report._ways(found(same=10_000), 100).notes


def found(**calls):
    """Of a pipe between processes, at each place so many round trips a sample."""

    def rows(**_):
        for place, own in calls.items():
            row = {"via": "pipe", "partners": "processes", "place": place}
            yield row, {"no": {"ns": {"median": 5000.0}, "calls": own}}

    return SimpleNamespace(rows=rows, clock=SimpleNamespace(cycles=lambda _: None))
