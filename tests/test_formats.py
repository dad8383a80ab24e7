"""Other tools' formats: theirs are read, ours are read by their tools, and bad ones are answered in one line."""

from __future__ import annotations

import csv
import gzip
import io
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import need_tool
from made_runs import MACHINE, usual
from wherry import cli, runfile
from wherry.errors import WherryError
from wherry.formats import benchfmt, cells, export, files, google_benchmark, naming
from wherry.formats.samples import Samples, read_raw
from wherry.report import pictures

COMPARE_PY = Path("/usr/share/benchmark/compare.py")


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Runs a command of wherry in a directory of its own: (exit status, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        status = cli._run([str(a) for a in arguments])
        return status, *capsys.readouterr()

    return run


def saved(path: Path, text: str | bytes | dict | list) -> Path:
    if isinstance(text, dict | list):
        text = json.dumps(text)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def of(run: dict, routine: str, **dimensions) -> dict:
    (found,) = [
        c
        for c in run["cells"]
        if c["routine"] == routine and all(c.get(k) == v for k, v in dimensions.items())
    ]
    return found


# ---- google-benchmark ------------------------------------------------------------------------------------------------


def entry(name, time, kind="iteration", **more):
    own = {"name": name, "run_name": name, "run_type": kind, "iterations": 1000}
    cpu = time * 0.9 if isinstance(time, float) else time
    return own | {"real_time": time, "cpu_time": cpu, "time_unit": "ns"} | more


CONTEXT = {
    "date": "2026-11-21T10:00:00+02:00",
    "host_name": "far",
    "executable": "./bench",
    "num_cpus": 8,
    "mhz_per_cpu": 3000,
    "cpu_scaling_enabled": False,
    "caches": [{"type": "Data", "level": 1, "size": 32768, "num_sharing": 2}],
    "load_avg": [0.5, 0.4, 0.3],
    "library_build_type": "release",
}


def gbench(*entries):
    return {"context": CONTEXT, "benchmarks": list(entries)}


def test_google_benchmark_is_read(tmp_path):
    document = gbench(
        *(entry("BM_memcpy/64", t, repetition_index=i, threads=1) for i, t in enumerate((3, 1, 2))),
        entry(
            "BM_memcpy/64_mean", 2.0, "aggregate", aggregate_name="mean", run_name="BM_memcpy/64"
        ),
        entry("BM_memset/size:4096/threads:2", 0.05, time_unit="us", threads=2),
        entry("BM_Copy/8/512", 10.0, bytes_per_second=512 / 9.0 * 1e9),
        entry("BM_bad", 0.0, error_occurred=True, error_message="oh"),
        entry("BM_sort_BigO", 1.0, "aggregate", aggregate_name="BigO", run_name="BM_sort"),
        entry("BM_other<int>/real_time", 7.0),
    )
    run = files.load(saved(tmp_path / "g.json", document))
    assert run["source"]["tool"] == "google-benchmark" and run["source"]["unit"] == "ns"
    assert run["started"] == "2026-11-21T08:00:00Z" and run["machine"]["host"] == "far"
    assert run["machine"]["cpu"] == {"model": None, "count": 8, "mhz": 3000.0}
    copy = of(run, "BM_memcpy")
    assert (copy["op"], copy["size"], copy["rounds"], copy["calls"]) == ("copy", 64, 3, 1000)
    assert (copy["ns"]["min"], copy["ns"]["median"], copy["ns"]["max"]) == (1, 2, 3)
    fill = of(run, "BM_memset")
    assert (fill["op"], fill["size"], fill["threads"], fill["ns"]["median"]) == ("set", 4096, 2, 50)
    # Of two numbers the one that the rate confirms is the size; the other stays in the name.
    assert of(run, "BM_Copy")["size"] == 512 and of(run, "BM_Copy")["name"] == "8"
    other = of(run, "BM_other<int>")
    assert other["op"] == "other" and "size" not in other and other["bytes"] is None
    # What nobody told is null, not a guess.
    assert all(copy[k] is None for k in ("src_off", "walk", "src_state", "verified", "voided"))
    assert run["machine"]["kernel"] is None and run["noise"]["floor"] is None
    assert len(run["source"]["notes"]) == 2 and "failed or was skipped" in run["source"]["notes"][0]


def test_what_google_benchmark_writes_for_no_number_costs_no_time(tmp_path):
    """NaN and Infinity are no JSON, but it writes them: for a counter, or the cv of one."""
    nan = float("nan")
    document = gbench(
        *(entry("BM_memcpy/64", t, hit=nan, bytes_per_second=float("inf")) for t in (2.0, 3.0)),
        entry("BM_memcpy/64_cv", nan, "aggregate", aggregate_name="cv", run_name="BM_memcpy/64"),
        entry("BM_memcpy/65", nan),
        entry("BM_memcpy/66", -float("inf")),
    )
    run = files.load(saved(tmp_path / "g.json", document))
    assert of(run, "BM_memcpy")["ns"]["median"] == 2.5 and len(run["cells"]) == 1
    assert run["source"]["notes"] == ["2 left out: no time above 0 in ns, us, ms or s"]
    with pytest.raises(WherryError, match="not JSON"):
        files.load(saved(tmp_path / "ours", b'{"format": "wherry-run", "seconds": NaN}'))


def test_no_benchmark_stands_under_the_name_of_another(tmp_path, call):
    names = ("BM_Memcpy_Fleet_L1", "BM_Memcpy_Fleet_L2")
    path = saved(tmp_path / "g.json", gbench(*(entry(name, 2.0) for name in names)))
    run = files.load(path)
    assert [cell["name"] for cell in run["cells"]] == list(names)
    assert [row["name"] for row in run["rows"]] == ["as named"]
    status, out, _ = call("bench", "--show", path)
    assert status == 0 and "as named" in out and "Fleet_L2 " not in out
    assert "1 process x 1 round\n" in out and "L1d 32 KiB\n" in out, "whence is not told"
    (picture,) = pictures.of(run, run["experiments"][0]["name"])
    assert "as named" in json.dumps(picture.columns) and "?" not in json.dumps(picture.columns)
    assert call("report", path, "-o", "g.html")[0] == 0
    page = (tmp_path / "g.html").read_text()
    assert "<h1>far, 2026-11-21</h1>" in page and "sysfs" not in page
    alone = files.load(saved(tmp_path / "a.json", gbench(entry("BM_Memcpy_Fleet_L1", 2.0))))
    assert alone["rows"][0]["name"] == "BM_Memcpy_Fleet_L1"


def test_aggregates_alone_make_up_no_quantiles(tmp_path):
    document = gbench(
        *(
            entry(
                f"BM_memcpy/64_{kind}",
                value,
                "aggregate",
                aggregate_name=kind,
                repetitions=9,
                run_name="BM_memcpy/64",
            )
            for kind, value in (("mean", 2.2), ("median", 2.0), ("stddev", 0.1), ("cv", 0.05))
        ),
        # Files of before 1.5 tell by the name alone.
        {"name": "BM_memcpy/8_mean", "real_time": 3.0, "cpu_time": 3.0, "time_unit": "ns"},
    )
    run = files.load(saved(tmp_path / "g.json", document))
    own = of(run, "BM_memcpy", size=64)
    assert own["ns"]["median"] == 2.0 and own["ns"]["mean"] == 2.2 and own["ns"]["stddev"] == 0.1
    assert own["ns"]["q25"] is None and own["ns"]["max"] is None and own["rounds"] == 9
    assert of(run, "BM_memcpy", size=8)["ns"]["median"] == 3.0
    assert any("quantiles are not told" in note for note in run["source"]["notes"])


# ---- Go --------------------------------------------------------------------------------------------------------------

GO = """goos: linux
goarch: amd64
pkg: example.org/mem
cpu: Some CPU @ 3.00GHz
BenchmarkMemcpy/64-8         \t 5000000\t   2.500 ns/op\t25600.00 MB/s
BenchmarkMemcpy/64-8         \t 5000000\t   2.700 ns/op\t23703.70 MB/s
BenchmarkMemmove/size=4K-8   \t  300000\t   40.0 ns/op
BenchmarkThing
BenchmarkThing-8  \t  1000\t  1.5e+03 ns/op\t  16 B/op\t  1 allocs/op
BenchmarkRate  10  5 widgets/s
Unit widgets/s better=higher
PASS
ok  \texample.org/mem\t3.1s
"""


def test_go_benchmarks_are_read(tmp_path):
    run = files.load(saved(tmp_path / "go.txt", GO))
    assert run["source"]["tool"] == "benchfmt"
    assert run["machine"]["cpu"]["model"] == "Some CPU @ 3.00GHz"
    copy = of(run, "Memcpy")
    assert (copy["op"], copy["size"], copy["rounds"], copy["experiment"]) == (
        "copy",
        64,
        2,
        "go example.org/mem",
    )
    assert copy["ns"]["median"] == pytest.approx(2.6) and copy["name"] == "cpus=8"
    assert of(run, "Memmove")["size"] == 4096 and of(run, "Memmove")["op"] == "move"
    assert of(run, "Thing")["ns"]["median"] == 1500
    assert "1 lines left out: no time in ns/op or sec/op" in run["source"]["notes"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("BenchmarkA 10 5 ns/op\nBenchmarkB x 5 ns/op", "line 2: 'x' is not a count"),
        ("BenchmarkA 10 5", "line 1: a figure has no unit"),
        ("BenchmarkA 10 five ns/op", "line 1: 'five' is not a number"),
        ("BenchmarkA 10 0 ns/op", "no figures to take"),
        ("BenchmarkA 10 NaN ns/op", "no figures to take"),
        ("BenchmarkA 10 -1 ns/op", "no figures to take"),
    ],
)
def test_bad_go_lines_are_named(tmp_path, line, said):
    with pytest.raises(WherryError, match=said):
        files.load(saved(tmp_path / "go.txt", line + "\n"))


