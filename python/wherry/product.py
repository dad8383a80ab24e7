"""The cells that a product of dimensions has: rows for the runner, without those that contradict themselves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

from wherry.errors import WherryError
from wherry.estimate import expected_seconds
from wherry.mixes import Mix
from wherry.row import LEARNT_MOST, PERCENTILES, Row
from wherry.units import about

PLAIN = ("copy", "move", "set", "zero")
# With a source whose bytes a destination gets; what only reads; what only writes, or looks at what is there.
COPIES = ("copy", "move", "copy_csum", "copy_crc32c")
READS = ("csum", "crc32c")
FILLS = ("set", "zero", "pagezero", "iszero")
ALL_OPS = (*PLAIN, "csum", "copy_csum", "crc32c", "copy_crc32c", "iszero", "pagezero")
# Beyond this a table helps nobody, and nobody waits for it.
MOST_CELLS, MOST_SECONDS = 200_000, 24 * 3600
# Rows by which the time of too many is reckoned.
SAMPLED = 500
_MIXED_AS = {"copy": "copy", "move": "move", "set": "set", "zero": "set"}
_OPTIONS = {"states": "--state", "sizes": "--size", "mixes": "--mix", "huges": "--huge"}


@dataclass(frozen=True)
class Product:
    """Values of each dimension; empty: not asked for, so as usual."""

    ops: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    mixes: tuple[Mix, ...] = ()
    src_offs: tuple[int, ...] = ()
    dst_offs: tuple[int, ...] = ()
    deltas: tuple[int | None, ...] = ()
    overlaps: tuple[int | None, ...] = ()
    modes: tuple[str, ...] = ()
    threads: tuple[int, ...] = ()
    huges: tuple[int, ...] = ()
    tables: tuple[int, ...] = ()
    codes: tuple[str, ...] = ()
    contents: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    ascending: tuple[str, ...] = ()
    handed: tuple[str, ...] = ()
    handed_by: tuple[int, ...] = ()
    pins: tuple[int, ...] = ()

    # ---- what cannot be --------------------------------------------------------------------------------------------

    def check(self, states: Sequence[tuple[str, str]]) -> None:
        self._check_sizes()
        for op in self.ops:
            self._check_op(op)
        moves = [o for o in self.overlaps if o is not None]
        if moves and any(op != "move" for op in self.ops):
            other = next(op for op in self.ops if op != "move")
            _refuse(
                f"--overlap needs --op move: {other} is for buffers that lie apart", "--op move"
            )
        if moves and any(a != b for a, b in states):
            _refuse(
                "--overlap: both sides share their bytes, so they are in one state", "--state L1"
            )
        if moves and (any(d is not None for d in self.deltas) or any(self.dst_offs)):
            _refuse(
                "--overlap says where the destination lies, and so does "
                + ("--dst-off" if any(self.dst_offs) else "--delta"),
                "one of them",
            )
        if any(d is not None for d in self.deltas) and any(self.dst_offs):
            _refuse("--delta and --dst-off both say where the destination lies", "one of them")
        if "cold" in self.codes:
            self._check_cold()
        single = next((mode for mode in self.modes if mode in PERCENTILES), None)
        if single:
            self._check_single(single)
        self._check_content()
        self._check_places()
        self._check_handed(states)

    def _check_sizes(self) -> None:
        if self.sizes and self.mixes:
            _refuse("--size and --mix are two ways to say how much a call moves", "one of them")
        if self.tables and not self.mixes:
            _refuse("--table is the length of the table of a mix", "--mix with it")
        placed = self._placed_mix()
        if placed and (self.src_offs or self.dst_offs or any(d is not None for d in self.deltas)):
            _refuse(
                f"--mix {placed.name} says where each call lies",
                "no --src-off, --dst-off or --delta with it",
            )

    def _placed_mix(self) -> Mix | None:
        """The first that says where calls lie: by alignments, or by overlaps of moves that lie nowhere else."""
        meeting = "move" in self.ops and None in (self.overlaps or (None,))
        return next((m for m in self.mixes if m.shares[2] or (meeting and m.shares[1])), None)

    def _check_op(self, op: str) -> None:
        lacking = "destination" if op in READS else "source"
        if any(d is not None for d in self.deltas) and op not in COPIES:
            _refuse(
                f"--delta is from source to destination, and {op} has no {lacking}", "--op copy"
            )
        if any(self.src_offs) and op in FILLS:
            _refuse(f"--src-off: {op} has no source", "--dst-off, or another --op")
        if "fresh" in self.modes and op in FILLS:
            _refuse(f"--mode fresh stores into the source, and {op} has none", "another --op")
        if any(self.dst_offs) and op in READS:
            _refuse(f"--dst-off: {op} has no destination", "--src-off, or another --op")
        for option, given in (("--ascending", self.ascending), ("--handed", self.handed)):
            if {"source", "both"} & set(given) and op in FILLS:
                _refuse(f"{option}: {op} has no source", f"{option} destination")
            if {"destination", "both"} & set(given) and op in READS:
                _refuse(f"{option}: {op} has no destination", f"{option} source")
        if {"destination", "both"} & set(self.ascending) and any(
            o is not None for o in self.overlaps
        ):
            _refuse(
                "--ascending: with --overlap the destination lies where the source does",
                "--ascending source",
            )
        for mix in self.mixes:
            if _MIXED_AS.get(op, mix.ops[0]) not in mix.ops:
                _refuse(
                    f"--mix {mix.name}: holds sizes for op {' and '.join(mix.ops)}, not for {op}",
                    f"--op {mix.ops[0]}, or rename the file",
                )

    def _check_cold(self) -> None:
        other = next((mode for mode in self.modes if mode != "throughput"), None)
        if other:
            _refuse(
                f"--code cold times each call by itself, which has no --mode {other}", "one of them"
            )
        if any(content != "any" for content in self.contents):
            _refuse("--code cold and --content cannot be had together", "one of them")
        other = next((op for op in self.ops if op not in PLAIN), None)
        if other:
            _refuse(f"--code cold is for {', '.join(PLAIN)}, not for {other}", "another --op")

    def _check_single(self, mode: str) -> None:
        other = next((op for op in self.ops if op not in PLAIN), None)
        if other:
            _refuse(f"--mode {mode} is for {', '.join(PLAIN)}, not for {other}", "another --op")
        if any(content != "any" for content in self.contents):
            _refuse(f"--mode {mode} and --content cannot be had together", "one of them")

    def _check_content(self) -> None:
        own = [content for content in self.contents if content != "any"]
        if not own:
            return
        if "new" in own:
            other = next((op for op in self.ops if op in (*READS, "iszero")), None)
            if other:
                _refuse(f"--content new: {other} writes nothing", "another --op")
            if any(overlap is not None for overlap in self.overlaps):
                _refuse(
                    "--content new: with --overlap the destination lies where the source does",
                    "one of them",
                )
        other = next((op for op in self.ops if op not in FILLS), None)
        if other and own != ["new"]:
            _refuse(
                f"--content {next(content for content in own if content != 'new')} is what a destination holds that "
                f"is only filled; {other} has a source",
                "--op zero" if "zero" in own else "--op zero or set",
            )
        if "zero" in own and "set" in self.ops:
            _refuse("--content zero: op set leaves no zeros behind", "--op zero")
        if self.mixes or 0 in self.sizes:
            _refuse("--content takes sizes from 1 byte on, and no mix", "--size")

    def _check_places(self) -> None:
        if "change" not in self.places:
            return
        placed = self._placed_mix()
        if placed:
            _refuse(f"--mix {placed.name} says where each call lies", "no --places change with it")
        if any(table <= LEARNT_MOST for table in self.tables):
            _refuse(
                f"--places change needs a table of more than {LEARNT_MOST:,}: the places of a shorter "
                "one come in an order that is learnt",
                "a longer --table, or none",
            )
        if any(size >= 1 << 32 for size in self.sizes):
            _refuse("--places change is for sizes below 4 GiB", "a smaller --size")
        for option, given in (
            ("--src-off", any(self.src_offs)),
            ("--dst-off", any(self.dst_offs)),
            ("--delta", any(d is not None for d in self.deltas)),
            ("--overlap", any(o is not None for o in self.overlaps)),
        ):
            if given:
                _refuse(f"--places change and {option} both say where calls lie", "one of them")
        for option, given in (
            ("--ascending", set(self.ascending) - {"none"}),
            ("--handed", set(self.handed) - {"none"}),
            ("--content", set(self.contents) - {"any"}),
        ):
            if given:
                _refuse(
                    f"--places change comes back to memory in no order, so it has no {option}",
                    "one of them",
                )

    def _check_handed(self, states: Sequence[tuple[str, str]]) -> None:
        sides = [side for side in self.handed if side != "none"]
        if self.handed_by and not sides:
            _refuse(
                "--handed-by is the CPU that hands lines over, and none are",
                "--handed source, destination or both with it",
            )
        if not sides:
            return
        if "iszero" in self.ops:
            _refuse("--handed is for what copies, sums or fills, not for iszero", "another --op")
        for value, why in (
            (self.overlaps, "--overlap: both sides share their lines"),
            (self.contents, "--content: both say what a call finds"),
            (self.codes, "--code cold: both prepare each call in their own way"),
        ):
            if any(own not in (None, "any", "warm") for own in value):
                _refuse(f"--handed cannot be had with {why}", "one of them")
        other = next((mode for mode in self.modes if mode not in ("throughput", "latency")), None)
        if other:
            _refuse(f"--handed has no --mode {other}", "throughput or latency")
        if any(count != 1 for count in self.threads):
            _refuse("--handed: the other CPU hands lines to one thread", "--threads 1")
        for side in sides:
            for source, destination in states:
                own = [source] * (side != "destination") + [destination] * (side != "source")
                if "DRAM" in own:
                    _refuse(
                        f"--handed {side}: what lies in DRAM no CPU hands over", "--state L2 or L3"
                    )

    # ---- what there is ---------------------------------------------------------------------------------------------

    def rows(self, experiment: str, names, states, rounds: int) -> Iterator[Row]:
        """`names(op, size)` gives the routines; states as (source, destination)."""
        seen = set()
        for op, call, table, state, src, dst, delta, overlap, *rest in itertools.product(
            self.ops,
            self.mixes or self.sizes,
            self.tables or (Row.table,),
            states,
            self.src_offs or (0,),
            self.dst_offs or (0,),
            self.deltas or (None,),
            self.overlaps or (None,),
            self.contents or ("any",),
            self.places or ("repeat",),
            self.ascending or ("none",),
            self.handed or ("none",),
            self.handed_by or (None,),
            self.codes or ("warm",),
            self.modes or ("throughput",),
            self.threads or (1,),
            self.huges or (0,),
            self.pins or (None,),
        ):
            content, places, ascending, handed, handed_by, code, mode, threads, huge, pin = rest
            source, destination = state
            if op in FILLS:
                source = destination
            elif op in READS:
                destination = source
            sized = call.of_row() | {"table": table} if self.mixes else {"size": call}
            row = Row(
                experiment,
                op,
                names(op, 0 if self.mixes else call),
                **sized,
                src_off=src,
                dst_off=dst,
                delta=delta,
                overlap=overlap,
                src_state=source,
                dst_state=destination,
                content=content,
                places=places,
                ascending=ascending,
                handed=handed,
                handed_by=None if handed == "none" else handed_by,
                code=code,
                mode=mode,
                threads=threads,
                huge=huge,
                pin=pin,
                rounds=rounds,
            )
            if row.routines and row not in seen:  # a set has one state of the two
                seen.add(row)
                yield row

    def count(self, states: Sequence[tuple[str, str]]) -> int:
        sides = [len(states)] + [len(getattr(self, f.name)) for f in fields(self)]
        return math.prod(max(count, 1) for count in sides)

    def check_count(self, states, some: Sequence[Row], processes: int) -> None:
        """`some`: the first of its rows, to reckon by."""
        if not some:
            return
        rows = self.count(states)
        cells = rows * sum(len(row.routines) for row in some) / len(some)
        seconds = expected_seconds(some, processes) * rows / len(some)
        if cells <= MOST_CELLS and seconds <= MOST_SECONDS:
            return
        named = {f.name: getattr(self, f.name) for f in fields(self)} | {"states": states}
        widest = sorted(named.items(), key=lambda pair: -len(pair[1]))[:2]
        words = [f"{option(name)} ({len(own)} values)" for name, own in widest if len(own) > 1]
        hours = seconds / 3600
        raise WherryError(
            f"that makes {cells:,.0f} cells and takes about "
            + (f"{hours:,.0f} hours" if hours >= 2 else about(seconds))
            + f"; at most {MOST_CELLS:,} cells and {MOST_SECONDS // 3600} hours; narrow "
            + (" or ".join(words) or "--routine, --processes or --rounds")
        )


def option(name: str) -> str:
    """Of a field: `src_offs` is --src-off."""
    return _OPTIONS.get(name) or "--" + (
        name if name == "threads" else name.rstrip("s").replace("_", "-")
    )


def _refuse(what: str, give: str) -> None:
    raise WherryError(f"{what}; give {give}")
