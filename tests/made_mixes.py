"""Mixes as wherry record writes them, for tests of all that reads them."""

from __future__ import annotations

import copy

SMALL = {
    "format": "wherry-mix",
    "version": 1,
    "name": "small",
    "ops": {
        "copy": {
            "calls": 4,
            "bytes": 4024,
            "functions": {"memcpy": 4},
            "sizes": [[12, 12, 2, 24], [1984, 2047, 2, 4000]],
            "places": [[16, 8, 1, "far", "none", 2], [2048, 64, 64, "same", "none", 2]],
        },
        "move": {
            "calls": 2,
            "bytes": 200,
            "sizes": [[100, 100, 2, 200]],
            "places": [[128, 64, 8, "near", "above", 2]],
            "order": [[128, 2, 1, 2]],
            "times": [[96, 127, 2, 200, 90.5, 60.0, 1, 700.0, 0, [2, 0, 0, 0, 0, 0, 0, 0, 0]]],
        },
    },
    "sequences": {"calls": [["copy", 12, 8, 2561, "none"]], "bursts": ["0 0"]},
    "trial": {
        "routines": "dropin",
        "plan": "default",
        "ops": {"move": [[96, 127, [1] * 6, [9.5] * 6, [1] * 6, [8.0] * 6]]},
    },
}


CEILING = {"cpu_s": 1, "likely_s": 0.1, "at_most_s": 0.2, "likely": 0.1, "at_most": 0.2}


def full() -> dict:
    """A mix with every field that there is."""
    document = copy.deepcopy(SMALL)
    document |= {
        "created": "2026-11-21T12:40:00+00:00",
        "wherry": "0.1",
        "how": {"command": ["a"], "left_out": 1, "programs": ["a 1"], "note": "n"},
        "machine": {
            "cpu": "C", "family": 1, "model_number": 2, "stepping": 3, "tier": "avx2", "kernel": "6", "libc": "glibc 2",
        },
        "run": {
            "exit": 0, "recovered": False, "collected": False, "runs": 1, "elapsed_s": 1.0, "user_s": 1.0,
            "system_s": 0.1, "processes": 1,
            "execs": 1, "threads": 1, "uncounted": 1, "unrecorded": [{"program": "/a", "reason": "static", "count": 1}],
            "unseen": {"entered": 3, "inside_libc": 1, "error": "none"},
        },
        "threads": [{"program": "/a", "name": "t", "threads": 2, "calls": 4, "bytes": 4024, "most_bytes": 4000}],
        "callers": [{
            "op": "copy", "module": "/a", "build_id": "5a", "offset": 9, "function": "f", "source": "f.c:1",
            "inlined_into": ["g"], "calls": 2, "bytes": 24,
        }],
        "ceiling": {
            "cpu_s": 1.1, "likely_s": 0.1, "at_most_s": 0.2, "likely": 0.1, "at_most": 0.2, "timed": 9, "pace": 1.2,
            "trial_s": 0.1, "few_timed": False, "incomplete": False, "unrecorded_s": 0.1,
            "parts": [{"op": "copy", "up_to": None, "calls": 1, "likely_s": 0.1, "at_most_s": 0.2}],
        },
    }  # fmt: skip
    own = document["ops"]["copy"]
    own["order"] = [[16, 2, 1, 2]]
    own["times"] = [[1984, 2047, 9, 18000, 900.5, 60.0, 1, 700.0, 0, [9, 0, 0, 0, 0, 0, 0, 0, 0]]]
    document["ops"] = {"copy": own}
    rows = [[1984, 2047, [9] * 6, [900.5] * 6, [9] * 6, [800.0] * 6]]
    document["trial"] |= {
        "turns": {
            "measure": "calls", "pairs": 9, "covered": 0.9, "change": 0.1, "half": 0.05, "runs": [0.1],
            "lasting": 0.4,
        },
        "ops": {"copy": rows},
    }  # fmt: skip
    return document
