"""What a program's file says of itself: enough to know whether anything can be preloaded into it."""

from __future__ import annotations

import dataclasses
import errno
import io
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeVar

Read = TypeVar("Read")

# Those of the compilers that put memory routines, or guards of them, of their own into a program: symbols of which it
# has one, and its runtime as a library.
_SANITIZERS = {
    "AddressSanitizer": ((b"__asan_init",), b"libasan.so"),
    "HWAddressSanitizer": ((b"__hwasan_init",), b"libhwasan.so"),
    "ThreadSanitizer": ((b"__tsan_init",), b"libtsan.so"),
    "MemorySanitizer": ((b"__msan_init",), b"libmsan.so"),
    "LeakSanitizer": ((b"__lsan_init",), b"liblsan.so"),
    # The second is of clang's -fsanitize-minimal-runtime, which has nothing in common with the other runtime.
    "UndefinedBehaviorSanitizer": (
        (b"__ubsan_handle_type_mismatch_v1", b"__ubsan_handle_type_mismatch_minimal"),
        b"libubsan.so",
    ),
    "DataFlowSanitizer": ((b"__dfsan_init",), b"libdfsan.so"),
}
# Every runtime asks for this and goes on without: so it is among the symbols of a program that one is linked into, also
# of a stripped one, and of no other.
_ANY_SANITIZER = b"__sanitizer_symbolize_code"
# What such a runtime calls itself. Looked for in so many bytes of constants at most.
_OWN_NAME = re.compile(rb"([A-Z][A-Za-z]*Sanitizer)\0")
_CONSTANTS = 32 << 20
# libasan.so.8 is GCC's, libclang_rt.asan-x86_64.so and libclang_rt.ubsan_standalone.so clang's.
_RUNTIME = re.compile(r"lib(?:clang_rt\.)?(asan|hwasan|tsan|msan|lsan|ubsan|dfsan)(?![a-z])")
_MACHINES = {
    "EM_386": "32-bit x86",
    "EM_X86_64": "x86-64",
    "EM_AARCH64": "AArch64",
    "EM_ARM": "32-bit ARM",
    "EM_RISCV": "RISC-V",
    "EM_PPC64": "POWER",
    "EM_S390": "IBM Z",
}


@dataclasses.dataclass(frozen=True)
class Elf:
    machine: str
    bits: int
    kind: str  # executable, shared, other
    interpreter: str | None
    needed: tuple[str, ...] = ()
    sanitizer: str | None = None
    go: bool = False
    pie: bool = False
    soname: str | None = None


class DamagedError(ValueError):
    """An ELF header with something behind it that no loader would take."""


def _strings(elf) -> bytes:
    """The string tables one after the other: a symbol's name stands in one between two zeros."""
    tables = [elf.get_section_by_name(name) for name in (".dynstr", ".strtab")]
    return b"\0".join(table.data() for table in tables if table is not None)


def _constants(elf) -> bytes:
    """The first of what is neither code nor written to."""
    found, left = [], _CONSTANTS
    for section in elf.iter_sections():
        if section["sh_type"] == "SHT_PROGBITS" and section["sh_flags"] & 7 == 2:  # SHF_ALLOC alone
            elf.stream.seek(section["sh_offset"])
            found.append(elf.stream.read(min(section["sh_size"], left)))
            left -= len(found[-1])
    return b"\0".join(found)


def _sanitizer(elf, needed: tuple[str, ...]) -> str | None:
    names = _strings(elf)
    for sanitizer, (symbols, library) in _SANITIZERS.items():
        if any(b"\0" + symbol + b"\0" in names for symbol in symbols):
            return sanitizer
        if any(name.encode().startswith(library) for name in needed):
            return sanitizer
    if b"\0" + _ANY_SANITIZER + b"\0" not in names:
        return None
    own = {word.lower() for word in _OWN_NAME.findall(_constants(elf))}
    known = (sanitizer for sanitizer in _SANITIZERS if sanitizer.lower().encode() in own)
    return next(known, "a sanitizer")


def sanitizer_of_runtime(name: str) -> str | None:
    """Whose runtime a shared object of this name is, or None."""
    found = _RUNTIME.match(name)
    if not found:
        return None
    own = f"lib{found[1]}.so".encode()
    return next(sanitizer for sanitizer, (_, file) in _SANITIZERS.items() if file == own)


