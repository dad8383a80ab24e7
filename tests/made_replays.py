"""A mix to replay, and totals as a replay finds them, for the tests of both."""

from __future__ import annotations

import json

from wherry import runner, stats
from wherry.recording import host
from wherry.replay.totals import Total

CACHES = {"L1": 48 << 10, "L2": 1 << 20, "L3": 32 << 20}


MIX = {
    "format": "wherry-mix",
    "version": 1,
    "name": "hand",
    "ops": {
        "copy": {
            "calls": 2100,
            "bytes": 8_008_000 + 1000 * 300,
            "sizes": [
                [8, 8, 1000, 8000],
                [300, 300, 1000, 300_000],
                [80_000, 80_000, 100, 8_000_000],
            ],
        },
        "set": {"calls": 2, "bytes": 4 << 20, "sizes": [[2 << 20, 2 << 20, 2, 4 << 20]]},
    },
    "ceiling": {"cpu_s": 1.0, "likely_s": 0.2, "at_most_s": 0.4, "likely": 0.2, "at_most": 0.4},
}


def totals(hot: float, warm: float, spread: float = 0.01, floor: float = 0.01) -> dict:
    found = {}
    for heat, ratio, seconds in (("hot", hot, 1.0), ("warm", warm, 1.5)):
        interval = stats.Ratio(ratio, ratio * (1 - spread), ratio * (1 + spread))
        found[heat] = {
            "libc": Total("libc", heat, seconds, None, floor, 1.0),
            "wherry": Total("wherry", heat, seconds * ratio, interval, floor, 1e-6),
        }
    return found


def timed_mix(**more) -> dict:
    """Calls of 80,000 bytes that took 20 us inside the program, with their data where the last array tells."""
    mix = json.loads(json.dumps(MIX))
    places = [0, 0, 30, 0, 0, 0, 0, 1, 69]
    mix["ops"]["copy"]["times"] = [
        [192, 255, 50, 50 * 200, 50 * 45.0, 50 * 40.0, 0, 0.0, 0, [0] * 9],
        [65536, 98303, 100, 8_000_000, 2_000_000.0, 0.0, 0, 0.0, 0, places],
    ]
    mix["ops"]["copy"]["order"] = [[131072, 100, 0, 90]]
    return mix | more


def recorded_here(**more) -> dict:
    return timed_mix(machine=host.here(runner.cpu()), **more)
