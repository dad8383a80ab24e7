"""Fault-tolerant copies: the matrix of faults, the table's completeness, who owns the signals, hosts, sandboxes,
the worked example."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, need_root, need_tool, run
from disassembly import Object, load
from fault_table import ENTRY_BYTES, FUNCTIONS, Entry, broken, entries_of, table_of, verified

CC = shlex.split(os.environ.get("CC", "cc"))
GUARDED = [
    *("copy_sse2", "copy_avx2", "set_sse2", "set_avx2"),
    *("copy_csum_sse2", "copy_csum_avx2"),
]
SCENES = re.findall(
    r"SCENE\((\w+)\)(?=[, ]|$)", (ROOT / "tests/c/nofault/own.c").read_text(), flags=re.MULTILINE
)[1:]


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
    """While nothing faults they are held to what memmove and memset are held to."""
    done = verify(wherry_run, "nofault", "--brief")
    assert done.returncode == 0, done.stdout[-3000:]
    assert " skipped" in done.stdout


# --- the table ------------------------------------------------------------------------------------
def guarded(build_dir: Path) -> list[Path]:
    found = [build_dir / f"src/libguarded.a.p/routines_guarded_{name}.S.o" for name in GUARDED]
    return [*found, build_dir / "src/libguard.a.p/dispatch_nofault.S.o"]


def entries(path: Path) -> set[tuple[str, int]]:
    """Section and offset of each instruction in the table of an object."""
    said = run("readelf", "-rW", path).stdout
    places = set()
    for block in said.split("Relocation section ")[1:]:
        if not block.startswith("'.relawherry_faults'"):
            continue
        rows = re.findall(r"^([0-9a-f]{16}) .* (\S+) ([+-]) ([0-9a-f]+)$", block, re.MULTILINE)
        for at, symbol, sign, addend in rows:
            if int(at, 16) % ENTRY_BYTES == 0:
                places.add((symbol, int(sign + addend, 16)))
    return places


def touches_buffers(made: Object, operands: str) -> bool:
    """Neither the stack, nor data of ours, nor the caller's fault or sum, which rcx or r8 point to without an index."""
    for base in re.findall(r"\((%\w*)[,)]", operands):
        if base in {"%rsp", "%rip"}:
            continue
        if not re.fullmatch(r"(.*,)?(0x8|0x10)?\((%rcx|%r8)\)(,%eax)?", operands):
            return True
    return False


# From the address of its table to the last store of RECENT_ENTER.
RECENT_INSTRUCTIONS = 32


def unmarked(path: Path) -> list[str]:
    made, marked = load(path), entries(path)
    missing = []
    own_table = (
        0  # instructions that may still be about recent.h's, from where its address is taken
    )
    for place, i in made.instructions.items():
        if i.relocation and i.relocation[1].startswith("wherry_recent_"):
            own_table = RECENT_INSTRUCTIONS
        own_table -= 1
        # A prefetch cannot fault.
        if i.mnemonic.startswith(("lea", "nop", "jmp", "cs", "prefetch")) or "nop" in i.words:
            continue
        if own_table > 0 and i.operands.endswith("(%r8,%r10,4)"):
            continue
        if touches_buffers(made, i.operands) and place not in marked:
            missing.append(str(i))
    return missing


def test_every_load_and_store_is_in_the_table(build_dir: Path):
    need_tool("objdump", "binutils")
    for path in guarded(build_dir):
        assert len(entries(path)) > 20
        # A block of the last class is stored by r8, as the fault is filled in; it is in the table none the less.
        assert unmarked(path) == [], path.name


