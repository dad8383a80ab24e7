"""What each call of a mix gets: its size, alignment, overlap and order; and code that is cold."""

import itertools
import json
from collections import Counter

import pytest
from measured import QUICK, measure, of, peers, runner

__all__ = ["peers", "runner"]  # fixtures


# A line each: sizes; whether both sides overlap; alignments.
FLEET = "0:0.1,8:0.5,40:0.2,300:0.2\n0:0.75,1:0.25\n1:0.25,8:0.25,16:0.25,64:0.25\n"


@pytest.mark.parametrize(
    ("code", "mode"), [("warm", "throughput"), ("warm", "latency"), ("cold", "throughput")]
)
@pytest.mark.parametrize("op", ["copy", "move", "set"])
def test_alignments_and_overlaps_of_a_mix(runner, peers, tmp_path, monkeypatch, op, code, mode):
    """A peer looks at where its calls lie: each alignment has its share, on each side by itself."""
    mix = tmp_path / "mix"
    mix.write_text(FLEET)
    told = tmp_path / "places"
    monkeypatch.setenv("PLACES", str(told))
    count = 1500 if code == "cold" else 3000  # cold ones take a millisecond each
    row = f"id=1 op={op} routines=p mix=@{mix} code={code} mode={mode} calls={count} {QUICK}"
    measure(runner, [row], "--peer", f"p={peers}:placed_")
    seen = json.loads(told.read_text())
    calls = sum(seen["dst"])
    assert calls > 6 * count
    for side in ("src", "dst"):
        alignments = [count / calls for count in seen[side]]  # 1, 2, 4 ... 64
        if op == "set" and side == "src":
            continue
        # Where the sides overlap the destination's alignment is whatever comes of it.
        moved = op == "move" and side == "dst"
        for exponent, share in enumerate(alignments):
            given = 0.25 if exponent in (0, 3, 4, 6) else 0
            assert share == pytest.approx(given, abs=0.2 if moved else 0.05)
    # A quarter of what has any bytes; a call is counted as one that overlaps when it is not in place.
    met = seen["met"] / calls
    assert met == (pytest.approx(0.9 * 0.25, abs=0.05) if op == "move" else 0)
    if op == "move":
        assert seen["down"] == pytest.approx(seen["met"] / 2, rel=0.2)
    # Neither side's alignment tells the other's.
    if op == "copy":
        assert seen["same"] / calls == pytest.approx(0.25, abs=0.05)


def test_overlap_that_is_given_takes_the_place_of_the_mix(runner, peers, tmp_path, monkeypatch):
    mix = tmp_path / "mix"
    mix.write_text("100:1\n0:1\n8:1\n")
    told = tmp_path / "places"
    monkeypatch.setenv("PLACES", str(told))
    row = f"id=1 op=move routines=p mix=@{mix} overlap=-3 {QUICK}"
    measure(runner, [row], "--peer", f"p={peers}:placed_")
    seen = json.loads(told.read_text())
    calls = sum(seen["src"])
    assert seen["met"] == seen["down"] == calls
    assert seen["src"][3] == seen["dst"][0] == calls


def test_lines_of_a_mix_may_be_missing_or_empty(runner, tmp_path):
    mix = tmp_path / "mix"
    for text in (
        "8:1",
        "8:1\n\n\n",
        "8:1\r\n0:1\r\n64:1\r\n",
        "8:1\n\n4:1",
        "8:1,16:0\n0:1,1:0\n\n",
    ):
        mix.write_bytes(text.encode())
        events, _ = measure(runner, [f"id=1 op=move routines=libc mix=@{mix} {QUICK}"])
        assert of(events, "cell")[0]["bytes"] == 8


