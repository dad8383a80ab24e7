"""Kuznetsov and Takahashi, 2002: TCP copied and summed in one pass even where no checksum was wanted, and a patch took
that apart again for cards that sum by themselves. What that trade is worth: a copy, a checksum, a copy and then a
checksum, and both in one pass, measured side by side in the same memory; and the same for CRC-32C."""

from __future__ import annotations

import re
from typing import ClassVar

from wherry import tables
from wherry.campaign import Row
from wherry.experiments import Experiment, Request
from wherry.units import ns_label, percent, size_label
from wherry.yardsticks import YARDSTICKS

SIZES = (20, 44, 64, 256, 576, 1448, 4096, 16384, 65536)
QUICK_SIZES = (20, 64, 1448, 4096)
STATES = (("L1", "L1"), ("L2", "L2"), ("L3", "L3"), ("DRAM", "DRAM"))
QUICK_STATES = (("L1", "L1"),)
# What a state is measured at; beyond L1 short buffers say nothing about memory.
LEAST = {"L2": 1448, "L3": 1448, "DRAM": 1448}
MOST_IN = {"L1": 16384}
SEGMENT = 1448
# Anand's cycles for a copy of 1448 bytes on a Pentium III at 996 MHz.
ANAND = {"movsl, aligned": 3000, "movsl, misaligned": 7000, "integer registers, misaligned": 4000}

SUM, CRC = "copy_csum", "copy_crc32c"
READER = {SUM: "csum", CRC: "crc32c"}
FUNCTION = {"csum": "csum_partial", "crc32c": "crc32c"}
FUSED = {SUM: "csum_partial_copy", CRC: "crc32c_copy"}
PLAIN = {SUM: "csum_scalar64", CRC: "crc32c_table"}
FUSED_PLAIN = {SUM: "copy_csum_scalar64", CRC: "copy_crc32c_table"}
TITLE = {SUM: "Internet checksum (RFC 1071)", CRC: "CRC-32C"}


def _ns(cell: dict) -> float:
    return cell["ns"]["median"]


