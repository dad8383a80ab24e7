"""Which rows are measured: to choose by, and others to prove by."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from wherry.row import Row
from wherry.units import KIB, MIB

EXPERIMENT = "tune"
# (source's offset, destination's offset or None, (dst - src) mod 4096 or None): places to choose the windows by. The
# destination far ahead or behind; what is less than a page's loads and stores apart has curves of its own.
PLACES = ((0, 0, 2048), (1, 0, None), (0, 1, None), (17, 0, 3000))
# How far the destination is ahead, modulo 4096: where string instructions are slow on some CPUs.
AHEAD = (16, 63, 128, 512, 1024)
# Sizes of many calls, for the choice: what nobody can predict, and what repeats.
MIXES = ("uniform:0-16", "uniform:0-64", "uniform:0-256", "uniform:0-1024", "log:1-4096")
HELD_OUT_MIXES = ("uniform:1-32", "uniform:0-128", "uniform:64-512", "log:1-1024", "log:16-8192")
OPS = ("copy", "move", "set")


@dataclass(frozen=True)
class Extent:
    """How much is measured."""

    processes: int
    rounds: int
    proof_processes: int
    proof_rounds: int
    step: int  # of the grid's sizes, as steps an octave
    largest: int
    batch_us: int = 200


FULL = Extent(2, 9, 5, 11, 2, 128 * MIB)
QUICK = Extent(1, 4, 2, 5, 1, 2 * MIB, 50)


def sizes(low: int, high: int, step: int) -> list[int]:
    """So many an octave, multiples of 64."""
    found, i = [], 0
    while True:
        size = round(low * 2 ** (i / step) / 64) * 64
        if size > high:
            return found
        found.append(size)
        i += 1


def off_grid(low: int, high: int, step: int) -> list[int]:
    """Sizes that `sizes` has not: between its, and odd."""
    return [size + size * 3 // (8 * step) + 5 for size in sizes(low, high, step)]


def states(size: int, caches: Mapping[str, int], copies: bool) -> list[tuple[str, str]]:
    """Where both sides of such a call lie when it is hot, and one level further out."""
    levels = [level for level in ("L1", "L2", "L3", "DRAM") if level == "DRAM" or caches.get(level)]
    total = size * (2 if copies else 1)
    fits = [
        level == "DRAM" or total <= caches[level] // (4 if level == "L3" else 2) for level in levels
    ]
    first = fits.index(True)
    found = [(level, level) for level in levels[first : first + 2]]
    return found if size <= MIB else found[:1]


def is_near(row: Row) -> bool:
    """Does the row's destination lie where one does that was written lately (src/routines/recent.h)?"""
    return row.dst_state == "L1" or (row.op == "set" and row.dst_state == "L2")


def choice(routines: Sequence[str], extent: Extent, mixes: Sequence[str] = MIXES) -> list[Row]:
    rows = []
    for op in OPS:
        for mix in mixes:
            for state in ("L1", "L2"):
                rows.append(
                    Row(
                        EXPERIMENT,
                        op,
                        tuple(routines),
                        mix=mix,
                        src_state=state,
                        dst_state=state,
                        rounds=extent.rounds,
                        batch_us=extent.batch_us,
                    )
                )
    return rows


def _at(row: Row, place: tuple[int, int | None, int | None]) -> Row:
    src, dst, delta = place
    return replace(row, src_off=src, dst_off=dst or 0, delta=delta)


def windows(
    op: str,
    routines: Sequence[str],
    extent: Extent,
    caches: Mapping[str, int],
    grid: Sequence[int],
    places: Sequence[tuple[int, int | None, int | None]],
) -> list[Row]:
    rows = []
    for size in grid:
        for state in states(size, caches, op != "set"):
            row = Row(
                EXPERIMENT,
                op,
                tuple(routines),
                size,
                src_state=state[0],
                dst_state=state[1],
                rounds=extent.rounds,
                batch_us=extent.batch_us,
            )
            rows += [_at(row, place) for place in places]
    return rows


def set_places() -> list[tuple[int, int | None, int | None]]:
    return [(0, 0, None), (0, 1, None), (0, 33, None)]


def held_out_places(op: str) -> list[tuple[int, int | None, int | None]]:
    if op == "set":
        return [(0, 7, None), (0, 48, None)]
    return [(5, 3, None), (40, 8, None), (0, None, 40), (0, None, 3333), (3, None, 300)]


# Of copies and sets that may go past the caches: both sides in memory, or those of the call before again, as far as the
# caches hold them. What wins for the one loses for the other.
MEMORY, AGAIN = "from memory", "the same again"


def streams(op: str, routines: Sequence[str], extent: Extent, grid: Sequence[int]) -> list[Row]:
    """Alone and with all CPUs at it."""
    every = len(os.sched_getaffinity(0))
    return [
        Row(
            EXPERIMENT,
            op,
            tuple(routines),
            size,
            src_off=9 if op != "set" else 0,
            dst_off=0 if op != "set" else 9,
            threads=threads,
            rounds=max(extent.rounds - 2, 3),
            batch_us=extent.batch_us,
            **kind,
        )
        for size in grid
        for threads in sorted({1, every})
        for kind in (
            {"src_state": "DRAM", "dst_state": "DRAM"},
            {"walk": "stream", "buffer": size},
        )
    ]


def stream_kind(row: Row) -> str:
    return AGAIN if row.walk == "stream" else MEMORY


def stream_grid(extent: Extent, last_level: int) -> list[int]:
    """From where source and destination fill half of the last level: below, finding the destination in the cache
    afterwards is worth more than the saved read of it."""
    low = stream_least(last_level)
    return sizes(low, max(extent.largest, low), extent.step)


def stream_least(last_level: int) -> int:
    return max(last_level // 4, 4 * MIB)


def rep_grid(extent: Extent, last_level: int) -> list[int]:
    return sizes(256, min(extent.largest, max(last_level, MIB)), extent.step)


def loop_grid(extent: Extent) -> list[int]:
    """Where a loop's beginning and end still count."""
    return sizes(576, 32 * KIB, extent.step)


def loop_places() -> list[tuple[int, int | None, int | None]]:
    """Both sides at lines, the destination alone, none."""
    return [(0, 0, 2048), (1, 0, None), (5, 11, None)]


def small_grid(extent: Extent) -> list[int]:
    """For AHEAD: where a call is long enough to show it, to where memory is all that counts."""
    return sizes(2 * KIB, min(extent.largest, 4 * MIB), 1)
