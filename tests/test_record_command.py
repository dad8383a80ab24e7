"""`wherry record` as a command: what it saves and says, whatever is missing or is full."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import need_namespaces, run, wait_until
from test_record import known, record, recorded, recorder
from test_record_callers import phases
from wherry import preloading, recordings
from wherry.recording import blocks, leftovers, merge, running

__all__ = ["known", "phases", "record", "recorded", "recorder"]  # fixtures


def test_record_writes_a_mix(record, known, wherry, tmp_path):
    done, mix = record("--note", "a test", "--", known, "times", "50000")
    assert done.returncode == 0
    assert done.stdout == "done\n"  # the summary goes to standard error
    assert "50,0" in done.stderr
    assert re.search(r"ceiling +at most [\d.]+ % of this run", done.stderr)
    assert "not seen    copies inside libc itself" in done.stderr
    assert mix["how"] == {
        "command": [str(known), "times", "50000"],
        "programs": [],
        "note": "a test",
    }
    assert mix["ops"]["copy"]["calls"] >= 50000
    ceiling = mix["ceiling"]
    assert 0 < ceiling["likely_s"] <= ceiling["at_most_s"]
    assert sum(part["calls"] for part in ceiling["parts"]) == sum(
        part["calls"] for part in mix["ops"].values()
    )
    listed = wherry("list", "mixes", "--mix", tmp_path / "out.mix.json", "out")
    assert listed.returncode == 0
    assert "out.copy" in listed.stdout


def test_the_exit_status_is_the_programs(record, known):
    assert record("--no-ceiling", "--", "sh", "-c", "exit 7")[0].returncode == 7
    done, mix = record("--no-ceiling", "--", known, "kill")
    assert done.returncode == 128 + signal.SIGKILL
    assert mix["run"]["exit"] == 137
    assert "signal 9" in done.stderr
    assert record("--no-ceiling", "--", "no-such-command")[0].returncode == 127


FORBIDS = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
static char to[4096], from[4096];
int main(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return 77;
    volatile size_t n = 100;
    memcpy(to, from, n);
    return to[99];
}
"""


def test_a_program_that_the_recorder_may_have_ended_is_told_so(record, tmp_path):
    """It has no system call left by its first copy, at which the recorder looks who called."""
    (tmp_path / "p.c").write_text(FORBIDS)
    run("cc", "-O0", "-fno-builtin", "-w", "-o", tmp_path / "p", tmp_path / "p.c")
    alone = subprocess.run([tmp_path / "p"], check=False).returncode
    if alone == 77:
        pytest.skip("a process may forbid itself nothing here")
    assert alone == 0
    done, mix = record("--no-ceiling", "--", tmp_path / "p")
    assert done.returncode == 128 + signal.SIGSYS
    said = " ".join(done.stderr.split())
    assert "SIGSYS ended at a system call that it has forbidden itself (seccomp)" in said
    # Nothing is known of who made the call at which it was ended.
    assert all(row["calls"] for row in mix["callers"])
    done, _ = record("--no-ceiling", "--", "true")
    assert "SIGSYS" not in done.stderr


def test_without_a_ceiling_nothing_is_tried(record, known, wherry):
    _, mix = record("--", known, "times", "50000")
    assert "trial" in mix and mix["ceiling"]
    _, mix = record("--no-ceiling", "--", known, "times", "50000")
    assert "trial" not in mix and not mix["ceiling"]
    said = " ".join(wherry("record", "--help").stdout.split())
    assert re.search(r"--no-ceiling Leave out .{,120} and the trial, which needs that time", said)


BELOW_ZERO = r"""
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static char to[4096], from[4096];
int main(void)
{
    volatile size_t n = (size_t)-1;
    for (int i = 0; i < 4; i++) {
        if (fork() == 0) {
            memcpy(to, from, n - i);
            memset(to, 1, n - i);
            _exit(0);
        }
        wait(NULL);
    }
    n = 100;
    memcpy(to, from, n);
    return to[99];
}
"""


