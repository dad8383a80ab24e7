"""What `wherry record` times inside a program, what it notes of order and places, and what it tries there."""

from __future__ import annotations

import ctypes
import itertools
import os
import re
import signal
import time
import types
from pathlib import Path

import pytest
from conftest import need_tool, run
from test_record import Recorded, known, record, recorded, recorder
from wherry import ceiling
from wherry.recording import blocks, rehearsal

__all__ = ["known", "record", "recorded", "recorder"]  # fixtures


def test_time_classes_join():
    for index in range(1, blocks.TIME_CLASSES):
        assert blocks.time_range(index)[0] == blocks.time_range(index - 1)[1] + 1


def test_some_calls_are_timed(recorded):
    found = recorded("times", "200000")
    (row,) = [row for row in found.merger.times()["copy"] if row[0] <= 700 <= row[1]]
    _, _, calls, size, ticks, faults, fault_ticks, late, *places = row
    # One in 61, outside of the sampled sequences.
    assert 200000 / 61 / 4 < calls + late + faults < 200000 / 30
    assert size == 700 * calls
    assert ticks > calls
    assert (faults == 0) == (fault_ticks == 0)
    assert sum(places) == 0  # looked for from 1 KiB on
    assert found.merger.trials() == {"copy": [], "move": [], "set": []}


def test_nothing_is_timed_among_the_calls(recorded):
    found = recorded("times", "200000")
    (row,) = [row for row in found.merger.times()["copy"] if row[0] <= 700 <= row[1]]
    (block,) = [own for process in found.processes for own in process.blocks]
    # Behind one in eight; what was interrupted is left out.
    assert (
        row[2] / 8 / 2
        < block["nothings"]
        <= sum(row[2] / 8 + 1 for op in found.merger.times().values() for row in op)
    )
    # It is less than a copy takes that is timed in the same way.
    assert 1 < found.merger.nothing() < row[4] / row[2]


def test_too_few_tell_no_pace(recorded):
    found = recorded("times", "600")
    assert found.merger.nothing() is None
    assert rehearsal.pace(found.merger, {"nothing": 60.0}) == 1.0


@pytest.mark.parametrize(
    ("nothing", "pace"), [(60.0, 1.0), (90.0, 1.5), (45.0, 0.75), (6000.0, 4.0), (1.0, 0.25)]
)
def test_what_timing_adds_has_the_pace_of_the_run(nothing, pace):
    """A slow processor makes small calls no dearer than they were."""
    merger = types.SimpleNamespace(nothing=lambda: nothing)
    rehearsed = {"ticks_per_ns": 2.0, "nothing": 60.0, "copy": {"4": 70.0}}
    assert rehearsal.pace(merger, rehearsed) == pytest.approx(pace)
    costs = {kind: {"copy": {"4": 2.0, "8": 2.0}} for kind in ("hot", "repeated", "cold")}
    timed = [[4, 5, 100, 500, round(100 * 72 * pace), 0, 0, 0, *[0] * 9]]
    (row,) = rehearsal.rows(timed, "copy", rehearsed, costs, pace)
    assert row[5] == pytest.approx(100 * (35 - 2) * pace, abs=0.1)
    ops = {"copy": {"sizes": [[4, 4, 1000, 4000]], "times": [row]}}
    found = ceiling.of(ops, 1.0, costs, pace=pace)
    # 36 ns less the 33 that timing adds, in the rehearsal.
    assert found["likely_s"] == pytest.approx(1000 * 3e-9 * pace, rel=0.02)
    assert found["pace"] == pytest.approx(pace)


def test_a_rehearsal_is_many_and_the_fastest_counts(monkeypatch):
    """Each is as fast as it is in all that it times."""
    one = {str(1 << n): 70.0 for n in range(12)}
    slow = iter([1.0, 1.4, 1.0, 1.2, 1.3] * 3)

    def once() -> dict:
        factor = next(slow)
        classes = {least: ticks * factor for least, ticks in one.items()}
        return {"ticks_per_ns": 2.0, "nothing": 60.0 * factor} | dict.fromkeys(ceiling.OPS, classes)

    monkeypatch.setattr(rehearsal, "_once", once)
    found = rehearsal._measure()
    assert found["nothing"] == 60.0 and rehearsal._good(found)
    assert all(found[op] == pytest.approx(one) for op in ceiling.OPS)


