"""The report as text: what it holds, that nothing in it can be executed, and what is refused."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
import re

import made_runs
import pytest
import report_runs as runs
from wherry.report import curves, hypertext, page, picture, pictures


class Reader(html.parser.HTMLParser):
    """The elements of a page, as a browser would find them."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict]] = []
        self.scripts: list[tuple[dict, str]] = []
        self.text = ""
        self.within: str | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.within = tag
        if tag == "script":
            self.scripts.append((dict(attributes), ""))

    def handle_endtag(self, tag):
        self.within = None

    def handle_data(self, data):
        if self.within == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = attributes, text + data
        else:
            self.text += data

    def figures(self) -> dict:
        (text,) = [text for attributes, text in self.scripts if attributes.get("id") == "figures"]
        return json.loads(text)


def page_of(*many: dict) -> Reader:
    letters = "ABC" if len(many) > 1 else ("",)
    return Reader(page.page([page.Run(run, "a.json", letters[i]) for i, run in enumerate(many)]))


@pytest.fixture(scope="module")
def whole() -> Reader:
    return page_of(runs.every_kind())


def test_every_kind_of_picture_is_chosen_by_the_dimensions_alone():
    run = runs.every_kind()
    kinds = {
        e["name"]: [p.key.split()[0] for p in pictures.of(run, e["name"])]
        for e in run["experiments"]
    }
    assert kinds == {
        "sizes": ["curves"],
        "mixes": ["bars", "bars"],
        "alignment": ["heat"] * len(runs.NAMES),
        "scoreboard": ["ratios", "figures"],
        "unheard": ["curves"],
    }
    (threads,) = pictures.of(run, "unheard")
    assert threads.columns["x"][0] == 1 and "threads" in threads.title


def test_the_page_tells_and_shows_everything(whole):
    for words in (
        "fastest",
        "Not controlled: virtual machine",
        "neighbours",
        "Noise floor 2.0 %",
        "3 processes × 7 rounds",
        "CRASHED",
        "size must be a multiple of 8",
        "A CPU <of> tests & co",
        "L1d 48 KiB",
    ):
        assert words in whole.text, words
    tables = [attributes for tag, attributes in whole.elements if tag == "table"]
    assert len(tables) > 5
    figures = whole.figures()["pictures"]
    drawn = [attributes["id"] for tag, attributes in whole.elements if tag == "figure"]
    assert sorted(drawn) == sorted(figures) and len(drawn) == 11
    boxes = {a["value"] for t, a in whole.elements if t == "input" and a["type"] == "checkbox"}
    assert set(runs.NAMES) <= boxes


def test_every_picture_has_words_for_who_does_not_see_it(whole):
    labels = [a.get("aria-label") for t, a in whole.elements if a.get("role") == "img"]
    assert len(labels) == 11 and all(len(label) > 20 for label in labels)


def test_limits_of_the_run_are_curves():
    run = runs.every_kind()
    (own,) = pictures.of(run, "sizes")
    assert "limit: plain loops" in own.series
    at = [i for i, name in enumerate(own.columns["routine"]) if name.startswith("limit")]
    assert {own.columns["rate"][i] for i in at} == {60.0}
    assert {own.columns["panel"][i] for i in at} == {"in L1"}


@pytest.mark.parametrize(
    ("op", "size", "rate"),
    [
        ("copy", 64 << 10, 12.0),
        ("copy", 128 << 10, 15.0),
        ("move", 1 << 20, 15.0),
        ("set", 1 << 20, 9.0),
    ],
)
def test_a_limit_is_the_fastest_loop_of_the_scoreboard_there(op, size, rate):
    copies = {"copy_bandwidth": 10.0, "copy_nt_bandwidth": 12.0, "copy_nt_parts_bandwidth": 15.0}
    limits = {"DRAM": copies | {"write_bandwidth": 8.0, "write_nt_bandwidth": 9.0}}
    run = {"experiments": [{"name": "sizes"}, {"name": "scoreboard", "score": {"limits": limits}}]}
    row = {"op": op, "src_state": "DRAM", "dst_state": "DRAM", "walk": "pool", "threads": 1}
    assert curves._limits(run, row, size) == [
        ("limit: plain loops", {"ns": pytest.approx(size / rate), "rate": rate})
    ]
    assert curves._limits(run, row | {"src_state": "L1"}, size) == []


