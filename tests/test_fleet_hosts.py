"""`wherry fleet bench` and its like on a real Dask scheduler, with worker processes that stand for hosts."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import need_tool, run

pytest.importorskip("distributed", reason="needs the extra fleet (tools/setup test brings it)")

SMALL = ("--size", "64", "--routine", "rep_movsb", "--rounds", "2", "--processes", "1")
USUAL = ("--busy-load", "1000", "--wait", "1", "--json")
# Runners that are as the real one but for this.
HANGING = 'case $1 in measure) sleep 1000;; *) exec "$REAL" "$@";; esac'
WRONG = r"""if [ "$1" = measure ]; then "$REAL" "$@" | "$PYTHON" -u -c '
import json, sys
for line in sys.stdin:
    own = json.loads(line)
    if own.get("event") == "cell" and own["routine"] == "rep_movsb":
        line = json.dumps({"event": "wrong", "id": own["id"], "routine": "rep_movsb", "message": "byte 3"}) + "\n"
    sys.stdout.write(line)
'; else exec "$REAL" "$@"; fi"""
MARKED = 'case $1 in measure) echo $$ > "$MARKER"; exec sleep 1000;; *) exec "$REAL" "$@";; esac'


def free_port() -> int:
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        return own.getsockname()[1]


class Cluster:
    def __init__(self, directory: Path, runner: Path, tls: tuple[str, ...] = ()):
        self.directory, self.runner, self.tls = directory, runner, tls
        self.processes: list[subprocess.Popen] = []
        self.port = free_port()
        self.address = f"{'tls' if tls else 'tcp'}://127.0.0.1:{self.port}"
        self.scheduler = self.begin_scheduler()

    def begin(self, *command: str, **env: str) -> subprocess.Popen:
        environment = {
            **os.environ,
            "DASK_DISTRIBUTED__WORKER__DAEMON": "False",
            "WHERRY_RUN": str(self.runner),
            "REAL": str(self.runner),
            "PYTHON": sys.executable,
            **env,
        }
        with (self.directory / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "distributed.cli.dask_" + command[0], *command[1:]],
                env=environment,
                cwd=self.directory,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def begin_scheduler(self) -> subprocess.Popen:
        # It need not have Wherry.
        without = self.directory / "without.py"
        without.write_text("import sys\nsys.modules['wherry'] = None\n")
        own = self.begin(
            *(
                "scheduler",
                "--preload",
                str(without),
                "--host",
                "127.0.0.1",
                "--port",
                str(self.port),
            ),
            *("--no-dashboard", "--no-jupyter", *self.tls),
        )
        end = time.monotonic() + 30
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return own
            time.sleep(0.1)
        pytest.fail((self.directory / "log").read_text()[-2000:])

    def host(self, name: str, runner: str = "", patch: str = "", **env: str) -> subprocess.Popen:
        """A worker that is a host of its own; `patch` is Python that it runs first."""
        more = []
        if runner:
            script = self.directory / f"runner-{name}"
            script.write_text(f"#!/bin/sh\n{runner}\n")
            script.chmod(0o755)
            env["WHERRY_RUN"] = str(script)
        if patch:
            file = self.directory / f"patch_{name}.py"
            file.write_text(patch + "\n")
            more = ["--preload", str(file)]
        return self.begin(
            *("worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard"),
            *(*more, *(self.tls or ("--host", "127.0.0.1"))),
            WHERRY_FLEET_HOST=name,
            **env,
        )

    def wait_for(self, workers: int) -> None:
        from distributed import Client

        with Client(self.address, timeout=20, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=40)

    def end(self) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def cluster(tmp_path, wherry_run):
    own = Cluster(tmp_path, wherry_run)
    yield own
    own.end()


@pytest.fixture
def fleet(wherry, cluster, tmp_path):
    def call(kind: str, *more: str):
        done = wherry(
            *("fleet", kind, "--scheduler", cluster.address, "--out", str(tmp_path / "out")),
            *(*USUAL, *more),
        )
        assert "Traceback" not in done.stderr
        hosts = json.loads(done.stdout)["hosts"] if done.stdout else []
        return done, {h["name"]: h for h in hosts}

    return call


