"""SQL over run files: an in-memory DuckDB that holds them as tables and can reach nothing else."""

from __future__ import annotations

import math
import multiprocessing
import os
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection

import numpy as np

from wherry.errors import FailedError, WherryError
from wherry.fleet import missing
from wherry.fleet.cells import FIGURES, KEYS, NUMBERS
from wherry.fleet.loading import Fleet
from wherry.runner import ended_by

# Tables and columns; docs/fleet.md tells what they mean.
RUNS = {
    "run": "INTEGER",
    "file": "VARCHAR",
    "host": "VARCHAR",
    "host_id": "VARCHAR",
    "model": "VARCHAR",
    "hypervisor": "VARCHAR",
    "libc": "VARCHAR",
    "kernel": "VARCHAR",
    "started": "VARCHAR",
    "wherry": "VARCHAR",
    "thp": "VARCHAR",
    "governor": "VARCHAR",
    "caches": "VARCHAR",
    "plan": "VARCHAR",
    "noise_floor": "DOUBLE",
    "voided": "DOUBLE",
    "interrupted": "BOOLEAN",
}

# "table", "from" and "offset" are words of SQL's own.
_NAMES = {
    "table": "mix_table",
    "name": "cell_name",
    "from": "files_from",
    "offset": "buffer_offset",
}
FIGURE_NAMES = {"ns": "ns", "q25": "ns_q25", "q75": "ns_q75", "ratio": "to_libc"}
MEMORY = "2GB"
Answer = tuple[list[str], list[tuple]]
# Rows of a table, and runs whose cells, go into it at a time.
STEP, AT_ONCE = 20000, 500


def _module():
    try:
        import duckdb
    except ModuleNotFoundError:
        raise missing("fleet query needs DuckDB") from None
    return duckdb


def _fill(connection, fleet: Fleet) -> None:
    def fill(name: str, columns: dict[str, str], rows: list[tuple]) -> None:
        connection.execute(
            f"CREATE TABLE {name} ({', '.join(f'{c} {t}' for c, t in columns.items())})"
        )
        # By columns: row by row DuckDB takes three milliseconds for each.
        lists = ", ".join(f"unnest(?::{kind}[])" for kind in columns.values())
        for first in range(0, len(rows), STEP):
            some = rows[first : first + STEP]
            connection.execute(
                f"INSERT INTO {name} SELECT {lists}", [list(c) for c in zip(*some, strict=True)]
            )

    connection.execute("BEGIN")
    fill(
        "runs",
        RUNS,
        [
            (
                *(i, r.path, r.host, r.ident, r.model, r.hypervisor, r.libc, r.kernel, r.started),
                *(r.wherry, r.thp, r.governor, r.sysfs, r.plan, r.floor, r.voided, r.interrupted),
            )
            for i, r in enumerate(fleet.runs)
        ],
    )
    fill(
        "problems",
        {"run": "INTEGER"} | dict.fromkeys(("kind", "routine", "message", "experiment"), "VARCHAR"),
        [(i, *p) for i, r in enumerate(fleet.runs) for p in r.problems],
    )
    kinds = {_NAMES.get(k, k): "BIGINT" if k in NUMBERS else "VARCHAR" for k in KEYS}
    fill(
        "cell_keys",
        {"cell": "INTEGER"} | kinds,
        [(i, *key) for i, key in enumerate(fleet.keys)],
    )
    kinds = {"run": "INTEGER", "cell": "INTEGER"} | {FIGURE_NAMES[f]: "FLOAT" for f in FIGURES}
    fill("figures", kinds, [])
    for first in range(0, len(fleet.runs), AT_ONCE):
        some = range(first, min(first + AT_ONCE, len(fleet.runs)))
        figures = np.concatenate([fleet.figures[i] for i in some])
        columns = {
            "run": np.repeat(np.array(some, np.int32), [len(fleet.numbers[i]) for i in some]),
            "cell": np.concatenate([fleet.numbers[i] for i in some]).astype(np.int32),
        } | {f: np.ascontiguousarray(figures[:, i]) for i, f in enumerate(FIGURES)}
        connection.register("part", columns)
        nulls = ", ".join(f"CASE WHEN isnan({f}) THEN NULL ELSE {f} END" for f in FIGURES)
        connection.execute(f"INSERT INTO figures SELECT run, cell, {nulls} FROM part")
        connection.unregister("part")
    connection.execute("COMMIT")
    connection.execute(
        "CREATE VIEW cells AS SELECT r.host, r.model, r.hypervisor, r.libc AS c_library, k.* EXCLUDE (cell), "
        "f.* EXCLUDE (cell) FROM figures f JOIN cell_keys k USING (cell) JOIN runs r USING (run)"
    )


