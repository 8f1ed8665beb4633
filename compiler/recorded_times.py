"""What calls of a model took in the program that recorded them: to compare the same program on the bundle with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from trtc.engines.manifest import RecordedCalls

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

MOST_SHAPES = 64
"""Shapes that are kept: those with the most calls. A bundle is read each time it is loaded."""

_MOST = 1e12
"""A line that says more calls, or more seconds, says nothing: sums stay numbers that a manifest holds."""


def recorded_times(records: Iterable[Path], file_sha256: str) -> tuple[RecordedCalls, ...]:
    """Sum up count and seconds of calls with equal shapes of inputs.

    Args:
        records: files of traffic; those that ``trtc exec`` did not write say nothing.
        file_sha256: digest of the model file.
    """
    sums: dict[str, tuple[dict[str, tuple[int, ...]], int, float]] = {}
    for entry in _entries(records, file_sha256):
        try:
            shapes = {str(name): tuple(int(size) for size in shape) for name, shape in entry["inputs"].items()}
            count, seconds = int(entry.get("timed", entry["count"])), float(entry["seconds"])
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
            continue
        if 0 < count <= _MOST and 0 < seconds <= _MOST:
            _, calls, taken_s = sums.get(key := repr(sorted(shapes.items())), (shapes, 0, 0.0))
            sums[key] = shapes, calls + count, taken_s + seconds
    most = sorted(sums.values(), key=lambda item: -item[1])[:MOST_SHAPES]
    return tuple(
        RecordedCalls(inputs=shapes, count=calls, seconds=round(taken_s, 7)) for shapes, calls, taken_s in most
    )


def _entries(records: Iterable[Path], file_sha256: str) -> Iterator[dict[str, Any]]:
    for record in records:
        if record.suffix != ".jsonl" or not record.is_file():
            continue
        with record.open("rb") as lines:
            for line in lines:
                if file_sha256.encode() not in line:
                    continue
                try:
                    entry = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if isinstance(entry, dict) and entry.get("model") == file_sha256:
                    yield entry
