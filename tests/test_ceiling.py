"""What a recorded program's copies took at most: calls by what each costs here, and what was timed."""

from __future__ import annotations

import json
import pwd

import pytest
from wherry import bootcache, ceiling


def test_the_ceiling_is_calls_times_cost():
    flat = {op: {"0": 2.0, "64": 2.0, "4096": 2.0} for op in ceiling.OPS}
    costs = {
        "hot": flat,
        "repeated": flat,
        "cold": {op: {"64": 20.0, "4096": 200.0} for op in ceiling.OPS},
    }
    ops = {"copy": {"sizes": [[10, 10, 1000, 10000], [4096, 4096, 10, 40960]]}}
    found = ceiling.of(ops, 1e-3, costs)
    assert found["likely_s"] == pytest.approx(1010 * 2e-9)
    assert found["at_most_s"] == pytest.approx(1000 * 20e-9 + 10 * 200e-9)
    assert found["likely"] == pytest.approx(0.00202)
    assert ceiling.of(ops, 1e-6, costs)["at_most"] == 1
    assert ceiling.of(ops, 0, costs)["at_most"] == 0
    assert ceiling.cost_ns({"64": 2.0, "256": 8.0}, 128) == pytest.approx(4)
    assert ceiling.cost_ns({"64": 2.0, "256": 8.0}, 2560) == pytest.approx(80)


def test_the_ceiling_is_what_was_timed():
    flat = {op: {"0": 2.0, "64": 2.0, "4096": 2.0} for op in ceiling.OPS}
    costs = {
        "hot": flat,
        "repeated": flat,
        "cold": {op: {"64": 20.0, "4096": 200.0} for op in ceiling.OPS},
    }
    # 100 calls of 150 ns, of which timing added 50, and 2000 ns of page faults among them.
    times = [[4096, 6143, 100, 409600, 15000.0, 5000.0, 4, 2000.0, 0, [0] * 9]]
    ops = {"copy": {"sizes": [[4096, 4096, 1000, 4096000]], "times": times}}
    found = ceiling.of(ops, 1.0, costs)
    assert found["timed"] == 100
    assert found["likely_s"] == pytest.approx(1000 * 100e-9)
    # As sure as 100 calls make it, and the faults.
    assert found["at_most_s"] == pytest.approx(1000 * (100e-9 * 1.2 + 20e-9))
    # Larger ones take in proportion to their lines; smaller than half of a hot call is not believed.
    timed = ceiling.Timed(times)
    whole, added, *_ = timed.near(2 * 4096 + 64)
    assert whole - added == pytest.approx(200)
    assert ceiling.Timed([]).near(100) is None
    assert ceiling.Timed([[4096, 6143, 0, 0, 0, 0, 0, 0.0, 3, [0] * 9]]).near(4096) is None
    cheap = [[4096, 6143, 100, 409600, 5000.0, 5000.0, 0, 0.0, 0, [0] * 9]]
    assert ceiling.cost(costs, "copy", ceiling.Timed(cheap), 4096).likely == 1.0


FLAT = {op: {"0": 2.0, "16777216": 2.0} for op in ceiling.OPS}
ALIKE = dict.fromkeys(ceiling.KINDS, FLAT)


@pytest.mark.parametrize("cpu_s", [1.0, 1e-7])
def test_the_parts_of_a_ceiling_are_those_of_its_classes(cpu_s):
    sizes = [[0, 0, 5, 0], [16, 16, 100, 1600], [17, 17, 10, 170], [64, 64, 10, 640]]
    sizes += [[1 << 20, 1 << 20, 3, 3 << 20], [(1 << 20) + 1, 2 << 20, 2, 3 << 20]]
    ops = {"copy": {"sizes": sizes}, "set": {"sizes": [[16, 16, 0, 0], [65, 65, 20, 1300]]}}
    found = ceiling.of(ops, cpu_s, ALIKE)
    calls = {(own["op"], own["up_to"]): own["calls"] for own in found["parts"]}
    assert calls == {
        ("copy", 16): 105,
        ("copy", 64): 20,
        ("copy", 1 << 20): 3,
        ("copy", None): 2,
        ("set", 256): 20,
    }
    # In proportion to their times they are what is likely, and none is at most more than all.
    whole = 150 * 2e-9
    assert found["likely_s"] == pytest.approx(min(whole, cpu_s))
    for own in found["parts"]:
        took = own["calls"] * 2e-9
        assert own["likely_s"] == pytest.approx(took * found["likely_s"] / whole, abs=2e-9)
        assert own["at_most_s"] == pytest.approx(min(took, cpu_s), abs=2e-9)


