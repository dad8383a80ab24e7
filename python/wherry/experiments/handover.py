"""What copies take whose source another CPU has just written, or whose destination it has just read: a thread hands
data to another. The lines then lie in the caches of that CPU, or of both, which no other state is like."""

from __future__ import annotations

from wherry import dimensions, product, sentences, tables
from wherry.campaign import Row
from wherry.errors import WherryError
from wherry.experiments import Experiment, Request
from wherry.scoreboard.listed import FUNCTIONS

SIZES = (64, 256, 1024, 4096, 16384, 65536)
MIX = "uniform:0-1024"
SIDES = ("none", "source", "destination", "both")
SAID = {
    "none": "no other CPU uses either side",
    "source": "another CPU has just written the source",
    "destination": "another CPU has just read the destination",
    "both": "another CPU has just written the source and read the destination",
}


class Handover(Experiment):
    takes = frozenset({"routines", "sizes", "states", "ops", "mixes", "isa"})
    weight = 0.8
    quick_processes = 2
    quick_rounds = 5

    def rows(self, request: Request) -> list[Row]:
        ops = request.ops or ("copy",)
        states = request.states or (("L2", "L2"),)
        self.check_named(request, ops, sentences.join(list(ops)))
        if any("DRAM" in pair for pair in states):
            raise WherryError(
                f"{self.name}: what lies in DRAM no CPU hands over; give --state L1, L2 or L3"
            )
        rows = []
        for op in ops:
            names = request.beside_strings(op)
            rows += [
                Row(
                    self.name,
                    op,
                    self.fitting(names, call.get("size", 0), request),
                    src_state=destination if op in product.FILLS else source,
                    dst_state=destination,
                    handed=sides,
                    rounds=self.round_count(request),
                    **call,
                )
                for source, destination in states
                for sides in (("none", "destination") if op in product.FILLS else SIDES)
                for call in request.calls(op, SIZES, MIX)
            ]
        return list(dict.fromkeys(rows))

    def blocks(self, run: dict, width: int) -> list[tables.Block]:
        cells = tables.cells_of(run, self.name)
        groups: dict[tuple[str, str, str], list[dict]] = {}
        for row in tables.rows_of(run, self.name):
            key = (row["op"], dimensions.states(row), row.get("handed", "none"))
            groups.setdefault(key, []).append(row)
        return [
            _block(key, rows, groups.get((*key[:2], "none"), []), cells, run, width)
            for key, rows in groups.items()
        ]


def _block(key, rows, undisturbed, cells, run, width) -> tables.Block:
    op, state, sides = key
    names = tables.routines_in({row["row"]: cells[row["row"]] for row in rows})
    columns = [tables.Column("size", "bytes", left=True)]
    columns += [tables.Column(tables.stacked(name), "ns") for name in names]
    body = [
        [
            tables.Figure(tables.call(row), style="title"),
            *(tables.time(cells[row["row"]], name, row) for name in names),
        ]
        for row in rows
    ]
    said = [
        sentences.leaders(rows, tables.call),
        sentences.libc_loss(rows, cells, tables.call, run["noise"]["floor"] or 0),
        "" if sides == "none" else _cost(rows, undisturbed, cells),
    ]
    return tables.Block(
        f"handover: {FUNCTIONS[op]}, ns, in {state}: {SAID[sides]}",
        tables.layout(columns, body, width),
        [text for text in said if text],
    )


def _cost(rows: list[dict], undisturbed: list[dict], cells: dict) -> str:
    """How many times as long the quickest of each size takes as the quickest where nobody else uses the lines."""
    before = {tables.call(row): row for row in undisturbed}
    parts = []
    for row in rows:
        call = tables.call(row)
        if call not in before:
            continue
        own, other = (
            min(cell["ns"]["median"] for cell in cells[one["row"]].values())
            for one in (row, before[call])
        )
        parts.append(f"{own / other:.1f} times at {call}")
    if not parts:
        return ""
    return (
        f"The quickest of each size takes {sentences.join(parts)} what it takes where nobody else "
        "uses these lines."
    )


EXPERIMENT = Handover(
    name="handover",
    after="",
    shows="what copies take whose source another CPU has just written, or whose destination it has "
    "just read, beside those that nobody else uses",
    op="copy",
    ops=("copy", "move", "set"),
    routines=("rep_movsb", "wherry"),
    processes=5,
    rounds=7,
)
