"""Mixes: distributions of the sizes that a program asks for. Built in, read from files in the forms of fleetbench and
of LLVM libc (wherry.mixfiles), or recorded (wherry.recordings), of which some come with Wherry."""

from __future__ import annotations

import codecs
import functools
import hashlib
import itertools
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from wherry import mixcopies, mixfiles, named_files
from wherry.errors import WherryError
from wherry.mixfiles import Shares
from wherry.units import plural, size_in_words, size_label

# Of a file and of a directory; more was not meant for a table.
LARGEST_FILE = 4 << 20
# How far a destination may lie from its slot for the sake of its place in the page (docs/runner-protocol.md).
REACH = 8192
MOST_FILES = 64
# The runner lets one call in a hundred of a mix reach out of its cache; its draw is not ours, so half of that.
BEYOND_USUAL = 0.005
PERCENTILES = (10, 50, 75, 90, 99)
# The function that a file is named after tells whose sizes it holds; the others are no ops of ours.
OPS = {"memcpy": "copy", "memmove": "move", "memset": "set"}
_LARGEST = size_in_words(mixfiles.LARGEST_SIZE)
_FOREIGN = ("memcmp", "bcmp")


@dataclass(frozen=True)
class Mix:
    name: str
    spec: str  # what the runner takes
    ops: tuple[str, ...]
    mean: float
    largest: int
    usual: int  # what nearly all calls ask for at most; chooses the cache
    percentiles: tuple[tuple[int, int], ...]  # (percentile, bytes)
    share_16: float  # of the calls, at most so many bytes
    share_64: float
    sha256: str = ""  # of a file's content
    shares: Shares = field(default=({}, {}, {}), compare=False, repr=False)

    def of_row(self) -> dict[str, str]:
        """What a row of it has; a range has no name beside what it is."""
        return {"mix": self.spec, "mix_name": f"@{self.name}" if self.sha256 else ""}

    def record(self) -> dict[str, object]:
        """What the run file keeps, since the file itself stays behind."""
        own = {
            "name": self.name,
            "ops": list(self.ops),
            "mean": float(f"{self.mean:.6g}"),
            "largest": self.largest,
            "percentiles": {str(p): size for p, size in self.percentiles},
            "up_to_16": float(f"{self.share_16:.4g}"),
            "up_to_64": float(f"{self.share_64:.4g}"),
        }
        return own | ({"sha256": self.sha256} if self.sha256 else {})


def _mix(name: str, spec: str, ops: tuple[str, ...], parts: Shares, sha256: str = "") -> Mix:
    shares = parts[0]
    total = sum(shares.values())
    sizes = sorted(shares)
    running, points, wanted, usual = 0.0, [], list(PERCENTILES), sizes[-1]
    for size in reversed(sizes):
        running += shares[size] / total
        if running > BEYOND_USUAL:
            usual = size
            break
    running = 0.0
    for size in sizes:
        running += shares[size] / total
        # The sum of thousands of rounded probabilities falls short of 1 by a little.
        while wanted and running >= wanted[0] / 100 - 1e-9:
            points.append((wanted.pop(0), size))
    points += [(percentile, sizes[-1]) for percentile in wanted]
    return Mix(
        name,
        spec,
        ops,
        sum(size * share for size, share in shares.items()) / total,
        sizes[-1],
        usual,
        tuple(points),
        sum(share for size, share in shares.items() if size <= 16) / total,
        sum(share for size, share in shares.items() if size <= 64) / total,
        sha256,
        parts,
    )


@functools.cache
def built_in() -> tuple[Mix, ...]:
    """Sizes that nobody can predict, from a range."""
    found = []
    for low, high in ((0, 16), (0, 64), (0, 256), (0, 1024)):
        spec = f"uniform:{low}-{high}"
        every = dict.fromkeys(range(low, high + 1), 1.0)
        found.append(_mix(spec, spec, tuple(OPS.values()), (every, {}, {})))
    even = {size: math.log((size + 1) / size) for size in range(1, 4097)}
    found.append(_mix("log:1-4096", "log:1-4096", tuple(OPS.values()), (even, {}, {})))
    return tuple(found)


