"""How calls differ from each other: each is timed by itself, and told is what so many per cent of them take at most. A
mean hides the branch that is guessed wrong now and then, and the line that is not in the cache."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

from wherry import dimensions, sentences, tables
from wherry.campaign import Row
from wherry.experiments import Experiment, Request
from wherry.row import PERCENTILES
from wherry.scoreboard.listed import FUNCTIONS
from wherry.yardsticks import YARDSTICKS

FLOOR = "call_floor"
SIZES = (64, 1024, 8192)
MIX = "uniform:0-256"
STATES = (("L1", "L1"), ("DRAM", "DRAM"))
# Of a quick run the least and the most of what is told.
TOLD, QUICK = PERCENTILES[:4], ("p50", "p99.9")


class Percentiles(Experiment):
    takes = frozenset({"routines", "sizes", "states", "ops", "mixes", "isa"})
    weight = 0.8
    quick_processes = 2
    quick_rounds = 5

    def rows(self, request: Request) -> list[Row]:
        ops = request.ops or ("copy",)
        self.check_named(request, ops, sentences.join(list(ops)))
        rows = []
        for op in ops:
            names = tuple(dict.fromkeys([*request.beside_strings(op), FLOOR]))
            for source, destination in request.states or STATES:
                for call in request.calls(op, SIZES, MIX):
                    own = Row(
                        self.name,
                        op,
                        self.fitting(names, call.get("size", 0), request),
                        src_state=destination if op == "set" else source,
                        dst_state=destination,
                        rounds=self.round_count(request),
                        **call,
                    )
                    rows += [replace(own, mode=mode) for mode in (QUICK if request.quick else TOLD)]
        return list(dict.fromkeys(rows))

    def blocks(self, run: dict, width: int) -> list[tables.Block]:
        cells = tables.cells_of(run, self.name)
        groups: dict[tuple[str, str], list[dict]] = {}
        for row in tables.rows_of(run, self.name):
            groups.setdefault((row["op"], dimensions.states(row)), []).append(row)
        found = [_block(op, state, rows, cells, run, width) for (op, state), rows in groups.items()]
        if found:
            found[-1].notes += _notes(cells)
        return found


def _label(row: dict) -> str:
    return f"{tables.call(row)} {row['mode']}"


def _block(op, state, rows, cells, run, width) -> tables.Block:
    names = tables.routines_in({row["row"]: cells[row["row"]] for row in rows})
    names.sort(key=lambda name: name in YARDSTICKS)
    columns = [tables.Column("size", "bytes", left=True), tables.Column("", left=True)]
    columns += [tables.Column(tables.stacked(name), "ns") for name in names]
    body, last = [], ""
    for row in rows:
        call = tables.call(row)
        body.append(
            [
                tables.Figure("" if call == last else call, style="title"),
                tables.Figure(row["mode"]),
                *(tables.time(cells[row["row"]], name, row) for name in names),
            ]
        )
        last = call
    said = [
        sentences.leaders(rows, _label),
        sentences.libc_loss(rows, cells, _label, run["noise"]["floor"] or 0),
        _spread(rows, cells, names),
    ]
    return tables.Block(
        f"percentiles: {FUNCTIONS[op]}, ns of calls that are timed one by one, in {state}",
        tables.layout(columns, body, width),
        [text for text in said if text],
    )


def _spread(rows: list[dict], cells: dict, names: list[str]) -> str:
    """How much longer than the median the slowest take that are told."""
    by_call: dict[str, list[dict]] = {}
    for row in rows:
        by_call.setdefault(tables.call(row), []).append(row)
    parts = []
    for call, own in by_call.items():
        first, last = own[0], own[-1]
        ratios = {
            name: cells[last["row"]][name]["ns"]["median"]
            / cells[first["row"]][name]["ns"]["median"]
            for name in names
            if name not in YARDSTICKS and all(name in cells[row["row"]] for row in (first, last))
        }
        if len(own) < 2 or not ratios:
            continue
        least, most = (pick(ratios, key=lambda name: ratios[name]) for pick in (min, max))
        told = f"{ratios[least]:.1f} ({least}) to {ratios[most]:.1f} ({most})"
        if f"{ratios[least]:.1f}" == f"{ratios[most]:.1f}":
            told = f"{ratios[most]:.1f}"
        parts.append(f"{told} times at {call}")
    ends = (rows[0]["mode"], rows[-1]["mode"])
    return f"{ends[1]} over {ends[0]}: {sentences.join(parts)}." if parts else ""


def _notes(cells: dict) -> list[str]:
    every = [cell for own in cells.values() for cell in own.values()]
    floors = [own[FLOOR]["ns"]["median"] for own in cells.values() if FLOOR in own]
    steps = [step for cell in every if (step := (cell.get("parts") or {}).get("step_ns"))]
    told = "each call begins when all before it has ended, its stores too"
    if floors:
        told += f"; timing it takes {median(floors):.0f} ns, which {FLOOR} shows and every figure has in it"
    if steps and max(steps) >= 1:
        told += (
            f"; the counter goes by steps of {max(steps):.0f} ns, and where calls differ among themselves a figure "
            "beyond p50 may be off by one of them"
        )
    return [told]


EXPERIMENT = Percentiles(
    name="percentiles",
    after="",
    shows="what 50, 90, 99 and 99.9 of 100 calls take at most, each timed by itself, for single sizes and "
    "unpredictable ones, in L1 and in memory",
    op="copy",
    ops=("copy", "move", "set"),
    routines=("rep_movsb", "wherry"),
    processes=5,
    rounds=7,
)
