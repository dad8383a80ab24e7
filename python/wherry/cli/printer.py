"""Standard output: text for a terminal, with colour, or for a mail, without."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence

from wherry import tables
from wherry.cli import streams
from wherry.errors import FailedError
from wherry.tables import Block, Line, Span

# Wide enough for the tables, narrow enough for a mail.
MAIL_WIDTH = 96


def wants_colour(stream) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Printer:
    def __init__(self) -> None:
        self.colour = wants_colour(sys.stdout)
        if sys.stdout.isatty():
            self.width = min(shutil.get_terminal_size((MAIL_WIDTH, 24)).columns, 160)
        else:
            self.width = MAIL_WIDTH
        self._console = tables.console(self.width, self.colour)
        # A terminal that has no µ gets a question mark, not a traceback.
        sys.stdout.reconfigure(errors="replace")

    def write(self, text: str) -> None:
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError as error:
            if isinstance(error, streams.LostError):
                streams.silence_stdout()
            raise FailedError(f"cannot write to standard output: {error.strerror}") from None

    def text(self, line: str = "", style: str = "") -> None:
        self.lines([[Span(line, style)]])

    def lines(self, lines: Sequence[Line]) -> None:
        self.write(tables.render(lines, self._console))

    def paragraph(self, text: str, style: str = "", indent: str = "") -> None:
        width = min(self.width, MAIL_WIDTH)
        # A command or a path that is longer than the line stays whole, to be copied.
        for line in textwrap.wrap(
            text,
            width,
            initial_indent=indent,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        ):
            self.text(line, style)

    def pairs(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Label and text, the text wrapped and aligned."""
        label_width = max(len(label) for label, _ in pairs) + 2
        for label, text in pairs:
            room = max(min(self.width, MAIL_WIDTH) - label_width, 20)
            wrapped = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
            wrapped = wrapped or [""]
            self.lines(
                [
                    [
                        Span(label.ljust(label_width) if i == 0 else " " * label_width, "dim"),
                        Span(part),
                    ]
                    for i, part in enumerate(wrapped)
                ]
            )

    def block(self, block: Block) -> None:
        self.text()
        if block.title:
            self.paragraph(block.title, "title")
        if block.lines:
            self.lines(block.lines)
        for note in block.notes:
            self.paragraph(note, "dim", indent="  ")
        if block.sentences:
            self.paragraph(" ".join(block.sentences))
