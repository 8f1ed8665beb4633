"""One symbol that may be padded: the best bucket edges, exactly, by dynamic programming.

``spend(i, j)`` is what the groups from ``i`` to before ``j`` cost when all are padded to the edge of the last of them:
a sum over groups of costs that never fall from one edge to the next. Such sums satisfy the quadrangle inequality: for
``a <= b <= c <= d``, ``spend(a, c) + spend(b, d) <= spend(a, d) + spend(b, c)``, because the groups between ``a`` and
``b`` are all that differs, and they pay for edge ``c`` on the left and for edge ``d`` on the right. So the best place
of the last cut never moves back when the end moves on, and divide and conquer finds each row of the programme in
O(n log n) steps instead of O(n^2) (F. F. Yao, Efficient dynamic programming using quadrangle inequalities, 1980).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from trtc.profiles.traffic import FloatArray, IntArray

_FACTORS = 4
_MATRIX_EDGES = 4096


@dataclass(frozen=True, slots=True)
class EdgeChoice:
    """The best edges for one number of profiles.

    Attributes:
        edges: indices of the chosen candidates, ascending; the last candidate is always among them.
        cost: weighted seconds of all groups.
    """

    edges: tuple[int, ...]
    cost: float


def best_edges(weights: FloatArray, cost: FloatArray, most: int) -> tuple[EdgeChoice, ...]:
    """Find the best edges for each number of profiles: O(most * n log n * u) steps, O(n (u + most)) memory.

    Args:
        weights: float64 [n, u]: of the requests whose size rounds up to candidate edge ``n``, by their sizes of the
            symbols that may not be padded (``u`` of them, 1 where every symbol may); 0 is allowed.
        cost: float64 [u, n]: seconds of one run at each edge; never falling along a row.
        most: largest number of profiles.

    Returns:
        For 1, 2, ... profiles, up to ``min(most, n)``; of equal choices the one with the smaller edges.
    """
    spend = _Spend(weights, cost)
    count = len(weights)
    reached = np.full(count + 1, np.inf)
    reached[0] = 0.0
    cuts: list[IntArray] = []
    choices = []
    for k in range(1, min(most, count) + 1):
        reached, cut = _extend(reached, spend, k)
        cuts.append(cut)
        choices.append(EdgeChoice(_trace(cuts, count), float(reached[count])))
    return tuple(choices)


class _Spend:
    """``spend(i, j)`` for arrays of pairs."""

    def __init__(self, weights: FloatArray, cost: FloatArray) -> None:
        self._before = np.concatenate([np.zeros((1, weights.shape[1])), np.cumsum(weights, axis=0)])
        self._cost = np.ascontiguousarray(cost.T)
        few = weights.shape[1] <= _FACTORS or len(weights) > _MATRIX_EDGES
        self._all = None if few else self._before @ cost

    def __call__(self, i: IntArray, j: IntArray) -> FloatArray:
        if self._all is not None:
            found: FloatArray = self._all[j, j - 1] - self._all[i, j - 1]
            return found
        total = np.zeros(len(i))
        for u in range(self._before.shape[1]):
            before = self._before[:, u]
            total += (before[j] - before[i]) * self._cost[j - 1, u]
        return total


def _extend(reached: FloatArray, spend: _Spend, k: int) -> tuple[FloatArray, IntArray]:
    """Add one profile: the least cost of each prefix with ``k`` of them, and where its last cut lies.

    All subproblems of one depth of the recursion are done in one sweep over flat arrays.
    """
    count = len(reached) - 1
    cost, cut = np.full(count + 1, np.inf), np.full(count + 1, -1, np.int64)
    low, high = np.array([k]), np.array([count])
    first, last = np.array([k - 1]), np.array([count - 1])
    while len(low):
        middle = (low + high) // 2
        lengths = np.minimum(last, middle - 1) - first + 1
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        i = np.arange(lengths.sum()) + np.repeat(first - starts, lengths)
        costs = reached[i] + spend(i, np.repeat(middle, lengths))
        least = np.minimum.reduceat(costs, starts)
        hits = np.flatnonzero(costs == np.repeat(least, lengths))
        best = i[hits[np.searchsorted(hits, starts)]]
        cost[middle], cut[middle] = least, best
        left, right = low < middle, middle < high
        low, high, first, last = (
            np.concatenate([low[left], middle[right] + 1]),
            np.concatenate([middle[left] - 1, high[right]]),
            np.concatenate([first[left], best[right]]),
            np.concatenate([best[left], last[right]]),
        )
    return cost, cut


def _trace(cuts: list[IntArray], count: int) -> tuple[int, ...]:
    edges = []
    at = count
    for cut in reversed(cuts):
        edges.append(at - 1)
        at = int(cut[at])
    return tuple(reversed(edges))
