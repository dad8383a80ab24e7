"""What every test may use: the native build, the runner, the `wherry` command, reasons to skip."""

from __future__ import annotations

import compileall
import contextlib
import ctypes
import fcntl
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import forked
import pytest

ROOT = Path(__file__).resolve().parent.parent
FAKE = ROOT / "tests/fake_runner.py"
CC = shlex.split(os.environ.get("CC", "cc"))
# The tools of the interpreter that runs the tests come first: they are the pinned ones.
TOOLS = Path(sys.prefix) / "bin"
os.environ["PATH"] = f"{TOOLS}{os.pathsep}{os.environ['PATH']}"
# At each start numpy makes threads for linear algebra, of which nothing here has any.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# What somebody built with `make peers` is no part of what is tested; tests of peers that are found say where.
os.environ["WHERRY_PEERS"] = ""
# A shell without job control has them ignored in what it starts in the background, and programs inherit that.
for _number, _handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),  # nohup has this one ignored
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)


def program(text: str) -> list[str]:
    """A command that runs this as Python, without what the caller has in its environment and directory."""
    return [sys.executable, "-ISc", textwrap.dedent(text)]


def run(*command: str | Path, check: bool = True, **options) -> subprocess.CompletedProcess[str]:
    """Runs a command; when it fails, the test fails with what the command said."""
    options.setdefault("timeout", 600)
    result = subprocess.run(
        [str(word) for word in command], check=False, capture_output=True, text=True, **options
    )
    if check and result.returncode != 0:
        said = (result.stdout + result.stderr)[-4000:]
        shown = " ".join(map(str, command))
        pytest.fail(f"exit {result.returncode} from: {shown}\n{said}", pytrace=False)
    return result


def undefined(objects: list[Path]) -> dict[str, set[str]]:
    """What each object wants from outside itself."""
    wanted: dict[str, set[str]] = {path.name: set() for path in objects}
    for line in run("nm", "-u", "-A", *objects).stdout.splitlines():
        name, _, symbol = line.rpartition(":")
        wanted[Path(name).name].add(symbol.split()[-1])
    return wanted


_forks: list[forked.Forks] = []


def workbench(
    *words: str | Path, env: dict[str, str] | None = None, **options
) -> subprocess.CompletedProcess[str]:
    """Runs the `wherry` command, as a fork where nothing that the test asks for comes before it; does not judge its
    exit status."""
    environment = dict(os.environ) if env is None else env
    if not _forks:
        _forks.append(forked.Forks())
    if _forks[0].serves(environment, options):
        return _forks[0].call([str(word) for word in words], environment, **options)
    command = (sys.executable, "-m", "wherry", *words)
    return run(*command, check=False, env=environment, **options)


def pytest_sessionfinish() -> None:
    while _forks:
        _forks.pop().end()


def need_tool(name: str, package: str, how: str = "make extras") -> str:
    """The path of a program, or a skip that names the Debian package which brings it."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed (Debian package {package}; {how})")
    return path


def need_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")


def need_namespaces(*options: str) -> str:
    """The path of unshare, or a skip where the kernel gives no such namespaces, or in one of mounts nothing may be
    mounted: root in a container may not, nor, without --map-root-user, who is not root."""
    unshare = need_tool("unshare", "util-linux")
    mounts = {"-m", "--mount"} & {*options}
    inside = ("mount", "-t", "tmpfs", "none", "/tmp") if mounts else ("true",)
    tried = run(unshare, *options, *inside, check=False)
    if tried.returncode:
        pytest.skip(f"no namespaces by unshare {' '.join(options)} here: {tried.stderr.strip()}")
    return unshare


def wait_until(holds: Callable[[], object], what: str, seconds: float = 90) -> None:
    """What another process does in its own time, on machines of any speed."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail(f"{what}: not within {seconds} s", pytrace=False)
        time.sleep(0.01)


def without_randomisation() -> None:
    """For `preexec_fn`: the program and what it starts lie at the same addresses each time."""
    ctypes.CDLL(None).personality(0x0040000)  # ADDR_NO_RANDOMIZE


def processor_seconds() -> float:
    """What our children have used that have ended: how long they take where nobody else has the processors."""
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime


def processes(command: str) -> list[int]:
    """Those that were started by just these words, and have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes() == b"".join(os.fsencode(w) + b"\0" for w in command.split()):
                found.append(int(path.parent.name))
    return found


def is_runner(pid: int | str) -> bool:
    """wherry-run, and not one of what a start of `wherry` asks whether all is built."""
    try:
        return Path(f"/proc/{pid}/comm").read_text() == "wherry-run\n"
    except OSError:
        return False


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def below(pid: int) -> list[int]:
    """All descendants."""
    found = []
    for child in map(int, children_of(pid)):
        with contextlib.suppress(OSError):
            found += [child, *below(child)]
    return found


def is_there(pid: int | str) -> bool:
    """Neither gone nor a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def rows_in(journal: Path) -> int:
    """How many rows have come to their end in the journal of a run."""
    try:
        return journal.read_bytes().count(b'"rowend"')
    except OSError:
        return 0


def copy_tree(target: Path) -> Path:
    """The project without what is made in it."""

    def made(directory: str, names: list[str]) -> set[str]:
        top = {".git", ".venv", "build", "runs", "dist"} if Path(directory) == ROOT else set()
        return {n for n in names if n in top or n.endswith("_cache") or n == "__pycache__"}

    shutil.copytree(ROOT, target, ignore=made, symlinks=True)
    return target