def test_each_host_once_and_then_what_is_missing(cluster, fleet, tmp_path):
    for name in ("alpha", "alpha", "beta"):
        cluster.host(name)
    cluster.wait_for(3)
    done, hosts = fleet("bench", "sizes", *SMALL)
    assert done.returncode == 0, done.stderr
    assert {n: h["state"] for n, h in hosts.items()} == {"alpha": "done", "beta": "done"}
    files = sorted((tmp_path / "out").iterdir())
    assert len(files) == 2
    run = json.loads(files[0].read_text())
    assert run["format"] == "wherry-run"
    assert [e["name"] for e in run["experiments"]] == ["sizes"]
    # A restarted scheduler has forgotten; the files have not.
    cluster.end()
    cluster.processes.clear()
    cluster.begin_scheduler()
    for name in ("alpha", "beta", "gamma"):
        cluster.host(name)
    cluster.wait_for(3)
    _, hosts = fleet("bench", "sizes", *SMALL)
    states = {n: h["state"] for n, h in hosts.items()}
    assert states == {"alpha": "there", "beta": "there", "gamma": "done"}
    # Another experiment is missing everywhere, and is measured alone.
    (tmp_path / "out" / hosts["gamma"]["file"].rpartition("/")[2]).unlink()
    _, hosts = fleet("bench", "small", "sizes", *SMALL)
    told = {n: json.loads(Path(h["file"]).read_text()) for n, h in hosts.items()}
    assert [e["name"] for e in told["alpha"]["experiments"]] == ["small"]
    assert {e["name"] for e in told["gamma"]["experiments"]} == {"small", "sizes"}


def test_what_goes_wrong_is_named_and_the_rest_goes_on(cluster, fleet):
    cluster.host("good")
    cluster.host("hangs", HANGING)
    cluster.host("wrong", WRONG)
    cluster.host("old", patch="import wherry\nwherry.version = lambda: '0.0.1'")
    cluster.host("arm", patch="import platform\nplatform.machine = lambda: 'aarch64'")
    cluster.host("bare", "exit 127")
    cluster.host("without", patch="import sys\nsys.modules['wherry'] = None")
    cluster.wait_for(7)
    done, hosts = fleet("bench", "sizes", *SMALL, "--time-limit", "8", "--retries", "0")
    assert done.returncode == 1
    states = {n: h["state"] for n, h in hosts.items()}
    nameless = [h for n, h in hosts.items() if n.startswith("tcp://")]
    assert states["good"] == "done"
    assert states["hangs"] == "hung" and "8 s" in hosts["hangs"]["words"]
    assert states["wrong"] == "wrong" and "rep_movsb" in hosts["wrong"]["words"]
    assert states["old"] == "refused" and "pip install" in hosts["old"]["words"]
    assert states["arm"] == "refused" and "aarch64" in hosts["arm"]["words"]
    assert states["bare"] == "refused" and "gcc" in hosts["bare"]["words"]
    assert len(nameless) == 1 and "no Wherry" in nameless[0]["words"]


def once(marker: Path, then) -> threading.Thread:
    """Does it when the marker is there: in the middle of the campaign, however slow the machine."""

    def wait():
        end = time.monotonic() + 90
        while not marker.exists() and time.monotonic() < end:
            time.sleep(0.1)
        if marker.exists():
            then()

    own = threading.Thread(target=wait)
    own.start()
    return own


def test_a_worker_killed_in_the_middle_is_retried_on_its_host(cluster, fleet, tmp_path):
    marker = tmp_path / "measuring"
    victim = cluster.host("frail", MARKED, MARKER=str(marker))
    cluster.host("good")
    cluster.wait_for(2)

    def replace():
        victim.kill()
        cluster.host("frail")

    thread = once(marker, replace)
    done, hosts = fleet("bench", "sizes", *SMALL, "--wait", "6")
    thread.join()
    assert marker.exists()
    assert hosts["good"]["state"] == "done"
    assert hosts["frail"]["state"] == "done", done.stderr
    assert hosts["frail"]["tries"] > 1
    # What the lost worker had started has ended with it.
    end = time.monotonic() + 20
    while running(int(marker.read_text())) and time.monotonic() < end:
        time.sleep(0.2)
    assert not running(int(marker.read_text()))


