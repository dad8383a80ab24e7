"""Documents against the schemas of schema/: quickly when they are right, in words when they are not."""

from __future__ import annotations

import functools
import json
from pathlib import Path

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


def _is_right(document: object, name: str) -> bool:
    try:
        return _quick(name).is_valid(document)
    except (ValueError, TypeError, OverflowError, RecursionError):
        return False  # what it cannot hold, the other one judges


def fault(document: object, name: str, *, separator: str = ".", longest: int = 160) -> str | None:
    """What that schema has against it, in one line: "at PLACE: REASON"; None when nothing."""
    if _is_right(document, name):
        return None
    # A hundred times as slow, and it finds the sentence that tells most.
    import jsonschema
    from jsonschema.exceptions import best_match
    from referencing import Registry, Resource

    schema, machine = _whole(name)
    registry = Registry().with_resource(machine["$id"], Resource.from_contents(machine))
    validator = jsonschema.Draft202012Validator(schema, registry=registry)
    error = best_match(validator.iter_errors(document))
    if error is None:
        return None
    place = separator.join(str(part) for part in error.absolute_path) or "its top"
    message = " ".join(error.message.split())
    return f"at {place}: {message if len(message) < longest else message[: longest - 3] + '...'}"
