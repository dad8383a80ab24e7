"""The fault table: every load and store that may fault is in it, and the matrix of faults sees each that is wrong."""

from __future__ import annotations

import itertools
import re
import shutil
import struct
from pathlib import Path

import pytest
from conftest import ROOT, need_tool, run
from disassembly import Object, load
from fault_table import (
    ENTRY_BYTES,
    FUNCTIONS,
    REPORT,
    Entry,
    broken,
    entries_of,
    table_of,
    verified,
)
from test_nofault import CC, verify

GUARDED = [
    *("copy_sse2", "copy_avx2", "set_sse2", "set_avx2"),
    *("copy_csum_sse2", "copy_csum_avx2"),
]


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
# From the address of a constant table to the one load from it.
CONSTANT_INSTRUCTIONS = 4


def unmarked(path: Path) -> list[str]:
    made, marked = load(path), entries(path)
    missing = []
    own_table = (
        0  # instructions that may still be about recent.h's, from where its address is taken
    )
    constants, left = "", 0  # the register that points to a table of constants, and how long
    for place, i in made.instructions.items():
        if i.relocation and i.relocation[1].startswith("wherry_recent_"):
            own_table = RECENT_INSTRUCTIONS
        own_table -= 1
        left -= 1
        if i.mnemonic == "lea" and i.relocation and i.relocation[1].startswith(".rodata"):
            constants, left = i.operands.rpartition(",")[2], CONSTANT_INSTRUCTIONS
        elif left > 0 and re.search(rf"\({constants}[,)]", i.operands):
            left = 0
            continue
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
    run(*CC, f"-I{build_dir / 'src'}", "-c", "copy_sse2.S", "-o", "a.o", cwd=tree)
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


# kinds of fault_table.h
LOAD, STORE, STRING = range(3)


def kind_of(words: str) -> int:
    """What an instruction of the table does, as objdump has it."""
    if words.startswith("rep movs"):
        return STRING
    to_memory = words.startswith("rep stos") or re.search(r"\)(\{%k\d\})?$", words)
    return STORE if to_memory and not words.startswith(("cmp", "test")) else LOAD


def mistaken(program: Path, entries: list[Entry]) -> list[str]:
    """Of these those whose kind is another than their instruction's."""
    dump = run("objdump", "-d", "--no-show-raw-insn", program).stdout
    found = dict(re.findall(r"^ *([0-9a-f]+):\t(.*?) *(?:#.*)?$", dump, re.MULTILINE))
    return [
        f"{entry.name}: {words}"
        for entry in entries
        for words in [" ".join(found[f"{entry.instruction:x}"].split())]
        if entry.kind & ~REPORT != kind_of(words)
    ]


def test_each_entry_is_of_the_kind_of_its_instruction(wherry_run: Path):
    """Else a second signal finds out on which side the fault is, or a fault without an address is told of the other."""
    need_tool("objdump", "binutils")
    entries = entries_of(wherry_run)
    assert len(entries) > 300
    assert mistaken(wherry_run, entries) == []
    others = [entry._replace(kind=entry.kind ^ STORE) for entry in entries[:5]]
    assert len(mistaken(wherry_run, others)) == len(others)


def test_a_report_to_nowhere_is_seen(wherry_run: Path, tmp_path: Path):
    """A caller may have no place for the report. Here the look before a copy backward takes any place for one."""
    need_tool("objdump", "binutils")
    dump = run("objdump", "-d", "--disassemble=wherry_guarded_copy_sse2", wherry_run).stdout
    asked = re.findall(r"^ *([0-9a-f]+):\t48 85 c9 +\ttest +%rcx,%rcx$", dump, re.MULTILINE)
    assert len(asked) == 3
    sections = run("readelf", "-SW", wherry_run).stdout
    address, offset = re.search(r" \.text +PROGBITS +([0-9a-f]+) ([0-9a-f]+) ", sections).groups()
    data = bytearray(wherry_run.read_bytes())
    for place in asked:
        at = int(place, 16) - int(address, 16) + int(offset, 16)
        assert data[at : at + 3] == b"\x48\x85\xc9"
        data[at + 2] = 0xE4  # of rsp, which never is 0
    (tmp_path / "broken").write_bytes(data)
    (tmp_path / "broken").chmod(0o755)
    options = ("--brief", "--family", "nofault", "--seed", "7")
    done = verify(tmp_path / "broken", "nofault@sse2:wherry_copy_nofault", *options)
    assert done.returncode == 1 and "WRONG" in done.stdout, done.stdout


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
            for seed in (7, 8, 9):  # a brief verification has few cases of a class
                done = verified(made, entry, "--brief", seed)
                if done.returncode == 1 or "needs AVX2" in done.stdout:
                    break
            else:
                raise AssertionError(f"{entry.name}: {done.stdout[-500:]}")


