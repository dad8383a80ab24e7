"""What a tuning is told of a CPU, and proofs whose figures are known, for the tests of `wherry tune`."""

from __future__ import annotations

import numpy as np
from wherry import plans, stats
from wherry.tune import prove

REPORTED = {
    "vendor_id": "AuthenticAMD",
    "family": 26,
    "model": 2,
    "features": {},
    "last_level": 32 << 20,
    "plan": {"default": {"choice": "sse2"} | dict.fromkeys(plans.FIELDS, 0)},
}


def proof(log: float, noise: float) -> prove.Proof:
    rng = np.random.default_rng(1)
    pairs = [rng.normal(log, noise, 9) for _ in range(5)]
    twins = [rng.normal(0, noise, 9) for _ in range(5)]
    ratio = stats.bootstrap(pairs, rng)
    p = prove.significance.p_values([prove.significance.units(pairs)])[0]
    return prove.Proof(10, ratio, prove.noise_floor(twins, rng), float(p), None)
