"""A Dask scheduler and workers that stand for hosts, for the tests.

Importing Dask takes longer than most of them, so one process imports it, and every scheduler, worker and `wherry` is
its fork. As a program: reads one JSON object a line (command, arguments, environment, directory, patch), answers with
a pid."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from pathlib import Path

import pytest


def free_port() -> int:
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        return own.getsockname()[1]


def running(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


class Forks:
    """The process that has Dask imported already."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.calls = itertools.count()

    def begin(self, **what) -> int:
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def wherry(self, directory: Path, arguments: tuple, environment: dict[str, str]):
        """The command, as a process of its own all the same."""
        call = directory / f"call-{next(self.calls)}"
        call.mkdir()
        words = [str(word) for word in arguments]
        pid = self.begin(
            command="wherry",
            arguments=words,
            environment=environment,
            directory=str(call),
            patch="",
        )
        end = time.monotonic() + 300
        while running(pid) and time.monotonic() < end:
            time.sleep(0.01)
        if running(pid):
            os.killpg(pid, signal.SIGKILL)
            pytest.fail(f"wherry {' '.join(words)} did not end")
        out, err = ((call / name).read_text() for name in ("stdout", "stderr"))
        status = call / "status"
        code = int(status.read_text()) if status.exists() else -1
        return subprocess.CompletedProcess(["wherry", *words], code, out, err)

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait(300)
        self.process.stdout.close()


class Cluster:
    def __init__(
        self,
        forks: Forks,
        directory: Path,
        runner: Path,
        tls: tuple[str, ...] = (),
        listen: str = "127.0.0.1",
    ):
        self.forks, self.directory, self.runner, self.tls = forks, directory, runner, tls
        self.listen = listen
        self.pids: list[int] = []
        self.port = free_port()
        self.address = f"{'tls' if tls else 'tcp'}://127.0.0.1:{self.port}"
        self.scheduler = self.begin_scheduler()

    def environment(self, **more: str) -> dict[str, str]:
        return {
            "DASK_DISTRIBUTED__WORKER__DAEMON": "False",
            "WHERRY_RUN": str(self.runner),
            "REAL": str(self.runner),
            "PYTHON": sys.executable,
            **more,
        }

    def begin(self, command: str, *arguments: str, patch: str = "", **env: str) -> int:
        pid = self.forks.begin(
            command=command,
            arguments=arguments,
            environment=self.environment(**env),
            directory=str(self.directory),
            patch=patch,
        )
        self.pids.append(pid)
        return pid

    def begin_scheduler(self) -> int:
        own = self.begin(
            "scheduler",
            *("--host", self.listen, "--port", str(self.port)),
            *("--no-dashboard", "--no-jupyter", *self.tls),
            # It need not have Wherry.
            patch="import sys\nsys.modules['wherry'] = None",
        )
        end = time.monotonic() + 120
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return own
            time.sleep(0.05)
        pytest.fail((self.directory / "log").read_text()[-2000:])

    def runner_of(self, name: str, text: str) -> str:
        script = self.directory / f"runner-{name}"
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o755)
        return str(script)

    def host(self, name: str, runner: str = "", patch: str = "", **env: str) -> int:
        """A worker that is a host of its own; `patch` is Python that it runs first."""
        if runner:
            env["WHERRY_RUN"] = self.runner_of(name, runner)
        return self.begin(
            *("worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard"),
            *(self.tls or ("--host", "127.0.0.1")),
            patch=patch,
            WHERRY_FLEET_HOST=name,
            **env,
        )

    def host_within(self, namespace: str, scheduler: str, name: str) -> None:
        """One in a network namespace, which a fork would have to enter by a call that Python 3.10 lacks."""
        with (self.directory / "log").open("ab") as log:
            process = subprocess.Popen(
                [
                    *("ip", "netns", "exec", namespace, sys.executable, "-m"),
                    *("distributed.cli.dask_worker", scheduler, "--nthreads", "1", "--no-nanny"),
                    "--no-dashboard",
                ],
                env={**os.environ, **self.environment(WHERRY_FLEET_HOST=name)},
                cwd=self.directory,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.pids.append(process.pid)

    def wait_for(self, workers: int) -> None:
        from distributed import Client

        with Client(self.address, timeout=300, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=300)

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)

    def end(self) -> None:
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        end = time.monotonic() + 90
        while any(map(running, self.pids)) and time.monotonic() < end:
            time.sleep(0.02)
        self.pids.clear()


def _become(what: dict) -> None:
    """In the child."""
    os.setsid()
    os.chdir(what["directory"])
    os.environ.update(what["environment"])
    names = ("stdout", "stderr") if what["command"] == "wherry" else ("log", "log")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for target, name in enumerate(names, 1):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), target)
    import dask
    from distributed.cli import dask_scheduler, dask_worker

    dask.config.refresh()
    if what["command"] == "wherry":
        _wherry(what["arguments"])
        return
    exec(what["patch"], {})
    main = {"scheduler": dask_scheduler, "worker": dask_worker}[what["command"]].main
    main(what["arguments"], standalone_mode=False)


def _wherry(arguments: list[str]) -> None:
    status = -1
    try:
        from wherry import cli

        cli.main(arguments)
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    Path("status").write_text(str(status))


def _serve() -> None:
    from distributed.cli import dask_scheduler, dask_worker  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    pids = []
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                _become(json.loads(line))
            finally:
                os._exit(0)
        pids.append(pid)
        print(pid, flush=True)
    # The tests have ended, however they did.
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    _serve()
