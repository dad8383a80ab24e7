"""What a run has of the experiment, by its words."""

from __future__ import annotations

from wherry import tables
from wherry.networking.words import is_row

EXPERIMENT = "network"
LEAST = 0.005  # below this nothing is told apart


class Found:
    def __init__(self, run: dict):
        self._rows = tables.rows_of(run, EXPERIMENT)
        self._cells = tables.cells_of(run, EXPERIMENT)
        self._twins = {
            cell["row"]: cell
            for cell in run["cells"]
            if cell["experiment"] == EXPERIMENT and cell["aa"]
        }

    def by_size(self, **words: object) -> dict[int, dict[str, dict]]:
        """Cells by name, by size; of rows that differ in nothing but their names, the first
        that has it."""
        found: dict[int, dict[str, dict]] = {}
        for row in self._rows:
            cells = self._cells.get(row["row"])
            if is_row(row, **words) and cells:
                own = found.setdefault(row["size"], {})
                found[row["size"]] = cells | own
        return dict(sorted(found.items()))

    def beside(self, name: str, other: str) -> list[tuple[dict, dict]]:
        """The cells of two names in each row that has both."""
        rows = [self._cells.get(row["row"], {}) for row in self._rows]
        return [(own[name], own[other]) for own in rows if name in own and other in own]

    def stack(self) -> str:
        return next((row["stack"] for row in self._rows if row.get("stack")), "")

    def floor(self, **words: object) -> float:
        """What a cell of such rows differs from itself, as a share: the median over the rows."""
        shares = []
        for row in self._rows:
            twin = self._twins.get(row["row"])
            own = self._cells.get(row["row"], {}).get(twin["routine"]) if twin else None
            if own and is_row(row, **words):
                shares.append(abs(took(twin) / took(own) - 1))
        return max(LEAST, sorted(shares)[len(shares) // 2]) if shares else LEAST


def took(cell: dict) -> float:
    """Nanoseconds of a message or frame."""
    return cell["ns"]["median"]


def rate(cell: dict) -> float:
    """Millions of bits a second, as netperf has it."""
    return cell["bytes"] * 8000 / took(cell)


def part(cell: dict | None, name: str) -> float | None:
    return None if cell is None else (cell.get("parts") or {}).get(name)


def use(cell: dict | None, side: str) -> float | None:
    """CPU use of a side, per cent of one CPU."""
    ns = part(cell, f"{side}_ns")
    return None if cell is None or ns is None else 100 * ns / took(cell)


def gain(before: dict, after: dict) -> float:
    """Per cent of throughput."""
    return 100 * (took(before) / took(after) - 1)


def spared(before: dict, after: dict, side: str) -> float | None:
    """How much less CPU time the side needs for a message, per cent; below 0: more."""
    old, new = (part(cell, f"{side}_ns") for cell in (before, after))
    return None if not old or new is None else 100 * (1 - new / old)


def share(cell: dict | None) -> tuple[float, float] | None:
    """Of the time, per cent: in copies, in checksums."""
    copies, sums = part(cell, "copy_ns"), part(cell, "sum_ns")
    if cell is None or copies is None or sums is None:
        return None
    return 100 * copies / took(cell), 100 * sums / took(cell)
