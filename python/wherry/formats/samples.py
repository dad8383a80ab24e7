"""Samples of a run's cells: the raw ones that lie beside the run file, or the quantiles that it keeps."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from wherry import runfile, stats
from wherry.errors import WherryError

RAW_SUFFIX = ".raw.json.gz"


@dataclass
class Raw:
    """Nanoseconds a call, by (experiment, row, routine, aa) and process."""

    cells: dict[tuple, dict[int, np.ndarray]] = field(default_factory=dict)
    trouble: str = ""  # why what lies beside the run was not used

    def of(self, cell: dict) -> dict[int, np.ndarray] | None:
        own = self.cells.get((cell["experiment"], cell["row"], cell["routine"], cell["aa"]))
        if not own:
            return None
        # Samples of another run, or of one that was edited, are not this cell's.
        median = float(np.median(stats.pooled(own)))
        return own if abs(median / cell["ns"]["median"] - 1) < 1e-3 else None


def rate(size: float | None, ns: float) -> float | None:
    """Bytes a second; none where nothing is told, or of times that nobody measured and that no number holds."""
    found = size / ns * 1e9 if size else math.inf
    return found if math.isfinite(found) else None


def beside(path: Path) -> Path:
    return path.with_name(path.name + RAW_SUFFIX)


def read_raw(path: Path) -> Raw:
    """What `wherry bench --raw` left beside the run file; nothing when there is nothing."""
    file = beside(path)
    if not file.exists():
        return Raw()
    try:
        document = runfile.parse(file, runfile.read_bytes(file), "raw samples")
        return Raw(_taken(document))
    except (WherryError, KeyError, TypeError, ValueError) as error:
        why = str(error) if isinstance(error, WherryError) else "it is not what --raw writes"
        return Raw(trouble=f"{file} was not used: {why}")


def _taken(document: object) -> dict[tuple, dict[int, np.ndarray]]:
    found: dict[tuple, dict[int, np.ndarray]] = {}
    for entry in document["samples"]:
        values = np.array(entry["ns"], dtype=float)
        if values.ndim != 1 or not np.all(np.isfinite(values) & (values > 0)):
            raise ValueError
        if not isinstance(entry["process"], int):  # they are put in order
            raise TypeError
        key = (entry["experiment"], entry["row"], entry["routine"], entry["aa"])
        if len(values):
            found.setdefault(key, {})[entry["process"]] = values
    return found


class Samples:
    """What an export writes as the repetitions of a cell."""

    def __init__(self, run: dict, raw: Raw | None = None):
        self.cells = [cell for cell in run["cells"] if not cell["aa"]]
        self.raw = raw or Raw()
        self._floors = {e["name"]: e["noise_floor"] for e in run["experiments"]}
        self.whole = bool(self.raw.cells) and all(self._matches(cell) for cell in self.cells)
        self.about = self._about(imported=bool(run.get("source")))

    def _about(self, imported: bool) -> str:
        if self.whole:
            return "raw, one a round"
        if all(len(self.of(cell)) == 1 for cell in self.cells):
            return "one of each cell, its median"
        words = "quantiles of the rounds (0, 5, 25, 50, 75, 95, 100 %)"
        # No option of ours brings back what another tool's file has told.
        return words if imported else f"{words}; wherry bench --raw keeps them all"

    def _matches(self, cell: dict) -> bool:
        own = self.raw.of(cell)
        return own is not None and len(stats.pooled(own)) == cell["rounds"]

    def told(self, cell: dict) -> dict[str, object]:
        """How the cell came to its samples, for whoever reads them again: seven quantiles are not seven rounds."""
        floor = self._floors.get(cell["experiment"])
        own = {"rounds": cell["rounds"], "processes": cell["processes"]}
        return own if floor is None else own | {"noise_floor": floor}

    def of(self, cell: dict) -> list[float]:
        if self.whole:
            return [float(v) for v in stats.pooled(self.raw.of(cell))]
        values = [cell["ns"].get(key) for key in stats.QUANTILES]
        values = [value for value in values if value is not None]
        if cell["rounds"] == 1 or len(values) < len(stats.QUANTILES):
            return [cell["ns"]["median"]]
        return values
