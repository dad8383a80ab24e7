"""The processor time of what nobody below the command waits for, so that the kernel adds it to nobody's that is known
here: of what lost its parents, as daemons do, and of children whose parent ignores SIGCHLD."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from wherry.recording import leftovers, processor

# To find whom a record is of.
_TRIES = 3
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def stat(pid: int) -> list[str]:
    """From the state on, which proc(5) has as the third; empty: it is gone."""
    try:
        words = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return []
    return words.rpartition(b")")[2].decode().split()


@dataclass(frozen=True)
class _Took:
    """A process, with those of its children that it has waited for."""

    parent: int
    user_s: float
    system_s: float


def _took(pid: int, words: list[str]) -> _Took:
    user, system, children_user, children_system = (int(word) * _TICK_S for word in words[11:15])
    # Ticks are coarse.
    if (exact := processor.of_process(pid)) is not None:
        user = max(exact / 1e9 - system, user)
    return _Took(int(words[1]), user + children_user, system + children_system)


def _ignores_children(pid: int) -> bool:
    """Whether the kernel forgets its children as they end."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        status = Path(f"/proc/{pid}/status").read_text(errors="replace")
        return bool(int(status.split("\nSigIgn:")[1].split()[0], 16) >> (signal.SIGCHLD - 1) & 1)
    return False


class Orphans:
    """Of all that was once below a process, what nobody waited for."""

    def __init__(self, root: int) -> None:
        self._root = root
        # By number and begin: those below it, and those that are so no longer.
        self._children: dict[tuple[int, str], _Took] = {}
        self._orphans: dict[tuple[int, str], _Took] = {}
        self._ended: list[_Took] = []

    def look(self, pids: Iterable[int]) -> None:
        """At these processes, all that there are of them."""
        there = {pid: words for pid in pids if len(words := stat(pid)) > 19}
        parents = {pid: int(words[1]) for pid, words in there.items()}
        living = {(pid, words[19]): _took(pid, words) for pid, words in there.items()}
        for own, took in {**self._children, **self._orphans}.items():
            if own in living:
                continue
            # A parent that is left has waited for it, and has the time.
            if _ignores_children(took.parent) if took.parent in parents else own in self._orphans:
                self._ended.append(took)
        self._orphans = {
            own: took for own, took in living.items() if not self._below(own[0], parents)
        }
        self._children = {own: living[own] for own in living.keys() - self._orphans.keys()}

    def _below(self, pid: int, parents: dict[int, int]) -> bool:
        met: set[int] = set()
        while pid != self._root:
            if pid in met or pid not in parents:
                return False
            met.add(pid)
            pid = parents[pid]
        return True

    def seconds(self) -> tuple[float, float]:
        """In user and in system mode, by the last look at each."""
        every = [*self._ended, *self._orphans.values()]
        return sum(own.user_s for own in every), sum(own.system_s for own in every)


class ByRecords:
    """Finds those that lost their parents sooner than anybody looked: their records tell their numbers."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._tries: dict[str, int] = {}

    def find(self, met: set[int]) -> list[int]:
        """Who lives, was not met, and has a record. The number may be of another PID namespace, and a record that is
        just being begun is not mapped yet."""
        found = []
        for path in self._records():
            pid = int(path.name.partition("-")[0])
            tries = self._tries.get(path.name, 0)
            self._tries[path.name] = _TRIES
            if tries >= _TRIES or pid in met:
                continue
            with contextlib.suppress(OSError):
                if os.fsencode(path) + b"\n" in Path(f"/proc/{pid}/maps").read_bytes():
                    found.append(pid)
                else:
                    self._tries[path.name] = tries + 1
        return found

    def _records(self) -> list[Path]:
        with contextlib.suppress(OSError):
            return [path for path in self._directory.iterdir() if leftovers.is_part(path.name)]
        return []
