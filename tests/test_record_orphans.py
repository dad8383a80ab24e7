"""The processor time of daemons and of others that nobody waits for is of the run that started them."""

from __future__ import annotations

import subprocess
import sys

import pytest
from test_record import record
from wherry.recording import orphans, processor

__all__ = ["record"]  # a fixture

BUSY = """
import sys, time
b, until = bytearray(1000), float(sys.argv[1])
while time.process_time() < until:
    bytes(b)
open("done", "w").close()
time.sleep(float(sys.argv[2]))
"""


@pytest.mark.parametrize("longer", ["0", "2"], ids=["ended", "goes on"])
def test_what_a_daemon_took_is_of_the_run(record, tmp_path, longer):
    """Of a daemon that had worked for 1.4 s the ceiling was of the 0.04 s of the shell that started it: 100 %."""
    (tmp_path / "busy.py").write_text(BUSY)
    gone = "wait_for_it; sleep 0.3" if longer == "0" else "wait_for_it"
    shell = (
        "wait_for_it() { until test -e done; do sleep 0.05; done; }\n"
        f'("{sys.executable}" -S busy.py 0.5 {longer} >/dev/null 2>&1 &)\n{gone}'
    )
    done, mix = record("--no-trial", "--", "sh", "-c", shell)
    assert done.returncode == 0, done.stderr
    took = mix["run"]["user_s"] + mix["run"]["system_s"]
    assert took >= 0.3
    assert mix["ceiling"]["cpu_s"] >= 0.2 and mix["ceiling"]["at_most"] < 1


def test_time_is_of_one_process_alone(monkeypatch):
    there: dict[int, list[str]] = {}

    def is_there(pid: int, parent: int, *ticks: int, begin: int = 1) -> None:
        words = ["S", str(parent), *["0"] * 9, *map(str, ticks), *["0"] * 4, str(begin), "0"]
        there[pid] = words

    monkeypatch.setattr(orphans, "stat", lambda pid: there.get(pid, []))
    monkeypatch.setattr(processor, "of_process", lambda _: None)
    monkeypatch.setattr(orphans, "_TICK_S", 1)
    monkeypatch.setattr(orphans, "_ignores_children", lambda pid: pid == 40)
    found = orphans.Orphans(10)
    is_there(10, 5, 1000, 0, 0, 0)
    is_there(20, 10, 500, 0, 0, 0)
    found.look(there)
    assert found.seconds() == (0, 0)  # whoever waits for the command has these
    is_there(30, 1, 2, 1, 0, 0)
    is_there(31, 30, 4, 0, 0, 0)
    is_there(21, 20, 3, 0, 0, 0)
    found.look(there)
    assert found.seconds() == (6, 1)
    # Its parent has waited for it.
    del there[31]
    is_there(30, 1, 2, 1, 5, 0)
    found.look(there)
    assert found.seconds() == (7, 1)
    # Another process of the same number, and one that its parent left behind.
    is_there(30, 1, 1, 0, 0, 0, begin=2)
    is_there(21, 1, 3, 0, 0, 0)
    found.look(there)
    assert found.seconds() == (11, 1)
    # Of two whose parents live, one parent ignores how its children end.
    is_there(40, 10, 90, 0, 0, 0)
    is_there(41, 40, 5, 0, 6, 0)
    is_there(22, 20, 70, 0, 0, 0)
    found.look(there)
    del there[41], there[22]
    found.look(there)
    assert found.seconds() == (22, 1)
    there.clear()
    found.look(there)
    found.look(there)
    assert found.seconds() == (22, 1)


def test_who_ignores_how_children_end_is_known():
    for action, ignores in (("SIG_DFL", False), ("SIG_IGN", True)):
        code = f"import signal; signal.signal(signal.SIGCHLD, signal.{action}); print(flush=True); input()"
        words = [sys.executable, "-S", "-c", code]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            assert orphans._ignores_children(process.pid) is ignores
            process.communicate(b"\n", timeout=60)
    assert not orphans._ignores_children(process.pid)


def test_who_lost_its_parent_at_once_is_found_by_its_record(tmp_path, monkeypatch):
    maps = tmp_path / "maps"
    monkeypatch.setattr(orphans, "Path", lambda _: maps)
    finder = orphans.ByRecords(tmp_path)
    for name in ("7-1", "8-1", "state.json"):
        (tmp_path / name).touch()
    maps.write_text("")
    assert finder.find({8}) == []
    maps.write_text(f"0-1 rw-s 0 0:0 1 {tmp_path / '7-1'}\n")
    assert finder.find({8}) == [7]
    # Once is enough, and what is another's is not looked for for ever.
    assert finder.find(set()) == []
    (tmp_path / "9-1").touch()
    assert [finder.find(set()) for _ in range(5)] == [[]] * 5
    maps.write_text(f"0-1 rw-s 0 0:0 1 {tmp_path / '9-1'}\n")
    assert finder.find(set()) == []
