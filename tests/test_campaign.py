"""A campaign goes on after a crash, a hang or a wrong routine, and keeps what it measured when interrupted. The runner
is a fake one (fake_runner.py): a good one does not crash on request."""

import contextlib
import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import time

import pytest
from conftest import FAKE, rows_in, run, wait_until, workbench
from wherry import experiments, runfile, runner
from wherry.campaign import HANG_LIMIT, Campaign, Row
from wherry.experiments import Request
from wherry.problems import grouped


@pytest.fixture
def fake(tmp_path):
    """Runs `wherry` with the fake runner in an empty directory."""
    (tmp_path / "peer.so").write_bytes(b"peer")
    environment = {**os.environ, "WHERRY_RUN": str(FAKE), "WHERRY_FAKE_LOG": str(tmp_path / "log")}

    def call(*args, **options):
        return workbench(*args, cwd=tmp_path, env=environment, **options)

    call.environment = environment
    call.directory = tmp_path
    return call


def saved(directory):
    (path,) = (directory / "runs").glob("*.json")
    return json.loads(path.read_text())


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("crash", "crash", "SIGSEGV"),
        ("silent", "crash", "SIGKILL"),
        ("rubbish", "crash", "damaged"),
        ("hang", "hang", "no sign of life"),
        ("liar", "wrong", "byte 3"),
    ],
)
def test_a_bad_peer_is_named_and_the_campaign_goes_on(fake, name, kind, said):
    result = fake(
        "bench",
        "sizes",
        "--size",
        "64,4K",
        "--peer",
        f"{name}=peer.so",
        "--processes",
        "2",
        "--hang-limit",
        "1",
    )
    assert result.returncode == 1, result.stderr
    assert name in result.stdout and said in result.stdout
    assert "Traceback" not in result.stderr
    run = saved(fake.directory)
    problems = [p for p in run["problems"] if p["kind"] != "skip"]
    assert {(p["kind"], p["routine"]) for p in problems} == {(kind, name)}
    assert not any(c["routine"] == name for c in run["cells"])
    # Everybody else was measured everywhere, in every process.
    others = [c for c in run["cells"] if c["routine"] == "libc" and not c["aa"]]
    assert [c["size"] for c in others] == [64, 4096] and all(c["processes"] == 2 for c in others)


def test_a_runner_that_was_killed_once_is_no_crash(fake):
    """By somebody, or for want of memory: no routine can end so by what it does wrong."""
    result = fake("bench", "sizes", "--size", "64,4K", "--processes", "2", "--peer", "shot=peer.so")
    assert result.returncode == 0, result.stdout + result.stderr
    assert (fake.directory / "shot").exists() and "CRASHED" not in result.stdout
    cells = [c for c in saved(fake.directory)["cells"] if c["routine"] == "shot"]
    assert [(c["size"], c["processes"]) for c in cells] == [(64, 2), (4096, 2)]


def _with_little_time(fake, name):
    """A run whose runner dies by SIGXCPU beside this peer, under a limit on processor time."""
    words = ("bench", "sizes", "--size", "64,4K", "--processes", "1", "--peer", f"{name}=peer.so")
    return run(
        *("bash", "-c", 'ulimit -S -t 3000; exec "$@"', "bash"),
        *(sys.executable, "-m", "wherry", *words),
        check=False,
        cwd=fake.directory,
        env=fake.environment,
    )


def test_a_limit_on_processor_time_is_no_crash(fake):
    """What each process of the runner may take suffices for a row: the next goes on."""
    result = _with_little_time(fake, "spending")
    assert result.returncode == 0, result.stderr
    cells = saved(fake.directory)["cells"]
    assert {c["size"] for c in cells if c["routine"] == "spending"} == {64, 4096}


def test_a_limit_on_processor_time_that_lets_nothing_be_measured_is_told(fake):
    result = _with_little_time(fake, "spent")
    assert result.returncode == 1 and "CRASHED" not in result.stdout
    assert "ulimit -t, 3000 s" in result.stderr and "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("limits", "status", "used", "told"),
    [
        ((5, 5), -signal.SIGKILL, 5.01, "5 s"),
        ((5, 5), -signal.SIGKILL, 4.2, "5 s"),
        ((5, 5), -signal.SIGKILL, 3.0, ""),
        ((5, 9), -signal.SIGXCPU, 5.0, "5 s"),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), -signal.SIGXCPU, 5.0, ""),
        ((5, 5), -signal.SIGSEGV, 6.0, ""),
        ((5, 5), 1, 6.0, ""),
    ],
)
def test_what_ended_a_runner(monkeypatch, limits, status, used, told):
    monkeypatch.setattr(resource, "getrlimit", lambda which: limits)
    said = runner.out_of_time(status, used)
    assert told in said and bool(told) == bool(said)


