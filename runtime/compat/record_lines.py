"""The lines of a record of traffic, and how many are made few.

Two kinds, each one JSON object:

- ``{"model", "name", "inputs": {name: shape}, "count", "seconds", "times_s": [...]}``: calls of equal shapes.
  ``timed``, where it stands: how many of them the seconds are of (what a bundle answers is no time of ONNX Runtime);
- ``{"model", "name", "ranges": {name: [low, high]}, "sampled"}``: values of the calls that were looked at.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_TIMES = 65536
"""Arrival times that are kept when a record is made shorter; of more, every second is dropped, and so on."""


def line_of(entry: dict[str, Any]) -> str:
    """Write an entry as one line."""
    return json.dumps(entry, separators=(",", ":")) + "\n"


def merged(lines: Iterable[bytes]) -> list[str] | None:
    """Return the lines with equal shapes joined; None where there is a line of another kind."""
    calls: dict[tuple[str, str], dict[str, Any]] = {}
    ranges: dict[str, dict[str, Any]] = {}
    for line in lines:
        try:
            entry = json.loads(line)
            if "inputs" in entry:
                key = (entry["model"], json.dumps(entry["inputs"]))
                _join_calls(
                    calls.setdefault(key, {**_without_timed(entry), "count": 0, "seconds": 0.0, "times_s": []}), entry
                )
            else:
                first = {**entry, "ranges": dict(entry["ranges"]), "sampled": 0}
                _join_ranges(ranges.setdefault(entry["model"], first), entry)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None
    times = sum(len(entry["times_s"]) for entry in calls.values())
    step = 1
    while times > MOST_TIMES * step:
        step *= 2
    for entry in calls.values():
        entry["times_s"] = sorted(entry["times_s"])[::step]
        entry["seconds"] = round(entry["seconds"], 7)
    return [line_of(entry) for entry in (*calls.values(), *ranges.values())]


def _without_timed(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != "timed"}


def _join_calls(joined: dict[str, Any], entry: dict[str, Any]) -> None:
    if "timed" in entry or "timed" in joined:
        joined["timed"] = joined.get("timed", joined["count"]) + int(entry.get("timed", entry["count"]))
    joined["count"] += int(entry["count"])
    joined["seconds"] += float(entry["seconds"])
    joined["times_s"].extend(float(moment) for moment in entry["times_s"])


def _join_ranges(joined: dict[str, Any], entry: dict[str, Any]) -> None:
    for name, (low, high) in entry["ranges"].items():
        before = joined["ranges"].get(name, [low, high])
        joined["ranges"][name] = [min(low, before[0]), max(high, before[1])]
    joined["sampled"] += int(entry["sampled"])
