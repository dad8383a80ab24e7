"""What a person sees at the end of a recorded run, on standard error."""

from __future__ import annotations

import math
import re
import signal
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from wherry import shellwords, tables
from wherry.errors import printable
from wherry.recording import trial, turns, unseen
from wherry.recording.merge import Merger
from wherry.recording.running import UNNAMED, Ran
from wherry.tables import Column, Figure, layout
from wherry.units import percent, size_in_words, size_label

CALLERS_SHOWN = 8
THREADS_SHOWN = 6
PROGRAMS_SHOWN = 6
DAMAGED_SHOWN = 3
SMALL = 1 << 10
NOTABLE = 0.005  # a ceiling that is worth more words
WIDTH = 96
FUNCTIONS = {"copy": "memcpy", "move": "memmove", "set": "memset"}
PERCENTILES = (50, 90, 99)
# Between a figure and its unit.
UNIT = re.compile(r"(?<=\d) (?=%|(?:ms|s|[KMG]iB|B)\b)")


def percentile(sizes: list, calls: int, wanted: int) -> int:
    """Of a class of sizes it is the mean of its calls."""
    running = 0
    for _, _, count, total in sizes:
        running += count
        if running * 100 >= calls * wanted:
            return round(total / count)
    return round(sizes[-1][3] / sizes[-1][2])


