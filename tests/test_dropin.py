"""The drop-in: what it exports, that it is really in force, and right however early or oddly it is called."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import CC, ROOT, need_root, need_tool, run

SIX = ["memcpy", "memmove", "mempcpy", "memset", "bcopy", "bzero"]
CHECKED = [
    *("__memcpy_chk", "__memmove_chk", "__mempcpy_chk", "__memset_chk", "__explicit_bzero_chk"),
    *("__wmemcpy_chk", "__wmemmove_chk", "__wmempcpy_chk", "__wmemset_chk"),
]
# In the order in which the test program tells of them.
FUNCTIONS = [
    *SIX,
    *("__mempcpy", "__bzero", "explicit_bzero", "wmemcpy", "wmemmove", "wmempcpy", "wmemset"),
    *CHECKED,
]
# Of a later glibc than programs here were built with.
LATER = ["memset_explicit", "__memset_explicit_chk"]
# Tells a debugger, or whoever asks dlsym, which plan is in force.
STATUS = "wherry_dropin_plan_status"


@pytest.fixture(scope="session")
def programs(build_dir: Path) -> Path:
    return build_dir / "tests/c/dropin"


def preloaded(*objects: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "LD_PRELOAD": ":".join(map(str, objects)), **more}


def sources(said: str) -> dict[str, str]:
    """From what dropin-where says: the object that each road and function lead to."""
    found = dict(line.rsplit(" ", 1) for line in said.splitlines() if not line.startswith("right"))
    assert len(found) >= 2 * len(FUNCTIONS)
    return found


# --- what it is ----------------------------------------------------------------------------------
def test_it_exports_what_it_says_and_wants_one_thing(dropin: Path):
    rows = [line.split() for line in run("nm", "-D", dropin).stdout.splitlines()]
    # What libc does about an overflow, and where the loader found the environment: undefined, but weak, so that nothing
    # fails without them.
    wanted = sorted(row for row in rows if len(row) == 2)
    assert wanted == [["w", "__chk_fail"], ["w", "__libc_stack_end"]]
    rows = [row for row in rows if len(row) == 3]
    assert sorted(row[-1] for row in rows) == sorted([*FUNCTIONS, *LATER, STATUS])  # no version
    assert {row[1] for row in rows} == {"T"}  # an IFUNC would be an i
    types = run("readelf", "--dyn-syms", "-W", dropin).stdout
    assert all(re.search(rf" [1-9]\d* FUNC +GLOBAL DEFAULT +\d+ {name}$", types, re.MULTILINE)
               for name in FUNCTIONS)  # fmt: skip


def test_names_of_a_later_glibc(dropin: Path):
    call = (
        "import ctypes, sys; own = ctypes.CDLL(sys.argv[1]); to = ctypes.create_string_buffer(b'.' * 99, 99);"
        "where = ctypes.addressof(to); explicit, checked = own.memset_explicit, own.__memset_explicit_chk;"
        "explicit.restype = checked.restype = ctypes.c_void_p;"
        "explicit.argtypes = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t;"
        "checked.argtypes = *explicit.argtypes, ctypes.c_size_t;"
        "assert explicit(where + 1, 0x141, 40) == where + 1 and to.raw == b'.' + b'A' * 40 + b'.' * 58;"
        "assert checked(where, 66, 50, 50) == where and to.raw == b'B' * 50 + b'.' * 49;"
        "print('right', flush=True); checked(where, 67, 50, 49)"
    )
    done = run(sys.executable, "-c", call, dropin, check=False)
    assert done.stdout == "right\n" and done.returncode == -signal.SIGABRT
    assert "buffer overflow detected" in done.stderr


def test_nothing_has_to_be_relocated_before_a_call(dropin: Path):
    """Three words are: the address of the constructor, which the loader alone reads; where to go to abort; and where
    the stack began, which the constructor reads."""
    rows = re.findall(r"^[0-9a-f]{16} .*$", run("readelf", "-rW", dropin).stdout, re.MULTILINE)
    assert [row.split()[2] for row in rows] == ["R_X86_64_RELATIVE", *2 * ["R_X86_64_GLOB_DAT"]]
    assert {row.split()[4] for row in rows[1:]} == {"__chk_fail", "__libc_stack_end"}
    sections = run("readelf", "-SW", dropin).stdout
    (array,) = re.findall(r"\.init_array +INIT_ARRAY +([0-9a-f]{16}) \w+ (\w+)", sections)
    assert rows[0].split()[0] == array[0]
    assert int(array[1], 16) == 8


def test_it_needs_no_other_object(dropin: Path):
    assert "NEEDED" not in run("readelf", "-dW", dropin).stdout


def instructions_by_function(dropin: Path) -> dict[str, list[str]]:
    dump = run("objdump", "-d", "--no-show-raw-insn", dropin).stdout
    found: dict[str, list[str]] = {}
    for line in dump.splitlines():
        if head := re.fullmatch(r"[0-9a-f]+ <(.+)>:", line):
            lines = found.setdefault(head[1], [])
        elif text := re.match(r" +[0-9a-f]+:\t(.*)", line):
            lines.append(text[1])
    return found


def test_it_asks_nobody_for_anything(dropin: Path):
    """No thread-local storage, and no system call but those that read a plan file: so no allocation and no output."""
    need_tool("objdump", "binutils")
    found = instructions_by_function(dropin)
    assert sum(map(len, found.values())) > 500
    asking = {
        name
        for name, lines in found.items()
        if any(re.match("syscall|sysenter|int ", i) for i in lines)
    }
    assert asking
    assert all(re.match(r"wherry_planfile_|read_|kernel", name) for name in asking)
    assert [i for lines in found.values() for i in lines if re.match(".*%[fg]s:", i)] == []


def test_without_a_plan_it_makes_no_system_call(dropin: Path, tmp_path: Path):
    """What follows the loader's last call is the end of the program; with a plan, it is the plan's reading."""
    need_tool("strace", "strace")

    def after_the_loader(**plan: str) -> list[str]:
        env = {k: v for k, v in preloaded(dropin).items() if k != "WHERRY_PLAN"} | plan
        traced = run("strace", "-o", tmp_path / "calls", "/bin/true", env=env, check=False)
        if traced.returncode:
            pytest.skip(f"strace may not trace here: {traced.stderr[:99]}")
        calls = (tmp_path / "calls").read_text()
        assert str(dropin) in calls
        # It unmaps the cache of library names last.
        return re.findall(r"^(\w+)\(", calls[calls.rindex("munmap(") :], re.MULTILINE)[1:]

    assert set(after_the_loader()) <= {"exit_group", "exit"}
    assert "open" in after_the_loader(WHERRY_PLAN="/no/such")


def code(library: Path) -> dict[str, list[str]]:
    """The instructions of each of the six functions, without the addresses at which they happen to stand."""
    place = r"-?(0x)?[0-9a-f]+(?=\(%rip\))|\b[0-9a-f]+ (?=<)|\bwherry_(?=mem|b)|\s+# [0-9a-f]+"
    dump = run("objdump", "-d", "--no-show-raw-insn", library).stdout
    lines = re.findall(r"^ +([0-9a-f]+):\t(.*?)\s*$", dump, re.MULTILINE)
    instructions = [(int(address, 16), re.sub(place, "", text)) for address, text in lines]
    symbols = run("readelf", "--dyn-syms", "-W", library).stdout
    found = {}
    for start, size, name in re.findall(
        r": ([0-9a-f]{16}) +(\d+) FUNC .* (\w+)(?:@|$)", symbols, re.MULTILINE
    ):
        first = int(start, 16)
        inside = range(first, first + int(size))
        found[name.removeprefix("wherry_")] = [
            text for address, text in instructions if address in inside
        ]
    return {name: found[name] for name in SIX}


# What stands in the drop-in, and what in the library there: a copy of one byte is asked for, and the second half of a
# small copy lies 32 bytes behind the first.
OF_ITS_OWN = (
    (["cmp    $0x1,%edx", "je     <move_one>"], []),
    (["movzbl (%rsi),%ecx", "mov    %cl,(%rdi)", "ret"], []),
    (
        [
            "mov    $0xffffffffffffffff,%rcx",
            "bzhi   %rdx,%rcx,%rcx",
            "kmovq  %rcx,%k1",
            "kshiftrq $0x20,%k1,%k2",
            "vmovdqu8 (%rsi),%ymm16{%k1}{z}",
            "vmovdqu8 0x20(%rsi),%ymm17{%k2}{z}",
            "vmovdqu8 %ymm16,(%rdi){%k1}",
            "vmovdqu8 %ymm17,0x20(%rdi){%k2}",
        ],
        [
            "mov    $0xffffffff,%ecx",
            "xor    %r8d,%r8d",
            "bzhi   %edx,%ecx,%ecx",
            "kmovd  %ecx,%k1",
            "sub    $0x20,%edx",
            "cmovb  %r8d,%edx",
            "vmovdqu8 (%rsi),%ymm16{%k1}{z}",
            "vmovdqu8 (%rsi,%rdx,1),%ymm17{%k1}{z}",
            "vmovdqu8 %ymm16,(%rdi){%k1}",
            "vmovdqu8 %ymm17,(%rdi,%rdx,1){%k1}",
        ],
    ),
    (
        [
            "vmovdqu64 (%rsi),%ymm16",
            "vmovdqu64 -0x20(%rsi,%rdx,1),%ymm17",
            "vmovdqu64 %ymm16,(%rdi)",
            "vmovdqu64 %ymm17,-0x20(%rdi,%rdx,1)",
            "ret",
        ],
        [],
    ),
)
# And how it is found out whether such a copy might reach into another page: for Intel, and for AMD's, where the library
# asks for the size at once, and the drop-in for the source's last line.
BY_CPU = {
    False: (
        (
            ["lea    0x40(%rsi),%ecx", "test   $0xfc0,%ecx"],
            ["lea    0x20(%rsi),%ecx", "test   $0xfe0,%ecx"],
        ),
        (
            ["lea    0x40(%rdi),%ecx", "test   $0xfc0,%ecx"],
            ["lea    0x20(%rdi),%ecx", "test   $0xfe0,%ecx"],
        ),
    ),
    True: (
        (
            ["lea    0x40(%rsi),%ecx", "test   $0xfc0,%ecx"],
            ["lea    0x20(%rsi),%ecx", "or     %edx,%ecx", "test   $0xfe0,%ecx"],
        ),
        (
            ["lea    0x40(%rdi),%ecx", "test   $0xfc0,%ecx"],
            ["lea    0x20(%rdi),%ecx", "or     %edx,%ecx", "test   $0xfe0,%ecx"],
        ),
        (["cmp    $0x20,%edx", "jae    <move_halves>"], []),
        (["jmp    <move_small_blocks>"], ["jmp    <move_halves>"]),
        (["prefetcht0 -0x1(%rsi,%rdx,1)"], []),
    ),
}
FILL = re.compile(r"(data16 |cs )*(nop\w*|xchg +%ax,%ax)\b")


def test_it_is_the_code_of_the_library(build_dir: Path, dropin: Path):
    need_tool("objdump", "binutils")
    mine, others = (
        {
            name: [line for line in lines if not FILL.match(line)]
            for name, lines in code(path).items()
        }
        for path in (dropin, build_dir / "src/libwherry.so")
    )
    assert all(len(lines) >= 2 for lines in mine.values())
    small = any("<move_near_page_end>" in line for line in others["memcpy"])
    for name in ("memcpy", "memmove") if small else ():
        at_once = "jmp    <move_halves>" in others[name]
        for own, other in OF_ITS_OWN + BY_CPU[at_once]:
            places = [i for i in range(len(mine[name])) if mine[name][i : i + len(own)] == own]
            assert len(places) == 1, own
            mine[name][places[0] : places[0] + len(own)] = other
    assert mine == others


# --- who calls it --------------------------------------------------------------------------------
@pytest.mark.parametrize("binding", ["lazy", "now"])
def test_every_road_leads_to_it(dropin: Path, programs: Path, binding: str):
    now = {"LD_BIND_NOW": "1"} if binding == "now" else {}
    result = run(programs / "dropin-where", env=preloaded(dropin, **now), timeout=300)
    found = sources(result.stdout)
    roads = [f"{road} {name}" for road in ("call", "dlsym") for name in FUNCTIONS]
    assert list(found) == [*roads, "elder memcpy"]
    assert set(found.values()) == {str(dropin)}
    assert result.stderr == ""


def test_its_bare_name_is_enough_where_libraries_are(dropin: Path, programs: Path):
    env = {**os.environ, "LD_LIBRARY_PATH": str(dropin.parent), "LD_PRELOAD": dropin.name}
    found = sources(run(programs / "dropin-where", env=env, timeout=300).stdout)
    assert set(found.values()) == {str(dropin)}


def test_it_is_right(dropin: Path, wherry_run: Path):
    """Verified as any peer is; every one of the six."""
    command = (wherry_run, "verify", "--only-peers", "--brief", "--peer", f"dropin={dropin}")
    said = run(*command, timeout=300).stdout
    assert {
        name for name in SIX if re.search(rf"^right +dropin +{name} ", said, re.MULTILINE)
    } == set(SIX)


@pytest.mark.parametrize("on", ["the drop-in", "libc"])
def test_the_relatives_are_right(dropin: Path, programs: Path, on: str):
    env = preloaded(dropin) if on == "the drop-in" else None
    said = run(programs / "dropin-relatives", env=env, timeout=300).stdout
    assert re.fullmatch(r"right [1-9]\d{3,}\n", said)


@pytest.mark.parametrize("name", CHECKED)
def test_an_overflow_ends_as_it_does_without(dropin: Path, programs: Path, name: str):
    ends = [
        run(programs / "dropin-relatives", name, env=env, check=False, timeout=300)
        for env in (None, preloaded(dropin))
    ]
    assert ends[0].returncode == -signal.SIGABRT
    assert "buffer overflow detected" in ends[0].stderr
    assert [(e.returncode, e.stdout, e.stderr) for e in ends[1:]] == [
        (e.returncode, e.stdout, e.stderr) for e in ends[:1]
    ]


def test_what_tells_of_an_overflow_is_called_as_a_function(dropin: Path, tmp_path: Path):
    """With an aligned stack, and so that an unwinder finds who was checked: libc's own needs neither."""
    (tmp_path / "p.c").write_text(
        "#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unwind.h>\n"
        "int main(void);\n"
        "void *__memcpy_chk(void *, const void *, size_t, size_t);\n"
        "static _Unwind_Reason_Code visit(struct _Unwind_Context *context, void *found) {\n"
        "    void *ip = (void *)(_Unwind_GetIP(context) - 1);\n"
        "    *(int *)found |= _Unwind_FindEnclosingFunction(ip) == (void *)main;\n"
        "    return _URC_NO_REASON; }\n"
        "void __chk_fail(void) { int found = 0;\n"
        "    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);\n"
        "    _Unwind_Backtrace(visit, &found);\n"
        '    printf("aligned %d main %d\\n", frame % 16 == 0, found); exit(0); }\n'
        "int main(void) { char to[4], from[8] = {0};\n"
        "    return __memcpy_chk(to, from, 5, 4) != NULL; }\n"
    )
    options = ("-O1", "-fno-builtin", "-fno-omit-frame-pointer", "-funwind-tables", "-rdynamic")
    run(*CC, *options, "p.c", "-o", "p", cwd=tmp_path)
    said = run(tmp_path / "p", env=preloaded(dropin)).stdout
    assert said == "aligned 1 main 1\n"


