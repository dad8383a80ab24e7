"""What the figures come to, in words: which side to take, and `keep libc` where that is the answer."""

from __future__ import annotations

import shlex
from pathlib import Path

from wherry import preloading, shellwords
from wherry.ab import figures
from wherry.ab.figures import Figure
from wherry.ab.sides import Side
from wherry.stats import Ratio
from wherry.units import percent

# A run that lasts or works no longer than this is mostly the loader's work, of which a preloaded object is a part.
SHORT = 0.02
MANY_STOLEN = 0.02


def change(ratio: float) -> str:
    """1.032 is +3.2 %."""
    value = (ratio - 1) * 100
    text = f"{value:+.1f}" if abs(value) < 99.5 else f"{value:+.0f}"
    return "0.0 %" if text in ("+0.0", "-0.0") else f"{text.replace('-', '−')} %"


def interval(ratio: Ratio) -> str:
    if not ratio.told:
        return "-"
    low, high = (change(value).removesuffix(" %") for value in (ratio.low, ratio.high))
    return f"[{low}, {high}] %"


def _keep(a: Side) -> str:
    return "keep libc" if a.name == "libc" else f"keep {a.name}"


def sentence(a: Side, b: Side, own: Figure, rounds: int) -> str:
    """One sentence: what was found, and what to do."""
    what = figures.NAMES[own.metric]
    if own.ratio is None:
        return f"Nothing can be told: some runs have no {what}; give the program more to do. {_keep(a).capitalize()}."
    found = f"{what} {change(own.ratio.median)}"
    if rounds >= figures.LEAST_SPREAD:
        found += f" {interval(own.ratio)}, noise ±{percent(own.floor)}"
    if rounds < figures.FEW_ROUNDS:
        few = "one round of four runs is" if rounds == 1 else f"{rounds} rounds of four runs are"
        return f"Not decided: {few} too few to tell ({found}); give more --runs, or more --time."
    if own.call == "faster":
        return f"{b.name} is faster than {a.name}: {found}. Take {b.name}."
    if own.call == "slower":
        return f"{b.name} is slower than {a.name}: {found}; {_keep(a)}."
    beyond = not 1 / (1 + own.floor) <= own.ratio.median <= 1 + own.floor
    if beyond:
        return (
            f"Not decided: {found}; the interval or the test leaves room for no difference. "
            f"More --runs may tell; until then {_keep(a)}."
        )
    return f"No difference that can be told: {found}; {_keep(a)}."


def word(own: Figure, rounds: int) -> str:
    """For a table: of B."""
    if own.ratio is None or rounds < figures.FEW_ROUNDS:
        return "too few rounds"
    if own.metric == "peak" and own.call != "tie":
        return "less" if own.call == "faster" else "more"
    return {"tie": "no difference told"}.get(own.call, own.call)


def remarks(a: Side, b: Side, found: dict[str, Figure], stolen: float | None) -> list[str]:
    """What a reader should know beside the verdict."""
    said = []
    lasts, works = (min(found[metric].a, found[metric].b) for metric in ("elapsed", "cpu"))
    if min(lasts, works) < SHORT and a.preloads != b.preloads:
        # One that waits may take long and have as little to do.
        run = (
            f"lasts {lasts * 1e3:.1f} ms"
            if lasts < SHORT
            else f"takes {works * 1e3:.1f} ms of CPU time"
        )
        said.append(
            f"A run {run}: loading one more object is part of the difference. Give the program more to do."
        )
    if stolen is not None and stolen > MANY_STOLEN:
        said.append(
            f"The hypervisor took {percent(stolen)} of the machine's time meanwhile, which makes noise."
        )
    disagree = {found[metric].call for metric in ("cpu", "elapsed")}
    if {"faster", "slower"} <= disagree:
        said.append("CPU time and elapsed time do not agree: look at what it waits for.")
    cpu = found["cpu"]
    if cpu.call == "tie" and cpu.ratio is not None and (options := _by_turns(a, b)) is not None:
        said.append(
            f"wherry record {options}--runs 5 -- CMD gives the calls of one run to both by turns, and tells of many "
            "programs within a per cent."
        )
    return said


def _by_turns(a: Side, b: Side) -> str | None:
    """The options by which `wherry record` tries the same, with a blank behind them; None where it cannot: it tries one
    library's routines against libc's, and sets nothing else."""
    words = {side.what: shlex.split(side.what) for side in (a, b)}
    stock = [side for side in (a, b) if words[side.what] in (["libc"], ["stock"])]
    tried = [side for side in (a, b) if side not in stock]
    if len(stock) != 1 or len(words[tried[0].what]) != 1:
        return None
    word = words[tried[0].what][0]
    kind, _, file = word.partition(":")
    if word in ("dropin", "wherry", "plan:default"):
        return ""
    if kind == "preload" and preloading.why_not_preloaded(Path(file), preloading.TRIED_NAMES):
        return None
    option = {"plan": "--plan", "preload": "--try"}.get(kind)
    return f"{option} {shellwords.path(file)} " if option else None
