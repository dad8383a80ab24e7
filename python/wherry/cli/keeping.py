"""Where a run is kept: its file, the raw samples and the journal beside it."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path

from wherry import journal, outputs, runfile, stamp
from wherry.errors import FailedError
from wherry.journal import Journal


def check(path: Path, *, explicit: bool, kind: outputs.Kind = outputs.RUN) -> None:
    """Before anything is measured: can it be saved there? A default name is taken when there is something to save,
    past what others have taken until then."""
    if explicit:
        outputs.check(path, kind)
    else:
        runfile.check_target(path)


def save(path: Path, document: dict, *, explicit: bool) -> Path:
    """A document that comes at once; where it is, which is elsewhere when a default name was taken meanwhile."""
    with _deaf():
        taken = None
        if not explicit:
            with contextlib.suppress(OSError):  # the writing that follows tells of it
                path = taken = stamp.take(path)
        try:
            runfile.write(path, document)
        except FailedError:
            if taken:
                taken.unlink(missing_ok=True)
            raise
    return path


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
            first = self.journal is None
            with journal.taken(self.path) if first else contextlib.nullcontext():
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
        """The default name, or the next one: another bench may have begun in the same second."""
        if not self.explicit and not self.named:
            with contextlib.suppress(OSError):  # the writing that follows tells of it
                self.path, self.named = stamp.take(self.path), True

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
