"""`wherry bench cells`: products of options, their refusals, and what a run file says of how it was measured."""

import gzip
import json
import os
import re
import subprocess

import pytest
from conftest import without_randomisation
from wherry import stats
from wherry.errors import WherryError
from wherry.product import ALL_OPS, READS, Product
from wherry.rounds import Rounds, uncontrolled
from wherry.units import rate_label

TINY = ("--processes", "1", "--rounds", "2", "--seed", "7")


@pytest.fixture
def cells(wherry, tmp_path):
    """Runs it; returns the run file's content and what was printed."""

    def call(*args, env=None):
        path = tmp_path / "run.json"
        result = wherry("bench", "cells", *TINY, *args, "--save", path, env=env)
        assert result.returncode == 0, result.stderr
        return json.loads(path.read_text()), result.stdout

    return call


def test_every_combination_is_a_row_and_what_varies_a_column(cells):
    run, out = cells("--size", "64-256:x2", "--src-off", "0-16:8", "--mode", "throughput,latency")
    assert len(run["rows"]) == 3 * 3 * 2
    assert {(r["size"], r["src_off"], r["mode"]) for r in run["rows"]} == {
        (size, off, mode)
        for size in (64, 128, 256)
        for off in (0, 8, 16)
        for mode in ("throughput", "latency")
    }
    heads = out[out.index("cells: copy, in L1") :].splitlines()[1:3]
    assert "size" in heads[0] and "source" in heads[0] and "mode" in heads[0]
    assert "threads" not in heads[0] and heads[1].count("GB/s") == 2


def test_a_rate_is_a_number_of_as_many_figures():
    """Many threads in L1 have more than 1000 GB/s together."""
    shown = [rate_label(rate) for rate in (0.0333, 0.9996, 8.5, 36.0, 99.96, 101.4, 1638.4)]
    assert shown == ["0.033", "1.00", "8.50", "36.0", "100", "101", "1638"]


def test_dimensions_stand_in_the_file(cells):
    cpu = min(os.sched_getaffinity(0))
    run, _ = cells("--mix", "uniform:0-64", "--table", "256,64K", "--pin", str(cpu))
    assert [row["table"] for row in run["rows"]] == [256, 65536]
    assert run["experiments"][0]["cpus"] == [cpu] and run["method"]["pin"] == cpu
    run, _ = cells("--mix", "uniform:0-2K,LOG:1-1k", "--state", "L2")
    assert [row["mix"] for row in run["rows"]] == ["uniform:0-2048", "log:1-1024"]
    run, _ = cells("--size", "4K", "--delta", "any,0,2048", "--state", "L1,L2/L1", "--huge", "0,1")
    assert [row.get("delta") for row in run["rows"]][:6] == [None, None, 0, 0, 2048, 2048]
    assert {(r["src_state"], r["dst_state"]) for r in run["rows"]} == {("L1", "L1"), ("L2", "L1")}
    assert all(isinstance(r["huge_obtained"], bool) for r in run["rows"] if r["huge"])


def test_rows_on_several_cpus(cells):
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        pytest.skip("needs two CPUs")
    run, out = cells("--size", "64", "--pin", f"{usable[0]},{usable[1]}")
    assert [row["cpu"] for row in run["rows"]] == usable[:2]
    assert run["experiments"][0]["cpus"] == usable[:2] and "CPU" in out


def test_threads_show_what_they_share(cells):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two CPUs")
    run, out = cells("--size", "4K", "--threads", "1,2")
    both = [cell for cell in run["cells"] if cell["threads"] == 2]
    assert both and all(0 < cell["share"] <= 1 for cell in both)
    assert not any("share" in cell for cell in run["cells"] if cell["threads"] == 1)
    assert "of all threads together" in out and "share" in out


def test_a_set_has_one_state_and_counts_once(cells):
    run, _ = cells("--op", "set", "--size", "64", "--state", "L1,L2/L1,L2")
    assert [row["dst_state"] for row in run["rows"]] == ["L1", "L2"]


