"""Two claims about verdicts, over many runs that are each judged as any run is, by its own noise floor: two copies of
one routine tie, and a routine that is a tenth slower by construction is called slower (a tenth faster, faster)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wherry import results, stats
from wherry.campaign import Row
from wherry.selfcheck.claims import SHARE, Claim, Session
from wherry.selfcheck.known import MOST_LINKS, TWINS, KnownCampaign, chain, label, measure
from wherry.units import plural

TENTH = 0.10
# What the calibrated loop may find it to be in a run, or it was no tenth and says nothing.
KNOWN = (0.085, 0.115)
PROCESSES, ROUNDS = 4, 11


def _twins(size: int = 0, **where) -> Row:
    return Row("", "copy", (results.REFERENCE, *TWINS), size, rounds=ROUNDS, **where)


TIES = (
    _twins(16),
    _twins(64, mode="latency"),
    _twins(256, src_off=1, dst_off=3),
    _twins(1024),
    _twins(1000, mode="latency"),
    _twins(4096),
    _twins(4096, src_off=5),
    _twins(6000, dst_off=9),
    _twins(65536, src_state="L2", dst_state="L2"),
    _twins(4096, src_state="L3", dst_state="L1"),
    _twins(mix="uniform:0-256"),
    _twins(mix="log:1-4096"),
)


def _base(links: int, size: int, **where) -> tuple[int, Row]:
    return links, Row("", "copy", (), size, batch_us=100, rounds=ROUNDS, **where)


# For information: the same code elsewhere in its page. No method can make one of what the CPU treats as two.
MOVED = tuple(
    replace(row, routines=(results.REFERENCE, TWINS[0], "known_copy_moved"))
    for row in TIES
    if row.size == 6000 or row.mix
)

BASES = (
    _base(128, 256),
    _base(256, 1024),
    _base(512, 1024, mode="latency"),
    _base(512, 4096, src_off=3, dst_off=17),
    _base(1024, 8192),
    _base(2048, 65536, src_state="L2", dst_state="L2"),
)


class _Tenth:
    """A base and what is a tenth slower, or faster, than it."""

    def __init__(self, row: Row, number: int, base: int, other: int):
        self.row = row
        self.number = number  # of the row among all
        self.base, self.other = base, other
        self.called = self.tried = self.unknown = 0
        self.known: list[float] = []
        self.measured: list[float] = []

    def names(self) -> tuple[str, str]:
        return chain(self.base), chain(self.other)

    def slower(self) -> str:
        return chain(max(self.base, self.other))


def _other(base: int, ns: float, link: float, sign: int) -> int:
    """Links of a routine that takes a tenth more than `ns`, or a tenth less."""
    return min(max(base + sign * round(TENTH * ns / link), 0), MOST_LINKS)


def _construct(session: Session) -> tuple[list[Row], list[_Tenth]]:
    """From how long the bases take here: a tenth of that, in links."""
    rows = [replace(row, routines=(chain(links),)) for links, row in BASES]
    campaign = measure(session, rows, PROCESSES, session.seed)
    planned: list[Row] = []
    tenths: list[_Tenth] = []
    for number, (links, row) in enumerate(BASES):
        ns = campaign.median(number, chain(links))
        own = [sum(pair) / 2 for (_, row), pair in campaign.links.items() if row == number]
        if ns is None or not own:
            continue
        for sign in (1, -1):
            other = _other(links, ns, float(np.median(own)), sign)
            tenth = _Tenth(row, len(TIES) + len(planned), links, other)
            planned.append(replace(row, routines=tenth.names()))
            tenths.append(tenth)
    return planned, tenths


def _judge(campaign: KnownCampaign, rows: dict[int, dict], tenth: _Tenth) -> None:
    verdict = rows.get(tenth.number)
    base = campaign.median(tenth.number, chain(tenth.base))
    other = campaign.median(tenth.number, chain(tenth.other))
    links = [sum(pair) / 2 for (_, row), pair in campaign.links.items() if row == tenth.number]
    if verdict is None or not base or not other or not links:
        return
    known = (tenth.other - tenth.base) * float(np.median(links)) / base
    if not KNOWN[0] <= abs(known) <= KNOWN[1]:
        tenth.unknown += 1
        return
    tenth.known.append(known)
    tenth.measured.append(other / base - 1)
    tenth.tried += 1
    tenth.called += verdict["fastest"] is not None and verdict["fastest"] != tenth.slower()


def _ties(campaign: KnownCampaign, number: int, floor: float | None) -> bool | None:
    """Whether the copies tie by what tells routines apart, and rounds that tell nothing are no tie; None when they were
    not measured."""
    cells = {
        name: cell.ns
        for name in TWINS
        if (cell := campaign.cells.get((number, name, False))) is not None and cell.ns
    }
    if len(cells) < len(TWINS):
        return None
    rng = np.random.default_rng(campaign.seed + number)
    return bool(stats.verdict(cells, floor or stats.LEAST_FLOOR, rng).tied)


def _moved(session: Session) -> list[dict]:
    campaign = measure(session, list(MOVED), PROCESSES, session.seed + 1)
    found = []
    for number, row in enumerate(MOVED):
        here, there = (campaign.median(number, name) for name in row.routines[1:])
        if here and there:
            found.append(
                {
                    "cell": f"{label(row)}, elsewhere in its page",
                    "apart": round(there / here - 1, 4),
                }
            )
    return found


def check(session: Session) -> list[Claim]:
    runs = session.runs()
    tie = Claim("tie", "two copies of one routine tie", f"{SHARE:.0%} of cells over {runs} runs")
    slow = Claim(
        "tenth", "a routine 10 % slower is called slower", f"{SHARE:.0%} of cells over {runs} runs"
    )
    fast = Claim(
        "tenth faster",
        "a routine 10 % faster is called faster",
        f"{SHARE:.0%} of cells over {runs} runs",
    )
    session.progress("routines a tenth slower")
    planned, tenths = _construct(session)
    moved = _moved(session)
    tied: list[list[bool]] = [[] for _ in TIES]
    floors: list[float | None] = []
    done = 0
    for run in range(runs):
        if session.late():
            break
        session.progress(f"run {run + 1} of {runs}")
        seed = session.seed + 1000 * (run + 1)
        campaign = measure(session, [*TIES, *planned], PROCESSES, seed)
        rows, _, floor = results.digest(campaign, 0)
        floors.append(floor)
        by_number = {row["row"]: row for row in rows}
        for number, own in enumerate(tied):
            tie_here = _ties(campaign, number, floor)
            if tie_here is not None:
                own.append(tie_here)
        for tenth in tenths:
            _judge(campaign, by_number, tenth)
        done += 1
    short = "" if done == runs else f"only {done} of {runs} runs fitted into the time there was"
    missing = runs - done
    _tell_ties(tie, tied, floors, short, missing * len(TIES))
    if moved:
        most = f"{max(abs(cell['apart']) for cell in moved):.0%}"
        if most != "0%":
            tie.note = (
                f"The same code at another place of its page differs by up to {most} here: the CPU predicts "
                "branches by where they lie. That is a difference of the two, and no verdict can take it away."
            )
        tie.cells += moved
    for claim, own in (
        (slow, [t for t in tenths if t.other > t.base]),
        (fast, [t for t in tenths if t.other < t.base]),
    ):
        _tell_tenths(claim, own, short, missing * len(own))
    return [tie, slow, fast]


def _judged(claim: Claim, good: int, count: int, short: str, missing: int) -> None:
    """`missing`: cells of runs for which there was no time, as `short` says. Told is what they could not change."""
    claim.reason = short
    if short and good + missing >= SHARE * (count + missing):
        claim.leave_open(short)
    else:
        claim.passed = bool(count) and good >= SHARE * count


def _tell_ties(
    claim: Claim, tied: list[list[bool]], floors: list, short: str, missing: int
) -> None:
    count, good = sum(map(len, tied)), sum(map(sum, tied))
    claim.cells = [
        {"cell": label(row), "runs": len(own), "ties": sum(own)}
        for row, own in zip(TIES, tied, strict=True)
    ]
    _judged(claim, good, count, short, missing)
    if count:
        known = sorted(floor for floor in floors if floor is not None)
        claim.measured = f"{good} of {count} cells, {good / count:.1%}"
        if known:
            claim.measured += f"; noise floor {known[0]:.1%} to {known[-1]:.1%}"


def _tell_tenths(claim: Claim, tenths: list[_Tenth], short: str, missing: int) -> None:
    count, good = sum(t.tried for t in tenths), sum(t.called for t in tenths)
    unknown = sum(t.unknown for t in tenths)
    for tenth in tenths:
        claim.cells.append(
            {
                "cell": label(tenth.row),
                "links": [tenth.base, tenth.other],
                "runs": tenth.tried,
                "called": tenth.called,
                "known": [round(min(tenth.known), 4), round(max(tenth.known), 4)]
                if tenth.known
                else [],
                "measured": [round(min(tenth.measured), 4), round(max(tenth.measured), 4)]
                if tenth.measured
                else [],
            }
        )
    _judged(claim, good, count, short, missing)
    if unknown:
        left_out = f"{plural(unknown, 'cell')} left out: no tenth apart by the calibrated loop"
        claim.reason = "; ".join(filter(None, (short, left_out)))
        # Left out too often, and the rest would be a choice, which shows nothing.
        if (claim.passed or not count) and unknown > count / 4:
            claim.leave_open(claim.reason)
    if count:
        known = sorted(abs(k) for t in tenths for k in t.known)
        claim.measured = (
            f"{good} of {count} cells, {good / count:.1%}; by the calibrated loop "
            f"{known[0]:.1%} to {known[-1]:.1%}"
        )