def test_a_fortified_program_is_served(dropin: Path, tmp_path: Path):
    (tmp_path / "p.c").write_text(
        "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <wchar.h>\n"
        "int main(int n, char **v) { char b[64]; wchar_t w[16]; size_t k = strtoul(v[1], 0, 0);\n"
        "    memset(b, 'x', k); memcpy(b, v[1], n); wmemset(w, n, k / 4); b[63] = 0;\n"
        '    return printf("%s %d\\n", b, (int)w[2]) < 0; }\n'
    )
    run(*CC, "-O2", "-D_FORTIFY_SOURCE=2", "p.c", "-o", "p", cwd=tmp_path)
    assert "__memset_chk" in run("nm", "-D", tmp_path / "p").stdout
    env = preloaded(dropin, LD_DEBUG="bindings", LD_BIND_NOW="1")
    short, long = (run(tmp_path / "p", k, env=env, check=False, timeout=300) for k in ("64", "65"))
    assert re.search(rf"/p \[0\] to {dropin} \[0\]: normal symbol `__memset_chk'", short.stderr)
    assert (short.returncode, short.stdout) == (0, "64" + "x" * 61 + " 2\n")
    assert (long.returncode, long.stdout) == (-signal.SIGABRT, "")


def test_without_it_they_are_those_of_libc(programs: Path):
    found = sources(run(programs / "dropin-where", timeout=300).stdout)
    assert all("libc.so" in place for place in found.values())