def test_nobody_is_blamed_for_a_peer_that_hangs_while_it_is_timed(fake):
    """Of the rounds only the runner knows whose turn it is, and --hang-limit must not be quicker than it."""
    peers = ("--peer", "late=peer.so", "--peer", "good=peer.so")
    fake("bench", "sizes", "--size", "64,4K", *peers, "--hang-limit", "1")
    problems = [p for p in saved(fake.directory)["problems"] if p["kind"] != "skip"]
    assert {(p["kind"], p["routine"]) for p in problems} == {("hang", "late")}


@pytest.mark.parametrize(("name", "word"), [("loadcrash", "SIGSEGV"), ("loadhang", "hung")])
def test_a_peer_that_dies_while_it_is_loaded(fake, name, word):
    result = fake("bench", "--size", "64", "--peer", f"{name}=peer.so", "--hang-limit", "1")
    assert result.returncode == 1 and name in result.stdout and word in result.stdout
    assert any(c["routine"] == "libc" for c in saved(fake.directory)["cells"])


def test_two_bad_peers(fake):
    result = fake("bench", "--size", "64", "--peer", "crash=peer.so", "--peer", "liar=peer.so")
    assert result.returncode == 1
    assert {p["routine"] for p in saved(fake.directory)["problems"]} == {"crash", "liar"}


def test_a_routine_that_is_wrong_in_many_rows_is_told_in_one_line(fake):
    result = fake(
        *("bench", "--size", "64,1K,4K", "--processes", "2", "--peer", "liar=peer.so"),
    )
    assert result.returncode == 1
    told = [line for line in result.stdout.splitlines() if line.startswith("liar ")]
    assert len(told) == 1
    assert told[0].startswith("liar WRONG, so it has no speed (3 rows): ")


def test_different_words_of_one_wrong_routine():
    def wrong(routine, row, message):
        return {"kind": "wrong", "routine": routine, "row": row, "message": message}

    found = grouped(
        {
            "problems": [
                wrong("p", 0, "copy of 64 bytes: byte 3"),
                wrong("q", 0, "copy of 64 bytes: byte 9"),
                wrong("p", 0, "copy of 64 bytes: byte 5"),
                wrong("p", 4, "copy of 1448 bytes: byte 3"),
            ]
        }
    )
    assert found == [
        ("wrong", "p WRONG, so it has no speed (2 rows): first, copy of 64 bytes: byte 3"),
        ("wrong", "q WRONG, so it has no speed: copy of 64 bytes: byte 9"),
    ]


def test_brief_verification_excludes_what_fails_it(fake):
    result = fake("bench", "--verify", "--size", "64", "--peer", "liar=peer.so")
    assert result.returncode == 1 and "WRONG and not measured: liar" in result.stdout
    rows = (fake.directory / "log").read_text().splitlines()
    measured = [line for line in rows if line.startswith("measure --seed")]
    assert measured and all("liar" not in line for line in measured)


def test_what_is_made_of_an_excluded_peer_goes_with_it():
    """The runner no longer knows its name, and would refuse the row."""
    entries = (
        "wherry",
        "csum:wherry",
        "csum:liar",
        "libc+liar",
        "liar+wherry",
        "a+liar",
        "csum:csum_a",
    )
    row = Row("checksum", "copy_csum", entries, 64)
    peers = ["liar=liar.so", "a+liar=other.so"]
    campaign = Campaign([row], processes=1, peers=peers, excluded=["liar"])
    assert campaign._routines(0) == ("wherry", "csum:wherry", "a+liar", "csum:csum_a")
    assert "liar=liar.so" not in campaign._arguments(0, row)