def test_calls_of_less_than_nothing_keep_the_mix_readable(record, tmp_path):
    (tmp_path / "p.c").write_text(BELOW_ZERO)
    run("cc", "-O0", "-fno-builtin", "-w", "-o", tmp_path / "p", tmp_path / "p.c")
    _, mix = record("--no-trial", "--", tmp_path / "p")
    recordings.read(tmp_path / "out.mix.json")
    assert mix["ops"]["copy"]["calls"] == 5
    assert mix["callers"] and all(own["bytes"] < 1 << 63 for own in mix["callers"])


def test_timed_calls_of_less_than_nothing_have_a_size():
    merger = merge.Merger()
    merger._times[1, -1, :2] = 3, (1 << 64) - 40
    least, greatest = blocks.time_range(blocks.TIME_CLASSES - 1)
    assert merger.times()["move"][0][:4] == [least, greatest, 3, 3 * least]


def test_many_processes_have_one_number(record, known):
    """As the first of each PID namespace, in sandboxes and containers."""
    unshare = need_namespaces("-p", "-f")
    shell = f"for i in $(seq 150); do {unshare} -p -f {known} times 10; done"
    done, mix = record("--no-ceiling", "--", "sh", "-c", shell)
    assert done.returncode == 0
    (row,) = [row for row in mix["ops"]["copy"]["sizes"] if row[0] == 700]
    assert row[2] == 150 * 10
    # Of the shells, and of `unshare` with its child, there is a record where they make such calls.
    assert 150 <= mix["run"]["processes"] <= 302


def test_an_exec_is_no_other_process(record, known):
    done, mix = record("--no-ceiling", "--", known, "exec")
    assert [mix["run"][name] for name in ("processes", "threads", "execs")] == [1, 1, 1]
    assert "in 1 process (with 1 exec) and 1 thread; exit" in done.stderr


def test_records_that_somebody_removes_are_told(wherry, tmp_path):
    """As systemd does when a user logs out, while the looks go on."""
    target = tmp_path / "x.mix.json"
    shell = 'rm -r "$WHERRY_RECORD" && sleep 1.5'
    done = wherry("record", "--no-ceiling", "-o", target, "--", "sh", "-c", shell)
    # Of this user's other recordings it may say that they were cut off.
    (said,) = (line for line in done.stderr.splitlines() if "was cut off" not in line)
    assert done.returncode == 1 and not target.exists()
    assert "with the records while sh ran" in said


DAEMON = """
import os, pathlib, signal, sys
from wherry import preloading
from wherry.recording import leftovers, merge, running
running.LOOK_S = 60  # nobody looks before the command has ended
home = pathlib.Path(sys.argv[1])
env = preloading.environment(dict(os.environ), [preloading.library("recorder")])
env["WHERRY_RECORD"] = str(home)
shell = f"{sys.argv[2]} & {sys.argv[3]}; echo $! > {home}/daemon"
try:
    ran = running.run(["sh", "-c", shell], "/bin/sh", env, home, merge.Merger())
finally:
    os.kill(int((home / "daemon").read_text()), signal.SIGKILL)
print(ran.exit, ran.still)
"""


@pytest.mark.parametrize("copies", [True, False])
def test_a_daemon_that_nobody_saw_outlives_the_command(wherry_run, known, tmp_path, copies: bool):
    """Also one that waits, and has no record yet."""
    counts = f"until ls {tmp_path}/$!-*; do sleep 0.02; done"
    os.mkfifo(tmp_path / "fifo")
    daemon = (f"{known} times 100000000000", counts) if copies else (f": <{tmp_path}/fifo", ":")
    words = (sys.executable, "-c", DAEMON, tmp_path, *daemon)
    done = run(*words, env={**os.environ, "WHERRY_RUN": str(wherry_run)})
    assert done.stdout.splitlines()[-1] == "0 1"


