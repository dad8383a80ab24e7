"""What this machine is: the record kept in a run file and the block that heads a mail. Everything is read from files
and from `wherry-run cpu`; what cannot be read is left out, not guessed."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path

from wherry import preloading, runner
from wherry.errors import printable
from wherry.units import size_in_words

# Of which half holds two buffers of 256 MiB and what verifies them, the largest that experiments have.
_MUCH_MEMORY = 4 << 30

# What the library says of itself when nobody asked for another plan.
NO_PLAN = "the default plan is in force"


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return ""


def _chosen(text: str) -> str:
    """`always [madvise] never` is madvise."""
    match = re.search(r"\[([^\]]+)\]", text)
    return match.group(1) if match else text


def _cpuinfo() -> dict[str, str]:
    first = _read("/proc/cpuinfo").split("\n\n")[0]
    pairs = (line.split(":", 1) for line in first.splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def _meminfo() -> dict[str, int]:
    found = {}
    for line in _read("/proc/meminfo").splitlines():
        match = re.match(r"(\w+):\s+(\d+) kB", line)
        if match:
            found[match[1]] = int(match[2]) * 1024
    return found


def _kernel_caches() -> list[dict]:
    """The caches of CPU 0 as the kernel lists them."""
    caches = []
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index[0-9]*")):
        size = re.fullmatch(r"(\d+)([KM]?)", _read(f"{index}/size"))
        level = _read(f"{index}/level")
        if not size or not level.isdigit():
            continue
        caches.append(
            {
                "level": int(level),
                "type": _read(f"{index}/type").lower(),
                "bytes": int(size[1]) * {"": 1, "K": 1 << 10, "M": 1 << 20}[size[2]],
                "shared_by": _read(f"{index}/shared_cpu_list"),
            }
        )
    return caches


def _virtualisation(flags: set[str], reported: dict) -> dict:
    hypervisor = reported.get("hypervisor")
    name = _read("/sys/class/dmi/id/sys_vendor")
    product = _read("/sys/class/dmi/id/product_name")
    virtual = bool(hypervisor) or "hypervisor" in flags
    return {
        "virtual": virtual,
        "hypervisor": hypervisor if isinstance(hypervisor, str) else None,
        "product": " ".join(word for word in (name, product) if word) or None,
        "container": Path("/.dockerenv").exists() or Path("/run/.containerenv").exists(),
    }


def _turbo() -> bool | None:
    """Whether the clock may rise above its base; None when the kernel does not say."""
    no_turbo = _read("/sys/devices/system/cpu/intel_pstate/no_turbo")
    if no_turbo:
        return no_turbo == "0"
    boost = _read("/sys/devices/system/cpu/cpufreq/boost")
    return boost == "1" if boost else None


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?\d+", text) else None


def _boot() -> str | None:
    """Tells two runs of one boot without handing on the id itself."""
    own = _read("/proc/sys/kernel/random/boot_id")
    return hashlib.sha256(own.encode()).hexdigest()[:16] if own else None


def _of_groups(
    controller: str, newer: str, older: tuple[str, ...], read: Callable[[str], str]
) -> list[list[str]]:
    """The words of those files, in each control group that this process is in and in those above: one file in version 2
    of these, several in version 1."""
    found = []
    for line in read("/proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, own = rest.partition(":")
        places = [Path(own), *Path(own).parents] if own.startswith("/") else []
        if number == "0" and not controllers:
            found += [read(f"/sys/fs/cgroup{place}/{newer}").split() for place in places]
        elif controller in controllers.split(","):
            homes = [f"/sys/fs/cgroup/{controllers}{place}" for place in places]
            homes += [f"/sys/fs/cgroup/{controller}{place}" for place in places]
            found += [[read(f"{home}/{name}") for name in older] for home in homes]
    return found


def cpu_quota(read: Callable[[str], str] = _read) -> float | None:
    """How many CPUs' time the control groups of this process allow it; None: no limit, or none that can be seen from
    here."""
    older = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
    found = [
        int(pair[0]) / int(pair[1])
        for pair in _of_groups("cpu", "cpu.max", older, read)
        if len(pair) == 2 and all(word.isdecimal() for word in pair) and int(pair[1])
    ]
    return min(found, default=None)


def memory_limit(read: Callable[[str], str] = _read) -> int | None:
    """How many bytes of memory they allow it; None as above. Version 1 has a number beyond all memory for no limit."""
    found = _of_groups("memory", "memory.max", ("memory.limit_in_bytes",), read)
    return min((int(words[0]) for words in found if words and words[0].isdecimal()), default=None)


def load() -> list[float]:
    """Averages of 1, 5 and 15 minutes; none where a sandbox does not tell."""
    try:
        return list(os.getloadavg())
    except OSError:
        return []


def record() -> dict:
    """The machine record (schema/machine.schema.json)."""
    info = _cpuinfo()
    memory = _meminfo()
    reported = runner.cpu()
    flags = set(info.get("flags", "").split())
    megahertz = re.fullmatch(r"[\d.]+", info.get("cpu MHz", ""))
    try:
        libc = os.confstr("CS_GNU_LIBC_VERSION")
    except (OSError, ValueError):
        libc = None
    machine = {
        "host": socket.gethostname(),
        "boot": _boot(),
        "cpu": {
            "model": info.get("model name") or reported.get("brand") or "unknown",
            "vendor": info.get("vendor_id") or reported.get("vendor"),
            "family": _number(info.get("cpu family", "")),
            "model_number": _number(info.get("model", "")),
            "stepping": _number(info.get("stepping", "")),
            "count": os.cpu_count(),
            "usable": sorted(os.sched_getaffinity(0)),
            "mhz": float(megahertz[0]) if megahertz else None,
            "string_flags": sorted(flags & {"erms", "fsrm", "fzrm", "fsrs"}),
        },
        "caches": _kernel_caches(),
        "reported": {key: value for key, value in reported.items() if key != "event"},
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "libc": libc,
        "compiler": reported.get("compiler") or runner.compiler(),
        "pages": {
            "bytes": os.sysconf("SC_PAGE_SIZE"),
            "thp": _chosen(_read("/sys/kernel/mm/transparent_hugepage/enabled")) or None,
            "thp_defrag": _chosen(_read("/sys/kernel/mm/transparent_hugepage/defrag")) or None,
        },
        "clock_source": _read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        or None,
        "virtualisation": _virtualisation(flags, reported),
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or None,
        "turbo": _turbo(),
        "load": load(),
        "memory": {"total": memory.get("MemTotal"), "available": memory.get("MemAvailable")},
        "smt": _read("/sys/devices/system/cpu/smt/active") == "1",
        "counters": _number(_read("/proc/sys/kernel/perf_event_paranoid")),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    machine["uncontrolled"] = uncontrolled(machine)
    return machine


def uncontrolled(machine: dict) -> list[dict[str, str]]:
    """What may have moved the figures and was not held still: what, why it matters, what could be done."""
    found = []

    def note(what: str, why: str, do: str) -> None:
        found.append({"what": what, "why": why, "do": do})

    if machine["virtualisation"]["virtual"]:
        note(
            "virtual machine",
            "other guests share the caches, the memory and the time; cache sizes may be made up",
            "measure on the bare machine, or trust differences only when two runs agree",
        )
    governor = machine["governor"]
    if governor is None:
        note(
            "clock speed not visible",
            "the kernel shows no frequency governor, so the clock may have moved unseen",
            "nothing from here; the host decides",
        )
    elif governor != "performance":
        note(
            f"frequency governor {governor}",
            "the clock rises only after work has begun",
            "cpupower frequency-set -g performance (as root)",
        )
    if machine["turbo"]:
        note(
            "turbo on",
            "the clock depends on temperature and on the other cores",
            "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, "
            "or echo 0 > /sys/devices/system/cpu/cpufreq/boost (as root)",
        )
    if machine["smt"]:
        note(
            "SMT siblings active",
            "another thread on the same core takes half of its ports and its L1",
            "echo off > /sys/devices/system/cpu/smt/control (as root)",
        )
    for word in preloading.that_export(os.environ, ("memcpy", "memmove", "memset")):
        note(
            f"{printable(word)} preloaded",
            "it has memory functions of its own, and what is called libc here is these",
            "unset LD_PRELOAD",
        )
    quota = cpu_quota()
    if quota is not None and quota < len(machine["cpu"]["usable"]):
        note(
            f"CPU quota of {quota:.3g}",
            "a control group allows that many CPUs' time: whatever has used it up is stopped until the next period",
            "give the container or service more, or no limit (cpu.max, cpu.cfs_quota_us)",
        )
    limit = memory_limit()
    if limit is not None and limit < min(machine["memory"]["total"] or _MUCH_MEMORY, _MUCH_MEMORY):
        note(
            f"memory limit of {size_in_words(limit)}",
            "a control group allows no more: rows that need more than half of what is left of it are left out",
            "give the container or service more, or no limit (memory.max, memory.limit_in_bytes)",
        )
    busy = next(iter(machine["load"]), 0.0)
    if busy > 0.5:
        note(
            f"load {busy:.1f} when it began",
            "other programs were running",
            "end them, and wait a minute",
        )
    if machine["clock_source"] not in (None, "tsc"):
        note(
            f"clock source {machine['clock_source']}",
            "reading the time is slow and coarse",
            "boot with clocksource=tsc if the CPU's counter is stable",
        )
    if machine["pages"]["thp"] == "always":
        note(
            "transparent huge pages always",
            "large buffers may or may not get huge pages from run to run",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (as root)",
        )
    return found


# ---- in words -------------------------------------------------------------------------------------------------------


def _caches_in_words(caches: list[dict]) -> str:
    words = []
    for cache in caches:
        if cache["type"] == "instruction":
            continue
        name = f"L{cache['level']}{'d' if cache['level'] == 1 else ''}"
        words.append(f"{name} {size_in_words(cache['bytes'])}")
    return ", ".join(words)


_LEVELS = ("L1d", "L2", "L3", "L4")
# Eight or twelve letters that a hypervisor answers CPUID with, and what people call it.
_HYPERVISORS = {
    "KVMKVMKVM": "KVM",
    "Microsoft Hv": "Hyper-V",
    "VMwareVMware": "VMware",
    "XenVMMXenVMM": "Xen",
    "TCGTCGTCGTCG": "QEMU without KVM",
    "bhyve bhyve ": "bhyve",
    "ACRNACRNACRN": "ACRN",
}


def _levels_in_words(sizes: dict, told: dict[str, int | None] | None = None) -> str:
    """`told`: what there is of a level, where `sizes` may be less."""
    words = []
    for level in _LEVELS:
        size = (sizes.get(level) or {}).get("size")
        if size:
            whole = (told or {}).get(level) or 0
            words.append(
                f"{level} {size_in_words(size)}"
                + (f" of {size_in_words(whole)}" if whole > size else "")
            )
    return ", ".join(words)


def caches_by_source(machine: dict) -> list[tuple[str, str, str]]:
    """(source, sizes, the levels it is believed for): the runner's sources; the kernel's when it names none."""
    sources = machine["reported"].get("caches")
    believed = machine["reported"].get("believed")
    if not isinstance(sources, dict) or not isinstance(believed, dict):
        return [("sysfs", _caches_in_words(machine["caches"]) or "nothing", "all")]
    found = []
    for source, sizes in sources.items():
        levels = [
            level
            for level in _LEVELS
            if isinstance(believed.get(level), dict) and believed[level].get("source") == source
        ]
        counted = [_counted(level, believed[level], sizes or {}) for level in levels]
        found.append((source, _levels_in_words(sizes or {}) or "nothing", ", ".join(counted)))
    return found


def _counted(level: str, believed: dict, told: dict) -> str:
    """The level, and how much of what its source tells one thread counts on, where that is not all of it."""
    own, whole = believed.get("size"), (told.get(level) or {}).get("size")
    return f"{level} ({size_in_words(own)} of it)" if own and whole and own < whole else level


def _told(believed: dict, sources: dict) -> dict[str, int | None]:
    """How large each level is by the source that is believed for it."""
    return {
        level: ((sources.get(own.get("source")) or {}).get(level) or {}).get("size")
        for level, own in believed.items()
        if isinstance(own, dict)
    }


def caches(machine: dict) -> str:
    """What one thread counts on; beside it what there is, where the source tells more."""
    believed = machine["reported"].get("believed")
    if isinstance(believed, dict):
        told = machine["reported"].get("caches")
        text = _levels_in_words(believed, _told(believed, told if isinstance(told, dict) else {}))
        sources = {
            v["source"] for v in believed.values() if isinstance(v, dict) and v.get("source")
        }
        if text:
            return f"{text} (by {', '.join(sorted(sources))})"
    text = _caches_in_words(machine["caches"])
    if not text:
        return "not told"
    # Another tool's file does not tell whence it has them.
    return f"{text} (by sysfs)" if machine["reported"] else text


def cpu(machine: dict) -> str:
    own = machine["cpu"]
    ident = [
        f"{word} {own[key]}"
        for word, key in (("family", "family"), ("model", "model_number"), ("stepping", "stepping"))
        if own.get(key) is not None
    ]
    count, usable = own.get("count"), len(own.get("usable") or ())
    text = (own["model"] or "not told") + (f" ({', '.join(ident)})" if ident else "")
    text += f", {count} CPU{'' if count == 1 else 's'}" if count else ""
    # By taskset, a service's CPUAffinity= or a container's --cpuset-cpus.
    return text + (f", {usable} of them for this process" if count and 0 < usable < count else "")


def pages(machine: dict) -> str:
    own = machine["pages"]
    if own["bytes"] is None:
        return "not told"
    thp = (
        f", transparent huge pages {own['thp']}"
        if own.get("thp")
        else ", transparent huge pages not told"
    )
    return f"{size_in_words(own['bytes'])}{thp}"


def virtual(machine: dict) -> str:
    own = machine["virtualisation"]
    if own["virtual"] is None:
        return "not told"
    text = "bare metal as far as can be seen"
    if own["virtual"]:
        hypervisor = own.get("hypervisor")
        name = _HYPERVISORS.get(hypervisor or "", hypervisor) or own.get("product")
        text = f"virtual machine{f' ({name})' if name else ''}"
    return text + (", in a container" if own.get("container") else "")


def clock(machine: dict) -> str:
    own = machine["cpu"]
    speed = (
        f"{own['mhz'] / 1000:.2f} GHz{' as the kernel says' if machine['reported'] else ''}"
        if own.get("mhz")
        else "speed not told"
    )
    governor = f", governor {machine['governor']}" if machine["governor"] else ""
    turbo = {True: ", turbo on", False: ", turbo off", None: ""}[machine["turbo"]]
    return f"{speed}{governor}{turbo}; clock source {machine['clock_source'] or 'not told'}"


def plan_status(machine: dict) -> str | None:
    """What the library said of its plan; None where a run does not tell."""
    plan = machine["reported"].get("plan")
    status = plan.get("status") if isinstance(plan, dict) else None
    return status if isinstance(status, str) else None


def heading(machine: dict) -> list[tuple[str, str]]:
    """Label and text, one a line, for the block at the head of every output."""
    lines = [
        ("CPU", cpu(machine)),
        ("Caches", caches(machine)),
        ("Clock", clock(machine)),
        ("Kernel", machine["kernel"] or "not told"),
        ("libc", machine["libc"] or "not told"),
    ]
    if machine.get("compiler"):
        lines.append(("Compiler", machine["compiler"]))
    lines += [("Pages", pages(machine)), ("Machine", virtual(machine))]
    # What `wherry` names in the tables below is the library under this plan.
    if (status := plan_status(machine)) not in (None, NO_PLAN):
        lines.append(("Plan", status))
    whats = [item["what"] for item in machine["uncontrolled"]]
    lines.append(("Uncontrolled", "; ".join(whats) if whats else "nothing that is known"))
    return lines
