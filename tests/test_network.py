"""The experiment `network`: every way carries what was sent, wrong bytes and wrong checksums are found, bad rows are
refused, what is missing is named with its package, and neither processes nor namespaces are left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from conftest import ROOT, below, is_there, need_root, need_tool, run, wait_until
from systems import system
from wherry import runfile, then
from wherry.experiments import Request
from wherry.experiments.network import EXPERIMENT
from wherry.networking.words import FRAMES, KERNEL_WAYS, SIZES

KERNEL = "routines=aligned,misaligned rounds=2 calls=40"
WAYS = ["loopback", "veth", "veth offload=off"]
# A stack that has no network in it: what it does to its bytes is told by FAULT.
FAKE = """
#include "stack.h"
static struct stack_hooks hooks;
static uint16_t sum(const void *p, int n) { (void)p; (void)n; return 0; }
static uint16_t copy_sum(void *d, const void *s, uint16_t n) { (void)d; (void)s; (void)n; return 0; }
static void hook(const struct stack_hooks *given) { hooks = *given; }
static const char *begin(unsigned mtu) { return mtu == 1488 ? 0 : "the packets are not those asked for"; }
static void end(void) {}
static const char *carry(struct stack_work *work)
{
    unsigned char packet[21] = {0x45, 0, 0, 21, 0, 0, 0, 0, 64, 6, 0x26, 0xde, 10, 0, 0, 1, 10, 1, 0, 1, 0};
    unsigned char room[65536];
    for (uint64_t i = 0, at = 0; i < work->messages; i++, at = (at + work->message) % work->span)
        if (FAULT != 3) {
            hooks.copy(room, work->from + at, work->message);
            hooks.sum(room, (int)work->message);
            hooks.copy(work->to, room, work->message);
            hooks.sum(work->to, (int)work->message);
        }
    work->wrong = FAULT == 1;
    if (work->packet && FAULT == 2)
        work->packet(packet, 21);
    work->resent = FAULT == 4;
    return FAULT == 5 ? "it stands still" : 0;
}
static bool is_receiver;
static const char *begin_end(unsigned mtu, bool receiver, void *shared, bool (*rest)(unsigned))
{
    is_receiver = receiver;
    (void)rest;
    return *(int *)shared ? "what is shared is not new" : FAULT == 6 ? "it does not begin" : begin(mtu);
}
static const char *carry_end(struct stack_work *work)
{
    for (unsigned i = 1; FAULT == 7; i++)
        if (!work->rest(i))
            return "it stands still";
    if (FAULT == 8 && is_receiver)
        *(volatile int *)8 = 0;
    return carry(work);
}
const struct stack wherry_stack = {
    VERSION, "fake", {0, 0, sum, copy_sum}, hook, begin, carry, end, 4096, begin_end, carry_end};
"""


def cells(events: list[dict]) -> dict[str, dict]:
    return {e["routine"]: e for e in events if e["event"] == "cell" and not e["aa"]}


def reasons(events: list[dict]) -> dict[str | None, str]:
    return {e["routine"]: e["reason"] for e in events if e["event"] == "skip"}


def carried(wherry_run: Path, way: str, words: str) -> dict[str, dict]:
    """Cells of a kernel's way; a skip where no namespace is to be had."""
    events, _ = system(wherry_run, f"id=1 op=network via={way} {words}\n")
    why = reasons(events).get(None)
    if why:
        assert way.startswith("veth") and ("namespace" in why or "veth" in why)
        pytest.skip(why)
    return cells(events)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", [1, 1448, 65536])
