"""A fleet's report as data: groups with their curves, plans and scatter, hosts that differ, a change, files unread."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wherry import significance
from wherry.fleet import chance, grouping, outliers
from wherry.fleet.cells import AT
from wherry.fleet.grouping import Group, Host
from wherry.fleet.loading import Fleet
from wherry.fleet.outliers import Finding, Seen

# Routines whose curves are shown, when there are more.
SHOWN = ("libc", "wherry")
LEAST_POINTS = 3
# The verdict where nothing was judged.
TOO_FEW = "too few hosts"
# From so many hosts on the median distance tells how far they scatter, which a few odd ones do not move. Of fewer it is
# too often near 0.
MANY = 20
# Of a median, over that of a mean.
MEDIAN_ERROR = 1.25
_SIZE = AT["size"]


@dataclass
class Curve:
    routine: str
    what: str
    points: list[tuple[int, float, float, float]]  # size; ns: median, 5 and 95 % of the hosts


@dataclass
class GroupReport:
    group: Group
    floor: float | None
    scatter: float | None  # between hosts, of the median cell, as a fraction
    to_libc: float | None  # Wherry's time over libc's, geometric mean
    plans: list[tuple[str, float]]
    curves: list[Curve]
    judged: bool


@dataclass
class Change:
    title: str
    hosts: int
    ratio: float
    low: float
    high: float
    verdict: str


@dataclass
class Report:
    runs: int
    hosts: int
    cells: int
    groups: list[GroupReport]
    findings: list[Finding]
    changes: list[Change]
    unfit: list[tuple[str, str]]
    foreign: int
    sought: bool = False  # whether a change was asked about


def _curves(fleet: Fleet, seen: Seen) -> list[Curve]:
    """Of the experiment and op with most sizes, where both sides are nearest."""
    _, times = grouping.matrix(fleet, seen.group.hosts)
    series: dict[tuple, dict[int, int]] = {}
    for i, number in enumerate(seen.columns):
        key = fleet.keys[number]
        size = key[AT["size"]]
        if size:
            others = key[:_SIZE] + key[_SIZE + 1 :]
            series.setdefault((others, key[AT["routine"]]), {})[size] = i
    by_rest: dict[tuple, dict[str, dict[int, int]]] = {}
    for (others, routine), own in series.items():
        rest = tuple(v for v in others if v != routine)
        if len(own) >= LEAST_POINTS:
            by_rest.setdefault(rest, {})[routine] = own
    if not by_rest:
        return []
    best = max(by_rest.values(), key=lambda r: ("wherry" in r, max(map(len, r.values()))))
    names = [n for n in SHOWN if n in best] or sorted(best)[:2]
    curves = []
    for name in names:
        points = []
        for size, i in sorted(best[name].items()):
            own = times[:, i][np.isfinite(times[:, i])]
            if len(own):
                points.append((size, *(float(v) for v in np.quantile(own, [0.5, 0.05, 0.95]))))
        key = fleet.keys[seen.columns[next(iter(best[name].values()))]]
        state = key[AT["src_state"]] or key[AT["dst_state"]] or ""
        curves.append(Curve(name, f"{key[0]}, {key[AT['op']]} {state}".strip(), points))
    return curves


def _to_libc(fleet: Fleet, seen: Seen) -> float | None:
    _, ratios = grouping.matrix(fleet, seen.group.hosts, 3)
    own = [i for i, n in enumerate(seen.columns) if fleet.keys[n][AT["routine"]] == "wherry"]
    found = np.log(ratios[:, own])
    found = found[np.isfinite(found)]
    return math.exp(float(found.mean())) if len(found) else None


def _group(fleet: Fleet, seen: Seen) -> GroupReport:
    hosts = seen.group.hosts
    floors = [h.facts.floor for h in hosts if h.facts.floor is not None]
    plans: dict[str, int] = {}
    for host in hosts:
        plans[host.facts.plan] = plans.get(host.facts.plan, 0) + 1
    scales = seen.scales[np.isfinite(seen.scales)]
    return GroupReport(
        seen.group,
        float(np.median(floors)) if floors else None,
        float(np.median(scales)) if len(scales) and len(hosts) > 2 else None,
        _to_libc(fleet, seen),
        [(p, n / len(hosts)) for p, n in sorted(plans.items(), key=lambda p: -p[1])],
        _curves(fleet, seen),
        len(hosts) >= outliers.LEAST_HOSTS,
    )


def _by_name(hosts: Sequence[Host]) -> dict[tuple[str, str], Host]:
    """One that was restarted is there by its latest boot: its boots are no hosts that vary."""
    ordered = sorted(hosts, key=lambda host: host.facts.started)
    return {(host.name, host.facts.model): host for host in ordered}


def _pairs(before: Sequence[Host], after: Sequence[Host]) -> list[tuple[Host, Host]]:
    """Each host as it was and as it is: the same boot, else one of its name and CPU model."""
    boots = {host.facts.ident: host for host in before}
    same = [(boots[host.facts.ident], host) for host in after if host.facts.ident in boots]
    known = _by_name([host for _, host in same])
    was, now = _by_name(before), _by_name(after)
    return same + [(was[key], now[key]) for key in now if key in was and key not in known]


def _changes(fleet: Fleet, before: list[int], after: list[int]) -> list[Change]:
    """Host by host, by model and routine: the median of the hosts' own ratios, with what chance leaves of it."""
    pairs: dict[str, list] = {}
    for old, new in _pairs(grouping.hosts(fleet, before), grouping.hosts(fleet, after)):
        pairs.setdefault(new.facts.model, []).append((old, new))
    found = []
    for model, own in sorted(pairs.items()):
        figures: dict[tuple[str, str], list[float]] = {}
        for old, new in own:
            columns, times = grouping.matrix(fleet, [old, new])
            logs = np.log(times[1]) - np.log(times[0])
            by: dict[tuple[str, str], list[float]] = {}
            for number, value in zip(columns, logs, strict=True):
                if math.isfinite(value):
                    key = fleet.keys[number]
                    by.setdefault((key[0], key[AT["routine"]]), []).append(float(value))
            for key, values in by.items():
                figures.setdefault(key, []).append(float(np.median(values)))
        for (experiment, routine), values in sorted(figures.items()):
            found.append(
                _change(f"{model}: {experiment}, {routine}", np.array(values), len(figures))
            )
    return found