def largest(sizes: list, label: Callable[[int], str] = size_label) -> str:
    """Of a class with several calls it is known only what it stays below."""
    least, greatest, count, total = sizes[-1]
    return label(total // count) if count == 1 or least == greatest else f"<{label(greatest + 1)}"


def seconds(time: float) -> str:
    return (
        f"{time * 1e3:.3g} ms" if time < 1 else f"{time:.2f} s" if time < 100 else f"{time:.0f} s"
    )


def _count(number: float) -> str:
    return f"{round(number):,}"


def _several(number: int, what: str) -> str:
    plural = "es" if what.endswith("s") else "s"
    return f"{number:,} {what}{'' if number == 1 else plural}"


def _table(lines) -> str:
    return tables.render(lines, tables.console(WIDTH, False)).rstrip("\n")


def _ops(ops: Mapping[str, Mapping]) -> str:
    columns = [
        Column("op", "", left=True),
        Column("calls"),
        Column("bytes"),
        Column("mean", "bytes"),
    ]
    columns += [Column("median" if p == 50 else f"p{p}", "bytes") for p in PERCENTILES]
    columns += [Column("largest", "bytes"), Column("called as", left=True)]
    body = []
    for op, part in ops.items():
        names = ", ".join(list(part["functions"])[:3])
        body.append(
            [
                Figure(op),
                Figure(_count(part["calls"])),
                Figure(size_in_words(part["bytes"])),
                Figure(f"{part['bytes'] / part['calls']:.0f}"),
                *(
                    Figure(size_label(percentile(part["sizes"], part["calls"], p)))
                    for p in PERCENTILES
                ),
                Figure(largest(part["sizes"])),
                Figure(names + (" ..." if len(part["functions"]) > 3 else "")),
            ]
        )
    return _table(layout(columns, body, WIDTH))


# What has brackets of another kind in a name of C++.
_WHOLE = re.compile(r"\boperator(?:<=>|<<=?|>>=?|->\*?|<=?|>=?|\(\))|->|\(anonymous namespace\)")


def _bare(name: str) -> str:
    """A name of C++ without what is in its brackets: `std::vector<>::insert()`."""
    if name.startswith("<"):  # Rust has the type itself there
        return name
    kept, depth, at = [], 0, 0
    while at < len(name):
        whole = _WHOLE.match(name, at)
        piece = whole[0] if whole else name[at]
        depth -= piece in (")", ">") and depth > 0
        if depth == 0:
            kept.append(piece)
        depth += piece in ("(", "<")
        at += len(piece)
    return "".join(kept)


# Of a name that is cut, so much at least.
_LEAST_NAMED = 12


def _named(function: str, most: int) -> str:
    """A function within so many letters: of a long name the end, which tells most."""
    for name in (function, _bare(function)):
        if len(name) <= most:
            return name
    return f"...{name[3 - most :]}"


def caller(row: Mapping, most: int = 120) -> str:
    """`htab_expand hashtab.c:550 in cc1`, within so many letters."""
    function, offset = row.get("function"), row.get("offset")
    place = function or (f"+{offset:#x}" if offset is not None else "?")
    source = printable(Path(row.get("source") or "").name)
    behind = f" {source}" if source else ""
    if function and offset is not None and not re.search(r":\d+$", source):
        # Without lines of source the places in one function differ by nothing else.
        behind += f" at {offset:#x}"
    file = _cut(Path(row["module"]).name, most * 3 // 4)
    left = min(60, most - len(file) - len(" in "))
    behind = _cut(behind, max(left - _LEAST_NAMED, 3))
    if inlined_into := row.get("inlined_into"):
        head = " (inlined into "
        most_of_it = left - len(behind) - len(head) - 1 - min(len(place), _LEAST_NAMED)
        if most_of_it >= min(len(inlined_into[-1]), _LEAST_NAMED):
            behind = f"{head}{_named(inlined_into[-1], most_of_it)}){behind}"
    return f"{_named(place, max(left - len(behind), 4))}{behind} in {file}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _left(rows: Sequence[Sequence[str]]) -> int:
    """What these columns of a table, each with a blank behind it and one for a mark, leave of its width for another."""
    return (
        WIDTH
        - tables.INDENT
        - 1
        - sum(max(map(len, column)) + 2 for column in zip(*rows, strict=True))
    )


def _callers(rows: list) -> str:
    columns = [Column("bytes"), Column("calls"), Column("op", left=True), Column("from", left=True)]
    shown = rows[:CALLERS_SHOWN]
    figures = [[size_in_words(row["bytes"]), _count(row["calls"]), row["op"]] for row in shown]
    most = _left([[column.head for column in columns[:3]], *figures])
    body = [
        [*map(Figure, own), Figure(caller(row, most))]
        for own, row in zip(figures, shown, strict=True)
    ]
    return _table(layout(columns, body, WIDTH))


def busiest(rows: Sequence[Mapping]) -> list[Mapping]:
    """Which threads to tell of: none where there is but one."""
    return list(rows[:THREADS_SHOWN]) if sum(row["threads"] for row in rows) > 1 else []


def thread(row: Mapping) -> str:
    """`reader (3 threads, the busiest 41 % of these) in nginx`"""
    several = ""
    if row["threads"] > 1:
        share = row.get("most_bytes", 0) / row["bytes"] if row["bytes"] else 0
        busiest = f", the busiest {percent(share)} of these" if share else ""
        several = f" ({row['threads']:,} threads{busiest})"
    # The kernel takes any bytes as a name, and blanks alone too.
    name = "several names" if row["name"] is None else printable(row["name"]) or "?"
    return f"{name}{several} in {Path(row['program']).name}"


def _threads(rows: Sequence[Mapping]) -> str:
    columns = [Column("bytes"), Column("calls"), Column("thread", left=True)]
    figures = [[size_in_words(row["bytes"]), _count(row["calls"])] for row in rows]
    most = _left([[column.head for column in columns[:2]], *figures])
    body = [
        [*map(Figure, own), Figure(_cut(printable(thread(row)), most))]
        for own, row in zip(figures, rows, strict=True)
    ]
    return _table(layout(columns, body, WIDTH))


def _roughly(ceiling: Mapping) -> bool:
    """What timing adds to a small call is more than the call, so its own time is known but roughly (docs/record.md)."""
    parts = ceiling.get("parts") or ()
    small = sum(own["at_most_s"] for own in parts if (own["up_to"] or math.inf) <= SMALL)
    return (
        bool(ceiling.get("timed"))
        and small > ceiling["at_most_s"] / 2
        and ceiling["at_most"] >= NOTABLE
    )


def ceiling_in_words(ceiling: Mapping) -> str:
    """`at most 1.4 % of this run: ...`"""
    if ceiling["cpu_s"] <= 0:
        return "the run took no time that could be measured"
    if ceiling.get("unrecorded_s"):
        some = seconds(ceiling["unrecorded_s"])
        more = (
            f"but at least {some} of that are of processes that were not recorded, and may copy too"
        )
    elif ceiling.get("incomplete"):
        # Of the copies that were recorded; others may have taken time too.
        more = "but what was not recorded may copy too"
    elif ceiling["at_most"] >= 1 and ceiling.get("few_timed"):
        more = "too little is known of its largest calls to tell less"
    elif ceiling["at_most_s"] <= 0:
        more = "no copy was recorded, which is no proof that there was none"
    elif _roughly(ceiling):
        more = "of calls this small that is known within a factor of three, and rather too low"
    else:
        more = "even a free memcpy could gain no more"
    # Where others had their turns, and it makes a difference.
    alone = abs(ceiling.get("trial_s", 0)) >= 0.01 * ceiling["cpu_s"]
    run = (
        f"of this run ({seconds(ceiling['at_most_s'])} of {seconds(ceiling['cpu_s'])} of processor time of its own"
        f"{', with libc alone' * alone})"
    )
    if not ceiling.get("timed"):
        return (
            f"at most {percent(ceiling['at_most'])} {run}, about {percent(ceiling['likely'])} if the data lay in the "
            f"nearest cache: {more}"
        )
    return (
        f"at most {percent(ceiling['at_most'])} {run}, about {percent(ceiling['likely'])} without page faults, by "
        f"{_several(ceiling['timed'], 'timed call')}: {more}"
    )


def unrecorded_in_words(row: Mapping) -> str:
    # Of those that lived between two looks nobody knows.
    times = f"at least {_several(row['count'], 'process')}"
    if row["program"] == f"({UNNAMED})":
        return f"{times}, {UNNAMED}: {row['reason']}"
    return f"{row['program']} ({times}): {row['reason']}"


def show(document: Mapping, target: Path, merger: Merger, ran: Ran) -> None:
    def say(text: str = "") -> None:
        print(text, file=sys.stderr)

    def left_out(rows: int) -> None:
        if rows > 0:
            say(f"  and {rows:,} more, in the mix")
        say()

    def paragraph(label: str, text: str) -> None:
        indent = " " * 12
        say(
            # A figure keeps its unit: a blank that does not break, until the lines are made.
            textwrap.fill(
                UNIT.sub("\u00a0", f"{label + ' ':<12}{text}"),
                WIDTH,
                subsequent_indent=indent,
                break_on_hyphens=False,
                break_long_words=False,
            ).replace("\u00a0", " ")
        )

    run, ops = document["run"], document["ops"]
    say()
    runs = f" of {_several(ran.runs, 'run')}" if ran.runs > 1 else ""
    execs = f" (with {_several(merger.execs, 'exec')})" if merger.execs else ""
    ended = f"signal {ran.signal}" if ran.signal else f"exit status {run['exit']}"
    ended += (
        f" after {seconds(run['elapsed_s'])} (user {seconds(run['user_s'])}, "
        f"system {seconds(run['system_s'])})"
    )
    if run.get("collected"):
        # Of those that have ended nobody knows when they began.
        ended = (
            f"so far, {seconds(run['elapsed_s'])} after the first began"
            if run["elapsed_s"]
            else "none of it goes on"
        )
    if run.get("recovered"):
        ended = (
            "recovered, so that neither exit status nor times are known, and there is no ceiling"
        )
    paragraph(
        "recorded",
        f"{_several(sum(p['calls'] for p in ops.values()), 'call')} in "
        f"{_several(run['processes'], 'process')}{execs} and "
        f"{_several(run['threads'], 'thread')}{runs}; {ended}",
    )
    if ops:
        say()
        say(_ops(ops))
        say()
        if document["callers"]:
            say("Who called (estimated from one call in 61 and all of 16 KiB and more):")
            say(_callers(document["callers"]))
            left_out(len(document["callers"]) - CALLERS_SHOWN)
        if rows := busiest(document["threads"]):
            say("By thread, those of one name together:")
            say(_threads(rows))
            left_out(len(document["threads"]) - len(rows))
    elif run["uncounted"]:
        paragraph(
            "",
            "no call was counted: those that were made were of threads without a block (no room, memory or descriptor "
            "was left, files may be no larger, or a chroot hides the directory)",
        )
    else:
        paragraph(
            "",
            "no call was seen: nothing was copied through libc's names, or nothing could be recorded (a program that "
            "is started without LD_PRELOAD and ends within 20 ms is not even named)",
        )
    if document["ceiling"]:
        paragraph("ceiling", ceiling_in_words(document["ceiling"]))
        if document.get("trial"):
            said = [own for own in (turns.in_words(document), trial.in_words(document)) if own]
            for label, own in zip(("trial", ""), said, strict=False):
                paragraph(label, own)
    paragraph("not seen", unseen.in_words(run["unseen"]))
    for row in run["unrecorded"][:PROGRAMS_SHOWN]:
        paragraph("not recorded", printable(unrecorded_in_words(row)))
    if len(run["unrecorded"]) > PROGRAMS_SHOWN:
        more = _several(len(run["unrecorded"]) - PROGRAMS_SHOWN, "more program")
        paragraph("", f"and {more}, in the mix")
    if run["uncounted"]:
        paragraph(
            "not counted", f"{_several(run['uncounted'], 'call')} for which a thread had no block"
        )
    if ran.still:
        paragraph(
            "still there",
            f"{_several(ran.still, 'process')} outlived the command; what copies from here on is lost",
        )
    if run["exit"] == 128 + signal.SIGSYS:
        paragraph(
            "SIGSYS",
            "ended at a system call that it has forbidden itself (seccomp). The recorder makes some where a thread, a "
            "child or a file copies for the first time; a program that ends so with it alone cannot be recorded "
            "(wherry ab runs it with the drop-in and without)",
        )
    for line in merger.damaged[:DAMAGED_SHOWN]:
        paragraph("left out", line)
    if len(merger.damaged) > DAMAGED_SHOWN:
        more = _several(len(merger.damaged) - DAMAGED_SHOWN, "more process")
        paragraph("", f"and what {more} left")
    # On one line: it is there to be copied.
    words = shellwords.path(str(target))
    say(f"{'mix':<12}{words}" + (f" (next: wherry replay {words})" if ops else ""))
