"""Ours in other tools' formats: written, read again, and read by their tools."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import need_tool
from made_runs import MACHINE, usual
from test_formats import entry, gbench, saved
from wherry import mixes, recordedcalls, runfile, runner
from wherry.compare.sides import Figures
from wherry.experiments import Request, load, load_all
from wherry.formats import benchfmt, cells, export, files, google_benchmark, naming
from wherry.formats.samples import Raw, Samples, read_raw

COMPARE_PY = Path("/usr/share/benchmark/compare.py")


@pytest.fixture
def run_file(tmp_path) -> Path:
    made = usual(1)
    made.row("small", {"libc": 3.0, "wherry": 2.0}, mix="log:1-4096")
    made.row("small", {"libc": 3.0, "wherry": 2.0}, size=9, op="move", overlap=-3, mode="latency")
    made.row("far", {"libc": 3.0, "a/b c": 2.0}, size=9, code="cold", src_off=7)
    return made.save(tmp_path / "r.json", raw=True)


def test_tables_have_units_and_every_cell(run_file, call):
    run = runfile.read(run_file)
    for form, sign in (("csv", ","), ("tsv", "\t")):
        status, out, _ = call("export", run_file, "--format", form)
        lines = list(csv.reader(io.StringIO(out), delimiter=sign))
        assert status == 0 and len(lines) == 1 + len(run["cells"])
        assert {len(line) for line in lines} == {len(lines[0])}
        for head in ("size (bytes)", "median (ns)", "rate (GB/s)", "time over libc's"):
            assert head in lines[0]
        at = lines[0].index("median (ns)")
        assert float(lines[1][at]) == pytest.approx(run["cells"][0]["ns"]["median"], rel=1e-6)
    out = call("export", run_file, "--format", "markdown")[1]
    table = [line for line in out.splitlines() if line.startswith("|")]
    assert len(table) == 2 + len(run["cells"]) and "All of them: " in out
    assert len({len(line) for line in table}) == 1 and len({line.count("|") for line in table}) == 1


def test_a_row_of_a_table_is_one_line_whatever_a_routine_is_called(tmp_path, call):
    made = usual(1)
    made.row("small", {"libc": 3.0, "two\nlines|and\ta tab": 2.0}, size=9)
    out = call("export", made.save(tmp_path / "r.json"), "--format", "markdown")[1]
    assert "| two lines\\|and a tab" in out
    assert all(line.startswith(("All of them: ", "| ")) for line in out.splitlines() if line)


@pytest.mark.parametrize("form", ["google-benchmark", "benchfmt"])
@pytest.mark.parametrize("raw", [True, False])
def test_what_we_write_we_read_again(run_file, tmp_path, form, raw, call):
    if not raw:
        (tmp_path / "r.json.raw.json.gz").unlink()
    target = tmp_path / "out.json"
    status, said, _ = call("export", run_file, "--format", form, "-o", target)
    assert status == 0 and ("raw" in said if raw else "quantiles" in said)
    before, after = runfile.read(run_file), files.load(target)
    for key in ("host", "boot", "kernel", "libc"):
        assert after["machine"][key] == MACHINE[key]
    assert len(after["cells"]) == len(before["cells"])
    for own, again in zip(before["cells"], after["cells"], strict=True):
        assert naming.dimensions(again) == naming.dimensions(own)
        assert again["experiment"] == own["experiment"]
        assert again["routine"] == own["routine"].replace("/", "_").replace(" ", "_")
        assert (again["rounds"], again["processes"]) == (own["rounds"], own["processes"])
        assert again["ns"]["median"] == pytest.approx(own["ns"]["median"], rel=1e-5)
    status, out, _ = call("compare", run_file, target)
    assert status == 0 and "0 slower, 0 faster" in out and "time against time" in out


def _errors(run: dict) -> list[tuple]:
    own = Figures(run, Raw(), resample=False)
    found = [own.time(cell) for cell in run["cells"]]
    return [(side.error, side.freedom) for side in found]


@pytest.mark.parametrize("form", ["google-benchmark", "benchfmt"])
@pytest.mark.parametrize("earlier", [False, True])
def test_nothing_is_more_certain_after_a_round_trip(tmp_path, form, earlier):
    """Seven quantiles are not seven rounds, and rounds of one process tell nothing of others. `earlier`: as exports
    were before they told of either."""
    made = usual(1)
    run = made.run
    for cell in run["cells"]:
        if cell["experiment"] == "far":  # one of one process, as --quick has it
            cell["rounds"], cell["processes"] = 5, 1
    text = export.text(form, run, Samples(run))
    if earlier:
        text = re.sub(
            r'(?m)^ *"(rounds|processes|noise_floor)": .*\n|^# of \d+ rounds.*\n', "", text
        )
    again = files.load(saved(tmp_path / "g", text))
    for (error, freedom), (was, had) in zip(_errors(again), _errors(run), strict=True):
        assert error >= was * 0.999 and freedom <= had
        assert earlier or (error == pytest.approx(was, rel=1e-3) and freedom == had)
    floors = {e["name"]: e["noise_floor"] for e in again["experiments"]}
    assert floors == dict.fromkeys(("small", "far"), None if earlier else 0.01)
    for own, its in zip(run["cells"], again["cells"], strict=True):
        assert its["ns"] == pytest.approx(own["ns"], rel=1e-5)


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ({"rounds": 9, "processes": 2_000_000_000}, (9, 9)),
        ({"rounds": 0, "processes": -1, "noise_floor": "x"}, (2, 1)),
        ({"rounds": True, "processes": 3.0, "noise_floor": True}, (2, 1)),
        ({"rounds": 1 << 40, "processes": None}, (2, 1)),
    ],
)
def test_what_no_run_can_have_had_is_not_believed(tmp_path, told, found):
    document = gbench(*(entry("copy/x", float(i + 1), **told) for i in range(7)))
    document["context"] = {"wherry": "1", "samples": "quantiles of the rounds"}
    run = files.load(saved(tmp_path / "g.json", document))
    (cell,) = run["cells"]
    assert (cell["rounds"], cell["processes"]) == found and run["noise"]["floor"] is None


@pytest.mark.parametrize("form", ["google-benchmark", "benchfmt"])
def test_a_median_alone_comes_back_without_a_spread(tmp_path, form):
    """Of another tool's aggregates; that ten rounds were all alike would be the most certain run there is."""
    alone = entry("BM_memcpy/8_median", 2.0, "aggregate", aggregate_name="median", repetitions=10)
    run = files.load(saved(tmp_path / "a.json", gbench(alone)))
    again = files.load(saved(tmp_path / "b", export.text(form, run, Samples(run))))
    (cell,) = again["cells"]
    assert cell["rounds"] == 10 and cell["ns"] == run["cells"][0]["ns"]
    assert _errors(again) == _errors(run) == [(None, 0.0)]


