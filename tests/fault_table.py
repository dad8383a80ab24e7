"""The fault table of a program that has the library in it; and whether verification sees each entry when it is gone.

    .venv/bin/python tests/fault_table.py BUILD/runner/wherry-run [--only NAME] [--jobs N]

removes one entry at a time and has the functions that it belongs to verified: first briefly, then longer, with other
seeds. A crash counts as seen. Some entries are met only when a page goes away during a call, at just that instruction.
"""

from __future__ import annotations

import argparse
import re
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ENTRY_BYTES = 12
REPORT = 4  # of an entry's kind, as in fault_table.h
FAMILY = "nofault"
PLACES = re.compile(r"^wherry_(?:guarded|nofault)_(copy_csum|copy|set)(?:_(sse2|avx2|avx512))?$")
FUNCTIONS = {
    "copy": "wherry_copy_nofault",
    "set": "wherry_set_nofault",
    "copy_csum": "wherry_csum_copy_nofault",
}
SMALL = ("nofault@avx512_together", "nofault@avx512_ladder")
LEVELS = ("--brief", "--quick", "--quick", "--quick", "--quick")


class Table(NamedTuple):
    offset: int  # in the file
    address: int
    count: int


class Entry(NamedTuple):
    number: int
    instruction: int  # its address
    resume: int
    kind: int
    what: str  # copy, set, copy_csum
    tier: str
    within: int  # offset in its function

    @property
    def name(self) -> str:
        return f"{self.what}_{self.tier}+{self.within:#x}"


def said_by(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def table_of(program: Path) -> Table:
    said = said_by("readelf", "-SW", program)
    found = re.search(r" wherry_faults +PROGBITS +([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+) ", said)
    if not found:
        raise ValueError(f"{program} has no fault table: give a wherry-run that was built here")
    address, offset, size = (int(word, 16) for word in found.groups())
    return Table(offset, address, size // ENTRY_BYTES)


def entries_of(program: Path) -> list[Entry]:
    """In the order of the table."""
    places = []
    for line in said_by("nm", program).splitlines():
        address, _, name = [*line.split(), "", ""][:3]
        if found := PLACES.match(name):
            places.append((int(address, 16), found[1], found[2] or "avx512"))
    table = table_of(program)
    data = program.read_bytes()[table.offset :]
    found = []
    for number in range(table.count):
        at = table.address + number * ENTRY_BYTES
        instruction, resume, kind = struct.unpack_from("<iiI", data, number * ENTRY_BYTES)
        start, what, tier = max(place for place in places if place[0] <= at + instruction)
        within = at + instruction - start
        found.append(Entry(number, at + instruction, at + 4 + resume, kind, what, tier, within))
    return found


def broken(program: Path, target: Path, number: int, field: int, change: int) -> Path:
    """The program with one field of one entry changed: instruction, resume or kind."""
    table = table_of(program)
    data = bytearray(program.read_bytes())
    place = table.offset + number * ENTRY_BYTES + field * 4
    value = struct.unpack_from("<i", data, place)[0]
    struct.pack_into("<i", data, place, value ^ change if field == 2 else value + change)
    target.write_bytes(data)
    target.chmod(0o755)
    return target


def targets_of(entry: Entry) -> list[str]:
    """The function that the entry belongs to, by every method and each way of its small sizes."""
    methods = ("", "+stream") if entry.what == "copy_csum" else ("", "+stream", "+rep")
    ways = SMALL if entry.what in ("copy", "set") and entry.tier == "avx512" else ()
    names = [*(f"nofault@{entry.tier}{method}" for method in methods), *ways]
    return [f"{name}:{FUNCTIONS[entry.what]}" for name in names]


def verified(
    program: Path, entry: Entry, level: str, seed: int
) -> subprocess.CompletedProcess[str]:
    options = ("--family", FAMILY, level, "--jobs", "1", "--seed", str(seed))
    command = [program, "verify", *targets_of(entry), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def seen_after(program: Path, entry: Entry) -> int:
    """How many verifications it took to see that the entry is gone; 0: none saw it."""
    with tempfile.TemporaryDirectory() as scratch:
        without = broken(program, Path(scratch) / "broken", entry.number, 0, -1)
        for turn, level in enumerate(LEVELS):
            if verified(without, entry, level, 7 + turn).returncode == 1:
                return turn + 1
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path, help="a wherry-run with symbols")
    parser.add_argument("--only", default="", help="what the names begin with: copy_sse2, set ...")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    try:
        entries = [
            entry for entry in entries_of(options.program) if entry.name.startswith(options.only)
        ]
    except (ValueError, OSError, subprocess.CalledProcessError) as error:
        print(f"fault_table: {error}", file=sys.stderr)
        return 2
    for entry in {(e.what, e.tier): e for e in entries}.values():
        if (done := verified(options.program, entry, "--brief", 7)).returncode != 0:
            print(
                f"fault_table: {entry.name}: wrong with all entries there:\n{done.stdout}",
                file=sys.stderr,
            )
            return 2
    taken = [0] * (len(LEVELS) + 1)
    with ThreadPoolExecutor(options.jobs) as pool:
        turns = pool.map(lambda entry: seen_after(options.program, entry), entries)
        for count, (entry, turn) in enumerate(zip(entries, turns, strict=True), 1):
            taken[turn] += 1
            if turn != 1:
                print(
                    f"{entry.name}: " + (f"seen by verification {turn}" if turn else "not seen"),
                    flush=True,
                )
            if sys.stderr.isatty() or count % 100 == 0:
                print(f"{count} of {len(entries)}", file=sys.stderr, flush=True)
    for turn, level in enumerate(LEVELS, 1):
        print(f"{taken[turn]:5} entries seen by verification {turn} ({level})")
    print(f"{taken[0]:5} of {len(entries)} entries not seen")
    return 1 if taken[0] else 0


if __name__ == "__main__":
    sys.exit(main())
