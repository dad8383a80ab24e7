"""Plans as text and compiled: what is read, refused in one line, written, and the commands of `wherry plan`."""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "python"))
from wherry import planbinary, planfiles, plans, plantext, planwords
from wherry.errors import WherryError
from wherry.tune import direction

CPU = plans.Cpu("AuthenticAMD", 26, 2, None, ("erms", "fsrm"), ("fzrm",), 32 << 20)
THRESHOLDS = {
    "copy_rep_from": 24 << 10,
    "copy_rep_to": 24 << 20,
    "copy_stream_from": 24 << 20,
    "set_rep_from": 1 << 20,
    "set_rep_to": plans.OFF,
    "set_stream_from": plans.OFF,
    "copy_rep_slow_ahead": 63,
    "copy_rep_all_from": 48 << 10,
    "copy_rep_recent_from": 32 << 10,
    "set_rep_recent_from": plans.OFF,
    "copy_backward_ahead": 1536,
    "copy_ymm_from": 3000,
    "copy_source_lines_to": 2000,
    "copy_parts_from": 32 << 20,
    "copy_stream_recent_from": 28 << 20,
    "set_stream_recent_from": 0,
}
PLAN = plans.Plan("mine", "avx512", CPU, THRESHOLDS, {"date": "2026-11-21", "gain": 0.07})
NO_REP = PLAN.changed(
    name='a "b" \\ c', copy_rep_from=plans.OFF, copy_rep_to=0, copy_rep_slow_ahead=0,
    copy_rep_all_from=0, copy_rep_recent_from=0, copy_ymm_from=plans.OFF,
    copy_source_lines_to=plans.OFF, copy_parts_from=plans.OFF, set_stream_from=1 << 20,
    set_stream_recent_from=plans.OFF, cpu=plans.Cpu("GenuineIntel", 6), made={},
)  # fmt: skip


def test_the_text_form_says_it_all():
    text = plantext.to_text([PLAN, NO_REP], "Two lines\nof a head.", [{"copy.rep_from": "why so"}])
    assert text.startswith("# Two lines\n# of a head.\nformat")
    assert '# why so\nrep_from = "24 KiB"' in text
    assert plantext.from_text(Path("x"), text.encode()) == [PLAN, NO_REP]


def test_both_forms_say_the_same():
    assert [p.changed(made={}) for p in (PLAN, NO_REP)] == planbinary.decode(
        planbinary.encode([PLAN, NO_REP])
    )


def test_any_plan_survives_both_forms():
    dice = random.Random(3)
    sizes = [plans.OFF, 65536, 65537, 1 << 20, 3 << 20, 1 << 40]
    for _ in range(300):
        rep, copies, sets = (dice.choice(sizes) for _ in range(3))
        never = plans.OFF
        plan = plans.Plan(
            "".join(chr(dice.randrange(32, 127)) for _ in range(dice.randint(1, 47))),
            dice.choice(plans.CHOICES),
            plans.Cpu(
                "".join(chr(dice.randrange(32, 127)) for _ in range(dice.randint(1, 12))),
                dice.randrange(4096),
                dice.choice([None, 0, 4095]),
                dice.choice([None, 0, 15]),
                tuple(name for name in plans.FEATURES if dice.random() < 0.5),
                (),
                dice.choice([None, 1, 1 << 40]),
            ),
            {
                "copy_rep_from": rep,
                "copy_rep_to": 0 if rep == plans.OFF else plans.OFF,
                "copy_stream_from": copies,
                "set_rep_from": 128,
                "set_rep_to": dice.choice(sizes),
                "set_stream_from": sets,
                "copy_rep_slow_ahead": 0 if rep == plans.OFF else dice.choice([0, 63, 4095]),
                "copy_rep_all_from": 0 if rep == plans.OFF else dice.choice([rep, plans.OFF]),
                "copy_rep_recent_from": 0 if rep == plans.OFF else dice.choice([rep, 1 << 40]),
                "set_rep_recent_from": dice.choice([128, 4096, plans.OFF]),
                "copy_backward_ahead": dice.choice([0, 31, 1536, 4095]),
                "copy_ymm_from": dice.choice([1025, 4096, 1 << 40, plans.OFF]),
                "copy_source_lines_to": dice.choice([0, 1, 4096, 1 << 40, plans.OFF]),
                "copy_parts_from": dice.choice([0, 1, 32768, 1 << 40, plans.OFF]),
                "copy_stream_recent_from": 0
                if copies == never
                else dice.choice([copies, 1 << 40, never]),
                "set_stream_recent_from": 0 if sets == never else dice.choice([sets, never]),
            },
            {"any key.": 'any "text" \n\t\\ü\x7f', "n": 1, "yes": True},
        )
        assert plans.fault(plan) is None
        assert plantext.from_text(Path("x"), plantext.to_text([plan]).encode()) == [plan]
        assert planbinary.decode(planbinary.encode([plan])) == [plan.changed(made={})]


