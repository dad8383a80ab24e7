"""Where a stripe's bytes are: what rows are made with before it is known, and what is filled in when it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from wherry.row import SystemRow

# What the runner takes in one line of words.
LONGEST_LIST = 3400


def encoded(paths: Sequence[str]) -> str:
    return ",".join(quote(path, safe="/._-#+@~") for path in paths)


@dataclass
class Place:
    files: list[str] = field(default_factory=list)
    content: int = 0  # the seed of what is in them; 0: nobody knows
    raid: str = ""  # the file on it
    beneath: list[str] = field(default_factory=list)
    no_raid: str = "there is none"  # why

    def words(self, raid: str) -> dict[str, str | int]:
        if raid == "none":
            return {"files": encoded(self.files), "content": self.content}
        if not self.raid:
            return {"missing": encoded([self.no_raid])}
        return {
            "files": encoded([self.raid]),
            "beneath": encoded(self.beneath),
            "content": self.content,
        }


@dataclass(frozen=True)
class StripeRow(SystemRow):
    place: Place = field(default_factory=Place, compare=False, repr=False)
    source: str = "scratch"

    def dimensions(self) -> dict[str, object]:
        return super().dimensions() | {"from": self.source}

    def told(self, number: int) -> str:
        own = self.place.words(str(dict(self.words)["raid"]))
        return " ".join([self.line(number), *(f"{key}={value}" for key, value in own.items())])
