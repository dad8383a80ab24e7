"""A scheduler that is none: hosts that answer at once, so that what is ours can be tried on ten thousand of them.

python tests/fleet_fake.py HOSTS...     what a host costs whoever calls, by their number
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Callable

from made_runs import usual
from wherry import version
from wherry.fleet import conduct
from wherry.fleet.store import Store

USUAL = {"one_per": "host", "time_limit": 60, "retries": 1, "wait": 0, "busy_load": 1}


def ident(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()[:16]


class Future:
    def __init__(self, answer: object):
        self.answer = answer
        self.status = "pending" if answer is None else "finished"

    def result(self) -> object:
        return self.answer

    def cancel(self, force: bool = False) -> None:
        self.status = "cancelled"


def done(data: bytes) -> dict:
    sound = hashlib.sha256(data).hexdigest()
    return {"state": "done", "words": "", "status": 0, "data": data, "sha256": sound}


def measured() -> bytes:
    run = usual(1).run
    return json.dumps(run | {"experiments": [{"name": "sizes", "complete": True}]}).encode()


class Client:
    """`answer` tells what a host's work comes to: by its number and the job, how often it was asked."""

    status = "running"

    def __init__(self, hosts: int, answer: Callable[[int, dict], dict | None], models: int = 3):
        self.addresses = {f"tcp://{i:06d}": i for i in range(hosts)}
        self.answer, self.models = answer, models
        self.asked: list[int] = []
        self.listed = 0
        self.told: Callable[[int, dict], dict] = lambda number, own: own

    def scheduler_info(self, n_workers: int) -> dict:
        self.listed += 1
        return {"workers": self.addresses}

    def submit(self, call, text: str, given: dict | None = None, *, workers, **options) -> Future:
        assert call is eval and len(workers) == 1
        number = self.addresses[workers[0]]
        if text == conduct.PROBING:
            own = {"id": ident(number), "host": f"h{number}", "arch": "x86_64", "system": "Linux"}
            own |= {"wherry": version(), "python": "python3", "lacks": None}
            return Future(self.told(number, own | {"model": f"model {number % self.models}"}))
        self.asked.append(number)
        return Future(self.answer(number, given["job"]))

    def gather(self, futures: list[Future], errors: str) -> list:
        return [future.result() for future in futures]


def fleet(
    client: Client, where: str, kind: str = "bench", arguments: tuple[str, ...] = (), **options
) -> conduct.Fleet:
    own = conduct.Fleet(client, kind, list(arguments), Store(where), USUAL | options)
    own.meet()
    own.run(lambda: None)
    return own


def cost(hosts: int) -> float:
    """Seconds of CPU a host: met, given work, its run file of some kilobytes read and written; and all found there."""
    data = measured()
    with tempfile.TemporaryDirectory() as directory:
        began = time.process_time()
        fleet(Client(hosts, lambda number, job: done(data)), directory)
        again = Client(hosts, lambda number, job: done(data))
        fleet(again, directory)
        assert again.asked == []
        return (time.process_time() - began) / hosts


if __name__ == "__main__":
    for word in sys.argv[1:]:
        print(f"{int(word):7,d} hosts  {cost(int(word)) * 1e3:6.2f} ms of CPU a host")
