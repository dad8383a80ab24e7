"""Peers that need no --peer: the shared objects that `make peers` has built, and those of a directory of the user's.

WHERRY_PEERS names that directory and comes first, since what somebody asked for outranks what lies about; then
`build/peers` of the checkout that this package runs from. Of two with one name the first stands. WHERRY_PEERS set to
nothing means no such peers at all, for runs that must not depend on what was built. A peer is `NAME.so`; `NAME.json`
beside it, which `make peers` writes, says what it is. Without it the name is all that is known."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from wherry import runner
from wherry.errors import WherryError
from wherry.yardsticks import YARDSTICKS

VARIABLE = "WHERRY_PEERS"
TIERS = ("sse2", "avx2", "avx512")
STACKS = "stacks"  # their directory beside the peers
# The AVX-512 tier for sizes that repeat, and for sizes that nobody can foresee, whatever they do.
LADDER, TOGETHER = "avx512_ladder", "avx512_together"
CHOICES = (*TIERS, LADDER, TOGETHER)

FUNCTIONS = ("memcpy", "memmove", "mempcpy", "memset", "bzero", "bcopy")
FUNCTIONS += ("csum_partial", "csum_partial_copy", "crc32c", "crc32c_copy")
# Loops with a copy inlined, for packets: what has them is no rival anywhere else.
LOOPS = "wherry_packet_loops"
# What the runner takes as NAME in --peer, and no more than a table has room for.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,78}")
# A description longer than this was not written for a table.
_LONGEST = 200
_LARGEST_SIDECAR = 1 << 16


@dataclass(frozen=True)
class Stack:
    """A TCP stack in user space, in a shared object as runner/network/stack.h has it."""

    path: str
    version: str = ""

    @property
    def name(self) -> str:
        return f"lwip-{self.version}" if self.version else "lwip"


def tier_rank(tier: str) -> int:
    """The place of a tier, or of the other choice of routines for the highest, among the tiers."""
    return TIERS.index("avx512" if tier in (LADDER, TOGETHER) else tier)


@dataclass(frozen=True)
class Peer:
    """A peer that was found. What its description does not say is empty."""

    name: str
    path: str
    what: str = ""
    version: str = ""
    package: str = ""
    tier: str = ""
    compiler: str = ""
    has: tuple[str, ...] = ()
    runs_here: bool = True

    @property
    def loops(self) -> bool:
        """Is it there for its loops alone?"""
        return LOOPS in self.has

    @property
    def spec(self) -> str:
        """What --peer takes."""
        return f"{self.name}={self.path}"

    @property
    def about(self) -> str:
        """One line: `DPDK's rte_memcpy, 22.11.11, avx512`."""
        said = ", ".join(word for word in (self.what, self.version, self.tier) if word)
        return said or "a shared object without a description"

    def record(self) -> dict:
        """For a program."""
        return {**asdict(self), "has": list(self.has), "spec": self.spec}


def checkout() -> Path | None:
    """The source tree that this package runs from, if it does."""
    root = Path(__file__).resolve().parents[2]
    return root if (root / "tools" / "peers").is_file() else None


def directories() -> list[Path]:
    """Where to look, first come first served."""
    given = os.environ.get(VARIABLE)
    if given == "":
        return []
    places = []
    if given is not None:
        if not Path(given).is_dir():
            raise WherryError(
                f"{VARIABLE}={given} is not a directory; name one that holds shared objects, or unset it"
            )
        places.append(Path(os.path.realpath(given)))
    root = checkout()
    if root is not None and (root / "build" / "peers").is_dir():
        places.append(root / "build" / "peers")
    return places


def found(without: Iterable[str] = ()) -> list[Peer]:
    """The peers that run on this CPU, by name; none of the names that the caller has already given away."""
    taken = set(without)
    return [peer for peer in survey()[0] if peer.runs_here and peer.name not in taken]


def stack() -> Stack | None:
    """lwIP, where `make peers` has built it. It is no peer: nobody can call it by the name of a routine."""
    for place in directories():
        path = place / STACKS / "lwip.so"
        if path.is_file():
            try:
                said = json.loads(path.with_suffix(".json").read_text())
            except (OSError, ValueError, RecursionError):
                said = {}
            version = _line(said.get("version")) if isinstance(said, dict) else ""
            return Stack(str(path), version.replace(" ", ""))
    return None


def survey() -> tuple[list[Peer], list[str]]:
    """All that is there, by name, and one sentence for each file that can be no peer."""
    peers: dict[str, Peer] = {}
    problems = []
    for place in directories():
        for path in sorted(place.glob("*.so")):
            if path.stem in peers:
                continue
            try:
                peers[path.stem] = _read(path)
            except ValueError as error:
                problems.append(f"{path}: {error}")
    if not peers:
        return [], problems
    for name in sorted(_taken() & peers.keys()):
        problems.append(f"{peers.pop(name).path}: the name {name} is taken; rename the file")
    highest = _highest_tier() if any(p.tier not in ("", TIERS[0]) for p in peers.values()) else 0
    return [
        replace(peer, runs_here=peer.tier == "" or TIERS.index(peer.tier) <= highest)
        for _, peer in sorted(peers.items())
    ], problems


def _taken() -> set[str]:
    return {"libc", "wherry", *YARDSTICKS, *(row["name"] for row in runner.routines())}


def _highest_tier() -> int:
    """That of this CPU; of one that says nothing, the tier that all have."""
    tier = runner.cpu().get("tier")
    return TIERS.index(tier) if tier in TIERS else 0


def _read(path: Path) -> Peer:
    """The peer of a file; ValueError says why it is none."""
    if not _NAME.fullmatch(path.stem):
        raise ValueError("its name cannot stand in a table; use letters, digits, _ . + -")
    if not path.is_file():
        raise ValueError("it is not a file")
    sidecar = path.with_suffix(".json")
    if not sidecar.exists():
        return Peer(path.stem, str(path))
    try:
        with sidecar.open("rb") as file:
            said = json.loads(file.read(_LARGEST_SIDECAR))
    except (OSError, ValueError, RecursionError):
        raise ValueError(f"{sidecar.name} beside it cannot be read as JSON; remove it") from None
    if not isinstance(said, dict):
        raise ValueError(f"{sidecar.name} beside it holds no JSON object; remove it")
    tier = said.get("tier", "")
    if tier not in ("", *TIERS):
        raise ValueError(f"{sidecar.name} beside it says tier {tier!r}; it is {', '.join(TIERS)}")
    has = said.get("has", [])
    if not isinstance(has, list) or not all(name in (*FUNCTIONS, LOOPS) for name in has):
        raise ValueError(f"{sidecar.name} beside it says has {has!r}; of {', '.join(FUNCTIONS)}")
    words = {key: _line(said.get(key)) for key in ("what", "version", "package", "compiler")}
    return Peer(path.stem, str(path), tier=tier, has=tuple(has), **words)


def _line(value: object) -> str:
    """A text of a foreign file as one printable line."""
    text = value if isinstance(value, str) else ""
    return "".join(c for c in " ".join(text.split()) if c.isprintable())[:_LONGEST]
