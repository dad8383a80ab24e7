"""The experiments on whole systems given what they cannot work with: one line says what is wrong, nothing hangs, and
neither processes, namespaces, devices nor files are left behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import below, is_runner, is_there, need_namespaces, need_root, need_tool, wait_until
from stripe_files import MIB, loops, members
from systems import system
from test_network import cells, reasons
from wherry import runfile
from wherry.errors import FailedError
from wherry.striping import scratch
from wherry.striping.place import Place

NAMES = ("switch", "network", "stripes", "latency", "loaded")
ROW = "id=1 op=network routines=aligned,iperf3 size=4096 rounds=2 batch_us=1000\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("switch --turns 0", "0 is not in the range"),
        ("switch --turns -3", "-3 is not in the range"),
        ("switch --turns 100000001", "100000001 is not in the range"),
        ("switch --turns nan", "'nan' is not a whole number"),
        ("switch --turns 1e4", "'1e4' is not a whole number"),
        ("switch --rounds 0", "0 is not in the range"),
        ("switch --processes many", "'many' is not a whole number"),
        ("switch --size 64", "switch does not take --size"),
        ("switch --routine libc", "switch does not take --routine"),
        ("network --size 0", "'0' is not a positive number of bytes"),
        ("network --size -5", "'-5' is not a positive number of bytes"),
        ("network --size nan", "'nan' is not a size"),
        ("network --size 512,65537", "--size 65537: messages of network are 1 to 64K bytes"),
        ("network --size=", "--size is empty"),
        ("network --turns 9", "network does not take --turns; switch does"),
        ("network --peer x=none.so", "peer x: cannot open"),
        ("network --hang-limit nan", "--hang-limit nan: give a number"),
        ("stripes --disks 0", "--disks 0: give numbers from 1 to 9"),
        ("stripes --disks 1.5", "--disks 1.5: give numbers from 1 to 9"),
        ("stripes --disks=", "--disks is empty"),
        ("stripes --size 4G", "a block of a stripe is a power of two from 4K to 1M"),
        ("stripes --scratch none", "--scratch none is no directory"),
        ("stripes --scratch=", "--scratch is empty"),
        ("stripes --members none", "member 1 (HERE/none) is missing"),
        ("stripes --members=", "--members is empty"),
        ("stripes --turns 9", "stripes does not take --turns; switch does"),
    ],
)
def test_options(wherry, tmp_path: Path, words: str, said: str):
    name, *options = words.split()
    done = wherry("bench", name, *options, "--save", "run.json", cwd=tmp_path, timeout=300)
    assert done.returncode == 2 and done.stdout == "", done.stdout
    assert said.replace("HERE", str(tmp_path)) in done.stderr and done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_nowhere_to_save(wherry, tmp_path: Path, name: str):
    (tmp_path / "file").touch()
    for path in ("file/run.json", "."):
        done = wherry("bench", name, "--quick", "--save", path, cwd=tmp_path, timeout=300)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
        assert "stripes: writes" not in done.stderr, "before scratch is written"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def start(wherry_run: Path, name: str, directory: Path, *options: str) -> subprocess.Popen:
    words = (name, *options, "--save", directory / f"{name}.json")
    if name == "stripes":
        words += ("--scratch", directory)
    return subprocess.Popen(
        [sys.executable, "-m", "wherry", "bench", *words],
        env={**os.environ, "WHERRY_RUN": str(wherry_run)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("name", ["switch", "network"])
def test_ctrl_c(wherry_run: Path, disk: Path, name: str):
    """What was measured is kept, and all that was started has gone."""
    devices = set(Path("/sys/class/net").iterdir())
    options = ("--quick", "--rounds", "1000") if name == "switch" else ()
    own = start(wherry_run, name, disk, *options)
    found: list[int] = []

    def busy() -> bool:
        with contextlib.suppress(OSError):
            found[:] = filter(is_runner, below(own.pid))
        return len(found) >= 2

    wait_until(busy, "the two sides are at work")
    time.sleep(0.3)
    own.send_signal(signal.SIGINT)
    out, said = own.communicate(timeout=300)
    assert own.returncode == 130 and said.count("\n") == 1, said
    assert "interrupted" in said and "Traceback" not in out + said
    wait_until(lambda: not any(map(is_there, found)), "those that were started end")
    assert set(Path("/sys/class/net").iterdir()) == devices
    assert {path.name for path in disk.iterdir()} <= {f"{name}.json"}


def test_two_at_once(wherry_run: Path, disk: Path):
    """Each has namespaces, ports and scratch of its own."""
    places = [disk / "a", disk / "b"]
    for place in places:
        place.mkdir()
    short = ("--quick", "--processes", "1", "--rounds", "1")
    cases = {"network": ("--size", "4K"), "stripes": ("--size", "64K", "--disks", "1,2")}
    for name, words in cases.items():
        many = [start(wherry_run, name, place, *short, *words) for place in places]
        for own, place in zip(many, places, strict=True):
            out, said = own.communicate(timeout=300)
            assert own.returncode == 0, out[-1000:] + said
            run = runfile.read(place / f"{name}.json")
            assert run["cells"] and not [p for p in run["problems"] if p["kind"] != "skip"]
    assert not loops(disk)
    assert sorted(path.name for place in places for path in place.iterdir()) == sorted(
        [f"{name}.json" for name in cases] * 2
    )


# ---- network ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exec sleep 1000", "iperf3 does not end by itself"),
        ("echo '{\"end\": 7}'", "iperf3 gives no figures"),
        ("exit 3", "iperf3 gives no figures"),
    ],
)
def test_an_iperf3_that_does_not_work(
    wherry_run: Path, tmp_path: Path, monkeypatch, script: str, said: str
):
    fake = tmp_path / "iperf3"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    began = time.monotonic()
    events, _ = system(wherry_run, ROW)
    assert reasons(events) == {"iperf3": said} and "aligned" in cells(events)
    assert time.monotonic() - began < 250


TAKEN = """
import socket, subprocess, sys
open("/proc/sys/net/ipv4/ip_local_port_range", "w").write("40000 40001")
held = []
for port in (40000, 40001):
    held.append(socket.socket())
    held[-1].bind(("127.0.0.1", port))
    held[-1].listen()
