"""The regions of the scoreboard, as data. A region is a handful of rows whose figure is their geometric mean; a base
region counts in the score, the others are shown beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from wherry.units import KIB, MIB

OPS = ("copy", "move", "set")
# The string instruction of an op: of large sizes it may be what the machine does best.
REP = {"copy": "rep_movsb", "set": "rep_stosb_set"}
FUNCTIONS = {"copy": "memcpy", "move": "memmove", "set": "memset"}

# (source, destination) offsets in a 64-byte line.
ALIGNED = ((0, 0),)
MISALIGNED = ((5, 11),)
BOTH = ALIGNED + MISALIGNED
# Amid a line: a block of 64 bytes would reach into the next.
GATHERED = ((20, 0),)

# One row: keyword arguments of campaign.Row without its op and routines. Without states it gets the nearest cache that
# holds it on this machine; `usual` is what most calls of a file's mix ask for at most.
Cells = dict[str, object]
# Buffers of a stream: of the size itself, the same again and again; or larger than all caches.
AGAIN, BEYOND = "again", "beyond"


@dataclass(frozen=True)
class Region:
    name: str  # what --region takes
    about: str
    cells: tuple[Cells, ...]
    few: tuple[int, ...] = ()  # which of the cells --quick measures; empty: not measured then
    base: bool = True
    ops: tuple[str, ...] = OPS
    # Or `bandwidth`: of the row's level, or of plain loops over the row itself; or nothing.
    limit: str = "call_floor"
    rate: bool = False  # figures in GB/s
    mix: dict | None = field(default=None, compare=False)  # the record of a file's mix


def _fixed(sizes: Sequence[int], offsets=BOTH, **more: object) -> tuple[Cells, ...]:
    return tuple(
        {"size": size, "src_off": s, "dst_off": d, **more} for s, d in offsets for size in sizes
    )


def _unpredictable(mix: str, offsets=BOTH, **more: object) -> tuple[Cells, ...]:
    return tuple({"mix": mix, "src_off": s, "dst_off": d, **more} for s, d in offsets)


def _stream(size: int, offsets=BOTH, **more: object) -> tuple[Cells, ...]:
    """Buffers walked in steps of the size."""
    return _fixed((size,), offsets, walk="stream", **more)


def _beyond(huge: int) -> tuple[Cells, ...]:
    """The largest sizes, of which the last takes most of the time and so is measured least."""
    return (
        *_stream(32 * MIB, buffer=BEYOND, huge=huge, rounds=5),
        *_stream(256 * MIB, ALIGNED, buffer=BEYOND, huge=huge, rounds=3),
    )


_SMALL = (3, 8, 16, 24, 40, 64)
_MIDDLE = (65, 100, 128, 192, 256, 400, 512)
_LARGER = (520, 768, 1000, 1448, 2048)
_PAGES = (3000, 4096, 6000, 8192)
_TENS = (16 * KIB, 24 * KIB, 32 * KIB, 64 * KIB)
# Through buffers of four times the last level, so that no routine profits from what it left there.
_DRAM_4K = _beyond(huge=0)
_DRAM_HUGE = _beyond(huge=1)
_OVERLAPPING = (300, 1 * KIB, 4 * KIB, 16 * KIB)
_DISTANCES = (8, 100)
_ROWS = (104, 640, 1280, 2000, 3000)
_MESSAGES = (64, 256, 1000, 2000, 4096)
_IN_L2 = {"src_state": "L2", "dst_state": "L2"}
_DELTAS = (1, 16, 63, 64, 200, 640, 1500, 2048, 4032, 4095)


def _anywhere(sizes: Sequence[int]) -> tuple[Cells, ...]:
    """Each call elsewhere in its lines and pages, so that nothing which hangs on that can be learnt."""
    return tuple({"size": size, "places": "change"} for size in sizes)


def _upwards(level: str) -> dict[str, object]:
    """Calls that go upwards on both sides, as through the rows of a picture."""
    return {"src_state": level, "dst_state": level, "ascending": "both"}


def _small_upwards(level: str) -> tuple[Cells, ...]:
    mixes = ("uniform:0-64", "uniform:0-256")
    unpredictable = [
        cell for mix in mixes for cell in _unpredictable(mix, ALIGNED, **_upwards(level))
    ]
    return (*_fixed((8, 24, 64), ALIGNED, **_upwards(level)), *unpredictable)


def _moved(sign: int) -> tuple[Cells, ...]:
    return tuple({"size": n, "overlap": sign * d} for n in _OVERLAPPING for d in _DISTANCES)


REGIONS: tuple[Region, ...] = (
    Region("fixed-64", "fixed 3 to 64 bytes", _fixed(_SMALL), few=(1, 4, 9)),
    Region("fixed-512", "fixed 65 to 512 bytes", _fixed(_MIDDLE), few=(1, 4, 10)),
    Region("fixed-2K", "fixed 520 bytes to 2 KiB", _fixed(_LARGER), few=(2, 8), limit="bandwidth"),
    Region("fixed-8K", "fixed 3,000 bytes to 8 KiB", _fixed(_PAGES), few=(1, 6), limit="bandwidth"),
    Region("fixed-64K", "fixed 16 to 64 KiB", _fixed(_TENS), few=(0, 6), limit="bandwidth"),
    Region("any-16", "unpredictable 0 to 16 bytes", _unpredictable("uniform:0-16"), few=(1,)),
    Region("any-64", "unpredictable 0 to 64 bytes", _unpredictable("uniform:0-64"), few=(1,)),
    Region("any-256", "unpredictable 0 to 256 bytes", _unpredictable("uniform:0-256"), few=(1,)),
    Region("any-1024", "unpredictable 0 to 1024 bytes", _unpredictable("uniform:0-1024"), few=(1,)),
    Region(
        "log-4096",
        "unpredictable 1 to 4096 bytes, each octave as likely",
        _unpredictable("log:1-4096"),
        few=(1,),
    ),
    Region(
        "forward",
        "overlapping, destination 8 or 100 bytes below",
        _moved(-1),
        few=(3, 4),
        ops=("move",),
    ),
    Region(
        "backward",
        "overlapping, destination 8 or 100 bytes above",
        _moved(+1),
        few=(3, 4),
        ops=("move",),
    ),
    Region(
        "128K-512K",
        "128 to 512 KiB",
        _fixed((128 * KIB, 256 * KIB, 512 * KIB)),
        few=(1,),
        limit="bandwidth",
        rate=True,
    ),
    Region(
        "1M-4M",
        "1 to 4 MiB",
        _fixed((1 * MIB, 2 * MIB, 4 * MIB), rounds=7),
        few=(1,),
        limit="bandwidth",
        rate=True,
    ),
    Region(
        "8M-16M",
        "8 and 16 MiB, the same two buffers again",
        _stream(8 * MIB, buffer=AGAIN, rounds=5) + _stream(16 * MIB, buffer=AGAIN, rounds=5),
        few=(0,),
        limit="bandwidth",
        rate=True,
    ),
    Region(
        "32M-256M",
        "32 and 256 MiB, in 4 KiB and in huge pages",
        _DRAM_4K + _DRAM_HUGE,
        few=(0, 3),
        limit="bandwidth",
        rate=True,
    ),
    # ---- beside the score; the first four look at rows above from another side -------------------------------------
    Region(
        "aligned",
        "fixed 3 bytes to 64 KiB, both sides at the begin of a line",
        _fixed(_SMALL + _MIDDLE + _LARGER + _PAGES + _TENS, ALIGNED),
        base=False,
        limit="",
    ),
    Region(
        "misaligned",
        "fixed 3 bytes to 64 KiB, neither side aligned",
        _fixed(_SMALL + _MIDDLE + _LARGER + _PAGES + _TENS, MISALIGNED),
        base=False,
        limit="",
    ),
    Region(
        "pages-4K",
        "32 and 256 MiB in 4 KiB pages",
        _DRAM_4K,
        base=False,
        limit="bandwidth",
        rate=True,
    ),
    Region(
        "pages-huge",
        "32 and 256 MiB in huge pages",
        _DRAM_HUGE,
        base=False,
        limit="bandwidth",
        rate=True,
    ),
    Region(
        "delta-1000",
        "1000 bytes, (dst - src) mod 4096 swept",
        tuple({"size": 1000, "delta": delta} for delta in _DELTAS),
        base=False,
        ops=("copy", "move"),
        limit="bandwidth",
    ),
    Region(
        "delta-4K",
        "4 KiB, (dst - src) mod 4096 swept",
        tuple({"size": 4 * KIB, "delta": delta} for delta in _DELTAS),
        base=False,
        ops=("copy", "move"),
        limit="bandwidth",
    ),
    Region(
        "delta-64K",
        "64 KiB, (dst - src) mod 4096 swept",
        tuple({"size": 64 * KIB, "delta": delta} for delta in _DELTAS),
        base=False,
        ops=("copy", "move"),
        limit="bandwidth",
    ),
    Region(
        "known-256",
        "0 to 256 bytes, the same 4,096 sizes again and again, which processors learn by heart",
        _unpredictable("uniform:0-256", table=4096),
        few=(1,),
        base=False,
    ),
    Region(
        "known-1024",
        "0 to 1024 bytes, the same 4,096 sizes again and again",
        _unpredictable("uniform:0-1024", table=4096),
        few=(1,),
        base=False,
    ),
    Region(
        "places-64",
        "3 to 64 bytes, each call elsewhere in its lines and pages",
        _anywhere(_SMALL),
        base=False,
    ),
    Region(
        "places-512",
        "65 to 512 bytes, each call elsewhere in its lines and pages",
        _anywhere(_MIDDLE),
        base=False,
    ),
    Region(
        "places-2K",
        "520 bytes to 2 KiB, each call elsewhere in its lines and pages",
        _anywhere(_LARGER),
        base=False,
        limit="bandwidth",
    ),
    Region(
        "places-8K",
        "3,000 bytes to 8 KiB, each call elsewhere in its lines and pages",
        _anywhere(_PAGES),
        base=False,
        limit="bandwidth",
    ),
    Region(
        "lat-fixed-256",
        "latency, fixed 8 to 256 bytes",
        _fixed((8, 16, 32, 64, 128, 256), ALIGNED, mode="latency"),
        base=False,
    ),
    Region(
        "lat-any-64",
        "latency, unpredictable 0 to 64 bytes",
        _unpredictable("uniform:0-64", ALIGNED, mode="latency"),
        base=False,
    ),
    Region(
        "lat-any-256",
        "latency, unpredictable 0 to 256 bytes",
        _unpredictable("uniform:0-256", ALIGNED, mode="latency"),
        base=False,
    ),
    Region(
        "fresh-64",
        "8 to 64 bytes whose first 8 have just been stored",
        _fixed((8, 16, 24, 40, 64), ALIGNED, mode="fresh"),
        base=False,
        ops=("copy", "move"),
    ),
    Region(
        "src-cold",
        "64 bytes to 4 KiB, source in memory, destination in L1",
        _fixed((64, 256, 1448, 4096), ALIGNED, src_state="DRAM", dst_state="L1"),
        base=False,
        ops=("copy", "move"),
        limit="",
    ),
    Region(
        "dst-cold",
        "64 bytes to 4 KiB, destination in memory, source in L1",
        _fixed((64, 256, 1448, 4096), ALIGNED, src_state="L1", dst_state="DRAM"),
        base=False,
        limit="",
    ),
    Region(
        "rows-L2",
        "104 bytes to 3,000 bytes, row after row through buffers in L2",
        _fixed(_ROWS, **_upwards("L2")),
        base=False,
        limit="",
    ),
    Region(
        "rows-DRAM",
        "104 bytes to 3,000 bytes, row after row through memory",
        _fixed(_ROWS, **_upwards("DRAM")),
        base=False,
        limit="",
    ),
    Region(
        "small-DRAM",
        "8 to 64 bytes, and unpredictable 0 to 64 and 0 to 256, one after another through memory",
        _small_upwards("DRAM"),
        base=False,
        limit="",
    ),
    Region(
        "large-DRAM",
        "1.5, 3 and 8 MiB, both sides in memory",
        _fixed((1536 * KIB, 3 * MIB, 8 * MIB), rounds=7, src_state="DRAM", dst_state="DRAM"),
        base=False,
        limit="",
        rate=True,
    ),
    Region(
        "gather",
        "8 to 40 bytes, and unpredictable 0 to 64, from all over memory, destination in L1",
        (
            *_fixed((8, 16, 40), GATHERED, src_state="DRAM", dst_state="L1"),
            *_unpredictable("uniform:0-64", GATHERED, src_state="DRAM", dst_state="L1"),
        ),
        base=False,
        ops=("copy", "move"),
        limit="",
    ),
    Region(
        "scattered",
        "unpredictable 0 to 256, 0 to 1024 and 1 to 4096 bytes, both sides all over memory",
        (
            *_unpredictable("uniform:0-256", GATHERED, src_state="DRAM", dst_state="DRAM"),
            *_unpredictable("uniform:0-1024", GATHERED, src_state="DRAM", dst_state="DRAM"),
            *_unpredictable("log:1-4096", GATHERED, src_state="DRAM", dst_state="DRAM"),
        ),
        base=False,
        limit="",
    ),
    Region(
        "handed-src",
        "64 bytes to 4 KiB, the source has just been written by another CPU, in L2",
        _fixed(_MESSAGES, ALIGNED, handed="source", **_IN_L2),
        base=False,
        ops=("copy", "move"),
        limit="",
    ),
    Region(
        "handed-dst",
        "64 bytes to 4 KiB, the destination has just been read by another CPU, in L2",
        _fixed(_MESSAGES, ALIGNED, handed="destination", **_IN_L2),
        base=False,
        limit="",
    ),
    Region(
        "new",
        "64 KiB, 1 and 32 MiB, to pages that the kernel has yet to give",
        _fixed(
            (64 * KIB, 1 * MIB, 32 * MIB),
            ALIGNED,
            content="new",
            src_state="DRAM",
            dst_state="DRAM",
        ),
        base=False,
        limit="",
        rate=True,
    ),
    Region(
        "code-cold",
        "16 to 1448 bytes, the routine's code evicted before each call",
        _fixed((16, 64, 256, 1448), ALIGNED, code="cold"),
        base=False,
    ),
)
