"""Host memory for calls: anonymous, page-aligned mappings."""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from trtc.engines.layout import Place

PAGE_BYTES = mmap.PAGESIZE


def map_host_memory(size_bytes: int) -> mmap.mmap:
    """Map zeroed private memory of at least ``size_bytes``, rounded up to whole pages; the caller owns it."""
    return mmap.mmap(-1, max(1, -(-size_bytes // PAGE_BYTES)) * PAGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def bytes_text(size_bytes: int) -> str:
    """Write an exact number of bytes, in the largest unit that divides it."""
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size_bytes and size_bytes % 2**power == 0:
            return f"{size_bytes >> power} {unit}"
    return f"{size_bytes} bytes"


def return_freed_memory() -> None:
    """Give the system back what ``free`` left with malloc. Does nothing where malloc offers no such thing.

    glibc keeps freed memory in the arena of each thread, resident, and a large engine leaves much of it. Measured with
    ONNX Runtime 1.32: docs/reliability.md#memory-and-reloads. Other threads that allocate meanwhile may wait for it.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def address_of(buffer: memoryview | mmap.mmap) -> int:
    """Return the address of a writable buffer's first byte."""
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def array_at(buffer: memoryview, place: Place) -> np.ndarray:
    """View a place as an array; it shares, and keeps alive, the buffer's memory."""
    return np.ndarray(place.shape, place.dtype, buffer=buffer, offset=place.offset_bytes)


@dataclass(slots=True)
class HostSlot:
    """A slot on memory of its own, for work outside a session: verification and measurement.

    Attributes:
        buffer: writable bytes, page-aligned; freed with the last view of it.
        address: of the first byte.
        objects: inputs that cannot lie in memory, by name.
    """

    buffer: memoryview
    address: int
    objects: dict[str, Any] = field(default_factory=dict)


def host_slot(size_bytes: int) -> HostSlot:
    """Map a slot of at least ``size_bytes``."""
    memory = map_host_memory(size_bytes)
    return HostSlot(memoryview(memory), address_of(memory))
