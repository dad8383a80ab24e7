"""The command line as a user runs it, with the real runner: what it prints, and how it answers bad input."""

import itertools
import json
import os
import re
import shutil
import struct
import subprocess
import sys

import pytest
from conftest import processor_seconds
from wherry import runfile, tables, units
from wherry.errors import WherryError, unknown

pytestmark = pytest.mark.usefixtures("own_directory")


FAST = ("--processes", "1", "--rounds", "3")


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("1448", 1448), ("4K", 4096), ("4k", 4096), ("8MiB", 8 << 20), (" 2M ", 2 << 20)],
)
def test_sizes_are_read(text, size):
    assert units.parse_size(text, limit=1 << 40) == size


@pytest.mark.parametrize(
    "text", ["0", "0K", "-1", "-4K", "4X", "", "K", "1.5K", "1e3", "٣", "9" * 50, "2T"]
)
def test_what_is_no_size_is_refused(text):
    with pytest.raises(WherryError):
        units.parse_size(text, limit=1 << 40)


def test_sizes_are_written():
    assert [units.size_label(n) for n in (1, 1448, 1024, 1536, 1 << 20)] == [
        "1",
        "1448",
        "1K",
        "1536",
        "1M",
    ]
    assert units.size_in_words(32 << 20) == "32 MiB" and units.ns_label(2.345) == "2.35"


def test_marks_are_explained_where_there_are_some():
    """A table of times without a winner (bench switch) is not one whose winners are missing."""

    def of(*texts: str) -> list[tables.Block]:
        return [tables.Block("t", [[tables.Span(text)] for text in texts])]

    said = tables.legend(of("  64  12.5* 13.1"))
    assert said.startswith("* fastest, by more") and "=" not in said
    said = tables.legend([*of("1.2"), *of("3.1="), *of("libc: 123 B/s?( 12 us)")])
    assert said.startswith("= tied") and "; ? undecided: " in said
    assert not tables.legend([*of("a * b = c? 1.5 (x)", "12.5 13.1"), tables.Block("none")])