def test_pages_that_are_not_there_are_told_apart(recorded):
    def of(mode: str) -> tuple[int, int, int]:
        (row,) = [r for r in recorded(mode, "7000").merger.times()["copy"] if r[0] == 8192]
        return row[2], row[5], sum(row[8:])

    calls, faults, looked = of("fresh")
    # Two or three pages a call, of which the one before has touched one at times; by how long they take, so about.
    assert calls / 4 < faults <= 3 * calls
    assert 0 < looked <= calls
    # The files of both runs are there then.
    again, there, _ = of("ascending")
    assert again > calls and (there - faults) / (again - calls) < faults / calls / 4


@pytest.mark.parametrize(("mode", "ascends"), [("ascending", True), ("scattered", False)])
def test_calls_that_go_on_where_one_was(recorded, mode: str, ascends: bool):
    (row,) = [r for r in recorded(mode, "20000").ops["copy"]["order"] if r[0] == 8192]
    _, calls, source, destination = row
    assert 300 < calls <= 20000
    assert source == calls  # the same again and again
    assert destination > 0.95 * calls if ascends else destination < 0.1 * calls


@pytest.fixture
def trial(recorder, build_dir, known, tmp_path):
    """A run under the recorder with the drop-in behind it, to be tried."""

    def call(*arguments: str, tries: bool = True) -> Recorded:
        dropin = build_dir / "preload/libwherry-dropin.so"
        more = {"WHERRY_TRIAL": "1"} if tries else {}
        return Recorded(f"{recorder}:{dropin}", tmp_path / "parts", known, *arguments, more=more)

    return call


def test_a_trial_gives_both_their_turns(trial):
    found = trial("ascending", "100000")
    assert found.count(8192, exact=False) == 100000
    (row,) = [r for r in found.merger.trials()["copy"] if r[0] == 8192]
    for calls, ticks in row[2:]:
        assert len(calls) == len(ticks) == blocks.TRIAL_GROUPS
        assert sum(calls) > 50
        assert sum(ticks) > sum(calls)
    # What tells of the program without a trial is of libc's calls alone.
    (own,) = [r for r in found.merger.times()["copy"] if r[0] == 8192]
    assert own[2] > 20


@pytest.mark.parametrize(
    "mode", ["names", "sizes", "places", "fork", "vfork", "threads", "signals"]
)
def test_a_trial_changes_no_result(trial, known, mode: str):
    assert trial(mode, "8").done.stdout == run(known, mode, "8").stdout


def test_what_lies_behind_is_not_tried_unasked(trial):
    assert not any(trial("ascending", "20000", tries=False).merger.trials().values())


@pytest.mark.parametrize("library", ["relay", "relay-sealed"])
def test_calls_within_what_is_tried_are_not_the_programs(
    recorder, build_dir, known, tmp_path, library: str
):
    """They would be counted in its turns alone, and make it seem to come twice as far there."""
    relay = build_dir / f"tests/c/recorder/librecorder-{library}.so"

    def calls(home: str, preloaded: str, more: dict) -> dict:
        found = Recorded(preloaded, tmp_path / home, known, "ascending", "100000", more=more)
        return {op: part["functions"] for op, part in found.ops.items()}

    alone = calls("alone", str(recorder), {})
    assert calls("tried", f"{recorder}:{relay}", {"WHERRY_TRIAL": "1"}) == alone


def test_a_library_whose_headers_are_elsewhere_is_tried_as_it_is(
    recorder, build_dir, known, tmp_path
):
    """Nothing is read where they are looked for; what it calls of its own is counted."""
    relay = build_dir / "tests/c/recorder/librecorder-relay-apart.so"
    found = Recorded(
        f"{recorder}:{relay}",
        tmp_path / "tried",
        known,
        "ascending",
        "100000",
        more={"WHERRY_TRIAL": "1"},
    )
    assert found.ops["copy"]["functions"]["memcpy"] == 100_000


