"""The report's pictures as files, PNG and SVG, and what is drawn in them."""

from __future__ import annotations

import json
import re
import struct
import xml.etree.ElementTree

import made_runs
import pytest
import report_runs as runs
from wherry import dimensions
from wherry.errors import WherryError
from wherry.report import look, pictures, regions, still
from wherry.yardsticks import KERNEL


@pytest.mark.parametrize("experiment", ["sizes", "mixes", "alignment", "scoreboard", "unheard"])
def test_still_pictures_say_where_their_figures_come_from(tmp_path, experiment):
    run = runs.every_kind()
    svg = still.draw(run, experiment, tmp_path / "a.svg").decode()
    words = "".join(xml.etree.ElementTree.fromstring(svg).itertext())
    for part in (
        experiment,
        "A CPU <of> tests & co",
        "glibc 2.36",
        "2026-11-21",
        "noise floor 2.0 %",
    ):
        assert part in words, part
    assert svg.count("<path") > 20
    png = still.draw(run, experiment, tmp_path / "a.png")
    width, height = struct.unpack(">II", png[16:24])
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and width > 1200 and height > 400


@pytest.mark.parametrize(
    ("offsets", "shown"),
    [((0, 8, 16, 24, 32, 40, 48, 56, 1, 4), None), (range(64), range(0, 64, 8))],
    ids=["quick", "all"],
)
def test_a_map_names_its_offsets(tmp_path, offsets, shown):
    """Those of --quick, whose last two are off the grid, one by one; of 64 each multiple of 8."""
    run = runs.empty()
    rows = [row for row in runs.maps(64) if row["src_off"] in offsets and row["dst_off"] in offsets]
    of_quick = {(1, 0), (0, 1), (1, 1), (4, 0), (0, 4)}
    if shown is None:
        rows = [
            row
            for row in rows
            if (pair := (row["src_off"], row["dst_off"])) in of_quick
            or not any(v % 8 for v in pair)
        ]
    runs.add(run, "alignment", rows, ("libc",))
    svg = xml.etree.ElementTree.fromstring(still.draw(run, "alignment", tmp_path / "a.svg"))
    axes = [
        [text.text for text in group.iter() if text.tag.endswith("}text")]
        for group in svg.iter()
        if "role-axis-label" in (group.get("class") or "")
    ]
    wanted = [str(v) for v in (shown or offsets)]
    assert wanted in axes and all(own == wanted for own in axes if len(own) > 1)


def test_caches_end_only_at_sizes_that_say_where_the_bytes_lie():
    """Steps through two buffers of 4 MiB lie where these lie, whatever their size."""
    for where, lines in (({"walk": "stream", "buffer": 4 << 20}, False), ({}, True)):
        run = runs.empty()
        runs.add(run, "sizes", [{"size": 4096 << n} | where for n in range(9)])
        found = [p for p in pictures.of(run, "sizes") if p.key.startswith("curves")]
        (drawn,) = found
        assert ("L1d" in json.dumps([view.spec for view in drawn.views])) == lines
        assert ("sizes of the caches" in drawn.how) == lines


@pytest.mark.parametrize(
    ("largest", "names", "said"),
    [
        (4096, ("libc", "wherry"), "rounds."),
        (4096, ("libc", "call_floor"), "Dashed grey lines are limits and yardsticks."),
        (1 << 20, ("libc", "wherry"), "Dashed upright lines are the sizes of the caches."),
        (1 << 20, ("libc", "call_floor"), "yardsticks, upright ones the sizes of the caches."),
    ],
)
def test_the_words_below_curves_tell_of_no_line_that_is_not_there(largest, names, said):
    run = runs.empty()
    runs.add(run, "small", [{"size": size} for size in (64, 1024, largest)], names)
    (drawn,) = (p for p in pictures.of(run, "small") if p.key.startswith("curves"))
    assert drawn.how.endswith(said)


