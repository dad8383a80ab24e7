"""fio reads the same members: an independent figure for read(), for O_DIRECT, and by its mmap engine for what memcpy
brings, which the drop-in replaces without fio's knowing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from wherry import preloading, stats
from wherry.campaign import Campaign
from wherry.cell import rounded
from wherry.errors import WherryError
from wherry.striping.words import DIRECT, READ, STOCK, USUAL_BLOCK

PACKAGE = "fio"
SECONDS, QUICK_SECONDS = 0.5, 0.15
RUNS, QUICK_RUNS = 4, 2
LIMIT = 30.0
# By whose figure of ours it stands: (words, engine, direct, drop-in, our routine, mapping).
_CASES = (
    ("read(), cached", "psync", False, False, READ, "fresh"),
    ("mmap engine, cached", "mmap", False, False, STOCK, "fresh"),
    ("mmap engine, cached, drop-in", "mmap", False, True, "wherry", "fresh"),
    ("read(), O_DIRECT", "psync", True, False, DIRECT, "fresh"),
)


def check(campaign: Campaign, files: Sequence[str], quick: bool) -> list[dict]:
    program = shutil.which("fio")
    if program is None:
        return [_missing(f"fio is not installed (Debian package {PACKAGE})")]
    if any(":" in path for path in files):
        return [_missing("fio takes no paths with colons")]
    try:
        dropin = preloading.environment(os.environ, [preloading.library("dropin")])
    except WherryError as error:
        return [_missing(str(error))]
    found: dict[int, list[dict]] = {}
    reasons: dict[int, str] = {}
    for turn in range(QUICK_RUNS if quick else RUNS):
        # To and fro, so that a drift of the machine meets all alike.
        for i in range(len(_CASES))[:: -1 if turn % 2 else 1]:
            if i in reasons:
                continue
            seconds = QUICK_SECONDS if quick else SECONDS
            try:
                env = dropin if _CASES[i][3] else os.environ
                found.setdefault(i, []).append(_once(program, files, i, seconds, env))
            except (
                WherryError,
                OSError,
                subprocess.SubprocessError,
                ValueError,
                KeyError,
            ) as error:
                reasons[i] = f"fio failed: {' '.join(str(error).split())[:160]}"
    version = _version(program)
    return [
        _summed(case, version, found.get(i), reasons.get(i), _ours(campaign, case))
        for i, case in enumerate(_CASES)
    ]


def _missing(reason: str) -> dict:
    return {"tool": "fio", "what": "the same members", "reason": reason}


def _version(program: str) -> str:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=LIMIT)
    return done.stdout.strip().removeprefix("fio-") or "unknown"


def _once(
    program: str, files: Sequence[str], case: int, seconds: float, env: Mapping[str, str]
) -> dict:
    _, engine, direct, _, _, _ = _CASES[case]
    arguments = [
        *("--name=stripe", f"--filename={':'.join(files)}", "--rw=read", "--readonly", "--thread"),
        *(f"--ioengine={engine}", f"--bs={USUAL_BLOCK}", "--file_service_type=roundrobin:1"),
        *("--allow_file_create=0", "--allow_mounted_write=0", "--output-format=json"),
        *(f"--direct={int(direct)}", "--invalidate=0", f"--size={_total(files)}"),
        # Pages stay cached: whoever came next would pay for bringing them in. The first passes bring pages in and make
        # the mapping; they do not count.
        *("--time_based", f"--runtime={int(seconds * 1000)}ms", f"--ramp_time={int(seconds * 500)}ms"),
    ]  # fmt: skip
    done = subprocess.run(
        [program, *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        cwd="/",
    )
    if done.returncode != 0:
        raise WherryError((done.stderr or done.stdout).strip() or f"status {done.returncode}")
    return json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]


def _total(files: Sequence[str]) -> int:
    """Whole blocks of all members; a block device has no length for stat."""
    total = 0
    for path in files:
        with Path(path).open("rb") as own:
            total += own.seek(0, os.SEEK_END) // USUAL_BLOCK * USUAL_BLOCK
    return total


def _ours(campaign: Campaign, case: tuple) -> float | None:
    *_, routine, mapping = case
    wanted = {"raid": "none", "mapping": mapping, "cache": "cold" if routine == DIRECT else "warm"}
    best: tuple[int, float] | None = None
    for number, row in enumerate(campaign.rows):
        words = dict(getattr(row, "words", ()))
        cell = campaign.cells.get((number, routine, False))
        if cell is None or not cell.ns or row.size != USUAL_BLOCK:
            continue
        if any(words.get(key) != value for key, value in wanted.items()):
            continue
        # Of the median as the file keeps it, or two tables would round one figure differently.
        (median,) = rounded([stats.quantiles(cell.ns)["median"]])
        rate = cell.bytes / median * 1e9
        best = max(best or (0, 0.0), (int(words["members"]), rate))
    return best[1] if best else None


def _summed(
    case: tuple, version: str, jobs: list[dict] | None, reason: str | None, ours: float | None
) -> dict:
    own: dict = {"tool": "fio", "version": version, "what": case[0]}
    if reason or not jobs:
        return own | {"reason": reason or "no run ended"}
    rates = [float(job["read"]["bw_bytes"]) for job in jobs]
    middle = float(np.median(rates))
    if not middle:
        return own | {"reason": "fio read nothing"}
    return own | {
        "bytes_per_s": round(middle),
        "spread": round((max(rates) - min(rates)) / middle, 4),
        "runs": len(rates),
        "user": round(float(np.median([job["usr_cpu"] for job in jobs])) / 100, 4),
        "system": round(float(np.median([job["sys_cpu"] for job in jobs])) / 100, 4),
        "ours_bytes_per_s": ours,
    }
