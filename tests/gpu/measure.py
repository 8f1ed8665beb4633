"""Figures for the report. Nothing here is asserted: a figure is what it is."""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds of one call."""

    median_ms: float
    p90_ms: float
    p99_ms: float
    count: int

    def __str__(self) -> str:
        return f"{self.median_ms:.3f} / {self.p90_ms:.3f} / {self.p99_ms:.3f}"


def latency(call: Callable[[], Any], count: int, warm_up: int = 20) -> Latency:
    """Time single calls, one after the other."""
    for _ in range(warm_up):
        call()
    times = []
    for _ in range(count):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e3)
    ordered = sorted(times)
    return Latency(statistics.median(ordered), ordered[int(count * 0.9)], ordered[int(count * 0.99)], count)


def calls_per_s(run: Callable[[Any], Any], requests: Sequence[Any], threads: int, rounds: int = 3) -> float:
    """Run all requests with so many callers, several times; return the best round's rate."""
    for request in requests:
        run(request)
    best = 0.0
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(rounds):
            start = time.perf_counter()
            list(pool.map(run, requests))
            best = max(best, len(requests) / (time.perf_counter() - start))
    return best
