"""Run files that anybody may have written: what is damaged is named, what is sound is read as it is, and the first
does not touch the second."""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import os
import re
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT
from made_runs import usual
from wherry import cli, dimensions, runfile
from wherry.errors import WherryError
from wherry.fleet import cells, decoders, document, loading, words
from wherry.fleet.store import Store


@functools.cache
def damaged() -> dict[str, bytes]:
    run = usual(1).run
    text = json.dumps(run)

    def changed(**more) -> bytes:
        return json.dumps(run | more).encode()

    cells = run["cells"]
    return {
        "empty": b"",
        "nul": b"\0" * 100,
        "short": text[: len(text) // 2].encode(),
        "short-list": b'[{"format": "wherry-run"}, {"for',
        "short-word": b'{"format": "wherry-run", "interrupted": fal',
        "two": text.encode() * 2,
        "mark": b"\xef\xbb\xbf" + text.encode(),
        "deep": b"[" * 1_000_000,
        "deep-in": text.replace(
            '"problems": []', f'"problems": {"[" * 5000 + "]" * 5000}'
        ).encode(),
        "list": b"[1]",
        "other": b'{"format": "else"}',
        "newer": changed(format_version=2),
        "no-version": changed(format_version=None),
        "no-machine": changed(machine=5),
        "no-cells": changed(cells={"a": 1}),
        "cell-text": changed(cells=["x"]),
        "ns-text": changed(cells=[cells[0] | {"ns": {"median": "3"}}]),
        "ns-huge": changed(cells=[cells[0] | {"ns": {"median": 10**400}}]),
        "ns-nan": text.replace('"median": ', '"median": NaN, "was": ').encode(),
        "ns-negative": changed(cells=[cells[0] | {"ns": {"median": -1}}]),
        "size-list": changed(cells=[cells[0] | {"size": [1]}]),
        "routine-dict": changed(cells=[cells[0] | {"routine": {"a": 1}}]),
        "bare-row": changed(cells=cells[5:]),
        "no-rows": changed(rows=None),
        "no-bytes": changed(cells=[cells[0] | {"bytes": None}, *cells[1:]]),
        "stranger": changed(rows=[run["rows"][0] | {"fastest": "nobody"}, *run["rows"][1:]]),
        "twice": changed(cells=[*cells, cells[0]]),
        "rows-twice": changed(rows=[*run["rows"], run["rows"][0]]),
        "latin": '{"format": "wherry-run é"}'.encode("latin-1"),
    }


# Of those that are no run files for the whole of them, what is said.
NONE = 'is JSON, but not a run file (no "format": "wherry-run")'
SAID = {
    **dict.fromkeys(("short", "short-list", "short-word"), "is JSON that is cut short"),
    **dict.fromkeys(("two", "ns-nan", "latin"), "is not JSON"),
    **dict.fromkeys(("deep", "deep-in"), "is nested too deeply"),
    **dict.fromkeys(("list", "other"), NONE),
    "mark": "is not JSON: it begins with a byte-order mark",
    "empty": "is empty",
    "nul": "is not text",
    "bare-row": "is not a right run file: row 0 of small has no cells",
    "no-bytes": "is not a right run file: libc in row 0 of small has no bytes, which only an imported run may lack",
    "stranger": "is not a right run file: row 0 of small has nobody ahead, which has no cell there",
    "twice": "is not a right run file: libc occurs twice in row 0 of small",
    "rows-twice": "is not a right run file: row 0 of small occurs twice",
}


@pytest.mark.parametrize("name", damaged())
@pytest.mark.parametrize("reader", ["msgspec", "json"])
def test_a_damaged_file_is_named_and_the_others_are_read(tmp_path, monkeypatch, name, reader):
    if reader == "json":
        monkeypatch.setitem(__import__("sys").modules, "msgspec", None)
    bad = tmp_path / "bad.json"
    bad.write_bytes(damaged()[name])
    good = usual(1).save(tmp_path / "good.json")
    fleet = loading.read([bad, good])
    assert [run.path for run in fleet.runs] == [str(good)]
    ((path, why),) = fleet.unfit
    assert path == str(bad)
    assert why == SAID[name] if name in SAID else "JSON" not in why
    assert len(why) < 200


@pytest.mark.parametrize("name", ["bare-row", "no-bytes", "stranger", "twice", "rows-twice"])
def test_what_a_fleet_refuses_the_others_refuse_in_the_same_words(tmp_path, name):
    bad = tmp_path / "bad.json"
    bad.write_bytes(damaged()[name])
    with pytest.raises(WherryError) as caught:
        runfile.read(bad)
    assert str(caught.value) == f"{bad} {SAID[name]}"


@pytest.mark.parametrize("command", [("report", "--curves"), ("metrics",)])
def test_a_run_without_cells_is_a_host_without_figures(tmp_path, capsys, command):
    """As an interrupted one may be."""
    bare = tmp_path / "bare.json"
    bare.write_text(json.dumps(usual(1).run | {"rows": [], "cells": []}))
    with contextlib.suppress(SystemExit):
        cli.main(["fleet", *command, str(bare)])
    out, err = capsys.readouterr()
    assert not err
    assert ("1 run, 0 cells." if command[0] == "report" else "# EOF") in out


def test_a_run_counts_once_whatever_its_copies_are_named(tmp_path):
    one, two = usual(1), usual(2)
    (tmp_path / "again").mkdir()
    paths = [
        one.save(tmp_path / "a.json"),
        one.save(tmp_path / "again" / "z.json"),
        two.save(tmp_path / "b.json"),
    ]
    later = tmp_path / "later.json"  # another run of that host with the same figures is one
    later.write_text(json.dumps(one.run | {"started": "2026-11-30T00:00:00Z"}))
    fleet = loading.read([*paths, later])
    assert [run.path for run in fleet.runs] == [str(paths[0]), str(paths[2]), str(later)]
    assert fleet.unfit == [(str(paths[1]), f"is the same run as {paths[0]}")]


def test_a_gzip_of_several_parts_is_not_read_in_part(tmp_path):
    path = tmp_path / "parts.json.gz"
    path.write_bytes(gzip.compress(json.dumps(usual(1).run).encode()) + gzip.compress(b" "))
    assert "several parts" in loading.read([path]).unfit[0][1]


@pytest.mark.parametrize("command", ["report", "metrics", "query"])
def test_every_command_names_what_is_damaged(tmp_path, monkeypatch, capsys, command):
    if command == "query":
        pytest.importorskip("duckdb", reason="needs the extra fleet (tools/setup test brings it)")
    monkeypatch.setattr(loading, "FEW", len(damaged()) + 1)
    for name, data in damaged().items():
        (tmp_path / f"{name}.json").write_bytes(data)
    usual(1).save(tmp_path / "good.json")
    more = ("--all",) if command == "report" else ()
    sql = ("SELECT count(*) FROM runs",) if command == "query" else ()
    with contextlib.suppress(SystemExit):
        cli.main(["fleet", command, *sql, str(tmp_path), *more])
    out, err = capsys.readouterr()
    said = " ".join((out if command == "report" else err).split())
    for name in damaged():
        assert re.search(rf"/{name}.json (?={re.escape(SAID.get(name, ''))})", said), name


# ---- files like those before ----------------------------------------------------------------------------------------


def test_what_files_before_taught_changes_nothing(tmp_path, monkeypatch):
    """A decoder made for the files before meets others: nothing of them may be passed over, or taken for another."""
    pytest.importorskip("msgspec", reason="needs the extra fleet (tools/setup test brings it)")
    first = usual(1).run["cells"][0]
    others = [
        *({"mix": "text"}, {"routine": "neverseen"}, {"huge": True}, {"huge": 1}, {"members": 9}),
        *({"size": True}, {"src_state": None}, {"routine": "é"}, {"name": "n" * 500}, {"cpu": 2}),
        *({"mix": "another"}, {"walk": "\u202e"}, {"op": "x\ny"}, {"from": "given"}),
    ]
    paths = []
    for number, own in enumerate([{}, {}, *others, {}]):
        made = usual(number, host=f"h{number}", boot=str(number))
        made.run["cells"][0] = first | own
        paths.append(made.save(tmp_path / f"{number:02}.json"))
    wrong = [first | {"size": "3"}, first | {"routine": 5}, first | {"mix": [1]}, first | {"aa": 1}]
    for number, cell in enumerate(wrong):
        made = usual(1)
        made.run["cells"][0] = cell
        paths.append(made.save(tmp_path / f"wrong-{number}.json"))

    def read(*which):
        monkeypatch.setattr(loading, "FEW", 99)
        fleet = loading.read(which)
        keys = [[fleet.keys[n] for n in numbers] for numbers in fleet.numbers]
        return list(zip(keys, (f.tolist() for f in fleet.figures), strict=True)), fleet.unfit

    def alone(path):
        monkeypatch.setattr(document, "_learned", decoders.Learned())
        return read(path)

    each = [alone(path) for path in paths]
    monkeypatch.setattr(document, "_learned", decoders.Learned())
    together = read(*paths, *paths)
    assert str(together) == str(
        tuple([x for own in each * 2 for x in own[part]] for part in (0, 1))
    )
    assert len(together[1]) == 2 * len(wrong)
    assert document._learned.decoder is not None
    # What was taught once is not taught again.
    lessons = document._learned._lessons
    read(*paths)
    assert document._learned._lessons == lessons


def in_rows(run: dict, cells: list[dict]) -> None:
    """Adds them, each in a row of its own."""
    for number, cell in enumerate(cells, 1000):
        run["cells"].append(cell | {"row": number})
        run["rows"].append(run["rows"][0] | {"row": number, "fastest": None, "tied": []})


def test_no_more_than_a_little_is_learned_of_one_file(monkeypatch, tmp_path):
    pytest.importorskip("msgspec", reason="needs the extra fleet (tools/setup test brings it)")
    own = decoders.Learned()
    monkeypatch.setattr(document, "_learned", own)
    made = usual(1)
    first = made.run["cells"][0]
    in_rows(made.run, [first | {"name": f"n{i}", "mix": "m" * 5000} for i in range(300)])
    assert loading.read([made.save(tmp_path / "a.json")]).unfit == []
    assert own.decoder is not None
    texts = [t for known in own._known.values() for t in known or () if isinstance(t, str)]
    assert 0 < len(texts) < 100 and max(map(len, texts)) < 100


def test_files_that_teach_nothing_lasting_are_soon_not_learned_from(tmp_path, monkeypatch):
    pytest.importorskip("msgspec", reason="needs the extra fleet (tools/setup test brings it)")
    monkeypatch.setattr(document, "_learned", decoders.Learned())
    monkeypatch.setattr(decoders, "_MOST_LESSONS", 5)
    made = usual(1)
    for number in range(9):
        made.run["cells"][0]["routine"] = f"r{number}"
        made.save(tmp_path / f"{number}.json")
    fleet = loading.read(loading.expand([str(tmp_path)]))
    assert {f"r{i}" for i in range(9)} <= {key[cells.AT["routine"]] for key in fleet.keys}
    assert document._learned._lessons == 5


def test_every_dimension_tells_cells_apart():
    schema = json.loads((ROOT / "schema" / "run.schema.json").read_text())
    dimensions = schema["$defs"]["dimensions"]["properties"]
    assert set(cells.KEYS) == set(dimensions) - {"row"} | {"routine"}
    whole = {k for k, v in dimensions.items() if {"integer", "boolean"} & set(v.get("type", ()))}
    whole |= {k for k, v in dimensions.items() if v.get("type") in ("integer", "boolean")}
    assert whole - {"row"} == cells.NUMBERS


@pytest.mark.parametrize("reader", ["msgspec", "json"])
def test_both_readers_read_the_same(tmp_path, monkeypatch, reader):
    if reader == "json":
        monkeypatch.setitem(__import__("sys").modules, "msgspec", None)
    made = usual(1)
    first = made.run["cells"][0]
    more = [
        first | {"size": 3, "from": "given", "huge": True, "ratio": None},
        first | {"size": 3, "from": "scratch", "ns": {"median": 7, "q25": None}},
        first | {"size": 3, "from": "given", "huge": 1},
    ]
    in_rows(made.run, more)
    made.run["cells"].append(first | {"size": 4, "aa": True})
    fleet = loading.read([made.save(tmp_path / "a.json")])
    assert fleet.unfit == []
    (numbers,), (figures,) = fleet.numbers, fleet.figures
    # The second measurement for the noise floor is none of them, and of two that are the same the first counts.
    known = [(k[cells.AT["size"]], k[cells.AT["from"]], k[cells.AT["huge"]]) for k in fleet.keys]
    assert known[-2:] == [(3, "given", 1), (3, "scratch", 0)]
    assert len(numbers) == len([c for c in made.run["cells"] if not c["aa"]]) - 1
    assert figures[-1][0] == 7 and np.isnan(figures[-1][1:3]).all()
    assert np.isnan(figures[-2][3])


@pytest.mark.parametrize("reader", ["msgspec", "json"])
def test_a_name_that_is_no_text_keeps_no_run_from_being_read(tmp_path, monkeypatch, capsys, reader):
    """As in the command that measured, which the run file keeps as it was."""
    if reader == "json":
        monkeypatch.setitem(__import__("sys").modules, "msgspec", None)
    made = usual(1)
    made.run["method"]["command"] = ["wherry", "bench", "--save", os.fsdecode(b"\xff.json")]
    made.run["machine"]["cpu"]["model"] += os.fsdecode(b"\xff")
    path = tmp_path / "a.json"
    runfile.write(path, made.run)
    assert b"\\udcff" in path.read_bytes()
    fleet = loading.read([path])
    assert fleet.unfit == [] and len(fleet.runs) == 1
    with contextlib.suppress(SystemExit):
        cli.main(["fleet", "report", str(path), "--html", str(tmp_path / "f.html")])
    assert "\ufffd" in capsys.readouterr().out
    assert (tmp_path / "f.html").is_file()


def test_a_gzip_that_unpacks_without_end_is_refused(tmp_path):
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b" " * (document.LARGEST + 10)))
    fleet = loading.read([path])
    assert "too large" in fleet.unfit[0][1]