REFUSED = {
    "--src-off 9-3": "backward",
    "--src-off 4096": "0 to 4095",
    "--src-off -4": "0 to 4095",
    "--src-off 0-63:0": "0 to 4095",
    "--size 4K-64": "backward",
    "--size 0-64:x2": "factor",
    "--size 8 --mix uniform:0-8": "--size and --mix",
    "--table 64": "--mix",
    "--mix uniform:9-3": "LO-HI",
    "--mix log:0-3": "begins at 1",
    "--mix uniform:0-2G": "to 1 GiB",
    "--op move,copy --overlap 8": "--op move",
    "--op move --overlap 8 --state L1/L2": "one state",
    "--op move --overlap 8 --delta 3": "destination lies",
    "--delta 1 --dst-off 8": "destination lies",
    "--op set --delta 1": "no source",
    "--op zero --src-off 8": "no source",
    "--op csum --dst-off 8": "no destination",
    "--code cold --mode latency": "one of them",
    "--code cold --mode fresh": "one of them",
    "--mode fresh --op copy,set": "set has none",
    "--code cold --op csum": "not for csum",
    "--content dirty": "--op zero",
    "--op set --content zero": "no zeros",
    "--content zero": "give --op zero\n",
    "--op csum --content new": "writes nothing",
    "--op move --overlap 8 --content new": "where the source does",
    "--content new,dirty": "--op zero",
    "--places anywhere": "change, repeat",
    "--places change --src-off 3": "say where calls lie",
    "--places change --dst-off 3": "say where calls lie",
    "--places change --delta 3": "say where calls lie",
    "--op move --places change --overlap 3": "say where calls lie",
    "--places change --ascending both": "no --ascending",
    "--places change --handed source": "no --handed",
    "--op zero --places change --content dirty": "no --content",
    "--places change --size 4G": "below 4 GiB",
    "--places change --mix uniform:0-64 --table 64K,32K": "longer --table",
    "--ascending up": "none, source",
    "--op set --ascending both": "no source",
    "--op csum --ascending destination": "no destination",
    "--op move --overlap 8 --ascending destination": "where the source does",
    "--threads 100000": "as many as there are CPUs",
    "--threads none": "as many as there are CPUs",
    "--huge 2": "give numbers from 0 to 1, with commas between them\n",
    "--mode fast": "throughput",
    "--op bogus": "wherry list routines lists all",
    "--pin 0,4095": "not there",
    "--routine rep_stosb": "does not do copy",
    "--src-off 0-4095 --dst-off 0-4095": "narrow --src-off (4096 values) or --dst-off",
    "--size 1-64K": "larger step",
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_makes_no_sense_is_one_line(wherry, words):
    result = wherry("bench", "cells", *words.split())
    assert result.returncode == 2, result.stdout
    assert REFUSED[words] in result.stderr and result.stderr.count("\n") == 1


@pytest.mark.parametrize("words", ["--places change", "--src-off 3", "--dst-off 3", "--delta 3"])
def test_a_mix_whose_moves_overlap_says_where_they_lie(wherry, tmp_path, words):
    mix = tmp_path / "mix"
    mix.write_text("8:1\n0:1,1:1\n")
    call = ("bench", "cells", *TINY, "--mix", mix, "--routine", "rep_movsb", *words.split())
    result = wherry(*call, "--op", "copy,move", "--save", tmp_path / "run.json")
    assert result.returncode == 2 and result.stderr.count("\n") == 1
    assert "--mix mix says where each call lies" in result.stderr
    # Copies never overlap.
    assert wherry(*call, "--op", "copy", "--save", tmp_path / "run.json").returncode == 0


def test_the_help_tells_the_contents_of_each_op(wherry):
    """As many are taken, and no others; what is taken of no op has no place there."""
    said = " ".join(wherry("bench", "--help").stdout.split())
    (words,) = re.findall(r"finds in its destination: any; (.*?); all that write: new", said)
    told = {
        (op, content)
        for ops, contents in (part.split(": ") for part in words.split("; "))
        for op in ops.split(", ")
        for content in contents.split(", ")
    }

    def taken(op: str, content: str) -> bool:
        try:
            Product(ops=(op,), contents=(content,), sizes=(64,)).check([("L1", "L1")])
        except WherryError:
            return False
        return True

    assert told == {(o, c) for o in ALL_OPS for c in ("dirty", "zero") if taken(o, c)}
    reading = {op for op in ALL_OPS if not taken(op, "new")}
    assert reading == {*READS, "iszero"}


def test_absurd_products_tell_how_many_and_how_long(wherry):
    result = wherry("bench", "cells", "--src-off", "0-4095", "--dst-off", "0-4095")
    assert "201,326,592 cells" in result.stderr or "33,554,432 cells" in result.stderr
    assert "hours" in result.stderr


def test_the_options_are_of_cells_alone(wherry):
    result = wherry("bench", "sizes", "--delta", "5")
    assert result.returncode == 2 and "sizes does not take --delta; cells does" in result.stderr
    result = wherry("bench", "cells", "sizes")
    assert result.returncode == 2 and "ask for cells alone" in result.stderr
    result = wherry("bench", "sizes", "--pin", "0,1")
    assert result.returncode == 2


# ---- what a run says of how it was measured --------------------------------------------------------------------------


def test_raw_holds_every_round_with_the_voided_ones_marked(wherry, tmp_path):
    path = tmp_path / "run.json"
    options = ("--size", "64", "--processes", "3", "--rounds", "5", "--raw", "--save", path)
    assert wherry("bench", "cells", *options).returncode == 0
    run = json.loads(path.read_text())
    raw = json.loads(gzip.decompress(path.with_name("run.json.raw.json.gz").read_bytes()))
    assert {sample["process"] for sample in raw["samples"]} == {0, 1, 2}
    tried = 0
    for sample in raw["samples"]:
        assert len(sample["tried"]) == len(sample["voided"]) >= 5
        kept = [ns for ns, why in zip(sample["tried"], sample["voided"], strict=True) if not why]
        if len(kept) >= 3 or len(kept) == 5:
            assert sample["ns"] == kept
        if sample["routine"] == "libc" and not sample["aa"]:
            tried += len(sample["tried"])
    own = run["experiments"][0]
    assert tried == own["tried"]
    # Processes left out as slow have no round in `ns`; all others are counted by reason.
    voided = sum(
        sum(why is not None for why in sample["voided"])
        for sample in raw["samples"]
        if sample["routine"] == "libc" and not sample["aa"]
    )
    assert voided == sum(own["voided"].values())


def test_the_course_of_the_clock_is_recorded(cells):
    run, _ = cells("--size", "64")
    core = run["experiments"][0]["pace"]["core"]
    assert 1 <= core["median"] <= core["worst"] and 0 <= core["share_above"] <= 1
    assert len(core["by_process"]) == 1 and core["best_ns"] > 0


def test_the_course_is_told_against_the_best_of_the_campaign():
    """Of all processes; what nobody read is not told."""
    rounds = Rounds()
    for process, cores in enumerate(([200.0, 206.0, 250.0], [210.0, 204.0], [])):
        rounds.begin(
            process, {"cpu": 3 - process, "counters": {"set": "core"} if process else None}
        )
        rounds.end_row(process, 0, {"cores": cores, "memories": [0.0] * len(cores)})
    own = rounds.record()
    assert own["tried"] == 5 and own["cpus"] == [1, 2, 3] and own["counters"] == {"set": "core"}
    assert own["pace"] == {
        "core": {
            "best_ns": 200.0,
            "median": 1.03,
            "worst": 1.25,
            "above": 1.03,
            "share_above": 0.4,
            "by_process": [1.03, 1.035],
        }
    }
    assert Rounds().record() == {}


def test_verdicts_tell_how_they_were_corrected(cells):
    run, _ = cells("--size", "64,128,256")
    own = run["experiments"][0]["correction"]
    assert own["method"] == "Benjamini-Hochberg" and own["comparisons"] == 3
    assert "one process" in own["test"]
    for cell in run["cells"]:
        if cell["ratio"]:
            assert cell["ratio"]["p"] <= cell["ratio"]["p_corrected"] <= 1
            median, low = cell["ratio"]["median"], cell["ratio"]["low"]
            if "verdict" not in cell:  # two rounds on a busy machine may tell nothing
                assert low is None or not 1 / stats.FAR < median < stats.FAR
                continue
            assert cell["verdict"] in ("faster", "slower", "tie")
            if cell["ratio"]["p_corrected"] >= own["level"]:
                assert cell["verdict"] == "tie"


def test_the_runners_own_routines_are_no_nearer_than_others(wherry, tmp_path):
    path = tmp_path / "run.json"
    options = ("--size", "64", "--rounds", "2", "--processes", "2", "--save", path)
    assert wherry("bench", "cells", *options).returncode == 0
    assert json.loads(path.read_text())["experiments"][0]["apart"] is True


@pytest.mark.parametrize(
    ("apart", "noted"), [((True, True), False), ((True, False), True), ((), False)]
)
def test_routines_that_are_nearer_are_named(apart, noted):
    rounds = Rounds()
    for process, own in enumerate(apart):
        rounds.begin(process, {"apart": own})
    found = uncontrolled({"name": "cells", **rounds.record()})
    assert [n["what"] for n in found] == ["Wherry called from nearby"] * noted


def test_address_randomisation_is_looked_at_in_the_runner(wherry, wherry_run, tmp_path):
    path = tmp_path / "run.json"
    options = ("--size", "64", "--rounds", "2", "--processes", "3", "--save", path)
    assert wherry("bench", "cells", *options).returncode == 0
    own = json.loads(path.read_text())["experiments"][0]["randomisation"]
    if not own["on"]:
        pytest.skip("address randomisation is off on this machine")
    assert own == {"on": True, "processes": 3, "layouts": 3}

    result = wherry("bench", "cells", *options, preexec_fn=without_randomisation)
    run = json.loads(path.read_text())
    assert run["experiments"][0]["randomisation"] == {"on": False, "processes": 3, "layouts": 1}
    assert any(n["what"] == "address randomisation off" for n in run["machine"]["uncontrolled"])
    shown = wherry("bench", "--show", path).stdout
    assert "address randomisation off" in " ".join(shown.split())
    assert result.returncode == 0


def test_software_events_are_counted_everywhere(cells):
    """The same code as for the processor's, with events that a virtual machine has too."""
    env = {"WHERRY_COUNTERS": "software"}
    calm, tries = [], 0
    while not calm and tries < 12:
        run, out = cells("--size", "8K", "--routine", "rep_movsb", "--counters", env=env)
        own = run["experiments"][0]["counters"]
        if not own["events"]:
            pytest.skip(f"perf events: {own['reason']}")
        assert own["set"] == "software" and "task_clock" in own["events"]
        assert "task clock, ns" in out
        # Where the thread waited for its turn its own clock stood still, and ours went on.
        for cell in run["cells"]:
            assert 0 < cell["counters"]["task_clock"] < cell["ns"]["median"] * 1.25
        calm = [cell for cell in run["cells"] if not cell["disturbed"]]
        tries += 1
    assert calm
    for cell in calm:
        # The kernel's clock of the thread and ours agree about the same calls.
        assert cell["counters"]["task_clock"] == pytest.approx(cell["ns"]["median"], rel=0.25)
        assert cell["counters"]["migrations"] == 0


def test_counters_that_are_not_to_be_had_are_absent_with_the_reason(cells):
    run, out = cells("--size", "64", "--counters")
    own = run["experiments"][0]["counters"]
    if own["events"]:
        assert all("counters" in cell for cell in run["cells"])
        assert "cycles" in out
    else:
        assert own["reason"] and not any("counters" in cell for cell in run["cells"])
        assert "no hardware counters here: cycles" in " ".join(out.split())


def test_counters_refused_by_the_system(wherry_run):
    """One file descriptor and no more: a refusal that can be had on every machine."""

    def few_files():
        import resource

        resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))

    done = subprocess.run(
        [wherry_run, "measure", "--counters", "software"],
        input="",
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=few_files,
    )
    start = json.loads(done.stdout.splitlines()[0])
    if not start["counters"]["events"]:
        pytest.skip(f"perf events: {start['counters']['reason']}")
    assert start["counters"]["events"] == ["task_clock"]
    assert start["counters"]["reason"] == "page_faults: Too many open files"


