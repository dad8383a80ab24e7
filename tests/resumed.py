"""Runs that are interrupted or killed, by the runner that measures nothing: what tests of going on share."""

import json
import os
import signal
import subprocess
import sys

from conftest import FAKE, rows_in, wait_until, workbench

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


def start(directory, *more, slow=0.1, stderr=subprocess.DEVNULL):
    """A run beside a file that may be its peer."""
    (directory / "peer.so").write_bytes(b"peer")
    return subprocess.Popen(
        [sys.executable, "-m", "wherry", "bench", *more],
        cwd=directory,
        env=environment(directory, slow),
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        text=True,
    )


def interrupt(directory, *more):
    """A run of two experiments that is interrupted in the first or second, after some rows."""
    asked = (*ASKED, "--peer", "slow=peer.so", "--save", "run.json", *more)
    process = start(directory, *asked, slow=0.05, stderr=subprocess.PIPE)
    wait_for_rows(process, directory / "run.json.journal", 3)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 130, said
    return read(directory / "run.json")


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
