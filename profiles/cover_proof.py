"""Prove a choice of corners optimal, or find a better one, with an integer programme (HiGHS, through scipy)."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.profiles.cover import Choice, Cover, kept_corners

if TYPE_CHECKING:
    from trtc.profiles.cover import Bounds
    from trtc.profiles.traffic import FloatArray, IntArray

MOST_PAIRS = 40_000
"""Pairs of a group and a corner that one programme may hold; above, the gap stays as the relaxation leaves it."""
MOST_NODES = 2_000
"""Branches that the solver may look at: a limit on work, not on time, so that the result is the same everywhere."""


def can_prove() -> bool:
    """Tell whether scipy is installed."""
    return find_spec("scipy") is not None


def proven_choice(cover: Cover, bounds: Bounds, choice: Choice) -> tuple[Choice, float] | None:
    """Solve for as many corners as ``choice`` has.

    Args:
        cover: the problem.
        bounds: of the relaxation; corners that it rules out are left out of the programme.
        choice: the best known.

    Returns:
        The best choice that is known now, and a lower bound; None where the programme would be too large.
    """
    corners = kept_corners(cover, bounds, choice)
    cost = cover.cost[:, corners]
    if int(np.isfinite(cost).sum()) > MOST_PAIRS:
        return None
    k = len(choice.corners)
    forced = np.flatnonzero(corners == cover.forced)
    opened, dual = _solve(cost / choice.cost, k, forced)
    lower = max(float(bounds.lower[k - 1]), min(dual * choice.cost, choice.cost))
    if opened is None:
        return choice, lower
    found = Choice(np.sort(corners[opened]), cover.total(corners[opened]))
    return (found if found.cost < choice.cost else choice), lower


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
    whole = np.concatenate([np.ones(count), np.zeros(pairs)])
    result: Any = milp(
        np.concatenate([np.zeros(count), cost[row, column]]),
        integrality=whole,
        bounds=Box(low, np.ones(count + pairs)),
        constraints=[LinearConstraint(served, 1, 1), LinearConstraint(opened, -np.inf, 0), LinearConstraint(few, 0, k)],
        options={"mip_rel_gap": 1e-9, "node_limit": MOST_NODES},
    )
    dual = result.mip_dual_bound
    bound = float(dual) if dual is not None and np.isfinite(dual) else -np.inf
    return (None if result.x is None else np.flatnonzero(result.x[:count] > 0.5)), bound  # noqa: PLR2004 - 0 or 1
