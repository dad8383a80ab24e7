"""Fault-tolerant copies: the matrix of faults, who owns the signals, hosts, sandboxes, the worked example; the fault
table: test_nofault_table.py."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import CC, ROOT, need_root, need_tool, run

OWN = sorted((ROOT / "tests/c/nofault/own").glob("*.c"))
SCENES = [scene for source in OWN for scene in re.findall(r"\bSCENE\((\w+)\)", source.read_text())]


# --- the matrix -----------------------------------------------------------------------------------
def verify(runner: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(runner, "verify", *arguments, check=False, timeout=300)


@pytest.fixture(scope="module")
def matrix(wherry_run: Path) -> list[dict]:
    """Of all tiers in one run, which has half as many of the random faults of each as a run for one tier."""
    done = verify(wherry_run, "nofault", "--family", "nofault", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [own for own in events if own["event"] == "end"], done.stdout[-3000:] + done.stderr
    return events


@pytest.mark.parametrize("tier", ["sse2", "avx2", "avx512", "avx512_together", "avx512_ladder"])
def test_a_sample_of_the_matrix(matrix: list[dict], tier: str):
    ways = {f"nofault@{tier}{way}" for way in ("", "+stream", "+rep")}
    own = [event for event in matrix if event.get("target") in ways]
    assert not [event for event in own if event["event"] == "failure"]
    if "skip" not in {event["event"] for event in own}:
        families = {event["family"] for event in own if event["event"] == "family"}
        assert families == {"nofault", "nofault-read", "nofault-write"}


def test_the_matrix_has_no_failures(matrix: list[dict]):
    assert [own["failures"] for own in matrix if own["event"] == "end"] == [0]


def test_they_are_copies_and_sets_too(wherry_run: Path):
    """While nothing faults they are held to what memmove and memset are held to. What does fault is in the matrix."""
    listed = run(wherry_run, "verify", "--help").stdout.partition("\nfamilies:\n")[2]
    families = re.findall(r"^  (\S+) ", listed, flags=re.MULTILINE)
    others = [name for name in families if not name.startswith("nofault")]
    assert len(families) - len(others) == 3
    done = verify(wherry_run, "nofault", "--brief", "--family", ",".join(others))
    assert done.returncode == 0, done.stdout[-3000:]
    assert " skipped" in done.stdout


# --- who owns the signals -------------------------------------------------------------------------
def program(build_dir: Path, name: str) -> Path:
    return build_dir / "tests/c/nofault" / f"nofault-{name}"


def play(*command: str | Path):
    done = run(*command, check=False, timeout=300)
    if done.returncode == 77:
        pytest.skip("there are no protection keys here")
    assert done.returncode == 0, done.stderr


def test_every_scene_is_played(build_dir: Path):
    assert sorted(run(program(build_dir, "own")).stdout.split()) == sorted(SCENES)
    assert len(SCENES) >= 20


@pytest.mark.parametrize("scene", SCENES)
def test_scene(build_dir: Path, scene: str):
    play(program(build_dir, "own"), scene)


def test_protection_keys_that_deny_nothing(build_dir: Path):
    """Copies by system calls go another way where there are keys, which few machines have."""
    play(build_dir / "tests/c/keys-test")


def test_faults_that_are_made_up(build_dir: Path):
    """Of each entry of the table, and such as no program can bring about: tests/c/fix_test.c."""
    run(build_dir / "tests/c/fix-test", timeout=300)


UNNOTICED = (
    *("stack", "restart", "no_restart", "ignored", "flood", "flood_ignored"),
    *("in_turn", "beside", "forked", "first"),
)


@pytest.mark.parametrize("scene", UNNOTICED)
def test_signals_are_as_they_were(build_dir: Path, scene: str):
    """What docs/nofault.md promises to handlers that were there before."""
    assert run(program(build_dir, "unnoticed")).stdout.split() == list(UNNOTICED)
    done = run(program(build_dir, "unnoticed"), scene, timeout=300, check=False)
    if done.returncode == 77:
        pytest.skip("no process may have a PID namespace here (run as root)")
    assert done.returncode == 0, done.stderr


def test_a_debugger_sees_who_faulted(build_dir: Path, tmp_path: Path):
    """Through the handler, to the function that called."""
    gdb = need_tool("gdb", "gdb")
    words = ("-ex", "handle SIGSEGV nostop noprint pass", "-ex", "break needs_much_stack")
    done = run(
        *(gdb, "-nx", "-batch", *words, "-ex", "run", "-ex", "bt", "--args"),
        *(program(build_dir, "unnoticed"), "stack"),
        check=False,
        timeout=300,
    )
    if "needs_much_stack" not in done.stdout:
        pytest.skip("gdb cannot run a program here")
    assert "<signal handler called>" in done.stdout and "main" in done.stdout


def test_exact_natively_and_under_valgrind(build_dir: Path):
    """Which counts the registers of string instructions down before the access that faults. Destinations that cannot be
    written lie no less than 16 bytes below a source that overlaps: docs/nofault.md says why."""
    exact = program(build_dir, "exact")
    run(exact)
    options = (
        "--vex-iropt-unroll-thresh=0",
        "--vex-iropt-register-updates=allregs-at-mem-access",
        "--vex-guest-chase=no",
    )
    run(need_tool("valgrind", "valgrind"), "--quiet", *options, exact, "16")


SANDBOXES = (
    *("pipe", "nothing", "readv_alone", "trapped", "killing", "rearmed_between"),
    *("before", "later", "later_taken", "no_descriptor", "no_read"),
)


@pytest.mark.parametrize("scene", SANDBOXES)
def test_sandbox(build_dir: Path, scene: str):
    run(program(build_dir, "sandbox"), scene, timeout=300)


def test_a_full_disk(build_dir: Path, tmp_path: Path):
    """Holes of a mapped file that cannot be filled raise SIGBUS."""
    need_root()
    options = ("-t", "tmpfs", "-o", "size=64k", "tmpfs", tmp_path)
    if run("mount", *options, check=False).returncode != 0:
        pytest.skip("no file system may be mounted here")
    try:
        run(program(build_dir, "sandbox"), "hole", tmp_path, timeout=300)
    finally:
        run("umount", tmp_path)


# --- a host that owns them: Python's faulthandler -------------------------------------------------
HOST = """\
import ctypes, faulthandler, mmap, sys
from ctypes import byref, c_bool, c_char_p, c_int, c_size_t, c_void_p
class Status(ctypes.Structure):
    _fields_ = [("path", c_int), ("sigsegv", c_int), ("sigbus", c_int), ("initialised", c_bool),
                ("sigsegv_blocked", c_bool), ("sigbus_blocked", c_bool), ("sigsegv_handler", c_void_p),
                ("sigbus_handler", c_void_p), ("message", c_char_p)]
