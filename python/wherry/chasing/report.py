"""The tables of a run's loads that wait for each other, and what they say of caches, pages and overlap."""

from __future__ import annotations

from wherry import tables
from wherry.chasing.found import CHAINS, HUGE, ONE, PAGES, SMALL, Found, Level
from wherry.sentences import join
from wherry.tables import MISSING, Block, Column, Figure
from wherry.units import ns_label, percent, size_label

# Of the chains that there are, so many at once are no limit of the core's.
NEARLY_ALL = 0.9


def blocks(run: dict, width: int) -> list[Block]:
    found = Found(run)
    made = [_by_size(found, pages, width) for pages in PAGES if found.sizes(pages)]
    if found.sizes(SMALL) and found.sizes(HUGE):
        made.append(_pages(found, width))
    shown = [block for block in made if block]
    said = sentences(found)
    if said:
        shown.append(
            Block("latency: where do the levels end, and what do pages and waiting cost?", [], said)
        )
    return shown


def _label(ns: float | None) -> Figure:
    return MISSING if ns is None else Figure(ns_label(ns))


def _by_size(found: Found, pages: bool, width: int) -> Block | None:
    sizes = [size for size in found.sizes(pages) if found.cell(size, pages)]
    if not sizes:
        return None
    names = [name for name in found.names(pages) if name != ONE]
    columns = [
        Column("working\nset"),
        Column("1 chain", "ns"),
        Column("middle\nhalf", "ns"),
        Column("", "cycles"),
        Column("over\nfirst", "ns"),
        *(Column(f"{CHAINS[name]}\nchains", "ns") for name in names),
        Column("at\nonce"),
    ]
    least = found.took(sizes[0], pages)
    body = []
    for size in sizes:
        cell, overlap = found.cell(size, pages), found.overlap(size, pages)
        ns = cell["ns"]["median"]
        cycles = found.clock.cycles(ns)
        body.append(
            [
                Figure(size_label(size)),
                _label(ns),
                Figure(f"{ns_label(cell['ns']['q25'])}-{ns_label(cell['ns']['q75'])}"),
                MISSING
                if cycles is None
                else Figure(f"{cycles:,.1f}" if cycles < 100 else f"{cycles:,.0f}"),
                Figure(f"{round(ns - least, 1) + 0.0:.1f}"),
                *(_label(found.took(size, pages, name)) for name in names),
                MISSING if overlap is None else Figure(f"{overlap[1]:.1f}"),
            ]
        )
    return Block(
        f"latency: random loads that wait for the one before, by working set, {PAGES[pages]}; ns a load",
        tables.layout(columns, body, width),
        [],
        [
            "one pointer in each line of 64 bytes, all of them one cycle in random order; chains: so many "
            "walks along it at once",
            f"at once: the time of one chain over the shortest of several; {found.clock.in_words()}",
        ]
        if pages == found.pages()
        else [],
    )


def _more(found: Found, size: int) -> tuple[float, float] | None:
    """What 4 KiB pages add: nanoseconds, and the share of the time with huge ones."""
    small, huge = found.took(size, SMALL), found.took(size, HUGE)
    return (small - huge, small / huge - 1) if small and huge else None


def _pages(found: Found, width: int) -> Block | None:
    most = list(CHAINS)[-1]
    columns = [
        Column("working\nset"),
        Column("4 KiB", "ns"),
        Column("huge", "ns"),
        Column("more", "ns"),
        Column("", "%"),
        Column(f"{CHAINS[most]} chains:\n4 KiB", "ns"),
        Column("huge", "ns"),
    ]
    body = []
    for size in found.sizes():
        more = _more(found, size)
        if more is None:
            continue
        told = abs(more[1]) > found.floor
        body.append(
            [
                Figure(size_label(size)),
                *(_label(found.took(size, pages)) for pages in PAGES),
                Figure(f"{more[0]:+.2f}" if told else "noise", style="" if told else "dim"),
                Figure(f"{100 * more[1]:+.0f}" if told else "", style="" if told else "dim"),
                *(_label(found.took(size, pages, most)) for pages in PAGES),
            ]
        )
    if not body:
        return None
    return Block(
        "latency: what pages of 4 KiB cost beside huge ones of 2 MiB; 1 chain",
        tables.layout(columns, body, width),
        [],
        [
            f"noise: no more than {percent(found.floor)}, which nine of ten rows keep within of themselves"
        ],
    )


# ---- in words --------------------------------------------------------------------------------------------------------


def sentences(found: Found) -> list[str]:
    pages = found.pages()
    if pages is None:
        return []
    said = (_levels(found, pages), _cost_of_pages(found), _overlap(found, pages))
    return [text for text in said if text]


def _time(found: Found, ns: float) -> str:
    cycles = found.clock.cycles(ns)
    return f"{ns_label(ns)} ns" + ("" if cycles is None else f" ({cycles:.0f} cycles)")


def _where(level: Level, is_first: bool) -> str:
    last = size_label(level.last)
    return f"to {last}" if is_first else f"from {size_label(level.first)} to {last}"


def _levels(found: Found, pages: bool) -> str:
    own = found.levels(pages)
    if not own:
        return ""
    parts = [
        f"{_time(found, level.ns)} in working sets {_where(level, i == 0)}"
        if i == 0
        else f"{_time(found, level.ns)} {_where(level, False)}"
        for i, level in enumerate(own)
    ]
    text = f"In {PAGES[pages]} a load that waits for the one before takes {join(parts)}"
    if len(own) > 1:
        text += "; in between a part of the loads has left the nearer level"
    told = [f"{name} {size_label(size)}" for name, size in found.caches.items()]
    return text + (f". The machine reports {join(told)}." if told else ".")


def _cost_of_pages(found: Found) -> str:
    more = {size: _more(found, size) for size in found.sizes()}
    known = {size: own for size, own in more.items() if own}
    if not known:
        return ""
    dear = {size: own for size, own in known.items() if own[1] > found.floor}
    if not dear:
        return (
            "Pages of 4 KiB cost nothing beside huge ones that could be told "
            f"(noise {percent(found.floor)})."
        )
    worst = max(dear, key=lambda size: dear[size][0])
    ns, share = dear[worst]
    # From where on every larger working set is dearer.
    tail = [size for size in known if all(other in dear for other in known if other >= size)]
    since = f" from {size_label(tail[0])} on" if tail and tail[0] < worst else ""
    return (
        f"Pages of 4 KiB take longer than huge ones{since}, at {size_label(worst)} by {ns_label(ns)} ns "
        f"a load ({percent(share)}): what misses of the TLB cost there."
    )


def _overlap(found: Found, pages: bool) -> str:
    ends = [level.last for level in found.levels(pages)]
    largest = [size for size in found.sizes(pages) if found.cell(size, pages)][-1]
    places = {size: found.overlap(size, pages) for size in dict.fromkeys([*ends, largest])}
    parts = [
        f"{own[1]:.1f} at {size_label(size)} ({ns_label(found.took(size, pages, own[0]))} ns a load "
        f"by {CHAINS[own[0]]} chains)"
        for size, own in places.items()
        if own
    ]
    if not parts:
        return ""
    text = f"Loads that do not wait for each other overlap, as many as {join(parts)}"
    most = max(CHAINS.values())
    if any(own and own[1] > NEARLY_ALL * most for own in places.values()):
        text += (
            f"; where that is nearly {most} a core may have more under way than is asked for here"
        )
    return text + "."
