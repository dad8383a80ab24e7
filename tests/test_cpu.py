"""CPUs as test data: each dump of fixtures/cpus is decoded and compared with what it states."""

import subprocess
from pathlib import Path

import pytest

DUMPS = sorted((Path(__file__).parent / "fixtures" / "cpus").glob("*.txt"))


@pytest.mark.parametrize("dump", DUMPS, ids=lambda path: path.stem)
def test_dump(build_dir, dump):
    program = build_dir / "tests" / "c" / "cpu-test"
    done = subprocess.run([program, dump], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stdout + done.stderr
