"""Standard output: text for a terminal, with colour, or for a mail, without."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence

from wherry.errors import FailedError, StdoutClosedError
from wherry.tables import Block, Line, Span, plain

_SGR = {
    "title": "1",
    "dim": "2",
    "lead": "1;32",
    "tie": "36",
    "bad": "1;31",
    # From the best (dark green) to the worst (red), as background of a heat map's cell.
    **{
        f"heat{i}": f"38;5;16;48;5;{c}"
        for i, c in enumerate((34, 40, 76, 112, 154, 226, 220, 214, 202, 196))
    },
}
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
        # A terminal that has no µ gets a question mark, not a traceback.
        sys.stdout.reconfigure(errors="replace")

    def write(self, text: str) -> None:
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except BrokenPipeError:
            raise StdoutClosedError from None
        except OSError as error:
            raise FailedError(f"cannot write to standard output: {error.strerror}") from None

    def text(self, line: str = "", style: str = "") -> None:
        self.lines([[Span(line, style)]])

    def lines(self, lines: Sequence[Line]) -> None:
        if not self.colour:
            self.write(plain(lines) + "\n")
            return
        parts = []
        for line in lines:
            for span in line:
                code = _SGR.get(span.style)
                parts.append(f"\033[{code}m{span.text}\033[0m" if code else span.text)
            parts.append("\n")
        self.write("".join(parts))

    def paragraph(self, text: str, style: str = "", indent: str = "") -> None:
        width = min(self.width, MAIL_WIDTH)
        for line in textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent):
            self.text(line, style)

    def pairs(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Label and text, the text wrapped and aligned."""
        label_width = max(len(label) for label, _ in pairs) + 2
        for label, text in pairs:
            wrapped = textwrap.wrap(text, max(min(self.width, MAIL_WIDTH) - label_width, 20)) or [
                ""
            ]
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
