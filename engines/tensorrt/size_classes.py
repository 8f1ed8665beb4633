"""Memory for outputs that the data sizes: blocks of a few sizes, kept while they are asked for.

Hot sizes are served without the arena. A size that nobody asked for during the last ``COLD_AFTER`` requests is cold:
its blocks go back, so that a burst of large outputs does not hold its memory for ever.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from trtc.engines.device_stats import PoolStats
from trtc.engines.tensorrt.device_arena import ALIGNMENT_BYTES
from trtc.profiles import HostError

if TYPE_CHECKING:
    from trtc.engines.tensorrt.device_arena import DeviceArena, DeviceBlock

COLD_AFTER = 256
_STEPS = 4
"""Sizes between two powers of two: at most a fifth of a block is unused."""


def size_class(size_bytes: int) -> int:
    """Return the block size that serves a request: the next of 4 steps between powers of two, at least 256 bytes."""
    wanted = max(size_bytes, 1)
    step = max(ALIGNMENT_BYTES, (1 << (wanted - 1).bit_length()) // (2 * _STEPS))
    return -(-wanted // step) * step


class SizeClasses:
    """A pool over the device arena. Thread-safe.

    Args:
        arena: gives and takes the blocks.
        cold_after: requests after which a size that was not among them is cold.
    """

    def __init__(self, arena: DeviceArena, cold_after: int = COLD_AFTER) -> None:
        self._arena = arena
        self._cold_after = cold_after
        self._lock = Lock()
        self._free: dict[int, list[DeviceBlock]] = {}
        self._last_asked: dict[int, int] = {}
        self._requests = self._hits = self._misses = self._returned = self._out = 0

    def take(self, size_bytes: int) -> DeviceBlock:
        """Take a block of at least this size; its bytes are undefined.

        Raises:
            HostError: when the device has no such memory, even after what waits here was given back.
        """
        size = size_class(size_bytes)
        with self._lock:
            self._requests += 1
            self._last_asked[size] = self._requests
            free = self._free.get(size)
            if free:
                self._hits += 1
                block = free.pop()
            else:
                self._misses += 1
                block = self._reserve(size)
            self._out += block.size_bytes
        return block

    def give(self, block: DeviceBlock) -> None:
        """Give a block back. No work that touches it may be pending. Cold blocks leave when nothing is in use."""
        with self._lock:
            self._free.setdefault(block.size_bytes, []).append(block)
            self._out -= block.size_bytes
            if not self._out:
                self._sweep(self._requests - self._cold_after)

    def compact(self) -> None:
        """Give everything that is not in use back to the arena."""
        with self._lock:
            self._sweep(self._requests)

    @property
    def stats(self) -> PoolStats:
        """Figures of this moment."""
        with self._lock:
            held = sum(block.size_bytes for free in self._free.values() for block in free)
            return PoolStats(held, self._out, self._hits, self._misses, self._returned)

    def _reserve(self, size: int) -> DeviceBlock:
        try:
            return self._arena.reserve(size)
        except HostError:
            self._sweep(self._requests)
            return self._arena.reserve(size)

    def _sweep(self, asked_until: int) -> None:
        """Give back the blocks of the sizes that were last asked for at or before this request."""
        for size in [size for size in self._free if self._last_asked.get(size, 0) <= asked_until]:
            for block in self._free.pop(size):
                self._arena.release(block)
                self._returned += 1
