"""`wherry record --into` and `--collect`: what somebody else starts is recorded, and read while it goes on."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import need_namespaces, need_root, need_tool, run, wait_until
from test_record import known, recorded, recorder
from test_record_signals import ENDLESS, has_worked
from wherry import recordings
from wherry.errors import WherryError
from wherry.recording import outside, preparing

__all__ = ["known", "recorded", "recorder"]  # fixtures
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


@pytest.fixture
def home() -> Iterator[Path]:
    """One that other users can go to, as those of pytest cannot."""
    place = Path(tempfile.mkdtemp(dir="/var/tmp"))
    place.chmod(0o755)
    yield place / "record"
    shutil.rmtree(place)


@pytest.fixture
def made(wherry, home) -> Callable[..., dict[str, str]]:
    def make(*options: str) -> dict[str, str]:
        done = wherry("record", "--into", home, *options)
        assert done.returncode == 0, done.stderr
        assert f"wherry record --collect {home} saves" in " ".join(done.stderr.split())
        assert (home / outside.ENVIRONMENT).read_text() == done.stdout
        return dict(line.split("=", 1) for line in done.stdout.splitlines())

    return make


@contextmanager
def started(env: dict[str, str], *words: str | Path) -> Iterator[subprocess.Popen]:
    """As whoever starts services does: nothing of ours in it but that environment."""
    process = subprocess.Popen(list(map(str, words)), env={"PATH": os.environ["PATH"], **env})
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def collected(wherry, home: Path, *options: str) -> dict:
    target = home.parent / "x.mix.json"
    done = wherry("record", "--collect", home, "-o", target, *options)
    assert done.returncode == 0, done.stderr
    recordings.read(target)
    return {**json.loads(target.read_text()), "said": " ".join(done.stderr.split())}


def copies(mix: dict) -> int:
    return sum(row[2] for row in mix["ops"]["copy"]["sizes"] if row[0] == 700)


def test_what_others_start_is_recorded_and_goes_on(wherry, made, home, known):
    env = made()
    assert set(env) == {"LD_PRELOAD", "WHERRY_RECORD", "WHERRY_TRIAL"}
    assert all(Path(word).parent == home for word in env["LD_PRELOAD"].split(":"))
    with started(env, known, *ENDLESS) as process:
        wait_until(lambda: has_worked(str(process.pid)), "the program at work")
        first = collected(wherry, home)
        wait_until(
            lambda: copies(collected(wherry, home, "--no-ceiling")) > copies(first), "more of it"
        )
        assert process.poll() is None
        refused = wherry("record", "--recover", home)
        assert refused.returncode == 2 and "--collect saves what there is" in refused.stderr
    run = first["run"]
    assert copies(first) > 1000
    assert (run["exit"], run["collected"], run["processes"]) == (None, True, 1)
    assert "recovered" not in run
    # By what had been its own work: half a second, at least, of processor time.
    assert run["user_s"] + run["system_s"] > 0.4 and run["elapsed_s"] > 0.4
    assert "in 1 process and 1 thread; so far," in first["said"]
    assert 0 < first["ceiling"]["likely"] <= 1 and "incomplete" not in first["ceiling"]
    assert first["trial"]["routines"] == "dropin" and first["trial"]["turns"]["pairs"] > 0


def test_of_what_has_ended_no_times_are_known(wherry, made, home, known):
    with started(made(), known, "times", "5000") as process:
        process.wait()
    mix = collected(wherry, home)
    assert copies(mix) == 5000
    assert mix["ceiling"] is None and "trial" not in mix
    assert "of those that have ended nobody knows what time they took" in mix["said"]
    # How long ago the first began is known of those that go on.
    assert "thread; none of it goes on" in mix["said"] and "first began" not in mix["said"]
    done = wherry("record", "--recover", home, "-o", home.parent / "y.mix.json", "-q")
    assert done.returncode == 0 and not home.exists(), done.stderr
    assert copies(json.loads((home.parent / "y.mix.json").read_text())) == 5000


def test_what_ended_after_little_work_costs_no_ceiling(wherry, made, home, known):
    """A service is started by shells. What a process executed before took its time as well."""
    shell = f"{known} times 10; exec {known} {' '.join(ENDLESS)}"
    with started(made(), "sh", "-c", shell) as process:
        wait_until(lambda: has_worked(str(process.pid)), "the program at work")
        mix = collected(wherry, home)
    assert mix["ceiling"] and "no ceiling" not in mix["said"]
    assert mix["run"]["processes"] >= 2 and mix["run"]["execs"] <= 1


def test_where_much_was_done_by_what_ended_there_is_no_ceiling(wherry, made, home, known):
    shell = f"{known} times 20000; {known} times 1000; exec sleep 1000"
    with started(made(), "sh", "-c", shell) as process:
        wait_until(lambda: copies_so_far(home) == 21000, "the shell's work")
        assert process.poll() is None
        mix = collected(wherry, home)
    assert copies(mix) == 21000 and mix["ceiling"] is None


def copies_so_far(home: Path) -> int:
    found = outside.collect(home).merger.ops()
    return copies({"ops": found}) if "copy" in found else 0


def test_processes_of_a_container_are_found(wherry, made, home, known):
    """Which have other numbers there, of which one may be somebody else's here."""
    apart = ("--pid", "--mount", "--fork", "--kill-child", "--mount-proc")
    unshare = need_namespaces(*apart)
    env = made()
    inside = f"env LD_PRELOAD={env['LD_PRELOAD']} {known} {' '.join(ENDLESS)}"
    env = {name: value for name, value in env.items() if name != "LD_PRELOAD"}
    with started(env, unshare, *apart, "sh", "-c", inside):
        wait_until(lambda: copies_so_far(home) > 100_000, "the program at work")
        mix = collected(wherry, home)
    assert mix["ceiling"] and mix["run"]["user_s"] + mix["run"]["system_s"] > 0
    assert all(int(part.name.split("-")[0]) < 100 for part in outside.leftovers.parts(home))


