"""Memory of a session while it is measured: resident, planned, and new with each call."""

from __future__ import annotations

import re
import tracemalloc
from typing import TYPE_CHECKING, Any

import msgspec

from trtc.engines.cgroup import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trtc.runtime import Session

MOST_CALLS = 20


class Memory(msgspec.Struct, frozen=True):
    """Memory in bytes.

    ``resident_bytes`` of the whole process after the runs, ``peak_resident_bytes`` the most it ever was;
    ``loaded_bytes``: what loading added to it. ``arena_bytes``: planned memory in use; ``arena_peak_bytes``.
    ``arena_allocations_per_call``: reservations after warm-up, which should be 0.
    ``new_bytes_per_call``: the most that Python and numpy held at once during a call beyond what they held before:
    results that the caller owns, and nothing else where all is well.
    """

    resident_bytes: int
    peak_resident_bytes: int
    loaded_bytes: int
    arena_bytes: int
    arena_peak_bytes: int
    arena_allocations_per_call: float
    new_bytes_per_call: int


def status_bytes(name: str, root: Path = ROOT) -> int:
    """Read a figure of this process, such as ``VmRSS``; 0 where the system does not tell."""
    try:
        found = re.search(rf"^{name}:\s*([0-9]+) kB", (root / "proc/self/status").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


def new_bytes(session: Session, requests: Sequence[Any]) -> int:
    """Return the most bytes that one warm call holds at once, of the first requests; results are dropped after it."""
    worst = 0
    tracemalloc.start()
    try:
        for feeds in requests[:MOST_CALLS]:
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            session.run(feeds)
            worst = max(worst, tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
    return worst
