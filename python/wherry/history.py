"""What the seeds published, as data: history/*.json, one file a seed, kept by schema/history.schema.json."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from wherry.errors import FailedError

Value = float | int | str | bool | None


@dataclass(frozen=True)
class Mail:
    author: str
    list: str  # mailing list
    date: str
    subject: str
    message_id: str = ""

    @property
    def year(self) -> str:
        return self.date[:4]

    def in_words(self) -> str:
        return f"{self.author}, {self.list}, {self.date}, “{self.subject}”"


@dataclass(frozen=True)
class Machine:
    cpu: str | None
    mhz: float | None  # as the mail states it
    chipset: str | None
    caches: str | None
    system: str | None
    host: str = ""

    @property
    def ghz(self) -> float | None:
        return self.mhz / 1000 if self.mhz else None

    def in_words(self) -> str:
        parts = [
            self.cpu or "CPU not told",
            f"{self.mhz:g} MHz" if self.mhz else "clock not told",
            f"caches {self.caches}" if self.caches else "caches not told",
            f"{self.chipset} chipset" if self.chipset else "",
            self.system or "",
        ]
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True)
class Column:
    name: str
    role: str  # key, label, state, routine, figure
    unit: str = ""
    routine: str = ""  # of Wherry's, with the same code
    words: str = ""
    now: str = ""  # a dimension of a run's rows


@dataclass(frozen=True)
class Table:
    seed: str
    id: str
    title: str
    mail: Mail
    machine: Machine
    experiment: str
    method: str
    stock: str | None
    size: int | None
    total: int | None
    where: dict
    states: dict[str, list[str]]
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...]

    def records(self) -> list[dict[str, Value]]:
        """Each row by the names of the columns."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]

    def of_role(self, role: str) -> list[Column]:
        return [column for column in self.columns if column.role == role]

    def routines(self) -> list[str]:
        """Those of Wherry with the same code."""
        found = [column.routine for column in self.columns if column.routine]
        for column in self.of_role("routine"):
            found += [str(record[column.name]) for record in self.records()]
        return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Statement:
    """A figure that stands in a sentence."""

    seed: str
    id: str
    mail: Mail
    machine: Machine | None
    kind: str  # measured, derived, reported, method
    what: str
    value: float
    unit: str
    experiment: str
    routine: str = ""
    now: str = ""


@dataclass(frozen=True)
class Seed:
    name: str
    about: str
    units: dict[str, str]
    mails: dict[str, Mail]
    machines: dict[str, Machine]
    tables: tuple[Table, ...]
    statements: tuple[Statement, ...]


@dataclass(frozen=True)
class Series:
    """One line or one set of bars for a plot."""

    label: str  # `libc, Pentium 90 MHz, 1996`
    source: str  # the mail, in words
    unit: str
    x: tuple[Value, ...]
    y: tuple[float, ...]
    routine: str  # Wherry's, with the same code; empty: none
    stock: bool  # what everybody had
    ghz: float | None  # the stated clock
    table: str  # SEED/TABLE: series of one table belong together
    routines: tuple[
        str, ...
    ] = ()  # where each point is another routine: Wherry's, with the same code
    size: int | None = None  # bytes, where all points have one
    state: str = ""  # where the bytes were, in the mail's words


# ---- reading --------------------------------------------------------------------------------------------------------


def _files() -> Iterator[tuple[str, str]]:
    """Name and text of each, from the package or from the source tree that the package is in."""
    from importlib import resources

    inside = resources.files("wherry") / "data" / "history"
    tree = Path(__file__).resolve().parents[2] / "history"
    for place in (inside, tree):
        if place.is_dir():
            found = sorted((f for f in place.iterdir() if f.name.endswith(".json")), key=_name)
            if found:
                yield from ((f.name, f.read_text(encoding="utf-8")) for f in found)
                return
    raise FailedError("the figures of history/ are missing; install Wherry again")


def _name(file) -> str:
    return file.name


def documents() -> dict[str, dict]:
    """The files as they are, by seed."""
    try:
        return {name.removesuffix(".json"): json.loads(text) for name, text in _files()}
    except (OSError, ValueError) as error:
        raise FailedError(f"history/ cannot be read ({error}); install Wherry again") from None


