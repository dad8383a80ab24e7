"""A computer with AVX-512 where there is none: Bochs, which interprets every instruction, boots a small Linux whose
only file system is what a test puts there. A quarter of a minute until that runs, then some 100 times slower."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import need_tool, run

# tools/extras puts it there: a kernel out of a package that it does not install.
KERNEL = Path("/usr/local/share/wherry/vmlinuz")
ISOLINUX = Path("/usr/lib/ISOLINUX/isolinux.bin")
LDLINUX = Path("/usr/lib/syslinux/modules/bios/ldlinux.c32")

# Bochs 2.7 gives Linux a wrong size for the compacted form of the vector registers: xsavec and xsaves are hidden.
BOOT = """default tests
label tests
 kernel vmlinuz
 append initrd=initrd console=ttyS0 quiet nokaslr mitigations=off nosmp noapic no_timer_check {more}
""".format(
    more="tsc=reliable lpj=1000000 clearcpuid=321,323 "
    # Nothing here has a use for trials of ciphers, ACPI and types for BPF, the most of the kernel's start.
    "cryptomgr.notests acpi=off initcall_blacklist=btf_vmlinux_init"
)
COMPUTER = """cpu: model=corei7_skylake_x, count=1, ips=100000000
memory: guest=768, host=768
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=cdrom, path=boot.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=serial
display_library: term
log: bochs.log
panic: action=fatal
error: action=ignore
info: action=ignore
debug: action=ignore
clock: sync=none
"""
INIT = """#!/bin/busybox sh
busybox() { /bin/busybox "$@"; }
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
busybox mount -t tmpfs tmp /tmp
exec > /dev/ttyS0 2>&1 < /dev/null
busybox dmesg -n 1
busybox grep -q avx512bw /proc/cpuinfo && echo "@ has AVX-512"
%s
echo "@ end"
busybox sleep 1000000
"""
END = b"@ end"


@dataclass(frozen=True)
class Done:
    """What a command in the computer came to."""

    status: int
    output: str


def need_emulator() -> None:
    for tool, package in (
        ("bochs", "bochs, bochs-term, bochsbios, vgabios"),
        ("genisoimage", "genisoimage"),
        ("cpio", "cpio"),
        ("busybox", "busybox-static"),
    ):
        need_tool(tool, package)
    for file, package in (
        (ISOLINUX, "isolinux"),
        (LDLINUX, "syslinux-common"),
        (KERNEL, "linux-image-cloud-amd64, of which make extras takes the kernel alone"),
    ):
        if not file.exists():
            pytest.skip(f"{file} is missing (Debian package {package}; make extras)")


def _libraries(program: Path) -> set[Path]:
    found = re.findall(r"(/\S+) \(0x", run("ldd", program).stdout)
    return {Path(path) for path in found}


def compute(
    place: Path, programs: Mapping[str, Path], commands: Mapping[str, str], seconds: float
) -> dict[str, Done]:
    """Boots with `programs` in /bin, by these names, runs each command of the shell, and is switched off. Ends after so
    many seconds with what there is until then. What has no entry in the answer did not end."""
    tree = place / "tree"
    for name in ("bin", "proc", "sys", "dev", "tmp"):
        (tree / name).mkdir(parents=True)
    shutil.copy2(shutil.which("busybox"), tree / "bin/busybox")
    for name, program in programs.items():
        shutil.copy2(program, tree / "bin" / name)
    for library in set().union(*map(_libraries, programs.values())):
        target = tree / library.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(library.resolve(), target)
    # The serial line is a slow one, a quarter of a second for each line of text: it gets what tells, at the end.
    lines = [
        f'echo "@ {name}"\n{command} > /said 2>&1\nstatus=$?\n'
        f"if [ $status != 0 ] || busybox grep -q lacks /said; then busybox tail -n 40 /said; fi\n"
        f'echo "@ status $status"'
        for name, command in commands.items()
    ]
    init = tree / "init"
    init.write_text(INIT % "\n".join(lines))
    init.chmod(0o755)

    image = place / "image"
    image.mkdir()
    names = "\n".join(str(path.relative_to(tree)) for path in sorted(tree.rglob("*")))
    with (image / "initrd").open("wb") as initrd:
        subprocess.run(
            ["cpio", "--quiet", "-o", "-H", "newc"],
            cwd=tree,
            input=names.encode(),
            stdout=initrd,
            check=True,
        )
    shutil.copy(KERNEL, image / "vmlinuz")
    shutil.copy(ISOLINUX, image)
    shutil.copy(LDLINUX, image)
    (image / "isolinux.cfg").write_text(BOOT)
    boot = "-b isolinux.bin -c boot.cat -no-emul-boot -boot-load-size 4 -boot-info-table"
    run("genisoimage", "-quiet", "-o", place / "boot.iso", *boot.split(), image)

    (place / "bochsrc").write_text(COMPUTER)
    (place / "go").write_text("c\n")  # Debian's Bochs is one with a debugger, which waits
    _bochs(place, seconds)
    serial = place / "serial"
    return _read(serial.read_text(errors="replace") if serial.exists() else "")


def _bochs(place: Path, seconds: float) -> None:
    """Its screen is a terminal, which has to be there and read."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        ["bochs", "-q", "-f", "bochsrc", "-rc", "go"],
        cwd=place,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
        start_new_session=True,
    )
    os.close(theirs)

    def drain() -> None:
        try:
            while os.read(ours, 1 << 16):
                pass
        except OSError:  # the other end is closed
            pass

    reader = threading.Thread(target=drain)
    reader.start()
    end = time.monotonic() + seconds
    try:
        # Its own way to power off takes twenty seconds of ours.
        while process.poll() is None and time.monotonic() < end and not _ended(place):
            time.sleep(0.2)
    finally:
        process.kill()
        process.wait()
        reader.join(10)
        os.close(ours)


def _ended(place: Path) -> bool:
    serial = place / "serial"
    return serial.exists() and END in serial.read_bytes()


def _read(serial: str) -> dict[str, Done]:
    found: dict[str, Done] = {}
    name, lines = "", []
    for line in serial.replace("\r", "").splitlines():
        if not line.startswith("@ "):
            lines.append(line)
        elif line.startswith("@ status "):
            found[name] = Done(int(line.split()[-1]), "\n".join(lines))
        else:
            name, lines = line[2:], []
            if name in ("has AVX-512", "end"):
                found[name] = Done(0, "")
    return found
