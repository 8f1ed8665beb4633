"""What this machine can do at most, measured: arithmetic by a large product, memory by copies on all processors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from trtc.engines.host import this_host

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtc.tools.bench.clock import Clock
    from trtc.tools.bench.node_work import Work

SIDE = 1536
"""Rows and columns of the product: large enough for full speed, 9 MiB a matrix."""
COPY_BYTES = 64 * 2**20
"""Of each processor: beyond the caches."""
TRIES, TRY_S = 3, 0.4


class Limits(msgspec.Struct, frozen=True):
    """The most that was measured. A float32 product of numpy's BLAS; copies count their reading and their writing."""

    flop_per_s: float
    bytes_per_s: float


class Roof(msgspec.Struct, frozen=True):
    """One call under the roofline (S. Williams, A. Waterman, D. Patterson, 2009).

    ``intensity``: operations for each byte. ``roof_flop_per_s``: what the machine's limits allow at that intensity.
    ``bound``: which of the two limits that is. Shares are of the machine's limits; those of ``bytes`` may exceed 1
    where caches serve what nodes read.
    """

    flop: int
    moved_bytes: int
    flop_per_s: float
    bytes_per_s: float
    intensity: float
    roof_flop_per_s: float
    flop_share: float
    bytes_share: float
    roof_share: float
    bound: str


def measure_limits(clock: Clock) -> Limits:
    """Measure the machine's limits, which takes a few seconds."""
    threads = this_host().threads
    left, right = (np.full((SIDE, SIDE), value, np.float32) for value in (1.5, 0.5))
    out = np.empty_like(left)
    product_s = _best_s(lambda: np.matmul(left, right, out=out), clock)
    pairs = [(np.ones(COPY_BYTES, np.uint8), np.zeros(COPY_BYTES, np.uint8)) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        copy_s = _best_s(lambda: list(pool.map(lambda pair: np.copyto(*pair), pairs)), clock)
    return Limits(2 * SIDE**3 / product_s, 2 * COPY_BYTES * threads / copy_s)


def roof_of(work: Work, seconds: float, limits: Limits) -> Roof:
    """Put a call under the roof.

    Args:
        work: of the call.
        seconds: that it takes, more than 0.
        limits: of this machine.
    """
    intensity = work.flop / work.moved_bytes if work.moved_bytes else 0.0
    roof = min(limits.flop_per_s, intensity * limits.bytes_per_s)
    return Roof(
        flop=work.flop,
        moved_bytes=work.moved_bytes,
        flop_per_s=work.flop / seconds,
        bytes_per_s=work.moved_bytes / seconds,
        intensity=intensity,
        roof_flop_per_s=roof,
        flop_share=work.flop / seconds / limits.flop_per_s,
        bytes_share=work.moved_bytes / seconds / limits.bytes_per_s,
        roof_share=work.flop / seconds / roof if roof else 0.0,
        bound="arithmetic" if roof == limits.flop_per_s else "memory",
    )


def _best_s(call: Callable[[], object], clock: Clock) -> float:
    """The shortest of many calls, over some tries: what the machine can do when nothing else runs."""
    best = float("inf")
    for _ in range(TRIES):
        began_s = clock.now_s()
        while True:
            begun_s = clock.now_s()
            call()
            finished_s = clock.now_s()
            best = min(best, finished_s - begun_s)
            if finished_s - began_s >= TRY_S:
                break
    return best