def test_loaded_for_one_handle_only(dropin: Path, programs: Path):
    found = sources(run(programs / "dropin-where", "--dlopen", dropin, timeout=300).stdout)
    for name in FUNCTIONS:
        assert found[f"handle {name}"] == str(dropin)
        assert "libc.so" in found[f"program {name}"]


def test_two_copies(dropin: Path, programs: Path, tmp_path: Path):
    other = tmp_path / "other.so"
    shutil.copy(dropin, other)
    found = sources(
        run(programs / "dropin-where", env=preloaded(other, dropin), timeout=300).stdout
    )
    assert set(found.values()) == {str(other)}


def test_a_program_linked_with_the_library_keeps_it(build_dir: Path, dropin: Path, tmp_path: Path):
    (tmp_path / "p.c").write_text(
        "#include <dlfcn.h>\n#include <stdio.h>\n#include <string.h>\n#include <wherry.h>\n"
        "int main(void) { Dl_info a, b; return !(dladdr((void *)wherry_memcpy, &a) && dladdr((void *)memcpy, &b) &&\n"
        '    printf("%s\\n%s\\n", a.dli_fname, b.dli_fname) > 0); }\n'
    )
    lib = build_dir / "src"
    run(*CC, "-D_GNU_SOURCE", "-fno-builtin", "-I", ROOT / "include", "p.c", "-o", "p", "-L", lib, "-lwherry",
        f"-Wl,-rpath,{lib}", "-ldl", cwd=tmp_path)  # fmt: skip
    ours, libc = run(tmp_path / "p", env=preloaded(dropin), timeout=300).stdout.split()
    assert Path(ours).name.startswith("libwherry.so")
    assert libc == str(dropin)


