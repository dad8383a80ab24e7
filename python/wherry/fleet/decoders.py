"""What msgspec is told of run files: types of all that a fleet uses, and of cells like those that came before.

A cell's texts are few and the same from file to file. A decoder that knows them makes no text, only pointers to
those it has: in a file of 2,000 cells that saves a fifth of the decoding, and two thirds of the comparing.
What it does not know it refuses, and the decoder for any file goes over it: nothing is taken more lightly for it."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from operator import attrgetter
from typing import Literal

from wherry.fleet.cells import KEYS, NUMBERS

# What is taken of a document besides its cells.
PARTS = (
    *("format", "format_version", "wherry", "started", "interrupted", "machine", "source"),
    *("noise", "experiments", "problems"),
)
# A name of cells that many files share is not long, nor has a campaign more of them.
_LONGEST, _MOST_TEXTS = 64, 128
# Files that teach nothing lasting, as those of a joker, are no longer learned from.
_MOST_LESSONS = 40

values = attrgetter(*(f"{name}_" for name in KEYS))


def _structure(name: str, fields: list, **more):
    import msgspec

    return msgspec.defstruct(name, fields, gc=False, kw_only=True, **more)


def _run(types: dict[str, object]):
    """A decoder of whole run files. Attributes of cells end in _, for some dimensions are words of Python's."""
    import msgspec

    times, ratio, head, parts = _figures()
    fields = [(f"{name}_", types[name], None) for name in KEYS]
    own = [("aa", bool), ("ns", times | None), ("ratio", ratio | None, None)]
    own += [("row", int | None), ("bytes", float | None)]
    cell = _structure("Cell", [*fields, *own], rename={f"{k}_": k for k in KEYS})
    return msgspec.json.Decoder(
        _structure("Run", [*parts, ("rows", list[head]), ("cells", list[cell])])
    )


@functools.cache
def _figures():
    maybe = float | None
    times = _structure("Times", [("q25", maybe, None), ("median", float), ("q75", maybe, None)])
    ratio = _structure("Ratio", [("median", maybe, None)])
    lead = [("fastest", str | None), ("tied", list[str])]
    head = _structure("Row", [("experiment", str), ("row", int), *lead])
    return times, ratio, head, [(name, object, None) for name in PARTS]


@functools.cache
def of_any():
    """Of any run file."""
    return _run({k: (int | bool if k in NUMBERS else str) | None for k in KEYS})


@functools.cache
def of_head():
    """Of anything that may be a run file: what it calls itself."""
    import msgspec

    return msgspec.json.Decoder(_structure("Head", _figures()[3][:2]))


class Learned:
    """The decoder of files like those before."""

    def __init__(self) -> None:
        self.decoder = None
        self._types: dict[str, object] = {}
        # Of each dimension its texts, or its numbers' types; None when it has too many, or long ones.
        self._known: dict[str, set | None] = {name: set() for name in KEYS}
        self._lessons = 0

    def learn(self, cells: Iterable) -> None:
        """From cells that the decoder for any file made."""
        if self._lessons >= _MOST_LESSONS:
            return
        for name, met in zip(KEYS, zip(*map(values, cells), strict=True), strict=False):
            if self._known[name] is not None:
                own = {type(v) for v in met} if name in NUMBERS else set(met)
                self._known[name] = _fit(self._known[name] | own - {None, type(None)})
        types = {name: self._type(name) for name in KEYS}
        if types != self._types:
            self._lessons += 1
            self._types, self.decoder = types, _run(types)

    def _type(self, name: str):
        known = self._known[name]
        if known is None:
            return str | None
        if not known:
            return None
        if name in NUMBERS:
            return functools.reduce(lambda a, b: a | b, sorted(known, key=repr)) | None
        return Literal[tuple(sorted(known))] | None


def _fit(known: set) -> set | None:
    if len(known) > _MOST_TEXTS:
        return None
    plain = all(v.isascii() and v.isprintable() and len(v) <= _LONGEST for v in known - {int, bool})
    return known if plain else None
