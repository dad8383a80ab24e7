"""`wherry doctor`: what it says of machines that are not at hand, each made of a dump of fixtures/cpus."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "python"))
from wherry import diagnosis, libctunables, machine, preloading

CPUS = Path(__file__).parent / "fixtures/cpus"
VENDORS = {"AuthenticAMD": "AMD", "GenuineIntel": "Intel"}
STATES = {"NONE": 0, "YMM": 0x6, "ZMM": 0xE6, "AMX": 0x60000}
SOURCES = ("leaf4", "leaf8000001d", "leaf80000005", "sysfs")
REASONS = {
    "told": "as told by the first",
    "default": "no source within bounds; the vendor's default",
}


def reported(name: str) -> dict:
    """What `wherry-run cpu` would say on that CPU, of the dump's bits and what is stated below them."""
    text = (CPUS / f"{name}.txt").read_text()
    leaves = {}
    for line in re.findall(r"^[0-9a-f]{8} [0-9a-f]+(?: [0-9a-f]{8}){4}$", text, re.MULTILINE):
        leaf, subleaf, *registers = (int(word, 16) for word in line.split())
        leaves[leaf, subleaf] = dict(zip(("EAX", "EBX", "ECX", "EDX"), registers, strict=True))
    told = dict(re.findall(r"^(\w+) (\S+)$", text, re.MULTILINE))
    osxsave = leaves[1, 0]["ECX"] >> 27 & 1
    xcr0 = int(told.get("xcr0", "0"), 16) if osxsave else 0
    orphans = set(re.findall(r"^orphan (\S+)$", text, re.MULTILINE))
    bits, usable = {}, {}
    header = (ROOT / "src/cpu/cpu.h").read_text()
    for feature, leaf, subleaf, register, bit, state in re.findall(
        r'X\(\w+, "([^"]+)", (\w+), (\d+), (\w+), (\d+), (\w+)\)', header
    ):
        found = leaves.get((int(leaf, 0), int(subleaf)), {}).get(register, 0) >> int(bit) & 1
        bits[feature] = bool(found)
        need = STATES[state]
        usable[feature] = bool(found) and (xcr0 & need) == need and feature not in orphans
    caches = {source: {} for source in SOURCES}
    for source, level, size in re.findall(r"^cache (\S+) (\S+) (\d+)", text, re.MULTILINE):
        caches[source][level] = {"size": int(size) << 10}
    believed = {
        level: {"size": int(size) << 10, "reason": REASONS.get(why, why)}
        for level, size, why in re.findall(r"^believed (\S+) (\d+) (\S+)$", text, re.MULTILINE)
    }
    stream = int(told.get("stream", "24576")) << 10
    plan = {"choice": "avx2", "copy_stream_from": stream, "copy_stream_recent_from": stream}
    last = re.search(r"^last-level (\d+)", text, re.MULTILINE)
    return {
        "vendor": VENDORS.get(told.get("vendor"), "other"),
        "family": int(told.get("family", "0")),
        "model": int(told.get("model", "0")),
        "xcr0": xcr0,
        "features": usable,
        "reported": bits,
        "caches": caches,
        "believed": believed,
        "last_level": int(last[1]) << 10 if last else 32 << 20,
        "plan": {"status": "the default plan is in force", "default": plan, "in_force": plan},
    }


def judged(name: str, thp: str = "madvise", **tunables: int) -> list[diagnosis.Finding]:
    view = {
        "tunables": {f"glibc.cpu.x86_{key}": value for key, value in tunables.items()},
        "sysconf": {},
        "environment": None,
    }
    record = {
        "reported": reported(name),
        "virtualisation": {"virtual": True},
        "pages": {"thp": thp},
    }
    return diagnosis.findings(record, view)


def whats(found: list[diagnosis.Finding]) -> str:
    return "\n".join(finding.what for finding in found)


