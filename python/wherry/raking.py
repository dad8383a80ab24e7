"""Weights that give a sample the proportions of what it was drawn from (raking).

A recording has the sizes of all calls, and a hundred runs of consecutive ones. A compiler's phases are longer than such
a run, so the runs alone may have 59 % of small calls where the program made 70 %.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np

# No run counts for more or less than so many times its share: one odd run must not be all that is measured.
MOST, STEPS = 4.0, 200


def weights(counts: Sequence[Sequence[int]], wanted: Sequence[float]) -> np.ndarray:
    """Of each run, by its calls in each class and by what all calls of each class are to be (in any unit). Their sum
    over the calls is as without them. Classes of which no run has a call are left as they are."""
    table = np.asarray(counts, dtype=float)
    target = np.asarray(wanted, dtype=float)
    sizes = table.sum(axis=1)
    found = np.ones(len(table))
    seen = (table.sum(axis=0) > 0) & (target > 0)
    if not seen.any() or not sizes.all():
        return found
    # A class that is nowhere wanted pulls a run down as little as one that is nowhere seen.
    target = target[seen] / target[seen].sum()
    parts = table[:, seen] / sizes[:, None]
    for _ in range(STEPS):
        now = (found * sizes) @ parts
        found *= np.exp(parts @ np.log(target * now.sum() / now))
        found = np.clip(found, 1 / MOST, MOST)
        found *= sizes.sum() / (found @ sizes)
    return np.clip(found, 1 / MOST, MOST)


def again(runs: Sequence, shares: Sequence[float], chance: random.Random) -> Iterator:
    """The runs over and over, each as often as its weight says, in another order each time."""
    owed = dict.fromkeys(range(len(runs)), 0.0)
    order = list(owed)
    while True:
        chance.shuffle(order)
        for i in order:
            owed[i] += shares[i]
            while owed[i] >= 1:
                owed[i] -= 1
                yield runs[i]
