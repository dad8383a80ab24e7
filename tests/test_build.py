"""The build: no warnings, routines that call nothing, a package that works, a set-up that says what is missing."""

from __future__ import annotations

import fcntl
import json
import os
import re
import select
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import (
    ROOT,
    copy_tree,
    meson_build,
    need_root,
    need_tool,
    run,
    strict_build,
    undefined,
)
from disassembly import registry


# --- the native build ----------------------------------------------------------------------------
def strict(build: Path) -> str | None:
    """By which kind of compiler it was built, if no warning was let pass."""

    def told(of: str):
        return json.loads(run("meson", "introspect", build, f"--{of}").stdout)

    options = {own["name"]: own["value"] for own in told("buildoptions")}
    if not options["werror"] or options["warning_level"] != "3":
        return None
    return told("compilers")["host"]["c"]["id"]


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_no_warnings(build_dir: Path, compiler: str):
    if "WHERRY_BUILD" not in os.environ and strict(build_dir) == compiler:
        return
    numbered = (f"{compiler}-{number}" for number in range(30, 10, -1))
    if not shutil.which(compiler):
        compiler = next(filter(shutil.which, numbered), compiler)
    need_tool(compiler, compiler)
    strict_build(compiler)


def test_routines_call_nothing(build_dir: Path):
    """A routine that calls memcpy would be this library calling itself, without end."""
    rows = registry()
    callers = {row.object for row in rows if "TRAIT_CALLS_LIBC" in row.traits}
    objects = sorted((build_dir / "src").glob("libroutines-*.a.p/*.o"))
    assert len(objects) >= len({row.file for row in rows})
    for name, symbols in undefined(objects).items():
        allowed = {
            "_GLOBAL_OFFSET_TABLE_",
            "wherry_thresholds",
            "wherry_recent_copies",
            "wherry_recent_sets",
            "wherry_written_zeroes",
            "wherry_touched",
        } | ({"memmove", "bcopy"} if name in callers else set())
        assert symbols <= allowed, f"{name} wants {symbols - allowed}"


def test_the_plain_loops_of_the_limit_call_no_routine(build_dir: Path):
    """Else the limit would be what libc's memcpy makes of what is less than a vector, eight bytes a call."""
    (path,) = (build_dir / "runner").glob("**/*yardsticks.c.o")
    (symbols,) = undefined([path]).values()
    assert "call_floor" in symbols and not {s for s in symbols if s.startswith("mem")}, symbols


def test_all_is_built_where_files_are_put_together(tmp_path: Path):
    """Meson's --unity=on: what has files that do not go together is built of each for itself."""
    build = tmp_path / "build"
    run("meson", "setup", build, ROOT, "--unity=on")
    units = list(build.glob("**/*-unity*.c"))
    assert units
    for unit in units:
        files = set(re.findall(r'^#include\s*["<](.*)[">]', unit.read_text(), flags=re.MULTILINE))
        assert len({name for name in files if Path(name).name != "registry.c"}) == 1, unit
    run("ninja", "-C", build, "-n")


def test_a_call_in_a_routine_is_seen(tmp_path: Path):
    (tmp_path / "a.c").write_text("void f(void *d, void *s) { __builtin_memcpy(d, s, 1 << 20); }\n")
    run("cc", "-c", "a.c", cwd=tmp_path)
    assert undefined([tmp_path / "a.o"]) == {"a.o": {"memcpy"}}


def test_a_routine_is_one_file_and_one_line(tmp_path: Path, build_dir: Path):
    """As CONTRIBUTING shows it: its example is what is built here."""
    tree = copy_tree(tmp_path / "tree")
    guide = (ROOT / "CONTRIBUTING.md").read_text()
    code = re.search(r"```c\n(.*?)```", guide, flags=re.DOTALL)
    line = re.search(r"^ROUTINE\((\w+),.*$", guide, flags=re.MULTILINE)
    assert code
    assert line
    name = line[1]
    (tree / "src/routines" / line[0].split(",")[6].strip()).write_text(code[1])
    with (tree / "src/routines/registry.def").open("a") as registry:
        registry.write(line[0] + "\n")
    program = "runner/wherry-run"
    build = tree / "build" / "test"
    runner = meson_build(tree, build, "-Dwerror=true", targets=(program,), like=build_dir) / program
    assert name in run(runner, "list").stdout
    assert run(runner, "verify", name, "--brief").returncode == 0


# --- the package ---------------------------------------------------------------------------------
PACKAGE = ("-Dpackage=true", "-Dtests=false")  # as pyproject.toml has it