def test_sound_machines_have_nothing_wrong():
    for name in (
        "zen3-milan-7713",
        "haswell-4710mq",
        "sapphire-rapids-w9-3475x",
        "ice-lake-1065g7",
    ):
        found = [f for f in judged(name) if "disagree" not in f.what]
        assert found == [], name


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("liar-fsrm-no-erms", "FSRM without ERMS"),
        ("xcr0-without-zmm", "AVX-512 masked: the CPU has it, the system does not save"),
        ("osxsave-off", "does not save its registers (XCR0 0x0)"),
        ("liar-avx512bw-no-f", "reported without a set that they build on"),
        ("liar-caches-zero", "no source tells a believable size of"),
    ],
)
def test_what_is_wrong_is_named(name, said):
    found = judged(name)
    assert said in whats(found), whats(found)
    assert all(finding.why and finding.do for finding in found)
    assert said not in whats(judged("haswell-4710mq"))


@pytest.mark.parametrize(
    ("vendor", "family", "features", "named"),
    [
        ("AMD", 0x19, (), True),
        ("AMD", 0x1A, ("avx2",), True),
        ("AMD", 0x17, ("avx2",), False),  # the first that had it was Zen 3
        ("AMD", 0x19, ("erms",), False),
        ("Intel", 6, ("avx2",), True),
        ("Intel", 6, ("avx2", "fsrm"), False),  # said of that alone
        ("Intel", 6, (), False),
        ("Zhaoxin", 0x19, ("avx2",), False),
    ],
)
def test_no_erms_is_named_where_the_cpu_is_known_to_have_it(vendor, family, features, named):
    told = {"vendor": vendor, "family": family, "features": dict.fromkeys(features, True)}
    found = diagnosis._about_features(told, virtual=True)
    assert any(finding.what.startswith("no ERMS") for finding in found) is named


def test_a_share_of_the_l3_is_not_called_the_whole_of_it():
    """The heading of each table tells both: what one thread counts on, and what its source tells."""
    told = {"L1d": {"size": 48 << 10}, "L3": {"size": 480 << 20}}
    believed = {
        "L1d": {"size": 48 << 10, "source": "leaf4"},
        "L2": {"size": 2 << 20, "source": "leaf80000005"},
        "L3": {"size": 32 << 20, "source": "leaf4", "reason": "32 MiB assumed"},
    }
    record = {"reported": {"caches": {"leaf4": told}, "believed": believed}}
    assert machine.caches(record) == (
        "L1d 48 KiB, L2 2 MiB, L3 32 MiB of 480 MiB (by leaf4, leaf80000005)"
    )
    (source,) = machine.caches_by_source(record)
    assert source == ("leaf4", "L1d 48 KiB, L3 480 MiB", "L1d, L3 (32 MiB of it)")
    del record["reported"]["caches"]
    assert "L3 32 MiB (by" in machine.caches(record)


def test_sources_that_disagree():
    said = whats(judged("zen5-epyc-kvm"))
    assert "leaf8000001d 32 MiB, leaf80000005 384 MiB" in said
    assert "disagree" not in whats(judged("zen4-7800x3d"))


def test_what_libc_believes():
    late = judged("zen5-epyc-kvm", non_temporal_threshold=288 << 20, shared_cache_size=384 << 20)
    (finding,) = [f for f in late if f.what.startswith("libc goes past")]
    assert "only from 288 MiB on (its last level: 384 MiB)" in finding.what
    assert "count on 32 MiB" in finding.what
    assert "x86_non_temporal_threshold=0x1800000" in finding.do
    # As glibc has it from 2.41 on: three quarters of what one thread can count on are not too much.
    record, view = reported("zen5-epyc-kvm"), {"tunables": {}}
    record["plan"]["default"] |= {"copy_stream_from": 1 << 20, "copy_stream_recent_from": 12 << 20}
    for most, wrong in ((24 << 20, False), (32 << 20, False), (33 << 20, True)):
        view["tunables"]["glibc.cpu.x86_non_temporal_threshold"] = most
        assert bool(diagnosis._about_libc(record, view)) == wrong
    early = judged("zen5-epyc-kvm", non_temporal_threshold=0x4040)
    assert "on already" in whats(early)
    assert "libc goes past" not in whats(judged("zen5-epyc-kvm", non_temporal_threshold=24 << 20))


def test_rep_movsb_of_zen_3_and_4():
    assert "libc copies by rep movsb" in whats(judged("zen3-milan-7713", rep_movsb_threshold=2112))
    assert "rep movsb" not in whats(judged("zen5-epyc-kvm", rep_movsb_threshold=2112))