def test_a_file_that_kills_its_reader_is_named(tmp_path, monkeypatch):
    paths = [usual(i, host=f"h{i}").save(tmp_path / f"{i:02}.json") for i in range(20)]
    real = loading.load

    def load(path):
        if path.name == "07.json":
            __import__("os")._exit(9)
        return real(path)

    monkeypatch.setattr(loading, "load", load)
    fleet = loading.read(paths)
    assert len(fleet.runs) == 19
    assert fleet.unfit == [(str(paths[7]), "ended the process that read it")]


def test_readers_end_when_one_has_been_killed(tmp_path, monkeypatch):
    """Also where this process itself would not end, as a command that keeps what it has does not at once."""
    paths = [usual(i, host=f"h{i}").save(tmp_path / f"{i:02}.json") for i in range(40)]
    real = loading.load

    def load(path):
        if path.name == "00.json":
            os._exit(9)
        asked.append(signal.getsignal(signal.SIGTERM))
        assert asked[0] is signal.SIG_DFL
        assert not signal.pthread_sigmask(signal.SIG_BLOCK, ()) & {signal.SIGTERM, signal.SIGHUP}
        return real(path)

    asked = []
    monkeypatch.setattr(loading, "load", load)
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        for _ in range(5):
            fleet = loading.read(paths, jobs=4)
            assert len(fleet.runs) == 39
            assert fleet.unfit == [(str(paths[0]), "ended the process that read it")]
        assert not signal.pthread_sigmask(signal.SIG_BLOCK, ()) & {signal.SIGTERM, signal.SIGHUP}
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_directory_that_may_not_be_looked_into_is_not_called_empty(tmp_path, monkeypatch):
    (tmp_path / "mailed" / "shut").mkdir(parents=True)
    (tmp_path / "mailed" / "a.json").write_text("{}")
    (tmp_path / "mailed" / "more.json").mkdir()
    (tmp_path / "mailed" / "more.json" / "b.json.gz").write_text("{}")
    names = [path.name for path in loading.expand([str(tmp_path / "mailed")])]
    assert names == ["a.json", "b.json.gz"]
    usual_way = os.scandir

    def scandir(path):
        if str(path).endswith("shut"):
            raise PermissionError(13, "Permission denied", str(path))
        return usual_way(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(WherryError, match=r"cannot read .*mailed.*shut"):
        loading.expand([str(tmp_path / "mailed")])


def test_out_that_may_not_be_looked_at_is_told_in_words(tmp_path, monkeypatch):
    def barred(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "exists", barred)
    with pytest.raises(WherryError, match=r"--out .* cannot be used: Permission denied; give"):
        Store(str(tmp_path / "out"))


def test_a_table_of_short_words_is_wrapped_nowhere(monkeypatch):
    """A million rows of it are shown; whatever has to be wrapped looks as it did."""
    heads = ["host", "time (ns)", "a long head of it"]
    odd = ["", "x", "a b", " x", "x ", "a\tb", "a\u00a0b", "two-parts of it", "ä" * 30, "y" * 90]
    rows = [[odd[i % 10], f"{i}.5", odd[i * 7 % 10]] for i in range(40)] + [["x", "2.5", "a b"]] * 9
    plain = [row for row in rows if all(cell.isalnum() or cell in ("", "a b") for cell in row[::2])]

    def wrapped(width):
        return [words.table(heads, some, width) for some in (rows, plain)]

    quick = [wrapped(width) for width in (None, 40, 12)]
    monkeypatch.setattr(words, "_fits", lambda cell, width: False)
    assert [wrapped(width) for width in (None, 40, 12)] == quick
    monkeypatch.undo()
    monkeypatch.setattr(words.textwrap, "wrap", lambda *_: pytest.fail("wrapped"))
    assert len(plain) > 5 and len(words.table(heads, plain)) == 1 + len(plain)


def test_a_name_is_cleaned_as_by_its_patterns(monkeypatch):
    names = ["host-1", "x" * 199, "x" * 200, "x" * 80 + " y" * 90, "\x1b[2J", "ä\u202e", "", 7, 1.5]
    found = [dimensions.clean(name, 300) for name in names]
    monkeypatch.setattr(dimensions, "_SHORT", -1)
    assert [dimensions.clean(name, 300) for name in names] == found
    assert found[1] == "x" * 199 and found[2] == "x" * 150 + "…" and found[4] == "?[2J"


@pytest.mark.parametrize(
    "lacks, arguments",
    [
        ("duckdb", ("query", "SELECT 1", "a.json")),
        ("distributed", ("doctor", "--scheduler", "tcp://127.0.0.1:1")),
    ],
)
def test_the_extra_is_for_the_python_that_has_wherry(
    lacks, arguments, tmp_path, monkeypatch, capsys
):
    """Another one's pip would bring whatever an index has under that name."""
    monkeypatch.chdir(tmp_path)
    usual(1).save(tmp_path / "a.json")
    monkeypatch.setitem(sys.modules, lacks, None)
    with pytest.raises(SystemExit) as end:
        cli.main(["fleet", *arguments])
    assert end.value.code == 2
    assert f"{sys.executable} -m pip install 'wherry[fleet]'" in capsys.readouterr().err
