"""One host of a scheduler: what it is, why it may be refused, and what its answer means."""

from __future__ import annotations

import dataclasses
import json
import re

from wherry import version
from wherry.dimensions import clean

_IDENT = re.compile("[0-9a-f]{16}")
_TOLD = ("host", "system", "arch", "wherry", "python")
ENDINGS = {
    "bench": ".run.json",
    "verify": ".verify.json",
    "tune": ".toml",
    "doctor": ".doctor.json",
}


def ending(kind: str, arguments: list[str]) -> str:
    """Of the files that are brought back; glibc's tunables are no plan."""
    return ".glibc.json" if kind == "tune" and "--glibc" in arguments else ENDINGS[kind]


@dataclasses.dataclass
class Host:
    ident: str
    name: str
    model: str
    address: str
    state: str = "waiting"
    words: str = ""
    file: str = ""
    tries: int = 0
    future: object = None
    began: float = 0.0
    due: float = 0.0
    arguments: list[str] = dataclasses.field(default_factory=list)

    @classmethod
    def met(cls, address: str, own: dict) -> Host:
        """By what its worker told, which may be anything."""
        ident = own.get("id")
        if not isinstance(ident, str) or not _IDENT.fullmatch(ident):
            ident = address
        told = {key: clean(own.get(key) or "", 64) for key in ("host", "model")}
        return cls(ident, told["host"] or address, told["model"] or "?", address)


def refusal(own: dict) -> str | None:
    if "error" in own:
        return str(own["error"])
    sound = all(isinstance(own.get(key), str) for key in _TOLD)
    if not sound or not _IDENT.fullmatch(str(own.get("id"))):
        return f"answers otherwise than Wherry {version()} does; install that there"
    if own["system"] != "Linux" or own["arch"] != "x86_64":
        return f"is {own['arch']} {own['system']}; Wherry runs on x86-64 Linux"
    if own["wherry"] != version():
        return (
            f"has Wherry {own['wherry']}, and here is {version()}; on it: "
            f"{own['python']} -m pip install 'wherry[fleet]=={version()}'"
        )
    if own.get("lacks"):
        return (
            f"cannot measure: {own['lacks']} (without a wheel Wherry needs gcc and libc6-dev there; then "
            f"{own['python']} -m pip install 'wherry[fleet]=={version()}')"
        )
    return None


def experiments_of(arguments: list[str]) -> list[str]:
    from wherry import experiments

    known = experiments.names()
    return [a for a in arguments if a in known] or ["sizes"]


def options_of(kind: str, arguments: list[str]) -> list[str]:
    if kind != "bench":
        return arguments
    from wherry import experiments

    known = experiments.names()
    return [a for a in arguments if a not in known]


def verdict(data: bytes, answer: dict) -> tuple[str, str]:
    try:
        failures = json.loads(data)["failures"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "failed", clean(answer["words"] or "its answer is no verification", 300)
    if failures:
        first = failures[0] if isinstance(failures[0], dict) else {}
        return "wrong", clean(f"{first.get('target', '?')}: {first.get('message', 'wrong')}", 300)
    return (
        ("done", "all right") if answer["status"] == 0 else ("failed", clean(answer["words"], 300))
    )


def tunables(data: bytes, answer: dict) -> tuple[str, str]:
    """Of `wherry tune --glibc`, whose answer is what it printed."""
    try:
        own = json.loads(data)
        whole = own["format"] == "wherry-tune-glibc" and own["interrupted"] is False
        line = own["line"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "failed", clean(answer["words"] or "its answer is no tuning of glibc", 300)
    if not whole:
        return "failed", "the tuning was interrupted there"
    return "done", clean(line or "no setting beats the default", 300)


def cause(error: BaseException | None) -> str:
    if error is None:
        return "its task was given up by the scheduler"
    text = " ".join(str(error).split())[:200]
    chain, names = error, set()
    while chain is not None and id(chain) not in names:
        names.add(id(chain))
        if isinstance(chain, ImportError) and "wherry" in str(chain):
            return (
                "has no Wherry, or one without fleets; on it, with the worker's own python: "
                f"python -m pip install 'wherry[fleet]=={version()}'"
            )
        chain = chain.__cause__ or chain.__context__
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
