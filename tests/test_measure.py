"""The measuring half of wherry-run: what goes in and what comes out.

Nothing here depends on how fast anything was.
"""

import ctypes
import json
import os
import re
import subprocess
from collections import Counter
from statistics import median

import pytest
from conftest import need_tool, run
from measured import LIMIT_S, QUICK, measure, of, peers, runner

__all__ = ["peers", "runner"]  # fixtures


ROWS = {
    "plain": "op=copy routines=libc,wherry,call_floor size=1024",
    "nothing": "op=copy routines=libc,wherry size=0",
    "latency": "op=copy routines=libc,wherry size=64 mode=latency",
    "stream latency": "op=copy routines=libc,wherry size=64 mode=latency walk=stream buffer=65536",
    "fresh": "op=copy routines=libc,wherry size=5 src_off=61 dst_off=2 mode=fresh",
    "fresh mix": "op=move routines=libc,wherry mix=uniform:0-64 overlap=3 mode=fresh",
    "fresh stream": "op=copy_csum routines=wherry size=64 mode=fresh walk=stream buffer=65536",
    "uniform": "op=copy routines=libc,wherry mix=uniform:0-64 table=65536",
    "log": "op=move routines=libc,wherry mix=log:1-4096",
    "set": "op=set routines=libc,wherry size=200 dst_off=3",
    "zero": "op=zero routines=libc,wherry size=4096 dst_off=64",
    "sum surviving faults": "op=copy_csum routines=wherry,nofault,nofault@sse2 size=1448 dst_off=5",
    "L2": "op=copy routines=libc,wherry size=256 src_state=L2 dst_state=L1",
    "huge": "op=copy routines=libc,wherry size=4096 src_state=L2 dst_state=L2 huge=1",
    "DRAM": "op=copy routines=libc,wherry size=1448 src_state=DRAM dst_state=L1 src_off=63",
    "offsets": "op=copy routines=libc,wherry size=1448 src_off=4095 dst_off=100",
    "delta": "op=copy routines=libc,wherry size=300 delta=8 src_off=5",
    "overlap up": "op=move routines=libc,wherry size=512 overlap=17",
    "overlap down": "op=move routines=libc,wherry size=5000 overlap=-4999 src_state=L2 dst_state=L2",
    "stream": "op=copy routines=libc,wherry size=32 walk=stream buffer=262144",
    "stream set": "op=set routines=libc,wherry size=48 walk=stream buffer=100000",
    "stream zero": "op=zero routines=libc,wherry size=4096 walk=stream buffer=1000000",
    "stream delta": "op=copy routines=libc,wherry size=512 walk=stream buffer=65536 delta=1",
    "dirty": "op=zero routines=libc,wherry size=4096 dst_state=L2 content=dirty",
    "clean": "op=zero routines=libc,wherry size=4096 dst_state=DRAM content=zero calls=100",
    "dirty set": "op=set routines=libc,wherry size=1000 dst_state=L3 dst_off=3 content=dirty",
    "new": "op=copy routines=libc,wherry size=100000 src_state=L2 dst_state=DRAM content=new calls=20 dst_off=5",
    "new, small": "op=move routines=libc,wherry size=1000 dst_state=L3 content=new calls=50",
    "new set": "op=set routines=libc,wherry,write_bandwidth size=65536 dst_state=DRAM content=new calls=20",
    "new stream": "op=zero routines=libc,wherry size=4096 walk=stream buffer=1000000 content=new",
    "dirty stream": "op=zero routines=libc,wherry size=4096 walk=stream buffer=1000000 content=dirty",
    "yardsticks": "op=zero routines=libc,call_floor,read_bandwidth,write_bandwidth,write_nt_bandwidth"
    " size=1000 dst_off=3",
    "yardsticks of a copy": "op=copy routines=libc,read_bandwidth,write_bandwidth,write_nt_bandwidth,"
    "copy_bandwidth,copy_nt_bandwidth,copy_nt_parts_bandwidth size=7 src_off=1",
    "yardsticks of a move": "op=move routines=libc,copy_bandwidth,copy_nt_bandwidth,"
    "copy_nt_parts_bandwidth size=5000 dst_off=9",
    "yardsticks that have no source": "op=set routines=libc,copy_bandwidth,copy_nt_bandwidth size=50",
    "cold": "op=copy routines=libc,wherry,call_floor size=64 code=cold",
    "cold set": "op=set routines=libc,wherry mix=uniform:0-64 code=cold",
    "overlap, latency": "op=move routines=libc,wherry mix=log:1-4096 overlap=-9 mode=latency",
    "tiers": "op=copy routines=wherry,wherry@sse2,wherry@avx2,wherry@avx512 size=700 aa=wherry@sse2",
    "calls": "op=copy routines=libc size=64 calls=1000",
    "ascending": "op=copy routines=libc,wherry mix=uniform:0-999 ascending=both dst_state=L2",
    "places": "op=copy routines=libc,wherry size=600 places=change",
    "places mix": "op=move routines=libc,wherry mix=log:1-2000 places=change mode=latency",
    "places set": "op=set routines=libc,wherry size=800 places=change",
    "places sum": "op=csum routines=csum_sse2 size=800 places=change",
    "ascending set": "op=set routines=libc,wherry size=4096 ascending=destination dst_state=L2",
}


