"""Anand's netperf table of 2002 beside this machine's: throughput before and after, what it gained, and how much CPU
time each side was spared, by message size. Then the kernel's copies changed; now those of a stack in user space."""

from __future__ import annotations

from wherry import history, tables
from wherry.clock import Clock
from wherry.networking.answer import receivers_copy
from wherry.networking.found import Found, gain, rate, spared
from wherry.networking.words import ALIGNED, KERNEL_WAYS, MISALIGNED, STOCK, TOGETHER, WHERRY
from wherry.then.sheet import MISSING, Sheet

MBIT = "10^6 bit/s"
# The way that is most like hers: packets of 1500 bytes that the kernel cuts itself.
LIKE_HERS = KERNEL_WAYS[-1][0]
THROUGH_STACK = {"via": "stack", "offset": 1, "ends": TOGETHER}


def sheets(run: dict, clock: Clock) -> list[Sheet]:
    found = Found(run)
    table = next(t for t in history.tables("network") if t.id == "netperf")
    stack = found.by_size(**THROUGH_STACK)
    kernel = found.by_size(**LIKE_HERS)
    if not stack and not kernel:
        return []
    return [_absolute(table, stack, kernel), _comparable(table, found, stack, kernel)]


def _mbit(cells: dict[str, dict], name: str) -> str:
    return f"{rate(cells[name]):,.0f}" if name in cells else MISSING


def _percent(value: float | None) -> str:
    return MISSING if value is None else f"{value:+.1f}"


def _absolute(table: history.Table, stack: dict, kernel: dict) -> Sheet:
    columns = [
        tables.Column("message", "bytes"),
        tables.Column("then\n2.5.19", MBIT),
        tables.Column("then\npatched", MBIT),
        tables.Column("now, kernel\naligned", MBIT),
        tables.Column("misaligned", MBIT),
        tables.Column("now, stack\nlibc", MBIT),
        tables.Column("wherry", MBIT),
    ]
    rows = []
    for record in table.records():
        size = record["message"]
        rows.append(
            [
                f"{size:,}",
                f"{record['2.5.19']:.2f}",
                f"{record['patched']:.2f}",
                *(_mbit(kernel.get(size, {}), name) for name in (ALIGNED, MISALIGNED)),
                *(_mbit(stack.get(size, {}), name) for name in (STOCK, WHERRY)),
            ]
        )
    return Sheet(
        "network, then and now: TCP throughput by message size",
        columns,
        rows,
        notes=[
            f"{table.mail.in_words()}.",
            f"Machine: {table.machine.in_words()}.",
            "Then: through cards of 10^9 bit/s, which most of its rows come close to. Now, kernel: a veth pair between "
            "two namespaces without offloads, aligned and misaligned buffers; now, stack: lwIP in one thread, "
            "misaligned buffers, with libc's copies and its own checksum and with Wherry's.",
        ],
    )


def _comparable(table: history.Table, found: Found, stack: dict, kernel: dict) -> Sheet:
    columns = [
        tables.Column("message", "bytes"),
        tables.Column("then\nthroughput", "%"),
        tables.Column("sender\nCPU", "%"),
        tables.Column("receiver\nCPU", "%"),
        tables.Column("now, stack\nthroughput", "%"),
        tables.Column("sender\nCPU", "%"),
        tables.Column("receiver\nCPU", "%"),
        tables.Column("now, kernel\nmisaligned", "%"),
    ]
    rows, gains = [], []
    for record in table.records():
        own, through = (by_size.get(record["message"], {}) for by_size in (stack, kernel))
        line = [f"{record['message']:,}"]
        line += [
            f"{record[name]:+.1f}" if record[name] else "0.0"
            for name in ("gain", "sender CPU", "receiver CPU")
        ]
        pair = (own[STOCK], own[WHERRY]) if STOCK in own and WHERRY in own else None
        if pair:
            gains.append(gain(*pair))
        line += [_percent(gain(*pair) if pair else None)]
        line += [_percent(spared(*pair, side) if pair else None) for side in ("sender", "receiver")]
        both = ALIGNED in through and MISALIGNED in through
        line.append(_percent(gain(through[ALIGNED], through[MISALIGNED]) if both else None))
        rows.append(line)
    return Sheet(
        "network, what stays comparable: per cent of throughput gained, per cent of CPU time spared",
        columns,
        rows,
        ([_said(table, gains)] if gains else []) + _netbench(found),
        [
            "CPU: how much less a side needs with the other copies; a minus means more (then of its use, now of its "
            "time for a message). Now, kernel: what misaligned buffers change, with the copies it has."
            + _floors(found)
        ],
    )


def _netbench(found: Found) -> list[str]:
    """Her other load: files by sendfile, of which only the receiver's copy is left."""
    shares = receivers_copy(found)
    if not shares:
        return []
    spent, gained = (
        history.statement("anand-2002", f"netbench-{name}").value for name in ("share", "gain")
    )
    return [
        f"Then Netbench with sendfile spent {spent:g} % in copying to user space and gained {gained:g} % by another "
        f"copy; now that copy is at most {max(0.0, *shares):.0f} % of the receiver's CPU time where files are sent so."
    ]


def _floors(found: Found) -> str:
    """Of what was measured; a path that was skipped has none."""
    told = [
        f"{name} {100 * found.floor(**words):.1f} %"
        for name, words in (("stack", THROUGH_STACK), ("kernel", LIKE_HERS))
        if found.by_size(**words)
    ]
    return f" Noise floor{'s' if len(told) > 1 else ''}: {', '.join(told)}." if told else ""


def _said(table: history.Table, gains: list[float]) -> str:
    then = [record["gain"] for record in table.records()]
    mixed = history.statement("anand-2002", "mixed-gain").value
    return (
        f"Then another copy in the kernel changed the throughput by {min(then):+.1f} to {max(then):+.1f} %, most for "
        f"small messages, and a mixed load by {mixed:g} % (Morton); now other copies and checksums in a stack in user "
        f"space change it by {min(gains):+.0f} to {max(gains):+.0f} %."
    )
