"""`--fail-on slower:5%`: from which change on a comparison fails."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from wherry.compare.judge import FASTER, SLOWER, UNDECIDED, Change, Comparison
from wherry.errors import WherryError, unknown

_KINDS = {"slower": (SLOWER,), "faster": (FASTER,), "changed": (SLOWER, FASTER)}


@dataclass(frozen=True)
class Limit:
    text: str
    kind: str
    share: float  # 0.05: five per cent longer, or the same less

    def _beyond(self, ratio: float) -> bool:
        longer, shorter = ratio > 1 + self.share, ratio < 1 / (1 + self.share)
        return (longer and self.kind != "faster") or (shorter and self.kind != "slower")

    def towards(self, change: Change) -> float:
        """How far it went the way that the limit is about."""
        longer, shorter = change.ratio, 1 / change.ratio
        return {"slower": longer, "faster": shorter}.get(self.kind, max(longer, shorter))

    def failing(self, found: Comparison) -> list[Change]:
        """Told to have changed, and by more than the limit. What lies within the noise is never among them."""
        return [c for c in found.of(*_KINDS[self.kind]) if self._beyond(c.ratio)]

    def possible(self, found: Comparison) -> list[Change]:
        """Undecided ones that may be beyond it: without an interval any."""
        return [
            c
            for c in found.of(UNDECIDED)
            if c.low is None or any(map(self._beyond, (c.ratio, c.low, c.high)))
        ]

    def unseen(self, found: Comparison) -> float | None:
        """The noise floor, where it hides changes that the limit asks for."""
        floor = max((c.floor for c in found.changes if not c.yardstick), default=0.0)
        return floor if floor > self.share else None


def parse(given: Iterable[str]) -> list[Limit]:
    limits = []
    for text in (word.strip() for value in given for word in value.split(",")):
        kind, colon, share = text.partition(":")
        if not text:
            raise WherryError("--fail-on has an empty limit; write it as slower:5%")
        if kind not in _KINDS:
            raise unknown("limit", kind, _KINDS, "wherry compare --help")
        number = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)\s*%?", share.strip())
        if colon and not number:
            raise WherryError(
                f"--fail-on {text} names no share from 0 % on ('{share}' is not a share); "
                f"write it as {kind}:5%"
            )
        limits.append(Limit(text, kind, float(number[1]) / 100 if number else 0.0))
    return limits
