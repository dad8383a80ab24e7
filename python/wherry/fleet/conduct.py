"""One task a host on a Dask scheduler, what became of each, and the files that are brought back."""

from __future__ import annotations

import hashlib
import json
import re
import time
import uuid
from collections.abc import Callable, Iterable

from wherry import version
from wherry.dimensions import clean
from wherry.fleet import document, facts, grouping, hosts
from wherry.fleet.cells import UnfitError
from wherry.fleet.hosts import Host, experiments_of, options_of
from wherry.fleet.store import Store, safe

PROBE = 20.0
# Longer than a host's own limit and the end of its processes: then nobody answers there.
GRACE = 45.0
# The scheduler's list of workers is long where there are many: it is asked for once a second for so many hosts.
LISTED = 500
# States of a host that has not ended.
UNDER_WAY = ("waiting", "measuring")
# The scheduler, too, unpickles what is called, and need not have Wherry; a worker without it must be able to say so. So
# these two are handed over as Python's own `eval` of a constant text.
PROBING = "__import__('wherry.fleet.agent', fromlist=['probe']).probe()"
WORKING = "__import__('wherry.fleet.agent', fromlist=['work']).work(job)"
_NAMED = re.compile(r"-([0-9a-f]{16})-([0-9a-f]{8})-\d+(\.\w+\.json|\.toml)")


