"""The documents: a link leads to a file that is there, and to a heading of it; a file that is named is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT
from wherry.scoreboard import listed

LINK = re.compile(r"\]\(([^()\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def documents(root: Path) -> list[Path]:
    return sorted([*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("examples/**/*.md")])


def anchors(text: str) -> set[str]:
    """As GitHub and GitLab make them of headings."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.*)$", FENCE.sub("", text), re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower().strip()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found.add(anchor if anchor not in found else f"{anchor}-1")
    return found


def dead_links(root: Path) -> Iterator[str]:
    for page in documents(root):
        for target in LINK.findall(FENCE.sub("", page.read_text())):
            name, _, anchor = target.partition("#")
            if "://" in target or name.startswith("mailto:"):
                continue
            to = (page.parent / name).resolve() if name else page
            if not to.exists():
                yield f"{page.relative_to(root)}: {target}: no such file"
            elif anchor and to.suffix == ".md" and anchor not in anchors(to.read_text()):
                yield f"{page.relative_to(root)}: {target}: no such heading"


def test_links_lead_somewhere():
    assert len(documents(ROOT)) > 20
    assert list(dead_links(ROOT)) == []


@pytest.mark.parametrize(
    "link, dead",
    [
        ("docs/other.md", None),
        ("docs/other.md#what-is-there-8-kib", None),
        ("#own-words", None),
        ("https://example.org/gone.md#x", None),
        ("docs/others.md", "no such file"),
        ("docs/other.md#what-was-there", "no such heading"),
        ("docs/other.md#in-a-fence", "no such heading"),
        ("#others-words", "no such heading"),
    ],
)
def test_a_dead_link_is_seen(tmp_path: Path, link: str, dead: str | None):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/other.md").write_text("## What is there: `8 KiB`\n```\n# in a fence\n```\n")
    (tmp_path / "README.md").write_text(f"# Own words\nSee [it]({link}).\n")
    expected = [f"README.md: {link}: {dead}"] if dead else []
    assert list(dead_links(tmp_path)) == expected


# A path that begins with one of our directories, in the marks of code. What is installed or built is elsewhere.
NAMED = re.compile(
    r"`((?:docs|examples|history|include|man|mixes|peers|preload|python|requirements|runner|schema|src|tests|tools)"
    r"/[\w./-]+)`"
)
ELSEWHERE = {"runner/wherry-libfuzzer", "tools/compare.py"}  # built by clang; google-benchmark's


def files_gone(root: Path) -> Iterator[str]:
    for page in [*documents(root), *root.glob("history/*.md")]:
        for name in NAMED.findall(page.read_text()):
            if name not in ELSEWHERE and not (root / name).exists():
                yield f"{page.relative_to(root)}: {name}"


def test_files_that_are_named_are_there():
    assert list(files_gone(ROOT)) == []


def test_a_file_that_is_gone_is_seen(tmp_path: Path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.c").touch()
    (tmp_path / "README.md").write_text("See `src/a.c`, `src/b.c` and `wherry src/c.c`.\n")
    assert list(files_gone(tmp_path)) == ["README.md: src/b.c"]


# ---- the scoreboards that README.md sums up --------------------------------------------------------------------------

README = (ROOT / "README.md").read_text()
MEANS = re.findall(
    r"^\| ([^|]+) \| ([\d., ]+) \| ([\d., ]+) \| ([\d., ]+) \| \[scoreboard\]\(([^)]+)\) \|$",
    README,
    flags=re.MULTILINE,
)


def test_the_scoreboards_are_all_there():
    assert {f"docs/{page.name}" for page in (ROOT / "docs").glob("scoreboard*.md")} == {
        page for *_, page in MEANS
    }


@pytest.mark.parametrize(("cpu", "libc", "envelope", "single", "page"), MEANS)
def test_the_figures_of_a_scoreboard(cpu: str, libc: str, envelope: str, single: str, page: str):
    """The means, and how many regions are surely behind: as printed on the page, in the order copy, move, set."""
    text = (ROOT / page).read_text()
    whole = " ".join(text.split())
    printed = re.findall(
        r"Over 1[46] regions of equal weight \(geometric mean\) Wherry takes ([\d.]+) \S+ of libc's time, "
        r"([\d.]+) \S+ of the envelope's \(the best peer of each\) and ([\d.]+) ",
        whole,
    )
    assert [", ".join(column) for column in zip(*printed, strict=True)] == [libc, envelope, single]
    (row,) = re.findall(
        rf"^\| {re.escape(cpu)} \| ([^|]*) regions[^|]*\|[^|]*\|$", README, re.MULTILINE
    )
    of = "|".join(re.escape(region.name) for region in listed.REGIONS if region.base)
    behind = re.findall(rf"^ +(?:{of}) .* behind +[\d.]+ +\S+$", text, flags=re.MULTILINE)
    told, in_words = row.split()[0], {"none": 0, "one": 1}
    assert (in_words[told] if told in in_words else int(told)) == len(behind)
    assert row.endswith(" of 44")