@pytest.mark.parametrize(
    ("cpu", "choice", "build", "said"),
    [
        ("zen5-epyc-kvm", "avx512", ("avx2", "select"), "-Dfirst_tier=avx512"),
        ("haswell-4710mq", "avx2", ("avx512", "select"), "-Dfirst_tier=avx2"),
        ("sapphire-rapids-w9-3475x", "avx512", ("avx512", "select"), "-Dpage_edge=branch"),
        ("zen5-epyc-kvm", "avx512", ("avx512", "branch"), "-Dpage_edge=select"),
        ("sapphire-rapids-w9-3475x", "avx512", ("avx512", "branch"), None),
        ("zen5-epyc-kvm", "avx512", ("avx512", "select"), None),
        ("haswell-4710mq", "avx2", ("avx2", "select"), None),
        ("haswell-4710mq", "sse2", ("avx512", "branch"), None),
        ("zen5-epyc-kvm", "avx512", None, None),
    ],
)
def test_a_build_for_another_kind_of_cpu(cpu, choice, build, said):
    told = reported(cpu)
    told["plan"]["default"]["choice"] = choice
    if build:
        told["build"] = dict(zip(("first_tier", "page_edge"), build, strict=True))
    record = {"reported": told, "virtualisation": {}, "pages": {}}
    nothing = {"tunables": {}, "sysconf": {}, "environment": None}
    found = [f for f in diagnosis.findings(record, nothing) if "was built for another" in f.what]
    assert len(found) == (said is not None)
    assert not found or said in found[0].do


def test_the_build_is_told(wherry):
    record = json.loads(wherry("doctor", "--json").stdout)
    assert record["reported"]["build"]["first_tier"] in ("avx2", "avx512")
    assert record["reported"]["build"]["page_edge"] in ("branch", "select")
    assert diagnosis.build_in_words(record["reported"]) in wherry("doctor").stdout


def test_cpus_that_share_a_core():
    told = {
        "cpu": 0,
        "others": [
            {"cpu": 1, "ratio": 1.02},
            {"cpu": 2, "ratio": 1.94},
            {"cpu": 3, "ratio": None},
        ],
    }
    found = diagnosis.sharing(told, siblings=False)
    assert "CPU 0 shares a core with CPU 2 at this moment" in found.what
    assert "1.9 times as long" in found.what
    assert "a minute later" in found.why
    assert "a minute later" not in diagnosis.sharing(told, siblings=True).why
    told["others"][1]["ratio"] = 1.1
    assert diagnosis.sharing(told, siblings=False) is None
    assert diagnosis.sharing(None, siblings=False) is None


def test_the_runner_tries_every_other_cpu(wherry_run, wherry):
    def runner(*words):
        return subprocess.run([wherry_run, *words], capture_output=True, text=True, check=False)

    usable = sorted(os.sched_getaffinity(0))
    event = json.loads(runner("sharing", "--json").stdout)
    assert (event["event"], event["cpu"]) == ("sharing", usable[0])
    assert [other["cpu"] for other in event["others"]] == usable[1:65]
    # How fast they are is the machine's; that both kinds of slice are of the same work is not.
    assert all(other["ratio"] is None or other["ratio"] > 0.5 for other in event["others"])
    lines = runner("sharing").stdout.splitlines()
    assert len(lines) == max(len(event["others"]), 1)
    shared = json.loads(wherry("doctor", "--json").stdout)["doctor"]["sharing"]
    assert [other["cpu"] for other in shared["others"]] == usable[1:65]
    wrong = runner("sharing", "--now")
    assert wrong.returncode == 2 and "unknown argument '--now'" in wrong.stderr


def test_with_one_cpu_there_is_nobody_to_share_with(wherry_run):
    usable = sorted(os.sched_getaffinity(0))
    alone = {"preexec_fn": lambda: os.sched_setaffinity(0, {usable[-1]})}
    words = [wherry_run, "sharing"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, **alone)
    assert done.stdout == "There is no other CPU that this process may use.\n"
    words.append("--json")
    done = subprocess.run(words, capture_output=True, text=True, check=True, **alone)
    assert json.loads(done.stdout) == {"event": "sharing", "cpu": usable[-1], "others": []}


