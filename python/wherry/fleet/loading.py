"""Many run files into one table, in as many processes as there are CPUs."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import gc
import hashlib
import multiprocessing
import os
import resource
import signal
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np

from wherry.dimensions import clean
from wherry.errors import WherryError, printable
from wherry.fleet.cells import Cells, UnfitError
from wherry.fleet.document import load
from wherry.fleet.facts import Facts, of

AT_ONCE = 16
# Fewer are read faster here than processes begin.
FEW = 12
# Files of other kinds that stand beside run files.
_OTHERS = (".raw.json.gz", ".doctor.json", ".verify.json", ".glibc.json")
# Address space that reading a file may take beyond what the process had.
ROOM = 2 << 30
_ENDING = (signal.SIGTERM, signal.SIGHUP)


class Fleet:
    """Runs, and each one's cells: numbers into `keys`, and figures (cells.FIGURES)."""

    def __init__(self) -> None:
        self.keys: list[tuple] = []
        self.runs: list[Facts] = []
        self.numbers: list[np.ndarray] = []
        self.figures: list[np.ndarray] = []
        self.unfit: list[tuple[str, str]] = []
        self._known: dict[tuple, int] = {}
        self._shared: dict[bytes, np.ndarray] = {}
        self._paths: dict[bytes, str] = {}

    def translate(self, keys: Sequence[tuple]) -> np.ndarray:
        """What somebody else's numbers are here."""
        for key in keys:
            if key not in self._known:
                self._known[key] = len(self.keys)
                self.keys.append(key)
        return np.array([self._known[key] for key in keys], np.int32)

    def add(self, facts: Facts, numbers: np.ndarray, figures: np.ndarray) -> None:
        # A copy of a file, as collecting again into another directory leaves it, would count its host's figures twice.
        told = repr(dataclasses.replace(facts, path="")).encode("utf-8", "surrogatepass")
        parts = (told, numbers.tobytes(), figures.tobytes())
        known = self._paths.setdefault(hashlib.blake2b(b"".join(parts)).digest(), facts.path)
        if known != facts.path:
            self.unfit.append((facts.path, f"is the same run as {known}"))
            return
        # Runs of one campaign have the same cells: one array serves them all.
        self.runs.append(facts)
        self.numbers.append(self._shared.setdefault(numbers.tobytes(), numbers))
        self.figures.append(figures)

    def cells(self) -> int:
        return sum(map(len, self.numbers))


def _one(path: Path, cells: Cells):
    try:
        run, rows = load(path)
        return of(clean(path, 200), run), *cells.columns(rows)
    except UnfitError as error:
        return clean(path, 200), str(error)
    except MemoryError:
        return clean(path, 200), "needs more memory than a run file may"
    except (
        Exception
    ) as error:  # a stranger's file: whatever it breaks is told, and the others are read
        return clean(path, 200), f"is not a right run file ({type(error).__name__})"


_cells: Cells | None = None
_told = 0


def _begin() -> None:
    global _cells
    # Whoever asks a reader to end must get that, whatever this process does then.
    for number in _ENDING:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    _cells = Cells()
    # JSON has no cycles, and looking for them in every million new objects takes a third of the time.
    gc.disable()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    with contextlib.suppress(ValueError, OSError):
        limit = pages * os.sysconf("SC_PAGE_SIZE") + ROOM
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


def _fetch(paths: Iterable[Path]) -> None:
    """Has the kernel read the next files while the first is taken apart."""
    for path in paths:
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with contextlib.closing(os.fdopen(descriptor, "rb", buffering=0)):
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_WILLNEED)


def _some(paths: list[Path]):
    """In a process of the pool: what the files hold, and the identities that are new since it last answered."""
    global _told
    _fetch(paths)
    found = [_one(path, _cells) for path in paths]
    start, _told = _told, len(_cells.keys)
    return os.getpid(), start, _cells.keys[start:], found


def _refuse(error: OSError) -> None:
    """A directory that may not be looked into is no empty one."""
    raise error


def run_files(directory: Path) -> list[Path]:
    return sorted(
        Path(place, name)
        for place, _, names in os.walk(directory, onerror=_refuse)
        for name in names
        if name.endswith((".json", ".json.gz"))
        and not name.startswith(".")
        and not name.endswith(_OTHERS)
    )