TEXT = plantext.to_text([PLAN])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('format = "wherry-plan"', 'format = "other"', "is TOML, but not a plan"),
        ("version = 1", "version = 2", "is a plan of format 2; this Wherry reads 1; use a newer"),
        ("version = 1", 'version = "1"', "at version"),
        (
            '"24 KiB"',
            '"24 kB"',
            'plan[0].copy.rep_from is "24 kB"; give a whole number and B, KiB',
        ),
        ('"24 KiB"', "-3", "plan[0].copy.rep_from is -3; give a whole number and B, KiB, MiB"),
        ('"24 KiB"', '"1.5 MiB"', 'plan[0].copy.rep_from is "1.5 MiB"; give a whole number'),
        ('"24 KiB"', "nan", "plan[0].copy.rep_from is nan; give a whole number"),
        ('"24 KiB"', "true", "plan[0].copy.rep_from is true; give a whole number"),
        ('"24 KiB"', "12", "copy.rep_from = 12, outside 128 B to 1024 GiB"),
        ('rep_to = "24 MiB"', 'rep_to = "1 KiB"', "copy.rep_to = 1024, outside rep_from"),
        ('"24 KiB"', '"off"', "copy.rep_to or rep_recent_from, but rep_from off"),
        ('stream_from = "24 MiB"', "stream_from = 1", "outside 64 KiB to"),
        (
            '\nstream_from = "24 MiB"',
            '\nstream_from = "off"',
            "copy.stream_recent_from, but stream_from",
        ),
        ('"28 MiB"', '"1 MiB"', "copy.stream_recent_from = 1048576, outside stream_from to 1024"),
        (
            '"28 MiB"',
            '"off"',
            'stream_recent_from is "off"; give a whole number and B, KiB, MiB or GiB: "24 KiB", or "any"',
        ),
        ("rep_slow_ahead = 63", "rep_slow_ahead = 9999", "at plan.0.copy.rep_slow_ahead"),
        ('rep_recent_from = "32 KiB"', "rep_recent_from = 200", "copy.rep_recent_from = 200"),
        ('rep_all_from = "48 KiB"', "rep_all_from = 200", "copy.rep_all_from = 200"),
        ("backward_ahead = 1536", "backward_ahead = 4096", "at plan.0.copy.backward_ahead"),
        ('ymm_from = "3000 B"', "ymm_from = 1024", "copy.ymm_from = 1024, outside 1025 B to 1024"),
        (
            'ymm_from = "3000 B"',
            'ymm_from = "any"',
            'ymm_from is "any"; give a whole number and B, KiB, MiB or GiB: "24 KiB", or "off"',
        ),
        ('lines_to = "2000 B"', "lines_to = -1", "plan[0].copy.source_lines_to is"),
        ('lines_to = "2000 B"', 'lines_to = "off"', 'plan[0].copy.source_lines_to is "off"; give'),
        ('lines_to = "2000 B"', 'lines_to = "2048 GiB"', "copy.source_lines_to = 2199023255552"),
        ('parts_from = "32 MiB"', "parts_from = -1", "plan[0].copy.parts_from is"),
        ('parts_from = "32 MiB"', 'parts_from = "any"', 'plan[0].copy.parts_from is "any"; give'),
        ('last_level = "32 MiB"', 'last_level = "any"', 'last_level is "any"; give a whole number'),
        ("parts_from", "parts_form", "plan[0].copy: no key 'parts_form'; did you mean parts_from?"),
        ("ream_from", "reem_from", "plan[0].copy: no key 'streem_from'; did you mean stream_from?"),
        ('rep_from = "24 KiB"', "", "plan[0].copy.rep_from is missing"),
        ('name = "mine"', "", "plan[0].name is missing"),
        ('parts_from = "32 MiB"', 'parts_from = "2048 GiB"', "copy.parts_from = 2199023255552"),
        ('"avx512"  ', '"avx10"  ', "at plan.0.choice"),
        ('"mine"', '"' + 48 * "x" + '"', "at plan.0.name"),
        ('"mine"', '"tab\\there"', "plan[0].name is 'tab\\there'"),
        ('"fzrm"', '"erms"', "erms in both cpu.with and cpu.without"),
        ('"fzrm"', '"avx512f"', "without avx512f, which it needs"),
        ("[plan.set]", "[plan.sets]", "plan[0]: no key 'sets'; did you mean set?"),
        ("family = 26", "family = 26.5", "plan[0].cpu.family is 26.5; give"),
        ("family = 26", "family = 2026-11-21", "at plan.0.cpu.family: '2026-11-21' is not of"),
        ("family = 26", "family = 26.0", "plan[0].cpu.family is 26.0; give a whole number"),
        ('"24 KiB"', "24576.0", "plan[0].copy.rep_from is 24576.0; give a whole number"),
        ("backward_ahead = 1536", "backward_ahead = 3.0", "plan[0].copy.backward_ahead is 3.0"),
        ('"24 KiB"', '"24 KiB\\n"', "plan[0].copy.rep_from is '24 KiB\\n'"),
        ("[[plan]]", "[plan]", "it has [plan]; write [[plan]]"),
        ("[plan.copy]", "[plan.copy", "is not a plan: "),
        ('rep_from = "24 KiB"', f"rep_from = {plans.OFF}", f"copy.rep_from = {plans.OFF}, above"),
        ('rep_to = "24 MiB"', f"rep_to = {plans.OFF}", f"copy.rep_to = {plans.OFF}, above"),
        (
            'stream_from = "24 MiB"',
            f"stream_from = {plans.OFF}",
            "stream_from = 184467440737095516",
        ),
        ('ymm_from = "3000 B"', f"ymm_from = {plans.OFF}", f"copy.ymm_from = {plans.OFF}, above"),
        ('last_level = "32 MiB"', 'last_level = "999999999999999 GiB"', "last_level = 10737"),
        ("family = 26", "family = " + "9" * 5000, "it has a number of thousands of digits"),
        ("[[plan]]", "[[plan]]\n" * 64 + "[[plan]]", "it has 65 plans, more than 64"),
    ],
)
def test_a_bad_text_is_one_line(tmp_path, old, new, said):
    assert old in TEXT
    (tmp_path / "bad.toml").write_text(TEXT.replace(old, new))
    with pytest.raises(WherryError) as caught:
        planfiles.read(tmp_path / "bad.toml")
    assert said in str(caught.value)
    assert str(tmp_path / "bad.toml") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_text_may_begin_with_a_mark(tmp_path):
    """As some editors of Windows begin each."""
    (tmp_path / "bom.toml").write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    assert planfiles.read(tmp_path / "bom.toml") == [PLAN]


