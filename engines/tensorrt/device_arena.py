"""Device memory: one owner a device, which takes it from the driver in chunks and hands out parts of them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from trtc.engines.free_list import FreeList
from trtc.profiles import HostError, TrtcError

if TYPE_CHECKING:
    from collections.abc import Callable

ALIGNMENT_BYTES = 256
"""TensorRT wants tensors and scratch aligned to this (``IExecutionContext.set_device_memory``)."""
CHUNK_BYTES = 2 * 2**20
"""Small reservations share chunks of this size, the granularity of the driver."""


@dataclass(frozen=True, slots=True)
class ArenaFigures:
    """What the arena holds, in bytes; the names are those of ``DeviceStats``."""

    reserved_bytes: int
    in_use_bytes: int
    peak_bytes: int
    largest_free_bytes: int
    fragmentation: float
    allocations: int
    driver_allocations: int


@dataclass(slots=True, eq=False)
class _Chunk:
    buffer: Any
    address: int
    size_bytes: int
    free: FreeList


@dataclass(slots=True, eq=False)
class DeviceBlock:
    """A reservation: address and bytes, a multiple of 256 each. It belongs to whoever reserved it, until released."""

    address: int
    size_bytes: int
    _chunk: _Chunk
    _offset: int


class DeviceArena:
    """Memory of one device. All methods may be used from any thread.

    Args:
        allocate: asks the driver: bytes to a buffer with ``handle`` and ``close()``, ready to be used on any stream.
        device: what to call the device in errors.
    """

    def __init__(self, allocate: Callable[[int], Any], device: str) -> None:
        self._allocate = allocate
        self._device = device
        self._lock = Lock()
        self._chunks: list[_Chunk] = []
        self._in_use = 0
        self._peak = 0
        self._allocations = 0
        self._driver_allocations = 0
        self._returned: deque[DeviceBlock] = deque()

    def reserve(self, size_bytes: int) -> DeviceBlock:
        """Reserve a block; its bytes are undefined.

        Raises:
            HostError: when the driver has no such memory.
        """
        size = max(1, -(-size_bytes // ALIGNMENT_BYTES)) * ALIGNMENT_BYTES
        with self._lock:
            self._drain()
            chunk, offset = self._take(size) or self._grow(size)
            self._in_use += size
            self._peak = max(self._peak, self._in_use)
            self._allocations += 1
        return DeviceBlock(chunk.address + offset, size, chunk, offset)

    def release(self, block: DeviceBlock) -> None:
        """Give a block back. No work that touches it may be pending.

        Never waits, so that finalizers, which run anywhere, may call it: whoever holds the lock takes the block back.
        """
        self._returned.append(block)
        if self._lock.acquire(blocking=False):
            try:
                self._drain()
            finally:
                self._lock.release()

    @property
    def figures(self) -> ArenaFigures:
        """Figures of this moment."""
        with self._lock:
            self._drain()
            free = sum(c.free.free_bytes for c in self._chunks)
            largest = max((c.free.largest_bytes for c in self._chunks), default=0)
            return ArenaFigures(
                reserved_bytes=sum(c.size_bytes for c in self._chunks),
                in_use_bytes=self._in_use,
                peak_bytes=self._peak,
                largest_free_bytes=largest,
                fragmentation=1 - largest / free if free else 0.0,
                allocations=self._allocations,
                driver_allocations=self._driver_allocations,
            )

    def _take(self, size: int) -> tuple[_Chunk, int] | None:
        for chunk in self._chunks:
            offset = chunk.free.take(size)
            if offset is not None:
                return chunk, offset
        return None

    def _grow(self, size: int) -> tuple[_Chunk, int]:
        size_bytes = max(size, CHUNK_BYTES)
        try:
            buffer = self._allocate(size_bytes)
        except TrtcError:
            raise
        except Exception as error:
            held = sum(c.size_bytes for c in self._chunks)
            raise HostError(
                f"{self._device} refuses {size_bytes} bytes ({error}); trtc holds {held} there, {self._in_use} in use: "
                "load with fewer slots, close other sessions or programs on that device, or build smaller profiles"
            ) from error
        chunk = _Chunk(buffer, int(buffer.handle), size_bytes, FreeList(size_bytes))
        chunk.free.take(size)
        self._chunks.append(chunk)
        self._driver_allocations += 1
        return chunk, 0

    def _drain(self) -> None:
        """Take back what was released; a chunk without blocks goes back to the driver."""
        while self._returned:
            block = self._returned.popleft()
            chunk = block._chunk  # noqa: SLF001 (the arena owns its blocks)
            chunk.free.give(block._offset, block.size_bytes)  # noqa: SLF001
            self._in_use -= block.size_bytes
            if chunk.free.free_bytes == chunk.size_bytes:
                self._chunks.remove(chunk)
                chunk.buffer.close()
