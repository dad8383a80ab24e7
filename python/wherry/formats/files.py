"""Reads whatever holds figures: our run files, google-benchmark's JSON, Go's benchmark text (also in
`go test -json`), glibc's benchtests."""

from __future__ import annotations

import re
from pathlib import Path

from wherry import runfile
from wherry.errors import WherryError
from wherry.formats import benchfmt, benchtests, google_benchmark, gotest
from wherry.formats.foreign import written

# What a file may be, as it is said to the user.
OTHERS = "google-benchmark JSON, Go benchmark text or glibc benchtests JSON"
READS = f"a run file, {OTHERS}"

# What may have become null, or, as 1e999, infinity.
_NO_NUMBER = re.compile(rb"NaN|Infinity|\d[eE]\+?\d{3}|\d{308}")


def load(path: Path, ghz: float | None = None, foreign: bool = False) -> dict:
    """A run, checked against the schema. `ghz`: the rate of the counter, for figures in ticks; `foreign`: a run file
    is refused."""
    reads = OTHERS if foreign else READS
    data = runfile.run_bytes(path, OTHERS if foreign else runfile.WANTED)
    if not data.strip():
        raise WherryError(f"{path} is empty")
    if gotest.fits(data):
        text = gotest.text(data, path.name)
        if not benchfmt.fits(text):
            raise WherryError(
                f"{path} is the output of go test -json and has no benchmark in it; "
                "go test -bench . -json runs them"
            )
        return _imported(path, benchfmt.read(text, path.name))
    if data.lstrip()[:1] in (b"{", b"["):
        # google-benchmark writes NaN for a counter that has no value; the times beside it are none the worse.
        document = runfile.parse(path, data, reads, nan=True)
        if isinstance(document, dict) and document.get("format") == runfile.FORMAT:
            if foreign:
                raise WherryError(f"{path} is a run file already; wherry bench --show prints it")
            if _NO_NUMBER.search(data):  # where ours has null
                document = runfile.parse(path, data)
        return _document(path, document, ghz)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise WherryError(f"{path} is not {reads}: it is not text") from None
    if not benchfmt.fits(text):
        raise WherryError(f"{path} is not {reads}")
    return _imported(path, benchfmt.read(text, path.name))


def _document(path: Path, document: object, ghz: float | None) -> dict:
    if google_benchmark.fits(document):
        return _imported(path, google_benchmark.read(document, path.name))
    if benchtests.fits(document):
        return _imported(path, benchtests.read(document, path.name, ghz))
    if isinstance(document, dict) and document.get("format") == runfile.FORMAT:
        return runfile.checked(path, document)
    raise WherryError(
        f'{path} is JSON, but not {READS} (no "format": "{runfile.FORMAT}", no "benchmarks", no "functions")'
    )


def _imported(path: Path, run: dict) -> dict:
    if run["started"] is None:
        run["started"] = run["finished"] = written(path)
    wrong = runfile.fault(run)
    if wrong:
        raise WherryError(f"{path} cannot be taken as a run: {wrong}")
    return run