def test_nothing_leaves_the_page_and_no_script_but_its_own_runs(whole):
    policy = next(a["content"] for t, a in whole.elements if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    sums = re.findall(r"'sha256-([^']+)'", policy)
    own = [text for attributes, text in whole.scripts if not attributes]
    assert [base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for t in own] == sums
    for _, attributes in whole.elements:
        for key in ("src", "href"):
            assert attributes.get(key, "#")[0] == "#" or attributes[key] == "data:,"
        assert not any(key.startswith("on") for key in attributes)


def test_strangers_words_stay_words():
    reader = page_of(runs.hostile())
    assert len(reader.scripts) == 3  # figures, library, page
    assert {tag for tag, _ in reader.elements} == {
        tag for tag, _ in page_of(runs.every_kind()).elements
    }
    assert not any(key.startswith("on") for _, attributes in reader.elements for key in attributes)
    assert "<script>window.broken = 1</script>" in reader.text
    values = [a["value"] for t, a in reader.elements if t == "input" and a["type"] == "checkbox"]
    series = {n for p in reader.figures()["pictures"].values() for n in p["series"]}
    assert set(values) == series
    # Nothing that turns or hides the text around it, and nothing endless.
    assert not re.search("[\u200f\u202a-\u202e\u2066-\u2069\u2028]", reader.text)
    assert "n" * 500 not in reader.text


def test_no_name_out_of_a_file_stands_in_an_expression():
    found = page_of(runs.hostile()).figures()["pictures"]

    def expressions(part):
        if isinstance(part, dict):
            for key, value in part.items():
                if key in ("filter", "calculate", "labelExpr", "expr"):
                    yield json.dumps(value)
                yield from expressions(value)
        elif isinstance(part, list):
            for item in part:
                yield from expressions(item)

    said = [
        text
        for own in found.values()
        for view in own["views"]
        for text in expressions(view["spec"])
    ]
    assert said and not any("broken" in text or "cmd" in text for text in said)


def test_json_ends_no_script_element():
    text = hypertext.script_json({"a": "</script><!--&"})
    assert not set("<>&") & set(text) and json.loads(text) == {"a": "</script><!--&"}


def test_absurd_figures_make_a_page():
    reader = page_of(runs.absurd())
    assert reader.figures()["pictures"]
    assert "Machine" in reader.text


def test_runs_side_by_side_share_their_scales():
    slow = runs.every_kind()
    for cell in slow["cells"]:
        cell["ns"] = {key: value * 10 for key, value in cell["ns"].items()}
    reader = page_of(runs.every_kind(), slow)
    assert "A: bench-1" in reader.text and "B: bench-1" in reader.text
    domains = [
        json.dumps(layer["encoding"]["y"]["scale"].get("domain"))
        for own in reader.figures()["pictures"].values()
        if own["title"].startswith("By size")
        for layer in own["views"][0]["spec"]["spec"]["layer"]
        if "scale" in layer["encoding"].get("y", {})
    ]
    assert len(set(domains)) == 1 and "null" not in domains


def test_runs_side_by_side_tell_what_they_have_in_common():
    def said(a: dict, b: dict) -> str:
        return page.page([page.Run(a, "a.json", "A"), page.Run(b, "b.json", "B")])

    one, other = runs.empty(), runs.empty()
    runs.add(one, "sizes", [{"size": 64}, {"size": 128}], ("libc", "wherry"))
    runs.add(other, "sizes", [{"size": 64}, {"size": 4096}], ("libc", "wherry"))
    assert "A and B have 2 cells in common; wherry compare a.json b.json tells" in said(one, other)
    apart = runs.empty()
    runs.add(apart, "sizes", [{"size": 4096}], ("libc", "wherry"))
    text = said(one, apart)
    assert "A and B have no cell in common: size is 64 and 128 in one, 4096 in the other." in text
    assert "in common" not in page.page([page.Run(one, "a.json")])


def test_packed_columns_hold_what_was_there():
    columns = {
        "routine": ["a", "a", "b", "b"] * 3,
        "src": [1] * 12,
        "ns": [10.0, 12.345678, 5e9, 0.001234] * 3,
        "q25": [9.0, None, 1e9, 0.001] * 3,
    }
    packed = picture.packed(columns)
    assert packed["src"] == {"runs": [[1, 12]]}
    assert packed["routine"]["words"] == ["a", "b"]
    for i in range(4):
        if columns["q25"][i] is not None:
            near = packed["ns"][i] * (1 + packed["q25"]["at"][i] / 1000)
            assert near == pytest.approx(columns["q25"][i], rel=2e-3)


def test_a_large_sweep_stays_below_five_megabytes():
    run = runs.empty()
    runs.add(run, "alignment", runs.maps(64), ("libc", "wherry", "rep_movsb", "a", "b", "c"))
    text = page.page([page.Run(run, "big.json")])
    assert len(run["cells"]) == 98_304
    assert len(text.encode()) < 5_000_000


def test_the_drawing_library_is_kept_as_long_as_its_package_is_the_same(monkeypatch, tmp_path):
    import vl_convert

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def anew() -> str:
        page.library.cache_clear()
        return page.library()

    first = anew()
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda _: "another")
    assert anew() == first
    monkeypatch.setattr(vl_convert, "__version__", "0")
    assert "another" in anew()
    page.library.cache_clear()


