"""How long rows will take, before any of them is measured."""

from __future__ import annotations

from collections.abc import Sequence

from wherry.row import PERCENTILES, Row

# Of one sample, in seconds beside its own time, and of what makes some rows dear: measured on a virtual machine of two
# Zen 5 cores with a neighbour, slow-phase waits and rounds thrown away included. An estimate for people, no more.
SAMPLE_COST, BATCH_COST, STREAM_COST = 0.0002, 3.3, 0.45e-9
COLD_CODE_COST, DRAM_COST = 0.018, 0.001
# Of calls that are timed one by one: how many there are, by how many lie beyond the percentile, and what each takes.
LEAST_CALLS, CALLS_BEYOND, SINGLE_COST, SINGLE_BYTE = 100, 10, 1.5e-7, 1e-10
SYSTEM_COST = 1.6  # times a batch: the slower ones of a row take longer than the fastest


def expected_seconds(rows: Sequence[Row], processes: int) -> float:
    seconds = 0.0
    for row in rows:
        cost = BATCH_COST if row.command == "measure" else SYSTEM_COST
        sample = SAMPLE_COST + cost * row.batch_us * 1e-6
        if row.walk == "stream":
            sample += STREAM_COST * max(row.buffer, row.calls * row.size)
        elif row.src_state == row.dst_state == "DRAM":
            sample += DRAM_COST
        if row.mode in PERCENTILES:
            part = 1 - float(row.mode[1:]) / 100
            sample += max(LEAST_CALLS, CALLS_BEYOND / part) * (SINGLE_COST + SINGLE_BYTE * row.size)
        if row.code == "cold":
            sample += COLD_CODE_COST
        seconds += sample * row.rounds * len(row.routines) + row.prepare_ns * row.size * 1e-9
    return seconds * processes