@pytest.mark.parametrize("form", ["google-benchmark", "benchfmt"])
def test_what_another_tool_did_not_tell_is_not_told_after_a_round_trip(tmp_path, form, call):
    document = gbench(entry("BM_memcpy/64", 2.0), entry("BM_sort", 9.0), entry("BM_hash/4/x", 3.0))
    path, target = saved(tmp_path / "g.json", document), tmp_path / "out.json"
    assert call("export", path, "--format", form, "-o", target)[0] == 0
    before, after = files.load(path), files.load(target)
    untold = ("src_off", "dst_off", "walk", "src_state", "mode", "huge")
    for own, again in zip(before["cells"], after["cells"], strict=True):
        assert naming.dimensions(again) == naming.dimensions(own)
        assert all(again[key] is None for key in untold)
    status, out, _ = call("compare", path, target, "--same-machine")
    assert status == 0 and "Only in" not in out and "3 cells in both" in out


def test_samples_are_raw_or_said_to_be_quantiles(run_file):
    run = runfile.read(run_file)
    raw = Samples(run, read_raw(run_file))
    cell = run["cells"][0]
    assert raw.whole and len(raw.of(cell)) == cell["rounds"]
    bare = Samples(run)
    assert len(bare.of(cell)) == 7 and bare.about.startswith("quantiles")
    text = export.text("google-benchmark", run, bare)
    kinds = {b.get("aggregate_name") for b in json.loads(text)["benchmarks"]}
    # A mean or a deviation of quantiles would be made up.
    assert kinds == {None, "median"}
    written = google_benchmark.write(run, raw)["benchmarks"]
    assert {(b.get("aggregate_name"), b.get("aggregate_unit")) for b in written} == {
        *((None, None), ("mean", "time"), ("median", "time")),
        *(("stddev", "time"), ("cv", "percentage")),
    }


