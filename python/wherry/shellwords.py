"""Words as a shell takes them: what is shown is what can be typed again.

shellwords.word("two words")                 # 'two words'
shellwords.line(["python3", "-c", "1\\n2"])   # python3 -c $'1\\n2'
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

_NAMED = {"\\": r"\\", "'": r"\'", "\n": r"\n", "\t": r"\t"}


def word(text: str) -> str:
    """One word, of letters that can be printed, whatever bytes it has."""
    return (
        shlex.quote(text) if text.isprintable() else "$'" + "".join(_letter(c) for c in text) + "'"
    )


def line(words: Iterable[object]) -> str:
    return " ".join(word(str(own)) for own in words)


def path(text: str) -> str:
    """A path as a word that no command takes for an option."""
    return word(f"./{text}" if text.startswith("-") else text)


def _letter(letter: str) -> str:
    if named := _NAMED.get(letter):
        return named
    if letter.isprintable():
        return letter
    # Bytes that are no text; a half of a letter can be nothing but a file's, edited by hand.
    how = "surrogateescape" if "\udc80" <= letter <= "\udcff" else "surrogatepass"
    return "".join(f"\\{byte:03o}" for byte in letter.encode("utf-8", how))
