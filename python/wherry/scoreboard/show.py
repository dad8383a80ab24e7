"""The score of a run file, printed: by op the base regions, what is beside them, and what it all says."""

from __future__ import annotations

from collections.abc import Sequence

from wherry import sentences, tables
from wherry.mixes import in_words, of_name
from wherry.scoreboard import listed, regions
from wherry.scoreboard.score import AHEAD, BEHIND, TIE, UNDECIDED
from wherry.tables import Block, Column, Figure
from wherry.units import ns_label, percent, plural

# Of a peer in the score's own table, which is to fit into a mail; the table beside it and the sentences have it whole.
LONGEST_NAME = 13
# Beside the name of a peer that leaves the upper halves of vector registers in use.
UPPER = "^"
MARKS = {AHEAD: "lead", TIE: "tie", UNDECIDED: "unsure", BEHIND: "bad"}  # their styles


def _rate(value: float) -> str:
    return f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def _value(value: float | None, region: dict) -> str:
    if value is None:
        return "-"
    return _rate(value) if region["rate"] else ns_label(value)


def _with_interval(ratio: dict) -> str:
    """`0.80 (0.79-0.81)`; of a single sample the figure alone."""
    if ratio["low"] is None:
        return f"{ratio['median']:.2f}"
    return f"{ratio['median']:.2f} ({ratio['low']:.2f}-{ratio['high']:.2f})"


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "~"


def blocks(score: dict, records: Sequence[dict], width: int) -> list[Block]:
    found = []
    told = {record["name"]: record for record in records}
    for own in score["ops"]:
        function = listed.FUNCTIONS[own["op"]]
        base = [r for r in own["regions"] if r["base"]]
        mixes = [r for r in own["regions"] if "mix" in r]
        extra = [r for r in own["regions"] if not r["base"] and "mix" not in r]
        if base:
            said = [_summary(own, score)]
            found.append(_block(f"scoreboard: {function} by region", base, score, width, said))
        if extra:
            title = f"scoreboard: {function}, beside the score"
            found.append(_block(title, extra, score, width, [_leaders(extra)]))
        if mixes:
            title = f"scoreboard: {function}, mixes of sizes"
            found.append(_block(title, mixes, score, width, [_leaders(mixes)]))
            there = [(r["name"], told.get(r["mix"]) or of_name(r["mix"])) for r in mixes]
            found[-1].notes = [f"{name}: {in_words(record)}" for name, record in there if record]
    if found:
        found += [block for block in (_totals(score, width), _limits(score, width)) if block]
        found[-1].sentences += _circumstances(score)
        found.append(_how_to_read(score))
    return found


def _names(own: list[dict], score: dict) -> list[str]:
    names = dict.fromkeys(name for region in own for name in region["figures"])
    return [name for name in names if name not in (score["wherry"], "libc")]


def _block(title: str, own: list[dict], score: dict, width: int, said: list[str]) -> Block:
    """One table when the terminal is wide enough for all, else the score above everybody's figures."""
    rooms = [[_score_columns(), [_score_line(r, score) for r in own]]]
    peers = _names(own, score)
    columns, lines = _peer_columns(peers, own, score)
    both = tables.layout(
        [*rooms[0][0], *columns[2:]],
        [[*a, *b[2:]] for a, b in zip(rooms[0][1], lines, strict=True)],
        width,
    )
    if len(both) == 1 or not peers:
        shown = both
    else:
        shown = [*tables.layout(*rooms[0], width), [], *tables.layout(columns, lines, width, 2)]
    return Block(title, shown, [s for s in said if s])


def _score_columns() -> list[Column]:
    return [
        Column("region", left=True),
        Column("unit", left=True),
        Column("libc"),
        Column("wherry"),
        Column("best"),
        Column("peer", left=True),
        Column("W/best", left=True),
        Column("", left=True),
        Column("W/libc"),
        Column("limit"),
    ]


