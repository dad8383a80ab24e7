"""Who may use whom: the directions between the rooms, and that this test sees a wrong one."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from conftest import ROOT, program, run

PUBLIC = "include/wherry.h"
# A file of a room includes its own room's files and those whose path begins with one of these.
MAY_INCLUDE = {
    "include": [],
    "src/cpu": [],
    "src/routines": [],
    "src/plan": ["src/cpu/", "src/routines/registry.", "src/routines/thresholds.h"],
    "src/planfile": ["src/plan/", "src/cpu/", "src/routines/thresholds.h"],
    "src/dispatch": [
        "src/plan/",
        "src/planfile/",
        "src/cpu/",
        "src/routines/registry.",
        "src/routines/thresholds.h",
        "src/routines/recent.h",
        "src/routines/written.h",
        "src/routines/touched.h",
        "src/routines/ends.h",
        "src/routines/lines.h",
        "src/routines/arrangement.h",
        "src/routines/csum.h",
        "src/routines/asm.h",
        "src/routines/guarded/",
        "src/guard/guard.h",
        "src/guard/holder.h",
        PUBLIC,
    ],
    "src/guard": ["src/routines/guarded/fault_table.h", "src/routines/asm.h", PUBLIC],
    "preload": ["src/dispatch/", "src/planfile/planfile.h"],
    "runner": [
        "src/plan/",
        "src/cpu/",
        "src/dispatch/",
        "src/routines/registry.",
        "src/routines/arrangement.h",
        "src/routines/asm.h",
        PUBLIC,
    ],
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
FORBIDDEN_MODULES = {"ctypes", "cffi", "tests", "conftest"}
# The packages that a package of python/wherry imports, beside the modules that are in none. The command line is not
# among them: it is the top floor, which nobody but __main__ imports.
SYSTEMS = {"chasing", "networking", "striping", "switching"}
MAY_IMPORT = {
    "ab": set(),
    "chasing": set(),
    "compare": {"formats"},
    "experiments": {"scoreboard", *SYSTEMS},
    "fleet": {"experiments", "report"},
    "formats": set(),
    "networking": set(),
    "recording": set(),
    "replay": {"recording"},
    "report": {"compare", "experiments", "recording", "scoreboard", "switching", "then"},
    "scoreboard": set(),
    "selfcheck": set(),
    "striping": set(),
    "switching": set(),
    "then": {"experiments", *SYSTEMS},
    "tune": set(),
}


def room_of(path: str) -> str | None:
    return next((room for room in MAY_INCLUDE if path.startswith(room + "/")), None)


def resolve(root: Path, file: Path, name: str) -> str | None:
    """The project's file that an include line means, or None when it is not one of ours."""
    for base in (file.parent, root / "src", root / "include", root / "runner"):
        for of in (name, f"{name}.in"):  # what the build makes of a template
            target = (base / of).resolve()
            if target.is_file() and target.is_relative_to(root):
                return target.relative_to(root).as_posix()
    return None


