"""Run files for the tests of the report: made by hand, with every dimension that pictures are chosen by."""

from __future__ import annotations

import copy
import json
from pathlib import Path

NAMES = ("libc", "wherry", "rep_movsb", "a_peer", "call_floor")
# Names that a page, a script or a terminal could take for something else.
HOSTILE = (
    "<script>window.broken = 1</script>",
    '"><img src=x onerror="window.broken = 2">',
    "</script><script>window.broken = 3</script>",
    "<!--<script>",
    "');window.broken=4;('",
    "\u202egnirts desrever\u202c",
    "\u200fאבג\u2028next",
    "{{constructor.constructor('window.broken = 5')()}}",
    "javascript:window.broken=6",
    "=cmd|' /C calc'!A0",
    "n" * 5000,
    "datum['x']",
)


def machine() -> dict:
    return {
        "host": "bench-1",
        "cpu": {"model": "A CPU <of> tests & co", "mhz": 2600.0, "count": 2},
        "caches": [],
        "reported": {
            "believed": {
                level: {"size": size, "source": "leaf4"}
                for level, size in (("L1d", 48 << 10), ("L2", 1 << 20), ("L3", 32 << 20))
            }
        },
        "kernel": "Linux 6.1 x86_64",
        "libc": "glibc 2.36",
        "compiler": "GCC 12",
        "pages": {"bytes": 4096, "thp": "madvise", "thp_defrag": None},
        "clock_source": "tsc",
        "virtualisation": {"virtual": True, "hypervisor": "KVMKVMKVM", "product": None},
        "governor": None,
        "turbo": None,
        "smt": False,
        "load": [0.1, 0.1, 0.1],
        "memory": {"total": 1 << 34, "available": 1 << 33},
        "uncontrolled": [{"what": "virtual machine", "why": "neighbours", "do": "bare metal"}],
    }


def empty() -> dict:
    return {
        "format": "wherry-run",
        "format_version": 1,
        "wherry": "0.1.0",
        "started": "2026-11-21T10:00:00Z",
        "finished": "2026-11-21T10:01:00Z",
        "seconds": 60.0,
        "interrupted": False,
        "machine": machine(),
        "method": {"seed": 5, "peers": [], "quick": True, "command": ["wherry", "bench"]},
        "noise": {"floor": 0.02},
        "experiments": [],
        "rows": [],
        "cells": [],
        "problems": [],
    }


def quantiles(median: float) -> dict:
    factors = {"min": 0.9, "q05": 0.92, "q25": 0.97, "median": 1, "q75": 1.04, "q95": 1.2, "max": 2}
    return {key: median * factor for key, factor in factors.items()}


def add(run: dict, experiment: str, rows: list[dict], names=NAMES) -> None:
    """Rows with a cell for each name; the n-th is a tenth slower than the one before."""
    run["experiments"].append(
        {
            "name": experiment,
            "processes": 3,
            "rounds": 7,
            "noise_floor": 0.02,
            "voided": {},
            "complete": True,
        }
    )
    for own in rows:
        row = {
            "experiment": experiment,
            "row": len(run["rows"]),
            "op": "copy",
            "src_off": 0,
            "dst_off": 0,
            "walk": "pool",
            "mode": "throughput",
            "threads": 1,
            "huge": False,
            "src_state": "L1",
            "dst_state": "L1",
        } | own
        lead = {"median": 1.1, "low": 1.05, "high": 1.15}
        verdict = {"fastest": names[0], "tied": [], "lead": lead if len(names) > 1 else None}
        run["rows"].append(row | verdict)
        size = row.get("size", 100)
        for i, name in enumerate(names):
            ns = (2 + size / 40) * (1 + i / 10) * (1 + (row["src_off"] + row["dst_off"]) / 100)
            run["cells"].append(
                row
                | {
                    "routine": name,
                    "aa": False,
                    "calls": 100,
                    "bytes": size,
                    "ns": quantiles(ns),
                    "rounds": 21,
                    "processes": 3,
                    "voided": 0,
                    "verified": True,
                    "disturbed": False,
                    "ratio": {"to": "libc", "median": 1 + i / 10, "low": 0.97, "high": 1.7}
                    if name not in ("libc", "call_floor")
                    else None,
                }
            )


STATES = (("L1", "L1"), ("DRAM", "L1"), ("L1", "DRAM"), ("DRAM", "DRAM"))


def maps(side: int, states=STATES) -> list[dict]:
    return [
        {"size": 1448, "src_off": s, "dst_off": d, "src_state": a, "dst_state": b}
        for a, b in states
        for s in range(side)
        for d in range(side)
    ]


