"""Recorded mixes: read and refused, drawn for the runner, shipped, listed, measured."""

from __future__ import annotations

import collections
import copy
import itertools
import json
import random
import re

import pytest
from conftest import ROOT
from made_mixes import CEILING, SMALL
from wherry import mixes, raking, recordedcalls, recordings
from wherry.cli import tuning
from wherry.errors import WherryError
from wherry.replay import parts

CALLER = {"op": "copy", "module": "/usr/bin/x", "calls": 1, "bytes": 12}


def test_a_number_of_thousands_of_digits_is_told_as_that(tmp_path):
    path = tmp_path / "long.mix.json"
    path.write_text('{"format": "wherry-mix", "version": ' + "9" * 5000 + "}")
    with pytest.raises(WherryError, match="has a number of thousands of digits"):
        recordings.read(path)


def test_the_mix_in_the_docs_is_one(tmp_path):
    told = re.search(r"```json\n(.*?)```", (ROOT / "docs/mix.md").read_text(), re.DOTALL)[1]
    path = tmp_path / "gcc.mix.json"
    path.write_text(told)
    found = recordings.read(path)
    assert set(found.ops) == {"copy"} and found.name


def test_there_and_back(tmp_path):
    path = tmp_path / "small.mix.json"
    recordings.write(path, SMALL)
    found = recordings.read(path)
    assert found.document == SMALL
    assert found.ops == ("copy", "move")
    assert found.shares("copy")[0] == {12: 2, 2000: 2}
    assert found.shares("move")[1] == {1: 2}
    assert found.shares("copy")[2] == {1: 2, 8: 2, 64: 4}
    # A row of a table is a line, so that a diff shows what changed.
    assert "    [12, 12, 2, 24]," in path.read_text().splitlines()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(format="other"), 'no "format": "wherry-mix"'),
        (lambda d: d.update(version=2), "its version is 2"),
        (lambda d: d.update(name="a b"), "at name"),
        (lambda d: d.pop("ops"), "ops"),
        (lambda d: d.update(ops=[]), "at ops"),
        (lambda d: d["ops"].update(sing={}), "sing"),
        (lambda d: d["ops"]["copy"].update(calls=5), "calls is 5, and its sizes add up to 4"),
        (lambda d: d["ops"]["copy"].update(bytes=5), "bytes is 5"),
        (lambda d: d["ops"]["copy"]["sizes"].reverse(), "sort them upwards"),
        (
            lambda d: d["ops"]["copy"]["sizes"][0].__setitem__(1, 10),
            "ops.copy.sizes: [12, 10] ends before it begins",
        ),
        (
            lambda d: d["trial"]["ops"]["move"][0].__setitem__(0, 128),
            "trial.ops.move: [128, 127] ends before it begins",
        ),
        (
            lambda d: d["ops"]["copy"].update(
                places=[[16, 8, 8, "far", "none", n] for n in (1, 2)]
            ),
            "ops.copy.places: [16, 8, 8, 'far', 'none'] stands there twice",
        ),
        (lambda d: d["ops"]["copy"]["sizes"][0].__setitem__(3, 7), "are not 7 bytes"),
        (lambda d: d["ops"]["copy"]["sizes"][0].__setitem__(2, -2), "ops.copy.sizes.0.2"),
        (lambda d: d["ops"]["copy"]["sizes"][0].__setitem__(2, 1e300), "ops.copy.sizes.0.2"),
        (lambda d: d["ops"]["copy"]["places"][0].__setitem__(1, 3), "ops.copy.places.0.1"),
        (lambda d: d["sequences"].update(bursts=["0 1"]), "call 1 of 1"),
        (lambda d: d["sequences"].update(bursts=["0 x"]), "sequences.bursts.0"),
        (lambda d: d["sequences"].update(bursts=["9" * 5000]), "call 999999999999 of 1"),
        (lambda d: d.update(ceiling={"cpu_s": -1}), "ceiling"),
        (
            lambda d: d.update(callers=[CALLER, CALLER | {"calls": 99}]),
            "callers: number 2 has 99 calls of copy, of which there are",
        ),
        (lambda d: d.update(callers=[CALLER | {"bytes": 1 << 40}]), f"has {1 << 40} bytes of copy"),
        (
            lambda d: d.update(callers=[CALLER | {"op": "set"}]),
            "calls of set, of which there are 0",
        ),
        (lambda d: d["ops"]["move"]["times"][0].__setitem__(5, 91), "timing added 91 of 90.5 ns"),
        (lambda d: d["ops"]["move"]["times"][0].__setitem__(0, 128), "are not 200 bytes"),
        (lambda d: d["ops"]["move"]["times"][0].pop(), "ops.move.times.0"),
        (lambda d: d["ops"]["move"]["times"][0].__setitem__(4, 1e19), "ops.move.times.0.4"),
        (
            lambda d: d["ops"]["move"]["times"].append(d["ops"]["move"]["times"][0]),
            "sort them upwards",
        ),
        (lambda d: d["ops"]["move"]["order"][0].__setitem__(3, 3), "more calls went on than were"),
        (lambda d: d["trial"]["ops"].update(set=[]), "trial.ops.set: ops has no such calls"),
        (lambda d: d["trial"]["ops"]["move"][0].__setitem__(0, 128), "sort them upwards"),
        (lambda d: d["trial"]["ops"]["move"][0][2].pop(), "trial.ops.move.0.2"),
        (lambda d: d.update(ceiling=CEILING | {"at_most": 3, "likely": 5}), "ceiling"),
        (lambda d: d.update(ceiling=CEILING | {"likely": 0.5}), "at most 0.2, but likely 0.5"),
    ],
)
def test_what_is_wrong_is_said(change, said):
    document = copy.deepcopy(SMALL)
    change(document)
    with pytest.raises(WherryError) as error:
        recordings.parse(json.dumps(document).encode(), "F")
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


