"""The programs that tools/programs measures, and what they work on: the same each time.

None was written for the purpose. About half spend a tenth of their time or more in copies (buffers, strings, blobs,
frames, blocks that could not be compressed), the others do what most programs do. A run takes about a second."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import NamedTuple


class Program(NamedTuple):
    idea: str
    command: str  # for /bin/sh -c
    tools: dict[str, str]  # program: package
    prepare: str = ""  # once
    before: str = ""  # before each run of ab


def _python(script: str) -> str:
    return f'python3 -c "{script}"'


PYTHON = {"python3": "python3"}
NUMPY = {"python3": "python3", "numpy": "python3-numpy"}
FFMPEG = {"ffmpeg": "ffmpeg"}
RAW = "ffmpeg -v error -nostdin -f rawvideo -pix_fmt yuv420p"
# 18 frames of 1280 x 720, or 8 of 1920 x 1080.
VIDEO = "head -c 24883200 data.bin > video.yuv"

# Everything works in a directory that has words.txt (lines), data.bin (random bytes), text.json, tree/ (C sources).
PROGRAMS = {
    "python-bytes": Program(
        "buffers of 64 KB copied",
        _python("b = bytes(65536); a = bytearray(65536)\nfor _ in range(400000): a[:] = b"),
        PYTHON,
    ),
    "python-packets": Program(
        "1 MB cut into packets, and joined again",
        _python(
            "b = bytes(range(256)) * 4096\nfor _ in range(500):\n"
            "    p = [b[i:i + 9000] for i in range(0, 1000000, 700)]\n    b''.join(p)"
        ),
        PYTHON,
    ),
    "python-file": Program(
        "a file in memory written and read",
        _python(
            "import io\nb = bytes(range(256)) * 24\nfor _ in range(7000):\n    f = io.BytesIO()\n"
            "    for _ in range(300): f.write(b)\n    f.seek(0)\n    while f.read(16384): pass"
        ),
        PYTHON,
    ),
    "numpy-copy": Program(
        "arrays of 16 MB copied",
        _python(
            "import numpy as np; a = np.arange(2_000_000.0); b = np.empty_like(a)\n"
            "for _ in range(400): np.copyto(b, a)"
        ),
        NUMPY,
    ),
    "numpy-large": Program(
        "arrays of 64 MB copied",
        _python(
            "import numpy as np; a = np.arange(8_000_000.0); b = np.empty_like(a)\n"
            "for _ in range(60): np.copyto(b, a)"
        ),
        NUMPY,
    ),
    "numpy-crop": Program(
        "pictures cropped, row by row",
        _python(
            "import numpy as np; a = np.zeros((1080, 1920, 4), np.uint8); b = np.empty((900, 1600, 4), np.uint8)\n"
            "for i in range(3500): b[:] = a[i % 90:i % 90 + 900, 160:1760]"
        ),
        NUMPY,
    ),
    "numpy-join": Program(
        "arrays of 8 KB joined",
        _python(
            "import numpy as np; a = [np.arange(1000.0) + i for i in range(30)]; c = np.empty(30000)\n"
            "for _ in range(60000): np.concatenate(a, out=c)"
        ),
        NUMPY,
    ),
    "ffmpeg-pad": Program(
        "raw video padded and cropped",
        f"{RAW} -s 1920x1080 -stream_loop 50 -i video.yuv -vf pad=2048:1152:32:16,crop=1920:1080 "
        "-threads 1 -f rawvideo -y /dev/null",
        FFMPEG,
        VIDEO,
    ),
    "ffmpeg-tile": Program(
        "raw video padded, turned upside down, tiled",
        f"{RAW} -s 1280x720 -stream_loop 60 -i video.yuv -vf pad=1344:800:32:40,vflip,tile=2x2 "
        "-threads 1 -f rawvideo -y /dev/null",
        FFMPEG,
        VIDEO,
    ),
    "sqlite3-blobs": Program(
        "blobs of 12 to 16 KB in memory, changed and joined",
        'sqlite3 :memory: "create table t(k integer primary key, b); '
        "insert into t select value, zeroblob(12000 + value % 4096) from generate_series(1, 4000); "
        "update t set b = b || 'x'; select sum(length(b || 'y')) from t, generate_series(1, 80);\"",
        {"sqlite3": "sqlite3"},
    ),
    "redis": Program(
        "values of 16 KiB set and got, by its own benchmark",
        "redis-server --port 0 --unixsocket ./redis.sock --save '' --appendonly no --loglevel warning & "
        "for i in 1 2 3 4 5 6 7 8 9; do [ -S redis.sock ] && break; sleep 0.05; done; "
        "redis-benchmark -s redis.sock -q -n 30000 -c 4 -P 4 -d 16384 -r 100 -t set,get && "
        "redis-cli -s redis.sock shutdown nosave; wait",
        {
            "redis-server": "redis-server",
            "redis-benchmark": "redis-tools",
            "redis-cli": "redis-tools",
        },
        before="rm -f redis.sock",
    ),
    "dd": Program(
        "blocks of 16 KiB gathered to 1 MiB",
        "dd if=/dev/zero of=/dev/null ibs=16k obs=1M count=1000000",
        {"dd": "coreutils"},
    ),
    "lz4-raw": Program(
        "decompressed what could not be compressed",
        "for i in 1 2 3 4 5 6 7 8; do lz4 -dcq data.lz4; done",
        {"lz4": "lz4"},
        "lz4 -qfB4 data.bin data.lz4",
    ),
    "perl-strings": Program(
        "strings of 16 KB cut and extended",
        'perl -e \'my $p = "line of text\\n" x 3000; my ($n, $s) = (0, ""); '
        'for (1 .. 1500000) { $s = substr($p, $_ % 1000, 16000); $s .= "end"; $n += length $s } print $n\'',
        {"perl": "perl"},
    ),
    "awk": Program(
        "a string that grows by two characters",
        'awk \'{ n[$2]++; s = s substr($1, 1, 2); if (length(s) > 16000) s = "" } '
        "END { print length(n), length(s) }' words.txt",
        {"awk": "mawk"},
    ),
    "node": Program(
        "buffers joined",
        "node -e 'const b = Buffer.alloc(50000, 7); let n = 0; "
        "for (let i = 0; i < 12000; i++) n += Buffer.concat([b, b, b]).length; console.log(n)'",
        {"node": "nodejs"},
    ),
    "imagemagick": Program(
        "a raw picture turned and cropped",
        "convert -size 5000x4000 -depth 8 rgb:pixels.rgb -rotate 90 -crop 3500x3000+99+99 -flip rgb:out.bin",
        {"convert": "imagemagick"},
        "head -c 60000000 data.bin > pixels.rgb",
    ),
    "sqlite3": Program(
        "an in-memory table, indexed and sorted",
        'sqlite3 :memory: "create table t(a, b); insert into t select value, hex(value * 7919 % 1000003) || '
        "printf('%.200c', 'x') from generate_series(1, 300000); create index i on t(b); "
        'select count(*), sum(length(b)) from (select b from t order by b desc);"',
        {"sqlite3": "sqlite3"},
    ),
    "sort": Program(
        "a million lines", "sort -S 400M --parallel=1 words.txt", {"sort": "coreutils"}
    ),
    "perl": Program(
        "words counted in a hash",
        "perl -ne 'for (split) { $n{$_}++; $t .= substr($_, 0, 9) } last if $. == 400000; "
        "END { print scalar(keys %n), length $t }' words.txt",
        {"perl": "perl"},
    ),
    "python-json": Program(
        "a document read and written",
        _python(
            "import json; t = open('text.json').read(); [json.dumps(json.loads(t)) for _ in range(6)]"
        ),
        PYTHON,
    ),
    "python-join": Program(
        "a million lines joined",
        _python("t = open('words.txt').read().splitlines()\nfor _ in range(15): ','.join(t)"),
        PYTHON,
    ),
    "perl-join": Program(
        "a million lines joined",
        'perl -e \'open F, "words.txt"; @l = <F>; chomp @l; for (1 .. 15) { $n += length join ",", @l } print $n\'',
        {"perl": "perl"},
    ),
    "ruby-join": Program(
        "a million lines joined",
        'ruby -e \'t = File.readlines("words.txt", chomp: true); n = 0; 15.times { n += t.join(",").size }; puts n\'',
        {"ruby": "ruby"},
    ),
    "lua-join": Program(
        "a million lines joined",
        'lua5.4 -e \'local t = {} for l in io.lines("words.txt") do t[#t + 1] = l end local n = 0 '
        'for i = 1, 12 do n = n + #table.concat(t, ",") end print(n)\'',
        {"lua5.4": "lua5.4"},
    ),
    "php-join": Program(
        "a million lines joined",
        'php -d memory_limit=2G -r \'$t = file("words.txt", FILE_IGNORE_NEW_LINES); $n = 0; '
        'for ($i = 0; $i < 30; $i++) $n += strlen(implode(",", $t)); echo $n;\'',
        {"php": "php-cli"},
    ),
    "sqlite3-strings": Program(
        "strings of 0 to 119 bytes in memory, joined and doubled",
        'sqlite3 :memory: "create table t(a); '
        "insert into t select printf('%.*c', value % 120, 'x') from generate_series(1, 1000000); "
        'select length(group_concat(a)) from t; select sum(length(a || a)) from t;"',
        {"sqlite3": "sqlite3"},
    ),
    "python-pickle": Program(
        "a document pickled",
        _python(
            "import json, pickle; t = json.load(open('text.json')); [pickle.dumps(t) for _ in range(30)]"
        ),
        PYTHON,
    ),
    "numpy-pickle": Program(
        "arrays of 64 MB pickled and read again, in new memory",
        _python(
            "import numpy as np, pickle; a = np.arange(8e6)\nfor _ in range(15): pickle.loads(pickle.dumps(a, 5))"
        ),
        NUMPY,
    ),
    "gcc": Program(
        "a C file compiled",
        "gcc -O2 -c big.c -o big.o",
        {"gcc": "gcc"},
        'for i in $(seq 100); do sed "s/@/$i/g" unit.c.in; done > big.c',
    ),
    "git-clone": Program(
        "a repository cloned without links",
        "git clone -q --no-local repository clone",
        {"git": "git"},
        "./make-repository",
        before="rm -rf clone",
    ),
    "git-repack": Program(
        "a repository packed again",
        "git -C repository repack -adfq --threads=1",
        {"git": "git"},
        "./make-repository",
    ),
    "zstd": Program(
        "text compressed at level 3",
        "zstd -qc3 --single-thread words.txt",
        {"zstd": "zstd"},
    ),
    "gzip": Program("text compressed at level 1", "gzip -kc1 words.txt", {"gzip": "gzip"}),
    "xz": Program(
        "text decompressed", "xz -dc words.xz", {"xz": "xz-utils"}, "xz -kc1 words.txt > words.xz"
    ),
    "cpio": Program(
        "200 files into an archive",
        "for i in 1 2 3 4; do find trees | cpio -o --quiet; done",
        {"cpio": "cpio"},
        "mkdir -p trees; split -b 300000 data.bin trees/",
    ),
    "openssl": Program(
        "bytes as base64",
        "for i in 1 2 3 4 5 6; do openssl enc -base64 -in data.bin -out /dev/null; done",
        {"openssl": "openssl"},
    ),
    "java": Program(
        "the compiler of Java", "javac -d out.java T.java", {"javac": "default-jdk-headless"}
    ),
}

UNIT = """struct s@ { int a; double b[8]; char text[64]; };
static int f@(struct s@ *p, int n) { int t = 0; for (int i = 0; i < n; i++) { p->b[i & 7] += i * p->a; t ^= i; }
    switch (t & 7) { case 0: return n; case 1: return t * 3; default: p->text[t & 63] = n; } return t + p->a; }