def _score_line(region: dict, score: dict) -> list[Figure]:
    figures = region["figures"]
    best, to_best, to_libc = region["best"], region["to_best"], region["to_libc"]
    limit = region["limit"]
    word = region["verdict"] or "-"
    return [
        Figure(_label(region), style="title"),
        Figure("GB/s" if region["rate"] else "ns", style="dim"),
        tables.figure(_value(figures.get("libc"), region), "libc", region),
        tables.figure(_value(figures.get(score["wherry"]), region), score["wherry"], region),
        tables.figure(_value(figures.get(best), region), best, region),
        Figure(_short(best or "-") + _upper(best, score)),
        Figure(_with_interval(to_best) if to_best else "-"),
        Figure(word, style=MARKS.get(word, "dim")),
        Figure(f"{to_libc['median']:.2f}" if to_libc else "-"),
        Figure(_value(limit["figure"], region) if limit else "-", style="dim"),
    ]


def _upper(name: str | None, score: dict) -> str:
    return UPPER if name in score.get("upper_in_use", ()) else ""


def _label(region: dict) -> str:
    short = len(region["rows"]) < region["planned"]
    return region["name"] + (f" {len(region['rows'])}/{region['planned']}" if short else "")


def _peer_columns(
    names: list[str], own: list[dict], score: dict
) -> tuple[list[Column], list[list[Figure]]]:
    columns = [Column("region", left=True), Column("unit", left=True)]
    columns += [Column(tables.stacked(name + _upper(name, score))) for name in names]
    lines = []
    for region in own:
        line = [
            Figure(_label(region), style="title"),
            Figure("GB/s" if region["rate"] else "ns", style="dim"),
        ]
        for name in names:
            value = region["figures"].get(name)
            known = value is not None
            line.append(
                tables.figure(_value(value, region), name, region) if known else tables.MISSING
            )
        lines.append(line)
    return columns, lines


# ---- in words -------------------------------------------------------------------------------------------------------


def takes(ratio: dict, whose: str) -> str:
    """`0.80 (0.79-0.81) of libc's time`."""
    return f"{_with_interval(ratio)} of {whose} time"


def standing(base: Sequence[dict]) -> str:
    """`It is ahead in 9, ties in 4 and is behind in 1`."""
    count = {word: sum(r["verdict"] == word for r in base) for word in MARKS}
    compared = [r for r in base if r["to_best"] is not None]
    untold = sum(r["verdict"] is None for r in compared)
    if untold and untold == len(compared):
        return "The samples do not tell in which it is ahead"
    known = f"It is ahead in {count[AHEAD]}, ties in {count[TIE]} and is behind in {count[BEHIND]}"
    if unsure := count[UNDECIDED]:
        known += f"; {unsure} {'is' if unsure == 1 else 'are'} undecided"
    return f"{known}, of {untold} the samples do not tell" if untold else known


def _summary(own: dict, score: dict) -> str:
    total = own["total"]
    base = [r for r in own["regions"] if r["base"]]
    if not total["to_envelope"]:
        return ""
    parts = []
    if total["to_libc"]:
        parts.append(takes(total["to_libc"], "libc's"))
    parts.append(f"{takes(total['to_envelope'], 'the envelope')[:-5]}'s (the best peer of each)")
    if total["to_single"]:
        parts.append(
            f"{takes(total['to_single'], total['single'] + chr(39) + 's')}, the best single peer"
        )
    worst = next(r for r in base if r["name"] == total["worst"])
    return (
        f"Over {plural(total['regions'], 'region')} of equal weight (geometric mean) Wherry takes "
        f"{sentences.join(parts)}. {standing(base)}; worst in {worst['name']}, "
        f"{takes(worst['to_best'], worst['best'] + chr(39) + 's')}."
    )


