"""Luigi Rizzo, 2012: nanoseconds a call for packets of 1 B to 4 KiB, in L1 and not, with the lengths 8n + {4..7} that
cost his bcopy 20 ns more. `Not in L1` is L3 here, both sides: what a packet that another core received costs."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from wherry import sentences, tables
from wherry.campaign import Row
from wherry.experiments import Experiment, Request
from wherry.found_peers import Peer
from wherry.units import size_label
from wherry.yardsticks import YARDSTICKS

TAILS = (20, 21, 22, 23, 60, 61, 62, 63)
EVEN = (16, 24, 56, 64)
SIZES = tuple(sorted({1, 3, 4, 8, 32, 65, 128, 256, 512, 1024, 2048, 4096, *TAILS, *EVEN}))
STATES = (("L1", "L1"), ("L3", "L3"))

# Packets in buffers with room to spare: what a copy costs that may move whole lines.
PACKETS = (1, 20, 60, 64, 65, 128, 200, 256)
PACKET_MIX = "uniform:1-256"
CAPACITY = 2048  # of each buffer, as the runner has it
MODES = ("throughput", "latency")
BUDGET = 10.0  # nanoseconds a packet: his "every 10 to 20 ns matter"
CONSTANT = "_n"  # how the names of copies of a constant size end
RTE = "dpdk"
# What `make peers` builds of DPDK's header: loops compiled for one tier, which compare with each other.
LOOPS = {"rte": "rte_memcpy", "memcpy": "memcpy", "padded": "wherry_copy_padded"}
BY_TIER = {"avx512": "AVX-512", "avx2": "AVX2"}
PACKET_NAMES = {
    "libc": "memcpy, called through a pointer",
    "wherry": "wherry_memcpy, called through a pointer",
    RTE: "rte_memcpy in a function, called through a pointer",
    "padded": "wherry_copy_padded in a function, called through a pointer",
    "inlined_memcpy": "memcpy, size a variable, called from its own loop",
    "inlined_wherry": "wherry_memcpy, called from its own loop",
    "inlined_padded": "wherry_copy_padded inlined, size a variable",
    "inlined_memcpy_n": "memcpy of a constant size, inlined",
    "inlined_padded_n": "wherry_copy_padded inlined, size a constant",
    **{
        f"{tier}_{word}{end}": f"{what}, size a {size}, in a loop of its own compiled for {shown}"
        for tier, shown in BY_TIER.items()
        for end, size in (("", "variable"), (CONSTANT, "constant"))
        for word, what in LOOPS.items()
    },
}
PEERS = frozenset(name for name in PACKET_NAMES if name == RTE or name.partition("_")[0] in BY_TIER)
NO_LOOPS = (
    "rte_memcpy inlined is not measured: make peers builds it of DPDK's header (Debian package "
    "libdpdk-dev)"
)


@dataclass(frozen=True)
class PacketRow(Row):
    """The same calls as of a copy, beside others that may use the room behind the packet: the room tells them apart."""

    def dimensions(self) -> dict[str, object]:
        return super().dimensions() | {"buffer": CAPACITY}


def _label(row: dict) -> str:
    return size_label(row["size"])


def _place(row: dict) -> str:
    source, destination = row["src_state"], row["dst_state"]
    if source == destination:
        return f"source and destination in {source}" + ("" if source == "L1" else ", not in L1")
    return f"source in {source}, destination in {destination}"


class Small(Experiment):
    quick_rounds = 7
    takes = frozenset({"routines", "sizes", "states", "found"})

    def wants(self, peer: Peer) -> bool:
        return peer.name == RTE or (peer.loops and peer.name in PACKET_NAMES)

    def rows(self, request: Request) -> list[Row]:
        routines = self.chosen(request)
        copies = [
            Row(
                self.name,
                self.op,
                self.fitting(routines, size, request),
                size,
                src_state=source,
                dst_state=destination,
                rounds=self.round_count(request),
                batch_us=200,
            )
            for source, destination in request.states or STATES
            for size in request.sizes or SIZES
        ]
        return copies + self._packet_rows(request)

    def _packet_rows(self, request: Request) -> list[Row]:
        """None when routines were asked for, or no packets, or none in L1."""
        if (
            request.routines
            or request.all_routines
            or ("L1", "L1") not in (request.states or STATES)
        ):
            return []
        sizes: list[int] = [s for s in request.sizes or PACKETS if s <= PACKETS[-1]]
        with_mix: list[int] = [] if request.sizes or not sizes else [0]
        there = {*request.peers, *(peer.name for peer in request.found if self.wants(peer))}
        names = [name for name in PACKET_NAMES if name in there or name not in PEERS]
        return [
            PacketRow(
                self.name,
                self.op,
                tuple(n for n in names if not n.endswith(CONSTANT) or size in PACKETS),
                size,
                mix="" if size else PACKET_MIX,
                mode=mode,
                rounds=self.round_count(request),
                batch_us=200,
            )
            for mode in MODES
            for size in (*sizes, *with_mix)
        ]

    def blocks(self, run: dict, width: int) -> list[tables.Block]:
        cells = tables.cells_of(run, self.name)
        groups: dict[str, list[dict]] = {}
        packets: dict[str, list[dict]] = {}
        for row in tables.rows_of(run, self.name):
            if "padded" in cells[row["row"]] or "inlined_padded" in cells[row["row"]]:
                packets.setdefault(row["mode"], []).append(row)
            else:
                groups.setdefault(_place(row), []).append(row)
        return [
            *(self._block(run, rows, cells, place, width) for place, rows in groups.items()),
            *(self._packets(rows, cells, mode, width) for mode, rows in packets.items()),
        ]

    @staticmethod
    def _packets(rows: list[dict], cells: dict, mode: str, width: int) -> tables.Block:
        def label(row: dict) -> str:
            return row["mix"].partition(":")[2] if row.get("mix") else str(row["size"])

        own = {row["row"]: cells[row["row"]] for row in rows}
        names = [name for name in PACKET_NAMES if any(name in found for found in own.values())]
        columns = [
            tables.Column("copy", left=True),
            *(tables.Column(label(row), "ns") for row in rows),
        ]
        body = [
            [
                tables.Figure(name),
                *(tables.time(own[row["row"]], name, row) for row in rows),
            ]
            for name in names
        ]
        said = []
        for row in rows:
            found = own[row["row"]]
            if row.get("mix") and "inlined_padded" in found and "inlined_memcpy" in found:
                padded, plain = (
                    found[name]["ns"]["median"] for name in ("inlined_padded", "inlined_memcpy")
                )
                said.append(
                    f"Of a budget of {BUDGET:.0f} ns a packet, sizes that nobody can predict, 1 to 256 "
                    f"bytes, take wherry_copy_padded {padded:.1f} ns and memcpy {plain:.1f} ns."
                )
                for tier, shown in BY_TIER.items():
                    rte, own_copy = (found.get(f"{tier}_{word}") for word in ("rte", "padded"))
                    if rte and own_copy:
                        said.append(
                            f"Compiled for {shown}, and inlined both, they take wherry_copy_padded "
                            f"{own_copy['ns']['median']:.1f} ns and rte_memcpy {rte['ns']['median']:.1f} ns."
                        )
        notes = [f"{name}: {PACKET_NAMES[name]}" for name in names]
        if not any(name.endswith("_rte") for name in names):
            notes.append(NO_LOOPS)
        return tables.Block(
            f"small: packets in buffers of {CAPACITY:,} bytes, ns per packet by bytes, {mode}, in L1",
            tables.layout(columns, body, width),
            said,
            notes if mode == MODES[0] else [],
        )

    def _block(self, run, rows, cells, place, width) -> tables.Block:
        names = tables.routines_in({row["row"]: cells[row["row"]] for row in rows})
        # The yardstick stands last, beside the figures that it is the floor of.
        names.sort(key=lambda name: name in YARDSTICKS)
        columns = [tables.Column("size", "bytes"), *(tables.Column(n, "ns") for n in names)]
        body = [
            [
                tables.Figure(_label(row)),
                *(tables.time(cells[row["row"]], name, row) for name in names),
            ]
            for row in rows
        ]
        said = [
            sentences.leaders(rows, _label),
            sentences.libc_loss(rows, cells, _label, run["noise"]["floor"] or 0),
            self._tails(rows, cells, run["noise"]["floor"] or 0),
        ]
        notes = []
        if any(figure is tables.MISSING for line in body for figure in line):
            notes = [
                "- not measured: the routine takes only multiples of its quantum (wherry list routines)"
            ]
        return tables.Block(
            f"small: copy, ns per call, {place}",
            tables.layout(columns, body, width),
            [s for s in said if s],
            notes,
        )

    @staticmethod
    def _tails(rows: list[dict], cells: dict, floor: float) -> str:
        """His first finding: 8n + {4..7} cost 20 ns more."""
        by_size = {row["size"]: cells[row["row"]] for row in rows}

        def middle(sizes: tuple[int, ...]) -> float | None:
            found = [
                by_size[s]["libc"]["ns"]["median"] for s in sizes if "libc" in by_size.get(s, {})
            ]
            return median(found) if len(found) == len(sizes) else None

        odd, even = middle(TAILS), middle(EVEN)
        if odd is None or even is None:
            return ""
        told = f"{odd - even:+.1f} ns here"
        if abs(odd - even) <= floor * even:
            told = "nothing here that is beyond the noise"
        return (
            f"The tails that cost Rizzo's bcopy 20 ns, 8n + {{4..7}} bytes, cost libc {told} "
            "(17 to 63 bytes)."
        )


EXPERIMENT = Small(
    name="small",
    after="Rizzo 2012",
    shows="copy, ns per call for 1 B to 4 KiB, in L1 and not, with the tails 8n + {4..7}",
    op="copy",
    ops=("copy", "move"),
    routines=("wherry", "int4x8", "int4x8_bcopy1k", "int4x8_prefetch", "rep_movsb", "call_floor"),
    processes=5,
    rounds=11,
)
