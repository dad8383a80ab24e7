"""Compiled plans in the library: what is taken, what is refused and named; a call is the same."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
import zlib
from pathlib import Path

import pytest
from conftest import CC, ROOT, need_tool, run

sys.path.insert(0, str(ROOT / "python"))
from wherry import planbinary, planfiles, plans

EINVAL, EOPNOTSUPP, ENODEV = 22, 95, 19


@pytest.fixture(scope="session")
def program(build_dir: Path) -> Path:
    return build_dir / "tests/c/planfile-test"


@pytest.fixture(scope="session")
def reported(wherry_run: Path) -> dict:
    import json

    env = {k: v for k, v in os.environ.items() if k != "WHERRY_PLAN"}
    return json.loads(run(wherry_run, "cpu", "--json", env=env).stdout)


@pytest.fixture
def own(reported: dict) -> plans.Plan:
    """This CPU's default, but for the choice and a number by which it is known again."""
    return plans.default(reported).changed(name="mine", choice="sse2", copy_stream_from=7 << 20)


@pytest.fixture
def compiled(own: plans.Plan, tmp_path: Path) -> Path:
    planfiles.compile_to(tmp_path / "mine.plan", [own])
    return tmp_path / "mine.plan"


def reads(program: Path, path: Path, *changes: str) -> str:
    return run(program, "read", path, *changes).stdout.strip()


def status(wherry_run: Path, plan: str, **options) -> str:
    said = run(wherry_run, "cpu", env={**os.environ, "WHERRY_PLAN": plan}, **options).stdout
    return re.search(r"^plan +(.*)$", said, re.MULTILINE)[1]


def sealed(data: bytes) -> bytes:
    """With a right checksum, whatever it says."""
    crc = zlib.crc32(data[:24] + bytes(4) + data[28:])
    return data[:24] + crc.to_bytes(4, "little") + data[28:]


def test_a_plan_for_this_cpu_is_read(program, compiled, own):
    words = reads(program, compiled).split()
    assert words[:3] == ["0", "mine", "sse2"]
    in_order = [own.thresholds[name] for name in plans.FIELDS]
    assert [int(word) for word in words[3:]] == in_order


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("vendor={other}", "it is for CPUs of {vendor}, and this one is of {other}"),
        ("family=99", "it is for family {family}, and this CPU is family 99"),
        ("model=999", "it is for model {model}, and this CPU is model 999"),
        ("last=96", "and here are 96 KiB"),
    ],
)
def test_a_foreign_cpu(program, compiled, own, change, said):
    of = {"vendor": own.cpu.vendor, "family": own.cpu.family, "model": own.cpu.model}
    of["other"] = "AuthenticAMD" if own.cpu.vendor == "GenuineIntel" else "GenuineIntel"
    answer = reads(program, compiled, change.format(**of))
    expected = said.format(**of)
    assert answer.startswith(f"{ENODEV} ")
    assert expected in answer


def test_a_stepping_and_a_feature_that_differ(program, own, tmp_path):
    one = own.changed(cpu=plans.Cpu(own.cpu.vendor, own.cpu.family, own.cpu.model, 15))
    planfiles.compile_to(tmp_path / "s.plan", [one])
    assert "it is for stepping 15" in reads(program, tmp_path / "s.plan", "stepping=3")
    assert reads(program, tmp_path / "s.plan", "stepping=15").startswith("0 ")
    planfiles.compile_to(tmp_path / "m.plan", [own])
    for name in own.cpu.present:
        answer = reads(program, tmp_path / "m.plan", f"lack={name}")
        assert answer.startswith(str(ENODEV))
        assert f"with {name}, which this one or its system lacks" in answer
    if own.cpu.present:
        absent = plans.Cpu(own.cpu.vendor, own.cpu.family, absent=(own.cpu.present[-1],))
        planfiles.compile_to(tmp_path / "w.plan", [own.changed(cpu=absent)])
        assert f"without {own.cpu.present[-1]}, which this one has" in reads(
            program, tmp_path / "w.plan"
        )


