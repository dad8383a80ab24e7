"""One task a host on a Dask scheduler, what became of each, and the files that are brought back."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
import time
import uuid
from collections.abc import Callable

from wherry import version
from wherry.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, FailedError, WherryError
from wherry.fleet import facts
from wherry.fleet import scheduler as scheduler_room
from wherry.fleet.store import Store, safe
from wherry.report.dimensions import clean

PROBE = 20.0
# Longer than a host's own limit and the end of its processes: then nobody answers there.
GRACE = 45.0
# The scheduler, too, unpickles what is called, and need not have Wherry; a worker without it must be able to say so. So
# these two are handed over as Python's own `eval` of a constant text.
PROBING = "__import__('wherry.fleet.agent', fromlist=['probe']).probe()"
WORKING = "__import__('wherry.fleet.agent', fromlist=['work']).work(job)"
ENDINGS = {
    "bench": ".run.json",
    "verify": ".verify.json",
    "tune": ".toml",
    "doctor": ".doctor.json",
}


@dataclasses.dataclass
class Host:
    ident: str
    name: str
    model: str
    address: str
    python: str = ""
    state: str = "waiting"
    words: str = ""
    file: str = ""
    tries: int = 0
    future: object = None
    began: float = 0.0
    due: float = 0.0
    arguments: list[str] = dataclasses.field(default_factory=list)


class Fleet:
    def __init__(self, client, kind: str, arguments: list[str], store: Store, options: dict):
        self.client, self.kind, self.store = client, kind, store
        self.arguments = arguments
        self.options = options
        self.topic = f"wherry-{uuid.uuid4().hex}"
        asked = json.dumps([version(), kind, options_of(kind, arguments)])
        self.mark = hashlib.sha256(asked.encode()).hexdigest()[:8]
        self.hosts: dict[str, Host] = {}
        self.refused: dict[str, Host] = {}
        self.spare: dict[str, list[Host]] = {}

    # ---- who is there

    def workers(self) -> set[str]:
        """Their addresses."""
        if self.client.status != "running":
            raise ConnectionError("it does not answer any more")
        return set(self.client.scheduler_info(n_workers=-1).get("workers", ()))

    def probe(self) -> dict[str, dict]:
        """By address: what a worker tells, or why it cannot."""
        workers = sorted(self.workers())
        if not workers:
            return {}
        futures = {
            address: self.client.submit(
                eval,
                PROBING,
                workers=[address],
                allow_other_workers=False,
                pure=False,
                key=f"wherry-probe-{uuid.uuid4().hex}",
                priority=10,
                retries=0,
            )
            for address in workers
        }
        end = time.monotonic() + PROBE
        while time.monotonic() < end and any(f.status == "pending" for f in futures.values()):
            time.sleep(0.1)
        found = {}
        for address, future in futures.items():
            if future.status == "finished":
                found[address] = future.result()
            elif future.status == "pending":
                found[address] = {
                    "error": f"gave no answer in {PROBE:g} s: busy with other work, or gone"
                }
                future.cancel()
            else:
                found[address] = {
                    "error": _cause(future.exception() if future.status == "error" else None)
                }
        return found

    def refusal(self, own: dict) -> str | None:
        if "error" in own:
            return own["error"]
        if own["system"] != "Linux" or own["arch"] != "x86_64":
            return f"is {own['arch']} {own['system']}; Wherry runs on x86-64 Linux"
        if own["lacks"]:
            return (
                f"cannot measure: {own['lacks']} (without a wheel Wherry needs gcc and libc6-dev there; then "
                f"{own['python']} -m pip install 'wherry[fleet]=={version()}')"
            )
        if own["wherry"] != version():
            return (
                f"has Wherry {own['wherry']}, and here is {version()}; on it: "
                f"{own['python']} -m pip install 'wherry[fleet]=={version()}'"
            )
        return None

    def meet(self) -> None:
        for address, own in sorted(self.probe().items()):
            why = self.refusal(own)
            name = clean(own.get("host", address), 64)
            ident = own.get("id", address)
            host = Host(ident, name, clean(own.get("model") or "?"), address, own.get("python", ""))
            if why:
                host.state, host.words = "refused", clean(why, 400)
                self.refused.setdefault(ident, host)
            else:
                # Several workers of one host: one of them speaks for it.
                self.hosts.setdefault(ident, host)
        self.refused = {k: v for k, v in self.refused.items() if k not in self.hosts}
        if self.options["one_per"] == "model":
            first: dict[str, Host] = {}
            for host in self.hosts.values():
                if host.model in first:
                    self.spare.setdefault(host.model, []).append(host)
                else:
                    first[host.model] = host
            self.hosts = {h.ident: h for h in first.values()}

    # ---- what there is already

    def missing(self, host: Host) -> list[str] | None:
        """The arguments for what no file has yet; None when there is nothing left."""
        ending = f"-{host.ident}-{self.mark}"
        mine = [n for n in self.store.names() if ending in n and n.endswith(ENDINGS[self.kind])]
        if self.kind != "bench":
            return None if mine and self.kind != "doctor" else self.arguments
        wanted = experiments_of(self.arguments)
        done: set[str] = set()
        for name in mine:
            try:
                run = facts.held(facts.parsed(facts.unpacked(self.store.read(name))))
                own = facts.of(name, run)
            except (facts.UnfitError, OSError):
                continue
            if not any(kind == "wrong" for kind, _, _ in own.problems):
                done |= set(own.experiments)
        left = [name for name in wanted if name not in done]
        if not left:
            return None
        return [*left, *options_of("bench", self.arguments)]

    def name(self, host: Host) -> str:
        stem, number = f"{safe(host.name)}-{host.ident}-{self.mark}", 1
        there = set(self.store.names())
        while f"{stem}-{number}{ENDINGS[self.kind]}" in there:
            number += 1
        return f"{stem}-{number}{ENDINGS[self.kind]}"

    # ---- the work

    def start(self, host: Host) -> None:
        host.tries += 1
        host.state, host.began = "measuring", time.monotonic()
        job = {
            "kind": self.kind,
            "id": host.ident,
            "arguments": host.arguments,
            "topic": self.topic,
            "time_limit": self.options["time_limit"],
            "busy_load": self.options["busy_load"],
        }
        host.future = self.client.submit(
            eval,
            WORKING,
            {"job": job},
            workers=[host.address],
            allow_other_workers=False,
            pure=False,
            key=f"wherry-{self.kind}-{host.name}-{uuid.uuid4().hex}",
            retries=0,
        )

    def again(self, host: Host, state: str, words: str) -> None:
        """Later, where that helps; a host that hung would hang again."""
        host.state, host.words, host.future = state, clean(words, 400), None
        if state in ("lost", "busy", "garbled") and host.tries <= self.options["retries"]:
            host.due = time.monotonic() + self.options["wait"]
            host.state = "waiting"
            return
        spare = self.spare.get(host.model)
        if spare:
            other = spare.pop(0)
            self.hosts[other.ident] = other
            self.prepare(other)

    def prepare(self, host: Host) -> None:
        left = self.missing(host)
        if left is None:
            host.state, host.words = "there", "measured before"
        else:
            host.arguments = left

    def finished(self, host: Host) -> None:
        future, host.future = host.future, None
        if future.status != "finished":
            error = future.exception() if future.status == "error" else None
            self.again(host, "lost", f"the worker was lost: {_cause(error)}")
            return
        answer = future.result()
        if answer["state"] != "done":
            self.again(host, answer["state"], answer["words"])
            return
        data = answer["data"]
        if data and hashlib.sha256(data).hexdigest() != answer["sha256"]:
            self.again(host, "garbled", "what it sent back is not what it wrote")
            return
        self.keep(host, answer, data)

    def keep(self, host: Host, answer: dict, data: bytes) -> None:
        host.state, host.words = "done", ""
        if self.kind == "bench":
            try:
                own = facts.of("", facts.held(facts.parsed(data)))
            except facts.UnfitError as error:
                self.again(host, "garbled", f"what it sent back {error}")
                return
            bad = [p for p in own.problems if p[0] in ("wrong", "crash", "hang")]
            if bad:
                host.state, host.words = bad[0][0], f"{bad[0][1]}: {bad[0][2]}"
            elif own.interrupted:
                host.state, host.words = "failed", "the campaign was interrupted there"
        elif self.kind == "verify":
            host.state, host.words = _verdict(data, answer)
        elif not data:
            host.words = clean(answer["words"], 200)
            return
        host.file = self.name(host)
        self.store.write(host.file, data)

    def run(self, show: Callable[[], None]) -> None:
        for host in list(self.hosts.values()):
            self.prepare(host)
        last = 0.0
        while True:
            now = time.monotonic()
            open_ = [h for h in self.hosts.values() if h.state in ("waiting", "measuring")]
            if not open_:
                return
            alive = None
            if now - last > 1:
                last, alive = now, self.workers()
            for host in open_:
                self._step(host, now, alive)
            show()
            time.sleep(0.1)

    def _step(self, host: Host, now: float, alive: set[str] | None) -> None:
        if host.state == "waiting":
            if now >= host.due and self._is_there(host):
                self.start(host)
            return
        if host.future.status != "pending":
            self.finished(host)
        elif alive is not None and host.address not in alive:
            host.future.cancel()
            self.again(host, "lost", "the worker was lost")
        elif now - host.began > self.options["time_limit"] + GRACE:
            host.future.cancel()
            self.again(host, "hung", f"nothing was heard of it for {now - host.began:.0f} s")

    def _is_there(self, host: Host) -> bool:
        """Its worker, or another of the same host: one that was started again has another address."""
        if host.tries == 0:
            return True
        for address, own in self.probe().items():
            if own.get("id") == host.ident and self.refusal(own) is None:
                host.address = address
                return True
        host.tries += 1
        self.again(host, "lost", host.words or "its worker is gone")
        return False

    def stop(self) -> None:
        for host in self.hosts.values():
            if host.future is not None:
                host.future.cancel(force=True)


def experiments_of(arguments: list[str]) -> list[str]:
    from wherry import experiments

    known = experiments.names()
    return [a for a in arguments if a in known] or ["sizes"]


def options_of(kind: str, arguments: list[str]) -> list[str]:
    if kind != "bench":
        return arguments
    from wherry import experiments

    known = experiments.names()
    return [a for a in arguments if a not in known]


def _verdict(data: bytes, answer: dict) -> tuple[str, str]:
    try:
        failures = json.loads(data)["failures"]
    except (ValueError, KeyError, TypeError):
        return "failed", clean(answer["words"] or "its answer is no verification", 300)
    if failures:
        first = failures[0] if isinstance(failures[0], dict) else {}
        return "wrong", clean(f"{first.get('target', '?')}: {first.get('message', 'wrong')}", 300)
    return (
        ("done", "all right") if answer["status"] == 0 else ("failed", clean(answer["words"], 300))
    )


def _cause(error: BaseException | None) -> str:
    if error is None:
        return "its task was given up by the scheduler"
    text = " ".join(str(error).split())[:200]
    chain, names = error, set()
    while chain is not None and id(chain) not in names:
        names.add(id(chain))
        if isinstance(chain, ImportError) and "wherry" in str(chain):
            return (
                "has no Wherry, or one without fleets; on it, with the worker's own python: "
                f"python -m pip install 'wherry[fleet]=={version()}'"
            )
        chain = chain.__cause__ or chain.__context__
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


# ---- the command ----------------------------------------------------------------------------------------------------


def conduct(
    kind: str, scheduler: str, arguments: list[str], *, out: str, as_json: bool, **options
) -> int:
    for bad in ("--save", "--json", "-o", "--output", "--show", "--resume"):
        if any(a == bad or a.startswith(bad + "=") for a in arguments):
            raise WherryError(f"{bad} is not for a fleet: --out says where results go")
    if kind == "bench":
        _check_experiments(arguments)
    client = scheduler_room.client(scheduler, options)
    fleet = None
    try:
        fleet = Fleet(client, kind, arguments, Store(out), options)
        fleet.meet()
        if not fleet.hosts and not fleet.refused:
            raise FailedError(
                f"the scheduler at {scheduler} has no workers; start some with: dask worker {scheduler}"
            )
        show = _Shown(fleet)
        client.subscribe_topic(fleet.topic, show.heard)
        fleet.run(show)
    except KeyboardInterrupt:
        if fleet:
            fleet.stop()
            _end(fleet, as_json)
        print("wherry: interrupted; a second call goes on with what is missing", file=sys.stderr)
        return EXIT_INTERRUPTED
    except (OSError, TimeoutError) as error:
        if fleet is None:
            raise
        _end(fleet, as_json)
        raise FailedError(
            f"the scheduler was lost ({' '.join(str(error).split())[:120]}); a second call goes on with what is missing"
        ) from None
    finally:
        scheduler_room.leave(client)
    return _end(fleet, as_json)


def _check_experiments(arguments: list[str]) -> None:
    from wherry import experiments
    from wherry.errors import unknown

    known = experiments.names()
    if arguments and not arguments[0].startswith("-") and arguments[0] not in known:
        raise unknown("experiment", arguments[0], known, "wherry list experiments")


class _Shown:
    """A line on standard error whenever something becomes of a host."""

    def __init__(self, fleet: Fleet):
        self.fleet = fleet
        self.said: dict[str, str] = {}

    def heard(self, event) -> None:
        own = event[1] if isinstance(event, tuple) else event
        host = self.fleet.hosts.get(own.get("id")) if isinstance(own, dict) else None
        if host and host.state == "measuring" and own.get("experiments"):
            total = len(experiments_of(host.arguments)) if self.fleet.kind == "bench" else 1
            self._say(host, f"{own['experiments']} of {total} experiments, {own['seconds']:.0f} s")

    def __call__(self) -> None:
        for host in self.fleet.hosts.values():
            if self.said.get(host.ident, "").partition(":")[0] != host.state:
                self._say(host, "")

    def _say(self, host: Host, more: str) -> None:
        words = f"{host.state}: {more or host.words}".rstrip(": ")
        if self.said.get(host.ident) != words:
            self.said[host.ident] = words
            print(f"{host.name}  {words}", file=sys.stderr, flush=True)


def _end(fleet: Fleet, as_json: bool) -> int:
    from wherry.cli.printer import Printer
    from wherry.fleet import words

    hosts = [*fleet.hosts.values(), *fleet.refused.values()]
    hosts.sort(key=lambda h: (h.name, h.ident))
    good = ("done", "there")
    printer = Printer()
    if as_json:
        own = [
            {k: getattr(h, k) for k in ("name", "ident", "model", "state", "words", "tries")}
            | {"file": fleet.store.place(h.file) if h.file else None}
            for h in hosts
        ]
        printer.write(json.dumps({"work": fleet.kind, "hosts": own}) + "\n")
    else:
        rows = [
            (h.name, h.model, h.state, h.file or h.words if h.state == "done" else h.words)
            for h in hosts
        ]
        printer.write(
            "\n".join(words.table(("host", "CPU model", "state", "file or reason"), rows)) + "\n"
        )
        fine = sum(h.state in good for h in hosts)
        printer.text(
            f"{fine} of {words.plural(len(hosts), 'host')}; results in {fleet.store.where}"
        )
    return EXIT_OK if hosts and all(h.state in good for h in hosts) else EXIT_FAILED
