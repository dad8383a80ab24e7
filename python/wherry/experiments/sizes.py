"""Satoshi Asami, 1996: two 4 MiB buffers walked in steps of the size, 32 B doubling to 4 MiB, in MB/s of 2^20 bytes."""

from __future__ import annotations

from wherry import sentences, tables
from wherry.campaign import Row
from wherry.experiments import Experiment, Request
from wherry.reading import beats, no_size
from wherry.units import MIB, size_label

BUFFER = 4 * MIB
X87 = "x87_fild64"
SIZES = tuple(32 << k for k in range(18))


def _rate(cell: dict) -> str:
    rate = cell["bytes"] / cell["ns"]["median"] * 1e9 / MIB
    return f"{rate:.1f}" if rate < 99.95 else f"{rate:.0f}"


def _label(row: dict) -> str:
    return size_label(row["size"])


class Sizes(Experiment):
    quick_processes = 7

    def rows(self, request: Request) -> list[Row]:
        routines = self.chosen(request)
        rows = []
        for source, destination in request.states or ((None, None),):
            for size in request.sizes or SIZES:
                common = {"rounds": self.round_count(request), "batch_us": 200}
                if source:
                    common |= {"src_state": source, "dst_state": destination}
                else:
                    common |= {"walk": "stream", "buffer": max(BUFFER, size)}
                rows.append(
                    Row(self.name, self.op, self.fitting(routines, size, request), size, **common)
                )
        return rows

    def blocks(self, run: dict, width: int) -> list[tables.Block]:
        cells = tables.cells_of(run, self.name)
        groups: dict[str, list[dict]] = {}
        for row in tables.rows_of(run, self.name):
            if row["walk"] == "stream":
                title = f"two {size_label(row['buffer'])} buffers walked in steps of the size"
            else:
                title = f"source in {row['src_state']}, destination in {row['dst_state']}"
            groups.setdefault(title, []).append(row)
        return [self._block(run, rows, cells, title, width) for title, rows in groups.items()]

    def _block(self, run, rows, cells, title, width) -> tables.Block:
        names = tables.routines_in({row["row"]: cells[row["row"]] for row in rows})
        columns = [tables.Column("size", "bytes"), *(tables.Column(n, "MB/s") for n in names)]
        lines = tables.layout(
            columns,
            [
                [
                    tables.Figure(_label(row)),
                    *(
                        tables.figure(_rate(cells[row["row"]][n]), n, row)
                        if n in cells[row["row"]]
                        else tables.MISSING
                        for n in names
                    ),
                ]
                for row in rows
            ],
            width,
        )
        floor = run["noise"]["floor"] or 0
        said = [
            sentences.leaders(rows, _label),
            sentences.libc_loss(rows, cells, _label, floor),
            self._then_and_now(rows, cells, floor),
        ]
        return tables.Block(
            f"sizes: copy, {title} (MB = 2^20 bytes)", lines, [s for s in said if s]
        )

    @staticmethod
    def _then_and_now(rows, cells, floor: float) -> str:
        """His claim was: from a certain size on, faster than libc."""
        own = [(cells[row["row"]].get(X87), _label(row)) for row in rows]
        compared = [(cell, label) for cell, label in own if beats(cell, floor) is not None]
        if not compared:
            return ""
        won = [label for cell, label in compared if beats(cell, floor)]
        if won:
            return f"{X87}, Asami's copy, still beats libc at {sentences.join(won)}."
        ratio, label = min(
            ((cell["ratio"]["median"], label) for cell, label in compared), key=lambda pair: pair[0]
        )
        return (
            f"{X87}, Asami's copy, beats libc at {no_size(1 / ratio)}; it comes closest at {label}, "
            f"taking {ratio:.2f} times as long."
        )


EXPERIMENT = Sizes(
    name="sizes",
    after="Asami 1996",
    shows="copy, MB/s by size, 32 B to 4 MiB doubling, through two 4 MiB buffers",
    op="copy",
    ops=("copy", "move"),
    routines=(X87, "rep_movsb", "rep_movsl", "wherry"),
    processes=11,
    rounds=7,
)
