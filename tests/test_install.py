"""What `meson install` gives: a library that a C program finds by pkg-config, and its insides."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest
from conftest import CC, ROOT, meson_build, need_tool, run
from wherry.cli import COMMANDS

PROGRAM = """\
#include <stdio.h>
#include <string.h>
#include <wherry.h>
int main(void)
{
    char a[] = "carry this over", b[sizeof a];
    if (wherry_memcpy(b, a, sizeof a) != b || strcmp(a, b) != 0)
        return 1;
    return printf("%s %s\\n", b, wherry_version()) < 0;
}
"""
SAID = re.compile(r"^carry this over \d+\.\d+\.\d+$")
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]


def public_functions() -> set[str]:
    text = re.sub(r"/\*.*?\*/", "", (ROOT / "include/wherry.h").read_text(), flags=re.DOTALL)
    text = re.sub(r"static __inline__.*?\n}", "", text, flags=re.DOTALL)
    return set(re.findall(r"\b(wherry_\w+)\s*\([^)]*\)\s*;", text))


class Installed:
    def __init__(self, prefix: Path):
        self.prefix = prefix
        self.lib = next(prefix.rglob("libwherry.so")).parent

    def flags(self, *options: str) -> list[str]:
        env = {**os.environ, "PKG_CONFIG_PATH": str(self.lib / "pkgconfig")}
        return shlex.split(run("pkg-config", *options, "wherry", env=env).stdout)


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory, build_dir: Path) -> Installed:
    need_tool("pkg-config", "pkgconf")
    base = tmp_path_factory.mktemp("install")
    prefix = base / "pre fix"
    build = ROOT / "build" / "installed"
    shutil.rmtree(build, ignore_errors=True)
    meson_build(ROOT, build, f"--prefix={prefix}", "-Dtests=false", like=build_dir)
    run("meson", "install", "-C", build, "--no-rebuild")
    return Installed(prefix)


def test_everything_is_there(installed: Installed):
    names = {p.name for p in installed.prefix.rglob("*") if p.is_file()}
    assert {
        "libwherry.so",
        "libwherry.a",
        "libwherry-dropin.so",
        "wherry.h",
        "wherry.pc",
        "wherry-run",
    } <= names
    pages = {page.name for page in (ROOT / "man").glob("*.[137]")}
    assert {
        "wherry.1",
        "wherry-run.1",
        "wherry.3",
        "wherry_memcpy.3",
        "libwherry-dropin.7",
    } <= pages
    assert pages <= {name.removesuffix(".gz") for name in names}
    assert SAID.match("carry this over " + installed_version(installed))


def installed_version(installed: Installed) -> str:
    return run(installed.prefix / "bin/wherry-run", "--version").stdout.split()[-1]


@pytest.mark.parametrize("standard", ["c11", "gnu17"])
def test_a_program_with_the_shared_library(installed: Installed, tmp_path: Path, standard: str):
    (tmp_path / "p.c").write_text(PROGRAM)
    flags = installed.flags("--cflags", "--libs")
    run(*CC, f"-std={standard}", *STRICT, "p.c", "-o", "p", *flags, cwd=tmp_path)
    env = {**os.environ, "LD_LIBRARY_PATH": str(installed.lib)}
    assert SAID.match(run(tmp_path / "p", env=env).stdout.strip())


def test_a_program_with_the_static_library(installed: Installed, tmp_path: Path):
    (tmp_path / "p.c").write_text(PROGRAM)
    flags = installed.flags("--static", "--cflags", "--libs")
    run(*CC, "p.c", "-o", "p", "-static", *flags, cwd=tmp_path)
    assert SAID.match(run(tmp_path / "p").stdout.strip())


SANITIZED = """\
#include <stdlib.h>
#include <string.h>
#include <wherry.h>
#ifdef LIBC
#define wherry_memcpy memmove
#define wherry_memset memset
#endif
int main(int argc, char **argv)
{
    (void)argv;
    char *a = malloc(16), *b = malloc(16);
    wherry_memset(a, 1, 16);
    wherry_memcpy(b, a, 16 + (size_t)(argc * BEYOND));
    const int wrong = b[argc] == 1 ? 0 : 3;
    free(a);
    free(b);
    return wrong;
}
"""


@pytest.mark.parametrize(
    ("compiler", "sanitizer", "beyond", "found"),
    [("gcc", "address", 1, "overflow"), ("clang", "memory", 0, "uninitialized")],
)
def test_what_the_page_says_of_sanitizers(
    installed: Installed, tmp_path: Path, compiler: str, sanitizer: str, beyond: int, found: str
):
    """A mistake that one does not see in a call of ours, or believes to see, and the way out."""
    page = (ROOT / "man/wherry.3").read_text()
    assert "#define wherry_memcpy memmove\n#define wherry_memset memset\n" in page
    (tmp_path / "p.c").write_text(SANITIZED)
    flags = (f"-fsanitize={sanitizer}", f"-DBEYOND={beyond}", *installed.flags("--cflags"))
    right = {}
    for by, words in (("ours", ()), ("libc", ("-DLIBC",))):
        command = (need_tool(compiler, compiler), *STRICT, *flags, *words, "p.c", "-o", by)
        run(*command, installed.lib / "libwherry.a", cwd=tmp_path)
        done = run(tmp_path / by, check=False)
        right[by] = done.returncode == 0
        assert right[by] or found in done.stderr
    assert right == {"ours": bool(beyond), "libc": not beyond}


def test_a_cpp_program(installed: Installed, tmp_path: Path):
    need_tool("c++", "g++")
    (tmp_path / "p.cc").write_text(PROGRAM)
    flags = installed.flags("--cflags", "--libs")
    run("c++", "-std=c++11", *STRICT, "p.cc", "-o", "p", *flags, cwd=tmp_path)
    env = {**os.environ, "LD_LIBRARY_PATH": str(installed.lib)}
    assert SAID.match(run(tmp_path / "p", env=env).stdout.strip())


@pytest.mark.parametrize(
    "words",
    [
        "-std=c89 -Wdeclaration-after-statement",
        "-std=c11 -Wundef",
        "-std=c11 -D_XOPEN_SOURCE",
        "-std=c11 -D_XOPEN_SOURCE=700",
        "-std=c11 -D_POSIX_C_SOURCE=1",
        "-std=c11 -D_POSIX_C_SOURCE=200809L",
        "-std=gnu11 -D_POSIX_SOURCE",
        "-std=c99 -D_XOPEN_SOURCE=1 -D_XOPEN_SOURCE_EXTENDED",
        "-std=gnu11 -D_GNU_SOURCE",
        "-std=c++11 -x c++ -Wshadow -Wold-style-cast",
        "-std=c++17 -x c++ -D_XOPEN_SOURCE",
    ],
)
def test_the_header_alone(tmp_path: Path, words: str):
    if "c++" in words:
        need_tool("c++", "g++")
    (tmp_path / "h.c").write_text("#include <wherry.h>\n#include <wherry.h>\n")
    options = (*STRICT, "-I", ROOT / "include", "-fsyntax-only")
    run(*CC, *words.split(), *options, "h.c", cwd=tmp_path)


@pytest.mark.parametrize("compiler", ["gcc", "clang", "musl-gcc"])
def test_feature_macros_that_come_too_late(tmp_path: Path, compiler: str):
    """Behind a header of libc they change nothing but themselves."""
    need_tool(compiler, {"musl-gcc": "musl-tools"}.get(compiler, compiler))
    (tmp_path / "h.c").write_text(
        "#include <stdio.h>\n#define _POSIX_C_SOURCE 200809L\n#include <wherry.h>\n"
    )
    for standard in ("c99", "c17"):
        options = (f"-std={standard}", *STRICT, "-I", ROOT / "include", "-fsyntax-only")
        run(compiler, *options, "h.c", cwd=tmp_path)


@pytest.mark.parametrize(
    "compiler",
    [
        [*CC, "-m32"],
        [*CC, "-mx32"],
        ["clang", "--target=x86_64-w64-windows-gnu"],
        ["clang", "--target=x86_64-apple-darwin"],
    ],
    ids=lambda words: words[-1],
)
def test_another_machine_is_refused_in_words(tmp_path: Path, compiler: list[str]):
    """Also where the headers of its libc are missing, which would be what the compiler speaks of."""
    need_tool(compiler[0], compiler[0])
    (tmp_path / "h.c").write_text("#include <wherry.h>\n")
    options = ("-I", ROOT / "include", "-fsyntax-only")
    done = run(*compiler, *options, "h.c", cwd=tmp_path, check=False)
    assert done.returncode != 0
    first = next(line for line in done.stderr.splitlines() if "error" in line)
    assert "Wherry is for x86-64 Linux with pointers of 64 bits" in first


def test_the_shared_object_has_a_soname_and_versions(installed: Installed):
    dynamic = run("readelf", "-dW", installed.lib / "libwherry.so").stdout
    assert "[libwherry.so.0]" in dynamic
    assert "TEXTREL" not in dynamic
    assert "BIND_NOW" in dynamic or "NOW" in dynamic


def exported(library: Path) -> set[str]:
    symbols = run("nm", "-D", "--defined-only", library).stdout
    rows = [line.split() for line in symbols.splitlines()]
    return {row[-1] for row in rows if row[-2] != "A"}


def test_exactly_the_public_functions_are_exported(installed: Installed):
    names = exported(installed.lib / "libwherry.so")
    assert names == {f"{name}@@WHERRY_0" for name in public_functions()}


def machine_code(archive: Path) -> bool:
    """Not what a compiler would have put off to a link, in a form of its own."""
    run("ld", "-r", "--whole-archive", archive, "-o", archive.with_name("all.o"))
    return b".gnu.lto_" not in archive.read_bytes()


# Asked for in both ways at once: what heeds either is found.
PUT_OFF = ("-Db_lto=true", "-Dc_args=-flto")
# How well the compiler does is not what is looked at here.
LIBRARY = ("-Dtests=false", "-Drunner=false", "-Doptimization=0")


def test_the_archive_is_for_every_linker(tmp_path: Path):
    """Whatever is put off to a link: the members are machine code, which another compiler's programs link with."""
    env, targets = {"CC": need_tool("gcc", "gcc")}, ("src/libwherry.a",)
    build = meson_build(ROOT, tmp_path / "b", *LIBRARY, *PUT_OFF, targets=targets, env=env)
    assert machine_code(build / targets[0])