def test_a_long_command_is_cut(record, wherry, tmp_path):
    numbers = [str(n) for n in range(1, 20001)]
    done, mix = record("--no-ceiling", "--no-trial", "--", "/bin/true", *numbers)
    assert done.returncode == 0
    assert mix["how"]["command"] == ["/bin/true", *numbers[:999]]
    assert mix["how"]["left_out"] == 19001
    recordings.read(tmp_path / "out.mix.json")
    assert "left_out" not in record("--no-ceiling", "--", "/bin/true", "1")[1]["how"]
    # Those that were written before commands were cut.
    mix["how"] = {"command": ["/bin/true", *numbers]}
    recordings.parse(json.dumps(mix).encode(), "x")


def test_misuse(wherry, tmp_path):
    assert wherry("record").returncode == 2
    done = wherry("record", "-o", tmp_path, "--", "true")
    assert done.returncode == 2
    assert "is a directory" in done.stderr
    for option in (("--runs", "3"), ("--plan", "x"), ("--unseen",), ("--prepare", "true")):
        done = wherry("record", "--recover", tmp_path, *option)
        assert done.returncode == 2 and f"; {option[0]} is for a command" in done.stderr


def test_what_is_read_is_not_replaced_by_the_mix(wherry, wherry_run, recorder, tmp_path):
    from wherry import preloading

    library = shutil.copy(preloading.library("dropin"), tmp_path / "x.so")
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    plan = tmp_path / "p.toml"
    assert wherry("plan", "default", "-o", plan).returncode == 0
    for own, *words in ((library, "--try", library), (plan, "--plan", plan), (program,)):
        before = Path(own).read_bytes()
        done = wherry("record", "-o", own, *words, "--", program)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
        assert "itself; give another name" in done.stderr and Path(own).read_bytes() == before


def test_a_directory_that_no_recorder_can_have_left(wherry, tmp_path):
    home = tmp_path / "left"
    home.mkdir()
    for text in ("", "{}", 20_000 * "["):
        (home / leftovers.STATE).write_text(text)
        done = wherry("record", "--recover", home)
        assert done.returncode == 2 and done.stderr.count("\n") == 1
        assert "left" in done.stderr and "bug" not in done.stderr


def odd_places(tmp_path: Path) -> list[Path]:
    """Directories whose paths are no UTF-8, or long."""
    return [
        tmp_path / os.fsdecode(b"not \xff\xfe text"),
        tmp_path.joinpath(*(letter * 200 for letter in "abcd")),
    ]


def test_odd_paths_are_paths(record, phases, tmp_path):
    for home in odd_places(tmp_path):
        home.mkdir(parents=True)
        shutil.copy(phases, home / "phases")
        # Long enough to be seen.
        words = ("50000000", "16", "10", "16")
        done, mix = record("--no-ceiling", "--", home / "phases", *words)
        assert mix["run"]["unrecorded"] == [], done.stderr
        row = mix["callers"][0]
        assert row["function"] == "early"
        assert row["module"] == os.fsencode(home / "phases").decode(errors="replace")
        assert re.fullmatch(r"[0-9a-f]{40}", row["build_id"])


def test_one_call_is_told_as_one(record, known):
    done, mix = record("--", known, "times", "1")
    assert mix["ops"]["copy"]["calls"] == 1
    assert "recorded    1 call in 1 process and 1 thread; " in done.stderr


def test_a_summary_that_cannot_be_written_changes_no_status(record, known, tmp_path, wherry_run):
    target = tmp_path / "out.mix.json"
    program = f"{sys.executable} -m wherry record --no-ceiling -o {target} --"
    for to in ("2>/dev/full", "2>&-", "2> >(true)"):
        for status in (0, 7):
            target.unlink(missing_ok=True)
            shell = f"{program} sh -c 'sleep 0.1; exit {status}' {to}"
            env = {**os.environ, "WHERRY_RUN": str(wherry_run)}
            done = run("bash", "-c", shell, check=False, env=env)
            assert (to, done.returncode) == (to, status)
            assert json.loads(target.read_text())["run"]["exit"] == status


