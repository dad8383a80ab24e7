"""Two runs of `wherry ab`: a cell of theirs is of a program under a side's name, and neither tells which program, nor
what that side was."""

from __future__ import annotations

from wherry import shellwords
from wherry.errors import printable

_LONGEST = 100


def differ(a: dict, b: dict) -> list[str]:
    """What is not the same in them, for notes: the programs, and what stands behind sides of one name."""
    blocks = [_block(run) for run in (a, b)]
    if None in blocks:
        return []
    found = []
    programs = [_program(run, block) for run, block in zip((a, b), blocks, strict=True)]
    if all(programs) and programs[0] != programs[1]:
        one, other = (_shown(shellwords.line(words)) for words in programs)
        found.append(f"the first run is of {one}, the second of {other}: two programs")
    one, other = (_sides(block) for block in blocks)
    found += [
        f"{name} is {_shown(one[name])} in the first run and {_shown(other[name])} in the second"
        for name in one
        if name in other and one[name] != other[name]
    ]
    return found


def _block(run: dict) -> dict | None:
    return next((own["ab"] for own in run["experiments"] if isinstance(own.get("ab"), dict)), None)


def _program(run: dict, block: dict) -> list[str] | None:
    """Older runs have it in their command alone."""
    words = block.get("program")
    if words is None:
        command = (run.get("method") or {}).get("command") or []
        words = command[command.index("--") + 1 :] if "--" in command else None
    return words if isinstance(words, list) else None


def _sides(block: dict) -> dict[str, str]:
    sides = (block.get(letter) for letter in "ab")
    return {str(own.get("name")): str(own.get("what")) for own in sides if isinstance(own, dict)}


def _shown(text: str) -> str:
    text = printable(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
