"""When calls should begin, for a given rate: decided before the first one begins, so nothing that runs can delay it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from trtc.profiles import UsageError

Kind: TypeAlias = Literal["even", "poisson"]
MAX_ARRIVALS = 10_000_000
"""Their times and results are kept in memory: 32 bytes each, and as much again while they are collected."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """A rate, and how calls are spread over time.

    Attributes:
        per_second: calls that begin in one second.
        kind: ``even`` distances, or ``poisson``: independent callers, whose calls come in bursts.
        seed: of poisson's distances.

    Raises:
        UsageError: for a rate that is not positive and finite.
    """

    per_second: float
    kind: Kind = "even"
    seed: int = 0

    def __post_init__(self) -> None:
        if not math.isfinite(self.per_second) or self.per_second <= 0:
            raise UsageError(f"a rate of {self.per_second:g} calls per second; give a number above 0")

    def starts_s(self, iterations: int, duration_s: float) -> np.ndarray:
        """Return when calls begin, in seconds from the first one: float64, ascending.

        Args:
            iterations: calls at the least.
            duration_s: that the calls fill at the least.

        Raises:
            UsageError: for more calls than can be kept.
        """
        wanted = max(iterations, math.ceil(self.per_second * duration_s))
        if wanted > MAX_ARRIVALS:
            raise UsageError(
                f"{self.per_second:g} calls per second for {duration_s:g} s are {wanted} calls, at most {MAX_ARRIVALS} "
                "can be kept; lower the rate or the duration"
            )
        if self.kind == "even":
            return np.arange(wanted) / self.per_second
        gaps = np.random.default_rng(self.seed).exponential(1 / self.per_second, wanted)
        starts: np.ndarray = np.cumsum(gaps) - gaps[0]
        return starts
