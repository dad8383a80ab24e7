"""What may be absent of a recorded mix: each optional field left out, each that may be null."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from conftest import ROOT
from made_mixes import full
from wherry import mixes, recordedcalls, recordings
from wherry.errors import WherryError
from wherry.replay import parts
from wherry.report import mixpage


def fields(schema: dict, value: object, where: tuple = ()) -> Iterator[tuple[tuple, dict]]:
    """The optional fields of a schema, each with its place in that document, which has all."""
    for branch in schema.get("anyOf", ()):
        yield from fields(branch, value, where)
    if isinstance(value, list) and value and "properties" in schema.get("items", {}):
        yield from fields(schema["items"], value[0], (*where, 0))
    if isinstance(value, dict) and "additionalProperties" in schema:
        for key, inner in value.items():
            yield from fields(schema["additionalProperties"], inner, (*where, key))
    for key, inner in schema.get("properties", {}).items():
        assert key in value, f"full() lacks {key} of {where}"
        if key not in schema.get("required", ()):
            yield (*where, key), inner
        yield from fields(inner, value[key], (*where, key))


SCHEMA = json.loads((ROOT / "schema/mix.schema.json").read_text())


OPTIONAL = {"/".join(map(str, place)): place for place, _ in fields(SCHEMA, full())}


NULLABLE = [
    "/".join(map(str, place))
    for place, inner in fields(SCHEMA, full())
    if "null" in inner.get("type", ()) or {"type": "null"} in inner.get("anyOf", ())
]


@pytest.mark.parametrize(
    "field, absent", [*((name, True) for name in OPTIONAL), *((name, False) for name in NULLABLE)]
)
def test_what_may_be_absent_is_not_missed(tmp_path, monkeypatch, field, absent):
    monkeypatch.setattr(mixpage, "picture", lambda *_: b"<svg></svg>")
    table = recordedcalls.table
    few = lambda *given, **more: table(*given, **{**more, "count": 64})  # noqa: E731
    monkeypatch.setattr(recordedcalls, "table", few)
    document = full()
    *way, last = OPTIONAL[field]
    holder = document
    for key in way:
        holder = holder[key]
    if absent:
        del holder[last]
    else:
        holder[last] = None
    path = tmp_path / "m.mix.json"
    path.write_bytes(recordings.encode(document))
    recording = recordings.read(path)
    assert "What was called" in mixpage.page(recording)
    assert [mix.ops for mix in mixes.gather([str(path)])] == [("copy",)]
    caches = {"L1": 32768, "L2": 1 << 20, "L3": 1 << 25}
    for here in (None, full()["machine"]):
        assert parts.subject(str(path), caches, here=here).parts


@pytest.mark.parametrize(
    ("way", "value"),
    [
        (("ceiling", "parts", 0, "likely_s"), "x"),
        (("ceiling", "parts", 0, "at_most_s"), -1),
        (("ceiling", "parts", 0, "up_to"), []),
        (("ceiling", "parts", 0, "calls"), [None]),
        (("ceiling", "parts", 0, "op"), True),
        (("run", "runs"), 1 << 64),
        (("run", "execs"), 1 << 64),
    ],
)
def test_what_no_recorder_writes_is_refused_with_its_place(way, value):
    document = holder = full()
    *before, last = way
    for key in before:
        holder = holder[key]
    holder[last] = value
    with pytest.raises(WherryError, match=re.escape(f"at {'.'.join(map(str, way))}: ")):
        recordings.parse(json.dumps(document).encode(), "m")


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity"])
def test_no_number_is_refused_whatever_its_key(number):
    data = json.dumps(full()).replace('"format"', f'"unknown": [{number}], "format"', 1).encode()
    with pytest.raises(WherryError, match=r"is no number of JSON|is beyond the numbers"):
        recordings.parse(data, "m")
