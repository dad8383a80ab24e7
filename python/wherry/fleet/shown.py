"""What is said of a fleet's work: a line whenever something becomes of a host, and what became of all at the end."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from wherry import runfile
from wherry.errors import EXIT_FAILED, EXIT_OK
from wherry.fleet.hosts import Host

if TYPE_CHECKING:
    from wherry.fleet.conduct import Fleet


class Shown:
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


def end(fleet: Fleet, as_json: bool) -> int:
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