def expand(given: Iterable[str]) -> list[Path]:
    """Files as named, and of directories every .json and .json.gz in them."""
    found: list[Path] = []
    for name in given:
        path = Path(name)
        try:
            if path.is_dir():
                inside = run_files(path)
                if not inside:
                    raise WherryError(f"{path} has no run files (*.json, *.json.gz)")
                found += inside
            elif not path.exists():
                raise WherryError(f"{path} does not exist; give run files, or directories of them")
            else:
                found.append(path)
        except (OSError, ValueError) as error:
            place = getattr(error, "filename", None) or name
            why = getattr(error, "strerror", None) or error
            raise WherryError(f"cannot read {printable(str(place))}: {why}") from None
    return list(dict.fromkeys(found))


def read(
    paths: Sequence[Path],
    jobs: int | None = None,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> Fleet:
    """In the order of the paths, whichever process was first."""
    jobs = jobs or len(os.sched_getaffinity(0))
    if len(paths) <= FEW:
        own = Cells()
        answers = {0: (0, 0, [], [])}
        for i, path in enumerate(paths):
            answers[0][3].append(_one(path, own))
            tell(i + 1, len(paths))
        return _together([(0, 0, own.keys, answers[0][3])])
    parts = [list(paths[i : i + AT_ONCE]) for i in range(0, len(paths), AT_ONCE)]
    return _together(_in_processes(parts, jobs, len(paths), tell))


def _pool(jobs: int):
    context = multiprocessing.get_context("fork")
    return concurrent.futures.ProcessPoolExecutor(jobs, context, initializer=_begin)


def _submitted(pool, parts: Sequence[list[Path]]) -> dict[concurrent.futures.Future, int]:
    """Begins the readers. When one ends at once the pool tells the others to, and waits for them for ever should that
    be lost: Python forgets signals that come between a fork and its first line after it. So they wait until then. What
    is not submitted any more by then is not in the answer."""
    running = {}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        for i, part in enumerate(parts):
            running[pool.submit(_some, part)] = i
    except BrokenProcessPool:
        pass
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return running


def _in_processes(parts: list[list[Path]], jobs: int, total: int, tell) -> list[tuple]:
    answers: list[tuple | None] = [None] * len(parts)
    done = 0
    with _pool(jobs) as pool:
        running = _submitted(pool, parts)
        try:
            for future in concurrent.futures.as_completed(running):
                answers[running[future]] = future.result()
                done += len(parts[running[future]])
                tell(done, total)
        except BrokenProcessPool:
            for future, i in running.items():
                if future.done() and not future.cancelled() and future.exception() is None:
                    answers[i] = future.result()
    for i, part in enumerate(parts):
        if answers[i] is None:
            answers[i] = _carefully(part)
    return answers


def _carefully(paths: list[Path]) -> tuple:
    """One process a file: the one that kills its reader is named, and the others are read."""
    whole: list = []
    keys: list[tuple] = []
    for path in paths:
        try:
            with _pool(1) as pool:
                (future,) = _submitted(pool, [[path]])
                _, _, new, found = future.result()
        except BrokenProcessPool:
            new, found = [], [(clean(path, 200), "ended the process that read it")]
        for item in found:
            if len(item) == 3:
                item = (item[0], item[1] + len(keys), item[2])
            whole.append(item)
        keys += new
    # A number of its own that no process has, so that its identities stand by themselves.
    return -id(whole), 0, keys, whole


def _together(answers: Sequence[tuple]) -> Fleet:
    fleet = Fleet()
    keys: dict[int, list[tuple[int, list[tuple]]]] = {}
    for who, start, new, _ in answers:
        keys.setdefault(who, []).append((start, new))
    maps = {
        who: fleet.translate([key for _, new in sorted(own, key=lambda p: p[0]) for key in new])
        for who, own in keys.items()
    }
    for who, _, _, found in answers:
        for item in found:
            if len(item) == 2:
                fleet.unfit.append(item)
            else:
                fleet.add(item[0], maps[who][item[1]], item[2])
    return fleet
