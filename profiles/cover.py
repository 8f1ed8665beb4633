"""Several symbols that may be padded: choose few corners, so that every group of requests runs below one, cheaply.

This is the p-median problem, which is hard in general. ``extended`` finds good choices by swapping one corner at a
time; ``lower_bounds`` proves how good any choice can be, by a Lagrangian relaxation: with a price on every group (what
serving it may cost) each corner earns independently, so the best corners are those that earn most. Any set of prices
gives a true bound. ``cover_proof`` closes what gap is left, for instances of moderate size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from trtc.profiles.traffic import FloatArray, IntArray

ROUNDS = 120
_STALL = 8


@dataclass(frozen=True, slots=True, eq=False)
class Cover:
    """Groups of requests, and the corners that may serve them.

    Attributes:
        cost: float64 [groups, corners], weighted seconds; infinite where the group does not fit below the corner.
        forced: a corner that is always chosen, or -1.
    """

    cost: FloatArray
    forced: int = -1

    def total(self, chosen: IntArray) -> float:
        """What a choice costs; infinite where it leaves a group out."""
        return float(self.cost[:, chosen].min(axis=1).sum())


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Corners that were chosen.

    Attributes:
        corners: int64 [k], ascending.
        cost: weighted seconds; infinite where a group is left out.
    """

    corners: IntArray
    cost: float


def choose_corners(cover: Cover, most: int) -> list[Choice]:
    """Find good choices of 1, 2, ... ``most`` corners, each by ``extended`` from the one before."""
    found: list[Choice] = []
    for _ in range(min(most, cover.cost.shape[1])):
        found.append(extended(cover, found[-1] if found else None))
    return found


def extended(cover: Cover, choice: Choice | None) -> Choice:
    """Add the corner that helps most (the forced one first), and swap corners until no single swap helps."""
    capped, penalty = _capped(cover.cost)
    before = np.empty(0, np.int64) if choice is None else choice.corners
    return improved(cover, _with_best(cover, capped, before, penalty))


def improved(cover: Cover, corners: IntArray) -> Choice:
    """Swap corners until no single swap lowers the cost."""
    better = np.sort(_swapped(_capped(cover.cost)[0], corners, cover.forced))
    return Choice(better, cover.total(better))


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """What the relaxation proves.

    Attributes:
        lower: float64 [most]: no choice of 1, 2, ... corners costs less.
        prices: float64 [most, groups]: the prices that prove each.
    """

    lower: FloatArray
    prices: FloatArray


def lower_bounds(cover: Cover, found: list[Choice], most: int) -> Bounds:
    """Bound the cost of every choice of 1 to ``most`` corners from below.

    Prices follow the subgradient: a group that no corner of the relaxed choice serves may cost more, one that several
    serve less; steps are as long as the gap allows (Held, Wolfe and Crowder, Validation of subgradient optimization,
    1974), half as long after every few rounds without progress.
    """
    groups = cover.cost.shape[0]
    lower, best = np.full(most, -np.inf), np.zeros((most, groups))
    least = cover.cost.min(axis=1)
    for choice in found[:most]:
        k = len(choice.corners)
        if not np.isfinite(choice.cost):
            continue
        prices = _starting_prices(cover.cost, choice, least)
        scale, stalled = 1.0, 0
        for _ in range(ROUNDS):
            earned = np.minimum(cover.cost - prices[:, None], 0.0).sum(axis=0)
            order, bounds = _bounds(earned, float(prices.sum()), cover.forced, most)
            stalled = 0 if bounds[k - 1] > lower[k - 1] + 1e-9 * abs(choice.cost) else stalled + 1
            ahead = bounds > lower
            lower[ahead], best[ahead] = bounds[ahead], prices
            served = (cover.cost[:, order[:k]] < prices[:, None]).sum(axis=1)
            missing = 1.0 - served
            length = float((missing**2).sum())
            gap = choice.cost - bounds[k - 1]
            if gap <= 1e-9 * abs(choice.cost) or not length or scale < 1e-4:  # noqa: PLR2004 - steps too short to matter
                break
            if stalled >= _STALL:
                scale, stalled, prices = scale / 2, 0, best[k - 1]
            prices = np.maximum(prices + scale * 1.05 * gap / length * missing, least)
    return Bounds(np.maximum.accumulate(lower[::-1])[::-1], best)


