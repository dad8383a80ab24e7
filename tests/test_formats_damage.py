"""Files of other tools and mixes as they come off other systems, and damaged at random: read or refused in one line."""

from __future__ import annotations

import codecs
import json
import random

import pytest
from made_runs import usual
from test_formats import entry, gbench, glibc, saved
from wherry import mixes, runfile
from wherry.errors import WherryError
from wherry.formats import export, files
from wherry.formats.samples import Samples

FINE = {
    "google-benchmark": json.dumps(gbench(entry("BM_memcpy/64", 3.0)), indent=1),
    "benchfmt": "goos: linux\nBenchmarkMemcpy/size=64-8 1000 3.5 ns/op\nBenchmarkSet 1 9 ns/op\n",
    "benchtests": json.dumps(glibc(), indent=1),
}


@pytest.mark.parametrize("form", FINE)
def test_marks_and_line_ends_of_other_systems_change_nothing(tmp_path, form):
    plain, *marked = (
        files.load(saved(tmp_path / "f", data))
        for data in (
            FINE[form].encode(),
            b"\xef\xbb\xbf" + FINE[form].replace("\n", "\r\n").encode(),
            FINE[form].replace("\n", "\r\n").encode("utf-16"),
            codecs.BOM_UTF16_BE + FINE[form].encode("utf-16-be"),
        )
    )
    assert all(own["cells"] == plain["cells"] for own in marked) and len(plain["cells"])
    with pytest.raises(WherryError, match="not text"):
        files.load(saved(tmp_path / "f", FINE[form].encode("utf-16") + b"\x00\xd8"))


@pytest.mark.parametrize("form", FINE)
def test_damage_of_any_kind_is_answered_in_one_line(tmp_path, form):
    """Cut anywhere, and changed at random: read, or refused in a line that names the file."""
    chance, text = random.Random(5), FINE[form].encode()
    signs = b'0123456789.,:{}[]"-eENa\n\r\t /=\x00\xff'
    damaged = [text[: len(text) * i // 60] for i in range(60)]
    for _ in range(400):
        own = bytearray(text)
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(own))
            own[at : at + chance.choice((0, 1, 8))] = bytes(
                chance.choices(signs, k=chance.randint(1, 9))
            )
        damaged.append(bytes(own))
    refused = 0
    for data in damaged:
        path = saved(tmp_path / "bad", data)
        try:
            files.load(path)
        except WherryError as error:
            refused += 1
            assert "\n" not in str(error) and "bad" in str(error) and len(str(error)) < 400
    assert refused > 60


def test_times_beyond_all_reason_are_left_out_or_have_no_rate(tmp_path):
    """So small that bytes over it are infinite; so large only once its unit is taken in."""
    tiny = entry("BM_memcpy/64", 1e-308)
    large = entry("BM_memset/64", 5e17, time_unit="s")
    run = files.load(saved(tmp_path / "g", gbench(tiny, large)))
    (cell,) = run["cells"]
    assert (cell["op"], cell["bytes"]) == ("copy", 64)
    for name in export.FORMATS:
        text = export.text(name, run, Samples(run))
        assert "inf" not in text.lower() and "1e-308" in text
    text = "BenchmarkMemcpy/64 1 5e17 ms/op\nBenchmarkMemset/64 1 2 ns/op\n"
    (cell,) = files.load(saved(tmp_path / "go", text))["cells"]
    assert cell["op"] == "set"


MIXES = {
    "fleetbench": b"8:0.5,64:0.25,128:0.25\n0:0.9,1:0.1\n1:0.5,64:0.5\n",
    "llvm": b"0.1,0.2,0.3,0.4\n",
}


@pytest.mark.parametrize("form", MIXES)
def test_mixes_of_other_systems_and_damaged_ones(tmp_path, form):
    path = tmp_path / "memcpy_x.csv"
    plain = mixes.read(saved(path, MIXES[form]))
    marked = mixes.read(saved(path, b"\xef\xbb\xbf" + MIXES[form].replace(b"\n", b"\r\n")))
    assert marked.shares == plain.shares and plain.mean > 1
    chance, refused = random.Random(7), 0
    for _ in range(400):
        own = bytearray(MIXES[form])
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(own))
            own[at : at + chance.choice((0, 1, 5))] = bytes(
                chance.choices(b"0123456789.,:-eE\n\r \x00\xff", k=2)
            )
        try:
            found = mixes.read(saved(path, bytes(own)))
            assert all(
                0 <= size <= 1 << 30 and share > 0 for size, share in found.shares[0].items()
            )
        except WherryError as error:
            refused += 1
            assert "\n" not in str(error) and "memcpy_x" in str(error) and len(str(error)) < 400
    assert refused > 60


def test_a_run_file_with_a_mark_is_the_same_run(tmp_path):
    run = usual(1).run
    path = saved(tmp_path / "r.json", b"\xef\xbb\xbf" + runfile.encode(run))
    assert runfile.read(path)["cells"] == json.loads(runfile.encode(run))["cells"]
