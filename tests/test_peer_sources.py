"""`make peers`: where the libraries come from, what is told of them, and the room that does it."""

from __future__ import annotations

import io
import json
import re
import shutil
import tarfile
from pathlib import Path

import pytest
from conftest import ROOT, need_tool, run
from made_peers import LLVM, STRINGZILLA, TOOL, Place


@pytest.fixture
def place(tmp_path: Path, wherry_run: Path) -> Place:
    return Place(tmp_path, wherry_run)


BACKEND = """
import os
def get_requires_for_build_wheel(config=None): return []
def prepare_metadata_for_build_wheel(directory, config=None):
    os.mkdir(f"{directory}/stringzilla-9.8.7.dist-info")
    with open(f"{directory}/stringzilla-9.8.7.dist-info/METADATA", "w") as file:
        file.write("Metadata-Version: 2.1\\nName: stringzilla\\nVersion: 9.8.7\\n")
    return "stringzilla-9.8.7.dist-info"
"""


def pack(path: Path, files: dict[str, str]) -> None:
    with tarfile.open(path, "w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))


def test_stringzilla_comes_with_pip(place: Place, tmp_path: Path):
    (tmp_path / "index").mkdir()
    top = "stringzilla-9.8.7/"
    project = '[build-system]\nrequires = []\nbuild-backend = "b"\nbackend-path = ["."]\n'
    pack(
        tmp_path / "index/stringzilla-9.8.7.tar.gz",
        {f"{top}pyproject.toml": project, f"{top}b.py": BACKEND, f"{top}PKG-INFO": ""}
        | {f"{top}include/stringzilla/{name}": text for name, text in STRINGZILLA.items()},
    )
    index = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "index")}
    first = place.make(offline=False, **index)
    assert "fetching StringZilla's headers with pip" in first.stdout
    assert "built     stringzilla_avx2  9.8.7" in first.stdout or "has no AVX2" in first.stdout
    again = place.make(offline=False, PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    assert "fetching" not in again.stdout and "missing   stringzilla" not in again.stdout


def test_a_package_index_that_has_nothing(place: Place):
    place.musl()
    result = place.make(offline=False, PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    assert result.returncode == 0
    line = next(text for text in result.stdout.splitlines() if text.startswith("missing   stringz"))
    assert "PyPI package stringzilla" in line and "pip said: " in line
    assert not any(path.name.startswith("tmp") for path in place.into.rglob("*"))


def test_only_headers_leave_a_package(tmp_path: Path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "peers"))
    sources = __import__("sources")
    inside = "s-1/include/stringzilla/"
    names = ("a.h", "b/c.h", "../d.h", "b/../../e.h", "/f.h", "g.c", "b/h.h/../i.h")
    pack(tmp_path / "s.tar.gz", {f"{inside}{name}": name for name in names})
    sources._unpack(tmp_path / "s.tar.gz", tmp_path / "out")
    files = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
    assert files == {"s.tar.gz", "out/a.h", "out/b/c.h"}


def test_what_stands_is_counted_whatever_became_of_its_source(place: Place):
    archive = place.musl()
    place.archive("usr/lib/llvm-19/lib/libllvmlibc.a", LLVM)
    first = place.make().stdout.splitlines()
    assert first[-1].startswith("2 peers stand in ")
    broken = place.make("--from", "musl=/nowhere")
    assert broken.returncode == 1 and broken.stdout.splitlines()[-1] == first[-1]
    archive.unlink()
    gone = place.make().stdout.splitlines()
    assert gone[-1] == first[-1]
    (line,) = [text for text in gone if " musl " in text]
    assert line.startswith("kept      musl              1.9.7     memcpy memmove memset (")
    assert "Debian package musl-dev brings it" in line


def test_hints_go_by_the_directories_that_were_given(place: Place):
    place.musl()
    lines = place.make().stdout.splitlines()
    assert any(text.endswith(f"(dpkg-deb -x) into {place.root}") for text in lines)
    assert f"; WHERRY_PEERS={place.into} wherry list peers tells" in lines[-1]


def test_clang_gets_no_option_that_it_does_not_know(tmp_path: Path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "peers"))
    sources, stacks = __import__("sources"), __import__("stacks")
    assert sources.no_calls_of_memcpy("gcc (Debian 12.2.0-14) 12.2.0")
    asked = []
    done = run("true")
    monkeypatch.setattr(stacks, "run", lambda *words: asked.append(words) or done)
    source = sources.Source((tmp_path / "lib" / "liblwip.so",), "")
    for compiler in ("Debian clang version 14.0.6", "gcc (Debian 12.2.0-14) 12.2.0"):
        assert stacks._build(tmp_path / "made.so", ["cc"], compiler, source) == ""
    of_gcc = "-fno-tree-loop-distribute-patterns"
    assert [of_gcc in words for words in asked] == [False, True]


