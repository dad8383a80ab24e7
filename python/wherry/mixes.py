"""Mixes: distributions of the sizes that a program asks for. Built in, or read from files whose first line is
`size:probability,...`; a second line with overlaps and a third with alignments may follow, as in fleetbench's files."""

from __future__ import annotations

import functools
import hashlib
import math
import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wherry.errors import WherryError
from wherry.units import size_label

# The runner's own bounds.
LARGEST_SIZE = 1 << 30
MOST_SIZES = 65536
# Of a file and of a directory; more was not meant for a table.
LARGEST_FILE = 4 << 20
MOST_FILES = 64
# The runner lets one call in a hundred of a mix reach out of its cache; its draw is not ours, so half of that.
BEYOND_USUAL = 0.005
PERCENTILES = (10, 50, 75, 90, 99)
# The function that a file is named after tells whose sizes it holds; the others are no ops of ours.
OPS = {"memcpy": "copy", "memmove": "move", "memset": "set"}
_FOREIGN = ("memcmp", "bcmp")
_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


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


def _mix(
    name: str, spec: str, ops: tuple[str, ...], shares: dict[int, float], sha256: str = ""
) -> Mix:
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
    )


@functools.cache
def built_in() -> tuple[Mix, ...]:
    """Sizes that nobody can predict, from a range."""
    found = []
    for low, high in ((0, 16), (0, 64), (0, 256), (0, 1024)):
        spec = f"uniform:{low}-{high}"
        found.append(_mix(spec, spec, tuple(OPS.values()), dict.fromkeys(range(low, high + 1), 1)))
    even = {size: math.log((size + 1) / size) for size in range(1, 4097)}
    found.append(_mix("log:1-4096", "log:1-4096", tuple(OPS.values()), even))
    return tuple(found)


# ---- files ----------------------------------------------------------------------------------------------------------


class _Copies:
    """The runner reads a mix in every process: from copies, which nobody changes meanwhile and whose paths have no
    blanks. Removed when the program ends."""

    def __init__(self) -> None:
        self._directory: tempfile.TemporaryDirectory | None = None
        self._count = 0

    def keep(self, data: bytes) -> str:
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="wherry-mixes-")
        self._count += 1
        path = Path(self._directory.name) / f"{self._count}.csv"
        path.write_bytes(data)
        return str(path)


_copies = _Copies()


def _bytes(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise WherryError(f"--mix {path}: not a file or a directory of files; give one of them")
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise WherryError(f"--mix {path}: cannot be read: {error.strerror}") from None
    if len(data) > LARGEST_FILE:
        raise WherryError(
            f"--mix {path}: too large for a mix (over 4 MiB); join sizes into classes"
        )
    if not data.strip():
        raise WherryError(f"--mix {path}: is empty; its first line must be size:probability,...")
    return data


# What stands before the colons of each line, and an example; held to what the runner holds it to.
_LINES = (
    ("size", lambda value: value <= LARGEST_SIZE, "8:0.5,64:0.5"),
    ("overlap", lambda value: value <= 1, "0:0.99,1:0.01 (1: both sides overlap)"),
    ("alignment", lambda value: value in (1, 2, 4, 8, 16, 32, 64), "1:0.3,64:0.7"),
)


def _shares(line: str, number: int, path: Path) -> dict[int, float]:
    what, allows, example = _LINES[number]
    shares: dict[int, float] = {}
    for entry in line.removesuffix(",").split(","):
        value, _, share = entry.partition(":")
        digits = re.fullmatch(r"[0-9]{1,12}", value)
        if not digits or not _NUMBER.fullmatch(share) or not allows(int(value)):
            raise WherryError(
                f"--mix {path}: '{entry[:40]}' in line {number + 1} is not {what}:probability; "
                f"write it as {example}"
            )
        shares[int(value)] = shares.get(int(value), 0.0) + float(share)
        if len(shares) > MOST_SIZES:
            raise WherryError(f"--mix {path}: more than {MOST_SIZES} sizes; join some")
    if not 0 < sum(shares.values()) < math.inf:
        raise WherryError(
            f"--mix {path}: the probabilities of line {number + 1} have no sum to scale to 1"
        )
    return {value: share for value, share in shares.items() if share > 0}


def _ops(stem: str) -> tuple[str, ...]:
    """Those that a file of this name is for: all, when the name does not say."""
    word = re.split(r"[^A-Za-z]", stem)[0].lower()
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
    lines = text.replace("\r", "").split("\n")
    if any(lines[len(_LINES) :]):
        raise WherryError(f"--mix {path}: more than three lines (sizes, overlap, alignments)")
    shares = _shares(lines[0], 0, path)
    for number, line in enumerate(lines[1 : len(_LINES)], 1):
        if line:
            _shares(line, number, path)
    ops = _ops(path.stem)
    if not ops:
        raise WherryError(
            f"--mix {path}: holds the sizes of {path.stem.split('_')[0]}, which is none of "
            f"{', '.join(OPS)}; rename it if that is wrong"
        )
    return _mix(
        name or path.stem,
        f"@{_copies.keep(data)}",
        ops,
        shares,
        hashlib.sha256(data).hexdigest(),
    )


def _files(given: str) -> list[Path]:
    path = Path(given)
    if not path.is_dir():
        return [path]
    try:
        inside = sorted(p for p in path.iterdir() if p.suffix == ".csv" and p.is_file())
    except OSError as error:
        raise WherryError(f"--mix {path}: cannot be read: {error.strerror}") from None
    if not inside:
        raise WherryError(f"--mix {path}: the directory holds no .csv files")
    usable = [p for p in inside if _ops(p.stem)]
    if not usable:
        raise WherryError(f"--mix {path}: none of its .csv files is for {', '.join(OPS)}")
    return usable


def gather(given: Iterable[str]) -> tuple[Mix, ...]:
    """The mixes of files, and of all files in directories; names stay apart."""
    paths = list(
        dict.fromkeys(Path(os.path.abspath(p)) for text in given for p in _files(text))  # noqa: PTH100
    )
    if len(paths) > MOST_FILES:
        raise WherryError(f"--mix: {len(paths)} files; at most {MOST_FILES} at once")
    taken: dict[str, int] = {}
    found = []
    for path in paths:
        # A name stands in tables and in the run file: printable, and short.
        stem = re.sub(r"[^\w.+-]", "_", path.stem, flags=re.ASCII)[:40] or "mix"
        taken[stem] = taken.get(stem, 0) + 1
        found.append(read(path, stem if taken[stem] == 1 else f"{stem}~{taken[stem]}"))
    return tuple(found)


def for_op(mixes: Sequence[Mix], op: str) -> list[Mix]:
    return [mix for mix in mixes if op in mix.ops]


def in_words(record: dict) -> str:
    """`median 10, p90 75, p99 1709, mean 135 B`."""
    points = record["percentiles"]
    parts = [f"{'median' if p == '50' else f'p{p}'} {size_label(points[p])}" for p in points]
    return f"{', '.join(parts)}, mean {record['mean']:.0f} B"