def wrong_includes(root: Path) -> list[str]:
    wrong = []
    for top in ("include", "src", "preload", "runner"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in {".c", ".h", ".S", ".def"}:
                continue
            path = file.relative_to(root).as_posix()
            room = room_of(path)
            if room is None:
                wrong.append(f"{path} is in no room of the house")
                continue
            for mark, name in INCLUDE.findall(file.read_text()):
                target = resolve(root, file, name)
                if target is None:
                    if mark == '"':
                        wrong.append(f'{path} includes "{name}", which is nowhere')
                elif not any(target.startswith(p) for p in (room + "/", *MAY_INCLUDE[room])):
                    wrong.append(f"{path} includes {target}; {room} may not")
    return wrong


def wrong_imports(root: Path) -> list[str]:
    wrong = []
    for file in sorted((root / "python").rglob("*.py")):
        path = file.relative_to(root).as_posix()
        for node in ast.walk(ast.parse(file.read_text(), path)):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                names = [node.module]
            wrong += [
                f"{path}:{node.lineno} imports {name}"
                for name in names
                if name.split(".")[0] in FORBIDDEN_MODULES
            ]
    return wrong


def imports_of_ours(root: Path) -> dict[str, dict[str, int]]:
    """Of each module of python/ the modules of it that it imports, wherever in its text, with the line."""
    files = {}
    for file in sorted(root.rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    found: dict[str, dict[str, int]] = {}
    for module, file in files.items():
        found[module] = {}
        for node in ast.walk(ast.parse(file.read_text(), str(file))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                inside = [f"{node.module}.{alias.name}" for alias in node.names]
                names = [name if name in files else node.module for name in inside]
            for name in names:
                if name in files and name != module:
                    found[module].setdefault(name, node.lineno)
    return found


def circles(imports: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Modules that reach each other: what stands in for its own is named once, in the order of the alphabet."""
    reached: dict[str, set[str]] = {}
    for module in imports:
        seen, ahead = set(), list(imports[module])
        while ahead:
            if (name := ahead.pop()) not in seen:
                seen.add(name)
                ahead += imports.get(name, ())
        reached[module] = seen
    own = {
        tuple(sorted({module, *(name for name in seen if module in reached.get(name, ()))}))
        for module, seen in reached.items()
        if module in seen
    }
    return sorted(map(list, own))


def package_of(module: str) -> str:
    """`fleet` of wherry.fleet.cells, and nothing of a module that is in no package of wherry."""
    _, _, inside = module.partition(".")
    package, dot, _ = inside.partition(".")
    return package if dot or package in {*MAY_IMPORT, "cli"} else ""


def wrong_packages(imports: Mapping[str, Mapping[str, int]]) -> list[str]:
    wrong = []
    for module, others in imports.items():
        own = package_of(module)
        for name, line in others.items():
            of = package_of(name)
            if of == "cli":
                right = own == "cli" or module == "wherry.__main__"
            else:
                right = of in {"", own} or own in {"", "cli"} or of in MAY_IMPORT.get(own, ())
            if not right:
                wrong.append(f"{module}:{line} imports {name}")
    return wrong


def rooms(root: Path) -> set[str]:
    """Where the parts of the code are; the map names each."""
    files = [
        *root.glob("src/*/*.[chS]"),
        *root.glob("runner/*/*.[chS]"),
        *root.glob("preload/*/*.[chS]"),
    ]
    files += root.glob("python/wherry/*/__init__.py")
    return {f"{file.parent.relative_to(root).as_posix()}/" for file in files}


def test_the_map_names_every_room():
    told = (ROOT / "ARCHITECTURE.md").read_text()
    assert len(rooms(ROOT)) > 30
    assert {room for room in rooms(ROOT) if f"`{room}`" not in told} == set()


def test_python_packages():
    imports = imports_of_ours(ROOT / "python")
    assert len(imports) > 200
    assert wrong_packages(imports) == []
    assert {package_of(name) for name in imports} == {"", "cli", *MAY_IMPORT}


def test_no_modules_import_each_other_in_a_circle():
    assert circles(imports_of_ours(ROOT / "python")) == []


def test_a_circle_is_seen(tmp_path: Path):
    for name, text in {
        "a": "from w import b",
        "b": "import w.c",
        "c": "def f():\n    from w.a import g",
        "d": "import w.a, w.d",
    }.items():
        (tmp_path / "w").mkdir(exist_ok=True)
        (tmp_path / f"w/{name}.py").write_text(text + "\n")
    assert circles(imports_of_ours(tmp_path)) == [["w.a", "w.b", "w.c"]]


@pytest.mark.parametrize(
    ("module", "imports", "right"),
    [
        ("wherry.tune.whole", "wherry.cli.tuning", False),
        ("wherry.runner", "wherry.cli.printer", False),
        ("wherry.tune.whole", "wherry.report.page", False),
        ("wherry.experiments", "wherry.then.sizes", False),
        ("wherry.then.sizes", "wherry.experiments", True),
        ("wherry.tune.whole", "wherry.plans", True),
        ("wherry.cli.tune", "wherry.report.page", True),
        ("wherry.__main__", "wherry.cli", True),
    ],
)
def test_a_wrong_package_is_seen(module: str, imports: str, right: bool):
    assert (wrong_packages({module: {imports: 7}}) == []) is right


def test_c_directions():
    assert wrong_includes(ROOT) == []


def test_python_directions():
    assert wrong_imports(ROOT) == []


@pytest.fixture
def house(tmp_path: Path) -> Path:
    for path in (
        "src/cpu/cpu.h",
        "src/routines/registry.h",
        "src/routines/vec.h",
        "src/plan/plan.h",
        PUBLIC,
        "tests/t.h",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "line", "fault"),
    [
        ("src/cpu/a.c", '#include "routines/registry.h"', "src/cpu may not"),
        ("src/cpu/a.c", "#include <wherry.h>", "src/cpu may not"),
        ("src/routines/rep/a.c", '#include "cpu/cpu.h"', "src/routines may not"),
        ("src/routines/a.S", '# include "../cpu/cpu.h"', "src/routines may not"),
        ("src/plan/a.c", '#include "routines/vec.h"', "src/plan may not"),
        ("src/plan/a.c", '#include "wherry.h"', "src/plan may not"),
        ("runner/a.c", '#include "../tests/t.h"', "runner may not"),
        ("preload/a.c", '#include "routines/vec.h"', "preload may not"),
        ("src/guard/a.c", '#include "plan/plan.h"', "src/guard may not"),
        ("src/planfile/a.c", '#include "wherry.h"', "src/planfile may not"),
        ("src/routines/a.c", '#include "gone.h"', "nowhere"),
        ("src/new/a.c", "", "no room"),
    ],
)
def test_a_wrong_include_is_seen(house: Path, path: str, line: str, fault: str):
    (house / path).parent.mkdir(parents=True, exist_ok=True)
    (house / path).write_text(line + "\n")
    found = wrong_includes(house)
    assert len(found) == 1
    assert fault in found[0]


def test_right_includes_are_let_pass(house: Path):
    for path, line in [
        (
            "src/plan/a.c",
            '#include "cpu/cpu.h"\n#include "routines/registry.h"\n#include <stdio.h>',
        ),
        ("src/routines/rep/a.c", '#include "../vec.h"\n#include "routines/registry.h"'),
        ("runner/a.c", "#include <wherry.h>"),
    ]:
        (house / path).parent.mkdir(parents=True, exist_ok=True)
        (house / path).write_text(line + "\n")
    assert wrong_includes(house) == []


@pytest.mark.parametrize("line", ["import ctypes", "from ctypes import util", "import a, tests.x"])
def test_a_wrong_import_is_seen(tmp_path: Path, line: str):
    (tmp_path / "python").mkdir()
    (tmp_path / "python/a.py").write_text(f"def f():\n    {line}\n")
    assert len(wrong_imports(tmp_path)) == 1


# Each of Wherry's commands as the first to be imported: the tests start them out of one process, which has all of them.
FIRST = """
import importlib, os, sys, traceback
import click, numpy, rich.console, rich.table
for name in sys.argv[1:]:
    pid = os.fork()
    if pid == 0:
        try:
            importlib.import_module(name)
        except BaseException:
            print(name)
            traceback.print_exc(file=sys.stdout)
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(pid, 0)
"""


def test_each_command_finds_its_modules():
    names = [f"wherry.cli.{path.stem}" for path in (ROOT / "python/wherry/cli").glob("[a-z]*.py")]
    assert len(names) > 20
    assert run(sys.executable, "-c", FIRST, *names).stdout == ""


def unimported(text: str) -> list[str]:
    """Modules inside Python's packages that are used and not imported: there by chance, when somebody else did."""
    tree = ast.parse(text)
    named = [a for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names]
    imported = {alias.name for alias in named}
    packages = {a.name for a in named if a.asname is None and "." not in a.name}
    packages |= {name.partition(".")[0] for name in imported if "." in name}
    used = {
        f"{node.value.id}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    return sorted(
        name
        for name in used - imported
        if (package := name.partition(".")[0]) in packages & sys.stdlib_module_names
        and is_left_out(package, name)
    )


@functools.cache
def is_left_out(package: str, name: str) -> bool:
    """Whether it is a module that its package does not import itself."""
    try:
        if importlib.util.find_spec(name) is None:
            return False
    except ModuleNotFoundError:
        return False
    own = f"import {package}; print(hasattr({package}, {name.partition('.')[2]!r}))"
    return run(*program(own)).stdout == "False\n"


def test_modules_inside_packages_are_imported():
    for file in sorted((ROOT / "python").rglob("*.py")):
        assert unimported(file.read_text()) == [], file


def test_one_that_is_not_is_seen():
    assert unimported("import importlib\nimportlib.util.find_spec('a')\n") == ["importlib.util"]
    assert unimported("import os, importlib.util\nimportlib.util\nos.path.join\n") == []


def gone(text: str) -> list[str]:
    """What a program uses of modules of ours and they do not have: such a name is looked up only when its line runs."""
    nodes = list(ast.walk(ast.parse(text)))
    named: dict[str, set] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "wherry":
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                try:
                    module = importlib.import_module(name)
                except ModuleNotFoundError:
                    if not hasattr(importlib.import_module(node.module), alias.name):
                        return [f"{name} in line {node.lineno}"]
                else:
                    named.setdefault(alias.asname or alias.name, set()).add(module)
    # What is bound in another way, too, may mean that.
    others = {node.arg for node in nodes if isinstance(node, ast.arg)}
    names = [node for node in nodes if isinstance(node, ast.Name)]
    others |= {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    return [
        f"{node.value.id}.{node.attr} in line {node.lineno}"
        for node in nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in named.keys() - others
        and not any(hasattr(module, node.attr) for module in named[node.value.id])
    ]


def test_what_is_used_of_our_modules_is_there():
    tools = [file for file in (ROOT / "tools").iterdir() if file.is_file()]
    programs = [file for file in tools if "python" in file.read_text().partition("\n")[0]]
    assert len(programs) > 3
    for top in ("python", "tools", "peers"):
        programs += sorted((ROOT / top).rglob("*.py"))
    wrong = {f"{file}": gone(file.read_text()) for file in programs}
    assert {file: names for file, names in wrong.items() if names} == {}


def test_what_is_gone_is_seen():
    assert gone("from wherry import runfile\nrunfile.read_all(1)\nrunfile.read(1)\n") == [
        "runfile.read_all in line 2"
    ]
    assert gone("from wherry.units import nothing_of_the_kind\n") != []
    assert gone("def f():\n    from wherry import units\n    return units.nothing\n") != []
    assert gone("from wherry import units\n\ndef f(units):\n    return units.nothing\n") == []
