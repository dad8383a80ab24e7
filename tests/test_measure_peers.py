"""The measuring half of wherry-run and peers: right, wrong, crashing, hanging ones; and what bytes each call finds.

Nothing here depends on how fast anything was.
"""

import os
import re
import subprocess

import pytest
from conftest import need_tool
from measured import QUICK, measure, of, peers, runner

__all__ = ["peers", "runner"]  # fixtures


def test_peer_is_measured(runner, peers):
    events, _ = measure(
        runner, [f"id=1 op=copy routines=libc,p size=128 {QUICK}"], "--peer", f"p={peers}:good_"
    )
    assert "p" in {cell["routine"] for cell in of(events, "cell")}


def test_a_peer_whose_names_have_something_behind(runner, peers):
    row = f"id=1 op=copy routines=libc,p,q size=128 {QUICK}"
    both = ("--peer", f"p={peers}:some_*_v2", "--peer", f"q={peers}:good_*")
    events, _ = measure(runner, [row], *both)
    assert {cell["routine"] for cell in of(events, "cell")} == {"libc", "p", "q"}
    _, said = measure(runner, [row], "--peer", f"p={peers}:some_*_v3", status=2)
    assert "none of memcpy" in said and "called some_*_v3" in said and len(said.splitlines()) == 1


def test_what_a_peer_prints_does_not_damage_the_lines(runner, peers):
    row = f"id=1 op=copy routines=libc,p size=128 {QUICK}"
    events, said = measure(runner, [row], "--peer", f"p={peers}:chatty_")
    assert {cell["routine"] for cell in of(events, "cell")} == {"libc", "p"}
    assert [event["event"] for event in events].count("end") == 1
    assert said == ""


def test_no_routine_finds_the_upper_halves_that_another_left(runner, peers, tmp_path, monkeypatch):
    told = tmp_path / "looked"
    monkeypatch.setenv("LOOKED", str(told))
    row = "id=1 op=copy routines=d,l size=128 rounds=12 batch_us=20"
    options = ("--peer", f"d={peers}:dirty_", "--peer", f"l={peers}:looking_")
    events, _ = measure(runner, [row], *options)
    assert {cell["routine"] for cell in of(events, "cell")} == {"d", "l"}
    looked, dirty = map(int, told.read_text().split())
    assert looked > 1000 and dirty == 0


def test_a_routine_has_settled_before_it_is_timed_by_cold_code(
    runner, peers, tmp_path, monkeypatch
):
    """It may change its way with the sizes that come, within more calls than a row of cold code has."""
    told = tmp_path / "looked"
    monkeypatch.setenv("LOOKED", str(told))
    counts = {}
    for code in ("warm", "cold"):
        row = f"id=1 op=copy routines=libc,l size=64 code={code} rounds=1 calls=5"
        events, _ = measure(runner, [row], "--peer", f"l={peers}:looking_")
        assert {cell["routine"] for cell in of(events, "cell")} == {"libc", "l"}
        counts[code] = int(told.read_text().split()[0])
    # A portion at least; on a busy machine its time may be over then.
    assert counts["cold"] >= counts["warm"] + 4096


@pytest.mark.parametrize("prefix", ["wrong_", "beyond_"])
def test_wrong_peer_has_no_cell(runner, peers, prefix):
    row = f"id=1 op=copy routines=libc,p size=128 {QUICK}"
    events, _ = measure(runner, [row], "--peer", f"p={peers}:{prefix}", status=1)
    (wrong,) = of(events, "wrong")
    assert wrong["routine"] == "p" and "128 bytes" in wrong["message"]
    assert {cell["routine"] for cell in of(events, "cell")} == {"libc"}
    assert events[-1]["event"] == "end"


@pytest.mark.parametrize(
    ("prefix", "row", "said"),
    [
        ("source_", "size=90", "changed its source"),
        ("null_return_", "size=17", "instead of the destination"),
        ("write_before_", "size=600 dst_off=7", "(before the destination)"),
    ],
)
def test_what_is_wrong_beside_the_destination_is_told(runner, build_dir, prefix, row, said):
    library = build_dir / "tests/fixtures/libwrong.so"
    rows = [f"id=1 op=copy routines=libc,p {row} {QUICK}"]
    events, _ = measure(runner, rows, "--peer", f"p={library}:{prefix}", status=1)
    (wrong,) = of(events, "wrong")
    assert wrong["routine"] == "p" and said in wrong["message"]
    assert {cell["routine"] for cell in of(events, "cell")} == {"libc"}


@pytest.mark.parametrize(
    ("prefix", "flag"), [("downward_", "direction"), ("checking_", "alignment-check")]
)
def test_a_peer_that_leaves_a_flag_set_is_wrong(runner, peers, prefix, flag):
    """Whoever came after it hung, and was told to."""
    row = f"id=1 op=copy routines=libc,p size=128 {QUICK}"
    events, _ = measure(runner, [row], "--peer", f"p={peers}:{prefix}", status=1)
    (wrong,) = of(events, "wrong")
    assert wrong["routine"] == "p"
    assert wrong["message"].endswith(f"left the {flag} flag set")
    assert {cell["routine"] for cell in of(events, "cell")} == {"libc"}
    assert events[-1]["event"] == "end"