def test_huge_pages_off():
    assert "transparent huge pages are off" in whats(judged("haswell-4710mq", thp="never"))


def test_the_load_is_a_note():
    record = {**machine.record(), "load": [3.04, 1.0, 0.5]}
    assert "load 3.0 when it began" in [item["what"] for item in machine.uncontrolled(record)]
    record["load"] = [0.3, 3.0, 3.0]
    assert not any(i["what"].startswith("load ") for i in machine.uncontrolled(record))


def test_what_the_loader_lists():
    listed = (
        "glibc.rtld.nns: 0x4 (min: 0x1, max: 0x10)\n"
        "glibc.cpu.x86_non_temporal_threshold: 0x12000000 (min: 0x4040, max: 0xfffffffffffffff)\n"
        "glibc.cpu.x86_shstk:\nglibc.cpu.hwcaps:\n\n\0garbage: 7\n"
    )
    assert diagnosis.tunables(listed) == {"glibc.cpu.x86_non_temporal_threshold": 0x12000000}
    assert diagnosis.tunables("") == {}


# --- as a user runs it -------------------------------------------------------------------------------------------
def test_the_plan_is_told(wherry, tmp_path):
    env = {"WHERRY_PLAN": "/no/such.plan"}
    text = re.sub(r"\s+", " ", wherry("doctor", env=env).stdout)
    assert "the plan of WHERRY_PLAN is not used: there is no such file" in text
    assert "wherry plan check /no/such.plan" in text
    spaced = {"WHERRY_PLAN": "/no/such; plan"}
    record = json.loads(wherry("doctor", "--json", env=spaced).stdout)
    assert record["doctor"]["next"] == "wherry plan check '/no/such; plan'"
    compiled, source = tmp_path / "mine.plan", tmp_path / "mine.toml"
    wherry("plan", "default", "-o", source, env={"WHERRY_PLAN": ""})
    record = json.loads(wherry("doctor", "--json", env={"WHERRY_PLAN": str(source)}).stdout)
    assert record["doctor"]["next"] == f"wherry plan compile {shlex.quote(str(source))}"
    wherry("plan", "compile", tmp_path / "mine.toml", "-o", compiled)
    record = json.loads(wherry("doctor", "--json", env={"WHERRY_PLAN": str(compiled)}).stdout)
    assert record["reported"]["plan"]["status"] == f"plan 'default' is in force, from {compiled}"
    # Without --plan it compares libc with the drop-in's default plan.
    assert record["doctor"]["next"] == f"wherry ab --plan {shlex.quote(str(compiled))} -- CMD"


@pytest.mark.parametrize(
    "named", ["/no/such (1).plan", "/no/j\u00fcrgen.plan", "/no/" + "./" * 300 + "p"]
)
def test_a_plan_is_told_whatever_its_path(wherry, named):
    record = json.loads(wherry("doctor", "--json", env={"WHERRY_PLAN": named}).stdout)
    told = record["doctor"]["findings"][0]
    assert told["what"] == "the plan of WHERRY_PLAN is not used: there is no such file"
    assert told["why"].endswith(f"({named})")
    assert record["doctor"]["next"] == f"wherry plan check {shlex.quote(named)}"


def test_a_plan_is_named_as_a_shell_takes_it(wherry, tmp_path):
    """Also by letters that a terminal would obey, and bytes that are no text: the command broke off at them."""
    wherry("plan", "default", "-o", tmp_path / "mine.toml")
    compiled = tmp_path / os.fsdecode(b"a\nb\xff.plan")
    wherry("plan", "compile", tmp_path / "mine.toml", "-o", compiled)
    named = f"$'{tmp_path}/a\\nb\\377.plan'"
    record = json.loads(wherry("doctor", "--json", env={"WHERRY_PLAN": str(compiled)}).stdout)
    assert record["doctor"]["next"] == f"wherry ab --plan {named} -- CMD"
    compiled.unlink()
    record = json.loads(wherry("doctor", "--json", env={"WHERRY_PLAN": str(compiled)}).stdout)
    assert record["doctor"]["next"] == f"wherry plan check {named}"


