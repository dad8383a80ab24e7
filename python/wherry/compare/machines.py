"""Whether two runs are of one machine as it stood: then times are compared, else only shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

PAIRED, SHAPES = "paired", "shapes"


@dataclass(frozen=True)
class Decision:
    method: str = SHAPES
    why: str = ""
    differ: tuple[str, ...] = ()


def _silicon(machine: dict) -> Any:
    """Two CPUs of one name need not be of one make."""
    own = [machine["cpu"].get(key) for key in ("family", "model_number", "stepping")]
    return None if None in own else tuple(own)


# What has to be the same, in words, and where it stands.
_FIELDS = (
    ("host", lambda m: m["host"]),
    ("boot", lambda m: m.get("boot")),
    ("CPU", lambda m: m["cpu"]["model"]),
    ("CPU's family, model and stepping", _silicon),
    ("count of CPUs", lambda m: m["cpu"].get("count")),
    ("kernel", lambda m: m["kernel"]),
    ("libc", lambda m: m["libc"]),
)
# Without these nobody can say that it is one machine.
_NEEDED = ("host", "CPU", "kernel", "libc")
# google-benchmark tells no more of a machine; all of it the same is taken for enough.
_NEEDED_THERE = ("host", "count of CPUs", "caches")


def decide(a: dict, b: dict, vouched: bool = False, forced: str | None = None) -> Decision:
    """`vouched`: the user says that it is one machine; `forced`: the user chose the method."""
    told, differ, untold = _sorted_out(a["machine"], b["machine"])
    units = {(run.get("source") or {}).get("unit", "ns") for run in (a, b)}
    if len(units) > 1:
        return Decision(SHAPES, "one run is in ticks of a counter, the other in nanoseconds")
    if forced:
        return Decision(forced, "as asked for with --method", tuple(differ))
    if vouched:
        why = "one machine, as --same-machine says"
        return Decision(
            PAIRED, why + (f" ({_join(differ)} differ)" if differ else ""), tuple(differ)
        )
    if differ:
        shown = [_change(key, a["machine"], b["machine"]) for key in differ]
        return Decision(SHAPES, f"not one machine as it stood: {'; '.join(shown)}", tuple(differ))
    foreign = any((run.get("source") or {}).get("tool") == "google-benchmark" for run in (a, b))
    needed = _NEEDED_THERE if foreign and "CPU" in untold else _NEEDED
    missing = [key for key in needed if key not in told]
    if missing:
        return Decision(
            SHAPES,
            f"whether it is one machine is not told ({_join(missing)} missing); "
            "if it is, say --same-machine",
        )
    rest = f" ({_join(untold)} not told by both)" if untold else ""
    return Decision(PAIRED, f"one machine: same {_join(told)}{rest}")


def _sorted_out(a: dict, b: dict) -> tuple[list[str], list[str], list[str]]:
    told, differ, untold = [], [], []
    fields = (*_FIELDS, ("caches", _caches))
    for key, get in fields:
        own, other = get(a), get(b)
        if own is None or other is None:
            untold.append(key)
        elif own == other:
            told.append(key)
        else:
            differ.append(key)
    # A name and a count of CPUs that agree say enough in words.
    told = [key for key in told if "stepping" not in key]
    untold = [key for key in untold if "stepping" not in key]
    # Between two runs of a virtual machine sysfs may hide or show caches: it does not make another machine of it.
    known = all(key in told for key in _NEEDED)
    return (
        [k for k in told if not (known and k == "caches")],
        [k for k in differ if not (known and k == "caches")],
        [k for k in untold if k != "caches"],
    )


def _caches(machine: dict) -> Any:
    own = [(c["level"], c["type"], c["bytes"]) for c in machine["caches"]]
    return sorted(own) if own else None


def _change(key: str, a: dict, b: dict) -> str:
    get = dict((*_FIELDS, ("caches", _caches)))[key]
    if key in ("boot", "caches"):
        return "it was booted in between" if key == "boot" else "caches differ"
    return f"{key} {get(a)} and {get(b)}"


def _join(words: list[str] | tuple[str, ...]) -> str:
    return ", ".join(words[:-1]) + f" and {words[-1]}" if len(words) > 1 else "".join(words)
