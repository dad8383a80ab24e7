"""The memory that control groups leave to the runner: of both versions, of nested ones, of those that are not seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import run

V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
V2 = ("memory.max", "memory.current", "")


def group(place: Path, names: tuple, limit: object, used: int = 0, active=0, inactive=0) -> None:
    place.mkdir(parents=True, exist_ok=True)
    (place / names[0]).write_text(f"{limit}\n")
    (place / names[1]).write_text(f"{used}\n")
    told = f"anon 7\n{names[2]}active_file {active}\n{names[2]}inactive_file {inactive}\nsock 0\n"
    (place / "memory.stat").write_text(told)


@pytest.fixture
def left(build_dir: Path, tmp_path: Path):
    def ask(groups: str) -> str:
        return run(build_dir / "tests/c/group-test", tmp_path, input=groups).stdout.strip()

    return ask


def test_version_2(left, tmp_path: Path):
    group(tmp_path, V2, "max")
    group(tmp_path / "a", V2, 5000, 1000, 200, 100)
    group(tmp_path / "a/b", V2, "max", 900)
    assert left("0::/a/b\n") == "4300"
    assert left("0::/a\n") == "4300" and left("0::/\n") == "none"
    group(tmp_path / "a/b", V2, 1500, 900)
    assert left("0::/a/b\n") == "600", "the least of all above"
    group(tmp_path / "a/b", V2, 100, 900)
    assert left("0::/a/b\n") == "0"


def test_version_1(left, tmp_path: Path):
    group(tmp_path / "memory", V1, 2**63 - 4096)
    group(tmp_path / "memory/job", V1, 10_000, 4000, 1000, 500)
    assert left("9:name=systemd:/\n4:memory:/job\n0::/\n") == "7500"


def test_a_group_of_another_namespace(left, tmp_path: Path):
    """A container sees its own group as the root, whatever the path says."""
    group(tmp_path, V2, 3000, 1000)
    assert left("0::/system.slice/docker-1234.scope\n") == "2000"


@pytest.mark.parametrize(
    "groups", ["", "\n", "0::", "0:", "nonsense", "4:cpu:/a\n", "0::/" + "x" * 6000, "::::\n:\n"]
)
def test_nothing_to_be_told(left, groups: str):
    assert left(groups) == "none"


def test_files_that_say_nothing(left, tmp_path: Path):
    group(tmp_path, V2, "-")
    assert left("0::/\n") == "none"
    group(tmp_path, V2, 500, 100)
    (tmp_path / "memory.stat").write_text("active_file\n")
    assert left("0::/\n") == "400"
    (tmp_path / "memory.stat").unlink()
    (tmp_path / "memory.current").unlink()
    assert left("0::/\n") == "500"