def test_as_many_sizes_as_a_mix_may_have(runner, tmp_path):
    """And the comma behind the last, with which lists are written."""
    mix = tmp_path / "mix"
    for end in ("", ","):
        mix.write_text(",".join(f"{size}:{int(size == 8)}" for size in range(65536)) + end)
        events, _ = measure(runner, [f"id=1 op=copy routines=libc mix=@{mix} {QUICK}"])
        assert of(events, "cell")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "line 1 must be size:probability"),
        ("\n0:1\n", "line 1 must be size:probability"),
        ("8:much\n", "line 1 must be size:probability"),
        ("8:0\n", "line 1 must be size:probability"),
        ("8:-1,9:2\n", "line 1 must be size:probability"),
        ("8:nan\n", "line 1 must be size:probability"),
        ("1073741825:1\n", "line 1 must be size:probability"),
        ("8:1,\r9:1\n", "line 1 must be size:probability"),
        ("8:1 9:1\n", "line 1 must be size:probability"),
        ("8:1\n2:1\n", "line 2 must be 0:probability,1:probability"),
        ("8:1\nsome text\n", "line 2 must be 0:probability,1:probability"),
        ("8:1\n0:1\n3:1\n", "line 3 must be alignment:probability"),
        ("8:1\n0:1\n128:1\n", "line 3 must be alignment:probability"),
        ("8:1\n0:1\n0:1\n", "line 3 must be alignment:probability"),
        ("8:1\n0:1\n1:1\n8:1\n", "more than three lines"),
        ("8:1\n\0", "no text"),
        ("8:1," * (2 << 20), "longer than 4 MiB"),
    ],
)
def test_bad_mix_file(runner, tmp_path, text, hint):
    mix = tmp_path / "mix"
    mix.write_bytes(text.encode())
    _, said = measure(runner, [f"id=1 op=copy routines=libc mix=@{mix}"], status=2)
    assert said.count("\n") == 1 and str(mix) in said and hint in said


@pytest.mark.parametrize("key", ["src_off=1", "dst_off=1", "delta=0"])
def test_a_mix_that_gives_alignments_takes_no_offsets(runner, tmp_path, key):
    mix = tmp_path / "mix"
    mix.write_text("8:1\n0:1\n8:1\n")
    _, said = measure(runner, [f"id=1 op=copy routines=libc mix=@{mix} {key}"], status=2)
    assert said.count("\n") == 1 and "give no src_off, dst_off or delta" in said


def test_rare_large_sizes_of_a_mix_reach_beyond_its_state(runner, tmp_path):
    mix = tmp_path / "mix"
    mix.write_text("16:0.995,1000000:0.005\n")
    rows = [f"id=1 op=copy routines=libc,wherry mix=@{mix} {QUICK}"]
    events, _ = measure(runner, rows)
    assert len(of(events, "cell")) == 3
    mix.write_text("16:0.5,1000000:0.5\n")
    events, _ = measure(runner, rows)
    assert of(events, "skip")[0]["routine"] is None


@pytest.mark.parametrize("state", ["L2", "DRAM"])
@pytest.mark.parametrize("sides", ["none", "source", "destination", "both"])
@pytest.mark.parametrize("placed", [False, True])
def test_calls_go_upwards_where_asked(runner, peers, tmp_path, monkeypatch, sides, state, placed):
    told = tmp_path / "walk"
    monkeypatch.setenv("WALK", str(told))
    spec = "uniform:900-1100"
    if placed:  # calls with their places in the page, as of a recorded mix
        (tmp_path / "calls").write_text(
            "calls\n" + "".join(f"1000 {i % 64} {i * 97 % 4096}\n-\n" for i in range(500))
        )
        spec = f"@{tmp_path / 'calls'}"
    row = (
        f"id=1 op=copy routines=p mix={spec} src_state={state} dst_state={state} ascending={sides}"
    )
    measure(runner, [f"{row} calls=2000 rounds=2 batch_us=20"], "--peer", f"p={peers}:walked_")
    seen = [tuple(map(int, line.split())) for line in told.read_text().splitlines()]
    seen = seen[-3000:-200]  # without the verification at both ends
    for side, name in enumerate(("source", "destination")):
        steps = [after[side] - before[side] for before, after in itertools.pairwise(seen)]
        near = sum(0 < step < 3 * 1024 for step in steps) / len(steps)
        assert near > 0.95 if sides in (name, "both") else near < 0.2, (name, near)


