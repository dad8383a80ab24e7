"""The tables of a run's streams and frames."""

from __future__ import annotations

from wherry import tables
from wherry.networking import answer
from wherry.networking.found import Found, gain, part, rate, share, spared, took, use
from wherry.networking.words import (
    ALIGNED,
    APART,
    CONFIDENCE,
    DROPIN,
    DROPPED,
    FRAME_WORDS,
    GOOD,
    IPERF,
    KERNEL_WAYS,
    MISALIGNED,
    OFFSETS,
    PADDED,
    SENDFILE,
    SENDFILE_MISALIGNED,
    STACK_WORDS,
    STOCK,
    SUMS,
    SWAP,
    TOGETHER,
    WHERRY,
    WITHIN,
)
from wherry.tables import MISSING, Block, Column, Figure

MBIT = "10^6 bit/s"


def blocks(run: dict, width: int) -> list[Block]:
    found = Found(run)
    made = [_kernel(found, words, title, width) for words, title in KERNEL_WAYS]
    made.append(_files(found, width))
    made += [_seed(found, offset, width) for offset in OFFSETS]
    made.append(_apart(found, width))
    made += [_inside(found, width), _frames(found, width)]
    shown = [block for block in made if block]
    said = answer.sentences(found)
    if said:
        shown.append(Block("network: what of it is the kernel's, and what is ours?", [], said))
    return shown


def _number(value: float | None, form: str) -> Figure:
    return MISSING if value is None else Figure(format(value, form))


def _kernel(found: Found, words: dict, title: str, width: int) -> Block | None:
    rows = {size: own for size, own in found.by_size(**words).items() if ALIGNED in own}
    if not rows:
        return None
    with_iperf = any(IPERF in own for own in rows.values())
    columns = [
        Column("message", "bytes"),
        Column("segment", "bytes"),
        Column("aligned", MBIT),
        Column("+-", "%"),
        Column("sender\nCPU", "%"),
        Column("receiver\nCPU", "%"),
        Column("mis-\naligned", MBIT),
        Column("+-", "%"),
        Column("sender\nCPU", "%"),
        Column("receiver\nCPU", "%"),
    ] + ([Column(IPERF, MBIT)] if with_iperf else [])
    body = []
    for size, own in rows.items():
        line = [Figure(f"{size:,}"), _number(part(own[ALIGNED], "segment"), ",.0f")]
        for name in (ALIGNED, MISALIGNED):
            cell = own.get(name)
            line += [
                _number(rate(cell) if cell else None, ",.0f"),
                _number(part(cell, "within"), ".1f"),
                _number(use(cell, "sender"), ".0f"),
                _number(use(cell, "receiver"), ".0f"),
            ]
        if with_iperf:
            line.append(_number(rate(own[IPERF]) if IPERF in own else None, ",.0f"))
        body.append(line)
    notes = [
        f"+-: half the {CONFIDENCE} % interval of the mean in a process; rounds went on until it was {WITHIN} % "
        "or they were all used; CPU: of one CPU, by rusage; noise floor "
        f"{100 * found.floor(**words):.1f} %",
    ]
    if words["via"] == "loopback":
        notes.append(
            "mis-aligned: buffers of both applications one byte past a page's beginning; what the network does "
            "in interrupts counts for the side whose CPU was interrupted"
        )
    if words["offload"] == "off":
        notes.append(
            "without offloads: the kernel itself cuts segments and adds up checksums, as then"
        )
    return Block(
        f"network: TCP through the running kernel, {title}; its own copies",
        tables.layout(columns, body, width, keep=1),
        [],
        notes,
    )


def _way(words: dict) -> str:
    return words["via"] if words["offload"] == "on" else f"{words['via']}, no offloads"


def _files(found: Found, width: int) -> Block | None:
    """Netbench's way: the sender copies nothing, so the receiver's copy is the only one."""
    columns = [
        Column("", "", left=True),
        Column("message", "bytes"),
        Column("send", MBIT),
        Column("sendfile", MBIT),
        Column("sender\nspared", "%"),
        Column("mis-\naligned", "%"),
        Column("not\ncopied", MBIT),
        Column("receiver's\ncopy", "%"),
    ]
    body, floors = [], []
    for words, _ in KERNEL_WAYS:
        rows = found.by_size(**words, beside=SENDFILE)
        if rows:
            floors.append(f"{_way(words)} {100 * found.floor(**words, beside=SENDFILE):.1f} %")
        for size, own in rows.items():
            if SENDFILE not in own:
                continue
            sent, odd, dropped = (own.get(n) for n in (ALIGNED, SENDFILE_MISALIGNED, DROPPED))
            file = own[SENDFILE]
            body.append(
                [
                    Figure(_way(words)),
                    Figure(f"{size:,}"),
                    _number(rate(sent) if sent else None, ",.0f"),
                    Figure(f"{rate(file):,.0f}"),
                    _number(spared(sent, file, "sender") if sent else None, "+.0f"),
                    _number(gain(file, odd) if odd else None, "+.1f"),
                    _number(rate(dropped) if dropped else None, ",.0f"),
                    _number(spared(file, dropped, "receiver") if dropped else None, ".0f"),
                ]
            )
    if not body:
        return None
    return Block(
        "network: files by sendfile(2), so that the receiver's copy is the only one",
        tables.layout(columns, body, width, keep=2),
        [],
        [
            "misaligned: what a receiver's buffer one byte past a page's beginning changes of the throughput; not "
            "copied: the receiver takes the bytes and has none copied to it (MSG_TRUNC); receiver's copy: how much "
            f"less CPU time it then needs for a message; noise floor: {', '.join(floors)}"
        ],
    )