# All the warnings that a distribution's build may ask for.
STRICT = ("-Dwarning_level=3", "-Dwerror=true")
NOT_THE_PACKAGE = ("-Dpackage=false", "-Dtests=true")


def meson_build(
    source: Path,
    build: Path,
    *options: str,
    env: dict[str, str] | None = None,
    targets: tuple[str, ...] = (),
    like: Path | None = None,
) -> Path:
    """Sets up a Meson build directory, unless it is, and builds everything in it, or just targets. It may begin as
    a copy of a finished one that is like it but for the options: what those do not change is not made again.

    Tests that run at the same time may want the same directory: one builds, the others wait for it.
    """
    environment = {**os.environ, **(env or {})}
    build.parent.mkdir(parents=True, exist_ok=True)
    with build.with_name(f"{build.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (build / "build.ninja").exists():
            shutil.rmtree(build, ignore_errors=True)
            if like:
                part = build.with_name(f"{build.name}.part")
                shutil.rmtree(part, ignore_errors=True)
                shutil.copytree(like, part, symlinks=True)
                (part / "build.ninja").unlink()  # who is interrupted from here on begins again
                part.rename(build)
                run("meson", "setup", "--reconfigure", build, source, *options, env=environment)
            else:
                run("meson", "setup", build, source, *options, env=environment)
        run("ninja", "-C", build, *targets, env=environment)
    return build


def strict_build(compiler: str) -> Path:
    """Everything, built without a warning. GCC finds some of what it warns of while it optimises, clang all before."""
    faster = ("-Doptimization=0",) if "clang" in compiler else ()
    build = ROOT / "build" / f"strict-{compiler}"
    return meson_build(ROOT, build, *STRICT, *faster, env={"CC": compiler})


@pytest.fixture(scope="session", autouse=True)
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Commands that were told no other place write where they are: not into the source tree."""
    os.chdir(tmp_path_factory.mktemp("elsewhere"))


@pytest.fixture(scope="session")
def build_dir() -> Path:
    """A Meson build directory with all built, native tests too. WHERRY_BUILD names another."""
    if chosen := os.environ.get("WHERRY_BUILD"):
        return Path(chosen).resolve()
    build = ROOT / "build" / "test"
    package = ROOT / "build" / "package"
    like = package if (package / "build.ninja").exists() else None
    try:
        return meson_build(ROOT, build, *STRICT, *NOT_THE_PACKAGE, like=like)
    except pytest.fail.Exception:
        # That there is a warning test_build.py tells; the others want a build all the same.
        run("meson", "configure", build, "-Dwerror=false")
        return meson_build(ROOT, build)


@pytest.fixture(scope="session")
def wherry_run(build_dir: Path) -> Path:
    """The native runner of that build."""
    return build_dir / "runner" / "wherry-run"


@pytest.fixture(scope="session")
def dropin(build_dir: Path) -> Path:
    return build_dir / "preload/libwherry-dropin.so"


@pytest.fixture
def wherry(wherry_run: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the `wherry` command with that runner; does not judge its exit status."""

    def call(*args: str | Path, env: dict[str, str] | None = None, **options):
        environment = {**os.environ, "WHERRY_RUN": str(wherry_run), **(env or {})}
        return workbench(*args, env=environment, **options)

    return call


@pytest.fixture
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test itself is where its files are, and so is what it starts."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def disk() -> Path:
    """A directory whose files can leave the page cache, and which nothing else uses."""
    from wherry.striping import scratch

    for place in ("/var/tmp", "/tmp"):
        if scratch.file_system(Path(place)) not in ("tmpfs", "ramfs"):
            break
    else:
        pytest.skip("/var/tmp and /tmp lie in memory")
    own = Path(place) / f"wherry-test-{os.getpid()}-{time.monotonic_ns()}"
    own.mkdir()
    yield own
    shutil.rmtree(own)


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs a command of wherry in a directory of its own: (exit status, standard output, standard error)."""
    from wherry import cli

    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str, str]:
        status = cli._run([str(a) for a in arguments])
        return status, *capsys.readouterr()

    return run


# What takes longest comes first, in this order: the workers end together when the last files are small ones.
LONGEST = (
    *("test_dispatch.py", "test_emulated.py", "test_build.py", "test_build_flags.py"),
    *("test_tune.py", "test_fleet_hosts.py", "test_fuzz.py", "test_nofault.py"),
    *("test_nofault_table.py", "test_stripes.py", "test_verify.py", "test_turns.py"),
    *("test_campaign.py", "test_stripes_failing.py", "test_install.py", "test_budget.py"),
    *("test_replay.py", "test_scoreboard.py", "test_cli.py", "test_report_browser.py"),
    *("test_report_systems.py", "test_make_peers.py", "test_peer_sources.py"),
    *("test_systems_misuse.py", "test_programs.py", "test_peers.py", "test_measure_peers.py"),
    *("test_watch.py", "test_record_command.py", "test_padded.py", "test_network.py"),
    *("test_verify_fences.py", "test_environment.py", "test_order.py", "test_record_signals.py"),
    *("test_measure_mixes.py", "test_sound.py", "test_percentiles.py", "test_report.py"),
    *("test_report_pictures.py", "test_nofault_go.py", "test_changing.py"),
    *("test_handover.py", "test_resume.py", "test_journal.py", "test_recent.py"),
    *("test_written.py", "test_timed.py"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path.name, len(ranks)))


def pytest_configure(config: pytest.Config) -> None:
    # As tools/setup does it, of modules that changed since: a thousand starts of the command compile nothing.
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(ROOT / "python" / "wherry", quiet=2)
