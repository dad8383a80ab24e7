"""What does it cost a program that its copies use wide registers? In sentences, from what was measured."""

from __future__ import annotations

from wherry.sentences import join
from wherry.switching.found import Found
from wherry.switching.words import (
    ALWAYS,
    COPIES,
    IN_USE,
    LIVE_WORDS,
    NO_COPY,
    SEGMENT,
)
from wherry.units import ns_label, percent

_PIPE = {"via": "pipe", "partners": "processes", "place": "same"}
_KERNEL = _PIPE | {"size": 0}
# A clock that falls by less is not told from noise.
LEAST_CLOCK = 0.03


def sentences(found: Found) -> list[str]:
    if found.single:
        return ["One sample of each tells nothing of chance, so there is no answer."]
    said = (_kernel(found), _own(found), _copies(found), _wide(found))
    return [text for text in said if text]


def _kernel(found: Found) -> str:
    costs, floors, base = {}, [], None
    for live, words in LIVE_WORDS.items():
        cells = found.cells(**_KERNEL, live=live)
        if "no" not in cells or "both" not in cells:
            continue
        base = base or cells["no"]["ns"]["median"] / 2
        costs[words] = (cells["both"]["ns"]["median"] - cells["no"]["ns"]["median"]) / 2
        floors.append(found.floor(**_KERNEL) * cells["no"]["ns"]["median"] / 2)
    if not costs:
        return ""
    floor = max(floors)
    told = {words: ns for words, ns in costs.items() if abs(ns) > floor}
    text = f"One switch of the kernel's takes {ns_label(base)} ns with its two system calls. "
    if told:
        parts = [f"{words} {ns:+.0f} ns" for words, ns in told.items()]
        text += f"Registers in use on both sides change that by {join(parts)}"
        rest = [words for words in costs if words not in told]
        text += f"; {join(rest)} by less than the noise of {ns_label(floor)} ns." if rest else "."
    else:
        text += (
            f"Registers in use on both sides ({join(list(costs))}) change it by less than the noise of "
            f"{ns_label(floor)} ns: what a program's copies leave in its registers is nothing that it would notice."
        )
    return text


def _own(found: Found) -> str:
    empty = [found.took(name, via="stacks", live="none") for name in ("never", ALWAYS, IN_USE)]
    if None in empty:
        return ""
    never, always, in_use = (took / 2 for took in empty)
    text = (
        f"Where the switch is ours, the registers are most of it: {ns_label(never)} ns without them, "
        f"{ns_label(always)} with all of them saved always, {ns_label(in_use)} with those in use when none are"
    )
    full = {
        words: found.took(IN_USE, via="stacks", live=live, who="both")
        for live, words in LIVE_WORDS.items()
    }
    full = {words: took / 2 for words, took in full.items() if took}
    if full:
        low, high = min(full, key=full.get), max(full, key=full.get)
        text += (
            f", and {ns_label(full[low])} ({low}) to {ns_label(full[high])} ({high}) when both sides use some"
            if low != high
            else f", and {ns_label(full[low])} when both sides use {low}"
        )
    return text + "."


def _copies(found: Found) -> str:
    switched = found.cells(via="pipe", size=SEGMENT)
    alone = found.cells(via="alone", size=SEGMENT)
    if NO_COPY not in switched or NO_COPY not in alone:
        return ""
    bare, empty = (own[NO_COPY]["ns"]["median"] for own in (switched, alone))
    extra = {
        name: switched[name]["ns"]["median"] - bare - 2 * (alone[name]["ns"]["median"] - empty)
        for name in (*COPIES, "wherry")
        if name in switched and name in alone
    }
    if not extra:
        return ""
    floor = found.floor(**_PIPE) * bare
    dear = {name: ns for name, ns in extra.items() if ns > floor}
    text = f"Copies of {SEGMENT} bytes between the switches "
    if not dear:
        return (
            text + f"({join(list(extra))}) cost what they cost without a switch, "
            f"to within the noise of {ns_label(floor)} ns a round trip."
        )
    parts = [f"{name} {ns:+.0f} ns a round trip" for name, ns in dear.items()]
    return text + f"cost more than without: {join(parts)} (noise {ns_label(floor)} ns)."


def _wide(found: Found) -> str:
    clock, first = found.cells(via="clock"), found.cells(via="first")
    if "none" not in clock or len(clock) < 2:
        return ""
    base = clock["none"]["ns"]["median"]
    quiet = clock["none"]["ns"]["q75"]
    # One twin tells little of so few rounds that wander: the middle halves of the two have to lie apart as well.
    slower = {
        LIVE_WORDS[live]: cell["ns"]["median"] / base - 1
        for live, cell in clock.items()
        if live in LIVE_WORDS and cell["ns"]["q25"] > quiet
    }
    worst = max(slower, key=slower.get, default=None)
    if worst and slower[worst] > max(found.floor(via="clock"), LEAST_CLOCK):
        text = f"Wide work slows other work beside it by up to {percent(slower[worst])} ({worst})"
    else:
        text = "No width lowers the clock by what could be told here"
    if "none" in first:
        idle = first["none"]["ns"]["median"]
        late = {
            LIVE_WORDS[n]: c["ns"]["median"] - idle for n, c in first.items() if n in LIVE_WORDS
        }
        if late:
            last = max(late, key=late.get)
            text += f"; the first use after a pause takes at most {max(late[last], 0):.0f} ns more ({last})"
    return text + "."
