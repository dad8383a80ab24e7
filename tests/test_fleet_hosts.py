"""`wherry fleet bench` and its like on a real Dask scheduler, with worker processes that stand for hosts."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
from pathlib import Path

import fleet_cluster
import pytest
from conftest import need_root, need_tool, run, wait_until

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
# Hangs in its second experiment.
SECOND = """case $1 in
measure) if [ -e "$MARKER" ]; then exec sleep 1000; fi; touch "$MARKER"; exec "$REAL" "$@";;
*) exec "$REAL" "$@";;
esac"""
BUSY = "import os\nos.getloadavg = lambda: (1e6, 1e6, 1e6)"


@pytest.fixture(scope="module")
def forks():
    own = fleet_cluster.Forks()
    yield own
    own.end()


@pytest.fixture
def wherry(forks, tmp_path, wherry_run):
    def call(*arguments, env: dict[str, str] | None = None):
        return forks.wherry(tmp_path, arguments, {"WHERRY_RUN": str(wherry_run), **(env or {})})

    return call


@pytest.fixture
def cluster(forks, tmp_path, wherry_run):
    own = fleet_cluster.Cluster(forks, tmp_path, wherry_run)
    yield own
    own.end()


@pytest.fixture
def fleet(wherry, cluster, tmp_path):
    def call(kind: str, *more: str, out: str = ""):
        where = out or str(tmp_path / "out")
        call = ("fleet", kind, "--scheduler", cluster.address, "--out", where)
        done = wherry(*call, *USUAL, *more)
        assert "Traceback" not in done.stderr
        hosts = json.loads(done.stdout)["hosts"] if done.stdout else []
        return done, {h["name"]: h for h in hosts}

    return call


def states(hosts: dict[str, dict]) -> dict[str, str]:
    return {name: host["state"] for name, host in hosts.items()}


def experiments(host: dict) -> list[str]:
    return [e["name"] for e in json.loads(Path(host["file"]).read_text())["experiments"]]


def test_each_host_once_and_then_what_is_missing(cluster, fleet, tmp_path):
    for name in ("alpha", "alpha", "beta"):
        cluster.host(name)
    cluster.wait_for(3)
    done, hosts = fleet("bench", "sizes", *SMALL)
    assert done.returncode == 0, done.stderr
    assert states(hosts) == {"alpha": "done", "beta": "done"}
    files = sorted((tmp_path / "out").iterdir())
    assert len(files) == 2
    assert json.loads(files[0].read_text())["format"] == "wherry-run"
    assert experiments(hosts["alpha"]) == ["sizes"]
    # A restarted scheduler has forgotten; the files have not. Another experiment is missing, and measured alone.
    cluster.end()
    cluster.begin_scheduler()
    for name in ("alpha", "beta", "gamma"):
        cluster.host(name)
    cluster.wait_for(3)
    files[1].unlink()
    _, hosts = fleet("bench", "small", "sizes", *SMALL)
    assert states(hosts) == dict.fromkeys(("alpha", "beta", "gamma"), "done")
    assert experiments(hosts["alpha"]) == ["small"]
    assert set(experiments(hosts["beta"])) == set(experiments(hosts["gamma"])) == {"small", "sizes"}
    _, hosts = fleet("bench", "sizes", *SMALL)
    assert states(hosts) == dict.fromkeys(("alpha", "beta", "gamma"), "there")


def test_what_goes_wrong_is_named_and_the_rest_goes_on(cluster, fleet, tmp_path):
    cluster.host("good")
    cluster.host("hangs", HANGING)
    cluster.host("wrong", WRONG)
    cluster.host("old", patch="import wherry\nwherry.version = lambda: '0.0.1'")
    cluster.host("arm", patch="import platform\nplatform.machine = lambda: 'aarch64'")
    cluster.host("bare", "exit 127")
    cluster.host("mixed", 'case $1 in --version) echo 0.0.2;; *) exec "$REAL" "$@";; esac')
    cluster.host("laden", patch=BUSY)
    cluster.host("without", patch="import sys\nsys.modules['wherry'] = None")
    cluster.wait_for(9)
    # Where the machine has much to do a good host may take longer than the first.
    for limit in ("8", "40", "200"):
        again = ("--time-limit", limit, "--retries", "0")
        done, hosts = fleet("bench", "sizes", *SMALL, *again, out=str(tmp_path / limit))
        found = states(hosts)
        if "hung" not in (found["good"], found["wrong"]):
            break
    assert done.returncode == 1
    nameless = [h for n, h in hosts.items() if n.startswith("tcp://")]
    assert found["good"] == "done"
    assert found["hangs"] == "hung" and f"{limit} s" in hosts["hangs"]["words"]
    assert found["wrong"] == "wrong" and "rep_movsb" in hosts["wrong"]["words"]
    assert found["old"] == "refused" and "pip install" in hosts["old"]["words"]
    assert found["arm"] == "refused" and "aarch64" in hosts["arm"]["words"]
    assert found["bare"] == "refused" and "gcc" in hosts["bare"]["words"]
    assert found["mixed"] == "refused" and "version 0.0.2" in hosts["mixed"]["words"]
    assert found["laden"] == "busy" and "load 1000000.0" in hosts["laden"]["words"]
    assert len(nameless) == 1 and "no Wherry" in nameless[0]["words"]


def once(happened, then) -> threading.Thread:
    """Does it when something is so: in the middle of the campaign, however slow the machine."""

    def wait():
        end = time.monotonic() + 90
        while not happened() and time.monotonic() < end:
            time.sleep(0.05)
        if happened():
            then()

    own = threading.Thread(target=wait)
    own.start()
    return own


def test_a_worker_killed_in_the_middle_is_retried_on_its_host(cluster, fleet, tmp_path):
    marker = tmp_path / "measuring"
    victim = cluster.host("frail", MARKED, MARKER=str(marker))
    cluster.host("good")
    cluster.wait_for(2)

    directories = []

    def replace():
        directories.append(Path(f"/proc/{int(marker.read_text())}/cwd").readlink())
        cluster.kill(victim)
        cluster.host("frail")

    thread = once(lambda: marker.exists() and marker.read_text(), replace)
    done, hosts = fleet("bench", "sizes", *SMALL, "--wait", "1.5", "--retries", "9")
    thread.join()
    assert hosts["good"]["state"] == "done"
    assert hosts["frail"]["state"] == "done", done.stderr
    assert hosts["frail"]["tries"] > 1
    # What the lost worker had started has ended with it, and left nothing.
    (directory,) = directories
    assert directory.name.startswith("wherry-fleet-")
    pid = int(marker.read_text())
    wait_until(lambda: not fleet_cluster.running(pid), "what it had started ends")
    wait_until(lambda: not directory.exists(), "its directory is gone")


def test_what_a_lost_worker_had_measured_is_not_measured_again(cluster, fleet, tmp_path):
    victim = cluster.host("frail", SECOND, MARKER=str(tmp_path / "first"))
    cluster.wait_for(1)

    def replace():
        cluster.kill(victim)
        cluster.host("frail")

    out = tmp_path / "out"
    thread = once(lambda: list(out.glob("frail-*.run.json")), replace)
    done, hosts = fleet("bench", "sizes", "small", *SMALL, "--wait", "1.5", "--retries", "9")
    thread.join()
    assert states(hosts) == {"frail": "done"}, done.stderr
    files = sorted(out.glob("frail-*.run.json"))
    told = [json.loads(f.read_text())["experiments"] for f in files]
    assert [[e["name"] for e in own if e["complete"]] for own in told] == [["sizes"], ["small"]]
    assert hosts["frail"]["file"] == str(files[1])


def test_a_lost_host_is_reported_and_a_lost_scheduler_ends_the_call(cluster, fleet, tmp_path):
    marker = tmp_path / "measuring"
    victim = cluster.host("gone", MARKED, MARKER=str(marker))
    cluster.host("good")
    cluster.wait_for(2)
    thread = once(marker.exists, lambda: cluster.kill(victim))
    done, hosts = fleet("bench", "sizes", *SMALL, "--retries", "0")
    thread.join()
    assert done.returncode == 1
    assert states(hosts) == {"good": "done", "gone": "lost"}
    marker.unlink()
    cluster.host("alpha", MARKED, MARKER=str(marker))
    cluster.wait_for(2)
    thread = once(marker.exists, lambda: cluster.kill(cluster.scheduler))
    done, hosts = fleet("bench", "sizes", *SMALL)
    thread.join()
    assert done.returncode == 1
    assert "second call goes on" in done.stderr
    # Nobody tries again: neither waiting nor measuring is how it ended.
    assert (hosts["alpha"]["state"], hosts["alpha"]["words"]) == ("lost", "the scheduler was lost")


def test_doctor_one_per_model_and_other_places(cluster, fleet, tmp_path):
    cluster.host("one")
    cluster.host("two")
    cluster.wait_for(2)
    done, hosts = fleet("doctor")
    assert done.returncode == 0
    assert set(hosts) == {"one", "two"}
    assert "cpu" in json.loads(Path(hosts["one"]["file"]).read_text())
    _, hosts = fleet("doctor", "--one-per", "model", out=f"file://{tmp_path}/url")
    assert len(hosts) == 1
    assert len(list((tmp_path / "url").iterdir())) == 1
    # "local" is fsspec's own: as any storage that is not a directory of ours.
    where = f"local://{tmp_path}/elsewhere/deep"
    _, hosts = fleet("verify", "rep_movsb", "--brief", out=where)
    assert states(hosts) == {"one": "done", "two": "done"}
    assert len(list((tmp_path / "elsewhere" / "deep").iterdir())) == 2
    _, hosts = fleet("verify", "rep_movsb", "--brief", out=where)
    assert states(hosts) == {"one": "there", "two": "there"}


def test_verify_and_tune_bring_back_what_they_write(cluster, fleet, wherry):
    cluster.host("alpha")
    cluster.wait_for(1)
    done, hosts = fleet("verify", "rep_movsb", "--brief")
    assert hosts["alpha"]["state"] == "done", done.stderr
    assert json.loads(Path(hosts["alpha"]["file"]).read_text())["failures"] == []
    done, hosts = fleet("verify", "no_such_routine")
    assert done.returncode == 1
    assert "no_such_routine" in hosts["alpha"]["words"]
    small = ("--quick", "--mix", "uniform:0-64")  # by all sizes: test_tune.py
    done, hosts = fleet("tune", *small, "--retries", "0")
    assert hosts["alpha"]["state"] == "done", done.stdout + done.stderr
    # Also where the default wins: the plan says so, and the host is not tuned again.
    checked = wherry("plan", "show", hosts["alpha"]["file"])
    assert checked.returncode == 0, checked.stderr
    _, hosts = fleet("tune", *small, "--retries", "0")
    assert hosts["alpha"]["state"] == "there"


@pytest.fixture
def namespaces():
    """Two network namespaces, each with a cable of its own to this one; yields names, and our address on each cable."""
    need_root()
    need_tool("ip", "iproute2")
    names, made = ("wherry-a", "wherry-b"), []

    def ip(*words: str) -> None:
        done = subprocess.run(["ip", *words], check=False, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no network namespaces here: ip {' '.join(words)}: {done.stderr.strip()}")

    try:
        for number, name in enumerate(names, 77):
            ip("netns", "add", name)
            made.append(name)
            ip("link", "add", f"wherry{number}", "type", "veth", "peer", "name", "up0")
            ip("link", "set", "up0", "netns", name)
            ip("addr", "add", f"192.0.2.{number * 2 + 1}/31", "dev", f"wherry{number}")
            ip("link", "set", f"wherry{number}", "up")
            within = ("netns", "exec", name, "ip")
            ip(*within, "addr", "add", f"192.0.2.{number * 2}/31", "dev", "up0")
            ip(*within, "link", "set", "up0", "up")
            ip(*within, "link", "set", "lo", "up")
        yield {name: f"192.0.2.{number * 2 + 1}" for number, name in enumerate(names, 77)}
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "delete", name], check=False)
        for number in (77, 78):
            subprocess.run(
                ["ip", "link", "delete", f"wherry{number}"], check=False, capture_output=True
            )


def test_hosts_in_network_namespaces(forks, namespaces, wherry, wherry_run, tmp_path):
    own = fleet_cluster.Cluster(forks, tmp_path, wherry_run, listen="0.0.0.0")
    try:
        for name, address in namespaces.items():
            own.host_within(name, f"tcp://{address}:{own.port}", name)
        own.wait_for(2)
        out = str(tmp_path / "out")
        call = ("fleet", "bench", "--scheduler", own.address, "--out", out, *USUAL, "sizes", *SMALL)
        done = wherry(*call)
        assert done.returncode == 0, done.stderr
        hosts = json.loads(done.stdout)["hosts"]
        assert {h["name"]: h["state"] for h in hosts} == dict.fromkeys(namespaces, "done")
        # They do not reach each other, and no result came by another way.
        asked = ("ip", "netns", "exec", "wherry-a", "ping", "-c1", "-W1", "192.0.2.156")
        with contextlib.suppress(FileNotFoundError):
            assert subprocess.run(asked, check=False, capture_output=True).returncode != 0
    finally:
        own.end()


def test_tls(forks, tmp_path, wherry, wherry_run):
    openssl = need_tool("openssl", "openssl")
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    run(
        *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
        *("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"),
        *("-keyout", key, "-out", cert),
    )
    files = ("--tls-ca-file", str(cert), "--tls-cert", str(cert), "--tls-key", str(key))
    own = fleet_cluster.Cluster(forks, tmp_path, wherry_run, files)
    brief = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "3s"}
    try:
        own.host("alpha")
        end = time.monotonic() + 120
        call = ("fleet", "doctor", "--scheduler", own.address, "--out", str(tmp_path / "out"))
        while (done := wherry(*call, *USUAL, *files)).returncode and time.monotonic() < end:
            time.sleep(0.5)
        assert done.returncode == 0, done.stderr
        plain = wherry(*call[:3], own.address.replace("tls", "tcp"), *call[4:], env=brief)
        assert plain.returncode == 1
        assert "no scheduler answers" in plain.stderr
        without = wherry(*call, env=brief)
        assert without.returncode != 0
        assert "Traceback" not in without.stderr
    finally:
        own.end()


FILES = {
    "empty.json": "",
    "list.json": "[]",
    "deep.json": "[" * 100_000,
    "run.json": '{"format": "wherry-run"}',
    "number.json": '{"address": 8786}',
}


@pytest.mark.parametrize(
    ("address", "said", "status"),
    [
        ("tcp://127.0.0.1:1", "no scheduler answers", 1),
        ("nonsense://x", "no address of a scheduler", 2),
        ("gone.json", "there is no scheduler file of that name", 2),
        *((name, "json is no scheduler file; give one that dask", 2) for name in FILES),
        ("file:/gone.json", "names no host with a port", 2),
        ("tcp://host", "give tcp://HOST:PORT", 2),
        ("tls://host:99999", "a port from 1 to 65535; give tls://HOST:PORT", 2),
    ],
)
def test_no_scheduler(wherry, tmp_path, address, said, status):
    if address in FILES:
        (tmp_path / address).write_text(FILES[address])
        address = str(tmp_path / address)
    brief = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1s"}
    done = wherry("fleet", "doctor", "--scheduler", address, "--out", str(tmp_path), env=brief)
    assert done.returncode == status
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
