"""CSV: a header with the symbols, and ``count`` and ``time_s`` where wanted; then one line a request."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from trtc.profiles.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from trtc.profiles.traffic_files.collect import Collector

_ROWS_AT_ONCE = 1 << 15


def read_csv(path: Path, collector: Collector) -> None:
    """Count every request of a file.

    Raises:
        UsageError: naming the line, for a header that repeats a name, lines of another length, and fields that are not
            numbers.
        OSError: when the file cannot be read.
    """
    number = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            header = [name.strip() for name in next(rows, [])]
            number = rows.line_num
            if len(set(header)) != len(header) or "" in header:
                raise UsageError(
                    f"{path}, line 1: the header {header} repeats a name or leaves one out; name each column once"
                )
            while block := [(rows.line_num, tuple(row)) for row in islice(rows, _ROWS_AT_ONCE)]:
                number = rows.line_num
                lines = [row for _, row in block]
                for row, repeats in Counter(lines).items():
                    if row:
                        _add(header, row, collector, _Place(path, block, row), repeats)
    except (csv.Error, UnicodeDecodeError) as error:
        raise UsageError(f"{path}, line {number + 1}: {error}; write comma-separated text in UTF-8") from error


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a row stands, found only when an error names it."""

    path: Path
    block: list[tuple[int, tuple[str, ...]]]
    row: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.path}, line {next(number for number, row in self.block if row == self.row)}"


def _add(header: list[str], row: tuple[str, ...], collector: Collector, where: object, repeats: int) -> None:
    if len(row) != len(header):
        raise UsageError(f"{where}: {len(row)} fields, but the header names {len(header)}; give one for each")
    fields: dict[str, object] = {name: _number(text, name, where) for name, text in zip(header, row, strict=True)}
    collector.add(fields, fields.pop("count", 1), fields.pop("time_s", None), where, repeats)


def _number(text: str, name: str, where: object) -> int | float:
    try:
        stripped = text.strip()
        return int(stripped) if stripped.lstrip("+-").isdecimal() and stripped.isascii() else float(stripped)
    except ValueError as error:
        raise UsageError(f"{where}: {name} is {text[:40]!r}; write a number") from error
