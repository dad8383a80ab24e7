"""What is installed: archives and headers, where distributions put them, and their versions."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ARCHIVES = {
    "musl": (
        "usr/lib/x86_64-linux-musl/libc.a",
        "usr/lib/musl/lib/libc.a",
        "usr/x86_64-linux-musl/lib*/libc.a",
        "usr/local/musl/lib/libc.a",
    ),
    "glibc": ("usr/lib/x86_64-linux-gnu/libc.a", "usr/lib64/libc.a", "usr/lib/libc.a"),
    "llvmlibc": ("usr/lib/llvm-*/lib/libllvmlibc.a", "usr/local/lib/libllvmlibc.a"),
}
# Shared objects whose functions have prototypes of their own: a shim calls them.
SHARED = {
    "isal": ("usr/lib/x86_64-linux-gnu/libisal.so", "usr/lib64/libisal.so", "usr/lib/libisal.so"),
    "lwip": ("usr/lib/x86_64-linux-gnu/liblwip.so", "usr/lib64/liblwip.so", "usr/lib/liblwip.so"),
}
DPDK_PLACES = ("usr/include/x86_64-linux-gnu/dpdk", "usr/include/dpdk", "usr/local/include")
HEADERS = {
    "dpdk": ("rte_memcpy.h", DPDK_PLACES),
    "stringzilla": ("stringzilla/memory.h", ("usr/include", "usr/local/include")),
}
PACKAGES = {
    "musl": "musl-dev",
    "dpdk": "libdpdk-dev",
    "llvmlibc": "libllvmlibc-NN-dev",
    "stringzilla": "stringzilla (PyPI)",
    "glibc": "libc6-dev",
    "isal": "libisal-dev",
    "lwip": "liblwip-dev",
}
BRINGS = {
    "musl": "Debian package musl-dev brings it",
    "dpdk": "Debian package libdpdk-dev brings it",
    "llvmlibc": "Debian package libllvmlibc-NN-dev brings it (apt-cache search llvmlibc)",
    "stringzilla": "PyPI package stringzilla brings it",
    "glibc": "none newer than the libc in use; unpack libc6-dev of a later Debian (dpkg-deb -x) "
    "into {root}",
    "isal": "Debian package libisal-dev brings it",
    "lwip": "Debian package liblwip-dev brings it",
}
# As the archives themselves say it.
_IN_ARCHIVE = {
    "musl": rb"(?<![\d.])(1\.\d+\.\d{1,3})\x00",
    "glibc": rb"GNU C Library [^\n]{0,80}? version (\d+\.\d+(?:\.\d+)?)",
    "llvmlibc": rb"__llvm_libc_(\d+_\d+_\d+)_",
}
_IN_HEADER = {
    "dpdk": ("rte_build_config.h", "RTE_VER_", ("YEAR", "MONTH", "MINOR")),
    "stringzilla": (
        "stringzilla/stringzilla.h",
        "STRINGZILLA_H_VERSION_",
        ("MAJOR", "MINOR", "PATCH"),
    ),
}
# Seen from the shared object: where its headers lie, which of them tells the version, and by what.
LWIP_HEADERS = ("../../../include/lwip", "../../include/lwip", "../include/lwip")
_BESIDE = {
    "lwip": (LWIP_HEADERS, "lwip/init.h", "LWIP_VERSION_{}", ("MAJOR", "MINOR", "REVISION")),
    "isal": (
        ("../../../include", "../../include", "../include"),
        "isa-l.h",
        "ISAL_{}_VERSION",
        ("MAJOR", "MINOR", "PATCH"),
    ),
}
TIME_LIMIT = 300


class MissingError(Exception):
    """Something is not installed; the text says what would bring it."""


class BrokenError(Exception):
    """Something is there and cannot be used; the text says why."""


@dataclass(frozen=True)
class Source:
    """What a package gave: an archive or directories of headers, and its version."""

    paths: tuple[Path, ...]
    version: str


def stamp(file: Path) -> list[int]:
    """Of what was built, kept in its description: a disk that was full or somebody else may have damaged it since, and
    a build that was killed between the two leaves the description of one beside the other."""
    status = file.stat()
    return [status.st_size, status.st_mtime_ns]


def run(*command: str | Path) -> subprocess.CompletedProcess:
    words = [str(word) for word in command]
    try:
        return subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIME_LIMIT,
            check=False,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        raise BrokenError(f"{words[0]} did not end within {TIME_LIMIT} s") from None
    except OSError as error:
        raise BrokenError(f"cannot start {words[0]}: {error.strerror}") from None


def complaint(text: str) -> str:
    """The line of a compiler's, linker's or pip's output that says most."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [
        line
        for line in lines
        if re.search(r"error|undefined|not recognized|malformed|multiple", line, re.IGNORECASE)
    ]
    return (telling or lines or ["nothing"])[0][:300]


def no_calls_of_memcpy(compiler: str) -> tuple[str, ...]:
    """For what defines memcpy: GCC makes a call of it from a loop that copies, and there it would call itself. clang
    does so only where memcpy is a builtin, and does not know the option."""
    return () if "clang" in compiler else ("-fno-tree-loop-distribute-patterns",)


