"""Files that a command writes by name: an earlier one of the same kind is replaced, nothing else is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import ROOT
from made_mixes import SMALL
from made_runs import usual
from test_formats import entry, gbench, saved
from test_plans import PLAN
from wherry import outputs, planbinary, planfiles, recordings, runfile, runner
from wherry.errors import WherryError
from wherry.report import still

PHOTO = b"\xff\xd8\xff\xe0\x00\x10JFIF and what somebody would miss\n"
# A command; what it writes is {}.
QUICK = (
    ("export r.json -o {}", "out.csv"),
    ("export r.json -o {}", "out.tsv"),
    ("export r.json -o {}", "out.md"),
    ("export r.json -o {}", "out.json"),
    ("export r.json -o {}", "out.txt"),
    ("export gb.json -o {}", "out.json"),
    ("export gb.json -o {}", "out.txt"),
    ("import gb.json -o {}", "run.json"),
    ("import gb.json", "gb.json.run.json"),
    ("fleet metrics r.json -o {}", "wherry.prom"),
    ("fleet report r.json --html {}", "fleet.html"),
    ("fleet report r.json one.toml --bundle {}", "fleet.toml"),
    ("fleet report r.json one.toml --bundle {}", "fleet.plan"),
    ("plan compile one.toml", "one.plan"),
    ("plan bundle one.toml -o {}", "two.toml"),
    ("plan bundle one.toml -o {}", "two.plan"),
    ("list mixes gcc.copy --export {}", "gcc.copy.csv"),
    ("list mixes gcc.copy --plot {}", "gcc.png"),
    ("report r.json", "r.html"),
    ("report r.json -o {}", "page.html"),
    ("report r.json --experiment small --plot {}", "small.svg"),
    ("report small.mix.json -o {}", "page.html"),
    ("report small.mix.json --plot {}", "small.png"),
    ("bench --show r.json --report", "r.html"),
)
# Those that would measure for long, or run something, are refused before.
LONG = (
    ("plan default -o {}", "own.toml"),
    ("tune --quick -o {}", "own.toml"),
    ("tune --quick", "wherry-plan.toml"),
    ("record -o {} -- touch ran", "own.mix.json"),
    ("record -- touch ran", "touch.mix.json"),
    ("replay small.mix.json --save {}", "run.json"),
    ("ab --save {} -- touch ran", "run.json"),
    ("bench sizes --size 64 --save {}", "run.json"),
    ("bench sizes --size 64 --save a.json --raw", "a.json.raw.json.gz"),
    ("bench sizes --size 64 --save a.json --plot {}", "a.svg"),
    ("bench sizes --size 64 --save a.json --report", "a.html"),
    ("bench --self-check --save {}", "check.json"),
)


@pytest.fixture
def there(tmp_path) -> Path:
    """What commands are given, in their directory."""
    usual(1).save(tmp_path / "r.json", raw=True)
    saved(tmp_path / "gb.json", gbench(entry("BM_memcpy/64", 3.0)))
    planfiles.write(tmp_path / "one.toml", [PLAN])
    recordings.write(tmp_path / "small.mix.json", SMALL)
    return tmp_path


@pytest.mark.parametrize(("words", "name"), QUICK)
def test_its_own_kind_is_replaced_and_nothing_else(there, call, words, name):
    asked, target = words.format(name).split(), there / name
    target.write_bytes(PHOTO)
    before = sorted(there.iterdir())
    status, _, said = call(*asked)
    assert status == 2 and target.read_bytes() == PHOTO and sorted(there.iterdir()) == before
    assert re.fullmatch(
        rf"wherry: cannot save to (.*/)?{re.escape(name)}: what is there is not .*, and would be lost; give another "
        "name, or remove it\n",
        said,
    )
    for _ in range(2):  # a second time: the file of the first is there
        target.write_bytes(b"") if target.read_bytes() == PHOTO else None
        status, _, said = call(*asked)
        assert status == 0, said
        assert len(target.read_bytes()) > len(PHOTO)


@pytest.mark.parametrize(("words", "name"), LONG)
def test_who_would_measure_for_long_is_told_at_once(there, wherry, words, name):
    (there / name).write_bytes(PHOTO)
    before = sorted(there.iterdir())
    done = wherry(*words.format(name).split(), cwd=there)
    assert done.returncode == 2 and "and would be lost; give another name" in done.stderr
    assert (there / name).read_bytes() == PHOTO and sorted(there.iterdir()) == before


def test_a_default_place_that_cannot_be_written_is_told_before_tune_measures(
    call, monkeypatch, tmp_path
):
    """Not by the rights of a directory, which do not bind root."""

    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(runfile, "_write", refused)
    monkeypatch.setattr(runner, "cpu", lambda: pytest.fail("it went on"))
    status, _, said = call("tune", "--quick")
    assert status == 2 and not list(tmp_path.iterdir()), said
    assert (
        said == "wherry: cannot save to wherry-plan.toml: Permission denied; choose another place\n"
    )


def _kinds(place: Path) -> dict[outputs.Kind, Path]:
    """A file of each kind."""
    place.mkdir()
    run = usual(1)
    made = {outputs.RUN: run.save(place / "run.json", raw=True)}
    made[outputs.RAW] = place / "run.json.raw.json.gz"
    for kind, name, document in (
        (outputs.SELF_CHECK, "check.json", {"format": "wherry-self-check"}),
        (outputs.MIX, "m.mix.json", SMALL),
    ):
        runfile.write(place / name, document)
        made[kind] = place / name
    for kind, name, data in (
        (planfiles.TEXT, "p.toml", None),
        (planfiles.COMPILED, "p.plan", planbinary.encode([PLAN])),
        (outputs.SIZES, "m.csv", b"8:0.5,64:0.5\n"),
        (outputs.PAGE, "page.html", f"<head>{outputs.PAGE_MARK}</head>".encode()),
        (outputs.PICTURE, "p.svg", b"<svg></svg>"),
        (outputs.METRICS, "m.prom", b"# TYPE wherry_run_info gauge\n"),
    ):
        made[kind] = place / name
        if data is None:
            planfiles.write(made[kind], [PLAN])
        else:
            outputs.write(made[kind], data, kind)
    from wherry.formats import export
    from wherry.formats.samples import Samples

    for form, kind in outputs.EXPORTS.items():
        made[kind] = place / f"export.{form}"
        made[kind].write_text(export.text(form, run.run, Samples(run.run)))
    return made


def test_no_kind_takes_another_for_itself(tmp_path):
    """Nor a text that begins as one of ours, and that somebody has gone on with."""
    made = _kinds(tmp_path / "all")
    assert len(made) == 15
    for kind, path in made.items():
        outputs.refuse(path, kind, path.read_bytes())
        for other in made:
            if other is not kind:
                with pytest.raises(WherryError, match=f"is not {re.escape(other.name)}, and would"):
                    outputs.refuse(path, other)
    table = made[outputs.EXPORTS["markdown"]]
    table.write_text(f"{table.read_text()}\nWhat this shows is that\n")
    with pytest.raises(WherryError, match="would be lost"):
        outputs.refuse(table, outputs.EXPORTS["markdown"])


@pytest.mark.parametrize("ending", [".png", ".svg"])
def test_a_signed_picture_is_a_picture(tmp_path, ending):
    """A PNG's chunks have a sum each, by which whoever reads it would see that one is wrong."""
    import zlib

    data = still.draw(usual(1).run, "small", tmp_path / f"p{ending}")
    outputs.write(tmp_path / f"p{ending}", data, outputs.PICTURE)
    signed = (tmp_path / f"p{ending}").read_bytes()
    if ending == ".svg":
        import xml.etree.ElementTree as tree

        assert tree.fromstring(signed).tag.endswith("svg")
        return
    at, kinds = 8, []
    while at < len(signed):
        size = int.from_bytes(signed[at : at + 4], "big")
        body = signed[at + 4 : at + 8 + size]
        assert int.from_bytes(signed[at + 8 + size : at + 12 + size], "big") == zlib.crc32(body)
        kinds.append(body[:4])
        at += 12 + size
    assert kinds[:2] == [b"IHDR", b"tEXt"] and kinds[-1] == b"IEND" and kinds.count(b"tEXt") == 1


