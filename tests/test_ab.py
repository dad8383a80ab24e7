"""`wherry ab` as a user runs it: what it counts, when it sees a difference, what it refuses."""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest
from conftest import need_tool, processes, program, run, wait_until
from wherry import libctunables, runfile
from wherry.ab import running, sides, turns
from wherry.ab.running import Ran
from wherry.cli import trying
from wherry.errors import WherryError

pytestmark = pytest.mark.usefixtures("own_directory")


# ---- sides ----------------------------------------------------------------------------------------------------------


def test_sides_are_read(wherry_run, tmp_path, monkeypatch):
    monkeypatch.setenv("WHERRY_RUN", str(wherry_run))
    base = {"LD_PRELOAD": "/x/libwherry-dropin.so:/y/other.so", "WHERRY_PLAN": "/p", "HOME": "/h"}
    stock = sides.parse("libc", base)
    assert dict(stock.environment) == {"LD_PRELOAD": "/y/other.so", "HOME": "/h"}
    assert stock.name == "libc" and not stock.preloads
    dropin = sides.parse("dropin", base)
    assert dropin.environment["LD_PRELOAD"].startswith(str(wherry_run.parent.parent))
    assert dropin.environment["LD_PRELOAD"].endswith(":/y/other.so") and dropin.preloads
    assert "WHERRY_PLAN" not in dropin.environment
    tuned = sides.parse("glibc.cpu.x86_rep_movsb_threshold=4096 A='b c'", base)
    assert tuned.environment["GLIBC_TUNABLES"] == "glibc.cpu.x86_rep_movsb_threshold=4096"
    assert tuned.environment["A"] == "b c" and not tuned.preloads
    given, taken = stock.changes(base)
    assert given == {"LD_PRELOAD": "/y/other.so"} and taken == ["WHERRY_PLAN"]


@pytest.mark.parametrize("what", ["", "foo", "plan:", "plan:/no/such", "preload:", "'a", "1A=2"])
def test_what_is_no_side_is_refused(what):
    with pytest.raises(WherryError):
        sides.parse(what, {})


def test_the_same_twice_is_refused():
    with pytest.raises(WherryError, match="nothing to compare"):
        sides.pair("libc", "stock", {})


# ---- the command ----------------------------------------------------------------------------------------------------


def busy(seconds: str) -> list[str]:
    """Works for as long as the environment says: a program that one side makes slower."""
    return program(
        f"import os, time\nwhile time.process_time() < float(os.environ.get('BUSY', '{seconds}')): pass\nprint(1)"
    )


def test_a_slower_side_is_named(wherry, tmp_path):
    done = wherry(
        *("ab", "--runs", "8", "--b", "BUSY=0.12", "--save", "r.json", "--"), *busy("0.06")
    )
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "BUSY=0.12 is slower than libc" in text and "keep libc" in text
    assert done.stderr == "" and "\033" not in done.stdout
    saved = runfile.read(tmp_path / "r.json")
    own = saved["experiments"][0]["ab"]
    assert own["call"] == "slower" and own["rounds"] == 4
    assert 1.5 < own["metrics"]["cpu"]["ratio"]["median"] < 2.5
    assert own["b"]["environment"] == {"BUSY": "0.12"} and own["a"]["environment"] == {}
    assert own["program"] == busy("0.06")
    for command in (("compare", "r.json", "r.json"), ("report", "r.json", "-o", "page.html")):
        told = wherry(*command)
        assert told.returncode == 0, told.stderr + told.stdout
    assert (tmp_path / "page.html").stat().st_size > 1000


def test_a_faster_side_is_named(wherry):
    done = wherry(
        *("ab", "--runs", "8", "--a", "BUSY=0.12", "--b", "libc", "--json", "--"), *busy("0.06")
    )
    assert done.returncode == 0, done.stderr
    own = json.loads(done.stdout)["experiments"][0]["ab"]
    assert own["call"] == "faster" and "Take libc" in own["verdict"]


def test_the_dropin_is_loaded_on_its_side_alone(wherry, tmp_path):
    look = program("print('dropin' in open('/proc/self/maps').read())")
    done = wherry("ab", "--runs", "2", "--keep", "kept", "--save", "r.json", "--", *look)
    assert done.returncode == 0, done.stderr
    assert "Not decided" in done.stdout
    kept = {path.name: path.read_text() for path in (tmp_path / "kept").iterdir()}
    assert len(kept) == 6
    assert all(text == ("True\n" if "dropin" in name else "False\n") for name, text in kept.items())