@pytest.mark.parametrize("kind", [0, 1], ids=["load", "store"])
@pytest.mark.parametrize(
    "way", ["avx512", "avx512_together", "avx512_together from 256 bytes on", "avx512_ladder"]
)
def test_each_way_of_small_sizes_is_verified(wherry_run: Path, tmp_path: Path, way: str, kind: int):
    """With the entry of a way's first load or store gone the target that takes this way fails, and no other; but avx512
    takes them apart and together by turns."""
    of = [e for e in entries_of(wherry_run) if (e.what, e.tier) == ("copy", "avx512")]
    # As many stores behind loads: the first is two halves, the second of 65 to 128 bytes apart, the one before sixteen
    # of each the ladder's, the last of six sizes together to 255 bytes. Behind it come, where page_edge is select, four
    # at either end of 256 to 1024 bytes together.
    runs = [(k, len(list(g))) for k, g in itertools.groupby(e.kind for e in of)]
    starts = list(itertools.accumulate((length for _, length in runs), initial=0))
    alike = [
        (many, starts[i])
        for i, (k, many) in enumerate(runs[:-1])
        if k == 0 and runs[i + 1] == (1, many)
    ]
    assert alike[0][0] == 2
    sixteen = next(i for i, (many, _) in enumerate(alike) if many == 16)
    together = max(i for i, (many, _) in enumerate(alike) if many == 6)
    tier, _, larger = way.partition(" ")
    place = {"avx512": 1, "avx512_ladder": sixteen - 1, "avx512_together": together}[tier]
    if larger and together == len(alike) - 1:
        pytest.skip("this build has the page's edge as a branch, and no such loop")
    many, first = alike[place + 1 if larger else place]
    assert 3 <= many <= 6
    entry = of[first + kind * many]
    assert entry.kind == kind
    takes = {tier, "avx512"} if tier == "avx512_together" else {tier}
    seen_by_just(takes, wherry_run, tmp_path, entry)


@pytest.mark.parametrize("way", ["apart", "together"])
def test_each_way_of_small_sets_is_verified(wherry_run: Path, tmp_path: Path, way: str):
    of = [e for e in entries_of(wherry_run) if (e.what, e.tier) == ("set", "avx512")]
    # Behind the one block under a mask come three or four of 65 to 128 bytes apart; four to six stores to 255 bytes
    # and the seventeen of 256 bytes and more, together, are the last.
    entry = of[{"apart": 1, "together": -21}[way]]
    takes = {"avx512", "avx512_together" if way == "together" else "avx512_ladder"}
    seen_by_just(takes, wherry_run, tmp_path, entry)


@pytest.mark.parametrize("way", [0, 1], ids=["small", "dots"])
def test_each_way_of_the_sum_is_in_the_matrix(wherry_run: Path, tmp_path: Path, way: int):
    """Below and from 640 bytes on: a step of four lines, a line, and the last bytes. By dot products only some CPUs go
    by themselves; under avx512_together all do that can."""
    of = [e for e in entries_of(wherry_run) if (e.what, e.tier) == ("copy_csum", "avx512")]
    groups = [list(g) for _, g in itertools.groupby(of, key=lambda e: e.resume)]
    steps = [g for g in groups if [e.kind for e in g] == [0, 0, 0, 0, 1, 1, 1, 1, 0, 1, 1]]
    assert len(steps) == 2
    if way == 1 and "avx512_vnni" not in Path("/proc/cpuinfo").read_text().split():
        pytest.skip("needs AVX512_VNNI")
    for entry in (e for e in steps[way] if e.kind == 1):
        made = broken(wherry_run, tmp_path / "broken", entry.number, 0, -1)
        target = f"nofault@{'avx512_together' if way else 'avx512'}:wherry_csum_copy_nofault"
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
