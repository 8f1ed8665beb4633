"""Whether one side is faster, and how sure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

if TYPE_CHECKING:
    from trtc.tools.bench.rounds import Rounds

RESAMPLES = 4000
CONFIDENCE = 0.95


class Ratio(msgspec.Struct, frozen=True):
    """Our time over the peer's: below 1 we are faster.

    ``ours_s`` and ``peer_s``: of each side, the median over the rounds of the median call of a round; ``ratio`` is
    ``ours_s / peer_s``. ``low`` and ``high`` bound it with the stated ``confidence``. ``verdict`` is ``noise`` where 1
    lies between them: then these measurements do not tell the two apart. It is ``loaded`` where other work ran on the
    machine: then nobody is called faster.
    """

    ours_s: float
    peer_s: float
    ratio: float
    low: float
    high: float
    confidence: float
    rounds: int
    verdict: Literal["faster", "slower", "noise", "loaded"]


def ratio_of(rounds: Rounds, seed: int = 0) -> Ratio:
    """Return the ratio of the medians of round medians, with an interval from resampling rounds (percentile bootstrap).

    A round of ours and the peer's round beside it stay together, so what both met cancels out.
    """
    ours, peer = np.median(rounds.ours_s, axis=1), np.median(rounds.peer_s, axis=1)
    count = ours.size
    picks = np.random.default_rng(seed).integers(0, count, (RESAMPLES, count))
    ratios = np.median(ours[picks], axis=1) / np.median(peer[picks], axis=1)
    low, high = np.quantile(ratios, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    ours_s, peer_s = float(np.median(ours)), float(np.median(peer))
    ratio = ours_s / peer_s
    low, high = min(float(low), ratio), max(float(high), ratio)
    verdict: Literal["faster", "slower", "noise"] = "noise" if low <= 1 <= high else "faster" if high < 1 else "slower"
    return Ratio(ours_s, peer_s, ratio, low, high, CONFIDENCE, int(count), verdict)
