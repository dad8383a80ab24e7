#!/usr/bin/env -S python3 -IS
"""A runner that speaks docs/runner-protocol.md and measures nothing, for what a good runner does not do on request:
crash, hang, write rubbish, take its time. What goes wrong is chosen by the name of a peer: crash, hang, liar, rubbish,
late (hangs in the rounds, and the runner tells), later (crashes from 501 bytes on),
silent (dies without a word of its own; shot: the first time alone), spent (by SIGXCPU; spending: in the second row
of each process), slow (WHERRY_FAKE_SLOW seconds a routine). WHERRY_FAKE_LOG gets a line for
every start, WHERRY_FAKE_ROWS one for every row: the options of its process and the row. WHERRY_FAKE_TIMES plants times:
JSON of routine to factors, as {"alpha": {"all": 0.9, "mix": 0.6, "set": null}}; of the keys that fit a row the last of
all, mix, overlap, stream and its op counts, and null means that the routine lacks it. A campaign starts it a
dozen times: it asks for no more of the interpreter than it uses each time."""

import json
import os
import signal
import sys
import time

ROUTINES = [
    ("rep_movsb", "copy", 1, 1978),
    ("rep_movsl", "copy", 1, 1985),
    ("x87_fild64", "copy", 1, 1996),
    ("int4x8", "copy", 32, 2012),
    ("int_prefetch64_from", "copy", 1, 2002),
    ("move_avx2", "move", 1, 2026),
    ("rep_stosl", "zero", 1, 2003),
    ("mov_loop", "zero", 1, 2003),
    ("set_avx2", "set", 1, 2026),
]
SPEED = {"libc": 20.0, "wherry": 24.0, "call_floor": 900.0}


TIMES = json.loads(os.environ.get("WHERRY_FAKE_TIMES", "{}"))
# Routines that leave the upper halves of vector registers in use.
UPPER_IN_USE = os.environ.get("WHERRY_FAKE_UPPER", "").split(",")
CPU = {
    "tier": "avx2",
    "believed": {
        level: {"size": size, "source": "leaf4"}
        for level, size in (("L1d", 48 << 10), ("L2", 1 << 20), ("L3", 32 << 20))
    },
}


