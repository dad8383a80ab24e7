"""Mixes in the forms of fleetbench and LLVM libc: read, written, listed, drawn; bad ones refused by line and column."""

from __future__ import annotations

import json
import math
import os
import random
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from wherry import mixes, mixfiles, mixplots
from wherry.errors import WherryError

# Beside the repository, where the files that fleetbench publishes are kept; other machines lack them.


def mix(tmp_path: Path, text: str, name: str = "m.csv") -> mixes.Mix:
    (tmp_path / name).write_text(text)
    return mixes.gather([str(tmp_path / name)])[0]


def shares(found: mixes.Mix) -> dict[int, float]:
    total = math.fsum(found.shares[0].values())
    return {size: share / total for size, share in found.shares[0].items()}


# ---- reading ---------------------------------------------------------------------------------------------------------


def test_a_range_is_listed_as_bench_takes_it(call):
    status, out, _ = call("list", "mixes", "--mix", "log:1-8K", "--json")
    listed = {mix["name"]: mix for mix in json.loads(out)}
    assert status == 0 and listed["log:1-8192"]["largest"] == 8192
    status, out, _ = call("list", "mixes", "--mix", "uniform:3-9,uniform:0-64", "--json")
    names = [mix["name"] for mix in json.loads(out)]
    assert status == 0 and names.count("uniform:3-9") == names.count("uniform:0-64") == 1
    assert len(names) > len(mixes.built_in())
    assert "median" in call("list", "mixes", "--mix", "uniform:3-9", "uniform:3-9")[1]
    status, out, _ = call("list", "mixes", "--mix", "uniform:3-9", "--export", "r.csv")
    assert status == 0 and mixes.read(Path("r.csv")).shares[0].keys() == set(range(3, 10))
    for wrong in ("uniform:0-1T", "log:9"):
        status, _, err = call("list", "mixes", "--mix", wrong)
        assert status == 2 and "no range of sizes; give uniform:LO-HI" in err
    status, _, err = call("list", "mixes", "--mix", "uniform:0-1M", "--export", "r2.csv")
    assert status == 2 and "more sizes than a file has room for" in err


def test_a_dense_list_has_the_probability_of_each_size(tmp_path):
    assert shares(mix(tmp_path, "0,1\n")) == {1: 1.0}
    assert shares(mix(tmp_path, "0.5,0.5\n")) == {0: 0.5, 1: 0.5}
    found = mix(tmp_path, "0.25, 0, 5e-1,0,0.25,\n")
    assert shares(found) == {0: 0.25, 2: 0.5, 4: 0.25}
    assert found.mean == 2 and found.largest == 4
    # The runner knows one of the forms; it gets that.
    assert Path(found.spec[1:]).read_text() == "0:0.25,2:0.5,4:0.25\n"


@pytest.mark.parametrize(
    ("name", "ops"),
    [
        ("MemcpyGoogleA", ("copy",)),
        ("MemsetGoogleB", ("set",)),
        ("Memmove_0", ("move",)),
        ("memcpy", ("copy",)),
        ("Uniform384To4096", ("copy", "move", "set")),
        ("memcpyish", ("copy", "move", "set")),
        ("gcc.set", ("set",)),
        ("memset_bench.copy", ("copy",)),
        ("move", ("copy", "move", "set")),
        ("gcc.zero", ("copy", "move", "set")),
    ],
)
def test_names_tell_the_function(tmp_path, name, ops):
    assert mix(tmp_path, "0,1\n", f"{name}.csv").ops == ops


def test_a_function_that_is_no_op_is_refused(tmp_path):
    with pytest.raises(WherryError, match="none of memcpy"):
        mix(tmp_path, "0,1\n", "MemcmpGoogleA.csv")