def test_tunables_are_sides(wherry, tmp_path):
    show = program("import os; print(os.environ.get('GLIBC_TUNABLES'))")
    tunable = "glibc.cpu.x86_rep_movsb_threshold=4096"
    done = wherry("ab", "--runs", "2", "--tunables", tunable, "--keep", "kept", "--", *show)
    assert done.returncode == 0, done.stderr
    kept = {path.read_text() for path in (tmp_path / "kept").iterdir()}
    assert kept == {"None\n", tunable + "\n"}
    refused = wherry("ab", "--tunables", tunable, "--a", "libc", "--", "true")
    assert refused.returncode == 2 and "exclude" in refused.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--tunables", "glibc.cpu.nonsense=5"), "no tunable of this glibc 'glibc.cpu.nonsense'"),
        (("--tunables", "glibc.cpu.x86_rep_movsb_treshold=9999"), "did you mean glibc.cpu.x86_rep"),
        (("--tunables", "glibc.cpu.x86_rep_movsb_threshold=banana"), "'banana' is no number"),
        (("--tunables", "glibc.cpu.x86_rep_movsb_threshold=4096k"), "'4096k' is no number"),
        (("--tunables", "glibc.pthread.mutex_spin_count=99999"), "it is outside 0x0 to 0x7fff"),
        (("--b", "glibc.cpu.nonsense=5"), "no tunable of this glibc"),
        (("--tunables", "glibc.cpu.hwcaps=-NONSENSE"), "-NONSENSE changes nothing in this glibc"),
        (("--b", "dropin GLIBC_TUNABLES=garbage"), "it is no glibc.cpu.NAME=VALUE"),
        (("--tunables", "x86=1"), "give a line for GLIBC_TUNABLES"),
        (("--tunables", " "), "give a line for GLIBC_TUNABLES"),
        (("--tunables", ""), "--tunables is empty; was a variable not set?"),
        (("--a", ""), "--a is empty"),
        (("--b", ""), "--b is empty"),
        (("--b", " "), "an empty side"),
        (("--b", "preload:/etc/passwd"), "it is no shared object"),
        (("--b", "preload:pie"), "the loader leaves it out (cannot dynamically load position"),
        (("--b", "preload:needy.so"), "no program runs with it (loading shared libraries: gone.so"),
        (("--plan", "/dev"), "it is no regular file"),
        (("--plan", "foreign.toml"), "it is for family 2, and this CPU is family"),
        (("--b", "LD_PRELOAD=/etc/passwd"), "it is no shared object"),
        (
            ("--b", "LD_PRELOAD=libm.so.6:gone.so"),
            "LD_PRELOAD=gone.so: the loader leaves it out (cannot",
        ),
        (("--b", "dropin WHERRY_PLAN=foreign.toml"), "it is for family 2"),
        (("--b", "plan:foreign.toml"), "the default plan would serve in its place"),
    ],
)
def test_what_would_not_be_in_force_is_refused(wherry, tmp_path, words, said):
    if "glibc" in said + words[1] and not libctunables.listed():
        pytest.skip("this glibc does not list its tunables")
    if "pie" in words[1] or "needy" in words[1]:
        compiler = need_tool("cc", "gcc")
        (tmp_path / "e.c").write_text("int main(void) { return 0; }\n")
        run(compiler, "-pie", "-fPIE", "e.c", "-o", "pie", cwd=tmp_path)
        run(compiler, "-shared", "-fPIC", "e.c", "-o", "gone.so", cwd=tmp_path)
        run(
            compiler,
            "-shared",
            "-fPIC",
            "e.c",
            "-Wl,--no-as-needed",
            "gone.so",
            "-o",
            "needy.so",
            cwd=tmp_path,
        )
        (tmp_path / "gone.so").unlink()
    if "foreign" in words[1]:
        foreign_plan(wherry, tmp_path / "foreign.toml")
    done = wherry("ab", "--runs", "2", *words, "--", "touch", "ran")
    assert (done.returncode, done.stdout) == (2, ""), done.stdout
    assert said in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert not (tmp_path / "ran").exists()


def foreign_plan(wherry, path: Path) -> None:
    wherry("plan", "default", "-o", path)
    path.write_text(re.sub(r"family = \d+", "family = 2", path.read_text()))


