"""What has one name in two runs and is not the same: the program and the sides of `wherry ab`, of which a cell tells a
name at most, and a mix out of a file, of which it tells the file's."""

from __future__ import annotations

from collections.abc import Iterable

from wherry import shellwords
from wherry.errors import printable

_LONGEST = 100
# The calls that are drawn of a mix have another mean in each run.
_DRAWN = 0.05


def differ(a: dict, b: dict, pairs: Iterable[tuple[dict, dict]]) -> list[str]:
    """In words, for notes. `pairs`: cells that are compared."""
    return [*_of_ab(a, b), *_mixes(a, b, pairs)]


def _of_ab(a: dict, b: dict) -> list[str]:
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


def _mixes(a: dict, b: dict, pairs: Iterable[tuple[dict, dict]]) -> list[str]:
    """By what is kept of their files; where nothing is, by the mean of their calls."""
    known = [
        {
            own.get("name"): own.get("sha256")
            for own in run.get("mixes") or []
            if isinstance(own, dict)
        }
        for run in (a, b)
    ]
    found: dict[str, tuple] = {}
    for one, other in pairs:
        name = str(one.get("mix") or "").removeprefix("@")
        if not name or name in found:
            continue
        means = one.get("bytes"), other.get("bytes")
        told = [own.get(name) for own in known]
        if all(told):
            differs = told[0] != told[1]
        else:
            differs = all(means) and abs(means[1] / means[0] - 1) > _DRAWN
        if differs:
            found[name] = means
    return [
        f"{_shown(name)} is another mix in the second run than in the first"
        + (
            f" (calls of {means[0]:.0f} and of {means[1]:.0f} bytes on average)"
            if all(means)
            else ""
        )
        for name, means in found.items()
    ]
