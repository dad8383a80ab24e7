"""Peers that do in their constructors, or leave behind, what a library should not: each is named, the rest goes on."""

import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ROOT, need_tool, run
from wherry import campaign

SOURCE = """
#define _GNU_SOURCE
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static void at_end(void) { puts("bye"); fflush(stdout); _exit(0); }
static void spin(void) { for (;;) __asm__ volatile(""); }
static void doze(void) { sleep(600); }
static void leave(void) { _exit(0); }
static void lower(int of, rlim_t to) { struct rlimit r = {to, to}; setrlimit(of, &r); }
static void leave_by_timer(union sigval value) { (void)value; _exit(3); }

/* Goes off while rows are measured. */
static void tick(int how)
{
    struct sigevent e = {.sigev_notify = how, .sigev_signo = SIGUSR1};
    if (how == SIGEV_THREAD)
        e.sigev_notify_function = leave_by_timer;
    struct itimerspec i = {.it_value = {.tv_nsec = 400000000}};
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &e, &timer) != 0 || timer_settime(timer, 0, &i, NULL) != 0)
        abort();
}

__attribute__((constructor)) static void start(void)
{
    sigset_t all;
    (void)all;
    DO;
}

#ifdef CHOOSE
static void *choose(void) { CHOOSE; return NULL; }
void *memmove(void *, const void *, size_t) __attribute__((ifunc("choose")));
#endif

#ifndef CALL
#define CALL
#endif
void *memcpy(void *dst, const void *src, size_t n)
{
    CALL;
    void *to = dst;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(src), "+c"(n)::"memory");
    return dst;
}
"""
ROW = "id=1 op=copy routines=libc,p size=64 rounds=1 batch_us=1\n"
HARMLESS = {
    "prints": 'printf("{}\\nhello\\n"); fflush(stdout); printf("left in the buffer")',
    "closes": "close(0); close(1); close(2)",
    "forks": "if (fork() == 0) { sleep(600); _exit(0); }",
    "blocks": "sigfillset(&all); sigprocmask(SIG_BLOCK, &all, NULL)",
    "ignores": "signal(SIGCHLD, SIG_IGN); signal(SIGSEGV, SIG_IGN); signal(SIGTERM, SIG_IGN)",
    "moves": 'if (chdir("/")) abort()',
    "profiles": "struct itimerval i = {{0, 1000}, {0, 1000}}; signal(SIGPROF, SIG_IGN);"
    "setitimer(ITIMER_PROF, &i, NULL)",
    "traps": "unsigned all_exceptions = 0; __builtin_ia32_ldmxcsr(all_exceptions)",
    "ticks": "tick(SIGEV_SIGNAL)",
    "ticks_in_a_thread": "tick(SIGEV_THREAD)",
    "limits": "struct rlimit r; getrlimit(RLIMIT_NOFILE, &r); r.rlim_cur = 3; setrlimit(RLIMIT_NOFILE, &r)",
    "hides_time": "prctl(PR_SET_TSC, PR_TSC_SIGSEGV)",
    "ends": "atexit(at_end)",
    "ends_badly": "atexit(abort)",
    "does_not_end": "atexit(doze)",
    "splits": "fork()",
}
FATAL = {
    "crashes": ("raise(SIGSEGV)", "signal 11"),
    "kills": ("raise(SIGKILL)", "signal 9"),
    "leaves": ("exit(0)", "status 0"),
    "leaves_at_once": ("_exit(7)", "status 7"),
    "complains": ('fputs("no licence\\n", stderr); _exit(3)', "no licence"),
}
# What lasts, and would be blamed on whoever is called when it shows.
LASTING = {
    "has_no_files": ("lower(RLIMIT_NOFILE, 0)", "open files"),
    "has_few_files": ("lower(RLIMIT_NOFILE, 3)", "open files"),
    "has_no_memory": ("lower(RLIMIT_DATA, 1 << 20)", "memory (RLIMIT_DATA)"),
    "has_no_time": ("lower(RLIMIT_CPU, 1)", "processor time"),
    "has_no_processes": ("lower(RLIMIT_NPROC, 0)", "processes"),
    "closes_all": ("for (int fd = 0; fd < 99; fd++) close(fd)", "closed descriptors"),
    "closes_its_input": ("fclose(stdin)", "a standard stream"),
    "closes_its_output": ("fclose(stdout)", "a standard stream"),
    "hangs_children": ("pthread_atfork(0, 0, doze)", "did not return at a fork"),
    "ends_before_forks": ("pthread_atfork(leave, 0, 0)", "ends the process at a fork"),
    "ends_after_forks": ("pthread_atfork(0, leave, 0)", "ends the process at a fork"),
    "ends_children": ("pthread_atfork(0, 0, leave)", "ends the process at a fork"),
}


