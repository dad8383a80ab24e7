"""What of the machine is not for this process, by its affinity and its control groups: found, and told."""

from __future__ import annotations

import pytest
from wherry import machine


@pytest.mark.parametrize(
    ("files", "cpus"),
    [
        ({}, None),
        ({"/proc/self/cgroup": "0::/a/b", "/sys/fs/cgroup/a/b/cpu.max": "max 100000"}, None),
        ({"/proc/self/cgroup": "0::/a/b", "/sys/fs/cgroup/a/cpu.max": "50000 100000"}, 0.5),
        ({"/proc/self/cgroup": "0::/", "/sys/fs/cgroup//cpu.max": "150000 100000"}, 1.5),
        (
            {
                "/proc/self/cgroup": "5:cpuacct,cpu:/a\n0::/",
                "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "20000",
                "/sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000",
            },
            0.2,
        ),
        (
            {
                "/proc/self/cgroup": "4:cpu:/a",
                "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "-1",
                "/sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000",
            },
            None,
        ),
    ],
)
def test_a_cpu_quota(files, cpus):
    assert machine.cpu_quota(lambda path: files.get(path, "")) == cpus


def test_cpus_that_are_not_for_this_process_are_told():
    record = machine.record()
    own = record["cpu"] | {"count": 4, "usable": [1, 3]}
    assert machine.cpu(record | {"cpu": own}).endswith(", 4 CPUs, 2 of them for this process")
    assert machine.cpu(record | {"cpu": own | {"usable": [0, 1, 2, 3]}}).endswith(", 4 CPUs")
    # Other tools' files do not tell it.
    assert machine.cpu(record | {"cpu": own | {"usable": []}}).endswith(", 4 CPUs")


def test_a_cpu_quota_is_told(monkeypatch):
    record = machine.record()
    monkeypatch.setattr(machine, "cpu_quota", lambda: 0.5)
    assert "CPU quota of 0.5" in [item["what"] for item in machine.uncontrolled(record)]
    monkeypatch.setattr(machine, "cpu_quota", lambda: float(len(record["cpu"]["usable"])))
    assert not any("quota" in item["what"] for item in machine.uncontrolled(record))


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({}, None),
        ({"/proc/self/cgroup": "0::/a", "/sys/fs/cgroup/a/memory.max": "max"}, None),
        (
            {
                "/proc/self/cgroup": "0::/a/b",
                "/sys/fs/cgroup/a/memory.max": "1000",
                "/sys/fs/cgroup/a/b/memory.max": "2000",
            },
            1000,
        ),
        (
            {
                "/proc/self/cgroup": "4:memory:/a\n0::/",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
                "/sys/fs/cgroup/memory/a/memory.limit_in_bytes": "157286400",
            },
            150 << 20,
        ),
    ],
)
def test_a_memory_limit(files, limit):
    assert machine.memory_limit(lambda path: files.get(path, "")) == limit


def test_a_memory_limit_is_told(monkeypatch):
    record = machine.record()
    monkeypatch.setattr(machine, "memory_limit", lambda: 150 << 20)
    assert "memory limit of 150 MiB" in [item["what"] for item in machine.uncontrolled(record)]
    for much in (None, 1 << 62):
        monkeypatch.setattr(machine, "memory_limit", lambda own=much: own)
        assert not any("limit" in item["what"] for item in machine.uncontrolled(record))
