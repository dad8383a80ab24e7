"""What runs on a host, inside a Dask worker: it tells what the host is, and starts the ordinary `wherry` command there.

A worker calls these functions by name, so that a host without Wherry, or with one that has no fleet, says just that.
Only what `WORK` names is ever started."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

# Bound on what is sent back: a run file of any campaign is smaller by far.
LARGEST = 64 << 20
LARGEST_WORDS = 4000
WORK = {"bench": "run.json", "verify": None, "tune": "plan.toml", "doctor": None}


def host_id() -> str:
    """Of the running system, not of an address: two workers of one machine, or two containers on it, have one."""
    told = os.environ.get("WHERRY_FLEET_HOST")
    mark = told or Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return hashlib.sha256(mark.encode()).hexdigest()[:16]


def probe() -> dict:
    """What the client decides by. Errors are words, not exceptions: they would come back without their host."""
    import wherry

    found = {
        "id": host_id(),
        "host": os.environ.get("WHERRY_FLEET_HOST") or socket.gethostname(),
        "arch": platform.machine(),
        "system": platform.system(),
        "python": sys.executable,
        "wherry": wherry.version(),
        "load": os.getloadavg()[0] / (os.cpu_count() or 1),
        "model": None,
        "lacks": None,
    }
    if found["arch"] == "x86_64" and found["system"] == "Linux":
        try:
            from wherry import runner

            found["model"] = _model()
            runner.cpu()
            if found["wherry"] == "unknown":
                found["lacks"] = "wherry-run does not start there"
        except Exception as error:
            found["lacks"] = " ".join(str(error).split())[:300]
    return found


def _model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown"


@contextlib.contextmanager
def _alone(ident: str):
    """One campaign on a host at a time, whoever started the other. Yields whether it is ours."""
    path = Path(tempfile.gettempdir()) / f"wherry-fleet-{os.getuid()}-{ident}.lock"
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(descriptor)


# Started with the campaign in a session of its own: when the worker dies, the campaign ends too, and the host is quiet.
_KEEPER = """
import os, signal, subprocess, sys, time
parent = int(sys.argv[1])
child = subprocess.Popen(sys.argv[2:])
def end(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child.send_signal(signal.SIGINT)
    try:
        child.wait(10)
    except subprocess.TimeoutExpired:
        pass
    os.killpg(0, signal.SIGKILL)
signal.signal(signal.SIGTERM, end)
while child.poll() is None:
    if os.getppid() != parent:
        end()
    time.sleep(0.2)
sys.exit(child.returncode if child.returncode >= 0 else 128 - child.returncode)
"""


def _stop(process: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        process.wait(12)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _tell(topic: str, words: dict) -> None:
    with contextlib.suppress(Exception):  # progress is a courtesy; the work goes on without it
        from distributed import get_worker

        get_worker().log_event(topic, words)


def _watch(topic: str, run: Path, who: dict, done: threading.Event) -> None:
    """The run file is saved after each experiment: how many are in it is the progress."""
    import json

    began, seen = time.monotonic(), -1
    while not done.wait(1):
        count = 0
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            if run.exists():
                count = len(json.loads(run.read_bytes())["experiments"])
        if count != seen:
            seen = count
            _tell(topic, who | {"experiments": count, "seconds": time.monotonic() - began})


def work(job: dict) -> dict:
    """Runs one command here; `state` tells how it ended: done, failed, busy, hung."""
    kind, ident = job["kind"], host_id()
    if kind not in WORK:
        return {"state": "failed", "words": f"there is no work '{kind}'"}
    if ident != job["id"]:
        return {"state": "lost", "words": "another host has its address now"}
    if os.getloadavg()[0] / (os.cpu_count() or 1) > job["busy_load"]:
        return {"state": "busy", "words": f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"}
    with _alone(ident) as ours:
        if not ours:
            return {"state": "busy", "words": "another campaign of a fleet is under way on it"}
        with tempfile.TemporaryDirectory(prefix="wherry-fleet-") as directory:
            return _run(job, Path(directory), kind)


def _arguments(job: dict, directory: Path, kind: str) -> list[str]:
    out = str(directory / (WORK[kind] or ""))
    option = {"bench": ["--save", out], "tune": ["-o", out]}.get(kind, ["--json"])
    return [sys.executable, "-m", "wherry", kind, *job["arguments"], *option]


def _run(job: dict, directory: Path, kind: str) -> dict:
    out, words = directory / "stdout", directory / "stderr"
    run = directory / (WORK[kind] or "stdout")
    began, done = time.monotonic(), threading.Event()
    with out.open("wb") as stdout, words.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-c", _KEEPER, str(os.getpid()), *_arguments(job, directory, kind)],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            cwd=directory,
            start_new_session=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        topic, who = job["topic"], {"id": job["id"]}
        watcher = threading.Thread(target=_watch, args=(topic, run, who, done), daemon=True)
        watcher.start()
        try:
            status = process.wait(job["time_limit"])
        except subprocess.TimeoutExpired:
            _stop(process)
            said = f"took longer than {job['time_limit']:g} s, and was stopped"
            return {"state": "hung", "words": said}
        finally:
            done.set()
            if process.poll() is None:
                _stop(process)
            watcher.join()
    said = words.read_bytes()[-LARGEST_WORDS:].decode(errors="replace").strip()
    answer = {"seconds": time.monotonic() - began, "status": status, "words": said.split("\n")[-1]}
    if run.exists() and 0 < run.stat().st_size <= LARGEST:
        data = run.read_bytes()
        return answer | {"state": "done", "data": data, "sha256": hashlib.sha256(data).hexdigest()}
    if kind == "tune" and status == 0:
        last = out.read_bytes()[-LARGEST_WORDS:].decode(errors="replace").strip().split("\n")[-1]
        return answer | {"state": "done", "data": b"", "words": last or "the default is right"}
    return answer | {"state": "failed", "words": answer["words"] or f"ended with status {status}"}
