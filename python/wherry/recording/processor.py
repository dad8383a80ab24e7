"""How much of a run's processor time is of processes that were recorded.

The kernel tells what all of them took together, not what each took that has ended. Known are: what a process had taken
when its record began, what it had taken whenever it was looked at, and, of one that ended by exit(), how long that was
after both. In between it is taken to have worked as it did before; one that nobody looked at to have worked all the
time but while its recorded children lived. That is too much rather than too little, so what remains is the least that
nobody recorded took."""

from __future__ import annotations

import collections
import dataclasses
import time
from collections.abc import Iterable, Mapping, Sequence

from wherry.recording.blocks import Span

# What remains of the run's time and is less than both is the error of the above.
NOTABLE_SHARE, NOTABLE_S = 0.02, 0.02
# Taken by each process after its exit() and before what is known of it: memory given back, pages of the fork copied.
ENDING_NS = 1_000_000


@dataclasses.dataclass
class Watched:
    """A process, by the looks at it: its processor time, and whether it had the recorder, until then."""

    cpu_ns: int = 0
    recorded_cpu_ns: int = 0
    recorded_clock_ns: int = 0
    recorded: bool = False  # at the last look
    # from when to when of its processor time it executed something that was not recorded
    elsewhere: list[tuple[int, int]] = dataclasses.field(default_factory=list)

    def look(self, cpu_ns: int, clock_ns: int, recorded: bool) -> None:
        if recorded:
            self.recorded_cpu_ns, self.recorded_clock_ns = cpu_ns, clock_ns
        elif not self.recorded:
            # Else it executed another program meanwhile, and nobody knows when.
            self.elsewhere.append((self.cpu_ns, cpu_ns))
        self.cpu_ns, self.recorded = cpu_ns, recorded


def of_process(pid: int) -> int | None:
    """Nanoseconds of processor time of a process and its threads so far; None: it is gone."""
    try:
        # The kernel's name of that clock: clock_getcpuclockid(3) gives no other.
        return round(time.clock_gettime((~pid << 3) | 2) * 1e9)
    except OSError:
        return None


def recorded_s(
    spans: Sequence[Span], watched: Mapping[int, Watched], ticks_per_ns: float, look_s: float
) -> float:
    """The processor time of the processes that were recorded, at most."""
    by_pid: dict[int, list[Span]] = collections.defaultdict(list)
    children: dict[int, list[Span]] = collections.defaultdict(list)
    for span in spans:
        by_pid[span.pid].append(span)
        children[span.parent].append(span)
    whole = 0.0
    for pid in {*by_pid, *watched}:
        seen = watched.get(pid, Watched())
        last = max(by_pid[pid], key=lambda span: span.cpu_ns, default=None)
        known = seen.recorded_cpu_ns
        if last is not None:
            known = max(known, last.cpu_ns)
        # Between two looks it may have executed many programs: where a record began, they may all have had one.
        begun = [span.cpu_ns for span in by_pid[pid]]
        before = sum(
            max(min(end, known) - begin, 0)
            for begin, end in seen.elsewhere
            if not any(begin <= cpu_ns < end for cpu_ns in begun)
        )
        rest = 0.0
        if last is not None:
            rest = _rest(last, seen, children[pid], ticks_per_ns, look_s) + ENDING_NS
        whole += max(known - before, 0) + rest
    return whole / 1e9


def _lived_ns(span: Span, ticks_per_ns: float) -> float:
    return (span.end_ticks - span.begin_ticks) / ticks_per_ns


def _rest(
    last: Span, seen: Watched, children: Iterable[Span], ticks_per_ns: float, look_s: float
) -> float:
    """What it took after all that is known of it."""
    lived, look = _lived_ns(last, ticks_per_ns), look_s * 1e9
    if seen.recorded_cpu_ns <= last.cpu_ns:
        waited = sum(child.cpu_ns + _lived_ns(child, ticks_per_ns) for child in children)
        return min(max(lived - waited, 0.0), look)
    looked = max(seen.recorded_clock_ns - last.clock_ns, 0)
    # In less time than that the clocks are too coarse to tell how busy it was.
    busy = (seen.recorded_cpu_ns - last.cpu_ns) / max(looked, look / 4)
    # Of one that ended otherwise than by exit() only that it was gone at the next look.
    return busy * min(lived - looked if lived > looked else look / 2, look)


def unrecorded_s(cpu_s: float, recorded: float) -> float:
    """What nobody recorded took, at least; 0.0: nothing that could be told."""
    some = cpu_s - recorded
    return some if some > NOTABLE_S and some > NOTABLE_SHARE * cpu_s else 0.0
