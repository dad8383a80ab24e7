"""The files that recorded processes leave, as preload/recorder/block.h lays them out."""

from __future__ import annotations

import dataclasses
import functools
import struct
from pathlib import Path

import numpy as np

MAGIC, VERSION = b"WHERRYRC", 13
PAGE = 4096
OPS = ("copy", "move", "set")
FUNCTIONS = (
    *("memcpy", "mempcpy", "__mempcpy", "wmemcpy", "wmempcpy", "__memcpy_chk", "__mempcpy_chk"),
    *("__wmemcpy_chk", "__wmempcpy_chk", "memmove", "bcopy", "wmemmove", "__memmove_chk"),
    *("__wmemmove_chk", "memset", "bzero", "__bzero", "explicit_bzero", "memset_explicit"),
    *("wmemset", "__memset_chk", "__explicit_bzero_chk", "__memset_explicit_chk", "__wmemset_chk"),
)
OP_OF = {name: OPS[(i >= 9) + (i >= 14)] for i, name in enumerate(FUNCTIONS)}
EXACT, OCTAVE, LARGEST_LOG, ALWAYS_FROM = 1024, 16, 44, 16384
SIZES = EXACT + 1 + (LARGEST_LOG - 10) * OCTAVE
SIZE_GROUPS, ALIGNMENTS, DISTANCES, OVERLAPS = 19, 7, 4, 4
SET_PLACES = SIZE_GROUPS * ALIGNMENTS
PLACES = SET_PLACES * ALIGNMENTS * DISTANCES * OVERLAPS
CALLERS, BURST, BURSTS, MODULES, NAMES = 512, 256, 32, 256, 1 << 16
TIME_CLASSES, FOLLOWED, PLACES_KNOWN, LOG = 80, 4, 3, 128
TRIAL_GROUPS, TURNS, LASTING_TURNS = 6, 2048, 256
BLOCKS = 4096
_SEVERAL_NAMES = b"\0" * 15 + b"\1"
# A caller in what was unloaded, by its module's number and its offset there.
_SETTLED, _OFFSETS = 1 << 61, 1 << 52
TIME_FIELDS = 6 + PLACES_KNOWN * PLACES_KNOWN

_BLOCK = np.dtype(
    [
        ("owner", "<u4"),
        ("claims", "<u4"),
        ("name", "S16"),
        ("until_sample", "<u8"),
        ("samples", "<u8"),
        ("next_burst", "<u8"),
        ("burst_at", "<u8"),
        ("burst_place", "<u8"),
        ("bursts_begun", "<u8"),
        ("random", "<u8"),
        ("until_timed", "<u8"),
        ("timed", "<u8"),
        ("looks", "<u8"),
        ("larger", "<u8"),
        ("larger_bytes", "<u8"),
        ("calls", "<u8"),
        ("sample_at", "<u8"),
        ("emptying", "<u8"),
        ("emptied", "<u8"),
        ("began", "<u8"),
        ("aside", "<u8"),
        ("aside_before", "<u8"),
        ("aside_late", "<u8"),
        ("followed", "<u8"),
        ("places_kept", "<u8", (FOLLOWED, 3)),
        ("functions", "<u8", 32),
        ("sizes", "<u8", (3, SIZES)),
        ("log_bytes", "<u8", (3, SIZES - EXACT - 1)),
        ("places", "<u8", (2, PLACES)),
        ("set_places", "<u8", SET_PLACES),
        # the last of each op: those without room
        ("callers", "<u8", (CALLERS + len(OPS), 5)),
        ("bursts", "<u8", (BURSTS, BURST)),
        # calls, bytes, ticks, faults, ticks of faults, late; then where both sides were
        ("times", "<u8", (3, TIME_CLASSES, TIME_FIELDS)),
        # calls, on from a source, on from a destination
        ("order", "<u8", (3, SIZE_GROUPS, 3)),
        # of both sides of a trial: calls and ticks of each group
        ("trials", "<u8", (3, TIME_CLASSES, 2, TRIAL_GROUPS, 2)),
        # calls that do nothing, and what they took when they were timed
        ("nothings", "<u8"),
        ("nothing_ticks", "<u8"),
        ("both", "<u8"),
        # destination, source, what
        ("log", "<u8", (LOG, 3)),
    ]
)
# So many calls of a block may be counted in part: that which was under way, and those of handlers within it.
CUT_OFF = 64
# In years nobody makes more.
_MOST_CALLS = 1 << 56
# What a timed call takes at most, in ticks: so much and so much a byte; and of how many pages beside its own a page
# fault is told (preload/recorder/timing.c).
_LATE_TICKS, _LATE_TICKS_A_BYTE, _TOUCHES, _NOTHING_TICKS = 1 << 17, 4, 16, 800
_HEADER = struct.Struct("<8sIIIIQIIIIIIQQQQQ4096s")
_MODULE = struct.Struct("<QQQQQIIQ")
# When a turn ends, and what was counted when it began; of the largest calls how many there were, what they took, and
# both for the turn; two states; of short turns and of those that last how long they are and how many there were. Then
# pairs of both kinds: of both sides ticks, calls, those of more than EXACT bytes and the bytes of these.
_TURNS = struct.Struct("<Q4Q4Q2Q4Q")
TURN_FIELDS = 4