@pytest.mark.parametrize("where", ["container", "removed"])
def test_callers_in_files_that_are_not_here_are_named(wherry, made, home, known, where: str):
    """As long as a process lives that has them. A container's own are at no path of ours."""
    env = made()
    own = home.parent / "there" / "known"
    own.parent.mkdir()
    if where == "container":
        unshare = need_namespaces("--mount")
        words = [f"mount -t tmpfs none {own.parent}", f"cp {known} {own}"]
        words.append(f"exec env LD_PRELOAD={env.pop('LD_PRELOAD')} {own} {' '.join(ENDLESS)}")
        begun = started(env, unshare, "--mount", "sh", "-c", " && ".join(words))
    else:
        shutil.copy(known, own)
        begun = started(env, own, *ENDLESS)
    with begun:
        wait_until(lambda: copies_so_far(home) > 1000, "the program at work")
        own.unlink(missing_ok=True)
        mix = collected(wherry, home, "--no-ceiling")
    most = max(mix["callers"], key=lambda row: row["calls"])
    assert most["module"] == str(own) and most["function"] and most["offset"], most


def test_a_services_own_user_records_there(wherry, made, home, known, tmp_path):
    need_root()
    need_tool("setpriv", "util-linux")
    own = home.parent / "known"
    shutil.copy(known, own)
    env = made()
    assert home.stat().st_mode & 0o7777 == 0o1733
    with started(env, *NOBODY, own, *ENDLESS) as process:
        wait_until(lambda: has_worked(str(process.pid)), "the program at work")
        mix = collected(wherry, home, "--no-ceiling")
    assert copies(mix) > 1000
    (home.parent / "deep").mkdir(mode=0o700)
    done = wherry("record", "--into", home.parent / "deep" / "er")
    assert done.returncode == 0
    assert f"only its owner can go through {home.parent / 'deep'}" in done.stderr


