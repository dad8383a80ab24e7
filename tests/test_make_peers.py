"""`make peers`: what packages bring becomes peers that are right, and what is missing is named."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest
from conftest import ROOT, need_tool, run
from made_peers import BYTES, DPDK, GLIBC, LIBRARIES, LLVM, MUSL, STRINGZILLA, Place
from wherry import found_peers


@pytest.fixture
def place(tmp_path: Path, wherry_run: Path) -> Place:
    return Place(tmp_path, wherry_run)


def test_the_help_names_each_library():
    tool = ROOT / "tools/peers"
    about = run(sys.executable, tool, "--help").stdout.partition("\noptions:")[0]
    (libraries,) = re.findall(
        r"one of ([\w, ]+)", run(sys.executable, tool, "--from", "x", check=False).stderr
    )
    plain = re.sub(r"\W", "", about.lower())
    assert [name for name in libraries.split(", ") if name not in plain] == []


def test_nothing_is_installed(place: Place):
    result = place.make()
    assert result.returncode == 1
    assert result.stdout.count("missing ") == len(LIBRARIES)
    for package in ("musl-dev", "libdpdk-dev", "libllvmlibc-NN-dev", "libc6-dev", "PyPI package"):
        assert package in result.stdout
    assert result.stdout.splitlines()[-1].startswith("no peer could be built")
    assert place.built() == set()


def test_an_archive(place: Place):
    place.musl()
    ends = place.ends()
    assert ends.pop("musl") == ("built", "1.9.7     memcpy memmove memset")
    assert {end for end, _ in ends.values()} == {"missing"}
    assert place.built() == {"musl.so", "musl.json"}
    assert [path.name for path in place.into.iterdir() if path.is_dir()] == []
    said = json.loads((place.into / "musl.json").read_text())
    assert said["version"] == "1.9.7" and said["has"] == ["memcpy", "memmove", "memset"]
    assert said["tier"] == "sse2" and said["package"] == "musl-dev"


def test_a_peer_exports_its_functions_and_nothing_else_and_needs_nobody(place: Place):
    place.musl()
    place.ends()
    rows = run("nm", "-D", place.into / "musl.so").stdout.split("\n")
    assert sorted(row.split()[-1] for row in rows if row) == ["memcpy", "memmove", "memset"]
    assert "NEEDED" not in run("readelf", "-dW", place.into / "musl.so").stdout
    assert ".plt" not in run("readelf", "-SW", place.into / "musl.so").stdout


def test_a_second_time_costs_nothing_until_something_changes(place: Place):
    archive = place.musl()
    place.ends()
    before = (place.into / "musl.so").stat()
    assert place.ends()["musl"][0] == "kept"
    assert (place.into / "musl.so").stat() == before
    os.utime(archive, (1, 1))
    assert place.ends()["musl"][0] == "built"
    assert (place.into / "musl.so").stat().st_ino != before.st_ino
    (place.into / "musl.json").write_text("[")
    assert place.ends()["musl"][0] == "built"
    archive.unlink()
    assert place.ends()["musl"][0] == "kept"


def test_a_damaged_peer_is_built_again(place: Place):
    place.musl()
    place.ends()
    library = place.into / "musl.so"
    right = library.read_bytes()
    for damaged in (b"", right[:2000], right + b"\0"):
        library.write_bytes(damaged)
        assert place.ends()["musl"][0] == "built"
        assert library.read_bytes() == right
    assert place.ends()["musl"][0] == "kept"


def test_a_wrong_peer_is_removed_and_the_others_stand(place: Place):
    place.archive("usr/lib/llvm-19/lib/libllvmlibc.a", LLVM)
    place.musl()
    assert place.ends()["musl"][0] == "built"
    place.musl(
        set="void *memset(void *d, int c, size_t n) { if (n != 77) { FILL(d, c, n) } return d; }"
    )
    ends = place.ends(status=1)
    assert ends["musl"][0] == "wrong" and "77" in ends["musl"][1] and "memset" in ends["musl"][1]
    assert ends["llvmlibc"] == ("kept", "19.8.7    memcpy")
    assert place.built() == {"llvmlibc.so", "llvmlibc.json"}


def test_a_peer_that_crashes_is_removed(place: Place):
    place.musl(copy=MUSL["copy"].replace("{ COPY", "{ if (n == 33) __builtin_trap(); COPY", 1))
    ends = place.ends(status=1)
    assert ends["musl"][0] == "wrong" and place.built() == set()


@pytest.mark.parametrize("rubbish", [b"", b"rubbish" * 99, b"!<arch>\nrubbish", None])
def test_a_corrupted_archive(place: Place, rubbish):
    if rubbish is None:  # what else there is is built all the same
        place.headers("usr/include/dpdk", DPDK)
    archive = place.musl()
    archive.write_bytes(archive.read_bytes()[:-900] if rubbish is None else rubbish)
    ends = place.ends(status=1)
    assert ends["musl"][0] == "broken" and str(archive) in ends["musl"][1]
    if rubbish is None:
        assert ends["dpdk_avx2"][0] in ("built", "not_here")
    assert "musl.so" not in place.built()


def test_an_archive_without_the_functions(place: Place):
    place.archive("usr/lib/x86_64-linux-musl/libc.a", {"set": MUSL["set"]})
    assert "has no memcpy" in place.ends(status=1)["musl"][1]


def test_an_archive_that_chooses_for_itself(place: Place):
    place.musl(
        copy=MUSL["copy"].replace("*memcpy(", "*one(")
        + "static void *(*choose(void))(void *, const void *, size_t) { return one; }"
        '__attribute__((ifunc("choose"))) void *memcpy(void *d, const void *s, size_t n);'
    )
    assert "IFUNC" in place.ends(status=1)["musl"][1]


def test_a_newer_glibc_gets_its_thresholds_from_us(place: Place):
    place.archive("usr/lib/x86_64-linux-gnu/libc.a", GLIBC)
    ends = place.ends(status=1)
    assert ends["glibc_sse2"] == ("built", "99.1      memcpy memmove mempcpy memset")
    # The test's archive has no others.
    assert (
        "__memmove_avx_unaligned_erms" in ends["glibc_avx2"][1]
        or ends["glibc_avx2"][0] == "not_here"
    )
    rows = [r.split() for r in run("nm", "-D", place.into / "glibc_sse2.so").stdout.splitlines()]
    at = {name: value for value, _, name in rows}
    assert sorted(at) == ["memcpy", "memmove", "mempcpy", "memset"]
    assert at["memcpy"] == at["memmove"] != at["mempcpy"]


def test_a_glibc_no_newer_than_the_one_in_use_is_no_peer(place: Place):
    old = GLIBC["version"].replace("99.1", "2.1")
    archive = place.archive("usr/lib/x86_64-linux-gnu/libc.a", GLIBC, version=old)
    assert place.ends(status=1)["glibc"][0] == "missing"
    ends = place.ends("--from", f"glibc={archive}", status=1)
    assert ends["glibc_sse2"][0] == "built" and ends["glibc_sse2"][1].startswith("2.1 ")


def test_the_newest_of_several(place: Place):
    for version in ("9_0_1", "19_8_7", "18_1_8"):
        text = LLVM["copy"].replace("19_8_7", version)
        place.archive(f"usr/lib/llvm-{version[:2]}/lib/libllvmlibc.a", {"copy": text})
    assert place.ends()["llvmlibc"] == ("built", "19.8.7    memcpy")


def test_headers(place: Place):
    place.headers("usr/include/dpdk", DPDK)
    place.headers("usr/include/stringzilla", STRINGZILLA)
    tiers = found_peers.TIERS
    here = tiers.index(json.loads(run(place.wherry_run, "cpu", "--json").stdout)["tier"])
    ends = place.ends(status=0 if here else 1)
    for name, tier, said in (
        ("dpdk", "avx512", "98.11.3   memcpy"),
        ("dpdk_avx2", "avx2", "98.11.3   memcpy"),
        ("stringzilla", "avx512", "9.8.7     memcpy memmove memset"),
        ("stringzilla_avx2", "avx2", "9.8.7     memcpy memmove memset"),
    ):
        if tiers.index(tier) <= here:
            assert ends[name] == ("built", said)
            assert json.loads((place.into / f"{name}.json").read_text())["tier"] == tier
        else:
            assert ends[name][0] == "not_here" and tier.upper() in ends[name][1]


PACKETS = [f"avx2_{copy}{end}" for copy in ("rte", "memcpy", "padded") for end in ("", "_n")]


def test_inlined_copies_of_a_header(place: Place):
    """Loops of their own, which measure a copy that is right and none where it takes the size for another."""
    place.headers("usr/include/dpdk", DPDK)
    if "not_here" in place.ends()["dpdk_avx2"]:
        pytest.skip("this CPU has no AVX2")
    peers = [word for name in PACKETS for word in ("--peer", f"{name}={place.into}/{name}.so")]
    for name in PACKETS:
        said = json.loads((place.into / f"{name}.json").read_text())
        assert (said["has"], said["tier"]) == (["wherry_packet_loops"], "avx2")
        assert place.built() >= {f"{name}.so"}
    row = f"op=copy routines={','.join(PACKETS)} rounds=1 batch_us=20"
    modes = ("throughput", "latency", "fresh")
    rows = "".join(f"id={i} {row} size=60 mode={mode}\n" for i, mode in enumerate(modes))
    rows += f"id=3 {row} mix=uniform:1-256\nid=4 {row} size=61\n"
    done = run(place.wherry_run, "measure", *peers, input=rows)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    cells = {(e["id"], e["routine"]) for e in events if e["event"] == "cell" and not e.get("aa")}
    constant = {name for name in PACKETS if name.endswith("_n")}
    for number in range(5):
        expected = set(PACKETS) - (constant if number > 2 else set())
        assert {name for i, name in cells if i == number} == expected
    assert not [e for e in events if e["event"] in ("wrong", "crash")]
    skipped = [e["reason"] for e in events if e["event"] == "skip"]
    assert len(skipped) == 2 * len(constant) and all("constant" in reason for reason in skipped)


def test_loops_of_another_runner_are_not_measured(place: Place):
    source, library = place.base / "old.c", place.base / "old.so"
    source.write_text(
        f"{BYTES}void *memcpy(void *d, const void *s, size_t n) {{ COPY(d, s, n) return d; }}\n"
        "long wherry_packet_loops[64] = {7};\n"
    )
    run(need_tool("cc", "gcc"), "-shared", "-fPIC", "-fno-builtin", "-o", library, source)
    row = "id=1 op=copy routines=libc,old size=60 rounds=1 batch_us=20\n"
    done = run(place.wherry_run, "measure", "--peer", f"old={library}", input=row)
    (skip,) = [e for e in map(json.loads, done.stdout.splitlines()) if e["event"] == "skip"]
    assert skip["routine"] == "old" and "make peers builds them anew" in skip["reason"]


def test_a_header_that_does_not_compile(place: Place):
    place.musl()
    place.headers("usr/include/dpdk", {**DPDK, "rte_memcpy.h": "#error nothing here\n"})
    ends = place.ends(status=1)
    assert ends["musl"][0] == "built"
    assert "nothing here" in ends["dpdk_avx2"][1] or ends["dpdk_avx2"][0] == "not_here"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--from", "newlib=/x"), "--from 'newlib=/x': give LIBRARY=PATH"),
        (("--from", "musl"), "--from 'musl': give LIBRARY=PATH"),
        (("--root", "/nowhere"), "--root /nowhere: no such directory"),
    ],
)
def test_misuse(place: Place, words, said):
    result = place.make(*words)
    assert result.returncode == 2 and result.stderr.startswith(f"peers: {said}")
    assert len(result.stderr.splitlines()) == 1


def test_a_library_that_is_not_where_it_was_said_to_be(place: Place):
    ends = place.ends("--from", "musl=/nowhere/libc.a", "--from", "dpdk=/nowhere", status=1)
    assert ends["musl"][0] == "broken"
    assert ends["musl"][1].endswith(
        "/nowhere/libc.a is no file; give the archive itself, as in .../libc.a"
    )
    assert ends["dpdk"][0] == "broken" and "holds no rte_memcpy.h" in ends["dpdk"][1]


def test_no_compiler(place: Place, tmp_path: Path):
    for result in (place.make(CC="no-such-cc"), place.make(PATH=str(tmp_path), CC="")):
        assert result.returncode == 2
        assert len(result.stderr.splitlines()) == 1
        assert "no C compiler" in result.stderr and "package gcc" in result.stderr
    assert "does not work" in place.make(CC="false").stderr
