"""Candidate buckets over several symbols: the corners of the grid that sizes span, thinned where they are too many."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from trtc.profiles.cover import Cover
from trtc.profiles.edges import best_edges

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trtc.profiles.traffic import BoolArray, FloatArray, IntArray

MOST_PAIRS = 3_000_000
"""Pairs of a group and a corner that are held at once: 24 MB for each table of them."""
_MOST_POINTS = 1 << 21
_THINNED_CORNERS = 1200


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Requests that are served together.

    Attributes:
        needs: int64 [n, v]: the smallest bucket of each group, over the symbols whose bucket is to be found.
        kinds: int64 [n]: which row of the cost each group has.
        weights: float64 [n].
    """

    needs: IntArray
    kinds: IntArray
    weights: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Corners:
    """Candidates and what they cost.

    Attributes:
        buckets: int64 [m, v].
        cover: what each group costs at each candidate.
        relaxed: what each group costs at least, at any bucket that rounds up to the candidate; the same object as
            ``cover`` when no candidate was left out.
    """

    buckets: IntArray
    cover: Cover
    relaxed: Cover


def corners_of(
    groups: Groups,
    edges: Sequence[IntArray],
    top: tuple[int, ...],
    seconds: Callable[[IntArray], FloatArray],
    allowed: Callable[[IntArray], BoolArray],
) -> Corners:
    """Make the candidates on a grid of edges, and their costs.

    Args:
        groups: to be served.
        edges: candidate sizes of each symbol, ascending, the last at least as large as every need.
        top: a bucket that must be chosen, on the grid; empty for none.
        seconds: cost of buckets, int64 [m, v] to float64 [kinds, m].
        allowed: which buckets keep to the budgets, int64 [m, v] to bool [m].
    """
    fine = [np.unique(groups.needs[:, v]) for v in range(groups.needs.shape[1])]
    cells = np.stack([np.searchsorted(e, groups.needs[:, v]) for v, e in enumerate(edges)], axis=1)
    joined = np.column_stack([cells, groups.kinds])
    distinct, inverse = np.unique(joined, axis=0, return_inverse=True)
    weights = np.bincount(inverse.ravel(), groups.weights, len(distinct)).astype(np.float64)
    cells, kinds = distinct[:, :-1], distinct[:, -1]
    points = _supported(cells, tuple(map(len, edges)))
    buckets = np.stack([e[points[:, v]] for v, e in enumerate(edges)], axis=1)
    forced = -1
    if top:
        same = np.flatnonzero((buckets == np.array(top)).all(axis=1))
        if not len(same):
            last = np.array([[int(np.searchsorted(e, t)) for e, t in zip(edges, top, strict=True)]])
            points, buckets = np.concatenate([points, last]), np.concatenate([buckets, np.array([top])])
        forced = int(same[0]) if len(same) else len(buckets) - 1
    lows = np.stack([_lows(fine[v], e)[points[:, v]] for v, e in enumerate(edges)], axis=1)
    fits = np.ones((len(cells), len(points)), np.bool_)
    for v in range(cells.shape[1]):
        fits &= cells[:, v, None] <= points[None, :, v]

    def cover_at(points: IntArray) -> Cover:
        cost = seconds(points)[kinds] * weights[:, None]
        return Cover(np.where(fits & allowed(points)[None], cost, np.inf), forced)

    cover = cover_at(buckets)
    return Corners(buckets, cover, cover if (lows == buckets).all() else cover_at(lows))


def grid_edges(groups: Groups, top: tuple[int, ...]) -> tuple[list[IntArray], bool]:
    """Choose the candidate sizes of each symbol: all that matter, or as many as can be handled.

    Returns:
        Ascending sizes for each symbol, and whether some were left out.
    """
    count = groups.needs.shape[1]
    fine = [np.unique(groups.needs[:, v]) for v in range(count)]
    if _pairs(groups, fine) <= MOST_PAIRS:
        return [_with_top(e, top, v) for v, e in enumerate(fine)], False
    share = max(int(_THINNED_CORNERS ** (1 / count)), 2)
    return [_with_top(_thinned(groups, v, share), top, v) for v in range(count)], True


def _pairs(groups: Groups, edges: Sequence[IntArray]) -> float:
    points = prod(map(len, edges))
    if points > _MOST_POINTS:
        return float("inf")
    cells = np.stack([np.searchsorted(e, groups.needs[:, v]) for v, e in enumerate(edges)], axis=1)
    rows = len(np.unique(np.column_stack([cells, groups.kinds]), axis=0))
    return float(rows) * len(_supported(np.unique(cells, axis=0), tuple(map(len, edges))))


def _thinned(groups: Groups, v: int, most: int) -> IntArray:
    """Keep the sizes of one symbol that waste least when all others are rounded up to them."""
    sizes, inverse = np.unique(groups.needs[:, v], return_inverse=True)
    weights = np.bincount(inverse.ravel(), groups.weights, len(sizes)).astype(np.float64)
    kept = best_edges(weights[:, None], sizes[None].astype(np.float64), most)[-1].edges
    return sizes[list(kept)]


def _with_top(edges: IntArray, top: tuple[int, ...], v: int) -> IntArray:
    return np.unique(np.append(edges, top[v])) if top else edges


def _supported(cells: IntArray, shape: tuple[int, ...]) -> IntArray:
    """Grid points at which lowering any coordinate would lose a group: int64 [m, v], in order.

    Any other corner can be lowered without losing a group, and costs do not rise by that, so none is needed.
    """
    taken = np.zeros(shape, np.bool_)
    taken[tuple(cells.T)] = True
    needed = np.ones(shape, np.bool_)
    for v in range(len(shape)):
        held = taken
        for other in range(len(shape)):
            if other != v:
                held = np.logical_or.accumulate(held, axis=other)
        needed &= held
    return np.argwhere(needed)


def _lows(fine: IntArray, edges: IntArray) -> IntArray:
    """The smallest size that rounds up to each edge; the edge itself where none does."""
    below = np.concatenate([[-1], edges[:-1]])
    at = np.searchsorted(fine, below, side="right")
    found = fine[np.minimum(at, len(fine) - 1)]
    return np.where((at < len(fine)) & (found <= edges), found, edges)


def near_edges(edges: Sequence[IntArray], chosen: IntArray, reach: Sequence[int]) -> list[IntArray]:
    """Keep the sizes of a fine grid that lie near chosen buckets: so many places below and above each coordinate."""
    near = []
    for v, fine in enumerate(edges):
        at = np.searchsorted(fine, np.unique(chosen[:, v]))
        places = {int(np.clip(a + r, 0, len(fine) - 1)) for a, r in product(at, reach)}
        near.append(fine[sorted(places | {len(fine) - 1})])
    return near
