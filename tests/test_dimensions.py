"""Each dimension of a cell, from the option to the last reader: the runner is asked for it, the run file records it,
the table, the page, CSV and `compare` tell its values apart, and a value without sense is refused in one line. The
runner is a fake one, which writes down what it was asked."""

from __future__ import annotations

import csv
import io
import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import FAKE
from wherry import dimensions, experiments
from wherry.experiments import Request
from wherry.fleet import loading
from wherry.report import pictures

TINY = ("--processes", "1", "--rounds", "3", "--seed", "7")


@dataclass(frozen=True)
class Dimension:
    values: tuple[str, str]  # as words of the option
    asked: tuple[str, str]  # in the line to the runner; or among its options
    key: str  # in a cell of the run file
    recorded: tuple[object, object]
    head: str  # of the table's column, or of each value's
    label: str  # the second value on the page
    refused: str  # what makes no sense
    said: str
    beside: tuple[str, ...] = ("--size", "4K")
    option: str = ""
    column: str = ""  # in CSV

    def words(self, name: str, *values: str) -> tuple[str, ...]:
        return (f"--{self.option or name}", ",".join(values), *self.beside)


CPUS = sorted(os.sched_getaffinity(0))
PAIR = (CPUS[0], CPUS[-1])
DIMENSIONS = {
    "op": Dimension(
        ("copy", "set"),
        ("op=copy", "op=set"),
        "op",
        ("copy", "set"),
        "op",
        "set",
        "swap",
        "no --op",
    ),
    "routine": Dimension(
        ("rep_movsb", "rep_movsl"),
        ("rep_movsb", "rep_movsl"),
        "routine",
        ("rep_movsb", "rep_movsl"),
        "rep_ movsl",
        "rep_movsl",
        "rep_movsx",
        "no routine 'rep_movsx'",
    ),
    "size": Dimension(
        ("64", "4K"),
        ("size=64", "size=4096"),
        "size",
        (64, 4096),
        "size bytes",
        "4 KiB",
        "4Q",
        "not a size",
        beside=(),
        column="size (bytes)",
    ),
    "mix": Dimension(
        ("uniform:0-64", "log:1-256"),
        ("mix=uniform:0-64", "mix=log:1-256"),
        "mix",
        ("uniform:0-64", "log:1-256"),
        "mix",
        "log:1-256",
        "uniform:64-0",
        "LO-HI",
        beside=(),
    ),
    "src-off": Dimension(
        ("0", "9"),
        ("src_off=0", "src_off=9"),
        "src_off",
        (0, 9),
        "source offset",
        "source + 9",
        "-1",
        "0 to 4095",
        column="src_off (bytes)",
    ),
    "dst-off": Dimension(
        ("0", "4095"),
        ("dst_off=0", "dst_off=4095"),
        "dst_off",
        (0, 4095),
        "dest. offset",
        "destination + 4095",
        "4096",
        "0 to 4095",
        column="dst_off (bytes)",
    ),
    "delta": Dimension(
        ("0", "2048"),
        ("delta=0", "delta=2048"),
        "delta",
        (0, 2048),
        "dst-src mod 4096",
        "destination − source = 2048 mod 4096",
        "4096",
        "0 to 4095",
        column="delta (bytes)",
    ),
    "source's state": Dimension(
        ("L1/L1", "DRAM/L1"),
        ("src_state=L1", "src_state=DRAM"),
        "src_state",
        ("L1", "DRAM"),
        "state",
        "in DRAM → L1",
        "L4",
        "L4",
        option="state",
    ),
    "destination's state": Dimension(
        ("L2/L2", "L2/L3"),
        ("dst_state=L2", "dst_state=L3"),
        "dst_state",
        ("L2", "L3"),
        "state",
        "in L2 → L3",
        "L1/L1/L1",
        "L1/L1/L1",
        option="state",
    ),
    "mode": Dimension(
        ("throughput", "latency"),
        ("mode=throughput", "mode=latency"),
        "mode",
        ("throughput", "latency"),
        "mode",
        "latency",
        "speed",
        "throughput",
    ),
    "threads": Dimension(
        ("1", "2"),
        ("threads=1", "threads=2"),
        "threads",
        (1, 2),
        "threads",
        "2 threads",
        "0",
        "1 to",
    ),
    "huge": Dimension(
        ("0", "1"),
        ("huge=0", "huge=1"),
        "huge",
        (False, True),
        "huge pages",
        "huge pages",
        "2",
        "0 to 1",
    ),
    "pin": Dimension(
        tuple(map(str, PAIR)),
        tuple(f"--pin {cpu} " for cpu in PAIR),
        "cpu",
        PAIR,
        "CPU",
        f"CPU {PAIR[1]}",
        "0,4095",
        "not there",
    ),
    "table": Dimension(
        ("256", "4K"),
        ("table=256", "table=4096"),
        "table",
        (256, 4096),
        "table entries",
        "table of 4,096",
        "0",
        "1 to",
        beside=("--mix", "uniform:0-64"),
    ),
    "ascending": Dimension(
        ("source", "both"),
        ("ascending=source", "ascending=both"),
        "ascending",
        ("source", "both"),
        "ascending",
        "both ascending",
        "up",
        "none, source",
    ),
    "handed": Dimension(
        ("source", "both"),
        ("handed=source", "handed=both"),
        "handed",
        ("source", "both"),
        "handed",
        "both sides used last by another CPU",
        "sink",
        "none, source",
    ),
    "handed-by": Dimension(
        tuple(map(str, PAIR)),
        tuple(f"handed_by={cpu}" for cpu in PAIR),
        "handed_by",
        PAIR,
        "handed by CPU",
        f"by CPU {PAIR[1]}",
        "4096",
        "0 to 4095",
        beside=("--handed", "source", "--size", "4K"),
    ),
}
TWO_CPUS = ("threads", "pin", "handed-by")
# What stands beside every cell anyway.
REFERENCES = {"libc", "wherry"}