def test_a_choice_that_this_cpu_cannot_run(program, own, tmp_path):
    loose = plans.Cpu(own.cpu.vendor, own.cpu.family)
    planfiles.compile_to(tmp_path / "a.plan", [own.changed(choice="avx512", cpu=loose)])
    answer = reads(program, tmp_path / "a.plan", "lack=avx512f")
    assert (
        answer == f"{ENODEV} it needs AVX-512 (F, BW, VL, DQ), which this CPU or its system lacks"
    )
    planfiles.compile_to(tmp_path / "b.plan", [own.changed(choice="avx2", cpu=loose)])
    assert "it needs AVX2" in reads(program, tmp_path / "b.plan", "lack=bmi2")


def test_a_bundle_gives_each_cpu_its_own(program, own, tmp_path):
    other = own.changed(name="other", cpu=plans.Cpu("GenuineIntel", 6, 143))
    later = own.changed(name="later", cpu=plans.Cpu(own.cpu.vendor, own.cpu.family))
    path = tmp_path / "b.plan"
    planfiles.compile_to(path, [other, own, later])
    assert reads(program, path).startswith("0 mine ")
    assert reads(program, path, "last=96").startswith("0 later ")
    assert reads(program, path, "vendor=GenuineIntel", "family=6", "model=143").startswith(
        "0 other "
    )
    assert "none of its 3 plans is for this CPU" in reads(program, path, "family=7")


@pytest.mark.parametrize(
    ("spoil", "error", "said"),
    [
        (lambda d: b"", EINVAL, "it is not a compiled plan"),
        (lambda d: d[:5], EINVAL, "it is not a compiled plan"),
        (lambda d: d[:20], EINVAL, "it is cut short"),
        (lambda d: d[:-1], EINVAL, "(255 of 256 bytes)"),
        (lambda d: d + b"x", EINVAL, "(257 of 256 bytes)"),
        (lambda d: d[:60] + bytes([d[60] ^ 4]) + d[61:], EINVAL, "its checksum is wrong"),
        (
            lambda d: sealed(d[:8] + b"\2" + d[9:]),
            EOPNOTSUPP,
            "plan format 2, and this library reads format 7",
        ),
        (lambda d: sealed(d[:12] + b"\2" + d[13:]), EINVAL, "its header contradicts itself"),
        (lambda d: sealed(d[:64] + b"\x09" + d[65:]), EINVAL, "a choice that this version"),
        (lambda d: sealed(d[:32] + bytes(12) + d[44:]), EINVAL, "a vendor that is no text"),
        (lambda d: sealed(d[:208] + b"\n" + d[209:]), EINVAL, "a name that is no text"),
        (lambda d: sealed(d[:80] + (5).to_bytes(8, "little") + d[88:]), EINVAL, "absurd rep_from"),
        (lambda d: sealed(d[:88] + (5).to_bytes(8, "little") + d[96:]), EINVAL, "absurd rep_to"),
        (lambda d: sealed(d[:96] + (1).to_bytes(8, "little") + d[104:]), EINVAL, "stream_from"),
        (
            lambda d: sealed(d[:144] + (9).to_bytes(8, "little") + d[152:]),
            EINVAL,
            "rep_recent_from",
        ),
        (lambda d: sealed(d[:168] + (1024).to_bytes(8, "little") + d[176:]), EINVAL, "ymm_from"),
        (
            lambda d: sealed(d[:176] + (1 << 60).to_bytes(8, "little") + d[184:]),
            EINVAL,
            "source_lines_to",
        ),
        (
            lambda d: sealed(d[:184] + (1 << 60).to_bytes(8, "little") + d[192:]),
            EINVAL,
            "parts_from",
        ),
        (
            lambda d: sealed(d[:192] + (65535).to_bytes(8, "little") + d[200:]),
            EINVAL,
            "absurd stream_recent_from",
        ),
        (
            lambda d: sealed(d[:120] + b"\xff" * 8 + d[128:]),
            EINVAL,
            "a stream_recent_from, but no stream_from",
        ),
        (lambda d: sealed(d[:96] + (1 << 60).to_bytes(8, "little") + d[104:]), EINVAL, "stream_"),
        (
            lambda d: sealed(d[:56] + bytes(4) + b"\1\0\0\0\1" + d[65:]),
            EINVAL,
            "a choice for CPUs that lack what it needs",
        ),
        (
            lambda d: sealed(
                d[:80] + b"\xff" * 8 + bytes(8) + d[96:128] + b"\5" + bytes(23) + d[152:]
            ),
            EINVAL,
            "relative alignments of rep, but no beginning",
        ),
    ],
)
def test_a_bad_file_is_refused_and_named(program, wherry_run, own, tmp_path, spoil, error, said):
    if own.thresholds["copy_rep_from"] == plans.OFF:
        own = own.changed(copy_rep_from=4096, copy_rep_to=1 << 20, copy_rep_recent_from=4096)
    path = tmp_path / "bad.plan"
    path.write_bytes(spoil(planbinary.encode([own])))
    answer = reads(program, path)
    assert answer.startswith(f"{error} ")
    assert said in answer
    told = status(wherry_run, str(path))
    assert told.startswith("the default plan is in force; WHERRY_PLAN was not used: ")
    assert said in told
    assert str(path) in told
    with pytest.raises(planbinary.BadPlanError):  # both halves have the same opinion
        planbinary.decode(path.read_bytes())