def test_numbers_with_a_point_and_a_mark_of_utf8():
    """As other programs write JSON."""
    text = json.dumps(SMALL).replace("[12, 12, 2, 24]", "[12.0, 12.0, 2.0, 24.0]")
    assert "12.0" in text
    found = recordings.parse(b"\xef\xbb\xbf" + text.encode(), "F")
    assert found.document["ops"] == SMALL["ops"]
    assert all(isinstance(n, int) for n in found.document["ops"]["copy"]["sizes"][0])
    assert recordings.is_recorded(b"\xef\xbb\xbf {")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff\xfe{",
        b"[" * 100000,
        b"{}",
        b"null",
        b'{"format": NaN}',
        b"{" + b" " * (17 << 20),
    ],
)
def test_what_is_no_mix_is_refused(data: bytes):
    with pytest.raises(WherryError):
        recordings.parse(data, "F")


def test_one_that_is_cut_short_is_told_as_that():
    whole = recordings.encode({**SMALL, "name": "gr\u00f6\u00dfe"}).rstrip()
    for length in range(1, len(whole)):
        with pytest.raises(WherryError, match=r"cut short.*; record it again"):
            recordings.parse(whole[:length], "F")
    with pytest.raises(WherryError, match="or is damaged"):
        recordings.parse(whole.replace(b":", b";", 1), "F")


@pytest.mark.parametrize(
    "before, after, key",
    [
        ('"name": "small"', '"name": "small", "ops": {}, "name": "other"', "name"),
        ('"calls": 4,', '"calls": 4, "calls": 4,', "calls"),
        ('"move": {', '"copy": {', "copy"),
    ],
)
def test_a_key_that_is_there_twice_is_named(before, after, key):
    text = json.dumps(SMALL).replace(before, after, 1)
    with pytest.raises(WherryError, match=f'the key "{key}" twice'):
        recordings.parse(text.encode(), "F")