def test_what_samples_of_an_import_are_is_said(tmp_path):
    def about(*entries):
        return Samples(files.load(saved(tmp_path / "g.json", gbench(*entries)))).about

    alone = entry("BM_memcpy/8_median", 2.0, "aggregate", aggregate_name="median", repetitions=9)
    assert about(alone) == about(entry("BM_memcpy/8", 2.0)) == "one of each cell, its median"
    several = about(*(entry("BM_memcpy/8", time) for time in (2.0, 3.0, 4.0)))
    assert several.startswith("quantiles") and "--raw" not in several


@pytest.mark.parametrize(
    ("shared_by", "count"), [("0-1", 2), ("3", 1), ("0-3,8-11,16", 9), ("", 0), (None, 0), ("x", 0)]
)
def test_how_many_share_a_cache_is_exported(run_file, shared_by, count):
    cache = {"level": 3, "type": "unified", "bytes": 1 << 25}
    if shared_by is not None:
        cache["shared_by"] = shared_by
    run = runfile.read(run_file) | {"machine": MACHINE | {"caches": [cache]}}
    written = google_benchmark.write(run, Samples(run))
    assert [own["num_sharing"] for own in written["context"]["caches"]] == [count]


def test_go_text_keeps_the_format(run_file):
    run = runfile.read(run_file)
    lines = benchfmt.write(run, Samples(run)).splitlines()
    assert "Unit ns/op better=lower" in lines
    for line in lines:
        if line.startswith("Benchmark"):
            name, calls, *figures = line.split("\t")
            assert " " not in name and calls.isdigit() and not name[-1].isdigit()
            assert [f.split(" ")[1] for f in figures] == ["ns/op", "B/s"]
    # What differs from run to run would give benchstat a table for each run.
    assert [line.split(":")[0] for line in lines if line[0:1].islower()] == [
        "goos",
        "goarch",
        "cpu",
    ]


def test_export_writes_whole_files_or_none(run_file, call, tmp_path):
    assert call("export", run_file, "-o", "x.md")[0] == 0
    assert (tmp_path / "x.md").read_text().startswith("All of them")
    for arguments, status, said in (
        (("-o", "x.pdf"), 2, "--format"),
        (("--format", "csw"), 2, "did you mean csv?"),
        (("-o", "/proc/none/x.csv"), 1, "could not save"),
        (("-o", "."), 2, "--format"),
        (("--format", "csv", "-o", "."), 2, "directory"),
        (("--format", "csv", "-o", "/dev/full"), 2, "not a regular file"),
    ):
        got, _, err = call("export", run_file, *arguments)
        assert got == status and said in err and err.count("\n") == 1, arguments