@pytest.mark.parametrize("sizes", ["size=600", "mix=uniform:500-600"])
def test_places_change_where_asked(runner, peers, tmp_path, monkeypatch, sizes):
    """Of 2,000 calls hardly one lies where another did, on any side; else a few places come again and again."""
    for places in ("repeat", "change"):
        told = tmp_path / places
        monkeypatch.setenv("WALK", str(told))
        row = f"id=1 op=copy routines=p {sizes} places={places} calls=2000 rounds=2 batch_us=20"
        measure(runner, [row], "--peer", f"p={peers}:walked_")
        seen = [tuple(map(int, line.split())) for line in told.read_text().splitlines()]
        seen = seen[-2000:-200]  # of the last sample, without the verification
        for side in (0, 1):
            in_line = Counter(own[side] % 64 for own in seen)
            if places == "change":
                assert len(in_line) == 64 and max(in_line.values()) < len(seen) / 16
            else:
                assert set(in_line) == {0}
            # Where it lies, with where it lay the three times before.
            pages = [own[side] // 64 for own in seen]
            known = Counter(zip(pages, pages[1:], pages[2:], pages[3:], strict=False))
            again = sum(count for count in known.values() if count > 1) / len(seen)
            assert again < 0.2 if places == "change" else again > 0.9, (places, side, again)


@pytest.mark.parametrize("sizes", ["size=600", "mix=uniform:500-600"])
def test_places_that_would_be_learnt_are_no_change(runner, sizes):
    """A short table keeps its order, so that its few places came again and again."""
    row = f"op=copy routines=libc {sizes} places=change {QUICK}"
    events, said = measure(runner, [f"id=1 {row} table=32769", f"id=2 {row} table=32768"], status=2)
    assert [cell["id"] for cell in of(events, "cell")] == [1, 1]
    assert said.count("\n") == 1 and "a table of more than 32768" in said


@pytest.mark.parametrize("table", [7, 24])
def test_slots_go_into_a_short_table_or_it_into_them(runner, peers, tmp_path, monkeypatch, table):
    """Else both circles together have far more calls than either, and none can be learnt."""
    told = tmp_path / "walk"
    monkeypatch.setenv("WALK", str(told))
    row = f"id=1 op=copy routines=p mix=uniform:650-700 table={table} calls=2000 rounds=1"
    measure(runner, [f"{row} batch_us=20"], "--peer", f"p={peers}:walked_")
    seen = [tuple(map(int, line.split())) for line in told.read_text().splitlines()]
    slots = len(set(seen[-1500:-200]))  # of the last sample, without the verification
    assert slots > 1 and (slots % table == 0 or table % slots == 0), slots


def test_buffers_that_are_walked_lie_elsewhere_in_their_pages_each_round(
    runner, peers, tmp_path, monkeypatch
):
    told = tmp_path / "walk"
    monkeypatch.setenv("WALK", str(told))
    row = "id=1 op=copy routines=p size=4096 walk=stream buffer=65536 calls=64 rounds=12"
    for delta in ("any", "70"):
        measure(runner, [f"{row} delta={delta} batch_us=20"], "--peer", f"p={peers}:walked_")
        seen = [tuple(map(int, line.split())) for line in told.read_text().splitlines()]
        apart = {(dst - src) % 4096 for src, dst in seen}
        assert len(apart) > 4 if delta == "any" else apart == {70}, apart


def test_a_mix_that_gives_alignments_has_its_places(runner, tmp_path):
    mix = tmp_path / "mix"
    mix.write_text("8:1\n0:1\n8:1\n")
    _, said = measure(runner, [f"id=1 op=copy routines=libc mix=@{mix} places=change"], status=2)
    assert said.count("\n") == 1 and "give no places=change" in said


def test_every_other_round_goes_the_other_way(runner, peers, tmp_path, monkeypatch):
    """So that who comes first in one, after whatever there was, comes last in the next."""
    told = tmp_path / "turns"
    monkeypatch.setenv("TURNS", str(told))
    row = "id=1 op=copy routines=a,b,c size=64 calls=1000 rounds=6 batch_us=20"
    options = [word for name in "abc" for word in ("--peer", f"{name}={peers}:{name}_")]
    events, _ = measure(runner, [row], *options)
    rounds = len(of(events, "rowend")[0]["cores"])
    turns = told.read_text()[: -3 * 48]  # without the verification; the first has a second cell
    samples = turns[-4 * 1062 * rounds :][::1062]
    orders = [samples[i : i + 4] for i in range(0, 4 * rounds, 4)]
    assert all(sorted(order) == ["a", "a", "b", "c"] for order in map(list, orders)), orders
    assert [o[::-1] for o in orders[1::2]] == orders[0 : len(orders) // 2 * 2 : 2], orders


@pytest.mark.parametrize("places", ["repeat", "change"])
def test_routines_of_a_round_get_the_same_sizes_in_another_order(
    runner, peers, tmp_path, monkeypatch, places
):
    """What one has taught the branch predictor must be of no use to the next."""
    told = tmp_path / "sizes"
    monkeypatch.setenv("SIZES", str(told))
    row = (
        f"id=1 op=copy routines=p mix=uniform:0-999 table=65536 places={places} calls=1000 rounds=2"
        " batch_us=20"
    )
    measure(runner, [row], "--peer", f"p={peers}:listed_")
    sizes = list(map(int, told.read_text().split()))
    # From the end: 48 calls of verification each, and 4 samples of 1000 calls with 62 before them.
    assert len(sizes) > 4 * 1062
    tail = sizes[: len(sizes) - 2 * 48]
    samples = [tail[len(tail) - 1062 * (i + 1) :][62 : 62 + 1000] for i in range(4)]
    for one, two in ((samples[0], samples[1]), (samples[2], samples[3])):
        assert sorted(one) == sorted(two) and one != two
        same = sum(a == b for a, b in zip(one, two, strict=True))
        assert same < 100
    assert sorted(samples[0]) != sorted(samples[2]), "another round, another part of the table"


@pytest.mark.parametrize("alone", ["code=cold", "mode=p50"])
def test_a_call_that_is_timed_alone_is_one_of_a_copy_or_a_set(runner, alone):
    """Called as a copy is, a sum would take the source for its length."""
    names = "libc,csum:wherry,padded,inlined_padded,inlined_memcpy,inlined_memcpy_n,move:wherry"
    events, _ = measure(runner, [f"id=1 op=copy routines={names} size=64 {alone} rounds=1"])
    why = {event["routine"]: event["reason"] for event in of(events, "skip")}
    assert why.pop("csum:wherry") == (
        "calls that are timed alone are those of a copy, a move or a set"
    )
    assert set(why) == {"inlined_padded", "inlined_memcpy", "inlined_memcpy_n"}
    assert set(why.values()) == {"stands inline in its loop, and has no call to be timed alone"}
    told = {cell["routine"] for cell in of(events, "cell")}
    assert told == {"libc", "padded", "move:wherry"}


def test_code_that_is_cold_costs_more(runner, peers):
    """Not a judgement of speed: a routine of two hundred lines cannot be had for nothing from beyond
    the instruction cache, whatever the machine."""
    rows = [
        f"id={i} op=copy routines=small,large,call_floor size=64 rounds=5 batch_us=50 code={code}"
        for i, code in enumerate(("warm", "cold"))
    ]
    options = ["--peer", f"small={peers}:good_", "--peer", f"large={peers}:large_"]
    events, _ = measure(runner, rows, *options)
    least = {(c["id"], c["routine"]): min(c["ns"]) for c in of(events, "cell") if not c["aa"]}
    warm = least[0, "large"] - least[0, "small"]
    cold = least[1, "large"] - least[1, "small"]
    assert cold > 2 * warm
