"""What one run file tells, taken out of it without trusting it: the machine's facts, cleaned, and its cells as columns.

Ten thousand files are held to the types of what is used, not to the whole schema, which takes a second a file."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import re
import zlib
from collections.abc import Iterable
from operator import itemgetter
from pathlib import Path

import numpy as np

from wherry import machine as machine_room
from wherry.report.dimensions import clean

# All that tells one cell from another, in a fixed order; a cell that lacks one has None there.
KEYS = (
    *(
        "experiment",
        "op",
        "routine",
        "name",
        "size",
        "mix",
        "src_off",
        "dst_off",
        "delta",
        "overlap",
    ),
    *(
        "walk",
        "buffer",
        "src_state",
        "dst_state",
        "content",
        "mode",
        "threads",
        "huge",
        "table",
        "code",
    ),
    *("via", "partners", "place", "live", "who"),
)
AT = {name: i for i, name in enumerate(KEYS)}
_TEXT = {
    *("experiment", "op", "routine", "name", "mix", "walk", "src_state", "dst_state", "content"),
    *("mode", "code", "via", "partners", "place", "live", "who"),
}
# The figures kept of a cell. log_ns and the like would save nothing: float32 holds seven digits.
FIGURES = ("ns", "q25", "q75", "ratio")
LARGEST = 64 << 20
MOST_CELLS = 200_000
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
# float32's range; a time outside is none that anybody measured.
_LEAST, _MOST = 1e-6, 1e30


class UnfitError(Exception):
    """Why a file is no run file, as the end of a sentence."""


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
    problems: list[tuple[str, str, str]]
    plan: str
    source: bool  # another tool's run
    experiments: list[str] = dataclasses.field(default_factory=list)


def unpacked(data: bytes) -> bytes:
    """At most LARGEST of it, and never more than that in memory."""
    if data[:2] != b"\x1f\x8b":
        return data
    out = zlib.decompressobj(wbits=31)
    try:
        whole = out.decompress(data, LARGEST + 1)
    except zlib.error:
        raise UnfitError("is a damaged gzip") from None
    if len(whole) > LARGEST:
        raise UnfitError(f"is too large unpacked (over {LARGEST >> 20} MiB)")
    if not out.eof:
        raise UnfitError("is a gzip that is cut short")
    return whole


def parsed(data: bytes) -> object:
    try:
        import orjson
    except ImportError:
        import json

        def refuse(word: str) -> float:
            raise ValueError(f"{word} is not a number JSON has")

        try:
            return json.loads(data.decode("utf-8"), parse_constant=refuse)
        except RecursionError:
            raise UnfitError("is nested too deeply") from None
        except ValueError:
            raise UnfitError(_no_json(data)) from None
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if "ecursion" in str(error):
            raise UnfitError("is nested too deeply") from None
        raise UnfitError(_no_json(data)) from None


def _no_json(data: bytes) -> str:
    if not data.strip():
        return "is empty"
    if b"\0" in data[:4096]:
        return "is not text"
    return "is not JSON" if data.rstrip().endswith(b"}") else "is cut short, or not JSON"


def load(path: Path) -> dict:
    """The document in a file; UnfitError when it is none."""
    try:
        if not path.is_file():
            raise UnfitError("is not a file")
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise UnfitError(f"cannot be read: {error.strerror}") from None
    if len(data) > LARGEST:
        raise UnfitError(f"is too large (over {LARGEST >> 20} MiB)")
    return held(parsed(unpacked(data)))


def held(run: object) -> dict:
    if not isinstance(run, dict) or run.get("format") != "wherry-run":
        raise UnfitError('is JSON, but not a run file (no "format": "wherry-run")')
    if run.get("format_version") != 1 or isinstance(run["format_version"], bool):
        raise UnfitError("is of a format that this Wherry does not read; use a newer one")
    for key, kind in (
        ("machine", dict),
        ("cells", list),
        ("experiments", list),
        ("problems", list),
    ):
        if not isinstance(run.get(key), kind):
            raise UnfitError(f"is not a right run file: {key} is missing or of a wrong type")
    return run


# ---- the machine ----------------------------------------------------------------------------------------------------


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


def of(path: str, run: dict) -> Facts:
    machine = run["machine"]
    cpu = _dict(machine, "cpu")
    experiments = run["experiments"]
    host = _text(machine, "host", "(no name)", 64)
    model = _text(cpu, "model", "CPU not told")
    numbers = tuple(_whole(cpu, key) for key in ("family", "model_number", "stepping"))
    boot = _text(machine, "boot")
    mark = boot or repr((host, model, numbers))
    problems = []
    for problem in run["problems"]:
        if isinstance(problem, dict) and (kind := _text(problem, "kind")) and len(problems) < 20:
            words = (_text(problem, "routine", "?"), _text(problem, "message", "", 200))
            problems.append((kind, *words))
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
        problems=problems,
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


# ---- the cells ------------------------------------------------------------------------------------------------------


def canonical(cell: dict) -> tuple:
    """Its identity, each value of a type that it may have."""
    key = []
    for name in KEYS:
        value = cell.get(name)
        if value is None:
            key.append(None)
        elif name in _TEXT:
            if not isinstance(value, str):
                raise UnfitError(f"is not a right run file: a cell's {name} is no text")
            key.append(clean(value))
        else:
            if type(value) not in (int, bool) or not -(1 << 62) < value < 1 << 62:
                raise UnfitError(f"is not a right run file: a cell's {name} is no whole number")
            key.append(int(value))
    if key[0] is None or key[AT["routine"]] is None:
        raise UnfitError("is not a right run file: a cell has no experiment or routine")
    return tuple(key)


class Cells:
    """Turns cells into numbers of identities and columns of figures. Numbers are counted up from the first file on."""

    def __init__(self) -> None:
        self.keys: list[tuple] = []
        self._numbers: dict[tuple, int] = {}
        self._seen: dict[tuple, int] = {}
        self._shapes: dict[tuple, tuple[int, itemgetter]] = {}
        self._last: tuple[int, list, np.ndarray] | None = None

    def _number(self, cell: dict) -> int:
        key = canonical(cell)
        number = self._numbers.setdefault(key, len(self.keys))
        if number == len(self.keys):
            self.keys.append(key)
        return number

    def _identify(self, cells: list[dict]) -> np.ndarray:
        # Cells with the same keys in the same order differ in their values alone: one call in C fetches them.
        shapes = set(map(tuple, cells))
        if len(shapes) == 1:
            number, getter = self._getter(shapes.pop())
            values = list(map(getter, cells))
            # Runs of one campaign have the same cells in the same order.
            if self._last is not None and self._last[:2] == (number, values):
                return self._last[2]
            found = np.array([self._of(number, v, c) for v, c in zip(values, cells, strict=True)])
            self._last = (number, values, found.astype(np.int32))
            return self._last[2]
        found = []
        for cell in cells:
            number, getter = self._getter(tuple(cell))
            found.append(self._of(number, getter(cell), cell))
        return np.array(found, np.int32)

    def _getter(self, shape: tuple) -> tuple[int, itemgetter]:
        own = self._shapes.get(shape)
        if own is None:
            names = [name for name in KEYS if name in shape] or ["routine"]
            own = self._shapes[shape] = (len(self._shapes), itemgetter(*names, *names[:1]))
        return own

    def _of(self, shape: int, values: tuple, cell: dict) -> int:
        number = self._seen.get((shape, values))
        if number is None:
            number = self._seen[shape, values] = self._number(cell)
        return number

    def columns(self, run: dict) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the cells, and their figures (a row of four each)."""
        cells = run["cells"]
        if len(cells) > MOST_CELLS:
            raise UnfitError(f"has more than {MOST_CELLS:,} cells")
        try:
            cells = [cell for cell in cells if not cell["aa"]]
            numbers = self._identify(cells)
            quantiles = [cell["ns"] for cell in cells]
            figures = np.empty((len(cells), len(FIGURES)), np.float32)
            figures[:, 0] = _column([ns["median"] for ns in quantiles])
            for i, key in ((1, "q25"), (2, "q75")):
                figures[:, i] = _column([ns.get(key) for ns in quantiles])
            ratios = [cell.get("ratio") for cell in cells]
            figures[:, 3] = _column([r and r["median"] for r in ratios])
        except (KeyError, TypeError, AttributeError):
            raise UnfitError(
                "is not a right run file: a cell lacks something, or has a wrong type"
            ) from None
        if not np.isfinite(figures[:, 0]).all():
            raise UnfitError(
                "is not a right run file: a cell has no time, or one beyond all reason"
            )
        _, first = np.unique(numbers, return_index=True)
        if len(first) < len(numbers):
            first.sort()
            numbers, figures = numbers[first], figures[first]
        return numbers, figures


_NUMBERS = {int, float}


def _column(values: list) -> np.ndarray:
    if not set(map(type, values)) <= _NUMBERS:
        if any(type(v) not in (int, float, type(None)) for v in values):
            raise TypeError
        values = [math.nan if v is None else v for v in values]
    try:
        found = np.array(values, np.float64)
    except OverflowError:
        raise TypeError from None
    found[~((found >= _LEAST) & (found <= _MOST))] = np.nan
    return found
