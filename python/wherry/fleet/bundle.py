"""The plans that hosts were tuned to, as one bundle: one plan a CPU, the middle of what its hosts found."""

from __future__ import annotations

import contextlib
import statistics
from collections import Counter
from pathlib import Path

from wherry import planbinary, planfiles, plans
from wherry.errors import WherryError
from wherry.fleet import loading
from wherry.plans import OFF, Plan


def files(given: list[str], target: Path | None = None) -> list[Path]:
    """`target`: where the bundle goes. One of an earlier call, among them, would count as one host more."""
    found: list[Path] = []
    for name in given:
        path = Path(name)
        if path.is_dir():
            found += sorted(p for p in path.rglob("*") if p.suffix in (".toml", ".plan"))
        elif path.suffix in (".toml", ".plan"):
            found.append(path)
    for path in found if target else ():
        with contextlib.suppress(OSError):  # what is not there is told when it is read, or made
            if target.samefile(path):
                raise WherryError(
                    f"--bundle {target}: that is one of the plans that are read; give a name outside of RUNS"
                )
    return found


def has_runs(name: str) -> bool:
    """Whether it is to be read for runs, too: no plan, and no directory of plans alone, as `fleet tune --out` makes."""
    path = Path(name)
    try:
        return not files([name]) or (path.is_dir() and bool(loading.run_files(path)))
    except OSError:  # whoever reads it says why it cannot be read
        return True


def _middle(own: list[Plan]) -> Plan:
    """The choice that most made; of those who made it, the host whose thresholds lie in the middle."""
    choice, _ = Counter(p.choice for p in own).most_common(1)[0]
    same = [p for p in own if p.choice == choice]
    middles = {
        field: statistics.median_low([p.thresholds[field] for p in same]) for field in plans.FIELDS
    }

    def distance(plan: Plan) -> float:
        # A whole plan of one host, not a mixture that nobody measured. Sizes are told apart by doublings.
        return sum(
            abs(min(plan.thresholds[f], OFF).bit_length() - min(m, OFF).bit_length())
            for f, m in middles.items()
        )

    return min(same, key=lambda p: (distance(p), p.name))


def make(paths: list[Path]) -> list[tuple[Plan, int]]:
    """Plans, and how many hosts stand behind each."""
    by_cpu: dict = {}
    for path in paths:
        for plan in planfiles.read(path):
            by_cpu.setdefault(plan.cpu, []).append(plan)
    if not by_cpu:
        raise WherryError(
            "no plans (*.toml, *.plan) among what was given; wherry fleet tune --scheduler ADDRESS --out DIR makes them"
        )
    if len(by_cpu) > planbinary.MOST_PLANS:
        raise WherryError(
            f"plans for {len(by_cpu)} CPUs are too many for one bundle; it has room for {planbinary.MOST_PLANS}"
        )
    # The library takes the first that fits: what is meant for fewer CPUs comes first.
    ordered = sorted(by_cpu.items(), key=lambda own: (-_narrowness(own[0]), repr(own[0])))
    return [(_middle(own), len(own)) for _, own in ordered]


def _narrowness(cpu: plans.Cpu) -> int:
    exact = (cpu.model, cpu.stepping, cpu.last_level)
    return sum(v is not None for v in exact) * 16 + len(cpu.present) + len(cpu.absent)


def write(target: Path, made: list[tuple[Plan, int]]) -> None:
    own = [plan for plan, _ in made]
    planfiles.save(
        target, own, f"A fleet's {len(own)} plans; each CPU takes the first that is for it."
    )