def test_a_library_with_a_blank_in_its_name_is_loaded(wherry, tmp_path):
    compiler = need_tool("cc", "gcc")
    (tmp_path / "e.c").write_text("int nothing;\n")
    run(compiler, "-shared", "-fPIC", "e.c", "-o", "a b:c.so", cwd=tmp_path)
    look = program("print('a b:c.so' in open('/proc/self/maps').read())")
    words = ("--b", "preload:'a b:c.so'", "--keep", "kept", "--expect", "0")
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = wherry("ab", "--runs", "2", *words, "--", *look, env=env)
    assert done.returncode == 0, done.stderr
    kept = {path.name: path.read_text() for path in (tmp_path / "kept").iterdir()}
    assert all((text == "True\n") == ("-libc" not in name) for name, text in kept.items()), kept


def test_a_library_that_needs_others_finds_them(wherry, tmp_path):
    compiler = need_tool("cc", "gcc")
    (tmp_path / "lib").mkdir()
    (tmp_path / "e.c").write_text("int nothing;\n")
    run(
        compiler,
        "-shared",
        "-fPIC",
        "e.c",
        "-Wl,-soname,other.so",
        "-o",
        "lib/other.so",
        cwd=tmp_path,
    )
    own = ("-Wl,--no-as-needed", "lib/other.so", "-o", "needy.so")
    run(compiler, "-shared", "-fPIC", "e.c", *own, cwd=tmp_path)
    for side, env in (
        ("preload:needy.so", {"LD_LIBRARY_PATH": "lib"}),
        ("LD_LIBRARY_PATH=lib preload:needy.so", {}),
    ):
        done = wherry("ab", "--runs", "2", "--b", side, "--", "true", env=env)
        assert done.returncode == 0, done.stderr


def test_plans_go_by_without_a_place_for_them(wherry, tmp_path):
    nowhere = {"HOME": "/proc/nowhere", "XDG_CACHE_HOME": "", "TMPDIR": str(tmp_path)}
    wherry("plan", "default", "-o", "mine.toml")
    text = (tmp_path / "mine.toml").read_text()
    (tmp_path / "mine.toml").write_text(
        re.sub(r"(stream_(?:recent_)?from) = \S+ \S+", r'\1 = "99 MiB"', text)
    )
    done = wherry("ab", "--runs", "2", "--plan", "mine.toml", "--", "true", env=nowhere)
    assert done.returncode == 0, done.stderr


def test_what_we_inherit_is_the_programs_too(wherry, tmp_path):
    (tmp_path / "given").write_text("it")
    seen = """
        import os
        names = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd") if int(number) > 2]
        print(sorted(os.readlink(name) for name in names if os.path.exists(name)))
    """
    with (tmp_path / "given").open() as given:
        options = {"pass_fds": (given.fileno(),)}
        alone = run(*program(seen), cwd=tmp_path, **options).stdout
        words = ("--prepare", f"cat /proc/self/fd/{given.fileno()} >> prepared", "--keep", "kept")
        done = wherry("ab", "--runs", "2", *words, "--", *program(seen), **options)
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "given") in alone
    assert {path.read_text() for path in (tmp_path / "kept").iterdir()} == {alone}
    assert (tmp_path / "prepared").read_text() == "it" * 6


def test_one_round_has_no_interval(wherry):
    done = wherry("ab", "--runs", "2", "--", *busy("0.01"))
    text = " ".join(done.stdout.split())
    assert "2 of each in 1 round of A B B A" in text
    assert "Not decided: one round of four runs is too few to tell (CPU time" in text
    assert "[" not in text and "±" not in text


