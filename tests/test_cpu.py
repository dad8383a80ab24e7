"""CPUs as test data: each dump of fixtures/cpus is decoded and compared with what it states."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

DUMPS = sorted((Path(__file__).parent / "fixtures" / "cpus").glob("*.txt"))
LEAF = re.compile(r"[0-9a-f]{8} [0-9a-f]+( [0-9a-f]{8}){4}")
QEMU = shutil.which("qemu-x86_64")
needs_qemu = pytest.mark.skipif(not QEMU, reason="needs the Debian package qemu-user")


def check(build_dir: Path, dump: Path) -> subprocess.CompletedProcess:
    program = build_dir / "tests" / "c" / "cpu-test"
    return subprocess.run([program, dump], capture_output=True, text=True, timeout=300)


def expectations(dump: Path) -> list[str]:
    lines = dump.read_text().splitlines()
    return [x for x in lines if x and not LEAF.fullmatch(x) and not x.startswith(("#", "xcr0 "))]


def wrong(line: str) -> str:
    """An expectation that must fail where the given one holds."""
    key, _, rest = line.partition(" ")
    if key in ("has", "has-not"):
        return f"{'has' if key == 'has-not' else 'has-not'} {rest}"
    if key in ("os-lacks", "orphan"):
        return f"has {rest}"
    words = line.split()
    numbers = [i for i, word in enumerate(words) if i and word.isdigit()]
    if key in ("vendor", "brand", "hypervisor", "tier") or not numbers:
        return line + "x"
    words[numbers[-1]] = str(int(words[numbers[-1]]) + 1)
    return " ".join(words)


def test_there_are_enough_of_each_kind():
    told = [dump.read_text() for dump in DUMPS]
    real = [x for x in told if not x.startswith("# derived")]
    assert len(real) >= 14
    assert len([x for x in DUMPS if x.stem.startswith("liar-")]) >= 3
    # Origin is told in the head of each, and a real one has what only the machine itself can say.
    assert all(x.startswith("# ") for x in told)
    assert all("\nbrand " in x and "\nhypervisor " in x and "\ntier " in x for x in real)


@pytest.mark.parametrize("dump", DUMPS, ids=lambda path: path.stem)
def test_dump(build_dir, dump):
    done = check(build_dir, dump)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("dump", DUMPS, ids=lambda path: path.stem)
def test_each_expectation_can_fail(build_dir, tmp_path, dump):
    true = expectations(dump)
    false = tmp_path / dump.name
    kept = [line for line in dump.read_text().splitlines() if line not in true]
    false.write_text("\n".join(kept + [wrong(line) for line in true]) + "\n")
    done = check(build_dir, false)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [f"failed: {wrong(line)}" for line in true]


def test_a_dump_that_expects_nothing_or_is_absent_is_refused(build_dir, tmp_path):
    empty = tmp_path / "empty.txt"
    empty.write_text("# nothing\n")
    done = check(build_dir, empty)
    assert (done.returncode, "states no expectation" in done.stdout) == (1, True)
    assert check(build_dir, tmp_path / "absent.txt").returncode == 2


def test_this_machine_agrees_with_its_dump(build_dir, wherry_run, tmp_path):
    """What the runner says of this CPU is what the decoder says of this CPU's dump."""

    def here(*command: str | Path) -> str:
        # On one CPU, for the cores of a hybrid differ.
        pinned = {"preexec_fn": lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})}
        return subprocess.check_output(command, text=True, timeout=300, **pinned)

    says = json.loads(here(wherry_run, "cpu", "--json"))
    dump = tmp_path / "this.txt"
    lines = [here(build_dir / "tests" / "c" / "cpu-test", "--dump")]
    lines += [f"{key} {says[key]}" for key in ("family", "model", "stepping", "tier")]
    lines += [f"{'has' if on else 'has-not'} {name}" for name, on in says["features"].items()]
    hypervisor = "none" if says["hypervisor"] is None else says["hypervisor"].strip()
    lines += [f"hypervisor {hypervisor}"] if hypervisor else []
    for source, levels in says["caches"].items():
        for level, cache in levels.items() if source != "sysfs" else ():
            numbers = [cache["size"] >> 10, cache["line"], cache["ways"], cache["shared"]]
            lines.append(" ".join(["cache", source, level, *map(str, numbers)]))
    dump.write_text("\n".join(lines) + "\n")
    done = check(build_dir, dump)
    assert done.returncode == 0, done.stdout


def under_qemu(model: str, wherry_run: Path, *arguments: str) -> str:
    command = [QEMU, "-cpu", model, wherry_run, "cpu", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_qemu
@pytest.mark.parametrize(
    ("cpu", "vendor", "family", "model", "tier"),
    [
        ("Nehalem", "Intel", 6, 26, "sse2"),
        ("Haswell", "Intel", 6, 60, "avx2"),
        ("EPYC", "AMD", 23, 1, "avx2"),
    ],
)
def test_a_foreign_cpu(wherry_run, cpu, vendor, family, model, tier):
    says = json.loads(under_qemu(cpu, wherry_run, "--json"))
    assert (says["vendor"], says["family"], says["model"]) == (vendor, family, model)
    assert says["hypervisor"] == "TCGTCGTCGTCG"
    if tier == "avx2" and not says["reported"]["avx2"]:
        pytest.skip("this qemu-user emulates no AVX2; 7.2 does")
    assert says["tier"] == tier
    assert says["features"]["avx2"] == (tier == "avx2")
    assert 1 << 20 <= says["last_level"] <= 96 << 20


@needs_qemu
def test_what_the_os_does_not_save_is_told(wherry_run):
    said = under_qemu("Haswell,-xsave", wherry_run)
    if not re.search(r"^not saved +avx", said, re.M):
        pytest.skip("this qemu-user withdraws AVX together with XSAVE")
    assert "the OS does not save their registers" in said
    assert re.search(r"^tier +sse2$", said, re.M)


def test_the_text_is_aligned(wherry_run):
    said = subprocess.check_output([wherry_run, "cpu"], text=True, timeout=300).splitlines()
    gap = said.index("")
    head, table = said[:gap], [line for line in said[gap + 1 :] if re.match(r"(cache|L\d)", line)]
    assert max(map(len, said)) <= 100
    # Labels and what continues them: one column.
    assert all(line[12:14] == "  " or line[:14].isspace() for line in head)
    assert all(line[14] != " " for line in head)
    sizes = [line.split()[2] for line in table[1:]]
    assert all(size.isdigit() or size == "-" for size in sizes)
    assert {
        line.index(f" {size}") + 1 + len(size) for line, size in zip(table[1:], sizes, strict=True)
    } == {29}


@pytest.mark.parametrize("words", [["--jsom"], ["--json", "more"], ["7"]])
def test_misuse(wherry_run, words):
    done = subprocess.run([wherry_run, "cpu", *words], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (2, "")
    assert words[-1] in done.stderr and len(done.stderr.splitlines()) == 1
