"""An interrupted run goes on: what is there is not measured again, what is missing is, and only where it began."""

import fcntl
import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import rows_in, wait_until, workbench
from wherry import inputs, journal, runfile
from wherry.errors import FailedError

FAKE = Path(__file__).with_name("fake_runner.py")
ASKED = ("sizes", "small", "--size", "64,256,1K,4K", "--processes", "3", "--seed", "7", "--raw")


def environment(directory, slow=0.0):
    """The peer called slow takes so many seconds a row and routine."""
    return {
        **os.environ,
        "WHERRY_RUN": str(FAKE),
        "WHERRY_FAKE_LOG": str(directory / "log"),
        "WHERRY_FAKE_SLOW": str(slow),
    }


def bench(directory, *args):
    return workbench("bench", *args, cwd=directory, env=environment(directory))


def read(path):
    return json.loads(path.read_text())


def wait_for_rows(process, journal, rows, older=None):
    """Until so many rows have come to their end, in a journal that is not the older one."""

    def there():
        fresh = journal.exists() and journal.stat().st_ino != older
        return process.poll() is not None or (fresh and rows_in(journal) >= rows)

    wait_until(there, f"{rows} rows in {journal.name}")


def interrupt(directory, *more):
    """A run of two experiments that is interrupted in the first or second, after some rows."""
    (directory / "peer.so").write_bytes(b"peer")
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "wherry",
            "bench",
            *ASKED,
            "--peer",
            "slow=peer.so",
            "--save",
            "run.json",
            *more,
        ],
        cwd=directory,
        env=environment(directory, 0.05),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_rows(process, directory / "run.json.journal", 3)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 130, said
    return read(directory / "run.json")


@pytest.fixture(scope="module")
def cut(tmp_path_factory):
    directory = tmp_path_factory.mktemp("cut")
    return directory, interrupt(directory)


@pytest.fixture
def copied(cut, tmp_path):
    """The interrupted run in a directory of its own, to be changed."""
    directory, run = cut
    for name in ("run.json", "run.json.raw.json.gz", "peer.so"):
        (tmp_path / name).write_bytes((directory / name).read_bytes())
    return tmp_path, run


def test_only_what_is_missing_is_measured(copied):
    directory, before = copied
    assert before["interrupted"]
    done_before = {tuple(pair) for pair in before["resume"]["state"]["done"]}
    assert 0 < len(done_before) < 3 * 4
    shown = bench(directory, "--resume", "run.json")
    assert shown.returncode == 0, shown.stderr
    run = read(directory / "run.json")
    assert not run["interrupted"] and "resume" not in run
    assert run["method"]["seed"] == 7 and len(run["method"]["resumed"]) == 1
    assert [(e["name"], e["complete"], e["processes"]) for e in run["experiments"]] == [
        ("sizes", True, 3),
        ("small", True, 3),
    ]
    assert run["seconds"] >= before["seconds"]
    assert all(cell["processes"] == 3 for cell in run["cells"])
    assert [row["row"] for row in run["rows"]] == list(range(len(run["rows"])))
    assert [row["experiment"] for row in run["rows"]][:5] == ["sizes"] * 4 + ["small"]
    # What was there stays as it was: the samples of the rows that were done are those of the first time.
    before_raw = json.loads(gzip.decompress((copied[0] / "run.json.raw.json.gz").read_bytes()))
    samples = {
        (s["row"], s["routine"], s["aa"], s["process"]): s["ns"] for s in before_raw["samples"]
    }
    assert len(samples) == len(before_raw["samples"])
    first = before["resume"]["experiment"]
    offset = 0 if first == "sizes" else 4
    for cell in before["resume"]["state"]["cells"]:
        row, routine, twin = cell["cell"]
        for process, ns in cell["ns"].items():
            assert samples[row + offset, routine, twin, int(process)] == ns
    assert bench(directory, "--show", "run.json").returncode == 0
    again = bench(directory, "--resume", "run.json")
    assert again.returncode == 2 and "is complete" in again.stderr


