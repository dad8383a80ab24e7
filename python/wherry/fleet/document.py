"""A run file's document, read without trusting it: held to the types of what a fleet uses, and no more.

The whole schema would take a second a file. Where the extra brought msgspec, it skips what is not used and makes no
dictionaries of cells: 1.9 ms for a file of 2,000 cells, where Python's own parser takes 8.4."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable
from pathlib import Path

from wherry import nesting, runfile
from wherry.dimensions import clean
from wherry.fleet import decoders
from wherry.fleet.cells import KEYS, Rows, UnfitError, wrong

LARGEST = 64 << 20
# So that only the head is judged.
_PARTS_AS_THEY_ARE = {"machine": {}, "experiments": [], "problems": []}
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
    if out.unused_data[:2] == b"\x1f\x8b":
        raise UnfitError("is a gzip of several parts; unpack it with gunzip first")
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
        # One of no length may wait for what there will be.
        while size and end < len(view) and (more := file.readinto(view[end:])):
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
    version = run.get("format_version")
    if type(version) is not int or version < 1:
        raise wrong("format_version is missing, or no version")
    if version != 1:
        raise UnfitError("is of a format that this Wherry does not read; use a newer one")
    for key, kind in (("machine", dict), ("experiments", list), ("problems", list)):
        if not isinstance(run.get(key), kind):
            raise wrong(f"{key} is missing or of a wrong type")
    if nesting.too_deep(run):
        raise UnfitError("is nested too deeply")
    return run


def _no_json(data: bytes | memoryview, cut: bool) -> UnfitError:
    data = bytes(data)
    if not data.strip():
        return UnfitError("is empty")
    if b"\0" in data[:4096]:
        return UnfitError("is not text")
    if data.startswith(b"\xef\xbb\xbf"):
        return UnfitError("is not JSON: it begins with a byte-order mark")
    return UnfitError("is JSON that is cut short" if cut else "is not JSON")


# ---- with msgspec ---------------------------------------------------------------------------------------------------


_learned = decoders.Learned()


def _like_before(data: bytes | memoryview):
    """Files of one campaign, and most of one fleet, have the same words in them."""
    import msgspec

    if _learned.decoder is None:
        return None
    try:
        return _learned.decoder.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _decoded(data: bytes | memoryview):
    """Names that are no text are kept in a run as halves of letters, which msgspec refuses."""
    import msgspec

    try:
        return decoders.of_any().decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        whole = _whole_letters(data)
        if whole == data:
            raise
        return decoders.of_any().decode(whole)


def _whole_letters(data: bytes | memoryview) -> bytes:
    return runfile.plain_json(str(data, "utf-8", "surrogateescape")).encode(
        "utf-8", "surrogateescape"
    )


def _by_msgspec(data: bytes | memoryview) -> tuple[dict, Rows]:
    import msgspec

    run = _like_before(data)
    fresh = run is None
    try:
        run = run or _decoded(data)
    except RecursionError:
        raise UnfitError("is nested too deeply") from None
    except msgspec.ValidationError as error:
        raise _unfit(data, str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _no_json(data, _truncated(error)) from None
    if fresh:
        _learned.learn(run.cells)
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
    own = held({name: getattr(run, name) for name in decoders.PARTS})
    _held_together(
        ((row.experiment, row.row, row.fastest, row.tied) for row in run.rows),
        ((c.experiment_, c.row, c.routine_, c.op_, c.bytes) for c in cells),
        own,
    )
    # Without its figures and its row a cell is its own identity.
    for cell in cells:
        cell.ns = cell.ratio = cell.row = cell.bytes = None
    return own, Rows(cells, decoders.values, figures, True)


def _held_together(rows: Iterable[tuple], cells: Iterable[tuple], run: dict) -> None:
    """To what every other command holds a run file's rows and cells."""
    if odds := runfile.at_odds(rows, cells, run.get("source") is not None):
        raise wrong(clean(odds, 140))


def _truncated(error: Exception) -> bool:
    return "truncated" in str(error)


def _unfit(data: bytes | memoryview, words: str) -> UnfitError:
    """What is no JSON, or another kind of file, is called that before anything is said of its parts."""
    import msgspec

    try:
        # To its end: the decoder gave up at the first thing it did not expect.
        msgspec.json.decode(data, type=msgspec.Raw)
        own = decoders.of_head().decode(data)
        held({"format": own.format, "format_version": own.format_version, **_PARTS_AS_THEY_ARE})
    except RecursionError:
        return UnfitError("is nested too deeply")
    except msgspec.ValidationError:
        return UnfitError('is JSON, but not a run file (no "format": "wherry-run")')
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _no_json(data, _truncated(error))
    except UnfitError as error:
        return error
    what, _, where = words.partition(" - at ")
    place = where.strip("`$.")
    return wrong(clean(f"{place}: {what}" if place else what, 140))


# ---- with what Python has -------------------------------------------------------------------------------------------


def _by_json(data: bytes | memoryview) -> tuple[dict, Rows]:
    def refuse(word: str) -> float:
        raise ValueError(f"{word} is not a number JSON has")

    try:
        run = json.loads(runfile.plain_json(str(data, "utf-8")), parse_constant=refuse)
    except RecursionError:
        raise UnfitError("is nested too deeply") from None
    except ValueError as error:
        raise _no_json(data, runfile.cut_short(error)) from None
    run = held(run)
    for key in ("rows", "cells"):
        if not isinstance(run.get(key), list):
            raise wrong(f"{key} is missing or of a wrong type")
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
        _held_together(
            ((row["experiment"], row["row"], row["fastest"], row["tied"]) for row in run["rows"]),
            ((c["experiment"], c["row"], c["routine"], c.get("op"), c["bytes"]) for c in cells),
            run,
        )
    except (KeyError, TypeError, AttributeError):
        raise wrong("a cell lacks something, or has a wrong type") from None
    return run, Rows(identities, tuple, figures)
