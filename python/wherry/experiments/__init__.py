"""The experiments: one module each, found here by looking into the package. A module offers `EXPERIMENT`, an object
with the attributes and methods of `Experiment`; nothing else names it."""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import ClassVar

from wherry.campaign import Campaign, Row
from wherry.errors import WherryError
from wherry.found_peers import TIERS, Peer, tier_rank
from wherry.mixes import Mix, for_op, from_range
from wherry.product import Product
from wherry.scoreboard.listed import REP
from wherry.tables import Block
from wherry.yardsticks import YARDSTICKS


@dataclass(frozen=True)
class Request:
    """What the user asked for; empty means the experiment's own choice."""

    catalogue: Sequence[dict] = ()  # the registry's rows, as the runner lists them
    routines: tuple[str, ...] = ()
    all_routines: bool = False
    peers: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    states: tuple[tuple[str, str], ...] = ()  # (source, destination)
    product: Product | None = None  # the other dimensions of `cells`
    quick: bool = False
    processes: int | None = None
    rounds: int | None = None
    members: tuple[str, ...] = ()  # files that a stripe is made of, in place of scratch
    disks: tuple[int, ...] = ()  # how many of them
    scratch: str | None = None  # the directory for it
    turns: int | None = None  # round trips of a switch in a sample
    ops: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    isa: str | None = None  # the tier that Wherry is held to
    mixes: tuple[Mix, ...] = ()
    found: tuple[Peer, ...] = ()  # peers that nobody had to name
    caches: Mapping[str, int] = field(
        default_factory=dict
    )  # L1, L2, L3 in bytes, as far as they are known
    tier: str = ""  # the highest of this CPU

    def wherry(self) -> str:
        return f"wherry@{self.isa}" if self.isa else "wherry"

    def calls(self, op: str, sizes: Sequence[int], mix: str) -> list[dict[str, object]]:
        """Sizes and mixes of the op, as a row has them: those asked for, else these sizes and the mix of this range."""
        given = self.mixes or (() if self.sizes else (from_range(mix),))
        own = self.sizes or (() if self.mixes else sizes)
        return [*({"size": size} for size in own), *(mix.of_row() for mix in for_op(given, op))]

    def beside_strings(self, op: str) -> tuple[str, ...]:
        """The routines of a row: libc, the string instruction, Wherry and peers, or those asked for."""
        ops = ("copy", "move") if op == "copy" else (op,)
        names = self.choose(ops, (REP.get(op, REP["copy"]), "wherry"))
        return tuple(dict.fromkeys(self.wherry() if name == "wherry" else name for name in names))

    def contenders(self, op: str | None = None) -> tuple[str, ...]:
        """Peers given and found, without those found ones that lack the op or use more than the tier."""
        found = [
            peer.name
            for peer in self.found
            if peer.name not in self.left_out() and (op is None or offers(peer, (op,)))
        ]
        return tuple(dict.fromkeys([*self.peers, *found]))

    def left_out(self, ops: Sequence[str] | None = None) -> tuple[str, ...]:
        """Peers that were found and use more than the tier that Wherry is held to; with `ops` those that have one."""
        if not self.isa:
            return ()
        most = tier_rank(self.isa)
        return tuple(
            peer.name
            for peer in self.found
            if peer.tier in TIERS
            and tier_rank(peer.tier) > most
            and (ops is None or offers(peer, ops))
        )

    def about(self, name: str) -> str:
        """What is known of a peer that was found; empty when that is no more than its name."""
        return next((peer.about for peer in self.found if peer.name == name and peer.what), "")

    def choose(self, ops: tuple[str, ...], own: Sequence[str]) -> tuple[str, ...]:
        """The routines of a row for one of `ops`: libc first, since every ratio is to it."""
        op_of = {row["name"]: row["op"] for row in self.catalogue}
        if self.all_routines:
            usable = [
                name
                for name, op in op_of.items()
                if op in ops and not _cannot_run(self.catalogue, name)
            ]
            names = ["libc", *usable, "wherry", *self.peers]
        elif self.routines:
            names = [
                "libc",
                *(n for n in self.routines if op_of.get(n, ops[0]) in ops),
                *self.peers,
            ]
        else:
            known = set(op_of) | {"libc", "wherry", *YARDSTICKS}
            names = ["libc", *(name for name in own if name in known), *self.peers]
        return tuple(dict.fromkeys(names))


