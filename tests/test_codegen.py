"""What the compiler and the assembler made of the routines, read from the disassembly. What is allowed comes from the
registry: a routine that does more than its line says is a defect, and so is a line that promises what is not there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from conftest import CC, ROOT, meson_build, need_tool, run
from disassembly import (
    Instruction,
    Object,
    Row,
    Symbol,
    bulk_strings,
    is_jump,
    load,
    reaches_an_exit,
    registry,
)

ROWS = registry()
FILES = sorted({row.file for row in ROWS})
MOST_TEXT = 4096  # bytes of one op at one ISA
REMAINDER = 128  # bytes; the start of a string instruction costs more than the blocks that it saves
LEGACY_VECTOR = re.compile(r"%xmm|%mm[0-7]")
NEWER_INTEGER = re.compile(
    r"^(andn|bextr|bls(i|r|msk)|shlx|shrx|sarx|rorx|mulx|pdep|pext|bzhi|[lt]zcnt|popcnt|crc32|movbe|movdir\w*)[lqwb]?$"
)


@cache
def loaded(path: Path) -> Object:
    return load(path)


@pytest.fixture(params=FILES)
def routine(request: pytest.FixtureRequest, build_dir: Path) -> tuple[list[Row], Object]:
    """One source file: its lines in the registry and the object that was made of it."""
    need_tool("objdump", "binutils")
    rows = [row for row in ROWS if row.file == request.param]
    (path,) = (build_dir / "src").glob(f"libroutines-*.a.p/{rows[0].object}")
    return rows, loaded(path)


def traits_of(rows: list[Row]) -> set[str]:
    return set().union(*(row.traits for row in rows))


# --- the properties, each a list of what offends it -------------------------------------------------------------
def calls(made: Object) -> list[Instruction]:
    return [i for i in made.instructions.values() if i.mnemonic.startswith("call")]


def too_wide(made: Object, needs: str) -> list[Instruction]:
    """Registers and encodings that the tier does not have; in the wider tiers also those that are slow beside them."""
    evex = re.compile(r"%zmm|%k[0-7]|%[xy]mm(1[6-9]|2\d|3[01])")
    vex = re.compile(r"%ymm")

    def wrong(i: Instruction) -> bool:
        vector = i.mnemonic.startswith("v")
        if needs in ("BASE", "CRC32", "CLZERO"):
            return bool(
                vector
                or vex.search(i.operands)
                or evex.search(i.operands)
                or (
                    NEWER_INTEGER.match(i.mnemonic)
                    and (needs, i.mnemonic[:5]) != ("CRC32", "crc32")
                )
            )
        if needs in ("AVX2", "VPCLMUL_AVX2") and evex.search(i.operands):
            return True
        return bool(LEGACY_VECTOR.search(i.operands)) and not vector

    return [i for i in made.instructions.values() if wrong(i)]


def uppers_left(made: Object) -> list[Instruction]:
    """Exits with something in the upper halves of ymm0 to ymm15, which makes the caller's SSE code slow."""
    return reaches_an_exit(
        made,
        lambda i: bool(re.match(r"%[yz]mm(1[0-5]|\d)(?!\d)", i.written)),
        lambda i: i.mnemonic in {"vzeroupper", "vzeroall"},
    )


def unfenced(made: Object) -> list[Instruction]:
    """Exits after non-temporal stores that nothing has ordered."""
    return reaches_an_exit(made, is_nt, lambda i: i.mnemonic in {"sfence", "mfence"})


def never_fenced(made: Object, entry: Symbol) -> list[Instruction]:
    """Exits that are reached without a fence, whether anything needs one or not."""
    return reaches_an_exit(
        made, lambda i: i.place == entry.place, lambda i: i.mnemonic in {"sfence", "mfence"}
    )


def is_nt(i: Instruction) -> bool:
    return bool(re.match(r"v?(movnt(?!dqa)|maskmov(q|dqu)$)|movdir|clzero$", i.mnemonic))


def strings(made: Object) -> list[Instruction]:
    """String instructions for more than what a loop of blocks leaves over."""
    return bulk_strings(made, REMAINDER)


def direction(made: Object) -> list[Instruction]:
    return [i for i in made.instructions.values() if i.mnemonic == "std"]


