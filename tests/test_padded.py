"""wherry_copy_padded, built as users build it: not a byte beyond the capacities, exact under sanitizers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conftest import ROOT, need_tool, run

SOURCE = ROOT / "tests/fixtures/padded.c"
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic")
C_COMPILERS = {"gcc": "gcc", "clang": "clang"}
CXX_COMPILERS = {"g++": "g++", "clang++": "clang"}


def build(compiler: str, package: str, build_dir: Path, tmp_path: Path, *flags: str) -> Path:
    need_tool(compiler, package)
    source = tmp_path / ("p.cc" if compiler.endswith("++") else "p.c")
    shutil.copy(SOURCE, source)
    library = build_dir / "src/libwherry.a"
    program = tmp_path / "p"
    run(compiler, *flags, "-I", ROOT / "include", source, library, "-o", program)
    return program


def usable(flag: str) -> bool:
    word = {"-mavx2": "avx2", "-mavx512f": "avx512f"}.get(flag)
    return word is None or word in Path("/proc/cpuinfo").read_text().split()


@pytest.mark.parametrize("flag", ["-O0", "-O2", "-O3", "-mavx2", "-mavx512f", "-DWHERRY_EXACT"])
@pytest.mark.parametrize("compiler", C_COMPILERS)
def test_c(build_dir: Path, tmp_path: Path, compiler: str, flag: str):
    if not usable(flag):
        pytest.skip(f"this CPU lacks what {flag} asks for")
    more = ["-DEXACT"] if "EXACT" in flag else []
    flags = (*STRICT, "-std=gnu11", "-O2", flag, *more)
    run(build(compiler, C_COMPILERS[compiler], build_dir, tmp_path, *flags))


@pytest.mark.parametrize("standard", ["c89", "iso9899:199409", "c99", "c11", "c17"])
def test_strict_c(build_dir: Path, tmp_path: Path, standard: str):
    source = tmp_path / "s.c"
    source.write_text(
        "#include <wherry.h>\nint main(void) { char a[99] = {1}, b[99]; "
        "wherry_copy_padded(b, sizeof b, a, sizeof a, 3); return b[0] - 1; }\n"
    )
    for compiler, package in C_COMPILERS.items():
        need_tool(compiler, package)
        flags = (f"-std={standard}", *STRICT, "-Wcast-align", "-I", ROOT / "include")
        run(compiler, *flags, source, build_dir / "src/libwherry.a", "-o", tmp_path / "s")
        run(tmp_path / "s")


@pytest.mark.parametrize("compiler", CXX_COMPILERS)
def test_cxx(build_dir: Path, tmp_path: Path, compiler: str):
    flags = (*STRICT, "-std=c++17", "-O2")
    run(build(compiler, CXX_COMPILERS[compiler], build_dir, tmp_path, *flags))


@pytest.mark.parametrize("standard", ["c++98", "c++11", "c++20"])
@pytest.mark.parametrize("compiler", CXX_COMPILERS)
def test_strict_cxx(tmp_path: Path, compiler: str, standard: str):
    need_tool(compiler, CXX_COMPILERS[compiler])
    source = tmp_path / "s.cc"
    source.write_text(
        "#include <wherry.h>\nint main() { char a[99] = {1}, b[99]; "
        "wherry_copy_padded(b, sizeof b, a, sizeof a, 3); return b[0] - 1; }\n"
    )
    for flag in ("-O2", "-mavx2"):
        flags = (f"-std={standard}", *STRICT, "-Wpedantic", "-Wlong-long", flag)
        run(compiler, *flags, "-I", ROOT / "include", "-c", source, "-o", tmp_path / "s.o")


CAPACITIES = [(d, s) for d in (64, 100, 128, 192, 200, 255, 256) for s in (200, 256, 300)]


@pytest.mark.parametrize("machine", ["-msse2", "-mavx2", "-march=native", "-march=x86-64-v3"])
@pytest.mark.parametrize("compiler", [*C_COMPILERS, *CXX_COMPILERS])
def test_no_warning_where_capacities_are_known(tmp_path: Path, compiler: str, machine: str):
    """GCC follows n to stores past the room, which n never reaches; also out of a header of the system's."""
    need_tool(compiler, {**C_COMPILERS, **CXX_COMPILERS}[compiler])
    source = tmp_path / ("w.cc" if compiler.endswith("++") else "w.c")
    lines = ["#include <wherry.h>", "void use(void *);"]
    for d, s in CAPACITIES:
        lines += [
            f"void f{d}_{s}(size_t n); void f{d}_{s}(size_t n) {{ char x[{d}], y[{s}]; use(y);",
            f"if (n <= {min(d, s)}) {{ wherry_copy_padded(x, sizeof x, y, sizeof y, n); }} use(x); }}",
        ]
    source.write_text("\n".join(lines) + "\n")
    for level in ("-O1", "-O2", "-O3"):
        for way in ("-I", "-isystem"):
            flags = (*STRICT, level, machine, way, ROOT / "include")
            run(compiler, *flags, "-c", source, "-o", tmp_path / "w.o")


@pytest.mark.parametrize("compiler", C_COMPILERS)
def test_defined_behaviour_only(build_dir: Path, tmp_path: Path, compiler: str):
    flags = ("-std=gnu11", "-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all")
    run(build(compiler, C_COMPILERS[compiler], build_dir, tmp_path, *flags))


@pytest.mark.parametrize("compiler", [*C_COMPILERS, *CXX_COMPILERS])
def test_exact_under_the_address_sanitizer(build_dir: Path, tmp_path: Path, compiler: str):
    package = {**C_COMPILERS, **CXX_COMPILERS}[compiler]
    standard = "-std=c++17" if compiler.endswith("++") else "-std=gnu11"
    flags = (standard, "-fsanitize=address", "-g", "-DEXACT")
    program = build(compiler, package, build_dir, tmp_path, *flags)
    env = {"ASAN_OPTIONS": "detect_leaks=0"}
    run(program, env=env)
    assert run(program, "10", env=env, check=False).returncode == 0
    seen = run(program, "11", env=env, check=False)
    assert seen.returncode != 0 and "heap-buffer-overflow" in seen.stderr


@pytest.mark.parametrize("compiler", ["tcc", "gcc"])
def test_a_compiler_without_vectors(build_dir: Path, tmp_path: Path, compiler: str):
    """It passes over the attribute that makes a block one, and says nothing."""
    need_tool(compiler, compiler)
    source = tmp_path / "s.c"
    source.write_text(
        "#include <wherry.h>\nint main(void)\n{\n"
        "    char from[512], to[512];\n    size_t n, i;\n"
        "    for (i = 0; i < sizeof from; i++)\n        from[i] = (char)(i % 99 + 1);\n"
        "    for (n = 0; n <= 300; n++) {\n        wherry_bzero(to, sizeof to);\n"
        "        wherry_copy_padded(to, sizeof to, from, sizeof from, n);\n"
        "        for (i = 0; i < n; i++)\n            if (to[i] != from[i])\n                return 1;\n"
        "    }\n    return 0;\n}\n"
    )
    run(compiler, "-I", ROOT / "include", "-c", source, "-o", tmp_path / "s.o")
    run("gcc", "-no-pie", tmp_path / "s.o", build_dir / "src/libwherry.a", "-o", tmp_path / "s")
    run(tmp_path / "s")


def test_whole_lines_are_moved(build_dir: Path, tmp_path: Path):
    """Else it would be a memcpy with more arguments: with room to spare there is no call; the spare room is used."""
    program = build("gcc", "gcc", build_dir, tmp_path, "-O2", "-DEXACT")
    assert run(program, check=False).returncode == 5
