"""Sizes that nobody can predict, as programs ask for them: uniform, log-uniform, and the mixes of files that the user
gives with --mix. Nanoseconds a call, everything in the nearest cache that holds what nearly all calls touch."""

from __future__ import annotations

from wherry import mixes, sentences, tables
from wherry.campaign import Row
from wherry.experiments import Experiment, Request
from wherry.scoreboard.listed import FUNCTIONS, OPS
from wherry.scoreboard.regions import home, with_overlaps
from wherry.yardsticks import YARDSTICKS

OWN = ("rep_movsb", "rep_stosb_set", "avx512_loop", "avx2_loop", "sse2_loop")


class Mixes(Experiment):
    takes = frozenset({"routines", "ops", "isa", "mixes", "found", "states"})
    quick_processes = 3
    quick_rounds = 5

    def rows(self, request: Request) -> list[Row]:
        rows = []
        self.check_named(request, request.ops or OPS, sentences.join(list(request.ops or OPS)))
        for op in request.ops or OPS:
            names = self._names(request, op)
            # Of those that come with Wherry a quick run has the copies alone.
            recorded = () if request.quick and op != "copy" else mixes.shipped((op,))
            own = (*mixes.built_in(), *recorded)
            for mix in mixes.for_op(mixes.with_given(own, request.mixes), op):
                usual = with_overlaps(mix.usual, op) if mix.sha256 else mix.usual
                usual += mixes.REACH if mix.sha256 and op != "set" else 0
                level = home(usual, op, request.caches)
                places = [(level, level)]
                if mix in recorded and not request.quick:
                    places.append(("DRAM", "DRAM"))
                rows += [
                    Row(
                        self.name,
                        op,
                        names,
                        **mix.of_row(),
                        src_state=source,
                        dst_state=destination,
                        rounds=self.round_count(request),
                    )
                    for source, destination in request.states or places
                ]
        return rows

    @staticmethod
    def _names(request: Request, op: str) -> tuple[str, ...]:
        """The tier that Wherry is held to takes its place; peers that were found stand beside those given."""
        ops = ("copy", "move") if op == "copy" else (op,)
        op_of = {row["name"]: row["op"] for row in request.catalogue if not row.get("unavailable")}
        own = [name for name in OWN if op_of.get(name) in ops]
        # The widest loop tells how far plain vectors go; narrower ones would tell it again.
        loops = [name for name in own if name.endswith("_loop")]
        own = [name for name in own if name not in loops[1:]]
        names = request.choose(ops, (*own, "wherry"))
        names = [request.wherry() if name == "wherry" else name for name in names]
        beside = [name for name in request.contenders(op) if name not in names]
        return tuple(dict.fromkeys([*names, *beside, "call_floor"]))

    def blocks(self, run: dict, width: int) -> list[tables.Block]:
        cells = tables.cells_of(run, self.name)
        own = (*mixes.built_in(), *mixes.shipped(runnable=False))
        records = {f"@{mix.name}" if mix.sha256 else mix.name: mix.record() for mix in own}
        records |= {
            f"@{mix['name']}" if mix.get("sha256") else mix["name"]: mix
            for mix in run.get("mixes", ())
        }
        blocks, told = [], set()
        for op in OPS:
            rows = [row for row in tables.rows_of(run, self.name) if row["op"] == op]
            if rows:
                blocks.append(self._block(op, rows, cells, run, width))
                # What a mix is stands under the first table that has it.
                there = dict.fromkeys(row["mix"] for row in rows)
                for name in there:
                    if name not in told and (record := records.get(name) or mixes.of_name(name)):
                        told.add(name)
                        blocks[-1].notes.append(
                            f"{name.removeprefix('@')}: {mixes.in_words(record)}"
                        )
        return blocks

    def _block(self, op, rows, cells, run, width) -> tables.Block:
        names = tables.routines_in({row["row"]: cells[row["row"]] for row in rows})
        names.sort(key=lambda name: name in YARDSTICKS)
        places = [_place(row) for row in rows]
        usual = max(places, key=places.count)

        def label(row: dict) -> str:
            place = _place(row)
            return row["mix"].removeprefix("@") + ("" if place == usual else f" in {place}")

        columns = [tables.Column("mix", "", left=True)]
        columns += [tables.Column(tables.stacked(name), "ns") for name in names]
        body = [
            [
                tables.Figure(label(row), style="title"),
                *(tables.time(cells[row["row"]], name, row) for name in names),
            ]
            for row in rows
        ]
        said = [
            sentences.leaders(rows, label),
            sentences.libc_loss(rows, cells, label, run["noise"]["floor"] or 0),
        ]
        return tables.Block(
            f"mixes: {FUNCTIONS[op]}, ns per call, sizes that nobody can predict, in {usual}",
            tables.layout(columns, body, width),
            [s for s in said if s],
        )


def _place(row: dict) -> str:
    source, destination = row["src_state"], row["dst_state"]
    return destination if source == destination or row["op"] == "set" else f"{source}/{destination}"


EXPERIMENT = Mixes(
    name="mixes",
    after="",
    shows="copy, move and set, ns per call for unpredictable sizes: uniform, log-uniform, and files given by --mix",
    op="copy",
    ops=("copy", "move", "set"),
    routines=(),
    processes=5,
    rounds=11,
)
