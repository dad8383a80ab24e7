"""The run file: held to its schema, and every bad one answered in one line."""

import gzip
import json
import os
import subprocess
import sys

import made_runs
import pytest
import report_runs
from conftest import FAKE, ROOT
from wherry import problems, runfile, schemas
from wherry.errors import WherryError
from wherry.formats import files


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> dict:
    directory = tmp_path_factory.mktemp("run")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "wherry",
            "bench",
            "sizes",
            "zero",
            "--size",
            "64,4K",
            "--save",
            "r.json",
        ],
        cwd=directory,
        env={**os.environ, "WHERRY_RUN": str(FAKE)},
        check=True,
        capture_output=True,
    )
    return json.loads((directory / "r.json").read_text())


def test_the_schemas_are_schemas():
    import jsonschema

    for name in ("run", "machine"):
        jsonschema.Draft202012Validator.check_schema(json.loads(schemas.text(name)))


def test_what_bench_writes_keeps_the_schema(good):
    assert runfile.fault(good) is None


def test_every_cell_tells_its_dimensions_and_quantiles(good):
    assert good["cells"]
    for cell in good["cells"]:
        assert {"op", "routine", "size", "src_off", "dst_off", "walk", "mode", "threads"} <= set(
            cell
        )
        own = cell["ns"]
        order = [own[q] for q in ("min", "q05", "q25", "median", "q75", "q95", "max")]
        assert order == sorted(order) and cell["rounds"] > 0
        assert cell["ratio"] is None or cell["ratio"]["low"] <= cell["ratio"]["high"]


def test_files_of_before_mixes_and_scores_are_read(tmp_path, good):
    old = json.loads(json.dumps(good))
    del old["mixes"]
    runfile.write(tmp_path / "old.json", old)
    assert runfile.read(tmp_path / "old.json") == old


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"mix": "uniform:0-64"}, "rows/0"),  # beside a size
        ({"delta": 4096}, "delta"),
        ({"code": "tepid"}, "code"),
        ({"overlap": "near"}, "overlap"),
    ],
)
def test_wrong_dimensions_are_seen(good, more, said):
    bad = json.loads(json.dumps(good))
    bad["rows"][0] |= more
    assert said in runfile.fault(bad)


@pytest.mark.parametrize(
    ("part", "more", "place"),
    [
        ("method", {"joined": 7}, "method/joined"),
        ("method", {"joined": [{"experiments": ["zero"], "started": 7}]}, "joined/0/started"),
        ("reported", {"believed": {"L2": "leaf4"}}, "believed/L2"),
        ("reported", {"caches": {"leaf4": {"L2": {"size": "2M"}}}}, "caches/leaf4/L2/size"),
    ],
)
def test_what_the_page_of_then_and_now_reads_is_held_to_the_schema(good, part, more, place):
    bad = json.loads(json.dumps(good))
    (bad["method"] if part == "method" else bad["machine"]["reported"]).update(more)
    assert place in (runfile.fault(bad) or "")


