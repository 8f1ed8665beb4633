"""Choosing corners: every bound holds, and the integer programme finds the best from any start."""

from itertools import combinations

import numpy as np
import pytest

from trtc.profiles.cover import Bound, Cover, Search, relax
from trtc.profiles.cover_proof import proven


def random_cover(seed):
    """Costs without any structure, corner 0 taking every group; and the least cost of ``k`` corners, by trying all."""
    rng = np.random.default_rng(seed)
    groups, corners, k = int(rng.integers(2, 9)), int(rng.integers(3, 9)), int(rng.integers(1, 4))
    cost = rng.random((groups, corners)) + 0.1
    cost[rng.random(cost.shape) < 0.3] = np.inf
    cost[:, 0] = 5.0
    forced = int(rng.integers(0, corners)) if rng.random() < 0.3 else -1
    cover = Cover(cost, forced)
    choices = [np.array(c) for c in combinations(range(corners), min(k, corners)) if forced < 0 or forced in c]
    costs = [cover.choice(c).cost for c in choices]
    return cover, choices, costs


@pytest.mark.parametrize("seed", range(60))
def test_from_the_worst_start_the_bound_holds_and_the_programme_finds_the_best(seed):
    cover, choices, costs = random_cover(seed)
    worst = cover.choice(choices[int(np.argmax([c if np.isfinite(c) else -1 for c in costs]))])
    if not np.isfinite(worst.cost):
        assert not np.isfinite(min(costs))
        return
    bound = relax(cover, Search(cover), worst, rounds=30)
    assert bound.lower <= min(costs) * (1 + 1e-9)
    assert min(costs) * (1 - 1e-9) <= bound.best.cost <= worst.cost
    found = proven(cover, Bound(bound.lower, bound.prices, worst))
    assert found.best.cost == pytest.approx(min(costs), rel=1e-6)
    assert found.lower == pytest.approx(min(costs), rel=1e-6)


@pytest.mark.parametrize("seed", range(60))
def test_the_search_never_drops_the_forced_corner_and_never_gets_worse(seed):
    cover, choices, costs = random_cover(seed)
    for corners, cost in zip(choices, costs, strict=True):
        found = Search(cover).improved(corners)
        assert found.cost <= cost
        assert len(set(found.corners.tolist())) == len(corners)
        assert cover.forced < 0 or cover.forced in found.corners
