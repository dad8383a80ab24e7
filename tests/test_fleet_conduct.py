"""Who is asked for what, how often, and where it goes: with a scheduler that answers at once."""

from __future__ import annotations

import gzip
import hashlib
import json
import sys

import fleet_fake
import pytest
from fleet_fake import Client, done, fleet, ident, measured
from made_runs import usual
from wherry.errors import WherryError
from wherry.fleet import agent, bundle, hosts, loading
from wherry.fleet.store import Store


def states(own) -> list[str]:
    return [host.state for host in own.hosts.values()]


def test_a_host_costs_the_same_among_many(monkeypatch):
    listed = []
    monkeypatch.setattr(
        Store, "names", lambda self, real=Store.names: listed.append(1) or real(self)
    )
    few, many = fleet_fake.cost(60), fleet_fake.cost(600)
    # What grows with the square of the hosts would be ten times as much.
    assert many < 3 * few
    assert len(listed) == 4


def test_another_storage_and_what_is_there(tmp_path):
    pytest.importorskip("fsspec", reason="needs the extra fleet (tools/setup test brings it)")
    where = f"memory://{tmp_path.name}/runs"
    data = measured()
    first = fleet(Client(3, lambda number, job: done(data)), where)
    assert states(first) == ["done"] * 3
    assert len(Store(where).names()) == 3
    client = Client(4, lambda number, job: done(data))
    assert states(fleet(client, where)) == ["there"] * 3 + ["done"]
    assert client.asked == [3]


def test_a_place_that_is_none():
    pytest.importorskip("fsspec", reason="needs the extra fleet (tools/setup test brings it)")
    with pytest.raises(WherryError, match="cannot be used"):
        Store("nonsense://x")


def test_one_per_model_and_another_when_the_first_fails(tmp_path):
    data = measured()

    def answer(number: int, job: dict) -> dict:
        return {"state": "failed", "words": "no room"} if number == 1 else done(data)

    client = Client(9, answer)
    own = fleet(client, str(tmp_path), one_per="model")
    assert sorted(client.asked) == [0, 1, 2, 4]
    assert sorted(states(own)) == ["done"] * 3 + ["failed"]


def test_a_busy_host_is_asked_again_and_then_told(tmp_path):
    data = measured()
    client = Client(2, lambda number, job: {"state": "busy", "words": "load 9.0 on 2 CPUs"})
    own = fleet(client, str(tmp_path))
    assert states(own) == ["busy"] * 2
    assert sorted(client.asked) == [0, 0, 1, 1]
    assert all("load 9.0" in host.words for host in own.hosts.values())
    client.answer = lambda number, job: done(data) if job["try"] == 2 else own_busy()
    assert states(fleet(client, str(tmp_path))) == ["done"] * 2


def own_busy() -> dict:
    return {"state": "busy", "words": "another campaign of a fleet is under way on it"}


def test_what_is_garbled_on_the_way_is_fetched_again(tmp_path):
    data = measured()

    def answer(number: int, job: dict) -> dict:
        return done(data) | ({"data": data[:-2]} if job["try"] == 1 else {})

    own = fleet(Client(1, answer), str(tmp_path))
    assert states(own) == ["done"]
    (file,) = tmp_path.iterdir()
    assert file.read_bytes() == data


def part(number: int, **more) -> dict:
    return {"id": ident(number), "try": 1, "data": gzip.compress(measured())} | more


def test_a_part_is_kept_when_its_host_is_at_work_and_it_is_a_run_file(tmp_path):
    client = Client(1, lambda number, job: None)
    own = fleet_fake.conduct.Fleet(client, "bench", [], Store(str(tmp_path)), fleet_fake.USUAL)
    own.meet()
    (host,) = own.hosts.values()
    own.prepare(host)
    own.start(host)
    empty = gzip.compress(json.dumps(usual(1).run | {"experiments": []}).encode())
    for bad in (
        *(None, [], {}, part(1), part(0, data=b"{}"), part(0, data=7), part(0, data=empty)),
        *(part(0, **{"try": 2}), part(0, id=[1])),
    ):
        own.part(bad)
        assert list(tmp_path.iterdir()) == []
    own.part(part(0))
    (file,) = tmp_path.iterdir()
    own.look()
    # Its host is lost: nothing is left to measure there.
    own.again(host, "lost", "gone")
    assert not own.prepare(host) and host.state == "done"
    own.part(part(0, data=b""))
    assert json.loads(file.read_text())["format"] == "wherry-run"


@pytest.mark.parametrize(
    "more",
    [{"id": "../../../etc"}, {"id": 5}, {"wherry": None}, {"system": ["Linux"]}, {"python": {}}],
)
def test_what_answers_strangely_is_refused(tmp_path, more):
    client = Client(2, lambda number, job: done(measured()))
    client.told = lambda number, own: own | more if number else own
    own = fleet(client, str(tmp_path))
    assert states(own) == ["done"]
    (strange,) = own.refused.values()
    assert "otherwise than Wherry" in strange.words


