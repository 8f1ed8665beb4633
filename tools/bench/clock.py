"""The clock that measurements read: handed in, so that tests decide what time it is."""

from __future__ import annotations

import time
from typing import Protocol

SPIN_S = 100e-6
"""A sleep wakes up late by up to about this much; the rest of a wait is spent looking at the clock."""


class Clock(Protocol):
    """A clock that never goes back. Its zero means nothing: only differences do."""

    def now_s(self) -> float:
        """Return the time, in seconds."""

    def wait_until_s(self, moment_s: float) -> None:
        """Return when it is ``moment_s`` or later; at once when that has passed."""


class MonotonicClock:
    """The machine's monotonic clock of the highest resolution. Thread-safe."""

    now_s = staticmethod(time.perf_counter)

    def wait_until_s(self, moment_s: float) -> None:
        """Sleep until shortly before a moment, then look at the clock until it has come."""
        left_s = moment_s - time.perf_counter()
        if left_s > SPIN_S:
            time.sleep(left_s - SPIN_S)
        while time.perf_counter() < moment_s:
            pass