# --- the command ----------------------------------------------------------------------------------
def test_record_tries_the_drop_in(record, known, wherry, tmp_path):
    done, mix = record("--", known, "ascending", "100000")
    assert done.returncode == 0
    words = " ".join(done.stderr.split())
    assert re.search(r"without page faults, by [\d,]+ timed calls: even a free memcpy", words)
    assert re.search(
        r"calls of more than 1 KiB took [\d.]+ times as long with the drop-in as with libc: "
        r"\S+ % \[\S+, \S+\] of this run, had they",
        words,
    )
    assert mix["trial"]["routines"] == "dropin" and mix["trial"]["plan"] == "default"
    (row,) = [r for r in mix["ops"]["copy"]["times"] if r[0] == 8192]
    assert row[2] > 0 and row[4] >= row[5] >= 0 and len(row[9]) == 9
    assert mix["ceiling"]["timed"] >= row[2]
    # The other way round: nothing tried, and all that there is with libc.
    done, mix = record("--no-trial", "--", known, "ascending", "100000")
    assert "trial" not in mix and " trial " not in done.stderr
    assert mix["ops"]["copy"]["times"]
    assert wherry("plan", "default", "-o", tmp_path / "mine.toml").returncode == 0
    done, mix = record("--plan", "mine.toml", "--", known, "ascending", "100000")
    assert "with the drop-in and this plan" in " ".join(done.stderr.split())
    assert re.fullmatch("[0-9a-f]{64}", mix["trial"]["plan"])


def test_several_runs_are_one_mix(record, known, tmp_path):
    prepare = f"echo x >> {tmp_path / 'prepared'}"
    words = ("--runs", "3", "--prepare", prepare, "--", known, "ascending", "50000")
    done, mix = record(*words)
    assert done.returncode == 0 and done.stdout == "done\n" * 3
    assert "of 3 runs; exit status 0" in " ".join(done.stderr.split())
    assert (tmp_path / "prepared").read_text() == "x\n" * 3
    assert mix["run"]["runs"] == mix["run"]["processes"] == 3
    calls = sum(r[2] for r in mix["ops"]["copy"]["sizes"] if r[0] <= 8192 <= r[1])
    assert calls == 3 * 50000
    # Each run is a group of its own; there are six.
    (row,) = [r for r in mix["trial"]["ops"]["copy"] if r[0] == 8192]
    for calls in (row[2], row[4]):
        assert all(calls[:3]) and not any(calls[3:])


def test_runs_end_with_one_that_fails(record):
    done, mix = record("--no-ceiling", "--runs", "3", "--", "sh", "-c", "exit 5")
    assert done.returncode == mix["run"]["exit"] == 5
    assert mix["run"]["runs"] == 1
    assert "run 1 of 3 failed" in done.stderr
    done, mix = record("--runs", "2", "--prepare", "echo no >&2; false", "--", "true")
    assert done.returncode == 1 and "--prepare ended with status 1: no; mend it" in done.stderr
    done, mix = record("--prepare", "kill -KILL $$", "--", "true")
    assert done.returncode == 1 and "--prepare was ended by SIGKILL; mend it" in done.stderr
    done, _ = record("--unseen", "--runs", "2", "--", "true")
    assert done.returncode == 2 and "leave out --runs" in done.stderr


def test_what_prepare_leaves_running_is_not_waited_for(record, tmp_path):
    """As a server is, whose client is recorded."""
    prepare = f"sleep 600 & echo $! > {tmp_path / 'pid'}"
    try:
        done, mix = record("--no-ceiling", "--prepare", prepare, "--", "true")
        assert done.returncode == 0 and mix["run"]["exit"] == 0
        os.kill(int((tmp_path / "pid").read_text()), 0)
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


@pytest.mark.parametrize("other", ["--no-trial", "--no-ceiling", "--unseen"])
def test_a_plan_is_of_the_trial(record, other: str):
    done, mix = record(other, "--plan", "mine.toml", "--", "true")
    assert done.returncode == 2
    assert f"which {other} leaves out" in done.stderr
    assert mix is None


def test_a_plan_that_is_not_there(record):
    done, mix = record("--plan", "gone.toml", "--", "true")
    assert (done.returncode, mix) == (2, None)
    assert "gone.toml: there is no such file" in done.stderr


