"""Mala Anand and Andrew Morton, 2002: a copy at every source and destination alignment, 0 to 63 bytes past a line,
with each side cached or not; and Anand's own row, 1448 bytes in cycles, `movsl` aligned and not, and integers."""

from __future__ import annotations

import itertools
from statistics import median

from wherry import sentences, tables
from wherry.campaign import Row
from wherry.clock import clock_of
from wherry.experiments import Experiment, Request
from wherry.units import ns_label, percent
from wherry.yardsticks import LEVEL, YARDSTICKS

SIZE = 1448
STATES = (("L1", "L1"), ("DRAM", "L1"), ("L1", "DRAM"), ("DRAM", "DRAM"))
NAMES = {
    ("L1", "L1"): "both cached",
    ("DRAM", "L1"): "source cold",
    ("L1", "DRAM"): "destination cold",
    ("DRAM", "DRAM"): "both cold",
}
# Upper ends of the ten shades, as multiples of the best of the state over all routines.
SHADES = (1.05, 1.10, 1.20, 1.35, 1.50, 1.75, 2.0, 3.0, 5.0)
GLYPHS = ".:-=+*oO%@"
MAP_SIDE = 16


def state_name(pair: tuple[str, str]) -> str:
    return NAMES.get(pair, f"{pair[0]} to {pair[1]}")


def _pair(offsets: tuple[int, int]) -> str:
    return f"{offsets[0]},{offsets[1]}"


def _shade(ratio: float) -> int:
    return next((i for i, top in enumerate(SHADES) if ratio <= top), len(SHADES))


class _Grid:
    """One routine in one state: nanoseconds by (source, destination) offset."""

    def __init__(self) -> None:
        self.ns: dict[tuple[int, int], float] = {}

    def offsets(self, side: int) -> list[int]:
        return sorted({key[side] for key in self.ns})

    def best(self) -> tuple[float, tuple[int, int]]:
        return min((value, key) for key, value in self.ns.items())

    def worst(self) -> tuple[float, tuple[int, int]]:
        return max((value, key) for key, value in self.ns.items())

    def median(self) -> float:
        return median(self.ns.values())

    def pick(self, aligned: bool) -> float | None:
        """Anand's distinction: both sides a multiple of 8, or not."""
        found = [v for (s, d), v in self.ns.items() if (s % 8 == 0 and d % 8 == 0) == aligned]
        return median(found) if found else None


def _grids(run: dict, name: str, size: int) -> dict[tuple[str, str], dict[str, _Grid]]:
    found: dict[tuple[str, str], dict[str, _Grid]] = {}
    for cell in run["cells"]:
        if cell["experiment"] != name or cell["aa"] or cell["size"] != size:
            continue
        if cell["routine"] in YARDSTICKS:
            continue
        state = cell["src_state"], cell["dst_state"]
        grid = found.setdefault(state, {}).setdefault(cell["routine"], _Grid())
        grid.ns[cell["src_off"], cell["dst_off"]] = cell["ns"]["median"]
    return found


