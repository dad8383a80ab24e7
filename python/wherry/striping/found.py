"""What a run has of the experiment, by its words."""

from __future__ import annotations

from wherry import tables
from wherry.striping.words import USUAL_BLOCK, is_row


class Found:
    def __init__(self, run: dict):
        own = next((e for e in run["experiments"] if e["name"] == "stripes"), {})
        self.floor = own.get("noise_floor") or 0.0
        self.cross_check = own.get("cross_check") or []
        self.cpus = (run["machine"].get("cpu") or {}).get("count")
        self.problems = [p for p in run["problems"] if p.get("experiment") == "stripes"]
        self._rows = tables.rows_of(run, "stripes")
        self._cells = tables.cells_of(run, "stripes")
        self.given = any(row.get("from") == "given" for row in self._rows)

    def rows(self, **words: object) -> list[tuple[dict, dict[str, dict]]]:
        """Those of such words, by block and number of members."""
        own = [(row, self._cells.get(row["row"], {})) for row in self._rows if is_row(row, **words)]
        return sorted(own, key=lambda pair: (pair[0]["size"], pair[0]["members"]))

    def usual(self, **words: object) -> dict[str, dict]:
        """Of the most members, at the usual block or the nearest that was measured."""
        own = self.rows(**words)
        if not own:
            return {}
        best = min(own, key=lambda p: (abs(p[0]["size"] - USUAL_BLOCK), -p[0]["members"]))
        return best[1]

    def skipped(self, start: str = "") -> list[str]:
        """Reasons, each once."""
        told = (p["message"] for p in self.problems if p["kind"] == "skip" and not p["routine"])
        return list(dict.fromkeys(told))
