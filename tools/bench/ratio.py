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

    ``low`` and ``high`` bound it with the stated ``confidence``. ``verdict`` is ``noise`` where 1 lies between them:
    then these measurements do not tell the two apart.
    """

    ratio: float
    low: float
    high: float
    confidence: float
    rounds: int
    verdict: Literal["faster", "slower", "noise"]


def ratio_of(rounds: Rounds, seed: int = 0) -> Ratio:
    """Return the ratio of the medians, with an interval from resampling whole rounds (percentile bootstrap).

    A round of ours and the peer's round beside it stay together, so what both met cancels out. Each round counts
    by its median.
    """
    ours, peer = np.median(rounds.ours_s, axis=1), np.median(rounds.peer_s, axis=1)
    count = ours.size
    picks = np.random.default_rng(seed).integers(0, count, (RESAMPLES, count))
    ratios = np.median(ours[picks], axis=1) / np.median(peer[picks], axis=1)
    low, high = np.quantile(ratios, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    ratio = float(np.median(ours) / np.median(peer))
    low, high = min(float(low), ratio), max(float(high), ratio)
    verdict: Literal["faster", "slower", "noise"] = "noise" if low <= 1 <= high else "faster" if high < 1 else "slower"
    return Ratio(ratio, low, high, CONFIDENCE, int(count), verdict)
