"""What the figures of `wherry fleet` are of: which cells are in a mean, and which hosts are one."""

from __future__ import annotations

import re

import pytest
from made_runs import Made, usual
from wherry.fleet import loading, metrics, outliers, summary


def test_unlike_cells_are_not_in_one_mean(tmp_path):
    made = Made(noise=0)
    for ns, unlike in ((10, {}), (20, {"places": "change"}), (40, {"mode": "p99"}), (90, {})):
        made.row("cells", {"libc": ns, "wherry": ns / 2}, size=64, dst_off=ns % 7, **unlike)
    made.row("cells", {"libc": 60, "wherry": 60}, size=64, code="cold", src_state="DRAM")
    made.row("cells", {"libc": 60, "wherry": 30}, size=64, handed="both", dst_state="L3")
    text = metrics.text(loading.read([made.save(tmp_path / "a.json")]))
    found = {}
    for name, labels, value in re.findall(r"^(\w+){(.*)} (\S+)$", text, re.MULTILINE):
        if 'op="copy",routine="wherry",' in labels:
            assert 'host="here"' in labels and 'experiment="cells"' in labels
            rest = labels.partition("region=")[2].replace('"', "")
            found.setdefault(rest, {})[name] = pytest.approx(float(value))
    times = {
        "near,mode=throughput": (15e-9, 0.5),
        "near,mode=throughput,places=change": (10e-9, 0.5),
        "near,mode=p99": (20e-9, 0.5),
        "DRAM,mode=throughput,code=cold": (60e-9, 1.0),
        "L3,mode=throughput,handed=both": (30e-9, 0.5),
    }
    names = ("wherry_call_time_seconds", "wherry_time_to_libc_ratio")
    assert found == {key: dict(zip(names, own, strict=True)) for key, own in times.items()}


def test_a_single_cell_is_told_from_its_neighbours(tmp_path):
    made = Made()
    unlike = ({}, {"mode": "p99", "threads": 2}, {"places": "change"}, {"code": "cold"})
    for own in unlike:
        made.row("cells", {"libc": 10.0}, size=4096, **own)
    fleet = loading.read([made.save(tmp_path / "a.json")])
    assert [outliers.cell_words(key) for key in fleet.keys] == [
        "cells: libc copy 4,096 B L1",
        "cells: libc copy 4,096 B L1 p99 2 threads",
        "cells: libc copy 4,096 B L1 places that change",
        "cells: libc copy 4,096 B L1 cold code",
    ]


def changes(directory, *runs):
    """Of runs as (host, boot, day, how much longer than usual); what began on the second day is after."""
    for number, (host, boot, day, factor) in enumerate(runs):
        made = usual(number, clock=factor, host=host, boot=boot)
        made.run["started"] = f"2026-11-{day:02}T08:00:00Z"
        made.save(directory / f"{number}.json")
    fleet = loading.read(loading.expand([str(directory)]))
    return summary.report(fleet, since="2026-11-02").changes


def test_boots_of_a_host_are_no_hosts_that_vary(tmp_path):
    """Else one that was restarted three times would tell a change of its model."""
    boots = [("a", str(day), day, 1.0 if day == 1 else 1.2 + day / 50) for day in (1, 5, 3, 4)]
    for own in changes(tmp_path, *boots):
        assert (own.hosts, own.verdict) == (1, summary.TOO_FEW)
        assert own.ratio == pytest.approx(1.3, rel=0.03)


def test_hosts_of_one_name_are_compared_with_themselves(tmp_path):
    runs = [("a", str(boot), day, 1.0 + boot) for boot in range(4) for day in (1, 2)]
    for own in changes(tmp_path, *runs):
        assert own.hosts == 4 and own.ratio == pytest.approx(1, rel=0.02)