def x87(made: Object) -> list[Instruction]:
    return [
        i for i in made.instructions.values() if i.mnemonic.startswith("f") and i.mnemonic != "fs"
    ]


def mmx(made: Object) -> list[Instruction]:
    return [i for i in made.instructions.values() if "%mm" in i.operands or i.mnemonic == "emms"]


def hidden_data(room: str) -> set[str]:
    """The hidden plain data that the headers of a room declare: read without a word that the loader must fill in."""
    declared = re.compile(
        r'^extern .*?(\w+)(?:\[.*\])? __attribute__\(\(visibility\("hidden"\)\)\);', re.MULTILINE
    )
    return {
        name
        for header in (ROOT / room).rglob("*.h")
        for name in declared.findall(header.read_text())
    }


def wants_outside(made: Object, more: set[str] | frozenset[str] = frozenset()) -> list[str]:
    """References that need more than an offset within the program: to other objects, or by an absolute address."""
    allowed = made.symbols.keys() | hidden_data("src/routines") | more
    wrong = []
    for i in made.instructions.values():
        if not i.relocation:
            continue
        kind, name, _ = i.relocation
        if kind not in {"R_X86_64_PC32", "R_X86_64_PLT32"} or name not in allowed:
            wrong.append(f"{i} wants {name} ({kind})")
    for section, kind, name in made.data_relocations:
        if kind != "R_X86_64_PC32":
            wrong.append(f"{section} wants {name} ({kind})")
    return wrong


# --- over every file of the registry ------------------------------------------------------------------------------
def test_everything_was_read(routine):
    rows, made = routine
    assert len(made.instructions) > 3 * len(rows)
    for row in rows:
        symbol = made.symbols[row.symbol]
        assert symbol.kind == "FUNC"
        assert symbol.size > 0
        assert symbol.place in made.instructions
    assert any(made.leaves(i) for i in made.instructions.values())


def test_no_calls(routine):
    rows, made = routine
    if "TRAIT_CALLS_LIBC" in traits_of(rows):
        assert calls(made) or wants_outside(made)
    else:
        assert calls(made) == []
        assert wants_outside(made) == []


def test_vectors_are_as_wide_as_the_tier(routine):
    rows, made = routine
    needs = {row.needs for row in rows}
    assert len(needs) == 1
    (tier,) = needs
    assert [str(i) for i in too_wide(made, tier)] == []
    expected = {
        "AVX2": "%ymm",
        "VPCLMUL_AVX2": "%ymm",
        "AVX512": "%zmm",
        "VPCLMUL": "%zmm",
        "VNNI": "%zmm",
    }.get(tier, "")
    for row in rows:
        start = made.symbols[row.symbol]
        if all(symbol.place[0] == start.place[0] for symbol in made.functions()):
            assert any(expected in i.operands for i in made.instructions.values()), (
                f"{row.name} has no {expected}"
            )


def test_upper_halves_are_cleared(routine):
    assert [str(i) for i in uppers_left(routine[1])] == []


def test_streams_are_fenced(routine):
    rows, made = routine
    assert [str(i) for i in unfenced(made)] == []
    if "TRAIT_NT" in traits_of(rows):
        assert any(is_nt(i) for i in made.instructions.values())


def test_what_is_public_past_the_caches_fences_every_size(routine):
    """As wherry.h promises of wherry_memcpy_stream and wherry_memset_stream."""
    rows, made = routine
    for row in rows:
        if re.match("(copy|set)_stream_", row.name):
            left = never_fenced(made, made.symbols[row.symbol])
            assert [str(i) for i in left] == []


@pytest.mark.parametrize(
    ("found", "traits"),
    [
        (strings, {"TRAIT_REP"}),
        (x87, {"TRAIT_X87", "TRAIT_X87_CLOBBER"}),
        (mmx, {"TRAIT_MMX_CLOBBER"}),
    ],
    ids=["string", "x87", "mmx"],
)
def test_the_registry_says_which_state_is_used(routine, found, traits):
    rows, made = routine
    if traits_of(rows) & traits:
        assert found(made)
    else:
        assert [str(i) for i in found(made)] == []


def test_never_backwards(routine):
    assert [str(i) for i in direction(routine[1])] == []


