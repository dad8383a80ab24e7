"""What a run has of the experiment, by its words."""

from __future__ import annotations

from collections.abc import Iterator

from wherry import tables
from wherry.clock import clock_of
from wherry.switching.words import ALWAYS, IN_USE, is_row

# Below this nothing is told apart: medians of a few dozen rounds.
LEAST = 0.005


class Found:
    def __init__(self, run: dict):
        self.clock = clock_of(run)
        self._twins = {
            cell["row"]: cell
            for cell in run["cells"]
            if cell["experiment"] == "switch" and cell["aa"]
        }
        self.single = all(
            cell["rounds"] < 2 for cell in run["cells"] if cell["experiment"] == "switch"
        )
        self._rows = tables.rows_of(run, "switch")
        self._cells = tables.cells_of(run, "switch")

    def rows(self, **words: object) -> Iterator[tuple[dict, dict[str, dict]]]:
        for row in self._rows:
            if is_row(row, **words):
                yield row, self._cells.get(row["row"], {})

    def cells(self, **words: object) -> dict[str, dict]:
        """Of the first such row."""
        return next((cells for _, cells in self.rows(**words)), {})

    def took(self, name: str, **words: object) -> float | None:
        """Nanoseconds of a round trip."""
        cell = self.cells(**words).get(name)
        return None if cell is None else cell["ns"]["median"]

    def floor(self, **words: object) -> float:
        """What a cell of such rows differs from itself, as a share. The experiment's own noise floor is that of its
        worst rows: those that wake another CPU."""
        found = [LEAST]
        for row, cells in self.rows(**words):
            twin = self._twins.get(row["row"])
            own = cells.get(twin["routine"]) if twin else None
            if own:
                found.append(abs(twin["ns"]["median"] / own["ns"]["median"] - 1))
        return max(found)

    def six(self, live: str) -> dict[tuple[str, str], dict]:
        """By method and by whose registers are in use. With nobody's, all states are the same."""
        own: dict[tuple[str, str], dict] = {}
        if not self.cells(via="stacks", live=live):
            return own
        for who, state in (("no", "none"), ("child", live), ("parent", live)):
            for method in (ALWAYS, IN_USE):
                cell = self.cells(via="stacks", live=state, who=who).get(method)
                if cell is not None:
                    own[method, who] = cell
        return own
