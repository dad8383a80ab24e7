"""The measuring half of wherry-run: what goes in, what comes out, and what bad input gets.

Nothing here depends on how fast anything was.
"""

import json
import os
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

LIMIT_S = 120


@pytest.fixture
def runner(build_dir):
    path = build_dir / "runner" / "wherry-run"
    if not path.exists():
        pytest.skip("wherry-run is not built")
    return path


def measure(runner, rows, *options, status=0):
    """Runs `wherry-run measure` on rows; returns its events and what it said to standard error."""
    done = subprocess.run(
        [runner, "measure", "--seed", "1", *options],
        input="".join(row + "\n" for row in rows),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == status, done.stderr + done.stdout
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def of(events, kind):
    return [event for event in events if event["event"] == kind]


QUICK = "rounds=3 batch_us=20"

ROWS = {
    "plain": "op=copy routines=libc,wherry,call_floor size=1024",
    "nothing": "op=copy routines=libc,wherry size=0",
    "latency": "op=copy routines=libc,wherry size=64 mode=latency",
    "stream latency": "op=copy routines=libc,wherry size=64 mode=latency walk=stream buffer=65536",
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
    "dirty stream": "op=zero routines=libc,wherry size=4096 walk=stream buffer=1000000 content=dirty",
    "yardsticks": "op=zero routines=libc,call_floor,read_bandwidth,write_bandwidth,write_nt_bandwidth"
    " size=1000 dst_off=3",
    "yardsticks of a copy": "op=copy routines=libc,read_bandwidth,write_bandwidth,write_nt_bandwidth,"
    "copy_bandwidth,copy_nt_bandwidth size=7 src_off=1",
    "yardsticks of a move": "op=move routines=libc,copy_bandwidth,copy_nt_bandwidth size=5000 dst_off=9",
    "yardsticks that have no source": "op=set routines=libc,copy_bandwidth,copy_nt_bandwidth size=50",
    "cold": "op=copy routines=libc,wherry,call_floor size=64 code=cold",
    "cold set": "op=set routines=libc,wherry mix=uniform:0-64 code=cold",
    "overlap, latency": "op=move routines=libc,wherry mix=log:1-4096 overlap=-9 mode=latency",
    "tiers": "op=copy routines=wherry,wherry@sse2,wherry@avx2,wherry@avx512 size=700 aa=wherry@sse2",
    "calls": "op=copy routines=libc size=64 calls=1000",
    "ascending": "op=copy routines=libc,wherry mix=uniform:0-999 ascending=both dst_state=L2",
    "ascending set": "op=set routines=libc,wherry size=4096 ascending=destination dst_state=L2",
}


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
    disturb a run, but not each of five.
    """
    rows = [f"id={i} op=copy routines=libc size=64 rounds=3 batch_us=50" for i in range(5)]
    events, _ = measure(runner, rows, "--pace", "0.0001,0.0001")
    calm = [cell for cell in of(events, "cell") if not cell["disturbed"]]
    assert calm
    assert {len(cell["ns"]) for cell in calm} == {3}


@pytest.mark.parametrize("pace", ["", "1", "1,", "1,2,3", "fast", "-1,2"])
def test_a_pace_is_two_figures(runner, pace):
    _, said = measure(runner, [], "--pace", pace, status=2)
    assert "--pace" in said


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


@pytest.mark.parametrize(
    "row",
    [
        "op=copy routines=libc size=4194304 src_state=L1 dst_state=L1",
        "op=copy routines=libc size=70368744177664 src_state=DRAM dst_state=DRAM",
        "op=set routines=libc walk=stream size=64 buffer=70368744177664",
    ],
)
def test_row_that_this_machine_cannot_hold(runner, row):
    events, _ = measure(runner, [f"id=1 {row}", f"id=2 op=copy routines=libc size=8 {QUICK}"])
    (skip,) = of(events, "skip")
    assert skip["routine"] is None and "choose a smaller size" in skip["reason"]
    assert {cell["id"] for cell in of(events, "cell")} == {2}


@pytest.mark.parametrize(
    ("row", "hint"),
    [
        ("op=copy routines=libc size=8", "id is missing"),
        ("id=1 routines=libc size=8", "op is missing"),
        ("id=1 op=copy size=8", "routines is missing"),
        ("id=1 op=copy routines=libc", "one of size and mix"),
        ("id=1 op=copy routines=libc size=8 mix=log:1-2", "one of size and mix"),
        ("id=x op=copy routines=libc size=8", "an integer"),
        ("id=1 op=jump routines=libc size=8", "give copy, move, set, zero, csum"),
        ("id=1 op=copy routines=libc size=-1", "0 to"),
        ("id=1 op=copy routines=libc size=4X", "0 to"),
        ("id=1 op=copy routines=libc size=99999999999999999999", "0 to"),
        ("id=1 op=copy routines=libc,libc size=8", "each once"),
        ("id=1 op=copy routines=libc, size=8", "names with commas"),
        ("id=1 op=copy routines=nobody size=8", "nobody"),
        ("id=1 op=copy routines=libc size=8 aa=wherry", "one of the row's routines"),
        ("id=1 op=copy routines=libc size=8 colour=red", "colour"),
        ("id=1 op=copy routines=libc size=8 size=9", "twice"),
        ("id=1 op=copy routines=libc size=8 rounds=0", "1 to 1000"),
        ("id=1 op=copy routines=libc size=8 threads=100000", "1 to"),
        ("id=1 op=copy routines=libc size=8 src_off=4096", "0 to 4095"),
        ("id=1 op=copy routines=libc size=8 src_state=L9", "L1, L2, L3 or DRAM"),
        ("id=1 op=copy routines=libc size=8 overlap=1", "op=move"),
        ("id=1 op=move routines=libc size=8 overlap=1 src_state=L2", "the same"),
        ("id=1 op=copy routines=libc size=8 delta=1 dst_off=5", "no dst_off"),
        ("id=1 op=copy routines=libc size=99 walk=stream buffer=98", "buffer"),
        ("id=1 op=copy routines=libc mix=log:0-8", "LO-HI"),
        ("id=1 op=copy routines=libc mix=uniform:9-8", "LO-HI"),
        ("id=1 op=copy routines=libc mix=normal:1-8", "@FILE"),
        ("id=1 op=copy routines=libc mix=@/nonexistent/mix", "cannot be read"),
        (
            "id=1 op=copy routines=libc size=8 content=dirty",
            "needs op=zero, set, iszero or pagezero",
        ),
        ("id=1 op=set routines=libc size=8 content=zero", "need op=zero, iszero or pagezero"),
        ("id=1 op=zero routines=libc mix=uniform:1-8 content=zero", "no mix"),
        ("id=1 op=zero routines=libc size=0 content=dirty", "from 1 byte on"),
        ("id=1 op=copy routines=libc size=8 code=tepid", "warm or cold"),
        ("id=1 op=copy routines=libc size=8 code=cold mode=latency", "mode=throughput"),
        ("id=1 op=copy routines=libc size=8 code=cold walk=stream", "walk=pool"),
        ("id=1 op=zero routines=libc size=8 code=cold content=dirty", "one of them"),
        ("id=1 op=zero routines=libc size=8 content=old", "any, dirty, zero or mixed"),
        ("id=1 op=copy routines=libc size=8 ascending=up", "none, source, destination or both"),
        ("id=1 op=set routines=libc size=8 ascending=both", "op=set has no source"),
        ("id=1 op=csum routines=csum_sse2 size=8 ascending=destination", "no destination"),
        (
            "id=1 op=move routines=libc size=8 overlap=1 ascending=destination",
            "where the source does",
        ),
        ("id=1 op=copy routines=libc size=8 walk=stream ascending=source", "by itself"),
        ("hello", "not a key=value"),
    ],
)
def test_bad_row(runner, row, hint):
    events, said = measure(runner, ["# first line", row], status=2)
    assert [event["event"] for event in events] == ["start"]
    assert said.count("\n") == 1 and "line 2" in said and hint in said


@pytest.mark.parametrize("pin", ["4000", "99999999", "-1", "one"])
@pytest.mark.parametrize("command", ["measure", "sizes"])
def test_pin_to_a_cpu_that_is_not_there(runner, command, pin):
    done = subprocess.run(
        [runner, command, "--pin", pin], input="", capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and pin in done.stderr


def test_pin_to_each_cpu(runner):
    for cpu in sorted(os.sched_getaffinity(0))[:2]:
        events, _ = measure(runner, [], "--pin", str(cpu))
        assert events[0]["cpu"] == cpu


PEERS = """
#include <stddef.h>
void *good_memcpy(void *d, const void *s, size_t n)
{ char *p = d; const char *q = s; while (n--) { *p++ = *q++; __asm__(""); } return d; }
void *wrong_memcpy(void *d, const void *s, size_t n)
{ good_memcpy(d, s, n); if (n > 100) ((char *)d)[n - 1] ^= 1; return d; }
void *beyond_memcpy(void *d, const void *s, size_t n)
{ good_memcpy(d, s, n); ((char *)d)[n] ^= 1; return d; }
void *crash_memcpy(void *d, const void *s, size_t n)
{ (void)d; (void)s; (void)n; __builtin_trap(); }
void *hang_memcpy(void *d, const void *s, size_t n)
{ for (;;) __asm__ volatile("" : : "r"(d), "r"(s), "r"(n)); }
#include <stdio.h>
#include <stdlib.h>
/* What each call found: nothing of what it writes, only that, or some of it. */
static unsigned long found[3];
void *witness_memset(void *d, int c, size_t n)
{ unsigned char *p = d; size_t same = 0;
  for (size_t i = 0; i < n; i++) same += p[i] == (unsigned char)c;
  __atomic_fetch_add(&found[same == 0 ? 0 : same == n ? 1 : 2], 1, __ATOMIC_RELAXED);
  for (size_t i = 0; i < n; i++) { p[i] = (unsigned char)c; __asm__(""); } return d; }
__attribute__((destructor)) static void tell(void)
{ const char *path = getenv("WITNESS"); FILE *file = path ? fopen(path, "w") : NULL;
  if (file) { fprintf(file, "%lu %lu %lu", found[0], found[1], found[2]); fclose(file); } }
#include <stdint.h>
/* Where calls lie: by alignment of each side; both sides alike; overlapping, and with the destination below. */
static unsigned long src_at[7], dst_at[7], same, met, down;
static int exponent(uintptr_t at)
{ int e = 0; while (e < 6 && !(at >> e & 1)) e++; return e; }
static void note(const char *d, const char *s, size_t n)
{ int to = exponent((uintptr_t)d), from = exponent((uintptr_t)s);
  dst_at[to]++; src_at[from]++; same += to == from;
  if (n && d < s + n && s < d + n) met++, down += d < s; }
void *placed_memcpy(void *d, const void *s, size_t n)
{ note(d, s, n); return good_memcpy(d, s, n); }
void *placed_memmove(void *d, const void *s, size_t n)
{ char *p = d; const char *q = s; note(p, q, n);
  if (p <= q) return good_memcpy(d, s, n);
  while (n--) { p[n] = q[n]; __asm__(""); } return d; }
void *placed_memset(void *d, int c, size_t n)
{ char *p = d; note(p, p, 0); while (n--) { *p++ = (char)c; __asm__(""); } return d; }
static void row_of(FILE *file, const char *name, const unsigned long *at)
{ fprintf(file, "\\"%s\\": [%lu", name, at[0]);
  for (int i = 1; i < 7; i++) fprintf(file, ", %lu", at[i]);
  fprintf(file, "], "); }
__attribute__((destructor)) static void tell_places(void)
{ const char *path = getenv("PLACES"); FILE *file = path ? fopen(path, "w") : NULL;
  if (!file) return;
  fprintf(file, "{"); row_of(file, "src", src_at); row_of(file, "dst", dst_at);
  fprintf(file, "\\"same\\": %lu, \\"met\\": %lu, \\"down\\": %lu}", same, met, down); fclose(file); }
static unsigned long walked[2][1 << 16], walked_count;
void *walked_memcpy(void *d, const void *s, size_t n)
{ if (walked_count < sizeof walked[0] / sizeof *walked[0]) {
    walked[0][walked_count] = (unsigned long)s; walked[1][walked_count++] = (unsigned long)d; }
  return good_memcpy(d, s, n); }
__attribute__((destructor)) static void tell_walk(void)
{ const char *path = getenv("WALK"); FILE *file = path ? fopen(path, "w") : NULL;
  if (!file) return;
  for (unsigned long i = 0; i < walked_count; i++) fprintf(file, "%lu %lu\\n", walked[0][i], walked[1][i]);
  fclose(file); }
static unsigned short listed[1 << 20];
static unsigned long listed_count;
void *listed_memcpy(void *d, const void *s, size_t n)
{ if (listed_count < sizeof listed / sizeof *listed) listed[listed_count++] = (unsigned short)n;
  return good_memcpy(d, s, n); }
__attribute__((destructor)) static void tell_sizes(void)
{ const char *path = getenv("SIZES"); FILE *file = path ? fopen(path, "w") : NULL;
  if (!file) return;
  for (unsigned long i = 0; i < listed_count; i++) fprintf(file, "%u ", listed[i]);
  fclose(file); }
/* A thousand lines of code that do nothing. */
void *large_memcpy(void *d, const void *s, size_t n)
{ __asm__ volatile(".rept 1000\\n\\tjmp 1f\\n\\t.p2align 6\\n1:\\n\\t.endr" ::: "memory");
  return good_memcpy(d, s, n); }
static unsigned long calls;
void *tired_memcpy(void *d, const void *s, size_t n)
{ good_memcpy(d, s, n); if (++calls > 3000) ((char *)d)[n / 2] ^= 1; return d; }
"""


@pytest.fixture(scope="module")
def peers(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("peers")
    (folder / "peers.c").write_text(textwrap.dedent(PEERS))
    subprocess.run(
        [
            compiler,
            "-O1",
            "-fno-builtin",
            "-shared",
            "-fPIC",
            "-o",
            folder / "peers.so",
            folder / "peers.c",
        ],
        check=True,
    )
    return folder / "peers.so"


def test_peer_is_measured(runner, peers):
    events, _ = measure(
        runner, [f"id=1 op=copy routines=libc,p size=128 {QUICK}"], "--peer", f"p={peers}:good_"
    )
    assert "p" in {cell["routine"] for cell in of(events, "cell")}


@pytest.mark.parametrize("prefix", ["wrong_", "beyond_"])
def test_wrong_peer_has_no_cell(runner, peers, prefix):
    row = f"id=1 op=copy routines=libc,p size=128 {QUICK}"
    events, _ = measure(runner, [row], "--peer", f"p={peers}:{prefix}", status=1)
    (wrong,) = of(events, "wrong")
    assert wrong["routine"] == "p" and "128 bytes" in wrong["message"]
    assert {cell["routine"] for cell in of(events, "cell")} == {"libc"}
    assert events[-1]["event"] == "end"


def test_peer_that_is_wrong_later_loses_its_cell(runner, peers):
    row = f"id=1 op=copy routines=libc,p size=128 aa=p {QUICK}"
    events, _ = measure(runner, [row], "--peer", f"p={peers}:tired_", status=1)
    (wrong,) = of(events, "wrong")
    assert "after timing" in wrong["message"]
    assert {cell["routine"] for cell in of(events, "cell")} == {"libc"}


@pytest.mark.parametrize("threads", [1, 2])
def test_peer_that_crashes(runner, peers, threads):
    if len(os.sched_getaffinity(0)) < threads:
        pytest.skip("one CPU")
    row = f"id=1 op=copy routines=libc,p size=128 threads={threads} {QUICK}"
    events, _ = measure(runner, [row], "--peer", f"p={peers}:crash_", status=1)
    assert events[-1]["event"] == "crash"
    assert events[-1]["routine"] == of(events, "trying")[-1]["routine"] == "p"
    assert events[-1]["signal"] == 4 and "SIGILL" in events[-1]["message"]


def test_peer_that_hangs(runner, peers):
    row = f"id=1 op=copy routines=libc,p size=128 {QUICK}"
    events, _ = measure(runner, [row], "--peer", f"p={peers}:hang_", status=1)
    assert events[-1]["event"] == "hang" and events[-1]["routine"] == "p"


CONTENTS = {
    "pages in L2": "op=zero size=4096 dst_state=L2",
    "pages in L2, moved": "op=zero size=4096 dst_state=L2 dst_off=64",
    "pages in DRAM": "op=zero size=4096 dst_state=DRAM calls=300",
    "few large slots": "op=zero size=300000 dst_state=L3",
    "odd": "op=zero size=777 dst_state=L2 dst_off=7",
    "several passes": "op=zero size=4096 dst_state=L2 calls=1000",
    "a stream": "op=zero size=4096 walk=stream buffer=1000000 dst_off=3",
    "two threads": "op=zero size=4096 dst_state=L2 threads=2",
    "a set": "op=set size=4096 dst_state=L2",
}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (name, content)
        for name in CONTENTS
        for content in ("dirty", "zero")
        if (name, content) != ("a set", "zero")  # a set leaves no zeros
    ],
)
def test_content_is_what_each_call_finds(runner, peers, tmp_path, monkeypatch, name, content):
    """A peer looks at what it is handed. Only verification has its own contents: 48 calls before and
    twice after, and for a stream a walk over its buffer each time."""
    row = CONTENTS[name]
    if "threads=2" in row and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU")
    told = tmp_path / "found"
    monkeypatch.setenv("WITNESS", str(told))
    events, _ = measure(
        runner,
        [f"id=1 routines=p,libc,wherry,write_bandwidth content={content} {row} {QUICK}"],
        "--peer",
        f"p={peers}:witness_",
    )
    calls = [cell["calls"] for cell in of(events, "cell") if cell["routine"] == "p"]
    assert len(calls) == 2
    none, only, some = map(int, told.read_text().split())
    assert some == 0
    checks = 3 * (48 + (1000000 // 4096 if "stream" in row else 0))
    if content == "dirty":
        assert only == 0 and none >= 3 * sum(calls)
    else:
        assert none <= checks and only >= 3 * sum(calls)


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


def test_yardstick_is_no_name_for_a_peer(runner, peers):
    _, said = measure(runner, [], "--peer", f"read_bandwidth={peers}:good_", status=2)
    assert "taken" in said


def test_closed_output(runner):
    row = f"id=1 op=copy routines=libc size=8 {QUICK}\n"
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [runner, "measure"], input=row, stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "cannot write" in done.stderr


@pytest.mark.parametrize("command", [["measure"], ["sizes", "--size", "64", "--rounds", "2"]])
def test_full_disk(runner, command):
    row = f"id=1 op=copy routines=libc size=8 {QUICK}\n"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [runner, *command], input=row, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "No space left" in done.stderr


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
    assert any(line.startswith("Noise floor: ") for line in lines[:head])
    for word in ("CPU", "caches", "kernel", "libc", "pages", "virtual"):
        assert any(line.startswith(f"  {word}") for line in lines[:head])
    assert "\033" not in done.stdout


@pytest.mark.parametrize(
    "options",
    [
        ["--size", "0"],
        ["--size", "4X"],
        ["--size", "-1"],
        ["--rounds", "0"],
        ["--routine", "nobody"],
        ["--speed"],
    ],
)
def test_sizes_misuse(runner, options):
    done = subprocess.run(
        [runner, "sizes", *options], capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and options[-1] in done.stderr
