"""What stays comparable, as points for a picture: of each routine that a seed measured the speed over the stock routine
of the same table, then and now. A misaligned copy counts as over the aligned one."""

from __future__ import annotations

from dataclasses import dataclass

from wherry import history, reading
from wherry.networking import found as networking
from wherry.networking.words import DROPIN, STOCK, TOGETHER, WHERRY
from wherry.striping import found as striping
from wherry.striping import report as stripes
from wherry.striping.words import X87
from wherry.switching.found import Found
from wherry.then import alignment, sizes, small, switch, zero
from wherry.units import size_in_words, size_label

NOW = "this machine"
_STOCK = "libc"


@dataclass(frozen=True)
class Point:
    panel: str  # points of one panel stand in one picture
    place: str  # size, routine, or method
    series: str  # machine and year, or NOW
    speed: float  # over the stock routine: above 1 is faster
    what: str  # what is over what


def points(run: dict, experiment: str) -> list[Point]:
    """Empty when the run has nothing beside the seed."""
    make = {
        "sizes": _sizes,
        "small": _small,
        "zero": _zero,
        "alignment": _alignment,
        "switch": _switch,
        "network": _network,
        "stripes": _stripes,
    }
    found = make[experiment](run) if experiment in make else []
    beside = {point.panel for point in found if point.series.startswith(NOW)}
    return [point for point in found if point.panel in beside]


def _label(table: history.Table) -> str:
    clock = f"{table.machine.mhz:g} MHz" if table.machine.mhz else ""
    machine = " ".join(filter(None, (table.machine.cpu, clock))) or "CPU not told"
    return f"{machine}, {table.mail.year}"


def _sizes(run: dict) -> list[Point]:
    tables = [table for table in history.tables("sizes") if table.of_role("key")]
    panel = "the x87 copy over the stock copy"
    found = [
        Point(panel, size_label(r["size"]), _label(t), r["ours"] / r["libc"], "x87 over libc")
        for t in tables
        for r in t.records()
        if r["libc"]
    ]
    for size, cells in sorted(sizes.cells_by_size(run, tables[0].where).items()):
        speed = reading.speed(cells, sizes.X87, _STOCK)
        if speed:
            found.append(Point(panel, size_label(size), NOW, speed, f"{sizes.X87} over {_STOCK}"))
    return found


def _small(run: dict) -> list[Point]:
    (table,) = history.tables("small")
    times = {(r["function"], r["size"]): r["time"] for r in table.records() if r["state"] == "L1"}
    panel = "the fast copy over the stock copy, in L1"
    found = [
        Point(panel, size_label(n), _label(table), times["bcopy", n] / ns, "fast_bcopy over bcopy")
        for (name, n), ns in times.items()
        if name == "fast_bcopy"
    ]
    for (state, size), cells in small.by_state(run, table).items():
        speed = reading.speed(cells, small.FAST, _STOCK)
        if state == "L1" and speed and ("fast_bcopy", size) in times:
            found.append(Point(panel, size_label(size), NOW, speed, f"{small.FAST} over {_STOCK}"))
    return found


def _zero(run: dict) -> list[Point]:
    found = []
    for table in history.tables("zero"):
        now = zero.cells_of(run, table.where)
        records = [r for r in table.records() if r["routine"] != _STOCK]
        stock = next(r for r in records if r["name"] == table.stock)
        panel = f"{size_in_words(table.size)}, over {stock['routine']}"
        for record in records:
            name, what = record["routine"], f"{record['routine']} over {stock['routine']}"
            speed = reading.speed(now, name, stock["routine"])
            found.append(Point(panel, name, _label(table), record["rate"] / stock["rate"], what))
            if speed:
                found.append(Point(panel, name, NOW, speed, what))
    return found


def _alignment(run: dict) -> list[Point]:
    (table,) = history.tables("alignment")
    now = alignment.medians(run, table.where).get(alignment.CACHED, {})
    times = {(r["routine"], r["aligned"]): r["time"] for r in table.records()}
    stock, panel = "rep_movsl", f"{table.size} bytes, over rep_movsl aligned"
    found = []
    for name, aligned in times:
        place = f"{name}, {'aligned' if aligned else 'misaligned'}"
        what = f"{place} over {stock} aligned"
        speed = times[stock, True] / times[name, aligned]
        found.append(Point(panel, place, _label(table), speed, what))
        own, base = now.get(name, {}).get(aligned), now.get(stock, {}).get(True)
        if own and base:
            found.append(Point(panel, place, NOW, base / own, what))
    return found


def _switch(run: dict) -> list[Point]:
    """Saving always over saving what is wanted: above 1 the latter is faster."""
    table = next(t for t in history.tables("switch") if t.id == "ping-pong")
    then = {(r["kernel"], r["x87 used by"]): r["elapsed"] for r in table.records()}
    panel, what = "saving what is in use over saving always", "elapsed time, noopt over opt"
    found = []
    for own, series in ((then, _label(table)), (switch.took(Found(run)), NOW)):
        for who in switch.WHO:
            if ("noopt", who) in own and ("opt", who) in own:
                speed = own["noopt", who] / own["opt", who]
                found.append(Point(panel, f"x87 used by {who}", series, speed, what))
    return found


def _network(run: dict) -> list[Point]:
    """Throughput with other copies over throughput with stock ones, by message size."""
    table = next(t for t in history.tables("network") if t.id == "netperf")
    panel = "TCP throughput with other copies over stock ones"
    found = [
        Point(
            *(panel, size_label(record["message"]), _label(table)),
            record["patched"] / record["2.5.19"],
            "patched over 2.5.19",
        )
        for record in table.records()
    ]
    now = networking.Found(run).by_size(via="stack", offset=1, ends=TOGETHER)
    for size, cells in now.items():
        for name, what in ((WHERRY, "copies and sums"), (DROPIN, "copies alone")):
            if STOCK in cells and name in cells:
                speed = networking.took(cells[STOCK]) / networking.took(cells[name])
                series = f"{NOW}, {what}"
                found.append(Point(panel, size_label(size), series, speed, f"{name} over {STOCK}"))
    return found


def _stripes(run: dict) -> list[Point]:
    """Rates of the stripe with the x87 copy over those with the stock copy."""
    table = next(t for t in history.tables("stripes") if t.id == "stripe-read")
    then = {record["copy"]: record["rate"] for record in table.records()}
    panel, what = "reading a stripe with the x87 copy over the stock copy", "x87 over stock"
    disks = f"{table.records()[0]['disks']} disks"
    found = [Point(panel, disks, _label(table), then["x87"] / then["stock"], what)]
    own = striping.Found(run)
    for title, words in stripes.SOURCES:
        speed = stripes.ratio(own.usual(**words), X87, _STOCK)
        if speed:
            found.append(Point(panel, title, NOW, speed, what))
    return found
