"""`wherry-run timed`: what one run of a program took, with all that it started."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import processes, program, run, wait_until, without_randomisation
from wherry.ab import running

pytestmark = pytest.mark.usefixtures("own_directory")


@pytest.fixture
def timed(wherry_run):
    def call(*words, **options):
        done = subprocess.run(
            [str(wherry_run), "timed", *map(str, words)],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            **options,
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith('{"event":"ran"')]
        return done, json.loads(lines[-1]) if lines else None

    return call


def test_a_run_tells_status_and_signal(timed):
    assert timed("--", "sh", "-c", "exit 3")[1]["status"] == 3
    _, ran = timed("--", "sh", "-c", "kill -SEGV $$")
    assert (ran["status"], ran["signal"]) == (139, 11)


def ignores_children() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def test_whoever_ignores_children_is_told_of_them(timed):
    """As a shell does with trap '' CHLD. The program has it ignored as without us."""
    _, ran = timed("--", "sh", "-c", "exit 3", preexec_fn=ignores_children)
    assert (ran["status"], ran["processes"]) == (3, 1) and ran["elapsed_ns"] > 0
    asks = program(
        "import signal; raise SystemExit(signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN)"
    )
    assert timed("--", *asks, preexec_fn=ignores_children)[1]["status"] == 1
    assert timed("--", *asks)[1]["status"] == 0


def test_children_and_orphans_are_counted(timed):
    busy = program("import time\nwhile time.process_time() < 0.3: pass")
    _, alone = timed("--", *busy)
    # The orphan has a second beyond the program's end. On a machine that gives it less than that it ends before.
    script = '"$@" & "$@" & wait; (setsid "$@" & echo $! > orphan)'
    awaited = script + "; while kill -0 $(cat orphan) 2> /dev/null; do sleep 0.05; done"
    for words in (script, script, script, awaited):
        done, ran = timed("--", "sh", "-c", words, "sh", *busy)
        if ran["left"] == 0:
            break
    assert done.returncode == 0 and ran["left"] == 0
    assert alone["user_us"] + alone["system_us"] > 290_000
    # Two that the shell waits for, and one that nobody does.
    assert 850_000 < ran["user_us"] + ran["system_us"] < 2_500_000
    assert ran["processes"] >= 2


def _told(words, signals, ends, **options) -> None:
    """A program that ignores what it is told, and leaves its number: it ends, and we do so."""
    number = Path("number")
    number.unlink(missing_ok=True)
    script = 'trap "" INT TERM HUP; echo $$ > n && mv n number; sleep 77; echo'
    own = subprocess.Popen(
        [*words, "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )
    wait_until(number.exists, "the program runs")
    for signo in signals:
        own.send_signal(signo)
        time.sleep(0.3)
    _, said = own.communicate(timeout=300)
    assert b"Traceback" not in said
    ended = int(number.read_text())
    # Whoever was its parent is gone; of the program nothing but a zombie may be left.
    wait_until(lambda: not running._runs(ended), "the program is ended too")
    # The second may come when all is said and the interpreter ends: to a shell it is the same.
    assert own.returncode == ends or (len(signals) > 1 and own.returncode == 128 - ends), said


def test_told_to_end_it_kills_what_ignores_that(wherry_run):
    _told([str(wherry_run), "timed"], [signal.SIGTERM], 0)
    _told([str(wherry_run), "timed"], [signal.SIGINT, signal.SIGINT], 0)


@pytest.mark.parametrize(
    ("signals", "ends"),
    [
        ([signal.SIGINT], 130),
        ([signal.SIGTERM], 143),
        ([signal.SIGINT, signal.SIGINT], 130),
    ],
)
def test_a_program_that_ignores_ctrl_c_does_not_outlive_it(wherry_run, signals, ends):
    env = {**os.environ, "WHERRY_RUN": str(wherry_run)}
    _told([sys.executable, "-m", "wherry", "ab"], signals, ends, env=env)


TOLD = """
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
int fork(void)
{
    const char where = *getenv("TOLD");
    if (where == 'b')
        raise(SIGTERM);
    const int child = ((int (*)(void))dlsym(RTLD_NEXT, "fork"))();
    if (where == (child ? 'a' : 'c'))
        raise(SIGTERM);
    return child;
}
"""


@pytest.mark.parametrize("where", ["before", "after", "child"])
def test_told_to_end_while_it_starts_the_program(timed, tmp_path, where):
    """Nobody was there to be told, and the limit took the place of the moment to obey; or the child was told while it
    had our handlers, and the clock of those ended the program."""
    (tmp_path / "told.c").write_text(TOLD)
    run("cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", "told.so", "told.c", cwd=tmp_path)
    env = {**os.environ, "LD_PRELOAD": str(tmp_path / "told.so"), "TOLD": where}
    _, ran = timed("--limit", "30", "--", "sleep", "60", env=env)
    assert (ran["signal"], ran["timed_out"]) == (signal.SIGTERM, False)
    assert ran["interrupted"] == (where != "child")


def test_told_to_end_while_it_stands_still(wherry_run, tmp_path):
    """Going on set the clock back that was to end what does not obey."""
    deaf = program(
        "import pathlib, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "pathlib.Path('deaf').touch()\n"
        "time.sleep(40)"
    )
    own = subprocess.Popen([wherry_run, "timed", "--", *deaf], stdout=subprocess.PIPE, cwd=tmp_path)
    wait_until((tmp_path / "deaf").exists, "the program runs")
    own.send_signal(signal.SIGTSTP)
    stat = Path(f"/proc/{own.pid}/stat")
    wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", "it stands still")
    own.send_signal(signal.SIGTERM)
    own.send_signal(signal.SIGCONT)
    ran = json.loads(own.communicate(timeout=300)[0])
    assert (ran["signal"], ran["interrupted"], ran["stops"]) == (signal.SIGKILL, True, 1)


def test_peak_memory_is_the_programs_own(timed):
    _, small = timed("--", "true")
    _, large = timed("--", *program("x = b'a' * 100_000_000"))
    assert small["peak_bytes"] < 8 << 20
    assert 100_000_000 < large["peak_bytes"] < 200_000_000


def test_a_change_of_the_environment_is_no_memory_of_the_program(timed):
    """What is touched before the program is executed counts as its own: once it was 130 KiB of one side of `ab`.

    How many pages of a file come in with the one that is asked for depends on its address: 250 KiB in all.
    """
    plain, changed = [], []
    for _ in range(9):
        for words, found in (((), plain), (("--set", "A=1"), changed)):
            _, ran = timed(*words, "--", "true", preexec_fn=without_randomisation)
            found.append(ran["peak_bytes"])
    assert abs(statistics.median(changed) - statistics.median(plain)) < 64 << 10


def test_the_environment_is_changed_for_the_program_alone(timed):
    done, _ = timed(
        "--set", "A=b c", "--unset", "B", "--", "sh", "-c", 'echo "$A$B"', env={"B": "x"}
    )
    assert done.stdout.splitlines()[0] == "b c"


def test_what_takes_too_long_or_stays_is_ended(timed):
    _, ran = timed("--limit", "0.3", "--", "sh", "-c", "trap '' TERM; sleep 300 & wait; sleep 300")
    assert ran["timed_out"] and ran["elapsed_ns"] < 250e9
    # A number of its own: the tests may run twice on one machine.
    word = f"sleep 31.{os.getpid()}"
    _, ran = timed("--", "sh", "-c", f"setsid {word} &")
    assert ran["left"] == 1
    assert processes(word) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no program"),
        (("--",), "no program"),
        (("--limit", "x", "--", "true"), "give seconds"),
        (("--limit", "-1", "--", "true"), "give seconds"),
        (("--set", "A", "--", "true"), "KEY=VALUE"),
        (("--unset", "A=1", "--", "true"), "name of a variable"),
        (("--report", "77", "--", "true"), "descriptor"),
        (("--nope", "--", "true"), "unknown argument"),
    ],
)
def test_timed_refuses_misuse(timed, words, said):
    done, ran = timed(*words)
    assert done.returncode == 2 and said in done.stderr and ran is None


def test_timed_says_what_cannot_be_started(timed, tmp_path):
    assert timed("--", "no-such-program")[0].returncode == 127
    (tmp_path / "text").write_text("")
    done, ran = timed("--", tmp_path / "text")
    assert done.returncode == 126 and ran["message"] == "Permission denied"