def test_an_unmarked_load_is_seen(build_dir: Path, tmp_path: Path):
    need_tool("objdump", "binutils")
    source = (ROOT / "src/routines/guarded/copy_sse2.S").read_text()
    tree = tmp_path / "guarded"
    shutil.copytree(ROOT / "src/routines", tmp_path, dirs_exist_ok=True)
    template = (tree / "copy.tmpl.S").read_text()
    broken = template.replace("LOAD(AT(redo), MOVE V(%rsi), R(1))", "MOVE V(%rsi), R(1)", 1)
    assert broken != template
    (tree / "copy.tmpl.S").write_text(broken)
    (tree / "copy_sse2.S").write_text(source)
    run(*CC, "-c", "copy_sse2.S", "-o", "a.o", cwd=tree)
    assert len(unmarked(tree / "a.o")) == 1


def test_the_table_is_sorted_and_holds_no_address(build_dir: Path):
    for name in ("src/libwherry.so", "runner/wherry-run"):
        path = build_dir / name
        table = table_of(path)
        data = path.read_bytes()[table.offset :]
        at = [
            table.address + i * ENTRY_BYTES + struct.unpack_from("<i", data, i * ENTRY_BYTES)[0]
            for i in range(table.count)
        ]
        assert table.count > 300
        assert at == sorted(set(at))
        span = range(table.address, table.address + table.count * ENTRY_BYTES)
        relocated = re.findall(
            r"^([0-9a-f]{16}) ", run("readelf", "-rW", path).stdout, re.MULTILINE
        )
        assert not [place for place in relocated if int(place, 16) in span]


@pytest.mark.parametrize(
    ("field", "change"), [(0, -1), (1, 0), (2, 1)], ids=["gone", "astray", "kind"]
)
def test_a_broken_entry_is_seen(wherry_run: Path, tmp_path: Path, field: int, change: int):
    """Two entries of each function, among those that any page which is missing may meet; the others are met only when
    a page goes away during a call. tests/fault_table.py has every one removed."""
    entries = entries_of(wherry_run)
    for tier, what in itertools.product(("sse2", "avx2"), ("copy", "set", "copy_csum")):
        of = [e for e in entries if (e.what, e.tier) == (what, tier)]
        # The last of a class: where one before it goes astray the next one meets the same page.
        chosen = [of[3], of[11 if what == "set" else 7]] if field < 2 else []
        if field == 1 and what != "copy":
            continue  # behind the last store of a set is another class; a pass that sums just ends
        if field == 2:  # the kind only tells the direction in a report: of the first that makes one
            chosen = [e for e in of if e.kind & 4][:1]
            if not chosen or chosen[0].kind & 3 == 2:
                continue  # of a string instruction the address tells it
        for entry in chosen:
            if field == 1:  # on to the next load or store, as if this one had happened
                change = entries[entry.number + 1].instruction - entry.resume
            made = broken(wherry_run, tmp_path / "broken", entry.number, field, change)
            done = verified(made, entry, "--brief", 7)
            if "needs AVX2" not in done.stdout:
                assert done.returncode == 1, f"{entry.name}: {done.stdout[-500:]}"


@pytest.mark.parametrize("kind", [0, 1], ids=["load", "store"])
@pytest.mark.parametrize("way", ["avx512", "avx512_together", "avx512_ladder"])
def test_each_way_of_small_sizes_is_verified(wherry_run: Path, tmp_path: Path, way: str, kind: int):
    """With the entry of a way's first load or store gone the target that takes this way fails, and no other; but avx512
    takes them apart and together by turns."""
    of = [e for e in entries_of(wherry_run) if (e.what, e.tier) == ("copy", "avx512")]
    # As many stores behind loads: the first is one block under a mask, the second of 65 to 128 bytes apart, the one
    # before sixteen of each the ladder's, and the last those of sizes together.
    runs = [(k, len(list(g))) for k, g in itertools.groupby(e.kind for e in of)]
    starts = list(itertools.accumulate((length for _, length in runs), initial=0))
    alike = [
        (many, starts[i])
        for i, (k, many) in enumerate(runs[:-1])
        if k == 0 and runs[i + 1] == (1, many)
    ]
    assert alike[0][0] == 1
    sixteen = next(i for i, (many, _) in enumerate(alike) if many == 16)
    place = {"avx512": 1, "avx512_ladder": sixteen - 1, "avx512_together": -1}[way]
    many, first = alike[place]
    assert 3 <= many <= 5
    entry = of[first + kind * many]
    assert entry.kind == kind
    takes = {way, "avx512"} if way == "avx512_together" else {way}
    seen_by_just(takes, wherry_run, tmp_path, entry)


