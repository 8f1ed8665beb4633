"""Prove a choice of corners optimal, or find a better one, with an integer programme (HiGHS, through scipy)."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.profiles.cover import CLOSED, Bound, Cover, reduced

if TYPE_CHECKING:
    from trtc.profiles.traffic import FloatArray, IntArray

MOST_PAIRS = 10_000
"""Pairs of a group and a corner that one programme may hold; above, the gap stays as the relaxation leaves it."""
MOST_NODES = 2_000
"""Branches that the solver may look at: a limit on work, not on time, so that the result is the same everywhere."""


def can_prove() -> bool:
    """Tell whether scipy is installed."""
    return find_spec("scipy") is not None


def proven(cover: Cover, bound: Bound) -> Bound:
    """Solve for as many corners as the best known choice has; what the bound rules out is left out.

    Returns:
        The best choice and bound that are known now: the same as before where the programme would be too large.
    """
    corners, cost = reduced(cover, bound)
    if int(np.isfinite(cost).sum()) > MOST_PAIRS:
        return bound
    best = bound.best
    opened, dual = _solve(cost / best.cost, len(best.corners), np.flatnonzero(corners == cover.forced))
    if opened is not None and len(opened):
        found = cover.choice(corners[opened])
        best = found if found.cost < best.cost else best
    return Bound(min(max(bound.lower, dual * bound.best.cost), best.cost), bound.prices, best)


def _solve(cost: FloatArray, k: int, forced: IntArray) -> tuple[IntArray | None, float]:
    """Minimise: y says which corners are open, x which one serves each group. Returns the open ones, and the bound."""
    from scipy.optimize import Bounds as Box
    from scipy.optimize import LinearConstraint, milp
    from scipy.sparse import csr_array

    groups, count = cost.shape
    row, column = np.nonzero(np.isfinite(cost))
    pairs = len(row)
    at = np.arange(pairs)
    ones = np.ones(pairs)
    served = csr_array((ones, (row, count + at)), shape=(groups, count + pairs))
    opened = csr_array(
        (np.concatenate([ones, -ones]), (np.concatenate([at, at]), np.concatenate([count + at, column]))),
        shape=(pairs, count + pairs),
    )
    few = csr_array((np.ones(count), (np.zeros(count, np.int64), np.arange(count))), shape=(1, count + pairs))
    low = np.zeros(count + pairs)
    low[forced] = 1.0
    result: Any = milp(
        np.concatenate([np.zeros(count), cost[row, column]]),
        integrality=np.concatenate([np.ones(count), np.zeros(pairs)]),
        bounds=Box(low, np.ones(count + pairs)),
        constraints=[LinearConstraint(served, 1, 1), LinearConstraint(opened, -np.inf, 0), LinearConstraint(few, k, k)],
        options={"mip_rel_gap": CLOSED, "node_limit": MOST_NODES},
    )
    dual = result.mip_dual_bound
    bound = float(dual) if dual is not None and np.isfinite(dual) else -np.inf
    return (None if result.x is None else np.flatnonzero(result.x[:count] > 0.5)), bound  # noqa: PLR2004 - 0 or 1