@pytest.fixture(scope="module")
def peer(tmp_path_factory):
    """Builds a peer whose constructor does something."""
    folder = tmp_path_factory.mktemp("constructors")
    (folder / "peer.c").write_text(SOURCE)
    compiler = need_tool("cc", "gcc")

    def build(name: str, what: str, **more: str):
        library = folder / f"{name}.so"
        defined = {"DO": what, **more}
        run(
            *(compiler, "-O2", "-fPIC", "-shared", "-fno-builtin", "-w"),
            *(f"-D{name}={text}" for name, text in defined.items()),
            *("-o", library, folder / "peer.c"),
        )
        return library

    return build


CAP_SYS_RESOURCE = 24


def unprivileged() -> tuple[str, ...]:
    """In front of a command: without the right to raise hard limits."""
    held = re.search(r"^CapEff:\s*(\w+)", Path("/proc/self/status").read_text(), re.M)
    if not int(held[1], 16) >> CAP_SYS_RESOURCE & 1:
        return ()
    return (
        need_tool("setpriv", "util-linux"),
        "--bounding-set=-sys_resource",
        "--inh-caps=-sys_resource",
    )


def measure(wherry_run, library, row=ROW, prefix=(), **how):
    return run(
        *(*prefix, wherry_run, "measure", "--peer", f"p={library}"),
        **{"input": row, "check": False, "timeout": 300, **how},
    )


@pytest.mark.parametrize("name", HARMLESS)
def test_what_constructors_do_to_the_process_is_put_back(wherry_run, wherry, peer, name):
    # There each process takes longer than the timer, on machines of any speed.
    ticks = "ticks" in name
    slow = {"CALL": "static int calls; if (!calls++) usleep(600000)"} if ticks else {}
    family = ("--family", "sweep") if ticks else ()
    library = peer(name, HARMLESS[name], **slow)
    if (
        name != "forks"
    ):  # its child keeps the output open, as children may: who reads must not wait for it
        done = measure(wherry_run, library)
        assert done.returncode == 0, done.stderr
        events = [json.loads(line) for line in done.stdout.splitlines()]
        assert {e["routine"] for e in events if e["event"] == "cell"} == {"libc", "p"}
        assert [e["event"] for e in events].count("end") == 1
    began = time.monotonic()
    verified = wherry("verify", "--brief", "--only-peers", "--peer", f"p={library}", *family)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert time.monotonic() - began < 300


@pytest.mark.parametrize("how", ["SIGEV_SIGNAL", "SIGEV_THREAD"])
def test_a_timer_that_a_constructor_sets_never_goes_off(wherry_run, peer, how):
    row = "id=1 op=copy routines=libc,p size=64 rounds=4 batch_us=50000\n"  # longer than the timer
    done = measure(wherry_run, peer(f"timer_{how}", f"tick({how})"), row)
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert {e["routine"] for e in events if e["event"] == "cell"} == {"libc", "p"}


def test_the_hard_limit_of_core_files_may_be_lowered(wherry_run, peer):
    """As libraries do that keep secrets."""
    done = measure(wherry_run, peer("has_no_cores", "lower(RLIMIT_CORE, 0)"), prefix=unprivileged())
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", LASTING)
def test_what_cannot_be_put_back_is_the_peer_that_did_it(wherry_run, peer, name):
    what, said = LASTING[name]
    done = measure(wherry_run, peer(name, what), prefix=unprivileged())
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stdout
    assert "peer p: " in done.stderr and said in done.stderr and "; leave it out" in done.stderr
    assert not done.stdout.strip() or json.loads(done.stdout.splitlines()[-1])["event"] != "end"


def test_others_are_verified_where_one_hangs_each_fork(wherry, peer):
    bad, good = peer("hangs_forks", "pthread_atfork(doze, 0, 0)"), peer("good", "")
    done = wherry(
        *("verify", "--brief", "--family", "sweep", "--only-peers", "--json"),
        *("--peer", f"good={good}", "--peer", f"p={bad}"),
    )
    document = json.loads(done.stdout)
    assert done.returncode == 1
    assert [(f["target"], f["state"]) for f in document["failures"]] == [("p", "hang")]
    assert {f["target"] for f in document["families"]} == {"good"}


