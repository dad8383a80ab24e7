"""A run file's document, read without trusting it: held to the types of what a fleet uses, and no more.

The whole schema would take a second a file. Where the extra brought msgspec, it skips what is not used and makes no
dictionaries of cells: 1.9 ms for a file of 2,000 cells, where Python's own parser takes 8.4."""

from __future__ import annotations

import functools
import json
import os
import zlib
from operator import attrgetter
from pathlib import Path

from wherry.fleet.cells import KEYS, NUMBERS, Rows, UnfitError, wrong
from wherry.report.dimensions import clean

LARGEST = 64 << 20
# What is taken of a document besides its cells.
PARTS = (
    *("format", "format_version", "wherry", "started", "interrupted", "machine", "source"),
    *("noise", "experiments", "problems"),
)
_buffer = bytearray(1 << 20)


def unpacked(data: bytes | memoryview) -> bytes | memoryview:
    """At most LARGEST of it, and never more than that in memory."""
    if data[:2] != b"\x1f\x8b":
        return data
    out = zlib.decompressobj(wbits=31)
    try:
        whole = out.decompress(data, LARGEST + 1)
    except zlib.error:
        raise UnfitError("is a damaged gzip") from None
    if len(whole) > LARGEST:
        raise UnfitError(f"is too large unpacked (over {LARGEST >> 20} MiB)")
    if not out.eof:
        raise UnfitError("is a gzip that is cut short")
    return whole


def _read(path: Path) -> memoryview:
    """Into one buffer for all files: fresh memory for each costs as much as the reading."""
    global _buffer
    with path.open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        if size > LARGEST:
            raise UnfitError(f"is too large (over {LARGEST >> 20} MiB)")
        if len(_buffer) <= size:
            _buffer = bytearray(2 * size)
        view, end = memoryview(_buffer), 0
        while end < len(view) and (more := file.readinto(view[end:])):
            end += more
    return view[:end]


def load(path: Path) -> tuple[dict, Rows]:
    """The document in a file, and its cells; UnfitError when it is none."""
    try:
        if not path.is_file():
            raise UnfitError("is not a file")
        data = _read(path)
    except OSError as error:
        raise UnfitError(f"cannot be read: {error.strerror}") from None
    return parsed(unpacked(data))


def parsed(data: bytes | memoryview) -> tuple[dict, Rows]:
    try:
        import msgspec  # noqa: F401
    except ImportError:
        return _by_json(data)
    return _by_msgspec(data)


def held(run: object) -> dict:
    """A document that is a run file's, as far as its outermost types tell."""
    if not isinstance(run, dict) or run.get("format") != "wherry-run":
        raise UnfitError('is JSON, but not a run file (no "format": "wherry-run")')
    if run.get("format_version") != 1 or isinstance(run["format_version"], bool):
        raise UnfitError("is of a format that this Wherry does not read; use a newer one")
    for key, kind in (("machine", dict), ("experiments", list), ("problems", list)):
        if not isinstance(run.get(key), kind):
            raise wrong(f"{key} is missing or of a wrong type")
    return run


def _no_json(data: bytes | memoryview) -> UnfitError:
    data = bytes(data)
    if not data.strip():
        return UnfitError("is empty")
    if b"\0" in data[:4096]:
        return UnfitError("is not text")
    whole = data.rstrip().endswith(b"}")
    return UnfitError("is not JSON" if whole else "is cut short, or not JSON")


# ---- with msgspec ---------------------------------------------------------------------------------------------------


@functools.cache
def _decoders():
    """Of a whole run file, and of anything's head. Attributes end in _, for some dimensions are words of Python's."""
    import msgspec

    def structure(name: str, fields: list, **more):
        return msgspec.defstruct(name, fields, gc=False, kw_only=True, **more)

    maybe = float | None
    times = structure("Times", [("median", float), ("q25", maybe, None), ("q75", maybe, None)])
    ratio = structure("Ratio", [("median", maybe, None)])
    fields = [(f"{k}_", (int | bool if k in NUMBERS else str) | None, None) for k in KEYS]
    own = [("aa", bool), ("ns", times | None), ("ratio", ratio | None, None)]
    cell = structure("Cell", [*fields, *own], rename={f"{k}_": k for k in KEYS})
    parts = [(name, object, None) for name in PARTS]
    run = structure("Run", [*parts, ("cells", list[cell])])
    head = structure("Head", parts[:2])
    return msgspec.json.Decoder(run), msgspec.json.Decoder(head)


_values = attrgetter(*(f"{name}_" for name in KEYS))


def _by_msgspec(data: bytes | memoryview) -> tuple[dict, Rows]:
    import msgspec

    decoder, head = _decoders()
    try:
        run = decoder.decode(data)
    except RecursionError:
        raise UnfitError("is nested too deeply") from None
    except msgspec.ValidationError as error:
        raise _unfit(head, data, str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _no_json(data) from None
    cells = [cell for cell in run.cells if not cell.aa]
    try:
        times, ratios = [cell.ns for cell in cells], [cell.ratio for cell in cells]
        figures = (
            [t.median for t in times],
            [t.q25 for t in times],
            [t.q75 for t in times],
            [r and r.median for r in ratios],
        )
    except AttributeError:
        raise wrong("a cell lacks its times") from None
    # Without its figures a cell is its own identity.
    for cell in cells:
        cell.ns = cell.ratio = None
    return held({name: getattr(run, name) for name in PARTS}), Rows(cells, _values, figures)


def _unfit(head, data: bytes | memoryview, words: str) -> UnfitError:
    """What is another kind of file is called that, before anything is said of its parts."""
    import msgspec

    try:
        own = head.decode(data)
        held({name: getattr(own, name) for name in PARTS[:2]} | {"machine": {}, "experiments": []})
    except msgspec.ValidationError:
        return UnfitError('is JSON, but not a run file (no "format": "wherry-run")')
    except UnfitError as error:
        if "problems is missing" not in str(error):
            return error
    what, _, where = words.partition(" - at ")
    return wrong(clean(f"{where.strip('`$.') or 'it'}: {what}", 140))


# ---- with what Python has -------------------------------------------------------------------------------------------


def _by_json(data: bytes | memoryview) -> tuple[dict, Rows]:
    def refuse(word: str) -> float:
        raise ValueError(f"{word} is not a number JSON has")

    try:
        run = json.loads(str(data, "utf-8"), parse_constant=refuse)
    except RecursionError:
        raise UnfitError("is nested too deeply") from None
    except ValueError:
        raise _no_json(data) from None
    run = held(run)
    if not isinstance(run.get("cells"), list):
        raise wrong("cells is missing or of a wrong type")
    try:
        cells = [cell for cell in run["cells"] if not cell["aa"]]
        times, ratios = [cell["ns"] for cell in cells], [cell.get("ratio") for cell in cells]
        figures = (
            [t["median"] for t in times],
            [t.get("q25") for t in times],
            [t.get("q75") for t in times],
            [r and r.get("median") for r in ratios],
        )
        identities = [tuple(map(cell.get, KEYS)) for cell in cells]
    except (KeyError, TypeError, AttributeError):
        raise wrong("a cell lacks something, or has a wrong type") from None
    return run, Rows(identities, tuple, figures)