def test_what_is_no_file_is_refused(program, tmp_path):
    assert reads(program, tmp_path / "none").startswith("2 there is no such file")
    assert reads(program, tmp_path) == f"{EINVAL} it is not a file"
    assert reads(program, Path("/dev/zero")) == f"{EINVAL} it is not a file"
    os.mkfifo(tmp_path / "fifo")
    assert reads(program, tmp_path / "fifo") == f"{EINVAL} it is not a file"
    assert reads(program, Path("x" * 5000)).startswith("36 ")


@pytest.mark.parametrize(
    ("read", "said"),
    [(1, "cannot be read"), (2, "cannot be read"), (3, "cannot be read to its end")],
)
def test_a_disk_that_fails_is_no_file_that_ends(wherry_run, compiled, tmp_path, read, said):
    strace = need_tool("strace", "strace")
    may = run(strace, "-o", tmp_path / "calls", "true", check=False)
    if may.returncode:
        pytest.skip(f"strace may not trace here: {may.stderr[:99]}")
    traced = (strace, "-o", tmp_path / "calls", "-P", compiled)
    failing = ("-e", f"inject=read:error=EIO:when={read}", "-E", f"WHERRY_PLAN={compiled}")
    done = run(*traced, *failing, wherry_run, "cpu", check=False)
    assert f"WHERRY_PLAN was not used: it {said} ({compiled})" in done.stdout


@pytest.mark.parametrize("plan_count", [1, 3])
def test_fuzzed(program, own, tmp_path, plan_count):
    """Every truncation and bit flip, random bytes, absurd contents with a right checksum: refused, named, no change."""
    path = tmp_path / "good.plan"
    planfiles.compile_to(path, [own.changed(name=f"n{i}") for i in range(plan_count)])
    said = run(program, "fuzz", path, "7", "8000").stdout
    refused, taken = map(int, re.fullmatch(r"(\d+) refused, (\d+) taken\n", said).groups())
    assert refused > 8000 + 9 * path.stat().st_size
    assert taken > 50


def test_the_fuzzer_can_fail(program, compiled):
    done = run(program, "fuzz", "/dev/null", "7", "1", check=False)
    assert done.returncode == 1
    assert "failed: the good plan" in done.stdout