# --- early, and in company -----------------------------------------------------------------------
@pytest.mark.parametrize("binding", ["lazy", "now"])
@pytest.mark.parametrize("order", ["linked", "before", "after"])
def test_calls_before_relocation_and_constructors(
    dropin: Path, programs: Path, order: str, binding: str
):
    """The calling library comes with the program, or is preloaded before or after the drop-in."""
    library = programs / "libearly.so"
    objects = {"linked": [dropin], "before": [library, dropin], "after": [dropin, library]}
    env = preloaded(
        *objects[order], LD_DEBUG="reloc", **({"LD_BIND_NOW": "1"} if binding == "now" else {})
    )
    result = run(programs / "dropin-early", env=env, timeout=300)
    said = f"resolver 1 preinit 1 constructor 1 main 1 memcpy {dropin}"
    assert said in result.stdout
    relocated = re.findall(
        r"relocation processing: \S*/(lib\w+|libwherry-dropin)\.so", result.stderr
    )
    if order != "before":  # that is what makes these cases early
        assert relocated.index("libearly") < relocated.index("libwherry-dropin")


def test_threads_forks_and_signals(dropin: Path, programs: Path):
    said = run(programs / "dropin-life", env=preloaded(dropin), timeout=300).stdout
    assert re.fullmatch(r"signals [1-9]\d* wrong 0\n", said)


