"""JSON lines: one object a request, or counts of many.

Three forms, which a file may mix:

- ``{"seq": 37, "batch": 2}``, with ``"count"`` and ``"time_s"`` where wanted;
- ``{"sizes": {"seq": 37, "batch": 2}, "count": 3, "time_s": 0.25}``: for symbols that are named ``count`` and the like;
- ``{"symbols": ["batch", "seq"], "sizes": [[2, 37], [1, 5]], "counts": [3, 40]}``: a joint histogram.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from trtc.profiles.errors import UsageError
from trtc.profiles.traffic_files.lines import Place, line_blocks
from trtc.profiles.traffic_files.recorded import add_recorded, is_recorded

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from trtc.profiles.dims import Dim
    from trtc.profiles.traffic_files.collect import Collector

_FORM = 'write one object a line, such as {"seq": 37, "batch": 2, "count": 3}'


def read_json_lines(
    path: Path, collector: Collector, model: str = "", input_dims: Mapping[str, tuple[Dim, ...]] | None = None
) -> None:
    """Count every request of a file.

    Args:
        path: of the file.
        collector: counts them.
        model: digest of the model file, for lines that ``trtc exec --record`` wrote.
        input_dims: dims of its inputs, for the same.

    Raises:
        UsageError: naming the line, for anything that is not one of the three forms.
        OSError: when the file cannot be read.
    """
    for first, lines in line_blocks(path):
        for line, repeats in Counter(lines).items():
            if line.strip():
                where = Place(path, first, lines, line)
                entry = _object(line, where)
                if is_recorded(entry):
                    for _ in range(repeats):
                        add_recorded(entry, model, input_dims or {}, collector, where)
                else:
                    _add(entry, collector, where, repeats)


def _object(text: bytes, where: object) -> dict[str, Any]:
    try:
        found = json.loads(text, object_pairs_hook=_pairs, parse_constant=_constant)
    except (ValueError, RecursionError) as error:
        reason = f"{error.msg} at byte {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise UsageError(f"{where}: {reason}; {_FORM}") from error
    if not isinstance(found, dict):
        raise UsageError(f"{where}: {str(found)[:40]!r} is no object; {_FORM}")
    return found


def _add(entry: dict[str, Any], collector: Collector, where: object, repeats: int) -> None:
    sizes = entry.get("sizes")
    if isinstance(sizes, list):
        _add_histogram(entry, collector, where, repeats)
        return
    count, time_s = entry.pop("count", 1), entry.pop("time_s", None)
    if isinstance(sizes, dict):
        if len(entry) > 1:
            raise UsageError(
                f"{where}: {next(k for k in entry if k != 'sizes')!r} stands beside 'sizes'; put it inside"
            )
        entry = sizes
    collector.add(entry, count, time_s, where, repeats)


def _add_histogram(entry: dict[str, Any], collector: Collector, where: object, repeats: int) -> None:
    symbols, rows, counts = entry.get("symbols"), entry["sizes"], entry.get("counts")
    if entry.keys() != {"symbols", "sizes", "counts"} or not isinstance(symbols, list) or not isinstance(counts, list):
        raise UsageError(f"{where}: a histogram has the lists 'symbols', 'sizes' and 'counts', and nothing else")
    if len(rows) != len(counts) or not all(isinstance(name, str) for name in symbols):
        raise UsageError(
            f"{where}: {len(rows)} sizes with {len(counts)} counts; give a count for each, and symbols as texts"
        )
    if len(set(symbols)) != len(symbols):
        raise UsageError(f"{where}: a symbol stands twice in {symbols}; keep one")
    for i, (row, count) in enumerate(zip(rows, counts, strict=True)):
        if not isinstance(row, list) or len(row) != len(symbols):
            raise UsageError(f"{where}, sizes[{i}]: not one size for each of {', '.join(symbols)}")
        collector.add(dict(zip(symbols, row, strict=True)), count, None, f"{where}, sizes[{i}]", repeats)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} stands twice")
    return found


def _constant(text: str) -> float:
    raise ValueError(f"{text} is no number")