def _lock(connection) -> None:
    for setting in (
        "temp_directory = ''",
        "enable_external_access = false",
        "python_enable_replacements = false",
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        f"memory_limit = '{MEMORY}'",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")


def _answer(fleet: Fleet, sql: str, begins: Callable[[], None]) -> Answer:
    duckdb = _module()
    connection = duckdb.connect(":memory:")
    try:
        _fill(connection, fleet)
        _lock(connection)
        try:
            sql.encode()
        except UnicodeEncodeError:
            raise WherryError(
                "the query is not text: it has bytes that are no UTF-8; write it in UTF-8"
            ) from None
        try:
            statements = connection.extract_statements(sql)
        except duckdb.Error as error:
            raise WherryError(f"the query is not SQL that DuckDB knows: {_line(error)}") from None
        if len(statements) != 1:
            raise WherryError(f"the query has {len(statements)} statements; give one SELECT")
        kinds = duckdb.StatementType
        if statements[0].type not in (kinds.SELECT, kinds.EXPLAIN):
            raise WherryError(
                f"the query is no SELECT ({statements[0].type.name}); run files are only read"
            )
        begins()
        try:
            result = connection.execute(statements[0])
            return [d[0] for d in result.description], result.fetchall()
        except duckdb.Error as error:
            raise WherryError(f"the query cannot be answered: {_line(error)}") from None
    finally:
        connection.close()


def _tell(pipe: Connection, fleet: Fleet, sql: str) -> None:
    """In a process of its own: what is told last is the answer, or what there is to say in its place."""

    def end_with_parent() -> None:
        multiprocessing.parent_process().join()
        os._exit(FailedError.exit_code)

    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        pipe.send(_answer(fleet, sql, lambda: pipe.send(None)))
    except WherryError as error:
        pipe.send(error)
    except MemoryError:
        pipe.send(FailedError("the answer does not fit in memory; ask for less at once"))
    except KeyboardInterrupt:
        pass  # who asked has it, too


def ask(fleet: Fleet, sql: str, limit: float = 60.0) -> Answer:
    """Heads and rows of one SELECT. A process of its own answers, which can be ended at any time: DuckDB looks between
    vectors whether it is to stop, and one function of one value may take minutes."""
    _module()
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe(duplex=False)
    process = fork.Process(target=_tell, args=(theirs, fleet, sql), daemon=True)
    process.start()
    theirs.close()
    try:
        told = ours.recv()
        if told is None:
            if not ours.poll(limit):
                raise FailedError(f"the query took longer than {limit:g} s; --timeout allows more")
            told = ours.recv()
    except EOFError:
        process.join()
        raise FailedError(
            f"DuckDB {ended_by(process.exitcode)} while it answered the query; ask for less at once"
        ) from None
    finally:
        process.kill()
        process.join()
        ours.close()
    if isinstance(told, Exception):
        raise told
    return told


def plain(value: object) -> object:
    """An answer's value as JSON has it: NaN and infinities are null, what else it has no type for is text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, str | int) else str(value)


def _line(error: Exception) -> str:
    from wherry.dimensions import clean

    return clean(str(error).split("\n\n")[0].replace("\n", " "), 300)
