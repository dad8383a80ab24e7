"""Libraries as packages bring them, made here, and a machine that has them: for the tests of `make peers`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from conftest import ROOT, need_tool, run

TOOL = ROOT / "tools/peers"
# String instructions, which verification steps through quickly.
BYTES = """
#include <stddef.h>
#define STAY __asm__ volatile("")
#define STRING(code, d, s, n) do { \\
        const char *d_ = (const char *)(d), *s_ = (const char *)(s); size_t n_ = (n); \\
        __asm__ volatile(code : "+D"(d_), "+S"(s_), "+c"(n_) : : "memory"); \\
    } while (0);
#define COPY(d, s, n) STRING("rep movsb", d, s, n)
#define BACK(d, s, n) STRING("std; rep movsb; cld", (char *)(d) + (n) - 1, (char *)(s) + (n) - 1, n)
#define FILL(d, c, n) do { \\
        char *d_ = (char *)(d); size_t n_ = (n); \\
        __asm__ volatile("rep stosb" : "+D"(d_), "+c"(n_) : "a"(c) : "memory"); \\
    } while (0);
#define MOVE(d, s, n) \\
    if ((size_t)(d) - (size_t)(s) < (n)) { BACK(d, s, n) } else { COPY(d, s, n) }
"""
# Hidden, as LLVM libc's are; memmove needs another member, as musl's does.
MUSL = {
    "copy": "void *memcpy(void *d, const void *s, size_t n) { COPY(d, s, n) return d; }"
    "void *__forward(void *d, const void *s, size_t n) { COPY(d, s, n) return d; }",
    "move": "void *__forward(void *d, const void *s, size_t n);"
    "void *memmove(void *d, const void *s, size_t n)"
    "{ if ((size_t)d - (size_t)s >= n) return __forward(d, s, n); BACK(d, s, n) return d; }",
    "set": "void *memset(void *d, int c, size_t n) { FILL(d, c, n) return d; }"
    'const char version[] = "1.9.7";',
}
# The threshold is defined by a member that needs what no shared object has, as in glibc's archive.
GLIBC = {
    "move": "extern long __x86_shared_non_temporal_threshold;"
    "void *__memmove_sse2_unaligned_erms(void *d, const void *s, size_t n)"
    "{ if ((long)n == __x86_shared_non_temporal_threshold) STAY; MOVE(d, s, n) return d; }"
    "void *__mempcpy_sse2_unaligned_erms(void *d, const void *s, size_t n)"
    "{ MOVE(d, s, n) return (char *)d + n; }",
    "set": "void *__memset_sse2_unaligned_erms(void *d, int c, size_t n) { FILL(d, c, n) return d; }",
    "start": "extern int nowhere(void); long __x86_shared_non_temporal_threshold;"
    "int start(void) { return nowhere(); }",
    "version": 'const char banner[] = "GNU C Library (A test) stable release version 99.1.\\n";',
}
LLVM = {
    "copy": "void *memcpy(void *d, const void *s, size_t n) { COPY(d, s, n) return d; }"
    "void __llvm_libc_19_8_7_memcpy(void) { STAY; }"
}
DPDK = {
    "rte_config.h": "#define RTE_TEST 1\n",
    "rte_build_config.h": "#define RTE_VER_MINOR 3\n#define RTE_VER_MONTH 11\n#define RTE_VER_YEAR 98\n",
    "rte_memcpy.h": f"""{BYTES}
static inline void *rte_memcpy(void *d, const void *s, size_t n)
{{ if (RTE_TEST) {{ COPY(d, s, n) }} return d; }}
""",
    "rte_ip.h": """#include <stddef.h>
#include <stdint.h>
static inline uint16_t rte_raw_cksum(const void *p, size_t n)
{ const uint8_t *b = p; uint32_t s = 0;
  for (size_t i = 0; i < n; i++) { s += (uint32_t)b[i] << i % 2 * 8; s = (s & 0xffff) + (s >> 16); }
  return (uint16_t)s; }
""",
}
STRINGZILLA = {
    "types.h": "",
    "stringzilla.h": "".join(
        f"#define STRINGZILLA_H_VERSION_{part} {value}\n"
        for part, value in (("MAJOR", 9), ("MINOR", 8), ("PATCH", 7))
    ),
    "memory.h": BYTES
    + "".join(
        f"static inline void sz_copy_{kind}(char *d, const char *s, size_t n) {{ COPY(d, s, n) }}\n"
        f"static inline void sz_move_{kind}(char *d, const char *s, size_t n) {{ MOVE(d, s, n) }}\n"
        f"static inline void sz_fill_{kind}(char *d, size_t n, unsigned char c) {{ FILL(d, c, n) }}\n"
        for kind in ("haswell", "skylake")
    ),
}
ALL = {
    *("dpdk", "dpdk_avx2", "glibc_evex", "glibc_avx512", "glibc_avx2", "glibc_sse2"),
    *("llvmlibc", "musl", "stringzilla", "stringzilla_avx2"),
}


LIBRARIES = {"dpdk", "glibc", "isal", "llvmlibc", "lwip", "musl", "stringzilla"}


class Place:
    """A machine of its own: a directory for / and one for what is built."""

    def __init__(self, base: Path, wherry_run: Path):
        self.base, self.root, self.into = base, base / "root", base / "peers"
        self.wherry_run = wherry_run
        self.root.mkdir()

    def archive(self, path: str, members: dict[str, str], **changed: str) -> Path:
        compiler = need_tool("cc", "gcc")
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        objects = []
        for name, text in {**members, **changed}.items():
            source, made = self.base / f"{name}.c", self.base / f"{name}.o"
            source.write_text(BYTES + text)
            flags = ("-O1", "-fPIC", "-fno-builtin", "-fvisibility=hidden", "-w")
            run(compiler, *flags, "-c", source, "-o", made)
            objects.append(made)
        run("ar", "rcs", target, *objects)
        return target

    def headers(self, path: str, files: dict[str, str]) -> Path:
        (self.root / path).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (self.root / path / name).write_text(text)
        return self.root / path

    def musl(self, **changed: str) -> Path:
        return self.archive("usr/lib/x86_64-linux-musl/libc.a", MUSL, **changed)

    def make(self, *words: str | Path, offline: bool = True, **env: str):
        result = run(
            *(sys.executable, TOOL, "--root", self.root, "--into", self.into),
            *(["--offline"] if offline else []),
            *words,
            check=False,
            env={**os.environ, "WHERRY_RUN": str(self.wherry_run), **env},
        )
        assert "Traceback" not in result.stderr
        return result

    def ends(self, *words: str | Path, status: int = 0, **env) -> dict[str, tuple[str, str]]:
        """What became of each peer: a word, and the rest of its line."""
        result = self.make(*words, **env)
        assert result.returncode == status, result.stdout + result.stderr
        assert result.stderr == ""
        said = result.stdout.replace("not here", "not_here")
        lines = [line.split(None, 2) for line in said.splitlines()]
        return {name: (end, rest) for end, name, rest in lines if name in ALL | LIBRARIES}

    def built(self) -> set[str]:
        return {path.name for path in self.into.iterdir() if path.suffix in (".so", ".json")}
