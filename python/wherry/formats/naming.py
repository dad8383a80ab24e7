"""The name of a benchmark: the only place where google-benchmark and Go keep what was measured. Ours is the op and the
dimensions as `key:value` (Go: `key=value`) between slashes. Read are those, and what other people's names tell."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass, field

from wherry import schemas
from wherry.row import OFFSETS, PERCENTILES, wander
from wherry.units import parse_size

# Words for the op in other people's names, the longer before those that they contain.
_OPS = (
    ("memmove", "move"),
    ("mempcpy", "copy"),
    ("memcpy", "copy"),
    ("memset", "set"),
    ("bzero", "zero"),
    ("memzero", "zero"),
    ("memclr", "zero"),
    ("bcopy", "move"),
    ("copy", "copy"),
)
OPS = ("copy", "move", "set", "zero")
OPS += ("csum", "copy_csum", "crc32c", "copy_crc32c", "iszero", "pagezero")
# Systems measured as a whole: what they copy from and to is no dimension, and the size none of a call.
SCENES = ("switch", "stripes", "network", "chase", "loaded")
_NO_SOURCE, _NO_DESTINATION = ("set", "zero", "pagezero", "iszero"), ("csum", "crc32c")
# What other people call a size; a bare number after the name of an op of ours is one too.
_SIZES = ("size", "length", "len", "n", "bytes", "size_bytes", "range")
_STATES = ("L1", "L2", "L3", "DRAM")


_LARGEST = 1 << 62
# Left out of a name, since nearly all have it.
_USUAL = {
    "src_off": 0,
    "dst_off": 0,
    "walk": "pool",
    "content": "any",
    "places": "repeat",
    "ascending": "none",
    "handed": "none",
    "code": "warm",
    "threads": 1,
    "table": 65536,
}
_USUAL |= {"huge": False}
# A run file has these only where they are not as usual.
_UNUSUAL = ("content", "places", "ascending", "handed", "code")


def sides(op: str, source: object, destination: object) -> tuple[object, ...]:
    """What is to be told of both sides: of those that the op has, and once where they are alike."""
    if source == destination or op in _NO_SOURCE:
        return (destination,)
    return (source,) if op in _NO_DESTINATION else (source, destination)


@dataclass
class Told:
    """What a name says; None where it does not say."""

    op: str = "other"
    routine: str = ""
    experiment: str | None = None
    dimensions: dict[str, object] = field(default_factory=dict)
    rest: list[str] = field(default_factory=list)  # parts that say nothing known


@functools.cache
def known_dimensions() -> tuple[str, ...]:
    """In the order of the schema, which is the one list of them."""
    listed = json.loads(schemas.text("run"))["$defs"]["dimensions"]["properties"]
    return tuple(key for key in listed if key not in ("experiment", "row"))


def dimensions(cell: dict) -> dict[str, object]:
    """Of a row or a cell, as the run file has them; without what is not told."""
    untold = OFFSETS if wander(cell) else ()
    own = {
        key: cell[key]
        for key in known_dimensions()
        if isinstance(cell.get(key), str | int | float) and key not in untold
    }
    # Runs from before it was recorded had the usual one.
    return own | ({"table": own.get("table", _USUAL["table"])} if "mix" in own else {})


def with_usual(cell: dict) -> dict[str, object]:
    """The dimensions of a cell that Wherry measured, also those that its run file leaves out."""
    own = dimensions(cell)
    if own.get("op") in SCENES:
        return own
    return {key: _USUAL[key] for key in _UNUSUAL} | {"delta": "any", "overlap": "apart"} | own


def telling(run: dict):
    """How to get all that is known of a cell's dimensions: what Wherry leaves out, also in a file that it has exported,
    is as usual; what another tool leaves out nobody knows."""
    source = run.get("source")
    return with_usual if not source or BY[0] in source["told"] else dimensions


def write(cell: dict, sign: str) -> str:
    """`copy/experiment:sizes/routine:libc/size:64/...`. The mode stands last: Go takes a number after the last hyphen
    for a count of CPUs."""
    own = dimensions(cell)
    parts = {"experiment": cell["experiment"], "routine": cell["routine"]}
    parts |= {key: own.pop(key) for key in ("size", "mix") if key in own}
    op, mode = own.pop("op"), own.pop("mode", None)
    parts |= {k: v for k, v in own.items() if op in SCENES or _USUAL.get(k) != v}
    parts |= {} if mode is None else {"mode": mode}
    words = [str(op)]
    for key, value in parts.items():
        text = str(int(value)) if isinstance(value, bool) else str(value)
        for part in text.split("/") if key == "name" else (text,):
            words.append(f"{key}{sign}{re.sub(r'[^!-~]|/', '_', part)}")
    return "/".join(words)


BY = ("wherry", "exported_by_wherry")


def by(run: dict) -> str:
    """Under what our version stands in a file that is exported: `wherry` says that what a name leaves out is as usual,
    which nobody knows of another tool's figures."""
    return BY[1] if run.get("source") else BY[0]