def test_the_text_is_small(routine):
    rows, made = routine
    text = sum(symbol.size for symbol in made.functions())
    for row in rows:
        size = text if len(rows) == 1 else made.symbols[row.symbol].size
        assert size <= MOST_TEXT, f"{row.name} has {size} bytes of text, more than {MOST_TEXT}"


# --- the public functions in front of them -------------------------------------------------------------------------
# By routine: what has its smaller sizes there (of the tier that stands first the public function has them), and where
# its large ones are when not in all of the routine.
IN_PUBLIC = {
    "move_avx512": ("copy_avx512", "wherry_memcpy", "wherry_routine_move_avx512_large"),
    "move_avx2": ("copy_avx2", "wherry_memcpy", "wherry_routine_move_avx2_large"),
    "set_avx512": ("set_avx512", "wherry_memset", None),
    "set_avx2": ("set_avx2", "wherry_memset", None),
    "move_sse2": ("copies_sse2", "copies_sse2", None),
    "set_sse2": ("sets_sse2", "sets_sse2", None),
}


SSE2_IN_PUBLIC = ("copies_sse2", "sets_sse2")


def within(instruction: Instruction, own: Symbol) -> bool:
    return (
        instruction.place[0] == own.place[0] and 0 <= instruction.place[1] - own.place[1] < own.size
    )


def names_of_functions(made: Object) -> set[str]:
    return {symbol.name for symbol in made.functions()}


@pytest.fixture
def public(build_dir: Path) -> Object:
    need_tool("objdump", "binutils")
    return loaded(next((build_dir / "src").glob("libwherry.*.p/dispatch_public.S.o")))


def test_public_functions_use_only_what_needs_no_care(public: Object):
    """They serve every tier: nothing to clear, to fence or to restore, and no word that the loader must fill in."""
    for property_ in (uppers_left, unfenced, direction, x87, mmx):
        assert [str(i) for i in property_(public)] == []
    # The plan's: for sizes at which nobody asks, and for a copy whose destination was not written lately.
    copies, found = public.symbols["move_longest"], strings(public)
    moves = [string for string in found if string.words == ["rep", "movsb"]]
    sets = [
        string
        for string in found
        if string.words == ["rep", "stos"] and string.operands.startswith("%al")
    ]
    assert (len(moves), len(sets)) == (4, 3) and len(found) == 7
    for string in moves:
        assert within(string, copies) or within(string, public.symbols["copies_sse2"])
    # Unaligned moves and the byte of a set, before anything has used an upper half: shorter by a byte.
    legacy = [
        i.mnemonic
        for i in public.instructions.values()
        if LEGACY_VECTOR.search(i.operands) and i.mnemonic[0] != "v"
        if not any(within(i, public.symbols[own]) for own in SSE2_IN_PUBLIC)
    ]
    assert sorted(legacy) == ["movd", *["movups"] * 12]
    routines = {row.symbol for row in ROWS} | {"wherry_watch_look"}
    routines |= {large for _, _, large in IN_PUBLIC.values() if large}
    assert wants_outside(public, hidden_data("src/dispatch") | routines) == []


def test_the_baseline_of_the_public_functions_is_the_baseline(public: Object):
    for name in SSE2_IN_PUBLIC:
        own = public.symbols[name]
        too_new = [i for i in too_wide(public, "BASE") if within(i, own)]
        assert own.size and [str(i) for i in too_new] == []


def test_fault_tolerant_functions_clear_and_fence_on_every_way(build_dir: Path):
    need_tool("objdump", "binutils")
    objects = [
        *sorted((build_dir / "src/libguarded.a.p").glob("*.o")),
        build_dir / "src/libguard.a.p/dispatch_nofault.S.o",
    ]
    assert len(objects) > 1
    for path in objects:
        for property_ in (uppers_left, unfenced):
            assert [str(i) for i in property_(loaded(path))] == [], path.name


