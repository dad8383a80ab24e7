"""`wherry exec`: the program itself with the drop-in; where it cannot help: test_exec_check.py."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import CC, ROOT, run

sys.path.insert(0, str(ROOT / "python"))

MAIN = "#include <string.h>\nint main(int c, char **v) { char to[99]; memcpy(to, v[0], c); return to[0]; }\n"


@pytest.fixture
def dropin(build_dir: Path, wherry_run: Path, monkeypatch) -> Path:
    monkeypatch.setenv("WHERRY_RUN", str(wherry_run))
    for name in ("LD_PRELOAD", "WHERRY_PLAN"):
        monkeypatch.delenv(name, raising=False)
    return build_dir / "preload/libwherry-dropin.so"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "p.c").write_text(MAIN)
    return tmp_path / "p.c"


def compiled(source: Path, *options: str, compiler: list[str] | None = None) -> Path:
    """The program, or a skip where this compiler cannot make it."""
    target = source.parent / "p"
    done = subprocess.run(
        [*(compiler or CC), "-fno-builtin", *options, source, "-o", target],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"the compiler here does not take {' '.join(options)}")
    return target


# --- it is the program itself ------------------------------------------------------------------------------------
def test_the_dropin_is_in_the_program(wherry, dropin):
    done = wherry("exec", "--", "bash", "-c", "echo $LD_PRELOAD; grep -c dropin /proc/$$/maps")
    path, maps = done.stdout.split()
    assert (path, done.stderr, done.returncode) == (str(dropin), "", 0)
    assert int(maps) > 0
    assert Path(path).is_absolute()


def test_what_is_preloaded_already_stays_behind_it(wherry, dropin):
    env = {"LD_PRELOAD": "libm.so.6 libdl.so.2"}
    done = wherry("exec", "bash", "-c", "echo $LD_PRELOAD", env=env)
    assert done.stdout.strip() == f"{dropin}:libm.so.6:libdl.so.2"
    twice = wherry(
        "exec", "bash", "-c", "echo $LD_PRELOAD", env={"LD_PRELOAD": f"libm.so.6:{dropin}"}
    )
    assert twice.stdout.strip() == f"{dropin}:libm.so.6"


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_the_exit_status_is_the_programs(wherry, dropin, code):
    assert wherry("exec", "--", "sh", "-c", f"exit {code}").returncode == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGABRT, signal.SIGPIPE])
def test_it_dies_of_the_programs_signal(wherry, dropin, number):
    assert wherry("exec", "--", "bash", "-c", f"kill -{number.value} $$").returncode == -number


def test_there_is_no_process_between(wherry_run, dropin):
    """A signal to the process that was started reaches the program, and its streams are those of the caller."""
    script = "trap 'echo caught; exit 3' USR1; echo ready $$; read line; echo got $line; while :; do sleep 0.05; done"
    with subprocess.Popen(
        [sys.executable, "-m", "wherry", "exec", "--", "bash", "-c", script],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout.readline() == f"ready {process.pid}\n"
        process.stdin.write("hello\n")
        process.stdin.flush()
        assert process.stdout.readline() == "got hello\n"
        process.send_signal(signal.SIGUSR1)
        assert process.stdout.readline() == "caught\n"
        assert process.wait(300) == 3


def test_pipes_break_as_without(wherry, dropin):
    done = wherry("exec", "--", "bash", "-c", "yes | head -n 1; echo ${PIPESTATUS[0]}")
    assert done.stdout == "y\n141\n"


AS_IT_IS = pytest.mark.parametrize(
    "words",
    [
        ("exec",),
        ("record", "--no-ceiling", "-q", "-o", "x.mix.json"),
        ("ab", "--runs", "2", "--keep", "."),
    ],
    ids=lambda words: words[0],
)


@AS_IT_IS
@pytest.mark.parametrize("given", [{}, {"LANG": "C"}, {"LC_CTYPE": "C"}, {"LC_CTYPE": "C.UTF-8"}])
def test_the_locale_is_the_callers(wherry_run, dropin, tmp_path, words, given):
    """Python sets LC_CTYPE for itself where it finds the locale C, as under cron and in containers."""
    own = [sys.executable, "-m", "wherry", *words, "--", "env"]
    names = ("PATH", "WHERRY_RUN", "PYTHONPATH")
    env = {name: os.environ[name] for name in names if name in os.environ} | given
    done = run(*own, check=False, env=env, cwd=tmp_path)
    kept = sorted(tmp_path.glob("*.out"))
    said = kept[0].read_text() if words[0] == "ab" else done.stdout
    found = dict(line.split("=", 1) for line in said.splitlines())
    assert {
        name: own for name, own in found.items() if name.startswith("L") and "_PRE" not in name
    } == given


@pytest.mark.parametrize("given", [{}, {"MESONPY_EDITABLE_VERBOSE": "yes"}])
def test_a_tree_that_cannot_be_written_sets_the_program_no_variable(wherry_run, dropin, given):
    """As the editable package has it there, before a line of ours runs."""
    begins = (
        "import os, sys; os.environ.setdefault('MESONPY_EDITABLE_VERBOSE', '1');"
        "from wherry.__main__ import main; sys.argv = ['wherry', 'exec', '--', 'env']; main()"
    )
    done = run(sys.executable, "-c", begins, env=os.environ | given)
    said = [line for line in done.stdout.splitlines() if line.startswith("MESONPY_EDITABLE_V")]
    assert said == [f"{name}={value}" for name, value in given.items()]


@AS_IT_IS
def test_signals_that_are_ignored_stay_so(wherry_run, dropin, tmp_path, words):
    """Those which Python itself has ignored are at their default: what they were before nobody can know. Signals 32 and
    33, glibc's own, are what they are without Wherry: ignored in all that a posix_spawn has started, as make's is."""
    looks = ["grep", "SigIgn", "/proc/self/status"]

    def ignored_of(command: list[str]) -> tuple[int, str]:
        done = subprocess.run(
            ["sh", "-c", 'trap "" HUP INT QUIT TERM USR2; exec "$@"', "sh", *command],
            capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path,
        )  # fmt: skip
        kept = sorted(tmp_path.glob("*.out"))
        return int((kept[0].read_text() if kept else done.stdout).split()[1], 16), done.stderr

    wanted = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR2)
    without, _ = ignored_of(looks)
    assert without & 0x7FFFFFFF == sum(1 << number - 1 for number in wanted)
    ignored, said = ignored_of([sys.executable, "-m", "wherry", *words, "--", *looks])
    assert ignored == without, said


def test_what_cannot_be_said_keeps_nothing_from_running(wherry_run, dropin, source):
    """A line of ours on standard error that nobody reads, or for which there is no room."""
    program = compiled(source, "-static")
    unread, pipe = os.pipe()
    os.close(unread)
    with Path("/dev/full").open("wb") as full:
        for errors in (full, pipe):
            for command, status in (
                (program, run(program, check=False).returncode),
                ("/gone", 127),
            ):
                words = [sys.executable, "-m", "wherry", "exec", "--", command]
                done = subprocess.run(words, stderr=errors, timeout=300, check=False)
                assert done.returncode == status
    os.close(pipe)


def test_a_terminal_stays_one(wherry_run, dropin):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "wherry", "exec", "--", "tty", "-s"])
    while True:
        try:
            if not os.read(terminal, 1000):
                break
        except OSError:
            break
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_arguments_go_through_untouched(wherry, dropin):
    words = ["-n", "--help", "", "a b", "--", "-x", "ü"]
    done = wherry("exec", "--", sys.executable, "-c", "import sys; print(sys.argv[1:])", *words)
    assert done.stdout.strip() == repr(words)
    assert wherry("exec", "printf", "%s|", "--check", "-o").stdout == "--check|-o|"


def test_the_name_is_looked_for_as_a_shell_does(wherry, dropin, tmp_path):
    for home in ("one", "two"):
        (tmp_path / home).mkdir()
    (tmp_path / "one/tool").write_text("not executable")
    (tmp_path / "two/tool").write_text("#!/bin/sh\necho two $0\n")
    (tmp_path / "two/tool").chmod(0o755)
    path = f"{tmp_path}/none:{tmp_path}/one:{tmp_path}/two:{os.environ['PATH']}"
    done = wherry("exec", "tool", env={"PATH": path})
    assert done.stdout == f"two {tmp_path}/two/tool\n"


def test_a_text_without_an_interpreter_goes_to_the_shell(wherry, dropin, tmp_path):
    (tmp_path / "plain").write_text("echo shell $1 $LD_PRELOAD\n")
    (tmp_path / "plain").chmod(0o755)
    assert wherry("exec", tmp_path / "plain", "x").stdout == f"shell x {dropin}\n"


@pytest.mark.parametrize(
    ("make", "code", "said"),
    [
        (lambda p: None, 127, "there is no such command"),
        (lambda p: p.write_text("x"), 126, "not a file that may be executed"),
        (lambda p: p.mkdir(), 126, "not a file that may be executed"),
    ],
)
def test_what_cannot_be_executed(wherry, dropin, tmp_path, make, code, said):
    make(tmp_path / "it")
    for flags in ((), ("--check",)):
        done = wherry("exec", *flags, tmp_path / "it")
        assert done.returncode == code
        assert said in done.stdout + done.stderr
        assert len((done.stdout + done.stderr).splitlines()) == 1
    assert wherry("exec", "no-such-command-at-all").returncode == 127


def test_misuse(wherry, dropin):
    for words, said in [
        ((), "Missing argument"),
        (("--isa", "mmx", "true"), "no tier 'mmx'"),
        (("--isa", "sse2", "--plan", "x", "true"), "exclude each other"),
        (("--plan", "/nosuch", "true"), "cannot read /nosuch"),
        (("--json", "true"), "--json goes with --check"),
        (("--frob", "true"), "No such option"),
    ]:
        done = wherry("exec", *words)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
        assert len(done.stderr.splitlines()) == 1


# --- plans -------------------------------------------------------------------------------------------------------
def test_a_plan_is_handed_on_compiled(wherry, dropin, tmp_path):
    text = tmp_path / "mine.toml"
    wherry("plan", "default", "-o", text)
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = wherry("exec", "--plan", text, "--", "sh", "-c", "echo $WHERRY_PLAN", env=env)
    handed = Path(done.stdout.strip())
    assert handed.is_relative_to(tmp_path / "cache")
    assert handed.read_bytes().startswith(b"WHPLAN\r\n")
    assert wherry("plan", "compile", text, "-o", tmp_path / "mine.plan").returncode == 0
    done = wherry("exec", "--plan", "mine.plan", "sh", "-c", "echo $WHERRY_PLAN", cwd=tmp_path,
                  env={"PYTHONPATH": str(ROOT / "python")})  # fmt: skip
    assert done.stdout.strip() == str(tmp_path / "mine.plan")


def test_a_plan_for_another_cpu_is_named(wherry, dropin, tmp_path):
    text = tmp_path / "other.toml"
    wherry("plan", "default", "-o", text)
    text.write_text(re.sub(r"family = \d+", "family = 2", text.read_text()))
    done = wherry("exec", "--plan", text, "true", env={"XDG_CACHE_HOME": str(tmp_path)})
    assert done.returncode == 0
    assert "is not used, the default plan is: it is for family 2" in done.stderr


def test_a_tier_can_be_forced(wherry, dropin, tmp_path):
    env = {"XDG_CACHE_HOME": str(tmp_path)}
    done = wherry("exec", "--isa", "sse2", "--", "sh", "-c", "echo $WHERRY_PLAN", env=env)
    shown = wherry("plan", "show", done.stdout.strip()).stdout
    assert re.search(r"^Choice +sse2$", shown, re.MULTILINE)


def spoiled(wherry, tmp_path, how: str) -> Path:
    """A plan with something wrong; the default one of this CPU otherwise."""
    made = tmp_path / "mine.plan"
    text = tmp_path / "mine.toml"
    wherry("plan", "default", "-o", text)
    wherry("plan", "compile", text, "-o", made)
    data = made.read_bytes()
    if how == "flip":
        made.write_bytes(data[:50] + bytes([data[50] ^ 4]) + data[51:])
    elif how == "cut":
        made.write_bytes(data[:100])
    elif how == "nothing":
        made.write_bytes(b"")
    else:
        text.write_text(re.sub(r"(?m)^rep_from = .*", f"rep_from = {how}", text.read_text()))
        return text
    return made


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("flip", "it is damaged: its checksum is wrong"),
        ("cut", "it is cut short"),
        ("nothing", "it is empty"),
        ("1", "copy.rep_from = 1, outside 128 B"),
        ('"9 KiB', "it is not a plan"),
    ],
)
def test_a_plan_that_is_not_right_is_named_and_the_program_runs(
    wherry, dropin, tmp_path, how, said
):
    plan = spoiled(wherry, tmp_path, how)
    # The library is named the file all the same: it tells a debugger why it is not used.
    env = {"XDG_CACHE_HOME": str(tmp_path)}
    done = wherry("exec", "--plan", plan, "--", "sh", "-c", "echo $WHERRY_PLAN", env=env)
    assert (done.returncode, done.stdout) == (0, f"{plan}\n"), done.stderr
    assert done.stderr.startswith(f"wherry exec: {plan} is not used, the default plan is: ")
    assert said in done.stderr and len(done.stderr.splitlines()) == 1
    checked = wherry("exec", "--plan", plan, "--check", "true", env=env)
    assert checked.returncode == 0 and f"plan {plan}: not used" in checked.stdout
    assert said in checked.stdout
    as_json = json.loads(wherry("exec", "--plan", plan, "--check", "--json", "true").stdout)
    assert as_json["plan"]["used"] is False and said in as_json["plan"]["reason"]


def test_a_plan_of_the_environment_is_judged_too(wherry, dropin, tmp_path):
    plan = spoiled(wherry, tmp_path, "flip")
    for env, said in (
        ({"WHERRY_PLAN": str(plan)}, "damaged"),
        ({"WHERRY_PLAN": "/nosuch.plan"}, "no such file"),
    ):
        done = wherry("exec", "--", "true", env=env)
        assert done.returncode == 0
        assert f"{env['WHERRY_PLAN']} (WHERRY_PLAN) is not used" in done.stderr
        assert said in done.stderr and len(done.stderr.splitlines()) == 1
        found = json.loads(wherry("exec", "--check", "--json", "true", env=env).stdout)["plan"]
        assert found["used"] is False and said in found["reason"]
    wherry("plan", "compile", tmp_path / "mine.toml", "-o", tmp_path / "right.plan")
    env = {"WHERRY_PLAN": str(tmp_path / "right.plan")}
    assert wherry("exec", "--", "true", env=env).stderr == ""
    assert "right.plan: used" in wherry("exec", "--check", "true", env=env).stdout
    assert json.loads(wherry("exec", "--check", "--json", "true").stdout)["plan"] is None


@pytest.mark.parametrize("place", ["old (1)/of (2) mine.plan", "deep/" + "./" * 300 + "mine.plan"])
def test_a_plan_of_the_environment_is_judged_whatever_its_path(wherry, dropin, tmp_path, place):
    named = f"{tmp_path}/{place}"
    spoiled(wherry, tmp_path, "flip")
    # A Path would fold the "./".
    os.makedirs(os.path.dirname(named))  # noqa: PTH103, PTH120
    shutil.copy(tmp_path / "mine.plan", named)
    env = {"WHERRY_PLAN": named}
    found = json.loads(wherry("exec", "--check", "--json", "true", env=env).stdout)["plan"]
    assert found == {"file": named, "used": False, "reason": "it is damaged: its checksum is wrong"}
    done = wherry("exec", "--", "true", env=env)
    assert done.stderr.endswith("the default plan is: it is damaged: its checksum is wrong\n")


def test_a_plan_of_the_environment_is_found_from_other_directories(wherry, dropin, tmp_path):
    spoiled(wherry, tmp_path, "flip")
    wherry("plan", "compile", tmp_path / "mine.toml", "-o", tmp_path / "right.plan")
    for named, told in (("right.plan", f"{tmp_path}/right.plan"), ("mine.plan", "mine.plan")):
        done = wherry("exec", "--", "sh", "-c", "cd /; echo $WHERRY_PLAN", cwd=tmp_path,
            env={"WHERRY_PLAN": named})  # fmt: skip
        assert done.stdout == f"{told}\n", named


def test_a_plan_that_cannot_be_read_is_misuse(wherry, dropin, tmp_path):
    for words in (("true",), ("--check", "true")):
        for plan in ("/nosuch", tmp_path):
            assert wherry("exec", "--plan", plan, *words).returncode == 2


@pytest.mark.parametrize("home", ["/proc/nowhere", "gone"])
@pytest.mark.parametrize("words", [("--isa", "sse2"), ("--plan", "mine.toml")])
def test_a_home_that_cannot_be_written(wherry, dropin, tmp_path, words, home):
    """Nor is one made that is missing."""
    wherry("plan", "default", "-o", tmp_path / "mine.toml")
    words = [tmp_path / word if word.endswith("toml") else word for word in words]
    env = {"HOME": str(tmp_path / home), "XDG_CACHE_HOME": "", "TMPDIR": str(tmp_path)}
    done = wherry("exec", *words, "--", "sh", "-c", "echo $WHERRY_PLAN", env=env)
    handed = Path(done.stdout.strip())
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert handed.parent == tmp_path / f"wherry-{os.getuid()}"
    assert not (tmp_path / home).exists()
    assert handed.read_bytes().startswith(b"WHPLAN\r\n")
    again = wherry("exec", *words, "--", "sh", "-c", "echo $WHERRY_PLAN", env=env)
    assert again.stdout == done.stdout