def test_tunables_that_glibc_passes_over_are_told(wherry):
    if not diagnosis.libc()["tunables"]:
        pytest.skip("this glibc does not list its tunables")
    right = "glibc.cpu.x86_rep_movsb_threshold=4096:glibc.cpu.hwcaps=Prefer_ERMS"
    env = {"GLIBC_TUNABLES": f"garbage:{right}:glibc.cpu.nonsense=5"}
    found = json.loads(wherry("doctor", "--json", env=env).stdout)["doctor"]["findings"]
    told = [own["what"] for own in found if "GLIBC_TUNABLES is not followed" in own["what"]]
    assert len(told) == 2
    assert told[0].startswith("'garbage' of") and "no tunable of this glibc" in told[1]
    env = {"GLIBC_TUNABLES": right}
    assert "is not followed" not in wherry("doctor", env=env).stdout


def test_names_of_hwcaps_that_do_nothing_are_told(wherry):
    if not libctunables.features():
        pytest.skip("glibc before 2.33 does not tell what it goes by (ld.so --list-diagnostics)")
    env = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-NONSENSE,Prefer_ERMS,-AVX2_Usable"}
    found = json.loads(wherry("doctor", "--json", env=env).stdout)["doctor"]
    told = [own["what"] for own in found["findings"] if "not followed" in own["what"]]
    assert len(told) == 1 and "-NONSENSE and -AVX2_Usable change nothing in this glibc" in told[0]
    assert found["libc"]["hwcaps"] == ["Prefer_ERMS"]
    words = " ".join(wherry("doctor", env=env).stdout.split())
    assert "libc's hwcaps Prefer_ERMS by GLIBC_TUNABLES" in words


def test_a_plan_is_told_from_the_default_by_its_loops_and_parts():
    plan = {
        "choice": "avx512",
        **dict.fromkeys(f"{side}_rep_{end}" for side in ("copy", "set") for end in ("from", "to")),
        **dict.fromkeys(("copy_stream_from", "set_stream_from"), 8 << 20),
        **dict.fromkeys(("copy_ymm_from", "copy_source_lines_to", "copy_parts_from")),
    }
    view = {"tunables": {}}
    own = {"copy_ymm_from": 1025, "copy_source_lines_to": 0, "copy_parts_from": 1 << 20}

    def told(**changed) -> str:
        plans = {"default": plan, "in_force": {**plan, **changed}}
        return diagnosis.thresholds({"reported": {"plan": plans}}, view)[-1][1]

    assert told() == "avx512; past the caches from 8 MiB; no rep movsb, no rep stosb"
    changed = told(**own)
    assert changed.startswith(
        "avx512, by 32-byte vectors from 1025 B, by lines of the destination; "
        "past the caches from 8 MiB, in five parts from 8 MiB; "
    )
    # The ladder heeds neither of the first two.
    assert told(**own, choice="avx512_ladder").startswith("avx512_ladder; past the caches")
    assert "parts" not in told(copy_parts_from=1 << 20, copy_stream_from=None)


def test_hidden_features_are_told(wherry):
    record = {"reported": {"features": {"erms": True}}}
    view = {
        "tunables": {"glibc.cpu.x86_rep_movsb_threshold": 2112},
        "hwcaps": ["-ERMS", "-AVX512VL"],
        "erms": False,
    }
    libc, masked = (words for _, words in diagnosis.thresholds(record, view))
    assert libc.endswith("no string instructions (GLIBC_TUNABLES hides ERMS)")
    assert masked.startswith("-ERMS,-AVX512VL by GLIBC_TUNABLES")
    view |= {"hwcaps": [], "erms": True}
    own = {"glibc.cpu.x86_memset_non_temporal_threshold": 6 << 20}
    ((_, libc),) = diagnosis.thresholds(record, view | {"tunables": view["tunables"] | own})
    assert " (sets from 6 MiB); rep movsb" in libc
    ((_, libc),) = diagnosis.thresholds(record, view)
    assert "sets" not in libc
    assert "rep movsb from 2.06 KiB" in libc
    # What the loader says of this machine.
    usual = libctunables.features()
    if libctunables.uses_erms(usual):
        assert not libctunables.uses_erms(libctunables.features("glibc.cpu.hwcaps=-ERMS"))
        env = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-ERMS"}
        assert "GLIBC_TUNABLES hides ERMS" in " ".join(wherry("doctor", env=env).stdout.split())


