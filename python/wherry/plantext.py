"""A plan as people read and write it: TOML (docs/plan.md, schema/plan.schema.json)."""

from __future__ import annotations

import datetime
import functools
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from wherry import schemas
from wherry.errors import WherryError, unknown
from wherry.planbinary import MOST_PLANS
from wherry.plans import (
    BACKWARD_AHEAD,
    FEATURES,
    MOST,
    OFF,
    Cpu,
    Plan,
    UnusableError,
    fault,
    parse_size,
    size_text,
)


def _threshold(value: int | str) -> int:
    return OFF if value in ("off", "any") else parse_size(value)


def _undated(value: object) -> object:
    """A date or a time of TOML as text: JSON's schema knows none."""
    if isinstance(value, dict):
        return {key: _undated(own) for key, own in value.items()}
    if isinstance(value, list):
        return [_undated(own) for own in value]
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else value


def _toml(path: Path, data: bytes) -> dict:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        # Some editors begin a text with a mark of its order of bytes.
        found = tomllib.loads(data.decode("utf-8-sig"))
        return {key: _undated(value) for key, value in found.items()}
    except UnicodeDecodeError:
        raise UnusableError(path, "is not a plan: it is neither text nor a compiled plan") from None
    except RecursionError:
        raise UnusableError(path, "is not a plan: it is nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise UnusableError(path, f"is not a plan: {str(error)[:200]}") from None
    except ValueError:  # what int() says of a number that it finds too long
        raise UnusableError(
            path, "is not a right plan: it has a number of thousands of digits"
        ) from None


def _side(table: Mapping, side: str) -> dict[str, int]:
    """A missing rep_to, rep_recent_from, rep_slow_ahead, rep_all_from or stream_recent_from means no restriction, a
    missing backward_ahead, ymm_from, source_lines_to or parts_from what every plan did before there was one."""
    start = _threshold(table["rep_from"])
    on = start != OFF
    found = {
        "rep_from": start,
        "rep_to": _threshold(table.get("rep_to", "any")) if on or "rep_to" in table else 0,
        "rep_recent_from": _threshold(table.get("rep_recent_from", start if on else 0)),
        "stream_from": (stream := _threshold(table["stream_from"])),
        "stream_recent_from": _threshold(
            table.get("stream_recent_from", 0 if stream == OFF else stream)
        ),
    }
    if side == "copy":
        found["rep_slow_ahead"] = table.get("rep_slow_ahead", 0)
        found["rep_all_from"] = _threshold(
            table.get("rep_all_from", found["rep_from"] if on else 0)
        )
        found["backward_ahead"] = table.get("backward_ahead", BACKWARD_AHEAD)
        found["ymm_from"] = _threshold(table.get("ymm_from", "off"))
        found["source_lines_to"] = _threshold(table.get("source_lines_to", "any"))
        found["parts_from"] = _threshold(table.get("parts_from", "off"))
    return {f"{side}_{key}": value for key, value in found.items()}


def _plan(table: Mapping) -> Plan:
    cpu = table["cpu"]
    level = cpu.get("last_level")
    return Plan(
        table["name"],
        table["choice"],
        Cpu(
            cpu["vendor"],
            cpu["family"],
            cpu.get("model"),
            cpu.get("stepping"),
            tuple(name for name in FEATURES if name in cpu.get("with", ())),
            tuple(name for name in FEATURES if name in cpu.get("without", ())),
            parse_size(level) if level is not None else None,
        ),
        {**_side(table["copy"], "copy"), **_side(table["set"], "set")},
        dict(table.get("made", {})),
    )


_SIZE = re.compile(r"[0-9]{1,15} ?(?:B|KiB|MiB|GiB)")


def _odd(value: object, where: str) -> str | None:
    """A number with a point, which JSON's schema takes for a whole one, or a line's end in a text."""
    if isinstance(value, dict):
        found = (_odd(own, f"{where}.{key}".lstrip(".")) for key, own in value.items())
        return next(filter(None, found), None)
    if isinstance(value, list):
        found = (_odd(own, f"{where}[{i}]") for i, own in enumerate(value))
        return next(filter(None, found), None)
    if where.partition(".")[2].startswith("made"):
        return None  # words for people
    if isinstance(value, float):
        return f'{where} is {value}; give a whole number, or a size as text: "24 KiB"'
    if isinstance(value, str) and not value.isprintable():
        return (
            f"{where} is {value!r}, which has a line's end or another sign that cannot be printed"
        )
    return None


# By the reference of a key in the schema: the word that may stand there in the place of a size.
_WORDS = {"#/$defs/from": "off", "#/$defs/to": "any", "#/$defs/size": None}


@functools.cache
def _parts() -> dict[str, dict]:
    """Of the schema: a plan's own keys, and those of its tables."""
    own = json.loads(schemas.text("plan"))["$defs"]["plan"]
    return {"": own, **{part: own["properties"][part] for part in ("cpu", "copy", "set")}}


def _is_size(value: object, word: str | None) -> bool:
    if isinstance(value, str):
        return value == word or _SIZE.fullmatch(value) is not None
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _no_plan(tables: object) -> str | None:
    """What is wrong of keys and sizes, in other words than the schema's."""
    for number, table in enumerate(tables if isinstance(tables, list) else ()):
        for part, known in _parts().items():
            own = (table.get(part) if part else table) if isinstance(table, dict) else None
            if isinstance(own, dict):
                where = f"plan[{number}]{f'.{part}' if part else ''}"
                if wrong := _wrong_key(own, known, where) or _wrong_size(own, known, where):
                    return wrong
    return None


def _wrong_key(own: Mapping, known: Mapping, where: str) -> str | None:
    # One that is spelt wrong is missing, too: so these come first.
    for key in own:
        if key not in known["properties"]:
            return f"{where}: {unknown('key', key[:40], known['properties'], 'docs/plan.md')}"
    missing = [key for key in known["required"] if key not in own]
    return f"{where}.{missing[0]} is missing" if missing else None


def _wrong_size(own: Mapping, known: Mapping, where: str) -> str | None:
    for key, value in own.items():
        reference = known["properties"][key].get("$ref")
        if reference in _WORDS and not _is_size(value, _WORDS[reference]):
            word = f', or "{_WORDS[reference]}"' if _WORDS[reference] else ""
            return (
                f"{where}.{key} is {_value(value)[:40]}; give a whole number and B, KiB, MiB or "
                f'GiB: "24 KiB"{word}'
            )
    return None


def _as_off(table: Mapping) -> str | None:
    """The one size above all bounds that would be taken for `off`, since it stands for that in the compiled form."""
    for side in ("copy", "set"):
        for key, value in table[side].items():
            if value not in ("off", "any") and parse_size(value) == OFF:
                return f"{side}.{key} = {value}, above {size_text(MOST)}"
    return None


def from_text(path: Path, data: bytes) -> list[Plan]:
    document = _toml(path, data)
    if document.get("format") != "wherry-plan":
        raise UnusableError(path, 'is TOML, but not a plan (no format = "wherry-plan")')
    number = document.get("version")
    if isinstance(number, int) and number > 1:
        raise UnusableError(
            path, f"is a plan of format {number}; this Wherry reads 1; use a newer one"
        )
    tables = document.get("plan")
    if isinstance(tables, list) and len(tables) > MOST_PLANS:
        raise UnusableError(
            path, f"is not a right plan: it has {len(tables)} plans, more than {MOST_PLANS}"
        )
    if isinstance(tables, dict):
        raise UnusableError(
            path, "is not a right plan: it has [plan]; write [[plan]], as there may be several"
        )
    # The schema's words come last: they tell of the schema.
    if wrong := _odd(document, "") or _no_plan(tables) or schemas.fault(document, "plan"):
        raise UnusableError(path, f"is not a right plan: {wrong}")
    for table in document["plan"]:
        if wrong := _as_off(table):
            raise UnusableError(path, f"is not a right plan: '{table['name']}' has {wrong}")
    plans = [_plan(table) for table in document["plan"]]
    for plan in plans:
        wrong = fault(plan)
        if wrong:
            raise UnusableError(path, f"is not a right plan: '{plan.name}' has {wrong}")
    return plans


# ---- writing --------------------------------------------------------------------------------------------------------

_COPY_REP = ("rep_recent_from", "rep_slow_ahead", "rep_all_from")
# Off in one of these is an end that no size reaches.
_UP_TO = ("rep_to", "rep_recent_from", "rep_all_from", "source_lines_to", "stream_recent_from")
_STREAM = ("stream_from", "stream_recent_from")
_COPY_LOOP = ("backward_ahead", "ymm_from", "source_lines_to")
# What each key means, beside it in every file that is written.
_MEANS = {
    "choice": "sse2, avx2, avx512; avx512_ladder for sizes that repeat, avx512_together for any",
    "cpu": "the CPU it is for; on any other the library keeps its default",
    "copy.rep_from": "rep movsb from here on (off: never)",
    "copy.rep_to": "up to here (any: no end)",
    "copy.rep_recent_from": "with a destination written lately from here on (any: at no size)",
    "copy.rep_slow_ahead": "and then not with the destination 1 to so many bytes ahead (mod 4096)",
    "copy.rep_all_from": "or from here on even so (any: at no size)",
    "copy.stream_from": "past the caches from here on, if written before (off: never)",
    "copy.stream_recent_from": "with a destination touched lately from here on (any: at no size)",
    "copy.parts_from": "and then from here on in five parts at once (off: from both ends)",
    "copy.backward_ahead": "loop from the end down with the destination 1 to so many bytes ahead",
    "copy.ymm_from": "avx512 and _together: by 32-byte vectors from here on (off: never)",
    "copy.source_lines_to": "avx512 and _together: by lines of the source to here, then the destination",
    "set.rep_from": "rep stosb from here on",
    "set.rep_to": "up to here",
    "set.rep_recent_from": "with a destination written lately from here on",
    "set.stream_from": "past the caches from here on, if written before",
    "set.stream_recent_from": "with a destination touched lately from here on",
}


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    # JSON's escapes are TOML's, but for DEL, which TOML wants escaped too.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(text: str) -> list[str]:
    return [
        f"# {line}".rstrip()
        for line in re.sub(r"[^\S\n]|[\x00-\x09\x0b-\x1f\x7f]", " ", text).split("\n")
    ]


def _sized(key: str, value: int) -> object:
    if value == OFF:
        return "any" if key in _UP_TO else "off"
    return value if key in ("rep_slow_ahead", "backward_ahead") else size_text(value)


def _table(plan: Plan, notes: Mapping[str, str]) -> list[str]:
    lines = ["", "[[plan]]"]

    def put(key: str, value: object, means: str | None = None) -> None:
        if means in notes:
            lines.extend(_comment(notes[means]))
        text = f"{key} = {_value(value)}"
        lines.append(f"{text:<31} # {_MEANS[means]}" if means in _MEANS else text)

    put("name", plan.name)
    put("choice", plan.choice, "choice")
    if plan.made:
        lines += ["", "[plan.made]"]
        for key, value in plan.made.items():
            put(
                key
                if re.fullmatch(r"[\w-]+", key, re.ASCII)
                else json.dumps(key, ensure_ascii=False),
                value,
            )
    lines += ["", f"[plan.cpu]  # {_MEANS['cpu']}"]
    cpu = plan.cpu
    for key, value in (
        ("vendor", cpu.vendor),
        ("family", cpu.family),
        ("model", cpu.model),
        ("stepping", cpu.stepping),
        ("with", cpu.present or None),
        ("without", cpu.absent or None),
        ("last_level", size_text(cpu.last_level) if cpu.last_level else None),
    ):
        if value is not None:
            put(key, value)
    for side, keys in (
        ("copy", ("rep_from", "rep_to", *_COPY_REP, *_STREAM, "parts_from", *_COPY_LOOP)),
        ("set", ("rep_from", "rep_to", "rep_recent_from", *_STREAM)),
    ):
        lines += ["", f"[plan.{side}]"]
        for key in keys:
            start = f"{key.partition('_')[0]}_from"
            off = key != start and plan.thresholds.get(f"{side}_{start}") == OFF
            if not off:
                put(key, _sized(key, plan.thresholds[f"{side}_{key}"]), f"{side}.{key}")
    return lines


def to_text(plans: Sequence[Plan], head: str = "", notes: Sequence[Mapping[str, str]] = ()) -> str:
    """TOML. `head` is the comment on top; notes[i] has comments of plan i by choice, copy.rep_from, set.stream_from
    ..., which stand above the key."""
    lines = _comment(head or "A plan of Wherry; docs/plan.md tells what it may say.")
    lines += ['format = "wherry-plan"', "version = 1"]
    for i, plan in enumerate(plans):
        wrong = fault(plan)
        if wrong:
            raise WherryError(f"the plan '{plan.name}' has {wrong}")
        lines += _table(plan, notes[i] if i < len(notes) else {})
    return "\n".join(lines) + "\n"
