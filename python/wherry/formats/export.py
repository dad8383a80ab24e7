"""A run in another format: which there are, and what each is for."""

from __future__ import annotations

import json
from collections.abc import Callable

from wherry.formats import benchfmt, cells, google_benchmark
from wherry.formats.samples import Samples


def _google(run: dict, samples: Samples) -> str:
    return json.dumps(google_benchmark.write(run, samples), indent=1, allow_nan=False) + "\n"


# Name, what it is for, how it is written.
FORMATS: dict[str, tuple[str, Callable[[dict, Samples], str]]] = {
    "csv": (
        "a table, one cell a line, units in the heads",
        lambda run, _: cells.separated(run, ","),
    ),
    "tsv": ("the same, tabs between", lambda run, _: cells.separated(run, "\t")),
    "markdown": ("the same, for a mail or an issue", lambda run, _: cells.markdown(run)),
    "google-benchmark": ("JSON for google-benchmark's tools/compare.py", _google),
    "benchfmt": ("Go's benchmark text, for benchstat", benchfmt.write),
}
# What the names of files end in, when no format is named.
SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".md": "markdown",
    ".json": "google-benchmark",
    ".txt": "benchfmt",
}
USES_SAMPLES = ("google-benchmark", "benchfmt")


def text(name: str, run: dict, samples: Samples) -> str:
    return FORMATS[name][1](run, samples)
