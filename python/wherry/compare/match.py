"""Which cells two runs have in common: those of one routine whose dimensions are all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from wherry.formats.naming import dimensions, telling

# Recorded only where it is not as usual, so that a run without it may well be another one.
_UNUSUAL = {"size", "mix", "name", "delta", "overlap", "content", "ascending", "handed", "code"}
_UNUSUAL |= {"src_state", "dst_state", "buffer", "handed_by", "places"}


@dataclass
class Match:
    pairs: list[tuple[dict, dict]] = field(default_factory=list)
    only_a: list[dict] = field(default_factory=list)
    only_b: list[dict] = field(default_factory=list)
    unrecorded: list[str] = field(
        default_factory=list
    )  # dimensions that one of the runs never records
    usual: tuple[dict, dict] = ({}, {})  # what all cells of a run have and do not tell each


def measured(run: dict) -> list[dict]:
    """Without the second measurements, which are for the noise floor."""
    return [cell for cell in run["cells"] if not cell["aa"]]


def match(a: dict, b: dict) -> Match:
    found = Match()
    left_a, left_b = measured(a), measured(b)
    found.usual = _pins(a, b)
    found.unrecorded = _unrecorded(left_a, left_b, found.usual)
    for with_experiment in (True, False):
        left_a, left_b = _paired(left_a, left_b, found, with_experiment)
    if a.get("source") or b.get("source"):
        left_a, left_b = _loosely(left_a, left_b, found, (telling(a), telling(b)))
    place = {id(cell): i for i, cell in enumerate(measured(a))}
    found.pairs.sort(key=lambda pair: place[id(pair[0])])
    found.only_a, found.only_b = left_a, left_b
    return found


def _pins(a: dict, b: dict) -> tuple[dict, dict]:
    """Where one run has rows on several CPUs, the CPU that all of the other were pinned to tells them apart."""
    if not any("cpu" in cell for run in (a, b) for cell in run["cells"]):
        return {}, {}
    pins = [(run.get("method") or {}).get("pin") for run in (a, b)]
    one, other = ({} if pin is None else {"cpu": pin} for pin in pins)
    return one, other


def _unrecorded(a: Sequence[dict], b: Sequence[dict], usual: tuple[dict, dict]) -> list[str]:
    """All cells of one run have it and none of the other: an older run, from before it was recorded."""
    in_a, in_b = (
        [set(own | dimensions(cell)) for cell in cells]
        for own, cells in zip(usual, (a, b), strict=True)
    )
    found = []
    for some, others in ((in_a, in_b), (in_b, in_a)):
        if some and others:
            found += sorted(set.intersection(*some) - set.union(*others) - _UNUSUAL)
    return found


def _key(cell: dict, with_experiment: bool, without: Iterable[str], usual: dict) -> tuple:
    own = usual | dimensions(cell)
    kept = tuple(sorted((k, v) for k, v in own.items() if k not in without))
    return (cell["experiment"] if with_experiment else "", cell["routine"], kept)


def untold_rooms(without: Sequence[dict], having: Sequence[dict]) -> int:
    """How many cells of one run alone are packets whose buffers it does not tell: the other alone has the same calls,
    with the buffers. Runs from before those were recorded have both under one name."""

    def key(cell: dict) -> tuple:
        own = {k: v for k, v in dimensions(cell).items() if k != "buffer"}
        return cell["experiment"], cell["routine"], tuple(sorted(own.items()))

    told = {key(cell) for cell in having if cell.get("buffer")}
    return sum(key(cell) in told for cell in without if not cell.get("buffer"))


def _paired(
    a: list[dict], b: list[dict], found: Match, with_experiment: bool
) -> tuple[list[dict], list[dict]]:
    """Adds those of the same key; of several the first with the first. Returns what is left."""
    waiting: dict[tuple, list[dict]] = {}
    usual_a, usual_b = found.usual
    for cell in b:
        key = _key(cell, with_experiment, found.unrecorded, usual_b)
        waiting.setdefault(key, []).append(cell)
    left = []
    for cell in a:
        others = waiting.get(_key(cell, with_experiment, found.unrecorded, usual_a))
        if others:
            found.pairs.append((cell, others.pop(0)))
        else:
            left.append(cell)
    return left, [cell for others in waiting.values() for cell in others]


def _loosely(
    a: list[dict], b: list[dict], found: Match, ways: tuple[Callable, Callable]
) -> tuple[list[dict], list[dict]]:
    """Another tool does not tell all: a cell there is one of ours when what both tell agrees, and only one such is."""
    by_routine: dict[str, list[dict]] = {}
    for cell in b:
        by_routine.setdefault(cell["routine"], []).append(cell)
    left, taken = [], set()
    for cell in a:
        near = [c for c in by_routine.get(cell["routine"], ()) if _agree(cell, c, ways)]
        back = near and [
            c for c in a if c["routine"] == cell["routine"] and _agree(c, near[0], ways)
        ]
        if len(near) == 1 and len(back) == 1:
            found.pairs.append((cell, near[0]))
            taken.add(id(near[0]))
        else:
            left.append(cell)
    return left, [cell for cell in b if id(cell) not in taken]


def _agree(a: dict, b: dict, ways: tuple[Callable, Callable]) -> bool:
    own, other = ways[0](a), ways[1](b)
    if not {"size", "mix", "name"} & set(own) & set(other):
        return False
    return all(other[key] == value for key, value in own.items() if key in other)
