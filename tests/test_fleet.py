"""`wherry fleet report`, `query` and `metrics`: what run files say together, and files that strangers wrote."""

from __future__ import annotations

import html.parser
import importlib.util
import json
import math
import re

import fleet_runs
import numpy as np
import pytest
import report_runs
from made_runs import usual
from wherry import cli
from wherry.fleet import (
    bundle,
    chance,
    grouping,
    loading,
    metrics,
    outliers,
    page,
    summary,
    words,
)

HOSTS, CELLS = 300, 200


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    directory = tmp_path_factory.mktemp("fleet") / "runs"
    planted = fleet_runs.write(directory, HOSTS, CELLS, seed=3, share=0.03)
    return directory, planted


@pytest.fixture(scope="module")
def fleet(made) -> loading.Fleet:
    return loading.read(loading.expand([str(made[0])]))


def found_in(fleet: loading.Fleet) -> dict[str, set[str]]:
    _, found = outliers.find(fleet, grouping.groups(grouping.hosts(fleet)))
    kinds: dict[str, set[str]] = {}
    for own in found:
        kinds.setdefault(own.host.name, set()).add(own.kind)
    return kinds


# ---- outliers -----------------------------------------------------------------------------------------------------


def test_planted_outliers_are_found_and_no_other(made, fleet):
    _, planted = made
    kinds = found_in(fleet)
    assert {h: k for h, k in planted.items() if k not in kinds.get(h, set())} == {}
    assert set(kinds) <= set(planted)
    assert len(set(planted.values())) == len(fleet_runs.KINDS)


def test_a_fleet_without_outliers_has_none(tmp_path):
    layout = fleet_runs.Layout(CELLS)
    rng = np.random.default_rng(9)
    for number in range(HOSTS):
        (tmp_path / f"{number}.json").write_bytes(fleet_runs.run(layout, number, rng, None))
    assert found_in(loading.read(loading.expand([str(tmp_path)]))) == {}


def test_one_cell_far_out_is_named(tmp_path):
    layout = fleet_runs.Layout(CELLS)
    rng = np.random.default_rng(4)
    for number in range(100):
        run = json.loads(fleet_runs.run(layout, number, rng, None, models=1))
        if number == 7:
            run["cells"][50]["ns"]["median"] *= 9
        (tmp_path / f"{number}.json").write_text(json.dumps(run))
    assert found_in(loading.read(loading.expand([str(tmp_path)]))) == {
        "host-00007": {"single cells"}
    }


def host_runs(tmp_path, hosts, cells, kept, slow=None, noise=0.01):
    """Run files of one model that differ by chance; of host number i the first kept(i) cells. `slow`: a host and its
    cell that takes three times as long."""
    rng = np.random.default_rng(6)
    layout = fleet_runs.Layout(cells)
    run = json.loads(fleet_runs.run(layout, 0, rng, None, models=1))
    for number in range(hosts):
        own = json.loads(json.dumps(run))
        own["machine"] |= {"host": f"h{number}", "boot": f"{number:016x}"}
        own["cells"] = own["cells"][: kept(number)]
        own["rows"] = own["rows"][: math.ceil(kept(number) / len(fleet_runs.ROUTINES))]
        for place, cell in enumerate(own["cells"]):
            factor = np.exp(rng.normal(0, noise)) * (3 if (number, place) == slow else 1)
            cell["ns"] = {name: ns * factor for name, ns in cell["ns"].items()}
        (tmp_path / f"{number}.json").write_text(json.dumps(own))
    return loading.read(loading.expand([str(tmp_path)]))


@pytest.mark.parametrize(("having", "found"), [(3, {}), (12, {"h2": {"single cells"}})])
def test_a_cell_that_few_hosts_have_is_not_judged(tmp_path, having, found):
    """Fewer than five do not tell what is usual for it, however many the group has."""
    fleet = host_runs(
        tmp_path, 12, 600, lambda number: 600 if number < having else 60, slow=(2, 100)
    )
    assert found_in(fleet) == found