@pytest.fixture(scope="session")
def wheel_home(tmp_path_factory: pytest.TempPathFactory, build_dir: Path) -> Path:
    """A fresh venv with the wheel in it; the pinned dependencies are lent by the venv of the tests."""
    base = tmp_path_factory.mktemp("wheel")
    tree = copy_tree(base / "tree")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input")
    # It begins with the objects of the tests' build, which are the same; that it can be made from nothing tools/setup
    # has shown.
    build = meson_build(tree, tree / "build" / "wheel", *PACKAGE, like=build_dir)
    options = ("--no-build-isolation", f"--config-settings=build-dir={build}")
    run(*pip, "wheel", *options, "--no-deps", "--no-index", "-w", base, tree)
    wheel = next(base.glob("wherry-*.whl"))
    home = base / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", home)
    python = home / "bin/python"
    run(*pip, "--python", python, "install", "--no-deps", "--no-index", wheel)
    purelib = "import sysconfig; print(sysconfig.get_path('purelib'))"
    lent = run(sys.executable, "-c", purelib).stdout.strip()
    Path(run(python, "-c", purelib).stdout.strip(), "lent.pth").write_text(lent + "\n")
    shutil.rmtree(tree)
    return home


@pytest.mark.parametrize("package", ["true", "false"])
def test_all_that_is_installed_has_a_tag(tmp_path: Path, package: str):
    """What has none is left out where a part is asked for, as by pip's install-args=--tags=runtime,python-runtime."""
    run("meson", "setup", tmp_path / "build", ROOT, f"-Dpackage={package}", "-Dtests=false")
    plan = json.loads(run("meson", "introspect", tmp_path / "build", "--install-plan").stdout)
    rows = [row for kind in plan.values() for row in kind.values()]
    assert len(rows) > 5
    assert not [row["destination"] for row in rows if row["tag"] is None]
    if package == "true":
        assert {row["tag"] for row in rows} == {"runtime", "python-runtime", "man"}


