"""How often libc's own memory routines are entered while the command runs, by libc itself too: the kernel counts, by
probes (docs/runner-protocol.md, `wherry-run entered`). What the recorder did not see of them was copied inside libc."""

from __future__ import annotations

import json
import os
import selectors
import time
from collections.abc import Mapping, Sequence

# The counters are read when the program has ended; more time than this means that nobody is there to read them.
ANSWER_S = 10.0


class Counting:
    """One count: `around` the command first, `finish` when it has ended."""

    def __init__(self) -> None:
        from wherry import runner

        self.program = runner.path()
        self._control, self._ours = os.pipe()
        self._answer, self._report = os.pipe()

    def around(
        self, executable: str, argv: Sequence[str], env: Mapping[str, str]
    ) -> tuple[list[str], tuple[int, int]]:
        """The words that start the command so, and the descriptors to hand on. The environment is for the command
        alone."""
        changed = [
            word
            for key, value in env.items()
            if os.environ.get(key) != value
            for word in ("--set", f"{key}={value}")
        ]
        words = ["--control", str(self._control), "--report", str(self._report), *changed]
        return (
            [self.program, "entered", *words, "--", executable, *argv],
            (self._control, self._report),
        )

    def started(self) -> None:
        os.close(self._control)
        os.close(self._report)

    def finish(self) -> dict:
        """{"entered": calls}, or {"error": why there is no count}."""
        os.close(self._ours)
        text, end = b"", time.monotonic() + ANSWER_S
        with selectors.DefaultSelector() as selector:
            selector.register(self._answer, selectors.EVENT_READ)
            while b"\n" not in text and selector.select(max(0.0, end - time.monotonic())):
                part = os.read(self._answer, 4096)
                if not part:
                    break
                text += part
        os.close(self._answer)
        try:
            event = json.loads(text)
        except ValueError:
            return {"error": "the counting process gave no answer"}
        return {"error": event["error"]} if "error" in event else {"entered": event["calls"]}


def judged(counted: Mapping, seen: int) -> dict:
    """For the mix: with what the recorder saw taken away."""
    if "error" in counted:
        return dict(counted)
    return {"entered": counted["entered"], "inside_libc": max(0, counted["entered"] - seen)}


# Such calls find libc by themselves.
PAST = "calls that go past what is preloaded (RTLD_DEEPBIND, dlmopen, dlsym with libc's own handle)"


def in_words(unseen: Mapping | None) -> str:
    inlined = "those that the compiler inlined"
    if unseen is None:
        return (
            f"copies inside libc itself, {inlined}, and {PAST}; how many is not known (--unseen counts the first and "
            "the last)"
        )
    if "error" in unseen:
        return f"copies inside libc itself, {inlined}, and {PAST}; not counted: {unseen['error']}"
    entered, inside = unseen["entered"], unseen["inside_libc"]
    share = ""
    if entered:
        share = f" ({inside / entered:.1%} of the {entered:,} times that its routines were entered)"
    return f"{inside:,} copies and sets inside libc itself{share}, {PAST} among them; and {inlined}"
