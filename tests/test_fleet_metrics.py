"""`wherry fleet metrics`: of which cells a figure is the mean."""

from __future__ import annotations

import re

import pytest
from made_runs import Made
from wherry.fleet import loading, metrics


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
