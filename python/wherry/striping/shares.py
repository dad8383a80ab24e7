"""What of a cell's time was the thread's own, the kernel's part of that, and the whole machine's, as shares of one CPU;
each only as far as the kernel's clocks tell it. What a thread took in all is exact; how that splits into user and
system, and what all CPUs did, are counted in ticks, of which a short sample has few."""

from __future__ import annotations

import math
from dataclasses import dataclass

# The standard error of a share that is still worth printing.
ERROR = 0.1
# Of /proc/stat, and of rusage where a file does not tell; in nanoseconds.
USER_TICK = 1e7


@dataclass(frozen=True)
class Shares:
    """Of the time elapsed; None where it cannot be told."""

    cpu: float | None
    user: float | None
    system: float | None
    machine: float | None

    @property
    def waiting(self) -> float | None:
        return None if self.cpu is None else 1 - self.cpu


NOTHING = Shares(None, None, None, None)


def shares(cell: dict, cpus: int | None) -> Shares:
    own = cell.get("parts") or {}
    elapsed, user, system = (own.get(name) for name in ("elapsed_ns", "user_ns", "system_ns"))
    if not elapsed or user is None or system is None:
        return NOTHING
    count = cell["rounds"]
    sampled = elapsed * (cell["calls"] or 0) * count  # in all
    if not sampled:
        return NOTHING
    tick = own.get("tick_us", USER_TICK / 1000) * 1000
    cpu = own.get("cpu_ns")
    # Without the exact clock it is only as exact as the ticks at which rusage moves on.
    if cpu is None and _grain(tick, count) <= ERROR * sampled:
        cpu = user + system
    cpu = None if cpu is None else min(cpu / elapsed, 1.0)
    part = None if cpu is None else _part(cpu, user, system, cpu * sampled / tick)
    machine = own.get("machine_ns")
    if machine is None or _grain(USER_TICK, count * (cpus or 1)) > ERROR * sampled:
        machine = None
    else:
        machine = min(machine / elapsed, cpus or math.inf)
    if part is None:
        return Shares(cpu, None, None, machine)
    return Shares(cpu, cpu * part, cpu * (1 - part), machine)


def _part(cpu: float, user: float, system: float, ticks: float) -> float | None:
    """The part of the thread's time that was in user mode, by where the ticks found it; None where they are too few for
    what it took."""
    part = user / (user + system) if user + system else 0.5
    # Of a few ticks in a row that all found the same, the next need not; so two more, one of each.
    likely = (part * ticks + 1) / (ticks + 2)
    error = cpu * math.sqrt(likely * (1 - likely) / ticks) if ticks else cpu
    return part if error <= ERROR else None


def _grain(tick: float, readings: float) -> float:
    """The standard error of so many differences of a clock that moves on by ticks, together."""
    return tick * math.sqrt(readings / 6)
