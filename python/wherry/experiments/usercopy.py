"""Mala Anand, 2002: what the running kernel takes to copy between user space and its own memory, by size and alignment,
seen from user space: pipe, page cache, UNIX and TCP socket, process_vm_readv, /dev/zero. What a call takes is the way
through the kernel and the copy; the same call with one byte is the way without a copy worth the name, and a system call
that does nothing is the floor. Beside them the copies that stay in user space, the fault-tolerant one among them."""

from __future__ import annotations

from dataclasses import dataclass

from wherry import dimensions, history, sentences, significance, tables
from wherry.campaign import Row
from wherry.clock import Clock, clock_of
from wherry.experiments import Experiment, Request
from wherry.units import ns_label, size_label


@dataclass(frozen=True)
class Path:
    copies: int  # between user space and the kernel, in one call
    what: str


PATHS = {
    "pipe": Path(2, "write to a pipe and read from it"),
    "pipe_write": Path(1, "write to a pipe, emptied by splice"),
    "page_write": Path(1, "pwrite to a file's cached pages"),
    "page_read": Path(1, "pread from a file's cached pages"),
    "unix": Path(2, "send and receive by a UNIX stream socket"),
    "tcp": Path(2, "send and receive by TCP over loopback"),
    "tcp_send": Path(1, "send by TCP over loopback, passed over"),
    "vm_readv": Path(1, "process_vm_readv of its own memory"),
    "dev_zero": Path(1, "read from /dev/zero: zeros, no source"),
}
FLOOR = "syscall_floor"
USER = ("libc", "wherry", "nofault")

SEGMENT = 1448  # the data of one packet: what Anand timed
ONE = 1
SIZES = (ONE, 64, 512, SEGMENT, 4096, 16384, 65536)
QUICK_SIZES = (ONE, 64, SEGMENT, 4096, 16384)
ALIGNED, MISALIGNED = 0, 1
# Both sides of larger ones leave no room in an L1 of 32 KiB: they lie in L2, on every machine.
LARGEST_IN_L1 = 8192
ENOUGH = 4  # sizes for a line with an interval
CLEAR = 3  # times the noise floor of a call: what a copy in it must take to be told, where there are fewer
OFFSETS = (ALIGNED, MISALIGNED, 4, 20)
QUICK_OFFSETS = (ALIGNED, MISALIGNED)


Found = dict[
    tuple[int, int], dict[str, dict]
]  # by offset and size: the cells of both rows, by name


# How a copy is told from its call: by a line where there are sizes enough.
_BY_LINE = (
    "what 1448 bytes add by the line through the sizes to 8 KiB, over the copies in a call, ± its 95 % interval; "
    "noise: no more than that"
)
_BY_TWO = (
    f"what 1448 bytes take more than one, over the copies in a call, ± {CLEAR} times the noise floor of a call, since "
    "a line takes four sizes to 8 KiB; noise: no more than that"
)


def _state(size: int) -> str:
    return "L1" if size <= LARGEST_IN_L1 else "L2"


def found_in(run: dict) -> Found:
    found: Found = {}
    cells = tables.cells_of(run, "usercopy")
    for row in tables.rows_of(run, "usercopy"):
        found.setdefault((row["src_off"], row["size"]), {}).update(cells.get(row["row"], {}))
    return found


def how_told(found: Found) -> str:
    """How `one_copy` tells a copy in this run, in words."""
    sizes = {size for at, size in found if at == ALIGNED and size <= LARGEST_IN_L1}
    return _BY_LINE if len(sizes) >= ENOUGH else _BY_TWO


@dataclass(frozen=True)
class Copy:
    """What 1448 bytes add to a call, of one of its copies."""

    ns: float
    half: float  # of the 95 % interval

    @property
    def told(self) -> bool:
        return self.ns > self.half

    @property
    def sure(self) -> bool:
        """So well that it may be held against another."""
        return self.ns >= 3 * self.half

    def in_words(self) -> str:
        return f"{ns_label(self.ns)} ±{ns_label(self.half)}" if self.told else "noise"