@pytest.mark.parametrize("name", FATAL)
def test_constructors_that_end_the_process(wherry_run, wherry, peer, name):
    what, said = FATAL[name]
    library = peer(name, what)
    done = measure(wherry_run, library)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "while it was loaded" in done.stderr
    assert said in done.stderr
    good = peer("good", "")
    verified = wherry(
        *("verify", "--brief", "--family", "sweep", "--only-peers", "--json"),
        *("--peer", f"p={library}", "--peer", f"good={good}"),
    )
    assert verified.returncode == 1
    document = json.loads(verified.stdout)
    assert [f["target"] for f in document["failures"]] == ["p"]
    assert {f["target"] for f in document["families"]} == {"good"}


def test_numbers_have_points_whatever_locale_a_peer_sets(wherry_run, peer, tmp_path):
    """With a comma each is two, which are well-formed where the first has no other digits."""
    (tmp_path / "numbers").write_text(
        'LC_NUMERIC\ndecimal_point ","\nthousands_sep "."\ngrouping 3\nEND LC_NUMERIC\n'
        'LC_CTYPE\ncopy "POSIX"\nEND LC_CTYPE\n'
    )
    if not Path("/usr/share/i18n/locales/POSIX").exists():
        pytest.skip("no locales to make one of (Debian package locales; make extras)")
    localedef = need_tool("localedef", "libc-bin")
    # Its status is of what the locale does not say of time and money.
    made = run(*(localedef, "-c", "-i", tmp_path / "numbers", tmp_path / "with_comma"), check=False)
    assert (tmp_path / "with_comma" / "LC_NUMERIC").exists(), made.stderr
    setting = 'if (!setlocale(LC_NUMERIC, "with_comma")) abort()'
    env = {**os.environ, "LOCPATH": str(tmp_path)}
    for library in (peer("speaks", setting), peer("speaks_late", "", CALL=setting)):
        done = measure(wherry_run, library, env=env)
        assert done.returncode == 0, done.stderr
        events = [json.loads(line) for line in done.stdout.splitlines()]
        assert {len(e["ns"]) for e in events if e["event"] == "cell"} == {1}


def test_the_status_is_ours_whatever_a_peer_does_at_the_end(wherry_run, peer):
    """Its destructor runs when verification has found something, and would end the process with 0."""
    library = peer("wrong_at_the_end", "atexit(at_end)", CALL="if (n == 5) return dst")
    verify = (wherry_run, "verify", "--brief", "--family", "sweep", "--only-peers")
    done = run(*verify, "--peer", f"p={library}", check=False)
    assert done.returncode == 1, done.stdout
    assert "bye" not in done.stdout


def test_what_chooses_a_function_is_tried_first(wherry_run, wherry, peer):
    library = peer("chooses", "", CHOOSE="raise(SIGILL)")
    done = measure(wherry_run, library)
    assert (done.returncode, done.stdout) == (1, "")
    assert "crashed while it was loaded: signal 4" in done.stderr
    verified = wherry("verify", "--brief", "--only-peers", "--peer", f"p={library}")
    assert verified.returncode == 1 and verified.stdout.startswith("CRASHED: p\n")


