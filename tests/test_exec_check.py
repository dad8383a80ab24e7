"""`wherry exec` where it cannot help: a plain word why, before the program and by `--check`."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, need_namespaces, need_root, need_tool, run

sys.path.insert(0, str(ROOT / "python"))
from test_exec import compiled, dropin, source
from wherry import commands, libctunables, preloading
from wherry.errors import FailedError

__all__ = ["dropin", "source"]  # fixtures


def refused(wherry, program: Path, *said: str) -> None:
    """--check says no and why; without it the program runs as it is, and one line says so."""
    checked = wherry("exec", "--check", program)
    assert checked.returncode == 1, checked.stdout
    for words in said:
        assert words in checked.stdout
    as_json = json.loads(wherry("exec", "--check", "--json", program).stdout)
    assert as_json["helps"] is False
    done = wherry("exec", "--", program)
    assert re.fullmatch(
        rf"wherry exec: {re.escape(str(program))} runs untouched: .*\n", done.stderr
    )
    for words in said:
        assert words in done.stderr


def test_static_programs(wherry, dropin, source):
    refused(wherry, compiled(source, "-static", "-no-pie"), "linked statically (static)")
    refused(wherry, compiled(source, "-static-pie"), "linked statically (static-pie)")


def test_a_static_program_runs_untouched(wherry, dropin, source):
    source.write_text(
        "#include <stdio.h>\n#include <stdlib.h>\n"
        'int main(void) { puts(getenv("LD_PRELOAD") ? "touched" : "untouched"); return 9; }\n'
    )
    done = wherry("exec", "--", compiled(source, "-static"))
    assert (done.stdout, done.returncode) == ("untouched\n", 9)


SECURE = (
    "#include <stdio.h>\n#include <stdlib.h>\n#include <sys/auxv.h>\nint main(void)"
    ' { printf("%lu %s", getauxval(AT_SECURE), getenv("LD_PRELOAD") ? "kept" : "dropped"); }\n'
)


@pytest.mark.parametrize(("bits", "word"), [(0o4755, "set-user-ID"), (0o2755, "set-group-ID")])
def test_privileged_programs(wherry, dropin, source, bits, word):
    source.write_text(SECURE)
    program = compiled(source)
    program.chmod(bits)
    # It gives its owner nothing, so the loader serves it as any other.
    own = wherry("exec", "--", program)
    assert (own.stdout, own.stderr) == ("0 kept", "")
    need_root()
    os.chown(program, 65534, 65534)
    program.chmod(bits)
    refused(wherry, program, word)
    assert wherry("exec", "--", program).stdout.startswith("1 ")


def privileged(source: Path) -> Path:
    source.write_text(SECURE)
    program = compiled(source)
    os.chown(program, 65534, 65534)
    program.chmod(0o6755)
    return program


def test_where_no_privileges_can_be_gained(wherry_run, dropin, source):
    """In a process that may gain none the loader serves such programs."""
    need_root()
    setpriv = need_tool("setpriv", "util-linux")
    words = (sys.executable, "-m", "wherry", "exec", "--")
    done = run(setpriv, "--no-new-privs", *words, privileged(source))
    assert (done.stdout, done.stderr) == ("0 kept", "")


def test_where_no_privileges_are_given(wherry_run, dropin, source, tmp_path):
    """On a file system that gives none, too."""
    unshare = need_namespaces("-m")
    program, words = privileged(source), (sys.executable, "-m", "wherry", "exec", "--")
    there = tmp_path / "there"
    there.mkdir()
    shell = shlex.join(map(str, [*words, there / "p"]))
    shell = f"mount -t tmpfs -o nosuid none {there} && cp -p {program} {there}/p && {shell}"
    done = run(unshare, "-m", "sh", "-c", shell)
    assert (done.stdout, done.stderr) == ("0 kept", "")


def test_file_capabilities(wherry, dropin, source, monkeypatch):
    need_root()
    program = compiled(source)
    try:
        os.setxattr(
            program, "security.capability", struct.pack("<5I", 0x02000001, 1 << 10, 0, 0, 0)
        )
    except OSError:
        pytest.skip("this file system keeps no capabilities")
    assert commands.examine(str(program)).helps  # who is root has them all already
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    assert commands.examine(str(program)).kind == "given capabilities"


def test_the_loader_is_no_static_program(wherry, dropin, source):
    loader = libctunables.loader()
    source.write_text(SECURE)
    done = wherry("exec", "--", loader, compiled(source))
    assert done.stdout == "0 kept" and "it is the loader" in done.stderr


def test_shared_objects_and_damaged_headers(wherry, dropin, source, tmp_path):
    shared = compiled(source, "-shared", "-fPIC", "-Wl,-soname,libp.so")
    assert "it is a shared object, and no program" in wherry("exec", "--check", shared).stdout
    whole = Path("/bin/true").read_bytes()
    (tmp_path / "cut").write_bytes(whole[:5] + b"\2" + whole[6:])  # the order of bytes
    (tmp_path / "cut").chmod(0o755)
    assert (
        "no ELF program that a loader would take"
        in wherry("exec", "--check", tmp_path / "cut").stdout
    )


def test_first_lines(wherry, dropin, tmp_path):
    for name, text, said in (
        (
            "windows",
            "#!/bin/sh\r\necho x\r\n",
            "its interpreter /bin/sh\\r does not exist (its lines end",
        ),
        ("empty", "#!\necho x\n", "yes, the drop-in can serve it"),
        ("bare", "#!bash\n", "its interpreter bash does not exist"),
        ("noenv", "#!/no/env bash\n", "its interpreter /no/env does not exist"),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
        assert said in wherry("exec", "--check", tmp_path / name).stdout
    assert wherry("exec", tmp_path / "empty").stdout == "x\n"
    assert (
        wherry("record", "-q", "-o", tmp_path / "m.mix.json", tmp_path / "windows").returncode
        == 127
    )


def test_a_name_does_not_command_the_terminal(wherry, dropin, tmp_path):
    program = tmp_path / "a\x1b[31mb\rc"
    program.write_bytes(b"neither\0")
    program.chmod(0o755)
    for words in (
        ("exec", "--check"),
        ("exec",),
        ("record", "-o", tmp_path / "m.mix.json"),
        ("ab", "--runs", "2"),
    ):
        done = wherry(*words, "--", program)
        assert "a\\x1b[31mb\\rc" in done.stdout + done.stderr
        assert not {"\x1b", "\r"} & set(done.stdout + done.stderr)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("env -i A=1 true", "clears the environment (env -i), LD_PRELOAD with it: write env in"),
        ("env -u LD_PRELOAD true", "takes LD_PRELOAD from it (env): write env in front of wherry"),
        ("env LD_PRELOAD= true", "takes LD_PRELOAD from it (env)"),
        ("env A=1 true", None),
        ("env true -i", None),
        ("env", None),
        ("./sudo -u nobody true", "an environment without LD_PRELOAD: write sudo in front of"),
        ("./sudo", None),
        ("./su - nobody -c true", "an environment without LD_PRELOAD"),
        ("./su nobody -c true", None),
        ("./su -s /bin/sh -lc true nobody", "an environment without LD_PRELOAD"),
        ("./su -c -l nobody", None),
        ("./su -w LD_PRELOAD -l nobody", None),
        ("./su nobody --log", "an environment without LD_PRELOAD"),
        ("./su nobody -- -l", None),
        ("env --ignore-env true", "clears the environment"),
        ("env --uns=LD_PRELOAD true", "takes LD_PRELOAD from it"),
        ("env --ignore-signal=PIPE true", None),
        ("env A=1 ./sudo true", "it starts ./sudo, and it gives what it starts an environment"),
        ("./setpriv --reset-env true", "an environment without LD_PRELOAD"),
        ("./setpriv --no-new-privs -- true --reset-env", None),
        ("./bwrap --dev /dev --clearenv true", "an environment without LD_PRELOAD"),
        ("./bwrap --unsetenv LD_PRELOAD true", "an environment without LD_PRELOAD"),
        ("./bwrap --unsetenv HOME true", None),
        ("./systemd-run --pty true", "an environment without LD_PRELOAD"),
        ("./systemd-run --scope true", None),
    ],
)
def test_what_reaches_no_program_that_is_started(wherry, dropin, source, tmp_path, words, said):
    """Who holds the one side against the other there would hold libc against itself, and keep it."""
    for name in ("sudo", "su", "setpriv", "bwrap", "systemd-run"):
        shutil.copy(compiled(source), tmp_path / name)
    done = wherry("exec", "--check", "--", *words.split(), cwd=tmp_path)
    assert done.returncode == (said is not None), done.stdout
    assert (said or "yes, the drop-in can serve it") in " ".join(done.stdout.split())
    done = wherry("ab", "--runs", "2", "--", *words.split(), cwd=tmp_path)
    assert ("nothing can be changed in" in done.stderr) == (said is not None), done.stderr


def test_another_libc(wherry, dropin, source):
    need_tool("musl-gcc", "musl-tools")
    refused(wherry, compiled(source, compiler=["musl-gcc"]), "musl")


def elf(machine: int, bits: int = 64, kind: int = 2) -> bytes:
    """The head of a program of another architecture, with no segment."""
    ident = b"\x7fELF" + bytes([bits // 32, 1, 1]) + bytes(9)
    if bits == 32:
        return ident + struct.pack(
            "<HHIIIIIHHHHHH", kind, machine, 1, 0, 0, 0, 0, 52, 32, 0, 40, 0, 0
        )
    return ident + struct.pack("<HHIQQQIHHHHHH", kind, machine, 1, 0, 0, 0, 0, 64, 56, 0, 64, 0, 0)


@pytest.mark.parametrize(
    ("data", "code", "said"),
    [
        (elf(183), 126, "it is a program for AArch64, which this machine does not execute"),
        (elf(3, 32), 1, "it is a program for 32-bit x86"),
        (elf(62, 32), 1, "it is a program for x32"),
        (elf(243), 126, "it is a program for RISC-V, which this machine does not execute"),
        (elf(62, kind=1), 126, "no ELF program that the kernel would execute"),
        (elf(62), 126, "no ELF program that the kernel would execute"),
        (b"\x7fELF", 126, "no ELF program that the kernel would execute"),
        (Path("/bin/true").read_bytes()[:200], 126, "no ELF program that the kernel would execute"),
        (b"\x7fELF" + b"\xff" * 300, 126, "no ELF program that the kernel would execute"),
        (b"\x7fELF\2\1\1" + bytes(300), 126, "no ELF program that the kernel would execute"),
        (b"MZ\0\0\1", 126, "neither a script nor an ELF program"),
        (b"#!/no/such/shell\n", 127, "its interpreter /no/such/shell does not exist"),
        (b"#!/etc/passwd\n", 126, "its interpreter /etc/passwd cannot be executed"),
        (b"#!/usr/bin/env -S -i sh\n", 1, "clears the environment"),
        (b"#!/usr/bin/env no-such-program\n", 1, "no-such-program does not exist"),
    ],
)
def test_files_of_all_kinds(wherry, dropin, tmp_path, data, code, said):
    program = tmp_path / "it"
    program.write_bytes(data)
    program.chmod(0o755)
    done = wherry("exec", "--check", program)
    if data.startswith((b"MZ", elf(183)[:20], elf(243)[:20])) and commands._more_formats():
        code, said = 1, said.partition(",")[0]
    assert done.returncode == code
    assert said in done.stdout
    assert len(done.stdout.splitlines()) == 1
    tried = wherry("exec", program)
    if code > 1:
        assert tried.returncode == code
        assert "runs untouched" not in tried.stderr and len(tried.stderr.splitlines()) == 1
    assert tried.returncode in (126, 127, 1, 0)
    assert "bug in Wherry" not in tried.stderr + done.stderr


@pytest.mark.parametrize(
    "line", [b"#!/bin/sh\0behind", b"#!/" + b"a" * 300 + b"/python", b"#!\t /bin/sh"]
)
def test_first_lines_that_the_kernel_cuts(wherry, dropin, tmp_path, line):
    """At a zero; and of a name that is too long for it it knows nothing, so that a shell runs the file."""
    program = tmp_path / "it"
    program.write_bytes(line + b"\necho ran\n")
    program.chmod(0o755)
    assert wherry("exec", "--check", program).returncode == 0
    done = wherry("exec", "--", program)
    assert (done.returncode, done.stdout) == (0, "ran\n")


def test_sections_are_nothing_to_a_loader(wherry, dropin, source, tmp_path):
    program = tmp_path / "packed"
    data = bytearray(compiled(source).read_bytes())
    for place, value in ((40, 2**63 - 1), (40, 1)):  # e_shoff
        data[place : place + 8] = value.to_bytes(8, "little")
        program.write_bytes(data)
        program.chmod(0o755)
        assert subprocess.run([program], check=False).returncode == ord("/")  # it runs
        assert wherry("exec", "--check", program).returncode == 0


def test_a_shared_object_without_a_name(wherry, dropin, source, tmp_path):
    made = compiled(source, "-shared", "-fPIC")
    done = wherry("exec", "--check", made)
    assert done.returncode == 1 and "it is a shared object, and no program" in done.stdout


def test_a_loader_that_cannot_be_executed(wherry, dropin, source, tmp_path):
    program = compiled(source, f"-Wl,--dynamic-linker={tmp_path}")
    done = wherry("exec", "--check", program)
    assert done.returncode == 126 and f"its loader {tmp_path} cannot be executed" in done.stdout


def test_a_program_whose_loader_does_not_exist(wherry, dropin, source):
    program = compiled(source, "-Wl,--dynamic-linker=/no/ld-linux-x86-64.so.2")
    done, tried = wherry("exec", "--check", program), wherry("exec", program)
    said = "its loader /no/ld-linux-x86-64.so.2 does not exist"
    assert (done.returncode, tried.returncode) == (127, 127)
    assert said in done.stdout and tried.stderr == f"wherry exec: {program}: {said}\n"


def test_garbage_is_survived(dropin, tmp_path):
    """The head of a real program with bytes changed: any answer, and no failure of ours."""
    import random

    dice = random.Random(7)
    good = Path("/bin/true").resolve().read_bytes()
    path = tmp_path / "it"
    path.touch()
    path.chmod(0o755)
    for _ in range(150):
        data = bytearray(good[: dice.choice([70, 900, len(good)])])
        for _ in range(dice.randint(1, 8)):
            data[dice.randrange(4, min(len(data), 1200))] = dice.randrange(256)
        path.write_bytes(data)
        verdict = commands.examine(str(path))
        assert verdict.helps == (verdict.reason is None)


def test_scripts_are_followed(wherry, dropin, tmp_path, source):
    def script(name: str, first: str) -> Path:
        (tmp_path / name).write_text(f"{first}\necho ran\n")
        (tmp_path / name).chmod(0o755)
        return tmp_path / name

    bash = shutil.which("bash")
    for first in (
        f"#!{bash}",
        f"#! {bash} -e",
        "#!/usr/bin/env bash",
        "#!/usr/bin/env -S A=1 bash -e",
        "#!/usr/bin/env -vS -u A -uB -C . --chdir=. --unset=C bash -e",
        "#!/usr/bin/env --split-string=bash -e",
    ):
        path = script("s", first)
        checked = json.loads(wherry("exec", "--check", "--json", path).stdout)
        assert checked["helps"], (first, checked)
        assert checked["chain"][0] == str(path)
        assert Path(checked["program"]).name == "bash"
        assert wherry("exec", path).stdout == "ran\n"
    # Of coreutils from 9.4 on, so that not every env here runs them.
    for first in ("#!/usr/bin/env -S -a me bash", "#!/usr/bin/env -S --argv0=me bash"):
        checked = json.loads(wherry("exec", "--check", "--json", script("s", first)).stdout)
        assert checked["helps"] and Path(checked["program"]).name == "bash", (first, checked)
    for options in (
        "S -i",
        "iS",
        "S -",
        "S -u LD_PRELOAD",
        "S --unset=LD_PRELOAD",
        "S LD_PRELOAD=",
    ):
        path = script("s", f"#!/usr/bin/env -{options} {bash}")
        path.write_text(path.read_text() + "echo $LD_PRELOAD\n")
        refused(wherry, path, "its first line ")
        assert wherry("exec", path).stdout == "ran\n\n", options
    nested = script("n", f"#!{script('inner', f'#!{bash}')}")
    assert json.loads(wherry("exec", "--check", "--json", nested).stdout)["chain"][-1] == bash
    (tmp_path / "loop").write_text(f"#!{tmp_path}/loop\n")
    (tmp_path / "loop").chmod(0o755)
    assert "too deep" in wherry("exec", "--check", tmp_path / "loop").stdout
    static = compiled(source, "-static")
    refused(wherry, script("static", f"#!{static}"), "linked statically")


def test_functions_of_the_programs_own_are_named(wherry, dropin, source):
    source.write_text(
        "#include <stddef.h>\nvoid *memcpy(void *d, const void *s, size_t n)\n"
        "{ for (size_t i = 0; i < n; i++) ((char *)d)[i] = ((const char *)s)[i]; return d; }\n"
        "int main(void) { return 0; }\n"
    )
    done = wherry("exec", "--check", compiled(source, "-fno-builtin"))
    assert (done.returncode, "note: it has its own memcpy, which" in done.stdout) == (0, True)
    assert "note" not in wherry("exec", "--check", "cat").stdout


def test_go_is_named(wherry, dropin):
    go = need_tool("go", "golang-go", "make extras EXTRAS_ARGS=soak")
    done = wherry("exec", "--check", go)
    assert "Go" in done.stdout


def test_a_place_that_ld_preload_cannot_name(tmp_path, dropin, monkeypatch):
    home = tmp_path / "my $lib: here"
    home.mkdir()
    copy = Path(shutil.copy(dropin, home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    env = preloading.environment(os.environ, [copy])
    assert not re.search(r"[\s:$]", env["LD_PRELOAD"])
    assert Path(env["LD_PRELOAD"]).resolve() == copy
    said = run("bash", "-c", "grep -c dropin /proc/$$/maps", env=env)
    assert int(said.stdout) > 0


def test_a_missing_dropin_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("WHERRY_RUN", raising=False)
    monkeypatch.setattr("importlib.resources.files", lambda _: tmp_path)
    with pytest.raises(FailedError, match=r"libwherry-dropin.so is not built; run make bench once"):
        preloading.library("dropin")


def test_a_name_that_is_no_text_is_told_by_its_bytes(wherry):
    for words in ((), ("--check",)):
        done = wherry("exec", *words, "--", os.fsdecode(b"\xff\xfe"))
        assert "\\xff\\xfe: " in done.stdout + done.stderr


def test_a_name_that_is_no_text_as_json(wherry, tmp_path):
    program = tmp_path / os.fsdecode(b"a\xffb")
    shutil.copy("/bin/true", program)
    done = wherry("exec", "--check", "--json", "--", program)
    assert done.returncode == 0
    assert json.loads(done.stdout)["command"] == f"{tmp_path}/a\ufffdb"


def test_the_exit_status_answers_where_nobody_reads():
    line = '"$@" | sleep 0; exit ${PIPESTATUS[0]}'
    for program, status in (("ls", 0), ("no-such-program", 127)):
        words = (sys.executable, "-m", "wherry", "exec", "--check", program)
        assert run("bash", "-c", line, "bash", *words, check=False).returncode == status