def test_no_two_routines_of_a_picture_look_alike():
    reader = page_of(runs.every_kind(("libc", "wherry", *(f"routine_{i}" for i in range(17)))))
    for own in reader.figures()["pictures"].values():
        for view in own["views"]:
            for layer in view["spec"].get("spec", view["spec"]).get("layer", ()):
                dash = layer["encoding"].get("strokeDash")
                if dash:
                    looks = list(zip(own["light"], map(str, dash["scale"]["range"]), strict=True))
                    assert len(looks) > 10 and len(set(looks)) == len(looks)


def test_the_measured_clock_stands_beside_what_the_kernel_says():
    run = runs.every_kind()
    assert "Clock under load" not in page.page([page.Run(run, "a.json")])
    run["runner"] = {"ghz": 4.0875}
    text = page.page([page.Run(run, "a.json")])
    assert "Clock under load" in text and "4.09 GHz, measured by a chain" in text
    assert "2.60 GHz as the kernel says" in text


# ---- the command ----------------------------------------------------------------------------------------------------


def test_an_experiment_without_cells_hinders_no_other_picture(tmp_path, wherry):
    run = runs.every_kind()
    first = run["experiments"][0]["name"]
    for part in ("rows", "cells"):
        run[part] = [own for own in run[part] if own["experiment"] != first]
    path = runs.write(tmp_path / "r.json", run)
    result = wherry("report", path, "--plot", tmp_path / "p.svg")
    assert result.returncode == 0, result.stderr
    assert f"No plot: {first} has nothing to draw in this run" in result.stdout
    left = {e["name"] for e in run["experiments"]} - {first}
    assert {p.name for p in tmp_path.glob("*.svg")} == {f"p-{name}.svg" for name in left}
    result = wherry("report", path, "--plot", tmp_path / "q.svg", "--experiment", first)
    assert result.returncode == 2 and result.stderr.count("\n") == 1
    assert not list(tmp_path.glob("q*"))


def test_the_page_lies_beside_the_run_when_no_place_is_given(tmp_path, wherry):
    run = runs.write(tmp_path / "r.json", runs.every_kind())
    result = wherry("report", run)
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"Report: {tmp_path / 'r.html'}\n"
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["r.html", "r.json"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["r.json", "-o", "x.pdf"], "ends in .html"),
        (["r.json", "--plot", "x.gif"], ".png or .svg"),
        (["r.json", "r.json", "--plot", "x.png"], "one run"),
        (["r.json", "--plot", "x.png", "--experiment", "sises"], "did you mean sizes?"),
        (["r.json", "--experiment", "sizes"], "--plot"),
        (["none.json"], "none.json"),
        (["bad.json"], "bad.json"),
        (["cut.json"], "cut short"),
        ([], "RUN"),
    ],
)
def test_misuse_is_one_line(tmp_path, wherry, arguments, said):
    runs.write(tmp_path / "r.json", runs.every_kind())
    wrong = runs.every_kind()
    wrong["cells"][0]["ns"] = "fast"
    runs.write(tmp_path / "bad.json", wrong)
    (tmp_path / "cut.json").write_text('{"format": "wherry-run", "cells": [')
    result = wherry("report", *arguments, cwd=tmp_path)
    assert result.returncode == 2 and said in result.stderr and result.stderr.count("\n") == 1
    assert not list(tmp_path.glob("*.html"))


