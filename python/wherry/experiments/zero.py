"""Bruce Evans, 2003: every way to zero a buffer, at 4 KiB and at 8,192,000 bytes, in bytes a second and microseconds
for 10^8 bytes. The same buffer again and again, as he did, so that the small one is in L1. Then what he says of
i686_pagezero and of read-before-write: pages that are dirty and pages that are zero already, beside what memory gives
and takes."""

from __future__ import annotations

from wherry import sentences, tables
from wherry.campaign import Row
from wherry.experiments import Experiment, Request
from wherry.units import ns_label, percent, plural, size_in_words
from wherry.yardsticks import YARDSTICKS

SIZES = (4096, 8_192_000)
TOTAL = 10**8
# Of a few bytes 10^8 are up to 10^8 calls, and a round of all routines would take minutes.
MOST_CALLS = 10**6
BANDWIDTHS = ("read_bandwidth", "write_bandwidth", "write_nt_bandwidth")

PAGE = 4096
PAGE_STATES = ("L2", "DRAM")
CONTENTS = ("dirty", "mixed", "zero")
SCANNER = "i686_pagezero"
LINE_ZEROERS = ("clzero_zero",)
LOOKS_FIRST = ("pagezero:wherry", "pagezero:pagezero_sse2")
# So many names make a list that nobody reads.
MANY_TIED = 8
LOOKERS = ("wherry", "iszero_sse2", "iszero_avx2", "iszero_avx512")
VECTORS = ("avx512", "avx2", "sse2")


