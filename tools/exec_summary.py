"""What ``trtc exec`` says at the end: calls, sizes and times of each model, and what only ONNX Runtime could do."""

from __future__ import annotations

import json
import os
import sys
from functools import reduce

from trtc.profiles import UsageError
from trtc.tools.exec_not_used import not_used
from trtc.tools.exec_times import added, answered_fields, answers_text, compared
from trtc.tools.printable import printable

TYPE_CHECKING = False  # importing typing takes 2 ms
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from trtc.tools.exec_times import Known

    Before = Mapping[str, Mapping[str, Known]]
    """Calls before and their mean seconds, by the digest of their model and the shapes of their inputs."""

_MOST = 1e18
"""A larger count, or number of seconds, is none."""
_NONE = (0, 0.0, 0.0)


def read_report(path: str) -> list[dict[str, Any]]:
    """Read the entries that the program's processes wrote, none where they removed it; half a line is left out."""
    return list(_entries(path)) if os.path.isfile(path) else []


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
    """Sum up calls and their mean seconds, by the digest of their model and the shapes of their inputs."""
    sums: dict[str, dict[str, tuple[float, float]]] = {}
    for entry in entries:
        if isinstance(entry.get("model"), str) and "inputs" in entry:
            timed, seconds = _number(entry, "timed" if "timed" in entry else "count"), _number(entry, "seconds")
            if timed and seconds:
                shapes = sums.setdefault(entry["model"], {})
                calls, taken_s = shapes.get(key := _key(entry["inputs"]), (0.0, 0.0))
                shapes[key] = calls + timed, taken_s + seconds
    return {
        model: {key: (calls, taken_s / calls) for key, (calls, taken_s) in shapes.items()}
        for model, shapes in sums.items()
    }


def summary_fields(
    entries: Sequence[Mapping[str, Any]], bundles: Sequence[Mapping[str, str]], before: Before
) -> dict[str, Any]:
    """Join what all processes wrote.

    Args:
        entries: of the report.
        bundles: that were given.
        before: calls before and their mean seconds, by model and shapes.

    Returns:
        ``processes``, ``models``, ``unused_bundles``, ``not_used`` and ``notes``, ready for JSON.
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
        bundle, library = model.pop("bundle_shapes"), model.pop("library_shapes")
        model["sizes"] = len(bundle.keys() | library.keys())
        model["mean_s"] = model["seconds"] / model["calls"] if model["calls"] else None
        model["by_bundle"] = answered_fields(reduce(added, bundle.values(), _NONE))
        model["by_onnxruntime"] = answered_fields(reduce(added, library.values(), _NONE))
        # Calls that fell through say nothing about the bundle.
        model.update(compared(bundle if model["bundles"] else library, before.get(model["model"], {})))
    used = {path for model in models.values() for path in model["bundles"]}
    return {
        "processes": processes,
        "models": list(models.values()),
        "unused_bundles": [b["path"] for b in bundles if b["path"] not in used and b["file_sha256"] not in models],
        "not_used": not_used(bundles, {digest: model["name"] for digest, model in models.items()}, used),
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
        yield f"{model['name']} ({model['model'][:12]}): {answers_text(model)}"
        for item in model["through"]:
            yield f"  {item['count']} x {item['method']} by ONNX Runtime: {item['reason']}"
        if model["lost"]:
            yield f"  {model['lost']} calls were not counted: more different sizes than are kept"
    if any(model["before_s"] for model in fields["models"]):
        anew = "trtc bench NAME.trtc --vs onnxruntime --model MODEL.onnx"
        yield f"recorded runs were at another moment; {anew} compares side by side"
    for item in fields["not_used"]:
        yield f"{item['path']}: not used: {item['reason']}"


def _empty(digest: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "model": digest, "name": str(entry.get("name", "")), "bundles": [], "sessions": 0, "open_s": 0.0, "calls": 0,
        "seconds": 0.0, "bundle_shapes": {}, "library_shapes": {}, "lost": 0, "through": [],
    }  # fmt: skip


def _join(model: dict[str, Any], entry: Mapping[str, Any]) -> None:
    if "opened_s" in entry:
        model["sessions"] += 1
        model["open_s"] += _number(entry, "opened_s")
        if (bundle := entry.get("bundle")) and bundle not in model["bundles"]:
            model["bundles"].append(bundle)
    elif "inputs" in entry:
        sums = int(_number(entry, "count")), _number(entry, "seconds"), _number(entry, "squares")
        model["calls"] += sums[0]
        model["seconds"] += sums[1]
        shapes = model["bundle_shapes" if entry.get("by_bundle") is True else "library_shapes"]
        key = _key(entry["inputs"])
        shapes[key] = added(shapes.get(key, _NONE), sums)
    elif "method" in entry:
        same = [i for i in model["through"] if (i["method"], i["reason"]) == (entry["method"], entry["reason"])]
        if same:
            same[0]["count"] += int(_number(entry, "count"))
        else:
            model["through"].append({key: entry[key] for key in ("method", "reason", "count")})
    elif "lost" in entry:
        model["lost"] += int(_number(entry, "lost"))


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