def test_a_build_by_clang_with_a_sanitizer_and_lld(tmp_path: Path):
    """The sanitizer's runtime is the program's: what a library wants of it stays undefined (-Db_lundef=false).

    lld shows the ends of a section that it names itself, however they were declared, unless it is told not to. And of
    clang's archive the same holds as of GCC's."""
    clang = need_tool("clang", "clang")
    env, targets = {"CC": clang}, ("src/libwherry.a",)
    if shutil.which("ld.lld"):
        env["CC_LD"], targets = "lld", (*targets, "src/libwherry.so.0.1.0")
    options = (*LIBRARY, *PUT_OFF, "-Db_sanitize=address", "-Db_lundef=false")
    build = meson_build(ROOT, tmp_path / "b", *options, targets=targets, env=env)
    assert machine_code(build / targets[0])
    need_tool("ld.lld", "lld")
    library = build / targets[1]
    assert exported(library) == {f"{name}@@WHERRY_0" for name in public_functions()}
    (tmp_path / "p.c").write_text(PROGRAM)
    words = ("p.c", "-o", "p", library, f"-Wl,-rpath,{library.parent}")
    run(clang, "-fsanitize=address", "-I", ROOT / "include", *words, cwd=tmp_path)
    assert SAID.match(run(tmp_path / "p").stdout.strip())


