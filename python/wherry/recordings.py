"""Recorded mixes: what a program copied, as `wherry record` wrote it down (docs/mix.md).

recording = recordings.read(Path("gcc.mix.json"))      # or recordings.shipped("gcc")
recording.calls("copy"), recording.sizes("copy"), recording.document["ceiling"]
"""

from __future__ import annotations

import codecs
import collections
import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wherry import named_files, outputs, runfile, schemas, shellwords
from wherry.errors import WherryError
from wherry.mixfiles import LARGEST_SIZE, Shares

FORMAT, VERSION = "wherry-mix", 1
OPS = ("copy", "move", "set")
LARGEST_FILE = 16 << 20
# Of source and destination, which go upwards; in the words of a row.
SIDES = {
    (False, False): "none",
    (True, False): "source",
    (False, True): "destination",
    (True, True): "both",
}


@dataclass(frozen=True)
class Recording:
    document: dict
    path: Path | None = None

    @property
    def name(self) -> str:
        return self.document["name"]

    @property
    def ops(self) -> tuple[str, ...]:
        """Those of which there was any call."""
        return tuple(op for op in OPS if self.calls(op))

    def _of(self, op: str) -> Mapping:
        return self.document["ops"].get(op, {})

    def calls(self, op: str) -> int:
        return self._of(op).get("calls", 0)

    def sizes(self, op: str) -> list[tuple[int, int, int, int]]:
        """(least, greatest, calls, bytes) of each class of sizes."""
        return [tuple(row) for row in self._of(op).get("sizes", ())]

    def within(
        self, op: str, least: int = 0, most: int = LARGEST_SIZE
    ) -> list[tuple[int, int, int, int]]:
        """Those classes of sizes whose calls have so many bytes in the mean."""
        return [row for row in self.sizes(op) if row[2] and least <= row[3] // row[2] <= most]

    def beyond(self, op: str) -> int:
        """Calls of more bytes than are ever measured."""
        return self.calls(op) - sum(row[2] for row in self.within(op))

    def times(self, op: str) -> list[list[float]]:
        """What was timed of it: [least, greatest size, calls, bytes, ns, ns that timing added, page faults, their ns,
        calls left out, [how often both sides lay where]] of each class of sizes; empty where nothing was."""
        return list(self._of(op).get("times") or ())

    def ascending(self, op: str, least: int, most: int) -> str:
        """The sides on which most calls of these sizes went on where one shortly before had been."""
        seen = source = destination = 0
        for up_to, calls, own_source, own_destination in self._of(op).get("order", ()):
            begin, end = _group(up_to)
            if end >= least and begin <= most:
                seen += calls
                source += own_source if op != "set" else 0
                destination += own_destination
        sides = (2 * source > seen, 2 * destination > seen)
        return SIDES[sides] if seen else "none"

    def shares(self, op: str) -> Shares:
        """Sizes, overlaps and alignments by themselves, as the published forms have them, up to what is measured."""
        sizes: dict[int, float] = {}
        for _, _, calls, total in self.within(op):
            size = min(round(total / calls), LARGEST_SIZE)
            sizes[size] = sizes.get(size, 0) + calls
        overlaps: dict[int, float] = {}
        alignments: dict[int, float] = {}
        for _, source, destination, _, overlap, calls in self._of(op).get("places", ()):
            meets = int(overlap in ("above", "below"))
            overlaps[meets] = overlaps.get(meets, 0) + calls
            for one in (source, destination) if op != "set" else (destination,):
                alignments[one] = alignments.get(one, 0) + calls
        return (
            {size: share for size, share in sorted(sizes.items()) if share},
            dict(sorted(overlaps.items())) if op != "set" else {},
            dict(sorted(alignments.items())),
        )


def command_in_words(how: Mapping) -> str:
    """Of a mix's `how`: on one line, with how much of it the mix leaves out."""
    more = f" ... ({how['left_out']:,} more words)" if how.get("left_out") else ""
    return shellwords.line(how.get("command", ())) + more


def _group(up_to: int | None) -> tuple[int, int]:
    """The sizes of a group of them, as the recorder has them: 0; to 16, 32 ... 1 MiB; above."""
    if up_to is None:
        return (1 << 20) + 1, LARGEST_SIZE
    return (up_to // 2 + 1 if up_to > 16 else min(up_to, 1)), up_to


# ---- files ----------------------------------------------------------------------------------------------------------


def is_recorded(data: bytes) -> bool:
    return data.removeprefix(codecs.BOM_UTF8).lstrip()[:1] == b"{"


def _fault(document: object) -> str | None:
    """What is wrong with it, or None. The schema first, then what no schema can say."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        return f'it has no "format": "{FORMAT}"'
    if document.get("version") != VERSION:
        return (
            f"its version is {str(document.get('version'))[:20]}, and this Wherry reads {VERSION}"
        )
    if fault := schemas.fault(document, "mix"):
        return fault
    for op, part in document["ops"].items():
        if fault := _fault_of_classes(part["sizes"]):
            return f"ops.{op}.sizes: {fault}"
        for least, greatest, calls, total in part["sizes"]:
            if not calls * least <= total <= calls * greatest:
                return f"ops.{op}.sizes: {calls} calls of {least} to {greatest} bytes are not {total} bytes"
        if fault := _fault_of_times(part.get("times", ())):
            return f"ops.{op}.times: {fault}"
        places = collections.Counter(tuple(row[:5]) for row in part.get("places", ()))
        if places and max(places.values()) > 1:
            return f"ops.{op}.places: {list(places.most_common(1)[0][0])} stands there twice"
        if any(max(row[2:]) > row[1] for row in part.get("order", ())):
            return f"ops.{op}.order: more calls went on than were looked at"
        for what, column in (("calls", 2), ("bytes", 3)):
            if (found := sum(row[column] for row in part["sizes"])) != part[what]:
                return f"ops.{op}: {what} is {part[what]}, and its sizes add up to {found}"
    if fault := _fault_of_callers(document):
        return f"callers: {fault}"
    for op, rows in document.get("trial", {}).get("ops", {}).items():
        if op not in document["ops"]:
            return f"trial.ops.{op}: ops has no such calls"
        if fault := _fault_of_classes(rows):
            return f"trial.ops.{op}: {fault}"
    ceiling = document.get("ceiling")
    if ceiling and ceiling["at_most"] < ceiling["likely"]:
        return f"ceiling: at most {ceiling['at_most']}, but likely {ceiling['likely']}"
    sequences = document.get("sequences")
    if sequences:
        known = len(sequences["calls"])
        for burst in sequences["bursts"]:
            if len(burst) > 1 << 20:
                return "sequences.bursts: one is longer than any burst"
            wrong = next((word for word in burst.split() if int(word[:12]) >= known), None)
            if wrong is not None:
                return f"sequences.bursts: call {wrong[:12]} of {known}"
    return None


def _fault_of_classes(rows: Sequence) -> str | None:
    before = -1
    for least, greatest, *_ in rows:
        if least > greatest:
            return f"[{least}, {greatest}] ends before it begins; sort them upwards"
        if least <= before:
            return f"[{least}, {greatest}] comes after {before}; sort them upwards"
        before = greatest
    return None


def _fault_of_callers(document: Mapping) -> str | None:
    """Their figures are estimates, but none has more than there was."""
    none = {"calls": 0, "bytes": 0}
    for place, row in enumerate(document.get("callers", ())):
        part = document["ops"].get(row["op"], none)
        for what, most in ((what, part[what]) for what in none):
            # Beyond 2**53 an estimate is rounded.
            if row[what] > most + (most >> 50):
                return f"number {place + 1} has {row[what]} {what} of {row['op']}, of which there are {most}"
    return None


def _fault_of_times(rows: Sequence) -> str | None:
    for least, greatest, calls, total, ns, added, *_ in rows:
        if not calls * least <= total <= calls * greatest:
            return f"{calls} calls of {least} to {greatest} bytes are not {total} bytes"
        if added > ns:
            return f"timing added {added} of {ns} ns"
    return _fault_of_classes(rows)


def parse(data: bytes, where: str) -> Recording:
    """`where` begins each complaint."""
    if len(data) > LARGEST_FILE:
        raise WherryError(f"{where}: too large for a mix (over {LARGEST_FILE >> 20} MiB)")

    def once(pairs: list[tuple[str, object]]) -> dict:
        found = dict(pairs)
        if len(found) < len(pairs):
            counts = collections.Counter(key for key, _ in pairs)
            twice = next(key for key, count in counts.items() if count > 1)
            raise WherryError(
                f"{where} is not a mix that can be used: it has the key {json.dumps(twice[:60])} twice in one object; "
                "leave the right one"
            )
        return found

    try:
        document = json.loads(
            data.decode("utf-8-sig"),
            parse_constant=_no_constant,
            parse_float=_number,
            object_pairs_hook=once,
        )
    except UnicodeDecodeError as error:
        what = "cut short; record it again" if runfile.cut_short(error) else "not text"
        raise WherryError(f"{where} is not a mix: it is {what}") from None
    except RecursionError:
        raise WherryError(f"{where} is not a mix: it is nested too deeply") from None
    except ValueError as error:
        if runfile.cut_short(error):
            at = f"line {error.lineno}, column {error.colno}"
            raise WherryError(f"{where} is cut short ({at}); record it again") from None
        if not isinstance(error, json.JSONDecodeError) and "digits" in str(error):
            raise WherryError(
                f"{where} is not a mix: it has a number of thousands of digits"
            ) from None
        raise WherryError(
            f"{where} is not a mix, or is damaged: {str(error)[:160]}; record it again"
        ) from None
    try:
        fault = _fault(document)
    except RecursionError:
        fault = "it is nested too deeply"
    if fault:
        raise WherryError(f"{where} is not a mix that can be used: {fault}")
    return Recording(document)


def _number(text: str) -> int | float:
    """16.0 is 16: JSON has one kind of numbers, and some write all of them so."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:20]} is beyond the numbers that can be read")
    return int(number) if number.is_integer() and abs(number) < 1 << 53 else number


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is no number of JSON")


def read(path: Path) -> Recording:
    try:
        if path.exists() and not path.is_file():
            raise WherryError(f"{path}: not a file; give one that wherry record wrote")
        data = named_files.at_most(path, LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise WherryError(f"{path}: cannot be read: {reason}") from None
    found = parse(data, str(path))
    return Recording(found.document, path)


def encode(document: dict) -> bytes:
    """A row of a table a line."""
    return (_text(document, "\n") + "\n").encode()


def _text(value: object, newline: str) -> str:
    """Objects of objects and lists of lists go over several lines; what is inside those does not."""
    deeper = newline + " "
    inner = list(value.values()) if isinstance(value, dict) else value
    plain = not isinstance(value, dict | list) or not any(isinstance(i, dict | list) for i in inner)
    if plain and len(str(value)) < 400:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_text(item, deeper)}" for key, item in value.items()]
        return "{" + deeper + ("," + deeper).join(parts) + newline + "}"
    if not isinstance(value, list):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    rows = [json.dumps(item, ensure_ascii=False, allow_nan=False) for item in value]
    return "[" + deeper + ("," + deeper).join(rows) + newline + "]"


def write(path: Path, document: dict) -> None:
    outputs.write(path, encode(document), outputs.MIX)


# ---- those that come with Wherry ------------------------------------------------------------------------------------


def _home():
    from importlib import resources

    home = resources.files("wherry") / "data" / "mixes"
    if not home.is_dir():
        # A tree that is not installed, as in development.
        home = Path(__file__).resolve().parents[2] / "mixes"
    return home


@functools.cache
def shipped_names() -> tuple[str, ...]:
    home = _home()
    if not home.is_dir():
        return ()
    return tuple(
        sorted(
            p.name.removesuffix(".mix.json") for p in home.iterdir() if p.name.endswith(".mix.json")
        )
    )


@functools.cache
def shipped(name: str) -> Recording:
    return parse((_home() / f"{name}.mix.json").read_bytes(), f"the mix {name}")