def test_memory_of_a_row_is_more_than_the_cache_before_its_state(runner):
    """And both sides of a copy fit into that of the state; what has none is more than all keep."""
    cpu = json.loads(subprocess.check_output([runner, "cpu", "--json"]))
    l1, l2, l3 = (cpu["believed"].get(name, {}).get("size") for name in ("L1d", "L2", "L3"))
    if not l1 or not l2 or not l3 or l3 > 64 << 20:
        pytest.skip("the runner counts on caches of other sizes")
    bounds = {"L1": (0, l1), "L2": (l1, l2), "L3": (l2, l3), "DRAM": (4 * l3, 1 << 60)}
    rows = [
        f"id={i} op=copy routines=libc size=64 src_state={state} dst_state={state} {QUICK}"
        for i, state in enumerate(bounds)
    ]
    events, _ = measure(runner, rows)
    unfit = {event["id"] for event in of(events, "skip")}
    for row, (more, most) in zip(of(events, "row"), bounds.values(), strict=True):
        held = row["pool_bytes_src"] + row["pool_bytes_dst"]
        assert row["id"] in unfit or more < held <= most, row


@pytest.mark.parametrize(("each", "rounds"), [(5000, 8), (2124, 4)])
def test_what_is_kept_is_of_the_rounds_that_nothing_disturbed(
    runner, peers, monkeypatch, each, rounds
):
    """A peer goes to another CPU now and then: amid some rounds of 2,124 calls, or amid each; then
    there is nothing better to keep."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")
    monkeypatch.setenv("MOVES", f"{each} {cpus[0]} {cpus[1]}")
    row = f"id=1 op=copy routines=p size=64 calls=1000 rounds={rounds}"
    events, _ = measure(runner, [row], "--raw", "--peer", f"p={peers}:moving_")
    (end,) = of(events, "rowend")
    outcomes = end["outcomes"]
    told = Counter(outcome for outcome in outcomes if outcome)
    assert told["migrated"] and told == {k: n for k, n in end["reasons"].items() if n}
    valid = [i for i, outcome in enumerate(outcomes) if outcome is None]
    if each == 2124:
        assert not valid
    enough = len(valid) >= 3
    kept = valid if enough else [i for i in range(len(outcomes)) if i not in valid][:rounds]
    for cell in of(events, "cell"):
        assert cell["ns"] == [cell["tried"][i] for i in kept]
        assert (cell["rounds"], cell["voided"]) == (len(valid), len(outcomes) - len(valid))
        assert cell["disturbed"] != enough
    figures = (end["cores"], end["memories"])
    assert end["pace"] == [pytest.approx(median(own[i] for i in kept)) for own in figures]


def test_huge_pages_that_were_not_obtained_are_told(runner):
    def without() -> None:
        ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE

    row = f"id=1 op=copy routines=libc size=4096 src_state=L2 dst_state=L2 huge=1 {QUICK}"
    command = [runner, "measure", "--seed", "1"]
    done = subprocess.run(
        command, input=row, capture_output=True, text=True, preexec_fn=without, check=True
    )
    (told,) = of([json.loads(line) for line in done.stdout.splitlines()], "row")
    assert told["huge"] is False


@pytest.mark.parametrize("name", ROWS)
def test_events_of_a_row(runner, name):
    events, said = measure(runner, [f"id=7 {ROWS[name]} {QUICK}"])
    assert said == ""
    assert [events[0]["event"], events[-1]["event"]] == ["start", "end"]
    assert events[-1]["rows"] == 1
    start = events[0]
    assert start["cpu"] in os.sched_getaffinity(0)
    assert start["seed"] == 1 and start["clock_ns"] > 0 and start["cpus"] >= 1
    assert {event["id"] for event in events[1:-1]} == {7}
    (row,) = of(events, "row")
    assert row["pool_bytes_dst"] > 0 and isinstance(row["huge"], bool)
    sets = "op=set" in ROWS[name] or "op=zero" in ROWS[name]
    assert (row["pool_bytes_src"] == 0) == sets
    cells = of(events, "cell")
    skipped = {event["routine"] for event in of(events, "skip")}
    wanted = next(w for w in ROWS[name].split() if w.startswith("routines="))[9:].split(",")
    assert [c["routine"] for c in cells if not c["aa"]] == [r for r in wanted if r not in skipped]
    assert len([c for c in cells if c["aa"]]) == 1
    lengths = {len(cell["ns"]) for cell in cells}
    assert len(lengths) == 1 and lengths.pop() >= 1, "samples of one round share an index"
    for cell in cells:
        assert cell["verified"] is True and cell["calls"] >= 1 and all(ns > 0 for ns in cell["ns"])
        assert cell["disturbed"] or len(cell["ns"]) == cell["rounds"]
        if "size=" in ROWS[name]:
            assert cell["bytes"] == int(ROWS[name].split("size=")[1].split()[0])
    assert {event["routine"] for event in of(events, "trying")} == set(wanted) - skipped
    (end,) = of(events, "rowend")
    assert set(end["reasons"]) == {"migrated", "descheduled", "steal", "contended"}
    assert end["voided"] == sum(end["reasons"].values())
    assert len(end["pace"]) == 2
    assert all(figure > 0 for figure in end["pace"])


def test_a_pace_that_was_never_reached_is_given_up(runner):
    """Known from elsewhere to be a thousand times as fast, the CPU would count as slow for ever. A neighbour may
    disturb a run, but not each of thirty.
    """
    rows = [f"id={i} op=copy routines=libc size=64 rounds=3 batch_us=50" for i in range(5)]
    calm, tries = [], 0
    while not calm and tries < 6:
        events, _ = measure(runner, rows, "--pace", "0.0001,0.0001")
        calm = [cell for cell in of(events, "cell") if not cell["disturbed"]]
        tries += 1
    assert calm
    assert {len(cell["ns"]) for cell in calm} == {3}


def test_a_row_on_two_cpus(runner):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU")
    events, _ = measure(runner, [f"id=1 op=copy routines=libc,wherry size=256 threads=2 {QUICK}"])
    assert len(of(events, "cell")) == 3


def test_the_second_entry_is_the_one_asked_for(runner):
    events, _ = measure(runner, [f"id=1 op=copy routines=libc,wherry size=64 aa=wherry {QUICK}"])
    assert [c["routine"] for c in of(events, "cell") if c["aa"]] == ["wherry"]


def test_calls_that_are_given_are_kept(runner):
    events, _ = measure(
        runner, [f"id=1 op=copy routines=libc,call_floor size=64 calls=777 {QUICK}"]
    )
    assert {cell["calls"] for cell in of(events, "cell")} == {777}


def test_mix_from_a_file(runner, tmp_path):
    mix = tmp_path / "mix"
    mix.write_text("8:0.75,64:0.25\n")
    events, _ = measure(runner, [f"id=1 op=copy routines=libc mix=@{mix} {QUICK}"])
    assert of(events, "cell")[0]["bytes"] == pytest.approx(22, abs=1)
    mix.write_text("8:much\n")
    _, said = measure(runner, [f"id=1 op=copy routines=libc mix=@{mix}"], status=2)
    assert str(mix) in said and "size:probability" in said


def test_rows_blank_lines_and_comments(runner):
    rows = [
        "# nothing",
        "",
        f"id=-3 op=copy routines=libc size=8 {QUICK}",
        f"id=4 op=set routines=libc size=8 {QUICK}",
    ]
    events, _ = measure(runner, rows)
    assert [event["id"] for event in of(events, "rowend")] == [-3, 4]
    assert events[-1]["rows"] == 2


def test_size_that_its_routine_cannot_take(runner):
    """A routine with a size quantum is skipped, and the others are measured."""
    listed = subprocess.run([runner, "list", "--json"], capture_output=True, text=True, check=True)
    routines = [json.loads(line) for line in listed.stdout.splitlines()]
    coarse = [
        r for r in routines if r["quantum"] > 1 and r["op"] == "copy" and not r["unavailable"]
    ]
    if not coarse:
        pytest.skip("no routine with a quantum")
    name, quantum = coarse[0]["name"], coarse[0]["quantum"]
    rows = [f"id={i} op=copy routines=libc,{name} size={quantum + i} {QUICK}" for i in range(2)]
    events, _ = measure(runner, rows)
    (skip,) = of(events, "skip")
    assert (skip["id"], skip["routine"]) == (1, name) and str(quantum) in skip["reason"]
    assert {c["routine"] for c in of(events, "cell") if c["id"] == 0} == {"libc", name}


def test_pin_to_each_cpu(runner):
    for cpu in sorted(os.sched_getaffinity(0))[:2]:
        events, _ = measure(runner, [], "--pin", str(cpu))
        assert events[0]["cpu"] == cpu


def test_content_that_lasts_too_short(runner):
    rows = [
        f"id=1 op=zero routines=libc,wherry size=4096 content=dirty {QUICK}",
        f"id=2 op=zero routines=libc walk=stream size=64 buffer=64 content=zero {QUICK}",
        f"id=3 op=copy routines=libc size=8 {QUICK}",
    ]
    events, _ = measure(runner, rows)
    skips = of(events, "skip")
    assert [(skip["id"], skip["routine"]) for skip in skips] == [(1, None), (2, None)]
    assert all("one pass" in skip["reason"] and "further out" in skip["reason"] for skip in skips)
    assert {cell["id"] for cell in of(events, "cell")} == {3}
    assert [event["id"] for event in of(events, "rowend")] == [1, 2, 3]


@pytest.mark.parametrize("walk", ["dst_state=L2", "walk=stream buffer=131072"])
def test_iszero_looks_at_every_byte(runner, walk):
    """It ends at the first byte that is not zero, so its buffers are zero, whatever rows before it and its own checks
    have left there: a thousand lines take more than eight times as long as one."""
    rows = [
        f"id=1 op=set routines=libc size=65536 {walk} {QUICK}",
        f"id=2 op=iszero routines=iszero_sse2 size=64 {walk} {QUICK}",
        f"id=3 op=iszero routines=iszero_sse2 size=65536 {walk} {QUICK}",
    ]
    events, _ = measure(runner, rows)
    least = {cell["id"]: min(cell["ns"]) for cell in of(events, "cell") if not cell["aa"]}
    assert least[3] > 8 * least[2]


def test_interrupt_keeps_whole_lines(runner):
    row = "op=copy routines=libc size=65536 src_state=L2 dst_state=L2 rounds=1000 batch_us=20000"
    with subprocess.Popen(
        [runner, "measure"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        process.stdin.write(f"id=1 {QUICK} op=copy routines=libc size=8\nid=2 {row}\n")
        process.stdin.flush()
        lines = []
        while not lines or json.loads(lines[-1]).get("id") != 2:
            lines.append(process.stdout.readline())
        process.terminate()
        lines += process.stdout.readlines()
        assert process.wait(LIMIT_S) == -15
    assert all(json.loads(line) for line in lines)


def test_sizes_prints_a_table(runner, peers):
    command = [
        runner,
        "sizes",
        "--size",
        "64",
        "--size",
        "4K",
        "--rounds",
        "3",
        "--peer",
        f"mine={peers}:good_",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith(" size, B"))
    assert {"libc", "rep_movsb", "wherry", "mine"} <= set(lines[head].split())
    assert [line.split()[0] for line in lines[head + 1 : head + 3]] == ["64", "4096"]
    for line in lines[head + 1 : head + 3]:
        marks = "".join(re.findall(r"\d ([*=?])", line + " "))
        assert marks == "*" or ("*" not in marks and marks.count("=") != 1 and len(marks) > 1), line
    assert "= tied with the fastest; ? undecided: " in done.stdout
    assert any(line.startswith("Noise floor: ") for line in lines[:head])
    for word in ("CPU", "caches", "kernel", "libc", "pages", "virtual"):
        assert any(line.startswith(f"  {word}") for line in lines[:head])
    assert "\033" not in done.stdout


def test_the_source_of_a_fresh_call_is_stored_before_it(wherry_run):
    """Read from the machine code, since what is stored is what was there."""
    need_tool("objdump", "binutils")
    for loop in ("plain_pool", "plain_placed", "plain_stream", "crc32c_pool", "copy_csum_stream"):
        stores = {}
        for mode in ("throughput", "fresh"):
            wanted = f"--disassemble={loop}_{mode}"
            dump = run("objdump", "-d", "--no-show-raw-insn", wanted, wherry_run).stdout
            code = [line.split("\t")[1] for line in dump.splitlines() if line.count("\t") == 1]
            calls = [i for i, text in enumerate(code) if re.match(r"call +\*", text)]
            assert len(calls) == 1, loop
            again = re.compile(r"mov +(\(%r\w+\)),(%r\w+)\nmov +\2,\1")
            stores[mode] = len(again.findall("\n".join(code[: calls[0]])))
        assert stores == {"throughput": 0, "fresh": 1}, loop
