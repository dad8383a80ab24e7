"""lwIP as a TCP stack that `wherry bench network` drives: lwip_stack.c, linked to the packaged library. It is no peer,
since it has no function that could be called by a routine's name, and so it lies in a directory of its own."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from urllib.parse import quote

from sources import (
    BRINGS,
    PACKAGES,
    BrokenError,
    Source,
    complaint,
    lwip_headers,
    no_calls_of_memcpy,
    run,
    stamp,
)
from wherry import runner
from wherry.found_peers import STACKS

HERE = Path(__file__).resolve().parent
SHIM = HERE / "lwip_stack.c"
INTERFACE = HERE.parent / "runner" / "network"
FLAGS = (
    *("-std=gnu17", "-O2", "-shared", "-fPIC", "-fvisibility=hidden"),
    "-fno-builtin",  # it defines memcpy
    *("-Wl,-z,defs", "-Wl,-z,noexecstack", "-Wl,-z,now", "-Wl,--build-id=none"),
)
TIME_LIMIT = 30


def make(into: Path, cc: list[str], compiler: str, source: Source) -> tuple[str, str]:
    """`built` or `kept`, and what it is; or `missing`, `broken` or `wrong`, and why."""
    place = into / STACKS
    library, sidecar = place / "lwip.so", place / "lwip.json"
    key = _key(cc, compiler, source)
    try:
        before = json.loads(sidecar.read_text())
        if before.get("key") == key and before.get("stamp") == stamp(library):
            return "kept", "a TCP stack"
    except (OSError, ValueError, AttributeError):
        pass
    if not lwip_headers(source.paths[0]):
        return "missing", f"no headers beside {source.paths[0]}; {BRINGS['lwip']}"
    place.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place) as temporary:
        made = Path(temporary) / "lwip.so"
        fault = _build(made, cc, compiler, source)
        end = "broken"
        if not fault:
            fault, end = _check(made), "wrong"
        if fault:
            library.unlink(missing_ok=True)
            sidecar.unlink(missing_ok=True)
            return end, fault
        text = {
            "name": "lwip",
            "what": "lwIP as a TCP stack in user space",
            "version": source.version,
            "package": PACKAGES["lwip"],
            "compiler": compiler,
            "from": str(source.paths[0]),
            "key": key,
            "stamp": stamp(made),
        }
        (Path(temporary) / "lwip.json").write_text(json.dumps(text, indent=1) + "\n")
        (Path(temporary) / "lwip.json").replace(sidecar)
        made.replace(library)
    return "built", "a TCP stack"


def _build(made: Path, cc: list[str], compiler: str, source: Source) -> str:
    includes = [word for path in lwip_headers(source.paths[0]) for word in ("-isystem", path)]
    try:
        done = run(
            *(*cc, *FLAGS, *no_calls_of_memcpy(compiler), *includes, f"-I{INTERFACE}"),
            *("-o", made, SHIM, source.paths[0]),
        )
    except BrokenError as error:
        return str(error)
    return complaint(done.stderr) if done.returncode != 0 else ""


def _check(made: Path) -> str:
    """A stream of it, compared byte by byte; empty when it is right."""
    row = f"id=0 op=network via=stack stack={quote(str(made))} size=1448 routines=libc,wherry"
    try:
        with runner.Stream(["system"], [f"{row} rounds=1 calls=50"], TIME_LIMIT) as stream:
            for event in stream:
                if event.get("event") in ("wrong", "skip", "crash"):
                    return str(event.get("message") or event.get("reason"))
                if event.get("event") == "end":
                    return ""
            return stream.complaint() or f"wherry-run {runner.ended_by(stream.end())}"
    except runner.HangError:
        return f"its stream does not end within {TIME_LIMIT} s"


def _key(cc: list[str], compiler: str, source: Source) -> str:
    """Changes when anything does that it is made from."""
    stamps = []
    for file in (SHIM, INTERFACE / "stack.h", Path(__file__), *source.paths):
        status = file.stat()
        stamps.append((str(file), status.st_size, status.st_mtime_ns))
    return hashlib.sha256(repr((stamps, cc, compiler, source.version)).encode()).hexdigest()