def _leaders(own: list[dict]) -> str:
    by = {word: [r for r in own if r["verdict"] == word] for word in (*MARKS, None)}
    parts = []
    if by[AHEAD]:
        parts.append(f"Wherry is ahead in {_named(by[AHEAD])}")
    if by[BEHIND]:
        told = [f"{r['name']} ({r['to_best']['median']:.2f} of {r['best']})" for r in by[BEHIND]]
        parts.append(f"{'' if parts else 'Wherry is '}behind in {sentences.join(told)}")
    if by[UNDECIDED] and (parts or by[TIE]):
        be = "is" if len(by[UNDECIDED]) == 1 else "are"
        parts.append(f"{_named(by[UNDECIDED])} {be} undecided")
    elif by[UNDECIDED]:
        parts.append("Who leads is undecided" + ("" if by[None] else " everywhere here"))
    if by[None] and not parts:
        return "Who leads the samples do not tell" + (
            " here." if len(by[None]) == len(own) else " everywhere here."
        )
    if not parts:
        return "Wherry ties with the best peer everywhere here."
    if by[None]:
        parts.append(f"in {_named(by[None])} the samples do not tell")
    return "; ".join(parts) + ("; the rest are ties." if by[TIE] else ".")


def _named(own: list[dict]) -> str:
    return sentences.join([region["name"] for region in own])


def _how_to_read(score: dict) -> Block:
    peer = (
        "libc counts as a peer"
        if "libc" in score["envelope"]
        else "libc, which uses all that the CPU has, is no peer here"
    )
    short = any(len(r["rows"]) < r["planned"] for own in score["ops"] for r in own["regions"])
    few = score["unhalved"]
    but = f", but for {few} row{'s' if few != 1 else ''} with too few rounds" if few else ""
    # Runs from before that was recorded know of halves alone, and their verdicts were not corrected; those from before
    # regions had somebody unsure called all that is not told from chance a tie.
    by = score.get("best_by")
    parted = any("unsure" in r for own in score["ops"] for r in own["regions"])
    floor = f"the regions' noise floor of {percent(score['floor'])}"
    if parted:
        chance = " (Benjamini-Hochberg)" if by else ""
        tie = f"A tie is within {floor}; what is beyond it, and may be chance{chance}, is undecided"
    else:
        chance = ", or what chance may do among so many regions (Benjamini-Hochberg)" if by else ""
        tie = f"A tie is within it, or within {floor}{chance}"
    picked = f"The best peer is chosen on one half of the rounds and measured on the other{but}"
    if by == "processes":
        picked = "Beside each process stands the peer that was the best in the other processes"
    notes = [
        "fixed-N: one size to N bytes in every call; any-N, log-N: sizes that nobody can predict, L1; GB/s: 10^9 bytes "
        "copied or set a second; wherry list regions tells more. Figures are geometric means over a region's rows"
        + ("; n/m: so many of them were measured." if short else "."),
        "W/best, W/libc: Wherry's time over theirs, below 1 Wherry is faster; interval of 95 %. "
        f"{tie}. {picked}; {peer}.",
        "limit: below 520 bytes and for unpredictable sizes the same calls of an empty function; else the fastest of "
        "plain vector loops through the caches, past them and, from 128 KiB on, past them in five parts at once and "
        "rep movsb or stosb.",
    ]
    return Block("How to read it", notes=notes)


def _circumstances(score: dict) -> list[str]:
    said = []
    if score["isa"]:
        said.append(f"Wherry was held to its {score['isa']} tier.")
        if score["left_out"]:
            said.append(f"Left out, for they use more: {sentences.join(score['left_out'])}.")
    if score["envelope"] == ["libc"]:
        said.append(
            "There were no peers but libc, so the envelope is libc alone: make peers builds some, "
            "--peer NAME=PATH takes any other."
        )
    upper = score.get("upper_in_use", ())
    if upper:
        leave = "leaves" if len(upper) == 1 else "leave"
        said.append(
            f"{UPPER}: {sentences.join(list(upper))} {leave} the upper halves of vector registers in use (vzeroupper "
            "is missing), which slows SSE instructions of the program that come after; that is not in these figures."
        )
    if score["about"]:
        told = [f"{name}: {about}" for name, about in score["about"].items()]
        said.append(f"Peers that were found: {'; '.join(told)}.")
    return said


# ---- the last tables ------------------------------------------------------------------------------------------------