@pytest.mark.parametrize("width", range(40, 140))
def test_a_column_without_a_head_stays_beside_the_one_that_it_belongs_to(width):
    """At the beginning of the next part nothing would tell whose GB/s they are."""
    columns = [tables.Column("op", left=True)]
    for name in ("scalar64", "csum_avx512", "copy_csum_vnni", "table", "crc32c_vpclmul_avx2"):
        columns += [tables.Column(name, "ns"), tables.Column("", "GB/s")]
    row = [tables.Figure(f"{1000 + i}") for i in range(len(columns))]
    units_of_parts = [
        line.split()
        for line in tables.plain(tables.layout(columns, [row], width)).splitlines()
        if "ns" in line
    ]
    assert sum(map(len, units_of_parts)) == len(columns) - 1
    assert all(units == ["ns", "GB/s"] * (len(units) // 2) for units in units_of_parts)


def test_help_is_quick_and_has_examples(wherry):
    best = 9.0
    for _ in range(3):
        start = processor_seconds()
        command = [sys.executable, "-m", "wherry", "--help"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        best = min(best, processor_seconds() - start)
    assert result.returncode == 0 and "Example:" in result.stdout
    assert best < 0.5
    for command in ("bench", "list", "verify", "doctor"):
        shown = wherry(command, "--help")
        assert shown.returncode == 0 and "Example:" in shown.stdout, command


def test_version(wherry):
    assert re.fullmatch(r"wherry \d+\.\d+\.\d+\S*\n", wherry("--version").stdout)


def test_list_routines(wherry):
    rows = json.loads(wherry("list", "routines", "--json").stdout)
    assert {"rep_movsb", "move_avx2"} <= {row["name"] for row in rows}
    assert {"op", "needs", "era", "source", "idea", "quantum"} <= set(rows[0])
    text = wherry("list", "routines").stdout
    starts = [(text.index(f"\n  {row['name']} "), row) for row in rows]
    starts.sort(key=lambda own: own[0])
    told = {}
    for (start, row), (end, _) in itertools.pairwise([*starts, (len(text), None)]):
        told[row["name"]] = " ".join(text[start:end].split())
        assert f"({row['source']})" in told[row["name"]]
    for name, effect in (
        ("x87_fild64", "saves and restores the x87 state"),
        ("mmx_movq", "loses the MMX and x87 state"),
        ("int4x8", "multiples of 32 bytes only"),
    ):
        assert effect in told[name]
    assert re.search(r"^  copy: +sides that do not overlap$", text, re.MULTILINE)


def test_list_experiments(wherry):
    names = [row["name"] for row in json.loads(wherry("list", "experiments", "--json").stdout)]
    assert {"sizes", "zero", "small", "alignment", "mixes", "scoreboard"} <= set(names)
    shown = wherry("list", "experiments").stdout
    assert all(name in shown for name in names)


def test_doctor(wherry):
    record = json.loads(wherry("doctor", "--json").stdout)
    assert record["cpu"]["model"] and record["kernel"].startswith("Linux")
    text = wherry("doctor").stdout
    for word in (
        "CPU",
        "Caches by source",
        "Pages",
        "clock source",
        "Machine",
        "libc",
        "Not under control",
    ):
        assert word in text
    # Each of the two runs reads the load anew; the test of the load's own note is in test_doctor.py.
    for item in record["uncontrolled"]:
        assert item["what"].startswith("load ") or item["what"] in text
        assert item["do"]


def test_bench_prints_a_table_and_saves_a_run(wherry, tmp_path):
    result = wherry("bench", "--size", "64,4K", *FAST)
    assert result.returncode == 0, result.stderr
    assert result.stderr == "" and "\033" not in result.stdout
    for word in (
        "CPU",
        "Caches",
        "Kernel",
        "libc",
        "Pages",
        "Machine",
        "noise floor",
        "MB/s",
        "x87_fild64",
    ):
        assert word in result.stdout
    last = result.stdout.strip().splitlines()[-1]
    path = tmp_path / last.removeprefix("Saved as ")
    run = json.loads(path.read_text())
    assert re.fullmatch(r"\d{8}T\d{6}Z-.+\.json", path.name)
    assert {c["routine"] for c in run["cells"]} >= {"libc", "wherry", "rep_movsb"}
    assert all(c["verified"] for c in run["cells"]) and not run["interrupted"]
    assert run["noise"]["floor"] > 0


def test_every_experiment_runs(wherry):
    short = ("--quick", "--size", "1448", *FAST, "--json")
    result = wherry("bench", "sizes", "zero", "small", *short)
    assert result.returncode == 0, result.stderr
    run = json.loads(result.stdout)
    assert [e["name"] for e in run["experiments"]] == ["sizes", "zero", "small"]
    # All its states and routines are asked of the fake runner, in test_campaign.py: it has 276 rows.
    some = ("--routine", "rep_movsb", "--state", "DRAM/L1,L1/DRAM")
    result = wherry("bench", "alignment", *some, *short)
    assert result.returncode == 0, result.stderr
    run = json.loads(result.stdout)
    states = {(r["src_state"], r["dst_state"]) for r in run["rows"]}
    assert states == {("DRAM", "L1"), ("L1", "DRAM")}
    assert all(cell["verified"] for cell in run["cells"])


def test_a_small_scoreboard(wherry, tmp_path):
    (tmp_path / "web.csv").write_text("0:0.1,8:0.5,100:0.3,5000:0.1\n0:1\n1:0.5,64:0.5\n")
    regions = ("--region", "fixed-64,any-64,forward,128K-512K,lat-any-64,code-cold,delta-4K,web")
    result = wherry(
        "bench",
        "scoreboard",
        "mixes",
        "--quick",
        *regions,
        *("--op", "move", "--isa", "sse2", "--mix", "web.csv", "--save", "r.json"),
        *FAST,
        env={"WHERRY_PEERS": ""},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    words = " ".join(result.stdout.split())
    for text in (
        "memmove by region",
        "beside the score",
        "mixes of sizes",
        "the envelope is libc alone",
        "held to its sse2 tier",
        "what this machine allows",
    ):
        assert text in words
    run = runfile.read(tmp_path / "r.json")
    (own,) = run["experiments"][0]["score"]["ops"]
    there = {region["name"]: region for region in own["regions"]}
    assert set(there) == set(regions[1].split(","))
    assert all(region["to_libc"] and region["best"] == "libc" for region in there.values())
    assert there["128K-512K"]["limit"]["figure"] > 0
    assert not [p for p in run["problems"] if p["kind"] != "skip"]
    assert {row.get("code") for row in run["rows"]} == {None, "cold"}
    assert {row.get("overlap") for row in run["rows"]} > {None}
    assert "wherry@sse2" in {cell["routine"] for cell in run["cells"]}


def test_lists_of_regions_and_mixes(wherry):
    regions = json.loads(wherry("list", "regions", "--json").stdout)
    assert {"fixed-64", "any-64", "32M-256M"} <= {r["name"] for r in regions if r["base"]}
    assert all(region["name"] in wherry("list", "regions").stdout for region in regions[:3])
    mixes = json.loads(wherry("list", "mixes", "--json").stdout)
    assert mixes[1]["name"] == "uniform:0-64" and mixes[1]["percentiles"]["50"] == 32
    assert "log:1-4096" in wherry("list", "mixes").stdout


def test_routine_state_pin_and_seed(wherry):
    cpu = max(os.sched_getaffinity(0))
    result = wherry(
        "bench",
        "--routine",
        "rep_movsb",
        "--routine",
        "move_sse2,wherry@sse2",
        "--state",
        "L2,L1/L3",
        "--size",
        "256",
        "--pin",
        str(cpu),
        "--seed",
        "5",
        *FAST,
        "--json",
    )
    assert result.returncode == 0, result.stderr
    run = json.loads(result.stdout)
    assert {c["routine"] for c in run["cells"]} == {"libc", "rep_movsb", "move_sse2", "wherry@sse2"}
    assert {(r["src_state"], r["dst_state"]) for r in run["rows"]} == {("L2", "L2"), ("L1", "L3")}
    assert run["runner"]["cpu"] == cpu and run["runner"]["seed"] == 5


def test_all_routines_of_an_op(wherry):
    catalogue = json.loads(wherry("list", "routines", "--json").stdout)
    copies = {r["name"] for r in catalogue if r["op"] in ("copy", "move") and not r["unavailable"]}
    result = wherry("bench", "--routine", "all", "--size", "64", *FAST, "--json")
    measured = {c["routine"] for c in json.loads(result.stdout)["cells"]}
    assert copies | {"libc", "wherry"} <= measured


@pytest.mark.parametrize("command", ["bench", "verify"])
def test_all_that_are_no_peers_are_told_at_once(wherry, tmp_path, command):
    (tmp_path / "text.so").write_text("no library")
    both = ("--peer", f"a={tmp_path}/text.so", "--peer", f"b={tmp_path}/none.so")
    result = wherry(command, *both)
    assert result.returncode == 2 and result.stdout == ""
    first, second = result.stderr.splitlines()
    assert first.startswith("wherry: peer a: ") and "not an ELF" in first
    assert second.startswith("wherry: peer b: ") and "No such file" in second


def test_a_peer_stands_in_the_table(wherry, tmp_path):
    source = (
        "void *my_memcpy(void*d,const void*s,unsigned long n){void*r=d;"
        '__asm__ volatile("rep movsb":"+D"(d),"+S"(s),"+c"(n)::"memory");return r;}'
    )
    library = shared_object(tmp_path, source)
    result = wherry("bench", "--size", "64", "--peer", f"mine={library}:my_", *FAST)
    assert result.returncode == 0, result.stderr + result.stdout
    assert "mine" in result.stdout


PEERS = {
    "crash": ("void *memcpy(void*d,const void*s,unsigned long n){__builtin_trap();}", "CRASHED"),
    "wrong": (
        "void *memcpy(void*d,const void*s,unsigned long n){if(n)*(char*)d=1;return d;}",
        "WRONG",
    ),
}


@pytest.mark.parametrize("kind", sorted(PEERS))
def test_bad_peers_are_named_and_the_rest_is_measured(wherry, tmp_path, kind):
    source, word = PEERS[kind]
    library = shared_object(tmp_path, source)
    result = wherry("bench", "--size", "64,256", "--peer", f"bad={library}", *FAST)
    assert result.returncode == 1 and f"bad {word}" in result.stdout, result.stderr + result.stdout
    run = json.loads(next((tmp_path / "runs").glob("*.json")).read_text())
    assert not any(c["routine"] == "bad" for c in run["cells"])
    assert len([c for c in run["cells"] if c["routine"] == "libc" and not c["aa"]]) == 2


def shared_object(directory, source):
    compiler = shutil.which("cc") or shutil.which("gcc")
    path = directory / "peer.so"
    subprocess.run(
        [compiler, "-O1", "-fno-builtin", "-shared", "-fPIC", "-w", "-x", "c", "-", "-o", path],
        input=source,
        text=True,
        check=True,
    )
    return path


MISUSE = [
    (["bench", "size"], "did you mean sizes?"),
    (["bench", "qqq"], "no experiment 'qqq'; wherry list experiments lists all"),
    (["bench", "nosuch"], "no experiment 'nosuch'; wherry list experiments lists all"),
    (["bnch"], "did you mean bench?"),
    (["bench", "--routine", "rep_mosb"], "did you mean rep_movsb?"),
    (["bench", "--routine", "wherry@avx3"], "no routine 'wherry@avx3'; did you mean wherry@avx2?"),
    (["verify", "wherry@avx512_lader"], "did you mean wherry@avx512_ladder?"),
    (["bench", "--routine", "libc@avx2"], "no routine 'libc@avx2'; did you mean libc?"),
    (["bench", "--routine", "wherry_memcpy"], "no routine 'wherry_memcpy'; did you mean wherry?"),
    (["bench", "--routine", "set_sse2"], "does not do"),
    (["bench", "--size", "0"], "not a positive number"),
    (["bench", "--size", "-1"], "not a positive number"),
    (["bench", "--size", "4X"], "not a size"),
    (["bench", "--size", "900000G"], "larger than this machine's memory"),
    (["bench", "--state", "L9"], "no cache state"),
    (["bench", "--peer", "x"], "NAME=PATH"),
    (["bench", "--peer", "x=/no/such.so"], "No such file"),
    (["bench", "--peer", "x=text.so"], "not an ELF"),
    (["bench", "--peer", "x=empty.so"], "has none of memcpy"),
    (["bench", "--peer", "x=other.so"], "AArch64"),
    (["bench", "--peer", "x=cut.so"], "is cut short, or damaged (1000 bytes of at least"),
    (["verify", "--peer", "x=cut.so"], "is cut short, or damaged (1000 bytes of at least"),
    (["bench", "--peer", "wherry=empty.so"], "taken"),
    (["bench", "--peer", "x\udcff=empty.so"], "x\\xff=empty.so': a NAME has printable"),
    (["verify", "--peer", "x\x1b=empty.so"], "x\\x1b=empty.so': a NAME has printable"),
    (["bench", "--peer", "tcp=empty.so"], "the name tcp is taken"),
    (["bench", "--peer", "all=empty.so"], "the name all is taken"),
    (["bench", "--peer", f"{'n' * 80}=empty.so"], "is longer than 79 bytes"),
    (["bench", "--pin", "4095"], "CPU 4095 is not there"),
    (["bench", "--save", "/dev/full"], "cannot save"),
    (["bench", "--save", "."], "directory"),
    (
        ["bench", "--op", "copy"],
        "sizes does not take --op; cells, handover, mixes, percentiles and scoreboard do",
    ),
    (["bench", "--show", "none.json"], "No such file"),
    (["bench", "--show", "text.so"], "is not a run file"),
    (["bench", "--show", "text.so", "--quick"], "leave out --quick"),
    (["bench", "--frobnicate"], "No such option"),
    (["exec", "--plan"], "requires an argument (wherry exec --help tells more)"),
    (["plan", "default", "-o"], "requires an argument (wherry plan default --help tells more)"),
    (["list", "routine"], "did you mean routines?"),
    (["verify", "rep_mosb"], "did you mean rep_movsb?"),
    (["verify", "--only-peers"], "no --peer"),
]


@pytest.mark.parametrize(("arguments", "said"), MISUSE, ids=[" ".join(a) for a, _ in MISUSE])
def test_misuse_is_answered_in_one_line(wherry, tmp_path, arguments, said):
    (tmp_path / "text.so").write_text(
        "hello, I am no library, and longer than an ELF header is: " * 3
    )
    if any(a.endswith(("=empty.so", "=other.so", "=cut.so")) for a in arguments):
        library = shared_object(tmp_path, "int nothing;")
        data = bytearray(library.read_bytes())
        (tmp_path / "cut.so").write_bytes(data[:1000])
        library.rename(tmp_path / "empty.so")
        data[18:20] = struct.pack("<H", 183)
        (tmp_path / "other.so").write_bytes(data)
    result = wherry(*arguments)
    assert result.returncode == 2, result.stdout + result.stderr
    assert said in result.stderr and result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert not list(tmp_path.glob("runs/*.json"))


@pytest.mark.parametrize(
    ("words", "said"), [(("bench", "--frobnicate"), "No such option"), (("fleet",), "")]
)
def test_click_of_debian_12_answers_misuse_as_well(words, said):
    """8.1, which has not all exceptions of later ones, is what pyproject.toml asks for."""
    lacking = (
        "import click; vars(click.exceptions).pop('NoArgsIsHelpError', None);"
        "from wherry.__main__ import main; main()"
    )
    command = [sys.executable, "-c", lacking, *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert said in done.stderr and done.stderr.count("\n") == bool(said)


def test_an_unexpected_error_is_one_line(wherry, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import wherry.runner\ndef broken():\n    raise ZeroDivisionError('oh')\nwherry.runner.routines = broken\n"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    result = wherry("list", "routines", env={"PYTHONPATH": path})
    assert result.returncode == 1 and result.stderr.count("\n") == 1
    assert "bug in Wherry" in result.stderr and "WHERRY_DEBUG=1" in result.stderr
    assert (
        "Traceback"
        in wherry("list", "routines", env={"PYTHONPATH": path, "WHERRY_DEBUG": "1"}).stderr
    )
    broken = (tmp_path / "sitecustomize.py").read_text()
    (tmp_path / "sitecustomize.py").write_text(broken.replace("ZeroDivisionError", "MemoryError"))
    result = wherry("list", "routines", env={"PYTHONPATH": path})
    assert result.returncode == 1 and result.stderr.count("\n") == 1
    assert "not enough memory" in result.stderr and "bug" not in result.stderr


def test_a_runner_that_is_not_there(wherry):
    result = wherry("list", "routines", env={"WHERRY_RUN": "/no/such/wherry-run"})
    assert (
        result.returncode == 2 and "WHERRY_RUN" in result.stderr and result.stderr.count("\n") == 1
    )


@pytest.mark.parametrize(
    "words",
    [
        ("bench", "sizes", "--save", ""),
        ("bench", "--resume", ""),
        ("report", "run.json", "-o", ""),
        ("plan", "show", ""),
        ("plan", "default", "-o", ""),
        ("fleet", "report", ""),
        ("record", "-o", "", "--", "true"),
        ("exec", "--plan", "", "--", "true"),
        ("exec", "--isa", "", "--", "true"),
        ("bench", "scoreboard", "--isa", ""),
        ("bench", "sizes", "--routine", ","),
        ("bench", "cells", "--size", " , "),
        ("bench", "--budget", ""),
        ("bench", "cells", "--huge", ""),
        ("bench", "cells", "--code", ","),
        ("bench", "cells", "--pin", ""),
    ],
)
def test_an_empty_name_is_misuse(wherry, words):
    result = wherry(*words)
    assert result.returncode == 2 and "is empty; was a variable not set?" in result.stderr
    assert result.stderr.count("\n") == 1 and not result.stdout


def test_a_program_may_have_empty_words(wherry):
    result = wherry("exec", "--", "printf", "%s-%s", "", "x")
    assert (result.returncode, result.stdout) == (0, "-x")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("glibc.foo.bar", None),
        ("glibc.bar", None),
        ("glibc.cpu.hwcap", "glibc.cpu.hwcaps"),
        ("cpu.hwcaps", "glibc.cpu.hwcaps"),
    ],
)
def test_a_hint_goes_by_what_names_do_not_share(name, meant):
    known = ("glibc.cpu.hwcaps", "glibc.gmon.minarcs", "glibc.rtld.nns", "glibc.malloc.check")
    said = str(unknown("tunable", name, known, "ld.so"))
    assert (f"did you mean {meant}?" if meant else "'; there are ") in said
    assert ("did you mean" in said) == (meant is not None)


def test_no_purpose_is_cut_short(wherry):
    for words in ((), ("fleet",), ("plan",)):
        assert "..." not in wherry(*words, "--help").stdout.replace("[ARGS]...", "")


@pytest.mark.parametrize("words", [("doctor",), ("plan", "check", "mine.toml")])
def test_a_runner_that_is_none_is_named(wherry, tmp_path, words):
    """Its silence is no word on the CPU, nor on a plan."""
    assert wherry("plan", "default", "-o", "mine.toml").returncode == 0
    done = wherry(*words, env={"WHERRY_RUN": "/bin/true"})
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("wherry: /bin/true says nothing of the CPU")


def test_the_directory_that_was_made_is_named(wherry, tmp_path):
    (tmp_path / "link.toml").symlink_to(tmp_path / "new" / "plan.toml")
    done = wherry("plan", "default", "-o", "link.toml")
    assert done.returncode == 0 and (tmp_path / "new" / "plan.toml").is_file()
    assert f"wherry: {tmp_path / 'new'} was no directory yet; it was made\n" in done.stderr
