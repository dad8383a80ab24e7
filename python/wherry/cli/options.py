"""What `wherry bench` was given on the command line, word for word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields


@dataclass(frozen=True, kw_only=True)
class Options:
    """One field an option, named as its parameter; those of `cells` are in `dimensions`."""

    # What is measured.
    experiments: Sequence[str] = ()
    every: bool = False
    routines: Sequence[str] = ()
    sizes: Sequence[str] = ()
    states: Sequence[str] = ()
    ops: Sequence[str] = ()
    regions: Sequence[str] = ()
    isa: str | None = None
    mixes: Sequence[str] = ()
    peers: Sequence[str] = ()
    found_peers: bool = False
    no_found_peers: bool = False
    turns: int | None = None
    members: Sequence[str] = ()
    disks: Sequence[str] = ()
    scratch: str | None = None
    dimensions: Mapping[str, Sequence[str]] = field(default_factory=dict)

    # How.
    quick: bool = False
    budget: str | None = None
    verify_first: bool = False
    counters: bool = False
    pin: int | tuple[int, ...] | None = None
    processes: int | None = None
    rounds: int | None = None
    seed: int | None = None
    hang_limit: float

    # What becomes of it.
    save: str | None = None
    raw: bool = False
    as_json: bool = False
    then: bool = False
    plot: str | None = None
    page: bool = False

    @classmethod
    def of(cls, parameters: Mapping[str, object]) -> Options:
        """From those of click; what is no field is a dimension."""
        own = {option.name for option in fields(cls)}
        return cls(
            **{name: value for name, value in parameters.items() if name in own},
            dimensions={name: value for name, value in parameters.items() if name not in own},
        )
