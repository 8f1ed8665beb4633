"""The times of every call, as a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from trtc.tools.report.files import write_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trtc.tools.bench.measure import Measured


def write_times(path: Path, measured: Sequence[Measured]) -> None:
    """Write every call as JSON: a list of objects, times in milliseconds from the first call of the case.

    ``intendedMs`` is when an open loop wanted the call to begin; ``latencyMs`` counts from there.
    """
    rows: list[dict[str, Any]] = []
    for found in measured:
        samples = found.samples
        zero = float(samples.intended_s.min())
        order = samples.request.tolist()
        for i, intended, begun, finished in zip(
            order, samples.intended_s.tolist(), samples.begun_s.tolist(), samples.finished_s.tolist(), strict=True
        ):
            rows.append(
                {
                    "case": found.case.name,
                    "request": i,
                    "intendedMs": (intended - zero) * 1e3,
                    "startMs": (begun - zero) * 1e3,
                    "endMs": (finished - zero) * 1e3,
                    "latencyMs": (finished - intended) * 1e3,
                }
            )
    write_text(path, msgspec.json.format(msgspec.json.encode(rows), indent=1) + b"\n")