def test_a_host_that_measured_far_more_than_the_others(tmp_path):
    """What it alone has is no figure of how cells scatter."""
    fleet = host_runs(tmp_path, 6, 5000, lambda number: 5000 if number == 2 else 10)
    assert found_in(fleet) == {}


def test_hosts_that_are_alike_to_the_last_digit(tmp_path):
    fleet = host_runs(tmp_path, 6, 600, lambda number: 600, slow=(3, 4), noise=0)
    assert found_in(fleet) == {"h3": {"single cells"}}


def test_few_hosts_are_not_judged(tmp_path):
    for seed in range(3):
        usual(seed, clock=(1, 1, 5)[seed], host=f"h{seed}", boot=str(seed)).save(
            tmp_path / f"{seed}.json"
        )
    fleet = loading.read(loading.expand([str(tmp_path)]))
    report = summary.report(fleet)
    assert report.findings == []
    assert [g.judged for g in report.groups] == [False]
    assert "3 hosts are in groups of fewer than five" in " ".join(words.summary(report))
    alone = summary.report(loading.read(loading.expand([str(tmp_path / "0.json")])))
    assert "1 host is in a group of fewer than five" in " ".join(words.summary(alone))


@pytest.mark.parametrize("width", [60, 96, 200])
def test_tables_keep_to_the_width(width):
    heads = ("CPU model", "hypervisor", "other hosts", "Wherry/libc", "plan")
    rows = [("Intel(R) Xeon(R) Processor", "virtual machine (KVM)", "1", "0.93 ×", "avx512")] * 2
    lines = words.table(heads, rows, width)
    assert max(map(len, lines)) <= width and (len(lines) == 3) == (width > 60)
    text = " ".join(" ".join(lines).split())
    for word in ("Processor", "(KVM)", "0.93 ×", "avx512", "Wherry/libc"):
        assert word in text


def test_tails_are_measured():
    rng = np.random.default_rng(1)
    normal = chance.surprises(rng.normal(0, 1, 5000), 1e6)
    heavy = chance.surprises(rng.standard_t(2, 5000), 1e6)
    assert chance.heaviness(normal) == pytest.approx(1, abs=0.1)
    assert chance.heaviness(heavy) > 1.5


def test_a_surprise_is_the_chance_of_being_so_far_out():
    z = np.array([1.96, -1.96, 0.0, math.nan])
    both = chance.surprises(z, 1e6)
    assert both[:3] == pytest.approx([-math.log(0.05)] * 2 + [0], abs=2e-3)
    # On one side alone it is half of that, on the other no surprise at all.
    one = chance.surprises(z, 1e6, 1)
    assert one[:3] == pytest.approx([-math.log(0.025), 0, 0], abs=2e-3)
    assert math.isnan(both[3]) and math.isnan(one[3])
    # Of Student's t with three degrees of freedom one in twenty is beyond 3.182.
    assert chance.surprises(np.array([3.182]), 3.0) == pytest.approx(-math.log(0.05), abs=2e-3)
    # What is further out than four of five counts for less where tails are heavy.
    inner = -math.log(0.2)
    assert chance.calibrated(np.array([inner + 2, 1.0]), 2.0) == pytest.approx([inner + 1, 1.0])
    assert chance.heaviness(np.linspace(0, 50, chance.ENOUGH - 1)) == 1.0


def test_the_scatter_of_a_small_group_is_drawn_towards_the_usual():
    (small, freedom), (large, more) = chance.moderated([0.01, 0.03], [3, 101])
    assert (freedom, more) == pytest.approx((0.74 + 4, 37 + 4))
    assert small == pytest.approx(((0.74 * 0.01**2 + 4 * 0.02**2) / 4.74) ** 0.5)
    assert large == pytest.approx(((37 * 0.03**2 + 4 * 0.02**2) / 41) ** 0.5)
    # One group has nothing but its own; two hosts, and what is not known, tell nothing of what is usual.
    assert chance.moderated([0.01], [5]) == [(0.01, pytest.approx(1.48))]
    for own, sizes in (([9.0, 0.01, 0.01], [2, 5, 5]), ([math.nan, 0.01, 0.01], [5, 5, 5])):
        assert chance.moderated(own, sizes)[1] == pytest.approx((0.01, 5.48))
    assert chance.moderated([1e-6], [50])[0][0] == chance.LEAST_SCALE