def test_sizes_with_a_zero_lie_along_a_logarithm_too(tmp_path):
    """As Go's own BenchmarkMemmove/0 to /4096: along a line all but the last would lie in a heap."""
    run = runs.empty()
    runs.add(run, "sizes", [{"size": size} for size in (0, 1, 16, 64, 1024, 4096)])
    (drawn,) = (p for p in pictures.of(run, "sizes") if p.key.startswith("curves"))
    assert "logarithmic, with a place for size 0" in drawn.how
    svg = xml.etree.ElementTree.fromstring(still.draw(run, "sizes", tmp_path / "a.svg"))
    at = {
        text.text: float(along[1])
        for group in svg.iter()
        if "role-axis-label" in (group.get("class") or "")
        for text in group.findall(".//{*}text")
        if (along := re.match(r"translate\(([\d.]+),", text.get("transform")))
    }
    assert at["0"] < 1 < at["1"] < at["16"] and at["4K"] > at["1K"]
    assert (at["1K"] - at["64"]) / (at["4K"] - at["1K"]) == pytest.approx(2, rel=0.03)


def test_every_legend_entry_has_its_swatch(tmp_path):
    """Something with an area, in a colour: a stroke without one is not drawn where marks are filled."""
    run = runs.every_kind()
    assert "limit" in {s for p in pictures.of(run, "scoreboard") for s in p.series}
    for own in run["experiments"]:
        svg = xml.etree.ElementTree.fromstring(still.draw(run, own["name"], tmp_path / "a.svg"))
        symbols = [e for e in svg.iter() if "role-legend-symbol" in (e.get("class") or "")]
        for symbol in symbols:
            (path,) = symbol
            filled = path.get("fill") not in (None, "transparent", "none")
            inked = filled and set("ZA") & set(path.get("d"))
            stroked = path.get("stroke") not in (None, "transparent", "none")
            assert inked or stroked, (own["name"], path.attrib)


def test_still_pictures_of_hostile_and_absurd_runs(tmp_path):
    for run in (runs.hostile(), runs.absurd()):
        for own in run["experiments"]:
            try:
                svg = still.draw(run, own["name"], tmp_path / "a.svg").decode()
            except WherryError as error:
                assert len(str(error)) < 600
                continue
            tree = xml.etree.ElementTree.fromstring(svg)
            assert not any(e.tag.endswith("script") for e in tree.iter())


def test_figures_beyond_all_reason_are_told_by_name(tmp_path, wherry):
    run = runs.every_kind(experiments=("sizes", "mixes"))
    for cell in run["cells"]:
        cell["ns"]["median"] = 1e-308 if cell["experiment"] == "sizes" else 2.0
    done = wherry("report", runs.write(tmp_path / "r.json", run), "--plot", tmp_path / "p.svg")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("wherry: experiment sizes could not be drawn: ")


def test_several_experiments_get_a_file_each(tmp_path, wherry):
    run = runs.write(tmp_path / "r.json", runs.every_kind())
    result = wherry("report", run, "--plot", tmp_path / "p.svg", "--experiment", "sizes,mixes")
    assert result.returncode == 0, result.stderr
    assert sorted(p.name for p in tmp_path.glob("*.svg")) == ["p-mixes.svg", "p-sizes.svg"]
    assert f"Plot: {tmp_path}/p-sizes.svg" in result.stdout


