"""The latency of memory under load, which multichase and others show: how long a load takes whose address only the one
before has told, while other CPUs copy. What it tells of a copy is what it costs everybody else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from wherry import tables
from wherry.campaign import Row
from wherry.errors import WherryError
from wherry.experiments import Experiment, Request
from wherry.experiments.latency import LEAST_SET, LINE, MOST_SET, working_sets
from wherry.row import SystemRow
from wherry.sentences import join
from wherry.tables import MISSING, Block, Column, Figure
from wherry.units import KIB, MIB, memory_bytes, ns_label, percent, size_label

IDLE = "idle"
STREAM = "copy_stream_sse2"
SMALL_BLOCK = 64 * KIB
# The runner walks sets of up to this once before each sample: then what a cache has of them is what it keeps.
WALKED = 16 * MIB
USUAL_L2 = 512 * KIB
# What each CPU copies from and to, so that all together go through memory and not through the last-level cache.
TIMES_L3, BUFFER_LEAST, BUFFER_MOST = 2, 32 * MIB, 256 * MIB
PART_OF_MEMORY = 4
BATCH_US = 500
# For an estimate: what the cycle takes, a byte; both buffers of a copier; a load of the walk before each sample; and
# how many samples a routine has before the first round.
MAKE_NS, FILL_NS, WALK_NS, CALIBRATING = 2.4, 2.0, 60.0, 6
LEAST_FLOOR = 0.005  # below this nothing is told apart


@dataclass(frozen=True)
class LoadedRow(SystemRow):
    @property
    def prepare_ns(self) -> float:
        words = dict(self.words)
        made = MAKE_NS * self.size + FILL_NS * words["buffer"] * max(int(words["others"]), 1)
        walks = len(self.routines) * (self.rounds + CALIBRATING) if self.size <= WALKED else 0
        return (made + walks * WALK_NS * self.size / LINE) / self.size

    def dimensions(self) -> dict[str, object]:
        return super().dimensions() | {"mode": "latency"}


def own_sets(caches: Mapping[str, int], memory: int, quick: bool) -> tuple[int, ...]:
    """Half of the second-level cache, half of the last one, and what no cache holds."""
    largest = working_sets(caches, memory, quick=True)[-1]
    halves = [caches.get("L2", USUAL_L2) // 2, min(caches.get("L3", 0) // 2, WALKED)]
    found = [size // LINE * LINE for size in halves if LEAST_SET <= size < largest]
    return tuple(sorted({*(found[-1:] if quick else found), largest}))


def buffer_for(others: int, caches: Mapping[str, int], memory: int) -> int:
    size = min(max(TIMES_L3 * caches.get("L3", 0) // others, BUFFER_LEAST), BUFFER_MOST)
    most = memory // PART_OF_MEMORY // (2 * others)
    return max(min(size, most) // MIB, 1) * MIB


class Loaded(Experiment):
    takes = frozenset({"routines", "sizes"})
    weight = 0.8
    quick_processes = 1
    quick_rounds = 5

    def rows(self, request: Request) -> list[Row]:
        memory = memory_bytes()
        sets = self._asked(request) or own_sets(request.caches, memory, request.quick)
        most = max(len(os.sched_getaffinity(0)) - 1, 1)
        found: list[Row] = []
        for others in sorted({most} if request.quick else {1, most}):
            buffer = buffer_for(others, request.caches, memory)
            for block in sorted({min(SMALL_BLOCK, buffer), buffer}):
                names = (IDLE, *self.fitting(self.chosen(request), block, request))
                found += [
                    LoadedRow(
                        self.name,
                        self.op,
                        names,
                        size,
                        rounds=self.round_count(request),
                        batch_us=BATCH_US,
                        words=(("block", block), ("buffer", buffer), ("others", others)),
                    )
                    for size in sets
                ]
        return found

    @staticmethod
    def _asked(request: Request) -> tuple[int, ...]:
        for size in request.sizes:
            if size % LINE or not LEAST_SET <= size <= MOST_SET:
                raise WherryError(
                    f"--size {size_label(size)}: a working set of loaded is {size_label(LEAST_SET)} to "
                    f"{size_label(MOST_SET)}, a multiple of {LINE} bytes"
                )
        return tuple(sorted(request.sizes))

    def in_words(self, run: dict) -> list[str] | None:
        return [text for group in _groups(run) for text in group.sentences()]

    def blocks(self, run: dict, width: int) -> list[Block]:
        return [group.block(width) for group in _groups(run)]


@dataclass
class _Group:
    """The rows in which as many CPUs copy by the same blocks."""

    rows: list[dict]
    cells: dict[int, dict[str, dict]]
    floor: float

    def _took(self, row: dict, name: str) -> float | None:
        cell = self.cells.get(row["row"], {}).get(name)
        return cell["ns"]["median"] if cell else None

    def _over_idle(self, row: dict, name: str) -> float | None:
        own, idle = self._took(row, name), self._took(row, IDLE)
        return own / idle if own and idle else None

    def _names(self) -> list[str]:
        found = dict.fromkeys(name for row in self.rows for name in self.cells.get(row["row"], {}))
        return list(found)

    def meanwhile(self) -> str:
        first = self.rows[0]
        others = first["others"]
        who = "one other CPU copies" if others == 1 else f"{others} other CPUs copy"
        whole = first["block"] == first["buffer"]
        return f"{who} {size_label(first['block'])} at a time" + (
            "" if whole else f" through {size_label(first['buffer'])}"
        )

    def block(self, width: int) -> Block:
        columns = [Column("copies", left=True)]
        for row in self.rows:
            columns += [
                Column(f"set\n{size_label(row['size'])}", "ns"),
                Column("over\nidle"),
                Column("copied", "GB/s"),
            ]
        body = []
        for name in self._names():
            line = [Figure(name)]
            for row in self.rows:
                own, over = self._took(row, name), self._over_idle(row, name)
                line += [
                    Figure(ns_label(own)) if own else MISSING,
                    Figure(f"{over:.2f}") if over and name != IDLE else MISSING,
                    self._copied(row, name),
                ]
            body.append(line)
        return Block(
            f"loaded: random loads that wait for the one before, while {self.meanwhile()}; ns a load",
            tables.layout(columns, body, width),
            self.sentences(),
            self._notes(),
        )

    def _part(self, row: dict, name: str, part: str) -> float:
        return (self.cells.get(row["row"], {}).get(name, {}).get("parts") or {}).get(part) or 0

    def _copied(self, row: dict, name: str) -> Figure:
        rate = self._part(row, name, "copied_gbs")
        return Figure(f"{rate:.1f}") if rate else MISSING

    def _notes(self) -> list[str]:
        notes = [
            "set: the working set that is loaded from, in 4 KiB pages; copied: by all other CPUs together, each "
            "byte once"
        ]
        beside = max(
            self._part(row, name, "same_core") for row in self.rows for name in self._names()
        )
        if beside:
            notes.append(
                f"of the CPUs that copy {beside:.0f} share the core of the one that loads, which slows it by "
                "itself"
            )
        return notes

    def sentences(self) -> list[str]:
        parts = [part for row in self.rows if (part := self._of_a_set(row))]
        return [f"While {self.meanwhile()}, loads take {join(parts)}."] if parts else []

    def _of_a_set(self, row: dict) -> str:
        over = {name: self._over_idle(row, name) for name in self._names() if name != IDLE}
        known = {name: ratio for name, ratio in over.items() if ratio}
        if not known:
            return ""
        least, most = (pick(known, key=lambda name: known[name]) for pick in (min, max))
        where = f"in a working set of {size_label(row['size'])}"
        if known[most] < 1 + self.floor:
            return f"no longer that could be told (noise {percent(self.floor)}) {where}"
        if least == most or known[most] < known[least] * (1 + self.floor):
            return f"{known[most]:.2f} times as long, whoever copies, {where}"
        return f"{known[least]:.2f} times as long with {least} to {known[most]:.2f} times with {most} {where}"


def _groups(run: dict) -> list[_Group]:
    cells = tables.cells_of(run, EXPERIMENT.name)
    own = next(own for own in run["experiments"] if own["name"] == EXPERIMENT.name)
    floor = max(LEAST_FLOOR, own.get("noise_floor") or 0)
    groups: dict[tuple[int, int], list[dict]] = {}
    for row in tables.rows_of(run, EXPERIMENT.name):
        if cells.get(row["row"]):
            groups.setdefault((row["others"], row["block"]), []).append(row)
    return [_Group(rows, cells, floor) for rows in groups.values()]


EXPERIMENT = Loaded(
    name="loaded",
    after="",
    shows="how long a random load takes that waits for the one before, while other CPUs copy: what a copy costs "
    "everybody else",
    op="loaded",
    ops=("copy", "move"),
    routines=("rep_movsb", STREAM, "wherry"),
    processes=3,
    rounds=7,
)
