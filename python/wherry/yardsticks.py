"""What stands beside routines and is not in the race: it has no ratio and no part in a verdict."""

YARDSTICKS = {
    "call_floor": "a function that returns at once",
    "read_bandwidth": "yardstick: plain loads",
    "write_bandwidth": "yardstick: plain stores",
    "write_nt_bandwidth": "yardstick: NT stores",
    "copy_bandwidth": "yardstick: plain copy",
    "copy_nt_bandwidth": "yardstick: NT copy",
}
