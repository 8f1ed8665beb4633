"""Which parts of a chunk are free: pure bookkeeping over offsets, no memory is touched."""

from __future__ import annotations

from bisect import bisect_left, insort


class FreeList:
    """Spans of one chunk, handed out best fit and joined again when given back.

    Not thread-safe; its owner (an arena, of the host or of a device) holds a lock.
    """

    def __init__(self, size_bytes: int) -> None:
        self._spans: list[tuple[int, int]] = [(0, size_bytes)] if size_bytes else []

    def take(self, size_bytes: int) -> int | None:
        """Return the offset of a free span of this size, the tightest that fits; None when there is none."""
        fitting = [(size, offset) for offset, size in self._spans if size >= size_bytes]
        if not fitting:
            return None
        size, offset = min(fitting)
        self._spans.remove((offset, size))
        if size > size_bytes:
            insort(self._spans, (offset + size_bytes, size - size_bytes))
        return offset

    def give(self, offset: int, size_bytes: int) -> None:
        """Give a span back and join it with its neighbours.

        Raises:
            ValueError: when any part of it is free already.
        """
        at = bisect_left(self._spans, (offset, 0))
        end = offset + size_bytes
        if at < len(self._spans) and self._spans[at][0] < end:
            raise ValueError(f"bytes {offset}..{end} are free already")
        if at and sum(self._spans[at - 1]) > offset:
            raise ValueError(f"bytes {offset}..{end} are free already")
        if at < len(self._spans) and self._spans[at][0] == end:
            end += self._spans.pop(at)[1]
        if at and sum(self._spans[at - 1]) == offset:
            offset = self._spans.pop(at - 1)[0]
        insort(self._spans, (offset, end - offset))

    @property
    def free_bytes(self) -> int:
        """All free bytes."""
        return sum(size for _, size in self._spans)

    @property
    def largest_bytes(self) -> int:
        """The largest span that ``take`` could hand out."""
        return max((size for _, size in self._spans), default=0)
