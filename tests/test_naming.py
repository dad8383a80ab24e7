"""Names of benchmarks: each rule by which a cell's dimensions are written into one and read out of one."""

import pytest
from wherry.formats import naming

CELL = {
    "experiment": "sizes",
    "routine": "libc",
    "op": "copy",
    "size": 64,
    "src_off": 0,
    "dst_off": 0,
    "walk": "pool",
    "mode": "throughput",
    "threads": 1,
    "huge": False,
    "src_state": "L1",
    "dst_state": "L2",
}


def test_what_is_usual_is_left_out_and_the_mode_stands_last():
    assert naming.write(CELL, ":") == (
        "copy/experiment:sizes/routine:libc/size:64/src_state:L1/dst_state:L2/mode:throughput"
    )


@pytest.mark.parametrize(
    ("key", "value", "word"),
    [
        ("src_off", 3, "src_off=3"),
        ("dst_off", 4095, "dst_off=4095"),
        ("threads", 2, "threads=2"),
        ("huge", True, "huge=1"),
        ("content", "dirty", "content=dirty"),
        ("content", "mixed", "content=mixed"),
        ("code", "cold", "code=cold"),
        ("delta", 0, "delta=0"),
        ("overlap", -8, "overlap=-8"),
    ],
)
def test_what_is_not_usual_is_written_and_read_again(key, value, word):
    name = naming.write(CELL | {key: value}, "=")
    assert word in name.split("/")
    told = naming.read(name, "=", ours=True)
    assert told.dimensions[key] == value and not told.rest
    assert told.op == "copy" and told.routine == "libc" and told.experiment == "sizes"


def test_ours_alone_has_the_usual_for_what_is_left_out():
    name = naming.write(CELL, ":")
    assert naming.read(name, ":", ours=True).dimensions["src_off"] == 0
    assert "src_off" not in naming.read(name, ":").dimensions
    # Somebody else's name tells nothing of what it leaves out.
    assert "src_off" not in naming.read("memcpy/64", ":", ours=True).dimensions


def test_a_mix_has_no_size_and_a_table():
    own = {k: v for k, v in CELL.items() if k != "size"} | {"mix": "uniform:0-64", "table": 4096}
    name = naming.write(own, ":")
    assert "mix:uniform:0-64" in name and "table:4096" in name
    told = naming.read(name + "/size:8", ":")
    assert told.dimensions["mix"] == "uniform:0-64" and "size" not in told.dimensions
    assert naming.dimensions({"mix": "log:1-8"})["table"] == 65536
    assert naming.read("copy/mix:sometimes", ":").rest == ["mix:sometimes"]


def test_slashes_and_blanks_do_not_break_a_name():
    name = naming.write(CELL | {"routine": "a/b c"}, ":")
    assert naming.read(name, ":").routine == "a_b_c"


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("BM_memcpy", "copy"),
        ("BM_mempcpy", "copy"),
        ("BM_Memmove", "move"),
        ("memset_avx2", "set"),
        ("bzero", "zero"),
        ("memzero", "zero"),
        ("MemclrUnaligned", "zero"),
        ("bcopy", "move"),  # not the copy that the word holds
        ("fastcopy", "copy"),
        ("copy_csum", "copy_csum"),
        ("strlen", "other"),
    ],
)
def test_the_op_in_other_peoples_names(name, op):
    assert naming.read(name, ":").op == op


@pytest.mark.parametrize("key", ["size", "length", "len", "n", "bytes", "size_bytes", "range"])
def test_every_word_for_a_size(key):
    assert naming.read(f"memcpy/{key}:4k", ":").dimensions == {"size": 4096}
    assert naming.read(f"memcpy/{key.upper()}:16KiB", ":").dimensions == {"size": 16384}


@pytest.mark.parametrize(
    "part",
    [
        "src_off:4096",
        "src_off:-1",
        "delta:4096",
        "threads:0",
        "buffer:0",
        "size:-1",
        "src_state:L4",
        "walk:run",
        "mode:fast",
        "huge:2",
        "code:hot",
        "op:fly",
        "routine:",
        "colour:red",
    ],
)
def test_what_a_dimension_cannot_be_is_left_as_it_is(part):
    told = naming.read(f"memcpy/{part}", ":")
    assert told.rest == [part] and not told.dimensions


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("src_off:4095", "src_off", 4095),
        ("overlap:-64", "overlap", -64),
        ("threads:1", "threads", 1),
        ("size:0", "size", 0),
        ("huge:0", "huge", False),
        ("content:zero", "content", "zero"),
        ("src_state:DRAM", "src_state", "DRAM"),
    ],
)
def test_the_ends_of_what_it_can_be(part, key, value):
    assert naming.read(f"memcpy/{part}", ":").dimensions == {key: value}


def test_of_several_numbers_the_one_that_the_file_tells_is_the_size():
    assert naming.read("memcpy/1/64", ":").dimensions == {"size": 1}
    told = naming.read("memcpy/1/64", ":", size=64)
    assert told.dimensions == {"size": 64} and told.rest == ["1"]
    assert naming.read("memcpy/1000", ":", size=1015).dimensions == {"size": 1000}, "within 2 %"
    told = naming.read("memcpy/3/1000", ":", size=1030)
    assert told.dimensions == {"size": 3}, "none is near: the first"
    # A size that is named comes before a bare number; of an op that is not ours a number is no size.
    told = naming.read("memcpy/size:64/7", ":")
    assert told.dimensions == {"size": 64} and told.rest == ["7"]
    assert naming.read("strlen/64", ":").dimensions == {}
    assert naming.read("memcpy/-5/64", ":").dimensions == {"size": 64}


@pytest.mark.parametrize("sign", [":", "="])
@pytest.mark.parametrize(
    "own",
    [
        {"op": "chase", "size": 4096, "mode": "latency", "huge": False},
        {"op": "chase", "size": 1 << 30, "mode": "throughput", "huge": True, "threads": 1},
        {"op": "loaded", "size": 65536, "block": 4096, "buffer": 1 << 26, "others": 7},
        {"op": "network", "size": 65536, "via": "veth", "offload": "off", "offset": 3},
        {"op": "switch", "via": "pipe", "partners": "threads", "place": "same CPU", "live": "none"},
        {"op": "stripes", "size": 4096, "members": 9, "cache": "cold", "from": "given"},
    ],
)
def test_systems_come_back_as_they_were(own, sign):
    cell = {"experiment": "any", "routine": "r", "row": 7} | own
    told = naming.read(naming.write(cell, sign), sign, ours=True)
    expected = {k: v.replace(" ", "_") if isinstance(v, str) else v for k, v in own.items()}
    assert {"op": told.op} | told.dimensions == expected and not told.rest
    assert naming.bytes_of(told, 8.0000001) == 8.0, "what is read, not where"


def test_systems_are_ours_alone():
    assert naming.read("chase/64", ":").op == "other"
    told = naming.read("chase/experiment:latency/members:99/via:pipe", ":", ours=True)
    assert told.rest == ["members:99"] and told.dimensions == {"via": "pipe"}
