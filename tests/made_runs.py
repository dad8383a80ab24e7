"""Run files made by hand, for what reads them: every figure is known."""

from __future__ import annotations

import copy
import gzip
import json
import math
from pathlib import Path

import numpy as np

MACHINE = {
    "host": "here",
    "boot": "0123456789abcdef",
    "cpu": {
        "model": "Some CPU",
        "family": 25,
        "model_number": 1,
        "stepping": 0,
        "count": 4,
        "mhz": 3000.0,
    },
    "caches": [
        {"level": 1, "type": "data", "bytes": 32768},
        {"level": 2, "type": "unified", "bytes": 1 << 20},
    ],
    "reported": {},
    "kernel": "Linux 6.1.0 x86_64",
    "libc": "glibc 2.36",
    "pages": {"bytes": 4096},
    "clock_source": "tsc",
    "virtualisation": {"virtual": False},
    "governor": "performance",
    "turbo": None,
    "load": [0.0, 0.0, 0.0],
    "memory": {},
    "uncontrolled": [],
}
QUANTILES = {"min": 0, "q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95, "max": 1}
PROCESSES, ROUNDS = 7, 9


def samples(centre: float, rng: np.random.Generator, noise: float) -> dict[int, np.ndarray]:
    """Processes that differ, and rounds within them."""
    return {
        p: centre * np.exp(rng.normal(0, noise) + rng.normal(0, noise, ROUNDS))
        for p in range(PROCESSES)
    }


class Made:
    """A run, and its raw samples."""

    def __init__(self, floor: float | None = 0.01, noise: float = 0.004, seed: int = 1, **machine):
        self.rng = np.random.default_rng(seed)
        self.noise = noise
        self.raw: list[dict] = []
        self.run = {
            "format": "wherry-run",
            "format_version": 1,
            "wherry": "0.1.0",
            "started": "2026-11-21T08:00:00Z",
            "finished": "2026-11-21T08:10:00Z",
            "interrupted": False,
            "machine": copy.deepcopy(MACHINE) | machine,
            "method": {"seed": 1, "peers": [], "quick": False},
            "noise": {"floor": floor},
            "experiments": [],
            "rows": [],
            "cells": [],
            "problems": [],
        }
        self.floor = floor

    def row(self, experiment: str, times: dict[str, float], **dimensions) -> Made:
        """One row: routines and their times; what is not said is as usual."""
        number = len(self.run["rows"])
        own = {"experiment": experiment, "row": number, "op": "copy"}
        own |= {"src_off": 0, "dst_off": 0, "walk": "pool", "mode": "throughput", "threads": 1}
        own |= {"huge": False, "src_state": "L1", "dst_state": "L1"} | dimensions
        if all(e["name"] != experiment for e in self.run["experiments"]):
            self.run["experiments"].append(
                {
                    "name": experiment,
                    "processes": PROCESSES,
                    "rounds": ROUNDS,
                    "noise_floor": self.floor,
                    "complete": True,
                }
            )
        self.run["rows"].append(own | {"fastest": None, "tied": [], "lead": None})
        weather = {p: np.exp(self.rng.normal(0, self.noise, ROUNDS)) for p in range(PROCESSES)}
        drawn = {
            name: {p: v * weather[p] for p, v in samples(ns, self.rng, self.noise).items()}
            for name, ns in times.items()
        }
        for name, values in drawn.items():
            pooled = np.concatenate(list(values.values()))
            quantiles = np.quantile(pooled, list(QUANTILES.values())).tolist()
            ratio = None
            if "libc" in drawn and name != "libc":
                logs = [np.log(values[p]) - np.log(drawn["libc"][p]) for p in values]
                middle = float(np.median(np.concatenate(logs)))
                half = (
                    1.96 * 1.25 * float(np.std([np.median(v) for v in logs])) / math.sqrt(PROCESSES)
                )
                ratio = {"to": "libc", "median": math.exp(middle)}
                ratio |= {"low": math.exp(middle - half), "high": math.exp(middle + half)}
            size = dimensions.get("size", 100)
            self.run["cells"].append(
                own
                | {
                    "routine": name,
                    "aa": False,
                    "calls": 1000,
                    "bytes": size,
                    "ns": dict(zip(QUANTILES, quantiles, strict=True)),
                    "rounds": len(pooled),
                    "processes": PROCESSES,
                    "voided": 0,
                    "verified": True,
                    "ratio": ratio,
                }
            )
            self.raw += [
                {
                    "experiment": experiment,
                    "row": number,
                    "routine": name,
                    "aa": False,
                    "process": p,
                    "ns": [float(v) for v in v],
                }
                for p, v in values.items()
            ]
        return self

    def save(self, path: Path, raw: bool = False) -> Path:
        path.write_text(json.dumps(self.run))
        if raw:
            text = json.dumps({"run": path.name, "samples": self.raw})
            path.with_name(path.name + ".raw.json.gz").write_bytes(gzip.compress(text.encode()))
        return path


SIZES = (1, 8, 16, 64, 100, 256, 1024, 4096)


def usual(seed: int, factors: dict | None = None, clock: float = 1.0, **options) -> Made:
    """Two experiments of four routines; `factors`: by routine, or by (routine, size), how much longer it takes."""
    made = Made(seed=seed, **options)
    factors = factors or {}
    for experiment, state in (("small", "L1"), ("far", "L2")):
        for size in SIZES:
            base = {"libc": 2 + size / 50, "wherry": 2 + size / 60, "rep_movsb": 9 + size / 70}
            base |= {"avx2_loop": 2.5 + size / 55, "call_floor": 1.7}
            times = {
                name: ns * clock * factors.get(name, 1.0) * factors.get((name, size), 1.0)
                for name, ns in base.items()
            }
            made.row(experiment, times, size=size, src_state=state, dst_state=state)
    return made