def test_a_wrong_run_file_is_told_as_bench_tells_it(tmp_path, wherry):
    wrong = runs.every_kind()
    del wrong["machine"]
    runs.write(tmp_path / "w.json", wrong)
    shown, reported = (wherry(*a, tmp_path / "w.json") for a in (("bench", "--show"), ("report",)))
    assert shown.stderr == reported.stderr and reported.returncode == shown.returncode == 2


def test_what_is_shown_as_json_stays_json_beside_pictures(tmp_path, wherry):
    path = runs.write(tmp_path / "r.json", made_runs.usual(1).run)
    shown = wherry("bench", "--show", path, "--json", "--plot", "p.svg", "--report", cwd=tmp_path)
    assert shown.returncode == 0 and json.loads(shown.stdout)["cells"]
    assert "Plot: p-" in shown.stderr and "Report: " in shown.stderr
    shown = wherry("bench", "--show", path, "--plot", "p.gif", cwd=tmp_path)
    assert shown.returncode == 2 and shown.stdout == "" and shown.stderr.count("\n") == 1


def test_a_place_that_cannot_be_written_is_one_line(tmp_path, wherry):
    run = runs.write(tmp_path / "r.json", runs.every_kind())
    (tmp_path / "file").write_text("")
    result = wherry("report", run, "-o", tmp_path / "file" / "x.html")
    assert result.returncode == 1 and result.stderr.count("\n") == 1


def test_bench_draws_and_reports(tmp_path, wherry):
    fake = {"WHERRY_RUN": str(runs.Path(__file__).with_name("fake_runner.py"))}
    command = ["bench", "sizes", "small", "--size", "64,4K,8K", "--save", "r.json"]
    result = wherry(*command, "--plot", "p.svg", "--report", cwd=tmp_path, env=fake)
    assert result.returncode == 0, result.stderr
    last = result.stdout.splitlines()[-4:]
    assert [line.split(" (")[0] for line in last] == [
        "Saved as r.json",
        "Plot: p-sizes.svg",
        "Plot: p-small.svg",
        "Report: r.html",
    ]
    assert all(
        (tmp_path / name).stat().st_size for name in ("p-sizes.svg", "p-small.svg", "r.html")
    )


def test_a_bad_ending_is_told_before_anything_is_measured(tmp_path, wherry):
    log = tmp_path / "log"
    fake = {
        "WHERRY_RUN": str(runs.Path(__file__).with_name("fake_runner.py")),
        "WHERRY_FAKE_LOG": str(log),
    }
    for name in ("d.html", "d.json.raw.json.gz", "d-sizes.svg"):
        (tmp_path / name).mkdir()
    for words, said in (
        (("--plot", "p.jpg"), ".png or .svg"),
        (("--save", "d.json", "--report"), "cannot save to d.html: it is a directory"),
        (("--save", "d.json", "--raw"), "cannot save to d.json.raw.json.gz: it is a directory"),
        (("small", "--plot", "d.svg"), "cannot save to d-sizes.svg: it is a directory"),
        (("--save", "r.svg", "--plot", "./r.svg"), "the run file goes there"),
    ):
        result = wherry("bench", "sizes", *words, cwd=tmp_path, env=fake)
        assert result.returncode == 2 and said in result.stderr, result.stderr
        assert result.stderr.count("\n") == 1
    assert not log.exists() or "--seed" not in log.read_text()
    run = runs.write(tmp_path / "r.svg", made_runs.usual(1).run)
    whole = run.read_bytes()
    result = wherry("report", run, "--plot", run, "--experiment", "small")
    assert result.returncode == 2 and "that is the run file itself" in result.stderr
    assert run.read_bytes() == whole


def test_help_loads_no_drawing_library(wherry):
    result = wherry("--help", env={"PYTHONPROFILEIMPORTTIME": "1"})
    assert "wherry.cli" in result.stderr and "vl_convert" not in result.stderr
