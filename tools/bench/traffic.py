"""Recorded traffic: JSON lines of sizes, each with how often it came."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from trtc.profiles import UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

COUNT = "count"
MAX_BYTES = 256 * 2**20


def read_traffic(path: Path, symbols: Sequence[str]) -> list[tuple[dict[str, int], int]]:
    """Read lines such as ``{"seq": 37, "batch": 1, "count": 12}``; a line without a count stands for one request.

    Args:
        path: of the file.
        symbols: of the bundle; each line gives a size for every one of them.

    Returns:
        Sizes and counts, in the file's order.

    Raises:
        UsageError: for a missing or empty file, or a line that is something else, with its number.
    """
    if not path.is_file():
        raise UsageError(f"{path}: no such file; give recorded sizes, one JSON object a line")
    if path.stat().st_size > MAX_BYTES:
        raise UsageError(
            f"{path}: more than {MAX_BYTES} bytes; give sums: one line for each set of sizes, with a count"
        )
    found = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if line.strip():
            found.append(_entry(line, symbols, f"{path}:{number}"))
    if not found:
        raise UsageError(f'{path}: it holds no request; a line looks like {{"{next(iter(symbols), "batch")}": 1}}')
    return found


def _entry(line: bytes, symbols: Sequence[str], where: str) -> tuple[dict[str, int], int]:
    try:
        fields = msgspec.json.decode(line, type=dict[str, int])
    except msgspec.MsgspecError as error:
        raise UsageError(f"{where}: {error}; a line is one JSON object of symbol to size") from error
    count = fields.get(COUNT, 1) if COUNT not in symbols else 1
    sizes = {name: size for name, size in fields.items() if name != COUNT or COUNT in symbols}
    for name in sizes:
        if name not in symbols:
            raise UsageError(f"{where}: {unknown_name('symbol', name, symbols)}")
    if missing := [symbol for symbol in symbols if symbol not in sizes]:
        raise UsageError(f"{where}: no size for {', '.join(missing)}; each line gives all symbols")
    if count < 1 or min(sizes.values(), default=0) < 0:
        raise UsageError(f"{where}: sizes are 0 or more, and a count is 1 or more")
    return sizes, count
