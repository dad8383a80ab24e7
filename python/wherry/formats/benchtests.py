"""The JSON of glibc's benchtests: bench-memcpy.out and its like, where each result has one timing for each of the
functions in `ifuncs`, and bench.out, where each variant of a function has a mean, a least and a greatest time."""

from __future__ import annotations

import re

from wherry.errors import WherryError
from wherry.formats.foreign import Cell, Source, build, positive
from wherry.units import plural

TOOL = "glibc-benchtests"
# (op, whether source and destination lie in one buffer)
_FUNCTIONS = {
    "memcpy": ("copy", False),
    "mempcpy": ("copy", False),
    "memmove": ("move", True),
    "bcopy": ("move", True),
    "memset": ("set", False),
    "bzero": ("zero", False),
}
# What says nothing of the cell beside these, stands in its name.
_KNOWN = ("length", "align1", "align2", "alignment", "timings")
_LARGEST = 1 << 62


def fits(document: object) -> bool:
    return isinstance(document, dict) and isinstance(document.get("functions"), dict)


def read(document: dict, file: str, ghz: float | None = None) -> dict:
    timing = document.get("timing_type")
    source = Source(TOOL, file, told={"timing_type": str(timing)})
    ticks = timing != "clock_gettime"
    scale = 1.0
    if ticks and ghz:
        scale = 1 / ghz
        source.notes.append(f"ticks of the CPU's counter, taken as {ghz:g} a nanosecond")
    elif ticks:
        source.unit = "ticks"
    cells: list[Cell] = []
    for function, own in document["functions"].items():
        if not isinstance(own, dict):
            raise WherryError(f"{file}: function {function[:40]} is not an object of results")
        if "ifuncs" in own or "results" in own:
            cells += _strings(function, own, scale, source)
        else:
            cells += _variants(function, own, scale, source)
    return build(cells, source)


def _strings(function: str, own: dict, scale: float, source: Source) -> list[Cell]:
    names, results = own.get("ifuncs"), own.get("results")
    where = f"{source.file}: {function[:40]}"
    if not _names(names):
        raise WherryError(f"{where} has no list of names in ifuncs")
    if not isinstance(results, list):
        raise WherryError(f"{where} has no list of results")
    variant = str(own.get("bench-variant") or "default")
    cells: dict[tuple, Cell] = {}
    for number, result in enumerate(results, 1):
        timings = result.get("timings") if isinstance(result, dict) else None
        if not isinstance(timings, list) or len(timings) != len(names):
            raise WherryError(
                f"{where}, result {number}: needs as many timings as ifuncs ({len(names)})"
            )
        for name, value in zip(names, timings, strict=True):
            time = positive(value)
            if time is None:
                _count(source, "timing", "left out: not above 0")
                continue
            cell = _cell(function, variant, name, result)
            key = (name, *cell.place())
            cells.setdefault(key, cell).samples.append(time * scale)
    return list(cells.values())


def _names(names: object) -> bool:
    return isinstance(names, list) and bool(names) and all(isinstance(n, str) and n for n in names)


def _count(source: Source, what: str, why: str) -> None:
    """One more of them in a note."""
    for i, note in enumerate(source.notes):
        if note.endswith(why):
            number = int(note.partition(" ")[0].replace(",", ""))
            source.notes[i] = f"{plural(number + 1, what)} {why}"
            return
    source.notes.append(f"{plural(1, what)} {why}")


def _cell(function: str, variant: str, name: str, result: dict) -> Cell:
    op, together = _FUNCTIONS.get(function, ("other", False))
    length = _whole(result.get("length"))
    rest = [
        f"{key}={value}"
        for key, value in result.items()
        if key not in _KNOWN and isinstance(value, str | int | float)
    ]
    if function == "memset" and result.get("char") == 0:
        op = "zero"
        rest = [word for word in rest if word != "char=0"]
    dimensions: dict[str, object] = {}
    size = length
    if length is not None and variant == "random":
        # Lengths are drawn up to this one by a distribution that the file does not tell.
        rest.append(f"up to {length} bytes")
        size = None
    elif length is not None:
        dimensions["size"] = length
    source, target = _whole(result.get("align1")), _whole(result.get("align2"))
    if target is None:
        target = _whole(result.get("alignment"))
    if source is not None:
        dimensions["src_off"] = source % 4096
    if target is not None:
        dimensions["dst_off"] = target % 4096
    if together and source is not None and target is not None and size is not None:
        dimensions["overlap"] = target - source
    return Cell(
        experiment=f"glibc {function} {variant}",
        op=op,
        routine=name,
        dimensions=dimensions,
        name=", ".join(rest),
        bytes=size,
    )


def _whole(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _LARGEST:
        return None
    return value


def _variants(function: str, own: dict, scale: float, source: Source) -> list[Cell]:
    cells = []
    for variant, figures in own.items():
        if not isinstance(figures, dict):
            raise WherryError(
                f"{source.file}: {function[:40]} has neither ifuncs and results nor variants"
            )
        found = {key: positive(figures.get(key)) for key in ("mean", "min", "max", "latency")}
        mean = found["mean"] or positive(figures.get("reciprocal-throughput"))
        if mean is None:
            _count(source, "variant", "left out: no mean above 0")
            continue
        summary = {"mean": mean * scale}
        summary |= {k: found[k] * scale for k in ("min", "max") if found[k] is not None}
        calls = _whole(figures.get("iterations"))
        cells.append(
            Cell(
                experiment="glibc " + re.sub(r"\s+", " ", function),
                op=_FUNCTIONS.get(function, ("other", False))[0],
                routine=function,
                dimensions={},
                name=variant or "default",
                summary=summary,
                calls=calls,
            )
        )
    return cells
