"""The words of the experiment `network`, as docs/runner-systems.md has them."""

from __future__ import annotations

OP = "network"
SIZES = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
FRAMES = (60, 64, 128, 256, 512, 1024, 1514)
ALIGNED, MISALIGNED = "aligned", "misaligned"
IPERF = "iperf3"
SENDFILE, SENDFILE_MISALIGNED, DROPPED = "sendfile", "sendfile_misaligned", "sendfile_dropped"
STOCK, DROPIN, SUMS, WHERRY = "libc", "dropin", "sums", "wherry"
GOOD, PADDED, SWAP = "int4x8_bcopy1k", "padded", "swap"
CONFIDENCE, WITHIN = 95, 5  # per cent: as the mail's `-I 95,10`, an interval 10 % wide
OFFSETS = (0, 1)
# How each way is called: its words, and what people read.
KERNEL_WAYS = (
    ({"via": "loopback", "offload": "on"}, "loopback"),
    ({"via": "veth", "offload": "on"}, "veth pair"),
    ({"via": "veth", "offload": "off"}, "veth pair without offloads"),
)
STACK_WORDS = {
    STOCK: "libc's copies, lwIP's checksum",
    DROPIN: "Wherry's copies, lwIP's checksum: what the drop-in changes",
    SUMS: "libc's copies, Wherry's checksum",
    WHERRY: "Wherry's copies and checksums, in one pass where lwIP has the hook",
}
FRAME_WORDS = {
    GOOD: "Rizzo's good_bcopy, frames rounded up to 32 bytes",
    PADDED: "wherry_copy_padded, within slots of 2048 bytes",
    SWAP: "buffers exchanged and nothing copied, as netmap does where it can",
}


# Both ends of the stack in one thread: the word is left out then. Or in two processes.
TOGETHER, APART = None, "apart"


def is_row(row: dict, **words: object) -> bool:
    return all(row.get(key) == value for key, value in words.items())
