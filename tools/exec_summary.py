"""What ``trtc exec`` says at the end: calls, sizes and times of each model, and what only ONNX Runtime could do."""

from __future__ import annotations

import json
import os
import sys

from trtc.profiles import UsageError
from trtc.tools.durations import seconds_text
from trtc.tools.printable import printable

TYPE_CHECKING = False  # importing typing takes 2 ms
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    Before = Mapping[str, Mapping[str, float]]
    """Mean seconds of a call before, by the digest of its model and the shapes of its inputs."""

_MOST = 1e18
"""A larger count, or number of seconds, is none."""


def read_report(path: str) -> list[dict[str, Any]]:
    """Read the entries that the program's processes wrote; a line that one was killed at is left out."""
    return list(_entries(path))


def read_before(path: str) -> Before:
    """Read what calls took from a record of plain runs.

    Raises:
        UsageError: when there is no such record.
    """
    if not os.path.isfile(path):
        raise UsageError(f"{path}: no such file; give the record that trtc exec --record wrote")
    found = before_of(_entries(path))
    if not found:
        raise UsageError(f"{path}: holds no calls; give the record that trtc exec --record wrote")
    return found


def before_of(entries: Iterable[Mapping[str, Any]]) -> Before:
    """Sum up mean seconds of a call, by the digest of its model and the shapes of its inputs."""
    sums: dict[str, dict[str, tuple[float, float]]] = {}
    for entry in entries:
        if isinstance(entry.get("model"), str) and "inputs" in entry:
            timed, seconds = _number(entry, "timed" if "timed" in entry else "count"), _number(entry, "seconds")
            if timed and seconds:
                shapes = sums.setdefault(entry["model"], {})
                calls, taken_s = shapes.get(key := _key(entry["inputs"]), (0.0, 0.0))
                shapes[key] = calls + timed, taken_s + seconds
    return {model: {key: taken_s / calls for key, (calls, taken_s) in shapes.items()} for model, shapes in sums.items()}


def summary_fields(
    entries: Sequence[Mapping[str, Any]], bundles: Sequence[Mapping[str, str]], before: Before
) -> dict[str, Any]:
    """Join what all processes wrote.

    Args:
        entries: of the report.
        bundles: that were given.
        before: mean seconds of a call before, by model and shapes.

    Returns:
        ``processes``, ``models``, ``unused_bundles`` and ``notes``, ready for JSON.
    """
    models: dict[str, dict[str, Any]] = {}
    notes: list[str] = []
    processes = 0
    for entry in entries:
        processes += "process" in entry
        if isinstance(note := entry.get("note"), str) and note not in notes:
            notes.append(note)
        if isinstance(digest := entry.get("model"), str):
            _join(models.setdefault(digest, _empty(digest, entry)), entry)
    for model in models.values():
        shapes = model.pop("shapes")
        model["sizes"] = len(shapes)
        model["mean_s"] = model["seconds"] / model["calls"] if model["calls"] else None
        model.update(_compared(shapes, before.get(model["model"], {})))
    used = {path for model in models.values() for path in model["bundles"]}
    return {
        "processes": processes,
        "models": list(models.values()),
        "unused_bundles": [b["path"] for b in bundles if b["path"] not in used and b["file_sha256"] not in models],
        "notes": notes,
    }


def show_summary(fields: Mapping[str, Any]) -> None:
    """Print the summary to standard error: wrapped at a terminal, which takes its time to import, else as it is."""
    lines = [f"trtc: {line}" for line in _lines(fields)]
    if sys.stderr.isatty():
        from trtc.tools.output import print_text

        for line in lines:
            print_text(line, err=True)
    else:
        sys.stderr.writelines(f"{printable(line)}\n" for line in lines)


def _lines(fields: Mapping[str, Any]) -> Iterator[str]:
    yield from fields["notes"]
    if not fields["processes"]:
        yield (
            "no Python process under this command imported ONNX Runtime where trtc is installed; a program of another "
            "environment, or one run with -I, -E or -S, runs plain"
        )
    for model in fields["models"]:
        by = "the bundle" if model["bundles"] else "ONNX Runtime"
        line = f"{model['name']} ({model['model'][:12]}): {model['calls']} calls of {model['sizes']} sizes by {by}"
        if model["mean_s"] is not None:
            line += f", {seconds_text(model['mean_s'])} each"
            if model["before_s"]:
                line += _before_text(model)
        yield line
        for item in model["through"]:
            yield f"  {item['count']} x {item['method']} by ONNX Runtime: {item['reason']}"
        if model["lost"]:
            yield f"  {model['lost']} calls were not counted: more different sizes than are kept"
    for path in fields["unused_bundles"]:
        yield f"{path}: not used: no model that was opened has the digest that it was built from"


def _empty(digest: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "model": digest, "name": str(entry.get("name", "")), "bundles": [], "sessions": 0, "open_s": 0.0, "calls": 0,
        "seconds": 0.0, "shapes": {}, "lost": 0, "through": [],
    }  # fmt: skip


def _join(model: dict[str, Any], entry: Mapping[str, Any]) -> None:
    if "opened_s" in entry:
        model["sessions"] += 1
        model["open_s"] += _number(entry, "opened_s")
        if (bundle := entry.get("bundle")) and bundle not in model["bundles"]:
            model["bundles"].append(bundle)
    elif "inputs" in entry:
        model["calls"] += int(_number(entry, "count"))
        model["seconds"] += _number(entry, "seconds")
        calls, taken_s = model["shapes"].get(key := _key(entry["inputs"]), (0, 0.0))
        model["shapes"][key] = calls + int(_number(entry, "count")), taken_s + _number(entry, "seconds")
    elif "method" in entry:
        same = [i for i in model["through"] if (i["method"], i["reason"]) == (entry["method"], entry["reason"])]
        if same:
            same[0]["count"] += int(_number(entry, "count"))
        else:
            model["through"].append({key: entry[key] for key in ("method", "reason", "count")})
    elif "lost" in entry:
        model["lost"] += int(_number(entry, "lost"))


def _compared(shapes: Mapping[str, tuple[int, float]], before: Mapping[str, float]) -> dict[str, Any]:
    """Compare calls with calls of equal shapes: a mean over other sizes would be a mean of other work."""
    both = {key: found for key, found in shapes.items() if key in before}
    calls = sum(count for count, _ in both.values())
    if not calls:
        return {"compared_calls": 0, "compared_s": None, "before_s": None}
    return {
        "compared_calls": calls,
        "compared_s": sum(taken_s for _, taken_s in both.values()) / calls,
        "before_s": sum(count * before[key] for key, (count, _) in both.items()) / calls,
    }


def _before_text(model: Mapping[str, Any]) -> str:
    ratio = f"{model['compared_s'] / model['before_s']:.2f} x"
    if model["compared_calls"] == model["calls"]:
        return f", {seconds_text(model['before_s'])} before ({ratio})"
    return (
        f"; {model['compared_calls']} of them have sizes that were recorded before: "
        f"{seconds_text(model['compared_s'])} each, {seconds_text(model['before_s'])} before ({ratio})"
    )


def _key(inputs: Any) -> str:
    return json.dumps(inputs, sort_keys=True)


def _number(entry: Mapping[str, Any], key: str) -> float:
    """Return a number that is one; 0 for anything else, since the record may be anybody's."""
    value = entry.get(key)
    return float(value) if isinstance(value, int | float) and 0 <= value <= _MOST else 0.0


def _entries(path: str) -> Iterator[dict[str, Any]]:
    with open(path, "rb") as file:
        for line in file:
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(entry, dict):
                yield entry