@pytest.mark.parametrize("way", ["apart", "together"])
def test_each_way_of_small_sets_is_verified(wherry_run: Path, tmp_path: Path, way: str):
    of = [e for e in entries_of(wherry_run) if (e.what, e.tier) == ("set", "avx512")]
    # Behind the one block under a mask come three or four of 65 to 128 bytes apart; four or five stores to 255 bytes
    # and the seventeen of 256 bytes and more, together, are the last.
    entry = of[{"apart": 1, "together": -21}[way]]
    takes = {"avx512", "avx512_together" if way == "together" else "avx512_ladder"}
    seen_by_just(takes, wherry_run, tmp_path, entry)


@pytest.mark.parametrize("way", [0, 1], ids=["small", "dots"])
def test_each_way_of_the_sum_is_in_the_matrix(wherry_run: Path, tmp_path: Path, way: int):
    """Below and from 640 bytes on: a step of four lines, a line, and the last bytes."""
    of = [e for e in entries_of(wherry_run) if (e.what, e.tier) == ("copy_csum", "avx512")]
    groups = [list(g) for _, g in itertools.groupby(of, key=lambda e: e.resume)]
    steps = [g for g in groups if [e.kind for e in g] == [0, 0, 0, 0, 1, 1, 1, 1, 0, 1, 1]]
    assert len(steps) == 2
    if way == 1 and "avx512_vnni" not in Path("/proc/cpuinfo").read_text().split():
        pytest.skip("needs AVX512_VNNI")
    for entry in (e for e in steps[way] if e.kind == 1):
        made = broken(wherry_run, tmp_path / "broken", entry.number, 0, -1)
        target = "nofault@avx512:wherry_csum_copy_nofault"
        done = verify(made, target, "--family", "nofault-write", "--seed", "7")
        if "needs AVX-512" in done.stdout:
            pytest.skip("needs AVX-512")
        assert done.returncode == 1, f"{entry.name}: {done.stdout[-500:]}"


def seen_by_just(takes: set[str], wherry_run: Path, tmp_path: Path, entry: Entry):
    """With the entry gone verification fails under just these tiers."""
    made = broken(wherry_run, tmp_path / "broken", entry.number, 0, -1)
    for other in ("avx512", "avx512_together", "avx512_ladder"):
        target = f"nofault@{other}:{FUNCTIONS[entry.what]}"
        done = verify(made, target, "--family", "nofault", "--brief")
        if "needs AVX-512" in done.stdout:
            pytest.skip("needs AVX-512")
        assert done.returncode == (other in takes), f"{entry.name}: {done.stdout[-500:]}"


# --- who owns the signals -------------------------------------------------------------------------
def program(build_dir: Path, name: str) -> Path:
    return build_dir / "tests/c/nofault" / f"nofault-{name}"


def test_every_scene_is_played(build_dir: Path):
    assert run(program(build_dir, "own")).stdout.split() == SCENES
    assert len(SCENES) >= 20


@pytest.mark.parametrize("scene", SCENES)
def test_scene(build_dir: Path, scene: str):
    run(program(build_dir, "own"), scene, timeout=300)


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
    *("pipe", "nothing", "readv_alone", "trapped"),
    *("before", "later", "later_taken", "no_descriptor"),
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
    source = ROOT / "tests/c/nofault/own.c"
    library = build_dir / "src/libwherry.a"
    includes = ("-D_GNU_SOURCE", "-I", ROOT / "include")
    run(*CC, "-O1", *includes, source, library, "-pthread", *options, "-o", out)
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
    run(emulator, "-cpu", model, emulated, scene, "briefly", timeout=300)


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