def test_a_name_that_is_taken_is_left_alone(tmp_path):
    """By somebody who called at the same time, after the files were listed."""
    client = Client(1, lambda number, job: done(measured()))
    own = fleet_fake.conduct.Fleet(client, "bench", [], Store(str(tmp_path)), fleet_fake.USUAL)
    own.meet()
    (host,) = own.hosts.values()
    own.prepare(host)
    own.start(host)
    other = tmp_path / f"h0-{ident(0)}-{own.mark}-1.run.json"
    other.write_text("theirs")
    own.finished(host)
    assert other.read_text() == "theirs"
    assert host.file.endswith("-2.run.json")


def test_a_default_that_wins_is_a_plan_too(tmp_path):
    """Written, so that a second call leaves the host alone, and counted when a bundle is made."""
    from test_fleet import plan
    from wherry import planfiles

    planfiles.write(tmp_path / "x.toml", [plan("default", 6, 4096)])
    data = (tmp_path / "x.toml").read_bytes()
    out = tmp_path / "out"
    client = Client(2, lambda number, job: done(data))
    assert states(fleet(client, str(out), kind="tune")) == ["done"] * 2
    client.asked.clear()
    assert states(fleet(client, str(out), kind="tune")) == ["there"] * 2
    assert client.asked == []
    assert [(p.name, hosts) for p, hosts in bundle.make(bundle.files([str(out)]))] == [
        ("default", 2)
    ]
    assert (
        hashlib.sha256(next(out.iterdir()).read_bytes()).digest() == hashlib.sha256(data).digest()
    )


# ---- glibc's tunables -----------------------------------------------------------------------------------------------


def tuned(**more) -> bytes:
    own = {"format": "wherry-tune-glibc", "interrupted": False, "line": "GLIBC_TUNABLES=glibc.x=1"}
    return json.dumps(own | more).encode()


def test_tunables_of_glibc_are_files_of_their_own(tmp_path):
    where, asked = str(tmp_path), ("--glibc", "--quick")
    answers = [tuned(), tuned(line=None), tuned(interrupted=True), b"{", b"[]"]
    client = Client(5, lambda number, job: done(answers[number]))
    own = fleet(client, where, "tune", asked)
    assert states(own) == ["done", "done", "failed", "failed", "failed"]
    told = [host.words for host in own.hosts.values()]
    assert told[:2] == ["GLIBC_TUNABLES=glibc.x=1", "no setting beats the default"]
    assert len(list(tmp_path.glob("*.glibc.json"))) == len(list(tmp_path.iterdir())) == 2
    # No plan is among them, no run file, and a plan is asked for all the same.
    with pytest.raises(WherryError, match="no plans"):
        bundle.make(bundle.files([where]))
    with pytest.raises(WherryError, match="no run files"):
        loading.expand([where])
    client.asked.clear()
    fleet(client, where, "tune", asked)
    assert client.asked == [2, 3, 4]
    client.asked.clear()
    fleet(client, where, "tune", ("--quick",))
    assert client.asked == [0, 1, 2, 3, 4]


def test_what_tune_prints_of_glibc_is_what_comes_back(tmp_path, monkeypatch):
    script = tmp_path / "python"
    script.write_text(f"""#!/bin/sh
case $1 in -c) exec {sys.executable} "$@";; esac
printf '{{"format": "wherry-tune-glibc", "interrupted": false, "line": "%s"}}' "$*"
""")
    script.chmod(0o755)
    monkeypatch.setattr(agent.sys, "executable", str(script))
    job = {"kind": "tune", "id": agent.host_id(), "arguments": ["--glibc", "--quick"]}
    job |= {"topic": "t", "experiments": 1, "time_limit": 60, "busy_load": 1e6}
    answer = agent.work(job)
    assert answer["state"] == "done", answer
    assert hosts.tunables(answer["data"], answer) == (
        "done",
        "-m wherry tune --glibc --quick --json",
    )


# ---- an object store ------------------------------------------------------------------------------------------------


def test_an_object_store(monkeypatch):
    pytest.importorskip("s3fs", reason="needs s3fs (PyPI), the driver of s3:// for fsspec")
    fake = pytest.importorskip("moto.server", reason="needs moto[server] (PyPI), an S3 for tests")
    server = fake.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "any")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        where, data = "s3://wherry-fleet/runs/deep", measured()
        assert states(fleet(Client(2, lambda number, job: done(data)), where)) == ["done"] * 2
        names = Store(where).names()
        assert len(names) == 2 and Store(where).read(names[0]) == data
        client = Client(3, lambda number, job: done(data))
        assert states(fleet(client, where)) == ["there", "there", "done"]
        assert client.asked == [2]
        with pytest.raises(WherryError, match="cannot be used"):
            Store("s3://Not a bucket/x")
    finally:
        server.stop()