class Checksum(Experiment):
    takes: ClassVar[frozenset[str]] = frozenset({"routines", "sizes", "states", "found"})

    def rows(self, request: Request) -> list[Row]:
        sizes = request.sizes or (QUICK_SIZES if request.quick else SIZES)
        states = request.states or (QUICK_STATES if request.quick else STATES)
        return [
            Row(
                self.name,
                op,
                self._entries(op, request),
                size,
                src_state=source,
                dst_state=destination,
                rounds=self.round_count(request),
            )
            for op in (SUM, CRC)
            for source, destination in states
            for size in sizes
            if request.sizes
            or LEAST.get(destination, 0) <= size <= MOST_IN.get(destination, max(SIZES))
        ]

    def _entries(self, op: str, request: Request) -> tuple[str, ...]:
        """The fused call first: it is the one that is measured twice for the noise floor."""
        own, reader = request.wherry(), READER[op]
        names = [own, f"copy:{own}", "copy:libc", f"{reader}:{own}", f"{reader}:{PLAIN[op]}"]
        names += [f"libc+{PLAIN[op]}", f"{own}+{own}", FUSED_PLAIN[op]]
        if op == SUM:
            names.append(own.replace("wherry", "nofault", 1).partition("_")[0])
        for row in request.catalogue:
            asked = request.all_routines or row["name"] in request.routines
            if asked and not row.get("unavailable"):
                if row["op"] == op:
                    names.append(row["name"])
                elif row["op"] == reader:
                    names.append(f"{reader}:{row['name']}")
        for name in self._peers(request, FUNCTION[reader]):
            names += [f"{reader}:{name}", f"libc+{name}"]
        names += self._peers(request, FUSED[op], only_known=True)
        return (*dict.fromkeys(names), "read_bandwidth")

    @staticmethod
    def _peers(request: Request, function: str, only_known: bool = False) -> list[str]:
        """Those that have the function, as far as it is known; of peers given by hand nothing is."""
        left_out = request.left_out()
        found = [
            peer.name
            for peer in request.found
            if function in peer.has and peer.name not in left_out
        ]
        return found if only_known else [*request.peers, *found]

    def in_words(self, run: dict) -> list[str] | None:
        """A copy alone stands in each row and is no rival of what sums as well: no one leads here."""
        found = [block for block in self.blocks(run, 100_000) if block.sentences]
        return [
            re.sub("^checksum: |, ns per call|, cycles$|, ns$", "", block.title)
            + f": {' '.join(block.sentences)}"
            for block in found
        ]

    def blocks(self, run: dict, width: int) -> list[tables.Block]:
        cells = tables.cells_of(run, self.name)
        groups: dict[tuple[str, str, str], list[dict]] = {}
        for row in tables.rows_of(run, self.name):
            groups.setdefault((row["op"], row["src_state"], row["dst_state"]), []).append(row)
        floor = run["noise"]["floor"] or 0
        blocks = [
            self._block(op, source, destination, rows, cells, floor, width)
            for (op, source, destination), rows in groups.items()
        ]
        blocks += self._segment(run, groups, cells, floor, width)
        if blocks and self._without_peers(run, cells):
            blocks[-1].sentences.append(
                "There were no sums of other libraries to compare with: make peers builds some (DPDK, lwIP, ISA-L), "
                "--peer NAME=PATH takes any other."
            )
        return blocks

    @staticmethod
    def _without_peers(run: dict, cells: dict) -> bool:
        """And nobody wanted it so."""
        method = run.get("method") or {}
        if "peers" not in method or (method.get("asked") or {}).get("no_found_peers"):
            return False
        peers = {spec.partition("=")[0] for spec in method["peers"]}
        shown = {name for found in cells.values() for name in found}
        return not any(name.rpartition(":")[2] in peers for name in shown)

    def _block(self, op, source, destination, rows, cells, floor, width) -> tables.Block:
        names = tables.routines_in({row["row"]: cells[row["row"]] for row in rows})
        names = sorted(names, key=lambda name: self._rank(op, name))
        own = self._own(op, names)
        columns = [tables.Column("size", "bytes")]
        columns += [tables.Column(self._head(op, name), "ns") for name in names]
        columns.append(tables.Column("fused/\ncopy", "time"))
        body = []
        for row in rows:
            found = cells[row["row"]]
            line = [tables.Figure(size_label(row["size"]))]
            for name in names:
                style = "dim" if name in YARDSTICKS else ""
                line.append(
                    tables.Figure(ns_label(_ns(found[name])), style=style)
                    if name in found
                    else tables.MISSING
                )
            both = own in found and f"copy:{own}" in found
            line.append(
                tables.Figure(f"{_ns(found[own]) / _ns(found[f'copy:{own}']):.2f}")
                if both
                else tables.MISSING
            )
            body.append(line)
        place = source if source == destination else f"{source}, destination in {destination}"
        said = [
            self._worth(op, own, rows, cells, floor),
            self._limit(op, own, rows, cells),
        ]
        notes = ["A+B: A's copy, then B's sum of the source; a name alone: both in one pass"]
        if any(name.partition("@")[0] == "nofault" for name in names):
            notes.append("nofault: the one pass that survives faults, wherry_csum_copy_nofault")
        return tables.Block(
            f"checksum: {TITLE[op]}, ns per call, source in {place}",
            tables.layout(columns, body, width),
            [text for text in said if text],
            notes,
        )

    @staticmethod
    def _own(op: str, names: list[str]) -> str:
        return next((name for name in names if name.partition("@")[0] == "wherry"), "wherry")

    @staticmethod
    def _rank(op: str, name: str) -> int:
        """Copies, sums, one after the other, in one pass, what memory gives."""
        if name in YARDSTICKS:
            return 4
        if name.startswith("copy:"):
            return 0
        if ":" in name:
            return 1
        return 2 if "+" in name else 3

    @staticmethod
    def _head(op: str, name: str) -> str:
        kind, colon, who = name.partition(":")
        if colon:
            return f"{'copy' if kind == 'copy' else 'sum'}\n{tables.stacked(who)}"
        if name in YARDSTICKS:
            return tables.stacked(name)
        if "+" in name:
            first, _, second = name.rpartition("+")
            return f"{first}+\n{tables.stacked(second)}"
        return f"fused\n{tables.stacked(name)}"

    @staticmethod
    def _worth(op: str, own: str, rows: list[dict], cells: dict, floor: float) -> str:
        """Against the same two calls one after the other."""
        gains = {
            row["size"]: _ns(found[f"{own}+{own}"]) / _ns(found[own])
            for row in rows
            if own in (found := cells[row["row"]]) and f"{own}+{own}" in found
        }
        if not gains:
            return ""
        best = max(gains, key=gains.get)
        if gains[best] <= 1:
            return "One pass gains nothing over a copy and then a sum."
        if gains[best] <= 1 + floor:
            return (
                f"A copy and then a sum took at most {gains[best]:.2f} times as long as one pass, no more than noise "
                "may account for."
            )
        worst = min(gains, key=gains.get)
        if worst == best:
            return f"A copy and then a sum took {gains[best]:.2f} times as long as one pass (at {size_label(best)})."
        return (
            f"A copy and then a sum took {gains[worst]:.2f} (at {size_label(worst)}) to {gains[best]:.2f} "
            f"times (at {size_label(best)}) as long as one pass."
        )

    @staticmethod
    def _limit(op: str, own: str, rows: list[dict], cells: dict) -> str:
        reader = f"{READER[op]}:{own}"
        shares = {
            row["size"]: _ns(found["read_bandwidth"]) / _ns(found[reader])
            for row in rows
            if reader in (found := cells[row["row"]]) and "read_bandwidth" in found
        }
        largest = max(shares, default=0)
        if not largest:
            return ""
        return f"At {size_label(largest)} the sum alone runs at {percent(shares[largest])} of plain loads."

    def _segment(
        self, run: dict, groups: dict, cells: dict, floor: float, width: int
    ) -> list[tables.Block]:
        """1448 bytes in cycles, where Anand counted them."""
        ghz = (run.get("runner") or {}).get("ghz")
        rows = [
            row
            for (op, *states), own in groups.items()
            for row in own
            if op == SUM and states == ["L1", "L1"] and row["size"] == SEGMENT
        ]
        if not rows:
            return []
        found = cells[rows[0]["row"]]
        unit = "cycles" if ghz else "ns"
        body = [
            [tables.Figure(name), tables.Figure(f"{_ns(cell) * (ghz or 1):.1f}")]
            for name, cell in sorted(found.items(), key=lambda item: self._rank(SUM, item[0]))
            if name not in YARDSTICKS
        ]
        body += [
            [tables.Figure(f"2002: {how}", style="dim"), tables.Figure(str(cycles), style="dim")]
            for how, cycles in ANAND.items()
            if ghz
        ]
        columns = [tables.Column("a copy, a sum, or both", left=True), tables.Column("time", unit)]
        own = self._own(SUM, list(found))
        said = []
        if own in found and f"copy:{own}" in found:
            more = _ns(found[own]) / _ns(found[f"copy:{own}"]) - 1
            said = [
                f"The sum makes a copy of a segment {percent(more)} longer: so much is left of what Takahashi's patch "
                "saved where the card sums."
                if more > floor
                else "What the sum adds to a copy of a segment is no more than noise may account for."
            ]
        then = " Beside it Anand's copies on a Pentium III, 996 MHz." if ghz else ""
        return [
            tables.Block(
                f"checksum: a segment of {SEGMENT:,} bytes in L1, {unit}",
                tables.layout(columns, body, width),
                said,
                [f"Rows without + or : do both in one pass.{then}"],
            )
        ]


EXPERIMENT = Checksum(
    name="checksum",
    after="Kuznetsov, Takahashi 2002",
    shows="a copy, a checksum, a copy then a checksum, and both in one pass; RFC 1071 and CRC-32C, ns per call",
    op=SUM,
    ops=(SUM, "csum", CRC, "crc32c"),
    routines=("wherry",),
    processes=3,
    rounds=9,
)
