"""One mix out of the files of many processes and threads."""

from __future__ import annotations

import collections
import random
from pathlib import Path

import numpy as np

from wherry.recording import blocks

# In the file: about as many calls as a processor cannot learn, and few enough to be read.
KEPT_BURSTS = 96
KEPT_THREADS = 64
# From so many runs on their differences tell more than those within one.
LEAST_RUNS = 3
# Fewer calls that do nothing tell too little of how fast the processor was.
LEAST_NOTHINGS = 20
DISTANCES = ("same", "near", "alias", "far")
OVERLAPS = ("none", "above", "below", "same")
_EXACT_SIZES = np.arange(blocks.EXACT + 1, dtype=np.uint64)


def _class_bytes(sizes: np.ndarray, log_bytes: np.ndarray) -> np.ndarray:
    """Of the classes above the exact sizes. A process that was killed between the two counters leaves them one call
    apart. The last has no end: what is asked for there (a size below zero, as a rule) is no memory's, and the sum of a
    few such calls beyond 64 bits. So each counts as the least of them."""
    calls = sizes[blocks.EXACT + 1 :]
    least, greatest = blocks.size_bounds()[:, blocks.EXACT + 1 :]
    greatest = np.append(greatest[:-1], least[-1])
    return np.clip(log_bytes, calls * least, calls * greatest)