@pytest.mark.parametrize("name", ["libwherry.so", "wherry-run"])
def test_no_executable_stack(installed: Installed, name: str):
    where = installed.lib if name.endswith(".so") else installed.prefix / "bin"
    segments = run("readelf", "-lW", where / name).stdout
    stack = next(line for line in segments.splitlines() if "GNU_STACK" in line)
    assert "RWE" not in stack


def test_the_library_alone_with_another_libc(tmp_path: Path):
    compiler = need_tool("musl-gcc", "musl-tools")
    options = (f"--prefix={tmp_path}/there", "-Doptimization=0", "--libdir=lib")
    build = meson_build(ROOT, tmp_path / "build", *options, env={"CC": compiler})
    run("meson", "install", "-C", build, "--no-rebuild")
    names = {p.name for p in (tmp_path / "there").rglob("*") if p.is_file() and ".3" not in p.name}
    assert {"libwherry.so.0.1.0", "libwherry.a", "wherry.h", "wherry.pc"} <= names
    assert not {"libwherry-dropin.so", "libwherry-recorder.so", "wherry-run"} & names
    assert not any(name.endswith((".1", ".7")) for name in names)
    (tmp_path / "p.c").write_text(
        '#include <stdio.h>\n#include <wherry.h>\nint main(void) { char to[9] = "";'
        ' wherry_memcpy(to, "as musl", 8); puts(to); return 0; }\n'
    )
    place = tmp_path / "there"
    for more in ((f"-Wl,-rpath,{place}/lib",), ("-static",)):
        words = (
            f"-I{place}/include",
            tmp_path / "p.c",
            "-o",
            tmp_path / "p",
            f"-L{place}/lib",
            "-lwherry",
        )
        run(compiler, *words, *more)
        assert run(tmp_path / "p").stdout == "as musl\n"


