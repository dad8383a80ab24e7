"""What tells rows apart, and how that is called. A row is what the run file has: dimensions and a verdict."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from wherry.formats.naming import sides
from wherry.row import OFFSETS, PERCENTILES, wander
from wherry.units import size_in_words
from wherry.yardsticks import LIMITS

# Of a row, what is no dimension.
_OTHER = {"experiment", "row", "fastest", "tied", "unsure", "lead", "undecided", "huge_obtained"}
# Figures that a curve can go along, in the order of preference, with the title of the axis.
AXES = {
    "mode": "percentile, rarer calls to the right",
    "size": "size of one call, bytes",
    "threads": "threads",
    "members": "members of the stripe",
    "table": "sizes in the table of a mix",
    "delta": "(destination − source) mod 4096, bytes",
    "overlap": "distance from source to destination, bytes",
    "src_off": "source's offset, bytes",
    "dst_off": "destination's offset, bytes",
}
# Where a percentile lies on such an axis: the slowest of so many calls.
RARITY = {mode: round(100 / (100 - float(mode[1:]))) for mode in PERCENTILES}
STATES = ("L1", "L2", "L3", "DRAM")
# Fewer points are no curve.
LEAST_POINTS = 3
LONGEST = 80
# What turns the direction of the text around it, and what nobody sees.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
# A word that no line holds.
_ENDLESS = re.compile(r"(\S{150})\S{50,}")
_SHORT = 199  # a text that has no such word in it


def clean(value: object, longest: int = LONGEST) -> str:
    """A name out of a file that anybody may have written: on one line, in one direction, not endless."""
    text = str(value)
    # As nearly all names are, of which a fleet has millions.
    if not (len(text) <= _SHORT and text.isascii() and text.isprintable()):
        text = _ENDLESS.sub(r"\1…", _UNSEEN.sub("?", text))
    return text if len(text) <= longest else text[: longest - 1] + "…"


def along(row: dict, axis: str) -> float | None:
    """The row's place on an axis; None where it has none."""
    return RARITY.get(row.get("mode", "")) if axis == "mode" else number(row.get(axis))


