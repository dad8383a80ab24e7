"""What stands beside routines and is not in the race: it has no ratio and no part in a verdict."""

YARDSTICKS = {
    "call_floor": "a function that returns at once",
    "read_bandwidth": "yardstick: plain loads",
    "write_bandwidth": "yardstick: plain stores",
    "write_nt_bandwidth": "yardstick: NT stores",
    "copy_bandwidth": "yardstick: plain copy",
    "copy_lines": "yardstick: plain copy from line to line",
    "copy_nt_bandwidth": "yardstick: NT copy",
    "copy_nt_parts_bandwidth": "yardstick: NT copy in five parts at once",
    "syscall_floor": "a system call that does nothing",
    "pipe": "kernel: through a pipe and out",
    "pipe_write": "kernel: into a pipe",
    "page_write": "kernel: into cached pages",
    "page_read": "kernel: out of cached pages",
    "unix": "kernel: through a UNIX socket",
    "tcp": "kernel: through TCP over loopback",
    "tcp_send": "kernel: into TCP over loopback",
    "vm_readv": "kernel: process_vm_readv",
    "dev_zero": "kernel: out of /dev/zero",
}

# Copies of the running kernel are no limits of anything: pictures show them as they show routines.
KERNEL = frozenset(name for name, what in YARDSTICKS.items() if what.startswith("kernel: "))
LIMITS = YARDSTICKS.keys() - KERNEL

# Does the same wherever in a line both sides begin: rows that have it are brought to one level (levels.py).
LEVEL = "copy_lines"

# Routines in the race that only `measure` knows: it verifies them itself.
INLINED = (
    "padded",
    "inlined_padded",
    "inlined_memcpy",
    "inlined_wherry",
    "inlined_padded_n",
    "inlined_memcpy_n",
)