def test_inside_another_meson_project(tmp_path: Path):
    """The library alone, by its name as a dependency; shared or static as that project says."""
    (tmp_path / "subprojects").mkdir()
    (tmp_path / "subprojects" / "wherry").symlink_to(ROOT)
    (tmp_path / "meson.build").write_text(
        "project('other', 'c')\n"
        "executable('p', 'p.c', dependencies: dependency('wherry', fallback: 'wherry'))\n"
        "executable('archive', 'p.c', dependencies: dependency('wherry', static: true))\n"
    )
    (tmp_path / "p.c").write_text(
        '#include <stdio.h>\n#include <wherry.h>\nint main(void) { char to[7] = "";'
        ' wherry_memcpy(to, "inside", 6); puts(to); return 0; }\n'
    )
    build = tmp_path / "build"
    options = ("-Dwherry:optimization=0", "--wrap-mode=nodownload")
    for library in ("static", "shared"):
        if build.exists():
            run("meson", "configure", build, f"-Ddefault_library={library}")
        meson_build(tmp_path, build, *options, f"-Ddefault_library={library}")
        for name, shared in (("p", library == "shared"), ("archive", False)):
            assert run(build / name).stdout == "inside\n"
            assert ("libwherry.so.0" in run("readelf", "-dW", build / name).stdout) == shared, name
        assert not list(build.rglob("wherry-run*")) and not list(build.rglob("*dropin*"))
        there = tmp_path / library
        run("meson", "install", "-C", build, "--no-rebuild", "--destdir", there)
        pages = {page.suffix for page in there.rglob("man/**/*.*")}
        assert pages == {".3"}  # of what is not there there is no page either


def test_control_flow_marks(build_dir: Path):
    """Each object carries both marks: one without them would take them from the whole program."""
    objects = sorted((build_dir / "src").rglob("*.o"))
    told = re.split("^File: ", run("readelf", "-nW", *objects).stdout, flags=re.MULTILINE)[1:]
    assert len(told) == len(objects) > 1
    for notes in told:
        path = notes.partition("\n")[0]
        assert "IBT" in notes, path
        assert "SHSTK" in notes, path