class Merger:
    def __init__(self) -> None:
        # Files, of which a process has one for each program that it executed.
        self.records = 0
        # By number and start of a process, its records and how many of them ended by exit().
        self._records: dict[tuple[int, int], list[int]] = {}
        self._unknown = 0  # records of which the process is not known to have others
        self._claims = 0
        self.uncounted = 0
        # Ticks of the processor's clock that went into counting, and not into the programs.
        self.aside = 0
        self.damaged: list[str] = []
        # Processes that could begin no record, and why, as blocks.RefusedError has it.
        self.refused: dict[int, int] = {}
        # of the run under way
        self.spans: list[blocks.Span] = []
        self.programs: collections.Counter[str] = collections.Counter()
        # (op, module path, device, inode, offset in the file) -> calls and bytes drawn, then those noted always
        self._callers: dict[tuple, list[float]] = {}
        # (program, name) -> of threads how many, their calls and bytes; bytes of each block that counted one alone
        self._threads: dict[tuple[str, str | None], list[int]] = {}
        self._alone: collections.defaultdict[tuple[str, str], list[int]] = collections.defaultdict(
            list
        )
        self._functions = np.zeros(32, np.uint64)
        self._sizes = np.zeros((3, blocks.SIZES), np.uint64)
        self._log_bytes = np.zeros((3, blocks.SIZES - blocks.EXACT - 1), np.uint64)
        self._places = np.zeros((2, blocks.PLACES), np.uint64)
        self._set_places = np.zeros(blocks.SET_PLACES, np.uint64)
        self._times = np.zeros((3, blocks.TIME_CLASSES, blocks.TIME_FIELDS), np.uint64)
        self._trials = np.zeros((3, blocks.TIME_CLASSES, 2, blocks.TRIAL_GROUPS, 2), np.uint64)
        # Calls that do nothing, timed among the others, and their ticks.
        self._nothings = [0, 0]
        self._order = np.zeros((3, blocks.SIZE_GROUPS, 3), np.uint64)
        self._bursts: list[tuple[float, list[tuple]]] = []
        # of each run the pairs of turns of its processes, and those of turns that last
        self.turns: list[list[np.ndarray]] = [[]]
        self.lasting: list[list[np.ndarray]] = [[]]
        self._group: int | None = None
        self._chance = random.Random(20261121)

    def begin_run(self, number: int, runs: int) -> None:
        """What comes from here on is of this run. Of several, the groups of the trial are runs."""
        self._group = number % blocks.TRIAL_GROUPS if runs >= LEAST_RUNS else None
        self.spans = []
        if number:
            self.turns.append([])
            self.lasting.append([])

    def add(self, path: Path) -> blocks.Process | None:
        """What it had; None: nothing that could be used."""
        try:
            process = blocks.read(path)
        except blocks.RefusedError as refused:
            self.refused[int(path.name.partition("-")[0])] = refused.why
            return None
        except (blocks.DamagedError, OSError) as error:
            self.damaged.append(f"what process {path.name.partition('-')[0]} left: {error}")
            return None
        if process.damaged:
            some = "a thread" if process.damaged == 1 else f"{process.damaged} threads"
            self.damaged.append(
                f"what {some} of process {process.pid} left: its counters contradict each other, so "
                "something wrote over them"
            )
        self.records += 1
        if process.started:
            own = self._records.setdefault((process.pid, process.started), [0, 0])
            own[0] += 1
            own[1] += process.exited
        else:
            self._unknown += 1
        self.uncounted += process.uncounted
        self.programs[process.program] += 1
        self.spans.append(process.span)
        self.turns[-1].append(process.turns)
        self.lasting[-1].append(process.lasting)
        for block in process.blocks:
            self._claims += int(block["claims"])
            # A turn has neither of the two; processor time of the run is only what no other program had.
            self.aside += max(int(block["aside"]) - int(block["aside_late"]), 0)
            self._functions += block["functions"]
            self._sizes += block["sizes"]
            self._log_bytes += block["log_bytes"]
            self._places += block["places"]
            self._set_places += block["set_places"]
            self._times += block["times"]
            self._order += block["order"]
            self._nothings[0] += int(block["nothings"])
            self._nothings[1] += int(block["nothing_ticks"])
            if self._group is None:
                self._trials += block["trials"]
            else:
                self._trials[:, :, :, self._group] += block["trials"].sum(axis=3)
            calls = int(block["sizes"].sum())
            if calls:
                self._add_thread(process, block, calls)
                self._add_callers(process, block)
                self._add_bursts(block, calls)
        return process

    @property
    def processes(self) -> int:
        """What ended by exit() executed nothing after that: so another with its number and start, as there may be in
        namespaces of their own, is another process."""
        return self._unknown + sum(max(exited, 1) for _, exited in self._records.values())

    @property
    def execs(self) -> int:
        """In processes that had a record before."""
        return self.records - self.processes

    @property
    def threads(self) -> int:
        """One that executes a program goes on in it."""
        return max(self._claims - self.execs, 0)

    def _add_thread(self, process: blocks.Process, block: np.void, calls: int) -> None:
        exact = block["sizes"][:, : blocks.EXACT + 1] @ _EXACT_SIZES
        total = sum(exact.tolist()) + sum(
            int(_class_bytes(*own).sum())
            for own in zip(block["sizes"], block["log_bytes"], strict=True)
        )
        who = (process.program, blocks.thread_name(block))
        entry = self._threads.setdefault(who, [0, 0, 0])
        for place, some in enumerate((int(block["claims"]), calls, total)):
            entry[place] += some
        if block["claims"] == 1:
            self._alone[who].append(total)

    def by_thread(self) -> list[dict]:
        """Those of one program and name together, the last that they were given, and those whose counters do not tell
        which of several it was (None); the most bytes first."""
        found = []
        for who, own in self._threads.items():
            row = dict(zip(("program", "name"), who, strict=True))
            row |= dict(zip(("threads", "calls", "bytes"), own, strict=True))
            alone = self._alone[who]
            if len(alone) == own[0]:
                row["most_bytes"] = max(alone)
            found.append(row)
        found.sort(key=lambda row: (-row["bytes"], -row["calls"]))
        return found[:KEPT_THREADS]

    def _add_callers(self, process: blocks.Process, block: np.void) -> None:
        table = block["callers"]
        for key, *counted in table[table[:, 0] != 0].tolist():
            op, module, offset = process.caller(key)
            where = (op, "", 0, 0, 0)
            if module:
                where = (op, module.path, module.device, module.inode, offset)
            entry = self._callers.setdefault(where, [0, 0, 0, 0])
            for place, some in enumerate(counted):
                entry[place] += some

    @property
    def callers(self) -> dict[tuple, list[float]]:
        """(op, module path, device, inode, offset in the file) -> [calls, bytes], estimated: what was drawn stands for
        all calls of its op that are not noted always. Threads are drawn from alike, so one weight is right for all of
        them, and for those of which nothing was drawn."""
        found: dict[tuple, list[float]] = {where: [0.0, 0.0] for where in self._callers}
        for number, op in enumerate(blocks.OPS):
            exact = self._sizes[number][: blocks.EXACT + 1]
            wholes = (
                float(self._sizes[number].sum()),
                float((exact * _EXACT_SIZES).sum() + self._class_bytes(number).sum()),
            )
            mine = {where: own for where, own in self._callers.items() if where[0] == op}
            for what, whole in enumerate(wholes):
                drawn = sum(own[what] for own in mine.values())
                noted = sum(own[what + 2] for own in mine.values())
                weight, weight_noted = max(whole - noted, 0) / drawn if drawn else 0, 1.0
                if not drawn and noted:
                    weight_noted = whole / noted
                for where, own in mine.items():
                    some = own[what] * weight + own[what + 2] * weight_noted
                    found[where][what] = min(some, whole)
        return found

    def _add_bursts(self, block: np.void, calls: int) -> None:
        found = []
        for burst in block["bursts"]:
            words = burst[burst != 0].tolist()
            if words:
                found.append([_call(word) for word in words if word >> 63])
        for burst in found:
            # The largest keys make a sample in proportion to the calls that a burst stands for.
            weight = calls / len(found)
            self._bursts.append((self._chance.random() ** (1 / weight), burst))
        if len(self._bursts) > 4 * KEPT_BURSTS:
            self._thin()

    def _thin(self) -> None:
        self._bursts.sort(key=lambda entry: -entry[0])
        del self._bursts[KEPT_BURSTS:]

    # ---- the document ----------------------------------------------------------------------------------------------

    def ops(self) -> dict[str, dict]:
        return {
            op: self._op(number, op)
            for number, op in enumerate(blocks.OPS)
            if self._sizes[number].any()
        }

    def _class_bytes(self, number: int) -> np.ndarray:
        return _class_bytes(self._sizes[number], self._log_bytes[number])

    def _op(self, number: int, op: str) -> dict:
        rows = []
        for index in np.flatnonzero(self._sizes[number]).tolist():
            least, greatest = blocks.size_range(index)
            calls = int(self._sizes[number][index])
            if index <= blocks.EXACT:
                total = least * calls
            else:
                total = int(self._class_bytes(number)[index - blocks.EXACT - 1])
            rows.append([least, greatest, calls, total])
        functions = {
            name: int(self._functions[i])
            for i, name in enumerate(blocks.FUNCTIONS)
            if blocks.OP_OF[name] == op and self._functions[i]
        }
        return {
            "calls": sum(row[2] for row in rows),
            "bytes": sum(row[3] for row in rows),
            "functions": dict(sorted(functions.items(), key=lambda item: -item[1])),
            "sizes": rows,
            "places": self._places_of(number, op),
            "order": [
                [blocks.group_up_to(group), *self._order[number][group].tolist()]
                for group in np.flatnonzero(self._order[number][:, 0]).tolist()
            ],
        }

    def trials(self) -> dict[str, list[list]]:
        """By op: least and greatest size, then of the usual routine's calls and of the tried one's the number and the
        ticks, each of some groups."""
        return {
            op: [
                [*blocks.time_range(index), *self._trials[number][index].swapaxes(1, 2).tolist()]
                for index in np.flatnonzero(self._trials[number].any(axis=(1, 2, 3))).tolist()
            ]
            for number, op in enumerate(blocks.OPS)
        }

    def times(self) -> dict[str, list[list[int]]]:
        """By op: least and greatest size, calls that were timed, their bytes and ticks, pages that the kernel had to
        bring and its ticks for them, calls that took too long to be the copy's own time; and how often the source was
        near, in the last cache, in memory, by where the destination was."""
        timed = self._times.copy()
        timed[:, -1, 1] = timed[:, -1, 0] * np.uint64(blocks.time_range(blocks.TIME_CLASSES - 1)[0])
        return {
            op: [
                [*blocks.time_range(index), *timed[number][index].tolist()]
                for index in np.flatnonzero(timed[number].any(axis=1)).tolist()
            ]
            for number, op in enumerate(blocks.OPS)
        }

    def nothing(self) -> float | None:
        """Ticks that a call took which does nothing; None: too few were timed to tell."""
        calls, ticks = self._nothings
        return ticks / calls if calls >= LEAST_NOTHINGS and ticks else None

    def _places_of(self, number: int, op: str) -> list[list]:
        if op == "set":
            found = []
            for index in np.flatnonzero(self._set_places).tolist():
                group, to = divmod(index, blocks.ALIGNMENTS)
                calls = int(self._set_places[index])
                found.append([blocks.group_up_to(group), 64, 1 << to, "far", "none", calls])
            return found
        found = []
        for index in np.flatnonzero(self._places[number]).tolist():
            rest, overlap = divmod(index, blocks.OVERLAPS)
            rest, distance = divmod(rest, blocks.DISTANCES)
            rest, to = divmod(rest, blocks.ALIGNMENTS)
            group, at = divmod(rest, blocks.ALIGNMENTS)
            calls = int(self._places[number][index])
            where = [1 << at, 1 << to, DISTANCES[distance], OVERLAPS[overlap]]
            found.append([blocks.group_up_to(group), *where, calls])
        return found

    def sequences(self) -> dict[str, list]:
        self._thin()
        counted = collections.Counter(call for _, burst in self._bursts for call in burst)
        order = {call: i for i, (call, _) in enumerate(counted.most_common())}
        return {
            "calls": [list(call) for call in order],
            "bursts": [
                " ".join(str(order[call]) for call in burst) for _, burst in self._bursts if burst
            ],
        }


def _call(word: int) -> tuple:
    overlap = OVERLAPS[word >> 60 & 3]
    delta = word >> 48 & 4095
    if overlap == "none":
        # Of the distance its class is kept and where both sides lie in their lines: so that most calls are alike, and
        # the file small.
        delta = delta & 63 | (0 if delta < 64 else 512 if delta <= 1536 else 2560)
    return (
        blocks.OPS[min(word >> 40 & 3, 2)],
        word & ((1 << 40) - 1),
        word >> 42 & 63,
        delta,
        overlap,
    )
