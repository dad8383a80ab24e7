"""A cell's place in words, for tables and sentences."""

from __future__ import annotations

from wherry.formats.naming import dimensions, sides
from wherry.units import size_label

# Said only where it is not the usual.
_USUAL = {
    "src_off": 0,
    "dst_off": 0,
    "walk": "pool",
    "mode": "throughput",
    "threads": 1,
    "huge": False,
    "content": "any",
    "places": "repeat",
    "ascending": "none",
    "handed": "none",
    "code": "warm",
}
_WORDS = {
    "src_off": "source + {}",
    "dst_off": "destination + {}",
    "delta": "dst − src = {} mod 4096",
    "overlap": "overlap {:+}",
    "threads": "{} threads",
    "others": "{} copying",
    "content": "{} pages",
    "places": "places that {}",
    "ascending": "{} ascending",
    "handed": "{} of another CPU",
    "handed_by": "CPU {}'s",
    "code": "{} code",
    "mode": "{}",
    "name": "{}",
    "walk": "{}",
}


def place(cell: dict) -> str:
    """`64 B, L1 to DRAM, source + 3`: all that is not as usual."""
    own = dimensions(cell)
    words = []
    if "mix" in own:
        words.append(str(own.pop("mix")).removeprefix("@"))
    if "size" in own:
        size = own.pop("size")
        words.append(f"{size_label(size)} B" if size < 1024 or size % 1024 else size_label(size))
    own.pop("op")
    source, target = own.pop("src_state", None), own.pop("dst_state", None)
    if source or target:
        words.append(" to ".join(str(state) for state in sides(cell["op"], source, target)))
    buffer = own.pop("buffer", None)
    if own.get("walk") == "stream" and buffer:
        own.pop("walk")
        words.append(f"stream of {size_label(buffer)}")
    elif buffer:
        words.append(f"buffers of {size_label(buffer)}")
    for key, value in own.items():
        if key in _USUAL and _USUAL[key] == value:
            continue
        if isinstance(value, bool):
            words.append(key if value else f"no {key}")
        elif key == "block" and isinstance(value, int):
            words.append(f"others copy {size_label(value)}")
        else:
            words.append(_WORDS.get(key, key + " {}").format(value))
    return ", ".join(words) or "as usual"