def test_calls_that_nobody_measures_are_left_out_and_named(wherry, tmp_path):
    """One class of sizes that no recorder makes, and a call of 1.27 GiB."""
    document = {key: SMALL[key] for key in ("format", "version", "name")}
    wide, once, few = 1 << 60, 1363667714, [10, 10, 3, 30]
    one = {"calls": 1, "bytes": once, "sizes": [[1342177280, 1409286143, 1, once]]}
    document["ops"] = {
        "copy": {"calls": 5, "bytes": 30 + wide + 16, "sizes": [few, [16, wide, 2, wide + 16]]},
        "set": one,
    }
    recordings.write(tmp_path / "big.mix.json", document)
    found = recordings.read(tmp_path / "big.mix.json")
    assert found.shares("copy")[0] == {10: 3} and found.shares("set")[0] == {}
    assert {call[0] for run in recordedcalls.table(found, "copy", count=99) for call in run} == {10}
    subject = parts.subject(str(tmp_path / "big.mix.json"), {"L1": 32768})
    assert [(part.op, part.mean, part.largest) for part in subject.parts] == [("copy", 10, 10)]
    assert subject.beyond == 3
    told = []
    tuning.given_mixes([str(tmp_path / "big.mix.json")], {"L1": 32768}, told=told.append)
    assert told == ["small: 3 calls of more than 1 GiB left out: nothing above that is measured"]
    (tmp_path / "out").mkdir()
    done = wherry("list", "mixes", "--mix", "big.mix.json", "--export", "out", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "wherry: big.copy: 2 calls of more than 1 GiB left out: nothing above that is measured",
        "wherry: big.set: 1 call of more than 1 GiB left out: nothing above that is measured",
    ]
    assert (tmp_path / "out/big.copy.csv").read_text() == "10:1\n"
    assert len(list((tmp_path / "out").iterdir())) == 1
    recordings.write(tmp_path / "only.mix.json", {**document, "ops": {"set": one}})
    done = wherry("list", "mixes", "--mix", "only.mix.json", "--export", "x.csv", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "each of its calls is of more than 1 GiB" in done.stderr


def test_a_class_is_in_the_band_of_its_mean():
    """Bands take every call, and none twice."""
    document = copy.deepcopy(SMALL)
    rows = [[1000, 1030, 4, 4 * 1029], [2000, 9000, 2, 17000]]
    document["ops"] = {"copy": {"calls": 6, "bytes": 21116, "sizes": rows}}
    found = recordings.Recording(document)
    assert found.within("copy", 0, 1024) == [] and found.within("copy", 1025, 8191) == [
        tuple(rows[0])
    ]
    assert found.within("copy", 8192) == [tuple(rows[1])]


def test_damage_is_refused_or_harmless(wherry, tmp_path):
    """Truncations and flipped bits of a mix that comes with Wherry: a clear line, or a mix that can be used."""
    whole = (ROOT / "mixes" / "sort.mix.json").read_bytes()
    chance = random.Random(5)
    for at in (1, 100, len(whole) // 2, len(whole) - 3):
        with pytest.raises(WherryError):
            recordings.parse(whole[:at], "F")
    refused = 0
    for _ in range(60):
        data = bytearray(whole)
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        try:
            recordedcalls.table(recordings.parse(bytes(data), "F"), "copy", count=100)
        except WherryError:
            refused += 1
    assert refused > 10
    path = tmp_path / "cut.mix.json"
    path.write_bytes(whole[: len(whole) // 2])
    done = wherry("list", "mixes", "--mix", path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "record it again" in done.stderr


# --- calls for the runner -------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["gcc", "git", "perl", "nginx"])
def test_a_table_keeps_the_proportions(name):
    """Though the sampled runs have others: of what is longer than a run some phases are seen too often."""
    found = recordings.shipped(name)
    for op in found.ops:
        runs = recordedcalls.table(found, op)
        calls = [call for run in runs for call in run]
        assert len(calls) >= recordedcalls.TABLE
        rows = found.sizes(op)
        whole = sum(row[2] for row in rows)
        for low, high in ((0, 16), (17, 64), (65, 1024), (1025, 1 << 30)):
            wanted = sum(row[2] for row in rows if low <= row[0] <= high) / whole
            got = sum(low <= call[0] <= high for call in calls) / len(calls)
            assert got == pytest.approx(wanted, abs=0.04), (op, low)


def test_runs_are_weighed_to_the_proportions_of_the_whole():
    chance = random.Random(3)
    counts = [[256 - n, n, 0] for n in (0, 3, 40, 200, 256, 128, 17, 250)]
    own = raking.weights(counts, [70, 30, 0])
    low, high, _ = (sum(w * row[i] for w, row in zip(own, counts, strict=True)) for i in range(3))
    assert low / (low + high) == pytest.approx(0.7, abs=0.005)
    assert low + high == pytest.approx(8 * 256)
    assert own.min() >= 1 / raking.MOST and own.max() <= raking.MOST
    drawn = list(itertools.islice(raking.again(range(8), own, chance), 8000))
    for i in range(8):
        assert drawn.count(i) / 8000 == pytest.approx(own[i] / own.sum(), abs=0.01)
    # What no run has cannot be made, and one run alone stays as it is.
    assert raking.weights([[5, 0]], [1, 9]) == pytest.approx([1])
    assert raking.weights([[5, 0], [3, 0]], [0, 9]) == pytest.approx([1, 1])
    assert raking.weights([[9, 1], [1, 9]], [1, 0]).max() <= raking.MOST


def test_a_table_of_a_range_of_sizes():
    found = recordings.shipped("sqlite")
    sizes = {
        call[0] for run in recordedcalls.table(found, "copy", 65, 300, count=2000) for call in run
    }
    assert min(sizes) >= 65
    assert max(sizes) <= 300
    assert recordedcalls.table(recordings.Recording(SMALL), "copy", 5000) == []
    assert recordedcalls.table(recordings.Recording(SMALL), "set") == []


def test_drawn_places_are_of_their_class():
    found = recordings.Recording(SMALL)
    seen = collections.Counter()
    for run in recordedcalls.table(found, "copy", ordered=False, count=500):
        for size, source, delta, distance in run:
            seen[size] += 1
            assert distance is None
            if size == 12:
                assert source % 16 == 8
                assert (source + delta) % 2 == 1
                assert delta > 1536
            else:
                assert (size, source, delta) == (2000, 0, 0)
    assert seen[12] > 150
    assert seen[2000] > 150
    for run in recordedcalls.table(found, "move", count=50):
        assert all(0 < d < 64 and d % 16 == 8 for _, _, _, d in run)


# --- shipped --------------------------------------------------------------------------------------
def test_at_least_eight_are_shipped_and_say_how_they_came_to_be():
    names = recordings.shipped_names()
    assert {"gcc", "git", "sqlite", "nginx", "redis", "python", "ffmpeg", "zstd"} <= set(names)
    for name in names:
        path = ROOT / "mixes" / f"{name}.mix.json"
        assert path.stat().st_size <= 200_000
        document = recordings.shipped(name).document
        assert document["name"] == name
        assert document["how"]["command"]
        assert document["how"]["programs"]
        assert document["how"]["note"]
        assert document["created"].startswith("20")
        assert 0 < document["ceiling"]["likely"] <= document["ceiling"]["at_most"] <= 1
        assert "/tmp" not in path.read_text()
        assert "/root" not in path.read_text()


def test_the_docs_name_each_of_them():
    table = (ROOT / "docs/record.md").read_text().split("## The mixes that come with Wherry")[1]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == sorted(
        path.name.removesuffix(".mix.json") for path in (ROOT / "mixes").glob("*.mix.json")
    )


def test_they_are_listed(wherry):
    done = wherry("list", "mixes", "--json")
    assert done.returncode == 0
    listed = {mix["name"] for mix in json.loads(done.stdout)}
    assert {f"{name}.copy" for name in recordings.shipped_names()} <= listed
    detailed = wherry("list", "mixes", "gcc")
    assert "gcc.set" in detailed.stdout


def test_they_are_exported_in_the_published_forms(wherry, tmp_path):
    done = wherry("list", "mixes", "gcc.copy", "--export", tmp_path / "memcpy_gcc.csv")
    assert done.returncode == 0, done.stderr
    (again,) = mixes.gather([str(tmp_path / "memcpy_gcc.csv")])
    (own,) = [mix for mix in mixes.shipped(runnable=False) if mix.name == "gcc.copy"]
    assert again.ops == ("copy",)
    assert again.mean == pytest.approx(own.mean, rel=1e-3)
    assert again.percentiles == own.percentiles


def test_what_goes_upwards():
    order = [[4096, 100, 90, 10], [8192, 100, 90, 90], [None, 10, 0, 10]]
    document = {"ops": {"copy": {"order": order}, "set": {"order": order}}}
    found = recordings.Recording(document)
    assert found.ascending("copy", 0, 4096) == "source"
    assert found.ascending("copy", 4097, 8192) == "both"
    assert found.ascending("copy", 8193, 1 << 30) == "destination"
    assert found.ascending("set", 4097, 8192) == "destination"
    assert found.ascending("set", 0, 4096) == "none"
    assert found.ascending("move", 0, 4096) == "none"