def test_unknown_counters_are_misuse(wherry, wherry_run):
    done = subprocess.run(
        [wherry_run, "measure", "--counters", "all"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "hardware, software or none" in done.stderr
    result = wherry("bench", "cells", env={"WHERRY_COUNTERS": "all"})
    assert result.returncode == 2 and "WHERRY_COUNTERS=all" in result.stderr


def test_the_help_names_the_experiments_that_heed_an_option():
    from wherry import experiments
    from wherry.cli.bench import command

    keys = {"no_found_peers": "found"}
    told = 0
    for option in command.params:
        head = re.match(r"((?:[a-z]+, )*[a-z]+): ", getattr(option, "help", None) or "")
        if head and option.name != "pin":
            key = keys.get(option.name, option.name)
            heed = {own.name for own in experiments.load_all() if key in own.takes}
            assert set(head[1].split(", ")) == heed, option.name
            told += 1
    assert told >= 8


def test_why_nothing_was_measured_is_told_of_each_routine(wherry, tmp_path):
    """A routine that this CPU lacks is not why the others are not measured."""
    result = wherry(
        *("bench", "cells", *TINY, "--op", "pagezero", "--size", "4K", "--content", "zero"),
        *("--save", tmp_path / "run.json"),
    )
    assert result.returncode == 1 and "nothing could be measured" in result.stderr
    assert "its content lasts for one pass" in result.stderr
