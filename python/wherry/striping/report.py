"""The tables of a run's stripes, and what they mean."""

from __future__ import annotations

from collections.abc import Iterable

from wherry import tables
from wherry.sentences import join, times
from wherry.stats import FAR
from wherry.striping.found import Found
from wherry.striping.shares import ERROR, NOTHING, shares
from wherry.striping.words import (
    DIRECT,
    MEMBERS,
    READ,
    STOCK,
    TOUCH,
    X87,
    megabytes,
    way_words,
)
from wherry.tables import Block, Column, Figure
from wherry.units import percent, signed, size_label

PLAIN = {"raid": "none", "mapping": "fresh"}
# Sources of bytes: heading, words.
SOURCES = (
    ("files, cached", PLAIN | {"cache": "warm"}),
    ("files, cached, mapped once", {"raid": "none", "mapping": "kept", "cache": "warm"}),
    ("files, cold", PLAIN | {"cache": "cold"}),
    ("btrfs RAID-0, cached", {"raid": "btrfs", "mapping": "fresh", "cache": "warm"}),
    ("btrfs RAID-0, cold", {"raid": "btrfs", "mapping": "fresh", "cache": "cold"}),
    ("md RAID-0, cached", {"raid": "md", "mapping": "fresh", "cache": "warm"}),
    ("md RAID-0, cold", {"raid": "md", "mapping": "fresh", "cache": "cold"}),
)
_ORDER = (READ, DIRECT, TOUCH)
HEADS = {TOUCH: "touch", READ: "read()", DIRECT: "O_DIRECT"}


def blocks(run: dict, width: int) -> list[Block]:
    found = Found(run)
    made = [_rates(found, title, words, width) for title, words in SOURCES]
    made += [_shares(found, width), _checked(found, width), _said(found)]
    return [block for block in made if block]


def names_of(cells: Iterable[dict[str, dict]]) -> list[str]:
    known = list(dict.fromkeys(name for own in cells for name in own))
    return [n for n in _ORDER if n in known] + [n for n in known if n not in _ORDER]


def rate(cell: dict | None) -> Figure:
    value = megabytes(cell)
    return tables.MISSING if value is None else Figure(f"{value:,.0f}")


def _rates(found: Found, title: str, words: dict, width: int) -> Block | None:
    rows = found.rows(**words)
    if not rows:
        return None
    names = names_of(cells for _, cells in rows)
    columns = [Column("block"), Column("members")]
    columns += [Column(HEADS.get(name, name), "MB/s") for name in names]
    body = [
        [Figure(size_label(row["size"])), Figure(str(row["members"]))]
        + [rate(cells.get(name)) for name in names]
        for row, cells in rows
    ]
    notes = []
    if title == SOURCES[0][0]:
        notes = ["MB: 2^20 bytes, as in the mail; medians. " + _legend(names)]
    elif words["cache"] == "cold" and words["raid"] == "none":
        notes = [
            "cold: dropped from this system's page cache before each sample, which mincore confirmed; what a device, a "
            "controller or a hypervisor keeps cannot be dropped"
        ]
    elif words["mapping"] == "kept":
        notes = ["no page faults: what is left is the copy alone"]
    elif words["raid"] == "btrfs" and words["cache"] == "warm":
        notes = [
            "one file on a btrfs RAID-0 over nine loop devices, without checksums, in stripes of 64 KiB; the block is "
            "what one read asks for"
        ]
    elif words["raid"] == "md" and words["cache"] == "warm":
        notes = ["an md RAID-0 over nine loop devices, in stripes of 64 KiB, read as a device"]
    return Block(f"stripes: {title}", tables.layout(columns, body, width, keep=2), [], notes)


def _legend(names: list[str]) -> str:
    return "; ".join(f"{HEADS.get(name, name)}: {way_words(name)}" for name in names)


def _share(value: float | None) -> Figure:
    return tables.MISSING if value is None else Figure(f"{value * 100:.0f}")


def _seconds(cell: dict, cpu: float | None) -> Figure:
    """Of a CPU, for 2^30 bytes."""
    if cpu is None:
        return tables.MISSING
    return Figure(f"{cpu * cell['parts']['elapsed_ns'] / cell['bytes'] * 1.073741824:.3f}")


