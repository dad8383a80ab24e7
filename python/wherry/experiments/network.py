"""Mala Anand, 2002: TCP throughput and the CPU use of sender and receiver by message size, with application buffers
aligned and not; Luigi Rizzo, 2012: packets from ring to ring. The kernel's streams show the kernel's copies; where the
stack is a library the copies and checksums are ours to choose, and her table is made again: before, after, per cent."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from wherry import found_peers, tables
from wherry.campaign import Row
from wherry.errors import WherryError
from wherry.experiments import Experiment, Request
from wherry.networking import answer, report
from wherry.networking.found import Found
from wherry.networking.words import (
    ALIGNED,
    APART,
    DROPIN,
    DROPPED,
    FRAMES,
    GOOD,
    IPERF,
    KERNEL_WAYS,
    MISALIGNED,
    OFFSETS,
    OP,
    PADDED,
    SENDFILE,
    SENDFILE_MISALIGNED,
    SIZES,
    STOCK,
    SUMS,
    SWAP,
    WHERRY,
    WITHIN,
)
from wherry.row import SystemRow
from wherry.units import size_label

QUICK_SIZES, QUICK_FRAMES = (512, 4096, 65536), (60, 512, 1514)
IPERF_SIZES, QUICK_IPERF = (4096, 65536), (65536,)
FILE_SIZES, QUICK_FILE = (4096, 16384, 65536), (65536,)
KERNEL_US, STACK_US, APART_US, RINGS_US = 20_000, 4_000, 5_000, 500
QUICK_US = 15_000
IPERF_ROUNDS = 3
# At most, as netperf's -i 10,2 has it: they end when the figure is certain.
KERNEL_ROUNDS = 10


@dataclass(frozen=True)
class NetworkRow(SystemRow):
    """Where the stack lies and how long rounds go on is no dimension; which tool stands beside ours is one, or its rows
    would be those of other rounds once more."""

    path: str = ""
    within: int = 0
    beside: str = ""

    def dimensions(self) -> dict[str, object]:
        return super().dimensions() | ({"beside": self.beside} if self.beside else {})

    def line(self, number: int) -> str:
        line = super().line(number)
        line += f" within={self.within}" if self.within else ""
        stack = dict(self.words).get("stack")
        named = f" stack={stack}"
        return line.replace(named, f" stack={quote(self.path)}") if stack else line


class Network(Experiment):
    takes = frozenset({"sizes", "found"})
    quick_processes = 1
    quick_rounds = 4

    def rows(self, request: Request) -> list[Row]:
        quick = request.quick
        rounds = self.round_count(request)
        sizes = request.sizes or (QUICK_SIZES if quick else SIZES)
        for size in sizes:
            if size > max(SIZES):
                raise WherryError(
                    f"--size {size_label(size)}: messages of network are 1 to {size_label(max(SIZES))} bytes, frames "
                    f"to {max(FRAMES)}"
                )
        messages = sizes
        frames = request.sizes or (QUICK_FRAMES if quick else FRAMES)

        def row(
            names: tuple[str, ...], size: int, batch_us: int, rounds: int = rounds, **words
        ) -> Row:
            own = {key: words.pop(key) for key in ("path", "within", "beside") if key in words}
            return NetworkRow(
                *(self.name, self.op, names, size),
                rounds=rounds,
                batch_us=batch_us,
                words=tuple(words.items()),
                **own,
            )

        kernel_us = QUICK_US if quick else KERNEL_US
        most = rounds if quick or request.rounds else KERNEL_ROUNDS
        found = [
            row((ALIGNED, MISALIGNED), size, kernel_us, most, **words, within=WITHIN)
            for words, _ in KERNEL_WAYS
            for size in messages
        ]
        found += [
            row((ALIGNED, IPERF), size, kernel_us, min(rounds, IPERF_ROUNDS), **words, beside=IPERF)
            for words, _ in KERNEL_WAYS
            for size in (QUICK_IPERF if quick else IPERF_SIZES)
            if size in messages
        ]
        found += [
            row(
                (ALIGNED, SENDFILE, SENDFILE_MISALIGNED, DROPPED),
                size,
                kernel_us,
                most,
                **words,
                within=WITHIN,
                beside=SENDFILE,
            )
            for words, _ in KERNEL_WAYS
            for size in (QUICK_FILE if quick else FILE_SIZES)
            if size in messages
        ]
        stacked = (STOCK, DROPIN, SUMS, WHERRY, *request.peers)
        stack = found_peers.stack()
        where = {"stack": stack.name, "path": stack.path} if stack else {}
        found += [
            row(stacked, size, STACK_US, via="stack", offset=offset, **where)
            for offset in OFFSETS
            for size in messages
        ]
        found += [
            row(
                (STOCK, DROPIN, SUMS, WHERRY),
                size,
                APART_US,
                via="stack",
                offset=0,
                ends=APART,
                **where,
            )
            for size in messages
        ]
        copies = (STOCK, WHERRY, GOOD, PADDED, *self._peers(request), SWAP)
        found += [
            row(copies, size, RINGS_US, via="rings", offset=0)
            for size in frames
            if size <= max(FRAMES)
        ]
        return found

    @staticmethod
    def _peers(request: Request) -> tuple[str, ...]:
        """Peers that were named, and DPDK's rte_memcpy where it was found."""
        found = [name for name in request.contenders("copy") if name.startswith("dpdk")]
        return tuple(dict.fromkeys((*request.peers, *found)))

    def in_words(self, run: dict) -> list[str] | None:
        return answer.sentences(Found(run))

    def blocks(self, run: dict, width: int) -> list[tables.Block]:
        return report.blocks(run, width)


EXPERIMENT = Network(
    name="network",
    after="Anand 2002",
    shows="TCP throughput and CPU use by message size, aligned and not: the kernel's, also by sendfile, and a stack in "
    "user space with stock and Wherry's copies and checksums; frames from ring to ring",
    op=OP,
    ops=("copy", "move"),
    routines=(STOCK, WHERRY, GOOD, PADDED),
    processes=3,
    rounds=7,
)
