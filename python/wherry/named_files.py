"""How a file that somebody named is read, of whatever kind it turns out to be."""

from __future__ import annotations

import os
from pathlib import Path


def at_most(path: Path, count: int) -> bytes:
    """Up to so many bytes from its beginning; nothing of a file of no length, since some, as /proc/kmsg, wait for what
    there will be. Raises OSError, and ValueError for a name that no file can have. A pipe would wait for its other end:
    whoever asks has seen that it is none."""
    with path.open("rb") as file:
        # No more is asked for than there is: Python sets aside what it is asked for, and the limits of files are beyond
        # what a batch system lets a process have (ulimit -v).
        return file.read(min(count, os.fstat(file.fileno()).st_size))