def test_a_date_needs_no_quotes(wherry, tmp_path):
    """TOML has dates of its own, and a person writes them in what is there for people."""
    path = tmp_path / "dated.toml"
    made = "day = 2026-11-21\nat = 2026-11-21T08:00:00Z\nhour = 08:00:00\n"
    path.write_text(TEXT.replace("[plan.made]\n", f"[plan.made]\n{made}", 1))
    (plan,) = planfiles.read(path)
    dated = {"day": "2026-11-21", "at": "2026-11-21T08:00:00+00:00", "hour": "08:00:00"}
    assert plan == PLAN.changed(made={**dated, **PLAN.made})
    assert planfiles.read(path) == plantext.from_text(path, plantext.to_text([plan]).encode())
    shown = wherry("plan", "show", "--text", path)
    assert shown.returncode == 0 and 'day = "2026-11-21"' in shown.stdout


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"\xff\xfe\0\0", "neither text nor a compiled plan"),
        (b"\x7fELF\0\0", "is not a plan"),
        (b"a = " + b"[" * 5000, "is not a plan"),
        (b"x" * (1 << 20) + b"xx", "too large to be a plan"),
        (b"WHPLAN\r\n", "is cut short"),
        (planbinary.encode([PLAN])[:-3], "is cut short"),
        (planbinary.encode([PLAN]).replace(b"mine", b"fine"), "its checksum is wrong"),
    ],
)
def test_no_file_makes_a_traceback(wherry, tmp_path, data, said):
    path = tmp_path / "bad"
    path.write_bytes(data)
    for command in ("show", "compile"):
        done = wherry("plan", command, path)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1
    done = wherry("plan", "check", path)
    assert done.returncode == 1
    assert said in done.stdout