def test_copies_are_right_while_plans_come_and_go(program, own, tmp_path):
    other = own.changed(name="other", choice="sse2", copy_stream_from=65536, set_stream_from=65536)
    if "avx2" in own.cpu.present:
        other = other.changed(choice="avx2")
    planfiles.compile_to(tmp_path / "a.plan", [own])
    planfiles.compile_to(tmp_path / "b.plan", [other])
    said = run(program, "race", tmp_path / "a.plan", tmp_path / "b.plan", "700").stdout
    loads, copies = map(int, re.fullmatch(r"(\d+) loads, (\d+) copies\n", said).groups())
    assert loads > 20
    assert copies > 100


def test_a_load_in_the_middle_of_one_is_refused(program, compiled):
    """By another thread, and by a handler that interrupts it, as the header promises."""
    said = run(program, "busy", compiled).stdout
    assert said == f"plan 'mine' is in force, from {compiled}\n"


@pytest.mark.parametrize("choice", plans.CHOICES)
def test_the_runner_measures_under_a_plan_of_any_choice(
    wherry_run, own, reported, tmp_path, choice
):
    plan = own.changed(choice=choice)
    if lacking := plans.lacks(plan, reported):
        pytest.skip(f"this CPU has no {lacking}")
    planfiles.compile_to(tmp_path / "this.plan", [plan])
    said = run(
        wherry_run,
        "measure",
        input="id=1 op=copy routines=wherry size=64 rounds=3 batch_us=20\n",
        env={**os.environ, "WHERRY_PLAN": str(tmp_path / "this.plan")},
    ).stdout
    assert '"event":"cell"' in said


def test_load_and_status(program, compiled, tmp_path, reported):
    env = {k: v for k, v in os.environ.items() if k != "WHERRY_PLAN"}
    said = run(program, "load", compiled, tmp_path / "none", "-", env=env).stdout.splitlines()
    tier = reported["plan"]["default"]["choice"]
    stream = reported["plan"]["default"]["copy_stream_from"]
    assert said == [
        "- the default plan is in force",
        f"0 plan 'mine' is in force, from {compiled} | sse2 {7 << 20}",
        f"2 plan 'mine' is in force, from {compiled}; the plan last asked for was not used: "
        f"there is no such file ({tmp_path}/none) | sse2 {7 << 20}",
        f"0 the default plan is in force | {tier} {stream}",
    ]


def test_who_holds_a_lock(build_dir):
    assert run(build_dir / "tests/c/holder-test").stdout == "right\n"


def test_long_names_are_told_whole(program, compiled, tmp_path):
    """Of two that lie deep in one directory each is to be told from the other."""
    deep = tmp_path.joinpath("d" * 200, "e" * 200, "f" * 200)
    deep.mkdir(parents=True)
    shutil.copy(compiled, deep / "x.plan")
    env = {k: v for k, v in os.environ.items() if k != "WHERRY_PLAN"}
    said = run(program, "load", deep / "x.plan", deep / "none", env=env).stdout.splitlines()
    assert f"plan 'mine' is in force, from {deep}/x.plan | " in said[1]
    assert f"from {deep}/x.plan; the plan last asked" in said[2] and f"({deep}/none)" in said[2]


def test_a_path_that_is_no_memory_is_refused(build_dir):
    """As open(2) refuses it; a child, since it would die."""
    script = (
        "import ctypes, sys\n"
        "w = ctypes.CDLL(sys.argv[1])\n"
        "w.wherry_plan_status.restype = ctypes.c_char_p\n"
        "print(w.wherry_plan_load(ctypes.c_void_p(1)), w.wherry_plan_status().decode())\n"
    )
    env = {k: v for k, v in os.environ.items() if k != "WHERRY_PLAN"}
    said = run(sys.executable, "-c", script, build_dir / "src/libwherry.so", env=env).stdout
    assert said == (
        f"{errno.EFAULT} the default plan is in force; the plan last asked for was not used: "
        "it cannot be opened (its name is no readable memory)\n"
    )