# ---- glibc -----------------------------------------------------------------------------------------------------------


def glibc(function="memcpy", results=None, timing="clock_gettime", **own):
    default = [{"length": 64, "align1": 0, "align2": 3, "dst > src": 1, "timings": [30.0, 4.0]}]
    return {
        "timing_type": timing,
        "functions": {
            function: {
                "bench-variant": "default",
                "ifuncs": ["simple_memcpy", "memcpy"],
                "results": default if results is None else results,
            }
            | own
        },
    }


def test_benchtests_are_read(tmp_path):
    results = [
        {"length": 64, "align1": 0, "align2": 3, "dst > src": 1, "timings": [30.0, 4.0]},
        {"length": 64, "align1": 0, "align2": 3, "dst > src": 1, "timings": [32.0, 4.2]},
        {"length": 0.0, "align1": 4097, "align2": 0, "dst > src": 0, "timings": [3.0, 2.0]},
    ]
    run = files.load(saved(tmp_path / "bench-memcpy.out", glibc(results=results)))
    assert run["source"] == run["source"] | {"tool": "glibc-benchtests", "unit": "ns"}
    first = of(run, "memcpy", size=64)
    assert (first["src_off"], first["dst_off"], first["name"]) == (0, 3, "dst > src=1")
    assert first["rounds"] == 2 and first["ns"]["median"] == pytest.approx(4.1)
    assert of(run, "memcpy", size=0)["src_off"] == 1
    assert run["experiments"][0]["name"] == "glibc memcpy default"