class Fault(ctypes.Structure):
    _fields_ = [("addr", c_void_p), ("signo", c_int), ("code", c_int), ("writing", c_bool)]
w = ctypes.CDLL(sys.argv[1])
w.wherry_copy_nofault.restype = c_size_t
w.wherry_copy_nofault.argtypes = [c_void_p, c_void_p, c_size_t, c_void_p]
def copy(address, signo):
    to, fault = ctypes.create_string_buffer(64), Fault()
    assert w.wherry_copy_nofault(to, address, 64, byref(fault)) == 64
    assert (fault.addr, fault.signo, fault.writing) == (address, signo, False), fault.signo
    assert w.wherry_copy_nofault(to, b"carried", 7, byref(fault)) == 0 and to.value == b"carried"
def status():
    s = Status()
    assert w.wherry_nofault_status(byref(s)) == 0
    return s
"""
FIRST = """
faulthandler.enable()
assert w.wherry_nofault_init() == 0
copy(64, 11)
assert status().path == 0
"""
LATER = """
assert w.wherry_nofault_init() == 0
copy(64, 11)
faulthandler.enable()
s = status()
assert (s.sigsegv, s.path) == (3, 1) and b"another handler" in s.message, s.message
copy(64, 0)
assert w.wherry_nofault_init() == 0
assert status().path == 0
copy(64, 11)
"""
CRASH = "\nctypes.string_at(128)\n"


@pytest.mark.parametrize("order", [FIRST, LATER], ids=["first", "later"])
@pytest.mark.parametrize("crash", [False, True], ids=["lives", "crashes"])
def test_faulthandler(build_dir: Path, order: str, crash: bool):
    """It sees the crashes that are not ours, and none that is."""
    script = HOST + order + (CRASH if crash else "")
    library = build_dir / "src/libwherry.so"
    done = run(sys.executable, "-c", script, library, check=False, timeout=300)
    if crash:
        assert done.returncode == -signal.SIGSEGV, done.stderr
        assert done.stderr.count("Fatal Python error: Segmentation fault") == 1, done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert "Fatal" not in done.stderr


# --- linked in other ways -------------------------------------------------------------------------
def linked(build_dir: Path, out: Path, *options: str) -> Path:
    library = build_dir / "src/libwherry.a"
    includes = ("-D_GNU_SOURCE", "-I", ROOT / "include")
    run(*CC, "-O1", *includes, *OWN, library, "-pthread", *options, "-o", out)
    return out


@pytest.mark.parametrize(
    ("options", "package"),
    [
        (["-static"], None),
        (["-static", "-Wl,--gc-sections"], None),
        (["-fuse-ld=lld", "-Wl,--gc-sections"], "lld"),
    ],
    ids=["static", "gc-sections", "lld"],
)
def test_the_table_goes_where_the_code_goes(
    build_dir: Path, tmp_path: Path, options: list[str], package: str | None
):
    if package:
        need_tool("ld.lld", package)
    made = linked(build_dir, tmp_path / "own", *options)
    for scene in ("chain", "by_default", "threads"):
        run(made, scene, timeout=300)


# Of these the default action takes over from ours, which queues the signal anew, with the fault as it came.
QUEUES_FAULTS = {"by_default", "ignored", "once", "rearmed_first"}


@pytest.fixture(scope="module")
def emulated(build_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Handlers of the program realign their stack, as ours do: qemu-user begins them 8 bytes off what the ABI says."""
    return linked(build_dir, tmp_path_factory.mktemp("qemu") / "own", "-static", "-mstackrealign")


