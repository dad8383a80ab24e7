"""Who called: from a place in a file to the names of functions, with what the file and the tools here can tell."""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import functools
import itertools
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

MOST = 40
# Which of several blocks of one line it is; of use to compilers.
_DISCRIMINATOR = re.compile(r" \(discriminator \d+\)$")
# What addr2line writes: in front of what it knows of a place, and behind the name of a file.
_ADDRESS = re.compile(r"0x[0-9a-f]+")
_LINE_NUMBER = re.compile(r":(?:\d+|\?)(?: \(discriminator \d+\))?$")
_GONE = " (deleted)"  # what the kernel has behind the name of such a file
# Symbols of larger files take too long to read.
LARGEST = 1 << 30
LIMIT_S = 20


@dataclasses.dataclass
class _Object:
    path: str
    build_id: str | None = None
    segments: tuple[tuple[int, int, int], ...] = ()  # offset, size, address
    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    names: tuple[str, ...] = ()

    def address(self, offset: int) -> int | None:
        return next(
            (a + offset - o for o, size, a in self.segments if o <= offset < o + size), None
        )

    def nearest(self, address: int) -> str | None:
        at = bisect.bisect_right(self.starts, address) - 1
        # What was stripped would else be taken for whatever exported function comes before it.
        return self.names[at] if at >= 0 and address < self.ends[at] else None


@dataclasses.dataclass(frozen=True)
class Alive:
    """Where files are that are not here, or not any more, while processes live that have them: those of a container
    below its root, and those that were removed or replaced, which the kernel keeps under names of its own."""

    roots: tuple[str, ...] = ()
    removed: tuple[tuple[str, str], ...] = ()

    def names(self, path: str) -> list[str]:
        # As a process's maps have it: a line feed is \\012 there, and a backslash itself.
        names = dict.fromkeys((path, path.replace("\\012", "\n")))
        there = [root + name for root in self.roots for name in names]
        return [*names, *there, *(kept for name, kept in self.removed if name in names)]


def alive(pids: Iterable[int]) -> Alive:
    """One of each: a service may have hundreds of processes of one program in one container."""
    roots = {_file("/proc/self/ns/mnt", "/proc/self/root"): ""}
    kept: dict[tuple | None, list[tuple[str, str]]] = {None: []}
    for pid in sorted(pids):
        own = f"/proc/{pid}"
        if view := _file(f"{own}/ns/mnt", f"{own}/root"):
            roots.setdefault(view, f"{own}/root")
        program = _file(f"{own}/exe")
        if program not in kept:
            kept[program] = list(_removed(own))
    return Alive(tuple(filter(None, roots.values())), tuple(itertools.chain(*kept.values())))


def _removed(process: str) -> Iterator[tuple[str, str]]:
    """What it has mapped and nobody finds any more, by the name that it had: its program, and where we are root
    everything."""
    with contextlib.suppress(OSError):
        for file in (Path(process, "exe"), *Path(process, "map_files").iterdir()):
            name = str(file.readlink())
            if name.endswith(_GONE):
                yield name, str(file)
                yield name.removesuffix(_GONE), str(file)


def _file(*names: str) -> tuple | None:
    """What these names lead to; None: to nothing that we may see."""
    try:
        return tuple((found.st_dev, found.st_ino) for found in map(os.stat, names))
    except OSError:
        return None


@functools.lru_cache(64)
def _object(path: str, device: int, inode: int, where: Alive) -> _Object | None:
    """None when the file is not the one that ran any more, or cannot be read."""
    for name in where.names(path):
        try:
            found = Path(name).stat()
            if (inode and found.st_ino != inode) or found.st_size > LARGEST:
                continue
            # A recording names what it likes, and a pipe would be waited for.
            if not stat.S_ISREG(found.st_mode):
                continue
            with Path(name).open("rb") as file:
                return _read(name, file)
        except Exception:  # a file that anybody may have written, and a library that takes it apart
            continue
    return None