def test_what_is_read_is_not_replaced_by_what_is_made_of_it(there, call):
    for words, what in (
        ("plan bundle one.toml -o one.toml", "a plan that is read"),
        ("plan compile one.toml -o one.toml", "a compiled plan is no text"),
        ("export r.json -o r.json", "the run file"),
        ("export r.json --format csv -o r.json.raw.json.gz", "its raw samples"),
        ("import gb.json -o gb.json", "the file that is imported"),
        ("fleet metrics r.json -o r.json", "one of the run files"),
        ("fleet report . --bundle one.toml", "one of the plans that are read"),
        ("report small.mix.json --plot small.mix.json", "ends in .png or .svg"),
    ):
        before = {own: own.read_bytes() for own in there.iterdir()}
        status, _, said = call(*words.split())
        assert status == 2 and what in said, (words, said)
        assert {own: own.read_bytes() for own in there.iterdir()} == before
    status, _, said = call("ab", "--stdin", "one.toml", "--keep", ".", "--", "cat")
    assert status == 2 and "might replace; give another directory" in said
    (there / "text.plan").write_bytes((there / "one.toml").read_bytes())
    status, _, said = call("plan", "compile", "text.plan")
    assert status == 2 and "would be replaced by its compiled form" in said


def test_two_options_do_not_write_one_file(there, call):
    for words in (
        "list mixes gcc.copy --plot x.svg --export ./x.svg",
        "fleet report r.json one.toml --html x.html --bundle x.html",
    ):
        status, _, said = call(*words.split())
        assert status == 2 and "goes there; give another name" in said
    assert not list(there.glob("x.*"))


def test_a_link_to_itself_is_named(there, call):
    (there / "x.html").symlink_to("x.html")
    words = "fleet report r.json one.toml --html x.html --bundle x.html"
    status, _, said = call(*words.split())
    assert status == 2 and "--bundle x.html: the file of --html goes there" in said


