"""Builds with flags that put calls into code, count what runs, or are for another machine."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, meson_build, need_tool, run, undefined

COVERAGE_CALLS = (
    *("trace_pc", "trace_pc_guard", "trace_pc_guard_init", "trace_pc_indir", "trace_switch"),
    *(f"trace_{what}{width}" for what in ("cmp", "const_cmp") for width in (1, 2, 4, 8)),
    *("trace_div4", "trace_div8", "trace_gep"),
)
CALLED_BY_FLAGS = (
    "__cyg",
    "__gcov",
    "__ubsan",
    "__sanitizer",
    "__morestack",
    "__addv",
    "__subv",
    "__mulv",
    "__negv",
)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_nothing_is_called_whatever_flags_a_build_adds(tmp_path: Path, compiler: str):
    """With variables that are zeroed by memset, a look from inside a memset lost the vector that was to be stored.

    Also with Meson's --unity, by which files become one that were not made for it."""
    need_tool(compiler, compiler)
    (tmp_path / "a.c").write_text("int a;\n")
    flags = [
        "-ftrivial-auto-var-init=zero",
        "-finstrument-functions",
        "-fprofile-arcs",
        "-fsanitize=undefined",
        "-ftrapv",
        "-fsplit-stack",
        "-fsanitize-coverage=trace-pc,trace-cmp",
        "-fsanitize-coverage=edge,trace-pc-guard,indirect-calls,trace-div,trace-gep",
    ]
    known = [
        flag
        for flag in flags
        if not subprocess.run(
            [compiler, "-Werror", flag, "-c", "a.c"], cwd=tmp_path, capture_output=True
        ).returncode
    ]
    assert "-finstrument-functions" in known
    plain = ("src/libinner.a", "src/libguard.a", "preload/libwherry-dropin.so")
    recorder = ("preload/recorder/libwherry-recorder.so",)
    # Without optimisation clang makes calls of the built-in copies of a few bytes.
    options = ("-Dtests=false", "-Drunner=false", "-Db_pgo=generate", "--unity=on")
    options += (f"-Doptimization={int(compiler == 'clang')}", f"-Dc_args={' '.join(known)}")
    # Who asks for coverage brings what it calls, which Meson's first trial of the compiler has to find.
    (tmp_path / "called.c").write_text(
        "".join(f"void __sanitizer_cov_{name}(void) {{}}\n" for name in COVERAGE_CALLS)
    )
    run(compiler, "-c", "called.c", cwd=tmp_path)
    run("ar", "rcs", "libcalled.a", "called.o", cwd=tmp_path)
    options += (f"-Dc_link_args={tmp_path}/libcalled.a",)
    targets = plain + recorder
    env = {"CC": compiler}
    build = meson_build(ROOT, tmp_path / "build", *options, targets=targets, env=env)
    objects = sorted(build.glob("**/*.o"))
    names = " ".join(path.name for path in objects)
    for name in ("dispatch_watch", "guard_own", "vector_set_avx2"):
        assert name in names
    for name, symbols in undefined(objects).items():
        # What runs once, when the drop-in is loaded, may call the drop-in's own; of clang it does.
        loading = compiler == "clang" and not re.search("routines_|guard_|watch", name)
        foreign = set() if loading else {"memset", "memcpy"}
        found = {s for s in symbols if s in foreign or s.startswith(CALLED_BY_FLAGS)}
        assert not found, f"{name} wants {found}"


CLANG_COUNTS = {
    "profile, and coverage as of gcc": ("-Db_pgo=generate", "-Db_coverage=true"),
    "coverage by source": (
        "-Dc_args=-fprofile-instr-generate -fcoverage-mapping",
        "-Dc_link_args=-fprofile-instr-generate",
    ),
}


@pytest.mark.parametrize("what", CLANG_COUNTS)
def test_clang_counts_in_what_can_write_counts(tmp_path: Path, what: str):
    """What is linked without libc or start files cannot, and took with it all the build."""
    need_tool("clang", "clang")
    options = ("-Dtests=false", "-Doptimization=0", *CLANG_COUNTS[what])
    targets = ("src/libwherry.so.0.1.0", "src/libwherry.a", "preload/libwherry-dropin.so")
    targets += ("preload/recorder/libwherry-recorder.so", "runner/measure/libtimed-loops.a")
    build = meson_build(ROOT, tmp_path / "build", *options, targets=targets, env={"CC": "clang"})
    objects = sorted(build.glob("**/*.o"))
    assert {"loops.c.o", "dispatch_csum.c.o"} <= {path.name for path in objects}
    for name, symbols in undefined(objects).items():
        found = {s for s in symbols if s.startswith(("__llvm", "llvm_g", "__gcov"))}
        assert not found, f"{name} wants {found}"


@pytest.mark.parametrize("flag", ["-pg", "-p"])
def test_a_build_that_would_call_from_each_routine_is_refused(tmp_path: Path, flag: str):
    """No flag takes it back, and the compiler speaks of -fomit-frame-pointer for each file."""
    result = run("meson", "setup", tmp_path / "build", ROOT, f"-Dc_args=-O1 {flag}", check=False)
    assert result.returncode == 1
    assert f"Wherry cannot be built with {flag}: it makes a call of each memcpy" in result.stdout


MACHINE = """\
[binaries]
c = 'cc'
[properties]
skip_sanity_check = true
[host_machine]
system = 'linux'
cpu_family = 'x86_64'
cpu = 'x86_64'
endian = 'little'
"""


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("-m32", "these flags compile for another: leave out -m32 or -mx32"),
        ("-mno-sse2", "Wherry needs SSE2, which each x86-64 has: leave out"),
        ("-mgeneral-regs-only", "Wherry needs SSE2, which each x86-64 has: leave out"),
        ("-masm=intel", "Wherry is written with AT&T assembly: leave out -masm=intel"),
    ],
)
def test_flags_for_another_machine_are_refused(tmp_path: Path, flag: str, message: str):
    """Meson takes the machine from the compiler without its flags. As for another machine, since Meson would first run
    what it compiled, and few have a libc of 32 bits."""
    (tmp_path / "machine.ini").write_text(MACHINE)
    env = {**os.environ, "CFLAGS": flag}
    words = ("--cross-file", tmp_path / "machine.ini")
    result = run("meson", "setup", tmp_path / "build", ROOT, *words, check=False, env=env)
    assert result.returncode == 1
    assert message in result.stdout
