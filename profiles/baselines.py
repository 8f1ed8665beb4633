"""Ladders that people make by hand, for comparison: each covers the traffic and keeps to the same alignment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trtc.profiles.errors import UsageError
from trtc.profiles.ladder import Ladder
from trtc.profiles.ranges import Profile, Range

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtc.profiles.cost import CostModel
    from trtc.profiles.traffic import IntArray, Traffic


def bucket_ladder(symbols: Sequence[str], buckets: IntArray, cost: CostModel) -> Ladder:
    """Make a ladder of buckets whose ranges start at 1, by rising cost; equal buckets are joined.

    Args:
        symbols: of the columns; those of ``cost``, in its order.
        buckets: int64 [m, k].
        cost: seconds by sizes.
    """
    distinct = np.unique(buckets, axis=0)
    run_s = cost.seconds(distinct)
    order = np.lexsort((*distinct.T[::-1], run_s))
    return Ladder(
        tuple(
            Profile(f"p{i}", {s: Range(1, int(b), int(b)) for s, b in zip(symbols, row, strict=True)})
            for i, row in enumerate(distinct[order])
        ),
        tuple(float(s) for s in run_s[order]),
    )


def one_at_the_maximum(traffic: Traffic, cost: CostModel, align: Mapping[str, int]) -> Ladder:
    """One profile that takes the largest size of every symbol."""
    return bucket_ladder(cost.symbols, _peak(traffic, cost, align)[None], cost)


def powers_of_two(traffic: Traffic, cost: CostModel, align: Mapping[str, int], most: int) -> Ladder:
    """Sizes that double: the ``most`` largest of ..., 64, 128, 256 that the traffic needs, of all symbols together.

    With several symbols all double together, so that the ladder stays as long as the others.
    """
    peak = _peak(traffic, cost, align)
    step = _steps(cost, align)
    tops = 2 ** np.ceil(np.log2(np.maximum(peak, 1))).astype(np.int64)
    rungs = np.maximum(tops[None] >> np.arange(most)[:, None], 1)
    return bucket_ladder(cost.symbols, np.minimum(-(-rungs // step) * step, np.maximum(peak, rungs.max(axis=0))), cost)


def equal_counts(traffic: Traffic, cost: CostModel, align: Mapping[str, int], most: int) -> Ladder:
    """Quantiles: each symbol is cut where equal parts of the requests end; cuts of all symbols rise together."""
    shares = [(i + 1) / most for i in range(most)]
    buckets = np.array([traffic.quantiles(symbol, shares) for symbol in cost.symbols], np.int64).T
    step = _steps(cost, align)
    return bucket_ladder(cost.symbols, -(-buckets // step) * step, cost)


def best_random(traffic: Traffic, cost: CostModel, align: Mapping[str, int], most: int, tries: int = 10_000) -> Ladder:
    """The cheapest of many ladders whose buckets are drawn evenly from the candidate sizes, one always at the maximum.

    Args:
        traffic: over the symbols of ``cost``; every symbol may be padded.
        cost: seconds by sizes.
        align: multiples for buckets.
        most: length of each ladder.
        tries: how many are drawn; the seed is fixed.

    Raises:
        UsageError: for no try, or no profile.
    """
    if tries < 1 or most < 1:
        raise UsageError(f"{tries} ladders of {most} profiles; draw at least one of one")
    rng = np.random.default_rng(0)
    columns = [traffic.column(symbol) for symbol in cost.symbols]
    step, peak = _steps(cost, align), _peak(traffic, cost, align)
    needs = -(-traffic.sizes[:, columns] // step) * step
    cells, inverse = np.unique(needs, axis=0, return_inverse=True)
    weights = np.bincount(inverse.ravel(), traffic.weights, len(cells))
    choices = [np.unique(needs[:, c]) for c in range(needs.shape[1])]
    best, best_cost = peak[None], np.inf
    for _ in range(tries):
        drawn = np.stack([rng.choice(c, most - 1) for c in choices], axis=1)
        buckets = np.concatenate([drawn, peak[None]])
        fits = (cells[:, None] <= buckets[None]).all(axis=2)
        run_s = np.where(fits, cost.seconds(buckets)[None], np.inf).min(axis=1)
        total = float((weights * run_s).sum())
        if total < best_cost:
            best, best_cost = buckets, total
    return bucket_ladder(cost.symbols, best, cost)


def _steps(cost: CostModel, align: Mapping[str, int]) -> IntArray:
    return np.array([align.get(symbol, 1) for symbol in cost.symbols], np.int64)


def _peak(traffic: Traffic, cost: CostModel, align: Mapping[str, int]) -> IntArray:
    step = _steps(cost, align)
    peak = np.array([int(traffic.marginal(symbol)[0][-1]) for symbol in cost.symbols], np.int64)
    return -(-peak // step) * step
