"""The way to a Dask scheduler, and what is said when there is none."""

from __future__ import annotations

import contextlib
import json
import logging
import re
from collections.abc import Callable
from pathlib import Path

from wherry import named_files
from wherry.errors import FailedError, WherryError
from wherry.fleet import missing

# At most; who wants to wait less sets distributed.comm.timeouts.connect, as for Dask.
CONNECT = 15.0
# Host and port, also of IPv6. A host may be missing: this one, as Dask has it.
_PLACE = re.compile(r"(?:\[[^\[\]/]+\]|[^\[\]:/\s]*):(\d{1,5})/?", re.ASCII)


# Of a file that tells of a scheduler; it has a few hundred bytes.
_MOST = 1 << 20


def _check_file(name: str) -> None:
    """Dask would find out with an assertion, or wait for what never comes."""
    try:
        found = json.loads(named_files.at_most(Path(name), _MOST))
    except OSError as error:
        raise WherryError(f"--scheduler {name}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("address"), str):
        raise WherryError(
            f"--scheduler {name} is no scheduler file; give one that dask scheduler --scheduler-file writes, or an "
            "address (tcp://HOST:PORT, tls://HOST:PORT)"
        )


def client(scheduler: str, options: dict):
    try:
        import dask
        import distributed
    except ModuleNotFoundError:
        raise missing("a scheduler needs Dask") from None
    # Losing the scheduler is told by us, in one line.
    logging.disable(logging.CRITICAL)
    dask.config.set({"distributed.comm.retry.count": 0})
    scheme = scheduler.partition("://")[0] if "://" in scheduler else "tcp"
    if scheme not in ("tcp", "tls", "ucx", "ws", "wss"):
        raise WherryError(
            f"--scheduler {scheduler} is no address of a scheduler; give tcp://HOST:PORT or tls://HOST:PORT"
        )
    if "://" not in scheduler and ":" not in scheduler and not Path(scheduler).is_file():
        raise WherryError(
            f"--scheduler {scheduler} is no address (tcp://HOST:PORT, tls://HOST:PORT), and there is no scheduler file "
            "of that name"
        )
    place = _PLACE.fullmatch(scheduler.removeprefix(f"{scheme}://"))
    if not Path(scheduler).is_file() and not (place and 1 <= int(place[1]) <= 65535):
        raise WherryError(
            f"--scheduler {scheduler} names no host with a port from 1 to 65535; give {scheme}://HOST:PORT"
        )
    files = {k: options[k] for k in ("tls_ca_file", "tls_cert", "tls_key")}
    for key, name in files.items():
        if name and not Path(name).is_file():
            raise WherryError(f"--{key.replace('_', '-')} {name}: there is no such file")
    how = {}
    if any(files.values()):
        if not scheduler.startswith("tls://"):
            raise WherryError(f"--tls-... goes with a tls:// address, and {scheduler} is none")
        how["security"] = distributed.Security(
            tls_ca_file=files["tls_ca_file"],
            tls_client_cert=files["tls_cert"],
            tls_client_key=files["tls_key"],
            require_encryption=True,
        )
    if Path(scheduler).is_file():
        _check_file(scheduler)
        how["scheduler_file"] = scheduler
    else:
        how["address"] = scheduler

    class Client(distributed.Client):
        def __del__(self) -> None:
            """One that could not connect would wait half a minute here, and end in a traceback."""

    usual = dask.utils.parse_timedelta(dask.config.get("distributed.comm.timeouts.connect"))
    try:
        return Client(timeout=min(CONNECT, usual), set_as_default=False, **how)
    except (OSError, ValueError, TimeoutError, RuntimeError, TypeError) as error:
        text = " ".join(str(error).split())[:200]
        raise FailedError(
            f"no scheduler answers at {scheduler}: {text}; start one with: dask scheduler"
        ) from None


def parts(client, topic: str) -> Callable[[], list]:
    """What campaigns under way have sent of their run files since the last call."""
    import distributed

    queue = distributed.Queue(topic, client=client)
    return lambda: queue.get(batch=True)


def leave(client) -> None:
    with contextlib.suppress(Exception):  # a scheduler that is gone cannot be taken leave of
        client.close(timeout=3)