def bare(home: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs a script of a venv without the PATH and the settings of the tests."""
    return run(home / "bin" / command[0], *command[1:], env={"PATH": "/usr/bin:/bin"}, cwd="/")


def test_the_wheel_works(wheel_home: Path):
    assert "bench" in bare(wheel_home, "wherry", "--help").stdout
    assert "rep_movsb" in bare(wheel_home, "wherry-run", "list").stdout


def test_the_wheel_holds_what_it_needs(wheel_home: Path):
    package = next(wheel_home.glob("lib/python*/site-packages/wherry"))
    assert (package / "bin/wherry-run").stat().st_mode & stat.S_IXUSR
    assert (package / "lib/libwherry-dropin.so").is_file()
    files = {p.relative_to(package) for p in package.rglob("*.py")}
    source = ROOT / "python/wherry"
    assert files == {p.relative_to(source) for p in source.rglob("*.py")}
    schemas = {p.name for p in (package / "schema").glob("*.json")}
    assert schemas == {p.name for p in (ROOT / "schema").glob("*.json")}
    figures = {p.name for p in (package / "data/history").iterdir()}
    assert figures == {p.name for p in (ROOT / "history").glob("*.json")}
    assert "30.517578" in bare(wheel_home, "wherry", "list", "history").stdout


def test_the_wheel_has_the_pages_of_its_programs(wheel_home: Path):
    """Where man finds them: beside the directory of the programs. It brings no library, and no page of one."""
    there = {str(page.relative_to(wheel_home)) for page in wheel_home.glob("**/*.[1-9]")}
    pages = [*(ROOT / "man").glob("*.1"), ROOT / "man/libwherry-dropin.7"]
    assert {f"share/man/man{page.suffix[1:]}/{page.name}" for page in pages} == there


def test_man_finds_a_page_beside_its_program(wheel_home: Path):
    man = need_tool("man", "man-db")
    path = {"PATH": f"{wheel_home}/bin:/usr/bin:/bin"}
    assert run(man, "-w", "wherry-bench", env=path).stdout.startswith(str(wheel_home))


# --- the set-up ----------------------------------------------------------------------------------
BASICS = "sh uname cat dirname cksum head tail sed grep cut mkdir rm env printf flock"


@pytest.fixture
def setup(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs tools/setup in an empty tree, with only the basics on PATH and those programs that a test asks for."""
    tree = tmp_path / "a tree"
    (tree / "tools").mkdir(parents=True)
    shutil.copy(ROOT / "tools/setup", tree / "tools/setup")
    path = tmp_path / "path"
    path.mkdir()

    def call(*programs: str, fake: dict[str, str] | None = None, **env: str):
        for name in (*BASICS.split(), *programs):
            if found := shutil.which(name):
                (path / name).symlink_to(found)
        for name, script in (fake or {}).items():
            (path / name).unlink(missing_ok=True)
            (path / name).write_text("#!/bin/sh\n" + script)
            (path / name).chmod(0o755)
        assert not (tree / "build").exists()
        return run(tree / "tools/setup", "run", check=False, env={"PATH": str(path), **env})

    return call


TOOLCHAIN = ("gcc", "as", "ld", "python3")


def test_all_that_is_missing_is_named_at_once(setup):
    result = setup()
    assert result.returncode == 2
    assert "apt-get install gcc" in result.stderr
    assert "python3 python3-venv" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("fake", "message"),
    [
        ({"uname": '[ "$1" = -m ] && echo aarch64 || echo Linux\n'}, "x86-64 Linux only; this is aarch64"),
        ({"python3": '[ "$1" = -c ] && echo 3.9.2; exit 1\n'}, r"Python 3.10 or newer \(python3 is 3.9.2\)"),
        ({"python3": 'case $2 in *ensurepip*) exit 1;; esac\n'}, "apt-get install python3-venv\n"),
        ({"gcc": "printf '#define __GNUC__ 10\\n#define __x86_64__ 1\\n'\n"}, r"GCC 11 or newer \(gcc is 10\)"),
        (
            {"gcc": "printf '#define __GNUC__ 4\\n#define __clang_major__ 13\\n#define __x86_64__ 1\\n'\n"},
            r"clang 14 or newer \(gcc is 13\)",
        ),
        (
            {"gcc": "[ $1 = -dM ] && printf '#define __GNUC__ 12\\n#define __x86_64__ 1\\n'\n"},
            "apt-get install libc6-dev\n",
        ),
        ({"gcc": "printf '#define __GNUC__ 12\\n#define __aarch64__ 1\\n'\n"}, "does not compile for x86-64"),
        ({"gcc": "exit 1\n"}, "does not compile"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(setup, fake: dict[str, str], message: str):
    result = setup(*TOOLCHAIN, fake=fake)
    assert result.returncode == 2
    assert re.search(message, result.stderr), result.stderr


def test_a_missing_linker_is_named(setup):
    result = setup("gcc", "python3")
    assert "apt-get install binutils\n" in result.stderr


def test_a_wrong_choice_is_named(setup):
    result = setup(*TOOLCHAIN, CC="nocc -O2", PYTHON="nopython")
    assert "CC=nocc -O2 is not there" in result.stderr
    assert "PYTHON=nopython is not there" in result.stderr


def test_no_package_index_is_said(setup, tmp_path: Path):
    tree = tmp_path / "a tree"
    shutil.copytree(ROOT / "requirements", tree / "requirements")
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_CONFIG_FILE": os.devnull}
    result = setup(*TOOLCHAIN, PYTHON=sys.executable, HOME=str(tmp_path), **nowhere)
    assert result.returncode == 2
    assert "check the network" in result.stderr
    assert "Connection refused" in result.stderr, (
        "what lies behind pip's 'no matching distribution'"
    )
    assert (tree / ".venv/busy").exists()  # so that the next set-up begins anew


@pytest.mark.parametrize("status", [0, 100])
def test_extras_go_on_without_a_package_and_tell_of_failure(tmp_path: Path, status: int):
    for name, script in {
        "id": "echo 0",
        "apt-get": f'[ "$1" = update ] || {{ echo "$@" > "{tmp_path}/asked"; exit {status}; }}',
        "apt-cache": '[ $1 = policy ] || exit 0; shift; for p; do [ $p != chromium-driver ] || continue; echo "$p:"; '
        "[ $p = chromium ] && echo '  Candidate: (none)' || echo '  Candidate: 1.0-1'; done",
        "go": "exit 0",
        "grep": 'case $* in *avx512bw*) exit 0;; esac; exec /bin/grep "$@"',
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    result = run(ROOT / "tools/extras", check=False, env={"PATH": path})
    assert result.returncode == status
    for name in ("chromium", "chromium-driver"):
        assert f"no package {name} here" in result.stderr
    asked = (tmp_path / "asked").read_text().split()
    assert "fio" in asked and not {"chromium", "chromium-driver"} & set(asked)


def _with_ninja(tree: Path, script: str) -> Path:
    """A tree with our tools/ninja and, in place of ninja, a script of the shell."""
    for directory in ("tools", ".venv/bin", "build"):
        (tree / directory).mkdir(parents=True)
    ninja = tree / ".venv/bin/ninja"
    ninja.write_text(f"#!/bin/sh\n{script}\n")
    ninja.chmod(0o755)
    return Path(shutil.copy(ROOT / "tools/ninja", tree / "tools/ninja"))


def test_two_starts_do_not_build_at_once(tmp_path: Path):
    _with_ninja(tmp_path, "mkdir busy || exit 1\nsleep 0.3\nrmdir busy\nexit $1")
    at_once = [subprocess.Popen([tmp_path / "tools/ninja", "7"], cwd=tmp_path) for _ in range(3)]
    assert [process.wait(60) for process in at_once] == [7, 7, 7]


def test_a_change_of_the_build_needs_no_other_ninja(tmp_path: Path):
    """Meson, which ninja starts then, goes by NINJA, and not by where it was called from."""
    _with_ninja(tmp_path, 'cd / && exec "$NINJA.said"')
    said = tmp_path / ".venv/bin/ninja.said"
    said.write_text("#!/bin/sh\necho said\n")
    said.chmod(0o755)
    env = {name: value for name, value in os.environ.items() if name != "NINJA"}
    assert run("tools/ninja", cwd=tmp_path, env=env).stdout == "said\n"


# As the editable package starts it: its output goes to a log.
START = """
import subprocess, sys
with open(sys.argv[2], "w") as log:
    sys.exit(subprocess.call([sys.argv[1], "7"], stdout=log, stderr=subprocess.STDOUT))
"""


def test_who_waits_for_another_starts_build_is_told(tmp_path: Path):
    ninja = _with_ninja(tmp_path, "exit $1")
    ours, theirs = os.openpty()
    words = [sys.executable, "-ISc", START, ninja, tmp_path / "log"]
    with (tmp_path / "build/ninja.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waits = subprocess.Popen(words, stderr=theirs, start_new_session=True)
        quiet = subprocess.Popen([*words[:-1], tmp_path / "other"], stderr=subprocess.PIPE)
        assert select.select([ours], [], [], 60)[0]
        assert os.read(ours, 1000).decode().strip() == (
            "wherry: another start builds what has changed; waiting for it ..."
        )
        assert waits.poll() is None
    assert waits.wait(60) == 7 and (tmp_path / "log").read_text() == ""
    # Where nobody looks nothing is written.
    assert quiet.communicate(timeout=60)[1] == b"" and quiet.returncode == 7
    for end in (ours, theirs):
        os.close(end)


def test_the_editable_package_builds_one_at_a_time():
    """What set up the tests is what a user's start goes by."""
    from importlib import metadata

    loaders = [p for p in metadata.files("wherry") or () if p.name == "_wherry_editable_loader.py"]
    if not loaders:
        pytest.skip("wherry is not installed as tools/setup does it")
    assert "/tools/ninja'" in loaders[0].read_text()


def test_no_requirement_names_a_host():
    for path in (ROOT / "requirements").iterdir():
        assert "://" not in path.read_text()
    for path in (ROOT / "requirements").glob("*.txt"):
        pins = re.findall(r"^[a-z][^ ]*==.*$", path.read_text(), flags=re.MULTILINE)
        assert len(pins) >= 5
        assert path.read_text().count("--hash=sha256:") >= len(pins)


def test_another_user_can_start_what_was_set_up():
    """In a tree that they cannot write the editable package cannot log its start; that must not matter. Who could not
    even read it, as of a checkout in the home of root, is given that right, and no other."""
    need_root()
    setpriv = need_tool("setpriv", "util-linux")
    script = Path(sys.prefix) / "bin" / "wherry"
    reads = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
    for more in ((), reads):
        nobody = (setpriv, "--reuid=65534", "--regid=65534", "--clear-groups", *more)
        python = script.with_name("python").resolve()
        if all(
            run(*nobody, "head", "-c1", own, check=False, cwd="/", errors="replace").returncode == 0
            for own in (script, python)
        ):
            break
    else:
        pytest.skip("another user cannot reach .venv or its interpreter here")
    assert run(*nobody, "touch", script.parent, check=False, cwd="/").returncode == 1
    for name in ("wherry", "wherry-run"):
        started = run(*nobody, script.with_name(name), "--version", check=False, cwd="/")
        assert started.returncode == 0, started.stderr
        assert started.stdout.startswith(f"{name} ")
        assert started.stderr == ""
