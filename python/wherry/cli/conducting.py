"""`wherry fleet bench` and the like: one task a host on a Dask scheduler; a line whenever something becomes of a host,
and what became of all at the end."""

from __future__ import annotations

import sys

from wherry import experiments, runfile
from wherry.cli.printer import Printer
from wherry.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, FailedError, WherryError, unknown
from wherry.fleet import scheduler as scheduler_room
from wherry.fleet import words
from wherry.fleet.conduct import Fleet
from wherry.fleet.hosts import Host
from wherry.fleet.store import Store


class _Shown:
    """A line on standard error whenever something becomes of a host."""

    def __init__(self, fleet: Fleet):
        self.fleet = fleet
        self.said: dict[str, str] = {}

    def heard(self, event) -> None:
        own = event[1] if isinstance(event, tuple) else event
        host = self.fleet.hosts.get(own.get("id")) if isinstance(own, dict) else None
        if host and host.state == "measuring" and own.get("experiments"):
            self.fleet.news = True
            total = self.fleet.experiments(host)
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
        printer.write(runfile.encode({"work": fleet.kind, "hosts": own}).decode())
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


def conduct(
    kind: str, scheduler: str, arguments: list[str], *, out: str, as_json: bool, **options
) -> int:
    for bad in ("--save", "--json", "-o", "--output", "--show", "--resume"):
        if any(a == bad or a.startswith(bad + "=") for a in arguments):
            raise WherryError(f"{bad} is not for a fleet: --out says where results go")
    if kind == "bench":
        _check_experiments(arguments)
    store = Store(out)
    client = scheduler_room.client(scheduler, options)
    fleet = None
    try:
        fleet = Fleet(client, kind, arguments, store, options)
        fleet.meet()
        if not fleet.hosts and not fleet.refused:
            raise FailedError(
                f"the scheduler at {scheduler} has no workers; start some with: dask worker {scheduler}"
            )
        show = _Shown(fleet)
        client.subscribe_topic(fleet.topic, show.heard)
        fleet.parts = scheduler_room.parts(client, fleet.topic)
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
        fleet.abandon()
        _end(fleet, as_json)
        raise FailedError(
            f"the scheduler was lost ({' '.join(str(error).split())[:120]}); a second call goes on with what is missing"
        ) from None
    finally:
        scheduler_room.leave(client)
    return _end(fleet, as_json)


def _check_experiments(arguments: list[str]) -> None:
    known = experiments.names()
    if arguments and not arguments[0].startswith("-") and arguments[0] not in known:
        raise unknown("experiment", arguments[0], known, "wherry list experiments")