def test_the_library_reads_the_environment(wherry_run, compiled):
    assert status(wherry_run, str(compiled)) == f"plan 'mine' is in force, from {compiled}"
    assert status(wherry_run, "") == "the default plan is in force"
    assert status(wherry_run, compiled.name, cwd=compiled.parent).endswith(f"from {compiled.name}")


def test_the_fault_tolerant_copies_go_by_a_plan_too(build_dir, compiled, tmp_path):
    """Also where they were initialised before it was loaded."""
    (tmp_path / "p.c").write_text(
        """
        #include <stdio.h>
        #include <wherry.h>
        extern signed char wherry_nofault_choice;
        int main(int argc, char **argv)
        {
            const int initialised = wherry_nofault_init(), before = wherry_nofault_choice;
            const int loaded = argc == 2 ? wherry_plan_load(argv[1]) : -1, by_plan = wherry_nofault_choice;
            const int unloaded = wherry_plan_load(NULL);
            printf("%d %d %d; %d\\n", initialised, loaded, unloaded, by_plan);
            return wherry_nofault_choice != before;
        }
        """
    )
    library = build_dir / "src/libwherry.a"
    run(*CC, "-I", ROOT / "include", "p.c", library, "-o", "p", cwd=tmp_path)
    assert run(tmp_path / "p", compiled).stdout == "0 0 0; -1\n"  # -1: SSE2


@pytest.mark.parametrize("library", ["libwherry.a", "libwherry.so"])
def test_a_plan_that_is_loaded_before_the_constructors_stays(
    build_dir, compiled, tmp_path, library
):
    """One that is refused there leaves it to them, and is told in whole words."""
    (tmp_path / "p.c").write_text(
        """
        #include <stdio.h>
        #include <wherry.h>
        static int loaded;
        static void early(int argc, char **argv)
        {
            loaded = wherry_plan_load(argv[argc - 1]);
            printf("%s\\n", wherry_plan_status());
        }
        __attribute__((section(".preinit_array"), used)) static void (*const run)(int, char **) = early;
        int main(void)
        {
            printf("%d %s\\n", loaded, wherry_plan_status());
            return 0;
        }
        """
    )
    built = build_dir / "src" / library
    run(*CC, "-I", ROOT / "include", "p.c", built, f"-Wl,-rpath,{built.parent}", "-o", "p",
        cwd=tmp_path)  # fmt: skip
    env = {**os.environ, "WHERRY_PLAN": ""}
    mine = f"plan 'mine' is in force, from {compiled}"
    assert run(tmp_path / "p", compiled, env=env).stdout == f"{mine}\n0 {mine}\n"
    none = tmp_path / "none"
    assert run(tmp_path / "p", none, env=env).stdout.splitlines() == [
        "no plan is in force yet: the baseline serves every call; the plan last asked for was not "
        f"used: there is no such file ({none})",
        f"{errno.ENOENT} the default plan is in force",
    ]


def test_no_control_character_gets_into_the_status(wherry_run):
    told = status(wherry_run, "/no\x1b[31m/\nsuch")
    assert told.endswith("there is no such file (/no?[31m/?such)")


def test_a_call_is_the_same_with_a_plan(build_dir, program, compiled):
    """A plan is data: the object that is loaded with it is the object without, and the words it sets are two."""
    need_tool("objdump", "binutils")
    text = run("objdump", "-d", "--no-show-raw-insn", build_dir / "src/libwherry.so").stdout
    body = text[text.index("<wherry_memcpy>:") :]
    words = set(
        re.findall(
            r"<(wherry_(?:copy_choice|thresholds)[^>]*)>", body[: body.index("<wherry_bcopy>:")]
        )
    )
    assert {word.split("+")[0] for word in words} == {"wherry_copy_choice", "wherry_thresholds"}
    assert "wherry_plan" not in body[: body.index("<wherry_bcopy>:")]
