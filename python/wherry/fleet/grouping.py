"""Hosts and the groups they are compared in: those of one CPU model, hypervisor and libc, where there are enough."""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np

from wherry.fleet.cells import AT
from wherry.fleet.facts import Facts
from wherry.fleet.loading import Fleet

FAILURES = ("wrong", "crash", "hang")
# Fewer hosts say little about what is usual for them.
LEAST = 5


@dataclasses.dataclass
class Host:
    """The latest run of a host tells its facts; older ones add the cells that it lacks."""

    facts: Facts
    runs: list[int]  # numbers of its runs, the latest last

    @property
    def name(self) -> str:
        return self.facts.host


@dataclasses.dataclass
class Group:
    model: str
    hypervisor: str  # empty: all of them together
    libc: str
    hosts: list[Host]

    @property
    def title(self) -> str:
        return ", ".join(filter(None, (self.model, self.hypervisor, self.libc)))


def hosts(fleet: Fleet, which: list[int] | None = None) -> list[Host]:
    found: dict[str, list[int]] = {}
    for i in range(len(fleet.runs)) if which is None else which:
        if not fleet.runs[i].source:
            found.setdefault(fleet.runs[i].ident, []).append(i)
    out = []
    for runs in found.values():
        runs.sort(key=lambda i: (fleet.runs[i].started, i))
        out.append(Host(fleet.runs[runs[-1]], runs))
    return out


def failures(fleet: Fleet, host: Host) -> list[tuple]:
    """Its problems with routines that were wrong, crashed or hung, of the latest run of each experiment."""
    found: list[tuple] = []
    later: set[str] = set()
    for run in (fleet.runs[i] for i in reversed(host.runs)):
        found += [p for p in run.problems if p[0] in FAILURES and p[3] not in later]
        later.update(run.experiments)
    return found


def groups(found: list[Host]) -> list[Group]:
    """By model, hypervisor and libc; what is too few for that goes with the others of its model."""

    def split(members: list[Host], key) -> dict:
        out: dict = {}
        for host in members:
            out.setdefault(key(host.facts), []).append(host)
        return out

    made = []
    for model, of_model in split(found, lambda f: f.model).items():
        left: list[Host] = []
        for (hypervisor, libc), own in split(of_model, lambda f: (f.hypervisor, f.libc)).items():
            if len(own) >= LEAST:
                made.append(Group(model, hypervisor, libc, own))
            else:
                left += own
        if left:
            kinds = {(h.facts.hypervisor, h.facts.libc) for h in left}
            words = next(iter(kinds)) if len(kinds) == 1 else ("", "")
            made.append(Group(model, *words, left))
    made.sort(key=lambda g: (-len(g.hosts), g.title))
    return made


def matrix(fleet: Fleet, members: list[Host], figure: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the cells that any of them has, and a row of figures a host; NaN: not measured there."""
    # Runs of one campaign share one array of numbers: where its columns are is looked for once.
    shared = {id(fleet.numbers[i]): fleet.numbers[i] for h in members for i in h.runs}
    columns = np.unique(np.concatenate([*shared.values(), []])).astype(np.int64)
    places = {of: np.searchsorted(columns, numbers) for of, numbers in shared.items()}
    values = np.full((len(members), len(columns)), np.nan, np.float32)
    for row, host in enumerate(members):
        for i in host.runs:
            values[row, places[id(fleet.numbers[i])]] = fleet.figures[i][:, figure]
    return columns, values


def most(values) -> tuple[object, float]:
    """What most have, and their share."""
    counted = Counter(values)
    value, count = counted.most_common(1)[0]
    return value, count / counted.total()


def region(key: tuple) -> str:
    """Where its bytes are: near (L1, L2), L3 or DRAM."""
    states = (key[AT["src_state"]], key[AT["dst_state"]])
    if "DRAM" in states:
        return "DRAM"
    if "L3" in states:
        return "L3"
    if states == (None, None):
        buffer = key[AT["buffer"]] or key[AT["size"]] or 0
        return "DRAM" if buffer > 32 << 20 else "L3" if buffer > 1 << 20 else "near"
    return "near"
