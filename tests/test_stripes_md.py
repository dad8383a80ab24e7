"""An md RAID-0 under the experiment `stripes`. Kernels without md are common where tests run: a Linux that runs as a
program (User Mode Linux) has it, and sees this system's files."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from conftest import need_tool
from stripe_files import MIB
from systems import cells

# A file system of its own on a file in memory: pages of a tmpfs are never cold.
INIT = r"""#!/bin/sh
exec > {log} 2>&1
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs -o size=1000M memory /mnt
insmod {modules}/drivers/block/loop.ko
truncate -s 400M /mnt/disk
mkfs.ext4 -q /mnt/disk
mkdir /mnt/scratch
mount -o loop /mnt/disk /mnt/scratch
hold="{runner} hold --directory /mnt/scratch --members 0 --md-bytes {bytes} --seed 7"
left() {{
    sleep 0.1
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        grep -q ^md /proc/mdstat || losetup | grep -q scratch || break
        sleep 0.1
    done
    echo "# $1: $(grep -c ^md /proc/mdstat) $(losetup | grep -c scratch) $(ls -A /mnt/scratch | grep -vc lost)"
}}
echo "# without"
$hold < /dev/null
insmod {modules}/drivers/md/md-mod.ko
insmod {modules}/drivers/md/raid0.ko
mkfifo /mnt/in
exec 7<> /mnt/in
$hold < /mnt/in 7<&- > /mnt/out &
holder=$!
while ! grep -q ready /mnt/out; do sleep 0.05; done
cat /mnt/out /proc/mdstat
file=$(sed -n 's/.*"file":"\([^"]*\)".*/\1/p' /mnt/out)
below=$(sed -n 's/.*"beneath":.\([^]]*\)].*/\1/p' /mnt/out | tr -d '"')
row="op=stripes raid=md files=$file beneath=$below rounds=2 batch_us=2000"
{runner} system << EOF
id=1 $row routines=read,direct,touch,wherry,nofault cache=cold content=7
id=2 $row routines=read,wherry content=7
EOF
echo "# other"
echo "id=3 $row routines=read content=8" | {runner} system
kill -KILL $holder
left killed
$hold < /dev/null > /mnt/out
left ended
echo o > /proc/sysrq-trigger
"""


def uml() -> tuple[str, Path]:
    program = need_tool("linux.uml", "user-mode-linux")
    found = sorted(Path("/usr/lib/uml/modules").glob("*/kernel"))
    if not found or not (found[-1] / "drivers/md/raid0.ko").exists():
        pytest.skip("this User Mode Linux has no md")
    need_tool("mkfs.ext4", "e2fsprogs")
    need_tool("insmod", "kmod")
    return program, found[-1]


def test_md_as_the_kernel_has_it(wherry_run: Path, tmp_path: Path):
    program, modules = uml()
    size = 36 * MIB
    init, log = tmp_path / "init", tmp_path / "log"
    init.write_text(INIT.format(log=log, modules=modules, runner=wherry_run, bytes=size))
    init.chmod(0o755)
    words = ["mem=1500M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw", "quiet"]
    done = subprocess.run(
        [program, *words, f"init={init}", "con=null", "con0=fd:0,fd:1"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if not log.exists():
        pytest.skip(
            f"User Mode Linux does not start here: {done.stdout[-200:]}{done.stderr[-200:]}"
        )
    text = log.read_text()
    lines = text.splitlines()
    events = [json.loads(line) for line in lines if line.startswith("{")]
    raids = [e for e in events if e["event"] == "raid"]
    assert "this kernel has no md, or its module is not loaded" in raids[0]["reason"], text
    assert raids[1]["reason"] is None and raids[1]["bytes"] == size, text
    assert "raid0 loop" in text and "64k chunks" in text
    found = cells(events)
    assert {name for row, name in found if row == 1} >= {"read", "touch", "wherry", "nofault"}, text
    assert {name for row, name in found if row == 2} == {"read", "wherry"}, text
    skips = {e["routine"] for e in events if e["event"] == "skip"}
    assert skips <= {"direct"}, text
    wrong = [(e["id"], e["routine"]) for e in events if e["event"] in ("wrong", "broken", "crash")]
    assert wrong == [(3, "read")], "other content is seen, and nothing else"
    assert "# killed: 0 0 0" in lines and "# ended: 0 0 0" in lines, text
