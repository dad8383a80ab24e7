"""What can be preloaded into programs, and the environment that does it.

env = preloading.environment(os.environ, [preloading.library("dropin")], plan=path)
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from wherry import elf
from wherry.errors import FailedError

# Of which a library that wherry record tries must have one.
TRIED_NAMES = ("memcpy", "memmove", "memset")
# What separates or is expanded in LD_PRELOAD: no path with it can stand there.
_NOT_IN_PRELOAD = re.compile(r"[\s:$]")
# Of a link, such that there is room for what stands before it.
_LONGEST_NAME = 100


def library(name: str = "dropin") -> Path:
    """libwherry-NAME.so: that of the build which WHERRY_RUN is of, else the one inside the package."""
    from importlib import resources

    file = f"libwherry-{name}.so"
    places = [Path(str(resources.files("wherry") / "lib" / file))]
    if given := os.environ.get("WHERRY_RUN"):
        runner = Path(os.path.realpath(given)).parent
        built = runner.parent / "preload"
        places = [built / file, built / name / file, runner.parent / "lib" / file, *places]
    for place in places:
        if place.is_file():
            return place.absolute()
    raise FailedError(f"{file} is not built; run make bench once, or install Wherry again")


def home_cache() -> str:
    """~/.cache; nothing for a user without a home: a directory that is missing there is no place to make one."""
    # Not Path.home(), which fails where a user has none.
    home = os.path.expanduser("~")  # noqa: PTH111
    return f"{home}/.cache" if home.startswith("/") and os.path.isdir(home) else ""  # noqa: PTH112


def own_directories(without: re.Pattern | None = None) -> Iterator[Path]:
    """Directories that outlive this process and that nobody else can write in, made where they are missing: in the
    user's cache, else where temporary files are. None whose path has what that pattern finds."""
    places = (
        os.environ.get("XDG_CACHE_HOME", ""),
        home_cache(),
        os.environ.get("TMPDIR", ""),
        "/tmp",
        "/var/tmp",
    )
    for base in places:
        if not base.startswith("/") or (without is not None and without.search(base)):
            continue
        # In /tmp somebody else could have made the name: then it must be a directory of our own.
        home = Path(base) / f"wherry-{os.getuid()}"
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = home.lstat()
        except OSError:
            continue
        own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
        if own and not found.st_mode & 0o022:
            yield home


def _preloadable(path: Path) -> str:
    """Its path, or that of a link to it, such that LD_PRELOAD takes it."""
    absolute = str(path.absolute())
    if not _NOT_IN_PRELOAD.search(absolute):
        return absolute
    digest = hashlib.sha256(os.fsencode(absolute)).hexdigest()[:16]
    name = _NOT_IN_PRELOAD.sub("_", path.name)[-_LONGEST_NAME:]
    for home in own_directories(_NOT_IN_PRELOAD):
        link = home / f"{digest}-{name}"
        try:
            if not link.is_symlink() or str(link.readlink()) != absolute:
                fresh = home / f".{os.getpid()}-{name}"
                fresh.symlink_to(absolute)
                fresh.replace(link)
        except OSError:
            continue
        return str(link)
    raise FailedError(
        f"{absolute} has a space, a colon or a dollar sign in its path, which LD_PRELOAD cannot name, and there is no "
        "place for a link to it; put it elsewhere, or set XDG_CACHE_HOME to a directory that can be written"
    )


def why_not_preloaded(
    path: Path, one_of: Sequence[str] = (), env: Mapping[str, str] | None = None
) -> str | None:
    """Why the loader would go on without that object, or why it has none of those functions, as a sentence without its
    end; None when neither. `env`: where it is to be preloaded, which may say where its own libraries are."""
    try:
        # Opening a pipe would wait for its other end.
        if path.exists() and not path.is_file():
            return "it is not a file"
        found = elf.read(path)
        exported = elf.exports(path) if one_of else frozenset()
    except OSError as error:
        return error.strerror
    except elf.DamagedError:
        return "it is no shared object"
    if (found.machine, found.bits, found.kind) != ("x86-64", 64, "shared"):
        return "it is no shared object for this CPU"
    if one_of and not exported & set(one_of):
        return f"it has none of {', '.join(one_of)}"
    return _of_loader(path, os.environ if env is None else env)