def test_where_there_is_no_more_room_the_mix_goes_elsewhere(wherry, wherry_run, tmp_path):
    """The directory fills up while the command runs."""
    unshare = need_namespaces("-m")
    small, other = tmp_path / "small", tmp_path / "other"
    small.mkdir()
    other.mkdir()
    shell = (
        f"mount -t tmpfs -o size=400k none {small} && cd {small} && TMPDIR={other} {sys.executable} -m wherry record "
        f"--no-ceiling -o {small}/x.mix.json -- sh -c 'cat /dev/zero >{small}/filled 2>/dev/null; exit 7'"
    )
    env = {**os.environ, "WHERRY_RUN": str(wherry_run)}
    done = run(unshare, "-m", "sh", "-c", shell, check=False, env=env)
    assert done.returncode == 1
    (found,) = other.glob("x.*.mix.json")
    assert json.loads(found.read_text())["run"]["exit"] == 7
    said = done.stderr.strip().splitlines()
    assert said[-1].startswith("wherry record: could not save ")
    assert f"the mix is in {found} instead" in said[-1]


def test_permissions_are_kept(record, tmp_path):
    target = tmp_path / "out.mix.json"
    target.touch()
    target.chmod(0o640)
    record("--no-ceiling", "--", "true")
    assert target.stat().st_mode & 0o777 == 0o640
    target.unlink()
    umask = os.umask(0o027)
    try:
        record("--no-ceiling", "--", "true")
    finally:
        os.umask(umask)
    assert target.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    "name",
    ["plain", "two words", "it's", "a\nb", "\x1b[31mred", "-x", "b\\s", "\udcffbytes", "\u202e*"],
)
def test_the_hint_can_be_given_to_a_shell(wherry, known, tmp_path, name: str):
    from wherry import shellwords

    word = shellwords.path(name)
    assert word.isprintable()
    env = {**os.environ, "LC_ALL": "C.UTF-8"}
    read = run(
        "bash", "-c", f"printf %s {word}", env=env, encoding="utf-8", errors="surrogateescape"
    )
    assert read.stdout.removeprefix("./") == name
    done = wherry("record", "--no-ceiling", "-o", tmp_path / name, "--", known, "times", "10")
    assert done.stderr.splitlines()[-1].endswith(
        f"(next: wherry replay {shellwords.path(str(tmp_path / name))})"
    )


def test_the_drop_in_alone_is_not_recorded(wherry, tmp_path):
    done = wherry("record", "--", "wherry", "exec", "--", "true", cwd=tmp_path)
    assert done.returncode == 2
    assert "record the program itself" in done.stderr
    done = wherry("exec", "--", "true", env={"WHERRY_RECORD": "/nowhere"})
    assert done.returncode == 0
    assert "nothing of this is recorded" in done.stderr
    assert wherry("exec", "--", "true").stderr == ""


@pytest.mark.parametrize("options", [(), ("--no-trial",)])
def test_what_is_preloaded_already_is_not_told_as_libc(wherry, known, tmp_path, options):
    """An installed drop-in, of another path than the one that is tried: it would be held against itself."""
    installed = tmp_path / "lib" / "libwherry-dropin.so"
    other = tmp_path / "lib" / "other.so"
    installed.parent.mkdir()
    shutil.copy(preloading.library("dropin"), installed)
    shutil.copy(installed, other)
    shown = f"{known} times 10; echo $LD_PRELOAD"
    words = ("record", *options, "-o", tmp_path / "m.mix.json", "--", "sh", "-c", shown)
    done = wherry(*words, env={"LD_PRELOAD": str(installed)})
    said = " ".join(done.stderr.split())
    assert done.returncode == 0 and "names the drop-in, which is left out" in said
    assert "libwherry-recorder.so" in done.stdout and str(installed) not in done.stdout
    done = wherry(*words, env={"LD_PRELOAD": f"libm.so.6 {other}"})
    said = " ".join(done.stderr.split())
    assert f"LD_PRELOAD names {other}, which has such functions of its own" in said
    assert "left out" not in said and f"libm.so.6:{other}" in done.stdout
    assert "LD_PRELOAD" not in wherry(*words, env={"LD_PRELOAD": "libm.so.6"}).stderr


