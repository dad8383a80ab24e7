"""Whether two runs have anything in common, and why nothing of them can be compared, in one line."""

from __future__ import annotations

from collections.abc import Sequence

from wherry.compare.match import match, measured
from wherry.compare.words import count
from wherry.errors import WherryError
from wherry.formats.naming import known_dimensions, telling
from wherry.row import OFFSETS, wander
from wherry.sentences import join

# More values of a dimension, or more of such dimensions, help nobody.
SHOWN = 3


def nothing_common(paths: Sequence[str], runs: Sequence[dict]) -> WherryError:
    return WherryError(_nothing(paths, runs))


def in_common(names: Sequence[str], paths: Sequence[str], runs: Sequence[dict]) -> str:
    """For a page that shows both."""
    pairs = match(*runs).pairs
    if not pairs:
        return _nothing(names, runs) + "."
    return (
        f"{names[0]} and {names[1]} have {count(len(pairs))} in common; "
        f"wherry compare {paths[0]} {paths[1]} tells which of them changed."
    )


def _nothing(names: Sequence[str], runs: Sequence[dict]) -> str:
    return f"{names[0]} and {names[1]} have no cell in common: {_why(runs)}"


def _why(runs: Sequence[dict]) -> str:
    cells = [measured(run) for run in runs]
    routines = [_unique(cell["routine"] for cell in own) for own in cells]
    both = set(routines[0]) & set(routines[1])
    if not both:
        return f"{_set_apart(routines)}; no routine was measured in both"
    ways = [telling(run) for run in runs]
    told = [
        [way(c) for c in own if c["routine"] in both] for way, own in zip(ways, cells, strict=True)
    ]
    # That places change says why offsets are not told.
    changing = any(wander(one) for own in told for one in own)
    apart = []
    for key in known_dimensions():
        if key in OFFSETS and changing:
            continue
        values = [_unique(one.get(key, "not told") for one in own) for own in told]
        if not set(values[0]) & set(values[1]):
            apart.append(f"{key} is {_set_apart(values)}")
    if not apart:
        return "no routine was measured with the same dimensions in both"
    return "; ".join(apart[:SHOWN]) + ("; ..." if len(apart) > SHOWN else "")


def _unique(values) -> list:
    return list(dict.fromkeys(values))


def _set_apart(values: Sequence[list]) -> str:
    """`64 and 4096 in one, 100 in the other`."""
    one, other = (
        join([str(v) for v in own])
        if len(own) <= SHOWN
        else ", ".join([*(str(v) for v in own[:SHOWN]), "..."])
        for own in values
    )
    return f"{one} in one, {other} in the other"
