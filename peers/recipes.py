"""What the peers are made of: for each its source, its tier and the functions it gives."""

from __future__ import annotations

from dataclasses import dataclass

PLAIN = ("memcpy", "memmove", "memset")


@dataclass(frozen=True)
class Recipe:
    """One peer: what it is made from, and how."""

    name: str
    source: str
    tier: str
    what: str
    # Exported name and the name in the archive; for headers the shim has the plain names already.
    exports: tuple[tuple[str, str], ...]
    options: tuple[str, ...] = ()
    shim: str = ""  # the file here, where it is not called as the source


def _same(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, name) for name in names)


def _glibc(tier: str, vector: str, stores: str = "") -> Recipe:
    """The routines that glibc takes on CPUs with ERMS; the stores' vector has a name of its own for AVX2."""
    copies, fills = (f"{kind}_unaligned_erms" for kind in (vector, stores or vector))
    exports = (
        ("memcpy", f"__memmove_{copies}"),
        ("memmove", f"__memmove_{copies}"),
        ("mempcpy", f"__mempcpy_{copies}"),
        ("memset", f"__memset_{fills}"),
    )
    name = f"glibc_{stores or vector}"
    return Recipe(name, "glibc", tier, f"glibc's {copies}", exports)


def _dpdk(name: str, tier: str, *options: str) -> Recipe:
    return Recipe(name, "dpdk", tier, "DPDK's rte_memcpy", _same("memcpy"), ("-O3", *options))


# A copy of packets inlined in loops, beside those that it is compared with, and its number in dpdk_packets.c.
PACKETS = {"rte": "rte_memcpy", "memcpy": "memcpy", "padded": "wherry_copy_padded"}
LOOPS = "wherry_packet_loops"


def _packets(tier: str, *options: str) -> tuple[Recipe, ...]:
    return tuple(
        Recipe(
            f"{tier}_{word}{end}",
            "dpdk",
            tier,
            f"{what} inlined, size a {'constant' if end else 'variable'}",
            _same("memcpy", LOOPS),
            ("-O3", f"-DCOPY={number}", *(["-DCONSTANT"] if end else []), *options),
            shim="dpdk_packets",
        )
        for number, (word, what) in enumerate(PACKETS.items(), 1)
        for end in ("", "_n")
    )


def _stringzilla(name: str, tier: str, kind: str) -> Recipe:
    options = ("-O2", f"-DTIER={kind}")
    return Recipe(name, "stringzilla", tier, f"StringZilla's {kind}", _same(*PLAIN), options)


RECIPES = (
    _dpdk("dpdk", "avx512", "-DRTE_MEMCPY_AVX512"),
    _dpdk("dpdk_avx2", "avx2"),
    *_packets("avx512", "-DRTE_MEMCPY_AVX512"),
    *_packets("avx2"),
    Recipe(
        *("dpdk_csum", "dpdk", "avx2", "DPDK's rte_raw_cksum", _same("csum_partial"), ("-O3",)),
        shim="dpdk_csum",
    ),
    _glibc("avx512", "evex"),
    _glibc("avx512", "avx512"),
    _glibc("avx2", "avx", "avx2"),
    _glibc("sse2", "sse2"),
    Recipe(
        *("llvmlibc", "llvmlibc", "sse2", "LLVM libc as packaged"),
        _same(*PLAIN, "mempcpy", "bzero", "bcopy"),
    ),
    Recipe("isal", "isal", "avx2", "ISA-L's crc32_iscsi", _same("crc32c"), ("-O2",)),
    Recipe("lwip", "lwip", "sse2", "lwIP's inet_chksum", _same("csum_partial"), ("-O2",)),
    Recipe("musl", "musl", "sse2", "musl", _same(*PLAIN)),
    _stringzilla("stringzilla", "avx512", "skylake"),
    _stringzilla("stringzilla_avx2", "avx2", "haswell"),
)
# Some of what a package may lack, according to how it was built, is no fault of it.
LENIENT = frozenset({"llvmlibc"})
SOURCES = tuple(sorted({recipe.source for recipe in RECIPES}))