@pytest.fixture(scope="module")
def queued_faults_arrive(tmp_path_factory: pytest.TempPathFactory) -> bool:
    """qemu-user takes any signal with the code of a fault for one of the instruction that it was about to emulate."""
    made = tmp_path_factory.mktemp("qemu") / "emulator"
    run(*CC, "-O1", "-static", ROOT / "tests/c/nofault/emulator.c", "-o", made)
    assert run(made).returncode == 0
    return run("qemu-x86_64", made, check=False, timeout=300).returncode == 0


# 4 GiB by the pipe of an emulator take 14 s: once is enough, of processors and in the scene.
@pytest.mark.parametrize(
    ("model", "scene"),
    [
        (model, scene)
        for model in ("Nehalem", "Haswell")
        for scene in SCENES
        if (model, scene) != ("Nehalem", "huge")
    ],
)
def test_other_processors(emulated: Path, request: pytest.FixtureRequest, model: str, scene: str):
    """The tiers that they choose, and a kernel that says less about a fault."""
    emulator = need_tool("qemu-x86_64", "qemu-user")
    if scene in QUEUES_FAULTS and not request.getfixturevalue("queued_faults_arrive"):
        pytest.skip(
            "this qemu ends in an assertion when a process queues itself a signal with the code of a fault "
            "(tests/c/nofault/emulator.c, which knows nothing of the library)"
        )
    play(emulator, "-cpu", model, emulated, scene, "briefly")


# --- before the library ---------------------------------------------------------------------------
EARLY = """
#include <stdio.h>
#include <wherry.h>
extern signed char wherry_nofault_choice;
static int error = -1;
static void early(void) { error = wherry_nofault_init(); }
%s
int main(void)
{
    const int found = wherry_nofault_choice;
    wherry_nofault_status(0);
    printf("error %%d, choice %%d, to be %%d\\n", error, found, wherry_nofault_choice);
    return error || found == 0 || found != wherry_nofault_choice;
}
"""