def test_what_the_schema_lets_a_machine_leave_out_may_be_missing(tmp_path, wherry):
    """A schema that asks for less than the code does is no contract."""
    told = json.loads((ROOT / "schema" / "machine.schema.json").read_text())
    run = made_runs.usual(1).run
    own = run["machine"] = {key: run["machine"][key] for key in told["required"]}
    for key in ("cpu", "pages", "virtualisation"):
        own[key] = {name: own[key][name] for name in told["properties"][key]["required"]}
    own["virtualisation"]["virtual"] = True
    own["cpu"]["model"], own["load"], own["memory"], own["reported"] = None, [], {}, {}
    path = tmp_path / "bare.json"
    path.write_bytes(runfile.encode(run))
    for words in (("bench", "--show", path), ("report", path), ("compare", path, path)):
        done = wherry(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert "Machine       virtual machine\n" in wherry("bench", "--show", path).stdout


def test_a_mix_stands_for_a_size(good):
    own = json.loads(json.dumps(good))
    for entry in [own["rows"][0], *(c for c in own["cells"] if c["row"] == own["rows"][0]["row"])]:
        del entry["size"]
        entry["mix"] = "@web"
    assert runfile.fault(own) is None
    own["rows"][0]["mix"] = "web"
    assert "mix" in runfile.fault(own)


def test_gzip_is_known_by_its_content(tmp_path, good):
    path = tmp_path / "packed.json"
    path.write_bytes(gzip.compress(runfile.encode(good)))
    assert runfile.read(path) == good


def test_what_a_terminal_would_obey_is_taken_out(tmp_path, good):
    path = tmp_path / "r.json"
    for name, read in (
        ("a\x1b[2Jb\x9bc", "a?[2Jb?c"),
        ("d\re\\u001bf", "d?e\\u001bf"),
        ("\\\x1b[2J\\\\\x1b\x1b", "\\?[2J\\\\??"),
        ("g\u202eh\u2066i\ufeffé\u05d0", "g?h?i?é\u05d0"),
    ):
        problem = {"kind": "skip", "routine": name, "message": name}
        for ascii_only in (True, False):
            path.write_text(json.dumps({**good, "problems": [problem]}, ensure_ascii=ascii_only))
            found = runfile.read(path)["problems"][0]
            assert (found["routine"], found["message"]) == (read, read)


def bad_files(good):
    text = runfile.encode(good)
    packed = gzip.compress(text)
    damaged = bytearray(packed)
    damaged[len(packed) // 2] ^= 0xFF
    newer = json.dumps({**good, "format_version": 2}).encode()
    no_cells = json.dumps({k: v for k, v in good.items() if k != "cells"}).encode()
    stray = json.loads(text)
    stray["rows"] = stray.get("rows", [])[1:]
    bare = json.loads(text)
    bare["cells"] = []
    stranger = json.loads(text)
    sizeless = json.loads(text)
    deep_in = json.dumps({**good, "seconds": "@"}).replace('"@"', "[" * 900 + "]" * 900)
    twice, rows_twice = json.loads(text), json.loads(text)
    twice["cells"] += twice["cells"][:1]
    rows_twice["rows"] = rows_twice.get("rows", [])[:1] + rows_twice.get("rows", [])
    for row in stranger.get("rows", [])[:1]:
        row["tied"] = ["nobody"]
    for cell in sizeless["cells"][:1]:
        cell["bytes"] = None
    negative = json.loads(text)
    negative["cells"][0]["ns"]["median"] = -1
    return {
        "empty": (b"", "empty"),
        "cut": (text[: len(text) // 2], "cut short"),
        "binary": (bytes(range(256)) * 8, "not text"),
        "words": (b"hello", "not JSON"),
        "list": (b"[]\n", "not a run file"),
        "object": (b"{}\n", "not a run file"),
        "nan": (b'{"format": NaN}', "not a run file"),
        "beyond": (
            b'{"format": "wherry-run", "seconds": -1e999}',
            "a number of 1e308 or more, so it is damaged; get it again",
        ),
        "too_long": (
            json.dumps({**good, "noise": {"floor": 10**400}}).encode(),
            "of 1e308 or more",
        ),
        "deep": (b"[" * 100_000, "nested"),
        "deep_in": (deep_in.encode(), "at its top: it is nested too deeply"),
        "newer": (newer, "format 2"),
        "no_cells": (no_cells, "'cells' is a required property"),
        "stray": (json.dumps(stray).encode(), "has cells, but is missing"),
        "bare": (json.dumps(bare).encode(), "has no cells"),
        "stranger": (json.dumps(stranger).encode(), "row 0 of .* has nobody ahead"),
        "sizeless": (json.dumps(sizeless).encode(), "has no bytes, which only an imported run"),
        "twice": (json.dumps(twice).encode(), "libc occurs twice in row 0 of sizes"),
        "rows_twice": (json.dumps(rows_twice).encode(), "row 0 of sizes occurs twice"),
        "negative": (json.dumps(negative).encode(), "cells/0/ns/median"),
        "gzip_cut": (packed[: len(packed) // 2], "cut short"),
        "gzip_head": (packed[:2], "cut short"),
        "gzip_damaged": (bytes(damaged), "damaged|not a run file|not a right"),
        "gzip_of_gzip": (gzip.compress(packed), "not text"),
    }


@pytest.mark.parametrize("case", sorted(bad_files({"cells": [{"ns": {}}]})))
def test_a_bad_file_is_told_in_one_line(tmp_path, good, case):
    data, said = bad_files(good)[case]
    path = tmp_path / "bad"
    path.write_bytes(data)
    with pytest.raises(WherryError, match=said) as caught:
        runfile.read(path)
    if (
        case in ("beyond", "too_long") and b'"wherry-run"' in data
    ):  # for all that reads foreign files, too
        with pytest.raises(WherryError, match=said):
            files.load(path)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda own: own["total"].update(worst="nowhere"), "has no worst region nowhere"),
        (lambda own: own["total"].update(worst=None), "has no worst region None"),
        (lambda own: own["regions"][4].update(base=False), "has no worst region region-4"),
        (lambda own: own["total"].update(single=None), "a best single peer, and no such peer"),
        (lambda own: own["regions"][1].update(best=None), "region-1 over no best peer"),
        (lambda own: own["regions"][1].update(to_best=None), "region-1 over no best peer"),
        (lambda own: own.update(op="csum"), "'csum' is not one of"),
    ],
)
def test_a_score_that_contradicts_itself(tmp_path, change, said):
    run = report_runs.every_kind()
    path = report_runs.write(tmp_path / "r.json", run)
    assert runfile.read(path)
    (score,) = (e["score"] for e in run["experiments"] if "score" in e)
    change(score["ops"][0])
    report_runs.write(path, run)
    with pytest.raises(WherryError, match=said) as caught:
        runfile.read(path)
    assert "\n" not in str(caught.value)


def test_another_tool_may_leave_bytes_untold(tmp_path, good):
    path = tmp_path / "imported.json"
    source = {"tool": "google-benchmark", "file": "a.json", "unit": "ns"}
    cells = [cell | {"bytes": None} for cell in good["cells"]]
    path.write_bytes(runfile.encode(good | {"source": source, "cells": cells}))
    assert runfile.read(path)["cells"][0]["bytes"] is None


def test_a_text_cut_anywhere_is_cut_short(tmp_path):
    text = b'{"a": [1.25e-3, -2, true, false, null, "\xc3\xa9 \\u00e9\\n", {"b": "}"}, {}], "c": 1}'
    runfile.parse(tmp_path, text)
    for end in range(1, len(text)):
        with pytest.raises(WherryError, match="cut short"):
            runfile.parse(tmp_path, text[:end])


@pytest.mark.parametrize(
    "text", [b"hello", b'{"a": 1}}', b'{"a" 1}', b"{'a': 1}", b"[1, tru]", b"[1,]", b'{"a": 1} t']
)
def test_a_text_that_more_of_it_would_not_mend_is_not_json(tmp_path, text):
    with pytest.raises(WherryError, match="is not JSON"):
        runfile.parse(tmp_path, text)


def test_unreadable(tmp_path):
    for path, said in ((tmp_path / "none", "No such file"), (tmp_path, "not a file")):
        with pytest.raises(WherryError, match=said):
            runfile.read(path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(WherryError, match="not a file"):
        runfile.read(tmp_path / "pipe")


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "at its top: "),
        ({"format": "wherry-mix", "version": 1, "ops": {}}, "at its top: 'name'"),
        ([], "at its top: "),
        ({"\ud800": 1, "format": 1 << 80}, "at "),  # what only one of the two validators can hold
    ],
)
def test_what_a_schema_says(document, said):
    found = schemas.fault(document, "mix")
    assert found.startswith(said) and "\n" not in found and len(found) < 300


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda run: run["cells"][40]["ns"].update(median="x"), "at cells.40.ns.median: 'x' is"),
        (lambda run: [c.pop("ns") for c in run["cells"][23:]], "at cells.23: 'ns' is a required"),
        (lambda run: run["rows"][9].update(size=-1), "at rows.9.size: -1 is less"),
        (lambda run: run["cells"][30].update(calls=-(1 << 80)), "at cells.30.calls: -120"),
        (lambda run: run.update(cells={}), "at cells: {} is not"),
        (lambda run: run.update(cells=0, rows=0), "at rows: 0 is not"),
    ],
)
def test_the_place_of_a_fault_in_a_long_list(change, said):
    """Lists are shortened before a fault is looked for; what is told is its place in the whole."""
    run = made_runs.usual(1).run
    assert len(run["cells"]) > 2 * schemas.FEW
    change(run)
    assert schemas.fault(run, "run").startswith(said)