def test_a_row_of_which_all_are_wrong_ends_as_others_do(fake, monkeypatch):
    for name, value in fake.environment.items():
        monkeypatch.setenv(name, value)
    rows = [Row("x", "copy", names, 64) for names in (("liar",), ("libc",))]
    peers = [f"liar={fake.directory / 'peer.so'}"]
    campaign = Campaign(rows, processes=1, peers=peers)
    campaign.run()
    assert {row for row, _, _ in campaign.cells} == {1} and campaign.wrong == {"liar"}


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_an_interrupted_run_keeps_what_it_measured(fake, number, status):
    process = subprocess.Popen(
        [sys.executable, "-m", "wherry", "bench", "sizes", "--peer", "slow=peer.so"],
        cwd=fake.directory,
        env=fake.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    runs = fake.directory / "runs"

    def two_rows() -> bool:
        # Whether the directory can be made is tried before anything is measured: it comes, goes and comes again.
        with contextlib.suppress(FileNotFoundError):
            return any(rows_in(journal) >= 2 for journal in runs.glob("*.journal"))
        return False

    wait_until(two_rows, "two rows")
    process.send_signal(number)
    out, err = process.communicate(timeout=300)
    assert process.returncode == status, err
    assert "interrupted" in err and "INTERRUPTED" in out and "Traceback" not in err
    run = saved(fake.directory)
    assert run["interrupted"] and run["cells"] and len(run["rows"]) < 18
    again = fake("bench", "--show", str(next((fake.directory / "runs").glob("*.json"))))
    assert again.returncode == 0 and "INTERRUPTED" in again.stdout


def test_runs_that_begin_together_do_not_take_each_others_file(fake):
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "wherry", "bench", "sizes", "--size", "64"],
            cwd=fake.directory,
            env=fake.environment,
            stdout=subprocess.DEVNULL,
        )
        for _ in range(4)
    ]
    assert [process.wait(300) for process in processes] == [0] * 4
    files = list((fake.directory / "runs").iterdir())
    assert len(files) == 4
    assert all(json.loads(path.read_text())["cells"] for path in files)


# The name was free when it was chosen; since then another run has begun.
CHOSEN_BEFORE = """
from pathlib import Path
from wherry import stamp
from wherry.__main__ import main
stamp.run_path = stamp.path = lambda _: Path("runs/x.json")
main()
"""


@pytest.mark.parametrize("held", [("x.json", "x.json.journal"), ("x.json.journal",)])
def test_a_default_name_that_another_run_took_meanwhile(fake, held):
    runs = fake.directory / "runs"
    runs.mkdir()
    for name in held:
        (runs / name).write_text("another run\n")
    with (runs / "x.json.journal").open("rb") as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)
        done = subprocess.run(
            [sys.executable, "-c", CHOSEN_BEFORE, "bench", "sizes", "--size", "64"],
            cwd=fake.directory,
            env=fake.environment,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in runs.iterdir()) == sorted([*held, "x-2.json"])
    assert all((runs / name).read_text() == "another run\n" for name in held)
    assert json.loads((runs / "x-2.json").read_text())["cells"]


def test_an_ab_whose_default_name_was_taken_meanwhile(fake):
    runs = fake.directory / "runs"
    runs.mkdir()
    (runs / "x.json").write_text("another\n")
    done = subprocess.run(
        [sys.executable, "-c", CHOSEN_BEFORE, "ab", "--runs", "2", "--", "true"],
        cwd=fake.directory,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "Saved as runs/x-2.json" in done.stdout, done.stderr
    assert (runs / "x.json").read_text() == "another\n"


def test_interrupted_before_anything_was_measured(fake):
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "wherry",
            "bench",
            "--peer",
            "hang=peer.so",
            "--routine",
            "hang",
            "--size",
            "64",
        ],
        cwd=fake.directory,
        env=fake.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    log = fake.directory / "log"
    wait_until(lambda: log.exists() and "measure --seed" in log.read_text(), "a row")
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130 and "nothing saved" in err
    assert not list((fake.directory / "runs").glob("*"))


def test_what_the_disk_cannot_hold_is_not_left_in_halves(fake):
    def small_files():
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    result = fake("bench", "alignment", "--quick", "--save", "run.json", preexec_fn=small_files)
    assert result.returncode == 1
    assert "could not save run.json" in result.stderr and result.stderr.count("\n") == 1
    assert sorted(p.name for p in fake.directory.iterdir()) == ["log", "peer.so"]


def test_a_full_disk_is_found_before_measuring(fake):
    def no_files():
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    result = fake("bench", "--save", "run.json", preexec_fn=no_files)
    assert result.returncode == 2 and "cannot save to run.json" in result.stderr
    assert "measure --seed" not in (fake.directory / "log").read_text()


def test_raw_samples_lie_beside_the_run(fake):
    import gzip

    result = fake("bench", "--size", "64", "--save", "r.json", "--raw", "--processes", "2")
    assert result.returncode == 0, result.stderr
    raw = json.loads(gzip.decompress((fake.directory / "r.json.raw.json.gz").read_bytes()))
    libc = [s for s in raw["samples"] if s["routine"] == "libc" and not s["aa"]]
    assert [s["process"] for s in libc] == [0, 1] and len(libc[0]["ns"]) >= 5


