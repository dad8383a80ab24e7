"""What the runner reads as a mix, in every process: copies, which nobody changes meanwhile and whose paths have no
blanks. Removed when the program ends."""

from __future__ import annotations

import tempfile
from pathlib import Path


class _Copies:
    def __init__(self) -> None:
        self._directory: tempfile.TemporaryDirectory | None = None
        self._count = 0

    def keep(self, data: bytes) -> str:
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="wherry-mixes-")
        self._count += 1
        path = Path(self._directory.name) / f"{self._count}.csv"
        path.write_bytes(data)
        return str(path)


_copies = _Copies()


def keep(data: bytes) -> str:
    """`@FILE`, as the `mix` of a row: a file with it that lasts as long as the program does."""
    return f"@{_copies.keep(data)}"
