"""Adam Richter, 1998: what a switch from one process to another takes, and what the registers in use add to it. The
kernel's own switches are measured as he did, by a byte through two pipes; since today's kernels save eagerly, his
comparison of saving always and saving only what is wanted is made where the switch is ours: between two stacks."""

from __future__ import annotations

from wherry import tables
from wherry.campaign import Row
from wherry.experiments import Experiment, Request
from wherry.row import SystemRow
from wherry.switching import answer, report
from wherry.switching.found import Found
from wherry.switching.words import (
    COPIES,
    LIVE,
    METHODS,
    NO_COPY,
    SEED_TURNS,
    SEGMENT,
    WHO,
)

QUICK_TURNS = 1000
APART_TURNS = 2000  # each wakes another CPU, which takes ten times as long
FIRST_CALLS = 20  # each waits a millisecond before
# Of the fastest way, which saves nothing; the slowest takes fifteen times as long.
BATCH_US = 1000
QUICK_BATCH_US = 400
PIPES = ("no", "both")


class Switch(Experiment):
    takes = frozenset({"turns"})
    weight = 0.8
    quick_processes = 1
    quick_rounds = 5

    def rows(self, request: Request) -> list[Row]:
        quick = request.quick
        turns = request.turns or (QUICK_TURNS if quick else SEED_TURNS)
        rounds = self.round_count(request)

        def row(routines: tuple[str, ...], calls: int = 0, size: int = 0, **words: str) -> Row:
            return SystemRow(
                self.name,
                self.op,
                routines,
                size,
                rounds=rounds,
                batch_us=QUICK_BATCH_US if quick else BATCH_US,
                calls=calls,
                words=tuple(words.items()),
            )

        def pipes(routines: tuple[str, ...], calls: int, **words: str) -> Row:
            usual = {"via": "pipe", "partners": "processes", "place": "same", "live": "none"}
            return row(routines, calls, **(usual | words))

        live = [name for name in LIVE if name != "none"]
        shown = ["x87", "avx512"] if quick else live
        found = [pipes(WHO, turns, live=name) for name in shown]
        for words in (
            {"partners": "threads"},
            {"via": "eventfd"},
            {"via": "futex"},
            {"via": "futex", "partners": "threads"},
            {"place": "apart"},
            {"place": "apart", "via": "futex", "partners": "threads"},
        ):
            apart = request.turns or min(turns, APART_TURNS if "place" in words else turns)
            found.append(pipes(PIPES, apart, live="avx512", **words))
        found.append(row(METHODS, via="stacks", live="none", who="no"))
        for name in shown:
            found += [row(METHODS, via="stacks", live=name, who=who) for who in WHO[1:]]
        copies = (NO_COPY, *COPIES, "wherry", "libc")
        known = {"libc", "wherry", NO_COPY} | {own["name"] for own in request.catalogue}
        copies = tuple(name for name in copies if name in known or not request.catalogue)
        found += [
            row(copies, turns, SEGMENT, via="pipe", partners="processes", place="same"),
            row(copies, size=SEGMENT, via="alone"),
            row(LIVE, via="clock"),
            row(LIVE, FIRST_CALLS, via="first"),
        ]
        return found

    def in_words(self, run: dict) -> list[str] | None:
        return answer.sentences(Found(run))

    def blocks(self, run: dict, width: int) -> list[tables.Block]:
        return report.blocks(run, width)


EXPERIMENT = Switch(
    name="switch",
    after="Richter 1998",
    shows="what a context switch takes with x87, SSE, AVX and AVX-512 registers in use: the kernel's, "
    "and our own that save always or only what is in use",
    op="switch",
    ops=("copy", "move"),
    routines=COPIES,
    processes=3,
    rounds=7,
)
