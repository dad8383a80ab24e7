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
    # By kind, what lies on a RAID and what lies beneath it; or why there is none.
    raids: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    no_raid: dict[str, str] = field(default_factory=dict)

    def words(self, raid: str) -> dict[str, str | int]:
        if raid == "none":
            return {"files": encoded(self.files), "content": self.content}
        if raid not in self.raids:
            return {"missing": encoded([self.no_raid.get(raid, "there is none")])}
        file, beneath = self.raids[raid]
        return {
            "files": encoded([file]),
            "beneath": encoded(beneath),
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