class Fleet:
    def __init__(self, client, kind: str, arguments: list[str], store: Store, options: dict):
        self.client, self.kind, self.store = client, kind, store
        self.arguments = arguments
        self.options = options
        self.topic = f"wherry-{uuid.uuid4().hex}"
        asked = json.dumps([version(), kind, options_of(kind, arguments)])
        self.mark = hashlib.sha256(asked.encode()).hexdigest()[:8]
        self.ending = hosts.ending(kind, arguments)
        self.hosts: dict[str, Host] = {}
        self.refused: dict[str, Host] = {}
        self.spare: dict[str, list[Host]] = {}
        # Run files of campaigns under way, when the topic has told of some.
        self.parts: Callable[[], Iterable[object]] = lambda: ()
        self.news = False
        self._files: dict[str, list[str]] = {}

    # ---- who is there

    def workers(self) -> set[str]:
        """Their addresses."""
        if self.client.status != "running":
            raise ConnectionError("it does not answer any more")
        return set(self.client.scheduler_info(n_workers=-1).get("workers", ()))

    def probe(self, workers: set[str]) -> dict[str, dict]:
        """By address: what a worker tells, or why it cannot."""
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
            for address in sorted(workers)
        }
        end = time.monotonic() + PROBE
        while time.monotonic() < end and any(f.status == "pending" for f in futures.values()):
            time.sleep(0.1)
        there = [address for address, future in futures.items() if future.status == "finished"]
        told = self.client.gather([futures[a] for a in there], errors="raise") if there else []
        found = dict(zip(there, told, strict=True))
        for address, future in futures.items():
            if address in found:
                continue
            if future.status == "pending":
                future.cancel()
                why = f"gave no answer in {PROBE:g} s: busy with other work, or gone"
            else:
                why = hosts.cause(future.exception() if future.status == "error" else None)
            found[address] = {"error": why}
        return found

    def meet(self) -> None:
        for address, own in sorted(self.probe(self.workers()).items()):
            why = hosts.refusal(own)
            host = Host.met(address, own)
            if why:
                host.state, host.words = "refused", clean(why, 400)
                self.refused.setdefault(host.ident, host)
            else:
                # Several workers of one host: one of them speaks for it.
                self.hosts.setdefault(host.ident, host)
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

    def look(self) -> None:
        """Lists what was brought back, once for all hosts."""
        self._files = {}
        for name in self.store.names():
            match = _NAMED.search(name)
            if match and match[2] == self.mark and name.endswith(self.ending):
                self._files.setdefault(match[1], []).append(name)

    def missing(self, host: Host) -> list[str] | None:
        """The arguments for what no file has yet; None when there is nothing left."""
        mine = self._files.get(host.ident, ())
        if self.kind != "bench":
            return None if mine and self.kind != "doctor" else self.arguments
        wanted = experiments_of(self.arguments)
        done: set[str] = set()
        for name in mine:
            try:
                run, _ = document.parsed(document.unpacked(self.store.read(name)))
                own = facts.of(name, run)
            except (UnfitError, OSError):
                continue
            if not any(kind == "wrong" for kind, *_ in own.problems):
                done |= set(own.experiments)
        left = [name for name in wanted if name not in done]
        if not left:
            return None
        return [*left, *options_of("bench", self.arguments)]

    def prepare(self, host: Host) -> bool:
        """Whether something is left to do there."""
        left = self.missing(host)
        if left is None:
            # Of a host that was lost, all may have come back before.
            host.state, host.words = ("done", "") if host.tries else ("there", "measured before")
            return False
        host.arguments = left
        return True

    def name(self, host: Host) -> str:
        stem = f"{safe(host.name)}-{host.ident}-{self.mark}"
        mine = self._files.setdefault(host.ident, [])
        number = len(mine) + 1
        while (name := f"{stem}-{number}{self.ending}") in mine or self.store.exists(name):
            number += 1
        mine.append(name)
        return name

    # ---- the work

    def start(self, host: Host) -> None:
        host.tries += 1
        host.state, host.began, host.file = "measuring", time.monotonic(), ""
        job = {
            "kind": self.kind,
            "id": host.ident,
            "try": host.tries,
            "arguments": host.arguments,
            "experiments": self.experiments(host),
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

    def experiments(self, host: Host) -> int:
        return len(experiments_of(host.arguments)) if self.kind == "bench" else 1

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

    def finished(self, host: Host) -> None:
        future, host.future = host.future, None
        if future.status != "finished":
            error = future.exception() if future.status == "error" else None
            self.again(host, "lost", f"the worker was lost: {hosts.cause(error)}")
            return
        answer = future.result()
        if answer["state"] != "done":
            self.again(host, answer["state"], answer["words"])
            return
        data = answer["data"]
        if hashlib.sha256(data).hexdigest() != answer["sha256"]:
            self.again(host, "garbled", "what it sent back is not what it wrote")
            return
        self.keep(host, answer, data)

    def keep(self, host: Host, answer: dict, data: bytes) -> None:
        host.state, host.words = "done", ""
        if self.kind == "bench":
            try:
                own = facts.of("", document.parsed(data)[0])
            except UnfitError as error:
                self.again(host, "garbled", f"what it sent back {error}")
                return
            bad = [p for p in own.problems if p[0] in grouping.FAILURES]
            if bad:
                host.state, host.words = bad[0][0], f"{bad[0][1]}: {bad[0][2]}"
            elif own.interrupted:
                host.state, host.words = "failed", "the campaign was interrupted there"
        elif self.kind == "verify":
            host.state, host.words = hosts.verdict(data, answer)
        elif self.ending == ".glibc.json":
            host.state, host.words = hosts.tunables(data, answer)
            if host.state != "done":
                self.again(host, host.state, host.words)
                return
        self.save(host, data)

    def save(self, host: Host, data: bytes) -> None:
        host.file = host.file or self.name(host)
        self.store.write(host.file, data)

    def part(self, own: object) -> None:
        """A campaign's run file so far: should its host be lost, these experiments are not measured again."""
        try:
            host, data = self.hosts[own["id"]], own["data"]
            if host.state != "measuring" or own["try"] != host.tries:
                return
            data = bytes(document.unpacked(data))
            if not facts.of("", document.parsed(data)[0]).experiments:
                return
        except (KeyError, TypeError, UnfitError):
            return
        self.save(host, data)

    def run(self, show: Callable[[], None]) -> None:
        self.look()
        for host in list(self.hosts.values()):
            self.prepare(host)
        last = 0.0
        while True:
            now = time.monotonic()
            open_ = [h for h in self.hosts.values() if h.state in UNDER_WAY]
            if not open_:
                return
            alive = None
            if now - last > max(1.0, len(open_) / LISTED):
                last, alive = now, self.workers()
            if self.news:
                self.news = False
                for part in self.parts():
                    self.part(part)
            self._begin([h for h in open_ if h.state == "waiting" and now >= h.due])
            for host in open_:
                if host.state == "measuring" and host.future is not None:
                    self._step(host, now, alive)
            show()
            time.sleep(0.1)

    def _step(self, host: Host, now: float, alive: set[str] | None) -> None:
        if host.future.status != "pending":
            self.finished(host)
        elif alive is not None and host.address not in alive:
            host.future.cancel()
            self.again(host, "lost", "the worker was lost")
        elif now - host.began > self.options["time_limit"] + GRACE:
            host.future.cancel()
            self.again(host, "hung", f"nothing was heard of it for {now - host.began:.0f} s")

    def _begin(self, due: list[Host]) -> None:
        for host in due:
            if host.tries == 0:
                self.start(host)
        due = [h for h in due if h.tries and h.state == "waiting"]
        if not due:
            return
        # A worker that was started again has another address; those that measure have no time to answer.
        self.look()
        at_work = {h.address for h in self.hosts.values() if h.state == "measuring"}
        there = {}
        for address, own in self.probe(self.workers() - at_work).items():
            if hosts.refusal(own) is None:
                there.setdefault(own["id"], address)
        for host in due:
            if host.ident in there:
                host.address = there[host.ident]
                if self.prepare(host):
                    self.start(host)
            else:
                host.tries += 1
                self.again(host, "lost", host.words or "its worker is gone")

    def abandon(self) -> None:
        """The scheduler is gone: who had not ended is out of reach, and nobody goes on trying."""
        for host in self.hosts.values():
            if host.state in UNDER_WAY:
                host.state, host.words = "lost", "the scheduler was lost"

    def stop(self) -> None:
        for host in self.hosts.values():
            if host.future is not None:
                host.future.cancel(force=True)
