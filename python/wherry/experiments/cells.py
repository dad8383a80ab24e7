"""Whatever is asked for: every combination of what the options give, one row of the table each."""

from __future__ import annotations

import itertools
from dataclasses import replace

from wherry import dimensions, product, sentences, tables
from wherry.campaign import Row
from wherry.errors import WherryError
from wherry.experiments import Experiment, Request
from wherry.row import RATELESS
from wherry.units import ns_label, plural, rate_label, size_label
from wherry.yardsticks import YARDSTICKS

SIZES = (8, 64, 256, 1024, 4096, 16384)
# Of the public call beside libc; an op that libc has none for has no libc.
_SAME = {"copy": ("copy", "move"), "zero": ("zero", "set")}
_HEADS = {
    "table": ("table", "entries"),
    "src_off": ("source", "offset"),
    "dst_off": ("dest.", "offset"),
    "delta": ("dst-src", "mod 4096"),
    "overlap": ("overlap", "bytes"),
    "threads": ("threads", ""),
    "handed_by": ("handed by", "CPU"),
    "huge": ("huge", "pages"),
    "cpu": ("CPU", ""),
}
_ORDER = ("op", "size", "mix", "table", "src_off", "dst_off", "delta", "overlap", "state")
_ORDER += (
    "places",
    "ascending",
    "handed",
    "handed_by",
    "content",
    "code",
    "mode",
    "threads",
    "huge",
    "cpu",
)


_USUAL = {"delta": "any", "overlap": "apart", "content": "any", "code": "warm"}
_USUAL |= {"places": "repeat", "ascending": "none", "handed": "none"}


def _value(row: dict, key: str) -> str:
    if key == "state":
        return dimensions.states(row).replace(" → ", "/")
    if key not in row:
        return _USUAL.get(key, "-")
    value = row[key]
    if key in ("size", "table"):
        return size_label(value) if key == "size" else f"{value:,}"
    if key == "overlap":
        return f"{value:+}"
    if key == "huge":
        return "yes" if value else "no"
    return str(value).removeprefix("@")


class Cells(Experiment):
    takes = frozenset({"product", "routines", "sizes", "states", "ops", "mixes", "isa"}) | {
        *("src_offs", "dst_offs", "deltas", "overlaps", "modes", "threads", "huges", "tables"),
        *("codes", "contents", "places", "ascending", "handed", "handed_by"),
    }
    weight = 0.0  # there is nothing to measure unless somebody says what
    quick_processes = 2
    quick_rounds = 5

    def rows(self, request: Request) -> list[Row]:
        asked = request.product or product.Product()
        own = replace(
            asked,
            ops=asked.ops or ("copy",),
            sizes=asked.sizes or (() if asked.mixes else SIZES),
        )
        states = request.states or (("L1", "L1") if set(own.handed) <= {"none"} else ("L2", "L2"),)
        own.check(states)
        routines = {op: self._names(request, op) for op in own.ops}
        self._check_routines(request, routines)

        def names(op: str, size: int) -> tuple[str, ...]:
            return self.fitting(routines[op], size, request)

        found = own.rows(self.name, names, states, self.round_count(request))
        some = list(itertools.islice(found, product.SAMPLED))
        own.check_count(states, some, self.process_count(request))
        return [*some, *found]

    @staticmethod
    def _names(request: Request, op: str) -> tuple[str, ...]:
        names = request.choose(_SAME.get(op, (op,)), ("wherry",))
        if op not in product.PLAIN:
            names = tuple(name for name in names if name != "libc") or ("wherry",)
            if not request.routines:
                of_op = [r["name"] for r in request.catalogue if r["op"] == op]
                names = tuple(dict.fromkeys([*names, *of_op]))
        return tuple(request.wherry() if name == "wherry" else name for name in names)

    @staticmethod
    def _check_routines(request: Request, routines: dict[str, tuple[str, ...]]) -> None:
        taken = {name for names in routines.values() for name in names}
        for name in request.routines:
            if name not in taken and name != "wherry":
                raise WherryError(
                    f"{name} does not do {sentences.join(list(routines))}; give another --op or leave it "
                    "out of --routine (wherry list routines shows the op of each)"
                )

    # ---- the table -------------------------------------------------------------------------------------------------

    def blocks(self, run: dict, width: int) -> list[tables.Block]:
        rows = tables.rows_of(run, self.name)
        cells = tables.cells_of(run, self.name)
        names = tables.routines_in({row["row"]: cells[row["row"]] for row in rows})
        names.sort(key=lambda name: name in YARDSTICKS)
        keys = _varying(rows)
        shared = any(row["threads"] > 1 for row in rows)
        columns = [
            tables.Column(
                *_HEADS.get(key, (key, "bytes" if key == "size" else "")), left=key == "op"
            )
            for key in keys
        ]
        for name in names:
            columns += [tables.Column(tables.stacked(name), "ns"), tables.Column("", "GB/s")]
            if shared:
                columns.append(tables.Column("", "share"))
        body = []
        for row in rows:
            line = [tables.Figure(_value(row, key)) for key in keys]
            for name in names:
                line += _figures(row, cells[row["row"]].get(name), name, shared)
            body.append(line)
        head = dimensions.common(rows)
        title = f"cells: {head or 'several ops'} (ns a call; GB = 10^9 bytes" + (
            ", of all threads together; share: the fastest thread's time over the slowest's)"
            if shared
            else ")"
        )

        differ = dimensions.varying(rows)

        def label(row: dict) -> str:
            return dimensions.label(row, differ).removeprefix("in ")

        said = []
        if len(rows) > 1:
            floor = run["noise"]["floor"] or 0
            said = [
                sentences.leaders_or_counts(rows, label, differ),
                sentences.libc_loss(rows, cells, label, floor),
            ]
        refused = sum(row["huge"] and row.get("huge_obtained") is False for row in rows)
        if refused:
            said.append(f"{plural(refused, 'row')} asked for huge pages and got none.")
        lines = tables.layout(columns, body, width, keep=max(len(keys), 1))
        return [tables.Block(title, lines, [text for text in said if text])]


def _varying(rows: list[dict]) -> list[str]:
    differ = dimensions.varying(rows)
    if differ & {"src_state", "dst_state"}:
        differ = differ - {"src_state", "dst_state"} | {"state"}
    found = [key for key in _ORDER if key in differ]
    return found or ["mix" if "mix" in rows[0] else "size"] if rows else []


def _figures(row: dict, cell: dict | None, name: str, shared: bool) -> list[tables.Figure]:
    if cell is None:
        return [tables.MISSING] * (3 if shared else 2)
    ns = cell["ns"]["median"]
    rate = cell["bytes"] * row["threads"] / ns
    own = [
        tables.figure(ns_label(ns), name, row),
        tables.MISSING if row["mode"] in RATELESS or not rate else tables.Figure(rate_label(rate)),
    ]
    if shared:
        share = cell.get("share")
        own.append(tables.MISSING if share is None else tables.Figure(f"{share:.2f}"))
    return own


EXPERIMENT = Cells(
    name="cells",
    after="",
    shows="whatever the options give: every combination of op, size, offsets, states, threads and the rest",
    op="copy",
    ops=product.ALL_OPS,
    routines=("wherry",),
    processes=5,
    rounds=9,
)
