"""The drawing library, which has an engine of its own with threads of its own."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator

from wherry.errors import FailedError

# Addresses: the engine sets aside 64 GiB of them, and ends the process with a stack trace where it may not; and some
# for the rest.
ROOM = 68 << 30


def check_room() -> None:
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit not in (resource.RLIM_INFINITY, -1) and limit < ROOM:
        raise FailedError(
            f"drawing sets aside {ROOM >> 30} GiB of addresses, though hardly any memory, and this process may have "
            f"{limit / (1 << 30):.3g} GiB; lift the limit (ulimit -v unlimited)"
        )


@contextlib.contextmanager
def engine() -> Iterator[None]:
    """Around its calls. Where it gets no thread it panics, as Rust calls that: it says so on standard error, and raises
    what is no Exception, since nobody is to go on with it."""
    check_room()
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
