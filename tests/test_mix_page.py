"""Recorded mixes on a page: drawn, listed beside others, and told in words."""

from __future__ import annotations

import copy
import html
import json
import re
import subprocess

import pytest
from conftest import ROOT
from made_mixes import SMALL, full
from wherry import recordings, shellwords
from wherry.recording import summary
from wherry.report import mixpage


# --- the page -------------------------------------------------------------------------------------
def test_a_mix_is_drawn(wherry, tmp_path):
    source = ROOT / "mixes" / "gcc.mix.json"
    done = wherry("report", source, "-o", tmp_path / "a.html", "--plot", tmp_path / "a.svg")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "a.html").read_text()
    assert "ggc_internal_cleared_alloc" in page
    assert "Ceiling: at most" in page
    assert page.count("<svg") == 1
    assert (tmp_path / "a.svg").read_text().startswith("<svg")


def test_a_mix_that_comes_with_wherry_is_drawn_by_its_name(wherry, tmp_path):
    done = wherry("report", "sort", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "Report: sort.html\n"), done.stderr
    assert "Ceiling: at most" in (tmp_path / "sort.html").read_text()
    done = wherry("report", "sort", "--plot", "a.svg", "--experiment", "sizes", cwd=tmp_path)
    assert done.returncode == 2 and "sort is a mix" in done.stderr
    assert not (tmp_path / "a.svg").exists()


def test_a_mix_is_known_by_what_is_in_it(wherry, tmp_path):
    """Also where its fields are in an order of their own."""
    for name in ("plain.json", "noending"):
        (tmp_path / name).write_text(json.dumps(dict(reversed(SMALL.items()))))
        done = wherry("report", name, cwd=tmp_path)
        page = name.removesuffix(".json") + ".html"
        assert (done.returncode, done.stdout) == (0, f"Report: {page}\n"), done.stderr
        assert "small: what it copies" in (tmp_path / page).read_text()
    (tmp_path / "taken.html").write_text(json.dumps(SMALL))
    done = wherry("report", "taken.html", "-o", "taken.html", cwd=tmp_path)
    assert done.returncode == 2 and "that is the mix itself" in done.stderr


