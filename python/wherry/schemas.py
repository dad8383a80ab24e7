"""Documents against the schemas of schema/: quickly when they are right, in words when they are not."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from pathlib import Path

from wherry import nesting
from wherry.errors import FailedError


def text(name: str) -> str:
    """A schema of the package, or of the source tree that the package is in."""
    from importlib import resources

    file = name + ".schema.json"
    inside = resources.files("wherry") / "schema" / file
    if inside.is_file():
        return inside.read_text(encoding="utf-8")
    tree = Path(__file__).resolve().parents[2] / "schema" / file
    try:
        return tree.read_text(encoding="utf-8")
    except OSError:
        raise FailedError(f"{file} is missing; install Wherry again") from None


def _whole(name: str) -> tuple[dict, dict]:
    """The schema, and the one that a run's refers to."""
    return json.loads(text(name)), json.loads(text("machine"))


@functools.cache
def _quick(name: str):
    import jsonschema_rs

    schema, machine = _whole(name)
    registry = jsonschema_rs.Registry([(machine["$id"], machine)])
    return jsonschema_rs.Draft202012Validator(schema, registry=registry)


# Longer lists are shortened before a fault is put into words.
FEW = 16


class _Shortened:
    """The document with its first faults alone: of long lists the first wrong element, else the first few."""

    def __init__(self, document: object, faults: list[list]) -> None:
        self._kept: dict[int, list[int]] = {}
        self.document = self._of(document, faults)

    def _of(self, node: object, faults: list[list]) -> object:
        inside: dict[object, list[list]] = {}
        for first, *rest in filter(None, faults):
            inside.setdefault(first, []).append(rest)
        if isinstance(node, dict):
            return {key: self._of(value, inside.get(key, [])) for key, value in node.items()}
        if not isinstance(node, list):
            return node
        numbers = list(range(len(node)))
        if len(node) > FEW and [] not in faults:  # where the list itself is wrong it is all needed
            numbers = [min(inside)] if inside else numbers[:FEW]
        own = [self._of(node[number], inside.get(number, [])) for number in numbers]
        self._kept[id(own)] = numbers
        return own

    def place(self, path: Iterable[str | int]) -> list[str | int]:
        """Where in the whole document it is."""
        node, found = self.document, []
        for part in path:
            found.append(self._kept[id(node)][part] if isinstance(node, list) else part)
            node = node[part]
        return found


def _faults(document: object, name: str) -> list[list]:
    """Where they are, as far as the quick one can tell."""
    try:
        return [error.instance_path for error in _quick(name).iter_errors(document)]
    except (ValueError, TypeError, OverflowError, RecursionError):
        return []


def _is_right(document: object, name: str) -> bool:
    try:
        return _quick(name).is_valid(document)
    except (ValueError, TypeError, OverflowError, RecursionError):
        return False  # what it cannot hold, the other one judges


def fault(document: object, name: str, *, separator: str = ".", longest: int = 160) -> str | None:
    """What that schema has against it, in one line: "at PLACE: REASON"; None when nothing."""
    if _is_right(document, name):
        return None
    deep = "at its top: it is nested too deeply"
    if nesting.too_deep(document):
        return deep
    try:
        found = _in_words(document, name)
    except RecursionError:
        return deep
    if found is None:
        return None
    path, message = found
    place = separator.join(map(str, path)) or "its top"
    return f"at {place}: {message if len(message) < longest else message[: longest - 3] + '...'}"


def _in_words(document: object, name: str) -> tuple[list[str | int], str] | None:
    # A hundred times as slow, and it finds the sentence that tells most.
    import jsonschema
    from jsonschema.exceptions import best_match
    from referencing import Registry, Resource

    schema, machine = _whole(name)
    registry = Registry().with_resource(machine["$id"], Resource.from_contents(machine))
    validator = jsonschema.Draft202012Validator(schema, registry=registry)
    short = _Shortened(document, _faults(document, name))
    if error := best_match(validator.iter_errors(short.document)):
        path = short.place(error.absolute_path)
    elif error := best_match(validator.iter_errors(document)):
        path = list(error.absolute_path)
    else:
        return None
    return path, " ".join(error.message.split())