def test_what_timing_adds_is_not_known(monkeypatch, capsys):
    """The mix is written all the same, by sizes alone."""
    from wherry import ceiling
    from wherry.errors import FailedError
    from wherry.recording import rehearsal, running, writing
    from wherry.recording.merge import Merger

    def fails(begins):
        raise FailedError("no clock")

    flat = {op: {"0": 2.0, "4096": 2.0} for op in ceiling.OPS}
    monkeypatch.setattr(
        ceiling, "costs", lambda begins: {"hot": flat, "repeated": flat, "cold": flat}
    )
    monkeypatch.setattr(rehearsal, "hot", fails)
    ops = {"copy": {"sizes": [[10, 10, 1000, 10000]]}}
    ran = running.Ran(0, 0, 1.0, 0.9, 0.1, {}, 0)
    found, more = writing._ceiling(ops, Merger(), ran, "default")
    assert found["timed"] == 0 and found["likely_s"] == pytest.approx(2e-6)
    assert more == {} and "times" not in ops["copy"]
    assert "what was timed is left out: no clock" in capsys.readouterr().err


# --- what the ceiling is of -----------------------------------------------------------------------
FLAT = {op: {"0": 2.0, "4096": 2.0} for op in ("copy", "move", "set")}


def ceiling_of(sizes: list, times: list, cpu_s: float, system_s: float = 0.0, hot: dict = FLAT):
    from wherry import ceiling

    ops = {"copy": {"sizes": sizes, "times": times}}
    return ceiling.of(ops, cpu_s, {"hot": hot, "repeated": hot, "cold": FLAT}, system_s)


def test_no_call_takes_longer_than_it_took():
    """What was measured of warm memory, once and maybe beside other work, tells less than what was timed."""
    slow = {op: {"0": 2.0, "16777216": 9e6} for op in FLAT}
    times = [[12582912, 16777215, 100, 1600000000, 1e8, 1e3, 0, 0.0, 0, [0] * 9]]
    found = ceiling_of([[15728640, 16252927, 200, 3200000000]], times, 1.0, hot=slow)
    assert found["likely_s"] == pytest.approx(0.2, rel=0.01)


def test_a_ceiling_is_not_above_the_run():
    times = [[12582912, 16777215, 100, 1600000000, 1e8, 1e3, 0, 0.0, 0, [0] * 9]]
    found = ceiling_of([[15728640, 16252927, 200, 3200000000]], times, 0.1)
    assert found["likely_s"] == found["at_most_s"] == 0.1 and found["at_most"] == 1
    assert sum(part["at_most_s"] for part in found["parts"]) == pytest.approx(0.1)
    # Nor is what nobody recorded, though that was seen of all the run, what a trial added to it too.
    assert ceiling.of({}, 0.1, {}, unrecorded_s=0.2)["unrecorded_s"] == 0.1


def test_few_large_calls_may_be_all_that_the_kernel_did():
    """With two calls timed, of pages that were there, those that were not timed may have met new ones."""
    times = [[1 << 24, (1 << 24) + 9, 2, 2 << 24, 4e6, 10.0, 0, 0.0, 0, [0] * 9]]
    sizes = [[1 << 24, (1 << 24) + 9, 3, 3 << 24]]
    assert ceiling_of(sizes, times, 1.0, 0.9)["at_most"] > 0.9
    assert ceiling_of(sizes, [], 1.0, 0.9)["at_most"] > 0.9
    # Not so of small ones, of which there are some in every program.
    assert ceiling_of([[700, 700, 3, 2100]], [], 1.0, 0.9)["at_most"] < 0.1
    many = [[1 << 24, (1 << 24) + 9, 20, 20 << 24, 4e7, 10.0, 0, 0.0, 0, [0] * 9]]
    assert ceiling_of([[1 << 24, (1 << 24) + 9, 20, 20 << 24]], many, 1.0, 0.9)["at_most"] < 0.1


