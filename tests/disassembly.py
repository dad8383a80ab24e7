"""Object files as lists of instructions, with the jumps between them, for the tests of what was generated."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from conftest import ROOT, run

REGISTRY = ROOT / "src/routines/registry.def"
Place = tuple[str, int]  # section, offset


class Row(NamedTuple):
    """A line of the registry."""

    name: str
    op: str
    needs: str
    traits: frozenset[str]
    file: str

    @property
    def symbol(self) -> str:
        return f"wherry_routine_{self.name}"

    @property
    def object(self) -> str:
        return "routines_" + self.file.replace("/", "_") + ".o"


def registry() -> list[Row]:
    lines = re.findall(r"^ROUTINE\((.*)\)$", REGISTRY.read_text(), flags=re.MULTILINE)
    columns = [[word.strip() for word in line.split(",")] for line in lines]
    return [Row(c[0], c[1], c[2], frozenset(re.findall(r"TRAIT_\w+", c[3])), c[6]) for c in columns]


@dataclass
class Instruction:
    place: Place
    words: list[str]  # prefixes and mnemonic
    operands: str
    relocation: tuple[str, str, int] | None = None  # type, symbol, addend

    @property
    def mnemonic(self) -> str:
        return self.words[-1]

    @property
    def written(self) -> str:
        """The last operand, which is what most instructions write."""
        return re.sub(r"^.*,(?![^(]*\))", "", self.operands)

    def __str__(self) -> str:
        return f"{self.place[0]}+{self.place[1]:#x}: {' '.join(self.words)} {self.operands}"

    @property
    def string(self) -> bool:
        """movs, stos, lods, scas, cmps: the instructions with fixed index registers."""
        if re.fullmatch(r"(stos|lods|scas)[bwlq]?", self.mnemonic):
            return True
        # movs and cmps, names that SSE2 has too, alone have two operands in memory. Newer binutils name no segment.
        return len(re.findall(r"\(%r[sd]i\)", self.operands)) == 2

    def limits(self, mnemonic: str, most: int) -> str | None:
        """The register that this mnemonic meets with a constant not above most."""
        found = re.fullmatch(r"\$0x([0-9a-f]+),(%\w+)", self.operands)
        small = bool(found) and self.mnemonic.startswith(mnemonic) and int(found[1], 16) <= most
        return register(found[2]) if found and small else None


def register(name: str) -> str:
    """One name for the registers that are parts of each other: rcx for %ecx, %cx, %cl."""
    name = name.lstrip("%")
    if found := re.fullmatch(r"(r\d+)[dwb]?", name):
        return found[1]
    letters = re.fullmatch(r"[re]?(ax|bx|cx|dx|si|di|bp|sp)|([abcd])[lh]|(si|di|bp|sp)l", name)
    return "r" + (letters[1] or letters[3] or letters[2] + "x") if letters else name


@dataclass
class Symbol:
    name: str
    place: Place
    size: int
    kind: str


@dataclass
class Object:
    path: Path
    instructions: dict[Place, Instruction] = field(default_factory=dict)
    symbols: dict[str, Symbol] = field(default_factory=dict)
    following: dict[Place, Place] = field(default_factory=dict)
    data_relocations: list[tuple[str, str, str]] = field(default_factory=list)

    def functions(self) -> list[Symbol]:
        return [s for s in self.symbols.values() if s.kind == "FUNC"]

    def resolve(self, instruction: Instruction) -> Place | None:
        """Where a direct jump or call goes inside this object; None when it leaves it or is computed."""
        if instruction.relocation:
            _, name, addend = instruction.relocation
            symbol = self.symbols.get(name)
            return (symbol.place[0], symbol.place[1] + addend + 4) if symbol else None
        target = re.match(r"([0-9a-f]+) <", instruction.operands)
        return (instruction.place[0], int(target[1], 16)) if target else None

    def successors(self, instruction: Instruction) -> list[Place]:
        """Where control may go next inside the object. A computed jump may go to wherever nothing else leads."""
        if instruction.mnemonic in {"ret", "ud2", "hlt"}:
            return []
        after = [self.following[instruction.place]] if instruction.place in self.following else []
        if not is_jump(instruction):
            return after
        target = self.resolve(instruction)
        if target is None and "*" in instruction.operands:
            return self.orphans()
        onward = [target] if target in self.instructions else []
        return onward if instruction.mnemonic == "jmp" else onward + after

    def leaves(self, instruction: Instruction) -> bool:
        """Returns to the caller, or jumps to somebody else."""
        if instruction.mnemonic == "ret":
            return True
        return is_jump(instruction) and not self.successors(instruction)

    def previous(self, instruction: Instruction) -> Instruction | None:
        before = [a for a, b in self.following.items() if b == instruction.place]
        return self.instructions[before[0]] if before else None

    def orphans(self) -> list[Place]:
        led_to = {
            p
            for i in self.instructions.values()
            if "*" not in i.operands
            for p in self.successors(i)
        }
        starts = {s.place for s in self.functions()}
        return [place for place in self.instructions if place not in led_to | starts]


def is_jump(instruction: Instruction) -> bool:
    return instruction.mnemonic.startswith("j")


PREFIX = {"rep", "repz", "repnz", "lock", "notrack", "bnd", "data16", "cs"}
LINE = re.compile(
    r"^ *([0-9a-f]+):\t([^\t]*)(?:\t[0-9a-f]+: (R_X86_64_\w+)\t(\S+?)([-+]0x[0-9a-f]+)?)?$"
)


def load(path: Path) -> Object:
    made = Object(path)
    names: dict[str, str] = {}
    for line in run("readelf", "-SW", path, timeout=300).stdout.splitlines():
        if found := re.match(r" +\[ *(\d+)\] (\.\S+)", line):
            names[found[1]] = found[2]
    for line in run("readelf", "-sW", path, timeout=300).stdout.splitlines():
        word = line.split()
        if len(word) >= 7 and word[0][:-1].isdigit() and word[6] in names:
            place = (names[word[6]], int(word[1], 16))
            name = word[7] if len(word) > 7 else names[word[6]]
            made.symbols[name] = Symbol(name, place, int(word[2], 0), word[3])
    section = ""
    for line in run("objdump", "-drw", "--no-show-raw-insn", path, timeout=300).stdout.splitlines():
        if line.startswith("Disassembly of section "):
            section = line.split()[-1].rstrip(":")
        elif found := LINE.match(line):
            words, _, operands = found[2].split("#")[0].strip().partition(" ")
            text = [words]
            while text[-1] in PREFIX and operands:
                word, _, operands = operands.strip().partition(" ")
                text.append(word)
            made_of = (found[3], found[4], int(found[5] or "0", 16)) if found[3] else None
            place = (section, int(found[1], 16))
            made.instructions[place] = Instruction(place, text, operands.strip(), made_of)
    order = list(made.instructions)
    made.following = {a: b for a, b in pairwise(order) if a[0] == b[0]}
    target = ""
    for line in run("readelf", "-rW", path, timeout=300).stdout.splitlines():
        if found := re.match(r"Relocation section '\.rela(\S+)'", line):
            target = found[1]
        elif re.match(r"[0-9a-f]{16} ", line) and not re.match(r"\.(text|eh_frame|debug)", target):
            word = line.split()
            made.data_relocations.append((target, word[2], word[4]))
    return made


def reaches_an_exit(
    made: Object, sets: Callable[[Instruction], bool], clears: Callable[[Instruction], bool]
) -> list[Instruction]:
    """Exits that can be reached from an instruction that sets a state with none between that clears it."""
    pending = [i.place for i in made.instructions.values() if sets(i)]
    seen = set(pending)
    exits = []
    while pending:
        instruction = made.instructions[pending.pop()]
        if clears(instruction):
            continue
        if made.leaves(instruction):
            exits.append(instruction)
        for place in made.successors(instruction):
            if place not in seen:
                seen.add(place)
                pending.append(place)
    return exits


def bulk_strings(made: Object, most: int) -> list[Instruction]:
    """Repeated string instructions whose count no mask and no comparison on the way from the entry bounds to most."""
    pending: list[tuple[Place, frozenset[str]]] = [(s.place, frozenset()) for s in made.functions()]
    seen = set(pending)
    found = {}
    while pending:
        place, bounded = pending.pop()
        instruction = made.instructions.get(place)
        if instruction is None:
            continue
        if instruction.string and "rcx" not in bounded:
            found[place] = instruction
        compared = made.previous(instruction) if is_jump(instruction) else None
        below = compared.limits("cmp", most) if compared else None
        bounded = bounded_after(instruction, bounded, most)
        for onward in made.successors(instruction):
            side = {"ja", "jae"} if onward == made.following.get(place) else {"jb", "jbe"}
            known = {below} if below and instruction.mnemonic in side else set()
            state = (onward, bounded | known)
            if state not in seen:
                seen.add(state)
                pending.append(state)
    return list(found.values())


def bounded_after(instruction: Instruction, bounded: frozenset[str], most: int) -> frozenset[str]:
    """The registers that hold no more than most after an instruction, of which it is known for these before."""
    if masked := instruction.limits("and", most):
        return bounded | {masked}
    if not instruction.written.startswith("%") or re.match("cmp|test|push|j", instruction.mnemonic):
        return bounded
    written = register(instruction.written)
    source = re.fullmatch(r"(%\w+),%\w+", instruction.operands)
    moved = instruction.mnemonic.startswith("mov") and source and register(source[1]) in bounded
    return bounded | {written} if moved else bounded - {written}
