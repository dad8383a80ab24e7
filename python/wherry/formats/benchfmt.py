"""The text of Go's benchmarks, as `go test -bench` prints it and benchstat reads it: configuration lines `key: value`,
unit lines, and one line a sample."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from wherry.errors import WherryError
from wherry.formats import naming
from wherry.formats.foreign import Cell, Source, build, made, moment, positive
from wherry.formats.samples import Samples, rate
from wherry.units import plural

TOOL = "benchfmt"
_CONFIG = re.compile(r"([^\sA-Z:][^\sA-Z:]*):(?:[ \t]+(.*))?")
_TIMES = {"ns/op": 1.0, "sec/op": 1e9, "us/op": 1e3, "µs/op": 1e3, "ms/op": 1e6}
# Lines that other readers pass over.
_COMMENT = "# "
# Bytes a nanosecond.
_RATES = {"MB/s": 1e-3, "B/s": 1e-9}
# Of the lines that follow it, in what we write ourselves.
_TOLD = "# of {rounds} rounds in {processes} processes, noise floor {noise_floor}"
_IS_TOLD = re.compile(
    r"# of (?P<rounds>\d{1,10}) rounds in (?P<processes>\d{1,10}) processes, noise floor "
    r"(?P<noise_floor>\d[-+.e\d]{0,30}|unknown)"
)
# A line that `go test` has begun and something else has ended, "--- FAIL" or what the benchmark prints: no count, and
# no figure, which a damaged line would have.
_NO_RESULT = re.compile(r"Benchmark\S*\s+(?![0-9]+(\s|$))(?!.*[0-9]\s+\S+/)\S")
_MACHINE = {"host": "host", "kernel": "kernel", "libc": "libc", "boot": "boot"}


# ---- in -------------------------------------------------------------------------------------------------------------


def fits(text: str) -> bool:
    return re.search(r"^Benchmark\S*[ \t]+[0-9]", text, re.MULTILINE) is not None


def read(text: str, file: str) -> dict:
    source = Source(TOOL, file)
    cells: dict[tuple, Cell] = {}
    config: dict[str, str] = {}
    untimed = broken = 0
    ours = re.search(r"^# wherry: ", text, re.MULTILINE) is not None
    exported = ours or re.search(r"^# exported_by_wherry: ", text, re.MULTILINE) is not None
    how: dict[str, object] = {}
    for number, line in enumerate(text.split("\n"), 1):
        line = line.rstrip("\r")
        if line.startswith("Benchmark"):
            if _NO_RESULT.match(line):
                broken += 1
            elif not _benchmark(line, number, cells, config, file, ours):
                untimed += 1
            elif exported and (cell := next(reversed(cells.values()))).made is None:
                cell.made = made(source.told.get("samples"), how.get)
            continue
        if told := _IS_TOLD.fullmatch(line):
            how = _numbers(told)
            continue
        found = _CONFIG.fullmatch(line.removeprefix(_COMMENT))
        if found and found[2]:
            if not line.startswith(_COMMENT):
                config[found[1]] = found[2].strip()
            source.told.setdefault(found[1], found[2].strip())
    if broken:
        source.notes.append(
            f"{plural(broken, 'line')} left out: no result behind the name, where it failed or something was printed"
        )
    if untimed:
        source.notes.append(f"{plural(untimed, 'line')} left out: no time in ns/op or sec/op")
    source.machine = _machine(source.told)
    source.when = moment(source.told.get("date"))
    return build(list(cells.values()), source)


def _numbers(told: re.Match) -> dict[str, object]:
    found: dict[str, object] = {key: int(told[key]) for key in ("rounds", "processes")}
    with contextlib.suppress(ValueError):
        found["noise_floor"] = float(told["noise_floor"])
    return found


def _benchmark(
    line: str, number: int, cells: dict, config: dict[str, str], file: str, ours: bool
) -> bool:
    words = line.split()
    if len(words) == 1:
        return True  # what go test -v prints when a benchmark begins
    where = f"{file}, line {number}"
    if not re.fullmatch(r"[0-9]{1,18}", words[1]):
        raise WherryError(f"{where}: '{words[1][:40]}' is not a count of iterations")
    if len(words) < 4 or len(words) % 2:
        raise WherryError(f"{where}: a figure has no unit; is the line cut short?")
    figures = {}
    for value, unit in zip(words[2::2], words[3::2], strict=True):
        try:
            figures[unit] = float(value)
        except ValueError:
            raise WherryError(f"{where}: '{value[:40]}' is not a number") from None
    time = next((positive(figures[u]) for u in _TIMES if u in figures), None)
    scale = next((_TIMES[u] for u in _TIMES if u in figures), 1.0)
    time = positive(time * scale) if time else None
    if time is None:
        return False
    fast = next((positive(figures[u] * k) for u, k in _RATES.items() if u in figures), None)
    key = (words[0], config.get("pkg", ""))
    if key not in cells:
        cells[key] = _cell(words[0], config.get("pkg", ""), fast and fast * time, ours)
    cells[key].samples.append(time)
    cells[key].calls = int(words[1])
    return True


def _cell(name: str, package: str, size: float | None, ours: bool) -> Cell:
    name = name.removeprefix("Benchmark")
    told_cpus = re.search(r"-([0-9]{1,5})$", name)
    name = name[: told_cpus.start()] if told_cpus else name
    told = naming.read(name, "=", size, ours)
    if told_cpus:
        # GOMAXPROCS says on how many CPUs the program may run, not how many threads copied.
        told.rest.append(f"cpus={told_cpus[1]}")
    return Cell(
        experiment=told.experiment or (f"go {package}" if package else TOOL),
        op=told.op,
        routine=told.routine or "Benchmark",
        dimensions=told.dimensions,
        name="/".join(told.rest),
        bytes=naming.bytes_of(told, size),
    )


def _machine(config: dict[str, str]) -> dict:
    own: dict = {at: config[key] for key, at in _MACHINE.items() if config.get(key)}
    own["cpu"] = {"model": config.get("cpu") or None}
    if re.fullmatch(r"[0-9]{1,6}", config.get("cpus", "")):
        own["cpu"]["count"] = int(config["cpus"])
    return own


# ---- out ------------------------------------------------------------------------------------------------------------


def write(run: dict, samples: Samples) -> str:
    return "".join(f"{line}\n" for line in _lines(run, samples))


def _lines(run: dict, samples: Samples) -> Iterator[str]:
    machine = run["machine"]
    own = (run.get("source") or {}).get("tool") is None
    # benchstat makes a table of its own for every other configuration: what differs from run to run is a comment.
    config = {
        "goos": "linux" if own else None,
        "goarch": "amd64" if own else None,
        "cpu": machine["cpu"]["model"],
        f"{_COMMENT}{naming.by(run)}": run["wherry"],
        f"{_COMMENT}date": run["started"],
        f"{_COMMENT}host": machine["host"],
        f"{_COMMENT}cpus": machine["cpu"].get("count"),
        f"{_COMMENT}boot": machine.get("boot"),
        f"{_COMMENT}kernel": machine["kernel"],
        f"{_COMMENT}libc": machine["libc"],
        f"{_COMMENT}samples": samples.about,
        f"{_COMMENT}tool": None if own else run["source"]["tool"],
    }
    for key, value in config.items():
        if value is not None:
            yield f"{key}: {' '.join(str(value).split())}"
    yield "Unit ns/op better=lower"
    yield "Unit B/s better=higher"
    yield ""
    for cell in samples.cells:
        name = naming.write(cell, "=")
        yield _TOLD.format(**{"noise_floor": "unknown"} | samples.told(cell))
        for value in samples.of(cell):
            fast = rate(cell["bytes"], value)
            told = f"\t{fast:.6g} B/s" if fast else ""
            yield f"Benchmark{name[0].upper()}{name[1:]}\t{cell['calls'] or 1}\t{value:.7g} ns/op{told}"