@pytest.fixture
def call(call, tmp_path, monkeypatch):
    """The same with the runner that measures nothing."""
    monkeypatch.setenv("WHERRY_RUN", str(FAKE))
    monkeypatch.setenv("WHERRY_FAKE_ROWS", str(tmp_path / "asked"))
    return call


@pytest.fixture(params=DIMENSIONS)
def case(request):
    if request.param in TWO_CPUS and len(CPUS) < 2:
        pytest.skip("needs two CPUs")
    return request.param, DIMENSIONS[request.param]


def bench(call, path: str, *words: str) -> tuple[dict, str]:
    status, out, err = call("bench", "cells", *TINY, *words, "--save", path)
    assert status == 0, err
    return json.loads(Path(path).read_text()), out


def values(cells: list[dict], key: str) -> set:
    found = {cell[key] for cell in cells}
    return found - REFERENCES if key == "routine" else found


def test_a_dimension_goes_all_the_way(call, tmp_path, case):
    name, own = case
    both, out = bench(call, "both.json", *own.words(name, *own.values))

    asked = (tmp_path / "asked").read_text().splitlines()
    for words in own.asked:
        assert any(words in line for line in asked), (words, asked)

    measured = [cell for cell in both["cells"] if not cell["aa"]]
    assert values(measured, own.key) == set(own.recorded)

    heads = out[out.rindex("\ncells: ") + 1 :].splitlines()[1:3]
    columns = {
        " ".join(" ".join(p.split()) for p in parts if p.strip()) for parts in _columns(heads)
    }
    assert own.head in columns or own.head in " ".join(columns), columns

    status, text, err = call("export", "both.json", "--format", "csv")
    assert status == 0, err
    lines = list(csv.DictReader(io.StringIO(text)))
    said = [
        {True: "yes", False: "no"}.get(v, str(v)) if own.key == "huge" else str(v)
        for v in own.recorded
    ]
    assert {line[own.column or own.key] for line in lines} - REFERENCES == set(said)

    drawn = pictures.of(both, "cells")
    assert sum(p.points for p in drawn) == len(measured)
    if own.key != "routine":
        differ = dimensions.varying(both["rows"])
        assert own.label in {dimensions.label(row, differ) for row in both["rows"]} | {
            part for row in both["rows"] for part in dimensions.label(row, differ).split(", ")
        }

    # A run of the second value alone has its cells in common with both, and no others.
    bench(call, "one.json", *own.words(name, own.values[1]))
    status, text, err = call("compare", "both.json", "one.json", "--json")
    assert status == 0, err
    (found,) = json.loads(text)["comparisons"]
    kept = {own.recorded[1]}
    assert values(_known(found["cells"], measured, own.key), own.key) == kept
    assert not found["only_in_run"]
    assert (
        values(_known(found["only_in_base"], measured, own.key), own.key)
        == set(own.recorded) - kept
    )


def _columns(heads: list[str]) -> list[list[str]]:
    """The words of each column of a table's head, by where they stand."""
    width = max(map(len, heads))
    padded = [head.ljust(width) for head in heads]
    edges, inside, begin = [], False, 0
    for i in range(width + 1):
        blank = i == width or all(line[i] == " " for line in padded)
        if inside and blank:
            edges.append((begin, i))
        elif not inside and not blank:
            begin = i
        inside = not blank
    return [[line[a:b] for line in padded] for a, b in edges]


def _known(cells: list[dict], measured: list[dict], key: str) -> list[dict]:
    """With the dimensions that are left out where they are as usual."""
    usual = {cell[key] for cell in measured} - {cell[key] for cell in cells if key in cell}
    return [cell if key in cell else cell | {key: min(usual, key=str)} for cell in cells]


def test_a_value_without_sense_is_one_line(call, case, tmp_path):
    name, own = case
    status, _, err = call("bench", "cells", *own.words(name, own.refused))
    assert status == 2 and err.count("\n") == 1 and own.said in err
    assert not (tmp_path / "asked").exists() and not list(tmp_path.glob("runs/*"))


