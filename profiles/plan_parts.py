"""The best buckets of requests that may share profiles, for each number of profiles, and how parts share a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trtc.profiles.corners import Groups, corners_of, grid_edges, near_edges
from trtc.profiles.cover import Choice, Search, relax
from trtc.profiles.cover_proof import can_prove, proven
from trtc.profiles.edges import best_edges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.profiles.cost import CostModel
    from trtc.profiles.plan_space import Space
    from trtc.profiles.traffic import BoolArray, FloatArray, IntArray

PROVEN = 1e-6
"""A choice whose cost is within this share of its lower bound is called proven; solvers round at about this size."""
_REACH = (-8, -4, -2, -1, 0, 1, 2, 4)
_REFINEMENTS = 4
_WORK = 1.5e9
_ROUNDS = (40, 300)


@dataclass(frozen=True, slots=True, eq=False)
class PartChoice:
    """Buckets for one number of profiles.

    Attributes:
        buckets: int64 [profiles, k]; the entry of a symbol whose whole range each profile takes is 0.
        cost: weighted seconds; infinite where no such choice was found.
        lower: no choice of as many costs less.
    """

    buckets: IntArray
    cost: float
    lower: float


def solve_part(space: Space, rows: IntArray, cost: CostModel, most: int) -> list[PartChoice]:
    """Find the best buckets for requests that may share profiles.

    Args:
        space: what is to be planned.
        rows: which rows of it; in a static ladder they agree in every symbol that may not be padded.
        cost: seconds by sizes.
        most: largest number of profiles.

    Returns:
        For 1, 2, ... profiles, as far as more can help.
    """
    part = _Part(space, rows, cost)
    return _one_symbol(part, most) if len(part.varying) <= 1 else _several_symbols(part, most)


def shared_out(parts: Sequence[Sequence[PartChoice]], most: int) -> list[PartChoice | None]:
    """Share a number of profiles among parts that need one each at least, at the least cost.

    Returns:
        For 1, 2, ... profiles; None where they are too few.
    """
    cost, lower = [0.0], [0.0]
    splits: list[list[int]] = []
    for part in parts:
        sums = [_split(cost, [c.cost for c in part], k) for k in range(most + 1)]
        bounds = [_split(lower, [c.lower for c in part], k)[0] for k in range(most + 1)]
        splits.append([own for _, own in sums])
        cost, lower = [value for value, _ in sums], bounds
    found: list[PartChoice | None] = []
    for k in range(1, most + 1):
        if not np.isfinite(cost[k]):
            found.append(None)
            continue
        left, buckets = k, []
        for part, split in zip(reversed(parts), reversed(splits), strict=True):
            own = split[left]
            buckets.append(part[own - 1].buckets)
            left -= own
        found.append(PartChoice(np.concatenate(buckets[::-1]), cost[k], min(lower[k], cost[k])))
    return found


def _split(before: Sequence[float], part: Sequence[float], most: int) -> tuple[float, int]:
    """The least cost with at most ``most`` profiles, and how many of them the last part has."""
    options = [
        (before[most - own] + part[own - 1], own)
        for own in range(1, min(most, len(part)) + 1)
        if most - own < len(before)
    ]
    return min(options, default=(float("inf"), 0))


class _Part:
    """One set of rows; symbols whose bucket is the same whatever is chosen are taken out.

    Attributes:
        varying: columns whose buckets are to be found.
        groups: the requests over these.
        top: the bucket that must be chosen; empty for none.
    """

    def __init__(self, space: Space, rows: IntArray, cost: CostModel) -> None:
        self._space, self._cost = space, cost
        needs = space.needs[rows]
        self._free, kinds = np.unique(needs[:, list(space.free)], axis=0, return_inverse=True)
        self._peak = needs.max(axis=0)
        if space.top:
            self._peak[list(space.padded)] = space.top
        self.varying = [c for c in space.padded if (needs[:, c] < self._peak[c]).any()]
        self.groups = Groups(needs[:, self.varying], kinds.ravel(), space.traffic.weights[rows])
        self.top = tuple(int(self._peak[c]) for c in self.varying) if space.top else ()

    def seconds(self, buckets: IntArray) -> FloatArray:
        """Cost of buckets over the varying symbols: int64 [m, v] to float64 [kinds, m]."""
        points = np.repeat(self._whole(buckets)[None], len(self._free), axis=0)
        points[:, :, list(self._space.free)] = self._free[:, None]
        return self._cost.seconds(points.reshape(-1, points.shape[2])).reshape(points.shape[:2])

    def allowed(self, buckets: IntArray) -> BoolArray:
        """Tell which buckets keep to the budgets."""
        return self._space.allowed(self._whole(buckets))

    def choice(self, buckets: IntArray, cost: float, lower: float) -> PartChoice:
        """Add the sizes of the other symbols."""
        whole = self._whole(buckets)
        if self._space.ranges:
            whole[:, list(self._space.free)] = 0
        return PartChoice(whole, cost, lower)

    def _whole(self, buckets: IntArray) -> IntArray:
        whole = np.tile(self._peak, (len(buckets), 1))
        whole[:, self.varying] = buckets
        return whole


def _one_symbol(part: _Part, most: int) -> list[PartChoice]:
    groups = part.groups
    needs = groups.needs[:, 0] if part.varying else np.zeros(len(groups.needs), np.int64)
    edges = np.unique(np.append(needs, part.top) if part.top else needs).astype(np.int64)
    buckets = edges[:, None] if part.varying else np.zeros((1, 0), np.int64)
    cost_s = part.seconds(buckets)
    weights = np.zeros((len(edges), len(cost_s)))
    np.add.at(weights, (np.searchsorted(edges, needs), groups.kinds), groups.weights)
    return [part.choice(buckets[list(c.edges)], c.cost, c.cost) for c in best_edges(weights, cost_s, most)]


def _several_symbols(part: _Part, most: int) -> list[PartChoice]:
    edges, thinned = grid_edges(part.groups, part.top)
    corners = corners_of(part.groups, edges, part.top, part.seconds, part.allowed)
    cover, relaxed = corners.cover, corners.relaxed
    search = Search(cover)
    search_relaxed = search if relaxed is cover else Search(relaxed)
    rounds = int(np.clip(_WORK / cover.cost.size / most, *_ROUNDS))
    choices: list[PartChoice] = []
    last: Choice | None = None
    fine = (np.empty((0, len(part.varying)), np.int64), float("inf"))
    for _ in range(min(most, cover.cost.shape[1])):
        last = search.extended(last)
        if not np.isfinite(last.cost):
            choices.append(part.choice(corners.buckets[last.corners], last.cost, 0.0))
            continue
        bound = relax(relaxed, search_relaxed, relaxed.choice(last.corners), rounds)
        if thinned:
            last = min(last, search.improved(bound.best.corners), key=lambda c: c.cost)
            fine = _refined(part, corners.buckets[last.corners], len(last.corners), fine)
            lower = fine[1] if len(last.corners) == 1 else min(bound.lower, fine[1])  # one bucket for all is no choice
            choices.append(part.choice(*fine, lower))
            continue
        if bound.best.cost > bound.lower * (1 + PROVEN / 10) and can_prove():
            bound = proven(cover, bound)
        last = bound.best
        choices.append(part.choice(corners.buckets[last.corners], last.cost, bound.lower))
    return choices


def _refined(part: _Part, buckets: IntArray, count: int, shorter: tuple[IntArray, float]) -> tuple[IntArray, float]:
    """Look near the buckets of a thinned grid, on the full one; return ``count`` buckets and their cost.

    Where that ends above the best ``shorter`` ladder, look near that one and add a bucket instead.
    """
    fine = [np.unique(np.append(part.groups.needs[:, v], part.top[v : v + 1])) for v in range(buckets.shape[1])]
    best = (buckets, float("inf"))
    for start in (buckets, shorter[0]):
        now = start
        for _ in range(_REFINEMENTS if len(start) else 0):
            tight = _tightened(part, now)
            near = corners_of(part.groups, near_edges(fine, tight, _REACH), part.top, part.seconds, part.allowed)
            search = Search(near.cover)
            better = search.improved(np.array([np.flatnonzero((near.buckets == b).all(axis=1))[0] for b in tight]))
            while len(better.corners) < min(count, len(near.buckets)):
                better = search.extended(better)
            if not better.cost < best[1] * (1 - PROVEN):
                break
            now = near.buckets[better.corners]
            best = (now, better.cost)
        if best[1] <= shorter[1]:
            break
    return best


def _tightened(part: _Part, buckets: IntArray) -> IntArray:
    """Lower each bucket to what the requests that run in it need; drop those in which none runs. The top stays."""
    fits = (part.groups.needs[:, None] <= buckets[None]).all(axis=2)
    near = np.where(fits, part.seconds(buckets)[part.groups.kinds], np.inf).argmin(axis=1)
    top = np.array(part.top, np.int64)
    tight = [
        bucket if part.top and (bucket == top).all() else part.groups.needs[near == i].max(axis=0)
        for i, bucket in enumerate(buckets)
        if (near == i).any() or (part.top and (bucket == top).all())
    ]
    return np.unique(np.array(tight, np.int64), axis=0)
