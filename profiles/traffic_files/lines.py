"""Lines of a file in blocks: requests repeat, so equal lines of a block are read once and counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtc.profiles.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

BLOCK_BYTES = 1 << 20
MAX_LINE_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Place:
    """Where an entry stands, found only when an error names it: the first of its kind in a block.

    Attributes:
        path: of the file.
        first: number of the block's first line.
        lines: of the block.
        line: the entry.
    """

    path: Path
    first: int
    lines: Sequence[object]
    line: object

    def __str__(self) -> str:
        return f"{self.path}, line {self.first + self.lines.index(self.line)}"


def line_blocks(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the number of a block's first line, from 1, and its lines, without their ends or a byte order mark.

    Raises:
        UsageError: for a line of more than 16 MiB.
        OSError: when the file cannot be read.
    """
    number, rest = 1, b""
    with path.open("rb") as file:
        while data := file.read(BLOCK_BYTES):
            if number == 1 and not rest:
                data = data.removeprefix(b"\xef\xbb\xbf")
            if b"\n" not in data:
                rest += data
                if len(rest) > MAX_LINE_BYTES:
                    raise UsageError(f"{path}, line {number}: longer than 16 MiB; write one request a line")
                continue
            lines = (rest + data).split(b"\n")
            rest = lines.pop()
            yield number, lines
            number += len(lines)
    if rest:
        yield number, [rest]
