"""Which hosts differ from their own model, and in what.

For each host some figures are made: how its times lie beside the medians of its group (its clock, what memory costs
beyond that, each routine), how much they scatter, what its run says of itself. Each figure is set to the scatter of the
hosts of the group; what lies further out than chance puts one host in a thousand, all figures together, is named."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter

import numpy as np

from wherry.fleet import chance, grouping
from wherry.fleet.cells import AT
from wherry.fleet.grouping import Group, Host
from wherry.fleet.loading import Fleet

# Parts that the permitted false alarms are shared among.
PARTS = 10
# Fewer of a group cannot say what is usual for it.
LEAST_HOSTS = 5
# A setting that so many of the group have is its usual one.
USUAL = 0.8
LEAST_CELLS = 3
# A single cell that lies out by less than this (a ratio) interests nobody.
CELL_RATIO = 1.25
# Of normal deviations one in a hundred lies further out than the first, one in a thousand than the second; no tail is
# taken to be lighter, where most figures are alike to the last digit.
NORMAL = (2.576, 3.291)


@dataclasses.dataclass
class Finding:
    host: Host
    group: Group
    kind: str  # throttled, slow memory, noisy, THP off ...
    words: str
    ratio: float | None = None
    surprise: float = math.inf


@dataclasses.dataclass
class Figure:
    kind: str
    other: str  # what it is called on the other side; empty: that side is none
    least: float  # smaller differences are not worth naming (log)
    words: str  # %s: the ratio, or times
    compared: int = 1  # with so many others of its kind


FIGURES = {
    "clock": Figure("throttled", "fast clock", math.log(1.03), "times in cache {} the model's"),
    "DRAM": Figure("slow memory", "fast memory", math.log(1.05), "times in DRAM {} the model's"),
    "L3": Figure("slow L3", "fast L3", math.log(1.05), "times in L3 {} the model's"),
    "spread": Figure("noisy", "", math.log(1.3), "quartiles {} as far apart as the model's"),
    "scatter": Figure("noisy", "", math.log(1.3), "cells scatter {} as much as the model's"),
    "floor": Figure("noisy", "", math.log(1.5), "noise floor {} the model's"),
    "voided": Figure("noisy", "", math.log(1.5), "rounds thrown away {} the model's"),
    "core_median": Figure(
        "throttled", "", math.log(1.03), "clock in the run drifts {} the model's"
    ),
    "memory_median": Figure("noisy", "", math.log(1.05), "memory's pace drifts {} the model's"),
}


@dataclasses.dataclass
class Seen:
    """What was made of one group."""

    group: Group
    columns: np.ndarray
    medians: np.ndarray  # log ns, by column
    scales: np.ndarray
    figures: dict[str, np.ndarray]  # by name; one a host
    blocks: dict[tuple[str, str], np.ndarray]
    rest: np.ndarray  # hosts by columns: what the figures leave


def _rows_middle(values: np.ndarray) -> np.ndarray:
    return chance.middle(values.T)


def _logs(values: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(values)


def _facts(group: Group) -> dict[str, np.ndarray]:
    def column(get) -> np.ndarray:
        found = [get(host.facts) for host in group.hosts]
        return np.array([math.nan if v is None else v for v in found], float)

    return {
        "floor": np.log(column(lambda f: f.floor) + 0.002),
        "voided": np.log(column(lambda f: f.voided) + 0.02),
        "core_median": _logs(column(lambda f: f.pace.get("core_median"))),
        "memory_median": _logs(column(lambda f: f.pace.get("memory_median"))),
    }


def look(fleet: Fleet, group: Group) -> Seen:
    columns, times = grouping.matrix(fleet, group.hosts)
    logs = _logs(times)
    medians = chance.middle(logs)
    rest = logs - medians
    keys = [fleet.keys[c] for c in columns]
    regions = np.array([grouping.region(key) for key in keys])
    figures: dict[str, np.ndarray] = {}
    near = regions == "near"
    base = near if near.sum() >= LEAST_CELLS else np.ones(len(columns), bool)
    figures["clock"] = _rows_middle(rest[:, base])
    rest -= np.nan_to_num(figures["clock"])[:, None].astype(np.float32)
    for name in ("L3", "DRAM"):
        own = regions == name
        if own.sum() >= LEAST_CELLS and base is near:
            figures[name] = _rows_middle(rest[:, own])
            rest[:, own] -= np.nan_to_num(figures[name])[:, None].astype(np.float32)
    blocks = {}
    of_block: dict[tuple[str, str], list[int]] = {}
    for i, key in enumerate(keys):
        of_block.setdefault((key[0], key[AT["routine"]]), []).append(i)
    for name, members in of_block.items():
        if len(members) >= LEAST_CELLS and len(of_block) > 1:
            blocks[name] = _rows_middle(rest[:, members])
    # Less what its routine takes beyond, a cell stands out by itself alone.
    left = rest.copy()
    for name, own in blocks.items():
        left[:, of_block[name]] -= np.nan_to_num(own)[:, None].astype(np.float32)
    scales = chance.scale(left)
    figures["scatter"] = _logs(
        _rows_middle(np.abs(left) / np.maximum(scales, chance.LEAST_SCALE)) + 0.05
    )
    _, low = grouping.matrix(fleet, group.hosts, 1)
    _, high = grouping.matrix(fleet, group.hosts, 2)
    spread = _rows_middle(_logs(high) - _logs(low))
    figures["spread"] = _logs(np.maximum(spread, 0) + 0.002)
    return Seen(group, columns, medians, scales, figures | _facts(group), blocks, left)


# ---- from figures to findings ---------------------------------------------------------------------------------------


def _judge(columns: list[tuple[Group, np.ndarray]], figure: Figure) -> list[Finding]:
    """One figure over all groups: centred and scaled in each, its tail measured over all."""
    centred = [
        values - np.nanmedian(values) if np.isfinite(values).any() else values
        for _, values in columns
    ]
    scales = [float(chance.scale(v[:, None])[0]) for v in centred]
    counts = [int(np.isfinite(v).sum()) for v in centred]
    sides = 2 if figure.other else 1
    surprise = [
        chance.surprises(v / scale, freedom, sides)
        for v, (scale, freedom) in zip(centred, chance.moderated(scales, counts), strict=True)
    ]
    slope = chance.heaviness(np.concatenate(surprise))
    bar = -math.log(chance.FALSE_ALARMS / PARTS / figure.compared)
    found = []
    for (group, _), own, values, n in zip(columns, surprise, centred, counts, strict=True):
        if n < LEAST_HOSTS:
            continue
        out = chance.calibrated(own, slope)
        for i in np.flatnonzero((out > bar) & (np.abs(values) >= figure.least)):
            ratio = math.exp(float(np.clip(values[i], -50, 50)))
            kind = figure.kind if values[i] > 0 else figure.other
            words = figure.words.format(f"{ratio:.2f} ×")
            found.append(Finding(group.hosts[i], group, kind, words, ratio, float(out[i])))
    return found


def _by_figures(seen: list[Seen]) -> list[Finding]:
    found = []
    for name, figure in FIGURES.items():
        columns = [(s.group, s.figures[name]) for s in seen if name in s.figures]
        if columns:
            found += _judge(columns, figure)
    names = dict.fromkeys(name for s in seen for name in s.blocks)
    for experiment, routine in names:
        figure = Figure(
            f"slow {routine}",
            f"fast {routine}",
            math.log(1.05),
            f"{routine} in {experiment} {{}} the model's",
            len(names),
        )
        columns = [
            (s.group, s.blocks[experiment, routine])
            for s in seen
            if (experiment, routine) in s.blocks
        ]
        found += _judge(columns, figure)
    return found


def _far_bar(z: np.ndarray, share: float) -> float:
    """How far out a cell must lie: the tail between one in a hundred and one in a thousand, gone on with as a power."""
    near, far = np.maximum(np.quantile(z, [0.99, 0.999]), NORMAL)
    power = math.log(10) / max(math.log(far / near), 0.02)
    return far * max(1e-3 / share, 1.0) ** (1 / power)


def _by_cells(fleet: Fleet, seen: list[Seen], named: set[int]) -> list[Finding]:
    """Single cells that lie far out, of hosts that nothing else is the matter with. Cells have heavier tails than
    medians of many; how heavy is measured."""
    rng = np.random.default_rng(1)
    found = []
    for s in seen:
        left = [i for i, host in enumerate(s.group.hosts) if id(host) not in named]
        common = np.flatnonzero(np.isfinite(s.rest).sum(axis=0) >= LEAST_HOSTS)
        if len(left) < LEAST_HOSTS or not len(common):
            continue
        columns, rest = s.columns[common], s.rest[:, common]
        scales = np.maximum(s.scales[common], chance.LEAST_SCALE)
        rows = rng.choice(left, 200_000)
        at = rng.integers(0, len(columns), 200_000)
        drawn = np.abs(rest[rows, at] / scales[at])
        drawn = drawn[np.isfinite(drawn)]
        if not len(drawn):
            continue
        bar = _far_bar(drawn, chance.FALSE_ALARMS / PARTS / len(columns))
        z = np.abs(rest) / scales
        for i in left:
            own = np.flatnonzero((z[i] > bar) & (np.abs(rest[i]) >= math.log(CELL_RATIO)))
            if not len(own):
                continue
            worst = own[np.argmax(np.abs(rest[i, own]))]
            more = f" and {len(own) - 1:,} more" if len(own) > 1 else ""
            ratio = math.exp(float(np.clip(rest[i, worst], -50, 50)))
            words = f"{cell_words(fleet.keys[columns[worst]])} {ratio:.2f} × the model's{more}"
            found.append(
                Finding(s.group.hosts[i], s.group, "single cells", words, ratio, float(z[i, worst]))
            )
    return found


# What two cells of one size may differ in, and what most have.
_UNUSUAL = {
    "mode": ("throughput", "{}"),
    "places": ("repeat", "places that {}"),
    "code": ("warm", "{} code"),
    "threads": (1, "{} threads"),
}


def cell_words(key: tuple) -> str:
    own = {name: key[i] for name, i in AT.items() if key[i] is not None}
    words = [f"{own['experiment']}: {own['routine']}", str(own.get("op", ""))]
    if "size" in own:
        words.append(f"{own['size']:,} B")
    words += [str(own[k]) for k in ("mix", "src_state") if k in own]
    for name, (usual, said) in _UNUSUAL.items():
        if own.get(name, usual) != usual:
            words.append(said.format(own[name]))
    return " ".join(filter(None, words))


def _by_settings(groups: list[Group]) -> list[Finding]:
    """What the machines say of themselves, against what most of their CPU model say."""
    found = []
    models: dict[str, list[tuple[Host, Group]]] = {}
    for group in groups:
        models.setdefault(group.model, []).extend((host, group) for host in group.hosts)
    for members in models.values():
        if len(members) < LEAST_HOSTS:
            continue
        thp, share = grouping.most(host.facts.thp for host, _ in members)
        if share >= USUAL and thp not in (None, "never"):
            words = f"transparent huge pages never; {share:.0%} of the model have {thp}"
            found += [
                Finding(host, group, "THP off", words)
                for host, group in members
                if host.facts.thp == "never"
            ]
        for key, by in (("sysfs", "the kernel lists"), ("believed", "CPUID and the rest give")):
            usual, share = grouping.most(getattr(host.facts, key) for host, _ in members)
            if share < USUAL or not usual:
                continue
            for host, group in members:
                own = getattr(host.facts, key)
                if own != usual:
                    words = f"{by} {own or 'no caches'}; {share:.0%} of the model have {usual}"
                    found.append(Finding(host, group, "caches misreported", words))
    return found


def _by_problems(fleet: Fleet, groups: list[Group]) -> list[Finding]:
    found = []
    for group in groups:
        for host in group.hosts:
            for kind, routine, message, _ in grouping.failures(fleet, host)[:1]:
                found.append(Finding(host, group, f"{kind} routine", f"{routine}: {message}"))
    return found


def find(fleet: Fleet, groups: list[Group]) -> tuple[list[Seen], list[Finding]]:
    seen = [look(fleet, group) for group in groups]
    found = _by_problems(fleet, groups) + _by_settings(groups) + _by_figures(seen)
    found += _by_cells(fleet, seen, {id(f.host) for f in found})
    # One kind a host, with the clearest reason.
    best: dict[tuple[int, str], Finding] = {}
    for f in found:
        key = (id(f.host), f.kind)
        if key not in best or f.surprise > best[key].surprise:
            best[key] = f
    ordered = sorted(best.values(), key=lambda f: (f.group.title, f.kind, f.host.name))
    return seen, ordered


def counts(found: list[Finding]) -> list[tuple[str, int]]:
    return Counter(f.kind for f in found).most_common()
