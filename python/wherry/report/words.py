"""A run in words: who was fastest where and by how much, what libc loses, what was not controlled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from wherry import dimensions, levels, rounds, sentences, stats, tables, then
from wherry import experiments as rooms
from wherry.scoreboard.show import standing, takes
from wherry.tables import Block
from wherry.units import percent, plural, seconds_in_words

# What a run file with right types and absurd contents makes of arithmetic and of labels.
ABSURD = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

T = TypeVar("T")


def attempt(make: Callable[[], T], otherwise: T) -> T:
    """A file that contradicts itself costs the part that it spoils, not the page."""
    try:
        return make()
    except ABSURD:
        return otherwise


def entry(run: dict, name: str) -> dict:
    return next(e for e in run["experiments"] if e["name"] == name)


def of_programs(run: dict) -> bool:
    """Whether whole runs of a program were measured (`wherry ab`), and no routine by itself."""
    return bool(run["experiments"]) and all("ab" in own for own in run["experiments"])


def blocks(run: dict, name: str, width: int = 100_000) -> list[Block] | None:
    """The experiment's own tables and sentences; None when this Wherry does not know it or cannot make them."""
    if name not in rooms.names():
        return None
    own = run | {"noise": {"floor": entry(run, name)["noise_floor"]}}
    return attempt(lambda: rooms.load(name).blocks(own, width), None)


def then_and_now(run: dict, name: str) -> list[Block]:
    """What the seed published beside this run's figures."""
    if not then.has(name):
        return []
    return attempt(lambda: [sheet.block(100_000) for sheet in then.sheets(run, name)], [])


def shows(name: str) -> str:
    """What an experiment is, in a sentence."""
    if name not in rooms.names():
        return ""
    own = rooms.load(name)
    after = f" After {own.after}." if own.after else ""
    return f"{own.shows[:1].upper()}{own.shows[1:]}.{after}"


def method(run: dict, name: str) -> str:
    """How its figures came about."""
    own = entry(run, name)
    floor = own["noise_floor"]
    disturbed = sum(
        bool(c.get("disturbed")) for c in run["cells"] if c["experiment"] == name and not c["aa"]
    )
    parts = [
        "noise floor not measured"
        if floor is None
        else f"noise floor {percent(floor)} ({_twice(run, own)} against itself)",
        f"medians of {plural(own['processes'], 'run')} in {plural(own['rounds'], 'round')}"
        if "ab" in own
        else f"medians of {plural(own['processes'], 'process', 'processes')} × {plural(own['rounds'], 'round')}",
        sentences.corrected(own.get("correction")),
        attempt(lambda: rounds.thinned_in_words(own), ""),
        sentences.untold(tables.rows_of(run, name)),
        attempt(lambda: rounds.voided_in_words(own, disturbed), "")
        or (f"{plural(disturbed, 'cell has', 'cells have')} disturbed rounds" if disturbed else ""),
        attempt(lambda: rounds.drift_in_words(own), ""),
        levels.in_words(own),
        attempt(lambda: _counters(run, own), ""),
        f"took {seconds_in_words(own['seconds'])}" if own.get("seconds") else "",
        "" if own["complete"] else "INTERRUPTED, so fewer rows or rounds",
    ]
    source = run.get("source")
    if source:
        ticks = "; times are ticks of the CPU's counter, in tables also where ns is written"
        parts = [f"imported from {source['tool']}{ticks if source['unit'] == 'ticks' else ''}"]
    text = "; ".join(filter(None, parts))
    return f"{text[:1].upper()}{text[1:]}."


def _twice(run: dict, own: dict) -> str:
    return "a side" if "ab" in own else tables.measured_twice(run, own["name"])


def _counters(run: dict, own: dict) -> str:
    """What the processor counted, or why it did not; nothing where nobody asked."""
    told = own.get("counters")
    if not told or told["set"] == "none":
        return ""
    why = rounds.counters_in_words(own)
    if told["events"]:
        counted = f"{told['set']} events counted: {sentences.join(list(told['events']))}"
        return f"{counted}; {why}" if why else counted
    return why


def summary(run: dict, name: str) -> list[str]:
    own = entry(run, name)
    if "score" in own:
        return _of_score(own["score"])
    if "ab" in own:
        return [dimensions.clean(own["ab"].get("verdict", ""), 1200)]
    if name in rooms.names():
        floored = run | {"noise": {"floor": own["noise_floor"]}}
        said = attempt(lambda: rooms.load(name).in_words(floored), None)
        if said is not None:
            return [dimensions.clean(text, 1200) for text in said]
    rows = tables.rows_of(run, name)
    cells = tables.cells_of(run, name)
    differ = dimensions.varying(rows)

    def label(row: dict) -> str:
        return dimensions.label(row, differ).removeprefix("in ")

    said = [
        sentences.leaders_or_counts(rows, label, differ),
        sentences.libc_loss(rows, cells, label, own["noise_floor"] or 0),
    ]
    return [dimensions.clean(text, 1200) for text in said if text]


def _loses(region: dict, floor: float) -> bool:
    """Whether libc's time is told from Wherry's: where libc is the best peer by the verdict of the table, else by the
    same rule."""
    own = region["to_libc"]
    if not own:
        return False
    if region["best"] == "libc":
        return region["verdict"] == "ahead"
    ratio = stats.Ratio(own["median"], own.get("low"), own.get("high"))
    # Run files from before it was written there were not corrected.
    return stats.call(ratio, floor, own.get("p_corrected", 0.0)) == "faster"


def _of_score(score: dict) -> list[str]:
    said = []
    # The heading of a page does not say it, and nobody should take another tier's figures for the default's.
    wherry = f"Wherry, held to its {score['isa']} tier," if score.get("isa") else "Wherry"
    for own in score["ops"]:
        total = own["total"]
        base = [r for r in own["regions"] if r["base"]]
        function = {"copy": "memcpy", "move": "memmove", "set": "memset"}.get(own["op"], own["op"])
        parts = [
            takes(ratio, whose)
            for ratio, whose in (
                (total["to_libc"], "libc's"),
                (total["to_envelope"], "the best peers'"),
            )
            if ratio
        ]
        if not parts:
            continue
        worst = next((r for r in base if r["name"] == total["worst"] and r["to_best"]), None)
        text = (
            f"{function}: over {plural(total['regions'], 'region')} {wherry} takes {sentences.join(parts)}. "
            f"{standing(base)}"
        )
        if worst and worst["verdict"] == "behind":
            whose = f"{worst['best']}'s"
            text += f"; furthest behind in {worst['name']}, {takes(worst['to_best'], whose)}"
        said.append(dimensions.clean(text + ".", 1200))
        lost = [r for r in base if _loses(r, score["floor"])]
        most = min(lost, key=lambda r: r["to_libc"]["median"], default=None)
        if most:
            said.append(
                dimensions.clean(
                    f"libc's {function} loses most in {most['name']}, where Wherry "
                    f"takes {takes(most['to_libc'], 'its')}.",
                    600,
                )
            )
    return said


def uncontrolled(run: dict) -> str:
    whats = [item["what"] for item in run["machine"]["uncontrolled"]]
    return (
        f"Not controlled: {'; '.join(whats)}."
        if whats
        else "Nothing is known that was not controlled."
    )