sys.exit(subprocess.run([sys.argv[1], "system"]).returncode)
"""


@pytest.mark.parametrize(
    ("before", "program", "said"),
    [
        ("true", 'exec "$0" system', "loopback device, which has to be up: Network is unreach"),
        ("ip link set lo up", 'exec "$1" -c "$2" "$0"', "listening on a free port: Address alre"),
    ],
    ids=["loopback-down", "ports-taken"],
)
def test_a_network_that_cannot_be_used(wherry_run: Path, before: str, program: str, said: str):
    unshare = need_namespaces("-n")
    need_tool("ip", "iproute2")
    done = subprocess.run(
        [unshare, "-n", "sh", "-c", f"{before} && {program}", wherry_run, sys.executable, TAKEN],
        input=ROW,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert said in done.stdout and '"cell"' not in done.stdout, done.stdout + done.stderr


# ---- stripes ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def tmpfs(place: Path, options: str) -> Iterator[Path]:
    need_root()
    place.mkdir()
    done = subprocess.run(
        [need_tool("mount", "mount"), "-t", "tmpfs", "-o", options, "wherry-test", place],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        pytest.skip(f"no tmpfs can be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        ("size=20M", 1, "too little for scratch"),
        ("size=1M,ro", 2, "cannot be written to; give another directory"),
    ],
)
def test_scratch_without_room(wherry, tmp_path: Path, options: str, status: int, said: str):
    with tmpfs(tmp_path / "small", options) as small:
        saved = tmp_path / "run.json"
        done = wherry("bench", "stripes", "--scratch", small, "--save", saved, timeout=300)
        assert done.returncode == status and done.stderr.count("\n") == 1
        assert said in done.stderr and str(small) in done.stderr and not saved.exists()


@pytest.mark.parametrize("raid", [(), ("--raid-bytes", str(64 * MIB))], ids=["members", "raid"])
def test_room_that_ends_while_scratch_is_written(wherry_run: Path, tmp_path: Path, raid: tuple):
    """Somebody else took it since it was looked at."""
    with tmpfs(tmp_path / "small", "size=12M") as small:
        size = MIB if raid else 4 * MIB
        done = subprocess.run(
            [wherry_run, "hold", "--directory", small, "--bytes", str(size), *raid],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        if raid:
            assert done.returncode == 0 and '"kind":"btrfs","reason":"' in done.stdout, done.stdout
        else:
            assert done.returncode == 1 and "No space left on device" in done.stderr
            assert done.stderr.count("\n") == 1
        assert not list(small.iterdir()) and not loops(small)
        wait_until(lambda: shutil.disk_usage(small).used < MIB, "the room is given back")


def test_scratch_is_announced_before_it_is_written(monkeypatch, capfd, tmp_path: Path):
    """Also where nothing comes of it."""
    monkeypatch.setattr(scratch.runner, "path", lambda: shutil.which("false"))
    with (
        pytest.raises(FailedError, match="scratch could not be made: its keeper"),
        scratch.held(Place(), tmp_path, quick=True),
    ):
        pytest.fail("there is no scratch")
    announced = capfd.readouterr().err
    assert announced.startswith("wherry: stripes: writes ") and str(tmp_path) in announced
    assert "gone at the end" in announced and not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["itself", "link", "hardlink"])
def test_a_member_given_twice(wherry, tmp_path: Path, kind: str):
    """The second would be read from the page cache."""
    paths = members(tmp_path, 2)
    again = tmp_path / "again"
    if kind == "itself":
        again = paths[0]
    elif kind == "link":
        again.symlink_to(paths[0])
    else:
        again.hardlink_to(paths[0])
    words = [word for path in (*paths, again) for word in ("--members", path)]
    done = wherry("bench", "stripes", *words, "--save", tmp_path / "run.json", timeout=300)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert f"member 3 ({again}) is member 1 once more" in done.stderr
