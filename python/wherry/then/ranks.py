"""Whether two lists of figures are in the same order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

SHUFFLES = 20_000


def ranks(values: Sequence[float]) -> np.ndarray:
    """1 for the smallest; equal ones share the mean of their places."""
    own = np.asarray(values, dtype=float)
    below = (own[:, None] > own[None, :]).sum(axis=1)
    same = (own[:, None] == own[None, :]).sum(axis=1)
    return below + (same + 1) / 2


def correlation(a: Sequence[float], b: Sequence[float]) -> tuple[float, float] | None:
    """Spearman's rank correlation, and the share of shuffles that are at least as far from zero; None when there is
    nothing to order."""
    if len(a) < 3 or len(a) != len(b):
        return None
    first, second = (own - own.mean() for own in (ranks(a), ranks(b)))
    scale = float(np.sqrt((first**2).sum() * (second**2).sum()))
    if scale == 0:
        return None
    rho = float((first * second).sum()) / scale
    # The same shuffles each time: a page made twice from one run is the same page.
    rng = np.random.default_rng(0)
    shuffled = rng.permuted(np.tile(second, (SHUFFLES, 1)), axis=1)
    chance = np.abs(shuffled @ first) / scale
    return rho, float((chance >= abs(rho) - 1e-12).mean())
