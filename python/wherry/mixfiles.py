"""The two forms in which mixes are published, read and written.

fleetbench: up to three lines of `value:probability,...`: sizes; whether both sides overlap, 0 or 1; alignments.
llvm: one line of probabilities, that of size 0 first, as in LLVM libc's distributions; trailing zeros are left out."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from wherry.errors import WherryError

# The runner's own bounds.
LARGEST_SIZE = 1 << 30
MOST_SIZES = 65536
FLEETBENCH, LLVM = "fleetbench", "llvm"
FORMS = (FLEETBENCH, LLVM)
# A dense list has an entry for every size; a larger one would be nothing but zeros.
LARGEST_DENSE = 1 << 20
# How far a sum may be from 1: probabilities of two digits that somebody wrote by hand (three thirds are 0.99);
# fleetbench's files have six digits, and sums within 0.000002.
ROUNDING = 0.01 + 1e-9
_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
_DENSE = re.compile(r"\s*[-+]?(?:[0-9.][0-9.eE+-]*|nan|inf(?:inity)?)\s*", re.ASCII | re.IGNORECASE)

# What stands before the colons of each line, and an example; held to what the runner holds it to.
_LINES = (
    ("size", lambda value: value <= LARGEST_SIZE, "8:0.5,64:0.5"),
    ("overlap", lambda value: value <= 1, "0:0.99,1:0.01 (1: both sides overlap)"),
    ("alignment", lambda value: value in (1, 2, 4, 8, 16, 32, 64), "1:0.3,64:0.7"),
)

# Sizes, overlaps, alignments, each with its probability.
Shares = tuple[dict[int, float], dict[int, float], dict[int, float]]


def form_of(text: str) -> str:
    first = text.lstrip("\r\n").split("\n", 1)[0].split(",", 1)[0]
    return LLVM if _DENSE.fullmatch(first) else FLEETBENCH


def read(text: str, where: str) -> Shares:
    """`where` begins each complaint; those say line and column."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    if form_of(text) == LLVM:
        return _dense(lines, where), {}, {}
    if any(lines[len(_LINES) :]):
        raise WherryError(
            f"{where}: more than three lines (sizes, overlap, alignments): line "
            f"{_first_beyond(lines, len(_LINES))} is one too many"
        )
    sizes = _sparse(lines[0], 0, where)
    others = [
        _sparse(line, number, where) if line else {} for number, line in enumerate(lines[1:3], 1)
    ]
    others += [{}] * (2 - len(others))
    return sizes, others[0], others[1]


def _first_beyond(lines: Sequence[str], count: int) -> int:
    return next(number for number, line in enumerate(lines[count:], count + 1) if line)


def _at(number: int, column: int) -> str:
    return f"line {number}, column {column}"


def _sparse(line: str, number: int, where: str) -> dict[int, float]:
    what, allows, example = _LINES[number]
    shares: dict[int, float] = {}
    column, before = 1, -1
    for entry in line.removesuffix(",").split(","):
        value, _, share = entry.partition(":")
        digits = re.fullmatch(r"[0-9]{1,40}", value)
        if what == "size" and digits and int(value) > LARGEST_SIZE:
            raise WherryError(
                f"{where}: size {value} in {_at(number + 1, column)} is above 1 GiB ({LARGEST_SIZE} bytes), and no "
                "call of more is measured; leave it out"
            )
        if not digits or not _NUMBER.fullmatch(share) or not allows(int(value)):
            raise WherryError(
                f"{where}: '{entry[:40]}' in line {number + 1} is not {what}:probability "
                f"(column {column}); write it as {example}"
            )
        if int(value) <= before:
            raise WherryError(
                f"{where}: {what} {value} comes after {before} ({_at(number + 1, column)}); "
                "sort them upwards, each once"
            )
        before = int(value)
        shares[before] = float(share)
        if len(shares) > MOST_SIZES:
            raise WherryError(f"{where}: more than {MOST_SIZES} sizes; join some")
        column += len(entry) + 1
    return _with_a_sum(shares, number + 1, where)


def _dense(lines: Sequence[str], where: str) -> dict[int, float]:
    number = next(i for i, line in enumerate(lines) if line)
    if any(lines[number + 1 :]):
        raise WherryError(
            f"{where}: more than one line of probabilities (line "
            f"{_first_beyond(lines, number + 1)}); a list of LLVM libc's has one, that of size 0 first"
        )
    shares: dict[int, float] = {}
    column = 1
    for size, entry in enumerate(lines[number].rstrip().removesuffix(",").split(",")):
        word = entry.strip()
        if not _NUMBER.fullmatch(word):
            raise WherryError(
                f"{where}: '{entry[:40]}' in {_at(number + 1, column)} (size {size}) is not a "
                "probability; write a number from 0 on, or size:probability throughout"
            )
        if float(word) > 1:
            raise WherryError(
                f"{where}: {word[:40]} in {_at(number + 1, column)} (size {size}) is above 1, so no probability; "
                "sizes are written size:probability"
            )
        if size > LARGEST_SIZE:
            raise WherryError(
                f"{where}: more than {LARGEST_SIZE} sizes, to 1 GiB ({_at(number + 1, column)})"
            )
        if float(word) > 0:
            shares[size] = float(word)
            if len(shares) > MOST_SIZES:
                raise WherryError(f"{where}: more than {MOST_SIZES} sizes; join some")
        column += len(entry) + 1
    return _with_a_sum(shares, number + 1, where)


def _with_a_sum(shares: dict[int, float], number: int, where: str) -> dict[int, float]:
    total = sum(shares.values())
    if not 0 < total < math.inf:
        raise WherryError(f"{where}: the probabilities of line {number} have no sum to scale to 1")
    counts = all(share.is_integer() for share in shares.values())
    if abs(total - 1) > ROUNDING and not counts:
        raise WherryError(
            f"{where}: the probabilities of line {number} add up to {total:.4g}, not to 1: the file is cut off, or "
            "holds other numbers; get the whole of it, or give whole numbers, which are counts"
        )
    return {value: share for value, share in shares.items() if share > 0}


# ---- writing --------------------------------------------------------------------------------------------------------


def _scaled(shares: Mapping[int, float]) -> dict[int, float]:
    total = math.fsum(shares.values())
    return {value: share / total for value, share in sorted(shares.items())}


def fleetbench(shares: Shares) -> str:
    """The lines that are there: without overlaps, alignments have an empty line before them."""
    lines = [
        ",".join(f"{value}:{share:.9g}" for value, share in _scaled(part).items()) if part else ""
        for part in shares
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


def llvm(shares: Shares, where: str) -> str:
    sizes = _scaled(shares[0])
    largest = max(sizes)
    if largest > LARGEST_DENSE:
        raise WherryError(
            f"{where}: has sizes to {largest} bytes; a dense list has an entry for each up to there "
            f"and may go to {LARGEST_DENSE}; use --format {FLEETBENCH}"
        )
    return ",".join(f"{sizes.get(size, 0):.9g}" for size in range(largest + 1)) + "\n"


def write(form: str, shares: Shares, where: str) -> str:
    return llvm(shares, where) if form == LLVM else fleetbench(shares)
