"""docs/plan.md against the code: keys, what a missing one means, and the numbers of the compiled form."""

from __future__ import annotations

import json
import re

import pytest
from conftest import ROOT
from wherry import planbinary, planfiles, plans

PAGE = (ROOT / "docs/plan.md").read_text()
MINIMAL = """format = "wherry-plan"
version = 1
[[plan]]
name = "least"
choice = "sse2"
[plan.cpu]
vendor = "AuthenticAMD"
family = 26
[plan.copy]
rep_from = "4 KiB"
stream_from = "24 MiB"
[plan.set]
rep_from = "4 KiB"
stream_from = "24 MiB"
"""
# What stands behind "missing: " in the table, as a threshold or the key whose value it has.
MEANS = {
    "no end": plans.OFF,
    "at every size": "rep_from",
    "0": 0,
    "1536": 1536,
    "none": plans.OFF,
    "all from both ends": plans.OFF,
    "all by the source's": plans.OFF,
    "as `stream_from`": "stream_from",
}


def keys() -> dict[str, str | None]:
    """Of the table of keys: what a missing one means; None: it must be there."""
    (table,) = re.findall(r"^\| key \|.*?\n\n", PAGE, flags=re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| `(\w+)` \| .* \| ([^|]*) \|$", table, flags=re.MULTILINE)
    told: dict[str, str | None] = {}
    for key, words in rows:
        missing = re.search(r"missing: (.*)$", words)
        assert missing or "must be there" in words, key
        told[key] = missing[1] if missing else None
    return told


@pytest.fixture(scope="module")
def least(tmp_path_factory) -> plans.Plan:
    path = tmp_path_factory.mktemp("plan") / "least.toml"
    path.write_text(MINIMAL)
    (plan,) = planfiles.read(path)
    return plan


def test_each_key_is_in_the_table_and_in_the_example():
    schema = json.loads((ROOT / "schema/plan.schema.json").read_text())
    parts = schema["$defs"]["plan"]["properties"]
    known = {side: set(parts[side]["properties"]) for side in ("copy", "set")}
    assert set(keys()) == known["copy"] | known["set"]
    assert {key for key, missing in keys().items() if missing is None} == set(
        parts["copy"]["required"]
    )
    for side in ("copy", "set"):
        (shown,) = re.findall(rf"^\[plan\.{side}\]\n((?:\w+ = .*\n)*)", PAGE, flags=re.MULTILINE)
        assert set(re.findall(r"^(\w+) = ", shown, flags=re.MULTILINE)) == known[side]


def test_the_example_is_a_right_plan(tmp_path):
    (example,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "a.toml").write_text(example)
    (plan,) = planfiles.read(tmp_path / "a.toml")
    assert plans.fault(plan) is None


@pytest.mark.parametrize("key", [key for key, missing in keys().items() if missing])
def test_a_missing_key_means_what_the_table_says(least, key: str):
    for side in ("copy", "set"):
        if f"{side}_{key}" in plans.FIELDS:
            means = MEANS[keys()[key]]
            told = means if isinstance(means, int) else least.thresholds[f"{side}_{means}"]
            assert least.thresholds[f"{side}_{key}"] == told, side


def test_the_numbers_of_the_compiled_form():
    assert f"format version {planbinary.VERSION};" in PAGE
    assert f"bytes of a record, {planbinary.RECORD.size} |" in PAGE
    assert f"at most {planbinary.MOST_PLANS};" in PAGE
    length = planbinary.HEADER.size + planbinary.MOST_PLANS * planbinary.RECORD.size
    (told,) = re.findall(r"a pass of at most ([\d.]+) KiB", PAGE)
    assert length <= float(told) * 1024 < length + 103  # one digit behind the point
    (words,) = re.findall(r"sixteen words of 64 bits: (.*?); all ones", PAGE)
    side, order = "", []
    for word in words.replace(",", "").split():
        side, order = (
            (word, order) if word in ("copy", "set") else (side, [*order, f"{side}_{word}"])
        )
    assert tuple(order) == plans.FIELDS


def test_the_blocks_of_what_was_written_lately():
    known = dict(
        re.findall(
            r"^#define (RECENT_\w+) (\d+)",
            (ROOT / "src/routines/recent.h").read_text(),
            flags=re.MULTILINE,
        )
    )
    block = 1 << int(known["RECENT_BLOCK_LOG"])
    text = " ".join(PAGE.split())
    assert f"its first and its last block of {block >> 10} KiB" in text
    copies, sets = (block * int(known[f"RECENT_{side}_PLACES"]) for side in ("COPY", "SET"))
    assert f"cache of {copies >> 10} KiB (a set: {sets >> 20} MiB)" in text
