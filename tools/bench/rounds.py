"""Two ways to do one thing, timed in turns: whatever the machine does meanwhile meets both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trtc.tools.bench.budget import Budget
    from trtc.tools.bench.clock import Clock

    Side = tuple[Callable[[Any], object], Sequence[Any]]

FEWEST, AIM = 10, 40
"""Rounds at the least, and how many are aimed at: an interval from resampling few rounds is too narrow."""
REST_S = 0.05
"""Longer than idle threads of ONNX Runtime wait actively: after that they no longer take processors from the other."""


@dataclass(frozen=True, slots=True, eq=False)
class Rounds:
    """Times of two sides.

    Attributes:
        ours_s, peer_s: float64 [rounds, calls of a round].
    """

    ours_s: np.ndarray
    peer_s: np.ndarray


def alternate(ours: Side, peer: Side, budget: Budget, clock: Clock, rest_s: float = 0.0) -> Rounds:
    """Time two sides in rounds: in each, all requests on one side and then on the other; who begins changes.

    A side's first call of a round is made twice, and timed the second time: its threads are awake, and caches are its
    own again. The first round is thrown away.

    Args:
        ours: a call, and its requests.
        peer: a call, and as many requests, the same ones as the peer takes them.
        budget: for each side alone.
        clock: read before and after each call.
        rest_s: to wait before each side's turn, so that threads of the other side that wait actively come to rest.
    """
    found: tuple[list[list[float]], list[list[float]]] = ([], [])
    turns, spent_s, calls, round_ = 1, 0.0, 0, 0
    while round_ <= FEWEST or not budget.met(calls, spent_s / 2):
        first = round_ % 2
        for side in (first, 1 - first):
            call, requests = (ours, peer)[side]
            if rest_s:
                clock.wait_until_s(clock.now_s() + rest_s)
            call(requests[0])
            found[side].append(_timed(call, requests, turns, clock))
        took_s = sum(found[0][-1]) + sum(found[1][-1])
        if round_:
            spent_s, calls = spent_s + took_s, calls + len(found[0][-1])
        else:
            turns = _turns(budget, took_s / 2, len(ours[1]))
        round_ += 1
    return Rounds(np.array(found[0][1:]), np.array(found[1][1:]))


def _turns(budget: Budget, took_s: float, requests: int) -> int:
    """How often a round sends all requests, so that about ``AIM`` rounds fill the budget of one side."""
    by_time = budget.duration_s / (AIM * took_s) if took_s > 0 else 1
    return max(1, int(by_time), -(-budget.iterations // (AIM * requests)))


def _timed(call: Callable[[Any], object], requests: Sequence[Any], turns: int, clock: Clock) -> list[float]:
    now_s, taken = clock.now_s, []
    for _ in range(turns):
        for request in requests:
            begun_s = now_s()
            call(request)
            taken.append(now_s() - begun_s)
    return taken
