"""What this machine can do at most, measured: arithmetic by a large product, memory by copies on all processors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from trtc.engines.host import this_host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trtc.tools.bench.clock import Clock
    from trtc.tools.bench.node_work import Work

SIDE = 1536
"""Rows and columns of the product: large enough for full speed, 9 MiB a matrix."""
COPY_BYTES = 64 * 2**20
"""Of each processor: beyond the caches."""
TRY_S = 0.1
"""Of one trial, for each limit."""
FEWEST, MOST, STEADY = 5, 30, 5
"""Trials at the least and at the most; they end when so many in a row brought no more than ``GAIN``."""
GAIN = 0.02
BEYOND = 1.1
"""Shares above this are none: the limit was not reached when it was measured, or is not the one that holds."""


class Limits(msgspec.Struct, frozen=True):
    """The most that was measured. A float32 product of numpy's BLAS; copies count their reading and their writing."""

    flop_per_s: float
    bytes_per_s: float


class Roof(msgspec.Struct, frozen=True):
    """One call under the roofline (S. Williams, A. Waterman, D. Patterson, 2009).

    ``intensity``: operations for each byte. ``roof_flop_per_s``: what the machine's limits allow at that intensity.
    ``bound``: which of the two limits that is. Shares are of the machine's limits; null where one is clearly above 1:
    of ``flop``, where the limit was not reached when it was measured; of ``bytes``, where caches serve what nodes read;
    of the roof, where the limit that bounds has no share.
    """

    flop: int
    moved_bytes: int
    flop_per_s: float
    bytes_per_s: float
    intensity: float
    roof_flop_per_s: float
    flop_share: float | None
    bytes_share: float | None
    roof_share: float | None
    bound: str


class Ceiling:
    """The most that this machine did in any of many short trials, which are best spread over a run.

    Other work on the machine only ever makes a trial slower, so the best one is nearest to the limit. Not thread-safe.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._best = Limits(0.0, 0.0)

    @property
    def limits(self) -> Limits:
        """The best so far."""
        return self._best

    def look(self) -> bool:
        """Make one trial of each limit.

        Returns:
            Whether it found clearly more than all trials before.
        """
        before, found = self._best, _trial(self._clock)
        self._best = Limits(max(before.flop_per_s, found.flop_per_s), max(before.bytes_per_s, found.bytes_per_s))
        return any(
            now > (1 + GAIN) * then
            for now, then in (
                (self._best.flop_per_s, before.flop_per_s),
                (self._best.bytes_per_s, before.bytes_per_s),
            )
        )

    def settle(self) -> None:
        """Make trials until several in a row found no more."""
        idle = 0
        for count in range(1, MOST + 1):
            idle = 0 if self.look() else idle + 1
            if count >= FEWEST and idle >= STEADY:
                return


def _trial(clock: Clock) -> Limits:
    """Measure both limits for a moment; the memory that this takes is given back."""
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
    flop_share = _share(work.flop / seconds, limits.flop_per_s)
    bytes_share = _share(work.moved_bytes / seconds, limits.bytes_per_s)
    return Roof(
        flop=work.flop,
        moved_bytes=work.moved_bytes,
        flop_per_s=work.flop / seconds,
        bytes_per_s=work.moved_bytes / seconds,
        intensity=intensity,
        roof_flop_per_s=roof,
        flop_share=flop_share,
        bytes_share=bytes_share,
        roof_share=None if flop_share is None else _share(work.flop / seconds, roof) if roof else 0.0,
        bound="arithmetic" if roof == limits.flop_per_s else "memory",
    )


def share_text(share: float | None) -> str:
    """Write a share of a limit for people."""
    return "-" if share is None else f"{share:.1%}"


def unreached(roofs: Iterable[Roof]) -> list[str]:
    """Say why shares are missing; empty where none is."""
    found, texts = list(roofs), []
    if any(roof.flop_share is None for roof in found):
        texts.append(
            "some cases did more arithmetic than was measured as this machine's limit, so they have no share of it: "
            "the limit was not reached when it was measured, because other work ran, or because the engine's kernels "
            "are faster than numpy's product"
        )
    if any(roof.bytes_share is None for roof in found):
        texts.append(
            "some cases moved more bytes than this machine's memory does, so they have no share of that: caches served "
            "what nodes read"
        )
    return texts


def _share(rate: float, limit: float) -> float | None:
    """A share of a limit; None where the limit is clearly none."""
    return rate / limit if rate <= BEYOND * limit else None


def _best_s(call: Callable[[], object], clock: Clock) -> float:
    """The shortest of the calls of one trial."""
    best, began_s = float("inf"), clock.now_s()
    while True:
        begun_s = clock.now_s()
        call()
        finished_s = clock.now_s()
        best = min(best, finished_s - begun_s)
        if finished_s - began_s >= TRY_S:
            return best