@pytest.mark.parametrize("options", [["-static"], []])
@pytest.mark.parametrize(
    "when",
    [
        '__attribute__((section(".preinit_array"), used)) static void (*first)(void) = early;',
        "__attribute__((constructor(101))) static void first(void) { early(); }",
        "__attribute__((constructor)) static void first(void) { early(); }",
    ],
    ids=["preinit", "priority", "constructor"],
)
def test_initialised_before_the_library(
    build_dir: Path, tmp_path: Path, when: str, options: list[str]
):
    """The copies go by this CPU's tier, not by the one that is in force before the library's constructors."""
    (tmp_path / "p.c").write_text(EARLY % when)
    library = build_dir / "src/libwherry.a"
    include = ("-I", ROOT / "include")
    run("cc", *options, *include, "p.c", library, "-o", "p", cwd=tmp_path)
    run(tmp_path / "p", timeout=20)


# --- the worked example ---------------------------------------------------------------------------
def test_the_example(build_dir: Path, tmp_path: Path):
    source = ROOT / "examples/truncated_file.c"
    library = build_dir / "src/libwherry.a"
    strict = ["-Wall", "-Wextra", "-Werror", "-O2"]
    run(
        *CC,
        *strict,
        "-I",
        ROOT / "include",
        source,
        library,
        "-pthread",
        "-o",
        tmp_path / "example",
    )
    said = run(tmp_path / "example", timeout=300).stdout
    found = re.search(r"1000 reads: (\d+) cut short .*no crash and no wrong byte", said)
    assert found
    assert int(found[1]) > 50, said


def made_of(text: str, build_dir: Path, tmp_path: Path) -> Path:
    """A program of what a page shows."""
    (tmp_path / "p.c").write_text(text)
    strict = ("-Wall", "-Wextra", "-Werror", "-I", ROOT / "include")
    run(*CC, *strict, tmp_path / "p.c", build_dir / "src/libwherry.a", "-o", tmp_path / "p")
    return tmp_path / "p"


WHAT_IT_HOLDS = """\
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wherry.h>
int main(int argc, char **argv)
{
    enum { FILE_BYTES = 8192, size = 3000 };
    static char record[FILE_BYTES];
    const size_t offset = strtoul(argv[argc - 1], NULL, 0);
    int file = memfd_create("file", 0);
    struct stat now;
    wherry_memset(record, 1, sizeof record);
    if (write(file, record, sizeof record) != sizeof record)
        return 2;
    const char *mapped = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, file, 0);
    for (int end = FILE_BYTES; end >= 0; end -= 64) {
        if (ftruncate(file, end) != 0)
            return 2;
        size_t left = wherry_copy_nofault(record, mapped + offset, size, NULL);
        fstat(file, &now);
        RECIPE
        for (size_t i = 0; i < usable; i++)
            if (record[i] != 1)
                return 1;
        if (usable != ((size_t)end > offset ? (end - offset < size ? end - offset : size) : 0))
            return 1;
    }
    return 0;
}
"""


def test_what_the_file_holds_as_the_page_has_it(build_dir: Path, tmp_path: Path):
    """Of a file that was truncated, also to before the record: its last page reads as zeros."""
    page = (ROOT / "docs/nofault.md").read_text()
    (recipe,) = re.findall(r"```c\n(size_t usable = .*?)```", page, flags=re.DOTALL)
    made = made_of(WHAT_IT_HOLDS.replace("RECIPE", recipe), build_dir, tmp_path)
    for offset in ("0", "1000", "4500"):
        run(made, offset)


A_HOST = """\
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>
#include <wherry.h>
static void report_crash(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info, (void)context;
    static int reports;
    if (reports++ > 0 || write(1, "crashed\\n", 8) != 8)
        _exit(2);
}
EXAMPLE
int main(void)
{
    char byte;
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    const char *volatile nowhere = (const char *)64;
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    if (wherry_nofault_init_hosted() != 0 || wherry_copy_nofault(&byte, nowhere, 1, NULL) != 1)
        return 3;
    return *nowhere;
}
"""


def test_the_host_of_the_manual_page(build_dir: Path, tmp_path: Path):
    """It tells of a crash once, and then the program dies of it."""
    page = (ROOT / "man/wherry_nofault_init.3").read_text()
    (example,) = re.findall(r"\.EX\n(static void on_fault.*?)\.EE", page, flags=re.DOTALL)
    done = run(made_of(A_HOST.replace("EXAMPLE", example), build_dir, tmp_path), check=False)
    assert (done.stdout, done.returncode) == ("crashed\n", -signal.SIGSEGV)
