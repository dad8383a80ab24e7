"""Run files of a made-up fleet, with hosts that differ from their model in a known way.

python tests/fleet_runs.py DIR HOSTS [CELLS] [SEED]
"""

from __future__ import annotations

import copy
import gzip
import json
import sys
from pathlib import Path

import numpy as np
from made_runs import MACHINE

KINDS = ("throttled", "slow memory", "noisy", "THP off", "caches misreported", "slow rep_movsb")
ROUTINES = ("libc", "wherry", "rep_movsb", "avx2_loop", "avx512_loop")
QUANTILES = ("min", "q05", "q25", "median", "q75", "q95", "max")
NORMAL = np.array([-2.5, -1.645, -0.674, 0, 0.674, 1.645, 2.5])
STATES = ("L1", "L2", "L3", "DRAM")
FACTOR = {"L1": 1.0, "L2": 1.3, "L3": 2.1, "DRAM": 5.0}


class Layout:
    """The cells that every run has, as text with room for the figures."""

    def __init__(self, cells: int):
        self.rows, texts, self.base, self.state, self.routine = [], [], [], [], []
        for number in range(cells // len(ROUTINES)):
            experiment = ("sizes", "small", "cells")[number % 3]
            state = STATES[number // 3 % 4]
            row = {"experiment": experiment, "row": number, "op": "copy", "size": 32 + 24 * number}
            row |= {"src_off": 0, "dst_off": 0, "walk": "pool", "mode": "throughput", "threads": 1}
            row |= {"huge": False, "src_state": state, "dst_state": state}
            self.rows.append(row | {"fastest": None, "tied": [], "lead": None})
            for i, routine in enumerate(ROUTINES):
                head = row | {"routine": routine, "aa": False, "calls": 1000, "bytes": row["size"]}
                head |= {"rounds": 63, "processes": 7, "voided": 0, "verified": True}
                ns = ",".join(f'"{q}":%.6g' for q in QUANTILES)
                ratio = '{"to":"libc","median":%.6g,"low":%.6g,"high":%.6g}'
                text = json.dumps(head, separators=(",", ":"))[:-1].replace("%", "%%")
                texts.append(f'{text},"ns":{{{ns}}},"ratio":{ratio}}}')
                self.base.append((2 + row["size"] / 40) * FACTOR[state] * (1 + i / 8))
                self.state.append(state)
                self.routine.append(routine)
        self.text = ",".join(texts)
        self.base = np.log(self.base)
        self.state, self.routine = np.array(self.state), np.array(self.routine)


def machine(model: int, number: int) -> dict:
    own = copy.deepcopy(MACHINE)
    own |= {
        "host": f"host-{number:05d}",
        "boot": f"{number:016x}",
        "libc": f"glibc 2.{36 + model % 2}",
    }
    own["cpu"] |= {"model": f"Vendor {model} CPU", "model_number": model, "vendor": "AuthenticAMD"}
    own["pages"] = {"bytes": 4096, "thp": "madvise", "thp_defrag": "madvise"}
    hypervisor = (None, "KVMKVMKVM", "Microsoft Hv")[model % 3]
    own["virtualisation"] = {"virtual": model % 3 > 0, "hypervisor": hypervisor, "product": None}
    own["reported"] = {
        "believed": {"L1d": {"size": 32768}, "L2": {"size": 1 << 20}, "L3": {"size": 32 << 20}}
    }
    return own


def run(
    layout: Layout, number: int, rng: np.random.Generator, kind: str | None, models: int = 10
) -> bytes:
    model = number % models
    own = machine(model, number)
    logs = layout.base + 0.1 * model + rng.normal(0, 0.015)
    # Hosts differ a little in every region and routine, and cells have tails.
    for state in STATES:
        logs[layout.state == state] += rng.normal(0, 0.008)
    for routine in ROUTINES:
        logs[layout.routine == routine] += rng.normal(0, 0.004)
    noise = 0.01 * rng.lognormal(0, 0.25)
    logs += rng.standard_t(5, len(logs)) * noise * 0.7
    spread, floor, pace = noise, 1.5 * noise * rng.lognormal(0, 0.2), 1 + abs(rng.normal(0, 0.004))
    if kind == "throttled":
        logs += np.log(1.25)
    elif kind == "slow memory":
        logs[layout.state == "DRAM"] += np.log(1.3)
    elif kind == "noisy":
        spread, floor = 6 * spread, 5 * floor
        logs += rng.normal(0, 0.08, len(logs))
    elif kind == "THP off":
        own["pages"]["thp"] = "never"
        logs[layout.state == "DRAM"] += np.log(1.08)
    elif kind == "caches misreported":
        own["caches"][1]["bytes"] = 16 << 20
    elif kind == "slow rep_movsb":
        logs[layout.routine == "rep_movsb"] += np.log(1.6)
    figures = np.empty((len(logs), 10))
    figures[:, :7] = np.exp(logs[:, None] + NORMAL * spread)
    libc = np.repeat(figures[:: len(ROUTINES), 3], len(ROUTINES))
    figures[:, 7] = figures[:, 3] / libc
    figures[:, 8], figures[:, 9] = figures[:, 7] * 0.99, figures[:, 7] * 1.01
    document = {
        "format": "wherry-run",
        "format_version": 1,
        "wherry": "0.1.0",
        "started": "2026-11-20T08:00:00Z",
        "finished": "2026-11-20T08:10:00Z",
        "interrupted": False,
        "machine": own,
        "method": {"seed": 1, "peers": [], "quick": False},
        "noise": {"floor": float(floor)},
        "experiments": [
            {
                "name": name,
                "processes": 7,
                "rounds": 9,
                "noise_floor": float(floor),
                "complete": True,
                "tried": 1000,
                "voided": {"steal": int(rng.poisson(20))},
                "pace": {
                    "core": {
                        "best_ns": 4.0,
                        "median": pace,
                        "worst": pace * 1.1,
                        "above": 1.07,
                        "share_above": 0.01,
                        "by_process": [pace] * 7,
                    }
                },
            }
            for name in ("sizes", "small", "cells")
        ],
        "problems": [],
    }
    head = json.dumps(document, separators=(",", ":"))[:-1]
    rows = _rows(layout)
    return f'{head},"rows":{rows},"cells":[{layout.text % tuple(figures.ravel())}]}}\n'.encode()


def _rows(layout: Layout) -> str:
    if not hasattr(layout, "rows_text"):
        layout.rows_text = json.dumps(layout.rows, separators=(",", ":"))
    return layout.rows_text


def write(
    target: Path,
    hosts: int,
    cells: int = 2000,
    seed: int = 1,
    share: float = 0.01,
    packed: bool = False,
) -> dict[str, str]:
    """Which host has what planted in it."""
    target.mkdir(parents=True, exist_ok=True)
    layout = Layout(cells)
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(hosts)[: max(round(hosts * share), 1)]
    planted = {int(h): KINDS[i % len(KINDS)] for i, h in enumerate(chosen)}
    for number in range(hosts):
        data = run(layout, number, rng, planted.get(number))
        path = target / f"{number:05d}.json{'.gz' if packed else ''}"
        path.write_bytes(gzip.compress(data, 1, mtime=0) if packed else data)
    return {f"host-{number:05d}": kind for number, kind in planted.items()}


if __name__ == "__main__":
    where, many, *more = sys.argv[1:]
    found = write(Path(where), int(many), *map(int, more))
    Path(where).with_suffix(".planted").write_text(json.dumps(found))