def test_import_saves_a_run_that_is_shown_and_exported(tmp_path, call):
    path = saved(tmp_path / "g.json", gbench(entry("BM_memcpy/64", 2.0), entry("BM_sort", 9.0)))
    status, out, _ = call("import", path, "-o", "r.json")
    assert status == 0 and "2 cells" in out
    run = runfile.read(tmp_path / "r.json")
    assert run["source"]["file"] == "g.json"
    shown = call("bench", "--show", "r.json")[1]
    assert (
        "google-benchmark" in shown and "64 B" in shown and "2.00" in shown and "None" not in shown
    )
    assert call("bench", "--show", path)[0] == 0
    assert json.loads(call("import", path, "--json")[1])["cells"]
    assert "is a run file already" in call("import", "r.json")[2]
    whole = path.read_bytes(), (tmp_path / "r.json").read_bytes()
    (tmp_path / "link.csv").symlink_to("r.json")
    for words in (("import", path, "-o", "g.json"), ("export", "r.json", "-o", "link.csv")):
        status, _, said = call(*words)
        assert status == 2 and "itself; give another name" in said and said.count("\n") == 1
    assert whole == (path.read_bytes(), (tmp_path / "r.json").read_bytes())
    assert call("import", path)[0] == 0 and (tmp_path / "g.json.run.json").exists()
    heads, lines = cells.table(run)
    assert len(lines) == 2 and "name" in heads


# ---- their own tools -------------------------------------------------------------------------------------------------


def test_google_benchmarks_own_comparison_takes_our_files(run_file, call, tmp_path):
    python = shutil.which("python3", path="/usr/bin")
    if not COMPARE_PY.exists():
        pytest.skip(
            f"{COMPARE_PY} is not installed (Debian package libbenchmark-tools; make extras)"
        )
    if python is None or subprocess.run([python, "-c", "import scipy"], check=False).returncode:
        pytest.skip("scipy is not installed (Debian package python3-scipy; make extras)")
    usual(2, {"wherry": 1.5}).save(tmp_path / "b.json", raw=True)
    for name in ("r", "b"):
        assert call("export", f"{name}.json", "-o", f"{name}.gb.json")[0] == 0
    result = subprocess.run(
        [python, COMPARE_PY, "--no-color", "benchmarks", "r.gb.json", "b.gb.json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    name = "copy/experiment:small/routine:wherry/size:64/src_state:L1/dst_state:L1/mode:throughput"
    (line,) = [x for x in result.stdout.splitlines() if x.startswith(f"{name}_median ")]
    assert float(line.split()[1]) == pytest.approx(0.5, abs=0.03)
    assert f"{name}_pvalue" in result.stdout


def test_benchstat_takes_our_files(run_file, call, tmp_path):
    benchstat = need_tool("benchstat", "none: go install golang.org/x/perf/cmd/benchstat@latest")
    usual(2, {"wherry": 1.5}).save(tmp_path / "b.json", raw=True)
    for name in ("r", "b"):
        assert call("export", f"{name}.json", "-o", f"{name}.txt")[0] == 0
    result = subprocess.run(
        [benchstat, "-format", "csv", "r.txt", "b.txt"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )
    assert "syntax" not in result.stderr and "error" not in result.stderr
    name = "Copy/experiment=small/routine=wherry/size=64/src_state=L1/dst_state=L1/mode=throughput"
    lines = [x.split(",") for x in result.stdout.splitlines() if x.startswith(name)]
    # One table for both: the old, the new, and by how much it changed.
    assert lines[0][5].startswith("+5") or lines[0][5].startswith("+4")


def test_what_tells_rows_of_an_experiment_apart_is_exported(wherry_run, monkeypatch):
    """A word that the schema lacks would make one cell of two."""
    # To draw the calls of the built-in mixes takes seconds, and tells no row from another.
    monkeypatch.setattr(recordedcalls, "table", lambda *_: [[(1, 0, 0, None)]])
    monkeypatch.setattr(mixes, "_shipped", mixes._shipped.__wrapped__)  # what it keeps is others'
    monkeypatch.setenv("WHERRY_RUN", str(wherry_run))
    request = Request(
        catalogue=runner.routines(), caches={"L1": 1 << 15, "L2": 1 << 20, "L3": 1 << 25}
    )
    known = set(naming.known_dimensions())
    for experiment in load_all():
        for row in experiment.rows(request):
            own = {key for key, value in row.dimensions().items() if value is not None}
            assert own <= known, experiment.name
    names = [
        naming.write({**row.dimensions(), "experiment": "network", "routine": name}, ":")
        for row in load("network").rows(request)
        for name in row.routines
    ]
    assert len(set(names)) == len(names)