def score(names=("wherry", "libc", "a_peer")) -> dict:
    regions = [
        {
            "name": f"region-{i}",
            "about": "sizes <of> a region",
            "base": True,
            "rate": i > 2,
            "rows": [0],
            "planned": 1,
            "figures": {name: 10.0 + j for j, name in enumerate(names)},
            "fastest": "wherry",
            "tied": [],
            "best": names[-1],
            "to_best": {"median": 0.7 + i / 10, "low": 0.6 + i / 10, "high": 0.8 + i / 10},
            "to_libc": {"median": 0.5 + i / 10, "low": 0.4 + i / 10, "high": 0.6 + i / 10},
            "verdict": "ahead" if i < 2 else "tie",
            "limit": {"by": "call_floor", "figure": 5.0, "ratio": None},
        }
        for i in range(5)
    ]
    mean = {"median": 0.8, "low": 0.75, "high": 0.85}
    total = {
        "regions": 5,
        "to_libc": mean,
        "to_envelope": mean,
        "single": names[-1],
        "to_single": mean,
        "worst": "region-4",
    }
    return {
        "wherry": "wherry",
        "isa": None,
        "floor": 0.03,
        "unhalved": 0,
        "envelope": ["libc", names[-1]],
        "about": {},
        "left_out": [],
        "ops": [{"op": "copy", "regions": regions, "total": total}],
        "limits": {"L1": {"copy_bandwidth": 60.0}},
    }


def every_kind(names=NAMES, experiments=("sizes", "mixes", "alignment", "scoreboard", "unheard")):
    """One experiment of each kind of picture, and one that no Wherry knows."""
    run = empty()
    rows = {
        "sizes": [
            {"size": 32 << k, "src_state": s, "dst_state": s}
            for s in ("L1", "L3")
            for k in range(10)
        ],
        "mixes": [
            {"op": op, "mix": mix}
            for op in ("copy", "set")
            for mix in ("uniform:0-64", "log:1-4096")
        ],
        "alignment": maps(8),
        "scoreboard": [{"size": 64}],
        "unheard": [{"size": 512, "threads": n} for n in (1, 2, 4, 8)],
    }
    for experiment in experiments:
        add(run, experiment, rows[experiment], names)
        if experiment == "scoreboard":
            run["experiments"][-1]["score"] = score()
    run["problems"] = [
        {"kind": "skip", "routine": "old", "message": "size must be a multiple of 8"},
        {"kind": "crash", "routine": "bad", "message": "SIGSEGV <at> 0x0"},
    ]
    return run


def hostile() -> dict:
    """The same, with every text that a stranger could have put there."""
    run = every_kind(("libc", "wherry", *HOSTILE))
    text = HOSTILE[2]
    run["machine"] |= {"host": text, "kernel": HOSTILE[1], "libc": HOSTILE[5]}
    run["machine"]["cpu"]["model"] = HOSTILE[0]
    run["machine"]["uncontrolled"] = [{"what": t, "why": t, "do": t} for t in HOSTILE]
    run["method"] |= {"command": list(HOSTILE), "peers": list(HOSTILE)}
    run["problems"] = [{"kind": "wrong", "routine": t, "message": t} for t in HOSTILE]
    run["mixes"] = []
    add(run, HOSTILE[1], [{"size": 64}, {"mix": "@" + text, "op": "set"}], HOSTILE)
    add(run, HOSTILE[2], [{"size": 64 << k} for k in range(4)], HOSTILE)
    return run


def absurd() -> dict:
    """Right by the schema, and beyond all reason."""
    run = every_kind()
    for i, cell in enumerate(run["cells"]):
        for key in cell["ns"]:
            cell["ns"][key] = (1e-308, 1e308, 10**400, 1)[i % 4]
        cell["bytes"] = (0, 1e308, 10**400, 5)[i % 4]
        if cell["ratio"]:
            cell["ratio"] |= {"median": 1e-300, "low": 1e308, "high": 10**500}
    run["experiments"][0] |= {"noise_floor": 1e308, "rounds": 10**30}
    run["rows"][0]["fastest"] = "nobody"
    run["machine"]["reported"] = {"believed": {"L1d": 5, "L2": {"size": "much"}}}
    run["machine"]["cpu"] |= {"mhz": 10**400, "count": -3}
    return run


def write(path: Path, run: dict) -> Path:
    path.write_text(json.dumps(copy.deepcopy(run)))
    return path