def test_a_directory_that_cannot_be_written_is_told_first(wherry, tmp_path):
    (tmp_path / "runs").write_text("in the way")
    done = wherry("ab", "--runs", "2", "--", "touch", "ran")
    assert done.returncode == 2 and "choose another place" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_a_run_file_of_this_second_is_not_written_over(tmp_path, monkeypatch):
    from wherry import stamp

    now = datetime.datetime(2026, 11, 25, tzinfo=datetime.timezone.utc)
    fixed = types.SimpleNamespace(now=lambda _: now)
    monkeypatch.setattr(
        stamp, "datetime", types.SimpleNamespace(datetime=fixed, timezone=datetime.timezone)
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    for number in range(3):
        own = stamp.path("-ab.json")
        assert not own.exists() and own.name.endswith("-3-ab.json") is (number == 2)
        own.touch()


def test_figures_that_cannot_be_saved_are_shown(wherry, tmp_path):
    spoil = "rm -rf runs; touch runs"
    done = wherry("ab", "--runs", "2", "--", "sh", "-c", spoil)
    assert done.returncode == 1 and "could not save runs/" in done.stderr
    assert "CPU time" in done.stdout and "Saved" not in done.stdout
    (tmp_path / "runs").unlink()
    done = wherry("ab", "--runs", "2", "--json", "--", "sh", "-c", spoil)
    assert done.returncode == 1 and json.loads(done.stdout)["experiments"][0]["ab"]["rounds"] == 1


def test_a_prepare_that_takes_too_long_is_ended(wherry):
    # A number of its own: the tests may run twice on one machine.
    word = f"sleep 41.{os.getpid()}"
    stubborn = f"trap '' TERM; {word} | {word}; {word}"
    done = wherry("ab", "--runs", "2", "--limit", "0.3s", "--prepare", stubborn, "--", "true")
    assert done.returncode == 1 and "--prepare did not end within 0.3 s" in done.stderr
    assert processes(word) == []


def test_a_prepare_ends_with_us(wherry_run, tmp_path):
    word = f"sleep 42.{os.getpid()}"
    command = [sys.executable, "-m", "wherry", "ab", "--prepare", f"{word} | {word}; true"]
    process = subprocess.Popen(
        [*command, "--", "true"],
        env={**os.environ, "WHERRY_RUN": str(wherry_run)},
        stderr=subprocess.PIPE,
    )
    wait_until(lambda: len(processes(word)) == 2, "the prepare has begun")
    process.terminate()
    _, said = process.communicate(timeout=300)
    assert process.returncode == 143 and b"interrupted after 0 rounds" in said
    wait_until(lambda: not processes(word), "killed, they are gone", seconds=30)  # before they end


def test_output_that_differs_is_an_error(wherry):
    differs = program("import os; print('dropin' in os.environ.get('LD_PRELOAD', ''))")
    done = wherry("ab", "--runs", "2", "--same-output", "--", *differs)
    assert done.returncode == 1
    assert "wrote under dropin not the same as under libc" in done.stderr
    # Of the same side it is the program.
    changes = program("import time; print(time.monotonic_ns())")
    done = wherry("ab", "--runs", "2", "--a", "A=1", "--b", "A=2", "--same-output", "--", *changes)
    assert done.returncode == 1 and "from run to run" in done.stderr
    assert wherry("ab", "--runs", "2", "--", *differs).returncode == 0


def test_the_side_that_writes_otherwise_is_told():
    def of(output: str) -> Ran:
        return Ran(0, 1.0, 1.0, 0.0, 1, 1, output)

    pair = tuple(sides.Side(name, name, {}, False) for name in ("libc", "dropin"))
    own = running.Program(["x"])
    firsts = [of("a"), of("a")]
    turns._compare(own, firsts, of("a"), pair, pair[1], True)
    with pytest.raises(WherryError, match="not the same as at first under dropin"):
        turns._compare(own, firsts, of("b"), pair, pair[1], True)


def test_a_status_of_one_side_alone_is_no_reason_to_expect_it(wherry):
    differs = program(
        "import os; raise SystemExit(7 * ('dropin' in os.environ.get('LD_PRELOAD', '')))"
    )
    done = wherry("ab", "--runs", "2", "--", *differs)
    assert done.returncode == 1 and "--expect" not in done.stderr
    assert (
        "under dropin" in done.stderr and "and with 0 under libc: the sides differ" in done.stderr
    )


IGNORING = "trap '' CHLD; exec \"$@\""


def test_a_failure_is_seen_where_children_are_ignored(wherry_run):
    """Python takes one of which nothing is told for one that ended well."""
    for words in (("--", "sh", "-c", "exit 5"), ("--prepare", "exit 5", "--", "true")):
        own = (sys.executable, "-m", "wherry", "ab", "--runs", "2", *words)
        done = run(
            *("sh", "-c", IGNORING, "sh", *own),
            check=False,
            env={**os.environ, "WHERRY_RUN": str(wherry_run)},
        )
        assert done.returncode == 1 and "status 5" in done.stderr


def test_an_odd_number_of_runs_is_one_more_and_said(wherry):
    words = " ".join(wherry("ab", "--runs", "3", "--", "true").stdout.split())
    assert "4 of each in 2 rounds" in words and "3 were asked for, and a round has two" in words


def test_a_status_that_differs_is_an_error(wherry):
    differs = program("import os, sys; sys.exit('dropin' in os.environ.get('LD_PRELOAD', ''))")
    done = wherry("ab", "--runs", "2", "--", *differs)
    assert done.returncode == 1 and "under dropin" in done.stderr


def test_prepare_comes_before_each_run(wherry, tmp_path):
    prepare = "test ! -e made && echo x >> count"
    done = wherry("ab", "--runs", "2", "--prepare", prepare, "--", "true")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "count").read_text() == "x\n" * 6
    failing = wherry("ab", "--runs", "2", "--prepare", "exit 4", "--", "true")
    assert failing.returncode == 1 and "--prepare" in failing.stderr


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ((), 2, "no command"),
        (("--", "no-such-program"), 2, "no such command"),
        (("--", "/"), 2, "executed"),
        (("--", "false"), 1, "--expect 1"),
        (("--runs", "1", "--", "true"), 2, "--runs"),
        (("--time", "x", "--", "true"), 2, "90s"),
        (("--stdin", "gone", "--", "true"), 2, "no such file"),
        (("--b", "plan:gone", "--", "true"), 2, "no such file"),
        (("--a", "libc", "--b", "libc", "--", "true"), 2, "nothing to compare"),
        (("--limit", "0.2s", "--runs", "2", "--", "sleep", "9"), 1, "did not end within"),
        (("--runs", "2", "--", "sh", "-c", "setsid sleep 30 &"), 1, "left 1 process running"),
        (("--save", "/proc/x/y.json", "--", "true"), 2, "cannot save"),
    ],
)
def test_misuse_is_one_line(wherry, words, status, said):
    done = wherry("ab", *words)
    assert done.returncode == status and said in done.stderr
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr


def test_input_that_may_not_be_read_is_misuse(tmp_path, monkeypatch):
    path = tmp_path / "in"
    path.write_text("")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(WherryError, match="may not be read"):
        trying._program(["true"], 1.0, {"stdin": str(path)})


def test_input_that_no_run_reads_is_told(wherry, tmp_path):
    (tmp_path / "in").write_text("some")
    command = ("ab", "--runs", "2", "--", "true")
    with (tmp_path / "in").open() as source:
        read, write = os.pipe()
        later = (*command[:-1], *program(f"import os; os.write({write}, b'x')"))
        told = [
            wherry(*command, stdin=source),
            wherry(*command, input="some"),
            wherry(*later, stdin=read, pass_fds=(write,)),
        ]
        silent = [
            wherry("ab", "--stdin", "in", *command[1:], stdin=source),
            wherry(*command, input=""),
            wherry(*command, stdin=subprocess.DEVNULL),
        ]
        os.close(read)
        os.close(write)
    assert [done.returncode for done in told + silent] == [0] * 6
    assert [done.stderr for done in told] == [f"wherry ab: {trying.UNREAD}\n"] * 3
    assert [done.stderr for done in silent] == [""] * 3


def test_a_static_program_is_refused_unless_forced(wherry, tmp_path):
    compiler = need_tool("cc", "gcc")
    (tmp_path / "s.c").write_text("int main(void) { return 0; }\n")
    run(compiler, "-static", "s.c", "-o", "s", cwd=tmp_path)
    done = wherry("ab", "--runs", "2", "--", "./s")
    assert done.returncode == 2 and "static" in done.stderr
    assert wherry("ab", "--runs", "2", "--force", "--", "./s").returncode == 0


def test_a_static_program_goes_by_tunables(wherry, tmp_path):
    """Its own glibc reads them; what has no glibc does not."""
    tunable = "glibc.cpu.x86_rep_movsb_threshold=4096"
    compiler = need_tool("cc", "gcc")
    (tmp_path / "s.c").write_text("int main(void) { return 0; }\n")
    run(compiler, "-static", "s.c", "-o", "s", cwd=tmp_path)
    done = wherry("ab", "--runs", "2", "--tunables", tunable, "--", "./s")
    assert done.returncode == 0, done.stderr
    done = wherry("ab", "--a", "libc", "--b", f"dropin {tunable}", "--", "./s")
    assert done.returncode == 2 and "no loader runs" in done.stderr
    (tmp_path / "n.c").write_text(
        'void _start(void) { __asm__ volatile("syscall" : : "a"(231), "D"(0)); }\n'
    )
    run(compiler, "-static", "-nostdlib", "n.c", "-o", "n", cwd=tmp_path)
    done = wherry("ab", "--tunables", tunable, "--", "./n")
    assert done.returncode == 2 and "not with a glibc that has tunables" in done.stderr


def test_help_has_an_example(wherry):
    done = wherry("ab", "--help")
    assert done.returncode == 0 and "Example: wherry ab" in done.stdout