def number(value: object) -> float | None:
    """A figure that can be drawn; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def of(row: dict) -> dict[str, object]:
    """Its dimensions."""
    untold = OFFSETS if wander(row) else ()
    return {
        key: value
        for key, value in row.items()
        if key not in _OTHER and isinstance(value, str | int | float) and key not in untold
    }


def varying(rows: Sequence[dict]) -> set[str]:
    """Dimensions in which these rows differ; one that a row lacks counts as different, but for the offsets of places
    that change, of which those tell enough."""
    dimensions = [of(row) for row in rows]
    keys = dict.fromkeys(key for own in dimensions for key in own)

    def values(key: str) -> set[object]:
        return {own.get(key) for own in dimensions if key not in OFFSETS or not wander(own)}

    return {key for key in keys if len(values(key)) > 1}


def without(row: dict, keys: Iterable[str]) -> tuple:
    """All that tells it apart beside `keys`. Places that change are set beside those at 0."""
    left = set(keys)
    own = of(row) | (dict.fromkeys(OFFSETS, 0) if wander(row) else {})
    return tuple(sorted((k, v) for k, v in own.items() if k not in left))


def states(row: dict) -> str:
    """`L1 → DRAM`, or `L1` for both; empty for a stream, which has no state."""
    source, destination = row.get("src_state"), row.get("dst_state")
    if not destination:
        return ""
    return " → ".join(str(state) for state in sides(row["op"], source, destination))


def state_order(row: dict) -> tuple[int, int]:
    own = (row.get("src_state"), row.get("dst_state"))
    return tuple(STATES.index(s) if s in STATES else len(STATES) for s in own)


def _place(row: dict) -> str:
    buffer = number(row.get("buffer"))
    if row.get("walk") == "stream":
        if buffer and buffer == number(row.get("size")):
            return "one buffer"
        return f"buffers of {size_in_words(buffer)} walked through" if buffer else "a stream"
    # Another tool may not tell.
    place = f"in {states(row)}" if states(row) else ""
    return f"{place} in buffers of {size_in_words(buffer)}".strip() if buffer else place


def label(row: dict, among: Iterable[str]) -> str:
    """What is special about this row, where rows differ in the dimensions `among`."""
    differ = set(among)
    words = []
    if "op" in differ:
        words.append(str(row["op"]))
    if "mix" in row and "mix" in differ:
        words.append(str(row["mix"]).removeprefix("@"))
    if "size" in row and "size" in differ and not _sizeless(row):
        words.append(size_words(row["size"]))
    if differ & {"src_state", "dst_state", "walk", "buffer"}:
        words.append(_place(row))
    for key, value in of(row).items():
        if key in differ and key not in (
            *("op", "mix", "size", "src_state", "dst_state", "walk", "buffer"),
        ):
            words.append(_other(key, value))
    words += [text for key, text in _LACKING.items() if key in differ and key not in row]
    words = [word for word in words if word]
    return clean(", ".join(words)) if words else clean(_name(row))


def _sizeless(row: dict) -> bool:
    """A switch that copies nothing."""
    return row["op"] == "switch" and row.get("size") == 0


# What a row says by not having the dimension, where others do.
_LACKING = {
    "delta": "destination − source moved about",
    "overlap": "apart",
    "content": "any pages",
    "places": "places that repeat",
    "ascending": "in no order",
    "handed": "used by no other CPU",
    "code": "warm code",
}


def _name(row: dict) -> str:
    if _sizeless(row):
        return str(row["op"])
    if "mix" not in row and number(row.get("size")) is None and row.get("name"):
        return str(row["name"])
    what = str(row["mix"]).removeprefix("@") if "mix" in row else size_words(row.get("size"))
    return f"{row['op']} {what}"


def size_words(value: object) -> str:
    size = number(value)
    if size is None:
        return "?"
    if size >= 1024 and math.frexp(size)[0] == 0.5:
        return size_in_words(size)
    return f"{size:,.0f} B"


# Words of the experiments on whole systems.
_SAID = {
    ("via", "pipe"): "by pipe",
    ("via", "eventfd"): "by eventfd",
    ("via", "futex"): "by futex",
    ("via", "stacks"): "between two stacks",
    ("via", "alone"): "without a switch",
    ("via", "clock"): "beside work in registers",
    ("via", "first"): "after a pause",
    ("via", "loopback"): "TCP of the kernel, loopback",
    ("via", "veth"): "TCP of the kernel, veth pair",
    ("via", "stack"): "TCP in user space",
    ("via", "rings"): "frames from ring to ring",
    ("place", "same"): "one CPU",
    ("place", "apart"): "two CPUs",
    ("partners", "processes"): "processes",
    ("partners", "threads"): "threads",
    ("offload", "on"): "with offloads",
    ("offload", "off"): "without offloads",
    ("offset", 0): "buffers aligned",
    ("ends", "apart"): "in two processes",
    ("beside", "iperf3"): "beside iperf3",
    ("cache", "warm"): "cached",
    ("cache", "cold"): "cold",
    ("mapping", "fresh"): "mapped each time",
    ("mapping", "kept"): "mapped once",
    ("raid", "none"): "files",
    ("raid", "btrfs"): "btrfs RAID-0",
    ("raid", "md"): "md RAID-0",
    ("from", "scratch"): "scratch",
    ("from", "given"): "files given",
    ("live", "none"): "no registers in use",
    ("live", "x87"): "x87",
    ("live", "sse"): "SSE (XMM)",
    ("live", "avx"): "AVX (YMM)",
    ("live", "avx512"): "AVX-512 (ZMM)",
    ("live", "opmask"): "AVX-512 masks",
    ("live", "amx"): "AMX tiles",
}


def _other(key: str, value: object) -> str:
    if isinstance(value, str | int) and (key, value) in _SAID:
        return _SAID[key, value]
    if key == "huge":
        return "huge pages" if value else "no huge pages"
    if isinstance(value, bool):
        return key if value else f"no {key}"
    words = {
        "src_off": "source + {}",
        "dst_off": "destination + {}",
        "delta": "destination − source = {} mod 4096",
        "overlap": "destination {:+} bytes",
        "threads": "{} thread" if value == 1 else "{} threads",
        "members": "{} member" if value == 1 else "{} members",
        "others": "{} other CPU copies" if value == 1 else "{} other CPUs copy",
        "offset": "buffers {} past a page's beginning",
        "who": "used by {}",
        "stack": "{}",
        "table": "table of {:,}",
        "cpu": "CPU {}",
        "content": "{} pages",
        "places": "places that {}",
        "ascending": "{} ascending",
        "handed": "both sides used last by another CPU"
        if value == "both"
        else "{} used last by another CPU",
        "handed_by": "by CPU {}",
        "code": "{} code",
        "name": "{}",
    }
    if key == "block" and isinstance(value, int):
        return f"others copy {size_words(value)} at a time"
    try:
        return words.get(key, "{}" if key == "mode" else key + " {}").format(value)
    except ValueError:
        return f"{key} {value}"


def common(rows: Sequence[dict]) -> str:
    """What all these rows share, in words: `copy, in L1, throughput`."""
    row, differ = rows[0], varying(rows)
    words = [] if "op" in differ else [str(row["op"])]
    if "size" in row and "size" not in differ and not _sizeless(row):
        words.append(size_words(row["size"]))
    if "mix" in row and "mix" not in differ:
        words.append(str(row["mix"]).removeprefix("@"))
    if not differ & {"src_state", "dst_state", "walk", "buffer"}:
        words.append(_place(row))
    usual = {"threads": 1, "mode": "throughput", "src_off": 0, "dst_off": 0, "huge": False}
    usual |= {"offset": 0, "offload": "on", "from": "scratch"}
    for key, value in of(row).items():
        named = ("op", "size", "mix", "src_state", "dst_state", "walk", "buffer")
        if key in differ or key in named or value == usual.get(key):
            continue
        words.append(_other(key, value))
    return clean(", ".join(word for word in words if word), 200)


def in_order(names: Iterable[str]) -> list[str]:
    """libc, Wherry, everybody else as they come, yardsticks."""

    def rank(name: str) -> int:
        if name in LIMITS or name.startswith("limit"):
            return 3
        return 0 if name == "libc" else 1 if name.split("@")[0] == "wherry" else 2

    return sorted(dict.fromkeys(names), key=rank)
