"""Plans: by which method the library copies and sets each size; and checked. As files they are planfiles', in words
planwords'. docs/plan.md tells what they mean.

    plan = plans.default()                          # that of this CPU
    plan = plan.changed(choice="avx2", copy_rep_from=4096)
    plans.fault(plan)                               # what no plan can mean, or None
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from wherry.errors import WherryError
from wherry.units import GIB, KIB, MIB

# In the order of the compiled form; new ones at the end.
CHOICES = ("sse2", "avx2", "avx512", "avx512_ladder", "avx512_together")
FEATURES = (
    *("avx2", "bmi1", "bmi2", "avx512f", "avx512bw", "avx512vl", "avx512dq"),
    *("erms", "fsrm", "fzrm", "fsrs"),
)
FIELDS = (
    *("copy_rep_from", "copy_rep_to", "copy_stream_from"),
    *("set_rep_from", "set_rep_to", "set_stream_from"),
    *("copy_rep_slow_ahead", "copy_rep_all_from"),
    *("copy_rep_recent_from", "set_rep_recent_from", "copy_backward_ahead", "copy_ymm_from"),
    *("copy_source_lines_to", "copy_parts_from"),
    *("copy_stream_recent_from", "set_stream_recent_from"),
)
# In a "from": never by this method. In copy_rep_to, set_rep_to and
# copy_source_lines_to: no upper end. In copy_rep_all_from, the
# rep_recent_from and the stream_recent_from: at no size.
OFF = (1 << 64) - 1
# Outside these no plan can be meant so; src/planfile has the same.
REP_LEAST = 128
STREAM_LEAST = 64 * KIB
MOST = 1 << 40
AHEAD_MOST = 4095
YMM_LEAST = 1025
# What a plan without backward_ahead means: ALIAS_SPAN of src/routines/thresholds.h.
BACKWARD_AHEAD = 1536

_NEEDS = {
    "sse2": (),
    "avx2": ("avx2", "bmi1", "bmi2"),
    "avx512": FEATURES[:7],
    "avx512_ladder": FEATURES[:7],
    "avx512_together": FEATURES[:7],
}


class UnusableError(WherryError):
    """A file that was read and is no plan, or no right one: a program that asks for it gets the default. `why` is the
    end of a sentence that begins with the file's name."""

    def __init__(self, path: Path, why: str):
        super().__init__(f"{path} {why}")
        self.why = why


@dataclasses.dataclass(frozen=True)
class Cpu:
    """The CPU a plan is for. None: any; `present` and `absent` are features it must and must not have."""

    vendor: str
    family: int
    model: int | None = None
    stepping: int | None = None
    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    last_level: int | None = None


@dataclasses.dataclass(frozen=True)
class Plan:
    name: str
    choice: str
    cpu: Cpu
    thresholds: dict[str, int]  # by FIELDS, bytes
    made: dict = dataclasses.field(default_factory=dict)  # of the text form alone

    def changed(self, **changes: object) -> Plan:
        """The same with another name, choice, cpu, made, or thresholds by their names."""
        thresholds = {k: changes.pop(k) for k in list(changes) if k in FIELDS}
        return dataclasses.replace(self, thresholds={**self.thresholds, **thresholds}, **changes)

    def past_from(self, side: str) -> int:
        """From where on calls go past the caches wherever the destination lies; OFF: at no size."""
        start = self.thresholds[f"{side}_stream_from"]
        return max(start, self.thresholds[f"{side}_stream_recent_from"])

    def past(self, side: str, start: int) -> dict[str, int]:
        """What changed() is to be told for that to be `start`, and nothing to be asked of where a destination lies."""
        return {
            f"{side}_stream_from": start,
            f"{side}_stream_recent_from": 0 if start == OFF else start,
        }


