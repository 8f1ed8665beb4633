"""Device memory: one owner a device, which takes it from the driver in chunks and hands out parts of them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from trtc.engines.chunks import CHUNK_BYTES, Chunk, Chunks
from trtc.profiles import HostError, TrtcError

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtc.engines.chunks import ArenaStats

ALIGNMENT_BYTES = 256
"""TensorRT wants tensors and scratch aligned to this (``IExecutionContext.set_device_memory``)."""


@dataclass(slots=True, eq=False)
class DeviceBlock:
    """A reservation: address and bytes, a multiple of 256 each. It belongs to whoever reserved it, until released."""

    address: int
    size_bytes: int
    _chunk: Chunk
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
        self._chunks = Chunks()
        self._returned: deque[DeviceBlock] = deque()

    def reserve(self, size_bytes: int) -> DeviceBlock:
        """Reserve a block; its bytes are undefined.

        Raises:
            HostError: when the driver has no such memory.
        """
        size = max(1, -(-size_bytes // ALIGNMENT_BYTES)) * ALIGNMENT_BYTES
        with self._lock:
            self._drain()
            chunk, offset = self._chunks.take(size) or self._grow(size)
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
    def figures(self) -> ArenaStats:
        """Figures of this moment."""
        with self._lock:
            self._drain()
            return self._chunks.stats

    def _grow(self, size: int) -> tuple[Chunk, int]:
        size_bytes = max(size, CHUNK_BYTES)
        try:
            buffer = self._allocate(size_bytes)
        except TrtcError:
            raise
        except Exception as error:
            held, in_use = self._chunks.reserved_bytes, self._chunks.in_use_bytes
            raise HostError(
                f"{self._device} refuses {size_bytes} bytes ({error}); trtc holds {held} there, {in_use} in use: "
                "load with fewer slots, close other sessions or programs on that device, or build smaller profiles"
            ) from error
        return self._chunks.add(Chunk(buffer, int(buffer.handle), size_bytes), size)

    def _drain(self) -> None:
        """Take back what was released; a chunk without blocks goes back to the driver."""
        while self._returned:
            block = self._returned.popleft()
            chunk = block._chunk  # noqa: SLF001 (the arena owns its blocks)
            if self._chunks.give(chunk, block._offset, block.size_bytes):  # noqa: SLF001
                chunk.memory.close()
