"""Parquet, through pyarrow: whole-number columns named like the symbols, and ``count`` and ``time_s`` where wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.profiles.errors import HostError, UsageError
from trtc.profiles.traffic_files.collect import MAX_SIZE

if TYPE_CHECKING:
    from pathlib import Path

    from trtc.profiles.traffic_files.collect import Collector

_BATCH_ROWS = 1 << 16


def read_parquet(path: Path, collector: Collector) -> None:
    """Count every request of a file, a batch of rows at a time.

    Raises:
        UsageError: for a file that is not Parquet, and columns or values that are no sizes, naming the row.
        HostError: when pyarrow is not installed.
        OSError: when the file cannot be read.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise HostError(f"{path}: Parquet is read with pyarrow, which is not installed; pip install pyarrow") from error
    try:
        with pq.ParquetFile(path) as file:
            names = list(file.schema_arrow.names)
            if len(set(names)) != len(names):
                raise UsageError(f"{path}: a column name stands twice in {names}; name each column once")
            first = 1
            for batch in file.iter_batches(_BATCH_ROWS):
                _add_batch(batch, names, collector, (path, first))
                first += batch.num_rows
    except pa.ArrowException as error:
        raise UsageError(f"{path}: {error}; give a Parquet file") from error


def _add_batch(batch: Any, names: list[str], collector: Collector, at: tuple[Path, int]) -> None:
    columns = {name: _column(batch.column(i), name, at) for i, name in enumerate(names)}
    weights, times = columns.pop("count", None), columns.pop("time_s", None)
    where = f"{at[0]}, row {at[1]}"
    for name, values in columns.items():
        if values.dtype.kind not in "iu":
            raise UsageError(f"{at[0]}: column {name!r} is {values.dtype}; sizes are whole numbers")
        _check(values, (values >= 1) & (values <= MAX_SIZE), f"{name} is", at, "sizes are from 1 to 2147483647")
    if weights is not None:
        _check(weights, np.isfinite(weights) & (weights > 0), "the count is", at, "counts are positive numbers")
    if times is None and columns:
        sizes = np.stack([values.astype(np.int64) for values in columns.values()], axis=1)
        collector.add_block(list(columns), sizes, None if weights is None else weights.astype(np.float64), where)
        return
    for i in range(batch.num_rows):
        row = {name: int(values[i]) for name, values in columns.items()}
        count = 1 if weights is None else weights[i].item()
        collector.add(row, count, None if times is None else times[i].item(), f"{at[0]}, row {at[1] + i}")


def _column(column: Any, name: str, at: tuple[Path, int]) -> np.ndarray[Any, Any]:
    if column.null_count:
        row = at[1] + int(np.argmin(np.asarray(column.is_valid())))
        raise UsageError(f"{at[0]}, row {row}: {name} is empty; give a number in every row")
    values = np.asarray(column.to_numpy(zero_copy_only=False))
    if values.dtype.kind not in "iuf":
        raise UsageError(f"{at[0]}: column {name!r} is {values.dtype}; every column holds numbers")
    return values


def _check(
    values: np.ndarray[Any, Any], right: np.ndarray[Any, Any], what: str, at: tuple[Path, int], rule: str
) -> None:
    if not right.all():
        i = int(np.argmin(right))
        raise UsageError(f"{at[0]}, row {at[1] + i}: {what} {values[i]}; {rule}")