def test_the_kernel_carries(wherry_run: Path, way: str, size: int):
    found = carried(wherry_run, way, f"{KERNEL} size={size}")
    assert list(found) == ["aligned", "misaligned"]
    for cell in found.values():
        assert cell["calls"] == 40 and len(cell["ns"]) == 2 and min(cell["ns"]) > 0
        assert cell["bytes"] == size
        assert cell["parts"]["receiver_ns"] > 0
        if way.startswith("veth"):
            assert cell["parts"]["segment"] == 1448


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", [1, 1448, 65536])
def test_the_kernel_carries_files(wherry_run: Path, way: str, size: int):
    names = ["sendfile", "sendfile_misaligned", "sendfile_dropped"]
    found = carried(wherry_run, way, f"routines={','.join(names)} rounds=2 calls=40 size={size}")
    assert list(found) == names
    for cell in found.values():
        assert cell["verified"] and cell["bytes"] == size and min(cell["ns"]) > 0
        assert cell["parts"]["sender_ns"] > 0 and cell["parts"]["receiver_ns"] > 0


def test_what_is_dropped_is_not_copied(wherry_run: Path):
    """Told by the system calls of the receiver; the figures of a busy machine would not tell."""
    need_tool("strace", "strace")
    row = "id=1 op=network size=65536 routines={} rounds=1 calls=20\n"
    for name, copied in (("sendfile", True), ("sendfile_dropped", False)):
        done = subprocess.run(
            ["strace", "-f", "-e", "trace=recvfrom,sendfile,sendto", wherry_run, "system"],
            input=row.format(name),
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        assert "sendfile(" in done.stderr and ("MSG_TRUNC" not in done.stderr) == copied


def test_rounds_end_when_the_figure_is_certain(wherry_run: Path):
    words = "routines=swap via=rings size=60 batch_us=200"
    events, _ = system(wherry_run, f"id=1 op=network {words} rounds=1000 within=100\n")
    (cell,) = cells(events).values()
    certain = cell["parts"]["within"] <= 100
    assert 3 <= cell["rounds"] <= 1000 and (certain or cell["rounds"] == 1000)
    # On a machine so busy that a thousand do not suffice nothing is to be seen of an end before.
    assert not certain or cell["rounds"] < 1000
    events, _ = system(wherry_run, f"id=1 op=network {words} rounds=9\n")
    (cell,) = cells(events).values()
    assert cell["rounds"] == 9 and "within" not in cell["parts"]


# Of Student's distribution, 97.5 % lie below: by the number of rounds.
STUDENT = {
    3: 4.303,
    4: 3.182,
    5: 2.776,
    6: 2.571,
    7: 2.447,
    8: 2.365,
    9: 2.306,
    10: 2.262,
    11: 2.228,
    12: 2.201,
}


def half_interval(ns: list[float]) -> float:
    return 100 * STUDENT[len(ns)] * statistics.stdev(ns) / len(ns) ** 0.5 / statistics.mean(ns)


@pytest.mark.parametrize("rounds", STUDENT)
def test_how_certain_a_figure_is(wherry_run: Path, rounds: int):
    """Rounds go on until all are as certain as is asked for, and no longer."""
    within = 40 if rounds % 2 else 4
    words = f"routines=swap,padded via=rings size=60 calls=50 rounds={rounds} within={within}"
    events, _ = system(wherry_run, f"id=1 op=network {words}\n")
    found = [e for e in events if e["event"] == "cell"]
    (kept,) = {len(cell["ns"]) for cell in found}
    assert len(found) == 3 and 3 <= kept <= rounds
    for cell in found:
        assert cell["parts"]["within"] == pytest.approx(half_interval(cell["ns"]), rel=0.005)
    for fewer in range(3, kept):
        assert max(half_interval(cell["ns"][:fewer]) for cell in found) > within * 0.995
    assert kept == rounds or max(half_interval(cell["ns"]) for cell in found) < within * 1.005


@pytest.mark.parametrize("way", WAYS)
def test_the_standard_tool(wherry_run: Path, way: str):
    need_tool("iperf3", "iperf3")
    found = carried(wherry_run, way, "routines=aligned,iperf3 size=65536 rounds=1 batch_us=5000")
    assert found["iperf3"]["ns"][0] > 0 and found["iperf3"]["parts"]["sender_ns"] > 0


def test_without_the_standard_tool(wherry_run: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    events, _ = system(wherry_run, "id=1 op=network routines=iperf3 rounds=1\n")
    assert "the Debian package iperf3 brings" in reasons(events)["iperf3"]


def test_on_one_cpu(wherry_run: Path, lwip: Path):
    """Both sides share it, and whoever waits makes room."""
    cpu = min(os.sched_getaffinity(0))
    rows = "".join(
        f"id={i} op=network size=4096 rounds=2 batch_us=1000 {words}\n"
        for i, words in enumerate(
            (
                "via=loopback routines=aligned,misaligned",
                "via=veth routines=aligned",
                f"via=stack ends=apart stack={lwip}/stacks/lwip.so routines=libc,wherry",
            )
        )
    )
    result = subprocess.run(
        [need_tool("taskset", "util-linux"), "-c", str(cpu), wherry_run, "system"],
        input=rows,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert events[0]["cpus"] == 1
    found = {(e["id"], e["routine"]) for e in events if e["event"] == "cell"}
    assert found >= {(0, "aligned"), (0, "misaligned"), (2, "libc"), (2, "wherry")}
    assert (1, "aligned") in found or "namespace" in reasons(events)[None]


NO_RIGHTS = "--bounding-set=-all --inh-caps=-all --ambient-caps=-all"


@pytest.mark.parametrize(
    ("how", "veth"),
    [
        (f"exec setpriv --reuid=65534 --regid=65534 --clear-groups {NO_RIGHTS}", True),
        (
            "exec unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_user_namespaces && "
            f'exec setpriv {NO_RIGHTS} "$0" system\'',
            False,
        ),
    ],
    ids=["nobody", "no-namespaces"],
)
def test_without_rights(wherry_run: Path, disk: Path, how: str, veth: bool):
    """The kernel's stream over loopback needs none; a pair of devices needs a namespace, and is left out without."""
    need_root()
    for name in ("setpriv", "unshare"):
        need_tool(name, "util-linux")
    program = shutil.copy(wherry_run, disk)
    words = "op=network routines=aligned size=4096 rounds=2 batch_us=1000"
    result = subprocess.run(
        ["sh", "-c", f"{how} {program}" + (" system" if veth else "")],
        input=f"id=1 {words} via=loopback\nid=2 {words} via=veth\n",
        capture_output=True,
        text=True,
        timeout=300,
    )
    if not veth and ("max_user_namespaces" in result.stderr or "unshare: " in result.stderr):
        pytest.skip(f"no user namespaces here: {result.stderr}")
    assert result.returncode == 0, result.stdout + result.stderr
    events = [json.loads(line) for line in result.stdout.splitlines()]
    found = {e["id"] for e in events if e["event"] == "cell"}
    told = reasons(events)
    assert found == ({1, 2} if veth and not told else {1})
    if not veth:
        assert told[None].startswith("network namespaces need root, or user namespaces that")
        assert told[None].endswith("Operation not permitted")


def built(tmp_path: Path, text: str, *options: str) -> Path:
    (tmp_path / "made.c").write_text(text)
    made = tmp_path / "it is made.so"
    run(
        *(need_tool("cc", "gcc"), "-shared", "-fPIC", "-O1", "-fno-builtin"),
        *(f"-I{ROOT}/runner/network", *options, tmp_path / "made.c", "-o", made),
    )
    return made


@pytest.mark.parametrize(
    ("fault", "event", "words"),
    [
        (0, "cell", ""),
        (1, "wrong", "not those that were sent"),
        (2, "wrong", "checksum is wrong"),
        (3, "skip", "does not call the functions"),
        (4, "wrong", "sent again"),
        (5, "wrong", "it stands still"),
        (6, "skip", "it does not begin"),
        (7, "wrong", "it stands still"),
        (8, "wrong", "the receiver has ended"),
    ],
)
@pytest.mark.parametrize("ends", ["together", "apart"])
def test_what_a_stack_does_wrong_is_found(
    wherry_run: Path, tmp_path: Path, fault: int, event: str, words: str, ends: str
):
    if fault >= 6 and ends == "together":
        return
    made = built(tmp_path, FAKE, f"-DFAULT={fault}", "-DVERSION=STACK_VERSION")
    row = f"id=1 op=network via=stack stack={quote(str(made))} routines=libc size=512"
    row += f" ends={ends}"
    events, _ = system(wherry_run, f"{row} rounds=1 calls=9\n", int(event == "wrong"))
    (found,) = [e for e in events if e["event"] == event and not e.get("aa")]
    assert words in str(found)
    if event == "cell" and ends == "together":
        assert found["parts"]["copied"] == found["parts"]["summed"] == 1024


def test_a_stack_of_another_version(wherry_run: Path, tmp_path: Path):
    made = built(tmp_path, FAKE, "-DFAULT=0", "-DVERSION=99")
    for path, words in ((made, "run make peers"), (tmp_path / "none.so", "does not load")):
        row = f"id=1 op=network via=stack stack={quote(str(path))} routines=libc"
        assert words in reasons(system(wherry_run, row + "\n")[0])[None]


def test_without_a_stack_its_package_is_named(wherry_run: Path):
    events, _ = system(wherry_run, "id=1 op=network via=stack routines=libc\n")
    assert "make peers" in reasons(events)[None] and "liblwip-dev" in reasons(events)[None]


@pytest.fixture(scope="module")
def lwip(wherry_run: Path, tmp_path_factory) -> Path:
    """What make peers builds of the package, with a peer of the same library beside it."""
    if not Path("/usr/include/lwip/lwip/tcp.h").exists():
        pytest.skip("needs lwIP's headers: Debian package liblwip-dev")
    into, root = tmp_path_factory.mktemp("peers"), tmp_path_factory.mktemp("root")
    # Of all that could be built only this.
    for pattern in ("include/lwip", "lib/*/liblwip.so*"):
        for path in Path("/usr").glob(pattern):
            (root / path.relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
            (root / path.relative_to("/")).symlink_to(path)
    done = subprocess.run(
        [sys.executable, ROOT / "tools/peers", "--offline", "--into", into, "--root", root],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "WHERRY_RUN": str(wherry_run)},
    )
    assert "lwip (stack)" in done.stdout, done.stdout + done.stderr
    assert json.loads((into / "stacks" / "lwip.json").read_text())["version"] > "2"
    return into


@pytest.mark.parametrize("size", [1, 512, 1449, 65536])
@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("ends", ["together", "apart"])
def test_lwip_carries_with_the_functions_it_is_given(
    wherry_run: Path, lwip: Path, size: int, offset: int, ends: str
):
    row = f"id=1 op=network via=stack stack={lwip}/stacks/lwip.so size={size} offset={offset} ends={ends}"
    events, _ = system(
        wherry_run,
        f"{row} routines=libc,dropin,sums,wherry rounds=2 calls=100\n",
        0,
        *("--peer", f"lwip={lwip}/lwip.so"),  # has the library loaded before
    )
    found = cells(events)
    assert list(found) == ["libc", "dropin", "sums", "wherry"]
    for cell in found.values():
        assert cell["parts"]["sender_ns"] > 0 and cell["parts"]["receiver_ns"] > 0
        assert cell["parts"]["resent"] == 0 and cell["parts"]["segment"] == 1448
        if ends == "apart":
            continue
        # Into the stack, into a packet, out of it, to the application; a sum on each side.
        assert cell["parts"]["copied"] >= 4 * size and cell["parts"]["summed"] >= 2 * size


NO_COPY = (
    "#include <stddef.h>\nvoid *memset(void *d, int c, size_t n)"
    " { char *t = d; for (size_t i = 0; i < n; i++) t[i] = (char)c; return d; }\n"
)


@pytest.mark.parametrize("ends", ["together", "apart"])
def test_a_wrong_copy_in_lwip_is_found(wherry_run: Path, lwip: Path, tmp_path: Path, ends: str):
    peer = built(
        tmp_path,
        "#include <stddef.h>\nvoid *memcpy(void *d, const void *s, size_t n) { char *t = d; const char *f = s;"
        " for (size_t i = 0; i < n; i++) t[i] = f[i] ^ (n == 512 && i == 511); return d; }\n",
    )
    plain = shutil.copy(peer, tmp_path / "bad.so")
    row = f"id=1 op=network via=stack stack={lwip}/stacks/lwip.so size=512 rounds=1 calls=9"
    row += f" ends={ends}"
    events, _ = system(wherry_run, f"{row} routines=libc,bad\n", 1, "--peer", f"bad={plain}")
    assert [e["routine"] for e in events if e["event"] == "wrong"] == ["bad"]
    assert list(cells(events)) == ["libc"]


@pytest.mark.parametrize("size", [1, 60, 1514, 1985])
def test_frames(wherry_run: Path, size: int):
    names = "libc,wherry,int4x8_bcopy1k,padded,swap"
    events, _ = system(
        wherry_run,
        f"id=1 op=network via=rings routines={names} size={size} rounds=2 batch_us=100\n",
    )
    assert list(cells(events)) == names.split(",") and not reasons(events)


def test_a_wrong_copy_of_frames_is_found(wherry_run: Path, tmp_path: Path):
    peer = built(
        tmp_path,
        "#include <stddef.h>\nvoid *memcpy(void *d, const void *s, size_t n) { char *t = d; const char *f = s;"
        " for (size_t i = 0; i + 1 < n; i++) t[i] = f[i]; return d; }\n",
    )
    row = "id=1 op=network via=rings routines=libc,bad size=60 rounds=1 batch_us=100\n"
    events, _ = system(wherry_run, row, 1, "--peer", f"bad={peer}")
    assert [e["routine"] for e in events if e["event"] == "wrong"] == ["bad"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("routines=libc", "'libc' is none of aligned, misaligned, sendfile, sendfile_misaligned, "),
        ("routines=aligned via=tunnel", "via=tunnel: give one of loopback veth stack rings"),
        ("routines=aligned size=65537", "size=65537: give a number from 1 to 65536"),
        ("routines=aligned size=0", "size=0: give a number from 1 to 65536"),
        ("routines=aligned offload=off", "offload=off goes with via=veth"),
        ("routines=aligned stack=/x.so", "stack= goes with via=stack"),
        ("routines=memset via=rings size=60", "'memset' is none of swap, padded"),
        ("routines=swap via=rings size=2000", "frames are 1 to 1985 bytes"),
        ("routines=nobody via=stack stack=x", "'nobody' is none of dropin, sums"),
        ("routines=aligned within=101", "within=101: give a number from 0 to 100"),
        ("routines=aligned ends=apart", "ends=apart goes with via=stack"),
        ("routines=libc via=stack ends=three", "ends=three: give one of together apart"),
        ("routines=aligned offset=64", "offset=64: give a number from 0 to 63"),
    ],
)
def test_bad_rows(wherry_run: Path, words: str, said: str):
    _, told = system(wherry_run, f"id=1 op=network {words}\n", 2)
    assert said in told and told.count("\n") == 1
    assert told.startswith("wherry-run: system: row on line 1: ")


@pytest.mark.parametrize("ends", ["together", "apart"])
def test_a_peer_without_a_copy_is_skipped(wherry_run: Path, lwip: Path, tmp_path: Path, ends: str):
    """Peers are given for all rows, and those that others built may do nothing but sum."""
    peer = shutil.copy(built(tmp_path, NO_COPY), tmp_path / "sets.so")
    rows = [f"id=1 op=network via=stack stack={lwip}/stacks/lwip.so size=512 ends={ends} calls=9"]
    rows += ["id=2 op=network via=rings size=60 batch_us=100"]
    text = "".join(f"{row} routines=libc,sets rounds=1\n" for row in rows)
    events, _ = system(wherry_run, text, 0, "--peer", f"sets={peer}")
    skips = {(e["id"], e["routine"], e["reason"]) for e in events if e["event"] == "skip"}
    assert skips == {(id_, "sets", "has nothing for op=copy") for id_ in (1, 2)}
    assert [e["id"] for e in events if e["event"] == "cell" and not e["aa"]] == [1, 2]
    row = "id=1 op=network routines=sets via=loopback\n"
    _, told = system(wherry_run, row, 2, "--peer", f"sets={peer}")
    assert "'sets' is none of aligned" in told


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("way", ["loopback", "veth"])
def test_nobody_is_left(wherry_run: Path, way: str, how: signal.Signals):
    """Nor a namespace: none is pinned, and those of a process vanish with it."""
    with subprocess.Popen(
        [wherry_run, "system"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as own:
        row = f"id=1 op=network via={way} routines=aligned,misaligned size=1448 rounds=900"
        own.stdin.write(f"{row} batch_us=30000\n")
        own.stdin.close()
        for line in own.stdout:
            if '"skip"' in line:
                pytest.skip(line)
            if '"misaligned"' in line:
                break
        found = below(own.pid)
        spaces = {Path(f"/proc/{pid}/ns/net").readlink() for pid in found}
        own.send_signal(how)
        own.stdout.read()
        assert own.wait(300) == -how
    assert len(found) == 2 and len(spaces) == (2 if way == "veth" else 1)
    wait_until(lambda: not any(map(is_there, found)), "their end")


def test_rows_have_all_the_issue_names():
    rows = EXPERIMENT.rows(Request())
    told = [(dict(row.words), row.size, row.routines) for row in rows]
    for words, _ in KERNEL_WAYS:
        assert {size for own, size, _ in told if own == words} == set(SIZES)
    stacked = [(own.get("ends"), own["offset"], s) for own, s, _ in told if own["via"] == "stack"]
    assert set(stacked) == {
        (*how, s) for how in ((None, 0), (None, 1), ("apart", 0)) for s in SIZES
    }
    frames = {size: names for own, size, names in told if own["via"] == "rings"}
    assert set(frames) == set(FRAMES)
    assert set(frames[60]) >= {"libc", "wherry", "int4x8_bcopy1k", "padded"}
    assert tuple(512 << i for i in range(8)) == SIZES
    files = [(own, size) for own, size, names in told if "sendfile_dropped" in names]
    for words, _ in KERNEL_WAYS:
        assert {size for own, size in files if own == words} == {4096, 16384, 65536}


def test_as_a_user_runs_it(wherry, lwip: Path, tmp_path: Path):
    words = ("--quick", "--then", "--processes", "1", "--rounds", "2", "--save", "run.json")
    words += ("--size", "512,1514,65536")
    done = wherry("bench", "network", *words, cwd=tmp_path, env={"WHERRY_PEERS": str(lwip)})
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())  # where its lines are broken is a matter of the figures
    for words in (
        "TCP through the running kernel, loopback",
        "files by sendfile(2), so that the receiver's copy is the only one",
        "By sendfile the sender copies nothing, and the receiver's copy is at most ",
        "Then Netbench with sendfile spent 10 %",
        "the mail's table, TCP in user space (lwip-",
        "frames from ring to ring in memory",
        "what of it is the kernel's, and what is ours?",
        "then and now: TCP throughput by message size",
    ):
        assert words in said, done.stdout
    found = runfile.read(tmp_path / "run.json")
    assert {row["op"] for row in found["rows"]} == {"network"}
    assert str(lwip) not in {row.get("stack") for row in found["rows"]}
    titles = [sheet.title for sheet in then.sheets(found, "network")]
    assert titles[1].startswith("network, what stays comparable")
    page = wherry("report", "run.json", "-o", "run.html", cwd=tmp_path)
    assert page.returncode == 0 and (tmp_path / "run.html").stat().st_size > 10_000


def test_as_a_user_without_lwip_runs_it(wherry, tmp_path: Path):
    words = ("--quick", "--size", "60", "--processes", "1", "--rounds", "1", "--save", "run.json")
    done = wherry("bench", "network", *words, cwd=tmp_path, env={"WHERRY_PEERS": ""})
    assert done.returncode == 0, done.stderr
    assert "liblwip-dev" in done.stdout + done.stderr


def test_one_size_of_frame_is_no_range():
    from wherry.networking import answer

    assert answer._between((60, 1.39), (60, 1.39)) == "1.39 times"
    assert answer._between((60, 1.39), (1514, 1.1)) == "1.39 (at 60 bytes) to 1.10 times (at 1,514)"
