"""Figures of a series of times."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from trtc.profiles import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

PERCENTILES = (90.0, 95.0, 99.0)
"""Those of trtexec."""


class Summary(msgspec.Struct, frozen=True):
    """Figures of a series of times, in seconds.

    ``percentiles_s``: by name, such as ``p90``; each is a time that really occurred (nearest rank). ``spread``: the
    middle half of the times, from the lower to the upper quartile, as a share of the median.
    """

    count: int
    min_s: float
    max_s: float
    mean_s: float
    median_s: float
    percentiles_s: dict[str, float]
    spread: float


def summarise(times_s: Sequence[float] | np.ndarray, percentiles: Sequence[float] = PERCENTILES) -> Summary:
    """Summarise times.

    Args:
        times_s: at least one, in seconds.
        percentiles: between 0 and 100.

    Raises:
        UsageError: for no times, or a percentile that is none.
    """
    times = np.sort(np.asarray(times_s, np.float64))
    if not times.size:
        raise UsageError("no call was timed, so there is nothing to summarise; make at least one")
    lower, upper = (percentile(times, share) for share in (25, 75))
    median = float(np.median(times))
    return Summary(
        count=int(times.size),
        min_s=float(times[0]),
        max_s=float(times[-1]),
        mean_s=float(times.mean()),
        median_s=median,
        percentiles_s={percentile_name(share): percentile(times, share) for share in percentiles},
        spread=(upper - lower) / median if median else 0.0,
    )


def percentile(ordered: np.ndarray, share: float) -> float:
    """Return the smallest time that at least ``share`` percent of the times do not exceed (nearest rank).

    Args:
        ordered: float64, ascending, at least one.
        share: between 0 and 100.

    Raises:
        UsageError: for another share.
    """
    if not 0 <= share <= 100:  # noqa: PLR2004 (percent)
        raise UsageError(f"percentile {share:g}; give numbers from 0 to 100, such as 90,95,99")
    # Rounded, because 99.9 percent of 1000 is a hair above 999 in binary.
    rank = math.ceil(round(share * ordered.size / 100, 9))
    return float(ordered[max(rank, 1) - 1])


def percentile_name(share: float) -> str:
    """Write a percentile's name, such as ``p99`` or ``p99.9``."""
    return f"p{share:g}"
