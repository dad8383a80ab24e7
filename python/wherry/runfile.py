"""The run file: one JSON document, gzip accepted, checked against schema/run.schema.json when it is read."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import gzip
import io
import json
import math
import os
import re
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from errno import EEXIST
from pathlib import Path
from typing import TypeVar

from wherry import named_files, schemas
from wherry.errors import FailedError, WherryError, printable

FORMAT = "wherry-run"
FORMAT_VERSION = 1
# Where runs go, unless another place is named.
RUNS = Path("runs")
Made = TypeVar("Made")
# The journal of a run, beside it (journal.py).
JOURNAL, JOURNAL_FORMAT = ".journal", "wherry-journal"
_JOURNAL_BEGINS = f'{{"format":"{JOURNAL_FORMAT}"'.encode()
_GZIP = b"\x1f\x8b"
# Unpacked; a gzip that says more is not a run file. Nor is one that says far more than figures do: packed they are a
# seventh to a twentieth of their text, and what is nearly all repetition would fill the memory before it is refused.
LARGEST = 1 << 30
_MOST_UNPACKED, _ALWAYS_UNPACKED = 100, 64 << 20
# Run files are mailed about; what a terminal would obey becomes a question mark, and what turns the direction of text.
# A backslash that stands for itself is taken with the one before it: what follows the two is an escape of its own.
_CONTROLS = re.compile(
    r"[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\\(?:(\\)|[bfr]|u(?:"
    r"00(?:[01][0-9a-fA-F]|7[fF]|[89][0-9a-fA-F])|061[cC]|200[b-fB-F]|202[89a-eA-E]|206[6-9]|[fF][eE][fF]{2}))"
)


def fault(run: object) -> str | None:
    """What the schema has against it, in one line; None when nothing."""
    return schemas.fault(run, "run", separator="/", longest=120)


def at_odds(rows: Iterable[tuple], cells: Iterable[tuple], imported: bool = False) -> str | None:
    """What no schema sees: rows and cells that do not belong together, and what only another tool leaves untold. Rows
    are (experiment, row, fastest, tied), cells (experiment, row, routine, op, bytes), less the second measurements."""
    there: dict[tuple, set[str]] = {}
    for experiment, row, routine, op, size in cells:
        own = there.setdefault((experiment, row), set())
        if routine in own:
            return f"{routine[:80]} occurs twice in row {row} of {experiment}"
        own.add(routine)
        if size is None and op != "other" and not imported:
            return f"{routine} in row {row} of {experiment} has no bytes, which only an imported run may lack"
    heads = {}
    for experiment, row, fastest, tied in rows:
        if (experiment, row) in heads:
            return f"row {row} of {experiment} occurs twice"
        heads[experiment, row] = {*tied, fastest} - {None}
    if heads.keys() != there.keys():
        experiment, row = min(heads.keys() ^ there.keys(), key=lambda own: (str(own[0]), own[1]))
        return f"row {row} of {experiment} has " + (
            "no cells" if (experiment, row) in heads else "cells, but is missing"
        )
    for place, leaders in heads.items():
        if not leaders <= there[place]:
            name = min(leaders - there[place])[:80]
            return f"row {place[1]} of {place[0]} has {name} ahead, which has no cell there"
    return None


def _score_at_odds(score: dict) -> str | None:
    """What is said of a region that is not there, or over somebody that is not named."""
    for own in score["ops"]:
        ahead_of = {r["name"] for r in own["regions"] if r["base"] and r["best"] and r["to_best"]}
        total = own["total"]
        for region in own["regions"]:
            if (region["verdict"] or region["to_best"]) and not (
                region["best"] and region["to_best"]
            ):
                return (
                    f"the score of {own['op']} has region {region['name'][:80]} over no best peer"
                )
        if total["to_single"] and not total["single"]:
            return f"the score of {own['op']} has a ratio to a best single peer, and no such peer"
        if (total["worst"] or total["to_envelope"]) and total["worst"] not in ahead_of:
            return f"the score of {own['op']} has no worst region {str(total['worst'])[:80]}"
    return None


def _at_odds(run: dict) -> str | None:
    scores = (_score_at_odds(e["score"]) for e in run["experiments"] if "score" in e)
    return next(filter(None, scores), None) or at_odds(
        ((r["experiment"], r["row"], r["fastest"], r["tied"]) for r in run["rows"]),
        (
            (c["experiment"], c["row"], c["routine"], c["op"], c["bytes"])
            for c in run["cells"]
            if not c["aa"]
        ),
        "source" in run,
    )


# ---- reading --------------------------------------------------------------------------------------------------------


# What is asked for where nobody says otherwise.
WANTED = "a run file"


def _unpacked(path: Path, packed: bytes) -> bytes:
    most = min(LARGEST, max(_ALWAYS_UNPACKED, _MOST_UNPACKED * len(packed)))
    with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
        data = file.read(most + 1)
    if most < len(data) <= LARGEST:
        raise WherryError(
            f"{path} is a gzip of more than {most >> 20} MiB in {len(packed):,} bytes, which no run file packs into; "
            "if it is one, unpack it with gunzip first"
        )
    return data


def _bytes(path: Path, wanted: str = WANTED) -> bytes:
    try:
        if path.exists() and not path.is_file():
            where = ", as in runs/" if wanted == WANTED else ""
            raise WherryError(f"{path} is not a file; give {wanted}{where}")
        data = named_files.at_most(path, LARGEST + 1)
        if data[:2] == _GZIP:
            data = _unpacked(path, data)
    except (EOFError, zlib.error):
        raise WherryError(f"{path} is a gzip that is cut short or damaged") from None
    except gzip.BadGzipFile as error:
        raise WherryError(f"{path} is a damaged gzip: {error}") from None
    except FileNotFoundError as error:
        whence = (
            "a run file is what wherry bench --save FILE writes, and without it into runs/"
            if wanted == WANTED
            else f"give {wanted}"
        )
        raise WherryError(f"cannot read {path}: {error.strerror}; {whence}") from None
    except OSError as error:
        raise WherryError(f"cannot read {path}: {error.strerror}") from None
    if len(data) > LARGEST:
        raise WherryError(f"{path} is too large to be {wanted} (over 1 GiB)")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        # What a Windows shell writes for `>`.
        with contextlib.suppress(UnicodeDecodeError):
            return data.decode("utf-16").encode()
    return data.removeprefix(codecs.BOM_UTF8)  # which some editors put before a text


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is not a number JSON has")


class _Beyond(ValueError):
    """A number of JSON that no arithmetic here takes."""


def _finite(word: str) -> float:
    """1e999 is JSON, but would come back as infinity, which is none."""
    number = float(word)
    if not math.isfinite(number):
        raise _Beyond
    return number


def _whole(word: str) -> int:
    """As many digits as a float has room for: a ratio of longer ones cannot be formed."""
    if len(word) > sys.float_info.max_10_exp:
        raise _Beyond
    return int(word)


def _whole_or_none(word: str) -> int | None:
    return None if len(word) > sys.float_info.max_10_exp else int(word)


# What a value of JSON may begin with that is not one yet, where it was not understood.
_BEGUN = re.compile(
    r"-?|\.|(?:\.\d+)?[eE][-+]?|t(?:r(?:u(?:e)?)?)?|f(?:a(?:l(?:s(?:e)?)?)?)?|n(?:u(?:l(?:l)?)?)?|u[0-9a-fA-F]{0,4}"
)


def cut_short(error: ValueError) -> bool:
    """Whether what made a text not JSON is its end: more of it could have been right."""
    if isinstance(error, UnicodeDecodeError):
        return error.reason == "unexpected end of data"
    if not isinstance(error, json.JSONDecodeError) or error.msg == "Extra data":
        return False
    return error.msg.startswith("Unterminated") or bool(
        _BEGUN.fullmatch(error.doc[error.pos :].strip())
    )


def parse(path: Path, data: bytes, kind: str = "a run file", nan: bool = False) -> object:
    """The JSON in what was read from there. `nan`: NaN and infinities, which other tools write, become null."""
    if not data.strip():
        raise WherryError(f"{path} is empty")
    try:
        constant, number, whole = (
            (lambda _: None, None, _whole_or_none) if nan else (_no_constant, _finite, _whole)
        )
        return json.loads(
            _CONTROLS.sub(lambda found: found[0] if found[1] else "?", data.decode("utf-8")),
            parse_constant=constant,
            parse_float=number,
            parse_int=whole,
        )
    except UnicodeDecodeError as error:
        what = "is cut short" if cut_short(error) else "is not text"
        raise WherryError(f"{path} is not {kind}: it {what}") from None
    except RecursionError:
        raise WherryError(f"{path} is not {kind}: it is nested too deeply") from None
    except _Beyond:
        raise WherryError(
            f"{path} is not {kind}: it holds a number of 1e308 or more, so it is damaged; get it again from where it "
            "was made"
        ) from None
    except ValueError as error:
        line = getattr(error, "lineno", None)
        at = f" (line {line}, column {error.colno})" if line else ""
        what = "is cut short" if cut_short(error) else "is not JSON"
        raise WherryError(f"{path} is not {kind}: it {what}{at}") from None


def read_bytes(path: Path) -> bytes:
    """What a file holds, unpacked."""
    return _bytes(path)


def journal_beside(run: Path) -> Path | None:
    """The journal of that run, where one is."""
    with contextlib.suppress(OSError):  # told when the run itself is opened
        if not run.is_dir():  # which may have no name of its own
            path = run.with_name(run.name + JOURNAL)
            return path if path.exists() else None
    return None


def run_bytes(path: Path, wanted: str = WANTED) -> bytes:
    """What a file holds that is to be a run, or what else is wanted. Where a run was killed, only its journal holds
    anything."""
    journal = journal_beside(path)
    if journal and not (path.exists() and path.stat().st_size):
        raise WherryError(
            f"{path} has no figures yet: its run was killed or is under way, and what was measured is in {journal}; "
            f"wherry bench --resume {path} finishes a killed one"
        )
    data = _bytes(path, wanted)
    if data.startswith(_JOURNAL_BEGINS):
        run = path.with_suffix("") if path.suffix == JOURNAL else "RUN"
        raise WherryError(
            f"{path} is the journal of a run that was killed or is under way; wherry bench --resume {run} finishes a "
            "killed one"
        )
    return data


def read(path: Path) -> dict:
    return checked(path, parse(path, run_bytes(path)))


def checked(path: Path, run: object) -> dict:
    """A run that was read from there, held to the schema."""
    if not isinstance(run, dict) or run.get("format") != FORMAT:
        raise WherryError(f'{path} is JSON, but not a run file (no "format": "{FORMAT}")')
    number = run.get("format_version")
    if isinstance(number, int) and number > FORMAT_VERSION:
        raise WherryError(
            f"{path} is a run file of format {number}; this Wherry reads {FORMAT_VERSION}; use a newer one"
        )
    wrong = fault(run) or _at_odds(run)
    if wrong:
        raise WherryError(f"{path} is not a right run file: {wrong}")
    return run


# ---- writing --------------------------------------------------------------------------------------------------------


# A backslash that is escaped, two halves of a letter, or half of one alone.
_ESCAPES = re.compile(
    r"\\\\|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|\\ud[89a-f][0-9a-f]{2}", re.IGNORECASE
)


def plain_json(text: str) -> str:
    """JSON in ASCII as every reader takes it: a byte of a name that is no text, which Python holds as half of a letter,
    becomes the replacement character."""
    if "\\ud" not in text:
        return text
    return _ESCAPES.sub(lambda own: "\\ufffd" if len(own[0]) == 6 else own[0], text)


def encode(run: object) -> bytes:
    """For whoever reads JSON."""
    return plain_json(_text(run)).encode() + b"\n"


def exact(run: object) -> bytes:
    """For ourselves, with names as they are: who goes on with a run opens the files that it was given."""
    return _text(run).encode() + b"\n"


def _text(run: object) -> str:
    def text(value: object) -> str:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)

    try:
        own = text(run)
    except ValueError:  # few documents have any NaN to look for
        own = text(_clean(run))
    return own


def _clean(value: object) -> object:
    """NaN and infinities have no JSON; they become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value


