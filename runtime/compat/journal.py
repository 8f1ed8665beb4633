"""Where counts are written: the record of traffic, and the report for the summary of ``trtc exec``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtc.runtime.compat.record_lines import line_of, merged
from trtc.runtime.whole_lines import cut_to_whole_lines, locked, write_all

if TYPE_CHECKING:
    from collections.abc import Sequence

MERGE_BYTES = 4 * 2**20
"""A record that has grown by this much is rewritten with one line for each model and shape."""
MAX_RECORD_BYTES = 64 * 2**20
"""A merged record that is larger takes nothing more."""


class Record:
    """Appends entries to a record of traffic.

    Args:
        path: of the JSON lines; made when missing, continued when there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._merged_bytes = 0

    def append(self, entries: Sequence[dict[str, Any]]) -> None:
        """Append whole lines.

        Raises:
            OSError: when that fails; nothing was written.
        """
        text = "".join(map(line_of, entries)).encode()
        with locked(self._path) as fd:
            size = cut_to_whole_lines(fd)
            if size <= self._merged_bytes + MERGE_BYTES:
                write_all(fd, text)
                return
            self._merge(fd)
        with locked(self._path) as fd:
            self._merged_bytes = cut_to_whole_lines(fd)
            if self._merged_bytes > MAX_RECORD_BYTES:
                raise OSError(0, f"it has {self._merged_bytes} bytes, {MAX_RECORD_BYTES} are the most")
            write_all(fd, text)

    def _merge(self, fd: int) -> None:
        with os.fdopen(os.dup(fd), "rb") as stream:
            stream.seek(0)
            lines = merged(stream)
        if lines is None:
            return
        import tempfile  # takes 4 ms, and few records grow that large

        place = Path(os.path.realpath(self._path))  # a link to it stays one
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}-")
        try:
            with os.fdopen(handle, "w") as new:
                new.writelines(lines)
                os.fchmod(new.fileno(), os.fstat(fd).st_mode & 0o777)
            Path(name).replace(place)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


class Report:
    """Appends entries to the report that ``trtc exec`` reads; does nothing when that is over."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, entries: Sequence[dict[str, Any]]) -> None:
        """Append whole lines; never raises, since nobody may be there any more to read them."""
        text = "".join(map(line_of, entries)).encode()
        try:
            with locked(self._path, make=False) as fd:
                cut_to_whole_lines(fd)
                write_all(fd, text)
        except OSError:
            return