def one_copy(found: Found, offset: int, name: str, floor: float) -> Copy | None:
    """By the line through the sizes that lie in L1; of a few sizes, by 1448 bytes less one, as far as the noise floor
    of a call lets it be told. The way through the kernel hides the rest."""
    times = {
        size: own[name]["ns"]["median"]
        for (at, size), own in sorted(found.items())
        if at == offset and size <= LARGEST_IN_L1 and name in own
    }
    if SEGMENT not in times or ONE not in times:
        return None
    copies = PATHS[name].copies if name in PATHS else 1
    if len(times) >= ENOUGH:
        each, half = significance.slope(list(times), list(times.values()))
        return Copy(SEGMENT * each / copies, SEGMENT * half / copies)
    share = times[SEGMENT] - times[ONE]
    return Copy(share / copies, CLEAR * floor * times[SEGMENT] / copies)


class Usercopy(Experiment):
    takes = frozenset({"sizes"})
    weight = 0.6

    def rows(self, request: Request) -> list[Row]:
        sizes = QUICK_SIZES if request.quick else SIZES
        if request.sizes:
            sizes = tuple(dict.fromkeys((ONE, *request.sizes)))
        offsets = QUICK_OFFSETS if request.quick else OFFSETS
        kernel = (*PATHS, FLOOR)
        return [
            Row(
                self.name,
                self.op,
                routines,
                size,
                src_state=_state(size),
                dst_state=_state(size),
                src_off=offset,
                dst_off=offset,
                rounds=self.round_count(request),
                batch_us=200,
            )
            for offset in offsets
            for size in sizes
            for routines in (kernel, USER)
        ]

    def in_words(self, run: dict) -> list[str] | None:
        """Paths through the kernel do different things, so none of them leads: who does are copies beside them."""
        said = [text for block in self.blocks(run, 100_000) for text in block.sentences if text]
        rows, cells = tables.rows_of(run, self.name), tables.cells_of(run, self.name)
        differ = dimensions.varying(rows)

        def label(row: dict) -> str:
            return dimensions.label(row, differ).removeprefix("in ")

        within = [
            sentences.leaders_or_counts(rows, label, differ),
            sentences.libc_loss(rows, cells, label, run["noise"]["floor"] or 0),
        ]
        return said + [f"Within user space, without the kernel: {text}" for text in within if text]

    def blocks(self, run: dict, width: int) -> list[tables.Block]:
        found = found_in(run)
        offsets = list(dict.fromkeys(offset for offset, _ in found))
        blocks = [self._by_size(found, offset, width) for offset in offsets]
        sizes = [size for offset, size in found if offset == offsets[0]]
        if SEGMENT in sizes:
            blocks.append(self._segment(run, found, offsets, width))
        return blocks

    @staticmethod
    def _by_size(found: dict, offset: int, width: int) -> tables.Block:
        sizes = [size for own, size in found if own == offset]
        names = [
            name
            for name in (*PATHS, FLOOR, *USER)
            if any(name in found[offset, size] for size in sizes)
        ]
        columns = [
            tables.Column("path", left=True),
            *(tables.Column(size_label(size), "ns") for size in sizes),
        ]
        body = []
        for name in names:
            style = "dim" if name == FLOOR else ""
            line = [tables.Figure(name, style=style)]
            for size in sizes:
                cell = found[offset, size].get(name)
                line.append(
                    tables.MISSING
                    if cell is None
                    else tables.Figure(ns_label(cell["ns"]["median"]), style=style)
                )
            body.append(line)
        states = "in L1"
        if max(sizes) > LARGEST_IN_L1:
            states += f" to {size_label(LARGEST_IN_L1)}, then in L2"
        where = "aligned to 64 bytes" if offset == ALIGNED else f"{offset} past 64-byte alignment"
        return tables.Block(
            f"usercopy: ns per call by bytes, user buffers {where}, {states}",
            tables.layout(columns, body, width),
            [],
            ["libc, wherry, nofault: copies within user space, without the kernel"]
            if offset == ALIGNED
            else [],
        )

    def _segment(self, run: dict, found: dict, offsets: list[int], width: int) -> tables.Block:
        clock = clock_of(run)
        floor = run["noise"]["floor"] or 0
        shown = [offset for offset in (ALIGNED, MISALIGNED) if offset in offsets]
        heads = {ALIGNED: "aligned", MISALIGNED: "misaligned"}
        columns = [tables.Column("path", left=True), tables.Column("copies")]
        for offset in shown:
            columns += [
                tables.Column(f"{heads[offset]}: call", "ns"),
                tables.Column("cycles"),
                tables.Column("one copy", "ns"),
                tables.Column("cycles"),
            ]
        body = []
        for name in (*PATHS, *USER, FLOOR):
            line = [
                tables.Figure(name),
                tables.Figure(str(PATHS[name].copies))
                if name in PATHS
                else tables.Figure("1" if name in USER else "0"),
            ]
            for offset in shown:
                cell = found.get((offset, SEGMENT), {}).get(name)
                copy = None if name == FLOOR else one_copy(found, offset, name, floor)
                call = None if cell is None else cell["ns"]["median"]
                line += [
                    tables.MISSING if call is None else tables.Figure(ns_label(call)),
                    self._cycles(clock, call),
                    tables.MISSING if copy is None else tables.Figure(copy.in_words()),
                    self._cycles(clock, copy.ns if copy is not None and copy.told else None),
                ]
            if any(figure is not tables.MISSING for figure in line[2:]):
                body.append(line)
        said = [self._alignment(found, floor), self._anand()]
        return tables.Block(
            f"usercopy: {SEGMENT} bytes, the data of one packet; the call, and one of its copies",
            tables.layout(columns, body, width),
            [s for s in said if s],
            [
                f"one copy: {how_told(found)}; {clock.in_words()}",
                *(f"{name}: {path.what}" for name, path in PATHS.items()),
                f"{FLOOR}: getppid, a system call that does nothing",
            ],
        )

    @staticmethod
    def _cycles(clock: Clock, ns: float | None) -> tables.Figure:
        return (
            tables.MISSING
            if clock.ghz is None or ns is None
            else tables.Figure(f"{clock.cycles(ns):,.0f}")
        )

    def _alignment(self, found: dict, floor: float) -> str:
        """Her finding: the kernel's copy took more than twice the time when an address was not 8-aligned."""
        ratios = {}
        for name in PATHS:
            aligned, other = (one_copy(found, o, name, floor) for o in (ALIGNED, MISALIGNED))
            if aligned and other and aligned.sure and other.sure:
                ratios[name] = other.ns / aligned.ns
        if not ratios:
            return ""
        worst = max(ratios, key=lambda name: ratios[name])
        least, most = f"{min(ratios.values()):.2f}", f"{ratios[worst]:.2f}"
        return (
            f"Misaligned copies take {most if least == most else f'{least} to {most}'} ({worst}) "
            "times the time of aligned ones; "
            "in 2002 it was 2.3 times, and 1.3 with Anand's loop."
        )

    @staticmethod
    def _anand() -> str:
        (table,) = history.tables("alignment")
        parts = [
            f"{r['time']:,.0f} cycles for {r['method']}, {'aligned' if r['aligned'] else 'misaligned'}"
            for r in table.records()
        ]
        return f"Anand 2002 ({table.machine.in_words().split(',')[0]}): {'; '.join(parts)}."


EXPERIMENT = Usercopy(
    name="usercopy",
    after="Anand 2002",
    shows="the running kernel's copies from and to user space: pipe, page cache, sockets, "
    "process_vm_readv, /dev/zero, by size and alignment; cycles for 1448 bytes",
    op="copy",
    ops=("copy", "move"),
    routines=(*PATHS, FLOOR),
    processes=5,
    rounds=11,
)