def _shares(found: Found, width: int) -> Block | None:
    columns = [
        Column("bytes from", left=True),
        Column("by", left=True),
        Column("", "MB/s"),
        Column("user", "% CPU"),
        Column("system", "% CPU"),
        Column("waiting", "%"),
        Column("machine", "% CPU"),
        Column("CPU", "s/GB"),
    ]
    body = []
    for title, words in SOURCES:
        cells = found.usual(**words)
        for name in names_of([cells]):
            cell = cells[name]
            own = shares(cell, found.cpus)
            if own == NOTHING:
                continue
            body.append(
                [
                    Figure(title),
                    Figure(HEADS.get(name, name)),
                    rate(cell),
                    _share(own.user),
                    _share(own.system),
                    _share(own.waiting),
                    _share(own.machine),
                    _seconds(cell, own.cpu),
                ]
            )
    if not body:
        return None
    notes = []
    if any(figure is tables.MISSING for line in body for figure in line):
        notes = [
            "- in place of a share: the kernel counts it in ticks, too few here to tell it within "
            f"{percent(ERROR)} of a CPU; more --rounds or --processes do"
        ]
    return Block(
        "stripes: what is the kernel's and what is ours, most members, 64 KiB blocks",
        tables.layout(columns, body, width, keep=2),
        [],
        [
            "user: the copy, where the files are mapped; system: the kernel's part of the same thread (its copy in "
            "read(), page faults, reading ahead); waiting: for the device, or for a CPU that others had",
            "machine: all CPUs, with the kernel's own threads and with whatever else ran; GB: 2^30 bytes",
            *notes,
        ],
    )


def _checked(found: Found, width: int) -> Block | None:
    if not found.cross_check:
        return None
    columns = [
        Column("fio, 64 KiB blocks", left=True),
        Column("fio", "MB/s"),
        Column("spread", "%"),
        Column("user", "% CPU"),
        Column("system", "% CPU"),
        Column("here", "MB/s"),
        Column("fio / here"),
    ]
    body, notes = [], []
    for own in found.cross_check:
        if "bytes_per_s" not in own:
            notes.append(f"{own['what']}: {own['reason']}")
            continue
        ours = own.get("ours_bytes_per_s")
        body.append(
            [
                Figure(own["what"]),
                Figure(f"{own['bytes_per_s'] / (1 << 20):,.0f}"),
                Figure(f"{own['spread'] * 100:.0f}"),
                _share(own.get("user")),
                _share(own.get("system")),
                Figure(f"{ours / (1 << 20):,.0f}") if ours else tables.MISSING,
                Figure(f"{own['bytes_per_s'] / ours:.2f}") if ours else tables.MISSING,
            ]
        )
    if not body:
        return Block("stripes: fio", [], [], notes)
    version = next(own["version"] for own in found.cross_check if "version" in own)
    notes.append(
        f"fio {version}: one thread, files in turn, medians of interleaved runs; it adds its own accounting to each "
        "block, and its mmap engine copies with memcpy, which the drop-in replaces"
    )
    return Block(
        "stripes: an independent check",
        tables.layout(columns, body, width),
        [_dropin(found)],
        notes,
    )


def _dropin(found: Found) -> str:
    rates = {own["what"]: own for own in found.cross_check if "bytes_per_s" in own}
    stock = rates.get("mmap engine, cached")
    ours = rates.get("mmap engine, cached, drop-in")
    if not stock or not ours:
        return ""
    ratio = ours["bytes_per_s"] / stock["bytes_per_s"]
    noise = max(stock["spread"], ours["spread"])
    if abs(ratio - 1) <= noise:
        return (
            f"The drop-in makes no difference to fio's mmap engine that can be told from the spread of its runs "
            f"({percent(noise)}): {signed(ratio - 1)} %."
        )
    more = f"{percent(abs(ratio - 1))} {'more' if ratio > 1 else 'less'}"
    return f"Under the drop-in fio's mmap engine reads {more} a second."


# ---- in words --------------------------------------------------------------------------------------------------------


def ratio(cells: dict[str, dict], name: str, to: str) -> float | None:
    if to == STOCK and name in cells and cells[name].get("ratio"):
        return 1 / cells[name]["ratio"]["median"]  # of the same rounds
    a, b = megabytes(cells.get(name)), megabytes(cells.get(to))
    return None if a is None or b is None else a / b


