"""How fast this machine's clock ran while it was measured: what turns nanoseconds into cycles."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Clock:
    ghz: float | None
    measured: bool

    def measured_in_words(self) -> str:
        """What stands beside the kernel's word, which in a virtual machine is often another."""
        return f"{self.ghz:.2f} GHz, measured by a chain of additions while the run was made"

    def in_words(self) -> str:
        if self.ghz is None:
            return "the clock of this machine is not known: no bytes a cycle"
        how = (
            "measured by a chain of additions while the run was made"
            if self.measured
            else "as the kernel says; not measured, and a faster clock under load would make the figures smaller"
        )
        return f"cycles now are of {self.ghz:.2f} GHz, {how}"

    def cycles(self, ns: float | None) -> float | None:
        return None if ns is None or self.ghz is None else ns * self.ghz

    def bytes_a_cycle(self, rate: float | None) -> float | None:
        """From bytes a second."""
        return None if rate is None or self.ghz is None else rate / (self.ghz * 1e9)


# In GHz; no processor's clock is beyond, and figures by one that is would be beyond numbers.
_SLOWEST, _FASTEST = 0.001, 1000


def clock_of(run: dict) -> Clock:
    measured = (run.get("runner") or {}).get("ghz")
    if isinstance(measured, int | float) and _SLOWEST <= measured <= _FASTEST:
        return Clock(float(measured), True)
    mhz = (run["machine"].get("cpu") or {}).get("mhz")
    sane = mhz is not None and _SLOWEST * 1000 <= mhz <= _FASTEST * 1000
    return Clock(mhz / 1000 if sane else None, False)