def _over(regions_: list[dict]) -> str:
    judged = [r for r in regions_ if r["to_best"]]
    over = [r for r in judged if r["to_best"]["median"] > regions.REGION_AIM]
    return f"{len(over)} of {len(judged)}"


def _to_limit(region: dict, score: dict) -> dict | None:
    """Wherry's time over the limit's; of bandwidths, which are not of the same rounds, by the figures."""
    limit, own = region["limit"], region["figures"].get(score["wherry"])
    if not limit or not own:
        return None
    if limit["ratio"]:
        return limit["ratio"]
    return {"median": limit["figure"] / own if region["rate"] else own / limit["figure"]}


def _totals(score: dict, width: int) -> Block | None:
    """The score of each op in one column, beside what the project aims at."""
    ops = [own for own in score["ops"] if own["total"]["to_envelope"]]
    if not ops:
        return None

    def ratio(value: dict | None, more: str = "") -> Figure:
        return Figure(f"{value['median']:.2f}{more}") if value else tables.MISSING

    def line(label: str, figures: list[Figure], aim: str) -> list[Figure]:
        return [Figure(label), *figures, Figure(aim, style="dim")]

    def aims(of: dict[str, float]) -> str:
        """One for all ops, or one for each."""
        own = [f"{of[own['op']]:.2f}" for own in ops]
        return own[0] if len(set(own)) == 1 else "/".join(own)

    totals = [own["total"] for own in ops]
    base = [[r for r in own["regions"] if r["base"]] for own in ops]
    extra = [[r for r in own["regions"] if not r["base"] and "mix" not in r] for own in ops]
    body = [
        line("against libc", [ratio(t["to_libc"]) for t in totals], ""),
        line(
            "against the envelope",
            [ratio(t["to_envelope"]) for t in totals],
            aims(regions.ENVELOPE_AIM),
        ),
        line(
            "against best single peer",
            [ratio(t["to_single"], f" {t['single']}") for t in totals],
            aims(regions.SINGLE_AIM),
        ),
        line(
            "worst region",
            [
                ratio(next(r for r in own if r["name"] == t["worst"])["to_best"], f" {t['worst']}")
                for own, t in zip(base, totals, strict=True)
            ],
            f"{regions.REGION_AIM:.2f}",
        ),
        line(
            f"regions over {regions.REGION_AIM:.2f}", [Figure(_over(own)) for own in base], "none"
        ),
    ]
    if any(extra):
        label = f"others over {regions.REGION_AIM:.2f}"
        body.append(line(label, [Figure(_over(own)) for own in extra], "none"))
    for name, against, aim in regions.REGION_AIMS:
        values = []
        for own in base:
            region = next((r for r in own if r["name"] == name), None)
            value = region and (
                region["to_best"] if against == "best" else _to_limit(region, score)
            )
            values.append(ratio(value))
        if any(value is not tables.MISSING for value in values):
            limit = "call floor" if name.startswith("any") else "limit"
            whom = "best" if against == "best" else limit
            body.append(line(f"{name} against {whom}", values, f"{aim:.2f}"))
    columns = [Column("Wherry's time", left=True)]
    columns += [Column(listed.FUNCTIONS[own["op"]]) for own in ops]
    columns += [Column("aim")]
    return Block("scoreboard: the score", tables.layout(columns, body, width))


def _limits(score: dict, width: int) -> Block | None:
    if not score["limits"]:
        return None
    words = {
        "read_bandwidth": "loads",
        "write_bandwidth": "stores",
        "write_nt_bandwidth": "NT stores",
        "copy_bandwidth": "copy",
        "copy_nt_bandwidth": "NT copy",
        "copy_nt_parts_bandwidth": "NT copy in parts",
    }
    columns = [Column("level", left=True), *(Column(word, "GB/s") for word in words.values())]
    body = [
        [
            Figure(level, style="title"),
            *(Figure(_rate(own[n])) if n in own else tables.MISSING for n in words),
        ]
        for level, own in score["limits"].items()
    ]
    return Block("scoreboard: what this machine allows", tables.layout(columns, body, width))
