"""Siarhei Siamashka's tinymembench, 2011: how long a load takes whose address only the one before has told, by working
set, one by one and two at once, with and without huge pages. Here along one random cycle through every line, with up to
twelve chains, which show how many misses a core has under way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from wherry import tables
from wherry.campaign import Row
from wherry.chasing import report
from wherry.chasing.found import CHAINS, HUGE, PAGES, Found
from wherry.chasing.found import EXPERIMENT as NAME
from wherry.errors import WherryError
from wherry.experiments import Experiment, Request
from wherry.row import SystemRow
from wherry.units import GIB, KIB, MIB, memory_bytes, size_label

LINE = 64
LEAST_SET, MOST_SET = KIB, 8 * GIB  # what the runner takes
SMALLEST = 4 * KIB
# Beyond the last-level cache, by as much as leaves few hits in it; of a machine that reports the cache of a whole
# socket no more than a few seconds can make.
TIMES_L3, LARGEST_LEAST, LARGEST_MOST = 4, 256 * MIB, GIB
PART_OF_MEMORY = 8
BATCH_US = 500
QUICK_BATCH_US = 200


@dataclass(frozen=True)
class ChaseRow(SystemRow):
    prepare_ns: ClassVar[float] = 1.2

    def dimensions(self) -> dict[str, object]:
        return super().dimensions() | {"huge": bool(self.huge), "mode": "latency"}


def working_sets(caches: Mapping[str, int], memory: int, quick: bool) -> tuple[int, ...]:
    """Octaves, and halves of them where time is not short; no more than an eighth of the memory."""
    most = min(max(TIMES_L3 * caches.get("L3", 0), LARGEST_LEAST), LARGEST_MOST)
    most = min(LARGEST_LEAST if quick else most, memory // PART_OF_MEMORY)
    found = []
    size = SMALLEST
    while size <= max(most, SMALLEST):
        found += [size] if quick else [size, size + size // 2]
        size *= 2
    return tuple(size for size in found if size <= max(most, SMALLEST))


class Latency(Experiment):
    takes = frozenset({"sizes"})
    weight = 0.8
    quick_processes = 1
    quick_rounds = 5

    def rows(self, request: Request) -> list[Row]:
        sizes = self._asked(request)
        if not sizes:
            sizes = working_sets(request.caches, memory_bytes(), request.quick)
        return [
            ChaseRow(
                self.name,
                self.op,
                tuple(CHAINS),
                size,
                huge=int(pages == HUGE),
                rounds=self.round_count(request),
                batch_us=QUICK_BATCH_US if request.quick else BATCH_US,
                words=(("huge", int(pages == HUGE)),),
            )
            for size in sizes
            for pages in PAGES
        ]

    @staticmethod
    def _asked(request: Request) -> tuple[int, ...]:
        for size in request.sizes:
            if size % LINE or not LEAST_SET <= size <= MOST_SET:
                raise WherryError(
                    f"--size {size_label(size)}: a working set of latency is {size_label(LEAST_SET)} to "
                    f"{size_label(MOST_SET)}, a multiple of {LINE} bytes"
                )
        return tuple(sorted(request.sizes))

    def in_words(self, run: dict) -> list[str] | None:
        return report.sentences(Found(run))

    def blocks(self, run: dict, width: int) -> list[tables.Block]:
        return report.blocks(run, width)


EXPERIMENT = Latency(
    name=NAME,
    after="Siamashka 2011",
    shows="how long a random load takes that waits for the one before, by working set, with 4 KiB and huge "
    "pages, and how many overlap",
    op="chase",
    ops=(),
    routines=tuple(CHAINS),
    processes=5,
    rounds=9,
)