int g@(int n) { struct s@ s = {n, {0}, {0}}; return f@(&s, n) + (int)s.b[3]; }
"""
REPOSITORY = """#!/bin/sh
set -e
[ -d repository ] && exit
git init -q repository
cd repository
git config user.email w@example.org
git config user.name w
for i in 1 2 3 4; do
    for j in $(seq 60); do
        awk -v i=$i -v j=$j 'NR > 60000 { exit } NR % 60 == j { print $0, i }' ../words.txt > file$j
    done
    git add -A
    git commit -qm $i
done
"""
JAVA = """class T {
    static int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }
    public static void main(String[] a) {}
}
"""


def make_inputs(home: Path, sources: Path, *, small: bool = False) -> None:
    """The same each time; `sources` is a tree of text files to copy. A tenth of the lines when it is small."""
    chance = random.Random(1)
    words = [f"{chance.choice('abcdefgh')}{chance.randrange(10**6)}b" for _ in range(50000)]
    lines = (
        f"{chance.choice(words)} {chance.choice(words)} {'x' * chance.randrange(40)}{chance.randrange(10**9)}\n"
        for _ in range(100_000 if small else 1_000_000)
    )
    (home / "words.txt").write_text("".join(lines))
    (home / "data.bin").write_bytes(chance.randbytes(64 << 20))
    (home / "unit.c.in").write_text(UNIT)
    (home / "T.java").write_text(JAVA)
    script = home / "make-repository"
    script.write_text(REPOSITORY)
    script.chmod(0o755)
    shutil.copytree(sources, home / "tree", dirs_exist_ok=True)
    rows = [
        {"id": i, "name": words[i % 50000], "tags": words[i : i + 5], "x": i / 7}
        for i in range(40000)
    ]
    (home / "text.json").write_text(json.dumps(rows))
