"""The cells of many runs: each one's identity as a number, and its figures as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from wherry.dimensions import clean
from wherry.row import OFFSETS

# All that tells one cell from another, in a fixed order; a cell that lacks one has None there.
_NUMBERS = ("size", "src_off", "dst_off", "delta", "overlap", "buffer", "threads", "huge", "table")
_NUMBERS += ("members", "offset", "cpu", "block", "others", "handed_by")
KEYS = (
    *("experiment", "op", "routine", "name", "size", "mix", "src_off", "dst_off", "delta"),
    *("overlap", "walk", "buffer", "src_state", "dst_state", "content", "mode", "threads", "huge"),
    *("table", "code", "via", "partners", "place", "live", "who", "cache", "mapping", "raid"),
    *("members", "from", "offset", "offload", "stack", "cpu", "ends", "beside", "ascending"),
    *("block", "others", "handed", "handed_by", "places"),
)
AT = {name: i for i, name in enumerate(KEYS)}
NUMBERS = frozenset(_NUMBERS)
# The figures kept of a cell. log_ns and the like would save nothing: float32 holds seven digits.
FIGURES = ("ns", "q25", "q75", "ratio")
MOST = 200_000
# float32's range; a time outside is none that anybody measured.
_LEAST_NS, _MOST_NS = 1e-6, 1e30


class UnfitError(Exception):
    """Why a file is no run file, as the end of a sentence."""


def wrong(words: str) -> UnfitError:
    return UnfitError(f"is not a right run file: {words}")


@dataclass
class Rows:
    """The cells of one run: what identifies each, in any form that compares, and the figures of each."""

    identities: list
    values: Callable[[object], tuple]  # of an identity, in the order of KEYS
    figures: Sequence[list]  # as FIGURES
    typed: bool = False  # every figure is a float, or None


def canonical(values: tuple) -> tuple:
    """An identity, each value of a type that it may have."""
    key = []
    for name, value in zip(KEYS, values, strict=True):
        if value is None:
            key.append(None)
        elif name in NUMBERS:
            if type(value) not in (int, bool) or not -(1 << 62) < value < 1 << 62:
                raise wrong(f"a cell's {name} is no whole number")
            key.append(int(value))
        else:
            if not isinstance(value, str):
                raise wrong(f"a cell's {name} is no text")
            key.append(clean(value))
    if key[AT["experiment"]] is None or key[AT["routine"]] is None:
        raise wrong("a cell has no experiment or routine")
    if key[AT["places"]] == "change":
        for name in OFFSETS:
            key[AT[name]] = None
    return tuple(key)


class Cells:
    """Turns cells into numbers of identities and columns of figures. Numbers are counted up from the first file on."""

    def __init__(self) -> None:
        self.keys: list[tuple] = []
        self._numbers: dict[tuple, int] = {}
        self._seen: dict[tuple, int] = {}
        self._last: tuple[list, np.ndarray, np.ndarray | None] | None = None

    def _of(self, values: tuple) -> int:
        number = self._seen.get(values)
        if number is None:
            key = canonical(values)
            number = self._numbers.setdefault(key, len(self.keys))
            if number == len(self.keys):
                self.keys.append(key)
            self._seen[values] = number
        return number

    def _identify(self, rows: Rows) -> tuple[np.ndarray, np.ndarray | None]:
        # Runs of one campaign have the same cells in the same order: one comparison in C tells.
        if self._last is None or self._last[0] != rows.identities:
            found = [self._of(values) for values in map(rows.values, rows.identities)]
            numbers = np.array(found, np.int32)
            _, first = np.unique(numbers, return_index=True)
            first.sort()
            self._last = (rows.identities, numbers, first if len(first) < len(numbers) else None)
        return self._last[1:]

    def columns(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the cells, and their figures (a row of four each). Of equal cells the first counts."""
        if len(rows.identities) > MOST:
            raise UnfitError(f"has more than {MOST:,} cells")
        try:
            numbers, first = self._identify(rows)
            columns = rows.figures if rows.typed else list(map(_held, rows.figures))
            figures = _usable(np.array(columns, np.float64).T)
        except (TypeError, OverflowError):
            raise wrong("a cell lacks something, or has a wrong type") from None
        if not np.isfinite(figures[:, 0]).all():
            raise wrong("a cell has no time, or one beyond all reason")
        return (numbers, figures) if first is None else (numbers[first], figures[first])


_FIGURES = {int, float, type(None)}


def _held(values: list) -> list:
    """Numbers and nothing: numpy would take text for a number, too."""
    if not set(map(type, values)) <= _FIGURES:
        raise TypeError
    return values


def _usable(figures: np.ndarray) -> np.ndarray:
    figures[~((figures >= _LEAST_NS) & (figures <= _MOST_NS))] = np.nan
    return figures.astype(np.float32, order="C")