def test_nothing_is_left_behind_of_a_peer_that_does_not_return_in_children(wherry_run, peer):
    # Not where it is tried, whose standard error is a file: that would leave it out.
    keeps = 'char to[64] = ""; readlink("/proc/self/fd/2", to, 63); '
    keeps += "if (to[1] == 100) pthread_atfork(NULL, NULL, spin)"  # of /dev/null
    library = peer("keeps_children", keeps)
    measured = subprocess.Popen(
        [wherry_run, "measure", "--peer", f"p={library}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        measured.communicate(ROW.encode(), timeout=300)
        assert measured.returncode == 0
        until = time.monotonic() + 20
        with pytest.raises(ProcessLookupError):
            while time.monotonic() < until:
                os.killpg(measured.pid, 0)
                time.sleep(0.02)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(measured.pid, signal.SIGKILL)


def test_a_call_that_returns_twice_is_measured_once(wherry_run, peer):
    row = "id=1 op=copy routines=libc,p size=64 rounds=20 batch_us=20\n"
    library = peer(
        "splits_late", "", CALL="static int calls; if (calls++ == 2000 && fork() == 0) usleep(9999)"
    )
    done = measure(wherry_run, library, row)
    assert done.returncode == 0
    events = [json.loads(line)["event"] for line in done.stdout.splitlines()]
    assert events.count("rowend") == events.count("end") == 1


@pytest.mark.parametrize(
    ("name", "call", "kind"),
    [
        (
            "deaf",
            "static long calls; sigset_t all; sigfillset(&all); sigprocmask(SIG_BLOCK, &all, NULL);"
            "if (calls++ == 20000) doze()",
            "hang",
        ),
        (
            "times_out",
            "static int calls; struct itimerval i = {{0, 0}, {0, 80000}};"
            "if (calls++ == 2000) setitimer(ITIMER_PROF, &i, NULL);"
            # As quick as the others, so that most likely another one is under way then.
            "typedef long part __attribute__((vector_size(16), aligned(1), may_alias));"
            "if (n == 64) { const part *from = src; part *to = dst;"
            "part a = from[0], b = from[1], c = from[2], e = from[3];"
            "to[0] = a; to[1] = b; to[2] = c; to[3] = e; return dst; }",
            "crash",
        ),
    ],
)
def test_who_ends_the_runner_or_keeps_it_from_speaking_is_named(
    wherry_run, peer, monkeypatch, name, call, kind
):
    """And not who was tried last, or was under way."""
    monkeypatch.setenv("WHERRY_RUN", str(wherry_run))
    monkeypatch.setattr(campaign, "RUNNER_TELLS", 8)
    peers = [f"p={peer(name, '', CALL=call)}"]
    routines = ("libc", "p", "wherry")
    if kind == "hang":
        peers, routines = [*peers, f"q={peer('good', '')}"], ("libc", "p", "q")
    row = campaign.Row("sizes", "copy", routines, 64, rounds=60, batch_us=1000)
    own = campaign.Campaign([row], processes=1, peers=peers, hang_limit=8)
    own.run()
    assert [(problem.kind, problem.routine) for problem in own.problems] == [(kind, "p")]
    assert {cell for _, cell, _ in own.cells} == {*routines} - {"p"}


def test_a_constructor_that_hangs_is_told_as_such(wherry, peer):
    library = peer("sleeps", "sleep(600)")
    done = wherry("verify", "--brief", "--only-peers", "--peer", f"p={library}")
    assert done.returncode == 1 and done.stdout.startswith("HUNG: p\n"), done.stdout
    assert "did not return within" in done.stdout


def test_a_file_name_with_a_colon(wherry_run, peer, tmp_path):
    library = peer("good", "")
    named = tmp_path / "a:b.so"
    named.write_bytes(library.read_bytes())
    assert measure(wherry_run, named).returncode == 0


def test_more_peers_than_the_runner_takes(wherry, tmp_path):
    many = [word for i in range(33) for word in ("--peer", f"p{i}={tmp_path}/none.so")]
    for command in ("bench", "verify"):
        result = wherry(command, *many)
        assert result.returncode == 2
        assert result.stderr == "wherry: --peer: at most 32 at once\n"


@pytest.mark.parametrize(
    ("limit", "value"), [(resource.RLIMIT_AS, 2_000_000_000), (resource.RLIMIT_NOFILE, 20)]
)
def test_a_narrow_system_is_no_fault_of_the_routine(wherry_run, limit, value):
    done = run(
        *(wherry_run, "verify", "rep_movsb", "--brief", "--jobs", "30"),
        check=False,
        timeout=300,
        preexec_fn=lambda: resource.setrlimit(limit, (value, value)),
    )
    assert done.returncode == 0, done.stdout
    if limit == resource.RLIMIT_AS:
        assert "refuses the memory" in done.stdout


def test_no_case_is_nothing_verified(wherry_run):
    room = 300_000_000
    done = run(
        *(wherry_run, "verify", "rep_movsb", "--brief", "--family", "huge"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (room, room)),
    )
    assert "refuses the memory" in done.stdout and "all right" not in done.stdout
    assert "nothing verified: 0 cases" in done.stdout


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams(wherry_run, closed):
    result = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m wherry list routines {closed}'],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "WHERRY_RUN": str(wherry_run), "PYTHONPATH": str(ROOT / "python")},
    )
    assert result.returncode == 0
    assert result.stderr == ""


def test_a_limit_on_processor_time_is_no_fault_of_the_peer(wherry_run, tmp_path):
    """Of verification: what was not tried is told as skipped, with the limit, and as no proof; without a limit the
    signal is a crash."""
    compiler = need_tool("cc", "gcc")
    source, library = tmp_path / "spent.c", tmp_path / "spent.so"
    source.write_text(
        "#include <signal.h>\n#include <stddef.h>\n"
        "void *memcpy(void *d, const void *s, size_t n)\n"
        "{ (void)s; (void)n; raise(SIGXCPU); return d; }\n"
    )
    run(*(compiler, "-fPIC", "-shared", "-fno-builtin", "-w", str(source), "-o", str(library)))
    for limit, words in (
        ("1000", ("ulimit -t", "not proved: cut off: 0 cases", " 0 failures")),
        ("unlimited", ("with signal 24", "wrong: ")),
    ):
        said = run(
            *("bash", "-c", f'ulimit -S -t {limit}; exec "$@"', "bash", str(wherry_run)),
            *("verify", "--brief", "spent", "--peer", f"spent={library}"),
            check=False,
        )
        assert said.returncode == 1, said.stdout
        assert all(word in said.stdout for word in words), said.stdout


def test_a_peer_that_jumps_where_no_code_is(wherry_run, tmp_path):
    """That nothing was read there tells who looks for the mistake where not to look."""
    (tmp_path / "p.c").write_text("int memcpy = 5;")
    library = tmp_path / "libp.so"
    run(need_tool("cc", "gcc"), "-shared", "-fPIC", "-w", "-o", library, tmp_path / "p.c")
    done = run(
        *(wherry_run, "verify", "--brief", "--family", "empty", "--peer", f"p={library}"),
        *("--only-peers",),
        check=False,
        timeout=300,
    )
    assert done.returncode == 1
    assert "a segmentation fault, jumping to address 0x" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("names", "around", "said"),
    [
        (
            ("my_memcpy_v2", "my_memcpy_longer_v2"),
            "",
            "it has my_memcpy_v2: if that is meant, give '{}:my_*_v2'",
        ),
        (
            ("fast_memmove", "unlike"),
            ":x_*",
            "called x_*; it has fast_memmove: if that is meant, give '{}:fast_'",
        ),
        (("_ZN4mine6memcpyEPvPKvm",), "", "give '{}:_ZN4mine6*EPvPKvm'"),
        (("csum_partial_copy_v3",), "", "give '{}:*_v3'"),
        (("memset",), ":y_", "give '{}'"),
        (("unlike",), "", "with a * for it (NAME=PATH:my_*_avx2)"),
    ],
)
def test_a_function_of_another_name_is_told_with_what_to_write(
    wherry_run, tmp_path, names, around, said
):
    """What is told can be given as it stands."""
    bodies = "".join(f"void *{name}(void *d) {{ return d; }}\n" for name in names)
    (tmp_path / "p.c").write_text(bodies + "static void *a_memcpy(void *d) { return d; }\n")
    library = tmp_path / "lib p.so"
    flags = ("-shared", "-fPIC", "-w", "-fno-builtin")
    run(need_tool("cc", "gcc"), *flags, "-o", library, tmp_path / "p.c")
    verify = (wherry_run, "verify", "--brief", "--family", "empty", "--only-peers", "--peer")
    done = run(*verify, f"p={library}{around}", check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert said.format(f"p={library}") in done.stderr, done.stderr
    if "give '" in done.stderr:
        told = done.stderr.rsplit("give '", 1)[1].rstrip("'\n")
        assert "has none" not in run(*verify, told, check=False).stderr


def test_of_a_damaged_list_of_sections_no_name_is_told(wherry_run, tmp_path):
    """The loader does without it."""
    (tmp_path / "p.c").write_text("void *my_memcpy(void *d) { return d; }\n")
    library = tmp_path / "libp.so"
    run(need_tool("cc", "gcc"), "-shared", "-fPIC", "-w", "-o", library, tmp_path / "p.c")
    whole = library.read_bytes()
    for at, size, word in ((0x28, 8, 2**64 - 8), (0x28, 8, len(whole) - 64), (0x3C, 2, 0xFFFF)):
        library.write_bytes(whole[:at] + word.to_bytes(size, "little") + whole[at + size :])
        done = run(
            *(wherry_run, "verify", "--brief", "--only-peers", "--peer", f"p={library}"),
            check=False,
        )
        assert done.returncode == 2 and "has none of memcpy" in done.stderr, done.stderr
        assert "NAME=PATH:PREFIX" in done.stderr, done.stderr