def of_range(spec: str, kind: str, low: int, high: int) -> Mix:
    """What the runner draws from a range; of a wide one some sizes stand for their neighbours here."""
    step = max(1, (high - low + 1) // 65536)
    sizes = range(low, high + 1, step)
    shares = {n: 1.0 if kind == "uniform" else math.log((n + step) / n) for n in sizes}
    return _mix(spec, spec, tuple(OPS.values()), (shares, {}, {}))


_RANGE = re.compile(r"(uniform|log):(\d{1,12})([KMG]?)-(\d{1,12})([KMG]?)", re.ASCII | re.I)
_TIMES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


_BEGINS_RANGE = re.compile(r"(uniform|log):", re.I)


def is_range(word: str) -> bool:
    return _RANGE.fullmatch(word) is not None


def not_a_broken_range(given: str) -> None:
    """Raises where a word of it was meant as one, and is not; unless a file has that name."""
    if os.path.lexists(given):
        return
    for word in given.split(","):
        if _BEGINS_RANGE.match(word) and not is_range(word):
            raise WherryError(
                f"{word}: no range of sizes; give uniform:LO-HI or log:LO-HI in bytes, or with K, M or G "
                f"behind a number, to {_LARGEST}"
            )


def from_range(word: str) -> Mix:
    """`uniform:8-100`, `log:1-4K`."""
    kind, *bounds = _RANGE.fullmatch(word).groups()
    low, high = (int(digits) * _TIMES[unit.upper()] for digits, unit in (bounds[:2], bounds[2:]))
    kind = kind.lower()
    if low > high or high > mixfiles.LARGEST_SIZE or (kind == "log" and not low):
        raise WherryError(
            f"--mix {word}: give LO-HI with LO no larger than HI, to {_LARGEST}"
            + ("; log: begins at 1" if kind == "log" else "")
        )
    return of_range(f"{kind}:{low}-{high}", kind, low, high)


def of_name(name: str) -> dict[str, object] | None:
    """The record of a range, of which a run file keeps no more than its name; None for any other mix."""
    try:
        return from_range(name).record() if is_range(name) else None
    except WherryError:  # a file may hold what nobody measured
        return None


# ---- files ----------------------------------------------------------------------------------------------------------


def _bytes(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise WherryError(f"--mix {path}: not a file or a directory of files; give one of them")
        data = named_files.at_most(path, LARGEST_FILE + 1)
    except OSError as error:
        name, more = path.name, ""
        if isinstance(error, FileNotFoundError) and name in {
            m.name for m in shipped(runnable=False)
        }:
            more = f"; {name} comes with Wherry: wherry list mixes {name} --export FILE makes a file of it"
        raise WherryError(f"--mix {path}: cannot be read: {error.strerror}{more}") from None
    if len(data) > LARGEST_FILE:
        raise WherryError(
            f"--mix {path}: too large for a mix (over 4 MiB); join sizes into classes"
        )
    data = data.removeprefix(codecs.BOM_UTF8)  # which some editors put before a text
    if not data.strip():
        raise WherryError(f"--mix {path}: is empty; its first line must be size:probability,...")
    return data


def ops_of_name(stem: str) -> tuple[str, ...]:
    """Those that a file of this name is for: all, when the name does not say."""
    # gcc.copy is our own way: what was recorded there, whatever the program was called.
    if (own := stem.rpartition("."))[0] and own[2] in OPS.values():
        return (own[2],)
    # Memcpy_0 is fleetbench's way to name them, MemcpyGoogleA LLVM libc's.
    found = re.match(rf"(?i:({'|'.join([*OPS, *_FOREIGN])}))(?![a-z])", stem)
    word = found[1].lower() if found else ""
    if word in _FOREIGN:
        return ()
    return (OPS[word],) if word in OPS else tuple(OPS.values())


def read(path: Path, name: str = "") -> Mix:
    data = _bytes(path)
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError:
        raise WherryError(
            f"--mix {path}: is not text; give a file of size:probability,..."
        ) from None
    parts = mixfiles.read(text, f"--mix {path}")
    ops = ops_of_name(path.stem)
    if not ops:
        raise WherryError(
            f"--mix {path}: holds the sizes of {path.stem.split('_')[0]}, which is none of "
            f"{', '.join(OPS)}; rename it if that is wrong"
        )
    return _mix(
        name or path.stem,
        # The runner knows one of the forms.
        mixcopies.keep(_for_runner(text, data, parts)),
        ops,
        parts,
        hashlib.sha256(data).hexdigest(),
    )


def _for_runner(text: str, data: bytes, parts: Shares) -> bytes:
    return mixfiles.fleetbench(parts).encode() if mixfiles.form_of(text) == mixfiles.LLVM else data


def _is_recorded(path: Path) -> bool:
    return path.name.endswith(".json")


def _is_named_so(path: Path) -> bool:
    return path.suffix == ".csv" or path.name.endswith(".mix.json")


def _files(given: str) -> list[Path]:
    path = Path(given)
    if not path.is_dir():
        return [path]
    try:
        inside = sorted(p for p in path.iterdir() if _is_named_so(p) and p.is_file())
    except OSError as error:
        raise WherryError(f"--mix {path}: cannot be read: {error.strerror}") from None
    if not inside:
        raise WherryError(f"--mix {path}: the directory holds no .csv or .mix.json files")
    usable = [p for p in inside if _is_recorded(p) or ops_of_name(p.stem)]
    if not usable:
        raise WherryError(f"--mix {path}: none of its .csv files is for {', '.join(OPS)}")
    return usable


def _apart() -> Iterator[str]:
    """What sets files of one name apart."""
    yield ""
    yield from (f"~{number}" for number in itertools.count(2))


def gather(
    given: Iterable[str], told: Callable[[str], object] = lambda line: None
) -> tuple[Mix, ...]:
    """The mixes of files, and of all files in directories; names stay apart. `told`: gets a line for each that is not
    taken as a whole."""
    paths = list(
        dict.fromkeys(Path(os.path.abspath(p)) for text in given for p in _files(text))  # noqa: PTH100
    )
    if len(paths) > MOST_FILES:
        raise WherryError(f"--mix: {len(paths)} files; at most {MOST_FILES} at once")
    taken: set[str] = set()
    found: list[Mix] = []
    for path in paths:
        # A name stands in tables and in the run file: printable, and short.
        stem = (
            re.sub(r"[^\w.+-]", "_", path.stem.removesuffix(".mix"), flags=re.ASCII)[:40] or "mix"
        )
        own = _recorded(path, stem, told) or [read(path, stem)]
        ends = [mix.name.removeprefix(stem) for mix in own]
        # Also a recording's share of one op, and a file that is called so.
        names = ([f"{stem}{apart}{end}" for end in ends] for apart in _apart())
        free = next(names for names in names if taken.isdisjoint(names))
        taken.update(free)
        found += [replace(mix, name=name) for mix, name in zip(own, free, strict=True)]
    return tuple(found)


# ---- recorded -------------------------------------------------------------------------------------------------------


def _recorded(path: Path, name: str, told: Callable[[str], object]) -> list[Mix]:
    """A file that wherry record wrote, a mix an op; none when it is of another form."""
    from wherry import recordings

    try:
        head = named_files.at_most(path, 64) if path.is_file() else b""
    except OSError:
        head = b""
    if not head or (path.suffix != ".json" and not recordings.is_recorded(head)):
        return []  # _bytes() says why nothing can be read
    recording = recordings.read(path)
    found = of_recording(recording, name)
    beyond = {op: calls for op in recording.ops if (calls := recording.beyond(op))}
    if beyond and not found:
        raise WherryError(
            f"--mix {path}: each of its calls is of more than {_LARGEST}, and so many bytes are not measured"
        )
    for op, calls in beyond.items():
        told(
            f"{name}.{op}: {plural(calls, 'call')} of more than {_LARGEST} left out: nothing above that is measured"
        )
    if not found:
        raise WherryError(
            f"--mix {path}: no call of any op was recorded; record a program that copies"
        )
    return found


def of_recording(
    recording, name: str = "", ops: Iterable[str] = (), *, runnable: bool = True
) -> list[Mix]:
    """One for each of its ops, or of those asked for. Those that are not `runnable` are for showing alone: making the
    calls takes time."""
    from wherry import recordedcalls, recordings

    wanted = set(ops) or set(recording.ops)
    found = []
    for op in filter(wanted.__contains__, recording.ops):
        shares = recording.shares(op)
        if not shares[0]:
            continue  # what there is has more bytes than are measured
        # The same content is the same mix, however its file is laid out.
        digest = hashlib.sha256(recordings.encode(recording.document["ops"][op])).hexdigest()
        spec = recordedcalls.keep(recordedcalls.table(recording, op)) if runnable else ""
        found.append(_mix(f"{name or recording.name}.{op}", spec, (op,), shares, digest))
    return found


def shipped(ops: Iterable[str] = (), *, runnable: bool = True) -> tuple[Mix, ...]:
    """Recorded from real programs; they come with Wherry."""
    from wherry import recordings

    wanted = set(ops) or set(OPS.values())
    return tuple(
        mix
        for name in recordings.shipped_names()
        for op in recordings.shipped(name).ops
        if op in wanted
        for mix in _shipped(name, op, runnable)
    )


def shipped_as(name: str) -> Mix | None:
    """The one that is called so, which runs: gcc.copy."""
    if name not in {mix.name for mix in shipped(runnable=False)}:
        return None
    recording, _, op = name.rpartition(".")
    (found,) = _shipped(recording, op, runnable=True)
    return found


@functools.cache
def _shipped(name: str, op: str, runnable: bool) -> tuple[Mix, ...]:
    from wherry import recordings

    return tuple(of_recording(recordings.shipped(name), ops=(op,), runnable=runnable))


def with_given(own: Sequence[Mix], given: Sequence[Mix]) -> list[Mix]:
    """What comes with Wherry and what the user gives. A file of the user's stands in the place of the recording of its
    name, since a row is told by nothing else; a range that is there already is no other one."""
    names = {mix.name for mix in own}
    taken = {mix.name.rpartition(".")[0] for mix in given if mix.sha256}
    kept = [mix for mix in own if not (mix.sha256 and mix.name.rpartition(".")[0] in taken)]
    return [*kept, *(mix for mix in given if mix.sha256 or mix.name not in names)]


def for_op(mixes: Sequence[Mix], op: str) -> list[Mix]:
    return [mix for mix in mixes if op in mix.ops]


def in_words(record: dict) -> str:
    """`median 10, p90 75, p99 1709, mean 135 B`."""
    points = record["percentiles"]
    parts = [f"{'median' if p == '50' else f'p{p}'} {size_label(points[p])}" for p in points]
    return f"{', '.join(parts)}, mean {record['mean']:.0f} B"
