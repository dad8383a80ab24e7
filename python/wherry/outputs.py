"""Files that a command writes under a name which its user gave: what is there already, and may be replaced by it.

outputs.check(path, outputs.RUN)          # before an hour of measuring
outputs.write(path, data, outputs.PAGE)   # refuses, too: somebody may have put another file there meanwhile

An earlier file of the same kind is replaced, and an empty one. Whatever else is there would be lost and is refused, as
the name may be a mistake: a source file, a photo, a recording that is read. The kinds of plans are planfiles'."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from wherry import runfile
from wherry.errors import WherryError

# Of a file: where the marks of all kinds are that have one.
_HEAD = 4096


@dataclass(frozen=True)
class Kind:
    name: str  # as in "is not a run file"
    fits: Callable[[Path], bool]  # of a regular file that is not empty
    sign: Callable[[bytes], bytes] = bytes


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD)


def _begins(*marks: bytes) -> Callable[[Path], bool]:
    return lambda path: _head(path).startswith(marks)


def _document(kind: str) -> Callable[[Path], bool]:
    return lambda path: runfile.is_document(path, kind)


def _keys(path: Path) -> dict:
    """The object of JSON in a file; none, where it holds anything else."""
    try:
        found = runfile.parse(path, runfile.read_bytes(path))
    except WherryError:
        return {}
    return found if isinstance(found, dict) else {}


# ---- pictures: no format of theirs has a place for who made them but these ------------------------------------------

_PNG = b"\x89PNG\r\n\x1a\n"
# The signature and the first chunk, which is as long in every PNG.
_PNG_HEADER = len(_PNG) + 25
_SVG_END = b"<!-- Wherry -->\n"


def _png_text() -> bytes:
    body = b"tEXtSoftware\0Wherry"
    return (len(body) - 4).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


def _signed_picture(data: bytes) -> bytes:
    if data.startswith(_PNG):
        return data[:_PNG_HEADER] + _png_text() + data[_PNG_HEADER:]
    return data.rstrip() + b"\n" + _SVG_END


def _is_picture(path: Path) -> bool:
    head = _head(path)
    if head.startswith(_PNG):
        return head[_PNG_HEADER:].startswith(_png_text())
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - len(_SVG_END), 0))
        return file.read() == _SVG_END


# ---- what wherry export writes --------------------------------------------------------------------------------------


def _separated(sign: str) -> Callable[[Path], bool]:
    begins = sign.join(("experiment", "op", "routine", "")).encode()
    ends = sign.join(("", "rounds", "processes", "rounds voided", "verified")).encode()

    def fits(path: Path) -> bool:
        heads = _head(path).split(b"\n")[0]
        return heads.startswith(begins) and heads.endswith(ends)

    return fits


def _is_markdown(path: Path) -> bool:
    """One table and nothing else, of cells: whoever has written about it has another file."""
    with path.open("rb") as file:
        heads = file.readline(_HEAD)
        if heads.startswith(b"All of them: "):
            file.readline(_HEAD)
            heads = file.readline(_HEAD)
        found = re.search(rb"\| routine +\|.* median \((ns|ticks)\) \|", heads)
        return found is not None and all(line.startswith(b"| ") for line in file)


def _is_google(path: Path) -> bool:
    from wherry.formats import naming

    context = _keys(path).get("context")
    return (
        isinstance(context, dict)
        and context.get("executable") == "wherry"
        and any(key in context for key in naming.BY)
    )


def _is_benchfmt(path: Path) -> bool:
    return re.search(rb"(?m)^# (exported_by_)?wherry: ", _head(path)) is not None


# ---- the kinds ------------------------------------------------------------------------------------------------------

RUN = Kind("a run file", _document(runfile.FORMAT))
SELF_CHECK = Kind("a self-check", _document("wherry-self-check"))
RAW = Kind("a file of raw samples", lambda path: _keys(path).keys() == {"run", "samples"})
MIX = Kind("a mix that wherry record wrote", _document("wherry-mix"))
# No mark would survive in its two forms, so nobody can tell one of ours from one that was written by hand.
SIZES = Kind("the same mix", lambda _: False)
# As the pages have it in their head.
PAGE_MARK = '<meta name="generator" content="Wherry">'
PAGE = Kind("a page of Wherry's", lambda path: PAGE_MARK.encode() in _head(path))
PICTURE = Kind("a picture of Wherry's", _is_picture, _signed_picture)
METRICS = Kind("metrics of wherry fleet", _begins(b"# TYPE wherry_run_info "))
EXPORTS: Mapping[str, Kind] = {
    name: Kind(f"what wherry export writes as {name}", fits)
    for name, fits in (
        ("csv", _separated(",")),
        ("tsv", _separated("\t")),
        ("markdown", _is_markdown),
        ("google-benchmark", _is_google),
        ("benchfmt", _is_benchfmt),
    )
}


# ---- what commands ask ----------------------------------------------------------------------------------------------


def refuse(path: Path, kind: Kind, data: bytes | None = None) -> None:
    """WherryError where something is there that is to stay. `data`: what is to be written, if that is known."""
    try:
        if not path.is_file() or not (size := path.stat().st_size):
            return
    except OSError:
        return  # told when it is opened for writing
    try:
        if kind.fits(path) or (
            data is not None and size == len(data) and path.read_bytes() == data
        ):
            return
    except OSError as error:
        raise WherryError(
            f"cannot save to {path}: what is there may not be read, so nobody knows what would be lost "
            f"({error.strerror}); give another name, or remove it"
        ) from None
    raise WherryError(
        f"cannot save to {path}: what is there is not {kind.name}, and would be lost; give another name, or remove it"
    )


def plain_name(text: str) -> str:
    """A file's name out of any text: of signs that no shell and no file system takes for anything else."""
    return re.sub(r"[^\w.+-]", "_", text, flags=re.ASCII)[:40] or "mix"


def check(path: Path, kind: Kind) -> None:
    """The same, and whether it can be written there at all."""
    runfile.check_target(path)
    refuse(path, kind)


def refuse_inputs(path: Path, sources: Mapping[Path, str], option: str = "-o") -> None:
    """What is read is not replaced by what is made of it, which holds less, also where it is of the same kind."""
    for source, what in sources.items():
        runfile.refuse_own(path, source, what, option)


def beside(source: Path, name: str) -> Path:
    """Where a command writes by default. What is read through a descriptor has no place of its own: beside /dev/stdin
    are the machine's devices."""
    there = source.absolute()
    if there.parent in (Path("/dev"), Path("/dev/fd")) or there.is_relative_to("/proc"):
        raise WherryError(
            f"{source}: nothing is written beside that; give the name of a file with -o"
        )
    return source.with_name(name)


def refuse_same(given: Mapping[str, Path | None]) -> None:
    """Two options of a command, each with a file of its own, under which it would write the same."""
    taken: dict[Path, str] = {}
    for option, path in given.items():
        if path is None:
            continue
        # Path.resolve would raise for a link to itself.
        other = taken.setdefault(Path(os.path.realpath(path)), option)
        if other != option:
            raise WherryError(f"{option} {path}: the file of {other} goes there; give another name")


def write(path: Path, data: bytes, kind: Kind) -> None:
    """Whole or not at all."""
    data = kind.sign(data)
    refuse(path, kind, data)
    runfile.write_bytes(path, data)