def test_a_peer_that_would_spoil_the_row_is_left_out(runner, peers):
    """Of any machine: it sleeps a millisecond in each call."""
    rows = [
        f"id=1 op=copy routines=libc,p,wherry size=128 aa=p {QUICK}",
        f"id=2 op=copy routines=libc,p size=1448 {QUICK}",
    ]
    events, _ = measure(runner, rows, "--peer", f"p={peers}:slow_")
    skips = of(events, "skip")
    assert [(skip["id"], skip["routine"]) for skip in skips] == [(1, "p"), (2, "p")]
    (reason,) = {skip["reason"] for skip in skips}
    assert "more than 250 times slower than the fastest of the row" in reason
    calls = {cell["routine"]: cell["calls"] for cell in of(events, "cell") if cell["id"] == 1}
    assert set(calls) == {"libc", "wherry"}
    # With it there would be as many as it does in 50 times batch_us.
    batch = int(re.search(r"batch_us=(\d+)", QUICK)[1])
    assert calls["libc"] > 50 * batch / 1000


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


def test_a_peer_that_ends_the_process_while_it_is_timed_is_the_one_that_is_named(runner, peers):
    row = "id=7 op=copy routines=libc,p,wherry size=128 rounds=100 batch_us=20"
    events, _ = measure(runner, [row], "--peer", f"p={peers}:leaving_", status=0)
    assert [e["routine"] for e in of(events, "trying")] == ["libc", "p", "wherry"]
    last = events[-1]
    assert (last["event"], last["id"], last["routine"]) == ("crash", 7, "p")
    assert last["message"] == "ended the process"


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


NEW = {
    "in memory": "op=copy size=100000 src_state=L2 dst_state=DRAM calls=30 dst_off=5",
    "moved": "op=copy size=8192 src_state=L2 dst_state=L3 dst_off=64 calls=40",
    "small": "op=copy size=100 dst_state=L2 calls=40",
    "huge pages": "op=copy size=4000000 src_state=DRAM dst_state=DRAM huge=1 calls=4",
    "two threads": "op=copy size=65536 src_state=L2 dst_state=DRAM threads=2 calls=10",
    "sets": "op=set size=65536 dst_state=DRAM calls=20",
}


@pytest.mark.parametrize("name", NEW)
def test_new_memory_has_no_pages(runner, peers, tmp_path, monkeypatch, name):
    """As above; then a row without it finds pages again."""
    row = NEW[name]
    if "threads=2" in row and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU")
    told = tmp_path / "missing"
    monkeypatch.setenv("MISSING", str(told))
    peer = ("--peer", f"p={peers}:new_")
    events, _ = measure(runner, [f"id=1 routines=libc,p content=new {row} {QUICK}"], *peer)
    threads = 2 if "threads=2" in row else 1
    (calls,) = (threads * cell["calls"] for cell in of(events, "cell") if cell["routine"] == "p")
    without, one, there = map(int, told.read_text().split())
    assert without >= 3 * calls and one == 0 and there <= 3 * 48 * threads
    # Alone: beside libc's, on pages that are there, one that looks at them is so slow that it may be left out.
    rows = [f"id={i} routines=p content={c} {row} {QUICK}" for i, c in ((1, "new"), (2, "any"))]
    events, _ = measure(runner, rows, *peer)
    assert [e["id"] for e in of(events, "cell") if not e.get("aa")] == [1, 2]
    before = there
    _, one, there = map(int, told.read_text().split())
    assert one == 0 and there >= 3 * calls + before // 2


DIRTY = """
#include <stddef.h>
static void *copied(void *d, const void *s, size_t n)
{ char *p = d; const char *q = s; while (n--) { *p++ = *q++; __asm__(""); } return d; }
#define WIDE __asm__ volatile("vcmpps $15, %%ymm1, %%ymm1, %%ymm1" ::: "xmm1")
void *clean_memcpy(void *d, const void *s, size_t n)
{ copied(d, s, n); WIDE; __asm__ volatile("vzeroupper" :::); return d; }
void *dirty_memcpy(void *d, const void *s, size_t n)
{ copied(d, s, n); if (n > 100) WIDE; return d; }
"""


# Exit status 0 where XGETBV tells that upper halves are in use, and no more after vzeroupper.
TELLS = """
#include <cpuid.h>
static unsigned in_use(void)
{ unsigned a, d; __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(1)); return a & 4; }
int main(void)
{ unsigned a, b, c, d;
  if (!__builtin_cpu_supports("avx") || !__get_cpuid_count(13, 1, &a, &b, &c, &d) || !(a & 4)) return 1;
  __asm__ volatile("vzeroupper"); unsigned before = in_use();
  __asm__ volatile("vcmpps $15, %%ymm1, %%ymm1, %%ymm1" ::: "xmm1"); unsigned wide = in_use();
  __asm__ volatile("vzeroupper"); return before || !wide || in_use(); }
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_a_peer_that_leaves_upper_halves_in_use_is_marked(runner, tmp_path, threads):
    compiler = need_tool("cc", "gcc")
    (tmp_path / "tells.c").write_text(TELLS)
    subprocess.run([compiler, tmp_path / "tells.c", "-o", tmp_path / "tells"], check=True)
    if subprocess.run([tmp_path / "tells"], check=False).returncode:
        pytest.skip("this CPU has no AVX, or does not tell which registers are in use")
    (tmp_path / "p.c").write_text(DIRTY)
    compiled = tmp_path / "p.so"
    subprocess.run(
        [compiler, "-O1", "-fno-builtin", "-shared", "-fPIC", tmp_path / "p.c", "-o", compiled],
        check=True,
    )
    peers = [f"--peer={name}={compiled}:{name}_" for name in ("clean", "dirty")]
    rows = [
        f"id={i} op=copy routines=libc,clean,dirty size={size} threads={threads} {QUICK}"
        for i, size in enumerate((64, 128))
    ]
    events, _ = measure(runner, rows, *peers)
    marked = {(e["id"], e["routine"]) for e in of(events, "cell") if e.get("upper_in_use")}
    marked -= {(0, "libc"), (1, "libc")}
    assert marked == {(1, "dirty")}
