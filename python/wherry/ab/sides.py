"""What a program is run under: stock libc, the drop-in, the drop-in with a plan, tunables of glibc, any environment.

A side is written as words: `libc`, `dropin`, `plan:FILE`, `preload:FILE`, `glibc.NAME=VALUE[:...]`, `KEY=VALUE`,
several of them separated by blanks."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from wherry import libctunables, planuse, preloading
from wherry.errors import WherryError

LIBC, DROPIN = "libc", "dropin"
TUNABLES = libctunables.VARIABLE
_DROPIN_FILE = "libwherry-dropin.so"
_LONGEST_NAME = 24


@dataclass(frozen=True)
class Side:
    name: str  # in tables and in the run file
    what: str  # as it was asked for
    environment: Mapping[str, str]
    preloads: bool  # needs a program that something can be preloaded into
    bare: tuple[
        str, ...
    ] = ()  # preloaded by names that only the program's loader knows the files of

    def changes(self, base: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
        """What to set and what to take away to come from `base` to here."""
        new = {key: value for key, value in self.environment.items() if base.get(key) != value}
        return new, [key for key in base if key not in self.environment]


def _stock(base: Mapping[str, str]) -> dict[str, str]:
    """Without a drop-in that may be in the environment already."""
    env = {key: value for key, value in base.items() if key != "WHERRY_PLAN"}
    words = [word for word in re.split(r"[\s:]+", env.pop("LD_PRELOAD", "")) if word]
    # A link to it has more in front of its name.
    if rest := [word for word in words if not word.endswith(_DROPIN_FILE)]:
        env["LD_PRELOAD"] = ":".join(rest)
    return env


def _file(text: str, what: str) -> Path:
    if not text:
        raise WherryError(f"{what}: needs a file, as in {what}:FILE")
    path = Path(text)
    if not path.is_file():
        why = "it is no regular file" if path.exists() else "there is no such file"
        raise WherryError(f"{what}:{text}: {why}")
    return path


def _short(name: str) -> str:
    name = "".join(c if c.isprintable() and not c.isspace() else "_" for c in name)
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 2] + ".."


def _plan(path: Path, asked: str) -> str:
    planuse.refuse_unused(path, asked)
    return str(planuse.compiled(path))


def _loadable(given: list[tuple[str, Path]], env: Mapping[str, str]) -> None:
    """Figures without an object would be those of stock libc under its name."""
    for word, path in given:
        if why := preloading.why_not_preloaded(path, env=env):
            raise WherryError(f"{word}: {why}; give a shared object that can be preloaded")


def _in_force(entries: str, env: Mapping[str, str]) -> None:
    """Figures under a setting that glibc does not follow would be those of stock libc."""
    for entry, why in libctunables.ignored(entries, env.get(TUNABLES, "")):
        raise WherryError(f"glibc would not follow '{entry}': {why}")


def parse(what: str, base: Mapping[str, str]) -> Side:
    try:
        words = shlex.split(what)
    except ValueError:
        raise WherryError(f"'{what}' has a quotation mark that is not closed") from None
    if not words:
        raise WherryError(
            "an empty side; give libc, dropin, plan:FILE, preload:FILE, glibc.NAME=VALUE or KEY=VALUE"
        )
    env = _stock(base)
    names, libraries, objects, tunables, bare, preloads = [], [], [], [], [], False
    for word in words:
        kind, colon, rest = word.partition(":")
        if word in (LIBC, "stock"):
            names.append(LIBC)
        elif word in (DROPIN, "wherry"):
            libraries.append(preloading.library())
            names.append(DROPIN)
        elif colon and kind == "plan":
            libraries.append(preloading.library())
            if rest == "default":
                names.append(DROPIN)
                continue
            path = _file(rest, kind)
            env["WHERRY_PLAN"] = _plan(path, word)
            names.append(path.stem)
        elif colon and kind == "preload":
            path = _file(rest, kind)
            objects.append((word, path))
            libraries.append(path.absolute())
            names.append(path.stem)
        elif word.startswith("glibc."):
            tunables.append(word)
            env[TUNABLES] = ":".join(filter(None, (env.get(TUNABLES), word)))
            names.append("tunables")
        elif re.match(r"[A-Za-z_]\w*=", word, re.ASCII):
            key, _, value = word.partition("=")
            if key == TUNABLES:
                tunables = [value]
            elif key == "WHERRY_PLAN" and value:
                value = _plan(_file(value, key), word)
            elif key == "LD_PRELOAD":
                # What the loader expands depends on where it runs the program.
                given = [own for own in re.split(r"[\s:]+", value) if own and "$" not in own]
                objects += [(word, Path(own)) for own in given if "/" in own]
                bare += [own for own in given if "/" not in own]
                preloads = True
            env[key] = value
            names.append(word)
        else:
            raise WherryError(
                f"'{word}' is no side; give libc, dropin, plan:FILE, preload:FILE, "
                "glibc.NAME=VALUE or KEY=VALUE"
            )
    _loadable(objects, env)
    _in_force(":".join(tunables), env)
    libraries = list(dict.fromkeys(libraries))
    if libraries:
        env = preloading.environment(env, libraries)
        preloads = True
    return Side(_short("+".join(names)), what, env, preloads, tuple(bare))


def refuse_left_out(side: Side, program: str) -> None:
    """Figures without an object would be those of stock libc under its name."""
    if not side.bare:
        return
    left_out = preloading.left_out(program, side.environment)
    for word in side.bare:
        if word in left_out:
            raise WherryError(
                f"LD_PRELOAD={word}: the loader leaves it out ({left_out[word]}); give the path of a shared object "
                "that can be preloaded"
            )


def pair(a: str, b: str, base: Mapping[str, str]) -> tuple[Side, Side]:
    """Both, with names that differ."""
    one, other = parse(a, base), parse(b, base)
    if one.environment == other.environment:
        raise WherryError(f"both sides are the same ('{a}' and '{b}'): there is nothing to compare")
    if one.name == other.name:
        one, other = (
            replace(side, name=f"{letter}:{side.name}")
            for letter, side in (("a", one), ("b", other))
        )
    return one, other
