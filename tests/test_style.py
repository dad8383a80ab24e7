"""The pinned formatter and linter have nothing to say."""

from __future__ import annotations

from conftest import ROOT, need_tool, run


def test_c_format():
    need_tool("clang-format", "clang-format")
    files = [
        file
        for room in ("src", "preload", "runner", "include", "tests")
        for file in sorted((ROOT / room).rglob("*.[ch]"))
    ]
    run("clang-format", "--dry-run", "-Werror", *files, cwd=ROOT)


def test_python_lint():
    need_tool("ruff", "ruff, from PyPI: tools/setup test")
    run("ruff", "check", "--no-cache", "python", "tests", cwd=ROOT)


def test_python_format():
    need_tool("ruff", "ruff, from PyPI: tools/setup test")
    run("ruff", "format", "--no-cache", "--check", "python", "tests", cwd=ROOT)