def calls_for(size: int) -> int:
    return min(max(TOTAL // size, 1), MOST_CALLS)


def _rate(cell: dict) -> float:
    return cell["bytes"] / cell["ns"]["median"] * 1e9


def _ns(cell: dict) -> float:
    return cell["ns"]["median"]


def _racing(cells: dict) -> dict:
    return {name: cell for name, cell in cells.items() if name not in YARDSTICKS}


class Zero(Experiment):
    def rows(self, request: Request) -> list[Row]:
        routines = self.chosen(request)
        if not request.routines and not request.all_routines:
            own = [r["name"] for r in request.catalogue if r["op"] == "zero"]
            routines = tuple(dict.fromkeys(["libc", *own, "wherry", *request.peers]))
        rows = []
        for _, destination in request.states or ((None, None),):
            for size in request.sizes or SIZES:
                common = {"rounds": self.round_count(request)}
                if destination:
                    common |= {"src_state": "L1", "dst_state": destination}
                else:
                    common |= {"walk": "stream", "buffer": size, "calls": calls_for(size)}
                own = self._with_bandwidths(self.fitting(routines, size, request))
                rows.append(Row(self.name, self.op, own, size, **common))
        return rows + self._page_rows(request)

    @staticmethod
    def _with_bandwidths(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*names, *BANDWIDTHS)))

    def _page_rows(self, request: Request) -> list[Row]:
        """None when the sizes asked for are not a page; a few pages in L1 are too short a pass for the clock."""
        if request.sizes and PAGE not in request.sizes:
            return []
        states = PAGE_STATES[:1] if request.quick else PAGE_STATES
        if request.states:
            states = [d for d in dict.fromkeys(d for _, d in request.states) if d != "L1"]
        here = {row["name"] for row in request.catalogue if not row.get("unavailable")}
        vectors = [v for v in VECTORS if f"{v}_zero" in here]
        own = ["rep_stosb", "rep_stosl", SCANNER, "unroll64"]
        own += [f"{v}_zero" for v in reversed(vectors)]
        own += [f"{v}_zero_nt" for v in vectors[:1]]
        own += [name for name in LINE_ZEROERS if name in here]
        chosen = request.choose(self.ops, [*own, "wherry"])
        if not request.routines and not request.all_routines:
            chosen += LOOKS_FIRST
        names = self._with_bandwidths(chosen)
        lookers = tuple(n for n in LOOKERS if n == "wherry" or n in here)
        looks = [
            Row(
                self.name,
                "iszero",
                (*lookers, "read_bandwidth"),
                PAGE,
                dst_state=state,
                content="zero",
                rounds=self.round_count(request),
            )
            for state in states
            if not request.routines and not request.all_routines
        ]
        return looks + [
            Row(
                self.name,
                self.op,
                names,
                PAGE,
                dst_state=state,
                content=content,
                rounds=self.round_count(request),
            )
            for state in states
            for content in CONTENTS
        ]

    def blocks(self, run: dict, width: int) -> list[tables.Block]:
        cells = tables.cells_of(run, self.name)
        ideas = (run.get("ideas") or {}) | YARDSTICKS
        floor = run["noise"]["floor"] or 0
        blocks = []
        pages: dict[str, dict[str, dict]] = {}
        looks: dict[str, dict] = {}
        for row in tables.rows_of(run, self.name):
            if row["op"] == "iszero":
                looks[row["dst_state"]] = cells[row["row"]]
            elif row.get("content", "any") == "any":
                blocks.append(self._block(row, cells[row["row"]], ideas, floor, width))
            else:
                place = row.get("dst_state", "a stream")
                pages.setdefault(place, {})[row["content"]] = row
        blocks += [self._pages(place, rows, cells, width) for place, rows in pages.items()]
        return blocks + ([self._looks(looks, width)] if looks else [])

    def _block(self, row: dict, cells: dict, ideas: dict, floor: float, width: int) -> tables.Block:
        name_width = max(len(name) for name in cells)
        rate_width = max(len(f"{_rate(cell):.0f}") for cell in cells.values())
        calls = calls_for(row["size"])
        lines = []
        for name, cell in cells.items():
            mark = tables.figure("", name, row)
            text = (
                f"  {name:<{name_width}}: {_rate(cell):>{rate_width}.0f} B/s{mark.mark}"
                f"({_ns(cell) * calls / 1000:>7.0f} us)"
            )
            idea = ideas.get(name, "").split(";")[0]
            room = width - len(text) - 3
            if len(idea) > room:
                idea = idea[: max(room - 3, 0)].rsplit(" ", 1)[0] + "..." if room > 12 else ""
            lines.append(
                [tables.Span(text, mark.style), tables.Span(f" ({idea})" if idea else "", "dim")]
            )
        where = (
            "the same buffer each time"
            if row["walk"] == "stream"
            else f"buffers in {row['dst_state']}"
        )
        size = f"{plural(row['size'], 'byte')} ({size_in_words(row['size'])})"
        return tables.Block(
            f"zero: {size}, {where}; us for {calls:,} calls"
            + (", about 10^8 bytes" if row["size"] * MOST_CALLS >= TOTAL else ""),
            lines,
            self._said(row, _racing(cells), floor),
        )

    @staticmethod
    def _said(row: dict, cells: dict, floor: float) -> list[str]:
        own = sorted(cells, key=lambda n: _ns(cells[n]))
        said = []
        if row["fastest"]:
            lead = sentences.times_as(row["lead"]["median"]) if row["lead"] else ""
            said.append(f"{row['fastest']} was fastest{', ' + lead + ' the next' if lead else ''}.")
        elif row["tied"]:
            tied = row["tied"]
            others = [name for name in cells if name not in tied]
            who = sentences.join(tied)
            if len(tied) > MANY_TIED:
                rest = sentences.join(others) if len(others) < MANY_TIED else ""
                who = f"{len(tied)} of {len(cells)} routines" + (
                    f", all but {rest}," if rest else ""
                )
            said.append(f"{who} tied for the first place.")
        if unsure := row.get("unsure"):
            who = sentences.join(unsure)
            if len(unsure) > MANY_TIED:
                who = f"{len(unsure)} of {len(cells)} routines"
            said.append(
                f"Whether {who} {'is' if len(unsure) == 1 else 'are'} as fast is undecided."
                if row["tied"]
                else f"Which of {who} is the fastest is undecided."
            )
        if "libc" in cells and len(own) > 1 and not row.get("undecided"):
            loss = _ns(cells["libc"]) / _ns(cells[own[0]])
            if "libc" in (row["fastest"], *row["tied"]) or loss <= 1 + floor:
                said.append("libc loses nothing here.")
            elif "libc" in row.get("unsure", ()):
                said.append(
                    f"libc took {sentences.slower_than(loss)} {own[0]}, but perhaps by chance."
                )
            else:
                said.append(f"libc took {sentences.slower_than(loss)} {own[0]}.")
        if len(own) > 2 and not row.get("undecided"):
            spread = _ns(cells[own[-1]]) / _ns(cells[own[0]])
            said.append(
                f"The slowest, {own[-1]}, took {sentences.slower_than(spread)} the fastest."
            )
        return said

    # ---- page-zero --------------------------------------------------------------------------------------------------

    def _pages(self, place: str, rows: dict[str, dict], cells: dict, width: int) -> tables.Block:
        """Dirty beside already zero; what differs between the two columns is only what the page held."""
        by_content = {content: cells[row["row"]] for content, row in rows.items()}
        names = tables.routines_in(dict(enumerate(by_content.values())))
        columns = [tables.Column("routine", left=True)]
        for content in CONTENTS:
            columns += [tables.Column(content, "ns/page"), tables.Column(content, "GB/s")]
        columns.append(tables.Column("zero/dirty", "time"))
        body = []
        for name in names:
            line = [tables.Figure(name)]
            found = [by_content.get(content, {}).get(name) for content in CONTENTS]
            for content, cell in zip(CONTENTS, found, strict=True):
                if cell is None:
                    line += [tables.MISSING, tables.MISSING]
                    continue
                line.append(tables.figure(ns_label(_ns(cell)), name, rows[content]))
                line.append(tables.Figure(f"{_rate(cell) / 1e9:.1f}", style=line[-1].style))
            line.append(
                tables.MISSING
                if found[0] is None or found[-1] is None
                else tables.Figure(f"{_ns(found[-1]) / _ns(found[0]):.2f}")
            )
            if name in YARDSTICKS:
                line = [tables.Figure(f.text, f.mark, "dim") for f in line]
            body.append(line)
        said = []
        if all(content in by_content for content in CONTENTS):
            said = [self._scanning(by_content), self._bandwidths(place, by_content)]
        return tables.Block(
            f"page-zero: pages of {PAGE:,} bytes in {place}, dirty and already zero",
            tables.layout(columns, body, width),
            [s for s in said if s],
            ["mixed: a quarter of the lines dirty, at random, the others zero"]
            if "mixed" in by_content
            else [],
        )

    @staticmethod
    def _looks(looks: dict[str, dict], width: int) -> tables.Block:
        """iszero of pages that are zero, beside plain loads of as many bytes."""
        columns = [tables.Column("routine", left=True)]
        for state in looks:
            columns += [
                tables.Column(state, "ns/page"),
                tables.Column(state, "GB/s"),
                tables.Column("of loads", "%"),
            ]
        body = []
        for name in tables.routines_in(dict(enumerate(looks.values()))):
            line = [tables.Figure(name)]
            for cells in looks.values():
                cell, loads = cells.get(name), cells.get("read_bandwidth")
                if cell is None:
                    line += [tables.MISSING] * 3
                    continue
                line.append(tables.Figure(ns_label(_ns(cell))))
                line.append(tables.Figure(f"{_rate(cell) / 1e9:.1f}"))
                line.append(
                    tables.Figure(f"{100 * _ns(loads) / _ns(cell):.0f}")
                    if loads
                    else tables.MISSING
                )
            body.append(line)
        return tables.Block(
            f"iszero: pages of {PAGE:,} bytes that are zero, beside plain loads",
            tables.layout(columns, body, width),
        )

    @staticmethod
    def _scanning(by_content: dict[str, dict]) -> str:
        """His words: faster if the buffer is already all zeros and otherwise slower."""
        parts = []
        for content, words in (("zero", "on pages already zero"), ("dirty", "on dirty ones")):
            own = _racing(by_content[content])
            others = [name for name in own if name != SCANNER]
            if SCANNER not in own or not others:
                return ""
            best = min(others, key=lambda name: _ns(own[name]))
            ratio = _ns(own[SCANNER]) / _ns(own[best])
            time = f"{percent(1 - ratio)} less than" if ratio < 1 else sentences.slower_than(ratio)
            parts.append(f"{time} {best} {words}")
        clean, dirty = (_ns(by_content[content][SCANNER]) for content in ("zero", "dirty"))
        saved = f"{percent(1 - clean / dirty)} of" if clean < dirty else "none of"
        return (
            f"{SCANNER}, which scans first, saves {saved} its time when there is nothing to write; it "
            f"took {parts[0]} and {parts[1]} (Evans: faster if all zeros, otherwise slower)."
        )

    @staticmethod
    def _bandwidths(place: str, by_content: dict[str, dict]) -> str:
        own = by_content["dirty"]
        if any(name not in own for name in BANDWIDTHS):
            return ""
        read, write, past = (_rate(own[name]) for name in BANDWIDTHS)
        evans = ""
        if place == "DRAM":
            evans = " (Evans: less than half, since a write read the line first)"
        return (
            f"Stores run at {percent(write / read)} of the bandwidth of loads{evans}, "
            f"and past the caches at {percent(past / read)}."
        )


EXPERIMENT = Zero(
    name="zero",
    after="Evans 2003",
    shows="every way to zero 4,096 and 8,192,000 bytes, in bytes/s and us for 10^8 bytes; pages dirty "
    "and already zero; read and write bandwidth",
    op="zero",
    ops=("zero", "set"),
    routines=("wherry",),
    processes=3,
    rounds=7,
)