@pytest.mark.parametrize("op", ["move", "set"])
def test_the_text_of_a_call_is_small(build_dir: Path, public: Object, op: str):
    """From the public function on: what a program that calls it has in its instruction cache, at most."""
    entry = 128
    for row in ROWS:
        if row.op != op or not row.file.startswith("vector/"):
            continue
        (path,) = (build_dir / "src").glob(f"libroutines-*.a.p/{row.object}")
        functions = {symbol.name: symbol.size for symbol in loaded(path).functions()}
        if row.name in IN_PUBLIC:
            own, first, large = IN_PUBLIC[row.name]
            smaller = own if own in names_of_functions(public) else first
            text = public.symbols[smaller].size + functions[large or row.symbol]
            if op == "move":
                text += public.symbols["move_looks"].size
            assert text > functions[large or row.symbol]
        else:
            text = sum(functions.values())
        assert entry + text <= MOST_TEXT, row.name


def test_no_branch_of_513_to_1024_bytes_hangs_on_where_they_lie(public: Object):
    """Where places change from call to call a wrong guess costs more than a line to spare: up to the loop of copies,
    sizes apart, there is one on the plan alone, and what has none leads back to nothing of it."""

    def between(first: str, last: str) -> list[Instruction]:
        place, found = public.symbols[first].place, []
        while place != public.symbols[last].place:
            found.append(public.instructions[place])
            place = public.following[place]
        return found

    # By which of them this was built: where the page's end is a branch, only the first has no loop.
    looped = "move_step_apart" in public.symbols
    straight = (
        ("set_513_watched", "set_last_of_1024") if looped else ("move_513_on", "move_last_128")
    )
    onward = [own for own in between(*straight) if is_jump(own)]
    begin = public.symbols[straight[0]].place
    assert len(onward) >= 7
    assert not [i for i in onward if (to := public.resolve(i)) and begin <= to <= i.place]
    if looped:
        way = between("move_513_watched", "move_step_apart")
        jumps = [i for i, own in enumerate(way) if is_jump(own)]
        assert [way[i - 1].mnemonic for i in jumps] == ["cmpl"]
        assert "(%rip)" in way[jumps[0] - 1].operands
        assert any(own.mnemonic.startswith("cmov") for own in way)


@pytest.mark.parametrize("optimization", ["0", "s"])
def test_upper_halves_are_cleared_however_the_rest_is_optimized(tmp_path: Path, optimization: str):
    options = ("-Dtests=false", "-Drunner=false", f"-Doptimization={optimization}")
    env = {"CFLAGS": "-Os"} if optimization == "s" else {}
    targets = ("src/libroutines-avx2.a",)
    build = meson_build(ROOT, tmp_path / "build", *options, targets=targets, env=env)
    objects = sorted(build.glob("src/libroutines-avx2.a.p/*.o"))
    assert len(objects) >= len({row.file for row in ROWS if row.needs == "AVX2"})
    assert {path.name: left for path in objects if (left := uppers_left(load(path)))} == {}


# --- each of them sees what it looks for ---------------------------------------------------------------------------
def assembled(tmp_path: Path, lines: str) -> Object:
    (tmp_path / "a.s").write_text(f".globl f\n.type f, @function\nf:\n{lines}\n.size f, . - f\n")
    run(*CC, "-c", "a.s", cwd=tmp_path)
    return load(tmp_path / "a.o")