def _exports(file) -> frozenset[str]:
    from elftools.elf.elffile import ELFFile

    table = ELFFile(file).get_section_by_name(".dynsym")
    if table is None:
        return frozenset()
    return frozenset(
        symbol.name
        for symbol in table.iter_symbols()
        if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["bind"] != "STB_LOCAL"
    )


def _read(file) -> Elf:
    from elftools.elf.elffile import ELFFile

    elf = ELFFile(file)
    interpreter, needed, pie, soname = None, [], False, None
    for segment in elf.iter_segments():
        if segment["p_type"] == "PT_INTERP":
            interpreter = segment.get_interp_name()
        elif segment["p_type"] == "PT_DYNAMIC":
            for tag in segment.iter_tags():
                if tag.entry.d_tag == "DT_NEEDED":
                    needed.append(tag.needed)
                elif tag.entry.d_tag == "DT_SONAME":
                    soname = tag.soname
                elif tag.entry.d_tag == "DT_FLAGS_1":
                    pie = bool(tag.entry.d_val & 0x08000000)
    kinds = {"ET_EXEC": "executable", "ET_DYN": "shared"}
    machine = elf["e_machine"]
    return Elf(
        _MACHINES.get(machine, str(machine).removeprefix("EM_")),
        elf.elfclass,
        kinds.get(elf["e_type"], "other"),
        interpreter,
        tuple(needed),
        _sanitizer(elf, tuple(needed)),
        elf.get_section_by_name(".go.buildinfo") is not None,
        pie,
        soname,
    )


def executable(path: Path) -> bool:
    """Whether the kernel would execute what begins as an ELF file: it looks at less than `read`. Raises OSError."""
    with path.open("rb") as file:
        head, size = file.read(64).ljust(64, b"\0"), file.seek(0, 2)
    if head[16:18] not in (b"\2\0", b"\3\0"):
        return False
    if head[4] != 2 or head[18:20] != b"\x3e\0":  # EM_X86_64: others are others' affair
        return True
    place, entry_bytes, count = struct.unpack("<32xQ14xHH6x", head)
    return entry_bytes == 56 and count > 0 and place + entry_bytes * count <= size


class _WithoutSections(io.RawIOBase):
    """The file, but that its header names no sections: no loader looks at those, and packers leave any."""

    def __init__(self, file: BinaryIO):
        self._file = file
        file.seek(0)
        self._head = bytearray(file.read(64))
        self._head[40:48] = bytes(8)  # e_shoff
        self._head[60:64] = bytes(4)  # e_shnum, e_shstrndx

    def seek(self, place: int, whence: int = 0) -> int:
        return self._file.seek(place, whence)

    def tell(self) -> int:
        return self._file.tell()

    def read(self, size: int = -1) -> bytes:
        place = self._file.tell()
        data = bytearray(self._file.read(size))
        data[: max(64 - place, 0)] = self._head[place : place + len(data)]
        return bytes(data)


def _read_without_sections(file: BinaryIO) -> Elf:
    return _read(_WithoutSections(file))


def read(path: Path) -> Elf:
    """OSError when it cannot be read, DamagedError when it is no ELF that can be made sense of. Of one whose section
    headers are damaged it is not known who built it."""
    try:
        return _made_sense_of(path, _read)
    except DamagedError:
        return _made_sense_of(path, _read_without_sections)


def exports(path: Path) -> frozenset[str]:
    """What others can call in it; of a shell that takes a tenth of a second. Raises as `read`."""
    return _made_sense_of(path, _exports)


def _made_sense_of(path: Path, of: Callable[[BinaryIO], Read]) -> Read:
    with path.open("rb") as file:
        try:
            return of(file)
        except OSError as error:
            if error.errno != errno.EINVAL:  # a header that says to look where no file reaches
                raise
            raise DamagedError("its header names places that no file has") from None
        except (ImportError, MemoryError):  # which tell nothing of the file
            raise
        except (
            Exception
        ) as error:  # whatever the library meets in bytes that anybody may have written
            raise DamagedError(f"{type(error).__name__}: {error}") from None