def _number(text: str) -> int | None:
    """`4096`, and `4k` or `16KiB` as people write sizes."""
    if re.fullmatch(r"-?[0-9]{1,18}", text):
        return int(text)
    if re.fullmatch(r"[0-9]{1,12}[kKmMgG](i?B)?", text):
        return parse_size(text, limit=_LARGEST) if int(re.match(r"\d+", text)[0]) else 0
    return None


# What a dimension's value may be, for those that are words.
_ALLOWED = {
    "src_state": _STATES,
    "dst_state": _STATES,
    "walk": ("pool", "stream"),
    "mode": ("throughput", "latency", "fresh", *PERCENTILES),
    "content": ("any", "dirty", "zero", "mixed", "new"),
    "places": ("repeat", "change"),
    "ascending": ("none", "source", "destination", "both"),
    "handed": ("none", "source", "destination", "both"),
    "code": ("warm", "cold"),
    "huge": ("0", "1"),
}
# And the least and the most, for those that are figures.
_BOUNDS = {
    "size": (0, _LARGEST),
    "src_off": (0, 4095),
    "dst_off": (0, 4095),
    "delta": (0, 4095),
    "overlap": (-_LARGEST, _LARGEST),
    "buffer": (1, _LARGEST),
    "threads": (1, _LARGEST),
    "table": (1, _LARGEST),
    "handed_by": (0, 4095),
}


# Strings that are dimensions, and read in another way.
_OWN_WAY = ("experiment", "op", "name", "mix")


def _said(told: Told, key: str, value: str) -> bool:
    """Takes one `key:value`; False when it is none of ours."""
    number = _number(value)
    key = key.lower()
    key = "size" if key in _SIZES else key
    if key in _BOUNDS and number is not None and key in known_dimensions():
        least, most = _BOUNDS[key]
        if least <= number <= most:
            told.dimensions[key] = number
            return True
    elif value in _ALLOWED.get(key, ()):
        told.dimensions[key] = value == "1" if key == "huge" else value
        return True
    elif key == "mix" and re.fullmatch(r"(uniform|log):\d+-\d+|@.+", value):
        told.dimensions[key] = value
        return True
    elif key == "op" and value in OPS:
        told.op = value
        return True
    elif key in ("routine", "experiment") and value:
        setattr(told, key, value)
        return True
    return False


def _said_of_scene(told: Told, key: str, value: str) -> bool:
    """Takes one `key:value` of a name of ours by what the schema allows there; False when it does not."""
    own = json.loads(schemas.text("run"))["$defs"]["dimensions"]["properties"].get(key, {})
    number = _number(value)
    if own.get("type") == "integer" and number is not None:
        if not own.get("minimum", number) <= number <= own.get("maximum", _LARGEST):
            return False
        told.dimensions[key] = number
        return True
    if value in own.get("enum", ()) or (own.get("type") == "string" and key not in _OWN_WAY):
        told.dimensions[key] = value
        return True
    return False


def _op_of(base: str) -> str | None:
    low = base.lower()
    return next((op for word, op in _OPS if word in low), None)


def read(name: str, sign: str, size: float | None = None, ours: bool = False) -> Told:
    """`size`: what the file tells otherwise; of several bare numbers the one that is it, else the first, is the size.
    `ours`: a name that `write` made, where what is left out is as usual."""
    base, *parts = name.split("/")
    told = Told(routine=base)
    if base.lower() in OPS or (ours and base.lower() in SCENES):
        told.op = base.lower()
    else:
        told.op = _op_of(base) or "other"
    numbers = [_number(part) for part in parts]
    chosen = next((i for i, n in enumerate(numbers) if n is not None and n >= 0), None)
    if size is not None:
        near = (i for i, n in enumerate(numbers) if n and abs(n - size) <= 0.02 * n)
        chosen = next(near, chosen)
    for i, part in enumerate(parts):
        key, found, value = part.partition(sign)
        if found and _said(told, key, value):
            continue
        if found and told.op in SCENES and _said_of_scene(told, key, value):
            continue
        if key == "name" and value and told.experiment:  # only ours name the experiment
            told.rest.append(value)
            continue
        if i == chosen and told.op != "other" and not _sized(told):
            told.dimensions["size"] = numbers[i]
        else:
            told.rest.append(part)
    if "mix" in told.dimensions:
        told.dimensions.pop("size", None)
    if ours and told.experiment and told.op not in SCENES:
        untold = (*_UNUSUAL, "table", *(OFFSETS if wander(told.dimensions) else ()))
        usual = {k: v for k, v in _USUAL.items() if k not in untold}
        told.dimensions = usual | told.dimensions
    return told


def _sized(told: Told) -> bool:
    return "size" in told.dimensions or "mix" in told.dimensions


def bytes_of(told: Told, moved: float | None) -> float | None:
    """Of a call: its size where the name has one, else what the file tells otherwise."""
    if told.op in SCENES:
        return None if moved is None else float(f"{moved:.5g}")
    return told.dimensions.get("size", moved)