def test_what_is_tried_is_what_was_asked_for(wherry, made, home, known):
    env = made("--no-trial", "--note", "of a test")
    assert set(env) == {"LD_PRELOAD", "WHERRY_RECORD"}
    assert Path(env["LD_PRELOAD"]).name == "libwherry-recorder.so"
    with started(env, known, "times", "10") as process:
        process.wait()
    mix = collected(wherry, home)
    assert mix["how"]["note"] == "of a test" and mix["how"]["command"] == []


def test_the_plan_comes_with_it(wherry, home, tmp_path):
    plan = tmp_path / "own.toml"
    assert wherry("plan", "default", "-o", plan).returncode == 0
    done = wherry("record", "--into", home, "--plan", plan)
    assert done.returncode == 0, done.stderr
    env = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert Path(env["WHERRY_PLAN"]).parent == home and Path(env["WHERRY_PLAN"]).is_file()


@pytest.mark.parametrize(
    "words, said",
    [
        (("--into", "{}/a b"), "LD_PRELOAD cannot name"),
        (("--into", "{}/a:b"), "LD_PRELOAD cannot name"),
        (("--into", "{}/" + "long/" * 80), "so long a path"),
        (("--into", "{}/file"), "not a directory"),
        (("--into", "{}/full"), "not empty"),
        (("--into", "{}/new", "-o", "{}/file"), "file"),
        (("--into", "{}/new", "--", "true"), "leave out the command"),
        (("--into", "{}/new", "--runs", "3"), "--runs is for a command that is run"),
        (("--into", "{}/new", "--no-trial", "--try", "libc"), "which --no-trial leaves out"),
        (("--into", "{}/new", "--plan", "{}/none"), "no such file"),
        (("--into", "{}/new", "--collect", "{}"), "give one of them"),
        (("--collect", "{}"), "wherry record --into has made ready"),
        (("--collect", "{}/none"), "wherry record --into has made ready"),
        (("--collect", "{}/full", "--no-trial"), "--no-trial is for a command that is run"),
        (("--collect", "{}/full", "true"), "leave out the command"),
    ],
)
def test_what_cannot_be_is_told(wherry, tmp_path, words, said: str):
    (tmp_path / "file").write_text("something\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thing").touch()
    done = wherry("record", *(word.format(tmp_path) for word in words))
    assert done.returncode == 2, done.stderr
    text = " ".join(done.stderr.split())
    assert said in text and "Traceback" not in text, text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "full"]


@pytest.mark.parametrize("options, said", [("noexec", "(noexec)"), ("size=64k", "No space left")])
def test_what_cannot_be_made_leaves_nothing(wherry_run, tmp_path, options: str, said: str):
    unshare = need_namespaces("-m")
    place = tmp_path / "place"
    place.mkdir()
    shell = (
        f"mount -t tmpfs -o {options} tmpfs {place} && mkdir {place}/there && "
        f"{{ {sys.executable} -m wherry record --into {place}/there; echo $?; "
        f"{sys.executable} -m wherry record --into {place}/new; echo $?; find {place} -mindepth 1; }}"
    )
    env = {**os.environ, "WHERRY_RUN": str(wherry_run)}
    done = run(unshare, "-m", "sh", "-c", shell, check=False, env=env)
    status = "2" if options == "noexec" else "1"
    assert done.stdout.split() == [status, status, f"{place}/there"], done.stderr
    assert done.stderr.count(said) == 2 and "Traceback" not in done.stderr


def test_of_two_that_make_one_directory_ready_one_has_it(made, home):
    """Both found it empty, and the second put its own over what the first had made, or cleared that away."""
    made()
    before = {path.name: path.read_bytes() for path in home.iterdir()}
    with pytest.raises(WherryError, match="it is not empty"):
        outside.make(home, preparing.Preparation((), None, None), home / "x.mix.json", "")
    assert {path.name: path.read_bytes() for path in home.iterdir()} == before


def test_nothing_is_collected_where_nothing_was_recorded(wherry, made, home):
    made()
    done = wherry("record", "--collect", home)
    assert done.returncode == 1 and re.search("nothing has been recorded there", done.stderr)
    assert not (home.parent / "record.mix.json").exists()
