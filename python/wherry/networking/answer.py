"""What of it is the kernel's and what is ours, in sentences."""

from __future__ import annotations

from wherry.networking.found import Found, gain, part, rate, share, spared, took
from wherry.networking.words import (
    ALIGNED,
    APART,
    CONFIDENCE,
    DROPIN,
    DROPPED,
    FRAME_WORDS,
    IPERF,
    KERNEL_WAYS,
    MISALIGNED,
    PADDED,
    SENDFILE,
    SENDFILE_MISALIGNED,
    STOCK,
    SUMS,
    TOGETHER,
    WHERRY,
    WITHIN,
)


def sentences(found: Found) -> list[str]:
    said = (_kernel(found), _files(found), _tool(found), _stack(found), _frames(found))
    return [text for text in said if text]


def _span(values: list[float], form: str = "+.0f") -> str:
    # Without the sign that a small negative figure keeps when it is rounded to nothing.
    low, high = (
        format(0.0 if float(format(value, form)) == 0 else value, form)
        for value in (min(values), max(values))
    )
    return low if low == high else f"{low} to {high}"


def _kernel(found: Found) -> str:
    told = []
    for words, title in KERNEL_WAYS:
        gains = [
            gain(own[ALIGNED], own[MISALIGNED])
            for own in found.by_size(**words).values()
            if ALIGNED in own and MISALIGNED in own
        ]
        if gains:
            floor = 100 * found.floor(**words)
            told.append(f"{title} {_span(gains)} % (noise {floor:.0f} %)")
    if not told:
        return ""
    return (
        "Through the kernel every copy of the stream is the kernel's, and no library changes it. Misaligned buffers of "
        f"the applications change its throughput by: {'; '.join(told)}.{_certain(found)}"
    )


def _certain(found: Found) -> str:
    """What came of going on to a stated confidence."""
    reached = [
        own
        for words, _ in KERNEL_WAYS
        for cells in found.by_size(**words).values()
        for name in (ALIGNED, MISALIGNED)
        if (own := part(cells.get(name), "within")) is not None
    ]
    if not reached:
        return ""
    certain = sum(own <= WITHIN for own in reached)
    text = f" Of {len(reached)} means {certain} came to within {WITHIN} % with {CONFIDENCE} % confidence"
    if certain == len(reached):
        return text + "."
    return f"{text}, the others to within {max(reached):.0f} % at worst; +- tells of each."


def receivers_copy(found: Found) -> list[float]:
    """How much of the receiver's CPU time the copy to it is where the sender copies nothing, per cent."""
    rows = [own for words, _ in KERNEL_WAYS for own in found.by_size(**words).values()]
    shares = [
        spared(own[SENDFILE], own[DROPPED], "receiver")
        for own in rows
        if SENDFILE in own and DROPPED in own
    ]
    return [value for value in shares if value is not None]


def _files(found: Found) -> str:
    shares = receivers_copy(found)
    if not shares:
        return ""
    text = (
        "By sendfile the sender copies nothing, and the receiver's copy is at most "
        f"{max(0.0, *shares):.0f} % of its CPU time for a message"
    )
    odd = [gain(*pair) for pair in found.beside(SENDFILE, SENDFILE_MISALIGNED)]
    floor = max(found.floor(**words, beside=SENDFILE) for words, _ in KERNEL_WAYS)
    if odd:
        text += f"; a misaligned buffer changes the throughput by {_span(odd)} % (noise {100 * floor:.0f} %)"
    return text + "."


def _tool(found: Found) -> str:
    ratios = [rate(own) / rate(tool) for own, tool in found.beside(ALIGNED, IPERF)]
    if not ratios:
        return ""
    return f"The same streams by iperf3, in turns with ours: ours have {_span(ratios, '.2f')} times its throughput."


def _stack(found: Found) -> str:
    rows = [
        own
        for offset in (0, 1)
        for own in found.by_size(via="stack", offset=offset, ends=TOGETHER).values()
        if STOCK in own and WHERRY in own
    ]
    if not rows:
        return ""
    text = (
        f"Where the stack is a library ({found.stack()}), all copies and checksums are ours to choose: Wherry's "
        f"change its throughput by {_span([gain(own[STOCK], own[WHERRY]) for own in rows])} %"
    )
    for name, words in ((DROPIN, "the copies alone"), (SUMS, "the checksums alone")):
        gains = [gain(own[STOCK], own[name]) for own in rows if name in own]
        if gains:
            text += f", {words} by {_span(gains)} %"
    shares = [share(own[STOCK]) for own in rows if share(own[STOCK])]
    if shares:
        text += (
            f"; with libc's copies and its own checksum {_span([c for c, _ in shares], '.0f')} % of its time are "
            f"copies and {_span([s for _, s in shares], '.0f')} % checksums"
        )
    text += f" (noise {100 * found.floor(via='stack', ends=TOGETHER):.1f} %)"
    apart = [
        own
        for own in found.by_size(via="stack", ends=APART).values()
        if STOCK in own and WHERRY in own
    ]
    if apart:
        gains = [gain(own[STOCK], own[WHERRY]) for own in apart]
        text += (
            f"; with sender and receiver in processes of their own by {_span(gains)} % "
            f"(noise {100 * found.floor(via='stack', ends=APART):.1f} %)"
        )
        for side in ("sender", "receiver"):
            less = [spared(own[STOCK], own[WHERRY], side) for own in apart]
            less = [value for value in less if value is not None]
            if less:
                text += f", the {side} needs {_span(less, '.0f')} % less CPU time"
    return text + "."


def _frames(found: Found) -> str:
    told = []
    for size, own in found.by_size(via="rings").items():
        if STOCK in own and PADDED in own:
            told.append((size, took(own[STOCK]) / took(own[PADDED])))
    if not told:
        return ""
    best = max(told, key=lambda pair: pair[1])
    worst = min(told, key=lambda pair: pair[1])
    own = found.by_size(via="rings")[told[0][0]]
    rates = [f"{name} {1000 / took(cell):.0f}" for name, cell in own.items() if name in FRAME_WORDS]
    return (
        f"Frames of {told[0][0]} bytes go from ring to ring at {1000 / took(own[STOCK]):.0f} million a second with "
        f"libc's copy ({', '.join(rates)}); padded copies have {_between(best, worst)} libc's rate."
    )


def _between(best: tuple[int, float], worst: tuple[int, float]) -> str:
    """Of sizes and ratios."""
    if best == worst:
        return f"{best[1]:.2f} times"
    return f"{best[1]:.2f} (at {best[0]:,} bytes) to {worst[1]:.2f} times (at {worst[0]:,})"
