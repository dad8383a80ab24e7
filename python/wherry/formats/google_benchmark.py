"""google-benchmark's JSON, as `--benchmark_out` writes it and its tools/compare.py reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from wherry.errors import WherryError
from wherry.formats import naming
from wherry.formats.foreign import Cell, Source, build, made, moment, positive
from wherry.formats.samples import Samples, rate

TOOL = "google-benchmark"
_UNITS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_AGGREGATES = ("mean", "median", "stddev", "cv")
# Parts of a name by which the library tells how it timed.
_TIMING = re.compile(
    r"real_time|process_time|manual_time|(iterations|repeats|min_time|"
    r"min_warmup_time):[\d.]+s?x?"
)
_CACHE_TYPES = {"data": "Data", "instruction": "Instruction", "unified": "Unified"}


# ---- in -------------------------------------------------------------------------------------------------------------


def fits(document: object) -> bool:
    return (
        isinstance(document, dict)
        and isinstance(document.get("benchmarks"), list)
        and isinstance(document.get("context", {}), dict)
    )


def _aggregate(entry: dict, name: str) -> tuple[str, str | None]:
    """(name without its suffix, which aggregate): files of before 1.5 have the suffix only."""
    if entry.get("run_type") == "iteration":
        return name, None
    kind = entry.get("aggregate_name")
    if entry.get("run_type") == "aggregate" and isinstance(kind, str):
        run = entry.get("run_name")
        return (run if isinstance(run, str) else name.removesuffix(f"_{kind}")), kind
    found = re.fullmatch(r"(.+)_(mean|median|stddev|cv|BigO|RMS)", name)
    return (found[1], found[2]) if found else (name, None)


def _bytes(entry: dict, time: float, scale: float, timed_by_wall: bool) -> float | None:
    """Of one iteration; the library counts its rate by CPU time unless it was told otherwise."""
    rate = positive(entry.get("bytes_per_second"))
    own = time if timed_by_wall else positive(entry.get("cpu_time"))
    if rate is None or own is None:
        return None
    return rate * (own if timed_by_wall else own * scale) / 1e9


def read(document: dict, file: str) -> dict:
    context = document.get("context") or {}
    source = Source(TOOL, file, when=moment(context.get("date")), machine=_machine(context))
    source.told = {k: str(v) for k, v in context.items() if isinstance(v, str | int | float)}
    cells: dict[str, Cell] = {}
    left_out: dict[str, int] = {}
    for number, entry in enumerate(document["benchmarks"], 1):
        reason = _take(entry, number, cells, file, context)
        if reason:
            left_out[reason] = left_out.get(reason, 0) + 1
    source.notes += [f"{count} left out: {reason}" for reason, count in left_out.items()]
    usable = [cell for cell in cells.values() if cell.samples or cell.summary]
    if any(not cell.samples for cell in usable):
        source.notes.append("where only aggregates are there, quantiles are not told")
    return build(usable, source)


def _take(
    entry: object, number: int, cells: dict[str, Cell], file: str, context: dict
) -> str | None:
    """Adds one entry to its cell; why not, when it cannot."""
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"]:
        raise WherryError(f"{file}: benchmark {number} has no name; is it whole?")
    if entry.get("error_occurred") or entry.get("skipped"):
        return "the benchmark said that it failed or was skipped"
    name, aggregate = _aggregate(entry, entry["name"])
    if aggregate and aggregate not in _AGGREGATES:
        return "complexity, and aggregates other than mean, median and deviation"
    unit = entry.get("time_unit", "ns")
    scale = _UNITS.get(unit) if isinstance(unit, str) else None
    time = positive(entry.get("real_time"))
    if aggregate in ("cv", "stddev") and time is None:
        return None
    time = positive(time * scale) if scale and time else None
    if time is None:
        return "no time above 0 in ns, us, ms or s"
    if name not in cells:
        cells[name] = _cell(name, entry, time, scale, aggregate, "wherry" in context)
        if any(key in context for key in naming.BY):
            cells[name].made = made(context.get("samples"), entry.get)
    cell = cells[name]
    if aggregate is None:
        cell.samples.append(time)
    elif aggregate != "cv":
        cell.summary[aggregate] = time
        count = entry.get("repetitions", entry.get("iterations"))
        if isinstance(count, int) and 0 < count < 1 << 31:
            cell.repetitions = count
    return None


def _cell(
    name: str, entry: dict, time: float, scale: float, aggregate: str | None, ours: bool
) -> Cell:
    parts = [part for part in name.split("/") if not _TIMING.fullmatch(part)]
    by_wall = "real_time" in name.split("/") or "manual_time" in name.split("/")
    size = _bytes(entry, time, scale, by_wall) if aggregate in (None, "mean", "median") else None
    told = naming.read("/".join(parts) or name, ":", size, ours)
    calls = entry.get("iterations")
    threads = entry.get("threads")
    if isinstance(threads, int) and not isinstance(threads, bool) and 0 < threads < 1 << 20:
        told.dimensions.setdefault("threads", threads)
    return Cell(
        experiment=told.experiment or TOOL,
        op=told.op,
        routine=told.routine,
        dimensions=told.dimensions,
        name="/".join(told.rest),
        calls=calls if aggregate is None and isinstance(calls, int) and calls >= 0 else None,
        bytes=naming.bytes_of(told, size),
    )


def _machine(context: dict) -> dict:
    """What the library tells, and what our own files add to that."""
    own: dict = {"cpu": {"model": None}}
    for key, at in (
        ("host_name", "host"),
        ("kernel", "kernel"),
        ("libc", "libc"),
        ("boot", "boot"),
    ):
        if isinstance(context.get(key), str) and context[key]:
            own[at] = context[key]
    if isinstance(context.get("cpu"), str):
        own["cpu"]["model"] = context["cpu"]
    count, speed = context.get("num_cpus"), positive(context.get("mhz_per_cpu"))
    if isinstance(count, int) and not isinstance(count, bool):
        own["cpu"]["count"] = count
    if speed:
        own["cpu"]["mhz"] = speed
    caches = context.get("caches")
    own["caches"] = [
        {"level": c["level"], "type": str(c.get("type", "")).lower(), "bytes": c["size"]}
        for c in (caches if isinstance(caches, list) else ())
        if isinstance(c, dict) and all(_whole(c.get(key)) for key in ("level", "size"))
    ]
    load = context.get("load_avg")
    if isinstance(load, list) and len(load) == 3 and all(_figure(v) for v in load):
        own["load"] = load
    return own


def _figure(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 62


# ---- out ------------------------------------------------------------------------------------------------------------


def write(run: dict, samples: Samples) -> dict:
    return {"context": _context(run, samples), "benchmarks": list(_entries(run, samples))}


def _count(cpus: str | None) -> int:
    """Of a list of CPUs as the kernel writes it, 0-3,8; 0, as google-benchmark has it, where it is not known."""
    found = re.fullmatch(r"\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*", cpus or "")
    if not found:
        return 0
    ends = [[int(end) for end in part.split("-")] for part in found[0].split(",")]
    return sum(max(own[-1] - own[0] + 1, 0) for own in ends)


def _context(run: dict, samples: Samples) -> dict:
    machine = run["machine"]
    cpu = machine["cpu"]
    own = {
        "date": run["started"].replace("Z", "+00:00"),
        "host_name": machine["host"],
        "executable": "wherry",
        "num_cpus": cpu.get("count"),
        "mhz_per_cpu": None if cpu.get("mhz") is None else round(cpu["mhz"]),
        "cpu_scaling_enabled": None
        if machine["governor"] is None
        else machine["governor"] != "performance",
        "caches": [
            {
                "type": _CACHE_TYPES.get(cache["type"], cache["type"]),
                "level": cache["level"],
                "size": cache["bytes"],
                "num_sharing": _count(cache.get("shared_by")),
            }
            for cache in machine["caches"]
        ],
        "load_avg": machine["load"],
        "library_build_type": "release",
        naming.by(run): run["wherry"],
        "cpu": cpu["model"],
        "kernel": machine["kernel"],
        "libc": machine["libc"],
        "boot": machine.get("boot"),
        "samples": samples.about,
        "cpu_time": "as real_time: one pinned thread, rounds in which it was descheduled thrown away",
    }
    return {key: value for key, value in own.items() if value is not None}


def _entries(run: dict, samples: Samples) -> Iterator[dict]:
    families: dict[tuple, list[int]] = {}
    for cell in samples.cells:
        name = naming.write(cell, ":")
        family = families.setdefault(
            (cell["experiment"], cell["op"], cell["routine"]), [len(families), 0]
        )
        values = samples.of(cell)
        common = {
            "family_index": family[0],
            "per_family_instance_index": family[1],
            "run_name": name,
        }
        family[1] += 1
        shared = {"repetitions": len(values)} | samples.told(cell)
        if cell.get("threads"):
            shared["threads"] = cell["threads"]
        for index, value in enumerate(values):
            yield (
                {"name": name}
                | common
                | {"run_type": "iteration"}
                | shared
                | {"repetition_index": index, "iterations": cell["calls"] or 1}
                | _times(value, cell["bytes"])
            )
        for kind, value in _aggregates(values, samples.whole):
            size = None if kind in ("stddev", "cv") else cell["bytes"]
            yield (
                {"name": f"{name}_{kind}"}
                | common
                | {"run_type": "aggregate"}
                | shared
                | {
                    "aggregate_name": kind,
                    "aggregate_unit": "percentage" if kind == "cv" else "time",
                    "iterations": len(values),
                }
                | _times(value, size)
            )


def _times(ns: float, size: float | None) -> dict:
    own = {"real_time": ns, "cpu_time": ns, "time_unit": "ns"}
    bytes_per_second = rate(size, ns)
    return own | ({"bytes_per_second": bytes_per_second} if bytes_per_second else {})


def _aggregates(values: list[float], whole: bool) -> Iterator[tuple[str, float]]:
    """Of quantiles only the median is one of the samples too."""
    if len(values) < 2:
        return
    if whole:
        yield "mean", float(np.mean(values))
    yield "median", float(np.median(values))
    if whole:
        deviation = float(np.std(values, ddof=1))
        yield "stddev", deviation
        yield "cv", deviation / float(np.mean(values))
