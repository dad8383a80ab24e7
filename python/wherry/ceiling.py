"""What the copies of a run took of its time: its calls times what each costs on this machine.

Two figures, because a record knows sizes and places but not caches. `likely`: all data in the nearest cache that holds
it, sizes that nobody can predict. `at_most`: both sides in memory, those of up to 64 bytes
in the last-level cache: single lines that miss it are paid by whoever touches them next, if not by the copy. Costs are
measured with libc's routines by wherry-run, once after each boot."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from wherry import runfile, runner
from wherry.errors import FailedError, WherryError
from wherry.scoreboard.regions import home
from wherry.units import MIB

OPS = ("copy", "move", "set")
VERSION = 3
# Calls of a class have sizes from half of this on; the last stands for all above, in proportion.
HOT = (0, 16, 32, 64, 128, 256, 512, *(1 << n for n in range(10, 25)))
COLD_IN_L3 = 64
COLD = (16, 64, 256, 1024, 4096, 16384, 65536, 1 << 20, 1 << 24)
ROUNDS, BATCH_US = 3, 100


def _rows() -> list[tuple[str, str, int, str]]:
    believed = runner.cpu().get("believed") or {}
    caches = {level: own.get("size", 0) for level, own in believed.items() if isinstance(own, dict)}
    caches["L1"] = caches.get("L1d", caches.get("L1", 0))
    rows = []
    for op in OPS:
        rows += [("hot", op, size, home(size, op, caches)) for size in HOT]
        far = "L3" if caches.get("L3", 0) > 4 * caches.get("L2", 0) else "DRAM"
        rows += [("cold", op, size, far if size <= COLD_IN_L3 else "DRAM") for size in COLD]
    return rows


def _measure(progress: Callable[[float], None] | None) -> dict:
    rows = _rows()
    lines = []
    for number, (_, op, size, state) in enumerate(rows):
        least = size // 2 + 1 if size > 16 else 0 if size == 0 else 1
        what = f"mix=uniform:{least}-{size}" if 0 < size < MIB else f"size={size}"
        lines.append(
            f"id={number} op={op} routines=libc {what} src_state={state} dst_state={state} "
            f"rounds={ROUNDS} batch_us={BATCH_US}"
        )
    costs: dict[str, dict[str, dict[str, float]]] = {
        kind: {op: {} for op in OPS} for kind in ("hot", "cold")
    }
    with runner.Stream(["measure"], lines, limit=60) as stream:
        for event in stream:
            if event.get("event") == "cell" and not event.get("aa") and event.get("ns"):
                kind, op, size, _ = rows[event["id"]]
                values = sorted(event["ns"])
                costs[kind][op][str(size)] = round(values[len(values) // 2], 3)
            if event.get("event") == "rowend" and progress:
                progress((event["id"] + 1) / len(rows))
    for op in OPS:
        if len(costs["hot"][op]) < 5 or len(costs["cold"][op]) < 3:
            raise FailedError(
                "the cost of copies could not be measured; wherry doctor may tell why"
            )
    return costs


# ---- kept as long as the machine runs -------------------------------------------------------------------------------


def _key() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = ""
    native = Path(runner.path())
    try:
        stamp = f"{native.stat().st_mtime_ns}:{native.stat().st_size}"
    except OSError:
        stamp = ""
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    return hashlib.sha256(f"{VERSION}:{boot}:{stamp}:{tunables}".encode()).hexdigest()[:32]


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    home = Path(base) if base.startswith("/") else Path.home() / ".cache"
    return home / "wherry" / "costs.json"


def costs(progress: Callable[[float], None] | None = None, fresh: bool = False) -> dict:
    """Nanoseconds a call: costs["hot" | "cold"][op][size]. From the cache when it is of this boot."""
    key, path = _key(), _cache()
    if not fresh:
        try:
            kept = json.loads(path.read_bytes())
            if kept["key"] == key and _good(kept["costs"]):
                return kept["costs"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass
    found = _measure(progress)
    try:
        runfile.write_bytes(path, json.dumps({"key": key, "costs": found}).encode())
    except (OSError, WherryError):
        pass  # then it is measured again
    return found


def _good(found: object) -> bool:
    return all(
        isinstance(ns, int | float) and 0 < ns < 1e12 and int(size) >= 0
        for kind in ("hot", "cold")
        for op in OPS
        for size, ns in found[kind][op].items()
    ) and all(found[kind][op] for kind in ("hot", "cold") for op in OPS)


def cost_ns(table: Mapping[str, float], size: float) -> float:
    """Between two sizes by their logarithms; above the largest in proportion to the size."""
    points = sorted((int(known), ns) for known, ns in table.items())
    if size <= points[0][0]:
        return points[0][1]
    if size >= points[-1][0]:
        return points[-1][1] * size / points[-1][0]
    for (low, below), (high, above) in itertools.pairwise(points):
        if size <= high:
            if low == 0:
                return max(below, above)
            part = math.log(size / low) / math.log(high / low)
            return math.exp(math.log(below) * (1 - part) + math.log(above) * part)
    return points[-1][1]


def _up_to(size: int) -> int | None:
    """The class that a line of the table stands for."""
    bound = 16
    while bound < size and bound < 1 << 20:
        bound <<= 2
    return bound if size <= bound else None


def of(ops: Mapping[str, Mapping], cpu_s: float, found: Mapping) -> dict:
    """The ceiling, as a mix keeps it."""
    parts: dict[tuple, list[float]] = {}
    for op, counted in ops.items():
        for least, _, calls, total in counted["sizes"]:
            if not calls:
                continue
            mean = total / calls
            hot = cost_ns(found["hot"][op], mean) * calls / 1e9
            cold = cost_ns(found["cold"][op], mean) * calls / 1e9
            entry = parts.setdefault((op, _up_to(least)), [0, 0.0, 0.0])
            entry[0] += calls
            entry[1] += hot
            entry[2] += max(hot, cold)
    likely = sum(part[1] for part in parts.values())
    most = sum(part[2] for part in parts.values())
    # A run cannot have spent more than it took.
    share = [min(s / cpu_s, 1.0) if cpu_s > 0 else 0.0 for s in (likely, most)]
    return {
        "cpu_s": round(cpu_s, 6),
        "likely_s": round(likely, 9),
        "at_most_s": round(most, 9),
        "likely": round(share[0], 6),
        "at_most": round(share[1], 6),
        "parts": [
            {
                "op": op,
                "up_to": up_to,
                "calls": calls,
                "likely_s": round(a, 9),
                "at_most_s": round(b, 9),
            }
            for (op, up_to), (calls, a, b) in parts.items()
        ],
    }