def _seed(name: str, raw: dict) -> Seed:
    mails = {key: Mail(**value) for key, value in raw["mails"].items()}
    machines = {key: Machine(**value) for key, value in raw["machines"].items()}
    tables = tuple(
        Table(
            seed=name,
            mail=mails[own["mail"]],
            machine=machines[own["machine"]],
            where=own["now"]["where"],
            states=own["now"].get("states", {}),
            columns=tuple(Column(**column) for column in own["columns"]),
            rows=tuple(tuple(row) for row in own["rows"]),
            notes=tuple(own["notes"]),
            size=own.get("size"),
            total=own.get("total"),
            **{key: own[key] for key in ("id", "title", "experiment", "method", "stock")},
        )
        for own in raw["tables"]
    )
    statements = tuple(
        Statement(
            **own
            | {
                "seed": name,
                "mail": mails[own["mail"]],
                "machine": machines[own["machine"]] if own["machine"] else None,
            }
        )
        for own in raw["statements"]
    )
    return Seed(name, raw["about"], raw["units"], mails, machines, tables, statements)


@lru_cache(maxsize=1)
def seeds() -> tuple[Seed, ...]:
    """In the order of their years."""
    found = [_seed(name, raw) for name, raw in documents().items()]
    return tuple(sorted(found, key=lambda seed: seed.name.rpartition("-")[2]))


def experiments() -> list[str]:
    """Those of Wherry that repeat something of a seed, in the order of the seeds."""
    return list(
        dict.fromkeys(
            own.experiment for seed in seeds() for own in (*seed.tables, *seed.statements)
        )
    )


def tables(experiment: str) -> list[Table]:
    return [table for seed in seeds() for table in seed.tables if table.experiment == experiment]


def statements(experiment: str) -> list[Statement]:
    return [own for seed in seeds() for own in seed.statements if own.experiment == experiment]


def statement(seed: str, name: str) -> Statement:
    return next(own for s in seeds() if s.name == seed for own in s.statements if own.id == name)


def routines(experiment: str) -> list[str]:
    """Those of Wherry whose code the seeds measured or spoke of."""
    found = [name for table in tables(experiment) for name in table.routines()]
    found += [own.routine for own in statements(experiment) if own.routine]
    return list(dict.fromkeys(found))


def series(experiment: str) -> list[Series]:
    """Every figure of the experiment's tables, ready for a plot."""
    return [line for table in tables(experiment) for line in _series_of(table)]


def _series_of(table: Table) -> Iterator[Series]:
    """A line for each figure of a table that has a key; where rows name who was measured, a line for each of them."""
    keys, records = table.of_role("key"), table.records()
    who = next(iter(table.columns)) if table.columns[0].role == "label" else None
    own_routine = next(iter(table.of_role("routine")), None)
    groups: dict[tuple[Value, ...], list[dict]] = {}
    for record in records:
        state = tuple(record[c.name] for c in table.of_role("state"))
        name = (record[who.name], *state) if who and keys else ("", *state)
        groups.setdefault(name, []).append(record)
    for name, own in groups.items():
        for column in table.of_role("figure"):
            kept = [record for record in own if record[column.name] is not None]
            label = [str(part) for part in name if part] or [column.name]
            if len(table.of_role("figure")) > 1 and label != [column.name]:
                label.append(column.name)
            routine = column.routine
            if own_routine and who and keys:
                routine = str(own[0][own_routine.name])
            yield Series(
                label=f"{' '.join(label)}, {_short(table)}",
                source=table.mail.in_words(),
                unit=column.unit,
                x=tuple(record[keys[0].name] if keys else _words(table, record) for record in kept),
                y=tuple(float(record[column.name]) for record in kept),
                routine=routine,
                stock=table.stock is not None and table.stock in (column.name, *name),
                ghz=table.machine.ghz,
                table=f"{table.seed}/{table.id}",
                routines=()
                if keys or not own_routine
                else tuple(str(record[own_routine.name]) for record in kept),
                size=table.size,
                state=" ".join(str(part) for part in name[1:]),
            )


def _words(table: Table, record: dict) -> str:
    """What tells a row from the others when nothing is a number."""
    words = []
    for column in table.of_role("label"):
        value = record[column.name]
        if isinstance(value, bool):
            value = column.name if value else f"not {column.name}"
        words.append(str(value))
    return ", ".join(words)


def _short(table: Table) -> str:
    clock = f" {table.machine.mhz:g} MHz" if table.machine.mhz else ""
    return f"{table.machine.cpu or 'CPU not told'}{clock}, {table.mail.year}"