_FUNCTIONS = {"copy": "memcpy", "move": "memmove", "set": "memset", "zero": "memset"}
_FUNCTIONS |= {"csum": "csum_partial", "copy_csum": "csum_partial_copy"}
_FUNCTIONS |= {"crc32c": "crc32c", "copy_crc32c": "crc32c_copy"}


def offers(peer: Peer, ops: Sequence[str]) -> bool:
    """Has it something for one of them, as far as it is known?"""
    return not peer.has or any(_FUNCTIONS.get(op) in peer.has for op in ops)


def _cannot_run(catalogue: Sequence[dict], name: str) -> bool:
    return any(row["name"] == name and row.get("unavailable") for row in catalogue)


@dataclass(frozen=True)
class Experiment(ABC):
    """What every experiment has; a module subclasses it and fills in the two methods."""

    name: str
    after: str  # whose measurement it repeats; empty: nobody had it
    shows: str  # one sentence
    op: str
    ops: tuple[str, ...]  # ops of the routines that can stand in a row
    routines: tuple[str, ...]  # its own choice
    processes: int
    rounds: int

    # The options that it heeds of those that narrow what is measured.
    takes: ClassVar[frozenset[str]] = frozenset({"routines", "sizes", "states"})
    # Its part of the time of `--all`; 0: only when asked for by name.
    weight: ClassVar[float] = 1.0
    # With --quick in place of its processes and rounds; 0: as many.
    quick_processes: ClassVar[int] = 0
    quick_rounds: ClassVar[int] = 0

    def wants(self, peer: Peer) -> bool:
        """Of those that were found, where it takes any."""
        return not peer.loops

    def chosen(self, request: Request) -> tuple[str, ...]:
        self.check_named(request, self.ops, self.op)
        return request.choose(self.ops, self.routines)

    def check_named(self, request: Request, ops: Sequence[str], what: str) -> None:
        """Of routines that were named some may be meant for another experiment, but one has to do one of `ops`."""
        if not request.routines or request.all_routines or request.peers:
            return
        able = (*ops, *(("move",) if "copy" in ops else ()))
        op_of = {row["name"]: row["op"] for row in request.catalogue}
        if not any(op_of.get(name, ops[0]) in able for name in request.routines):
            raise WherryError(
                f"{self.name} measures {what}, which {' and '.join(request.routines)} "
                f"{'does' if len(request.routines) == 1 else 'do'} not do; "
                "wherry list routines shows the op of each"
            )

    def fitting(self, names: Sequence[str], size: int, request: Request) -> tuple[str, ...]:
        """Without those that take only multiples of something else."""
        quantum = {row["name"]: row.get("quantum") or 1 for row in request.catalogue}
        return tuple(name for name in names if size % quantum.get(name, 1) == 0)

    def process_count(self, request: Request) -> int:
        return request.processes or (request.quick and self.quick_processes) or self.processes

    def round_count(self, request: Request) -> int:
        return request.rounds or (request.quick and self.quick_rounds) or self.rounds

    def surroundings(self, request: Request) -> AbstractContextManager:
        """What has to be there while it is measured, scratch files for instance; taken down by leaving it."""
        return nullcontext()

    def cross_check(self, campaign: Campaign, request: Request) -> list[dict]:
        """What an independent tool measures of the same, for the entry in the run file; in the same surroundings."""
        return []

    def summary(self, campaign: Campaign, request: Request, first_row: int) -> dict | None:
        """What needs samples, which a run file does not keep: goes to its entry as `score`. Rows are numbered from
        `first_row` on there."""
        return None

    def in_words(self, run: dict) -> list[str] | None:
        """What a run of it comes to, where that is not who leads in which rows."""
        return None

    @abstractmethod
    def rows(self, request: Request) -> list[Row]:
        """What to measure."""

    @abstractmethod
    def blocks(self, run: dict, width: int) -> list[Block]:
        """Tables and sentences of a run (as the run file has it), ready to print."""


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def load(name: str) -> Experiment:
    return importlib.import_module(f"{__name__}.{name}").EXPERIMENT


def load_all() -> list[Experiment]:
    return [load(name) for name in names()]
