"""Lines of ``trtc exec --record``: shapes of inputs, with the digest of the model file that they were given to.

``{"model": "<sha256>", "name": "model.onnx", "inputs": {"x": [1, 3, 48, 320]}, "count": 2, "seconds": 0.1, "times_s":
[...]}``, and lines with ``ranges`` of values, which are no requests. Lines of other models are passed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtc.profiles.errors import UsageError
from trtc.profiles.traffic_files.collect import MAX_SIZE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtc.profiles.dims import Dim
    from trtc.profiles.traffic_files.collect import Collector


def is_recorded(entry: Mapping[str, Any]) -> bool:
    """Tell whether a line is of this kind."""
    return isinstance(entry.get("model"), str) and ("inputs" in entry or "ranges" in entry)


def add_recorded(
    entry: Mapping[str, Any], model: str, input_dims: Mapping[str, tuple[Dim, ...]], collector: Collector, where: object
) -> None:
    """Count the requests of one line, if they were made of this model.

    Args:
        entry: the line.
        model: digest of the model file.
        input_dims: dims of each input.
        collector: counts them.
        where: says file and line, for errors.

    Raises:
        UsageError: for a line that was not written by ``trtc exec``, or shapes that this model does not take.
    """
    if "inputs" not in entry:
        return
    if entry["model"] != model:
        requests = entry.get("count")
        _, before = collector.passed_over.get(entry["model"], ("", 0))
        if type(requests) is int and 0 < requests <= MAX_SIZE:
            collector.passed_over[entry["model"]] = str(entry.get("name", "")), before + requests
        return
    inputs, count, times_s = entry["inputs"], entry.get("count"), entry.get("times_s", [])
    plain = isinstance(inputs, dict) and isinstance(times_s, list) and isinstance(count, int)
    if not plain or not isinstance(count, int) or count < 1 or len(times_s) > count:
        raise UsageError(f"{where}: not as trtc exec --record writes it; record again, or remove the line")
    sizes = _sizes(inputs, input_dims, where)
    if not all(sizes.values()):
        return  # of nothing; no profile serves that
    for time_s in times_s:
        collector.add(sizes, 1, time_s, where)
    if count > len(times_s):
        collector.add(sizes, count - len(times_s), None, where)


def _sizes(inputs: Mapping[str, Any], input_dims: Mapping[str, tuple[Dim, ...]], where: object) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for name, shape in inputs.items():
        dims = input_dims.get(name)
        if dims is None:  # of unknown rank, or no tensor
            continue
        if not isinstance(shape, list) or len(shape) != len(dims):
            raise UsageError(
                f"{where}: input {name!r} has shape {shape}, the model takes {len(dims)} axes; record again"
            )
        for dim, size in zip(dims, shape, strict=True):
            if not isinstance(size, int) or (sizes.setdefault(dim, size) if isinstance(dim, str) else size) != size:
                raise UsageError(f"{where}: input {name!r} has shape {shape}, which contradicts others; record again")
    return sizes