def is_tie(cell: dict, floor: float) -> bool | None:
    """By the interval of the ratio; the corrected verdict of few processes calls little a difference. None of a single
    sample, and where an interval so wide that it leaves room for none says nothing."""
    own = cell["ratio"]
    if own["low"] is None:
        return None
    if not 1 / FAR < own["median"] < FAR and own["low"] <= 1 <= own["high"]:
        return None
    return own["low"] <= 1 + floor and own["high"] >= 1 - floor


def sentences(found: Found) -> list[str]:
    return [text for text in (_warm(found), _kept(found), _cold(found), _raid(found)) if text]


def _said(found: Found) -> Block | None:
    said = sentences(found)
    notes = [f"left out: {reason}" for reason in found.skipped()]
    if not said and not notes:
        return None
    return Block("stripes: what a copy brings to a stripe today", [], said, notes)


def _warm(found: Found) -> str:
    cells = found.usual(**SOURCES[0][1])
    read, stock, touch = (megabytes(cells.get(name)) for name in (READ, STOCK, TOUCH))
    if None in (read, stock, touch):
        return ""
    text = (
        f"From the page cache read() gives {read:,.0f} MB/s, and a mapping copied by libc {stock:,.0f}; "
        f"of the latter's time page faults and mapping are {percent(stock / touch)} at most"
    )
    mine = ratio(cells, "wherry", STOCK)
    tie = None if mine is None else is_tie(cells["wherry"], found.floor)
    if tie is not None:
        text += "; Wherry's copy ties with libc's" if tie else f"; Wherry's copy is {_more(mine)}"
    return text + "."


def _more(value: float) -> str:
    return times(value) if value >= 1 else f"{percent(1 - value)} slower"


def _kept(found: Found) -> str:
    cells = found.usual(**SOURCES[1][1])
    parts = [
        f"{name} {'ties' if tie else _more(value)}"
        for name in cells
        if name not in (TOUCH, STOCK)
        and (value := ratio(cells, name, STOCK)) is not None
        and (tie := is_tie(cells[name], found.floor)) is not None
    ]
    if not parts:
        return ""
    return f"Without page faults, where the copy is all, against libc's: {join(parts)}."


def _cold(found: Found) -> str:
    cells = found.usual(**SOURCES[2][1])
    rates = {name: megabytes(cell) for name, cell in cells.items() if name != DIRECT}
    if len(rates) < 2:
        return ""
    slow, fast = min(rates.values()), max(rates.values())
    times = [cell["ns"] for name, cell in cells.items() if name != DIRECT]
    spread = max((t["q95"] - t["q05"]) / t["median"] for t in times)
    if fast / slow - 1 <= max(found.floor, spread):
        text = (
            f"Cold, {slow:,.0f} to {fast:,.0f} MB/s come in, whatever copies them: the device sets the "
            "pace, and no copy can be told from another"
        )
    else:
        ends = [min(rates, key=rates.get), max(rates, key=rates.get)]
        slowest, fastest = (HEADS.get(name, name) for name in ends)
        text = f"Cold, {slow:,.0f} ({slowest}) to {fast:,.0f} MB/s ({fastest}) come in"
    touch = cells.get(TOUCH)
    if touch and (busy := shares(touch, found.cpus).cpu) is not None:
        text += f"; bringing pages in keeps a CPU busy for {percent(busy)} of the time even without a copy"
    return text + "."


def _raid(found: Found) -> str:
    cells = found.usual(**SOURCES[4][1]) or found.usual(**SOURCES[6][1])
    gain = ratio(cells, X87, STOCK)
    tie = None if gain is None else is_tie(cells[X87], found.floor)
    if tie is None:
        return ""
    stock = megabytes(cells[STOCK])
    change = (
        f"it cannot be told from libc's {stock:,.0f} MB/s"
        if tie
        else f"it changes {stock:,.0f} MB/s by {(gain - 1) * 100:+.0f} %"
    )
    return (
        f"In 1996 the x87 copy brought a stripe of {MEMBERS} disks from 21 to 24 MB/s (+14 %), since "
        f"copying was about as slow as the disks; from the RAID-0 here, cold, {change}."
    )