def test_benchtests_in_ticks_stay_ticks_unless_told(tmp_path, call):
    path = saved(tmp_path / "b.out", glibc(timing="hp_timing"))
    run = files.load(path)
    assert run["source"]["unit"] == "ticks" and of(run, "memcpy")["ns"]["median"] == 4.0
    assert any("ticks" in item["what"] for item in run["machine"]["uncontrolled"])
    run = files.load(path, ghz=2.0)
    assert run["source"]["unit"] == "ns" and of(run, "memcpy")["ns"]["median"] == 2.0
    status, _, said = call("import", path, "-o", "r.json")
    assert status == 0 and "--ghz" in said
    assert "ticks" in call("bench", "--show", "r.json")[1]
    assert "median (ticks)" in call("export", "r.json")[1]


def test_pictures_of_ticks_say_ticks(tmp_path):
    sizes = [
        {"length": n, "align1": 0, "align2": 0, "timings": [n / 8, 4.0]} for n in (64, 256, 1024)
    ]
    path = saved(tmp_path / "b.out", glibc(timing="hp_timing", results=sizes))
    for ghz, unit, other in (
        (None, "ticks per call", "time per call"),
        (2.0, "time per call", "ticks per"),
    ):
        run = files.load(path, ghz=ghz)
        (picture,) = pictures.of(run, run["experiments"][0]["name"])
        text = json.dumps([(view.name, view.spec) for view in picture.views])
        assert unit in text and other not in text
        assert ("' ns'" in text) == (ghz is not None), "a unit at each mark of the axis"
        kinds = {kind.split()[0] for _, _, kind in picture.tips}
        assert ("ticks" in kinds) == (ghz is None) and ("time" in kinds) == (ghz is not None)


def test_benchtests_of_the_other_functions(tmp_path):
    fill = [{"length": 32, "alignment": 1, "char": c, "timings": [5.0, 3.0]} for c in (0, 65)]
    run = files.load(saved(tmp_path / "a", glibc("memset", fill)))
    assert {(c["op"], c["dst_off"], c.get("name")) for c in run["cells"]} == {
        ("zero", 1, None),
        ("set", 1, "char=65"),
    }
    move = [{"length": 100, "align1": 32, "align2": 0, "timings": [5.0, 3.0]}]
    run = files.load(saved(tmp_path / "b", glibc("memmove", move)))
    assert {(c["op"], c["overlap"]) for c in run["cells"]} == {("move", -32)}
    drawn = [{"length": 4096, "timings": [5.0, 3.0]}]
    run = files.load(saved(tmp_path / "c", glibc(results=drawn, **{"bench-variant": "random"})))
    assert {(c.get("size"), c["name"]) for c in run["cells"]} == {(None, "up to 4096 bytes")}
    means = {"duration": 1e9, "iterations": 1000, "max": 9.0, "min": 2.0, "mean": 3.0}
    document = {"timing_type": "clock_gettime", "functions": {"memcpy": {"": means, "far": means}}}
    run = files.load(saved(tmp_path / "d", document))
    own = of(run, "memcpy", name="far")
    assert (own["ns"]["median"], own["ns"]["min"], own["ns"]["q25"]) == (3.0, 2.0, None)


