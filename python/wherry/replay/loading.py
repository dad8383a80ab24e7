"""What it costs a process to load the drop-in: a recording has both libraries loaded in all its turns, so it cannot
tell, and a program of many short processes pays it many times."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wherry import bootcache, preloading

VERSION = 2
PAIRS = 41
# Of 41 values in order the 14th and the 28th hold their median between them in 97 % of all cases.
RANK = 14


@dataclass(frozen=True)
class Cost:
    """CPU time, or a share of it, with an interval."""

    middle: float
    low: float
    high: float

    def times(self, number: float) -> Cost:
        return Cost(self.middle * number, self.low * number, self.high * number)


NOTHING = Cost(0.0, 0.0, 0.0)


def _cpu_s(program: str, env: dict[str, str]) -> float:
    nowhere = os.open(os.devnull, os.O_RDWR)
    try:
        actions = [(os.POSIX_SPAWN_DUP2, nowhere, number) for number in range(3)]
        pid = os.posix_spawn(program, [program], env, file_actions=actions)
    finally:
        os.close(nowhere)
    _, _, used = os.wait4(pid, 0)
    return used.ru_utime + used.ru_stime


def _measure() -> dict:
    program = shutil.which("true")
    if program is None:
        return {"seconds": [0.0] * 3}
    stock = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    loaded = preloading.environment(stock, [preloading.library("dropin")])
    more = sorted(_cpu_s(program, loaded) - _cpu_s(program, stock) for _ in range(PAIRS))
    found = (float(np.median(more)), more[RANK - 1], more[-RANK])
    return {"seconds": [max(own, 0.0) for own in found]}


def _good(kept: dict) -> bool:
    middle, low, high = kept["seconds"]
    return 0 <= low <= middle <= high < 1


def seconds(fresh: bool = False) -> Cost:
    """CPU time that a process takes more for it; measured once after each boot."""
    key = bootcache.key(VERSION, [Path(preloading.library("dropin"))])
    return Cost(*bootcache.kept(bootcache.path("loading"), key, _good, _measure, fresh)["seconds"])