def test_a_run_of_copies_alone_is_not_blamed_on_few_calls():
    """What was timed of a program that only copies may come to the whole run: an interrupt or two among a hundred calls
    do that. Of its calls enough is known all the same."""
    from wherry.recording.summary import ceiling_in_words

    sizes = [[8192, 8703, 100000, 819200000]]
    known = ceiling_of(
        sizes, [[8192, 12287, 124, 1015808, 155000, 4700, 0, 0.0, 0, [0] * 9]], 0.124
    )
    assert known["at_most"] == 1 and "few_timed" not in known
    assert ceiling_in_words(known).endswith(
        "124 timed calls: even a free memcpy could gain no more"
    )
    # Of two calls in a hundred thousand not.
    guessed = ceiling_of(sizes, [[8192, 12287, 2, 16384, 2500, 76, 0, 0.0, 0, [0] * 9]], 0.124)
    assert guessed["at_most"] == 1 and guessed["few_timed"] is True
    assert "too little is known of its largest calls" in ceiling_in_words(guessed)


def test_a_ceiling_of_small_calls_is_no_bound():
    """An empty memcpy saved 2.8 ns of a call of 150 bytes where timing told of 0.8 to 2.3 at most."""
    from wherry.recording.summary import ceiling_in_words

    sizes, row = [[150, 150, 10000000, 1500000000]], [128, 191, 9000, 1350000, 1.2e6, 1.19e6]
    ceiling = ceiling_of(sizes, [[*row, 0, 0.0, 0, [0] * 9]], 0.06)
    said = "of calls this small that is known within a factor of three"
    assert ceiling["at_most"] > 0.1 and said in ceiling_in_words(ceiling)
    # Of a run that does more than a hundred times as much it makes no difference.
    assert ceiling_in_words({**ceiling, "at_most": 0.001}).endswith("could gain no more")


def test_what_was_not_recorded_is_in_no_ceiling(record, build_dir):
    static = build_dir / "tests/c/recorder/recorder-static"
    done, mix = record("--", static, "times", "1000")
    assert mix["ceiling"] is None
    assert "free memcpy" not in done.stderr and "next:" not in done.stderr
    done, mix = record("--", "sh", "-c", f"{static} times 30000000; ls /; true")
    assert mix["ceiling"]["incomplete"] is True
    words = " ".join(done.stderr.split())
    assert "may copy too" in words and "free memcpy" not in words


def test_inherited_descriptors_stay_open(record, tmp_path):
    (tmp_path / "given").write_text("from outside\n")
    with (tmp_path / "given").open() as given:
        words = ("cat", f"/dev/fd/{given.fileno()}")
        done, _ = record("--no-ceiling", "--", *words, pass_fds=[given.fileno()])
    assert done.stdout == "from outside\n"


def test_programs_that_would_not_run_run_untouched(record, tmp_path):
    source = tmp_path / "source.c"
    source.write_text('#include <stdio.h>\nint main(void) { return puts("ran") < 0; }\n')
    gcc = need_tool("gcc", "gcc")
    run(gcc, "-fsanitize=address", source, "-o", tmp_path / "checked")
    done, mix = record("--", tmp_path / "checked")
    if "ran" not in run(tmp_path / "checked", check=False).stdout:
        pytest.skip("a program with AddressSanitizer does not run here")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "it runs untouched" in done.stderr and "does not come first" not in done.stderr
    assert mix["run"]["unrecorded"] or mix["ops"] == {}


def test_children_with_a_sanitizer_inherit_the_recorder(record, tmp_path):
    """What docs/record.md says of them, and the way out that it names."""
    source = tmp_path / "source.c"
    source.write_text('#include <stdio.h>\nint main(void) { return puts("ran") < 0; }\n')
    child = tmp_path / "checked"
    run(need_tool("gcc", "gcc"), "-fsanitize=address", source, "-o", child)
    if "ran" not in run(child, check=False).stdout:
        pytest.skip("a program with AddressSanitizer does not run here")
    done, _ = record("--no-ceiling", "--", "sh", "-c", f"{child}; echo $?")
    assert done.stdout == "1\n" and "ASan runtime does not come first" in done.stderr
    done, _ = record("--no-ceiling", "--", "sh", "-c", f"env -u LD_PRELOAD {child}; echo $?")
    assert done.stdout == "ran\n0\n" and "ASan runtime" not in done.stderr