def check_target(path: Path) -> None:
    """Finds out before an hour of measuring whether the file can be written after it."""
    try:
        _refuse_what_is_there(path)
        _write(path, b"\0" * 65536, keep=False)
    except OSError as error:
        raise WherryError(f"cannot save to {path}: {_why(error)}; choose another place") from None


def _why(error: OSError) -> str | None:
    # Where a directory was to be made.
    return "a file is where its directory would be" if error.errno == EEXIST else error.strerror


def is_document(path: Path, kind: str = FORMAT) -> bool:
    """Whether a file is one of ours, of that format."""
    try:
        there = parse(path, _bytes(path))
    except WherryError:
        return False
    return isinstance(there, dict) and there.get("format") == kind


def is_locked(path: Path) -> bool:
    """Whether somebody still writes what is locked as long as it is written."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def refuse_own(path: Path, source: Path, what: str, option: str = "-o") -> None:
    """What is read is not replaced by what is made of it, which holds less."""
    with contextlib.suppress(OSError):
        if path.samefile(source):
            raise WherryError(f"{option} {path}: that is {what} itself; give another name")


def _refuse_what_is_there(path: Path) -> None:
    """OSError where nobody can tell: a directory on the way that may not be entered, a name that is too long."""
    if str(path) == "-":
        raise WherryError(
            "cannot save to -: that is not standard output here; give the name of a file"
        )
    if path.is_dir():
        raise WherryError(f"cannot save to {path}: it is a directory; give a file name")
    if path.exists() and not path.is_file():
        raise WherryError(f"cannot save to {path}: it is not a regular file; give another name")
    if path.exists() and any(_goes_to(stream, path) for stream in (1, 2)):
        # The file that takes its place would not have what is written there, a program's output for one.
        raise WherryError(f"cannot save to {path}: output goes there already; give another name")


def _goes_to(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def write(path: Path, document: object) -> None:
    """Under a temporary name, then renamed: there is the whole file or none."""
    data = exact(document)
    if path.suffix == ".gz":
        data = gzip.compress(data, 6, mtime=0)
    _save(path, data)


def write_bytes(path: Path, data: bytes, quiet: bool = False) -> None:
    """Whole or not at all, as a run is. `quiet`: in a directory that nobody named, nothing is said of making it. Where
    a user named the file, `outputs` tells first whether what is there may go."""
    with contextlib.suppress(OSError):  # told when it is written
        _refuse_what_is_there(path)
    _save(path, data, quiet)


def _save(path: Path, data: bytes, quiet: bool = False) -> None:
    try:
        made = _write(path, data, keep=True)
    except OSError as error:
        raise FailedError(
            f"could not save {path}: {_why(error)}; nothing was left behind there"
        ) from None
    if made and not quiet and path.parent != RUNS:
        home = made[0] if path.is_symlink() else path.parent
        # It may be a name that was mistyped. Standard error may be gone, the file is there all the same.
        with contextlib.suppress(OSError):
            print(
                printable(f"wherry: {home} was no directory yet; it was made"),
                file=sys.stderr,
            )


def _write(path: Path, data: bytes, keep: bool) -> list[Path]:
    """The directories that were made for it."""
    # Renaming onto a symbolic link would replace the link, not the file that it names.
    path = Path(os.path.realpath(path))
    made = [home for home in path.parents if not home.exists()]
    try:
        kept = in_directory(path.parent, lambda: _written(path, data, keep))
    except BaseException:
        _without(made)
        raise
    if not kept:
        _without(made)
    return made


def in_directory(home: Path, make: Callable[[], Made]) -> Made:
    """What `make` makes there, in a directory that is made first where there is none. Another command that has made the
    same one for a trial may remove it again in between; then once more."""
    for _ in range(100):
        with contextlib.suppress(FileNotFoundError):
            home.mkdir(parents=True, exist_ok=True)
            return make()
    home.mkdir(parents=True, exist_ok=True)
    return make()


def _without(made: Sequence[Path]) -> None:
    """Directories that were made for a file that is not there, the deepest first; one in which something is stays."""
    for home in made:
        with contextlib.suppress(OSError):
            home.rmdir()


def _mode(path: Path) -> int:
    """As the file has it that is there. mkstemp makes files that only their owner reads; a run file is to be handed
    on."""
    with contextlib.suppress(OSError):
        return stat.S_IMODE(path.stat().st_mode) & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def _written(path: Path, data: bytes, keep: bool) -> bool:
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if keep:
            # A file system may have no modes, as a Windows disk in WSL.
            with contextlib.suppress(OSError):
                Path(name).chmod(_mode(path))
            Path(name).replace(path)
            return True
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
    Path(name).unlink()
    return False