def test_what_never_ends_is_not_read(wherry):
    """A file to the kernel, of no length, and without an end to whoever reads it; others, as /proc/kmsg, wait."""
    endless = "/proc/self/pagemap"
    done = wherry("plan", "check", endless)
    assert (done.returncode, "pagemap is empty" in done.stdout) == (1, True)
    done = wherry("exec", "--plan", endless, "--", "true")
    assert (
        done.returncode,
        "pagemap is not used, the default plan is: it is empty" in done.stderr,
    ) == (0, True)
    for words in (
        ("replay", endless),
        ("tune", "--mix", endless),
        ("report", endless),
        ("compare", endless, endless),
    ):
        done = wherry(*words)
        assert (done.returncode, " empty" in done.stderr) == (2, True), done.stderr


def test_each_bit_flip_and_truncation_is_refused():
    good = planbinary.encode([PLAN, NO_REP])
    for cut in range(len(good)):
        with pytest.raises(planbinary.BadPlanError):
            planbinary.decode(good[:cut])
    for bit in range(8 * len(good)):
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        with pytest.raises(planbinary.BadPlanError):
            planbinary.decode(bytes(bad))


def test_the_list_of_thresholds_is_the_libraries():
    header = (ROOT / "src/routines/thresholds.h").read_text()
    own = header.split("#define WHERRY_THRESHOLDS(X)")[1].split("#define")[0]
    assert tuple(re.findall(r"^ +X\((\w+)\)", own, re.MULTILINE)) == plans.FIELDS
    constants = dict(re.findall(r"^#define (\w+) (\d+)$", header, re.MULTILINE))
    assert int(constants["ALIAS_SPAN"]) == plans.BACKWARD_AHEAD
    assert int(constants["ALIAS_FROM"]) == direction.EITHER_WAY_FROM
    assert int(constants["ALIAS_FORWARD"]) == direction.EITHER_WAY_FROM_AVX512
    source = (ROOT / "src/planfile/planfile.c").read_text()
    assert tuple(re.findall(r'\{WHERRY_CPU_\w+, "(\w+)"\}', source)) == plans.FEATURES
    schema = json.loads((ROOT / "schema/plan.schema.json").read_text())
    assert tuple(schema["$defs"]["features"]["items"]["enum"]) == plans.FEATURES
    assert tuple(schema["$defs"]["plan"]["properties"]["choice"]["enum"]) == plans.CHOICES


def test_which_plan_of_a_bundle_is_taken():
    reported = {
        "vendor_id": "AuthenticAMD", "family": 26, "model": 2, "stepping": 1, "last_level": 32 << 20,
        "features": dict.fromkeys(plans.FEATURES[:9], True),
    }  # fmt: skip
    assert plans.for_this_cpu([NO_REP, PLAN], reported) is PLAN
    assert plans.mismatch(CPU, reported) is None
    for key, value, said in [
        ("vendor_id", "GenuineIntel", "it is for vendor AuthenticAMD"),
        ("family", 25, "this CPU is family 25"),
        ("last_level", 96 << 20, "and here are 96 MiB"),
    ]:
        assert said in plans.mismatch(CPU, {**reported, key: value})
    old = {**reported, "features": {"erms": True, "fsrm": True}}
    assert plans.for_this_cpu([PLAN], old) is None
    assert plans.lacks(PLAN, old) == "avx2"


def test_words():
    said = dict(planwords.describe(PLAN))
    assert said["Copies"] == (
        "vector loop, rep movsb from 24 KiB to 24 MiB (destination written lately: from 32 KiB; "
        "1 to 63 B ahead: from 48 KiB), "
        "past the caches from 24 MiB (destination touched lately: from 28 MiB) in five parts at once "
        "(from 32 MiB), "
        "loop backward with the destination 1 to 1536 B ahead, "
        "by 32-byte vectors from 3000 B, by lines of the destination from 2000 B"
    )
    # The ladder's loops, and those of shorter vectors, heed neither (docs/plan.md).
    for choice in plans.CHOICES:
        copies = dict(planwords.describe(PLAN.changed(choice=choice)))["Copies"]
        heeded = choice in ("avx512", "avx512_together")
        assert ("by 32-byte vectors" in copies) == ("by lines of" in copies) == heeded
    assert said["Sets"] == (
        "vector loop, rep stosb from 1 MiB (destination written lately: never), "
        "never past the caches"
    )
    no_rep = dict(planwords.describe(NO_REP))
    assert "vector loop, past" in no_rep["Copies"]
    assert no_rep["Sets"].endswith("past the caches from 1 MiB (destination touched lately: never)")


