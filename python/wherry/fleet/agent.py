"""What runs on a host, inside a Dask worker: it tells what the host is, and starts the ordinary `wherry` command there.

A worker calls these functions by name, so that a host without Wherry, or with one that has no fleet, says just that.
Only what `WORK` names is ever started."""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import hashlib
import json
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
# Of a run file under way, packed; it passes through the scheduler.
LARGEST_PART = 16 << 20
QUEUED = 30.0
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
        "load": _load() / (os.cpu_count() or 1),
        "model": None,
        "lacks": None,
    }
    if found["arch"] == "x86_64" and found["system"] == "Linux":
        try:
            from wherry import runner

            found["model"] = _model()
            # One that starts tells the CPU; what was installed is known without it.
            runner.cpu()
            if (own := runner.version()) != found["wherry"]:
                found["lacks"] = f"{runner.path()} there is of version {own}"
        except Exception as error:
            found["lacks"] = " ".join(str(error).split())[:300]
    return found


def _model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown"


def _load() -> float:
    """Of the last minute; none where a sandbox does not tell."""
    try:
        return os.getloadavg()[0]
    except OSError:
        return 0.0


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
        except OSError:
            pass  # a file system that has no locks
        yield True
    finally:
        os.close(descriptor)


# Started with the campaign in a session of its own: when the worker dies, the campaign ends too, the host is quiet, and
# the directory goes that the worker cannot remove any more.
_KEEPER = """
import os, shutil, signal, subprocess, sys, time
parent = int(sys.argv[1])
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
child = subprocess.Popen(sys.argv[2:])
def end(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child.send_signal(signal.SIGINT)
    try:
        child.wait(10)
    except subprocess.TimeoutExpired:
        pass
    if os.getppid() != parent:
        shutil.rmtree(os.getcwd(), ignore_errors=True)
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


class _Ways:
    """To whoever called. They are found in the thread of the task, and used in another; the work goes on without."""

    def __init__(self, job: dict):
        self._topic, self._worker, self._queue = job["topic"], None, None
        with contextlib.suppress(Exception):
            import distributed

            self._worker = distributed.get_worker()
            if job["experiments"] > 1:
                self._queue = distributed.Queue(self._topic, client=distributed.get_client())

    def tell(self, words: dict) -> None:
        with contextlib.suppress(Exception):
            self._worker.log_event(self._topic, words)

    def send(self, job: dict, data: bytes) -> None:
        """The run file so far: what was measured is not lost with this worker."""
        with contextlib.suppress(Exception):
            packed = gzip.compress(data, 1)
            if len(packed) <= LARGEST_PART:
                self._queue.put(
                    {"id": job["id"], "try": job["try"], "data": packed}, timeout=QUEUED
                )

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._queue.close()


def _watch(job: dict, run: Path, ways: _Ways, done: threading.Event) -> None:
    """The run file is saved after each experiment: how many are complete in it is the progress."""
    began, seen, saved = time.monotonic(), -1, None
    while not done.wait(1):
        count = max(seen, 0)
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            if run.exists() and (stamp := run.stat().st_mtime_ns) != saved:
                saved, data = stamp, run.read_bytes()
                count = sum(e["complete"] is True for e in json.loads(data)["experiments"])
                # What is whole comes back as the answer.
                if max(seen, 0) < count < job["experiments"]:
                    ways.send(job, data)
        if count != seen:
            seen = count
            words = {"id": job["id"], "experiments": count, "seconds": time.monotonic() - began}
            ways.tell(words)


def work(job: dict) -> dict:
    """Runs one command here; `state` tells how it ended: done, failed, busy, hung."""
    kind, ident = job["kind"], host_id()
    if kind not in WORK:
        return {"state": "failed", "words": f"there is no work '{kind}'"}
    if ident != job["id"]:
        return {"state": "lost", "words": "another host has its address now"}
    if (load := _load()) / (os.cpu_count() or 1) > job["busy_load"]:
        return {"state": "busy", "words": f"load {load:.1f} on {os.cpu_count()} CPUs"}
    with _alone(ident) as ours:
        if not ours:
            return {"state": "busy", "words": "another campaign of a fleet is under way on it"}
        with tempfile.TemporaryDirectory(prefix="wherry-fleet-") as directory:
            return _run(job, Path(directory), kind)


def _arguments(job: dict, directory: Path, kind: str) -> list[str]:
    out = str(directory / (WORK[kind] or ""))
    option = {"bench": ["--save", out], "tune": ["-o", out]}.get(kind, ["--json"])
    if "--glibc" in job["arguments"]:
        option = ["--json"]
    return [sys.executable, "-m", "wherry", kind, *job["arguments"], *option]


def _run(job: dict, directory: Path, kind: str) -> dict:
    out, words = directory / "stdout", directory / "stderr"
    run = directory / (WORK[kind] or "stdout")
    if "--glibc" in job["arguments"]:
        run = out
    began, done, ways = time.monotonic(), threading.Event(), _Ways(job)
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
        watcher = threading.Thread(target=_watch, args=(job, run, ways, done), daemon=True)
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
            ways.close()
    said = words.read_bytes()[-LARGEST_WORDS:].decode(errors="replace").strip()
    answer = {"seconds": time.monotonic() - began, "status": status, "words": said.split("\n")[-1]}
    if run.exists() and 0 < run.stat().st_size <= LARGEST:
        data = run.read_bytes()
        return answer | {"state": "done", "data": data, "sha256": hashlib.sha256(data).hexdigest()}
    return answer | {"state": "failed", "words": answer["words"] or f"ended with status {status}"}
