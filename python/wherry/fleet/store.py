"""Where results go: a directory, or any URL that fsspec knows. Whole files or none."""

from __future__ import annotations

import re
from pathlib import Path

from wherry import named_files, runfile
from wherry.errors import FailedError, WherryError
from wherry.fleet.document import LARGEST


class Store:
    def __init__(self, where: str):
        self.where = where.rstrip("/") or "/"
        self._remote = None
        if "://" not in where or where.startswith("file://"):
            self._path = Path(where.removeprefix("file://"))
            try:
                if self._path.exists() and not self._path.is_dir():
                    raise WherryError(f"--out {where} is not a directory")
            except OSError as error:
                raise WherryError(
                    f"--out {where} cannot be used: {error.strerror}; give another directory"
                ) from None
            return
        import fsspec

        try:
            self._remote, self._root = fsspec.core.url_to_fs(self.where)
            self._remote.makedirs(self._root, exist_ok=True)
        except Exception as error:  # each kind of storage has errors of its own
            raise WherryError(f"--out {where} cannot be used: {_line(error)}") from None

    def names(self) -> list[str]:
        if self._remote is None:
            return sorted(p.name for p in self._path.glob("*.*")) if self._path.is_dir() else []
        try:
            return sorted(
                Path(p).name for p in self._remote.ls(self._root, detail=False, refresh=True)
            )
        except TypeError:
            return sorted(Path(p).name for p in self._remote.ls(self._root, detail=False))
        except FileNotFoundError:
            return []
        except Exception as error:
            raise FailedError(f"cannot list {self.where}: {_line(error)}") from None

    def exists(self, name: str) -> bool:
        if self._remote is None:
            return (self._path / name).exists()
        try:
            return self._remote.exists(f"{self._root}/{name}")
        except Exception as error:
            raise FailedError(f"cannot look into {self.where}: {_line(error)}") from None

    def read(self, name: str) -> bytes:
        if self._remote is None:
            return named_files.at_most(self._path / name, LARGEST)
        try:
            with self._remote.open(f"{self._root}/{name}", "rb") as file:
                return file.read(LARGEST)
        except Exception as error:
            raise OSError(_line(error)) from None

    def write(self, name: str, data: bytes) -> None:
        if self._remote is None:
            runfile.write_bytes(self._path / name, data)
            return
        try:
            # Object storage shows an object when it is whole.
            self._remote.pipe_file(f"{self._root}/{name}", data)
        except Exception as error:
            raise FailedError(f"could not save {self.where}/{name}: {_line(error)}") from None

    def place(self, name: str) -> str:
        return str(self._path / name) if self._remote is None else f"{self.where}/{name}"


def safe(name: str) -> str:
    """Of a host's own name, what may stand in a file's."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name)[:40].strip("-") or "host"


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