def test_the_same_mix_may_be_written_again(there, call):
    """That loses nothing; a file of its form that says something else may be one that was written by hand."""
    assert call("list", "mixes", "gcc.copy", "--export", "m.csv")[0] == 0
    assert call("list", "mixes", "gcc.copy", "--export", "m.csv")[0] == 0
    status, _, said = call("list", "mixes", "gcc.set", "--export", "m.csv")
    assert status == 2 and "m.csv: what is there is not the same mix" in said


def test_what_may_not_be_read_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("x")

    def refuses(*_: object):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuses)
    with pytest.raises(WherryError, match="may not be read, so nobody knows what would be lost"):
        outputs.refuse(path, outputs.PAGE)


# What writes under a name that no user gives, or that was checked before anything was measured.
ASK_BEFORE = {
    "bootcache.py": 1,  # a cache
    "planuse.py": 1,  # a cache
    "planfiles.py": 1,  # a cache
    "fleet/store.py": 1,  # names of its own, past those that are there
    "journal.py": 1,  # beside the run; journal.check_none
    "cli/keeping.py": 3,
    "cli/importing.py": 1,
    "cli/replaying.py": 1,
    "outputs.py": 1,
    # In a directory that was new, or empty; outside.check.
    "recording/leftovers.py": 1,
    "recording/outside.py": 1,
}


def test_no_command_writes_by_name_without_asking():
    home, found = ROOT / "python" / "wherry", {}
    for file in sorted(home.rglob("*.py")):
        if calls := re.findall(r"\brunfile\.write(?:_\w+)?\(", file.read_text()):
            found[file.relative_to(home).as_posix()] = len(calls)
    assert found == ASK_BEFORE


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("export r.json -o", "\x1b[2J\n.csv"),
        ("import gb.json -o", "\x1b[2J\n.json"),
        ("plan compile one.toml -o", "\x1b[2J\n.plan"),
        ("list mixes gcc.copy --export", "\x1b[2J\n.csv"),
        ("report small.mix.json -o", "\x1b[2J\n.html"),
        ("fleet report r.json --html", "\x1b[2J\n.html"),
    ],
)
def test_a_name_is_told_on_one_line_and_as_no_order_to_the_terminal(there, call, words, name):
    status, out, err = call(*words.split(), name)
    assert status == 0 and (there / name).is_file()
    assert "\x1b" not in out + err and "\\x1b[2J ." in out + err


def test_a_file_in_the_place_of_a_directory_is_told_as_that(there, call):
    status, _, said = call("export", "r.json", "-o", "gb.json/x.csv")
    assert status == 1 and "a file is where its directory would be" in said


def test_a_dash_is_standard_output(there, call):
    assert call("export", "r.json", "-o", "-") == call("export", "r.json")
    assert not (there / "-").exists()


def test_the_end_of_the_options_is_no_name(there, call):
    """`-o --`, where the name was forgotten, would run the command and leave a file of that name."""
    for words in ("record -o -- touch ran", "ab --save -- touch ran", "export r.json -o --"):
        status, _, said = call(*words.split())
        assert status == 2 and "--: the name is missing" in said
    assert not (there / "ran").exists() and not (there / "--").exists()


def test_what_a_run_cannot_write_is_told_before_the_first(there, call, monkeypatch):
    (there / "kept").mkdir()
    monkeypatch.setattr("os.access", lambda path, mode: Path(path).name != "kept")
    status, _, said = call("ab", "--keep", "kept", "--", "touch", "ran")
    assert status == 2 and "--keep kept: nothing may be written there" in said
    assert not (there / "ran").exists()


def test_a_plan_that_is_kept_says_nothing_of_its_directory(tmp_path, monkeypatch, capfd):
    """Nobody named it, and the program that is about to run has the same standard error."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "none"))
    assert planfiles.keep([PLAN]).is_file() and capfd.readouterr().err == ""


@pytest.mark.parametrize("name", ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"])
def test_nothing_is_written_beside_a_descriptor(name: str):
    with pytest.raises(WherryError) as caught:
        outputs.beside(Path(name), "own.plan")
    assert str(caught.value) == (
        f"{name}: nothing is written beside that; give the name of a file with -o"
    )
    assert outputs.beside(Path("/dev/shm/x.toml"), "x.plan") == Path("/dev/shm/x.plan")


def test_what_is_read_from_standard_input_needs_a_name(wherry, tmp_path):
    planfiles.write(tmp_path / "one.toml", [PLAN])
    saved(tmp_path / "gb.json", gbench(entry("BM_copy/64", 3.5)))
    for words, name in (("plan", "compile"), "one.toml"), (("import",), "gb.json"):
        for more, status in ((), 2), (("-o", tmp_path / "out"), 0):
            (tmp_path / "out").unlink(missing_ok=True)
            with (tmp_path / name).open() as given:
                done = wherry(*words, "/dev/fd/0", *more, stdin=given)
            assert done.returncode == status, done.stderr
            assert ("nothing is written beside that" in done.stderr) == (status == 2)
            assert (tmp_path / "out").exists() == (status == 0)