def test_a_peer_is_a_routine_by_its_own_name(call, tmp_path):
    (tmp_path / "alpha.so").write_bytes(b"peer")
    run, out = bench(call, "peer.json", "--size", "64", "--peer", "alpha=alpha.so")
    assert "--peer alpha=" in (tmp_path / "asked").read_text()
    assert "alpha" in {cell["routine"] for cell in run["cells"]} and "alpha" in out
    assert call("export", "peer.json", "--format", "csv")[1].count(",alpha,") == 1
    bench(call, "none.json", "--size", "64")
    found = json.loads(call("compare", "none.json", "peer.json", "--json")[1])["comparisons"][0]
    assert {cell["routine"] for cell in found["only_in_run"]} == {"alpha"}
    status, _, err = call("bench", "cells", "--peer", "alpha=nowhere.so")
    assert status == 2 and "nowhere.so" in err and err.count("\n") == 1


def test_any_delta_is_recorded_by_none(call):
    run, out = bench(call, "any.json", "--size", "64", "--delta", "any,0")
    assert [row.get("delta") for row in run["rows"]] == [None, 0]
    assert "any" in out


def test_places_that_change_have_no_offsets(call):
    """Told are none, also of a run file that says 0; beside places that repeat they are told by that alone."""
    run, out = bench(call, "new.json", "--size", "64-1K:x2", "--places", "repeat,change")
    entries = [*run["rows"], *run["cells"]]
    offsets = {(own.get("places"), own["src_off"], own["dst_off"]) for own in entries}
    assert offsets == {(None, 0, 0), ("change", None, None)} and "offset" not in out
    for own in entries:
        own |= {"src_off": 0, "dst_off": 0}
    Path("old.json").write_text(json.dumps(run))
    told = []
    for name in ("new", "old"):
        text = call("export", f"{name}.json", "--format", "csv")[1]
        lines = list(csv.DictReader(io.StringIO(text)))
        keys = ("places", "src_off (bytes)", "dst_off (bytes)")
        assert {tuple(map(line.get, keys)) for line in lines} == {
            ("", "0", "0"),
            ("change", "", ""),
        }
        file = Path(f"{name}.out")
        call("export", f"{name}.json", "--format", "google-benchmark", "-o", str(file))
        call("import", str(file), "-o", f"{name}.in.json")
        rows = json.loads(Path(f"{name}.in.json").read_text())["rows"]
        assert {(row.get("places"), row["src_off"], row["dst_off"]) for row in rows} == offsets
        told.append(json.loads(call("compare", "new.json", f"{name}.in.json", "--json")[1]))
        own = json.loads(Path(f"{name}.json").read_text())
        assert dimensions.varying(own["rows"]) == {"size", "places"}
        assert len(pictures.of(own, "cells")) == 1
        told.append(json.loads(call("compare", "new.json", f"{name}.json", "--json")[1]))
    for found in (said["comparisons"][0] for said in told):
        assert not found["only_in_base"] and not found["only_in_run"]
    fleet = loading.read([Path("new.json"), Path("old.json")])
    assert len(fleet.keys) == len([cell for cell in run["cells"] if not cell["aa"]])


def test_places_that_change_are_no_older_run_s(call):
    """Which would have no offsets, either."""
    for places in ("change", "repeat"):
        bench(call, f"{places}.json", "--size", "64", "--places", places)
    _, out, err = call("compare", "change.json", "repeat.json")
    assert "src_off" not in out + err and "places" in out + err


@pytest.mark.parametrize(
    ("words", "label"),
    [
        (("--places", "repeat,change"), "places that repeat"),
        (("--ascending", "none,both"), "in no order"),
        (("--handed", "none,both"), "used by no other CPU"),
        (("--code", "warm,cold"), "warm code"),
        (("--op", "zero", "--content", "any,dirty"), "any pages"),
        (("--delta", "any,0"), "destination − source moved about"),
        (("--op", "move", "--overlap", "apart,8"), "apart"),
    ],
)
def test_rows_of_the_usual_value_have_a_name_that_their_sizes_share(call, words, label):
    """Rows that leave a dimension at its default lack it."""
    run, _ = bench(call, "both.json", "--size", "64-1K:x2", *words)
    differ = dimensions.varying(run["rows"]) - {"size"}
    labels = {dimensions.label(row, differ) for row in run["rows"]}
    assert label in labels and len(labels) == 2


@pytest.mark.parametrize(
    "name", ["alignment", "checksum", "handover", "scoreboard", "sizes", "small", "zero"]
)
def test_no_experiment_measures_a_cell_twice(name):
    """What two rows have alike in everything that is recorded nobody can tell apart afterwards."""
    rows = experiments.load(name).rows(Request())
    cells = [(n, *sorted(row.dimensions().items())) for row in rows for n in row.routines]
    assert len(set(cells)) == len(cells) > 0