def test_valgrind_finds_nothing(dropin: Path, programs: Path):
    valgrind = need_tool("valgrind", "valgrind")
    command = (
        valgrind,
        "--quiet",
        "--error-exitcode=9",
        "--undef-value-errors=yes",
        programs / "dropin-where",
    )
    result = run(*command, env=preloaded(dropin), timeout=300)
    assert set(sources(result.stdout).values()) == {str(dropin)}
    assert "right 1" in result.stdout


@pytest.mark.parametrize("model", ["Nehalem", "Haswell", "EPYC"])
def test_other_processors(dropin: Path, programs: Path, model: str):
    qemu = need_tool("qemu-x86_64", "qemu-user")
    for program in ("dropin-where", "dropin-early"):
        command = (qemu, "-cpu", model, "-E", f"LD_PRELOAD={dropin}", programs / program)
        said = run(*command, timeout=300).stdout
        assert str(dropin) in said


# --- programs that it leaves alone ---------------------------------------------------------------
@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that other users reach."""
    path = Path(tempfile.mkdtemp(prefix="wherry-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def test_set_uid_programs_keep_libc(dropin: Path, programs: Path, open_directory: Path):
    need_root()
    if os.statvfs(open_directory).f_flag & os.ST_NOSUID:
        pytest.skip(f"{open_directory} is on a file system without set-uid programs")
    program, copy = open_directory / "where", open_directory / "dropin.so"
    shutil.copy(programs / "dropin-where", program)
    shutil.copy(dropin, copy)
    nobody = {"user": 65534, "group": 65534, "extra_groups": [], "cwd": "/", "timeout": 20}
    for mode, source in ((0o755, str(copy)), (0o4755, "libc.so")):
        program.chmod(mode)
        result = run(program, env=preloaded(copy), **nobody)
        assert all(source in place for place in sources(result.stdout).values())
        assert result.stderr == ""


@pytest.mark.parametrize("kind", ["-static", "-static-pie"])
def test_static_programs_are_not_touched(dropin: Path, tmp_path: Path, kind: str):
    (tmp_path / "p.c").write_text(
        '#include <stdio.h>\nint main(void) { FILE *maps = fopen("/proc/self/maps", "r"); char line[4096];\n'
        "    while (fgets(line, sizeof line, maps)) fputs(line, stdout); return 0; }\n"
    )
    run(*CC, kind, "p.c", "-o", "p", cwd=tmp_path)
    result = run(tmp_path / "p", env=preloaded(dropin), timeout=300)
    assert "stack" in result.stdout
    assert "dropin" not in result.stdout
    assert result.stderr == ""


def test_its_page_names_the_functions():
    page = (ROOT / "man/libwherry-dropin.7").read_text()
    for name in FUNCTIONS:
        assert re.search(rf"^\.BR? {name}\b", page, re.MULTILINE), name
