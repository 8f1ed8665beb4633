"""The arena: the one owner of planned host memory, for any number of sessions.

Each chunk is mapped by one function: the system's anonymous memory, or what a device wants to read by itself.
"""

from __future__ import annotations

import mmap
import weakref
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

from trtc.engines.chunks import CHUNK_BYTES, Chunk, Chunks
from trtc.engines.memory import PAGE_BYTES, address_of, bytes_text, map_host_memory
from trtc.runtime.errors import MemoryBudgetError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trtc.engines.chunks import ArenaStats


@dataclass(slots=True, eq=False, weakref_slot=True)
class Block:
    """A reservation. It belongs to whoever reserved it until ``Arena.release``.

    Attributes:
        buffer: its bytes, writable; arrays over it keep the chunk mapped.
        address: of the first byte; page-aligned.
        size_bytes: as reserved, rounded up to whole pages.
    """

    buffer: memoryview
    address: int
    size_bytes: int
    _chunk: Chunk
    _offset: int


NO_BLOCK = Block(memoryview(bytearray()), 0, 0, Chunk(b"", 0, 0), 0)
"""What a slot has that gave its memory back."""


class Arena:
    """Memory for calls. All methods may be used from any thread.

    Args:
        max_bytes: budget for everything that is mapped; None for no limit. Sessions that are loaded with the same
            arena share the budget.
    """

    def __init__(self, max_bytes: int | None = None) -> None:
        self.max_bytes = max_bytes
        self._lock = Lock()
        self._chunks = Chunks()
        self._returned: deque[Block] = deque()

    def reserve(self, size_bytes: int, map_memory: Callable[[int], Any] = map_host_memory) -> Block:
        """Reserve a block; it is zeroed when its memory is new, and holds old bytes otherwise.

        Args:
            size_bytes: 0 or more.
            map_memory: maps what the arena does not have yet (see ``Traits``). Memory of one kind serves only those who
                ask for that kind; the budget counts all of it.

        Raises:
            MemoryBudgetError: when it does not fit into the budget, or the system refuses.
            ValueError: for a negative size.
        """
        if size_bytes < 0:
            raise ValueError(f"{size_bytes} bytes; reserve 0 or more")
        size = max(1, -(-size_bytes // PAGE_BYTES)) * PAGE_BYTES
        with self._lock:
            self._drain()
            chunk, offset = self._chunks.take(size, map_memory) or self._grow(size, map_memory)
        return Block(memoryview(chunk.memory)[offset : offset + size], chunk.address + offset, size, chunk, offset)

    def release(self, block: Block) -> None:
        """Give a block back. No array over it may be used afterwards.

        Raises:
            ValueError: when it was given back before.
        """
        with self._lock:
            self._give(block)
            self._drain()

    def release_after(self, block: Block, views: Sequence[object]) -> None:
        """Give a block back as soon as none of ``views`` is alive."""
        others = [None] * (len(views) - 1)

        def gone() -> None:
            # Finalizers run anywhere, also inside the lock below: they only leave a note, which the next call reads.
            try:
                others.pop()
            except IndexError:  # the last one, and only it
                self._returned.append(block)

        for view in views:
            weakref.finalize(view, gone).atexit = False
        if not views:
            gone()
            if self._lock.acquire(blocking=False):  # else whoever holds the lock reads the note
                try:
                    self._drain()
                finally:
                    self._lock.release()

    @property
    def stats(self) -> ArenaStats:
        """Figures of this moment."""
        with self._lock:
            self._drain()
            return self._chunks.stats

    def _grow(self, size: int, map_memory: Callable[[int], Any]) -> tuple[Chunk, int]:
        size_bytes = max(size, CHUNK_BYTES)
        held = self._chunks.reserved_bytes
        if self.max_bytes is not None and held + size_bytes > self.max_bytes:
            size_bytes = size
        if self.max_bytes is not None and held + size_bytes > self.max_bytes:
            used = f"{bytes_text(held)} of it mapped, {bytes_text(self._chunks.in_use_bytes)} of these in use"
            raise MemoryBudgetError(
                f"{bytes_text(size)} are needed, the budget is {bytes_text(self.max_bytes)}"
                f"{f', {used}' if held else ''}; raise --max-memory, lower the number of slots, "
                "or rebuild with smaller profiles"
            )
        try:
            memory = map_memory(size_bytes)
        except (OSError, OverflowError, ValueError) as error:
            raise MemoryBudgetError(
                f"the system refuses {size_bytes} bytes ({error}); lower the number of slots or use smaller profiles"
            ) from error
        if size_bytes > CHUNK_BYTES and isinstance(memory, mmap.mmap) and hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # `trtc doctor` says what to change; small pages are slower, not wrong
                memory.madvise(mmap.MADV_HUGEPAGE)
        return self._chunks.add(Chunk(memory, address_of(memory), len(memory), map_memory), size)

    def _drain(self) -> None:
        """Take back the blocks whose last view died."""
        while self._returned:
            self._give(self._returned.popleft())

    def _give(self, block: Block) -> None:
        # A chunk without blocks is let go; its mapping ends with the last array over it.
        self._chunks.give(block._chunk, block._offset, block.size_bytes)  # noqa: SLF001 (the arena owns its blocks)


@cache
def default_arena() -> Arena:
    """Return the arena of this process, which sessions share unless they are given another."""
    return Arena()
