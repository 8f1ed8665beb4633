"""What a process holds: resident memory, what malloc has handed out, what an arena has handed out."""

from __future__ import annotations

import ctypes
import gc
import resource
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.runtime import Arena


class _MallInfo(ctypes.Structure):
    """``struct mallinfo2`` of malloc.h."""

    _fields_ = [(name, ctypes.c_size_t) for name in
                ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]  # fmt: skip  # noqa: E501


@dataclass(frozen=True)
class Sample:
    """Memory at one moment at which no call is in flight, in bytes; ``blocks`` counts what Python handed out."""

    resident: int
    malloc: int
    blocks: int
    arena_in_use: int
    arena_allocations: int


def sample(arena: Arena) -> Sample:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    stats = arena.stats
    blocks = sys.getallocatedblocks()
    return Sample(pages * resource.getpagesize(), _malloc_bytes(), blocks, stats.in_use_bytes, stats.allocations)


def growth(values: Sequence[int]) -> int:
    """What lies between the median of the second quarter of some samples and that of the last; the first is warm-up.

    Warm-up takes so long because allocators reach their final size only when each disturbance has met each other one.
    """
    quarter = max(1, len(values) // 4)
    return int(statistics.median(values[-quarter:]) - statistics.median(values[quarter : 2 * quarter]))


def _malloc_bytes() -> int:
    """Bytes that malloc handed out, mapped ones included; 0 for a C library without mallinfo2."""
    mallinfo = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if mallinfo is None:
        return 0
    mallinfo.restype = _MallInfo
    info = mallinfo()
    return int(info.uordblks + info.hblkhd)