def test_experiments_whose_names_are_paths_get_a_file_each(tmp_path, wherry):
    """As those of Go's packages are; and names that are one when it is shortened to what a file may be called."""
    packages = ("a/b", "a:b", "long" * 20 + "1", "long" * 20 + "2")
    lines = [
        f"pkg: {own}\nBenchmarkMemcpy/{size}-8 9 2 ns/op\n" for own in packages for size in (8, 64)
    ]
    (tmp_path / "go.txt").write_text("".join(lines))
    done = wherry("report", "go.txt", "--plot", "p.svg", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    long = f"p-go_{('long' * 20)[:37]}"
    names = ["p-go_a_b.svg", "p-go_a_b~2.svg", f"{long}.svg", f"{long}~2.svg"]
    assert sorted(p.name for p in tmp_path.glob("*.svg")) == names
    assert done.stdout == "".join(f"Plot: {name}\n" for name in names)


def test_the_kernels_copies_are_drawn_as_routines_and_ratios_only_where_there_are():
    run = made_runs.usual(1).run
    rows = [r | {"op": "copy_csum"} for r in run["rows"] if r["experiment"] == "small"]
    cells = [
        c | {"op": "copy_csum", "ratio": None} for c in run["cells"] if c["experiment"] == "small"
    ]
    bare = run | {"rows": rows, "cells": cells}
    with_libc, without = (
        [view.name for p in pictures.of(own, "small") if not p.own_look for view in p.views]
        for own in (run, bare)
    )
    assert "time over libc's" in with_libc and without
    assert "time over libc's" not in without
    styles = look.styles([["libc", "pipe", "tcp", "syscall_floor"]])
    assert {"pipe", "tcp"} <= KERNEL and "syscall_floor" not in KERNEL
    assert not styles["pipe"].yardstick and styles["syscall_floor"].yardstick
    assert styles["pipe"].light != styles["tcp"].light
    assert dimensions.in_order(["syscall_floor", "pipe", "libc"])[-1] == "syscall_floor"


@pytest.mark.parametrize(
    ("rows", "title", "first"),
    [
        ([{"mix": "uniform:0-64"}, {"mix": "log:1-4096"}], "By mix: copy, in L1", "time per call"),
        ([{"size": 64}, {"size": 1 << 20}], "Case by case: copy, in L1", "time per call"),
        ([{"size": 1 << 16}, {"size": 1 << 20}], "Case by case: copy, in L1", "GB/s"),
    ],
)
def test_bars_tell_what_each_took(rows, title, first):
    """Large ones by their rate first, whose quartiles are the other way round."""
    run = runs.empty()
    runs.add(run, "cells", rows, ("libc", "wherry"))
    (found,) = pictures.of(run, "cells")
    assert (found.title, found.views[0].name) == (title, first) and len(found.views) == 3
    values = {key: list(column) for key, column in found.columns.items()}
    for i, cell in enumerate(run["cells"]):
        ns, ratio = cell["ns"], cell["ratio"] or {}
        told = {"ns": ns["median"], "q25": ns["q25"], "q75": ns["q75"], "routine": cell["routine"]}
        told |= {"rate": cell["bytes"] / ns["median"], "rounds": cell["rounds"]}
        told |= {"rate25": cell["bytes"] / ns["q75"], "rate75": cell["bytes"] / ns["q25"]}
        told |= {"ratio": ratio.get("median"), "low": ratio.get("low"), "high": ratio.get("high")}
        for key, value in told.items():
            same = value if isinstance(value, str | None) else pytest.approx(value, rel=1e-3)
            assert values[key][i] == same, key


def test_regions_are_drawn_as_times_whatever_their_unit():
    """Of a region whose figures are rates the largest is the best."""
    ratios, figures = regions.pictures(runs.score())
    told = ratios.columns
    assert told["against"][:2] == [regions.BEST, regions.LIBC]
    assert [told[key][:2] for key in ("ratio", "low", "high")] == [
        [0.7, 0.5],
        [0.6, 0.4],
        [0.8, 0.6],
    ]
    assert (told["peer"][:2], told["verdict"][:2]) == (["a_peer", "libc"], ["ahead", None])
    own = {
        (region, routine): (over, figure)
        for region, routine, over, figure in zip(
            *(figures.columns[key] for key in ("region", "routine", "over", "figure")), strict=True
        )
    }
    for number, (unit, values) in {
        0: ("ns", {"wherry": 1.0, "libc": 1.1, "a_peer": 1.2, "limit": 0.5}),
        3: ("GB/s", {"wherry": 1.2, "libc": 12 / 11, "a_peer": 1.0, "limit": 2.4}),
    }.items():
        for routine, over in values.items():
            found, figure = own[f"region-{number}", routine]
            assert found == pytest.approx(over) and figure.endswith(unit), (number, routine)
