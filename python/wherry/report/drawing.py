"""The drawing library, which has an engine of its own with threads of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from wherry.errors import FailedError


@contextlib.contextmanager
def engine() -> Iterator[None]:
    """Around its calls. Where it gets no thread it panics, as Rust calls that: it says so on standard error, and raises
    what is no Exception, since nobody is to go on with it."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        line = " ".join(str(error).split())[:160]
        raise FailedError(
            f"the drawing library gave up: {line}; end some processes, or raise their limit (ulimit -u; of a container "
            "its pids.max)"
        ) from None