@pytest.mark.parametrize("count", [1, 2, 5, 6])
def test_a_middle_passes_over_what_is_missing(count):
    rng = np.random.default_rng(3)
    values = np.full((8, 3), math.nan)
    values[:count, 0] = rng.normal(0, 1, count)
    values[:, 1] = rng.normal(0, 1, 8)
    found = chance.middle(values)
    assert found[:2] == pytest.approx([np.median(values[:count, 0]), np.median(values[:, 1])])
    assert math.isnan(found[2]) and np.isnan(chance.middle(values[:0])).all()


# ---- before and after, plans ---------------------------------------------------------------------------------------


def test_a_change_is_seen_host_by_host(tmp_path):
    for when, factor in (("2026-11-20T08:00:00Z", 1.0), ("2026-11-21T08:00:00Z", 0.8)):
        for number in range(8):
            made = usual(number + int(factor * 100), {"libc": factor}, host=f"h{number}")
            made.run["started"] = when
            made.run["machine"]["boot"] = f"{number}-{when}"
            made.save(tmp_path / f"{number}-{factor}.json")
    fleet = loading.read(loading.expand([str(tmp_path)]))
    changes = summary.report(fleet, since="2026-11-21").changes
    verdicts = {c.title.rpartition(": ")[2]: c.verdict for c in changes}
    assert verdicts["small, libc"] == "faster"
    assert verdicts["small, rep_movsb"] == "no change seen"
    ratio = next(c.ratio for c in changes if c.title.endswith("small, libc"))
    assert ratio == pytest.approx(0.8, rel=0.02)


@pytest.mark.parametrize("hosts", [3, 5, 10, 19, 20, 60])
def test_hosts_that_did_not_change_are_seldom_said_to_have(hosts):
    """One in 200 of ten comparisons each, as all ten together are to be wrong in one of 20 fleets."""
    rng = np.random.default_rng(8)
    told = [summary._change("x", rng.normal(0, 0.03, hosts), 10).verdict for _ in range(2000)]
    assert told.count("faster") + told.count("slower") <= 20
    # A change of five times their scatter is seen, but by a few hosts alone.
    seen = summary._change("x", rng.normal(0.15, 0.03, hosts), 10)
    assert seen.verdict == ("slower" if hosts >= 10 else "no change seen")


def test_a_few_odd_hosts_do_not_hide_a_change():
    rng = np.random.default_rng(8)
    logs = rng.normal(0.1, 0.02, 30)
    logs[:3] += 3.0
    assert summary._change("x", logs, 10).verdict == "slower"


def test_a_change_that_nobody_could_judge_is_not_called_none(tmp_path, wherry):
    """One host is too few for a change and for what is usual; with the same file on both sides there is none at all."""
    paths = [str(tmp_path / name) for name in ("a.json", "b.json")]
    for i, path in enumerate(paths):
        made = usual(1)
        made.run["started"] = f"2026-11-2{i}T00:00:00Z"
        made.save(tmp_path / path)
    target = tmp_path / "page.html"
    done = wherry("fleet", "report", paths[1], "--before", paths[0], "--html", str(target))
    assert done.returncode == 0 and "no change seen" not in done.stdout
    assert "too few to tell a change" in " ".join(done.stdout.split())
    shown = target.read_text()
    assert "nan" not in done.stdout and "nan" not in shown
    assert "no group has the five hosts" in shown and "None that" not in shown
    (tmp_path / "copy.json").write_bytes((tmp_path / "a.json").read_bytes())
    for before in (paths[0], str(tmp_path / "copy.json")):
        done = wherry("fleet", "report", paths[0], "--before", before)
        assert "no host has runs of both" in " ".join(done.stdout.split())