class Alignment(Experiment):
    quick_processes = 2
    quick_rounds = 5

    def rows(self, request: Request) -> list[Row]:
        routines = self.chosen(request)
        # Multiples of 8 are what Anand calls aligned: without a few others --quick would see no misaligned copy.
        offsets = range(0, 64, 8) if request.quick else range(64)
        extra = (
            [(s, d) for s, d in ((1, 0), (0, 1), (1, 1), (4, 0), (0, 4))] if request.quick else []
        )
        pairs = [(s, d) for s in offsets for d in offsets] + extra

        def of(size: int) -> tuple[str, ...]:
            own = self.fitting(routines, size, request)
            return own if LEVEL in own else (*own, LEVEL)

        return [
            Row(
                self.name,
                self.op,
                of(size),
                size,
                src_off=s,
                dst_off=d,
                src_state=source,
                dst_state=destination,
                **self._samples("DRAM" in (source, destination), request),
            )
            for size in request.sizes or (SIZE,)
            for source, destination in request.states or STATES
            for s, d in pairs
        ]

    def _samples(self, in_dram: bool, request: Request) -> dict[str, int]:
        """Of a few hundred calls into DRAM where their slots lie settles what they cost: longer samples there."""
        return {
            "rounds": self.round_count(request),
            "batch_us": 100 if in_dram and not request.quick else 50,
        }

    def blocks(self, run: dict, width: int) -> list[tables.Block]:
        sizes = sorted({row["size"] for row in tables.rows_of(run, self.name)})
        blocks = []
        for size in sizes:
            grids = _grids(run, self.name, size)
            blocks.append(self._map(grids, size, width))
            blocks.append(self._summary(run, grids, size, width))
            blocks.append(self._cycles(run, grids, size, width))
        return [block for block in blocks if block]

    def _map(self, grids, size: int, width: int) -> tables.Block:
        """A line of maps for each routine, one map a state; down the source offset, across the destination's."""
        lines: list[tables.Line] = []
        best = {state: min(g.best()[0] for g in of.values()) for state, of in grids.items()}
        routines = list(dict.fromkeys(name for of in grids.values() for name in of))
        per_line = max(1, (width - 6) // (MAP_SIDE + 3))
        states = list(grids)
        step_shown = ""
        for routine in routines:
            for start in range(0, len(states), per_line):
                part = [s for s in states[start : start + per_line] if routine in grids[s]]
                if not part:
                    continue
                lines.append([])
                lines.append([tables.Span(f"  {routine}", "title")])
                lines.append(
                    [
                        tables.Span(
                            "      " + "   ".join(state_name(s).ljust(MAP_SIDE) for s in part),
                            "dim",
                        )
                    ]
                )
                drawn = [_draw(grids[s][routine], best[s]) for s in part]
                step_shown = drawn[0][2]
                for i in range(max(len(d[1]) for d in drawn)):
                    label = next((d[0][i] for d in drawn if i < len(d[0])), "")
                    line = [tables.Span(f"  {label:>2}  ", "dim")]
                    for _, picture, _ in drawn:
                        if i < len(picture):
                            line += [*picture[i], tables.Span("   ")]
                    lines.append(line)
        scale: tables.Line = [tables.Span("  time over the best of the state: ")]
        for i, glyph in enumerate(GLYPHS):
            word = f"<={SHADES[i]:g}" if i < len(SHADES) else f">{SHADES[-1]:g}"
            scale += [tables.Span(glyph * 2, f"heat{i}"), tables.Span(f" {word} ")]
        lines += [[], *_wrapped(scale, width)]
        return tables.Block(
            f"alignment: copy of {size} bytes; down the source's offset in a 64-byte line, "
            f"across the destination's, {step_shown}",
            lines,
        )

    def _summary(self, run, grids, size: int, width: int) -> tables.Block:
        columns = [
            tables.Column("state", left=True),
            tables.Column("routine", left=True),
            tables.Column("best", "ns"),
            tables.Column("at", "src,dst"),
            tables.Column("median", "ns"),
            tables.Column("worst", "ns"),
            tables.Column("at", "src,dst"),
            tables.Column("worst/best"),
        ]
        body = []
        for state, of in grids.items():
            lowest = min(grid.median() for grid in of.values())
            for i, (name, grid) in enumerate(of.items()):
                best, worst = grid.best(), grid.worst()
                body.append(
                    [
                        tables.Figure("" if i else state_name(state)),
                        tables.Figure(name),
                        tables.Figure(ns_label(best[0])),
                        tables.Figure(_pair(best[1])),
                        tables.Figure(
                            ns_label(grid.median()), style="lead" if grid.median() == lowest else ""
                        ),
                        tables.Figure(ns_label(worst[0])),
                        tables.Figure(_pair(worst[1])),
                        tables.Figure(f"{worst[0] / best[0]:.2f}"),
                    ]
                )
        return tables.Block(
            f"alignment: {size} bytes by routine and state",
            tables.layout(columns, body, width),
            self._said(run, grids),
        )

    def _said(self, run, grids) -> list[str]:
        said = []
        floor = run["noise"]["floor"] or 0
        for state, of in grids.items():
            ranked = sorted(of, key=lambda name: of[name].median())
            if len(ranked) < 2:
                continue
            lead = of[ranked[1]].median() / of[ranked[0]].median()
            if lead > 1 + floor:
                text = f"{ranked[0]} had the best median, {sentences.times_as(lead)} {ranked[1]}"
            else:
                text = f"{ranked[0]} and {ranked[1]} tied"
            if "libc" in of and ranked[0] != "libc":
                loss = of["libc"].median() / of[ranked[0]].median()
                if loss > 1 + floor:
                    text += f" (libc: {percent(loss - 1)} slower)"
            place = state_name(state)
            said.append(f"{place[0].upper()}{place[1:]}: {text}.")
        both = grids.get(("L1", "L1"), {})
        if both:
            spread = {name: grid.worst()[0] / grid.best()[0] for name, grid in both.items()}
            name = max(spread, key=spread.get)
            said.append(
                f"Alignment matters most to {name}: cached, its worst pair takes "
                f"{sentences.slower_than(spread[name])} its best."
            )
        return said

    def _cycles(self, run, grids, size: int, width: int) -> tables.Block | None:
        """Her table: method, aligned, cycles."""
        clock = clock_of(run)
        warm = grids.get(("L1", "L1"), {})
        body = []
        for name, word in (("rep_movsl", "movsl"), ("int_prefetch64_from", "integer")):
            grid = warm.get(name)
            for aligned in (True, False):
                ns = grid.pick(aligned) if grid else None
                if ns is None:
                    continue
                body.append(
                    [
                        tables.Figure(f"{word} ({name})"),
                        tables.Figure("yes" if aligned else "no"),
                        tables.Figure(ns_label(ns)),
                        tables.Figure(f"{clock.cycles(ns):.0f}") if clock.ghz else tables.MISSING,
                    ]
                )
        if not body or not clock.ghz:
            return None
        columns = [
            tables.Column("method", left=True),
            tables.Column("aligned", left=True),
            tables.Column("time", "ns"),
            tables.Column("cycles"),
        ]
        return tables.Block(
            f"alignment: {size} bytes, both cached, in cycles",
            tables.layout(columns, body, width),
            notes=[
                "aligned: source and destination multiples of 8; medians over the pairs",
                clock.in_words(),
            ],
        )


def _draw(grid: _Grid, best: float) -> tuple[list[str], list[tables.Line], str]:
    """(labels, lines, step in words). Offsets that are not on the even grid are left to the summary."""
    sources, destinations = grid.offsets(0), grid.offsets(1)
    coarse = [s for s in sources if s % 8 == 0]
    if len(sources) < 64 and set(coarse) <= set(sources):
        sources, destinations = coarse, [d for d in destinations if d % 8 == 0]
    step = max(1, -(-len(sources) // MAP_SIDE))
    wide = max(1, MAP_SIDE // max(1, -(-len(destinations) // step)))
    labels, lines = [], []
    for i in range(0, len(sources), step):
        line: tables.Line = []
        for j in range(0, len(destinations), step):
            values = [
                grid.ns[s, d]
                for s in sources[i : i + step]
                for d in destinations[j : j + step]
                if (s, d) in grid.ns
            ]
            if values:
                # The worst of a block: a map that hides the bad alignments would show nothing.
                shade = _shade(max(values) / best)
                line.append(tables.Span(GLYPHS[shade] * wide, f"heat{shade}"))
            else:
                line.append(tables.Span(" " * wide))
        labels.append(str(sources[i]))
        lines.append(line)
    words = (
        f"each character the worst of {step} x {step}"
        if step > 1
        else "step 8"
        if len(sources) == 8
        else "step 1"
    )
    return labels, lines, words


def _wrapped(line: tables.Line, width: int) -> list[tables.Line]:
    """Before a shade whose word does not fit on the line with it."""
    lines: list[tables.Line] = [[]]
    used = 0
    for span, word in itertools.zip_longest(line, line[1:]):
        if span.style and used + len(span.text) + len(word.text if word else "") > width:
            lines.append([tables.Span("    ")])
            used = 4
        lines[-1].append(span)
        used += len(span.text)
    return lines


EXPERIMENT = Alignment(
    name="alignment",
    after="Anand and Morton 2002",
    shows="copy of 1448 bytes at every source and destination offset 0-63, each side cached or not, as a heat map",
    op="copy",
    ops=("copy", "move"),
    routines=("wherry", "rep_movsb", "rep_movsl", "int_prefetch64_from"),
    processes=5,
    rounds=10,
)
