"""What one run file tells of its machine, taken out of it without trusting it, each value held to its type."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import re
from collections.abc import Iterable

from wherry import machine as machine_room
from wherry.dimensions import clean

# Of a run; honest ones have a few hundred, a stranger's could have millions.
MOST_PROBLEMS = 1000
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@dataclasses.dataclass
class Facts:
    """Of one run."""

    path: str
    host: str
    ident: str  # of the host: by boot, or by name and CPU where the boot is not told
    model: str
    cpu: tuple[str | None, int | None, int | None, int | None]  # vendor, family, model, stepping
    hypervisor: str
    libc: str
    kernel: str
    started: str
    wherry: str
    thp: str | None
    governor: str | None
    sysfs: str  # cache sizes as the kernel lists them
    believed: str
    interrupted: bool
    floor: float | None
    pace: dict[str, float]  # core, memory: median over the best; share of rounds above
    voided: float | None  # share of the rounds
    problems: list[tuple[str, str, str, str | None]]  # kind, routine, message, experiment
    plan: str
    source: bool  # another tool's run
    experiments: list[str] = dataclasses.field(default_factory=list)


def _dict(of: dict, key: str) -> dict:
    value = of.get(key)
    return value if isinstance(value, dict) else {}


def _list(of: dict, key: str) -> list:
    value = of.get(key)
    return value if isinstance(value, list) else []


def _text(of: dict, key: str, default: str | None = None, longest: int = 80) -> str | None:
    value = of.get(key)
    return clean(value, longest) if isinstance(value, str) and value else default


def _whole(of: dict, key: str) -> int | None:
    value = of.get(key)
    return value if type(value) is int and 0 <= value < 1 << 53 else None


def _figure(of: dict, key: str) -> float | None:
    value = of.get(key)
    if type(value) not in (int, float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) and found >= 0 else None


def _sysfs(machine: dict) -> str:
    sizes = {}
    for cache in _list(machine, "caches"):
        if isinstance(cache, dict) and cache.get("type") in ("data", "unified", "Data", "Unified"):
            level, size = _whole(cache, "level"), _whole(cache, "bytes")
            if level in (1, 2, 3, 4) and size is not None:
                sizes[level] = size
    return _sizes({f"L{level}{'d' if level == 1 else ''}": s for level, s in sizes.items()})


def _believed(machine: dict) -> str:
    believed = _dict(_dict(machine, "reported"), "believed")
    sizes = {}
    for level in ("L1d", "L2", "L3"):
        size = _whole(_dict(believed, level), "size")
        if size is not None:
            sizes[level] = size
    return _sizes(sizes)


def _sizes(sizes: dict[str, int]) -> str:
    from wherry.units import size_in_words

    return ", ".join(f"{level} {size_in_words(size)}" for level, size in sorted(sizes.items()))


def _hypervisor(machine: dict) -> str:
    own = _dict(machine, "virtualisation")
    virtual = own.get("virtual")
    text = machine_room.virtual(
        {
            "virtualisation": {
                "virtual": virtual if isinstance(virtual, bool) else None,
                "hypervisor": _text(own, "hypervisor", longest=40),
                "product": _text(own, "product", longest=40),
            }
        }
    )
    return {"bare metal as far as can be seen": "bare metal"}.get(text, text)


def _pace(experiments: Iterable[object]) -> dict[str, float]:
    """The worst of its experiments."""
    found: dict[str, float] = {}
    for own in experiments:
        for kind, pace in _dict(own, "pace").items() if isinstance(own, dict) else ():
            if kind not in ("core", "memory") or not isinstance(pace, dict):
                continue
            for key in ("median", "share_above"):
                value = _figure(pace, key)
                if value is not None:
                    name = f"{kind}_{key}"
                    found[name] = max(found.get(name, 0.0), value)
    return found


def _voided(experiments: Iterable[object]) -> float | None:
    lost = tried = 0.0
    for own in experiments:
        if isinstance(own, dict) and (rounds := _figure(own, "tried")):
            tried += rounds
            lost += sum(v for v in map(_number, _dict(own, "voided").values()) if v)
    return min(lost / tried, 1.0) if tried else None


def _number(value: object) -> float | None:
    return _figure({"": value}, "")


def _plan(machine: dict) -> str:
    plan = _dict(_dict(machine, "reported"), "plan")
    force = _dict(plan, "in_force") or _dict(plan, "in force")
    choice = _text(force, "choice") or _text(plan, "choice") or _text(plan, "status")
    return choice or "not told"


def _problems(own: list[object]) -> list[tuple[str, str, str, str | None]]:
    """What is left out of too many is of the harmless kind, of which one CPU without AVX-512 has dozens."""
    found = []
    for problem in own:
        if isinstance(problem, dict) and (kind := _text(problem, "kind")):
            words = (_text(problem, "routine", "?"), _text(problem, "message", "", 200))
            found.append((kind, *words, _text(problem, "experiment")))
    if len(found) > MOST_PROBLEMS:
        found.sort(key=lambda problem: problem[0] == "skip")
    return found[:MOST_PROBLEMS]


def of(path: str, run: dict) -> Facts:
    machine = run["machine"]
    cpu = _dict(machine, "cpu")
    experiments = run["experiments"]
    host = _text(machine, "host", "(no name)", 64)
    model = _text(cpu, "model", "CPU not told")
    numbers = tuple(_whole(cpu, key) for key in ("family", "model_number", "stepping"))
    boot = _text(machine, "boot")
    mark = boot or repr((host, model, numbers))
    started = run.get("started")
    return Facts(
        path=path,
        host=host,
        # One name on several boots is one host restarted; one boot under several names are containers of one host.
        ident=f"{host}@{hashlib.sha256(mark.encode()).hexdigest()[:12]}",
        model=model,
        cpu=(_text(cpu, "vendor"), *numbers),
        hypervisor=_hypervisor(machine),
        libc=_text(machine, "libc", "libc not told"),
        kernel=_text(machine, "kernel", "kernel not told"),
        started=started if isinstance(started, str) and _TIME.fullmatch(started) else "",
        wherry=_text(run, "wherry", "?"),
        thp=_text(_dict(machine, "pages"), "thp"),
        governor=_text(machine, "governor"),
        sysfs=_sysfs(machine),
        believed=_believed(machine),
        interrupted=run.get("interrupted") is True,
        floor=_figure(_dict(run, "noise"), "floor"),
        pace=_pace(experiments),
        voided=_voided(experiments),
        problems=_problems(run["problems"]),
        plan=_plan(machine),
        source=isinstance(run.get("source"), dict),
        experiments=[
            name
            for own in experiments
            if isinstance(own, dict)
            and own.get("complete") is True
            and (name := _text(own, "name"))
        ],
    )
