"""What a table says, in plain words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from wherry.yardsticks import YARDSTICKS


def join(words: Sequence[str]) -> str:
    if len(words) < 2:
        return "".join(words)
    return ", ".join(words[:-1]) + " and " + words[-1]


def times(ratio: float) -> str:
    """How much faster, from the ratio of times: 1.07 is `7 % faster`, 2.3 is `2.3 times as fast`."""
    if ratio < 1.005:
        return "no faster"
    return f"{(ratio - 1) * 100:.0f} % faster" if ratio < 1.95 else f"{ratio:.1f} times as fast"


def times_as(ratio: float) -> str:
    """The same, before a name: `7 % faster than`, `2.3 times as fast as`."""
    return f"{times(ratio)} {'as' if ratio >= 1.95 else 'than'}"


def slower_than(ratio: float) -> str:
    """How much longer, before a name: `7 % longer than`, `2.3 times as long as`."""
    if ratio < 1.005:
        return "no longer than"
    if ratio < 1.95:
        return f"{(ratio - 1) * 100:.0f} % longer than"
    return f"{ratio:.1f} times as long as"


def _between(low: float, high: float) -> str:
    """The range of several leads, before a name."""
    if times(low) == times(high):
        return times_as(high)
    if high < 1.95:
        return f"{(low - 1) * 100:.0f} to {(high - 1) * 100:.0f} % faster than"
    return f"{low:.1f} to {high:.1f} times as fast as"


def stretches(
    rows: Sequence[dict], label: Callable[[dict], str]
) -> list[tuple[str | None, str, list[dict]]]:
    """Neighbouring rows with the same leader, as (leader or None for a tie, `from A to B`, rows). One without a verdict
    is in no stretch, and none goes on across it."""
    groups: list[list[dict]] = []
    goes_on = False
    for row in rows:
        if not _judged([row]):
            goes_on = False
            continue
        if goes_on and groups[-1][-1]["fastest"] == row["fastest"]:
            groups[-1].append(row)
        else:
            groups.append([row])
        goes_on = True
    found = []
    for group in groups:
        first, last = label(group[0]), label(group[-1])
        found.append(
            (
                group[0]["fastest"],
                f"at {first}" if first == last else f"from {first} to {last}",
                group,
            )
        )
    return found


def leaders(rows: Sequence[dict], label: Callable[[dict], str]) -> str:
    """Who was fastest where, and by how much."""
    told, rows = rows, _judged(rows)
    if not rows:
        return ""
    which = _which(told)
    where: dict[str, list[str]] = {}
    leads: dict[str, list[float]] = {}
    for name, place, group in stretches(told, label):
        if name is None:
            continue
        where.setdefault(name, []).append(place)
        leads.setdefault(name, []).extend(r["lead"]["median"] for r in group if r["lead"])
    parts = []
    for name in sorted(where, key=lambda n: -len(leads[n])):
        own = leads[name]  # none where nobody else was measured
        lead = f" ({_between(min(own), max(own))} the next)" if own else ""
        places = where[name]
        if len(places) > 4:
            places = [*places[:3], f"in {len(places) - 3} more places"]
        parts.append(f"{name} was fastest {join(places)}{lead}")
    if not parts:
        # Who is not among the first may still be behind: a row is not a tie of all its routines.
        each = f"in each row{which}"
        if len(rows) == 1:
            each = f"in the one row{which}" if which else "here"
        said = f"{each} several tied for the first place"
        if not all(row["tied"] for row in rows):
            said = (
                "; ".join(_without_leader(rows, which))
                if len(rows) > 1
                else "who leads is undecided"
            )
        return f"No routine surely led alone by more than the noise floor: {said}."
    return "; ".join([*parts, *_without_leader(rows, which)]) + "."


def _judged(rows: Sequence[dict]) -> list[dict]:
    return [row for row in rows if row["fastest"] or row["tied"] or row.get("unsure")]


def _which(rows: Sequence[Mapping]) -> str:
    """Behind `rows`: which of them are counted, where samples give some no verdict."""
    return " with a verdict" if any(row.get("undecided") for row in rows) else ""


def _without_leader(rows: Sequence[dict], which: str) -> list[str]:
    """How many of them were ties, and how many not even that."""
    ties = sum(bool(row["tied"]) for row in rows)
    unsure = sum(not row["fastest"] and not row["tied"] for row in rows)
    said = []
    for count, one, several in (
        (ties, "a tie", "ties"),
        (unsure, "undecided", "undecided"),
    ):
        if count:
            said.append(
                f"one row was {one}"
                if count == 1
                else f"{count} of {len(rows)} rows{which} were {several}"
            )
    return said


# More rows than this are counted, not listed.
FEW = 40


def leaders_or_counts(
    rows: Sequence[dict], label: Callable[[dict], str], differ: Collection[str]
) -> str:
    """Who was fastest where; only counted when rows are many, or differ in more than one dimension, so that they
    stand in no order in which `from A to B` would mean anything."""
    sides = {"src_state", "dst_state"}
    if len(rows) <= FEW and len(set(differ) - sides) + bool(sides & set(differ)) <= 1:
        return leaders(rows, label)
    judged = _judged(rows)
    which = _which(rows)
    won: dict[str, list[dict]] = {}
    for row in judged:
        if row["fastest"]:
            won.setdefault(row["fastest"], []).append(row)
    if not won:
        return leaders(rows, label)
    parts = []
    for name in sorted(won, key=lambda n: -len(won[n])):
        own = won[name]
        best = max(own, key=lambda row: (row["lead"] or {}).get("median", 1))
        counted = _all_of(len(own), len(judged), which)
        places = f"in {counted}" if len(own) > 1 else f"at {label(best)}"
        if lead := best["lead"]:
            most = f"{times_as(lead['median'])} the next"
            places += f", at most {most}, at {label(best)}" if len(own) > 1 else f" ({most})"
        parts.append(f"{name} was fastest {places}")
    return "; ".join([*parts, *_without_leader(judged, which)]) + "."


def corrected(own: Mapping | None) -> str:
    """How the verdicts of an experiment took care of their number, and what they cannot take care of."""
    said = []
    if own and own["comparisons"] > 1:
        said.append(f"verdicts corrected for {own['comparisons']:,} comparisons ({own['method']})")
    # Of whole programs each run is a process of its own; their test says so, but in files of earlier versions.
    if (
        own
        and own["comparisons"]
        and own["method"] != "none"
        and "one process" in own.get("test", "")
    ):
        said.append("one process: what processes differ by is in no verdict")
    return "; ".join(said)


_UNTOLD = {
    "one sample": "one sample of a routine tells nothing of chance",
    "noise": "the rounds are too far apart to tell from chance even what takes twice as long",
}


def untold(rows: Sequence[Mapping]) -> str:
    """Why rows have no verdict, and what would give them one; empty where none lacks it for want of samples."""
    said = []
    for reason, words in _UNTOLD.items():
        count = sum(row.get("undecided") == reason for row in rows)
        if count:
            where = "" if count == len(rows) else f" in {count:,} of {len(rows):,} rows"
            said.append(f"no verdicts{where}: {words}")
    return f"{'; '.join(said)}; give more --rounds or --processes" if said else ""


def libc_loss(
    rows: Sequence[dict],
    cells: dict[int, dict[str, dict]],
    label: Callable[[dict], str],
    floor: float,
) -> str:
    """Where libc lost most, and where it was as good as any."""
    worst: tuple[float, str, str] | None = None
    good = unsure = counted = 0
    compared = []
    for row in rows:
        own = {n: c for n, c in cells.get(row["row"], {}).items() if n not in YARDSTICKS}
        if "libc" not in own or len(own) < 2:
            continue
        compared.append(row)
        if row.get("undecided"):
            continue
        counted += 1
        best = min(own, key=lambda n: own[n]["ns"]["median"])
        loss = own["libc"]["ns"]["median"] / own[best]["ns"]["median"]
        if "libc" in row.get("unsure", ()):  # also with the least time: nobody surely is behind it
            unsure += 1
        elif row["fastest"] == "libc" or "libc" in row["tied"] or loss <= 1 + floor:
            good += 1
        elif worst is None or loss > worst[0]:
            worst = (loss, best, label(row))
    if not counted:
        return ""
    which = _which(compared)
    if worst is None and not unsure:
        return f"libc was fastest or tied with the fastest in {_all_of(good, counted, which)}."
    if worst is None:
        if counted == 1:
            return "Whether libc was as fast as any is undecided."
        return (
            f"libc was fastest or tied in {good or 'none'} of {counted} rows{which}, and surely lost in none; "
            f"{unsure} {'is' if unsure == 1 else 'are'} undecided."
        )
    if counted == 1:
        return f"libc lost at {worst[2]}: it took {slower_than(worst[0])} {worst[1]}."
    return (
        f"libc lost most at {worst[2]}, where it took {slower_than(worst[0])} {worst[1]}; it was "
        f"fastest or tied in {good or 'none'} of {counted} rows{which}"
        + (f", and {unsure} {'is' if unsure == 1 else 'are'} undecided." if unsure else ".")
    )


def _all_of(count: int, total: int, which: str) -> str:
    if total == 1:
        return f"the one row{which or ' there is'}" if count else "no row"
    return f"all {total} rows{which}" if count == total else f"{count} of {total} rows{which}"
