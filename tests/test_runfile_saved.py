"""A run file is saved whole or not at all, and a place where it cannot be is refused before anything is measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import made_runs
import pytest
from wherry import runfile
from wherry.errors import FailedError, WherryError


@pytest.mark.parametrize("name", ["r.json", "r.json.gz"])
def test_written_and_read_again(tmp_path, name):
    whole = made_runs.usual(1).run
    runfile.write(tmp_path / name, whole)
    assert runfile.read(tmp_path / name) == whole
    assert (tmp_path / name).read_bytes()[:2] == (b"\x1f\x8b" if name.endswith("gz") else b'{"')
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_written_through_a_symbolic_link(tmp_path):
    whole = made_runs.usual(1).run
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "r.json").write_text("old")
    (tmp_path / "link.json").symlink_to("old/r.json")
    runfile.write(tmp_path / "link.json", whole)
    assert (tmp_path / "link.json").is_symlink()
    assert runfile.read(tmp_path / "old" / "r.json") == whole
    assert [p.name for p in (tmp_path / "old").iterdir()] == ["r.json"]


@pytest.mark.parametrize("target", ["/dev/full", "/proc/no/where.json", "/dev/null/x"])
def test_targets_that_cannot_be_written_are_refused_before(target):
    with pytest.raises(WherryError, match="cannot save"):
        runfile.check_target(Path(target))
    assert Path("/dev/full").is_char_device()


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_where_output_goes_no_file_is_put(wherry_run, tmp_path, stream):
    """What a program writes there would be gone with the file whose place was taken."""
    words = ["record", "-q", "-o", f"/dev/{stream}", "--", "sh", "-c", "echo own; echo own >&2"]
    with (tmp_path / "log").open("w") as log:
        done = subprocess.run(
            [sys.executable, "-m", "wherry", *words],
            env={**os.environ, "WHERRY_RUN": str(wherry_run)},
            check=False,
            text=True,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: log},
        )
    said = (done.stdout or "") + (done.stderr or "") + (tmp_path / "log").read_text()
    assert done.returncode == 2 and said.startswith(f"wherry: cannot save to /dev/{stream}: output")
    assert [own.name for own in tmp_path.iterdir()] == ["log"]


def test_a_directory_that_another_command_removes_is_made_again(tmp_path):
    """Each command tries whether it could write, and takes away the directory that it made for that."""
    home, tries = tmp_path / "runs", []

    def make() -> Path:
        tries.append(home.is_dir())
        if len(tries) < 3:
            home.rmdir()
        (home / "x").touch()
        return home / "x"

    assert runfile.in_directory(home, make).exists()
    assert tries == [True] * 3
    with pytest.raises(FileNotFoundError):
        runfile.in_directory(home, (tmp_path / "nowhere" / "y").touch)


def test_a_place_that_cannot_be_looked_at(tmp_path, monkeypatch):
    """A name that is too long, a directory that may not be entered: before, and when the run is over."""

    def refuses(_: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    for path, said in (
        (tmp_path / ("x" * 300), "File name too long"),
        (tmp_path / "r.json", "Permi"),
    ):
        if said == "Permi":
            monkeypatch.setattr(Path, "is_dir", refuses)
            monkeypatch.setattr(Path, "exists", refuses)
        with pytest.raises(WherryError, match=f"cannot save to .*{said}.*; choose another place"):
            runfile.check_target(path)
        with pytest.raises(FailedError, match=f"could not save .*{said}"):
            runfile.write_bytes(path, b"{}")


def test_check_leaves_an_old_file_alone(tmp_path):
    (tmp_path / "r.json").write_text("old")
    runfile.check_target(tmp_path / "r.json")
    assert (tmp_path / "r.json").read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_a_file_system_without_modes_keeps_a_run_all_the_same(tmp_path, monkeypatch):
    """The trial before a run changes no mode, so this would come only once it was measured."""

    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", refused)
    runfile.check_target(tmp_path / "r.json")
    runfile.write_bytes(tmp_path / "r.json", b"{}")
    assert [*tmp_path.iterdir()] == [tmp_path / "r.json"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    (tmp_path / "r.json").write_text("old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FailedError, match="No space left"):
        runfile.write(tmp_path / "r.json", {"a": 1})
    assert (tmp_path / "r.json").read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_trying_a_place_leaves_no_directory(tmp_path):
    runfile.check_target(tmp_path / "runs/a/b.json")
    assert not list(tmp_path.iterdir())
    runfile.write_bytes(tmp_path / "runs/a/b.json", b"{}")
    runfile.check_target(tmp_path / "runs/a/c/d.json")
    assert [p.name for p in (tmp_path / "runs/a").iterdir()] == ["b.json"]


def test_a_directory_that_was_made_is_said(tmp_path, capsys, wherry):
    for place, quiet in (("runs/a", False), ("b", True)):
        runfile.write_bytes(tmp_path / place / "c.json", b"{}", quiet)
        runfile.write_bytes(tmp_path / place / "d.json", b"{}", quiet)
    assert (
        capsys.readouterr().err == f"wherry: {tmp_path}/runs/a was no directory yet; it was made\n"
    )
    done = wherry("plan", "default", "-o", tmp_path / "e/own.toml")
    assert f"{tmp_path}/e was no directory yet" in done.stderr and done.returncode == 0


def test_a_dash_is_no_file(tmp_path, wherry):
    for words in (("record", "-o", "-", "--", "true"), ("plan", "default", "-o", "-")):
        done = wherry(*words, cwd=tmp_path)
        assert (
            done.returncode == 2 and "cannot save to -: that is not standard output" in done.stderr
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\udcffb", "a\ufffdb"),
        ("\ud83d", "\ufffd"),
        ("\U0001f600 \xb5", "\U0001f600 \xb5"),
        ("\\udcff", "\\udcff"),
        ("\\\udcff\udcfe", "\\\ufffd\ufffd"),
    ],
)
def test_names_that_are_no_text_are_right_json(text, expected):
    """Half a letter alone is none that other readers take."""
    data = runfile.encode({text: [text]})
    assert json.loads(data) == {expected: [expected]}
    json.loads(data)[expected][0].encode()


def test_a_run_file_keeps_names_that_are_no_text(tmp_path):
    """By them --resume finds the files that it was given."""
    runfile.write(tmp_path / "run.json", {"mix": "a\udcffb"})
    assert json.loads((tmp_path / "run.json").read_text()) == {"mix": "a\udcffb"}
