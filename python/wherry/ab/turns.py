"""The two sides in turns: rounds of A B B A or B A A B, drawn. What drifts evenly within a round meets both alike; and
each side runs twice in it, so that every round also tells what a side differs from itself."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from wherry import jobcontrol
from wherry.ab.running import Program, Ran
from wherry.ab.sides import Side
from wherry.errors import FailedError

RUNS_A_ROUND = 4


@dataclass
class Turns:
    """What came of it: rounds[i] is (first run of A, second of A, first of B, second of B)."""

    sides: tuple[Side, Side]
    rounds: list[tuple[Ran, Ran, Ran, Ran]] = field(default_factory=list)
    orders: list[str] = field(default_factory=list)
    warm: list[Ran] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False
    out_of_time: bool = False
    stolen: float | None = None  # share of the machine's time that the hypervisor took


def _processor_times() -> tuple[int, int] | None:
    """(stolen, all) ticks since boot."""
    try:
        with open("/proc/stat", encoding="ascii") as file:  # noqa: PTH123
            values = [int(word) for word in file.readline().split()[1:9]]
    except (OSError, ValueError):
        return None
    return (values[7], sum(values)) if len(values) == 8 else None


def take(
    program: Program,
    sides: tuple[Side, Side],
    base: Mapping[str, str],
    *,
    rounds: int,
    least: int,
    seconds: float | None,
    same_output: bool = False,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Turns:
    """`rounds` rounds, or as many as begin within the seconds, but `least` in any case."""
    turns = Turns(sides)
    drawn = random.Random(seed)
    began = jobcontrol.clock()
    before = _processor_times()
    total = rounds * RUNS_A_ROUND + len(sides)
    done = 0
    try:
        for side in sides:
            turns.warm.append(program.run(side, base))
            done += 1
            progress(done, total)
            _compare(program, turns.warm, turns.warm[-1], sides, side, same_output)
        for number in range(rounds):
            if number >= least and seconds is not None and jobcontrol.clock() - began > seconds:
                turns.out_of_time = True
                break
            order = drawn.choice(("ABBA", "BAAB"))
            ran: dict[str, list[Ran]] = {"A": [], "B": []}
            for letter in order:
                side = sides["AB".index(letter)]
                own = program.run(side, base)
                _compare(program, turns.warm, own, sides, side, same_output)
                ran[letter].append(own)
                done += 1
                progress(done, total)
            turns.rounds.append((*ran["A"], *ran["B"]))
            turns.orders.append(order)
    except KeyboardInterrupt:
        turns.interrupted = True
    after = _processor_times()
    if before and after and after[1] > before[1]:
        turns.stolen = (after[0] - before[0]) / (after[1] - before[1])
    turns.seconds = jobcontrol.clock() - began
    return turns


def _compare(
    program: Program,
    firsts: list[Ran],
    own: Ran,
    sides: tuple[Side, Side],
    side: Side,
    same_output: bool,
) -> None:
    """`firsts`: of each side the first run, as far as they are done; `own` is one of this side."""
    if not same_output or own.output == firsts[0].output:
        return
    if own is firsts[-1]:
        what = (
            f"under {side.name} not the same as under {sides[0].name}: its output differs between the sides, or "
            "from run to run"
        )
    else:
        what = f"not the same as at first under {side.name}: its output differs from run to run"
    raise FailedError(f"{program.argv[0]} wrote {what}; see both with --keep DIR")
