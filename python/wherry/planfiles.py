"""Plans as files: the text form (TOML, for people; plantext) and the compiled one (for the library; planbinary).

planfiles.write(Path("mine.toml"), [plan], head="Why it is so.")
planfiles.read(Path("mine.toml"))                   # either form; WherryError in one line when it is bad
planfiles.library_form(Path("mine.toml"))           # a path that WHERRY_PLAN takes
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from wherry import named_files, outputs, planbinary, plantext, runfile
from wherry.errors import FailedError, WherryError
from wherry.plans import Plan, UnusableError
from wherry.preloading import home_cache
from wherry.units import MIB

LARGEST_TEXT = MIB
COMPILED_SUFFIX = ".plan"


def _load(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise WherryError(
                f"{path} is not a file; give a plan, as wherry plan default -o FILE writes one"
            )
        data = named_files.at_most(path, LARGEST_TEXT + 1)  # as the library reads it
    except FileNotFoundError as error:
        raise WherryError(
            f"cannot read {path}: {error.strerror}; wherry plan default -o FILE or "
            "wherry tune -o FILE writes one"
        ) from None
    except (OSError, ValueError) as error:
        raise WherryError(f"cannot read {path}: {getattr(error, 'strerror', error)}") from None
    if not data.strip():
        raise UnusableError(
            path, "is empty; wherry plan default -o FILE writes a plan to begin with"
        )
    if len(data) > LARGEST_TEXT:
        raise UnusableError(path, "is too large to be a plan (over 1 MiB)")
    return data


def is_compiled(data: bytes) -> bool:
    return data.startswith(planbinary.MAGIC)


def read(path: Path) -> list[Plan]:
    """The plans of a file, in text or compiled."""
    data = _load(path)
    if not is_compiled(data):
        return plantext.from_text(path, data)
    try:
        return planbinary.decode(data)
    except planbinary.BadPlanError as error:
        raise UnusableError(path, str(error)) from None


def _is_text(path: Path) -> bool:
    try:
        return bool(read(path)) and not is_compiled(_load(path))
    except WherryError:
        return False


TEXT = outputs.Kind("a plan as text", _is_text)
COMPILED = outputs.Kind("a compiled plan", lambda path: is_compiled(_load(path)))


def write(
    path: Path, plans: Sequence[Plan], head: str = "", notes: Sequence[Mapping[str, str]] = ()
) -> None:
    """As text, whole or not at all; what is written was read back and is the same."""
    text = plantext.to_text(plans, head, notes)
    if plantext.from_text(path, text.encode()) != list(plans):
        raise WherryError(f"{path}: the plan has something that its text form cannot say")
    outputs.write(path, text.encode(), TEXT)


def compile_to(path: Path, plans: Sequence[Plan]) -> None:
    outputs.write(path, planbinary.encode(list(plans)), COMPILED)


def kind(path: Path) -> outputs.Kind:
    """Of what `save` writes there."""
    return COMPILED if path.suffix == COMPILED_SUFFIX else TEXT


def save(
    path: Path, plans: Sequence[Plan], head: str = "", notes: Sequence[Mapping[str, str]] = ()
) -> None:
    """Compiled when the name ends in .plan, by which the library's form goes; else as text."""
    if path.suffix == COMPILED_SUFFIX:
        compile_to(path, plans)
    else:
        write(path, plans, head, notes)


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    base = base if base.startswith("/") else home_cache()
    if not base:
        raise FailedError("there is no home directory, and so no ~/.cache")
    return Path(base) / "wherry" / "plans"


def keep(plans: Sequence[Plan]) -> Path:
    """Those plans compiled, in the user's cache."""
    data = planbinary.encode(list(plans))
    made = _cache() / f"{hashlib.sha256(data).hexdigest()[:32]}.plan"
    if not made.is_file() or made.read_bytes() != data:
        # Also in the place of one that is damaged.
        runfile.write_bytes(made, data, quiet=True)
    return made


def library_form(path: Path) -> Path:
    """The compiled form of a plan file, absolute: itself, or made of the text and kept in the user's cache."""
    plans = read(path)
    return path.absolute() if is_compiled(_load(path)) else keep(plans)
