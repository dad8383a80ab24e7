"""What the experiments' modules read alike from a run."""

from __future__ import annotations


def floor(run: dict, experiment: str) -> float:
    """The noise floor of the experiment; 0 when it was not measured."""
    own = next((e for e in run["experiments"] if e["name"] == experiment), {})
    return own.get("noise_floor") or 0.0


def last_cache(run: dict) -> int:
    """Bytes of the largest data cache; 0 when none is told."""
    believed = (run["machine"].get("reported") or {}).get("believed") or {}
    sizes = [own.get("size") or 0 for own in believed.values() if isinstance(own, dict)]
    return max(sizes, default=0)


def ns(cell: dict | None) -> float | None:
    return None if cell is None else cell["ns"]["median"]


def speed(cells: dict[str, dict], name: str, stock: str) -> float | None:
    """How many times as fast as the stock routine; of paired rounds where the run has them."""
    ratio = (cells.get(name) or {}).get("ratio")
    if ratio and ratio["to"] == stock:
        return 1 / ratio["median"]
    if name not in cells or stock not in cells:
        return None
    return cells[stock]["ns"]["median"] / cells[name]["ns"]["median"]


def beats(cell: dict | None, least: float) -> bool | None:
    """Whether it is faster than libc: by the run's own verdict, which is corrected for all comparisons; where there is
    none, by more than the noise floor and its interval. None when nobody compared them, or by one sample alone."""
    ratio = (cell or {}).get("ratio")
    if not ratio:
        return None
    if verdict := cell.get("verdict"):
        return verdict == "faster"
    if ratio["high"] is None:
        return None
    return ratio["high"] < 1 and ratio["median"] < 1 / (1 + least)


def no_size(best: float) -> str:
    """Where a routine beats libc that beats it nowhere; best: the highest of its speeds over libc's, which a tie may
    have above 1."""
    return "no size beyond the noise" if best > 1 else "no size"
