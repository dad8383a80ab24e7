"""The library is sound wherever it is linked: marks for control-flow enforcement, unwind information, no relocated
text, static programs, AddressSanitizer, other processors."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from conftest import CC, ROOT, need_tool, run
from disassembly import registry

EXERCISE = ROOT / "tests/c/early.c"
LIBRARIES = ["src/libwherry.so", "preload/libwherry-dropin.so"]
MODELS = ["Nehalem", "Haswell", "EPYC"]


# --- the shared objects ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", LIBRARIES)
def test_segments(build_dir: Path, name: str):
    segments = run("readelf", "-lW", build_dir / name).stdout
    dynamic = run("readelf", "-dW", build_dir / name).stdout
    assert "TEXTREL" not in dynamic
    assert "BIND_NOW" in dynamic
    assert "GNU_RELRO" in segments
    assert re.search(r"GNU_STACK .* RW +0x", segments)
    assert not re.search(r"LOAD .* RWE ", segments)
    assert not re.search(r"^ +TLS ", segments, re.MULTILINE)


def test_the_library_binds_nothing_of_its_own_at_run_time(build_dir: Path):
    """A call that comes before relocation must not meet a word that is still to be filled in."""
    said = run("readelf", "-rW", build_dir / "src/libwherry.so").stdout
    rows = [line.split() for line in re.findall(r"^[0-9a-f]{16} .*$", said, re.MULTILINE)]
    assert rows
    named = {row[4].split("@")[0] for row in rows if row[2] != "R_X86_64_RELATIVE"}
    assert not {name for name in named if "wherry" in name}
    # The constructor's alone: what the compiler may make of an assignment, and the plan that is asked for.
    assert named <= {"memcpy", "memset", "secure_getenv"}


# --- control-flow enforcement (-z cet) ------------------------------------------------------------------------------
def linked_whole(library: Path, out: Path, *options: str):
    """All of a static library as a shared object, with nothing else that could lack the marks."""
    whole = ("-Wl,--whole-archive", library, "-Wl,--no-whole-archive")
    return run(*CC, "-shared", "-nostdlib", *whole, *options, "-o", out, check=False, timeout=300)


@pytest.fixture(scope="session")
def whole(build_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("cet") / "whole.so"
    result = linked_whole(build_dir / "src/libwherry.a", out, "-Wl,-z,cet-report=error")
    assert result.returncode == 0, result.stderr
    return out


@pytest.fixture
def unmarked(tmp_path: Path) -> Path:
    (tmp_path / "a.c").write_text("int f(void) { return 1; }\n")
    run(*CC, "-fcf-protection=none", "-c", "a.c", cwd=tmp_path)
    run("ar", "rc", "a.a", "a.o", cwd=tmp_path)
    return tmp_path / "a.a"


def marks(library: Path) -> bool:
    return "x86 feature: IBT, SHSTK" in run("readelf", "-nW", library).stdout


def entries_and_first(library: Path) -> dict[str, str]:
    """The first instruction of each function that can be called through a pointer: exported ones and routines."""
    need_tool("objdump", "binutils")
    dump = run("objdump", "-d", "--no-show-raw-insn", library).stdout
    found = re.findall(r"^([0-9a-f]+) <(\w+)>:\n +[0-9a-f]+:\t(\S+)", dump, re.MULTILINE)
    first = {int(place, 16): word for place, _, word in found}
    exported = run("nm", "-D", "--defined-only", library).stdout
    entries = {name: int(at, 16) for at, name in re.findall(r"(\w+) T (\w+)", exported)}
    routines = re.compile(r"wherry_routine_[a-z0-9_]+")
    entries |= {name: int(place, 16) for place, name, _ in found if routines.fullmatch(name)}
    return {name: first[place] for name, place in entries.items()}


def test_the_linker_misses_no_mark(build_dir: Path, whole: Path):
    for library in (whole, *(build_dir / name for name in LIBRARIES)):
        assert marks(library), library


def test_a_missing_mark_is_seen(unmarked: Path, tmp_path: Path):
    out = tmp_path / "a.so"
    assert linked_whole(unmarked, out, "-Wl,-z,cet-report=error").returncode != 0
    assert linked_whole(unmarked, out).returncode == 0
    assert not marks(out)
    assert entries_and_first(out)["f"] != "endbr64"


def test_every_entry_is_a_landing_place(build_dir: Path, whole: Path):
    for library in (whole, *(build_dir / name for name in LIBRARIES)):
        first = entries_and_first(library)
        assert len(first) >= 12
        assert {name for name, word in first.items() if word != "endbr64"} == set(), library
    assert {row.symbol for row in registry()} <= entries_and_first(whole).keys()


# --- unwinding ------------------------------------------------------------------------------------------------------
def frames(path: Path) -> list[tuple[int, int]]:
    said = run("readelf", "--debug-dump=frames", "-W", path).stdout
    return [(int(a, 16), int(b, 16)) for a, b in re.findall(r"FDE .*pc=(\w+)\.\.(\w+)", said)]


def test_every_routine_has_unwind_information(wherry_run: Path):
    ranges = frames(wherry_run)
    rows = run("nm", "-S", wherry_run).stdout.splitlines()
    symbols = {words[3]: words for words in map(str.split, rows) if len(words) == 4}
    for row in registry():
        start, size = (int(word, 16) for word in symbols[row.symbol][:2])
        assert size > 0
        covering = [span for span in ranges if span[0] <= start and start + size <= span[1]]
        assert len(covering) == 1, f"{row.name}: {covering}"


def test_main_is_found_from_every_instruction(build_dir: Path):
    result = run(build_dir / "tests/c/unwind/unwind", check=False, timeout=300)
    assert result.returncode == 0, result.stdout
    functions, instructions = map(int, re.findall(r"\d+", result.stdout))
    assert functions >= len([row for row in registry() if row.needs == "BASE"]) + 6
    assert instructions > 10_000


@pytest.mark.parametrize(
    ("which", "found"), [(0, "no caller"), (1, "another value"), (2, "no caller")]
)
def test_wrong_unwind_information_is_seen(build_dir: Path, which: int, found: str):
    result = run(
        build_dir / "tests/c/unwind/unwind", "--wrong", str(which), check=False, timeout=300
    )
    assert result.returncode == 1
    assert found in result.stdout


# --- linked statically ----------------------------------------------------------------------------------------------
def exercise_with(build_dir: Path, out: Path, *options: str, compiler: list[str] = CC) -> Path:
    """The program that calls from an IFUNC resolver, a constructor and main, linked with the static library."""
    include = ("-I", ROOT / "include")
    run(
        *compiler,
        "-O1",
        "-fno-builtin",
        *options,
        *include,
        EXERCISE,
        build_dir / "src/libwherry.a",
        "-o",
        out,
    )
    return out


@pytest.mark.parametrize("kind", ["-static", "-static-pie", "-no-pie"])
def test_static_programs(build_dir: Path, tmp_path: Path, kind: str):
    program = exercise_with(build_dir, tmp_path / "p", kind)
    assert "resolver 1 constructor 1 main 1" in run(program, timeout=300).stdout
    if shutil.which("qemu-x86_64"):
        for model in MODELS:
            said = run("qemu-x86_64", "-cpu", model, program, timeout=300).stdout
            assert "resolver 1 constructor 1 main 1" in said
            assert ("isa sse2" in said) == (model == "Nehalem")


def test_static_pie_needs_no_relocated_text(build_dir: Path, tmp_path: Path):
    program = exercise_with(build_dir, tmp_path / "p", "-static-pie", "-Wl,-z,text")
    assert "TEXTREL" not in run("readelf", "-dW", program).stdout


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_in_a_program_with_address_sanitizer(build_dir: Path, tmp_path: Path, compiler: str):
    cc = need_tool(compiler, compiler)
    (tmp_path / "p.c").write_text(
        "#include <stdlib.h>\n#include <wherry.h>\nint main(int n, char **v) {\n"
        "    unsigned char *a = malloc(5000), *b = malloc(5000); (void)v;\n"
        "    for (int k = 0; k <= 5000; k += k / 5 + 1) { wherry_memset(a, k, k); wherry_memcpy(b, a, k);\n"
        "        wherry_memmove(b + k / 9, b, k - k / 9); wherry_bzero(b, k); }\n"
        "    volatile unsigned char *c = a; int last = n > 1 ? c[5000] : c[4999]; free(a); free(b);\n"
        "    return last & 0; }\n"
    )
    include = ("-I", ROOT / "include")
    command = (
        cc,
        "-g",
        "-fsanitize=address,undefined",
        *include,
        "p.c",
        build_dir / "src/libwherry.a",
        "-o",
        "p",
    )
    made = run(*command, cwd=tmp_path, check=False)
    if made.returncode != 0 and re.search(r"asan|sanitizer", made.stderr):
        pytest.skip(
            f"{compiler} comes without its sanitizers (for clang Debian package libclang-rt-14-dev)"
        )
    assert made.returncode == 0, made.stderr
    env = {
        **os.environ,
        "ASAN_OPTIONS": "detect_leaks=0",
    }  # which needs ptrace, and a test may be traced
    clean = run(tmp_path / "p", env=env, check=False, timeout=300)
    assert (clean.returncode, clean.stderr) == (0, "")
    assert (
        "heap-buffer-overflow"
        in run(tmp_path / "p", "over", env=env, check=False, timeout=300).stderr
    )


def test_in_a_program_of_musl(build_dir: Path, tmp_path: Path):
    compiler = need_tool("musl-gcc", "musl-tools")
    (tmp_path / "p.c").write_text(
        '#include <stdio.h>\n#include <wherry.h>\nint main(void) { char a[] = "musl", b[sizeof a];\n'
        "    return puts(wherry_memcpy(b, a, sizeof a)) < 0; }\n"
    )
    for kind in ("-static", "-pie"):
        run(
            compiler,
            kind,
            "-fPIE",
            "-I",
            ROOT / "include",
            "p.c",
            build_dir / "src/libwherry.a",
            "-o",
            "p",
            cwd=tmp_path,
        )
        assert run(tmp_path / "p", timeout=300).stdout == "musl\n"


# --- what the header promises of reads ------------------------------------------------------------------------------
def test_how_far_iszero_reads(build_dir: Path, tmp_path: Path):
    """What verification leaves alone: for another's iszero it is no mistake to read all that it was given."""
    includes = ("-I", ROOT / "include", "-I", ROOT / "src")
    source = ROOT / "tests/c/iszero_reach.c"
    options = ("-O1", "-Wall", "-Wextra", "-Werror")
    run(
        *CC, *options, *includes, source, build_dir / "src/libwherry.a", "-o", "reach", cwd=tmp_path
    )
    done = run(tmp_path / "reach", check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    less = run(tmp_path / "reach", "64", check=False, timeout=60)  # it would be seen
    assert less.returncode == 1 and "read too far" in less.stdout