def _read(path: str, file) -> _Object:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import NoteSection

    elf = ELFFile(file)
    build_id = None
    for section in elf.iter_sections():
        if isinstance(section, NoteSection) and section.name == ".note.gnu.build-id":
            for note in section.iter_notes():
                build_id = str(note["n_desc"])
    loads = [s for s in elf.iter_segments() if s["p_type"] == "PT_LOAD"]
    segments = tuple((s["p_offset"], s["p_filesz"], s["p_vaddr"]) for s in loads)
    symbols: dict[int, tuple[int, str]] = {}
    for name in (".dynsym", ".symtab"):
        table = elf.get_section_by_name(name)
        if table is None:
            continue
        for symbol in table.iter_symbols():
            if symbol["st_info"]["type"] in ("STT_FUNC", "STT_GNU_IFUNC") and symbol["st_value"]:
                symbols[symbol["st_value"]] = (symbol["st_size"], symbol.name)
    starts = tuple(sorted(symbols))
    return _Object(
        path,
        build_id,
        segments,
        starts,
        tuple(at + max(symbols[at][0], 1) for at in starts),
        tuple(symbols[at][1] for at in starts),
    )


def _lines(path: str, addresses: Sequence[int]) -> dict[int, list[tuple[str, str]]]:
    """By address: the function and the source line, then those that it was inlined into."""
    tool = shutil.which("addr2line")
    if not tool or not addresses:
        return {}
    command = [tool, "-a", "-f", "-i", "-C", "-e", path, *(hex(a) for a in addresses)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    found: dict[int, list[tuple[str, str]]] = {}
    current: list[tuple[str, str]] | None = None
    function, source = None, ""
    for line in done.stdout.split("\n"):
        if function is None and _ADDRESS.fullmatch(line):
            current = found.setdefault(int(line, 16), [])
        elif function is None:
            function = line
        else:
            # A file's name may have several lines.
            source += line
            if not _LINE_NUMBER.search(line):
                source += "\n"
                continue
            if current is not None:
                current.append((function, source))
            function, source = None, ""
    return found


def _printable(path: str) -> str:
    """As a file of text can hold it."""
    return path.encode(errors="surrogateescape").decode(errors="replace")


def named(
    callers: Mapping[tuple, Sequence[float]], pids: Iterable[int] = (), most: int = MOST
) -> list[dict]:
    """The callers with the most bytes, and those with the most calls, as a mix has them. `pids`: of the recorded
    processes those that live."""
    elsewhere = alive(pids)
    # One that was ended amid its first call left a place, and nothing that came from there.
    callers = {where: own for where, own in callers.items() if round(own[0])}
    by_bytes = sorted(callers, key=lambda where: -callers[where][1])
    by_calls = sorted(callers, key=lambda where: -callers[where][0])
    half = max(most // 2, 1)
    chosen = dict.fromkeys([*by_bytes[:half], *by_calls[:half]])
    places: dict[str, list[int]] = {}
    files: list[str | None] = []
    rows = []
    for where in sorted(chosen, key=lambda where: -callers[where][1]):
        op, path, device, inode, offset = where
        calls, size = callers[where]
        known = _object(path, device, inode, elsewhere) if path.startswith("/") else None
        # The call is before the place that it returns to.
        address = known.address(offset - 1) if known else None
        row = {
            "op": op,
            "module": _printable(path) or "(no file)",
            "build_id": known.build_id if known else None,
            "offset": address,
            "function": known.nearest(address) if known and address is not None else None,
            "source": None,
            "inlined_into": [],
            "calls": round(calls),
            "bytes": round(size),
        }
        if address is not None:
            places.setdefault(known.path, []).append(address)
        files.append(known.path if known else None)
        rows.append(row)
    for path, addresses in places.items():
        lines = _lines(path, sorted(set(addresses)))
        for row, file in zip(rows, files, strict=True):
            frames = lines.get(row["offset"]) if file == path else None
            if not frames or frames[0][0] == "??":
                continue
            function, source = frames[0]
            if not source.startswith("??"):
                # `file.c:?` is a file without lines, of a program without debug information.
                row["source"] = _DISCRIMINATOR.sub("", source).removesuffix(":?")
            elif row["function"] is None:
                continue  # addr2line names what comes before it, as far away as that may be
            row["function"] = function
            row["inlined_into"] = [function for function, _ in frames[1:]]
    return rows
