"""A run's main figures as OpenMetrics text, for those who watch a fleet with Prometheus. It is also right in the older
text format, the only one that node_exporter reads from a directory: all families are gauges, since that has no info."""

from __future__ import annotations

import numpy as np

from wherry.fleet import grouping
from wherry.fleet.cells import AT
from wherry.fleet.facts import Facts
from wherry.fleet.loading import Fleet

# name, unit, what it is.
FAMILIES = {
    "wherry_run_info": ("", "The host and how it was measured; always 1."),
    "wherry_run_started_timestamp_seconds": ("seconds", "When the run began."),
    "wherry_noise_floor_ratio": ("ratio", "What a routine differs from itself."),
    "wherry_voided_rounds_ratio": ("ratio", "Rounds that were thrown away, of all."),
    "wherry_call_time_seconds": ("seconds", "Time of one call, geometric mean of the medians."),
    "wherry_time_to_libc_ratio": ("ratio", "Time over libc's, geometric mean; below 1 is faster."),
    "wherry_wrong_routines": ("", "Routines that gave wrong bytes, crashed or hung."),
}
# What a time hangs on besides, each a label where a cell tells it: a mean over unlike ones would say nothing.
_APART = ("mode", "places", "code", "content", "ascending", "handed")


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _labels(**labels: str) -> str:
    return "{" + ",".join(f'{k}="{_escape(v)}"' for k, v in labels.items()) + "}"


def _seconds(facts: Facts) -> float | None:
    from datetime import datetime, timezone

    try:
        when = datetime.strptime(facts.started, "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return None
    return when.replace(tzinfo=timezone.utc).timestamp()


def _mean(values: np.ndarray) -> float | None:
    logs = np.log(values.astype(float))
    logs = logs[np.isfinite(logs)]
    return float(np.exp(logs.mean())) if len(logs) else None


def text(fleet: Fleet) -> str:
    samples: dict[str, list[str]] = {name: [] for name in FAMILIES}

    def put(name: str, value: float | None, **labels: str) -> None:
        if value is not None:
            samples[name].append(f"{name}{_labels(**labels)} {value!r}")

    for host in grouping.hosts(fleet):
        facts = host.facts
        # The host's name and boot together: two hosts of one name are no duplicate of each other.
        who = {"host": facts.host, "id": facts.ident.rpartition("@")[2]}
        more = {"cpu": facts.model, "libc": facts.libc, "hypervisor": facts.hypervisor}
        put("wherry_run_info", 1, **who, **more, kernel=facts.kernel, wherry=facts.wherry)
        put("wherry_run_started_timestamp_seconds", _seconds(facts), **who)
        put("wherry_noise_floor_ratio", facts.floor, **who)
        put("wherry_voided_rounds_ratio", facts.voided, **who)
        bad = {routine for _, routine, _, _ in grouping.failures(fleet, host)}
        put("wherry_wrong_routines", len(bad), **who)
        _cells(fleet, host, who, put)
    lines = []
    for name, (unit, about) in FAMILIES.items():
        lines.append(f"# TYPE {name} gauge")
        if unit:
            lines.append(f"# UNIT {name} {unit}")
        lines += [f"# HELP {name} {about}", *samples[name]]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _cells(fleet: Fleet, host, who: dict[str, str], put) -> None:
    columns, times = grouping.matrix(fleet, [host])
    _, ratios = grouping.matrix(fleet, [host], 3)
    parts: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for i, number in enumerate(columns):
        key = fleet.keys[number]
        own = {"experiment": key[0], "op": key[AT["op"]] or "other"}
        own |= {"routine": key[AT["routine"]], "region": grouping.region(key)}
        own |= {name: told for name in _APART if (told := key[AT[name]])}
        parts.setdefault(tuple(own.items()), []).append(i)
    for labels, members in parts.items():
        own = who | dict(labels)
        mean = _mean(times[0, members])
        put("wherry_call_time_seconds", mean and mean * 1e-9, **own)
        put("wherry_time_to_libc_ratio", _mean(ratios[0, members]), **own)
