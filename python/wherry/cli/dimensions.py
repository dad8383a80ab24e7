"""Options of `wherry bench` that say which cells to measure: the words, read into values."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from wherry.cli.grouped import not_empty
from wherry.errors import WherryError, unknown
from wherry.product import ALL_OPS, Product
from wherry.row import PERCENTILES
from wherry.units import parse_size

if TYPE_CHECKING:
    from wherry.experiments import Experiment

COUNTER_SETS = ("hardware", "software", "none")
SIDES = ("none", "source", "destination", "both")
# A word may stand for so many values; more are a slip of the finger.
MOST_VALUES = 4096
_LARGEST_OVERLAP = 1 << 30
_RANGE = re.compile(r"(-?\d{1,12}K?)(?:-(-?\d{1,12}K?)(?::(\d{1,12}K?))?)?", re.ASCII | re.I)
_SIZES = re.compile(r"([0-9]+[KMG]?)-([0-9]+[KMG]?)(?::(x?)([0-9]+[KMG]?))?", re.ASCII | re.I)

# Option, parameter, metavar, help.
_OPTIONS = (
    ("src-off", "src_offs", "N,...", "cells: the source's offsets, 0 to 4095: 0,8 or 0-63:8."),
    ("dst-off", "dst_offs", "N,...", "cells: the destination's offsets."),
    ("delta", "deltas", "N,...", "cells: (dst - src) mod 4096; any moves it about (the default)."),
    ("overlap", "overlaps", "N,...", "cells: op move, dst = src + N bytes; apart: none."),
    (
        "mode",
        "modes",
        "MODE,...",
        "cells: throughput, latency, fresh; p50, p90, p99, p99.9, p99.99 of calls timed one by one.",
    ),
    ("threads", "threads", "N,...", "cells: so many at once, or all."),
    ("huge", "huges", "0,1", "cells: ask for huge pages, or not."),
    (
        "table",
        "tables",
        "N,...",
        "cells: length of the table of a mix; a short one is predictable.",
    ),
    ("code", "codes", "warm,cold", "cells: cold code is evicted before each call."),
    (
        "places",
        "places",
        "repeat,change",
        "cells: places that change: each call begins elsewhere in its line and its page.",
    ),
    (
        "ascending",
        "ascending",
        "SIDE,...",
        "cells: calls go upwards in memory on that side: none, source, destination, both.",
    ),
    (
        "handed",
        "handed",
        "SIDE,...",
        "cells: another CPU has just written the source, read the destination, or both; none: neither.",
    ),
    ("handed-by", "handed_by", "CPU,...", "cells: which CPU; else one of another core."),
    (
        "content",
        "contents",
        "CONTENT,...",
        "cells: what a call finds in its destination: any; zero, pagezero, iszero: dirty, zero; set: dirty; all that "
        "write: new (pages that the kernel has yet to give).",
    ),
)
FLAGS = {parameter: f"--{option}" for option, parameter, _, _ in _OPTIONS}


class Cpus(click.ParamType):
    """One CPU as a number, several as a tuple of them."""

    name = "cpu"

    def convert(self, value, param, ctx):
        if not isinstance(value, str):  # as a run keeps it
            given = value if isinstance(value, list | tuple) else [value]
            if not given or not all(isinstance(own, int) for own in given):
                self.fail(f"{value!r} is no number of a CPU", param, ctx)
            return tuple(value) if isinstance(value, list) else value
        found = numbers("pin", value.split(","), 0, 4095)
        if not found:
            not_empty(ctx, param, "")
        return found[0] if len(found) == 1 else found


def options(function: Callable) -> Callable:
    for option, parameter, metavar, text in reversed(_OPTIONS):
        own = click.option(f"--{option}", parameter, multiple=True, metavar=metavar, help=text)
        function = own(function)
    return function


def counter_set() -> str | None:
    """What the runner is to count; None leaves it to the runner."""
    own = os.environ.get("WHERRY_COUNTERS")
    if own and own not in COUNTER_SETS:
        raise WherryError(
            f"WHERRY_COUNTERS={own} is none of {', '.join(COUNTER_SETS)}; unset or mend it"
        )
    return own or None


# ---- words to values ------------------------------------------------------------------------------------------------


def _words(values: Iterable[str]) -> list[str]:
    words = (word.strip() for value in values for word in value.split(","))
    return list(dict.fromkeys(word for word in words if word))


def _number(text: str) -> int:
    return int(text[:-1]) * 1024 if text[-1] in "kK" else int(text)


def numbers(option: str, values: Iterable[str], low: int, high: int) -> tuple[int, ...]:
    found: list[int] = []
    for word in _words(values):
        match = _RANGE.fullmatch(word)
        first = _number(match[1]) if match else 0
        last = _number(match[2]) if match and match[2] else first
        step = _number(match[3]) if match and match[3] else 1
        if not match or not low <= first <= high or not low <= last <= high or not step:
            ask = f"give numbers from {low} to {high}, with commas between them"
            if high - low >= 8:
                ask += f", or a range with its step: {max(low, 0)}-{min(high, max(low, 0) + 63)}:8"
            raise WherryError(f"--{option} {word}: {ask}")
        if last < first:
            raise WherryError(f"--{option} {word}: runs backward; give {last}-{first}")
        _check_count(option, word, (last - first) // step + 1)
        found += range(first, last + 1, step)
    return tuple(dict.fromkeys(found))


def _check_count(option: str, word: str, count: int) -> None:
    if count > MOST_VALUES:
        raise WherryError(
            f"--{option} {word}: {count:,} values, and at most {MOST_VALUES:,} make sense; give a "
            "larger step"
        )


def _choices(option: str, values: Iterable[str], known: Sequence[str]) -> tuple[str, ...]:
    found = _words(values)
    for word in found:
        if word not in known:
            raise unknown(f"--{option}", word, known, "wherry list routines")
    return tuple(found)


def _size(text: str) -> int:
    return parse_size(text, buffers=2, least=0)


def sizes(values: Iterable[str]) -> tuple[int, ...]:
    """`64`, `4K`, `0-256:8` (by eight), `64-4K:x2` (doubling)."""
    found: list[int] = []
    for word in _words(values):
        match = _SIZES.fullmatch(word)
        if not match:
            found.append(_size(word))
            continue
        first, last = _size(match[1]), _size(match[2])
        step = _size(match[4]) if match[4] else 1
        if last < first:
            raise WherryError(f"--size {word}: runs backward; give {match[2]}-{match[1]}")
        if match[3]:
            if step < 2 or first == 0:
                raise WherryError(f"--size {word}: give a factor of 2 or more, and begin above 0")
            while first <= last:
                found.append(first)
                first *= step
            continue
        if not step:
            raise WherryError(f"--size {word}: the step is 0; give 1 or more, or x2")
        _check_count("size", word, (last - first) // step + 1)
        found += range(first, last + 1, step)
    return tuple(dict.fromkeys(found))


def _threads(values: Iterable[str]) -> tuple[int, ...]:
    cpus = len(os.sched_getaffinity(0))
    words = [str(cpus) if word == "all" else word for word in _words(values)]
    for word in words:
        if not re.fullmatch(r"\d{1,6}", word) or not 1 <= int(word) <= cpus:
            raise WherryError(
                f"--threads {word}: give 1 to {cpus}, as many as there are CPUs for this process, or all"
            )
    return tuple(dict.fromkeys(map(int, words)))


def _overlaps(values: Iterable[str]) -> tuple[int | None, ...]:
    words = _words(values)
    own = numbers(
        "overlap", [w for w in words if w != "apart"], -_LARGEST_OVERLAP, _LARGEST_OVERLAP
    )
    return (*((None,) if "apart" in words else ()), *own)


def _deltas(values: Iterable[str]) -> tuple[int | None, ...]:
    words = _words(values)
    own = numbers("delta", [word for word in words if word != "any"], 0, 4095)
    return (*((None,) if "any" in words else ()), *own)


def mixes(values: Iterable[str]):
    """Ranges that the runner draws from itself, and files."""
    from wherry import mixes as room
    from wherry.cli import names

    words = [word for value in values for word in value.split(",") if room.is_range(word)]
    files = [value for value in values if not all(map(room.is_range, value.split(",")))]
    for value in files:
        room.not_a_broken_range(value)
    ranges = {mix.name: mix for mix in map(room.from_range, words)}
    return (*ranges.values(), *room.gather(files, names.tell))


def _ops(values: Iterable[str]) -> tuple[str, ...]:
    functions = {"memcpy": "copy", "memmove": "move", "memset": "set", "bzero": "zero"}
    words = [functions.get(word.lower(), word.lower()) for word in _words(values)]
    return _choices("op", words, ALL_OPS)


def product(
    chosen: Sequence[Experiment],
    size_words: Iterable[str],
    mix_words: Iterable[str],
    op_words: Iterable[str],
    pin: int | tuple[int, ...] | None,
    given: Mapping[str, Iterable[str]],
) -> Product | None:
    """What `cells` is the product of; None for other experiments, which choose for themselves."""
    if not any("product" in experiment.takes for experiment in chosen):
        return None
    if len(chosen) > 1:
        raise WherryError(
            "cells is the product of what the options give, which means something else to other "
            "experiments; ask for cells alone"
        )
    return Product(
        ops=_ops(op_words),
        sizes=sizes(size_words),
        mixes=mixes(mix_words),
        src_offs=numbers("src-off", given.get("src_offs", ()), 0, 4095),
        dst_offs=numbers("dst-off", given.get("dst_offs", ()), 0, 4095),
        deltas=_deltas(given.get("deltas", ())),
        overlaps=_overlaps(given.get("overlaps", ())),
        modes=_choices(
            "mode", given.get("modes", ()), ("throughput", "latency", "fresh", *PERCENTILES)
        ),
        threads=_threads(given.get("threads", ())),
        huges=numbers("huge", given.get("huges", ()), 0, 1),
        tables=numbers("table", given.get("tables", ()), 1, 1 << 24),
        codes=_choices("code", given.get("codes", ()), ("warm", "cold")),
        contents=_choices("content", given.get("contents", ()), ("any", "dirty", "zero", "new")),
        places=_choices("places", given.get("places", ()), ("repeat", "change")),
        ascending=_choices("ascending", given.get("ascending", ()), SIDES),
        handed=_choices("handed", given.get("handed", ()), SIDES),
        handed_by=numbers("handed-by", given.get("handed_by", ()), 0, 4095),
        pins=pin if isinstance(pin, tuple) else (),
    )


def check_pins(pin: int | tuple[int, ...] | None, own: Product | None) -> int | None:
    """The CPU of the whole run; None when its rows say it, or when nobody does."""
    from wherry.cli import names

    for cpu in pin if isinstance(pin, tuple) else (pin,):
        names.check_pin(cpu)
    for cpu in own.handed_by if own else ():
        names.check_pin(cpu, "--handed-by")
    if isinstance(pin, tuple):
        if own is None:
            raise WherryError("several CPUs (--pin) are for cells; give one of them")
        return None
    return pin


def check_heeded(chosen: list[Experiment], **given: object) -> None:
    """An option that none of the experiments heeds was meant for another one."""
    from wherry import experiments as rooms
    from wherry import sentences

    flags = {
        "mixes": "--mix",
        "found": "--no-found-peers",
        "isa": "--isa",
        "turns": "--turns",
        "members": "--members",
        "disks": "--disks",
    } | FLAGS
    for key, value in given.items():
        if value and not any(key in experiment.takes for experiment in chosen):
            others = [e.name for e in rooms.load_all() if key in e.takes]
            raise WherryError(
                f"{sentences.join([e.name for e in chosen])} "
                f"{'does' if len(chosen) == 1 else 'do'} not take {flags.get(key, '--' + key.rstrip('s'))}; "
                f"{sentences.join(others)} {'does' if len(others) == 1 else 'do'}"
            )
