"""Names that users type for what can be called, and options that several commands read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from wherry.cli import streams
from wherry.errors import WherryError, unknown
from wherry.found_peers import CHOICES, TIERS, tier_rank
from wherry.mixes import Mix
from wherry.scoreboard.listed import FUNCTIONS, OPS
from wherry.scoreboard.regions import every

STATES = ("L1", "L2", "L3", "DRAM")


def tell(line: str) -> None:
    """Beside what a command is for."""
    streams.line_of(f"wherry: {line}", aside=True)


def targets(catalogue: Sequence[dict], peers: Iterable[str]) -> set[str]:
    """What can be verified; yardsticks can only be measured."""
    return (
        {"libc", "wherry", "nofault"}
        | {row["name"] for row in catalogue}
        | {spec.partition("=")[0] for spec in peers}
    )


def no_routine(name: str, known: Iterable[str]) -> WherryError:
    """With what is most like it, tiers of ours among them."""
    there = set(known)
    if "@" in name:
        there |= {f"{base}@{tier}" for base in ("wherry", "nofault") for tier in CHOICES}
    return unknown("routine", name, there, "wherry list routines")


def unknown_routine(name: str, known: set[str]) -> bool:
    """`wherry@avx2` and `wherry@avx2+rep` are fine."""
    base, _, tier = name.partition("@")
    return base not in known or bool(
        tier and (base not in ("wherry", "nofault") or tier.partition("+")[0] not in CHOICES)
    )


def unknown_target(name: str, known: set[str]) -> bool:
    """Functions are fine as well: `libc:memmove`, `wherry_mempcpy`. The runner knows the names of ours."""
    return unknown_routine(name.partition(":")[0], known) and not name.startswith("wherry_")


def split(values: Iterable[str]) -> list[str]:
    """Repeated options and commas alike, in order, each once."""
    words = (word.strip() for value in values for word in value.split(","))
    return list(dict.fromkeys(word for word in words if word))


def states(values: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """`L1` for both sides, `DRAM/L1` for source and destination."""
    pairs = []
    for word in split(values):
        sides = word.upper().split("/")
        if len(sides) > 2 or any(side not in STATES for side in sides):
            raise WherryError(
                f"no cache state '{word}'; give L1, L2, L3 or DRAM, or SOURCE/DESTINATION as in DRAM/L1"
            )
        pairs.append((sides[0], sides[-1]))
    return tuple(dict.fromkeys(pairs))


def ops(values: Iterable[str]) -> tuple[str, ...]:
    """copy, move and set, in the order that tables have them; the names of their functions are understood."""
    given = []
    for word in split(values):
        own = {function: op for op, function in FUNCTIONS.items()}.get(word.lower(), word.lower())
        if own not in OPS:
            raise unknown("op", word, OPS, "wherry bench --help")
        given.append(own)
    return tuple(op for op in OPS if op in given)


def regions(values: Iterable[str], mixes: Sequence[Mix], ops: Sequence[str]) -> tuple[str, ...]:
    if ops and mixes and not any(set(mix.ops) & set(ops) for mix in mixes):
        raise WherryError(
            f"--mix {mixes[0].name}: holds sizes for op {' and '.join(mixes[0].ops)}, not for "
            f"{' or '.join(ops)}; leave out --op or rename the file"
        )
    there = every(mixes)
    names = [region.name for region in there]
    given = split(values)
    for word in given:
        if word not in names:
            raise unknown("region", word, names, "wherry list regions")
    for region in there:
        if given and region.name in given and ops and not set(ops) & set(region.ops):
            raise WherryError(
                f"region {region.name} is of op {' and '.join(region.ops)}, not of {' or '.join(ops)}; "
                "leave out --op or name another region"
            )
    return tuple(dict.fromkeys(given))


def check_isa(isa: str | None, cpu: dict) -> None:
    if isa is None:
        return
    if isa not in CHOICES:
        raise unknown("tier", isa, CHOICES, "wherry bench --help")
    own = cpu.get("tier")
    if own in TIERS and tier_rank(isa) > tier_rank(own):
        raise WherryError(
            f"--isa {isa}: this CPU has no more than {own}; leave it out or give less"
        )


def check_pin(cpu: int | None, option: str = "--pin") -> None:
    if cpu is None:
        return
    usable = sorted(os.sched_getaffinity(0))
    if cpu not in usable:
        raise WherryError(
            f"CPU {cpu} is not there for this process; it may run on {ranges(usable)} ({option})"
        )


def ranges(numbers: Sequence[int]) -> str:
    """0, 1, 2, 5 is `CPUs 0-2, 5`."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    text = ", ".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts)
    return f"CPU{'s' if len(numbers) != 1 else ''} {text}"


def experiment_names(given: Sequence[str], known: Sequence[str]) -> list[str]:
    for name in given:
        if name not in known:
            raise unknown("experiment", name, known, "wherry list experiments")
    return list(dict.fromkeys(given))