def plan(name: str, family: int, start: int, choice: str = "avx2"):
    from wherry.plans import OFF, Cpu, Plan

    thresholds = {f"{s}_{k}": OFF for s in ("copy", "set") for k in ("rep_to", "stream_from")}
    thresholds |= {"copy_rep_from": start, "set_rep_from": start}
    thresholds |= {"copy_rep_slow_ahead": 0, "copy_rep_all_from": start, "copy_backward_ahead": 0}
    thresholds |= dict.fromkeys(("copy_ymm_from", "copy_source_lines_to", "copy_parts_from"), OFF)
    thresholds |= {f"{s}_rep_recent_from": start for s in ("copy", "set")}
    thresholds |= {f"{s}_stream_recent_from": 0 for s in ("copy", "set")}
    return Plan(name, choice, Cpu("GenuineIntel", family), thresholds)


def test_a_bundle_has_one_plan_a_cpu_the_middle_of_its_hosts(tmp_path, wherry):
    from wherry import planfiles

    for i, (family, start) in enumerate(((6, 2048), (6, 4096), (6, 1 << 20), (7, 8192))):
        planfiles.write(tmp_path / f"{i}.toml", [plan(f"p{i}", family, start)])
    made = bundle.make(bundle.files([str(tmp_path)]))
    assert {(p.name, hosts) for p, hosts in made} == {("p1", 3), ("p3", 1)}
    usual(1).save(tmp_path / "run.json")
    done = wherry("fleet", "report", str(tmp_path), "--bundle", str(tmp_path / "all.plan"))
    assert done.returncode == 0, done.stderr
    assert len(planfiles.read(tmp_path / "all.plan")) == 2
    # As `wherry fleet tune --out` makes it: a directory of plans, and nothing else.
    (tmp_path / "mailed").mkdir()
    (tmp_path / "run.json").rename(tmp_path / "mailed" / "run.json")
    (tmp_path / "plans").mkdir()
    for i in range(4):
        (tmp_path / f"{i}.toml").rename(tmp_path / "plans" / f"{i}.toml")
    apart = ("fleet", "report", str(tmp_path / "mailed"), str(tmp_path / "plans"))
    done = wherry(*apart, "--bundle", str(tmp_path / "apart.plan"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "apart.plan").read_bytes() == (tmp_path / "all.plan").read_bytes()
    (tmp_path / "apart.plan").unlink()
    done = wherry(*apart)
    assert done.returncode == 2 and "has no run files" in done.stderr
    done = wherry(*apart[:2], apart[3], "--bundle", str(tmp_path / "apart.plan"))
    assert done.returncode == 2 and "only plans were given" in done.stderr
    # Read as one host more, an earlier bundle would change what is counted, and what the middle is.
    kept = (tmp_path / "all.plan").read_bytes()
    done = wherry("fleet", "report", str(tmp_path), "--bundle", str(tmp_path / "all.plan"))
    assert done.returncode == 2 and "one of the plans that are read" in done.stderr
    assert (tmp_path / "all.plan").read_bytes() == kept


@pytest.mark.parametrize("arguments", (("report", "--html"), ("metrics", "-o")))
def test_what_is_read_is_not_replaced_by_what_is_made_of_it(tmp_path, wherry, arguments):
    usual(1).save(tmp_path / "run.json")
    kept = (tmp_path / "run.json").read_bytes()
    (tmp_path / "link.json").symlink_to("run.json")
    command, option = arguments
    for given in (tmp_path / "run.json", tmp_path):
        done = wherry("fleet", command, str(given), option, str(tmp_path / "link.json"))
        assert done.returncode == 2 and "one of the run files itself" in done.stderr
        assert (tmp_path / "run.json").read_bytes() == kept


def test_a_page_replaces_no_run_file(tmp_path, wherry):
    """Those are not named as a page is."""
    usual(1).save(tmp_path / "run.json")
    usual(2).save(tmp_path / "other.json")
    kept = (tmp_path / "other.json").read_bytes()
    call = ("fleet", "report", str(tmp_path / "run.json"), "--html")
    done = wherry(*call, str(tmp_path / "other.json"))
    assert done.returncode == 2 and done.stdout == ""
    assert "--html" in done.stderr and "give a name that ends in .html" in done.stderr
    assert (tmp_path / "other.json").read_bytes() == kept
    (tmp_path / "x.html").mkdir()
    done = wherry(*call, str(tmp_path / "x.html"))
    assert done.returncode == 2 and "it is a directory" in done.stderr and done.stdout == ""


# ---- shown harmlessly ----------------------------------------------------------------------------------------------


class Tags(html.parser.HTMLParser):
    def __init__(self, text: str):
        super().__init__()
        self.found: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.add(tag)
        self.attributes |= {name for name, _ in attributes}


def test_names_with_markup_are_shown_harmlessly(tmp_path, wherry):
    for number in range(8):
        run = report_runs.hostile()
        run["machine"]["host"] = report_runs.HOSTILE[number]
        run["machine"]["boot"] = str(number)
        report_runs.write(tmp_path / f"{number}.json", run)
    (tmp_path / "<img src=x onerror=alert(1)>.json").write_text("{")
    target = tmp_path / "page.html"
    done = wherry("fleet", "report", str(tmp_path), "--html", str(target), "--all")
    assert done.returncode == 0, done.stderr
    tags = Tags(target.read_text())
    assert not tags.found & {"script", "img", "iframe", "object", "a", "link"}
    assert not {a for a in tags.attributes if a.startswith("on") or a in ("src", "href")}
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", done.stdout)
    text = wherry("fleet", "metrics", str(tmp_path)).stdout
    check_openmetrics(text)


def test_absurd_figures_are_no_figures(tmp_path, wherry):
    report_runs.write(tmp_path / "a.json", report_runs.absurd())
    usual(1).save(tmp_path / "b.json")
    done = wherry("fleet", "report", str(tmp_path), "--curves")
    assert done.returncode == 0, done.stderr


def test_nothing_to_read(tmp_path, capsys):
    (tmp_path / "x.json").write_text("{")
    x = str(tmp_path / "x.json")
    for arguments, said in (
        (("report", x), "no run file could be read"),
        (("report", str(tmp_path / "gone")), "does not exist"),
        (("report", str(tmp_path), "--since", "soon"), "is no time"),
        (("report", str(tmp_path), "--since", "2026-13-01"), "is no time"),
        (("report", str(tmp_path), "--since", "2026-11"), "is no time"),
        (("report", str(tmp_path), "--bundle", str(tmp_path / "b.plan")), "no plans"),
        (("report", str(tmp_path / "x.toml")), "only plans were given"),
        (("metrics", x), "is JSON that is cut short"),
        (("query", "SELECT 1", x), "is JSON that is cut short"),
    ):
        if arguments[0] == "query" and not importlib.util.find_spec("duckdb"):
            continue
        with pytest.raises(SystemExit) as end:
            cli.main(["fleet", *arguments])
        err = capsys.readouterr().err
        assert end.value.code == 2
        assert said in err and len(err.splitlines()) == 1


# ---- the forms it is given in ---------------------------------------------------------------------------------------


def test_the_report_as_text_page_and_json(made, wherry, tmp_path):
    directory, planted = made
    target = tmp_path / "page.html"
    done = wherry("fleet", "report", str(directory), "--html", str(target), "--curves")
    assert done.returncode == 0, done.stderr
    for host in planted:
        assert host in done.stdout
        assert host in target.read_text()
    assert "5 % (ns)" in done.stdout
    assert "<svg" in target.read_text()
    data = json.loads(wherry("fleet", "report", str(directory), "--json").stdout)
    assert data["hosts"] == HOSTS
    assert {f["host"] for f in data["findings"]} == set(planted)
    medians = [p[1] for g in data["groups"] for c in g["curves"] for p in c["points"]]
    assert medians and all(math.isfinite(m) for m in medians)


def check_openmetrics(text: str) -> list[tuple[str, str, float]]:
    """The grammar, strictly: types before samples, families together, labels escaped, one sample a label set. And of
    the older text format too, which knows no type info and in which a gauge's samples have the name of their family."""
    assert text.endswith("# EOF\n")
    label = r'[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*"'
    sample = re.compile(rf"(\w+)\{{({label}(?:,{label})*)\}} (\S+)")
    family, samples, families = "", [], []
    for line in text.splitlines()[:-1]:
        if line.startswith("# TYPE "):
            family, kind = line.split()[2:]
            assert family not in families and kind == "gauge"
            families.append(family)
        elif line.startswith("#"):
            assert line.split()[1] in ("UNIT", "HELP") and line.split()[2] == family
            if line.startswith("# UNIT"):
                assert family.endswith("_" + line.split()[3])
        else:
            match = sample.fullmatch(line)
            assert match, line
            assert match[1] == family
            samples.append((match[1], match[2], float(match[3])))
    assert len({s[:2] for s in samples}) == len(samples)
    return samples


def test_openmetrics(fleet):
    samples = check_openmetrics(metrics.text(fleet))
    assert sum(name == "wherry_run_info" for name, _, _ in samples) == HOSTS
    floors = [value for name, _, value in samples if name == "wherry_noise_floor_ratio"]
    assert len(floors) == HOSTS and 0.005 < np.median(floors) < 0.05


def test_hosts_are_told_apart_by_boot_and_runs_of_one_are_joined(tmp_path):
    usual(1).save(tmp_path / "a.json")
    later = usual(2)
    later.run["started"] = "2026-11-22T08:00:00Z"
    later.run["rows"], later.run["cells"] = later.run["rows"][:1], later.run["cells"][:5]
    later.save(tmp_path / "b.json")
    usual(3, boot="another").save(tmp_path / "c.json")
    fleet = loading.read(loading.expand([str(tmp_path)]))
    found = grouping.hosts(fleet)
    assert sorted(len(h.runs) for h in found) == [1, 2]
    columns, times = grouping.matrix(fleet, found)
    assert np.isfinite(times).all() and len(columns) == len(usual(1).run["cells"])
    joined = next(h for h in found if len(h.runs) == 2)
    assert joined.facts.path.endswith("b.json")
    page.page(summary.report(fleet))


def test_a_wrong_routine_is_told_beside_many_skips_and_after_other_experiments(tmp_path):
    """A CPU without AVX-512 has dozens of skips in a run; and another experiment there clears nothing."""
    skips = [{"kind": "skip", "routine": f"r{i}", "message": "needs AVX-512"} for i in range(1200)]
    bad = usual(1)
    wrong = {"kind": "wrong", "routine": "bad", "message": "byte 3", "experiment": "sizes"}
    bad.run["problems"] = [*skips, wrong, wrong | {"message": "byte 4"}]
    bad.run["experiments"][0]["name"] = "sizes"
    for own in (*bad.run["rows"], *bad.run["cells"]):
        own["experiment"] = "sizes"
    bad.save(tmp_path / "a.json")
    for name, cleared in (("zero", False), ("sizes", True)):
        later = usual(1)
        later.run["started"] = "2026-11-22T08:00:00Z"
        later.run["experiments"][0]["name"] = name
        for own in (*later.run["rows"], *later.run["cells"]):
            own["experiment"] = name
        later.save(tmp_path / "b.json")
        fleet = loading.read(loading.expand([str(tmp_path)]))
        assert len(fleet.runs[0].problems) == 1000
        (host,) = grouping.hosts(fleet)
        found = grouping.failures(fleet, host)
        assert {p[:2] for p in found} == (set() if cleared else {("wrong", "bad")})
        assert ("wrong routine" in {f.kind for f in summary.report(fleet).findings}) != cleared
        assert "\nwherry_wrong_routines{" in metrics.text(fleet)
        assert f"}} {int(not cleared)}\n# EOF" in metrics.text(fleet)


# ---- SQL ------------------------------------------------------------------------------------------------------------


def test_query(made, wherry):
    pytest.importorskip("duckdb", reason="needs the extra fleet (tools/setup test brings it)")
    sql = (
        "SELECT model, count(DISTINCT host) AS hosts FROM cells WHERE routine = 'libc' GROUP BY ALL"
    )
    done = wherry("fleet", "query", sql, str(made[0]), "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert len(rows) == 10 and sum(r["hosts"] for r in rows) == HOSTS