BAD = {
    "negative": ("0.5,-0.5\n", "'-0.5' in line 1, column 5 (size 1)"),
    "nan": ("0.5,0.2,nan\n", "'nan' in line 1, column 9 (size 2)"),
    "first nan": ("nan,1\n", "'nan' in line 1, column 1 (size 0)"),
    "infinite": ("0.5,inf\n", "column 5"),
    "overflow": ("1e999,0.5\n", "1e999 in line 1, column 1 (size 0) is above 1"),
    "word": ("0.5,half\n", "'half' in line 1, column 5"),
    "hole": ("0.5,,0.5\n", "'' in line 1, column 5"),
    "mixed": ("0.5,8:0.5\n", "size:probability throughout"),
    "sizes alone": ("8,64\n", "is above 1, so no probability"),
    "sum": ("0,0,0\n", "line 1 have no sum to scale to 1"),
    "huge sum": ("8:1e308,9:1e308\n", "line 1 have no sum to scale to 1"),
    "cut off": (
        "8:0.5,16:0.25,32:0.125\n",
        "of line 1 add up to 0.875, not to 1: the file is cut off",
    ),
    "cut off, dense": ("0.5,0.25\n", "of line 1 add up to 0.75, not to 1"),
    "cut off, alignments": ("8:1\n0:1\n1:0.25,2:0.5\n", "of line 3 add up to 0.75"),
    "neither": ("8:2.5,64:1\n", "add up to 3.5, not to 1"),
    "two lines": ("0.5,0.5\n0.5,0.5\n", "more than one line of probabilities (line 2)"),
    "many": ("1," * 65537 + "1\n", "more than 65536 sizes"),
    "unordered": ("8:0.5,4:0.5\n", "size 4 comes after 8 (line 1, column 7)"),
    "twice": ("8:0.5,8:0.5\n", "size 8 comes after 8 (line 1, column 7)"),
    "alignments": ("8:1\n0:1\n4:0.5,2:0.5\n", "alignment 2 comes after 4 (line 3, column 7)"),
    "sparse negative": ("8:0.5,16:-1\n", "'16:-1' in line 1 is not size:probability (column 7)"),
    "sparse nan": ("8:nan\n", "'8:nan' in line 1 is not size:probability (column 1)"),
    "too large": (
        "8:0.5,1073741825:0.5\n",
        "size 1073741825 in line 1, column 7 is above 1 GiB (1073741824 bytes), and no call of more is measured",
    ),
    "far too large": (
        "8:0.5,99999999999999:0.5\n",
        "size 99999999999999 in line 1, column 7 is above 1 GiB",
    ),
    # The runner would end the line there.
    "return inside": (
        "8:0.5,\r64:0.5\n",
        "'\\r64:0.5' in line 1 is not size:probability (column 7)",
    ),
    "return inside, alignments": ("8:1\n0:1\n8:1\r1", "'8:1\\r1' in line 3"),
    "fourth line": ("8:1\n0:1\n1:1\n\n8:1\n", "line 5 is one too many"),
    "empty": (b"", "is empty"),
    "blank": (b"\n\n", "is empty"),
    "words": (b"hello, world\n", "'hello' in line 1 is not size:probability"),
    "zero": (b"8:0\n", "no sum"),
    "infinite, sparse": (b"8:1e999\n", "no sum"),
    "blanks": (b"8:0.5, 16:0.5\n", "not size:probability"),
    "overlap": (b"8:1\n2:1\n", "line 2 is not overlap:probability"),
    "alignment": (b"8:1\n0:1\n3:1\n", "line 3 is not alignment:probability"),
    "four": (b"8:1\n0:1\n1:1\n8:1\n", "more than three lines"),
    "binary": (bytes(range(256)), "is not text"),
    "huge": (b"8:1," * (1 << 20) + b"8:1,8:1", "too large"),
    "many, sparse": (b",".join(b"%d:1" % i for i in range(70000)), "more than 65536"),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_what_is_wrong_is_told_by_line_and_column(tmp_path, case, call):
    data, said = BAD[case]
    (tmp_path / "m.csv").write_bytes(data if isinstance(data, bytes) else data.encode())
    status, out, err = call("list", "mixes", "--mix", "m.csv")
    assert status == 2 and out == "" and err.count("\n") == 1
    assert said in err and "m.csv" in err and len(err) < 400


@pytest.mark.parametrize("text", ["1:0.33,2:0.33,3:0.33\n", "1:0.9999985\n", "0.5,0.4985\n"])
def test_rounded_probabilities_are_taken(tmp_path, text):
    assert sum(shares(mix(tmp_path, text)).values()) == pytest.approx(1)


def test_of_a_cut_off_file_the_sum_is_told(tmp_path, call):
    (tmp_path / "all").mkdir()
    assert call("list", "mixes", "--export", "all", "--format", "fleetbench")[0] == 0
    tried = 0
    for path in sorted((tmp_path / "all").iterdir()):
        first = path.read_text().splitlines()[0]
        cut = first[: len(first) // 2].rpartition(",")[0] + "\n"
        left = math.fsum(float(entry.partition(":")[2]) for entry in cut.split(",") if ":" in entry)
        if 0 < left < 0.98:
            tried += 1
            with pytest.raises(WherryError, match=r"line 1 add up to 0\.\d+, not to 1"):
                mix(tmp_path, cut)
    assert tried > 10


def test_whole_numbers_are_counts(tmp_path):
    assert shares(mix(tmp_path, "8:3,64:1\n")) == {8: 0.75, 64: 0.25}


# ---- writing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", mixfiles.FORMS)
def test_round_trips_keep_the_shares(tmp_path, form, call):
    rng = random.Random(7)
    drawn = {rng.randrange(4097): rng.random() ** 4 for _ in range(600)}
    total = sum(drawn.values())
    text = ",".join(f"{n}:{share / total:.6g}" for n, share in sorted(drawn.items())) + "\n"
    (tmp_path / "first.csv").write_text(text)
    for source, target in (("first.csv", "second.csv"), ("second.csv", "third.csv")):
        status, _, err = call(
            "list", "mixes", "--mix", source, "--export", target, "--format", form
        )
        assert (status, err) == (0, "")
    first, second = (mixes.gather([name])[0] for name in ("first.csv", "second.csv"))
    assert shares(second) == pytest.approx(shares(first), rel=1e-6, abs=1e-9)
    assert (tmp_path / "second.csv").read_text() == (tmp_path / "third.csv").read_text()
    assert mixfiles.form_of((tmp_path / "second.csv").read_text()) == form
    assert second.percentiles == first.percentiles


def test_overlaps_and_alignments_go_along_where_they_can(tmp_path, call):
    text = "1:0.5,64:0.5\n\n1:0.25,64:0.75\n"
    (tmp_path / "m.csv").write_text(text)
    call("list", "mixes", "--mix", "m.csv", "--export", "f.csv")
    assert (tmp_path / "f.csv").read_text() == text
    _, _, err = call("list", "mixes", "--mix", "m.csv", "--export", "l.csv", "--format", "llvm")
    assert "left out" in err
    assert mixes.gather(["l.csv"])[0].shares[0] == {1: 0.5, 64: 0.5}


def test_built_in_mixes_are_written_too(tmp_path, call):
    (tmp_path / "all").mkdir()
    assert call("list", "mixes", "--export", "all", "--format", "llvm")[0] == 0
    fitting = [m for m in mixes.shipped(runnable=False) if m.largest <= 1 << 20]
    assert len(list((tmp_path / "all").iterdir())) == len(mixes.built_in()) + len(fitting)
    for own in mixes.built_in():
        again = mixes.gather([f"all/{own.name.replace(':', '-')}.csv"])
        (found,) = [m for m in again if m.name == own.name.replace(":", "-")]
        assert shares(found) == pytest.approx(shares(own), rel=1e-6)


def test_what_is_exported_comes_back_as_its_op(tmp_path, call):
    part = {"calls": 2, "bytes": 20, "sizes": [[10, 10, 2, 20]]}
    document = {"format": "wherry-mix", "version": 1, "name": "x"}
    document["ops"] = dict.fromkeys(mixes.OPS.values(), part)
    # Named after a function, and longer than a name is shown.
    names = ("all", "memset_bench", "l" * 60)
    (tmp_path / "out").mkdir()
    (tmp_path / "again").mkdir()
    for name in names:
        (tmp_path / f"{name}.mix.json").write_text(json.dumps(document))
        words = ("list", "mixes", "--mix", f"{name}.mix.json", "--export", "out")
        assert call(*words)[::2] == (0, "")
    assert call("list", "mixes", "--mix", "out", "--export", "again")[::2] == (0, "")
    for home in ("out", "again"):
        found = {mix.name: mix.ops for mix in mixes.gather([home])}
        assert sorted(found.values()) == sorted([("copy",), ("move",), ("set",)] * len(names))
        assert found["all.copy"] == ("copy",) and found["memset_bench.copy"] == ("copy",)


def test_a_name_that_does_not_say_the_op_is_told(tmp_path, call):
    status, _, err = call("list", "mixes", "gcc.copy", "--export", "mine.csv")
    assert status == 0 and err.count("\n") == 1
    assert "is read as for copy, move, set; mine.copy.csv would say so" in err
    assert call("list", "mixes", "gcc.copy", "--export", "Memcpy_9.csv")[::2] == (0, "")
    assert "is read as for set" in call("list", "mixes", "gcc.copy", "--export", "Memset_9.csv")[2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--export", "x.csv"), "do not go into one file"),
        (("--export", "x.csv", "uniform:0-17"), "did you mean uniform:0-16?"),
        (("--export", "x.csv", "--format", "lvm", "log:1-4096"), "did you mean llvm?"),
        (("--format", "llvm"), "goes with --export"),
        (("--json", "--export", "x.csv", "log:1-4096"), "--json prints the list, and --export"),
        (("--json", "--plot", "x.svg"), "--json prints the list, and --plot"),
        (("--mix", "big.csv", "--export", "big.csv"), "that is a mix that is read itself"),
        (("--mix", ".", "--export", "./big.csv", "big"), "that is a mix that is read itself"),
        (("--mix", "big.csv", "--export", "x.csv", "--format", "llvm"), "use --format fleetbench"),
        (("--plot", "x.pdf"), ".png or .svg"),
        (("--mix", "none.csv"), "No such file"),
    ],
)
def test_misuse_is_one_line(tmp_path, call, arguments, said):
    (tmp_path / "big.csv").write_text("1:0.5,9999999:0.5\n")
    status, out, err = call("list", "mixes", *arguments)
    assert status == 2 and out == "" and err.count("\n") == 1 and said in err
    assert not (tmp_path / "x.csv").exists()


def test_options_of_mixes_are_for_mixes(call):
    for arguments in (("--plot", "x.svg"), ("--export", "x"), ("--mix", "x"), ("more",)):
        status, _, err = call("list", "regions", *arguments)
        assert status == 2 and "goes with wherry list mixes" in err


# ---- seeing ----------------------------------------------------------------------------------------------------------


def test_classes_add_up():
    for own in mixes.built_in():
        assert math.fsum(mixplots.by_class(own).values()) == pytest.approx(1)
        assert math.fsum(mixplots.bytes_by_class(own).values()) == pytest.approx(1)
    (even,) = [m for m in mixes.built_in() if m.name == "log:1-4096"]
    # As many calls in each doubling: that is what log-uniform means.
    classes = mixplots.by_class(even)
    assert [classes[n] for n in range(1, 13)] == pytest.approx([1 / 12] * 12, abs=0.001)


def test_a_file_stands_in_the_place_of_what_has_its_name(tmp_path, call, wherry_run):
    """`wherry record -o gcc.mix.json`, say: what is listed and measured as gcc.copy is that, once."""
    sizes = {"calls": 3, "bytes": 21, "sizes": [[7, 7, 3, 21]]}
    recorded = {"format": "wherry-mix", "version": 1, "name": "gcc", "ops": {"copy": sizes}}
    (tmp_path / "gcc.mix.json").write_text(json.dumps(recorded))
    (tmp_path / "tar.copy.csv").write_text("5:1\n")
    for file, name, size in (("gcc.mix.json", "gcc", 7), ("tar.copy.csv", "tar.copy", 5)):
        listed = json.loads(call("list", "mixes", "--mix", file, "--json")[1])
        assert [m["largest"] for m in listed if m["name"].startswith(name)] == [size]
        assert [
            m["largest"]
            for m in json.loads(call("list", "mixes", "--mix", file, name, "--json")[1])
        ] == [size]
        words = ("--op", "copy", "--mix", file, "--routine", "rep_movsb", "--state", "L1")
        short = ("--quick", "--processes", "1", "--rounds", "1", "--save", f"{name}.json")
        status, out, _ = call("bench", "mixes", *words, *short)
        assert status == 0
        assert f"{name.partition('.')[0]}.copy: p10 {size}, median {size}" in " ".join(out.split())
        rows = [row["mix"] for row in json.loads((tmp_path / f"{name}.json").read_text())["rows"]]
        assert len(rows) == len(set(rows))
    same = json.loads(call("list", "mixes", "--mix", "uniform:0-16", "--json")[1])
    assert same == json.loads(call("list", "mixes", "--json")[1])


def test_the_list_has_percentiles_and_a_plot(call, tmp_path):
    status, out, _ = call("list", "mixes")
    assert status == 0 and "median" in out and "p99" in out
    names = [own.name for own in (*mixes.built_in(), *mixes.shipped(runnable=False))]
    plots = {line.split()[0]: line for line in out.splitlines() if "█" in line}
    assert set(plots) == set(names)
    # The longest bar stands where most calls are: above the 8 for sizes from 8 to 15.
    axis = next(line for line in out.splitlines() if line.split()[:2] == ["bytes", "0"])
    assert plots["uniform:0-16"].index("█") == axis.index(" 8 ") + 1
    assert len({own["name"] for own in json.loads(call("list", "mixes", "--json")[1])}) == len(
        names
    )


def test_a_named_mix_is_shown_class_by_class(call, tmp_path):
    (tmp_path / "m.csv").write_text("0:0.5,5:0.25,6:0.125,4096:0.125\n0:0.9,1:0.1\n1:0.5,64:0.5\n")
    out = call("list", "mixes", "m", "--mix", "m.csv")[1]
    lines = {line.split()[0]: line.split() for line in out.splitlines() if "█" in line}
    assert set(lines) == {"0", "4-7", "4K-8K"}
    assert lines["4-7"][2:] == ["38", "%", "88", "%", "0.4", "%"]
    assert "overlap 0: 90 %, 1: 10 %" in out and "alignment 1: 50 %, 64: 50 %" in out


def test_drawn_as_svg_and_png(call, tmp_path):
    pytest.importorskip("vl_convert", reason="vl-convert-python is not installed: tools/setup test")
    assert call("list", "mixes", "--plot", "m.svg")[0] == 0
    text = (tmp_path / "m.svg").read_text()
    ET.fromstring(text)
    for own in mixes.built_in():
        assert own.name in text
    assert call("list", "mixes", "log:1-4096", "--plot", "m.png")[0] == 0
    assert (tmp_path / "m.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    marks = mixplots.spec(mixes.built_in())["vconcat"]
    assert all(len(part["data"]["values"]) > 40 for part in marks)


@pytest.mark.parametrize(
    "word", ["uniform:0-1T", "uniform:9", "log:", "UNIFORM:x-y", "uniform:0-16,log:1-4T"]
)
@pytest.mark.parametrize("command", [("bench", "mixes", "--quick", "--mix"), ("replay",)])
def test_what_was_meant_as_a_range_is_told_as_one(wherry, tmp_path, command, word):
    done = wherry(*command, word, cwd=tmp_path)
    assert done.returncode == 2
    said = f"wherry: {word.split(',')[-1]}: no range of sizes; give uniform:LO-HI or log:LO-HI in"
    assert done.stderr.startswith(said) and len(done.stderr.splitlines()) == 1


def test_a_file_may_be_called_as_a_range_is(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WherryError, match="no range of sizes"):
        mixes.not_a_broken_range("uniform:x")
    (tmp_path / "uniform:x").write_text("0.5,0.25,0.25\n")
    mixes.not_a_broken_range("uniform:x")


def test_built_in_mixes_are_what_they_say():
    own = {mix.name: mix for mix in mixes.built_in()}
    assert dict(own["uniform:0-64"].percentiles)[50] == 32 and own["uniform:0-64"].mean == 32
    assert own["log:1-4096"].largest == 4096 and own["log:1-4096"].share_64 == pytest.approx(
        0.5, abs=0.01
    )


def test_other_things_that_are_no_mix(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "none").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "Bcmp_0.csv").write_text("1:1\n")
    for name, said in (
        ("missing", "No such file or directory$"),
        (
            "gcc.copy",
            "No such file.*; gcc.copy comes with Wherry: wherry list mixes gcc.copy --exp",
        ),
        ("pipe", "not a file"),
        ("none", "holds no .csv"),
        ("other", "none of its .csv files is for"),
        ("other/Bcmp_0.csv", "which is none of memcpy"),
    ):
        with pytest.raises(mixes.WherryError, match=said):
            mixes.gather([str(tmp_path / name)])


def test_mixes_of_one_name_stay_apart(tmp_path):
    for part in ("a", "b"):
        (tmp_path / part).mkdir()
        (tmp_path / part / "web server.csv").write_text("8:1\n")
    found = mixes.gather([str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "a")])
    assert [mix.name for mix in found] == ["web_server", "web_server~2"]
    assert all(len(mix.ops) == 3 and " " not in mix.spec for mix in found)
    sizes = {"calls": 1, "bytes": 7, "sizes": [[7, 7, 1, 7]]}
    recorded = {"format": "wherry-mix", "version": 1, "name": "web", "ops": {"copy": sizes}}
    (tmp_path / "a" / "web.mix.json").write_text(json.dumps(recorded))
    (tmp_path / "a" / "web.copy.csv").write_text("9:1\n")
    found = mixes.gather([str(tmp_path / "a" / name) for name in ("web.mix.json", "web.copy.csv")])
    assert [(mix.name, mix.largest) for mix in found] == [("web.copy", 7), ("web.copy~2", 9)]
    assert len({mix.spec for mix in found}) == 2