def fault(plan: Plan) -> str | None:
    """What no plan can mean, as the end of a sentence; None when nothing."""
    t = plan.thresholds
    if plan.choice not in CHOICES:
        return f"the choice '{plan.choice}'; there are {', '.join(CHOICES)}"
    for side in ("copy", "set"):
        start, end = t[f"{side}_rep_from"], t[f"{side}_rep_to"]
        recent = t[f"{side}_rep_recent_from"]
        if start == OFF:
            if end or recent:
                return f"{side}.rep_to or rep_recent_from, but rep_from off"
        elif not REP_LEAST <= start <= MOST:
            return f"{side}.rep_from = {start}, outside {REP_LEAST} B to {size_text(MOST)}"
        elif end != OFF and not start <= end <= MOST:
            return f"{side}.rep_to = {end}, outside rep_from to {size_text(MOST)}"
        elif recent != OFF and not start <= recent <= MOST:
            return f"{side}.rep_recent_from = {recent}, outside rep_from to {size_text(MOST)}"
        stream, recent = t[f"{side}_stream_from"], t[f"{side}_stream_recent_from"]
        if stream == OFF:
            if recent:
                return f"{side}.stream_recent_from, but stream_from off"
        elif not STREAM_LEAST <= stream <= MOST:
            return f"{side}.stream_from = {stream}, outside {size_text(STREAM_LEAST)} to {size_text(MOST)}"
        elif recent != OFF and not stream <= recent <= MOST:
            return f"{side}.stream_recent_from = {recent}, outside stream_from to {size_text(MOST)}"
    ahead, all_from = t["copy_rep_slow_ahead"], t["copy_rep_all_from"]
    if t["copy_rep_from"] == OFF:
        if ahead or all_from:
            return "copy.rep_slow_ahead or rep_all_from, but rep_from off"
    elif not 0 <= ahead <= AHEAD_MOST:
        return f"copy.rep_slow_ahead = {ahead}, outside 0 to {AHEAD_MOST} B"
    elif all_from != OFF and not t["copy_rep_from"] <= all_from <= MOST:
        return f"copy.rep_all_from = {all_from}, outside rep_from to {size_text(MOST)}"
    backward = t["copy_backward_ahead"]
    if not 0 <= backward <= AHEAD_MOST:
        return f"copy.backward_ahead = {backward}, outside 0 to {AHEAD_MOST} B"
    ymm = t["copy_ymm_from"]
    if ymm != OFF and not YMM_LEAST <= ymm <= MOST:
        return f"copy.ymm_from = {ymm}, outside {YMM_LEAST} B to {size_text(MOST)}"
    lines = t["copy_source_lines_to"]
    if lines != OFF and not 0 <= lines <= MOST:
        return f"copy.source_lines_to = {lines}, outside 0 to {size_text(MOST)}"
    parts = t["copy_parts_from"]
    if parts != OFF and not 0 <= parts <= MOST:
        return f"copy.parts_from = {parts}, outside 0 to {size_text(MOST)}"
    if (plan.cpu.last_level or 0) > OFF:
        return f"cpu.last_level = {plan.cpu.last_level}, more than a cache can have"
    both = set(plan.cpu.present) & set(plan.cpu.absent)
    if both:
        return f"{min(both)} in both cpu.with and cpu.without"
    lacking = set(_NEEDS[plan.choice]) & set(plan.cpu.absent)
    if lacking:
        return f"the choice {plan.choice} for CPUs without {min(lacking)}, which it needs"
    return None


# ---- this CPU -------------------------------------------------------------------------------------------------------


def this_cpu(reported: Mapping | None = None) -> Cpu:
    """The CPU a plan that is measured here is for; `reported` is the event of `wherry-run cpu`."""
    if reported is None:
        from wherry import runner

        reported = runner.cpu()
    has = reported["features"]
    return Cpu(
        reported["vendor_id"],
        reported["family"],
        reported["model"],
        None,
        tuple(name for name in FEATURES if has.get(name)),
        tuple(name for name in FEATURES if not has.get(name)),
        reported["last_level"],
    )


def default(reported: Mapping | None = None) -> Plan:
    """What the library does here when no plan is loaded."""
    if reported is None:
        from wherry import runner

        reported = runner.cpu()
    own = reported["plan"]["default"]
    return Plan("default", own["choice"], this_cpu(reported), {f: _whole(own[f]) for f in FIELDS})


def _whole(value: int | None) -> int:
    return OFF if value is None else value


def mismatch(cpu: Cpu, reported: Mapping) -> str | None:
    """Why a plan for that CPU is not for the one that `wherry-run cpu` reported; None when it is."""
    has = reported["features"]
    for what, wanted, is_ in (
        ("vendor", cpu.vendor, reported["vendor_id"]),
        ("family", cpu.family, reported["family"]),
        ("model", cpu.model, reported["model"]),
        ("stepping", cpu.stepping, reported["stepping"]),
    ):
        if wanted is not None and wanted != is_:
            return f"it is for {what} {wanted}, and this CPU is {what} {is_}"
    for name in cpu.present:
        if not has.get(name):
            return f"it is for CPUs with {name}, which this one lacks"
    for name in cpu.absent:
        if has.get(name):
            return f"it is for CPUs without {name}, which this one has"
    if cpu.last_level is not None and cpu.last_level != reported["last_level"]:
        return (
            f"it is for a last-level cache of {size_text(cpu.last_level)}, "
            f"and here are {size_text(reported['last_level'])}"
        )
    return None


def lacks(plan: Plan, reported: Mapping) -> str | None:
    """The first feature that its choice needs and that CPU lacks."""
    has = reported["features"]
    return next((name for name in _NEEDS[plan.choice] if not has.get(name)), None)


def forced(isa: str, reported: Mapping) -> Plan:
    """The default plan with this choice; misuse where that CPU, as wherry-run reports it, cannot do it."""
    own = default().changed(name=f"forced {isa}", choice=isa)
    if lacking := lacks(own, reported):
        raise WherryError(f"this CPU, or its system, lacks {lacking}, which --isa {isa} needs")
    return own


def for_this_cpu(plans: Sequence[Plan], reported: Mapping) -> Plan | None:
    """The one of a bundle that the library takes: the first that fits."""
    fitting = (p for p in plans if mismatch(p.cpu, reported) is None and not lacks(p, reported))
    return next(fitting, None)


# ---- sizes in words -------------------------------------------------------------------------------------------------


def parse_size(value: int | str) -> int:
    if isinstance(value, int):
        return value
    number, unit = re.fullmatch(r"(\d+) ?(B|KiB|MiB|GiB)", value, re.ASCII).groups()
    return int(number) * {"B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB}[unit]


def size_text(size: int) -> str:
    """Exact: 24576 is 24 KiB, 1448 is 1448 B."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"