def test_rows_that_are_done_do_not_go_to_the_runner(copied, monkeypatch):
    from wherry.campaign import Campaign, Row

    rows = [Row("x", "copy", ("libc", "wherry"), size) for size in (64, 128, 256)]
    monkeypatch.setenv("WHERRY_RUN", str(FAKE))
    seen = []

    class Seen(Campaign):
        def _event(self, event, process, pending, state):
            if event["event"] == "row":
                seen.append((process, event["id"]))
                if len(seen) == 5:
                    raise KeyboardInterrupt
            super()._event(event, process, pending, state)

    cut = Seen(rows, processes=3, seed=5)
    cut.run()
    assert cut.interrupted and len(cut.state["done"]) == 4
    kept = json.loads(json.dumps(cut.state))
    seen.clear()
    on = Seen(rows, processes=3, seed=5)
    on.go_on_from(kept)
    on._event = lambda event, process, pending, state: (
        seen.append((process, event["id"])) if event["event"] == "row" else None,
        Campaign._event(on, event, process, pending, state),
    )
    on.run()
    assert len(seen) == 5 and not {tuple(pair) for pair in kept["done"]} & set(seen)
    assert all(sorted(cell.ns) == [0, 1, 2] for cell in on.cells.values())
    whole = Campaign(rows, processes=3, seed=5)
    whole.run()
    assert {key: len(cell.ns) for key, cell in whole.cells.items()} == {
        key: len(cell.ns) for key, cell in on.cells.items()
    }


# Interrupts once the rows of the second experiment are measured, and before their figures are made.
WHILE_RECKONING = """
import os, signal
from wherry import results
from wherry.__main__ import main
digest = results.digest
def interrupted(campaign, first):
    if first:
        os.kill(os.getpid(), signal.SIGINT)
    return digest(campaign, first)
results.digest = interrupted
main()
"""


def test_an_interrupt_among_the_figures_loses_no_row(tmp_path):
    (tmp_path / "peer.so").write_bytes(b"peer")
    words = ("bench", *ASKED, "--peer", "slow=peer.so", "--save", "run.json")
    cut = subprocess.run(
        [sys.executable, "-c", WHILE_RECKONING, *words],
        cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert cut.returncode == 130 and cut.stderr.count("\n") == 1, cut.stderr
    assert "--resume run.json" in cut.stderr and rows_in(tmp_path / "run.json.journal")
    begun = (tmp_path / "log").read_text().count("--seed")
    on = bench(tmp_path, "--resume", "run.json")
    assert on.returncode == 0, on.stderr
    run = read(tmp_path / "run.json")
    assert [(e["name"], e["complete"]) for e in run["experiments"]] == [
        ("sizes", True),
        ("small", True),
    ]
    assert not (tmp_path / "run.json.journal").exists()
    assert (tmp_path / "log").read_text().count("--seed") == begun, "nothing is measured again"


def changed(run, *path, value):
    place = run
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("wherry",), "0.0.1", "version of Wherry 0.0.1"),
        (("machine", "host"), "elsewhere", "machine elsewhere"),
        (("machine", "cpu", "model"), "Z80", "CPU Z80"),
        (("machine", "cpu", "count"), 99, "number of CPUs 99"),
        (("machine", "kernel"), "Linux 1.0", "kernel Linux 1.0"),
        (("machine", "libc"), "glibc 1.0", "libc glibc 1.0"),
        (("method", "asked"), {"strange": 1}, "has no strange"),
        (("resume", "rows"), "0" * 64, "is not what it was"),
        (("resume", "state", "rounds"), {"paces": "slow"}, "is damaged; begin a new run"),
        (("resume", "state", "paces"), [[0, 0, 1.5]], "resume/state/paces/0"),
    ],
)
def test_elsewhere_it_does_not_go_on(copied, path, value, said):
    directory, _ = copied
    run = read(directory / "run.json")
    changed(run, *path, value=value)
    (directory / "run.json").write_text(json.dumps(run))
    done = bench(directory, "--resume", "run.json")
    assert done.returncode in (1, 2) and said in done.stderr and done.stderr.count("\n") == 1
    assert read(directory / "run.json") == run, "and stays as it is"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--seed", "3"), "--seed"),
        (("sizes",), "sizes"),
        (("--save", "x.json"), "--save"),
        (("--all",), "--all"),
    ],
)
def test_it_goes_on_as_it_began(copied, arguments, said):
    done = bench(copied[0], "--resume", "run.json", *arguments)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", [".", "/", "..", "none.json", "x" * 300])
def test_what_has_no_file_cannot_go_on(tmp_path, name):
    done = bench(tmp_path, "--resume", name)
    assert done.returncode == 2 and done.stderr.startswith(
        ("wherry: cannot read", f"wherry: {name}")
    )
    assert done.stderr.count("\n") == 1 and "bug" not in done.stderr and not done.stdout


