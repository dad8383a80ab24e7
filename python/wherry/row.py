"""A row of cells, in the words of docs/runner-protocol.md and of the run file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

# A table of a mix that is no longer keeps its order from sample to sample, and can be learnt.
LEARNT_MOST = 32768
# Modes of calls that are timed one by one: so many per cent of them take the figure at most.
PERCENTILES = ("p50", "p90", "p99", "p99.9", "p99.99")
# Calls that wait for each other, or of which one is timed: what they move in a second says nothing.
RATELESS = ("latency", *PERCENTILES)
OFFSETS = ("src_off", "dst_off")


def wander(cell: Mapping[str, object]) -> bool:
    """Whether its calls lie at places that change, so that no offset is theirs; a file may say 0 all the same."""
    return cell.get("places") == "change"


@dataclass(frozen=True)
class Row:
    """Cells that differ only in the routine, measured interleaved; the words are those of docs/runner-protocol.md."""

    command: ClassVar[str] = "measure"  # of wherry-run, which takes it
    # For an estimate: what each byte of its size takes before it is measured.
    prepare_ns: ClassVar[float] = 0.0

    experiment: str
    op: str
    routines: tuple[str, ...]
    size: int = 0  # of a mix: not used
    mix: str = ""  # what the runner takes: uniform:0-64, log:1-4096, @FILE
    mix_name: str = (
        ""  # what people and the run file call a file's mix, whose path means nothing elsewhere
    )
    table: int = 65536  # entries of a mix
    src_off: int = 0
    dst_off: int = 0
    delta: int | None = None
    overlap: int | None = None
    walk: str = "pool"
    buffer: int = 4 << 20
    src_state: str = "L1"
    dst_state: str = "L1"
    content: str = "any"
    places: str = "repeat"  # change: each call begins elsewhere in its line, in an order that does not come again
    ascending: str = "none"  # the sides whose slots are visited in the order of their addresses
    handed: str = "none"  # the sides whose lines another CPU has used last
    handed_by: int | None = None  # which CPU; None: the runner chooses one of another core
    code: str = "warm"
    mode: str = "throughput"
    threads: int = 1
    huge: int = 0
    rounds: int = 15
    batch_us: int = 200
    calls: int = 0
    pin: int | None = None  # the CPU to measure on; None: the campaign's, or where a process starts

    def dimensions(self) -> dict[str, object]:
        """Everything that says what was measured, for the run file."""
        own = {"op": self.op}
        if self.mix:
            own |= {"mix": self.mix_name or self.mix, "table": self.table}
        else:
            own["size"] = self.size
        own |= {
            "src_off": self.src_off,
            "dst_off": self.dst_off,
            "walk": self.walk,
            "mode": self.mode,
            "threads": self.threads,
            "huge": bool(self.huge),
        }
        if self.walk == "stream":
            own["buffer"] = self.buffer
        else:
            own["src_state"] = self.src_state
            own["dst_state"] = self.dst_state
        if self.pin is not None:
            own["cpu"] = self.pin
        own |= self._unusual()
        return own | dict.fromkeys(OFFSETS) if wander(own) else own

    def _unusual(self) -> dict[str, object]:
        """What most rows leave at its default, in the words of the protocol and of the run file alike."""
        own: dict[str, object] = {}
        if self.content != "any":
            own["content"] = self.content
        if self.places != "repeat":
            own["places"] = self.places
        if self.ascending != "none":
            own["ascending"] = self.ascending
        if self.handed != "none":
            own["handed"] = self.handed
        if self.handed_by is not None:
            own["handed_by"] = self.handed_by
        if self.code != "warm":
            own["code"] = self.code
        if self.delta is not None:
            own["delta"] = self.delta
        if self.overlap is not None:
            own["overlap"] = self.overlap
        return own

    def line(self, number: int) -> str:
        words = {
            "id": number,
            "op": self.op,
            "routines": ",".join(self.routines),
        }
        words |= {"mix": self.mix, "table": self.table} if self.mix else {"size": self.size}
        words |= {"src_off": self.src_off, "dst_off": self.dst_off, "walk": self.walk}
        if self.walk == "stream":
            words["buffer"] = self.buffer
        else:
            words |= {"src_state": self.src_state, "dst_state": self.dst_state}
        words |= self._unusual()
        words |= {"mode": self.mode, "threads": self.threads, "huge": self.huge}
        words |= {"rounds": self.rounds, "batch_us": self.batch_us, "calls": self.calls}
        return " ".join(f"{key}={value}" for key, value in words.items())

    def told(self, number: int) -> str:
        """The line with what belongs to this moment alone, such as where scratch lies."""
        return self.line(number)


# What a row of a whole system has no word for.
_UNTOLD = ("src_off", "dst_off", "walk", "mode", "threads", "huge", "src_state", "dst_state")


@dataclass(frozen=True)
class SystemRow(Row):
    """Cells of an experiment on a whole system: a switch between processes, bytes through a network, files. What is
    measured is told by `words`, which differ from op to op."""

    command: ClassVar[str] = "system"

    words: tuple[tuple[str, str | int], ...] = ()

    def dimensions(self) -> dict[str, object]:
        own: dict[str, object] = {"op": self.op, "size": self.size} | dict.fromkeys(_UNTOLD)
        if self.pin is not None:
            own["cpu"] = self.pin
        return own | dict(self.words)

    def line(self, number: int) -> str:
        words = {"id": number, "op": self.op, "routines": ",".join(self.routines)}
        words |= {"size": self.size} if self.size else {}
        words |= dict(self.words)
        words |= {"rounds": self.rounds, "batch_us": self.batch_us, "calls": self.calls}
        return " ".join(f"{key}={value}" for key, value in words.items())
