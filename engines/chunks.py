"""Chunks of memory, and the parts of them that are handed out: the bookkeeping of every arena. No memory is touched."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trtc.engines.free_list import FreeList
from trtc.engines.value import Value
from trtc.profiles import HostError

CHUNK_BYTES = 2 * 2**20
"""Small reservations share chunks of this size: a huge page of the host, the granularity of a device's driver."""


class ArenaStats(Value, frozen=True):
    """What an arena holds, in bytes.

    Attributes:
        reserved_bytes: mapped from the system, or taken from the driver. (On the host that is address space; pages
            become resident when first written.)
        in_use_bytes: handed out and not given back.
        peak_bytes: the most that was ever in use together.
        largest_free_bytes: the largest reservation that needs no new chunk.
        fragmentation: share of the free bytes that lie outside of the largest free span, 0..1.
        allocations: reservations so far; after warm-up this number must not grow.
        chunks: that are held.
        chunks_made: times that the system, or the driver, was asked for one and gave it.
    """

    reserved_bytes: int
    in_use_bytes: int
    peak_bytes: int
    largest_free_bytes: int
    fragmentation: float
    allocations: int
    chunks: int
    chunks_made: int


@dataclass(slots=True, eq=False)
class Chunk:
    """Memory that was asked for in one piece.

    Attributes:
        memory: as it came.
        address: of its first byte.
        size_bytes: of all of it.
        kind: who asks for another kind gets nothing of it.
        free: its parts that nobody holds.
    """

    memory: Any
    address: int
    size_bytes: int
    kind: object = None
    free: FreeList = field(init=False)

    def __post_init__(self) -> None:
        self.free = FreeList(self.size_bytes)


class Chunks:
    """What an arena holds and has handed out. Not thread-safe: the arena holds a lock.

    Attributes:
        in_use_bytes: handed out and not given back.
    """

    def __init__(self) -> None:
        self.in_use_bytes = 0
        self._chunks: list[Chunk] = []
        self._peak = self._allocations = self._made = 0

    @property
    def reserved_bytes(self) -> int:
        """Bytes of all chunks."""
        return sum(chunk.size_bytes for chunk in self._chunks)

    def take(self, size_bytes: int, kind: object = None) -> tuple[Chunk, int] | None:
        """Hand out a part: the chunk and the offset in it; None when a new chunk is needed for it."""
        for chunk in self._chunks:
            offset = chunk.free.take(size_bytes) if chunk.kind == kind else None
            if offset is not None:
                return self._handed_out(chunk, offset, size_bytes)
        return None

    def add(self, chunk: Chunk, size_bytes: int) -> tuple[Chunk, int]:
        """Hold a new chunk, and hand out its first part.

        Raises:
            HostError: when the chunk is smaller than that.
        """
        offset = chunk.free.take(size_bytes)
        if offset is None:
            raise HostError(f"a chunk of {chunk.size_bytes} bytes does not hold {size_bytes}; report this")
        self._chunks.append(chunk)
        self._made += 1
        return self._handed_out(chunk, offset, size_bytes)

    def give(self, chunk: Chunk, offset: int, size_bytes: int) -> bool:
        """Take a part back; tell whether the chunk was let go, because nothing of it is handed out any more.

        Raises:
            ValueError: when any of it was given back before.
        """
        chunk.free.give(offset, size_bytes)
        self.in_use_bytes -= size_bytes
        if chunk.free.free_bytes < chunk.size_bytes:
            return False
        self._chunks = [other for other in self._chunks if other is not chunk]
        return True

    def _handed_out(self, chunk: Chunk, offset: int, size_bytes: int) -> tuple[Chunk, int]:
        self.in_use_bytes += size_bytes
        self._peak = max(self._peak, self.in_use_bytes)
        self._allocations += 1
        return chunk, offset

    @property
    def stats(self) -> ArenaStats:
        """Figures of this moment."""
        free = sum(chunk.free.free_bytes for chunk in self._chunks)
        largest = max((chunk.free.largest_bytes for chunk in self._chunks), default=0)
        return ArenaStats(
            reserved_bytes=self.reserved_bytes,
            in_use_bytes=self.in_use_bytes,
            peak_bytes=self._peak,
            largest_free_bytes=largest,
            fragmentation=1 - largest / free if free else 0.0,
            allocations=self._allocations,
            chunks=len(self._chunks),
            chunks_made=self._made,
        )
