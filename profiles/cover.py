"""Several symbols that may be padded: choose few corners, so that every group of requests runs below one, cheaply.

This is the p-median problem, which is hard in general. ``Search`` finds good choices by swapping one corner at a time;
``relax`` proves how good any choice can be, by a Lagrangian relaxation: with a price on every group (what serving it
may cost) each corner earns independently, so the best corners are those that earn most. Any set of prices gives a true
bound, and the corners that earn most are a good start for another search. ``cover_proof`` closes what gap is left, for
instances of moderate size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from trtc.profiles.traffic import FloatArray, IntArray

_STALL = 8
_SHORTEST_STEP = 1e-4
CLOSED = 1e-9
"""A gap below this share is rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Cover:
    """Groups of requests, and the corners that may serve them.

    Attributes:
        cost: float64 [groups, corners], weighted seconds; infinite where the group does not fit below the corner.
        forced: a corner that is always chosen, or -1.
    """

    cost: FloatArray
    forced: int = -1

    def choice(self, corners: IntArray) -> Choice:
        """Say what some corners cost together."""
        return Choice(np.sort(corners), float(self.cost[:, corners].min(axis=1).sum()))


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Corners that were chosen.

    Attributes:
        corners: int64 [k], ascending.
        cost: weighted seconds; infinite where a group is left out.
    """

    corners: IntArray
    cost: float


class Search:
    """Looks for good choices by adding and swapping single corners: O(groups * corners) for each step."""

    def __init__(self, cover: Cover) -> None:
        self._cover = cover
        finite = np.where(np.isfinite(cover.cost), cover.cost, 0.0)
        self._penalty = 10.0 * float(finite.max(axis=1).sum()) + 1.0
        self._cost = np.where(np.isfinite(cover.cost), cover.cost, self._penalty)

    def extended(self, choice: Choice | None) -> Choice:
        """Add the corner that helps most (the forced one first), and swap until no single swap helps."""
        if choice is None and self._cover.forced >= 0:
            return self.improved(np.array([self._cover.forced]))
        corners = np.empty(0, np.int64) if choice is None else choice.corners
        now = self._cost[:, corners].min(axis=1, initial=self._penalty)
        totals = np.minimum(self._cost, now[:, None]).sum(axis=0)
        totals[corners] = np.inf
        return self.improved(np.append(corners, int(totals.argmin())))

    def improved(self, corners: IntArray) -> Choice:
        """Do the best swap of one chosen corner for another, until none lowers the cost."""
        corners = corners.copy()
        while True:
            paid = self._cost[:, corners]
            near = paid.argmin(axis=1)
            first = paid[np.arange(len(paid)), near].copy()
            paid[np.arange(len(paid)), near] = self._penalty
            second = paid.min(axis=1)
            shared = np.minimum(first[:, None], self._cost)
            extra = np.minimum(second[:, None], self._cost) - shared
            totals = (near[None] == np.arange(len(corners))[:, None]).astype(np.float64) @ extra
            totals += shared.sum(axis=0)
            totals[:, corners] = np.inf
            totals[corners == self._cover.forced] = np.inf
            out, into = np.unravel_index(int(totals.argmin()), totals.shape)
            now = float(first.sum())
            if not totals[out, into] < now * (1 - CLOSED):
                return self._cover.choice(corners)
            corners[out] = into


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """What the relaxation proves for one number of corners.

    Attributes:
        lower: no choice of as many corners costs less.
        prices: float64 [groups]: the prices that prove it.
        best: the best choice that is known.
    """

    lower: float
    prices: FloatArray
    best: Choice


def relax(cover: Cover, search: Search, choice: Choice, rounds: int) -> Bound:
    """Bound the cost of every choice of as many corners from below, and look for a better one on the way.

    Prices follow the subgradient: a group that no corner of the relaxed choice serves may cost more, one that several
    serve less; steps are as long as the gap allows, and half as long after every few rounds without progress (Held,
    Wolfe and Crowder, Validation of subgradient optimization, 1974).
    """
    k, least = len(choice.corners), cover.cost.min(axis=1)
    prices = _starting_prices(cover.cost, choice, least)
    lower, kept, scale, stalled = -np.inf, prices, 1.0, 0
    for _ in range(rounds):
        order, bound = _relaxed(cover, prices, k)
        stalled += 1
        if bound > lower:
            stalled = 0 if bound > lower + CLOSED * abs(choice.cost) else stalled
            lower, kept = bound, prices
        gap = choice.cost - lower
        missing = 1.0 - (cover.cost[:, order] < prices[:, None]).sum(axis=1)
        length = float((missing**2).sum())
        if gap <= CLOSED * abs(choice.cost) or not length or scale < _SHORTEST_STEP:
            break
        if stalled >= _STALL:
            scale, stalled, prices = scale / 2, 0, kept
            found = search.improved(order)
            choice = found if found.cost < choice.cost else choice
        prices = np.maximum(prices + scale * 1.05 * (choice.cost - bound) / length * missing, least)
    return Bound(min(lower, choice.cost), kept, choice)


def reduced(cover: Cover, bound: Bound) -> tuple[IntArray, FloatArray]:
    """Leave out what cannot be part of a better choice than the best known, by reduced costs.

    To open a corner instead of the last that the relaxation opens, or to serve a group above its price, raises the
    bound by the difference; where that exceeds the best known cost it cannot help.

    Returns:
        The corners that are left, and the cost of each group at them, infinite for pairs that are left out.
    """
    order, value = _relaxed(cover, bound.prices, len(bound.best.corners))
    earned = _earned(cover, bound.prices)
    room = bound.best.cost - value + CLOSED * abs(bound.best.cost)
    opening = np.maximum(earned - earned[order[-1]], 0.0)
    opening[order] = 0.0
    may = opening <= room
    may[bound.best.corners] = True
    corners = np.flatnonzero(may)
    cost = cover.cost[:, corners]
    above = np.maximum(cost - bound.prices[:, None], 0.0) + opening[None, corners] > room
    served = np.zeros(cost.shape, np.bool_)
    best = np.searchsorted(corners, bound.best.corners)
    served[np.arange(len(cost)), best[cost[:, best].argmin(axis=1)]] = True
    return corners, np.where(above & ~served, np.inf, cost)


def _relaxed(cover: Cover, prices: FloatArray, k: int) -> tuple[IntArray, float]:
    """The ``k`` corners that earn most, the forced one first, and the bound that they give."""
    earned = _earned(cover, prices)
    rank = earned.copy()
    if cover.forced >= 0:
        rank[cover.forced] = -np.inf
    order = np.argsort(rank, kind="stable")[:k]
    return order, float(prices.sum() + earned[order].sum())


def _earned(cover: Cover, prices: FloatArray) -> FloatArray:
    earned: FloatArray = np.minimum(cover.cost - prices[:, None], 0.0).sum(axis=0)
    return earned


def _starting_prices(cost: FloatArray, choice: Choice, least: FloatArray) -> FloatArray:
    """Prices between what a group pays and what it would pay at the next corner of the choice."""
    paid = np.sort(cost[:, choice.corners], axis=1)
    first = paid[:, 0]
    second = np.where(np.isfinite(paid[:, 1]), paid[:, 1], first * 2) if paid.shape[1] > 1 else first * 2
    prices: FloatArray = np.maximum((first + second) / 2, least)
    return prices