def _pages(size: int) -> int:
    return -(-size // PAGE) * PAGE


# The struct's own alignment rounds it up.
BLOCK_BYTES = _pages(-(-_BLOCK.itemsize // 64) * 64)
_NAMES_AT = _HEADER.size + MODULES * _MODULE.size
_TURNS_AT = _NAMES_AT + NAMES
_PAIR_BYTES = 2 * TURN_FIELDS * 8
_LASTING_AT = _TURNS_AT + _TURNS.size + TURNS * _PAIR_BYTES
HEADER_BYTES = _pages(_LASTING_AT + LASTING_TURNS * _PAIR_BYTES)


class DamagedError(ValueError):
    """Not a file of the recorder, or one of another version."""


class RefusedError(Exception):
    """A process could begin no more than its file: for want of room, in the directory or in its own memory, or as files
    may not become so large."""

    def __init__(self, why: int) -> None:
        super().__init__()
        self.why = why


# The permissions of such a file tell why.
NO_MEMORY, NO_ROOM, FILE_LIMIT = 0o100, 0o200, 0o400


@dataclasses.dataclass(frozen=True)
class Module:
    begin: int
    end: int
    offset: int
    device: int
    inode: int
    path: str
    gone: bool = False  # unloaded


@dataclasses.dataclass(frozen=True)
class Span:
    """When a process, or what it had executed last, was recorded."""

    pid: int
    parent: int
    cpu_ns: int  # of processor time, when it began
    clock_ns: int  # of the monotonic clock, then
    begin_ticks: int
    end_ticks: int  # the last that is known of it; not before begin_ticks


@dataclasses.dataclass(frozen=True)
class Process:
    pid: int
    program: str
    uncounted: int
    modules: tuple[Module, ...]
    blocks: tuple[np.void, ...]
    turns: np.ndarray  # pairs of turns, sides, TURN_FIELDS
    lasting: np.ndarray  # the same of turns that last
    span: Span
    started: int  # in ticks since boot, whatever it executed since; 0: nobody knows
    exited: bool  # by exit()
    damaged: int = 0  # blocks that were left out

    def caller(self, key: int) -> tuple[str, Module | None, int]:
        """Of a block's caller: the op, where it was, and the offset in that file."""
        op, address = OPS[min(key >> 62, 2)], key & (_SETTLED - 1)
        if key & _SETTLED:
            number, offset = divmod(address, _OFFSETS)
            return op, self.modules[number] if number < len(self.modules) else None, offset
        # One that was unloaded unseen may lie where a later one is.
        lying = (m for m in reversed(self.modules) if m.begin <= address < m.end)
        module = min(lying, key=lambda m: m.gone, default=None)
        return op, module, address - module.begin + module.offset if module else 0


def _text(data: bytes) -> str:
    """A path as Python has those that are no text, so that it can be compared and opened."""
    return data.split(b"\0", 1)[0].decode(errors="surrogateescape")


def thread_name(block: np.void) -> str | None:
    """What all of its threads were called at last; None: they had several names."""
    name = bytes(block["name"])
    return None if name == _SEVERAL_NAMES else name.decode(errors="surrogateescape")


def program_of(path: str) -> str:
    """As the kernel names it, less what it adds where the file is gone."""
    return path.removesuffix(" (deleted)")


def _settled(block: np.void) -> np.void:
    """With what was logged last, and is not counted yet."""
    waiting = [call for call in block["log"].tolist() if call[2] >> 31 & 1]
    if not waiting:
        return block
    block = block.copy()
    for target, source, what in waiting:
        size, function, op = what & (ALWAYS_FROM - 1), what >> 16 & 31, what >> 21 & 3
        # A larger one was counted at once; beyond these it is damaged.
        if what >> 23 & 1 or op >= len(OPS):
            continue
        index = size if size <= EXACT else _class_of(size)
        block["functions"][function] += 1
        block["sizes"][op][index] += 1
        if size > EXACT:
            block["log_bytes"][op][index - EXACT - 1] += size
        group = _group_of(size) * ALIGNMENTS
        to = _alignment(target)
        if OPS[op] == "set":
            block["set_places"][group + to] += 1
            continue
        apart = (target - source) % PAGE
        distance = (apart > 0) + (apart > 63) + (apart > 1536)
        both = (group + _alignment(source)) * ALIGNMENTS + to
        overlap = _overlap(target - source, size)
        block["places"][op][(both * DISTANCES + distance) * OVERLAPS + overlap] += 1
    return block


def _alignment(address: int) -> int:
    """The power of two that divides it, of those to 64."""
    address |= 64
    return (address & -address).bit_length() - 1


def _overlap(apart: int, size: int) -> int:
    """The place in OVERLAPS of a distance from source to destination."""
    if 0 <= apart < size:
        return 1 if apart else 3
    return 2 if -size < apart < 0 else 0


def _group_of(size: int) -> int:
    """Of sizes that are logged."""
    return (size - 1 | 8).bit_length() - 3 if size else 0


def _class_of(size: int) -> int:
    """Of sizes above EXACT that are logged."""
    octave = size.bit_length() - 1
    return EXACT + 1 + (octave - 10) * OCTAVE + (size >> (octave - 4)) % OCTAVE


def _agrees(block: np.void) -> bool:
    """Whether sizes, places and names tell of as many calls of each op, but for those that the end cut off between; and
    nothing else of more than that."""
    # Not in 64 bits: what is below zero by damage would be a few calls fewer there.
    named = dict.fromkeys(OPS, 0)
    for function, calls in zip(FUNCTIONS, block["functions"].tolist(), strict=False):
        named[OP_OF[function]] += calls
    placed = [*block["places"].astype(float).sum(axis=1), block["set_places"].astype(float).sum()]
    sized = block["sizes"].astype(float).sum(axis=1).tolist()
    return (
        not block["functions"][len(FUNCTIONS) :].any()
        and all(
            abs(size - other) <= CUT_OFF
            for others in (placed, named.values())
            for size, other in zip(sized, others, strict=True)
        )
        and _bytes_agree(block)
        and _timed_agree(block)
        and _order_agrees(block)
        and _callers_agree(block, sized)
    )


@functools.cache
def size_bounds() -> np.ndarray:
    """The least and the greatest size of each class."""
    return np.array([size_range(index) for index in range(SIZES)], np.uint64).T


@functools.cache
def _size_bounds() -> tuple[np.ndarray, np.ndarray]:
    """Those that counters may tell of: in the last class, where sizes below zero are, all that they can say."""
    least, greatest = size_bounds().astype(float)
    least[-1], greatest[-1] = 0, 1 << 64
    return least, greatest


def _bytes_agree(block: np.void) -> bool:
    least, greatest = (own[EXACT + 1 :] for own in _size_bounds())
    calls, found = block["sizes"][:, EXACT + 1 :].astype(float), block["log_bytes"].astype(float)
    return bool(
        (found >= (calls - CUT_OFF) * least).all() and (found <= (calls + CUT_OFF) * greatest).all()
    )


@functools.cache
def _time_bounds() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each class of those that were timed the first class of sizes, the least and the greatest size."""
    least, greatest = np.array([time_range(i) for i in range(TIME_CLASSES)]).T
    begins = [size if size <= EXACT else _class_of(size) for size in least.tolist()]
    return np.array(begins), least.astype(float), greatest.astype(float)


def _timed_agree(block: np.void) -> bool:
    """Whether no more was timed than counted, and none took longer than what is left out as interrupted."""
    begins, least, greatest = _time_bounds()
    most = np.add.reduceat(block["sizes"].astype(float), begins, axis=1) + CUT_OFF
    longest = _LATE_TICKS + _LATE_TICKS_A_BYTE * greatest
    times = block["times"].astype(float)
    calls, size, ticks, faults, fault_ticks, late = np.moveaxis(times[:, :, :6], 2, 0)
    tried, tried_ticks = np.moveaxis(block["trials"].astype(float).sum(axis=(2, 3)), 2, 0)
    # Nobody knows the bytes of the last class.
    size_agrees = (size >= (calls - CUT_OFF) * least) & (size <= (calls + CUT_OFF) * greatest)
    size_agrees[:, -1] = True
    return bool(
        (calls + late + tried <= most).all()
        and (times[:, :, 6:].sum(axis=2) <= most).all()
        and block["nothings"] <= calls.sum() + CUT_OFF
        and block["nothing_ticks"] <= (float(block["nothings"]) + CUT_OFF) * _NOTHING_TICKS
        and size_agrees.all()
        and (ticks <= (calls + CUT_OFF) * longest).all()
        and (tried_ticks <= (tried + CUT_OFF) * longest).all()
        and (faults <= most * (_TOUCHES + 2 + greatest / PAGE)).all()
        # Those of pages that were not touched are at most three quarters of the call's.
        and (
            fault_ticks <= (faults + CUT_OFF) * _LATE_TICKS + 3 * (calls + CUT_OFF) * longest
        ).all()
    )


def _order_agrees(block: np.void) -> bool:
    placed = [
        *block["places"].reshape(2, SIZE_GROUPS, -1).sum(axis=2),
        block["set_places"].reshape(SIZE_GROUPS, -1).sum(axis=1),
    ]
    looked, source, destination = np.moveaxis(block["order"].astype(float), 2, 0)
    return bool(
        (looked <= np.array(placed).astype(float) + CUT_OFF).all()
        and (np.maximum(source, destination) <= looked + CUT_OFF).all()
    )


def _callers_agree(block: np.void, sized: list[float]) -> bool:
    """Whether each is one of an op, and made no more of its calls than there were."""
    table = block["callers"]
    there = table[:, 0] != 0
    if table[~there].any():
        return False
    op = (table[there, 0] >> np.uint64(62)).astype(int)
    sampled, sampled_bytes, always, always_bytes = table[there, 1:].astype(float).T
    if (op >= len(OPS)).any():
        return False
    # Not by a product of matrices: what makes those wants 32 MB for itself, and ends the process where it may not.
    most_bytes = (block["sizes"] * _size_bounds()[1]).sum(axis=1)
    return bool(
        (sampled + always <= np.array(sized)[op] + CUT_OFF).all()
        and (sampled_bytes <= (sampled + CUT_OFF) * ALWAYS_FROM).all()
        and (always_bytes <= most_bytes[op] + CUT_OFF * ALWAYS_FROM).all()
    )


def _blocks(path: Path, data: bytes, count: int) -> tuple[list[np.void], int]:
    """Those that counted, and how many of them are damaged: a program may write where it should not."""
    good, again, damaged = [], None, 0
    for place in range(min(count, (len(data) - HEADER_BYTES) // BLOCK_BYTES)):
        at = HEADER_BYTES + place * BLOCK_BYTES
        block = np.frombuffer(data, _BLOCK, 1, at)[0]
        if not block["claims"]:
            continue
        settled = _settled(block)
        if not _agrees(settled):
            # One that still counts was read in the midst of that.
            again = again or _bytes(path)
            if again[at : at + BLOCK_BYTES] == data[at : at + BLOCK_BYTES]:
                damaged += 1
                continue
        good.append(settled)
    return good, damaged


def begun(path: Path) -> tuple[int, int] | None:
    """Of a file that may still be counted in: when its process started, in ticks since boot (0: nobody knows), and by
    the monotonic clock when the file was begun; None as long as that is not there."""
    with path.open("rb") as file:
        head = file.read(_HEADER.size)
    if len(head) < _HEADER.size or not head.startswith(MAGIC):
        return None
    _, version, *_, complete, _, _, _, clock_ns, _, _, started, _ = _HEADER.unpack(head)
    return (started, clock_ns) if version == VERSION and complete else None


def _bytes(path: Path) -> bytes:
    """What a recorder has written there. The file is in reach of the program, and of others where root's are recorded,
    who may make it of any length."""
    with path.open("rb") as file:
        head = file.read(HEADER_BYTES)
        if len(head) < HEADER_BYTES or not head.startswith(MAGIC):
            return head
        _, _, _, _, _, _, count, *_ = _HEADER.unpack_from(head)
        return head + file.read(min(count, BLOCKS) * BLOCK_BYTES)


def read(path: Path) -> Process:
    mode = path.stat().st_mode & 0o777
    if mode in (NO_MEMORY, NO_ROOM, FILE_LIMIT):
        raise RefusedError(mode)
    data = _bytes(path)
    if len(data) < _HEADER.size or not data.startswith(MAGIC):
        raise DamagedError("it is not a recorder's file")
    _, version, block_bytes, header_bytes, pid, uncounted, count, modules, *rest = (
        _HEADER.unpack_from(data)
    )
    _, complete, parent, _, cpu_ns, clock_ns, begin_ticks, end_ticks, started, program = rest
    if version != VERSION or block_bytes != BLOCK_BYTES or header_bytes != HEADER_BYTES:
        raise DamagedError("it was written by a recorder of another version")
    if not complete or len(data) < HEADER_BYTES:
        raise DamagedError("its process ended before it had begun")
    if uncounted > _MOST_CALLS:
        raise DamagedError("it counts more calls than can be, so something wrote over it")
    found = []
    for at in range(min(modules, MODULES)):
        *numbers, name, length, gone = _MODULE.unpack_from(data, _HEADER.size + at * _MODULE.size)
        begin = _NAMES_AT + min(name, NAMES)
        file = _text(data[begin : begin + min(length, NAMES - name)])
        found.append(Module(*numbers, file, gone != 0))
    _, turn_began, *_, turns, _, lasting = _TURNS.unpack_from(data, _TURNS_AT)
    blocks, damaged = _blocks(path, data, count)
    return Process(
        pid,
        program_of(_text(program)),
        uncounted,
        tuple(found),
        tuple(blocks),
        _pairs(data, _TURNS_AT + _TURNS.size, min(turns // 2, TURNS)),
        _pairs(data, _LASTING_AT, min(lasting // 2, LASTING_TURNS)),
        Span(pid, parent, cpu_ns, clock_ns, begin_ticks, max(end_ticks, turn_began, begin_ticks)),
        started,
        end_ticks != 0,
        damaged,
    )


def _pairs(data: bytes, at: int, pairs: int) -> np.ndarray:
    found = np.frombuffer(data, "<u8", pairs * 2 * TURN_FIELDS, at)
    return found.reshape(pairs, 2, TURN_FIELDS)


# ---- what the numbers of counters stand for -------------------------------------------------------------------------


def size_range(index: int) -> tuple[int, int]:
    """The least and the greatest size of a class."""
    if index <= EXACT:
        return index, index
    octave, part = divmod(index - EXACT - 1, OCTAVE)
    least = (OCTAVE + part) << (octave + 6)
    return max(least, EXACT + 1), (1 << 62) if index == SIZES - 1 else least + (
        1 << (octave + 6)
    ) - 1


def time_range(index: int) -> tuple[int, int]:
    """The least and the greatest size of a class of those that were timed."""
    if index < 2:
        return index, index
    octave, part = divmod(index, 2)
    least = (2 + part) << (octave - 1)
    return least, (1 << 62) if index == TIME_CLASSES - 1 else least + (1 << (octave - 1)) - 1


def group_up_to(group: int) -> int | None:
    """The largest size of a group; None: no largest."""
    return None if group == SIZE_GROUPS - 1 else (1 << (group + 3)) if group else 0