# --- as a user runs it -------------------------------------------------------------------------------------------
def test_the_commands(wherry, tmp_path):
    text, env = tmp_path / "mine.toml", {"WHERRY_PLAN": "", "XDG_CACHE_HOME": str(tmp_path / "c")}
    assert wherry("plan", "default", "-o", text, env=env).stdout == f"{text}: 1 plan\n"
    assert wherry("plan", "default", env=env).stdout == text.read_text()
    done = wherry("plan", "check", text, env=env)
    assert (done.returncode, done.stdout[:35]) == (0, "yes: plan 'default' is in force, fr")
    assert wherry("plan", "compile", text).returncode == 0
    assert (tmp_path / "mine.plan").read_bytes().startswith(planbinary.MAGIC)
    shown = wherry("plan", "show", "--json", tmp_path / "mine.plan").stdout
    assert json.loads(shown)[0]["name"] == "default"
    assert wherry("plan", "show", tmp_path / "mine.plan").stdout.startswith("Plan ")
    as_text = wherry("plan", "show", "--text", tmp_path / "mine.plan").stdout
    assert plantext.from_text(text, as_text.encode()) == planfiles.read(text)
    # Nothing of it depends on a cache that can be written.
    nowhere = {"WHERRY_PLAN": "", "XDG_CACHE_HOME": "/proc/nowhere", "TMPDIR": str(tmp_path)}
    done = wherry("plan", "check", text, env=nowhere)
    assert (done.returncode, done.stdout[:35]) == (0, "yes: plan 'default' is in force, fr")
    foreign = tmp_path / "foreign.toml"
    foreign.write_text(re.sub(r"family = \d+", "family = 2", text.read_text()))
    done = wherry("plan", "check", foreign, env=env)
    assert done.returncode == 1
    assert done.stdout.startswith("no: it is for family 2,")
    assert done.stdout.endswith("; the default plan would serve in its place\n")
    done = wherry("plan", "check", "--json", foreign, env=env)
    told = json.loads(done.stdout)
    assert (done.returncode, told["taken"]) == (1, False) and "family 2" in told["status"]
    done = wherry("plan", "check", "--json", tmp_path / "none.toml", env=env)
    told = json.loads(done.stdout)
    assert (done.returncode, told["taken"]) == (1, False) and "none.toml" in told["status"]
    done = wherry("plan", "check", "--json", text, env=env)
    assert json.loads(done.stdout)["taken"] and done.returncode == 0
    for out in ("both.plan", "both.toml"):
        assert wherry("plan", "bundle", foreign, text, "-o", tmp_path / out).returncode == 0
        assert len(planfiles.read(tmp_path / out)) == 2
    done = wherry("plan", "check", tmp_path / "both.plan", env=env)
    assert "plan 'default' is in force (2 of 2), from" in done.stdout


def test_the_name_tells_the_form(wherry, tmp_path):
    """One rule for whatever writes a plan."""
    for name, compiled in (("a.plan", True), ("a.toml", False), ("a", False), ("a.txt", False)):
        path = tmp_path / name
        assert wherry("plan", "default", "-o", path).returncode == 0
        assert planfiles.is_compiled(path.read_bytes()) == compiled, name
        found = planfiles.read(path)
        planfiles.save(path, found)
        assert (
            planfiles.is_compiled(path.read_bytes()) == compiled and planfiles.read(path) == found
        )
        assert wherry("plan", "bundle", path, "-o", tmp_path / f"b{path.suffix}").returncode == 0
        both = tmp_path / f"b{path.suffix}"
        assert planfiles.is_compiled(both.read_bytes()) == compiled


def test_misuse(wherry, tmp_path):
    text = tmp_path / "mine.toml"
    planfiles.write(text, [PLAN])
    for words, said in [
        (("bundle", text, text, "-o", tmp_path / "b.plan"), "are for the same CPU"),
        (("bundle", text, "-o", text), "that is a plan that is read itself"),
        (("bundle", "-o", "x"), "Missing argument"),
        (("compile", text, "-o", tmp_path / "x.toml"), "a compiled plan is no text"),
        (("show", tmp_path / "none"), "cannot read"),
        (("show", tmp_path), "is not a file"),
        (("show", "--text", "--json", tmp_path / "none"), "exclude each other"),
        (("frobnicate",), "No such command"),
    ]:
        done = wherry("plan", *words)
        assert done.returncode == 2, words
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1
    compiled = tmp_path / "mine.plan"
    planfiles.compile_to(compiled, [PLAN])
    before = compiled.read_bytes()
    assert "compiled already" in wherry("plan", "compile", compiled).stderr
    assert compiled.read_bytes() == before