def _change(title: str, logs: np.ndarray, compared: int) -> Change:
    centre = float(np.median(logs))
    if len(logs) < 3:
        return Change(title, len(logs), math.exp(centre), math.nan, math.nan, TOO_FEW)
    if len(logs) < MANY:
        scale, freedom = float(np.std(logs, ddof=1)), float(len(logs) - 1)
    else:
        scale = float(chance.scale((logs - centre)[:, None])[0])
        freedom = chance.EFFICIENCY * (len(logs) - 1)
    error = MEDIAN_ERROR * max(scale, chance.LEAST_SCALE) / math.sqrt(len(logs))
    half = error * significance.t_within(freedom, significance.LEVEL / compared)
    low, high = math.exp(centre - half), math.exp(centre + half)
    verdict = "slower" if low > 1 else "faster" if high < 1 else "no change seen"
    return Change(title, len(logs), math.exp(centre), low, high, verdict)


def report(fleet: Fleet, before: set[str] = frozenset(), since: str | None = None) -> Report:
    numbers = range(len(fleet.runs))
    old = [
        i
        for i in numbers
        if fleet.runs[i].path in before or (since and fleet.runs[i].started < since)
    ]
    gone = set(old)
    new = [i for i in numbers if i not in gone]
    hosts = grouping.hosts(fleet, new or None)
    seen, findings = outliers.find(fleet, grouping.groups(hosts)) if hosts else ([], [])
    return Report(
        len(fleet.runs),
        len(hosts),
        fleet.cells(),
        [_group(fleet, s) for s in seen],
        findings,
        _changes(fleet, old, new) if old else [],
        fleet.unfit,
        sum(run.source for run in fleet.runs),
        bool(before or since),
    )