def test_every_public_function_has_a_page():
    pages = {page.stem for page in (ROOT / "man").glob("*.3")}
    assert public_functions() - pages == set()
    text = (ROOT / "man/wherry.3").read_text()
    # What strict ISO C sees in the place of a POSIX prototype is in no page.
    header = re.sub(
        r"^#else /\* strict ISO C.*?^#endif",
        "",
        (ROOT / "include/wherry.h").read_text(),
        flags=re.MULTILINE | re.DOTALL,
    )
    for name in public_functions():
        assert name in text, f"man/wherry.3 does not tell of {name}"
    # Of the inline copy, and of the sums together.
    assert pages - public_functions() == {"wherry", "wherry_copy_padded", "wherry_csum"}
    assert all(f"'{page.name}'" in (ROOT / "man/meson.build").read_text()
               for page in (ROOT / "man").glob("*.[137]"))  # fmt: skip
    for prototype in re.findall(r"^[a-z].*\);$", header, flags=re.MULTILINE):
        words = re.findall(r"\w+", prototype)
        (name,) = re.findall(r"(\w+)\(", prototype)
        page = (ROOT / "man" / f"{name}.3").read_text()
        if page.startswith(".so "):
            page = (ROOT / "man" / Path(page.split()[1]).name).read_text()
        flat = re.findall(r"\w+", re.sub(r'^\.\w+|"', " ", page, flags=re.MULTILINE))
        assert " ".join(words) in " ".join(flat), f"{name}.3 has another prototype: {prototype}"


def test_the_readme_names_every_function_that_works_on_memory():
    others = ("wherry_nofault_", "wherry_plan_", "wherry_version", "wherry_isa")
    named = re.findall(r"`(wherry_\w+)`", (ROOT / "README.md").read_text())
    assert {f for f in public_functions() if not f.startswith(others)} - set(named) == set()


def test_every_page_of_functions_tells_how_to_link():
    pages = [page.read_text() for page in (ROOT / "man").glob("*.3")]
    own = [page for page in pages if not page.startswith(".so ")]
    assert len(own) >= 8
    for page in own:
        _, synopsis, _ = re.split(r"^\.SH (?:SYNOPSIS|DESCRIPTION)$", page, flags=re.MULTILINE)
        assert "pkg-config" in synopsis, page.splitlines()[0]


def test_variables_that_the_workbench_reads_are_in_the_page():
    """But for the one that a Dask worker is given."""
    page = (ROOT / "man/wherry.1").read_text()
    texts = (path.read_text() for path in (ROOT / "python/wherry").rglob("*.py"))
    read = set(re.findall(r'environ\.get\(\s*"(\w+)"', " ".join(texts)))
    assert {"WHERRY_RUN", "XDG_CACHE_HOME"} <= read
    told = set(re.findall(r"[A-Z_]{4,}", page))
    assert read - told <= {"WHERRY_FLEET_HOST", "GLIBC_TUNABLES", "LC_CTYPE", "PATH", "LD_PRELOAD"}


def test_what_is_kept_in_the_cache_is_in_the_page():
    page = (ROOT / "man/wherry.1").read_text()
    texts = (path.read_text() for path in (ROOT / "python/wherry").rglob("*.py"))
    kept = set(re.findall(r'bootcache\.path\("(\w+)"\)', " ".join(texts)))
    assert len(kept) >= 4
    (told,) = re.findall(
        r"^\.I ~/\.cache/wherry/$(.*?)^\.TP$", page, flags=re.MULTILINE | re.DOTALL
    )
    assert set(re.findall(r"(\w+)\.json", told)) == kept


def test_the_first_page_names_every_command():
    page = (ROOT / "man/wherry.1").read_text()
    named = re.findall(r"^\.BR wherry\\-(\w+) \(1\)$", page, flags=re.MULTILINE)
    assert sorted(named) == sorted(COMMANDS)
    pages = {path.stem for path in (ROOT / "man").glob("wherry-*.1")}
    assert pages == {f"wherry-{name}" for name in (*COMMANDS, "run")}