def test_the_version_of_lwip_is_what_its_headers_say(tmp_path: Path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "peers"))
    sources = __import__("sources")
    library = tmp_path / "usr/lib/x86_64-linux-gnu/liblwip.so.0.0.0"
    headers = tmp_path / "usr/include/lwip/lwip"
    for place in (library.parent, headers):
        place.mkdir(parents=True)
    library.write_bytes(b"")
    library.with_name("liblwip.so").symlink_to(library.name)
    assert sources._shared("lwip", [tmp_path], None).version == "0.0.0"
    (headers / "tcp.h").write_text("")
    words = zip(("MAJOR", "MINOR", "REVISION"), (2, 9, 7), strict=True)
    (headers / "init.h").write_text("".join(f"#define LWIP_VERSION_{w}   {n}\n" for w, n in words))
    assert sources._shared("lwip", [tmp_path], None).version == "2.9.7"


def test_the_version_of_isal_is_what_its_header_says(tmp_path: Path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "peers"))
    sources = __import__("sources")
    library = tmp_path / "usr/lib/x86_64-linux-gnu/libisal.so.2.0.30"
    header = tmp_path / "usr/include/isa-l.h"
    for place in (library, header):
        place.parent.mkdir(parents=True)
    library.write_bytes(b"")
    library.with_name("libisal.so").symlink_to(library.name)
    assert sources._shared("isal", [tmp_path], None).version == "2.0.30"
    words = zip(("MAJOR", "MINOR", "PATCH"), (2, 30, 0), strict=True)
    header.write_text("".join(f"#define ISAL_{w}_VERSION {n}\n" for w, n in words))
    assert sources._shared("isal", [tmp_path], None).version == "2.30.0"


def test_the_real_musl(place: Place):
    archive = Path("/usr/lib/x86_64-linux-musl/libc.a")
    if not archive.is_file():
        pytest.skip("musl's archive is not installed (Debian package musl-dev)")
    assert place.ends("--from", f"musl={archive}")["musl"][0] == "built"


def test_the_target_hands_on_its_arguments():
    need_tool("make", "make")
    said = run("make", "-n", "-C", ROOT, "peers", "PEERS_ARGS=--offline").stdout
    assert "tools/setup run" in said and "tools/peers --offline" in said
    assert "make peers" in run("make", "-s", "-C", ROOT, "help").stdout


def test_the_list(wherry, place: Place):
    place.musl()
    place.ends()
    env = {"WHERRY_PEERS": str(place.into)}
    rows = {
        row["name"]: row for row in json.loads(wherry("list", "peers", "--json", env=env).stdout)
    }
    assert rows["musl"]["spec"] == f"musl={place.into}/musl.so"
    assert rows["musl"]["has"] == ["memcpy", "memmove", "memset"]
    (place.into / "libc.so").write_bytes(b"")
    shown = wherry("list", "peers", env=env, cwd=place.base)
    for word in ("what", "version", "functions", "tier", "path", "1.9.7", "sse2", "peers/musl.so"):
        assert word in shown.stdout
    assert "the name libc is taken" in shown.stderr and shown.returncode == 0
    none = wherry("list", "peers", env={"WHERRY_PEERS": ""})
    assert none.returncode == 0 and "--peer NAME=PATH takes any" in none.stdout
    assert json.loads(wherry("list", "peers", "--json", env={"WHERRY_PEERS": ""}).stdout) == []


# --- the room itself -------------------------------------------------------------------------------------------------


def test_the_room_uses_nothing_of_ours_in_c_and_nobody_uses_it():
    for shim in (ROOT / "peers").glob("*.c"):
        text = shim.read_text()
        if shim.name == "lwip_stack.c":  # what it is asked to offer, and nothing else
            text = text.replace('#include "stack.h"', "").replace("wherry_stack", "")
            text = text.replace("wherry-run", "")
        if (
            shim.name == "dpdk_packets.c"
        ):  # the loops that others' copies stand in, and ours beside theirs
            for header in ("packet_loops.h", "packets.tmpl.h", "loops.tmpl.h"):
                assert f'#include "{header}"\n' in text
                text = text.replace(f'#include "{header}"\n', "")
            text = re.sub(r"wherry_(packet_loops(\.wherry)?|memcpy|copy_padded)\b", "", text)
        assert '#include "' not in text and "wherry" not in text
    for room in ("src", "runner", "include", "preload"):
        for file in (ROOT / room).rglob("*"):
            if file.suffix in (".c", ".h", ".S", ".build"):
                assert "peers/" not in file.read_text(), file


def test_format_and_lint():
    need_tool("ruff", "ruff, from PyPI: tools/setup test")
    files = [TOOL, *sorted((ROOT / "peers").glob("*.py"))]
    run("ruff", "check", "--no-cache", *files, cwd=ROOT)
    run("ruff", "format", "--no-cache", "--check", *files, cwd=ROOT)
    need_tool("clang-format", "clang-format")
    shims = sorted((ROOT / "peers").glob("*.c"))
    run("clang-format", "--dry-run", "-Werror", *shims, cwd=ROOT)
    assert shims and shutil.which("ruff")