def _of_loader(path: Path, env: Mapping[str, str]) -> str | None:
    """What the loader itself says of it."""
    try:
        said = _listed("/proc/self/exe", {**env, "LD_PRELOAD": _preloadable(path)})
    except (OSError, subprocess.SubprocessError, elf.DamagedError):
        return None
    for _, why in _LEFT_OUT.findall(said):
        return f"the loader leaves it out ({why})"
    if failed := re.search(r": error while (.*)", said):
        # What it needs and does not find keeps the program itself from running.
        return f"no program runs with it ({failed[1]})"
    return None


def left_out(program: str, env: Mapping[str, str]) -> dict[str, str]:
    """The words of LD_PRELOAD there that the loader of this program goes on without, each with its reason; none where
    it cannot be asked."""
    try:
        return dict(_LEFT_OUT.findall(_listed(program, env)))
    except (OSError, subprocess.SubprocessError, elf.DamagedError):
        return {}


_LEFT_OUT = re.compile(r"object '(.*)' from LD_PRELOAD cannot be preloaded \((.*)\): ignored")


def _listed(program: str, env: Mapping[str, str]) -> str:
    """What the loader of this program says when it is asked to list what that needs, which runs nothing."""
    loader = elf.read(Path(program)).interpreter
    if loader is None:
        return ""
    done = subprocess.run(
        [loader, "--list", os.path.realpath(program)],
        env={**env, "LC_ALL": "C"},
        capture_output=True,
        timeout=20,
        check=False,
    )
    return (done.stdout + done.stderr).decode(errors="replace")


def own_environment() -> dict[str, str]:
    """Ours, for a program: without variables that have no name, which Python hands on to nobody."""
    return {name: value for name, value in os.environ.items() if name}


def environment(
    base: Mapping[str, str], libraries: Iterable[Path], plan: Path | None = None
) -> dict[str, str]:
    """That environment with these objects in front of what is preloaded already, and a compiled plan to load."""
    env = dict(base)
    ours = [_preloadable(path) for path in libraries]
    others = _words(env)
    if ours:
        env["LD_PRELOAD"] = ":".join([*ours, *(word for word in others if word not in ours)])
    if plan is not None:
        env["WHERRY_PLAN"] = str(plan.absolute())
    return env


def names(env: Mapping[str, str], name: str) -> bool:
    """Whether libwherry-NAME.so is preloaded there, as `without` knows it."""
    return any(word.endswith(f"libwherry-{name}.so") for word in _words(env))


def without(base: Mapping[str, str], name: str) -> dict[str, str]:
    """That environment without libwherry-NAME.so among what is preloaded, by itself or by a link of ours."""
    kept = [word for word in _words(base) if not word.endswith(f"libwherry-{name}.so")]
    return {**base, "LD_PRELOAD": ":".join(kept)}


def that_export(env: Mapping[str, str], names: Iterable[str]) -> Iterator[str]:
    """What is preloaded that has one of these functions, as far as LD_PRELOAD tells the file."""
    for word in _words(env):
        with contextlib.suppress(OSError, elf.DamagedError):
            if "/" in word and not elf.exports(Path(word)).isdisjoint(names):
                yield word


def _words(env: Mapping[str, str]) -> list[str]:
    return [word for word in re.split(r"[\s:]+", env.get("LD_PRELOAD", "")) if word]


def sanitizer_preloaded(env: Mapping[str, str]) -> tuple[str, str] | None:
    """The sanitizer whose runtime LD_PRELOAD names, and the word that does."""
    for word in _words(env):
        # A word without a slash is looked for where only the loader knows; its name tells.
        if found := elf.sanitizer_of_runtime(Path(word).name):
            return found, word
        if "/" in word:
            try:
                own = elf.read(Path(word)).sanitizer
            except (OSError, elf.DamagedError):
                continue
            if own:
                return own, word
    return None