@pytest.mark.parametrize(
    ("property_", "lines", "offenders"),
    [
        (calls, "call g\nret", 1),
        (uppers_left, "vmovdqu (%rsi), %ymm0\nret", 1),
        (uppers_left, "vmovdqu (%rsi), %ymm0\nvmovdqu %ymm0, (%rdi)\nvzeroupper\nret", 0),
        (uppers_left, "vmovdqu64 (%rsi), %zmm3\njmp g", 1),
        (uppers_left, "vmovdqu64 (%rsi), %zmm19\nvmovdqu8 (%rsi), %zmm17{%k1}{z}\nret", 0),
        (uppers_left, "vmovdqu8 (%rsi), %zmm1{%k1}{z}\nret", 1),
        (uppers_left, "vmovdqu (%rsi), %xmm0\nret", 0),
        (uppers_left, "vpbroadcastb %xmm0, %ymm1\ntest %rax, %rax\njz 1f\nvzeroupper\n1: ret", 1),
        (
            uppers_left,
            "vmovdqu (%rsi), %ymm1\nlea t(%rip), %rax\njmp *%rax\nvzeroupper\nret\nt: ret",
            1,
        ),
        (unfenced, "movntdq %xmm0, (%rdi)\nret", 1),
        (unfenced, "1: vmovntdq %ymm0, (%rdi)\njnz 1b\nsfence\nret", 0),
        (unfenced, "vmaskmovdqu %xmm1, %xmm0\nret", 1),
        (unfenced, "movnti %rax, (%rdi)\njz 1f\nsfence\n1: jmp g", 1),
        (strings, "rep movsb\nret", 1),
        (strings, "rep stosq\nmovslq %eax, %rax\nmovss %xmm0, %xmm1\nret", 1),
        (strings, "lodsb\nret", 1),
        (strings, "mov %rdx, %rcx\nand $63, %ecx\nrep movsb\nret", 0),
        (strings, "and $63, %eax\nmov %rdx, %rcx\nrep movsb\nret", 1),
        (strings, "and $63, %ecx\nrep movsb\nmov %rdx, %rcx\nrep movsb\nret", 1),
        (
            strings,
            "cmp $128, %rdx\njb 1f\n2: sub $64, %rdx\ncmp $64, %rdx\njae 2b\n1: mov %edx, %ecx\nrep movsb\nret",
            0,
        ),
        (strings, "cmp $128, %rdx\nja 1f\nret\n1: mov %rdx, %rcx\nrep movsb\nret", 1),
        (strings, "cmp $1024, %rcx\njb 1f\nret\n1: rep movsb\nret", 1),
        (x87, "fildq (%rsi)\nfistpq (%rdi)\nret", 2),
        (mmx, "movq (%rsi), %mm3\nemms\nret", 2),
        (direction, "std\nrep movsb\ncld\nret", 1),
        (wants_outside, "mov wherry_thresholds(%rip), %rax\nret", 0),
        (wants_outside, "mov wherry_thresholds@GOTPCREL(%rip), %rax\nret", 1),
        (wants_outside, "mov other(%rip), %rax\njmp g\n", 2),
        (wants_outside, "movabs $g, %rax\nret\n.pushsection .data\n.quad f\n.popsection", 2),
    ],
)
def test_an_offender_is_seen(tmp_path: Path, property_, lines: str, offenders: int):
    need_tool("objdump", "binutils")
    assert len(property_(assembled(tmp_path, lines))) == offenders


@pytest.mark.parametrize(
    ("lines", "offenders"),
    [
        ("ret", 1),
        ("test %rdx, %rdx\njz 1f\nsfence\n1: ret", 1),
        ("test %rdx, %rdx\njz 1f\nmovnti %rax, (%rdi)\n1: sfence\nret", 0),
    ],
)
def test_an_exit_without_a_fence_is_seen(tmp_path: Path, lines: str, offenders: int):
    need_tool("objdump", "binutils")
    made = assembled(tmp_path, lines)
    assert len(never_fenced(made, made.symbols["f"])) == offenders


@pytest.mark.parametrize(
    ("needs", "line", "wrong"),
    [
        ("BASE", "movdqu (%rsi), %xmm0", False),
        ("BASE", "vmovdqu (%rsi), %xmm0", True),
        ("BASE", "shlx %rax, %rcx, %rdx", True),
        ("AVX2", "vmovdqu (%rsi), %ymm0", False),
        ("AVX2", "vmovdqu64 (%rsi), %ymm16", True),
        ("AVX2", "vmovdqu64 (%rsi), %zmm0", True),
        ("AVX2", "movdqu (%rsi), %xmm0", True),
        ("AVX512", "vmovdqu8 (%rsi), %zmm0{%k1}{z}", False),
        ("AVX512", "movups (%rsi), %xmm0", True),
    ],
)
def test_a_wrong_width_is_seen(tmp_path: Path, needs: str, line: str, wrong: bool):
    need_tool("objdump", "binutils")
    assert bool(too_wide(assembled(tmp_path, f"{line}\nret"), needs)) == wrong


def test_what_routines_may_read_is_known():
    assert "wherry_thresholds" in hidden_data("src/routines")
    assert {"wherry_recent_sets", "wherry_touched"} <= hidden_data("src/routines")
    assert {"wherry_choice", "wherry_copy_choice"} <= hidden_data("src/dispatch")