def test_show_prints_what_bench_printed(fake):
    first = fake("bench", "sizes", "small", "zero", "alignment", "--quick", "--save", "r.json.gz")
    assert first.returncode == 0, first.stderr
    rows = runfile.read(fake.directory / "r.json.gz")["rows"]
    states = {(r["src_state"], r["dst_state"]) for r in rows if r["experiment"] == "alignment"}
    assert states == {("L1", "L1"), ("DRAM", "L1"), ("L1", "DRAM"), ("DRAM", "DRAM")}
    again = fake("bench", "--show", "r.json.gz")
    assert again.returncode == 0, again.stderr
    body = first.stdout.rsplit("\nSaved as", 1)[0].strip()
    assert again.stdout.strip() == body
    assert "\033" not in first.stdout
    assert max(map(len, first.stdout.splitlines())) <= 100


def test_quantum_shows_as_a_dash(fake):
    result = fake("bench", "small", "--size", "63,64", "--routine", "int4x8")
    lines = [line.split() for line in result.stdout.splitlines()]
    assert any(line[:1] == ["63"] and line[-1] == "-" for line in lines)


def test_json_is_json_and_nothing_else(fake):
    result = fake("bench", "--size", "64", "--json")
    run = json.loads(result.stdout)
    assert result.returncode == 0 and result.stderr == "" and run["format"] == "wherry-run"
    assert {c["routine"] for c in run["cells"]} >= {"libc", "wherry", "rep_movsb"}


def test_a_reader_that_leaves_costs_nothing(fake):
    process = subprocess.Popen(
        [sys.executable, "-m", "wherry", "bench", "small", "sizes", "--save", "r.json"],
        cwd=fake.directory,
        env=fake.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while b"noise floor" not in process.stdout.readline():
        pass
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=300) == 0
    process.stderr.close()
    assert (fake.directory / "r.json").exists()


def test_a_process_in_a_slow_phase_is_left_out_where_others_have_the_row():
    """Rows 0 and 1 in three processes: the second ran at a low clock throughout; of row 1 the first had only
    disturbed rounds; row 2 was slow in every process, so it keeps what there is."""
    rows = [Row("sizes", "copy", ("libc",), size) for size in (64, 128, 256)]
    campaign = Campaign(rows, processes=3)
    figures = {"aa": False, "ns": [1.0, 1.0], "calls": 1, "bytes": 64}
    for process in range(3):
        for row in range(3):
            disturbed = (process, row) == (0, 1)
            slow = process == 1 or row == 2
            event = figures | {"disturbed": disturbed}
            campaign._keep(process, row, {("libc", False): event})
            campaign._paces[process, row] = (1.2 if slow else 1.0, 20.0)
    campaign._leave_out_slow()
    kept = [sorted(campaign.cells[row, "libc", False].ns) for row in range(3)]
    assert kept == [[0, 2], [2], [0, 1, 2]]
    assert not campaign.cells[1, "libc", False].disturbed
    assert campaign.cells[0, "libc", False].voided == 2
    # The two processes of row 0 and 1 that were slow, two rounds each; disturbed ones are counted already.
    assert campaign.voided["contended"] == 2 * 2


def test_as_many_turns_as_in_the_mail_are_no_hang():
    """`switch --turns 500000`: between two CPUs a sample takes half a minute, and a row says nothing until its end."""
    rows = experiments.load("switch").rows(Request(catalogue=(), quick=True, turns=500_000))
    campaign = Campaign(rows, processes=1)
    apart = [i for i, row in enumerate(rows) if ("place", "apart") in row.words]
    assert apart
    for i in apart:
        own = rows[i]
        assert campaign._silence(i) > own.rounds * len(own.routines) * own.calls * 70e-6
    usual = Campaign(
        experiments.load("switch").rows(Request(catalogue=(), quick=True)), processes=1
    )
    assert all(usual._silence(i) <= HANG_LIMIT for i in range(len(usual.rows)))


@pytest.mark.parametrize(("at_least_one", "measured"), [(True, 1), (False, 0)])
def test_a_row_does_not_outlast_its_time(fake, monkeypatch, at_least_one, measured):
    """Two routines a row, each a second."""
    for name, value in fake.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("WHERRY_FAKE_SLOW", "1")
    rows = [Row("x", "copy", ("libc", "slow"), size) for size in (64, 128, 256, 512)]
    now = time.monotonic()
    campaign = Campaign(
        rows,
        processes=1,
        peers=[f"slow={fake.directory / 'peer.so'}"],
        deadline=now + 10,
        latest=now + 0.5,
        at_least_one=at_least_one,
    )
    campaign.run()
    assert campaign.out_of_time and len(campaign.done) == measured
    assert {row for row, _, _ in campaign.cells} == {row for _, row in campaign.done}
    assert not campaign.problems and not campaign.excluded