def say(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


def note(variable, *words):
    """A line for the file that the variable names."""
    if name := os.environ.get(variable):
        with open(name, "a", encoding="utf-8") as log:  # noqa: PTH123
            print(*words, file=log)


def listing():
    for name, op, quantum, era in ROUTINES:
        say(
            "routine",
            name=name,
            op=op,
            needs="any x86-64",
            unavailable=None,
            traits=[],
            quantum=quantum,
            era=era,
            file="x.c",
            source="a test",
            idea=f"the idea of {name}",
        )


def peers(arguments):
    found = {}
    for i, word in enumerate(arguments):
        if word == "--peer":
            name, _, path = arguments[i + 1].partition("=")
            if not os.access(path.split(":")[0], os.F_OK):
                print(
                    f"wherry-run: peer {name}: cannot open {path}: No such file or directory",
                    file=sys.stderr,
                )
                sys.exit(2)
            if name == "loadcrash":
                os.kill(os.getpid(), 11)
            if name == "loadhang":
                time.sleep(3600)
            found[name] = path
    return found


def seed(arguments):
    """What `--seed` says, which is another for every process of a run: the same run has the same noise each time."""
    return arguments[arguments.index("--seed") + 1] if "--seed" in arguments else "0"


def jitter(*key):
    import random

    return 1 + random.Random(repr(key)).uniform(-0.005, 0.005)


def planted(row, routine):
    """What the routine's times are multiplied by; None when it lacks the row."""
    own = TIMES.get(routine, {"all": 1.0})
    fits = ["all", *(key for key in ("mix", "overlap") if key in row)]
    fits += [row.get("walk", "pool"), row["op"]]
    return [own[key] for key in fits if key in own][-1]


def size_of(row):
    if "size" in row:
        return int(row["size"])
    if "mix" not in row:
        return 0
    kind, _, bounds = row["mix"].partition(":")
    return sum(map(int, bounds.split("-"))) // 2 if kind in ("uniform", "log") else 100


def measure_one(row, routine, aa, rounds, noise):
    quantum = {name: q for name, _, q, _ in ROUTINES}.get(routine, 1)
    size = size_of(row)
    if size % quantum:
        say("skip", id=row["id"], routine=routine, reason=f"size must be a multiple of {quantum}")
        return
    speed = SPEED.get(routine, 10 + sum(map(ord, routine)) % 12)
    ns = 2 + size / speed
    if TIMES:
        factor = planted(row, routine)
        if factor is None:
            say("skip", id=row["id"], routine=routine, reason=f"has no {row['op']}")
            return
        ns = (2 + size / 20) * factor
    say(
        "cell",
        id=row["id"],
        routine=routine,
        aa=aa,
        calls=100,
        bytes=size,
        rounds=rounds,
        voided=1,
        verified=True,
        **({"upper_in_use": True} if routine in UPPER_IN_USE else {}),
        ns=[ns * jitter(noise, row["id"], routine, aa, i) for i in range(rounds)],
    )


def measure(arguments):
    found = peers(arguments)
    noise = seed(arguments)
    say(
        "start", version="0.1.0", pid=os.getpid(), cpu=0, cpus=2, clock="tsc", clock_ns=10.0, seed=1
    )
    rows = 0
    for line in sys.stdin:
        note("WHERRY_FAKE_ROWS", *arguments, line.strip())
        row = dict(word.split("=", 1) for word in line.split())
        row["id"] = int(row["id"])
        say("row", id=row["id"], pool_bytes_src=1, pool_bytes_dst=1, huge=False)
        for name in row["routines"].split(","):
            say("trying", id=row["id"], routine=name)
            if name in found and name == "crash":
                say("crash", id=row["id"], routine=name, signal=11, message="SIGSEGV at 0x0")
                sys.exit(1)
            if name in found and name == "later" and size_of(row) > 500:
                say("crash", id=row["id"], routine=name, signal=11, message="SIGSEGV at 0x0")
                sys.exit(1)
            if name in found and name == "hang":
                time.sleep(3600)
            if name in found and name == "silent":
                os.kill(os.getpid(), 9)
            if name in found and name == "shot" and not os.path.exists("shot"):  # noqa: PTH110
                open("shot", "w").close()  # noqa: PTH123
                os.kill(os.getpid(), 9)
            if name in found and name in ("spent", "spending") and (rows or name == "spent"):
                os.kill(os.getpid(), signal.SIGXCPU)
            if name in found and name == "rubbish":
                print("this is no event", flush=True)
            if name in found and name == "liar":
                say(
                    "wrong",
                    id=row["id"],
                    routine=name,
                    message="liar: byte 3 of 32 is 0x00, not 0x5a",
                )
                continue
            if "slow" in found:
                time.sleep(float(os.environ.get("WHERRY_FAKE_SLOW", "0.15")))
            measure_one(row, name, False, int(row["rounds"]), noise)
        if "late" in found:
            time.sleep(2.5)
            say("hang", id=row["id"], routine="late", message="did not return while it was timed")
            sys.exit(1)
        measure_one(row, row["routines"].split(",")[0], True, int(row["rounds"]), noise)
        say("rowend", id=row["id"], voided=1, reasons={"migrated": 1, "descheduled": 0, "steal": 0})
        rows += 1
    say("end", rows=rows)


def verify(arguments):
    found = peers(arguments)
    say("start", seed=7, targets=2, level="brief", jobs=1)
    say("progress", done=1, total=2, target="libc", family="sizes")
    say(
        "family",
        target="libc",
        function="memcpy",
        op="copy",
        family="sizes",
        cases=10,
        seconds=0.1,
        failures=0,
    )
    if "liar" in found:
        say(
            "failure",
            target="liar",
            function="memcpy",
            op="copy",
            family="sizes",
            size=32,
            src_off=0,
            dst_off=0,
            distance=None,
            byte=3,
            expected=90,
            got=0,
            state=None,
            message="liar memcpy: byte 3 is wrong",
            repeat="wherry-run verify liar --case 1",
        )
    say("end", cases=10, failures=int("liar" in found), skipped=0, seconds=0.1)
    sys.exit(1 if "liar" in found else 0)


def main():
    note("WHERRY_FAKE_LOG", *sys.argv[1:])
    command = sys.argv[1]
    if command == "--version":
        print("wherry-run 0.1.0")
    elif command == "list":
        listing()
    elif command == "cpu":
        say("cpu", **CPU)
    elif command in ("measure", "system"):
        measure(sys.argv[2:])
    elif command == "verify":
        verify(sys.argv[2:])
    else:
        print(f"wherry-run: no command '{command}'", file=sys.stderr)
        sys.exit(2)


main()
