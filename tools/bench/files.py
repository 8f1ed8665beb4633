"""Files that a benchmark writes: looked at before minutes are spent, written in one step at the end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from trtc.engines.files import host_error, write_file
from trtc.profiles import HostError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.tools.bench.measure import Measured


def require_writable(path: Path | None, option: str) -> None:
    """Refuse a path that cannot be written.

    Raises:
        UsageError: for a folder, or a path in a folder that is not there.
        HostError: when rights are missing.
    """
    if path is None:
        return
    folder = path.absolute().parent
    if path.is_dir():
        raise UsageError(f"{option} {path}: that is a folder; give the name of a file")
    if not folder.is_dir():
        raise UsageError(f"{option} {path}: there is no folder {folder}; make it, or write elsewhere")
    if not os.access(folder, os.W_OK):
        raise HostError(f"{option} {path}: {folder} may not be written; change its rights, or write elsewhere")


def write_text(path: Path, data: bytes) -> None:
    """Replace a file in one step.

    Raises:
        HostError: when it cannot be written.
    """
    try:
        write_file(path, data)
    except OSError as error:
        raise host_error(error, path, len(data)) from error


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