def test_of_a_class_that_few_were_timed_of_its_neighbours_tell():
    def row(size: int, calls: int, ns: float) -> list:
        return [size, size, calls, size * calls, ns * calls, calls, 0, 3.0 * calls, 0, [0] * 9]

    timed = ceiling.Timed([row(64, 4, 10.0), row(192, 4, 40.0), row(4096, 100, 500.0)])
    # By lines: 64 bytes are two, 192 are four.
    whole, added, faults, calls = timed.near(64)
    assert calls == 8 and whole == pytest.approx((10 + 40 / 2) / 2)
    assert (added, faults) == pytest.approx(((1 + 1 / 2) / 2, (3 + 3 / 2) / 2))
    assert timed.near(4096)[::3] == pytest.approx((500, 100))
    # The nearest is that of the least ratio.
    assert ceiling.Timed([row(64, 8, 10.0), row(256, 8, 40.0)]).near(130)[3] == 8
    assert ceiling.Timed([row(64, 8, 10.0), row(256, 8, 40.0)]).near(130)[0] == pytest.approx(
        40 * (130 + 64) / (256 + 64)
    )
    assert ceiling.Timed([row(64, 8, 10.0), row(256, 8, 40.0)]).near(126)[0] == pytest.approx(
        10 * (126 + 64) / (64 + 64)
    )


@pytest.mark.parametrize(
    ("size", "calls", "factor"), [(8192, 100, 2), (8192, 200, 2), (4095, 500, 1)]
)
def test_of_large_calls_that_hardly_any_was_timed_of_the_ceiling_is_twice_as_high(
    size, calls, factor
):
    times = [[size, size, 2, 2 * size, 2000.0, 0.0, 0, 0.0, 0, [0] * 9]]
    ops = {"copy": {"sizes": [[size, size, calls, size * calls]], "times": times}}
    found = ceiling.of(ops, 1.0, ALIKE, system_s=0.01)
    own = factor * calls * 1e-6 * (1 + 2 / 2**0.5)
    assert found["likely_s"] == pytest.approx(calls * 1e-6)
    # So many bytes may have been new pages, too.
    many = factor == 2 and size * calls >= 1 << 20
    assert found["at_most_s"] == pytest.approx(own + (0.01 if many else 0))
    assert found.get("few_timed", False) is many


def test_a_user_without_a_home_has_costs_too(tmp_path, monkeypatch):
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def nobody(uid: int):
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(bootcache, "key", lambda version, natives: "key")
    good = {kind: {op: {"64": 2.0} for op in ceiling.OPS} for kind in ceiling.KINDS}
    monkeypatch.setattr(ceiling, "_measure", lambda: good)
    begun = []
    assert ceiling.costs(lambda: begun.append(1)) == good and begun
    begun.clear()
    assert ceiling.costs(lambda: begun.append(1)) == good and not begun
    (kept,) = tmp_path.glob("*/costs.json")
    assert json.loads(kept.read_text())["kept"] == {"key": good}
    monkeypatch.setattr(bootcache, "own_directories", lambda: iter(()))
    assert ceiling.costs() == good


def test_costs_of_what_is_preloaded_are_not_those_of_libc(monkeypatch):
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    stock = bootcache.key(1, [])
    monkeypatch.setenv("LD_PRELOAD", "/usr/lib/libwherry-dropin.so")
    assert bootcache.key(1, []) != stock


def test_a_damaged_cache_of_costs_is_measured_again(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    good = {kind: {op: {"64": 2.0} for op in ceiling.OPS} for kind in ceiling.KINDS}
    monkeypatch.setattr(bootcache, "key", lambda version, natives: "key")
    monkeypatch.setattr(ceiling, "_measure", lambda: good)
    path = tmp_path / "wherry" / "costs.json"
    deep = 100_000 * "["
    for text in (
        *(None, "", "[]", deep, '{"key": "key"}', '{"kept": [1]}', '{"kept": {"key": 3}}'),
        *('{"kept": {"key": {"hot": 1}}}', '{"kept": {"key": {"hot": {"copy": {"x": "y"}}}}}'),
        *(
            json.dumps({"kept": {"key": good | {"hot": good["hot"] | {"set": wrong}}}})
            for wrong in ({}, {"64": 0}, {"64": 1e12}, {"64": "2"}, {"-1": 2.0})
        ),
    ):
        if text is not None:
            path.write_text(text)
        assert ceiling.costs() == good
        assert json.loads(path.read_text()) == {"kept": {"key": good}}


def test_builds_that_take_turns_measure_once_each(tmp_path, monkeypatch):
    place, made = tmp_path / "costs.json", []

    def cost(key):
        return bootcache.kept(place, key, bool, lambda: made.append(key) or {"of": key}, False)

    for key in ("a", "b", "a", "b"):
        assert cost(key) == {"of": key}
    assert made == ["a", "b"]
    # No more than a few are kept, the latest.
    several = [str(number) for number in range(bootcache.MOST_KEPT)]
    for key in several:
        cost(key)
    assert list(json.loads(place.read_text())["kept"]) == several
    assert cost("a") == {"of": "a"} and made[-1] == "a"
    bootcache.kept(place, "7", bool, lambda: {"of": "new"}, fresh=True)
    assert cost("7") == {"of": "new"}
