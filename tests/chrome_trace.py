"""A strict reader of Chrome's trace format ("Trace Event Format", Google, 2016), as Perfetto imports it.

Times are microseconds; what is compared here is nanoseconds, the unit that viewers keep. Slices (``X``) of one thread
lie inside each other or apart: viewers drop one that lies partly in another.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

PHASES = {"X", "C", "M", "b", "e"}
NAMES = {"process_name", "thread_name"}


class TraceFormatError(AssertionError):
    """A file that a viewer would read otherwise than it was meant, or not at all."""


def require(holds: bool, text: str) -> None:  # noqa: FBT001 (as an assertion)
    if not holds:
        raise TraceFormatError(text)


def check_trace(data: Any) -> dict[tuple[int, int], list[tuple[int, int, str]]]:
    """Look at a whole file.

    Returns:
        Start, end and name of each slice, by process and thread.

    Raises:
        TraceFormatError: for the first thing that is wrong.
    """
    require(isinstance(data, dict) and isinstance(data.get("traceEvents"), list), "no list of traceEvents")
    require(data.get("displayTimeUnit", "ms") in ("ms", "ns"), "displayTimeUnit is ms or ns")
    slices: dict[tuple[int, int], list[tuple[int, int, str]]] = defaultdict(list)
    open_at: dict[tuple[Any, ...], int] = {}
    named: dict[str, dict[Any, str]] = {name: {} for name in NAMES}
    counters: dict[str, set[str]] = {}
    last = -math.inf
    for event in data["traceEvents"]:
        what = f"{event.get('ph')} {event.get('name')!r}"
        require(event.get("ph") in PHASES, f"{what}: unknown phase")
        require(isinstance(event.get("name"), str) and event["name"] != "", f"{what}: a name is a text")
        require(all(type(event.get(key)) is int and event[key] >= 0 for key in ("pid", "tid")), f"{what}: pid and tid")
        require(isinstance(event.get("args", {}), dict), f"{what}: args are an object")
        place = event["pid"], event["tid"]
        if event["ph"] == "M":
            require(event["name"] in NAMES, f"{what}: unknown metadata")
            key = event["pid"] if event["name"] == "process_name" else place
            require(key not in named[event["name"]], f"{what}: named twice")
            require(bool(event["args"].get("name")), f"{what}: metadata without a name")
            named[event["name"]][key] = event["args"]["name"]
            continue
        start = nanoseconds(event.get("ts"), what)
        require(start >= last, f"{what}: earlier than the event before it")
        last = start
        if event["ph"] == "X":
            slices[place].append((start, start + nanoseconds(event.get("dur"), what), event["name"]))
        elif event["ph"] == "C":
            values = event.get("args") or {}
            require(bool(values), f"{what}: a counter without a value")
            require(all(type(v) in (int, float) and math.isfinite(v) for v in values.values()), f"{what}: no number")
            series = counters.setdefault(event["name"], set(values))
            require(series == set(values), f"{what}: other series than before")
        else:
            key = event["pid"], event.get("cat"), event.get("id"), event["name"]
            require(None not in key, f"{what}: an async event has a category and an id")
            require((key in open_at) == (event["ph"] == "e"), f"{what}: begins once, then ends")
            open_at.pop(key) if event["ph"] == "e" else open_at.update({key: start})
    require(not open_at, f"never ended: {list(open_at)}")
    for place, found in slices.items():
        require(place[0] in named["process_name"], f"process {place[0]} has no name")
        require(place in named["thread_name"], f"thread {place} has no name")
        _require_nesting(place, found)
    require(len(set(named["thread_name"].values())) == len(named["thread_name"]), "two threads of one name")
    return dict(slices)


def nanoseconds(value: Any, what: str) -> int:
    require(type(value) in (int, float) and math.isfinite(value) and value >= 0, f"{what}: no time: {value!r}")
    return round(value * 1000)


def _require_nesting(place: tuple[int, int], slices: list[tuple[int, int, str]]) -> None:
    outer: list[tuple[int, int, str]] = []
    for start, end, name in slices:  # in the order of the file: what holds another one comes first
        while outer and outer[-1][1] <= start:
            outer.pop()
        if outer:
            text = f"{name!r} {start}..{end} ns lies partly in {outer[-1][2]!r} {outer[-1][0]}..{outer[-1][1]}"
            require(end <= outer[-1][1], f"thread {place[1]}: {text}")
        outer.append((start, end, name))