# ---- bad input -------------------------------------------------------------------------------------------------------

BAD = {
    "empty": (b"", "is empty"),
    "blank": (b" \n", "is empty"),
    "words": (b"hello\n", "is not a run file, google-benchmark JSON"),
    "binary": (bytes(range(1, 256)) * 4, "not text"),
    "cut": (json.dumps(gbench(entry("BM_a/1", 1.0)))[:-20].encode(), "cut short"),
    "other": ({"a": 1}, 'no "benchmarks"'),
    "list": ([1, 2], "JSON, but not"),
    "deep": (b"[" * 100_000, "nested"),
    "nan": (b'{"benchmarks": [{"name": "a", "real_time": NaN}]}', "no time above 0"),
    "none": (gbench(), "no figures to take"),
    "nameless": (gbench({"real_time": 1.0}), "benchmark 1 has no name"),
    "no object": (gbench(7), "benchmark 1 has no name"),
    "no times": (gbench(entry("BM_a", "fast"), entry("BM_b", -1)), "2 left out"),
    "huge time": (gbench(entry("BM_a", 10**400)), "no figures to take"),
    "unit": (gbench(entry("BM_a", 1.0, time_unit="weeks")), "no time above 0"),
    "unit that is no word": (gbench(entry("BM_a", 1.0, time_unit=["ns"])), "no time above 0"),
    "context": ({"context": 7, "benchmarks": []}, "JSON, but not"),
    "functions": ({"functions": 7}, "JSON, but not"),
    "function": ({"functions": {"memcpy": 7}}, "not an object"),
    "ifuncs": (glibc(ifuncs="memcpy"), "no list of names in ifuncs"),
    "results": (glibc(results=7), "no list of results"),
    "timings": (glibc(results=[{"length": 1, "timings": [1.0]}]), "as many timings as ifuncs"),
    "no result": (glibc(results=[None]), "as many timings as ifuncs"),
    "variant": ({"functions": {"memcpy": {"a": 3}}}, "neither ifuncs"),
    "gzip": (gzip.compress(b"{}" * 100)[:20], "cut short"),
}


def test_more_benchmarks_than_a_run_holds(tmp_path):
    line = b"Benchmark%d 1 1 ns/op\n"
    path = saved(tmp_path / "many.txt", b"".join(line % i for i in range(200_001)))
    with pytest.raises(WherryError, match="at most 200,000"):
        files.load(path)


@pytest.mark.parametrize("case", sorted(BAD))
def test_bad_files_are_answered_in_one_line(tmp_path, call, case):
    data, said = BAD[case]
    path = saved(tmp_path / "bad.json", data)
    for command in (("import", path), ("compare", path, path), ("export", path)):
        status, out, err = call(*command)
        assert status == 2 and out == "" and err.count("\n") == 1, err
        assert said in err and "bad.json" in err and len(err) < 400
    assert [p.name for p in tmp_path.iterdir()] == ["bad.json"]


def test_hostile_names_are_made_harmless(tmp_path, call):
    evil = "\x1b[2J\u202e" + "x" * 5000
    document = gbench(entry(f"BM_memcpy{evil}/{evil}", 2.0)) | {"context": {"host_name": evil}}
    run = files.load(saved(tmp_path / "g.json", document))
    text = json.dumps(run, ensure_ascii=False)
    assert "\x1b" not in text and "\u202e" not in text
    assert max(len(c["routine"]) for c in run["cells"]) <= 200
    formula = gbench(entry("=HYPERLINK(1)", 2.0))
    out = call("export", saved(tmp_path / "f.json", formula), "--format", "csv")[1]
    assert "'=HYPERLINK" in out


# ---- out, and in again -----------------------------------------------------------------------------------------------


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
        assert again["rounds"] == (own["rounds"] if raw else 7)
        assert again["ns"]["median"] == pytest.approx(own["ns"]["median"], rel=1e-5)
    status, out, _ = call("compare", run_file, target)
    assert status == 0 and "0 slower, 0 faster" in out and "time against time" in out


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
    kinds = {b.get("aggregate_name") for b in google_benchmark.write(run, raw)["benchmarks"]}
    assert kinds == {None, "mean", "median", "stddev", "cv"}


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
