"""The command line on a terminal, in a pipe and under signals: colour, progress, what cannot be written, its end."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest
from conftest import ROOT, is_runner, is_there, run, wait_until

pytestmark = pytest.mark.usefixtures("own_directory")


FAST = ("--processes", "1", "--rounds", "3")


def in_a_shell(wherry_run, words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        f"{sys.executable} -m wherry {words}",
        shell=True,
        check=False,
        env={**os.environ, "WHERRY_RUN": str(wherry_run)},
        capture_output=True,
        text=True,
    )


def test_a_broken_pipe_ends_quietly(wherry_run):
    result = in_a_shell(wherry_run, "list routines | head -1")
    assert result.stdout.count("\n") == 1 and result.stderr == ""


@pytest.mark.parametrize(
    ("words", "status"),
    [
        *(("", 2), ("--help", 0), ("--version", 0), ("fleet", 2), ("bench --help", 0)),
        *(("list routines", 0), ("list mixes --json", 0), ("exec --check true", 0)),
    ],
)
def test_where_nobody_reads_the_exit_status_is_as_ever(wherry_run, words, status):
    for both in ("", "2>&1"):
        line = f"{sys.executable} -m wherry {words} {both} | sleep 0; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(
            ["bash", "-c", line],
            env={**os.environ, "WHERRY_RUN": str(wherry_run)},
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stderr) == (status, "")


def test_nobody_who_reads_takes_no_run_file_with_him(wherry_run, tmp_path):
    words = f"bench sizes --size 64 --save {tmp_path}/r.json {' '.join(FAST)} | true"
    assert in_a_shell(wherry_run, words).stderr == "" and (tmp_path / "r.json").exists()


def test_the_console_script_of_the_runner_ends_by_the_signal(wherry_run):
    """As other programs in C."""
    start = f"{sys.executable} -c 'from wherry.__main__ import native; native()' list"
    done = subprocess.run(
        ["bash", "-c", f"{start} | sleep 0; exit ${{PIPESTATUS[0]}}"],
        env={**os.environ, "WHERRY_RUN": str(wherry_run)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


@pytest.mark.parametrize(
    "words", ["list routines", "bench --help", "--version", "exec --check true"]
)
def test_a_full_standard_output_is_told(wherry_run, words):
    result = in_a_shell(wherry_run, f"{words} > /dev/full")
    assert result.returncode == 1
    assert "cannot write to standard output: No space left" in result.stderr
    assert result.stderr.count("\n") == 1


def on_terminal(arguments, env):
    """Runs under a pseudo-terminal and returns all that it showed."""
    try:
        pid, descriptor = pty.fork()
    except OSError:
        pytest.skip("no pseudo-terminals here (is devpts mounted?)")
    if pid == 0:
        os.execvpe(sys.executable, [sys.executable, "-m", "wherry", *arguments], env)
    shown = b""
    while True:
        try:
            data = os.read(descriptor, 65536)
        except OSError:
            break
        if not data:
            break
        shown += data
    os.close(descriptor)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


def test_colour_and_progress_are_for_terminals(wherry_run):
    base = {
        **os.environ,
        "WHERRY_RUN": str(wherry_run),
        "TERM": "xterm-256color",
        "COLUMNS": "100",
        "LINES": "30",
    }
    base.pop("NO_COLOR", None)
    arguments = ["bench", "--size", "64,256", *FAST]
    status, shown = on_terminal(arguments, base)
    assert status == 0 and "\033[1m" in shown and "cells" in shown
    status, shown = on_terminal(["doctor"], {**base, "NO_COLOR": "1"})
    assert status == 0 and "\033[" not in shown


def test_a_sentence_is_no_wider_than_the_terminal(wherry_run):
    env = {**os.environ, "WHERRY_RUN": str(wherry_run), "WHERRY_PEERS": "", "COLUMNS": "60"}
    status, shown = on_terminal(["list", "peers"], env)
    lines = shown.split("\r\n")
    assert status == 0 and lines[0].startswith("no peers are there") and max(map(len, lines)) <= 60


def test_a_terminal_that_is_closed_takes_no_figures_with_it(wherry_run, tmp_path):
    mark, saved = tmp_path / "ran", tmp_path / "r.json"
    body = f"echo >> {mark}; sleep 0.05"
    words = ["ab", "--runs", "2000", "--save", str(saved), "--", "sh", "-c", body]
    pid, terminal = pty.fork()
    if pid == 0:
        environment = {**os.environ, "WHERRY_RUN": str(wherry_run), "TERM": "xterm"}
        os.execve(sys.executable, [sys.executable, "-m", "wherry", *words], environment)
    # Two to warm up, and a round.
    wait_until(lambda: mark.exists() and mark.read_text().count("\n") >= 8, "a round is measured")
    os.close(terminal)
    os.waitpid(pid, 0)
    run = json.loads(saved.read_text())
    assert run["interrupted"] and run["cells"]


@pytest.mark.parametrize(
    "words",
    [("verify", "--full", "nofault"), ("tune",), ("tune", "--glibc"), ("bench", "--self-check")],
)
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_told_to_end(wherry_run, tmp_path, words, number, status):
    """In one line, and nothing of it goes on."""
    env = {**os.environ, "WHERRY_RUN": str(wherry_run)}
    with subprocess.Popen(
        [sys.executable, "-m", "wherry", *words],
        cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        task = Path(f"/proc/{process.pid}/task/{process.pid}/children")

        def busy() -> list[str]:
            return list(filter(is_runner, task.read_text().split()))

        # Of the short processes that tell of the CPU none lives so long.
        last: list[str] = []
        end = time.monotonic() + 300
        while not last or last != busy():
            last = busy()
            time.sleep(0.2)
            assert time.monotonic() < end, "it starts nothing"
        process.send_signal(number)
        _, said = process.communicate(timeout=300)
    assert (process.returncode, said.count("\n")) == (status, 1), said
    assert "interrupted" in said
    if words[0] == "verify":
        assert "before a part was verified" in said or "parts; nothing was wrong\n" in said
    wait_until(lambda: not any(map(is_there, last)), "what it started ends")


@pytest.mark.parametrize(
    "start, imported",
    [
        (("-m", "wherry"), "click"),
        (("-c", "from wherry.__main__ import main; main()"), "click"),
        (("-c", "from wherry.__main__ import native; native()"), "difflib"),
    ],
)
def test_an_interrupt_among_imports_ends_it_silently(tmp_path, start, imported):
    """What is imported here interrupts whoever does."""
    interrupt = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(20)\n"
    (tmp_path / f"{imported}.py").write_text(interrupt)
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = run(sys.executable, *start, "list", "routines", check=False, env=env)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", -signal.SIGINT)


@pytest.mark.parametrize("start", [("wherry",), ("wherry-run",), ("python", "-m", "wherry")])
def test_an_interrupt_before_the_first_line_ends_it_silently(tmp_path, start):
    """In the loader of an editable package, which `ast` is the first to be imported by."""
    if not (Path(sysconfig.get_path("purelib")) / "wherry-beginning.pth").exists():
        pytest.skip("not set up by tools/setup")
    command = (Path(sys.prefix, "bin", start[0]), *start[1:])
    assert run(*command, "--version", check=False).returncode == 0
    (tmp_path / "ast.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = run(*command, "--version", check=False, env=env)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", -signal.SIGINT)


def test_an_interrupt_is_answered_where_it_would_have_ended_the_process(tmp_path):
    """Once a command runs, whatever the disposition was that it began with."""
    (tmp_path / "probe.py").write_text(
        "import os, signal, sys\nfrom wherry.__main__ import _run\n"
        "def command():\n    os.kill(os.getpid(), signal.SIGINT)\n    sys.exit(1)\n"
        "signal.signal(signal.SIGINT, signal.SIG_DFL)\n_run(lambda: command)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = run(sys.executable, "-m", "probe", check=False, env=env)
    assert (done.returncode, done.stderr) == (130, "")


def test_an_interrupt_that_was_handled_is_no_death_by_a_signal(tmp_path):
    """Wherever it came: Python remembers one that left code compiled from a string, as while a dataclass is made."""
    (tmp_path / "probe.py").write_text(
        "import sys\nfrom wherry.__main__ import _run\n"
        "def command():\n    try:\n        exec('raise KeyboardInterrupt')\n"
        "    except KeyboardInterrupt:\n        sys.exit(130)\n_run(lambda: command)\n"
    )
    done = run(sys.executable, "-m", "probe", check=False)
    assert (done.returncode, done.stderr) == (130, "")


def test_console_scripts_begin_where_interrupts_are_answered():
    scripts = re.search(
        r"\[project.scripts\]\n(.*?)\n\n", (ROOT / "pyproject.toml").read_text(), re.S
    )
    assert scripts[1].count("wherry.__main__:") == len(scripts[1].splitlines()) == 2


@pytest.mark.parametrize("files", range(3, 8))
def test_where_no_more_files_may_be_opened_a_line_says_so(wherry_run, files):
    """Limited once Python itself has begun, which says what it likes where it cannot."""
    start = (
        "import resource; from wherry.__main__ import main; "
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({files}, {files})); main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", start, "list", "routines"],
        env={**os.environ, "WHERRY_RUN": str(wherry_run)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("wherry: cannot ") and "Too many open files" in done.stderr


def test_a_module_that_is_missing_is_named(tmp_path):
    """From the first, and once a command has begun."""
    for module in ("click", "numpy"):
        start = (
            f"import sys; sys.modules['{module}'] = None; from wherry.__main__ import main; main()"
        )
        done = subprocess.run(
            [sys.executable, "-c", start, "bench", "--show", tmp_path],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
        assert module in done.stderr and "installed whole" in done.stderr
