"""`wherry fleet query`: answers that are JSON, statements that are refused, and queries that have an end."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest
from conftest import processor_seconds
from made_runs import usual
from wherry.fleet import loading


def test_an_answer_is_json_whatever_it_holds(tmp_path, wherry):
    pytest.importorskip("duckdb", reason="needs the extra fleet (tools/setup test brings it)")
    sql = (
        "SELECT 1e300 * 1e300 AS inf, -1 / 0.0 AS less, 'nan'::FLOAT AS nan, ['nan'::DOUBLE, 2] AS list, "
        "{'a': 'inf'::DOUBLE} AS parts, MAP {1.5: 'nan'::DOUBLE} AS map, 2.5::DECIMAL(3, 1) AS exact, "
        "DATE '2026-11-21' AS day, true AS yes, 7 AS seven, NULL AS none"
    )
    run = usual(1).save(tmp_path / "a.json")
    done = wherry("fleet", "query", sql, str(run), "--json")
    assert done.returncode == 0, done.stderr

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    (row,) = json.loads(done.stdout, parse_constant=refuse)
    assert row == {
        **dict.fromkeys(("inf", "less", "nan", "none")),
        "list": [None, 2.0],
        "parts": {"a": None},
        "map": {"1.5": None},
        "exact": "2.5",
        "day": "2026-11-21",
        "yes": True,
        "seven": 7,
    }


def test_json_loses_no_column_of_two_that_have_one_name(tmp_path, wherry):
    pytest.importorskip("duckdb", reason="needs the extra fleet (tools/setup test brings it)")
    run = usual(1).save(tmp_path / "a.json")
    sql = "SELECT r.host, c.host FROM runs r JOIN cells c USING (run) LIMIT 1"
    done = wherry("fleet", "query", sql, str(run), "--json")
    assert done.returncode == 2 and not done.stdout
    assert "two columns are named 'host'" in done.stderr and done.stderr.count("\n") == 1
    assert wherry("fleet", "query", sql, str(run)).stdout.split()[:2] == ["host", "host"]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("COPY runs TO '/tmp/never.csv'", "no SELECT"),
        ("SELECT * FROM read_csv('/etc/passwd')", "cannot be answered"),
        ("SELECT * FROM '/etc/passwd'", "cannot be answered"),
        ("SELECT * FROM glob('/*')", "cannot be answered"),
        ("SELECT content FROM read_text('/etc/hostname')", "cannot be answered"),
        ("ATTACH '/tmp/never.db'", "no SELECT"),
        ("DROP TABLE runs", "no SELECT"),
        ("INSTALL httpfs", "no SELECT"),
        ("SET enable_external_access = true", "no SELECT"),
        ("SELECT 1; DROP TABLE runs", "2 statements"),
        ("SELECT * FROM fleet", "cannot be answered"),
        ("SELECT * FROM self", "cannot be answered"),
        ("", "0 statements"),
        ("selec", "not SQL"),
        ("SELECT '\udcff'", "bytes that are no UTF-8"),
    ],
)
def test_a_query_reads_the_run_files_and_nothing_else(tmp_path, sql, said):
    pytest.importorskip("duckdb", reason="needs the extra fleet (tools/setup test brings it)")
    from wherry.errors import WherryError
    from wherry.fleet import query

    fleet = loading.read([usual(1).save(tmp_path / "a.json")])
    with pytest.raises(WherryError, match=said):
        query.ask(fleet, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b",
        # One value, in which DuckDB does not look whether it is to stop: a minute and a half.
        "SELECT levenshtein(repeat('a', 100000), repeat('b', 100000))",
    ],
)
def test_a_query_has_an_end(tmp_path, sql):
    pytest.importorskip("duckdb", reason="needs the extra fleet (tools/setup test brings it)")
    from wherry.errors import WherryError
    from wherry.fleet import query

    fleet = loading.read([usual(1).save(tmp_path / "a.json")])
    before = time.process_time() + processor_seconds()
    with pytest.raises(WherryError, match="longer than"):
        query.ask(fleet, sql, 0.5)
    assert time.process_time() + processor_seconds() - before < 20


def test_what_ends_the_answer_of_a_query_is_told(tmp_path, monkeypatch):
    pytest.importorskip("duckdb", reason="needs the extra fleet (tools/setup test brings it)")
    from wherry.errors import WherryError
    from wherry.fleet import query

    fleet = loading.read([usual(1).save(tmp_path / "a.json")])
    monkeypatch.setattr(query, "_lock", lambda connection: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(WherryError, match="DuckDB was ended by SIGKILL"):
        query.ask(fleet, "SELECT 1")