def kept_corners(cover: Cover, bounds: Bounds, choice: Choice) -> IntArray:
    """Return the corners that could stand in a choice as long, and better than this one, by their reduced costs."""
    k = len(choice.corners)
    prices = bounds.prices[k - 1]
    earned = np.minimum(cover.cost - prices[:, None], 0.0).sum(axis=0)
    order, values = _bounds(earned, float(prices.sum()), cover.forced, k)
    last = earned[order[k - 1]] if len(order) >= k else 0.0
    room = choice.cost - values[k - 1] + 1e-9 * abs(choice.cost)
    may = earned - last <= room
    may[choice.corners] = True
    return np.flatnonzero(may)


def _bounds(earned: FloatArray, priced: float, forced: int, most: int) -> tuple[IntArray, FloatArray]:
    """Corners by what they earn, the forced one first, and the bound for 1, 2, ... of them."""
    rank = earned.copy()
    if forced >= 0:
        rank[forced] = -np.inf
    order = np.argsort(rank, kind="stable")
    sums = np.cumsum(earned[order[:most]])
    if len(sums) < most:
        sums = np.concatenate([sums, np.full(most - len(sums), sums[-1])])
    return order, priced + sums


def _starting_prices(cost: FloatArray, choice: Choice, least: FloatArray) -> FloatArray:
    """Prices between what a group pays and what it would pay at the next corner of the choice."""
    paid = np.sort(cost[:, choice.corners], axis=1)
    first = paid[:, 0]
    second = np.where(np.isfinite(paid[:, 1]), paid[:, 1], first * 2) if paid.shape[1] > 1 else first * 2
    prices: FloatArray = np.maximum((first + second) / 2, least)
    return prices


def _capped(cost: FloatArray) -> tuple[FloatArray, float]:
    """Costs with a penalty, above any real total, in place of infinity."""
    finite = np.where(np.isfinite(cost), cost, 0.0)
    penalty = 10.0 * float(finite.max(axis=1).sum()) + 1.0
    return np.where(np.isfinite(cost), cost, penalty), penalty


def _with_best(cover: Cover, capped: FloatArray, corners: IntArray, penalty: float) -> IntArray:
    if not len(corners) and cover.forced >= 0:
        return np.array([cover.forced])
    now = capped[:, corners].min(axis=1) if len(corners) else np.full(len(capped), penalty)
    totals = np.minimum(capped, now[:, None]).sum(axis=0)
    totals[corners] = np.inf
    return np.append(corners, int(totals.argmin()))


def _swapped(capped: FloatArray, corners: IntArray, forced: int) -> IntArray:
    """Do the best swap of one chosen corner for one other, again and again: O(groups * corners) for each."""
    corners = corners.copy()
    count = len(corners)
    while True:
        paid = capped[:, corners]
        near = paid.argmin(axis=1)
        first = paid[np.arange(len(paid)), near]
        paid[np.arange(len(paid)), near] = np.inf
        second = paid.min(axis=1) if count > 1 else np.full(len(paid), capped.max())
        shared = np.minimum(first[:, None], capped)
        extra = np.minimum(second[:, None], capped) - shared
        totals = np.zeros((count, capped.shape[1]))
        np.add.at(totals, near, extra)
        totals += shared.sum(axis=0)
        totals[:, corners] = np.inf
        if forced >= 0:
            totals[corners == forced] = np.inf
        out, into = np.unravel_index(int(totals.argmin()), totals.shape)
        now = float(first.sum())
        if not totals[out, into] < now - 1e-12 * abs(now):
            return corners
        corners[out] = into
