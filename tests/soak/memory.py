"""What a process holds: anonymous resident memory, what malloc has handed out, what an arena has handed out."""

from __future__ import annotations

import ctypes
import gc
import statistics
import sys
from dataclasses import dataclass
from itertools import combinations
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
    """Memory at one moment at which no call is in flight, in bytes; ``blocks`` counts what Python handed out.

    ``resident`` leaves out pages of files; ``freed`` is what malloc keeps of memory that was given back to it.
    """

    resident: int
    malloc: int
    freed: int
    blocks: int
    arena_in_use: int
    arena_allocations: int


def sample(arena: Arena) -> Sample:
    gc.collect()
    status = Path("/proc/self/status").read_text()
    resident = int(status.partition("RssAnon:")[2].split()[0]) * 1024
    stats, info, blocks = arena.stats, _mallinfo(), sys.getallocatedblocks()
    malloc = int(info.uordblks + info.hblkhd)
    return Sample(resident, malloc, int(info.fordblks), blocks, stats.in_use_bytes, stats.allocations)


def growth(values: Sequence[int]) -> int:
    """What lies between the median of the first quarter of some samples and that of the last."""
    quarter = max(1, len(values) // 4)
    return int(statistics.median(values[-quarter:]) - statistics.median(values[:quarter]))


def slope(values: Sequence[int]) -> float:
    """The median of the slopes between all pairs of samples (Theil and Sen): a lone step does not move it."""
    return statistics.median((b - a) / (j - i) for (i, a), (j, b) in combinations(enumerate(values), 2))


def settle_names() -> None:
    """Use up Python's table of interned names, which doubles once when names have come and gone for long enough."""
    for number in range(200_000):
        sys.intern(f"a name that nobody keeps {number}")


def _mallinfo() -> _MallInfo:
    """Return what malloc says; zeros for a C library without mallinfo2."""
    mallinfo = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if mallinfo is None:
        return _MallInfo()
    mallinfo.restype = _MallInfo
    info: _MallInfo = mallinfo()
    return info