@pytest.mark.parametrize("text", ["", "{}", "nonsense"])
def test_what_is_no_run_file_cannot_go_on(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    done = bench(tmp_path, "--resume", "run.json")
    assert done.returncode == 2 and "run.json" in done.stderr and done.stderr.count("\n") == 1


def test_raw_samples_that_are_gone(copied):
    # Of an experiment that is not complete they are in the run file; of one that is they are nowhere else.
    run = read(copied[0] / "run.json")
    run["experiments"][0]["complete"] = True
    (copied[0] / "run.json").write_text(json.dumps(run))
    (copied[0] / "run.json.raw.json.gz").unlink()
    done = bench(copied[0], "--resume", "run.json")
    assert done.returncode == 2 and "raw samples" in done.stderr


# ---- killed ---------------------------------------------------------------------------------------------------------


def start(directory, *more):
    (directory / "peer.so").write_bytes(b"peer")
    return subprocess.Popen(
        [sys.executable, "-m", "wherry", "bench", *more],
        cwd=directory,
        env=environment(directory, 0.1),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def kill_after(process, journal, rows, older=None):
    """SIGKILL once so many rows are done."""
    wait_for_rows(process, journal, rows, older)
    assert process.poll() is None, "it ended before it could be killed"
    process.kill()
    process.wait()
    return [
        (line["process"], line["event"]["id"])
        for line in map(json.loads, journal.read_bytes().split(b"\n")[1:-1])
        if line.get("event", {}).get("event") == "rowend"
    ]


@pytest.mark.parametrize("raw", [(), ("--raw",)])
def test_a_killed_run_goes_on_where_it_was(tmp_path, raw):
    asked = ("sizes", "--size", "64,256,1K", "--processes", "3", "--seed", "7", *raw)
    peer = ("--peer", "slow=peer.so", "--save", "run.json")
    journal = tmp_path / "run.json.journal"
    done = kill_after(start(tmp_path, *asked, *peer), journal, 2)
    assert 2 <= len(done) < 9
    # And once more: what the first had must survive the second.
    older = journal.stat().st_ino
    again = kill_after(start(tmp_path, "--resume", "run.json"), journal, 2, older)
    assert again and not set(done) & set(again), "a row that was done is measured again"
    shown = bench(tmp_path, "--resume", "run.json")
    assert shown.returncode == 0, shown.stderr
    run = read(tmp_path / "run.json")
    assert not journal.exists() and not run["interrupted"] and "resume" not in run
    assert [(e["name"], e["complete"]) for e in run["experiments"]] == [("sizes", True)]
    assert len(run["rows"]) == 3 and all(cell["processes"] == 3 for cell in run["cells"])
    assert len(run["method"]["resumed"]) == 2
    if raw:
        samples = json.loads(gzip.decompress((tmp_path / "run.json.raw.json.gz").read_bytes()))
        keys = [(s["row"], s["routine"], s["aa"], s["process"]) for s in samples["samples"]]
        assert len(set(keys)) == len(keys) == 3 * len(run["cells"])


def test_what_was_measured_before_it_was_killed_is_what_the_run_has(tmp_path):
    journal = tmp_path / "run.json.journal"
    asked = ("sizes", "--size", "64,1K", "--processes", "2", "--raw", "--peer", "slow=peer.so")
    kill_after(start(tmp_path, *asked, "--save", "run.json"), journal, 1)
    lines = [json.loads(line) for line in journal.read_bytes().split(b"\n")[1:-1]]
    ended = {(ln["process"], ln["event"]["id"]) for ln in lines if _kind(ln) == "rowend"}
    heard = {
        (ln["event"]["id"], ln["event"]["routine"], ln["event"]["aa"], ln["process"]): ln["event"]
        for ln in lines
        if _kind(ln) == "cell" and (ln["process"], ln["event"]["id"]) in ended
    }
    assert heard
    assert bench(tmp_path, "--resume", "run.json").returncode == 0
    samples = json.loads(gzip.decompress((tmp_path / "run.json.raw.json.gz").read_bytes()))
    kept = {(s["row"], s["routine"], s["aa"], s["process"]): s["ns"] for s in samples["samples"]}
    for key, event in heard.items():
        assert kept[key] == [float(f"{ns:.6g}") for ns in event["ns"]]


def _kind(line):
    return line.get("event", {}).get("event")


def test_a_culprit_stays_excluded_after_a_kill(tmp_path):
    (tmp_path / "crash.so").write_bytes(b"peer")
    peers = ("--peer", "crash=crash.so", "--peer", "slow=peer.so", "--save", "run.json")
    journal = tmp_path / "run.json.journal"
    kill_after(start(tmp_path, "sizes", "--size", "64,1K", *peers), journal, 1)
    log = tmp_path / "log"
    log.unlink()
    done = bench(tmp_path, "--resume", "run.json")
    run = read(tmp_path / "run.json")
    assert done.returncode == 1, "a crash is a failed check"
    assert [p["kind"] for p in run["problems"]].count("crash") == 1
    measured = [line for line in log.read_text().splitlines() if "--seed" in line]
    assert measured and not any("crash=" in line for line in measured)


def test_a_journal_that_is_damaged(tmp_path):
    journal = tmp_path / "run.json.journal"
    kill_after(
        start(tmp_path, "sizes", "--size", "64,1K", "--peer", "slow=peer.so", "--save", "run.json"),
        journal,
        1,
    )
    whole = journal.read_bytes()
    head, *lines = whole.split(b"\n")
    for bad in (
        b"",
        b"nonsense\n",
        b"{}\n",
        whole[:40],
        whole.replace(b'"format_version":1,"run"', b'"format_version":9,"run"', 1),
        whole + b'{"event":{"event":"rowend"},"process":0,"seconds":1}\n',
        whole + b'{"problem":{"strange":1},"seconds":1}\n',
        whole + b'{"excluded":7,"seconds":1}\n',
        whole + b'{"excluded":"slow","seconds":"1"}\n',
        whole + b'{"event":{"event":"rowend","id":0,"pace":[1]},"process":0,"seconds":1}\n',
        whole + b'{"event":{"event":"skip","id":0,"reason":[]},"process":0,"seconds":1}\n',
        whole + b'{"evnt":{},"process":0,"seconds":1}\n',
        b"\n".join([head, b"x" + lines[0], *lines[1:]]),
        b"\n".join([head, lines[0][:-9], *lines[1:]]),
        b"\n".join([head, b"", *lines]),
        b"\n".join([head, 100_000 * b"[", *lines]),
    ):
        journal.write_bytes(bad)
        done = bench(tmp_path, "--resume", "run.json")
        assert done.returncode == 2 and done.stderr.startswith("wherry: run.json.journal is"), bad
        assert done.stderr.count("\n") == 1 and not done.stdout
        if bad.startswith(head):
            at = next(i for i, (a, b) in enumerate(zip(bad, whole + b" ", strict=False)) if a != b)
            line = 1 + bad[:at].count(b"\n")
            assert f"is damaged: line {line} " in done.stderr, done.stderr
            assert done.stderr.endswith("remove it and begin a new run\n")
    # A last line that was under way when the run was killed is none.
    journal.write_bytes(whole + b'{"event":{"event":"cell","id"')
    assert bench(tmp_path, "--resume", "run.json").returncode == 0


def test_nothing_is_left_beside_a_run_that_ends(tmp_path):
    done = bench(tmp_path, "sizes", "--size", "64", "--processes", "1")
    assert done.returncode == 0
    assert len(list((tmp_path / "runs").iterdir())) == 1


# ---- with other files -----------------------------------------------------------------------------------------------


def test_other_files_under_the_same_names_do_not_go_on(copied, monkeypatch):
    directory, before = copied
    inputs = before["method"]["inputs"]
    assert inputs.keys() >= {"wherry-run", "peer slow"}

    def refused(said):
        done = bench(directory, "--resume", "run.json")
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
        assert f"cannot resume run.json: {said}" in done.stderr and "begin a new run" in done.stderr
        assert not done.stdout and read(directory / "run.json") == before, "and it stays as it is"

    (directory / "peer.so").write_bytes(b"reep")
    refused("peer slow is not what it was then")
    (directory / "peer.so").write_bytes(b"peer")
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.check=0")
    refused("GLIBC_TUNABLES was not there then")
    monkeypatch.delenv("GLIBC_TUNABLES")
    plan = directory / "own.plan"
    plan.write_bytes(b"plan")
    monkeypatch.setenv("WHERRY_PLAN", str(plan))
    refused("the plan of WHERRY_PLAN was not there then")
    monkeypatch.delenv("WHERRY_PLAN")
    before["method"]["inputs"] = inputs | {"wherry-run": "0" * 64}
    (directory / "run.json").write_text(json.dumps(before))
    refused("wherry-run is not what it was then")
    # One that does not tell, of an earlier Wherry, goes on.
    del before["method"]["inputs"]
    (directory / "run.json").write_text(json.dumps(before))
    assert bench(directory, "--resume", "run.json").returncode == 0


def test_a_killed_run_does_not_go_on_with_other_mixes_or_found_peers(tmp_path, monkeypatch):
    peers, mix = tmp_path / "peers", tmp_path / "web.csv"
    peers.mkdir()
    (peers / "slow.so").write_bytes(b"peer")
    mix.write_text("8:0.5,64:0.5\n")
    monkeypatch.setenv("WHERRY_PEERS", str(peers))
    asked = (
        "scoreboard",
        "--quick",
        "--op",
        "copy",
        "--region",
        "fixed-64,web",
        "--mix",
        "web.csv",
    )
    journal = tmp_path / "run.json.journal"
    kill_after(start(tmp_path, *asked, "--save", "run.json"), journal, 1)
    whole = journal.read_bytes()
    for path, data, what in (
        (mix, b"8:0.4,64:0.6\n", "mix web is not what it was then"),
        (peers / "slow.so", b"reep", "peer slow is not what it was then"),
        (peers / "another.so", b"peer", "peer another was not there then"),
    ):
        before = path.read_bytes() if path.exists() else None
        path.write_bytes(data)
        done = bench(tmp_path, "--resume", "run.json")
        assert done.returncode == 2 and f"cannot resume run.json: {what}" in done.stderr, what
        assert done.stderr.count("\n") == 1 and not done.stdout
        path.unlink() if before is None else path.write_bytes(before)
    (peers / "slow.so").unlink()
    assert "peer slow is not there any more" in bench(tmp_path, "--resume", "run.json").stderr
    assert journal.read_bytes() == whole and not (tmp_path / "run.json").exists()
    (peers / "slow.so").write_bytes(b"peer")
    assert bench(tmp_path, "--resume", "run.json").returncode == 0


def test_what_tells_files_apart(tmp_path, monkeypatch):
    monkeypatch.setenv("WHERRY_RUN", str(FAKE))
    (tmp_path / "a:b.so").write_bytes(b"one")
    (tmp_path / "member").write_bytes(b"12345")
    (tmp_path / "a.so").write_bytes(b"two")
    specs = [f"x={tmp_path}/a:b.so", f"y={tmp_path}/a:b.so:my_", f"z={tmp_path}/a.so:my_"]
    found = inputs.gather([*specs, "gone=/none.so"], [str(tmp_path / "member")], ["stripes"])
    assert found["peer x"] == found["peer y"] == hashlib.sha256(b"one").hexdigest()
    assert found["peer z"] == hashlib.sha256(b"two").hexdigest()
    assert found["peer gone"] == "cannot be read"
    assert found[f"member {tmp_path}/member"] == "5 bytes"
    assert not any("member" in what for what in inputs.gather([], ["/none"], ["sizes"]))


# ---- a journal alone ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    directory = tmp_path_factory.mktemp("killed")
    words = ("sizes", "--size", "64,1K", "--peer", "slow=peer.so", "--save", "run.json")
    kill_after(start(directory, *words), directory / "run.json.journal", 1)
    return directory


@pytest.fixture
def alone(killed, tmp_path):
    """Where a run was killed, to be changed: its journal and nothing else."""
    for name in ("run.json.journal", "peer.so"):
        (tmp_path / name).write_bytes((killed / name).read_bytes())
    return tmp_path


def test_without_a_damaged_journal_there_may_be_a_run_file(copied):
    directory, _ = copied
    (directory / "run.json.journal").write_bytes(b"nonsense\n")
    done = bench(directory, "--resume", "run.json")
    assert done.returncode == 2 and done.stderr.endswith("go on with what run.json has\n")
    assert bench(directory, "--resume", "run.json.journal").stderr == done.stderr


def test_the_journal_names_its_run(alone):
    done = bench(alone, "--resume", "run.json.journal")
    assert done.returncode == 0 and "Saved as run.json\n" in done.stdout, done.stderr
    assert not read(alone / "run.json")["interrupted"]
    assert sorted(path.name for path in alone.iterdir()) == ["log", "peer.so", "run.json"]


def test_a_run_file_may_be_called_as_a_journal_is(copied):
    directory, _ = copied
    (directory / "run.json").rename(directory / "run.journal")
    (directory / "run.json.raw.json.gz").rename(directory / "run.journal.raw.json.gz")
    assert bench(directory, "--resume", "run.journal").returncode == 0
    assert not read(directory / "run.journal")["interrupted"]


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize(
    "words", [("bench", "--show"), ("report",), ("compare", "run.json"), ("export",), ("import",)]
)
def test_whoever_reads_the_run_is_told_of_its_journal(alone, words, empty):
    if empty:  # as the default name is, until there is something to save
        (alone / "run.json").touch()
    for name in ("run.json", "run.json.journal"):
        done = workbench(*words, name, cwd=alone, env=environment(alone))
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
        assert "run.json.journal" in done.stderr and "--resume run.json finishes" in done.stderr


@pytest.mark.parametrize("data", [None, b"", b"nonsense\n"])
def test_a_new_run_leaves_the_journal_alone(alone, data):
    journal = alone / "run.json.journal"
    if data is not None:
        journal.write_bytes(data)
    before = journal.read_bytes()
    done = bench(alone, "sizes", "--size", "64", "--save", "run.json")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and not done.stdout
    for said in ("--resume run.json", "remove run.json.journal", "give another name"):
        assert said in done.stderr
    assert journal.read_bytes() == before and not (alone / "run.json").exists()
    journal.unlink()
    assert bench(alone, "sizes", "--size", "64", "--save", "run.json").returncode == 0


@pytest.mark.parametrize(
    "words", [("sizes", "--size", "64", "--save", "run.json"), ("--resume", "run.json")]
)
def test_a_run_that_is_under_way_is_not_disturbed(alone, words):
    with (alone / "run.json.journal").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = bench(alone, *words)
    assert done.returncode == 2 and "under way" in done.stderr and done.stderr.count("\n") == 1
    assert not (alone / "run.json").exists()


def test_a_journal_is_locked_while_it_is_written(tmp_path):
    own = journal.Journal(tmp_path / "run.json", {}, {"state": {"done": []}})
    assert runfile.is_locked(own.path)
    own.close()
    assert not runfile.is_locked(own.path)


def test_a_full_disk_costs_no_row_that_was_there(tmp_path, monkeypatch):
    """One that cannot be begun, one that cannot go on: what an earlier journal had is kept."""
    path = tmp_path / "run.json.journal"
    path.write_bytes(b"earlier")

    def full(*_):
        raise FailedError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(runfile, "write", full)
        unbegun = journal.Journal(tmp_path / "run.json", {}, {"state": {"done": [[0, 0]]}})
    unbegun.excluded("slow")
    assert path.read_bytes() == b"earlier" and unbegun.rows == 1
    begun = journal.Journal(tmp_path / "run.json", {}, {"state": {"done": [[0, 0]]}})
    begun._file.close()
    begun._file = open("/dev/full", "ab", buffering=0)  # noqa: PTH123
    begun.excluded("slow")
    assert path.exists() and begun.rows == 1


# ---- where it is saved ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"a text\n", b"{}", b'{"format":"wherry-mix"}', b"\x1f\x8bx"])
def test_only_a_run_file_is_replaced(tmp_path, data):
    (tmp_path / "run.json").write_bytes(data)
    done = bench(tmp_path, "sizes", "--size", "64", "--save", "run.json")
    assert done.returncode == 2 and "is not a run file, and would be lost" in done.stderr
    assert done.stderr.count("\n") == 1 and not done.stdout
    assert (tmp_path / "run.json").read_bytes() == data


def test_a_run_file_and_an_empty_file_are_replaced(tmp_path):
    for name in ("run.json", "run.json.gz"):
        (tmp_path / name).touch()
        for size in ("64", "128"):
            done = bench(tmp_path, "sizes", "--size", size, "--processes", "1", "--save", name)
            assert done.returncode == 0, done.stderr
            assert runfile.read(tmp_path / name)["rows"][0]["size"] == int(size)


@pytest.mark.parametrize(
    "words",
    [("ab", "--save", "r", "--", "true"), ("bench", "--self-check", "--save", "r")],
)
def test_others_that_save_do_not_replace_it_either(tmp_path, words):
    (tmp_path / "r").write_text("a text\n")
    done = workbench(*words, cwd=tmp_path, env=environment(tmp_path))
    assert done.returncode == 2 and "would be lost; give another name" in done.stderr, done.stderr
    assert (tmp_path / "r").read_text() == "a text\n"