def running(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_a_lost_host_is_reported(cluster, fleet, tmp_path):
    marker = tmp_path / "measuring"
    victim = cluster.host("gone", MARKED, MARKER=str(marker))
    cluster.host("good")
    cluster.wait_for(2)
    thread = once(marker, victim.kill)
    done, hosts = fleet("bench", "sizes", *SMALL, "--retries", "1")
    thread.join()
    assert done.returncode == 1
    assert hosts["good"]["state"] == "done"
    assert hosts["gone"]["state"] == "lost"


def test_a_scheduler_that_dies_ends_the_call_in_one_line(cluster, fleet, tmp_path):
    marker = tmp_path / "measuring"
    cluster.host("alpha", MARKED, MARKER=str(marker))
    cluster.wait_for(1)
    thread = once(marker, cluster.scheduler.kill)
    done, hosts = fleet("bench", "sizes", *SMALL)
    thread.join()
    assert done.returncode == 1
    assert "second call goes on" in done.stderr
    assert hosts["alpha"]["state"] != "done"


def test_doctor_and_one_per_model(cluster, fleet):
    cluster.host("one")
    cluster.host("two")
    cluster.wait_for(2)
    done, hosts = fleet("doctor")
    assert done.returncode == 0
    assert set(hosts) == {"one", "two"}
    assert "cpu" in json.loads(Path(hosts["one"]["file"]).read_text())
    _, hosts = fleet("doctor", "--one-per", "model")
    assert len(hosts) == 1


def test_verify_and_tune_bring_back_what_they_write(cluster, fleet, wherry, tmp_path):
    cluster.host("alpha")
    cluster.wait_for(1)
    done, hosts = fleet("verify", "rep_movsb", "--brief")
    assert hosts["alpha"]["state"] == "done", done.stderr
    assert json.loads(Path(hosts["alpha"]["file"]).read_text())["failures"] == []
    done, hosts = fleet("verify", "no_such_routine")
    assert done.returncode == 1
    assert "no_such_routine" in hosts["alpha"]["words"]
    done, hosts = fleet("tune", "--quick", "--retries", "0")
    assert hosts["alpha"]["state"] == "done", done.stdout + done.stderr
    if hosts["alpha"]["file"]:
        checked = wherry("plan", "show", hosts["alpha"]["file"])
        assert checked.returncode == 0, checked.stderr


def test_tls(tmp_path, wherry, wherry_run):
    openssl = need_tool("openssl", "openssl")
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    run(
        *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
        *("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"),
        *("-keyout", key, "-out", cert),
    )
    files = ("--tls-ca-file", str(cert), "--tls-cert", str(cert), "--tls-key", str(key))
    own = Cluster(tmp_path, wherry_run, files)
    try:
        own.host("alpha")
        end = time.monotonic() + 60
        call = ("fleet", "doctor", "--scheduler", own.address, "--out", str(tmp_path / "out"))
        while (done := wherry(*call, *USUAL, *files)).returncode and time.monotonic() < end:
            time.sleep(1)
        assert done.returncode == 0, done.stderr
        plain = wherry(*call[:3], own.address.replace("tls", "tcp"), *call[4:])
        assert plain.returncode == 1
        assert "no scheduler answers" in plain.stderr
        without = wherry(*call)
        assert without.returncode != 0
        assert "Traceback" not in without.stderr
    finally:
        own.end()


@pytest.mark.parametrize(
    ("address", "said", "status"),
    [
        ("tcp://127.0.0.1:1", "no scheduler answers", 1),
        ("nonsense://x", "no address of a scheduler", 2),
    ],
)
def test_no_scheduler(wherry, tmp_path, address, said, status):
    done = wherry("fleet", "doctor", "--scheduler", address, "--out", str(tmp_path))
    assert done.returncode == status
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
