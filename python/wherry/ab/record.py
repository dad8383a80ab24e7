"""A run file of what ab measured: a row for each part of the time, a cell for each side, all runs in the experiment's
own `ab` block. Peak memory is no time and stands in that block alone."""

from __future__ import annotations

from collections.abc import Sequence

from wherry import machine, runfile, significance, version
from wherry.ab.figures import FEW_ROUNDS, METRICS, NAMES, TIMES, Figure
from wherry.ab.turns import Turns
from wherry.stats import NOISE, ONE_SAMPLE, QUANTILES, call

EXPERIMENT = "ab"
_UNTOLD = ("src_off", "dst_off", "walk", "mode", "threads", "huge", "src_state", "dst_state")


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def _ratio(own: Figure) -> dict | None:
    if own.ratio is None:
        return None
    values = {
        key: None if value is None else _rounded(value)
        for key, value in own.ratio.as_dict().items()
    }
    return values | {"p": _rounded(own.p)}


def _rows(turns: Turns, found: dict[str, Figure]) -> tuple[list[dict], list[dict]]:
    import numpy as np

    rows, cells = [], []
    names = [side.name for side in turns.sides]
    few = len(turns.rounds) < FEW_ROUNDS
    why = {"undecided": NOISE if len(turns.rounds) > 1 else ONE_SAMPLE}
    for number, metric in enumerate(TIMES):
        own = found[metric]
        dims = {"experiment": EXPERIMENT, "row": number, "op": "other", "name": NAMES[metric]}
        dims |= dict.fromkeys(_UNTOLD)
        fastest = {"faster": names[1], "slower": names[0]}.get(own.call)
        untold = few or own.ratio is None or call(own.ratio, own.floor, own.p) is None
        tied = [] if fastest or untold else list(names)
        rows.append(
            dims | {"fastest": fastest, "tied": tied, "lead": None} | (why if untold else {})
        )
        for i, name in enumerate(names):
            seconds = [
                getattr(ran, metric) for one in turns.rounds for ran in one[2 * i : 2 * i + 2]
            ]
            ns = np.maximum(np.array(seconds), 1e-6) * 1e9
            quantiles = np.quantile(ns, list(QUANTILES.values()))
            cell = dims | {
                "routine": name,
                "aa": False,
                "calls": 1,
                "bytes": None,
                "ns": {k: _rounded(float(v)) for k, v in zip(QUANTILES, quantiles, strict=True)},
                "rounds": len(ns),
                "processes": len(ns),
                "voided": 0,
                "verified": None,
                "ratio": None,
            }
            if i == 1 and (ratio := _ratio(own)) is not None:
                cell |= {"ratio": ratio | {"to": names[0]}}
                cell |= {} if untold else {"verdict": own.call}
            cells.append(cell)
    return rows, cells


def block(
    turns: Turns, found: dict[str, Figure], by: str, sentence: str, program: Sequence[str]
) -> dict:
    """What the `ab` block of the experiment says, and --json prints."""
    sides = [
        {"name": side.name, "what": side.what, "environment": side.changes({})[0]}
        for side in turns.sides
    ]
    common = set(sides[0]["environment"].items()) & set(sides[1]["environment"].items())
    for side in sides:
        side["environment"] = dict(sorted(set(side["environment"].items()) - common))
    metrics = {}
    for metric in METRICS:
        if metric not in found:
            continue
        own = found[metric]
        metrics[metric] = {
            "unit": "bytes" if metric == "peak" else "s",
            "a": _rounded(own.a),
            "b": _rounded(own.b),
            "ratio": _ratio(own),
            "noise_floor": _rounded(own.floor),
            "call": own.call,
        }
    return {
        "program": list(program),
        "a": sides[0],
        "b": sides[1],
        "by": by,
        "call": found[by].call if found else "tie",
        "verdict": sentence,
        "rounds": len(turns.rounds),
        "orders": turns.orders,
        "stolen": None if turns.stolen is None else _rounded(turns.stolen),
        "metrics": metrics,
        "runs": [
            [
                {metric: _rounded(getattr(ran, metric)) for metric in METRICS}
                | {"processes": ran.processes}
                for ran in one
            ]
            for one in turns.rounds
        ],
    }


def skeleton(experiment: str, command: list[str], seed: int, started: str, seconds: float) -> dict:
    """A run document without rows: its machine, its method."""
    from wherry import stamp

    return {
        "format": runfile.FORMAT,
        "format_version": runfile.FORMAT_VERSION,
        "wherry": version(),
        "started": started,
        "finished": stamp.now(),
        "seconds": round(seconds, 2),
        "interrupted": False,
        "machine": machine.record(),
        "method": {
            "command": command,
            "seed": seed,
            "pin": None,
            "quick": False,
            "peers": [],
        },
        "noise": {"floor": None},
        "experiments": [],
        "rows": [],
        "cells": [],
        "problems": [],
    }


def document(
    turns: Turns,
    found: dict[str, Figure],
    by: str,
    sentence: str,
    program: Sequence[str],
    command: list[str],
    seed: int,
    started: str,
) -> dict:
    run = skeleton(EXPERIMENT, command, seed, started, turns.seconds)
    run["interrupted"] = turns.interrupted
    floor = found[by].floor if found else None
    run["noise"]["floor"] = floor
    if found:
        run["rows"], run["cells"] = _rows(turns, found)
    run["experiments"].append(
        {
            "name": EXPERIMENT,
            "processes": max(len(turns.rounds) * 4, 1),
            "rounds": max(len(turns.rounds), 1),
            "seconds": round(turns.seconds, 2),
            "noise_floor": floor,
            "complete": not turns.interrupted,
            "correction": {
                "method": "none",
                "level": significance.LEVEL,
                "test": significance.TEST_OF_ROUNDS,
                "comparisons": 1,
            },
            "ab": block(turns, found, by, sentence, program),
        }
    )
    return run
