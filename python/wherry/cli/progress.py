"""Progress on standard error, only when that is a terminal."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Callable

from wherry import jobcontrol
from wherry.campaign import Watcher

# A bar hides the cursor, which a shell needs when we are stopped.
_SHOW, _HIDE = b"\x1b[?25h", b"\x1b[?25l"


def _bar():
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}, left"),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        auto_refresh=False,
        expand=False,
        # What Ctrl-Z stopped says nothing of the time that is left.
        get_time=jobcontrol.clock,
    )


class Progress:
    """Counts what is done; above the bar, the lines that `draft` gives, as they come. A context manager."""

    def __init__(
        self,
        what: str,
        unit: str,
        total: int,
        draft: Callable[[], list[str]] | None = None,
        clock: Callable[[], tuple[float, float] | None] = lambda: None,
    ):
        self._live = None
        self._draft = draft
        self._clock = clock
        self._drawn = 0.0
        if not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.live import Live

        self._progress = _bar()
        # Above it the whole, by the time there is for it.
        self._whole = None
        if (times := clock()) is not None:
            self._whole = self._progress.add_task("all", total=round(times[1]), unit="s")
        self._task = self._progress.add_task(what, total=total, unit=unit)
        self._live = Live(
            console=Console(stderr=True),
            transient=True,
            refresh_per_second=4,
            auto_refresh=False,
            get_renderable=self._picture,
        )

    def _picture(self):
        from rich.console import Group
        from rich.text import Text

        if self._draft is None:
            return self._progress.get_renderable()
        lines = self._draft()
        room = max(shutil.get_terminal_size().lines - 3, 0)
        if len(lines) > room:
            lines = lines[:2] + lines[len(lines) - room + 2 :] if room > 4 else []
        table = Text("\n".join(lines), no_wrap=True, overflow="crop", style="dim")
        return Group(table, self._progress.get_renderable())

    def __enter__(self) -> Progress:
        self._around = contextlib.ExitStack()
        if self._live:
            self._on_terminal(self._live.start)
            cursor = jobcontrol.following(lambda: _to_terminal(_SHOW), lambda: _to_terminal(_HIDE))
            self._around.enter_context(cursor)
        return self

    def __exit__(self, *_: object) -> None:
        self._around.close()
        if self._live:
            self._on_terminal(self._live.stop)

    def _on_terminal(self, draw: Callable[[], None]) -> None:
        """A terminal that is gone takes nothing with it: what is measured is worth more than the bar."""
        try:
            draw()
        except OSError:
            self._live = None

    def at(self, done: int, total: int | None = None, what: str | None = None) -> None:
        if not self._live:
            return
        self._progress.update(self._task, completed=done, total=total, description=what)
        if self._whole is not None:
            self._progress.update(self._whole, completed=round(self._clock()[0]))
        now = time.monotonic()
        if now - self._drawn > 0.2:
            self._drawn = now
            self._on_terminal(self._live.refresh)


def _to_terminal(text: bytes) -> None:
    """In a signal handler: past whatever Python has half-written."""
    with contextlib.suppress(OSError):
        os.write(2, text)


class CampaignProgress(Watcher):
    def __init__(self, progress: Progress):
        self._progress = progress

    def cells(self, done: int) -> None:
        self._progress.at(done)