def test_a_mix_is_shown_alone(wherry, tmp_path):
    recordings.write(tmp_path / "m.json", SMALL)
    (tmp_path / "r.json").write_text('{"format": "wherry-run"}')
    for words in (
        ("r.json", "m.json"),
        ("m.json", "sort"),
        ("m.json", "m.json", "--plot", "x.svg"),
    ):
        done = wherry("report", *words, cwd=tmp_path)
        assert done.returncode == 2 and done.stderr.count("\n") == 1
        assert "m.json is a mix, which is shown alone" in done.stderr


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_of_an_empty_mix_there_is_no_picture(wherry, tmp_path, ending):
    empty = {key: SMALL[key] for key in ("format", "version", "name")} | {"ops": {}}
    recordings.write(tmp_path / "e.mix.json", empty)
    done = wherry("report", "e.mix.json", "--plot", f"g.{ending}", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "wherry: the mix small holds no call; there is nothing to draw\n"
    assert wherry("report", "e.mix.json", cwd=tmp_path).returncode == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["e.mix.html", "e.mix.json"]
    zero = empty | {"ops": {"set": {"calls": 2, "bytes": 0, "sizes": [[0, 0, 2, 0]]}}}
    recordings.write(tmp_path / "z.mix.json", zero)
    done = wherry("report", "z.mix.json", "--plot", f"g.{ending}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_what_calls_took_is_on_the_page(wherry, tmp_path):
    document = copy.deepcopy(SMALL)
    times = [96, 127, 20, 2000, 900.0, 600.0, 10, 700.0, 0, [15, 0, 5, 0, 0, 0, 0, 0, 0]]
    document["ops"]["move"]["times"] = [times]
    rows = [[8192, 12287, [10] * 6, [1000.0] * 6, [5] * 6, [400.0] * 6]]
    rows.append([8 << 20, (16 << 20) - 1, [2] * 6, [3.0e6] * 6, [2] * 6, [2.0e6] * 6])
    document["trial"]["ops"] = {"copy": rows, "move": []}
    path = tmp_path / "timed.mix.json"
    recordings.write(path, document)
    assert wherry("report", path).returncode == 0
    page = (tmp_path / "timed.mix.html").read_text()
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", page)
    # 300 ns of 20 calls, 2000 bytes; half a fault a call; all sources near, a quarter of destinations in memory.
    at = cells.index("96–128")
    assert cells[at : at + 5] == ["96–128", "20", "15.0", "6.67", "0.5"]
    assert cells[at + 5 : at + 11] == ["100 %", "0.0 %", "0.0 %", "75 %", "0.0 %", "25 %"]
    at = cells.index("60")
    assert cells[at : at + 5] == ["60", "30", "100.0", "80.0", "0.80"]
    at = cells.index("8M–16M")
    assert cells[at + 3 : at + 6] == ["1,500,000", "1,000,000", "0.67"]


def test_shares_of_sizes_and_of_places(tmp_path):
    document = {"format": "wherry-mix", "version": 1, "name": "m"}
    copies = [[16, 8, 1, "far", "none", 1], [16, 64, 2, "alias", "none", 2]]
    copies += [[64, 4, 64, "same", "below", 3], [64, 64, 64, "near", "above", 4]]
    sets = [[64, 64, 8, "far", "none", 1], [64, 64, 64, "far", "none", 3]]
    document["ops"] = {
        "copy": {"calls": 10, "bytes": 400, "sizes": [[12, 12, 8, 96], [128, 159, 2, 304]]},
        "set": {"calls": 4, "bytes": 160, "sizes": [[0, 0, 1, 0], [48, 63, 3, 160]]},
    }
    for op, places in (("copy", copies), ("set", sets)):
        document["ops"][op]["places"] = places
    recordings.write(tmp_path / "m.mix.json", document)
    recording = recordings.read(tmp_path / "m.mix.json")
    rows = re.findall(r"<tr>(.*?)</tr>", mixpage._places(recording), re.DOTALL)
    told = [re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", row) for row in rows][1:]
    assert told == [
        ["copy", "60 %", "70 %", "40 %", "20 %", "70 %"],
        ["set", "", "75 %", "100 %", "", ""],
    ]
    points = {}
    for point in mixpage.spec(recording)["data"]["values"]:
        own = points.setdefault((point["op"], point["by"]), [])
        own.append((point["size"], round(point["share"], 3)))
    calls, of_bytes = mixpage.BY
    assert points == {
        ("copy", calls): [(12, 0), (12, 0.8), (159, 1), (238.5, 1)],
        ("copy", of_bytes): [(12, 0), (12, 0.24), (159, 1), (238.5, 1)],
        ("set", calls): [(0.5, 0), (0.5, 0.25), (63, 1), (238.5, 1)],
        ("set", of_bytes): [(0.5, 0), (0.5, 0), (63, 1), (238.5, 1)],
    }


def test_what_a_mix_says_is_text_on_its_page(wherry, tmp_path):
    document = copy.deepcopy(SMALL)
    document["how"] = {"command": ["<script>alert(1)</script>"], "note": "<b>"}
    path = tmp_path / "evil.mix.json"
    recordings.write(path, document)
    assert wherry("report", path).returncode == 0
    page = (tmp_path / "evil.mix.html").read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_the_command_of_a_page_can_be_typed_again(wherry, tmp_path):
    document = copy.deepcopy(SMALL)
    words = ["python3", "-c", "a = 1\nprint('it\\'s')", "two words"]
    document["how"] = {"command": words}
    path = tmp_path / "lines.mix.json"
    recordings.write(path, document)
    assert wherry("report", path).returncode == 0
    page = (tmp_path / "lines.mix.html").read_text()
    shown = html.unescape(re.search(r"command</dt><dd>(.*?)</dd>", page).group(1))
    told = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {shown}"], stdout=subprocess.PIPE, check=True
    )
    assert told.stdout.decode().split("\0")[:-1] == words
    # What no program was ever called with, but a file may say.
    assert shellwords.line(["a\ud800", 3]) == r"$'a\355\240\200' 3"


def test_a_damaged_mix_is_not_drawn(wherry, tmp_path):
    path = tmp_path / "cut.mix.json"
    path.write_text("{")
    done = wherry("report", path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


# --- what the summary of a recording says ---------------------------------------------------------
def test_sizes_of_one_class_are_told_by_its_mean():
    sizes = [[16, 16, 50, 800], [69632, 73727, 150, 150 * 70000]]
    assert [summary.percentile(sizes, 200, p) for p in (20, 50, 99)] == [16, 70000, 70000]
    assert summary.largest(sizes) == "<72K"
    assert summary.largest([[69632, 73727, 1, 70000]]) == "70000"
    assert summary.largest(sizes[:1]) == "16"


def test_a_caller_without_lines_is_told_by_its_address():
    """In the file, not from the function on."""
    row = {"module": "/usr/lib/libx.so.1", "function": "f", "offset": 0x71BF9, "source": None}
    row["inlined_into"] = []
    assert summary.caller(row) == "f at 0x71bf9 in libx.so.1"
    assert summary.caller(row | {"function": None}) == "+0x71bf9 in libx.so.1"
    assert summary.caller(row | {"source": "/src/x.c:7"}) == "f x.c:7 in libx.so.1"


STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"


@pytest.mark.parametrize(
    ("function", "more", "said"),
    [
        (f"{STRING}::_M_append(char const*)", {}, "std::__cxx11::basic_string<>::_M_append() at 0x71bf9"),
        (f"{STRING}::_M_mutate(unsigned long, {STRING})", {}, "std::__cxx11::basic_string<>::_M_mutate() at 0x71bf9"),
        (
            "std::char_traits<char>::copy(char*, char const*, unsigned long)",
            {"source": "/c/char_traits.h:431", "inlined_into": [f"{STRING}::_S_copy(char*)", "run(int)"]},
            "...raits<>::copy() (inlined into run(int)) char_traits.h:431",
        ),
        (f"std::ostream& operator<< <{STRING} >({STRING} const&)", {}, "std::ostream& operator<< <>() at 0x71bf9"),
        (f"(anonymous namespace)::read({STRING} const&)", {}, "(anonymous namespace)::read() at 0x71bf9"),
        (f"<{STRING} as core::clone::Clone>::clone", {}, "> as core::clone::Clone>::clone at 0x71bf9"),
        (f"auto go<int>({STRING})::{{lambda(auto:1)#1}}::operator()(int) const", {}, "operator()() const at 0x71bf9"),
        ("f" * 70, {"source": "x.c:7"}, f"...{'f' * 51} x.c:7"),
        ("f", {"inlined_into": ["g" * 90], "source": "x.c:7"}, f"f (inlined into ...{'g' * 34}) x.c:7"),
    ],
)  # fmt: skip
def test_of_a_long_name_the_place_stays(function, more, said):
    """What comes behind the name tells apart the places in one function; in C++ the name's own end tells most."""
    row = {"module": "/usr/lib/libx.so.1", "function": function, "offset": 0x71BF9, **more}
    found = summary.caller(row)
    assert found.endswith(f"{said} in libx.so.1")
    assert len(found) <= 60 + len(" in libx.so.1")
    assert len(summary.caller(row, 40)) <= 40 and " in libx.so.1" in summary.caller(row, 40)


def test_long_names_leave_the_figures_of_the_summary_whole():
    library = "_multiarray_umath.cpython-311-x86_64-linux-gnu.so"
    row = {"module": f"/usr/lib/{library}", "function": "f" * 90, "offset": 1, "source": "x.c:7"}
    row |= {"op": "move", "bytes": 72 << 20, "calls": 29}
    program = "/usr/bin/" + "p" * 200
    thread = {"program": program, "name": "reader", "threads": 3, "bytes": 72 << 20, "calls": 29}
    callers, threads = summary._callers([row, row]), summary._threads([thread])
    head, first, second = callers.splitlines()
    assert head.split() == ["bytes", "calls", "op", "from"] and first == second
    assert first.split()[:4] == ["72", "MiB", "29", "move"] and library in first
    assert threads.splitlines()[1].split()[:4] == ["72", "MiB", "29", "reader"], threads
    assert all(len(line) <= summary.WIDTH for line in f"{callers}\n{threads}".splitlines())


@pytest.mark.parametrize(
    ("number", "said"), [(1, "1 process, 1 thread"), (2000, "2,000 processes, 2,000 threads")]
)
def test_the_page_counts_processes_and_threads(tmp_path, number, said):
    document = full()
    document["run"] |= {"processes": number, "threads": number}
    path = tmp_path / "m.mix.json"
    path.write_bytes(recordings.encode(document))
    assert f"; {said}<" in mixpage.page(recordings.read(path))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (None, "several names"),
        ("", "?"),
        ("   ", "?"),
        ("a\nb", "a b"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x7f", "\\x7f"),
    ],
)
def test_a_thread_is_told_whatever_its_name(name, told):
    row = {"program": "/bin/x", "name": name, "threads": 1, "calls": 1, "bytes": 1}
    assert summary.thread(row) == f"{told} in x"


@pytest.mark.parametrize(
    ("least", "most", "ticks"),
    [
        (11400, 37000, [12288, 16384, 24576, 32768]),
        (520, 780, [768]),
        (0.5, 1 << 20, [2.0**k for k in range(-1, 21, 2)]),
    ],
)
def test_the_sizes_on_the_axis_are_plain_ones(least, most, ticks):
    assert mixpage._ticks(least, most) == ticks
