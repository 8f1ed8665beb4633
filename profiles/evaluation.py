"""What a ladder costs on given traffic, and which profile takes how much of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from trtc.profiles.errors import CheckError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from trtc.profiles.cost import CostModel
    from trtc.profiles.ladder import Ladder
    from trtc.profiles.ranges import Profile
    from trtc.profiles.traffic import BoolArray, IntArray, Traffic

_NOTHING = "no profile of the ladder takes any size of the traffic; check that both name the same sizes"


@dataclass(frozen=True, slots=True)
class BucketUse:
    """What one profile takes of the traffic.

    Attributes:
        profile: its name.
        share: of the weight that is served.
        mean_s: seconds of one request here, overhead included; 0 where nothing comes.
        waste: padded minus useful elements, over padded elements.
    """

    profile: str
    share: float
    mean_s: float
    waste: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a ladder costs.

    Attributes:
        expected_s: mean seconds of a served request, overhead included.
        waste: padded minus useful elements, over padded elements.
        exact_s: mean seconds if every served request ran at its own sizes.
        refused: share of all weight that no profile takes.
        buckets: one for each profile, in ladder order.
    """

    expected_s: float
    waste: float
    exact_s: float
    refused: float
    buckets: tuple[BucketUse, ...]


def evaluate_ladder(  # noqa: PLR0913 - the two ways to run and the overhead are keywords
    ladder: Ladder,
    traffic: Traffic,
    cost: CostModel,
    padded: AbstractSet[str],
    *,
    to_bucket: bool = True,
    overhead_s: float = 0.0,
) -> Evaluation:
    """Say what a ladder costs, with the profiles that the runtime's rule picks.

    Args:
        ladder: any, with open ranges too.
        traffic: over the symbols of ``cost``, and maybe more; their product counts as elements.
        cost: seconds by sizes.
        padded: symbols that may be padded.
        to_bucket: pad up to the bucket; otherwise only as far as a range's min demands.
        overhead_s: seconds of every call on top.

    Raises:
        UsageError: when the traffic lacks a symbol of the cost.
        CheckError: when the ladder serves none of it.
    """
    columns = [traffic.column(symbol) for symbol in cost.symbols]
    picked = pick_rows(ladder, traffic.symbols, traffic.sizes, padded)
    served = picked >= 0
    if not served.any():
        raise CheckError(_NOTHING)
    sizes, weights, picked = traffic.sizes[served], traffic.weights[served], picked[served]
    run = np.empty_like(sizes)
    for index, profile in enumerate(ladder.profiles):
        here = picked == index
        run[here] = run_rows(profile, traffic.symbols, sizes[here], padded, to_bucket=to_bucket)
    run_s = cost.seconds(run[:, columns]) + overhead_s
    useful, elements = sizes.prod(axis=1) * weights, run.prod(axis=1) * weights
    count = len(ladder.profiles)
    by_weight, by_s = np.bincount(picked, weights, count), np.bincount(picked, weights * run_s, count)
    by_useful, by_elements = np.bincount(picked, useful, count), np.bincount(picked, elements, count)
    total = float(weights.sum())
    return Evaluation(
        expected_s=float((weights * run_s).sum() / total),
        waste=_waste(float(useful.sum()), float(elements.sum())),
        exact_s=float((weights * (cost.seconds(sizes[:, columns]) + overhead_s)).sum() / total),
        refused=max(0.0, 1.0 - total / traffic.total),
        buckets=tuple(
            BucketUse(
                profile.name,
                float(by_weight[i] / total),
                float(by_s[i] / by_weight[i]) if by_weight[i] else 0.0,
                _waste(float(by_useful[i]), float(by_elements[i])),
            )
            for i, profile in enumerate(ladder.profiles)
        ),
    )


def served_part(ladder: Ladder, traffic: Traffic, padded: AbstractSet[str]) -> Traffic:
    """Leave the requests out that no profile takes.

    Raises:
        CheckError: when none is left.
    """
    served = pick_rows(ladder, traffic.symbols, traffic.sizes, padded) >= 0
    if served.all():
        return traffic
    if not served.any():
        raise CheckError(_NOTHING)
    return replace(traffic, sizes=traffic.sizes[served], weights=traffic.weights[served], arrivals=None)


def pick_rows(ladder: Ladder, symbols: Sequence[str], sizes: IntArray, padded: AbstractSet[str]) -> IntArray:
    """Pick the profile of many requests at once, by the rule of ``Ladder.pick``.

    Args:
        ladder: any; ranges of symbols that are not listed are not looked at.
        symbols: of the columns.
        sizes: int64 [n, k]; products of a row stay below 2**63.
        padded: symbols that may be padded.

    Returns:
        int64 [n]: the index of the profile, or -1 where none fits.
    """
    picked = np.full(len(sizes), -1, np.int64)
    best_s = np.full(len(sizes), np.inf)
    best_elements = np.zeros(len(sizes), np.int64)
    for index, profile in enumerate(ladder.profiles):
        fits = _fits(profile, symbols, sizes, padded)
        elements = run_rows(profile, symbols, sizes, padded, to_bucket=True).prod(axis=1)
        cost_s = ladder.cost_s[index] if ladder.cost_s else 0.0
        better = fits & ((cost_s < best_s) | ((cost_s == best_s) & (elements < best_elements)))
        picked[better], best_s[better], best_elements[better] = index, cost_s, elements[better]
    return picked


def run_rows(
    profile: Profile, symbols: Sequence[str], sizes: IntArray, padded: AbstractSet[str], *, to_bucket: bool
) -> IntArray:
    """Return the sizes that fitting requests run at, int64 [n, k], as ``Profile.run_sizes`` does for one."""
    run = sizes.copy()
    for column, symbol in enumerate(symbols):
        r = profile.ranges.get(symbol)
        if r is None or symbol not in padded:
            continue
        grown = np.maximum(sizes[:, column], r.min) if r.max is None or not to_bucket else r.max
        run[:, column] = np.where(sizes[:, column] == 0, 0, grown)
    return run


def _fits(profile: Profile, symbols: Sequence[str], sizes: IntArray, padded: AbstractSet[str]) -> BoolArray:
    fits = np.ones(len(sizes), np.bool_)
    for column, symbol in enumerate(symbols):
        r = profile.ranges.get(symbol)
        if r is None:
            continue
        size = sizes[:, column]
        holds = (size >= r.min) & (r.max is None or size <= r.max)
        fits &= (holds | ((size > 0) & (size <= r.min))) if symbol in padded else holds
    return fits


def _waste(useful: float, elements: float) -> float:
    return max(0.0, 1.0 - useful / elements) if elements else 0.0
