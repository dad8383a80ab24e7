"""`make peers`: what packages bring becomes peers that are right, and what is missing is named."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sys
import tarfile
from pathlib import Path

import pytest
from conftest import ROOT, need_tool, run
from wherry import found_peers

TOOL = ROOT / "tools/peers"
# String instructions, which verification steps through quickly.
BYTES = """
#include <stddef.h>
#define STAY __asm__ volatile("")
#define STRING(code, d, s, n) do { \\
        const char *d_ = (const char *)(d), *s_ = (const char *)(s); size_t n_ = (n); \\
        __asm__ volatile(code : "+D"(d_), "+S"(s_), "+c"(n_) : : "memory"); \\
    } while (0);
#define COPY(d, s, n) STRING("rep movsb", d, s, n)
#define BACK(d, s, n) STRING("std; rep movsb; cld", (char *)(d) + (n) - 1, (char *)(s) + (n) - 1, n)
#define FILL(d, c, n) do { \\
        char *d_ = (char *)(d); size_t n_ = (n); \\
        __asm__ volatile("rep stosb" : "+D"(d_), "+c"(n_) : "a"(c) : "memory"); \\
    } while (0);
#define MOVE(d, s, n) \\
    if ((size_t)(d) - (size_t)(s) < (n)) { BACK(d, s, n) } else { COPY(d, s, n) }
"""
# Hidden, as LLVM libc's are; memmove needs another member, as musl's does.
MUSL = {
    "copy": "void *memcpy(void *d, const void *s, size_t n) { COPY(d, s, n) return d; }"
    "void *__forward(void *d, const void *s, size_t n) { COPY(d, s, n) return d; }",
    "move": "void *__forward(void *d, const void *s, size_t n);"
    "void *memmove(void *d, const void *s, size_t n)"
    "{ if ((size_t)d - (size_t)s >= n) return __forward(d, s, n); BACK(d, s, n) return d; }",
    "set": "void *memset(void *d, int c, size_t n) { FILL(d, c, n) return d; }"
    'const char version[] = "1.9.7";',
}
# The threshold is defined by a member that needs what no shared object has, as in glibc's archive.
GLIBC = {
    "move": "extern long __x86_shared_non_temporal_threshold;"
    "void *__memmove_sse2_unaligned_erms(void *d, const void *s, size_t n)"
    "{ if ((long)n == __x86_shared_non_temporal_threshold) STAY; MOVE(d, s, n) return d; }"
    "void *__mempcpy_sse2_unaligned_erms(void *d, const void *s, size_t n)"
    "{ MOVE(d, s, n) return (char *)d + n; }",
    "set": "void *__memset_sse2_unaligned_erms(void *d, int c, size_t n) { FILL(d, c, n) return d; }",
    "start": "extern int nowhere(void); long __x86_shared_non_temporal_threshold;"
    "int start(void) { return nowhere(); }",
    "version": 'const char banner[] = "GNU C Library (A test) stable release version 99.1.\\n";',
}
LLVM = {
    "copy": "void *memcpy(void *d, const void *s, size_t n) { COPY(d, s, n) return d; }"
    "void __llvm_libc_19_8_7_memcpy(void) { STAY; }"
}
DPDK = {
    "rte_config.h": "#define RTE_TEST 1\n",
    "rte_build_config.h": "#define RTE_VER_MINOR 3\n#define RTE_VER_MONTH 11\n#define RTE_VER_YEAR 98\n",
    "rte_memcpy.h": f"""{BYTES}
static inline void *rte_memcpy(void *d, const void *s, size_t n)
{{ if (RTE_TEST) {{ COPY(d, s, n) }} return d; }}
""",
    "rte_ip.h": """#include <stddef.h>
#include <stdint.h>
static inline uint16_t rte_raw_cksum(const void *p, size_t n)
{ const uint8_t *b = p; uint32_t s = 0;
  for (size_t i = 0; i < n; i++) { s += (uint32_t)b[i] << i % 2 * 8; s = (s & 0xffff) + (s >> 16); }
  return (uint16_t)s; }
""",
}
STRINGZILLA = {
    "types.h": "",
    "stringzilla.h": "".join(
        f"#define STRINGZILLA_H_VERSION_{part} {value}\n"
        for part, value in (("MAJOR", 9), ("MINOR", 8), ("PATCH", 7))
    ),
    "memory.h": BYTES
    + "".join(
        f"static inline void sz_copy_{kind}(char *d, const char *s, size_t n) {{ COPY(d, s, n) }}\n"
        f"static inline void sz_move_{kind}(char *d, const char *s, size_t n) {{ MOVE(d, s, n) }}\n"
        f"static inline void sz_fill_{kind}(char *d, size_t n, unsigned char c) {{ FILL(d, c, n) }}\n"
        for kind in ("haswell", "skylake")
    ),
}
ALL = {
    *("dpdk", "dpdk_avx2", "glibc_evex", "glibc_avx512", "glibc_avx2", "glibc_sse2"),
    *("llvmlibc", "musl", "stringzilla", "stringzilla_avx2"),
}


LIBRARIES = {"dpdk", "glibc", "isal", "llvmlibc", "lwip", "musl", "stringzilla"}


class Place:
    """A machine of its own: a directory for / and one for what is built."""

    def __init__(self, base: Path, wherry_run: Path):
        self.base, self.root, self.into = base, base / "root", base / "peers"
        self.wherry_run = wherry_run
        self.root.mkdir()

    def archive(self, path: str, members: dict[str, str], **changed: str) -> Path:
        compiler = need_tool("cc", "gcc")
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        objects = []
        for name, text in {**members, **changed}.items():
            source, made = self.base / f"{name}.c", self.base / f"{name}.o"
            source.write_text(BYTES + text)
            flags = ("-O1", "-fPIC", "-fno-builtin", "-fvisibility=hidden", "-w")
            run(compiler, *flags, "-c", source, "-o", made)
            objects.append(made)
        run("ar", "rcs", target, *objects)
        return target

    def headers(self, path: str, files: dict[str, str]) -> Path:
        (self.root / path).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (self.root / path / name).write_text(text)
        return self.root / path

    def musl(self, **changed: str) -> Path:
        return self.archive("usr/lib/x86_64-linux-musl/libc.a", MUSL, **changed)

    def make(self, *words: str | Path, offline: bool = True, **env: str):
        result = run(
            *(sys.executable, TOOL, "--root", self.root, "--into", self.into),
            *(["--offline"] if offline else []),
            *words,
            check=False,
            env={**os.environ, "WHERRY_RUN": str(self.wherry_run), **env},
        )
        assert "Traceback" not in result.stderr
        return result

    def ends(self, *words: str | Path, status: int = 0, **env) -> dict[str, tuple[str, str]]:
        """What became of each peer: a word, and the rest of its line."""
        result = self.make(*words, **env)
        assert result.returncode == status, result.stdout + result.stderr
        assert result.stderr == ""
        said = result.stdout.replace("not here", "not_here")
        lines = [line.split(None, 2) for line in said.splitlines()]
        return {name: (end, rest) for end, name, rest in lines if name in ALL | LIBRARIES}

    def built(self) -> set[str]:
        return {path.name for path in self.into.iterdir() if path.suffix in (".so", ".json")}


@pytest.fixture
def place(tmp_path: Path, wherry_run: Path) -> Place:
    return Place(tmp_path, wherry_run)


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
