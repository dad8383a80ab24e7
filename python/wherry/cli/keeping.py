"""Where a run is kept: its file, the raw samples and the journal beside it."""

from __future__ import annotations

import contextlib
import itertools
import signal
from pathlib import Path

from wherry import runfile
from wherry.errors import FailedError
from wherry.journal import Journal


class Keeper:
    def __init__(self, path: Path, *, explicit: bool, raw: bool):
        self.path = path
        self.explicit = explicit
        self.raw = raw
        self.named = False  # the default name is ours
        self.journal: Journal | None = None

    def begin(self, document: dict, part: dict) -> Journal:
        """The journal of an experiment that begins."""
        with _deaf():
            self._take_name_once()
            self.journal = Journal(self.path, document, part)
        return self.journal

    def measured(self) -> None:
        """Nothing more comes of the experiment; `save` makes its journal needless."""
        if self.journal:
            self.journal.close()

    def left(self) -> bool:
        """Whether rows are in the journal alone, since it ended before the figures of them were saved."""
        return self.journal is not None and self.journal.rows > 0

    def nothing(self) -> None:
        """There is nothing to keep."""
        self._drop_journal()
        self._give_name_back()

    def save(self, document: dict, samples: list[dict]) -> None:
        # Ctrl-C now would throw away what it is meant to keep.
        with _deaf():
            self._take_name_once()
            try:
                runfile.write(self.path, document)
                if self.raw:
                    raw_path = self.path.with_name(self.path.name + ".raw.json.gz")
                    runfile.write(raw_path, {"run": self.path.name, "samples": samples})
            except FailedError:
                self._give_name_back()
                raise
            self._drop_journal()

    def _drop_journal(self) -> None:
        if self.journal:
            self.journal.remove()
            self.journal = None

    def _take_name_once(self) -> None:
        if not self.explicit and not self.named:
            self._take_name()

    def _take_name(self) -> None:
        """The default name, or the next one: another bench may have begun in the same second."""
        stem, dot_json, packed = self.path.name.rpartition(".json")
        with contextlib.suppress(OSError):  # the writing that follows tells of it
            for number in itertools.count(2):
                with contextlib.suppress(FileExistsError):
                    self.path.touch(exist_ok=False)
                    self.named = True
                    if runfile.journal_beside(self.path) is None:
                        return
                    self._give_name_back()  # the journal is of a run whose file somebody has removed
                self.path = self.path.with_name(f"{stem}-{number}{dot_json}{packed}")

    def _give_name_back(self) -> None:
        """An empty file only held the name; an older save stays."""
        with contextlib.suppress(OSError):
            if self.named and self.path.stat().st_size == 0:
                self.path.unlink()
                self.named = False


@contextlib.contextmanager
def _deaf():
    """Ctrl-C waits until the block is done."""
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
