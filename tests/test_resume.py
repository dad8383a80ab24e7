"""An interrupted run goes on: what is there is not measured again, what is missing is, and only where it began."""

import gzip
import hashlib
import json
import subprocess
import sys

import pytest
from conftest import rows_in
from resumed import (
    ASKED,
    FAKE,
    bench,
    environment,
    interrupt,
    kill_after,
    read,
    start,
)
from wherry import inputs


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
        (("resume", "state", "rounds"), {"paces": "slow"}, "resume/state/rounds/paces"),
        (("resume", "state", "rounds"), {"paces": []}, "is damaged; begin a new run"),
        (("resume", "state", "paces"), [[0, 0, 1.5]], "resume/state/paces/0"),
        (("resume", "state", "paces"), [[0, 99, 1.5, 1.5]], "is damaged; begin a new run"),
        (("resume", "state", "huge"), [99], "is damaged; begin a new run"),
        (("resume", "state", "cells", 0, "cell", 0), "0", "cells/0/cell/0: '0' is not"),
        (("resume", "state", "cells", 0, "cell", 0), 99, "is damaged; begin a new run"),
        (("resume", "state", "cells", 0, "ns"), {"99": [1.5]}, "is damaged; begin a new run"),
        (("resume", "state", "cells", 0, "ns"), {"0": [0]}, "resume/state/cells/0/ns/0/0"),
        (("resume", "state", "cells", 0, "counts"), {"0": {"cycles": "x"}}, "counts/0/cycles"),
        (("resume", "processes"), 10**12, "resume/processes"),
        (("resume", "only"), [99], "is damaged; begin a new run"),
        (("method", "asked", "rounds"), "many", "was asked for is damaged (rounds)"),
        (("method", "asked", "sizes"), 64, "was asked for is damaged (sizes)"),
        (("method", "asked", "routines"), [None], "was asked for is damaged (routines)"),
        (("method", "seed"), 2.0**70, "was asked for is damaged (seed)"),
        (("method", "asked", "pin"), {}, "was asked for is damaged (pin)"),
        (("method", "asked", "experiments"), [True], "no experiment 'True'"),
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


def test_without_a_damaged_journal_there_may_be_a_run_file(copied):
    directory, _ = copied
    (directory / "run.json.journal").write_bytes(b"nonsense\n")
    done = bench(directory, "--resume", "run.json")
    assert done.returncode == 2 and done.stderr.endswith("go on with what run.json has\n")
    assert bench(directory, "--resume", "run.json.journal").stderr == done.stderr


def test_a_run_file_may_be_called_as_a_journal_is(copied):
    directory, _ = copied
    (directory / "run.json").rename(directory / "run.journal")
    (directory / "run.json.raw.json.gz").rename(directory / "run.journal.raw.json.gz")
    assert bench(directory, "--resume", "run.journal").returncode == 0
    assert not read(directory / "run.journal")["interrupted"]


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
