"""What libc and Wherry believe of this machine, where one of them is misled, and what to do about it.

`libc()` asks the loader and sysconf; `findings()` judges, from nothing but what it is given."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from typing import NamedTuple

from wherry import libctunables, planuse, planwords, shellwords
from wherry.errors import escaped
from wherry.plans import OFF
from wherry.units import size_in_words

# os.sysconf has no names for these: glibc's numbers, which are part of its ABI.
_SYSCONF_NUMBERS = {"L1d": 188, "L2": 191, "L3": 194}
# Twice as much or half of it is another machine than the one at hand.
FAR = 2
_DEFAULTED = "no source within bounds"
# On a Zen 4 under KVM 0.93 to 1.03 was seen where CPUs had cores of their own, and 1.76 to 1.94 where they shared one.
SHARES_FROM = 1.25


class Finding(NamedTuple):
    what: str
    why: str
    do: str


# ---- asking ---------------------------------------------------------------------------------------------------------


def tunables(text: str) -> dict[str, int]:
    """Of `ld.so --list-tunables`: those of the CPU that have a number."""
    rows = re.findall(r"^(glibc\.(?:cpu|malloc)\.\w+): (0x[0-9a-fA-F]+|\d+) ", text, re.MULTILINE)
    return {name: int(value, 0) for name, value in rows}


def libc() -> dict:
    """The thresholds and cache sizes that this libc goes by; what it does not tell is missing."""
    loader = libctunables.loader()
    try:
        done = subprocess.run(
            [loader, "--list-tunables"], capture_output=True, text=True, timeout=10, check=False
        )
        listed = tunables(done.stdout) if done.returncode == 0 else {}
    except (OSError, subprocess.SubprocessError):
        listed = {}
    sizes = {}
    for level, number in _SYSCONF_NUMBERS.items():
        try:
            size = os.sysconf(number)
        except (OSError, ValueError):
            continue
        if size > 0:
            sizes[level] = size
    given = os.environ.get(libctunables.VARIABLE)
    words = libctunables.caps(given or "")
    idle = libctunables.without_effect(words)
    return {
        "loader": loader,
        "tunables": listed,
        "sysconf": sizes,
        "environment": given,
        "ignored": [list(pair) for pair in libctunables.ignored(given or "")],
        "hwcaps": [word for word in words if word not in idle],
        "erms": libctunables.uses_erms(libctunables.features(given)) if words else None,
    }


# ---- who believes what ----------------------------------------------------------------------------------------------


def _size(value: int | None) -> str:
    return "never" if value is None or value >= 1 << 60 else size_in_words(value)


def _of_libc(view: Mapping, name: str) -> int | None:
    return view["tunables"].get(f"glibc.cpu.x86_{name}")


def _keeps_erms(view: Mapping) -> bool:
    """Whether libc may use the string instructions of a CPU that has them."""
    return view.get("erms") is not False


def thresholds(record: Mapping, view: Mapping) -> list[tuple[str, str]]:
    """Who changes method from where on, a line each."""
    lines = []
    if view["tunables"]:
        stream, movsb, stosb = (
            _of_libc(view, name)
            for name in ("non_temporal_threshold", "rep_movsb_threshold", "rep_stosb_threshold")
        )
        # Of its own from glibc 2.40 on.
        sets = _of_libc(view, "memset_non_temporal_threshold")
        if not record["reported"].get("features", {}).get("erms"):
            rep = "no string instructions (no ERMS)"
        elif not _keeps_erms(view):
            rep = "no string instructions (GLIBC_TUNABLES hides ERMS)"
        else:
            rep = f"rep movsb from {_size(movsb)}, rep stosb from {_size(stosb)}"
        apart = f" (sets from {_size(sets)})" if sets else ""
        lines.append(("libc", f"past the caches from {_size(stream)}{apart}; {rep}"))
        if words := view.get("hwcaps"):
            lines.append(
                (
                    "libc's hwcaps",
                    f"{','.join(words)} by GLIBC_TUNABLES, which its routines are chosen with",
                )
            )
    else:
        lines.append(("libc", "not told (glibc tells from 2.33 on: ld.so --list-tunables)"))
    plan = record["reported"].get("plan")
    if plan:
        rows = [("Wherry", plan["default"])]
        if plan["in_force"] != plan["default"]:
            rows = [("Wherry, default", plan["default"]), ("Wherry, plan", plan["in_force"])]
        for label, own in rows:
            lines.append((label, _of_plan(own)))
    return lines


def _past_from(own: Mapping, side: str) -> int | None:
    """From where on calls go past the caches wherever the destination lies; None: at no size."""
    start, recent = own.get(f"{side}_stream_from"), own.get(f"{side}_stream_recent_from", 0)
    return None if start is None or recent is None else max(start, recent)


def _of_plan(own: Mapping) -> str:
    def side(name: str, instruction: str) -> str:
        start, end = own[f"{name}_rep_from"], own[f"{name}_rep_to"]
        if start is None:
            return f"no {instruction}"
        text = f"{instruction} from {_size(start)}" + (f" to {_size(end)}" if end else "")
        recent = own.get(f"{name}_rep_recent_from", start)
        if recent != start:
            text += " (written lately: " + (f"from {_size(recent)})" if recent else "never)")
        return text

    copies, sets = _past_from(own, "copy"), _past_from(own, "set")
    stream = f"past the caches from {_size(copies)}" + (
        f" (sets from {_size(sets)})" if sets != copies else ""
    )
    far = own["copy_stream_from"]
    if far and far != copies:
        stream += f", to where nothing was touched lately from {_size(far)}"
    parts = own.get("copy_parts_from")
    if parts is not None and own["copy_stream_from"] is not None:
        stream += f", in five parts from {_size(max(parts, own['copy_stream_from']))}"
    # Null stands for never, and for any size.
    ymm, lines = (
        OFF if own.get(key) is None else own[key]
        for key in ("copy_ymm_from", "copy_source_lines_to")
    )
    chosen = ", ".join([own["choice"], *planwords.loops(own["choice"], ymm, lines)])
    return f"{chosen}; {stream}; {side('copy', 'rep movsb')}, {side('set', 'rep stosb')}"


def caches_of_libc(view: Mapping) -> list[tuple[str, str]]:
    lines = []
    told = [f"{level} {size_in_words(size)}" for level, size in view["sysconf"].items()]
    if told:
        lines.append(("sysconf", ", ".join(told)))
    data, shared = _of_libc(view, "data_cache_size"), _of_libc(view, "shared_cache_size")
    if data is not None and shared is not None:
        lines.append(
            ("libc's tunables", f"L1d {size_in_words(data)}, last level {size_in_words(shared)}")
        )
    return lines


# ---- judging --------------------------------------------------------------------------------------------------------


def _about_caches(reported: Mapping, virtual: bool) -> list[Finding]:
    found = []
    told = {
        source: levels["L3"]["size"]
        for source, levels in (reported.get("caches") or {}).items()
        if (levels or {}).get("L3", {}).get("size")
    }
    believed = reported.get("last_level")
    if told and max(told.values()) >= FAR * min(told.values()):
        listed = ", ".join(f"{source} {size_in_words(size)}" for source, size in told.items())
        found.append(
            Finding(
                f"the sources of the L3's size disagree: {listed}",
                "leaf80000005 counts a whole package, and leaf4 may; whoever takes that for what one thread has keeps "
                "large copies in a cache that is not there"
                + ("; and hypervisors make such figures up" if virtual else ""),
                f"nothing for Wherry, which counts on {size_in_words(believed or 0)}; for libc see below",
            )
        )
    guessed = [
        level
        for level, own in (reported.get("believed") or {}).items()
        if str((own or {}).get("reason", "")).startswith(_DEFAULTED)
    ]
    if guessed:
        found.append(
            Finding(
                f"no source tells a believable size of {', '.join(guessed)}",
                "thresholds are those of a common CPU"
                + (", since the hypervisor hides the caches" if virtual else ""),
                "have the host pass its CPUID leaves through, or measure: wherry tune -o mine.toml",
            )
        )
    return found


def _about_libc(reported: Mapping, view: Mapping) -> list[Finding]:
    found = []
    believed = reported.get("last_level")
    stream = _of_libc(view, "non_temporal_threshold")
    shared = _of_libc(view, "shared_cache_size")
    ours = _past_from((reported.get("plan") or {}).get("default") or {}, "copy")
    # A value that glibc passes over leaves the default in force, and that is what is wrong then.
    passed_over = {entry for entry, _ in view.get("ignored", ())}
    set_by_hand = any(
        entry.startswith("glibc.cpu.x86_non_temporal_threshold=") and entry not in passed_over
        for entry in (view.get("environment") or "").split(":")
    )
    if stream and ours and not set_by_hand:
        line = f"GLIBC_TUNABLES=glibc.cpu.x86_non_temporal_threshold={ours:#x}"
        cache = f" (its last level: {size_in_words(shared)})" if shared else ""
        # Up to there one side of a copy alone fits, and where it pays is a matter of taste.
        if stream >= FAR * ours and stream > (believed or 0):
            found.append(
                Finding(
                    f"libc goes past the caches only from {size_in_words(stream)} on{cache}; "
                    f"one thread here can count on {size_in_words(believed or 0)}",
                    "copies in between read the destination for nothing and drive everything else out of the cache",
                    f"{line}, or wherry exec -- CMD; wherry tune --glibc measures it first",
                )
            )
        elif stream * 4 * FAR <= ours:
            found.append(
                Finding(
                    f"libc goes past the caches from {size_in_words(stream)} on already{cache}",
                    "copies that would fit the cache go to memory, and whoever reads them next waits for it",
                    f"{line}, or wherry exec -- CMD; wherry tune --glibc measures it first",
                )
            )
    movsb = _of_libc(view, "rep_movsb_threshold")
    erms = (reported.get("features") or {}).get("erms") and _keeps_erms(view)
    if movsb and erms and reported.get("vendor") == "AMD":
        family = reported.get("family") or 0
        if family < 0x1A and movsb < 1 << 20:
            found.append(
                Finding(
                    f"libc copies by rep movsb from {size_in_words(movsb)} on",
                    "on Zen 3 and 4 that is up to ten times slower where destination and source lie a little apart "
                    "(mod 4096)",
                    "GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=0xffffffffffffffff, or wherry exec -- CMD",
                )
            )
    return found


def _about_tunables(view: Mapping) -> list[Finding]:
    return [
        Finding(
            f"'{entry}' of GLIBC_TUNABLES is not followed as it stands: {why}",
            "programs run as if it were not set, or set to something else, and glibc says nothing of it",
            "mend it or leave it out; ld.so --list-tunables lists names, values and bounds",
        )
        for entry, why in view.get("ignored", ())
    ]


def _about_features(reported: Mapping, virtual: bool) -> list[Finding]:
    found = []
    usable, told = reported.get("features") or {}, reported.get("reported") or {}
    host = (
        "have the hypervisor pass the bit through"
        if virtual
        else "look for a microcode or BIOS update"
    )
    if usable.get("fsrm") and not usable.get("erms"):
        found.append(
            Finding(
                "FSRM without ERMS",
                "no CPU is built so: a hypervisor or the firmware hides ERMS, and libc may take rep movsb as slow; "
                "Wherry goes by ERMS and leaves string instructions out",
                host,
            )
        )
    modern = (reported.get("vendor") == "Intel" and usable.get("avx2")) or (
        reported.get("vendor") == "AMD" and (reported.get("family") or 0) >= 0x19
    )
    if modern and not usable.get("erms") and not usable.get("fsrm"):
        found.append(
            Finding(
                "no ERMS, which CPUs of this kind have",
                "string instructions are left unused by libc and by Wherry",
                host + "; on Intel see bit 0 of MSR 0x1a0 (fast strings)",
            )
        )
    xcr0 = reported.get("xcr0") or 0
    for sort, names, bits in (
        ("AVX-512", ("avx512f",), 0xE0),
        ("AVX", ("avx",), 0x6),
    ):
        if any(told.get(n) and not usable.get(n) for n in names) and (xcr0 & bits) != bits:
            found.append(
                Finding(
                    f"{sort} masked: the CPU has it, the system does not save its registers (XCR0 {xcr0:#x})",
                    "neither libc nor Wherry can use it",
                    "boot without clearcpuid= or noxsave, or have the hypervisor enable that state",
                )
            )
            break
    orphans = [
        n
        for n in ("avx2", "avx512f", "avx512bw", "avx512vl", "avx512dq")
        if told.get(n) and not usable.get(n)
    ]
    if orphans and not found:
        found.append(
            Finding(
                f"{', '.join(orphans)} reported without a set that they build on",
                "a hypervisor has hidden half of it; Wherry takes the tier below",
                "have the hypervisor show or hide these features together",
            )
        )
    return found


def _about_plan(reported: Mapping, plan: str) -> list[Finding]:
    status = (reported.get("plan") or {}).get("status", "")
    why = planuse.unused_by(status, plan)
    if why is None:
        return []
    return [
        Finding(
            f"the plan of WHERRY_PLAN is not used: {why}",
            f"the default plan serves in its place ({escaped(plan)})",
            f"{_mend(why, plan)[0]}; wherry tune -o mine.toml makes one for this CPU",
        )
    ]


def _mend(why: str, plan: str) -> tuple[str, str]:
    """What to run, and what for: wherry plan check takes a text, and finds nothing wrong with it."""
    named = shellwords.path(plan)
    if "wherry plan compile" in why:
        return (
            f"wherry plan compile {named}",
            "makes what WHERRY_PLAN takes, if that is the text of a plan",
        )
    return f"wherry plan check {named}", "shows what is wrong with the plan that was asked for"


def build_in_words(reported: Mapping) -> str | None:
    """How the library in wherry-run was built, or None where an older one made the record."""
    build = reported.get("build")
    if not build:
        return None
    return f"{build['first_tier']}'s small sizes in place, page edge by {build['page_edge']}"


def _about_build(reported: Mapping) -> list[Finding]:
    """What another build would have nearer for this CPU; figures of docs/performance-intel.md and performance.md."""
    build = reported.get("build") or {}
    tier = str(((reported.get("plan") or {}).get("default") or {}).get("choice", ""))
    wide = tier.startswith("avx512")
    first = build.get("first_tier")
    if first == "avx2" and wide:
        cost = "with AVX-512 sizes to 64 bytes took 1.2 to 1.9 times as long, unpredictable ones up to 2.3 times"
        want = "-Dfirst_tier=avx512"
    elif first == "avx512" and tier == "avx2":
        cost, want = (
            "with AVX2 sizes to 128 bytes took up to 1.2 times as long",
            "-Dfirst_tier=avx2",
        )
    elif wide and reported.get("vendor") == "Intel" and build.get("page_edge") == "select":
        cost, want = (
            "on Intel copies and sets to 63 bytes took up to 1.2 times as long",
            "-Dpage_edge=branch",
        )
    elif wide and reported.get("vendor") == "AMD" and build.get("page_edge") == "branch":
        cost = "on a Zen 4 sizes to 64 bytes took up to 1.1 times as long"
        want = "-Dpage_edge=select"
    else:
        return []
    return [
        Finding(
            f"Wherry was built for another kind of CPU ({build_in_words(reported)})",
            f"the smallest copies and sets are a jump or some instructions longer than they need be: {cost}",
            f"build it on this machine, or with {want}",
        )
    ]


def findings(record: Mapping, view: Mapping, plan: str = "") -> list[Finding]:
    """What is wrong, the most telling first. `plan`: what WHERRY_PLAN names."""
    reported = record["reported"]
    virtual = bool((record.get("virtualisation") or {}).get("virtual"))
    found = [
        *_about_plan(reported, plan),
        *_about_build(reported),
        *_about_tunables(view),
        *_about_features(reported, virtual),
        *_about_caches(reported, virtual),
        *_about_libc(reported, view),
    ]
    if (record.get("pages") or {}).get("thp") == "never":
        found.append(
            Finding(
                "transparent huge pages are off",
                "copies of many MiB miss the TLB once a page of 4 KiB",
                "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (as root)",
            )
        )
    return found


def sharing(told: Mapping | None, siblings: bool) -> Finding | None:
    """CPUs that turned out to share a core. `told`: what `wherry-run sharing` said; `siblings`: the kernel knows of
    threads that share cores."""
    if not told:
        return None
    slowed = {
        other["cpu"]: other["ratio"]
        for other in told["others"]
        if (other.get("ratio") or 0) >= SHARES_FROM
    }
    if not slowed:
        return None
    first = told["cpu"]
    listed = ", ".join(map(str, slowed))
    hidden = (
        ""
        if siblings
        else "; the kernel was told of cores of their own, so this may be different a minute later"
    )
    return Finding(
        f"CPU {first} shares a core with CPU {listed} at this moment: beside work there it takes "
        f"{max(slowed.values()):.1f} times as long",
        f"whatever runs on the one takes units and the nearest caches from the other{hidden}",
        "leave the other idle while you measure, compare in turns only (bench and ab do), and count two such CPUs as "
        "little more than one; wherry-run sharing tries it again",
    )


def next_command(record: Mapping, plan: str = "") -> tuple[str, str]:
    """What to run next, and what for."""
    status = (record["reported"].get("plan") or {}).get("status", "")
    why = planuse.unused_by(status, plan)
    if why is not None:
        return _mend(why, plan)
    if status.startswith("plan '"):
        own = f"--plan {shellwords.path(plan)} " if plan else ""
        return f"wherry ab {own}-- CMD", "measures whether your program gains by the plan in force"
    return (
        "wherry record -- CMD",
        "tells what your program copies, and what the fastest copy could save it",
    )
