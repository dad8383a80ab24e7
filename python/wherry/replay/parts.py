"""A mix as rows for the runner: by op and by band of sizes, each with the caches where its bytes may lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from wherry import mixes, named_files, recordedcalls, recordings
from wherry.ceiling import Timed
from wherry.errors import WherryError, unknown
from wherry.mixfiles import LARGEST_SIZE
from wherry.recording import host, trial, turns
from wherry.recording.trial import Change
from wherry.recording.turns import Turned
from wherry.recordings import Recording
from wherry.units import KIB, size_in_words, size_label

# Within a band sizes follow each other as they did in the program; the small ones, whose branches a processor must
# guess, are all in one. Above them each cache is a band of its own: which routine is the faster changes with the cache
# that holds a call, so what fits the nearest must not be measured in the next because of larger calls beside it.
SMALL = KIB
LEVELS = ("L1", "L2", "L3", "DRAM")
# What of a cache the runner gives to one call, both sides together.
ROOM = {"L1": 3 / 4, "L2": 3 / 4, "L3": 1 / 4}
LINE = 64
# Of the pairs of places so many are measured at most, and only those that hold as many of a band's calls.
MOST_PLACES, LEAST_SHARE = 5, 0.05
# Hot: the nearest cache that holds it. Warm: one level further out. Cold: in memory.
HEATS = ("hot", "warm", "cold")


@dataclass(frozen=True)
class Part:
    op: str
    band: str  # in words
    spec: str  # what the runner takes as a mix
    calls: float  # of the recording; of a mix that has no count, its share
    mean: float  # bytes
    largest: int
    states: Mapping[str, str]  # heat to cache state
    ascending: str = "none"  # the sides on which most calls went upwards
    took: float | None = None  # nanoseconds of a call inside the program; None: not known
    # (source's state, destination's) to the share of the calls that found their data so; empty: not known
    found_in: Mapping[tuple[str, str], float] = field(default_factory=dict)
    tried: Change | None = None  # what the recording's trial made of these calls

    @property
    def small(self) -> bool:
        """Timed, but nobody looked where its data were."""
        return self.took is not None and not self.found_in and self.largest <= SMALL


@dataclass(frozen=True)
class Subject:
    """What is replayed: the parts, and the run that they were recorded from, if any."""

    name: str
    parts: tuple[Part, ...]
    ceiling: dict | None
    command: tuple[str, ...] = ()
    tried_plan: str | None = None  # of the recording's trial
    turned: Turned | None = None  # what its turns tell of the whole program
    outlasting: Change | None = None  # what the trial made of calls that outlast a turn
    untold: float = 0.0  # share of the run that calls took which nothing in it tells of
    processes: int = 0  # of the recording, an exec in one as another: each loads libraries
    beyond: int = 0  # calls of more bytes than are measured, which are in no part
    elsewhere: str = ""  # how the machine that it was recorded on is not this one

    def without_trial(self, elsewhere: str) -> Subject:
        parts = tuple(replace(part, tried=None) for part in self.parts)
        return replace(
            self,
            parts=parts,
            tried_plan=None,
            turned=None,
            outlasting=None,
            untold=0.0,
            elsewhere=elsewhere,
        )

    @property
    def tried(self) -> tuple[Change, ...]:
        return tuple(part.tried for part in self.parts if part.tried)

    @property
    def calls(self) -> float:
        return sum(part.calls for part in self.parts)


def bands(caches: Mapping[str, int], copies: bool) -> list[tuple[int, int]]:
    """Least and greatest size of each."""
    ends = [SMALL]
    for level in LEVELS[:-1]:
        one_side = int(caches.get(level, 0) * ROOM[level] / (2 if copies else 1)) - LINE
        end = one_side // KIB * KIB
        if end > ends[-1]:
            ends.append(end)
    ends.append(LARGEST_SIZE)
    return [
        (before + 1 if before else 0, end)
        for before, end in zip([0, *ends[:-1]], ends, strict=True)
    ]


def _states(size: int, caches: Mapping[str, int], copies: bool) -> dict[str, str]:
    total = (size + LINE) * (2 if copies else 1)
    there = [level for level in LEVELS if level == "DRAM" or caches.get(level)]
    fits = [level == "DRAM" or total <= caches[level] * ROOM[level] for level in there]
    first = fits.index(True)
    return {
        "hot": there[first],
        "warm": there[min(first + 1, len(there) - 1)],
        "cold": "DRAM",
    }


def _of_recording(recording: Recording, caches: Mapping[str, int], seed: int) -> list[Part]:
    found = []
    tried = (recording.document.get("trial") or {}).get("ops", {})
    for op in recording.ops:
        timed = Timed(recording.times(op))
        counted = recording.document["ops"][op]
        for low, high in bands(caches, op != "set"):
            inside = recording.within(op, low, high)
            calls, total = (sum(row[i] for row in inside) for i in (2, 3))
            if not calls:
                continue
            # The largest that is not the odd one in a hundred.
            usual, left = inside[0][1], calls / 100
            for row in reversed(inside):
                left -= row[2]
                if left < 0:
                    usual = row[1]
                    break
            runs = recordedcalls.table(recording, op, low, high, seed=seed)
            found.append(
                Part(
                    op,
                    f"to {size_label(high)}" if high < LARGEST_SIZE else "larger",
                    recordedcalls.keep(runs),
                    calls,
                    total / calls,
                    min(inside[-1][1], high),
                    _states(min(usual, high), caches, op != "set"),
                    recording.ascending(op, low, high),
                    _took(timed, inside, calls),
                    _found_in(
                        recording, op, low, high, _states(min(usual, high), caches, op != "set")
                    ),
                    trial.change(counted, tried[op], low, high)
                    if op in tried and low > trial.FROM
                    else None,
                )
            )
    return found


def _found_in(
    recording: Recording, op: str, low: int, high: int, states: Mapping[str, str]
) -> dict[tuple[str, str], float]:
    """Where the calls of this band had their data, in states that the runner can keep."""
    near, last = states["hot"], "L3" if states["hot"] in ("L1", "L2") else states["hot"]
    if "L3" not in (near, last, states["warm"]):
        last = near  # a machine without one
    levels = (near, last, "DRAM")
    shares: dict[tuple[str, str], float] = {}
    for row in recording.times(op):
        if row[0] > high or row[1] < low or not row[2] or not sum(row[9]):
            continue
        # Of a class that reaches into the next band by as much as lies in this one.
        inside = (min(row[1], high) - max(row[0], low) + 1) / (row[1] - row[0] + 1)
        for i, calls in enumerate(row[9]):
            source, destination = levels[i // 3], levels[i % 3]
            pair = (destination if op == "set" else source, destination)
            shares[pair] = shares.get(pair, 0) + calls * inside
    most = sorted(shares.items(), key=lambda item: -item[1])[:MOST_PLACES]
    kept = {pair: calls for pair, calls in most if calls >= LEAST_SHARE * sum(shares.values())}
    whole = sum(kept.values())
    return {pair: calls / whole for pair, calls in kept.items()} if whole else {}


def _took(timed: Timed, sizes: Sequence, calls: int) -> float | None:
    """Of a call of these classes of sizes, without what timing it added."""
    total = 0.0
    for _, _, own, size in sizes:
        near = timed.near(size / own)
        if near is None:
            return None
        whole, added = near[:2]
        total += own * max(whole - added, 0.0)
    return total / calls if total > 0 else None


def subject(
    given: str, caches: Mapping[str, int], seed: int = 1, here: Mapping | None = None
) -> Subject:
    """A file of `wherry record`, the name of a mix that comes with Wherry (`gcc`, or one op of it, `gcc.copy`), a range
    (`uniform:0-64`), or a file of a published form. `here`: what recording.host says of this machine; what a recording
    tried on another one is left out."""
    path = Path(given)
    mixes.not_a_broken_range(given)
    if path.exists():
        if not path.is_file():
            raise WherryError(
                f"{path}: not a file; give one mix, as wherry record -o FILE writes one"
            )
        try:
            # By its name too: what is wrong with it is said of the right form then.
            recorded = path.suffix == ".json" or recordings.is_recorded(
                named_files.at_most(path, 64)
            )
        except OSError as error:
            raise WherryError(f"{path}: cannot be read: {error.strerror}") from None
        if not recorded:
            return _of_sizes(lambda: mixes.gather([given]), caches, path.stem)
        recording = recordings.read(path)
    elif given in recordings.shipped_names():
        recording = recordings.shipped(given)
    elif mixes.is_range(given):
        return _of_sizes(lambda: [mixes.from_range(given)], caches)
    elif mix := mixes.shipped_as(given):
        return _of_sizes(lambda: [mix], caches)
    elif "/" in given or "." in given:
        raise WherryError(
            f"{given}: there is no such file; give a mix, as wherry record -o FILE writes one"
        )
    else:
        raise unknown("mix", given, recordings.shipped_names(), "wherry list mixes")
    parts = _of_recording(recording, caches, seed)
    beyond = sum(map(recording.beyond, recording.ops))
    if not parts and beyond:
        raise WherryError(
            f"{given}: each of its {beyond:,} calls is of more than {size_in_words(LARGEST_SIZE)}, and so many bytes "
            "are not measured; wherry ab compares the program itself"
        )
    if not parts:
        raise WherryError(f"{given}: nothing was copied in it; there is nothing to replay")
    how, run = recording.document.get("how") or {}, recording.document.get("run") or {}
    found = Subject(
        recording.name,
        tuple(parts),
        recording.document.get("ceiling"),
        tuple(how.get("command", ())),
        (recording.document.get("trial") or {}).get("plan"),
        turns.of(recording.document),
        trial.outlasting(recording.document),
        trial.untold(recording.document),
        run.get("processes", 0) + run.get("execs", 0),
        beyond,
    )
    elsewhere = host.other(recording.document.get("machine") or {}, here) if here else ""
    return found.without_trial(elsewhere) if elsewhere else found


def _of_sizes(
    read: Callable[[], Sequence[mixes.Mix]], caches: Mapping[str, int], name: str = ""
) -> Subject:
    """What says no more than how many calls there are of each size. `name`: else that of the mix."""
    try:
        found = read()
    except WherryError as error:
        # There it is the value of an option, here the argument.
        raise WherryError(str(error).removeprefix("--mix ")) from None
    parts = [
        Part(
            op,
            mix.name,
            mix.spec,
            1.0,
            mix.mean,
            mix.largest,
            _states(mix.usual, caches, op != "set"),
        )
        for mix in found
        for op in mix.ops
    ]
    return Subject(name or found[0].name, tuple(parts), None)


def caches_of(reported: Mapping) -> dict[str, int]:
    believed = reported.get("believed") or {}
    return {
        name: (believed.get(key) or {}).get("size") or 0
        for name, key in (("L1", "L1d"), ("L2", "L2"), ("L3", "L3"))
    }