@pytest.mark.parametrize("why", [None, "'banana' is no number"])
def test_a_threshold_that_glibc_does_not_follow_hides_nothing(why):
    entry = "glibc.cpu.x86_non_temporal_threshold=banana"
    own = {"last_level": 32 << 20, "plan": {"default": {"copy_stream_from": 24 << 20}}}
    view = {
        "tunables": {"glibc.cpu.x86_non_temporal_threshold": 182 << 20},
        "environment": entry,
        "ignored": [[entry, why]] if why else [],
    }
    found = [one.what for one in diagnosis._about_libc(own, view)]
    assert any("only from 182 MiB on" in what for what in found) is bool(why)


def test_every_source_is_there(wherry):
    done = wherry("doctor", env={"WHERRY_PLAN": ""})
    assert done.returncode == 0
    for words in (
        *("leaf4 ", "leaf8000001d ", "leaf80000005 ", "sysfs "),
        *(
            "Thresholds",
            "libc ",
            "Wherry ",
            "the default plan is in force",
            "What is wrong",
            "Next",
        ),
    ):
        assert words in done.stdout
    record = json.loads(wherry("doctor", "--json", env={"WHERRY_PLAN": ""}).stdout)
    for finding in record["doctor"]["findings"]:
        assert finding["what"].split(":")[0][:40] in re.sub(r"\s+", " ", done.stdout)
    if record["libc"] and record["libc"].startswith("glibc "):
        assert record["doctor"]["libc"]["tunables"]


def test_what_takes_the_place_of_libc_is_told(monkeypatch):
    """Tables that call it libc would tell of it that it is as fast as itself."""
    record, said = machine.record(), f"{preloading.library('dropin')} preloaded"
    for given in ("", "libm.so.6", "/no/such.so", "/proc/version"):
        monkeypatch.setenv("LD_PRELOAD", given)
        assert not any("preloaded" in item["what"] for item in machine.uncontrolled(record))
    monkeypatch.setenv("LD_PRELOAD", f"libm.so.6:{preloading.library('dropin')}")
    assert said in [item["what"] for item in machine.uncontrolled(record)]


def test_a_plan_in_force_heads_what_is_measured(wherry, tmp_path):
    """Figures of `wherry` under a plan that somebody made are not those of the default."""
    words = ("bench", "--size", "64", "--processes", "1", "--rounds", "1", "--save")
    by_default = wherry(*words, tmp_path / "default.json", env={"WHERRY_PLAN": ""})
    assert by_default.returncode == 0 and "\nPlan " not in by_default.stdout
    source, compiled = tmp_path / "mine.toml", tmp_path / "mine.plan"
    assert wherry("plan", "default", "-o", source).returncode == 0
    assert wherry("plan", "compile", source, "-o", compiled).returncode == 0
    mine = wherry(*words, tmp_path / "mine.json", env={"WHERRY_PLAN": str(compiled)})
    assert mine.returncode == 0 and re.search(r"^Plan +plan '.+' is in force", mine.stdout, re.M)
    nowhere = wherry(*words, tmp_path / "no.json", env={"WHERRY_PLAN": "/no/such"})
    told = " ".join(nowhere.stdout.split())
    assert "Plan the default plan is in force; WHERRY_PLAN was not used: there is no such" in told
    # What is no file is not read: this never ends, and a pipe waits for somebody.
    os.mkfifo(tmp_path / "pipe")
    for other in ("/dev/zero", str(tmp_path / "pipe")):
        done = wherry(*words, tmp_path / "no.json", env={"WHERRY_PLAN": other})
        assert done.returncode == 0
        assert "WHERRY_PLAN was not used: it is not a file" in " ".join(done.stdout.split())
    assert wherry("report", tmp_path / "mine.json", "-o", tmp_path / "mine.html").returncode == 0
    assert "is in force, from" in (tmp_path / "mine.html").read_text()
