"""Builds in which the text of the smallest calls lies otherwise: first_tier and page_edge of meson.options."""

from __future__ import annotations

from pathlib import Path

from conftest import ROOT, meson_build


def _has(build: Path, first: str, edge: str) -> bool:
    made = (build / "src" / "routines" / "arrangement.h").read_text().splitlines()
    lines = (
        f"#define WHERRY_FIRST_AVX2 {first == 'avx2':d}",
        f"#define WHERRY_EDGE_BRANCH {edge == 'branch':d}",
    )
    return all(line in made for line in lines)


def built(build_dir: Path, first: str, edge: str) -> Path:
    """A build of that kind: the one there is, if it is."""
    if _has(build_dir, first, edge):
        return build_dir
    build = ROOT / "build" / f"first-{first}-{edge}"
    programs = ("early-static", "midcall-test", "low-test", "edge-test", "watch-test")
    targets = ("runner/wherry-run", *(f"tests/c/{name}" for name in programs))
    options = (f"-Dfirst_tier={first}", f"-Dpage_edge={edge}")
    meson_build(ROOT, build, *options, targets=targets, like=build_dir)
    assert _has(build, first, edge)
    return build


def built_otherwise(build_dir: Path) -> Path:
    """The one of which both differ."""
    for first, opposite_first in (("avx2", "avx512"), ("avx512", "avx2")):
        for edge, opposite_edge in (("select", "branch"), ("branch", "select")):
            if _has(build_dir, first, edge):
                return built(build_dir, opposite_first, opposite_edge)
    raise AssertionError(f"{build_dir} has none of the four arrangements")
