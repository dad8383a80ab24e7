"""What it costs a process to load the drop-in: a recording has both libraries loaded in all its turns, so it cannot
tell, and a program of many short processes pays it many times."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np

from wherry import bootcache, preloading

VERSION = 1
PAIRS = 41


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
        return {"seconds": 0.0}
    stock = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    loaded = preloading.environment(stock, [preloading.library("dropin")])
    more = [_cpu_s(program, loaded) - _cpu_s(program, stock) for _ in range(PAIRS)]
    return {"seconds": max(float(np.median(more)), 0.0)}


def seconds(fresh: bool = False) -> float:
    """CPU time that a process takes more for it; measured once after each boot."""
    key = bootcache.key(VERSION, [Path(preloading.library("dropin"))])
    place = bootcache.path("loading")
    return bootcache.kept(place, key, lambda own: 0 <= own["seconds"] < 1, _measure, fresh)[
        "seconds"
    ]
