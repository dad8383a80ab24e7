"""Where the text lies that the compiler and the assembler made: in which page, in which line, and what is set apart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import need_tool, run
from disassembly import Object, is_jump
from test_codegen import names_of_functions, public

__all__ = ["public"]  # a fixture


# A jump taken to another page costs a cycle (docs/performance-avx2.md).
ONE_PAGE = (
    ("wherry_memcpy", "copy_avx2", "copy_avx512", "wherry_bcopy", "wherry_mempcpy"),
    ("wherry_memset", "set_avx2", "set_avx512", "wherry_bzero"),
)
PAGE = 4096
# Of those that survive faults each is as large as a page, and has one of its own.
PAGE_OF_ITS_OWN = ("wherry_guarded_copy_avx2", "wherry_nofault_copy")


@pytest.mark.parametrize("name", PAGE_OF_ITS_OWN)
def test_a_guarded_copy_stays_in_its_page(build_dir: Path, name: str):
    found = functions_of(build_dir / "src/libwherry.so")
    start, size = found[name]
    assert start // PAGE == (start + size - 1) // PAGE


def functions_of(library: Path) -> dict[str, tuple[int, int]]:
    """Address and size."""
    need_tool("readelf", "binutils")
    found = {}
    for line in run("readelf", "--syms", "--wide", library).stdout.splitlines():
        words = line.split()
        if len(words) > 7 and words[3] == "FUNC" and words[6] != "UND":
            found[words[-1].split("@")[0]] = (int(words[1], 16), int(words[2], 0))
    return found


@pytest.mark.parametrize("names", ONE_PAGE)
def test_a_call_stays_in_its_page(build_dir: Path, public: Object, names: tuple[str, ...]):
    names = tuple(name for name in names if name in names_of_functions(public))
    assert len(names) == (4 if "wherry_memcpy" in names else 3)
    places = [public.symbols[name] for name in names]
    ends = [at for it in places for at in (it.place[1], it.place[1] + it.size - 1)]
    assert len({at // PAGE for at in ends}) == 1
    for library in (build_dir / "src/libwherry.so", build_dir / "preload/libwherry-dropin.so"):
        found = {
            name.removeprefix("wherry_"): at for name, (at, _) in functions_of(library).items()
        }
        shown = [found[name.removeprefix("wherry_")] for name in names]
        assert len({at // PAGE for at in shown}) == 1, library


def test_loops_do_not_begin_late_in_a_line_of_code(public: Object):
    """In its last quarter that took up to a tenth more of the time of 1 to 2 KiB on a Zen 5."""
    line, longest = 64, 128
    own = "copy_avx512" if "copy_avx512" in names_of_functions(public) else "wherry_memcpy"
    copies = public.symbols[own], public.symbols["move_longest"]
    loops = []
    for jump in public.instructions.values():
        begin = public.resolve(jump) if is_jump(jump) else None
        own = begin and any(
            begin[0] == copy.place[0] and 0 <= begin[1] - copy.place[1] < copy.size
            for copy in copies
        )
        if own and 0 < jump.place[1] - begin[1] < longest:
            body = [public.instructions[begin]]
            while body[-1] is not jump:
                body.append(public.instructions[public.following[body[-1].place]])
            looping = not {"ret", "jmp"} & {i.mnemonic for i in body}
            if looping and any("zmm" in i.operands for i in body):
                loops.append(begin[1])
    # Forward and either way; and one joins lines, or, where the page's end is no branch, two are for 513 to 1024 bytes
    # apart and for 256 to 1024 together.
    assert len(loops) == (4 if "move_together_loop" in public.symbols else 3)
    assert [hex(begin) for begin in loops if begin % line >= line * 3 // 4] == []


def test_what_is_set_apart_refers_to_nothing_outside(build_dir: Path):
    """The timed loops are mapped a second time, elsewhere (runner/measure/apart.h)."""
    need_tool("readelf", "binutils")
    (path,) = (build_dir / "runner").glob("**/libtimed-loops.a.p/loops.c.o")
    sections = run("readelf", "--sections", "--wide", path).stdout
    assert re.search(r"\btimed_loops\s+PROGBITS\b.* AX ", sections)
    relocated = run("readelf", "--relocs", "--wide", path).stdout
    assert "'.rela.text'" in relocated and "'.relatimed_loops'" not in relocated