def test_words_that_are_no_text_are_kept_as_far_as_they_are(record):
    done, mix = record("--no-ceiling", "--note", "a\udcff", "--", "true")
    assert done.returncode == 0, done.stderr
    assert mix["how"]["note"].startswith("a")


def test_what_counting_took_is_not_the_programs(record, known):
    """Of a program that does nothing but copy a good part is the recorder's."""
    done, mix = record("--no-trial", "--", known, "times", "20000000")
    assert done.returncode == 0, done.stderr
    run, own = mix["run"], mix["ceiling"]["cpu_s"]
    assert 0.2 < own / (run["user_s"] + run["system_s"]) < 0.95
    assert "of processor time of its own" in done.stderr


def test_what_passes_while_others_run_did_not_go_into_counting(record, known):
    """Else a run beside others seems to be hardly its own, and its copies most of it."""
    done, mix = record("--no-trial", "--", known, "dozing", "20000000")
    assert done.returncode == 0, done.stderr
    run, own = mix["run"], mix["ceiling"]["cpu_s"]
    assert run["elapsed_s"] > 2 * run["user_s"]  # it did sleep
    # The least that is ever told is a fourth.
    assert 0.3 < own / (run["user_s"] + run["system_s"]) < 0.95


def test_of_counting_more_is_told_than_was_there():
    """The clock of the processor runs on while another program has it."""
    from wherry.recording.merge import Merger
    from wherry.recording.writing import LEAST_OWN_SHARE, own_share

    merger = Merger()
    assert own_share(merger, 1.0, 2.0) == 1.0
    merger.aside = 1_000_000_000
    assert own_share(merger, 2.0, 2.0) == 0.75
    assert own_share(merger, 0.1, 2.0) == LEAST_OWN_SHARE
    assert own_share(merger, 0.0, 2.0) == 1.0


def test_a_run_without_a_copy_proves_nothing():
    """It may have run without the recorder: behind another root, or as a user who may not read it."""
    from wherry.recording.summary import ceiling_in_words

    none = {"cpu_s": 0.006, "at_most": 0.0, "at_most_s": 0.0, "likely": 0.0, "likely_s": 0.0}
    assert "could gain no more" not in ceiling_in_words(none)
    assert "no copy was recorded" in ceiling_in_words(none)


@pytest.fixture
def sleepy(recorder, build_dir, known, tmp_path):
    """Copies of 2 MiB of which, after the first, every second gives the processor away."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "__rseq_size") or not ctypes.c_uint.in_dll(libc, "__rseq_size").value:
        pytest.skip(
            "no restartable sequences: give glibc 2.35 or newer, and a kernel with CONFIG_RSEQ"
        )
    runs = itertools.count()

    def call(*tried: Path) -> list:
        preloaded = [recorder, *tried, build_dir / "tests/c/recorder/librecorder-sleepy.so"]
        home, more = tmp_path / f"parts{next(runs)}", {"WHERRY_TRIAL": "1"} if tried else {}
        found = Recorded(":".join(map(str, preloaded)), home, known, "large", "1200", more=more)
        rows = found.merger.trials() if tried else found.merger.times()
        (row,) = [row for row in rows["copy"] if row[0] == 2 << 20]
        return row

    return call


def test_calls_in_which_others_ran_are_left_out(sleepy):
    """How long they take does not tell; the kernel does."""
    row = sleepy()
    calls, late = row[2], row[7]
    assert calls + late == 1200 and 400 <= late < 1192


def test_a_trial_leaves_out_calls_in_which_others_ran(sleepy, build_dir):
    """In one of the runs of half a minute at least, since on a busy machine the others take longer, too. With those
    that sleep libc's take 10 to 22 times as long as the drop-in's (Zen 5)."""
    ratios: list[float] = []
    end = time.monotonic() + 30
    while not ratios or (ratios[-1] >= 2.5 and time.monotonic() < end):
        time.sleep(min(len(ratios), 3))
        row = sleepy(build_dir / "preload/libwherry-dropin.so")
        usual, own = (sum(ticks) / sum(calls) for calls, ticks in row[2:])
        ratios.append(usual / own)
    assert ratios[-1] < 2.5, ratios