def test_the_quick_judge_is_asked_first(monkeypatch):
    import jsonschema

    monkeypatch.setattr(jsonschema, "Draft202012Validator", None)
    from wherry import recordings

    first = recordings.shipped("gcc")
    assert schemas.fault(first.document, "mix") is None


def test_a_gzip_of_nothing_but_repetition_is_refused_before_it_fills_the_memory(tmp_path):
    path = tmp_path / "r.json.gz"
    with gzip.open(path, "wb") as file:
        file.write(b'{"format":"wherry-run","x":"')
        for _ in range(96):
            file.write(b"a" * (1 << 20))
        file.write(b'"}')
    packed = path.stat().st_size
    with pytest.raises(WherryError, match=rf"more than 64 MiB in {packed:,} bytes.*gunzip"):
        runfile.read(path)


def test_problems_tell_whose_rows_they_are_where_there_are_several_experiments():
    skip = {"kind": "skip", "routine": "a", "message": "needs AMX", "row": 3}
    wrong = {"kind": "wrong", "routine": "b", "message": "byte 5", "row": 3}
    one = {"experiments": [{}], "problems": [skip | {"experiment": "sizes"}]}
    assert problems.grouped(one) == [("skip", "a skipped: needs AMX")]
    names = ("sizes", "zero", "small")
    for count, rows in ((1, "a row of sizes"), (2, "2 rows of sizes and zero")):
        own = [skip | {"experiment": name} for name in names[:count]]
        run = {"experiments": [{}] * 3, "problems": own}
        assert problems.grouped(run) == [("skip", f"a skipped ({rows}): needs AMX")]
    whole = skip | {"routine": ""}
    for count, who in ((1, "a whole row skipped"), (2, "whole rows skipped (2 rows)")):
        own = {"experiments": [{}], "problems": [whole | {"row": row} for row in range(count)]}
        assert problems.grouped(own) == [("skip", f"{who}: needs AMX")]
    own = [wrong | {"experiment": name} for name in names]
    said = problems.grouped({"experiments": [{}] * 3, "problems": own})[0][1]
    assert "(3 rows of 3 experiments): first, byte 5" in said
