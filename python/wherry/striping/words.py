"""The words of the experiment `stripes`, as docs/runner-systems.md has them."""

from __future__ import annotations

BLOCKS = tuple(1 << shift for shift in range(13, 21))  # 8 KiB to 1 MiB
USUAL_BLOCK = 64 << 10
MEMBERS = 9  # as many as the mail's disks
LEAST_BLOCK, MOST_BLOCK = 4096, 1 << 20

READ, DIRECT, TOUCH = "read", "direct", "touch"
COPIES = ("libc", "x87_fild64", "wherry")
NOFAULT = "nofault"
STOCK, X87 = "libc", "x87_fild64"

WAY_WORDS = {
    READ: "read() into a user's buffer: the kernel copies",
    DIRECT: "read() past the page cache (O_DIRECT): the device writes into the buffer",
    TOUCH: "mapping, one byte of each page touched: no copy",
}


def way_words(name: str) -> str:
    if name == NOFAULT:
        return "mapping, copied by wherry_copy_nofault"
    return WAY_WORDS.get(name) or f"mapping, copied by {name}"


def megabytes(cell: dict | None) -> float | None:
    """MB/s, of 2^20 bytes, as in the mail."""
    return None if cell is None else cell["bytes"] / cell["ns"]["median"] * 1e9 / (1 << 20)


def is_row(row: dict, **words: object) -> bool:
    return all(row.get(key) == value for key, value in words.items())
