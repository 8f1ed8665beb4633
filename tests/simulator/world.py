"""Memory and threads of the simulated machine, and who may touch what and when."""

from __future__ import annotations

import ctypes
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from simulator.streams import Stream, Work

POISON = 0xCD
_ALIGNMENT = 512
_GUARD = 512

Extent: TypeAlias = tuple[int, int]
"""An address and a number of bytes."""


class BreachError(BaseException):
    """The contract of a library was broken. No ``Exception``: nothing that handles errors may swallow it."""


@dataclass(eq=False)
class Allocation:
    """Memory of one kind, ``device`` or ``pinned``.

    Attributes:
        ready: False until the stream that it was allocated on was waited for.
        freed: it may not be touched any more; its bytes are kept so that no other memory has these addresses.
    """

    kind: str
    address: int
    size_bytes: int
    stream: Any
    ready: bool
    freed: bool = False
    memory: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint8), repr=False)


class World:
    """Everything that the libraries share. Its lock makes each of their calls one step.

    Attributes:
        device_bytes: memory of each device; None for no limit.
        streams: that are open, by handle.
        building: graph builders that capture, by thread.
    """

    def __init__(self, devices: int, device_bytes: int | None) -> None:
        self.lock = threading.RLock()
        self.devices = devices
        self.device_bytes = device_bytes
        self.streams: dict[int, Stream] = {}
        self.building: dict[int, Stream] = {}
        self.allocations: list[Allocation] = []
        self.max_pending = 0
        self._current = threading.local()
        self._next_handle = 0x1000

    def new_handle(self) -> int:
        """Return a handle that nothing else has."""
        self._next_handle += 0x10
        return self._next_handle

    def set_current(self, device: int) -> None:
        """Make a device the current one of this thread."""
        self._current.device = device

    def need_current(self, doing: str) -> None:
        """Demand that this thread chose a device."""
        if getattr(self._current, "device", None) is None:
            raise BreachError(f"{doing} in a thread without a current device")

    def need_no_capture(self, doing: str) -> None:
        """Demand that this thread captures nothing."""
        if threading.get_ident() in self.building:
            raise BreachError(f"{doing} while a graph is captured")

    def allocate(self, kind: str, size_bytes: int, stream: Stream | None) -> Allocation:
        """Map memory that begins at a multiple of 512 and holds poison."""
        self.need_no_capture(f"allocating {kind} memory")
        held = sum(a.size_bytes for a in self.allocations if a.kind == "device" and not a.freed)
        if kind == "device" and self.device_bytes is not None and held + size_bytes > self.device_bytes:
            raise MemoryError("CUDA_ERROR_OUT_OF_MEMORY: out of memory")
        memory = np.full(size_bytes + _ALIGNMENT + _GUARD, POISON, np.uint8)
        address = -(-memory.ctypes.data // _ALIGNMENT) * _ALIGNMENT
        found = Allocation(kind, address, size_bytes, stream, ready=stream is None, memory=memory)
        self.allocations.append(found)
        return found

    def free(self, allocation: Allocation) -> None:
        """End an allocation; no pending work may touch it."""
        extent = (allocation.address, allocation.size_bytes)
        for stream in self.streams.values():
            for work in stream.pending:
                if any(overlaps(extent, other) for other in (*work.reads, *work.writes)):
                    raise BreachError(f"{allocation.kind} memory was freed while {work.label} is pending")
        allocation.freed = True

    def find(self, extent: Extent) -> Allocation | None:
        """Return the allocation that holds an extent; None for memory that no library mapped.

        Raises:
            BreachError: when it was freed, or only part of it is inside.
        """
        for allocation in reversed(self.allocations):
            if overlaps(extent, (allocation.address, allocation.size_bytes)):
                if allocation.freed:
                    raise BreachError(f"{allocation.kind} memory at {extent[0]:#x} was freed")
                if extent[0] < allocation.address or sum(extent) > allocation.address + allocation.size_bytes:
                    raise BreachError(f"{extent[1]} bytes at {extent[0]:#x} reach beyond their allocation")
                return allocation
        return None

    def need(self, kind: str, extent: Extent, what: str) -> Allocation:
        """Demand live memory of a kind."""
        found = self.find(extent)
        if found is None or found.kind != kind:
            raise BreachError(f"{what} is not in {kind} memory")
        return found

    def admit(self, stream: Stream, work: Work) -> None:
        """Demand that work may be submitted now: its memory lives, is ready, and no other stream works on it."""
        for extent in (*work.reads, *work.writes):
            found = self.find(extent) if extent[1] else None
            if found is not None and not found.ready and found.stream is not stream:
                raise BreachError(f"{work.label} uses memory before the stream that allocates it was waited for")
        for other in self.streams.values():
            for pending in other.pending if other is not stream else ():
                if clash(work, pending):
                    raise BreachError(f"{work.label} uses memory that another stream works on: {pending.label}")
        self.max_pending = max(
            self.max_pending, 1 + sum(bool(s.pending) for s in self.streams.values() if s is not stream)
        )


def overlaps(a: Extent, b: Extent) -> bool:
    """Whether two extents share a byte."""
    return a[0] < b[0] + b[1] and b[0] < a[0] + a[1] and bool(a[1]) and bool(b[1])


def clash(a: Work, b: Work) -> bool:
    """Whether two pieces of work touch the same byte, and one of them writes it."""
    pairs = [(a.writes, (*b.reads, *b.writes)), (a.reads, b.writes)]
    return any(overlaps(x, y) for some, others in pairs for x in some for y in others)


def bytes_at(extent: Extent) -> np.ndarray:
    """View memory as bytes, writable."""
    address, size = extent
    if not size:
        return np.empty(0, np.uint8)
    return np.frombuffer((ctypes.c_char * size).from_address(address), np.uint8)
