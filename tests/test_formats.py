"""Other tools' formats: theirs are read, and bad ones are answered in one line; ours: test_formats_out.py."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path

import pytest
from wherry.errors import WherryError
from wherry.formats import files
from wherry.report import pictures


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
    with pytest.raises(WherryError, match="1e308 or more"):
        files.load(saved(tmp_path / "ours", b'{"format": "wherry-run", "seconds": 1e999}'))


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
    assert "1 line left out: no time in ns/op or sec/op" in run["source"]["notes"]


def test_what_a_benchmark_prints_or_fails_with_hinders_no_other(tmp_path):
    """`go test` prints the name first, and the figures on the same line when they are there."""
    text = (
        "pkg: example.org/mem\nBenchmarkMemcpy\nBenchmarkMemcpy/64-8 \t1000\t 2.5 ns/op\n"
        "BenchmarkBad-8 \t--- FAIL: BenchmarkBad-8\n    x_test.go:9: bad\n"
        "BenchmarkLoud-8 \thello, 5 bytes\n 100\t 7.5 ns/op\nBenchmarkMemset/64-8 \t1000\t 1.5 ns/op\nFAIL\n"
    )
    run = files.load(saved(tmp_path / "go.txt", text))
    assert {cell["routine"] for cell in run["cells"]} == {"Memcpy", "Memset"}
    (note,) = [note for note in run["source"]["notes"] if "left out" in note]
    assert note.startswith("2 lines left out: no result behind the name")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "none.json",
            "cannot read none.json: No such file or directory; give google-benchmark JSON, Go",
        ),
        (".", ". is not a file; give google-benchmark JSON, Go"),
        ("text.txt", "text.txt is not google-benchmark JSON, Go"),
    ],
)
def test_import_asks_for_what_it_takes(wherry, tmp_path, name, said):
    """And not for a run file, which it refuses."""
    (tmp_path / "text.txt").write_text("hello\n")
    done = wherry("import", name, cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and "run file" not in done.stderr, (
        done.stderr
    )
    assert "run file" in wherry("compare", name, name, cwd=tmp_path).stderr


def _events(text, package, pieces):
    """What `go test -json` makes of a text: each line is an output, or several."""
    told = [{"Action": "start", "Package": package}]
    for line in text.splitlines(keepends=True):
        at = line.find("\t") + 1 if pieces else 0
        told += [
            {"Action": "output", "Package": package, "Output": piece}
            for piece in (line[:at], line[at:])
            if piece
        ]
    return told


@pytest.mark.parametrize("pieces", [False, True])
def test_go_benchmarks_in_events_are_those_of_the_text(tmp_path, pieces):
    other = "pkg: example.org/b\nBenchmarkMemcpy/64-8 \t 100\t 9.000 ns/op\n"
    first, second = _events(GO, "example.org/mem", pieces), _events(other, "example.org/b", pieces)
    mixed = first[:-3] + second + first[-3:]
    lines = "".join(json.dumps(event) + "\n" for event in mixed)
    run = files.load(saved(tmp_path / "go.json", lines))
    plain = files.load(saved(tmp_path / "go.txt", GO + other))
    assert (run["cells"], run["rows"]) == (plain["cells"], plain["rows"])


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('{"Action":"start"}\n{"Action":"output","Output":"PASS\\n"}\n', "go test -bench . -json"),
        ('{"Action":"start"}\n{"Action":"out', "line 2: no event of go test -json"),
    ],
)
def test_events_without_benchmarks_are_told(tmp_path, lines, said):
    with pytest.raises(WherryError, match=re.escape(said)):
        files.load(saved(tmp_path / "go.json", lines))


def test_figures_without_a_date_are_as_old_as_their_file(tmp_path):
    path = saved(tmp_path / "go.txt", GO)
    os.utime(path, (1e9, 1e9))
    assert files.load(path)["started"] == files.load(path)["finished"] == "2001-09-09T01:46:40Z"
    dated = saved(tmp_path / "dated.txt", "date: 2026-11-21T10:00:00+02:00\n" + GO)
    assert files.load(dated)["started"] == "2026-11-21T08:00:00Z"


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


@pytest.mark.parametrize(
    ("number", "said"), [(1, "1 timing"), (2, "2 timings"), (1100, "1,100 timings")]
)
def test_timings_of_benchtests_that_are_none_are_counted(tmp_path, number, said):
    none = [
        {"length": size, "align1": 0, "align2": 0, "timings": [0, 4.0]} for size in range(number)
    ]
    run = files.load(saved(tmp_path / "b.out", glibc(results=none)))
    assert f"{said} left out: not above 0" in run["source"]["notes"]
    assert {cell["routine"] for cell in run["cells"]} == {"memcpy"}


def test_variants_of_benchtests_without_a_mean_are_counted(tmp_path):
    own = {"functions": {"memcpy": {"a": {"mean": 0}, "b": {"mean": 2.0}, "c": {}}}}
    run = files.load(saved(tmp_path / "b.out", own))
    assert "2 variants left out: no mean above 0" in run["source"]["notes"]
    assert [cell["name"] for cell in run["cells"]] == ["b"]


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
    assert call("import", path, "-o", "r.json", "--ghz", "2")[0] == 0
    assert "median (ns)" in call("export", "r.json")[1]


def test_an_output_beside_json_is_refused(tmp_path, call):
    """It would be passed over: the run goes to standard output."""
    path = saved(tmp_path / "b.out", glibc())
    status, out, said = call("import", path, "-o", "r.json", "--json")
    assert status == 2 and out == "" and "leave it out, or -o" in said
    assert not Path("r.json").exists()


def test_a_rate_for_figures_that_are_no_ticks_is_refused(tmp_path, call):
    path = saved(tmp_path / "b.out", glibc(timing="clock_gettime"))
    status, _, said = call("import", path, "-o", "r.json", "--ghz", "2")
    assert status == 2 and "no figures in ticks" in said
    assert not Path("r.json").exists()


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
    "words": (b"hello\n", "google-benchmark JSON, Go benchmark text or glibc"),
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
