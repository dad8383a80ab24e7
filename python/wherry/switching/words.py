"""The words of the experiment `switch`, as docs/runner-systems.md has them."""

from __future__ import annotations

# Iterations of the mail's program when it is not told how many; its table sums 5,000,000.
SEED_TURNS = 10_000
SEED_TOTAL = 5_000_000
SEGMENT = 1448  # bytes: the data of one packet

WHO = ("no", "child", "parent", "both")
LIVE = ("none", "x87", "sse", "avx", "avx512", "opmask", "amx")
METHODS = ("never", "fxsave", "xsave", "xsavec", "xsaveopt", "in_use")
ALWAYS, IN_USE = "xsave", "in_use"
NO_COPY = "no_copy"
COPIES = ("x87_fild64", "sse2_loop", "avx2_loop", "avx512_loop", "rep_movsb")

LIVE_WORDS = {
    "x87": "x87",
    "sse": "SSE (XMM)",
    "avx": "AVX (YMM)",
    "avx512": "AVX-512 (ZMM)",
    "opmask": "AVX-512 masks",
    "amx": "AMX tiles",
}
METHOD_WORDS = {
    "never": "integer registers alone: wrong as soon as both sides use others",
    "fxsave": "x87 and SSE registers, always (FXSAVE)",
    "xsave": "all registers, always (XSAVE)",
    "xsavec": "all, side by side, without those as after reset (XSAVEC)",
    "xsaveopt": "all, without those as after reset or unchanged (XSAVEOPT)",
    "in_use": "what XGETBV says is in use; nothing at all when that is nothing (XSAVEC)",
}


def is_row(row: dict, **words: object) -> bool:
    return all(row.get(key) == value for key, value in words.items())
