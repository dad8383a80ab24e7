"""The trial of a recorded run: some calls went to the drop-in's routines instead of libc's, by turns, and the recorder
timed some of both whole.

Only calls of more than 1 KiB tell something: a timed call is alone, since the processor waits before and after, and
what a routine of small sizes gains or loses is mostly how its calls overlap with what is around them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wherry.significance import half_interval
from wherry.units import KIB, MIB, signed

VARIABLE = "WHERRY_TRIAL"
DEFAULT_PLAN = "default"
# What is tried, when it is no other library; libc against itself shows what differs by chance.
DROPIN, LIBC = "dropin", "libc"
FROM = KIB
# Groups of calls one after the other, as many as the recorder keeps, or runs; their spread tells how sure it is.
GROUPS = 6
# With fewer calls of a side in a class it tells nothing.
LEAST_CALLS = 12
# A call that takes libc so long is half of a turn, or more than one: turns that have some count as if they had less.
OUTLASTS_NS = 1e6
# Among calls of so many bytes turns last (preload/recorder/block.h), and few short ones have any.
LASTING_FROM = MIB
# Of these fewer do: what a call takes beside others like it differs less, the longer it is.
LEAST_OUTLASTING = 6


@dataclass(frozen=True)
class Tried:
    routines: str
    plan: str  # or of a library its own identity, which is no plan's


def identity(file: Path | None) -> str:
    """Of the plan that is tried, in its compiled form, or of a library."""
    return hashlib.sha256(file.read_bytes()).hexdigest() if file else DEFAULT_PLAN


def rows(counted: Sequence[Sequence], ticks_per_ns: float) -> list[list]:
    """As a mix keeps it: least and greatest size; calls and nanoseconds of libc, then of what was tried, by group."""
    found = []
    for least, greatest, usual, tried in counted:
        sides = []
        for calls, ticks in (usual, tried):
            sides += [calls, [round(own / ticks_per_ns, 1) for own in ticks]]
        found.append([least, greatest, *sides])
    return found


@dataclass(frozen=True)
class Change:
    """Seconds of the whole run that what was tried takes more, by group; and what libc takes for the same calls."""

    groups: np.ndarray
    libc: np.ndarray

    @property
    def seconds(self) -> float:
        return float(self.groups.mean())

    @property
    def half(self) -> float:
        """Half of the 95 % interval."""
        return half_interval(self.groups)


def summed(document: Mapping) -> Change | None:
    """Of all calls of a mix of more than 1 KiB."""
    found = [
        own
        for op, rows in document.get("trial", {}).get("ops", {}).items()
        if (own := change(document["ops"][op], rows, FROM + 1, 1 << 62))
    ]
    return _together(found)


def outlasting(document: Mapping) -> Change | None:
    """Of all calls of a mix that outlast a turn, or of which short turns have none."""
    found = []
    for op, rows in (document.get("trial") or {}).get("ops", {}).items():
        long = [
            row
            for row in rows
            if row[0] >= LASTING_FROM or sum(row[3]) >= OUTLASTS_NS * max(sum(row[2]), 1)
        ]
        if long and (
            own := change(document["ops"][op], long, long[0][0], 1 << 62, LEAST_OUTLASTING)
        ):
            found.append(own)
    return _together(found)


def untold(document: Mapping) -> float:
    """The share of a run that its calls of megabytes took, where they were too few for single ones or turns to tell of
    them; 0.0 where any do."""
    found, ceiling = document.get("trial") or {}, document.get("ceiling") or {}
    if "lasting" in (found.get("turns") or {}) or outlasting(document) is not None:
        return 0.0
    # Without an end are those of more than 1 MiB: of LASTING_FROM.
    took_s = sum(own["likely_s"] for own in ceiling.get("parts", ()) if own["up_to"] is None)
    cpu_s = ceiling.get("cpu_s", 0)
    return min(took_s / cpu_s, 1.0) if cpu_s > 0 else 0.0


def _together(found: Sequence[Change]) -> Change | None:
    # Groups that one op lacks and another has tell nothing together.
    same = [own for own in found if len(own.groups) == len(found[0].groups)]
    return Change(sum(c.groups for c in same), sum(c.libc for c in same)) if same else None


def whom(document: Mapping) -> str:
    routines, plan = document["trial"]["routines"], document["trial"]["plan"]
    if routines == DROPIN:
        return "the drop-in" if plan == DEFAULT_PLAN else "the drop-in and this plan"
    return "libc once more" if routines == LIBC else routines


def in_words(document: Mapping) -> str | None:
    """What the trial of a mix tells; None when too little was timed for it to tell anything."""
    own, cpu_s = summed(document), document["ceiling"]["cpu_s"]
    if own is None or cpu_s <= 0 or own.libc.mean() <= 0:
        return None
    took = float(own.libc.mean())
    # By the clock a call also waits while another program runs; of the run's processor time it takes all at most, and
    # with whatever routine nothing at least.
    share, ratio, half = min(took / cpu_s, 1.0), own.seconds / took, own.half / took
    middle, low, high = (
        signed(share * max(value, -1.0)) for value in (ratio, ratio - half, ratio + half)
    )
    return (
        f"calls of more than 1 KiB took {1 + ratio:.2f} times as long with {whom(document)} as with libc: "
        f"{middle} % [{low}, {high}] of this run, had they all gone there"
    )


def change(
    op: Mapping, tried: Sequence[Sequence], low: int, high: int, least_calls: int = LEAST_CALLS
) -> Change | None:
    """Of all calls of one op with sizes from `low` to `high`; None when fewer than `least_calls` of a side were timed.
    `op`: the mix's counts."""
    groups, libc, known = np.zeros(GROUPS), np.zeros(GROUPS), 0
    there = np.zeros(GROUPS, bool)
    sizes = [(row[3] / row[2], row[2], row[3]) for row in op["sizes"] if row[2]]
    sizes = [row for row in sizes if low <= row[0] <= high]
    for least, greatest, *sides in tried:
        calls = sum(own for mean, own, _ in sizes if least <= mean <= greatest)
        means = []
        for number, ns in (sides[:2], sides[2:]):
            number, ns = np.array(number, float), np.array(ns, float)
            if number.sum() < least_calls:
                break
            mean = ns.sum() / number.sum()
            means.append(np.where(number > 0, ns / np.maximum(number, 1), mean))
        if len(means) < 2 or not calls:
            continue
        there |= np.array(sides[0]) + np.array(sides[2]) > 0
        known += sum(total for mean, _, total in sizes if least <= mean <= greatest)
        groups += calls * (means[1] - means[0]) / 1e9
        libc += calls * means[0] / 1e9
    # Bytes of which nothing is known are as the others, when those are the most.
    whole = sum(total for _, _, total in sizes)
    if not known or known < whole / 2 or there.sum() < 2:
        return None
    return Change(groups[there] * (whole / known), libc[there] * (whole / known))