def test_what_wherry_exec_runs_is_told_as_not_recorded(record, known):
    """Had it the recorder, too, it would be a program that copies nothing, and the ceiling that of the whole run."""
    inside = f"{sys.executable} -m wherry exec -- {known} times 30000000"
    done, mix = record("--", "sh", "-c", f"{inside}; exit $?")
    assert done.returncode == 0, done.stderr
    assert "nothing of this is recorded" in done.stderr
    assert str(known) in [row["program"] for row in mix["run"]["unrecorded"]], done.stderr
    assert mix["ceiling"]["incomplete"] is True


def test_threads_by_name_are_told(record, build_dir):
    done, mix = record("--no-ceiling", "--", build_dir / "tests/c/recorder/recorder-known", "named")
    assert "By thread, those of one name together:" in done.stderr
    assert re.search(r"586 KiB +2,000 +reader \(2 threads\) in recorder-known", done.stderr)
    assert {row["name"] for row in mix["threads"]} >= {"reader", "writer"}
    done, _ = record("--no-ceiling", "--", "true")
    assert "By thread" not in done.stderr


def test_rows_that_are_left_out_are_told(record, build_dir):
    done, mix = record("--no-ceiling", "--", build_dir / "tests/c/recorder/recorder-known", "names")
    left = len(mix["callers"]) - 8
    assert left > 0
    assert f"  and {left} more, in the mix\n" in done.stderr


def test_what_a_living_process_executed_before_is_merged_in_time(recorder, tmp_path, monkeypatch):
    """Each exec leaves a file of 660 KiB: a thousand of one process would fill the memory."""
    parts = tmp_path / "parts"
    parts.mkdir()
    env = {**os.environ, "LD_PRELOAD": str(recorder), "WHERRY_RECORD": str(parts)}
    words = ("sh", "-c", "exec sh -c 'exec sh -c \"exec sleep 300\"'")
    monkeypatch.setattr(running, "MANY_FILES", 3)
    merger = merge.Merger()
    with subprocess.Popen(words, env=env) as process:
        try:
            look = running._Look(parts, merger)
            look.begin(process.pid)
            wait_until(
                lambda: len([*map(blocks.begun, leftovers.parts(parts))]) == 4,
                "four programs are recorded",
            )
            wait_until(
                lambda: all(map(blocks.begun, leftovers.parts(parts))), "their files are begun"
            )
            look.alive = {process.pid}
            look._merge_ended()
            (last,) = leftovers.parts(parts)
            assert os.fsencode(last) in Path(f"/proc/{process.pid}/maps").read_bytes()
            assert (merger.records, merger.processes) == (3, 1)
        finally:
            process.kill()
    merger.add(last)
    assert (merger.processes, merger.execs) == (1, 3)
    assert merger.damaged == []


def test_each_run_reads_all_of_standard_input(record, tmp_path):
    words = ("--no-ceiling", "--runs", "3", "--", "sh", "-c", "read first; cat")
    (tmp_path / "in").write_text("skipped\nfirst\nsecond\n")
    with (tmp_path / "in").open("rb", buffering=0) as given:
        given.seek(8)
        done, _ = record(*words, stdin=given)
    assert done.stdout == "second\n" * 3 and "standard input" not in done.stderr
    done, _ = record(*words, input="first\nsecond\n")
    assert done.stdout == "second\n"
    assert done.stderr.count("standard input is a pipe, which has been read to its end") == 1
    assert "run 2 of 3 finds nothing there" in done.stderr
    # What nobody reads is nothing that a run lacks.
    done, _ = record("--no-ceiling", "--runs", "2", "--", "true", input="unread")
    assert "standard input" not in done.stderr
    done, _ = record("--no-ceiling", "--runs", "2", "--", "true", input="")
    assert "standard input" not in done.stderr
