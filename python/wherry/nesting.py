"""Whether a document is nested more deeply than any right one is.

How deeply Python can go when it reads or walks one depends on its version, and with newer ones on the stack; what is
said of a file may not."""

from __future__ import annotations

# Run files, mixes and the files of other tools have some ten levels.
DEEPEST = 200


def too_deep(document: object) -> bool:
    """One level after the other, so that no depth is too much for it."""
    level = [[document]]
    for _ in range(DEEPEST + 1):
        held = [node.values() if isinstance(node, dict) else node for node in level]
        level = [part for parts in held for part in parts if isinstance(part, (dict, list))]
        if not level:
            return False
    return True
