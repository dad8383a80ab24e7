"""Bruce Evans, 2003: every way to zero a buffer, at 4 KiB and at 8,192,000 bytes, in bytes a second and microseconds
for 10^8 bytes. The same buffer again and again, as he did, so that the small one is in L1."""

from __future__ import annotations

from wherry import sentences, tables
from wherry.campaign import Row
from wherry.experiments import Experiment, Request
from wherry.units import size_in_words

SIZES = (4096, 8_192_000)
TOTAL = 10**8


def calls_for(size: int) -> int:
    return max(TOTAL // size, 1)


def _rate(cell: dict) -> float:
    return cell["bytes"] / cell["ns"]["median"] * 1e9


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
                own = self.fitting(routines, size, request)
                rows.append(Row(self.name, self.op, own, size, **common))
        return rows

    def blocks(self, run: dict, width: int) -> list[tables.Block]:
        cells = tables.cells_of(run, self.name)
        ideas = run.get("ideas") or {}
        return [
            self._block(row, cells[row["row"]], ideas, run["noise"]["floor"] or 0, width)
            for row in tables.rows_of(run, self.name)
        ]

    def _block(self, row: dict, cells: dict, ideas: dict, floor: float, width: int) -> tables.Block:
        name_width = max(len(name) for name in cells)
        rate_width = max(len(f"{_rate(cell):.0f}") for cell in cells.values())
        calls = calls_for(row["size"])
        lines = []
        for name, cell in cells.items():
            mark = tables.figure("", name, row)
            text = (
                f"  {name:<{name_width}}: {_rate(cell):>{rate_width}.0f} B/s{mark.mark}"
                f"({cell['ns']['median'] * calls / 1000:>7.0f} us)"
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
        size = f"{row['size']:,} bytes ({size_in_words(row['size'])})"
        return tables.Block(
            f"zero: {size}, {where}; us for {calls:,} calls, about 10^8 bytes",
            lines,
            self._said(row, cells, floor),
        )

    @staticmethod
    def _said(row: dict, cells: dict, floor: float) -> list[str]:
        own = sorted(cells, key=lambda n: cells[n]["ns"]["median"])
        said = []
        if row["fastest"]:
            lead = sentences.times_as(row["lead"]["median"]) if row["lead"] else ""
            said.append(f"{row['fastest']} was fastest{', ' + lead + ' the next' if lead else ''}.")
        elif row["tied"]:
            said.append(f"{sentences.join(row['tied'])} tied for the first place.")
        if "libc" in cells and len(own) > 1:
            loss = cells["libc"]["ns"]["median"] / cells[own[0]]["ns"]["median"]
            if "libc" in (row["fastest"], *row["tied"]) or loss <= 1 + floor:
                said.append("libc loses nothing here.")
            else:
                said.append(f"libc took {sentences.slower_than(loss)} {own[0]}.")
        if len(own) > 2:
            spread = cells[own[-1]]["ns"]["median"] / cells[own[0]]["ns"]["median"]
            said.append(
                f"The slowest, {own[-1]}, took {sentences.slower_than(spread)} the fastest."
            )
        return said


EXPERIMENT = Zero(
    name="zero",
    after="Evans 2003",
    shows="every way to zero 4,096 and 8,192,000 bytes, in bytes/s and us for 10^8 bytes",
    op="zero",
    ops=("zero", "set"),
    routines=("wherry",),
    processes=3,
    rounds=7,
)
