"""A few requests that stand for traffic: what ways of running are compared on."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from trtc.compiler.replay import Request

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from trtc.engines.manifest import Mode
    from trtc.profiles import Ladder, Sizes
    from trtc.profiles.cost import CostModel
    from trtc.profiles.traffic import Traffic

REQUESTS = 32


def workload_of(traffic: Traffic, cost: CostModel | None = None, count: int = REQUESTS) -> tuple[dict[str, int], ...]:
    """Choose sizes that stand for traffic, each for an equal share of its requests.

    Sizes are put in order of their cost (or of their elements), and one is taken from the middle of each share; large
    ones are among them as often as they are requested.

    Args:
        traffic: what is requested.
        cost: seconds by sizes; the number of elements without it.
        count: of requests. Sizes repeat where one is requested more often than that.
    """
    seconds = np.prod(traffic.sizes, axis=1, dtype=np.float64) if cost is None else cost.seconds(traffic.sizes)
    order = np.argsort(seconds, kind="stable")
    reached = np.cumsum(traffic.weights[order]) / traffic.total
    at = np.searchsorted(reached, (np.arange(count) + 0.5) / count)
    rows = order[np.minimum(at, len(order) - 1)]
    shuffled = np.random.default_rng(0).permutation(rows)
    return tuple(dict(zip(traffic.symbols, map(int, traffic.sizes[row]), strict=True)) for row in shuffled)


def thinned(sizes: Sequence[Mapping[str, int]], count: int) -> tuple[Mapping[str, int], ...]:
    """Take some of these requests, from the middle of equal shares in the order of their elements.

    Args:
        sizes: requests, each for an equal share.
        count: how many to take.
    """
    order = sorted(range(len(sizes)), key=lambda i: prod(sizes[i].values()))
    taken = {order[int((k + 0.5) * len(sizes) / count)] for k in range(count)}
    return tuple(each for i, each in enumerate(sizes) if i in taken)


def requests_in(ladder: Ladder, sizes: Sequence[Sizes], padded: AbstractSet[str], mode: Mode) -> tuple[Request, ...]:
    """Say what each of these sizes runs at in a mode; those that no profile takes are left out."""
    found = []
    for asked in sizes:
        if any(profile.fits(asked, padded) for profile in ladder.profiles):
            profile = ladder.profiles[ladder.pick(asked, padded)]
            run: Mapping[str, int] = profile.run_sizes(asked, padded, to_bucket=mode == "bucket")
            found.append(Request(dict(asked), dict(run)))
    return tuple(found)
