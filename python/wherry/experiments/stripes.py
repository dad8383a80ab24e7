"""Satoshi Asami, 1996: what a faster copy brings to a stripe of nine disks that is read from end to end. Today the copy
is the kernel's in read(), and ours where the files are mapped; what else it takes is told apart."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import ClassVar

from wherry import tables
from wherry.campaign import Campaign, Row
from wherry.errors import WherryError
from wherry.experiments import Experiment, Request
from wherry.striping import fio, given, report, scratch
from wherry.striping.found import Found
from wherry.striping.place import Place, StripeRow
from wherry.striping.words import (
    BLOCKS,
    COPIES,
    DIRECT,
    LEAST_BLOCK,
    MEMBERS,
    MOST_BLOCK,
    NOFAULT,
    READ,
    TOUCH,
    USUAL_BLOCK,
)
from wherry.units import size_label

ENDS = (BLOCKS[0], USUAL_BLOCK, BLOCKS[-1])
FEW = (1, 3)  # members, of the cold rows beside nine
WARM_US, COLD_US = 8000, 20000


class Stripes(Experiment):
    takes = frozenset({"routines", "sizes", "members", "disks", "scratch"})
    weight = 0.8
    # Shared by rows that are made and the surroundings that fill it in.
    place: ClassVar[Place] = Place()
    quick_processes = 1
    quick_rounds = 3

    def rows(self, request: Request) -> list[Row]:
        blocks, most, disks = self._asked(request)
        copies = self.chosen(request)
        if not request.routines and not request.all_routines:
            copies = (*copies, NOFAULT)
        rounds = self.round_count(request)
        by_map = (TOUCH, *copies)
        every = (READ, *by_map)

        def row(names: tuple[str, ...], block: int, members: int, cache: str, **words: str) -> Row:
            own = {"members": members, "cache": cache, "mapping": "fresh", "raid": "none"}
            return StripeRow(
                self.name,
                self.op,
                names,
                block,
                rounds=rounds,
                batch_us=WARM_US if cache == "warm" else COLD_US,
                words=tuple((own | words).items()),
                place=self.place,
                source="given" if request.members else "scratch",
            )

        few = request.quick
        usual = USUAL_BLOCK if USUAL_BLOCK in blocks else blocks[len(blocks) // 2]
        ends = tuple(block for block in blocks if block in ENDS) or blocks
        wide = disks if request.disks else tuple(range(1, most + 1))
        top = max(disks)
        found = [row(every, block, top, "warm") for block in (ends if few else blocks)]
        others = [n for n in ((1,) if few and not request.disks else wide) if n != top]
        found += [row(every, usual, members, "warm") for members in others]
        found += [
            row(by_map, block, top, "warm", mapping="kept") for block in ((usual,) if few else ends)
        ]
        cold = (DIRECT, *every)
        found += [row(cold, block, top, "cold") for block in ((usual,) if few else ends)]
        some = others if request.disks else [n for n in FEW if n < top]
        found += [row(cold, usual, members, "cold") for members in (() if few else some)]
        if not request.members and not request.disks:
            for raid in ("btrfs", "md"):
                some = (usual,) if few or raid == "md" else ends
                found.append(row(every, usual, MEMBERS, "warm", raid=raid))
                found += [row(cold, block, MEMBERS, "cold", raid=raid) for block in some]
        return found

    def _asked(self, request: Request) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
        """Blocks, members at most, numbers of members."""
        blocks = request.sizes or BLOCKS
        for block in blocks:
            if not LEAST_BLOCK <= block <= MOST_BLOCK or block & (block - 1):
                raise WherryError(
                    f"--size {size_label(block)}: a block of a stripe is a power of two from "
                    f"{size_label(LEAST_BLOCK)} to {size_label(MOST_BLOCK)}"
                )
        most = len(request.members) or MEMBERS
        if request.disks and max(request.disks) > most:
            raise WherryError(
                f"--disks {max(request.disks)}: --members has {most} files; give more, or fewer disks"
            )
        if request.members:
            given.check(request.members, max(blocks))
        if request.scratch is not None:
            if request.members:
                raise WherryError("--scratch is for files of our own; leave it out with --members")
            scratch.directory(request.scratch)
        return tuple(sorted(blocks)), most, request.disks or (most,)

    @contextlib.contextmanager
    def surroundings(self, request: Request) -> Iterator[None]:
        if request.members:
            self.place.files, self.place.content = list(request.members), 0
            try:
                yield
            finally:
                self.place.__init__()
            return
        where, with_raid = scratch.directory(request.scratch), not request.disks
        with scratch.held(self.place, where, request.quick, with_raid):
            yield

    def cross_check(self, campaign: Campaign, request: Request) -> list[dict]:
        return fio.check(campaign, self.place.files, request.quick)

    def in_words(self, run: dict) -> list[str] | None:
        return report.sentences(Found(run))

    def blocks(self, run: dict, width: int) -> list[tables.Block]:
        return report.blocks(run, width)


EXPERIMENT = Stripes(
    name="stripes",
    after="Asami 1996",
    shows="what reading a stripe of nine members takes: by read(), past the page cache, and mapped with "
    "this or that copy",
    op="stripes",
    ops=("copy", "move"),
    routines=COPIES,
    processes=2,
    rounds=3,
)
