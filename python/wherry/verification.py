"""`wherry-run verify`, followed event by event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from wherry import runner
from wherry.errors import FailedError, WherryError
from wherry.units import size_in_words

# A family of checks of one function may be long without a word (lengths beyond 4 GiB).
SILENCE = 300.0
# So many families are named.
FEW = 3


@dataclass
class Verification:
    start: dict = field(default_factory=dict)
    families: list[dict] = field(default_factory=list)
    failures: list[dict] = field(default_factory=list)
    skips: list[dict] = field(default_factory=list)
    end: dict | None = None
    interrupted: bool = False

    def wrong_targets(self) -> dict[str, str]:
        """Target to the first thing that was wrong with it."""
        first: dict[str, str] = {}
        for failure in self.failures:
            first.setdefault(failure.get("target") or "?", failure.get("message") or "wrong")
        return first

    def tried(self) -> str:
        """What "all right" is said of, in few words: families, and the longest sizes, which not every function is
        called with."""
        families: dict[str, None] = {}
        longest: dict[tuple, int] = {}
        for own in self.families:
            if own.get("cases") and "longest" in own:
                families[own["family"]] = None
                function = own.get("target"), own.get("function")
                longest[function] = max(longest.get(function, 0), own["longest"])
        if not longest:
            return ""
        kinds = (
            f"famil{'y' if len(families) == 1 else 'ies'} {', '.join(families)}"
            if len(families) <= FEW
            else f"{len(families)} families of checks"
        )
        least, most = min(longest.values()), max(longest.values())
        sizes = f"sizes to {size_in_words(least)}"
        if size_in_words(most) != size_in_words(least):
            sizes += f" at least, of some functions to {size_in_words(most)}"
        level = f"level {self.start['level']}: " if "level" in self.start else ""
        return f"{level}{kinds}; {sizes}"

    def unfinished_targets(self) -> list[str]:
        """Those of which some was cut off, by their slowness or a limit on time: so far as they went they are right,
        and that is no proof."""
        cut = (skip.get("target") or "?" for skip in self.skips if skip.get("unfinished"))
        return list(dict.fromkeys(cut))


def verify(
    arguments: Sequence[str],
    progress: Callable[[int, int, str], None] = lambda done, total, what: None,
) -> Verification:
    """Raises for misuse and for a runner that broke; wrong routines are in what it returns."""
    result = Verification()
    trying = ""
    try:
        with runner.Stream(["verify", "--json", *arguments], limit=SILENCE) as stream:
            try:
                for event in stream:
                    kind = event["event"]
                    if kind == "start":
                        result.start = event
                    elif kind == "progress":
                        trying = " ".join(filter(None, (event.get("target"), event.get("family"))))
                        progress(event.get("done", 0), event.get("total", 0), trying)
                    elif kind == "family":
                        result.families.append(event)
                    elif kind == "failure":
                        result.failures.append(event)
                    elif kind == "skip":
                        result.skips.append(event)
                    elif kind == "end":
                        result.end = event
            except runner.HangError:
                raise FailedError(
                    f"verification said nothing for {SILENCE:.0f} s (last: {trying or 'nothing'}); stopped"
                ) from None
            except runner.BadLineError as error:
                raise FailedError(
                    f"verification: the runner's output was damaged: {error}"
                ) from None
            status = stream.end()
            said = stream.complaint()
            limited = stream.out_of_time(status)
    except KeyboardInterrupt:
        result.interrupted = True
        return result
    if status == 2:
        raise WherryError(said or "wherry-run verify refused what it was asked")
    if result.end is None or status not in (0, 1):
        at = f" at {trying}" if trying else ""
        if limited:
            raise FailedError(f"verification broke off{at}: {limited}")
        raise FailedError(
            f"verification broke off{at}: the runner {runner.ended_by(status)} {said}"
        )
    return result
