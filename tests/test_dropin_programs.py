"""Real programs under the drop-in: they say and leave behind exactly what they do without it."""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import CC, ROOT, need_tool

# The interpreter itself, not the link in a venv, so that its own test modules are found.
PYTHON = getattr(sys, "_base_executable", sys.executable)
COREUTILS = {"sort", "cp", "sha256sum"}
FUNCTIONS = r"(?:__)?w?mem(?:cpy|move|pcpy|set)(?:_chk)?|bcopy|(?:explicit_)?bzero"


class Program(NamedTuple):
    """A script of bash, and the tools it needs by the Debian package that brings each."""

    script: str
    tools: dict[str, str] = {}  # noqa: RUF012


PROGRAMS = {
    "bash": Program(r"""
        declare -A count; text=
        while read -r word rest; do
            count[$word]=$((${count[$word]:-0} + 1)); text+="${rest:0:40}|"
        done < <(head -n 4000 words.txt)
        for word in "${!count[@]}"; do echo "$word ${count[$word]}"; done | sort
        echo "${#text} ${text//a/[A]}" | cksum
        printf '%-20s|%9s|\n' {a..e}{1..9}
        eval "echo {1..3000}" | tr ' ' '\n' | mapfile -t many; cat <<< "${text:100:5000}" > here
    """),
    "coreutils": Program(r"""
        sort words.txt > sorted; sort -k2,2 -k1nr -S 1M words.txt | sha256sum; uniq -c sorted | tail -n 5
        cp data.bin copy.bin; cmp data.bin copy.bin; sha256sum data.bin copy.bin; tac words.txt | md5sum
        split -b 70001 data.bin piece.; cat piece.* | cksum; od -A x -t x1z data.bin | tail -n 3
        dd if=data.bin of=odd.bin bs=1777 skip=3 count=900 conv=swab 2> /dev/null; b2sum odd.bin
        base64 data.bin | fold -w 61 | wc; shuf --random-source=data.bin words.txt | head -n 20
        paste words.txt sorted | join -j 1 - sorted 2> /dev/null | head -n 300 | expand | tr a-z A-Z | cksum
    """),
    "tar and gzip": Program(
        r"""
        tar --sort=name --owner=0 --group=0 --mtime=@0 -cf all.tar tree words.txt data.bin
        sha256sum all.tar; gzip -9nk all.tar; gzip -dc all.tar.gz | cmp - all.tar
        mkdir out; tar -xzf all.tar.gz -C out; diff -r tree out/tree; tar -tvf all.tar | cksum
        bzip2 -k words.txt; bunzip2 -c words.txt.bz2 | cmp - words.txt
        xz -k -1 words.txt; xz -dc words.txt.xz | cmp - words.txt
        """,
        {"tar": "tar", "gzip": "gzip", "bzip2": "bzip2", "xz": "xz-utils"},
    ),
    "perl": Program(
        r"""
        perl -e 'open F, "words.txt"; my (%c, @all); while (<F>) { $c{$_}++ for split; push @all, $_ }
            print join(",", map { "$_=$c{$_}" } sort keys %c), "\n"; my $s = join "", @all;
            $s =~ s/(\w+) (\w+)/$2 $1/g; print length $s, " ", unpack("%32C*", $s), "\n";
            print unpack("H*", pack("w/a* N n a300", substr($s, 5, 70000), 1, 2, reverse $s)) =~ tr/0-9a-f//, "\n";
            substr($s, 1000, 20) = "x" x 4096; print scalar reverse(substr $s, 900, 9000)'
        """,
        {"perl": "perl"},
    ),
    "git": Program(
        r"""
        export GIT_AUTHOR_DATE='1 Jan 2020 00:00 +0000' GIT_COMMITTER_DATE='1 Jan 2020 00:00 +0000'
        export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
        git init -q -b main repo; cd repo; git config gc.auto 0; git config pack.threads 1
        for i in 1 2 3 4 5; do
            cp ../words.txt ../data.bin .; cp -r ../tree .; sed -i "s/a$i/b$i/; ${i}d" words.txt
            git add -A; git commit -q -m "number $i"
        done
        git gc -q --aggressive; git fsck --full --strict; git log --stat --format=%H
        git verify-pack -s .git/objects/pack/*.idx
        git diff HEAD~3 | cksum; cd ..; git clone -q repo other; cd other; git fsck --full; git rev-parse HEAD; cd ..
        rm -rf repo/.git/index other/.git
        """,
        {"git": "git"},
    ),
    "sqlite3": Program(r"""
        "$PYTHON" -c '
import sqlite3, hashlib
db = sqlite3.connect("base.db"); lines = open("words.txt").read().splitlines()
db.execute("create table t (id integer primary key, word text, data blob, n real)")
db.executemany("insert into t (word, data, n) values (?, ?, ?)",
               ((line, line.encode() * (i % 40), i / 7) for i, line in enumerate(lines[:9000])))
db.execute("create index by_word on t (word, n)"); db.commit()
db.execute("update t set data = data || zeroblob(id % 3000) where id % 5 = 0")
db.execute("delete from t where id % 7 = 3")
db.commit(); db.execute("vacuum")
print(db.execute("pragma integrity_check").fetchall(), db.execute("pragma foreign_key_check").fetchall())
print(db.execute("select count(*), sum(length(t.data)), max(word) from t join t u using (word)").fetchall())
print(hashlib.sha256("".join(db.iterdump()).encode()).hexdigest())'
    """),
    "gcc": Program(
        r"""
        for file in tree/cpu/*.c tree/plan/*.c; do
            gcc -O2 -g "-fdebug-prefix-map=$PWD=." -Itree -c "$file" -o "$(basename "$file").o"
            gcc -O3 -S -Itree "$file" -o - | cksum
        done
        printf '#include <stdio.h>\nint main(void) { return puts("built") < 0; }\n' > p.c; gcc -O2 p.c -o p; ./p
        gcc -Wall -Wextra -fsyntax-only -x c - <<< 'int f(int a) { int b; return b; }' 2>&1
        """,
        {"gcc": "gcc"},
    ),
    "python3's own tests": Program(r"""
        for module in test_bytes "test_struct test_array test_memoryview" "test_mmap test_ctypes"; do
            "$PYTHON" -m test -q $module > log 2>&1; echo "$module: $?"; grep -h '^Result' log
        done; rm -f log
    """),
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the programs work on: bytes, words, a tree of files; the same on each machine."""
    home = tmp_path_factory.mktemp("inputs")
    dice = random.Random(1998)
    (home / "data.bin").write_bytes(dice.randbytes(1_500_001))
    words = ["".join(dice.choices("abcdefghi", k=dice.randint(1, 9))) for _ in range(800)]
    lines = (" ".join(dice.choices(words, k=dice.randint(1, 12))) for _ in range(12_000))
    (home / "words.txt").write_text("".join(f"{line} {n % 977}\n" for n, line in enumerate(lines)))
    shutil.copytree(ROOT / "src", home / "tree")
    return home


def contents(home: Path) -> dict[str, str]:
    """Each file by its path and a digest of what is in it."""
    files = sorted(path for path in home.rglob("*") if path.is_file())
    return {str(p.relative_to(home)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def play(script: str, home: Path, inputs: Path, **env: str) -> tuple[int, str, str, dict[str, str]]:
    """Runs a script in a copy of the inputs: its exit status, what it said, and what it left there."""
    shutil.copytree(inputs, home)
    bare = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LC_ALL": "C",
        "TZ": "UTC",
        "PYTHON": PYTHON,
    }
    done = subprocess.run(
        ["bash", "-c", script], cwd=home, env={**bare, "PYTHONHASHSEED": "0", **env},
        capture_output=True, text=True, errors="replace", timeout=300, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr, contents(home)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_with_it_and_without(build_dir: Path, inputs: Path, tmp_path: Path, name: str):
    program = PROGRAMS[name]
    for tool, package in program.tools.items():
        need_tool(tool, package)
    if name == "python3's own tests":
        found = subprocess.run(
            [PYTHON, "-c", "import test.test_bytes"], capture_output=True, check=False, timeout=300
        )
        if found.returncode != 0:
            pytest.skip(
                "this interpreter comes without its tests (Debian package libpython3-testsuite)"
            )
    preload = build_dir / "preload/libwherry-dropin.so"
    in_force = f"set -e; grep -q '{preload}' /proc/$$/maps || exit 99\n"
    stock = play(f"set -e\n{program.script}", tmp_path / "a", inputs)
    assert stock[0] == 0, stock[1][-1000:] + stock[2][-2000:]
    assert stock[1]
    other = play(in_force + program.script, tmp_path / "b", inputs, LD_PRELOAD=str(preload))
    assert other[:3] == stock[:3]
    assert other[3] == stock[3]


def test_a_difference_is_seen(build_dir: Path, inputs: Path, tmp_path: Path):
    stock = play(PROGRAMS["bash"].script, tmp_path / "a", inputs)
    assert stock[0] == 0
    (tmp_path / "off.c").write_text(
        "typedef unsigned long size_t;\nvoid *memcpy(void *d, const void *s, size_t n)\n"
        "{ char *to = d; const char *from = s; for (size_t i = 0; i + (n > 99) < n; i++) ((volatile char *)to)[i] = "
        "from[i]; return d; }\n"
    )
    wrong = tmp_path / "off.so"
    subprocess.run(
        [*CC, "-O1", "-fno-builtin", "-fPIC", "-shared", tmp_path / "off.c", "-o", wrong],
        check=True,
        timeout=300,
    )
    assert play(PROGRAMS["bash"].script, tmp_path / "b", inputs, LD_PRELOAD=str(wrong)) != stock


def words_bound(command: list[str], preload: Path) -> list[tuple[str, str, str]]:
    """(caller, object bound to, function) for each of the six that the loader bound for this program."""
    env = {**os.environ, "LD_PRELOAD": str(preload), "LD_BIND_NOW": "1", "LD_DEBUG": "bindings"}
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    row = re.compile(rf"binding file (\S+) \[0\] to (\S+) \[0\]: normal symbol `({FUNCTIONS})'")
    return row.findall(done.stderr)


@pytest.mark.parametrize(
    "program", ["bash", "sort", "cp", "sha256sum", "tar", "gzip", "perl", "git", "python", "cc1"]
)
def test_each_of_them_is_bound_to_it(build_dir: Path, program: str):
    """The loader's own account: what the program and its libraries import of the six comes from the drop-in."""
    if program == "cc1":
        need_tool("gcc", "gcc")
        said = subprocess.run(
            ["gcc", "-print-prog-name=cc1"],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        path = need_tool(said.stdout.strip() or "cc1", "gcc")
    else:
        path = (
            PYTHON
            if program == "python"
            else need_tool(program, "coreutils" if program in COREUTILS else program)
        )
    preload = build_dir / "preload/libwherry-dropin.so"
    bound = words_bound([path, "--version"], preload)
    assert any(function in ("memcpy", "memmove", "mempcpy", "memset") for _, _, function in bound)
    assert {target for _, target, _ in bound} == {str(preload)}
