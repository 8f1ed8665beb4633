"""The raw times of a measurement, one entry a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Times of calls, in seconds on the clock that was handed in, in the order in which they began.

    Attributes:
        request: int64 [calls], the index of the request that each call sent.
        intended_s: float64 [calls], when each call should have begun; in a closed loop that is when it did.
        begun_s, finished_s: float64 [calls].
    """

    request: np.ndarray
    intended_s: np.ndarray
    begun_s: np.ndarray
    finished_s: np.ndarray

    @property
    def count(self) -> int:
        """Number of calls."""
        return int(self.request.size)

    @property
    def latency_s(self) -> np.ndarray:
        """What a user waits: from when the call should have begun to its end."""
        found: np.ndarray = self.finished_s - self.intended_s
        return found

    @property
    def service_s(self) -> np.ndarray:
        """What the call itself takes, from when it began."""
        found: np.ndarray = self.finished_s - self.begun_s
        return found

    @property
    def elapsed_s(self) -> float:
        """From the first call's intended start to the last end."""
        return float(self.finished_s.max() - self.intended_s.min()) if self.count else 0.0

    @property
    def per_second(self) -> float:
        """Calls that ended in one second."""
        return self.count / self.elapsed_s if self.elapsed_s else 0.0


def samples_of(rows: Sequence[tuple[int, float, float, float]]) -> Samples:
    """Make samples of (request, intended, begun, finished), sorted by their begin."""
    table = np.array(sorted(rows, key=lambda row: row[2]), np.float64).reshape(-1, 4)
    return Samples(table[:, 0].astype(np.int64), table[:, 1], table[:, 2], table[:, 3])