def options_of(wherry, *command: str) -> set[str]:
    """What its --help names, and the --help of each command below it."""
    said = wherry(*command, "--help").stdout
    options = set(re.findall(r"^ +(?:-\w, )?(--[a-z][a-z-]*)", said, flags=re.MULTILINE))
    assert "--help" in options
    below = re.findall(r"^  (\w+) ", said.partition("\nCommands:\n")[2], flags=re.MULTILINE)
    return options.union(*(options_of(wherry, *command, name) for name in below))


@pytest.mark.parametrize("command", COMMANDS)
def test_the_page_of_a_command_has_its_options(wherry, command: str):
    page = (ROOT / f"man/wherry-{command}.1").read_text().replace("\\-", "-")
    heads = "\n".join(re.findall(r"^\.TP\n(.*)$", page, flags=re.MULTILINE))
    told = set(re.findall(r"--[a-z][a-z-]*", heads))
    assert told == options_of(wherry, command) - {"--help"}
    assert re.search(rf"^wherry-{command} - ", page, flags=re.MULTILINE)


def test_the_runners_page_knows_every_option(wherry_run: Path):
    page = (ROOT / "man/wherry-run.1").read_text().replace("\\-", "-")
    told = set(re.findall(r"--[a-z][a-z-]*", page))
    commands = re.findall(r"^  (\w+) +\S", run(wherry_run, "--help").stdout, flags=re.MULTILINE)
    assert {"verify", "measure", "system", "hold", "timed", "list", "cpu"} <= set(commands)
    for command in commands:
        assert re.search(rf"^\.B {command}$", page, flags=re.MULTILINE), command
        options = set(re.findall(r"--[a-z][a-z-]*", run(wherry_run, command, "--help").stdout))
        assert options - told <= {"--help"}, command


def test_the_protocol_and_the_help_have_the_same_options(wherry_run: Path):
    """Each command with its options as the protocol writes it, but for those of which it says [options]."""
    page = "".join(
        (ROOT / f"docs/runner-{part}.md").read_text() for part in ("protocol", "systems")
    )
    for command in ("measure", "system", "hold", "timed", "entered", "sizes", "verify"):
        written = " ".join(re.findall(rf"`\s*wherry-run {command}\b([^`]*)`", page))
        said = run(wherry_run, command, "--help").stdout
        told, has = (
            set(re.findall(r"--[a-z][a-z-]*", text)) - {"--help"} for text in (written, said)
        )
        assert told == has, command


def test_the_runners_page_has_each_exit_status_of_the_protocol():
    protocol = (ROOT / "docs/runner-protocol.md").read_text()
    rows = re.findall(r"^\| ([\d, ]+) \| ", protocol, flags=re.MULTILINE)
    page = (ROOT / "man/wherry-run.1").read_text().partition("\n.SH EXIT STATUS\n")[2]
    heads = re.findall(r"^\.TP\n(.*)$", page.partition("\n.SH ")[0], flags=re.MULTILINE)
    told = re.findall(r"\d+", " ".join(heads))
    assert {"0", "1", "2", "141"} <= set(told) == set(re.findall(r"\d+", " ".join(rows)))


@pytest.mark.parametrize("page", sorted((ROOT / "man").glob("*.[137]")), ids=lambda p: p.name)
def test_the_pages_are_sound(page: Path, tmp_path: Path):
    groff = need_tool("groff", "groff")

    if not list(Path("/usr/share/groff").rglob("an.tmac")):
        pytest.skip("the man macros are not installed (Debian package groff)")
    # Where a page of .so looks for the other. By -I groff would want a program that Debian's groff-base does not have.
    (tmp_path / "man3").symlink_to(ROOT / "man")
    said = run(groff, "-man", "-Tutf8", "-ww", "-z", page, cwd=tmp_path)
    assert said.stderr == ""
