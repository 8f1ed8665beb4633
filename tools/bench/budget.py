"""How long to measure: at least so many calls, and at least so many seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trtc.profiles import UsageError


@dataclass(frozen=True, slots=True)
class Budget:
    """What has to be reached before a measurement ends. The defaults are trtexec's.

    Attributes:
        iterations: calls that are timed, at least 1.
        duration_s: seconds of timed calls; 0 counts calls only.
        warm_up_s: seconds of calls before, which are thrown away; each size runs at least twice even for 0.

    Raises:
        UsageError: for numbers that are too small or not finite.
    """

    iterations: int = 10
    duration_s: float = 3.0
    warm_up_s: float = 0.2

    def __post_init__(self) -> None:
        if self.iterations < 1:
            raise UsageError(f"{self.iterations} iterations; nothing can be said without at least 1")
        for name, value in (("duration", self.duration_s), ("warm-up", self.warm_up_s)):
            if not math.isfinite(value) or value < 0:
                raise UsageError(f"{name} of {value:g} seconds; give 0 or more")

    def met(self, count: int, elapsed_s: float) -> bool:
        """Tell whether so many calls in so much time are enough."""
        return count >= self.iterations and elapsed_s >= self.duration_s
