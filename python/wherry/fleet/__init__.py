"""Runs of many machines: read in bulk, told apart by CPU model, summarised, asked by SQL; and measured on the hosts of
a Dask scheduler. Reading needs nothing beyond Wherry's own dependencies; `wherry[fleet]` brings what the rest needs."""

from __future__ import annotations

import sys

from wherry import shellwords
from wherry.errors import WherryError


def missing(what: str) -> WherryError:
    """By the Python that this Wherry runs in: any other knows none, and would ask an index for one of that name."""
    python = shellwords.word(sys.executable or "python")
    return WherryError(f"{what}, which the extra brings: {python} -m pip install 'wherry[fleet]'")
