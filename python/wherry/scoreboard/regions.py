"""What of the scoreboard's regions is measured: rows that several of them name once, each where it is at home, with
what stands beside the routines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wherry.mixes import Mix
from wherry.scoreboard.listed import AGAIN, BEYOND, REGIONS, REP, Cells, Region
from wherry.units import KIB, MIB

# What the project aims at, for the last table: figures beside figures, no judgement.
ENVELOPE_AIM = {"copy": 0.92, "move": 0.92, "set": 0.95}
SINGLE_AIM = {"copy": 0.80, "move": 0.80, "set": 0.85}
REGION_AIM = 1.05
# Regions with an aim of their own: (region, against what, aim).
REGION_AIMS = (
    ("any-64", "limit", 1.10),
    ("any-256", "best", 0.65),
    ("any-1024", "best", 0.75),
    ("log-4096", "best", 0.85),
    ("fixed-8K", "limit", 1.18),
    ("1M-4M", "limit", 1.05),
    ("8M-16M", "limit", 1.05),
    ("32M-256M", "limit", 1.05),
)
# Where the bandwidths of the machine are looked up: bytes of a buffer in each cache.
LIMIT_SIZES = {"L1": 8 * KIB, "L2": 64 * KIB, "L3": 2 * MIB, "DRAM": 64 * MIB}
LIMIT_YARDSTICKS = (
    "read_bandwidth",
    "write_bandwidth",
    "write_nt_bandwidth",
    "copy_bandwidth",
    "copy_nt_bandwidth",
    "copy_nt_parts_bandwidth",
)
# Words for both sides, and those for an op that has only a destination.
_ONE_SIDE = {"both": "destination"}
# Offsets and rounding to lines, added to a size before it is asked which cache holds it.
SLACK = 128


def _of_mix(mix: Mix) -> Cells:
    """A range, which is no file, has no name beside what it is."""
    name = {"mix_name": f"@{mix.name}"} if mix.sha256 else {}
    return {"mix": mix.spec, "usual": mix.usual} | name


def of_mixes(mixes: Iterable[Mix]) -> tuple[Region, ...]:
    """Extra regions for the mixes that the user gave; sizes and, where the file has them, overlaps and alignments."""
    taken = {region.name for region in REGIONS}
    return tuple(
        Region(
            f"mix-{mix.name}" if mix.name in taken else mix.name,
            f"the mix {mix.name}",
            (_of_mix(mix),),
            few=(0,),
            base=False,
            ops=mix.ops,
            mix=mix.record(),
        )
        for mix in mixes
    )


def every(mixes: Iterable[Mix] = ()) -> tuple[Region, ...]:
    return REGIONS + of_mixes(mixes)


def chosen(names: Sequence[str], mixes: Iterable[Mix], quick: bool) -> tuple[Region, ...]:
    """Those asked for; else all, or the ones that --quick has rows of. A mix is given to be measured, so that where
    regions are named, but none of the mixes, these are all there too."""
    there = every(mixes)
    if names:
        some = any(region.mix and region.name in names for region in there)
        return tuple(r for r in there if r.name in names or (r.mix and not some))
    return tuple(region for region in there if region.few or not quick)


def yardsticks(region: Region, op: str) -> tuple[str, ...]:
    if region.limit in ("", "call_floor"):
        return (region.limit,) if region.limit else ()
    side = "write" if op == "set" else "copy"
    own = (f"{side}_bandwidth", f"{side}_nt_bandwidth")
    if not region.rate:
        return own
    if side == "copy":
        own += ("copy_nt_parts_bandwidth",)
    return (*own, REP[op]) if op in REP else own


def home(size: int, op: str, caches: dict[str, int]) -> str:
    """The nearest cache whose share for a pool holds one call's bytes (docs/runner-protocol.md tells the shares)."""
    sides = 1 if op == "set" else 2
    touched = size + SLACK
    for level in ("L1", "L2"):
        if touched <= caches.get(level, 0) / 2 / sides * 1.5:
            return level
    l3 = caches.get("L3", 0)
    target = max(l3 / 4, 5 * caches.get("L2", 0) / 2)
    if l3 and target <= l3 * 3 / 4 and touched <= target / sides * 1.5:
        return "L3"
    return "DRAM"


def measured(region: Region, op: str, quick: bool) -> list[Cells]:
    """The cells of a region for an op: without a source, its offset means nothing."""
    few = region.few or range(min(2, len(region.cells)))
    some = [region.cells[i] for i in few] if quick else list(region.cells)
    if op != "set":
        return some
    return [
        {k: _ONE_SIDE.get(v, v) for k, v in cells.items() if k not in ("src_off", "src_state")}
        for cells in some
    ]


@dataclass
class Planned:
    """One row: its cells, what stands beside the routines, and the regions that it belongs to."""

    op: str
    cells: Cells
    yardsticks: tuple[str, ...]
    regions: tuple[str, ...]


def plan(op: str, regions: Sequence[Region], quick: bool, caches: dict[str, int]) -> list[Planned]:
    """Each row once, however many regions it belongs to."""
    found: dict[tuple, Planned] = {}
    for region in regions:
        if op not in region.ops:
            continue
        for cells in measured(region, op, quick):
            key = tuple(sorted(cells.items()))
            row = found.setdefault(key, Planned(op, _row(cells, op, caches), (), ()))
            row.regions += (region.name,)
            row.yardsticks = tuple(dict.fromkeys([*row.yardsticks, *yardsticks(region, op)]))
    return list(found.values())


def with_overlaps(usual: int, op: str) -> int:
    """What a call of a file's mix touches on one side: a move's two sides may lie in one stretch, apart by a size."""
    return 2 * usual if op == "move" else usual


def _row(cells: Cells, op: str, caches: dict[str, int]) -> Cells:
    own = dict(cells)
    if "usual" in own:
        usual = with_overlaps(int(own.pop("usual")), op)
    else:
        usual = int(own.get("size") or str(own["mix"]).rpartition("-")[2])
    if own.get("buffer") == AGAIN:
        own["buffer"] = usual
    elif own.get("buffer") == BEYOND:
        own["buffer"] = -(-4 * caches.get("L3", 0) // usual) * usual or usual
    elif "dst_state" not in own:
        level = home(usual, op, caches)
        own |= {"src_state": level, "dst_state": level}
    return own


def limits_plan(caches: dict[str, int]) -> list[tuple[str, Cells]]:
    """The rows whose yardsticks tell the bandwidth of each level that this machine has."""
    return [
        (level, {"size": size, "src_state": level, "dst_state": level})
        for level, size in LIMIT_SIZES.items()
        if level == "DRAM" or home(size, "copy", caches) == level
    ]
