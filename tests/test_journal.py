"""A run that was killed goes on by its journal, which nothing else touches; and only a run file is replaced."""

import errno
import fcntl
import gzip
import json
import os

import pytest
from conftest import workbench
from resumed import bench, environment, kill_after, read, start
from wherry import journal, runfile
from wherry.cli import keeping
from wherry.errors import FailedError, WherryError

# ---- killed ---------------------------------------------------------------------------------------------------------


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
        whole + b'{"excluded":"slow","seconds":1' + 400 * b"0" + b"}\n",
        whole + b'{"problem":{"kind":"skip","routine":1,"message":"x"},"seconds":1}\n',
        whole + b'{"event":{"event":"start","cpu":[1]},"process":0,"seconds":1}\n',
        *(
            whole + b'{"event":{"event":"rowend","id":0,%s},"process":0,"seconds":1}\n' % own
            for own in (
                b'"cores":[1%s]' % (400 * b"0"),
                b'"reasons":{"steal":1e999}',
                b'"outcomes":[1]',
            )
        ),
        *(
            whole + b'{"event":{"event":"cell","id":0,%s},"process":0,"seconds":1}\n' % own
            for own in (b'"ns":[0]', b'"ns":[1e300]', b'"counters":{"cycles":"x"}')
        ),
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


def test_the_journal_names_its_run(alone):
    done = bench(alone, "--resume", "run.json.journal")
    assert done.returncode == 0 and "Saved as run.json\n" in done.stdout, done.stderr
    assert not read(alone / "run.json")["interrupted"]
    assert sorted(path.name for path in alone.iterdir()) == ["log", "peer.so", "run.json"]


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


def test_of_two_that_begin_together_one_has_the_name(tmp_path):
    """Neither saw a journal of the other when it was started; each measured, and the later took the other's place."""
    one, other = (keeping.Keeper(tmp_path / "run.json", explicit=True, raw=False) for _ in range(2))
    part = {"state": {"done": []}}
    held = one.begin({}, part)
    before = held.path.read_bytes()
    with pytest.raises(WherryError, match="a run that is under way will be saved there"):
        other.begin({}, part)
    other.nothing()
    assert not other.left()
    assert held.path.read_bytes() == before and runfile.is_locked(held.path)
    one.measured()
    one.begin({}, part)  # its next experiment
    one.nothing()
    assert not held.path.exists()
    held.path.touch()  # somebody is about to write it
    with pytest.raises(WherryError, match="under way"):
        other.begin({}, part)
    assert held.path.read_bytes() == b""


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


def test_a_journal_that_cannot_be_closed_costs_no_run(tmp_path):
    """As on NFS, beyond a quota, when the run has been measured and is yet to be saved."""

    class Beyond:
        def close(self):
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    own = journal.Journal(tmp_path / "r.json", {}, {"state": {"done": []}})
    own.close()
    own._file = Beyond()
    own.remove()
    assert not [*tmp_path.iterdir()]