def find(name: str, roots: Sequence[Path], given: Path | None, into: Path, offline: bool) -> Source:
    """Raises MissingError or BrokenError."""
    if name in ARCHIVES:
        return _archive(name, roots, given)
    if name in SHARED:
        return _shared(name, roots, given)
    try:
        return _headers(name, roots, given)
    except MissingError:
        if name != "stringzilla":
            raise
    private = into / "pip"
    if not (private / "usr/include/stringzilla").is_dir():
        if offline:
            raise MissingError(f"{BRINGS[name]}; without --offline pip would fetch it")
        _fetch_stringzilla(private)
    return _headers(name, [private], None)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _archive(name: str, roots: Sequence[Path], given: Path | None) -> Source:
    """The newest of that library; of glibc, one newer than the libc in use, which is measured anyway."""
    if given:
        if not given.is_file():
            raise BrokenError(f"{given} is no file; give the archive itself, as in .../libc.a")
        return Source((given,), _version_in(name, given))
    paths = {
        path.resolve()
        for root in roots
        for pattern in ARCHIVES[name]
        for path in root.glob(pattern)
        if path.is_file()
    }
    found = [Source((path,), _version_in(name, path)) for path in sorted(paths)]
    if name == "glibc":
        try:
            own = _numbers(os.confstr("CS_GNU_LIBC_VERSION") or "")
        except (OSError, ValueError):  # another libc is in use
            own = ()
        found = [source for source in found if _numbers(source.version) > own]
    if not found:
        raise MissingError(BRINGS[name].format(root=_shown(roots[-1])))
    return max(found, key=lambda source: _numbers(source.version))


def _shared(name: str, roots: Sequence[Path], given: Path | None) -> Source:
    """Its version is what its headers say; without them what its real file is called by, which counts interfaces:
    libisal.so.2.0.30 is of 2.30.0, and lwIP's is 0.0.0 always."""
    if given and not given.is_file():
        raise BrokenError(
            f"{given} is no file; give the shared object itself, as in .../lib{name}.so"
        )
    places = [given] if given else [root / place for root in roots for place in SHARED[name]]
    for path in places:
        if path.is_file():
            version = path.resolve().name.partition(".so.")[2]
            return Source((path,), _version_beside(name, path) or version)
    raise MissingError(BRINGS[name])


def lwip_headers(library: Path) -> list[Path]:
    """The directory of them, if any; they lie where the package of the shared object puts them."""
    places = [library.parent.joinpath(place).resolve() for place in LWIP_HEADERS]
    return [place for place in places if (place / "lwip" / "tcp.h").is_file()][:1]


def _version_beside(name: str, library: Path) -> str:
    places, file, define, words = _BESIDE[name]
    for place in places:
        try:
            text = (library.parent.joinpath(place).resolve() / file).read_text(errors="replace")
        except OSError:
            continue
        parts = [re.search(rf"#define {define.format(word)}\s+(\d+)", text) for word in words]
        if all(parts):
            return ".".join(part[1] for part in parts)
    return ""


def _shown(path: Path) -> str:
    """As one would type it, in the checkout."""
    checkout = Path(__file__).resolve().parent.parent
    return str(path.relative_to(checkout) if path.is_relative_to(checkout) else path)


def _version_in(name: str, path: Path) -> str:
    try:
        match = re.search(_IN_ARCHIVE[name], path.read_bytes())
    except OSError as error:
        raise BrokenError(f"{path}: {error.strerror}") from None
    return match[1].decode().replace("_", ".") if match else ""


def _headers(name: str, roots: Sequence[Path], given: Path | None) -> Source:
    """The directories that must be searched for the library's header."""
    file, places = HEADERS[name]
    sets = [[given]] if given else [[root / place for place in places] for root in roots]
    for candidates in sets:
        for i, place in enumerate(candidates):
            if (place / file).is_file():
                # DPDK's header of an architecture needs those of the directory for all of them.
                rest = candidates[i + 1 :] if name == "dpdk" else []
                paths = (place, *(p for p in rest if (p / "generic").is_dir()))
                return Source(paths, _header_version(name, paths))
    if given:
        raise BrokenError(f"{given} holds no {file}; give the directory that does")
    raise MissingError(BRINGS[name])


def _header_version(name: str, places: Iterable[Path]) -> str:
    file, prefix, words = _IN_HEADER[name]
    for place in places:
        try:
            text = (place / file).read_text(errors="replace")
        except OSError:
            continue
        parts = [re.search(rf"#define {prefix}{word} (\d+)", text) for word in words]
        if all(parts):
            return ".".join(part[1] for part in parts)
    return ""


def _fetch_stringzilla(private: Path) -> None:
    """With pip, which verifies what it gets; only the headers are kept, in a directory of ours."""
    print("fetching StringZilla's headers with pip (--offline would not) ...", flush=True)
    private.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=private) as temporary:
        done = run(
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
            *("--no-input", "--retries", "1", "--no-deps", "--no-binary", "stringzilla"),
            *("--dest", temporary, "stringzilla"),
        )
        packed = sorted(Path(temporary).glob("stringzilla-*.tar.gz"))
        if done.returncode != 0 or not packed:
            raise MissingError(f"{BRINGS['stringzilla']}; pip said: {complaint(done.stderr)}")
        headers = Path(temporary) / "headers"
        try:
            _unpack(packed[0], headers)
        except (OSError, EOFError, tarfile.TarError) as error:
            raise BrokenError(f"{packed[0].name} cannot be unpacked: {error}") from None
        target = private / "usr/include/stringzilla"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(target, ignore_errors=True)
        headers.rename(target)


def _unpack(packed: Path, target: Path) -> None:
    """Plain files of include/stringzilla/ only, wherever the package would have others go."""
    target.mkdir()
    with tarfile.open(packed) as tar:
        for member in tar:
            below = re.fullmatch(
                r"[^/]+/include/stringzilla/((?:\w+/)*\w+\.h)", member.name, re.ASCII
            )
            if below and member.isfile():
                path = target / below[1]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(tar.extractfile(member).read())