def _seed(found: Found, offset: int, width: int) -> Block | None:
    """The mail's table."""
    rows = found.by_size(via="stack", offset=offset, ends=TOGETHER)
    columns = [
        Column("message", "bytes"),
        Column("before", MBIT),
        Column("after", MBIT),
        Column("throughput", "%"),
        Column("sender CPU", "%"),
        Column("receiver CPU", "%"),
    ]
    body = []
    for size, own in rows.items():
        if STOCK not in own or WHERRY not in own:
            continue
        before, after = own[STOCK], own[WHERRY]
        body.append(
            [
                Figure(f"{size:,}"),
                Figure(f"{rate(before):,.0f}"),
                Figure(f"{rate(after):,.0f}"),
                Figure(f"{gain(before, after):+.1f}"),
                _number(spared(before, after, "sender"), "+.1f"),
                _number(spared(before, after, "receiver"), "+.1f"),
            ]
        )
    if not body:
        return None
    floor = 100 * found.floor(via="stack", offset=offset, ends=TOGETHER)
    where = "aligned" if offset == 0 else f"{offset} past a page's beginning"
    notes = [f"noise floor {floor:.1f} %"]
    if offset == 0:
        notes = [
            f"before: {STACK_WORDS[STOCK]}; after: {STACK_WORDS[WHERRY]}; both ends in one thread",
            f"CPU: how much less the side needs for a message; a minus means more; {notes[0]}",
        ]
    return Block(
        f"network: the mail's table, TCP in user space ({found.stack()}), application buffers {where}",
        tables.layout(columns, body, width),
        [],
        notes,
    )


def _apart(found: Found, width: int) -> Block | None:
    """The same where sender and receiver are processes: their times are told apart, and pass at once."""
    words = {"via": "stack", "ends": APART}
    columns = [
        Column("message", "bytes"),
        Column("before", MBIT),
        Column("sender\nCPU", "%"),
        Column("recv.\nCPU", "%"),
        Column("after", MBIT),
        Column("sender\nCPU", "%"),
        Column("recv.\nCPU", "%"),
        Column("more", "%"),
        Column("sender\nspared", "%"),
        Column("recv.\nspared", "%"),
    ]
    body = []
    for size, own in found.by_size(**words).items():
        if STOCK not in own or WHERRY not in own:
            continue
        before, after = own[STOCK], own[WHERRY]
        line = [Figure(f"{size:,}")]
        for cell in (before, after):
            line.append(Figure(f"{rate(cell):,.0f}"))
            line += [_number(use(cell, side), ".0f") for side in ("sender", "receiver")]
        line.append(Figure(f"{gain(before, after):+.1f}"))
        line += [_number(spared(before, after, side), "+.1f") for side in ("sender", "receiver")]
        body.append(line)
    if not body:
        return None
    return Block(
        f"network: the same, sender and receiver in two processes ({found.stack()}), aligned",
        tables.layout(columns, body, width, keep=1),
        [],
        [
            "CPU: of one CPU while there were packets to work on; looking for packets that have not come, which "
            "these processes do without pause, is not counted; spared: CPU time for a message; noise floor "
            f"{100 * found.floor(**words):.1f} %"
        ],
    )


def _inside(found: Found, width: int) -> Block | None:
    rows = found.by_size(via="stack", offset=0, ends=TOGETHER)
    columns = [Column("message", "bytes")]
    columns += [Column(name, MBIT) for name in (STOCK, DROPIN, SUMS, WHERRY)]
    columns += [
        Column("libc:\ncopies", "%"),
        Column("sums", "%"),
        Column("wherry:\ncopies", "%"),
        Column("sums", "%"),
    ]
    body = []
    for size, own in rows.items():
        line = [Figure(f"{size:,}")]
        line += [
            _number(rate(own[n]) if n in own else None, ",.0f")
            for n in (STOCK, DROPIN, SUMS, WHERRY)
        ]
        for name in (STOCK, WHERRY):
            shares = share(own.get(name))
            line += [_number(value, ".0f") for value in shares or (None, None)]
        body.append(line)
    if not body:
        return None
    return Block(
        "network: whose copies and checksums make it, and how much of the time they are",
        tables.layout(columns, body, width),
        [],
        [
            *(f"{name}: {words}" for name, words in STACK_WORDS.items()),
            "copies, sums: each call timed between fences in a pass of its own, less what the clock takes; a copy that "
            "adds up on the way is a copy",
        ],
    )


def _frames(found: Found, width: int) -> Block | None:
    rows = found.by_size(via="rings")
    if not rows:
        return None
    names = list(dict.fromkeys(name for own in rows.values() for name in own))
    columns = [Column("frame", "bytes"), *(Column(name, "Mpps") for name in names)]
    body = [
        [
            Figure(f"{size:,}"),
            *(_number(1000 / took(own[name]) if name in own else None, ".1f") for name in names),
        ]
        for size, own in rows.items()
    ]
    said = {name: FRAME_WORDS[name] for name in (GOOD, PADDED, SWAP) if name in names}
    return Block(
        "network: frames from ring to ring in memory, million packets a second",
        tables.layout(columns, body, width),
        [],
        [f"{name}: {words}" for name, words in said.items()]
        + [f"512 slots of 2048 bytes a ring; noise floor {100 * found.floor(via='rings'):.1f} %"],
    )
